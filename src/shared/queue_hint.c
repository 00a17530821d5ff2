/*-------------------------------------------------------------------------
 *
 * queue_hint.c
 *	  Resources of queues that may have a job: what the sessions of a cluster and its worker
 *	  tell each other.
 *
 * A push, a completion and a look at the index leave hints; each is taken by one session, which
 * tries that resource.  So the sessions of a cluster neither meet at one resource nor look
 * for what another one knows.  A hint may be wrong, and may get lost, also because there
 * is no room: a session that waits looks at the index from time to time.
 *
 * An entry is changed by the process that has moved its state away from the others.  Texts
 * are read before that, too, and then compared once more; they always end within their arrays.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "shared/queue_hint.h"

/* Older ones are not used: another session, or another cluster, has probably been there. */
#define HINT_LIFE_US (5 * USECS_PER_SEC)

static QueueHint *find(const char *queue, const char *resource);
static QueueHint *find_room(int64 now);
static bool is_ready(QueueHint *hint);
static bool is_old(QueueHint *hint, int64 now);
static bool grab(QueueHint *hint, HintState from);
static void put(QueueHint *hint, HintState state);
static QueueHint *oldest(const char *queue, char *const *resources, QueueHintSkip skip, int64 now);
static bool is_one_of(const char *resource, char *const *resources);
static bool fits(const QueueHint *hint, const char *queue, char *const *resources,
				 QueueHintSkip skip);

void
QueueHintTell(const char *queue, const char *resource, int64 attempts)
{
	QueueHintAdd(queue, resource, attempts);
	SegmentTellJobs();
}

void
QueueHintAdd(const char *queue, const char *resource, int64 attempts)
{
	int64		now = SegmentNow();
	QueueHint  *hint = find(queue, resource);

	if (hint != NULL && !is_old(hint, now))
		return;
	if (hint == NULL || !grab(hint, HINT_READY))
		hint = find_room(now);
	if (hint == NULL)
		return;
	pg_atomic_write_u64(&hint->since, (uint64) now);
	hint->attempts = attempts;
	strlcpy(hint->queue, queue, sizeof(hint->queue));
	strlcpy(hint->resource, resource, sizeof(hint->resource));
	put(hint, HINT_READY);
}

static QueueHint *
find(const char *queue, const char *resource)
{
	for (int i = 0; i < QUEUE_HINTS; i++)
	{
		QueueHint  *hint = &segment->hints[i];

		if (is_ready(hint) && strcmp(hint->resource, resource) == 0 &&
			strcmp(hint->queue, queue) == 0)
			return hint;
	}
	return NULL;
}

/* An entry that is ours now; NULL: there is none. */
static QueueHint *
find_room(int64 now)
{
	for (int i = 0; i < QUEUE_HINTS; i++)
	{
		QueueHint  *hint = &segment->hints[i];

		if (grab(hint, HINT_FREE) || (is_ready(hint) && is_old(hint, now) &&
									  grab(hint, HINT_READY)))
			return hint;
	}
	return NULL;
}

static bool
is_ready(QueueHint *hint)
{
	return pg_atomic_read_u32(&hint->state) == HINT_READY;
}

static bool
is_old(QueueHint *hint, int64 now)
{
	return (int64) pg_atomic_read_u64(&hint->since) < now - HINT_LIFE_US;
}

static bool
grab(QueueHint *hint, HintState from)
{
	uint32		expected = from;

	return pg_atomic_compare_exchange_u32(&hint->state, &expected, HINT_CHANGES);
}

static void
put(QueueHint *hint, HintState state)
{
	pg_write_barrier();
	pg_atomic_write_u32(&hint->state, state);
}

bool
QueueHintTake(const char *queue, char *const *resources, QueueHintSkip skip,
			  int64 *attempts, char resource[QUEUE_RESOURCE_MAX + 1])
{
	int64		now = SegmentNow();
	QueueHint  *hint;

	while ((hint = oldest(queue, resources, skip, now)) != NULL)
	{
		bool		taken;

		if (!grab(hint, HINT_READY))
			continue;
		taken = fits(hint, queue, resources, skip);
		if (taken)
		{
			*attempts = hint->attempts;
			strlcpy(resource, hint->resource, QUEUE_RESOURCE_MAX + 1);
		}
		put(hint, taken ? HINT_FREE : HINT_READY);
		if (taken)
			return true;
	}
	return false;
}

static QueueHint *
oldest(const char *queue, char *const *resources, QueueHintSkip skip, int64 now)
{
	QueueHint  *found = NULL;
	uint64		since = PG_UINT64_MAX;

	for (int i = 0; i < QUEUE_HINTS; i++)
	{
		QueueHint  *hint = &segment->hints[i];

		if (!is_ready(hint) || is_old(hint, now) ||
			pg_atomic_read_u64(&hint->since) >= since || !fits(hint, queue, resources, skip))
			continue;
		found = hint;
		since = pg_atomic_read_u64(&hint->since);
	}
	return found;
}

static bool
fits(const QueueHint *hint, const char *queue, char *const *resources, QueueHintSkip skip)
{
	return strcmp(hint->queue, queue) == 0 && is_one_of(hint->resource, resources) &&
		!(skip != NULL && skip(queue, hint->resource));
}

static bool
is_one_of(const char *resource, char *const *resources)
{
	if (resources == NULL)
		return true;
	for (; *resources != NULL; resources++)
	{
		if (strcmp(*resources, resource) == 0)
			return true;
	}
	return false;
}
