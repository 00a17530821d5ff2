/*-------------------------------------------------------------------------
 *
 * heap.h
 *	  A binary heap of nodes that are part of other structs.
 *
 * A heap has either timers, which are ordered by when they are due (heap_set()), or a queue, in
 * which each node has its place (heap_append()).  A node knows its position, so moving or removing
 * it costs O(log n) without a search.  Only heap_reserve() allocates.
 *
 *-------------------------------------------------------------------------
 */
#ifndef DDBLOCK_BASE_HEAP_H
#define DDBLOCK_BASE_HEAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct heap_node
{
	int64_t		at;				/* when it is due, or its place */
	size_t		position;		/* 0: in no heap */
} heap_node;

typedef struct heap
{
	heap_node **nodes;			/* [1 .. count] */
	size_t		count;
	size_t		room;
	int64_t		last_place;		/* the last place that heap_append() gave */
} heap;

/* Is it in a heap? */
static inline bool
heap_is_in(const heap_node *node)
{
	return node->position != 0;
}

/* Makes room for count nodes; false when memory is short. */
extern bool heap_reserve(heap *h, size_t count);
extern void heap_free(heap *h);

/* Inserts the node, or moves it; at INT64_MAX removes it. */
extern void heap_set(heap *h, heap_node *node, int64_t at);

/* Puts the node, which is in no heap, behind all that were appended before. */
extern void heap_append(heap *h, heap_node *node);

/* The node that is due first, or NULL; and when it is due, INT64_MAX: never. */
extern heap_node *heap_top(const heap *h);
extern int64_t heap_next(const heap *h);

/* Removes and returns the node that is due first, if it is due by now; else NULL. */
extern heap_node *heap_take_due(heap *h, int64_t now);

#endif							/* DDBLOCK_BASE_HEAP_H */
