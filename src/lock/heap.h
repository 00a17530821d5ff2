/*-------------------------------------------------------------------------
 *
 * heap.h
 *	  A binary heap of timers that are part of other structs.
 *
 * A node knows its position, so moving or removing it costs O(log n) without a
 * search.  Only heap_reserve() allocates.
 *
 *-------------------------------------------------------------------------
 */
#ifndef DDBLOCK_LOCK_HEAP_H
#define DDBLOCK_LOCK_HEAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct heap_node
{
	int64_t		at;				/* when it is due */
	size_t		position;		/* 0: in no heap */
} heap_node;

typedef struct heap
{
	heap_node **nodes;			/* [1 .. count] */
	size_t		count;
	size_t		room;
} heap;

/* Makes room for count nodes; false when memory is short. */
extern bool heap_reserve(heap *h, size_t count);
extern void heap_free(heap *h);

/* Inserts the node, or moves it; at INT64_MAX removes it. */
extern void heap_set(heap *h, heap_node *node, int64_t at);

/* The node that is due first, or NULL. */
extern heap_node *heap_top(const heap *h);

#endif							/* DDBLOCK_LOCK_HEAP_H */
