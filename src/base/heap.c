/*-------------------------------------------------------------------------
 *
 * heap.c
 *	  A binary heap of nodes that are part of other structs: see heap.h.
 *
 *-------------------------------------------------------------------------
 */
#include "base/heap.h"

#include <stdlib.h>

bool
heap_reserve(heap *h, size_t count)
{
	heap_node **nodes;
	size_t		room = h->room ? h->room : 64;

	if (count <= h->room)
		return true;
	while (room < count)
		room *= 2;
	nodes = realloc(h->nodes, (room + 1) * sizeof(heap_node *));
	if (nodes == NULL)
		return false;
	h->nodes = nodes;
	h->room = room;
	return true;
}

void
heap_free(heap *h)
{
	free(h->nodes);
	*h = (heap) {0};
}

static void
put(heap *h, heap_node *node, size_t position)
{
	h->nodes[position] = node;
	node->position = position;
}

/* Moves the node to where its time belongs. */
static void
sift(heap *h, heap_node *node)
{
	size_t		position = node->position;

	while (position > 1 && h->nodes[position / 2]->at > node->at)
	{
		put(h, h->nodes[position / 2], position);
		position /= 2;
	}
	for (;;)
	{
		size_t		child = position * 2;

		if (child > h->count)
			break;
		if (child < h->count && h->nodes[child + 1]->at < h->nodes[child]->at)
			child++;
		if (h->nodes[child]->at >= node->at)
			break;
		put(h, h->nodes[child], position);
		position = child;
	}
	put(h, node, position);
}

void
heap_set(heap *h, heap_node *node, int64_t at)
{
	if (at == INT64_MAX)
	{
		size_t		hole = node->position;

		if (hole != 0)
		{
			heap_node  *last = h->nodes[h->count--];

			node->position = 0;
			if (last != node)
			{
				put(h, last, hole);
				sift(h, last);
			}
		}
		node->at = at;
		return;
	}
	node->at = at;
	if (node->position == 0)
		put(h, node, ++h->count);
	sift(h, node);
}

heap_node *
heap_top(const heap *h)
{
	return h->count > 0 ? h->nodes[1] : NULL;
}

int64_t
heap_next(const heap *h)
{
	return h->count > 0 ? h->nodes[1]->at : INT64_MAX;
}

heap_node *
heap_take_due(heap *h, int64_t now)
{
	heap_node  *top = heap_top(h);

	if (top == NULL || top->at > now)
		return NULL;
	heap_set(h, top, INT64_MAX);
	return top;
}

void
heap_append(heap *h, heap_node *node)
{
	heap_set(h, node, ++h->last_place);
}
