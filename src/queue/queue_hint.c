/*-------------------------------------------------------------------------
 *
 * queue_hint.c
 *	  Resources of queues that may have a job: what the sessions of a cluster and its worker
 *	  tell each other, in shared memory.
 *
 * A push, a completion and a look at the index leave hints; each is taken by one session, which
 * tries that resource.  So the sessions of a cluster neither meet at one resource nor look
 * for what another one knows.  A hint may be wrong, and may get lost, also because there
 * is no room: a session that waits looks at the index from time to time.
 *
 * A process that changes an entry first moves its state to QUEUE_HINT_CHANGES, in one step, so
 * that no other process changes it.  Processes compare the texts of an entry before that, while
 * another process may write them, and compare them again afterwards.  The texts always end within
 * their arrays.
 *
 *-------------------------------------------------------------------------
 */
#include "queue/queue.h"

#include <string.h>

#include "dynamo/dynamo_codec.h"

/*
 * Hints that are older are not used: another session, or another cluster, has probably been there.
 */
#define HINT_LIFE_US (5 * INT64_C(1000000))

static bool
is_ready(const queue_hint *hint)
{
	return shared_read(&hint->state) == QUEUE_HINT_READY;
}

static queue_hint *
find(queue_hint *hints, const char *queue, const char *resource)
{
	for (int i = 0; i < QUEUE_HINTS; i++)
	{
		queue_hint *hint = &hints[i];

		if (is_ready(hint) && strcmp(hint->resource, resource) == 0 &&
			strcmp(hint->queue, queue) == 0)
			return hint;
	}
	return NULL;
}

static bool
is_old(const queue_hint *hint, int64_t now)
{
	return (int64_t) shared_read(&hint->since) < now - HINT_LIFE_US;
}

static bool
grab(queue_hint *hint, queue_hint_state from)
{
	uint32_t	expected = from;

	return shared_compare_exchange(&hint->state, &expected, QUEUE_HINT_CHANGES);
}

/* Takes a free or old entry, so that it is ours to write.  NULL: there is none. */
static queue_hint *
find_room(queue_hint *hints, int64_t now)
{
	for (int i = 0; i < QUEUE_HINTS; i++)
	{
		queue_hint *hint = &hints[i];

		if (grab(hint, QUEUE_HINT_FREE) || (is_ready(hint) && is_old(hint, now) &&
									  grab(hint, QUEUE_HINT_READY)))
			return hint;
	}
	return NULL;
}

static void
put(queue_hint *hint, queue_hint_state state)
{
	shared_write_barrier();
	shared_write(&hint->state, state);
}

void
queue_hint_add(queue_hint *hints, int64_t now, const char *queue, const char *resource,
			   int64_t attempts)
{
	queue_hint *hint = find(hints, queue, resource);

	if (hint != NULL && !is_old(hint, now))
		return;
	if (hint == NULL || !grab(hint, QUEUE_HINT_READY))
		hint = find_room(hints, now);
	if (hint == NULL)
		return;
	shared_write(&hint->since, (uint64_t) now);
	hint->attempts = attempts;
	dynamo_json_copy(hint->queue, sizeof(hint->queue), queue);
	dynamo_json_copy(hint->resource, sizeof(hint->resource), resource);
	put(hint, QUEUE_HINT_READY);
}

static bool
fits(const queue_hint *hint, const char *queue, char *const *resources, queue_hint_skip skip)
{
	bool		found = resources == NULL;

	if (strcmp(hint->queue, queue) != 0)
		return false;
	for (; !found && *resources != NULL; resources++)
		found = strcmp(*resources, hint->resource) == 0;
	return found && !(skip != NULL && skip(queue, hint->resource));
}

static queue_hint *
oldest(queue_hint *hints, int64_t now, const char *queue, char *const *resources,
	   queue_hint_skip skip)
{
	queue_hint *found = NULL;
	uint64_t	since = UINT64_MAX;

	for (int i = 0; i < QUEUE_HINTS; i++)
	{
		queue_hint *hint = &hints[i];

		if (!is_ready(hint) || is_old(hint, now) ||
			shared_read(&hint->since) >= since || !fits(hint, queue, resources, skip))
			continue;
		found = hint;
		since = shared_read(&hint->since);
	}
	return found;
}

bool
queue_hint_exists(queue_hint *hints, int64_t now, const char *queue)
{
	return oldest(hints, now, queue, NULL, NULL) != NULL;
}

bool
queue_hint_take(queue_hint *hints, int64_t now, const char *queue, char *const *resources,
				queue_hint_skip skip, int64_t *attempts, char resource[QUEUE_RESOURCE_MAX + 1])
{
	queue_hint *hint;

	while ((hint = oldest(hints, now, queue, resources, skip)) != NULL)
	{
		bool		taken;

		if (!grab(hint, QUEUE_HINT_READY))
			continue;
		taken = fits(hint, queue, resources, skip);
		if (taken)
		{
			*attempts = hint->attempts;
			dynamo_json_copy(resource, QUEUE_RESOURCE_MAX + 1, hint->resource);
		}
		put(hint, taken ? QUEUE_HINT_FREE : QUEUE_HINT_READY);
		if (taken)
			return true;
	}
	return false;
}
