/*-------------------------------------------------------------------------
 *
 * test_heap.c
 *	  Timers and queues in a heap; timers are compared with a plain list.
 *
 *-------------------------------------------------------------------------
 */
#include "../unit.h"
#include "base/heap.h"

#define NODES 300

/* The earliest time in the list; INT64_MAX: none. */
static int64_t
earliest(const heap_node *nodes, int count)
{
	int64_t		at = INT64_MAX;

	for (int i = 0; i < count; i++)
	{
		if (nodes[i].position != 0 && nodes[i].at < at)
			at = nodes[i].at;
	}
	return at;
}

TEST(an_empty_heap_has_no_top)
{
	heap		h = {0};
	heap_node	node = {0};

	assert_null(heap_top(&h));
	assert_true(heap_reserve(&h, 1));
	assert_null(heap_top(&h));
	heap_set(&h, &node, INT64_MAX);
	assert_null(heap_top(&h));
	heap_free(&h);
}

TEST(nodes_come_out_in_order_of_time)
{
	heap		h = {0};
	heap_node	nodes[NODES] = {{0}};
	int64_t		last = INT64_MIN;

	assert_true(heap_reserve(&h, NODES));
	for (int i = 0; i < NODES; i++)
		heap_set(&h, &nodes[i], (i * 7919) % 211);
	for (int i = 0; i < NODES; i++)
	{
		heap_node  *top = heap_top(&h);

		assert_non_null(top);
		assert_true(top->at >= last);
		last = top->at;
		heap_set(&h, top, INT64_MAX);
		assert_int_equal(top->position, 0);
		assert_true(top->at == INT64_MAX);
	}
	assert_null(heap_top(&h));
	heap_free(&h);
}

TEST(setting_a_node_again_moves_it)
{
	heap		h = {0};
	heap_node	nodes[3] = {{0}};

	assert_true(heap_reserve(&h, 3));
	for (int i = 0; i < 3; i++)
		heap_set(&h, &nodes[i], 10 + i);
	heap_set(&h, &nodes[2], 1);
	assert_ptr_equal(heap_top(&h), &nodes[2]);
	heap_set(&h, &nodes[2], 20);
	assert_ptr_equal(heap_top(&h), &nodes[0]);
	heap_set(&h, &nodes[0], INT64_MAX);
	assert_ptr_equal(heap_top(&h), &nodes[1]);
	assert_int_equal(h.count, 2);
	heap_free(&h);
}

TEST(any_sequence_keeps_the_earliest_on_top)
{
	heap		h = {0};
	heap_node	nodes[NODES] = {{0}};
	uint32_t	random = 1;

	assert_true(heap_reserve(&h, NODES));
	for (int i = 0; i < 20000; i++)
	{
		heap_node  *top;

		random = random * 1664525 + 1013904223;
		heap_set(&h, &nodes[(random >> 8) % NODES],
				 random >> 30 == 0 ? INT64_MAX : (random >> 16) % 1000);
		top = heap_top(&h);
		assert_int_equal(top ? top->at : INT64_MAX, earliest(nodes, NODES));
	}

	/* None is hidden behind a later one. */
	for (heap_node *top; (top = heap_top(&h)) != NULL; heap_set(&h, top, INT64_MAX))
		assert_int_equal(top->at, earliest(nodes, NODES));
	heap_free(&h);
}

TEST(growing_keeps_what_is_there)
{
	heap		h = {0};
	heap_node	nodes[NODES] = {{0}};

	for (int i = 0; i < NODES; i++)
	{
		assert_true(heap_reserve(&h, (size_t) i + 1));
		heap_set(&h, &nodes[i], NODES - i);
		assert_ptr_equal(heap_top(&h), &nodes[i]);
	}
	heap_free(&h);
}

TEST(who_is_appended_comes_last)
{
	heap_node	nodes[NODES] = {0};
	heap		h = {0};

	assert_true(heap_reserve(&h, NODES));
	for (int i = 0; i < NODES; i++)
		heap_append(&h, &nodes[i]);
	heap_set(&h, &nodes[7], INT64_MAX);
	heap_append(&h, &nodes[7]);
	for (int i = 0; i < NODES; i++)
	{
		if (i != 7)
			assert_ptr_equal(heap_take_due(&h, INT64_MAX), &nodes[i]);
	}
	assert_ptr_equal(heap_take_due(&h, INT64_MAX), &nodes[7]);
	assert_null(heap_take_due(&h, INT64_MAX));
	heap_free(&h);
}

TEST(what_is_not_due_is_not_taken)
{
	heap_node	node = {0};
	heap		h = {0};

	assert_true(heap_reserve(&h, 1));
	assert_int_equal(heap_next(&h), INT64_MAX);
	heap_set(&h, &node, 10);
	assert_int_equal(heap_next(&h), 10);
	assert_null(heap_take_due(&h, 9));
	assert_ptr_equal(heap_take_due(&h, 10), &node);
	assert_int_equal(node.position, 0);
	assert_null(heap_top(&h));
	heap_free(&h);
}
