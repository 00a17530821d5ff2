/*-------------------------------------------------------------------------
 *
 * deadlock.c
 *	  Deadlocks that pass through PostgreSQL's locks.
 *
 * The worker sees at once when sessions wait for each other's ddblock locks
 * (lock/lockmgr_deadlock.c), and PostgreSQL finds circles of its own locks.  A circle of both
 * kinds is found here.  Example: session A holds a ddblock lock and waits for a row lock of B; B
 * waits for the ddblock lock.  The sessions in the circle that wait in ddblock search for it:
 * first after deadlock_timeout, and then again and again, because a later wait in PostgreSQL may
 * close the circle.
 *
 * A search goes from process to process, along both kinds of waits.  What it reads comes from
 * different moments.  So it could see circles that never exist at one moment: a holder that
 * acquires and releases a lock in a loop blocks the same process again and again.  Therefore each
 * wait has a name that does not come again: PGPROC.waitStart, or the request's number.  A circle
 * counts only if the same waits are found three times: by the first pass, by the second pass,
 * which also reads who blocks whom, and by the check after it.  Then all processes of the circle
 * waited during the second pass, and a process that waits neither takes nor frees a lock.
 *
 * All processes of a circle see the same circle.  So they agree on the one that fails: the one
 * that began to wait last, of those that wait in ddblock.  PostgreSQL does not see the circle, and
 * fails nobody.
 *
 * A process is stuck if it waits, and other stuck processes keep it waiting for ever.  For most
 * waits one stuck blocker is enough.  A session that waits for permits of a semaphore is stuck if
 * stuck sessions hold too many permits: if it wants 2 of 5 permits, 4 are too many, 3 are not.
 * Waits without a request, for a job or for the end of a lease, count less: see walk().
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

/* segment.h has a type of this name. */
#define LockPage PostgresLockPage
#include "storage/lmgr.h"
#undef LockPage

#include "common/hashfn.h"
#include "lib/stringinfo.h"
#include "mb/pg_wchar.h"
#include "miscadmin.h"
#include "storage/lock.h"
#include "storage/proc.h"
#include "storage/procarray.h"
#include "utils/array.h"
#include "utils/backend_status.h"
#include "utils/fmgrprotos.h"
#include "utils/memutils.h"
#include "utils/wait_event.h"

#include "session/session.h"

#define PAUSE_MOST_US (8 * USECS_PER_SEC)

/* A search looks at so many processes at most. */
#define PROCESSES_MAX 64

#define NAME_SHOWN 100			/* bytes of a lock's name */

#define WAIT_CLASS 0xFF000000	/* of wait_event_info */

typedef enum WaitKind
{
	WAIT_NONE,
	WAIT_POSTGRES,				/* for one of PostgreSQL's locks */
	WAIT_LOCK,					/* for a ddblock lock, with a request */
	WAIT_RELEASE,				/* for the end of a lease */
	WAIT_JOB					/* for a job of a queue */
} WaitKind;

typedef struct Wait
{
	WaitKind	kind;
	uint64		id;				/* with kind and process: names this wait, and no other one ever */
	int64		since;			/* when it began; not set for WAIT_POSTGRES */
	lock_mode	mode;			/* this and the next three: WAIT_LOCK */
	int32		permits;
	int32		limit;
	uint64		place;			/* the order of the queue */
	uint32		lease_index;	/* WAIT_RELEASE */
	uint32		lease_generation;
	uint64		resources;		/* WAIT_JOB: a set of resource_bit() */
	char		name[DYNAMO_NAME_MAX + 1];	/* the lock's name; WAIT_JOB: what the names of all its
											 * locks begin with */
} Wait;

typedef struct Process
{
	int			pid;
	PGPROC	   *proc;
	Wait		wait;
	bool		in_line;		/* it could share the lock with its holders, and waits only because
								 * another session is before it in the queue */
	int64		slack;			/* it is stuck if the weights of its stuck blockers have a larger
								 * sum.  0 for most waits; of a semaphore: the limit less the
								 * permits that it wants */
} Process;

/* Processes, and which of them keep others waiting.  processes[0] is this process. */
typedef struct Graph
{
	int			count;
	Process		processes[PROCESSES_MAX];
	int64		weights[PROCESSES_MAX][PROCESSES_MAX];	/* [i][j]: how much j keeps i waiting; 0:
														 * not at all.  Of a semaphore: the permits
														 * that j holds; else 1 */
} Graph;

/*
 * Which processes are stuck if one of them, the root, is.  0: is not stuck; 1: the root; 2: is
 * stuck by the root alone; 3: by those of ranks 1 and 2; and so on.
 */
typedef int Ranks[PROCESSES_MAX];

void
DeadlockStart(DeadlockSearch *search)
{
	search->next = SegmentNow() + DeadlockTimeout * INT64CONST(1000);
	search->pause = USECS_PER_SEC;
	search->goes_first = false;
}

/*
 * Adds a process, unless it is there already.  Returns its number; -1 if it has ended, or there
 * are too many.
 */
static int
add_process(Graph *graph, int pid)
{
	PGPROC	   *proc;

	for (int i = 0; i < graph->count; i++)
	{
		if (graph->processes[i].pid == pid)
			return i;
	}
	proc = graph->count < PROCESSES_MAX ? BackendPidGetProc(pid) : NULL;
	if (proc == NULL)
		return -1;
	graph->processes[graph->count].pid = pid;
	graph->processes[graph->count].proc = proc;
	return graph->count++;
}

static void
add_blocker(Graph *graph, int waiter, int pid, int64 weight)
{
	int			blocker = add_process(graph, pid);

	if (blocker >= 0 && blocker != waiter)
		graph->weights[waiter][blocker] += weight;
}

/*
 * Adds the processes that hold the lock of PostgreSQL's for which this one waits, or wait for it
 * before this one.  pg_blocking_pids() gives 0 for a prepared transaction.
 */
static void
add_postgres(Graph *graph, int waiter)
{
	Datum		pid = Int32GetDatum(graph->processes[waiter].pid);
	ArrayType  *blockers = DatumGetArrayTypeP(DirectFunctionCall1(pg_blocking_pids, pid));
	int			count = ArrayGetNItems(ARR_NDIM(blockers), ARR_DIMS(blockers));
	const int32 *pids = (const int32 *) ARR_DATA_PTR(blockers);

	for (int i = 0; i < count; i++)
	{
		if (pids[i] != 0)
			add_blocker(graph, waiter, pids[i], 1);
	}
}

/*
 * The resources of a queue are divided into 64 sets by a hash.  A session that waits for a job of
 * one resource seems to wait for all resources of its set.
 */
static uint64
resource_bit(const char *resource)
{
	return UINT64CONST(1) <<
		hash_bytes((const unsigned char *) resource, (int) strlen(resource)) % 64;
}

static bool
is_for(const Wait *wait, uint32 lease_index, const char *name)
{
	size_t		len = strlen(wait->name);

	if (wait->kind == WAIT_RELEASE)
		return lease_index == wait->lease_index;
	if (wait->kind == WAIT_LOCK)
		return strcmp(name, wait->name) == 0;
	return strncmp(name, wait->name, len) == 0 &&
		(wait->resources & resource_bit(name + len)) != 0;
}

/*
 * Adds the hold's session as a blocker, if the process cannot get the lock before that session has
 * acted.  The session need not act in these cases:
 *
 *	 - It has ended, or has let go of the hold.
 *	 - The cluster ends the hold: it is detached, or a leadership's, or the worker finishes its job.
 *	 - It shares the lock in the mode in which the process wants it, without a limit.
 */
static void
add_hold(Graph *graph, int waiter, const HoldCopy *held, uint32 hold_index, lock_mode mode)
{
	Process    *process = &graph->processes[waiter];
	const Wait *wait = &process->wait;
	const saved_hold *h = &held->hold;
	int			pid;
	bool		with_others = wait->kind == WAIT_LOCK && wait->mode == mode;

	if (held->let_go || h->ends_at != 0 || h->leadership ||
		h->session.slot >= segment->max_sessions ||
		shared_read(&segment_slots[h->session.slot].words.generation) != h->session.generation ||
		SegmentEndsHold(NULL, hold_index, h))
		return;
	pid = segment_slots[h->session.slot].pid;
	if (with_others && lockmgr_unlimited(mode))
		return;
	if (with_others && lockmgr_limited(mode))
	{
		process->slack = wait->limit - wait->permits;
		add_blocker(graph, waiter, pid, h->permits);
	}
	else
		add_blocker(graph, waiter, pid, 1);
}

static bool
read_other(MailboxSlot *slot, Wait *wait)
{
	SlotWait   *other = &slot->wait;
	LeaseCopy	lease;

	wait->id = shared_read(&other->since);
	if (wait->id == 0)
		return false;
	pg_read_barrier();
	wait->since = (int64) wait->id;
	wait->kind = other->queue[0] != '\0' ? WAIT_JOB : WAIT_RELEASE;
	wait->resources = other->resources;
	wait->lease_index = other->lease_index;
	wait->lease_generation = other->lease_generation;
	snprintf(wait->name, sizeof(wait->name), "queue/%.*s/", QUEUE_NAME_MAX, other->queue);
	pg_read_barrier();
	if (shared_read(&other->since) != wait->id)
		return false;
	if (wait->kind == WAIT_RELEASE)
		strlcpy(wait->name, SegmentPeekLease(wait->lease_index, &lease) ? lease.name : "",
				sizeof(wait->name));
	return true;
}

static bool
read_slot(uint32 number, Wait *wait)
{
	MailboxSlot *slot = number < segment->max_sessions ? &segment_slots[number] : NULL;
	uint32		generation = slot != NULL ? shared_read(&slot->words.generation) : 0;
	WaiterCopy	waiter;

	wait->kind = WAIT_NONE;
	if (generation % 2 != 1)
		return false;
	if (SegmentReadWaiter(number, &waiter) && waiter.request.kind == MAILBOX_ACQUIRE)
	{
		wait->kind = WAIT_LOCK;
		wait->id = waiter.request.seq;
		wait->since = waiter.request.posted;
		wait->mode = waiter.request.ask.mode;
		wait->permits = waiter.request.ask.permits;
		wait->limit = waiter.request.ask.limit;
		wait->place = waiter.place;
		strlcpy(wait->name, waiter.name, sizeof(wait->name));
	}
	else if (!read_other(slot, wait))
		return false;
	return shared_read(&slot->words.generation) == generation;
}

/* The process that is the first in the queue for the same lock; 0 if there is none. */
static int
first_in_line(const Wait *wait)
{
	Wait		other;
	size_t		name_len = strlen(wait->name);
	uint64		place = PG_UINT64_MAX;
	int			pid = 0;

	for (uint32 i = 0; i < segment->max_sessions; i++)
	{
		/* Compare the length first, because most requests are for other locks. */
		if (segment_slots[i].request.name_len != name_len ||
			!read_slot(i, &other) || other.kind != WAIT_LOCK || other.place >= place ||
			!is_for(wait, 0, other.name))
			continue;
		place = other.place;
		pid = segment_slots[i].pid;
	}
	return pid;
}

/* Adds the sessions that hold what the process waits for. */
static void
add_holders(Graph *graph, int waiter)
{
	Process    *process = &graph->processes[waiter];
	const Wait *wait = &process->wait;
	HoldCopy	held;
	LeaseCopy	copy;
	const saved_lease *l = &copy.lease;
	bool		in_queue = false;

	for (uint32 i = 0; i < segment->max_leases; i++)
	{
		const saved_hold *h = &segment_holds[i].hold;
		uint32		index = h->lease_index;

		/* Compare before copying, because most holds are of other locks. */
		if (h->session.generation == 0 || index >= segment->max_leases ||
			!is_for(wait, index, segment_leases[index].name))
			continue;
		if (!SegmentPeekHold(i, &held) || !SegmentPeekLease(index, &copy) ||
			held.hold.lease_index != index || l->state != LEASE_HELD ||
			held.hold.lease_generation != l->generation ||
			!is_for(wait, index, copy.name) ||
			(wait->kind == WAIT_RELEASE && wait->lease_generation != l->generation))
			continue;
		/*
		 * Sessions that share the lock in this mode do not keep this one out, unless permits are
		 * short.  So it may wait only because another session is before it in the queue.
		 */
		if (wait->kind == WAIT_LOCK && wait->mode != MODE_EXCLUSIVE &&
			wait->mode == l->mode)
			in_queue = true;
		add_hold(graph, waiter, &held, i, l->mode);
	}
	if (in_queue)
	{
		int			first = first_in_line(wait);

		process->in_line = lockmgr_unlimited(wait->mode) && first != 0 && first != process->pid;
		if (first != 0)
			add_blocker(graph, waiter, first, process->slack + 1);
	}
}

/* Reads what the process waits for now; false if it waits for nothing that counts here. */
static bool
read_wait(const Process *process, Wait *wait)
{
	PGPROC	   *proc = process->proc;

	wait->kind = WAIT_NONE;
	wait->id = pg_atomic_read_u64(&proc->waitStart);
	if (proc->pid != process->pid)
		return false;
	/*
	 * Do not go by waitStart alone: older minor releases of PostgreSQL leave it set after the
	 * wait.
	 */
	if ((*(volatile uint32 *) &proc->wait_event_info & WAIT_CLASS) != PG_WAIT_LOCK)
		return read_slot((uint32) (proc - GetPGProcByNumber(0)), wait);
	wait->kind = WAIT_POSTGRES;
	return wait->id != 0;
}

/* Finds all processes that keep this one waiting, directly or through others, breadth first. */
static Graph *
walk(void)
{
	Graph	   *graph = palloc0(sizeof(Graph));

	(void) add_process(graph, MyProcPid);
	for (int i = 0; i < graph->count; i++)
	{
		Process    *process = &graph->processes[i];

		CHECK_FOR_INTERRUPTS();
		if (!read_wait(process, &process->wait))
			continue;
		if (process->wait.kind == WAIT_POSTGRES)
			add_postgres(graph, i);
		else
			add_holders(graph, i);
	}

	/*
	 * A process that waits without a request, for a job for example, may get what it waits for in
	 * another way: a job of another resource may come.  So only a blocker that waits for one of
	 * PostgreSQL's locks counts for it.  Example: two workers that have a job each, and wait for
	 * more jobs, are no circle.
	 */
	for (int i = 0; i < graph->count; i++)
	{
		for (int j = 0; j < graph->count; j++)
		{
			if (graph->processes[i].wait.kind > WAIT_LOCK &&
				graph->processes[j].wait.kind != WAIT_POSTGRES)
				graph->weights[i][j] = 0;
		}
	}
	return graph;
}

static bool
is_same(const Wait *a, const Wait *b)
{
	return a->kind == b->kind && a->id == b->id;
}

/* Removes waits from the graph that were not there before, or are over now. */
static void
keep_confirmed(Graph *graph, const Graph *before)
{
	Wait		now;

	for (int i = 0; i < graph->count; i++)
	{
		Process    *process = &graph->processes[i];
		bool		confirmed = false;

		for (int j = 0; j < before->count; j++)
			confirmed |= before->processes[j].pid == process->pid &&
				is_same(&before->processes[j].wait, &process->wait);
		if (!confirmed || !read_wait(process, &now) || !is_same(&now, &process->wait))
			process->wait.kind = WAIT_NONE;
	}
}

/* Is the process stuck by those of lower ranks? */
static bool
is_stuck(const Graph *graph, int number, const Ranks ranks, int below)
{
	int64		weight = 0;

	for (int i = 0; i < graph->count; i++)
	{
		if (ranks[i] != 0 && ranks[i] < below)
			weight += graph->weights[number][i];
	}
	return graph->processes[number].wait.kind != WAIT_NONE &&
		weight > graph->processes[number].slack;
}

/*
 * Finds which processes are stuck if the root is.  Returns whether the root is then kept waiting
 * by these: if so, there is a deadlock.
 */
static bool
find_stuck(const Graph *graph, int root, Ranks ranks)
{
	bool		found = true;

	memset(ranks, 0, sizeof(Ranks));
	ranks[root] = 1;
	for (int rank = 2; found; rank++)
	{
		found = false;
		for (int i = 0; i < graph->count; i++)
		{
			if (ranks[i] != 0 || !is_stuck(graph, i, ranks, rank))
				continue;
			ranks[i] = rank;
			found = true;
		}
	}
	return is_stuck(graph, root, ranks, PROCESSES_MAX + 2);
}

/*
 * Does a come after b in the order in which processes are chosen to fail?  A process that is only
 * in line comes last of all: if it is chosen, it goes first instead, and no process fails.
 */
static bool
comes_after(const Process *a, const Process *b)
{
	if (a->in_line != b->in_line)
		return a->in_line;
	if (a->wait.since != b->wait.since)
		return a->wait.since > b->wait.since;
	return a->pid > b->pid;
}

/*
 * Must this process fail?  It must if it is the last one, by comes_after(), of the processes whose
 * failure would end the deadlock.  Those wait in ddblock, are stuck because this process is, and
 * keep this process stuck.
 */
static bool
is_last(const Graph *graph, const Ranks ranks)
{
	Ranks		others;

	for (int i = 1; i < graph->count; i++)
	{
		const Process *process = &graph->processes[i];

		if (ranks[i] != 0 && process->wait.kind > WAIT_POSTGRES &&
			comes_after(process, &graph->processes[0]) &&
			find_stuck(graph, i, others) && others[0] != 0)
			return false;
	}
	return true;
}

/* Describes what a process waits for, in the words of PostgreSQL's own deadlock report. */
static char *
describe_postgres(int pid)
{
	BlockedProcsData *data = GetBlockerStatusData(pid);
	StringInfoData out;

	initStringInfo(&out);
	for (int i = 0; i < data->nlocks && out.len == 0; i++)
	{
		const LockInstanceData *lock = &data->locks[i];

		if (lock->pid != pid || lock->waitLockMode == NoLock)
			continue;
		appendStringInfo(&out, "%s on ",
						 GetLockmodeName(lock->locktag.locktag_lockmethodid, lock->waitLockMode));
		DescribeLockTag(&out, &lock->locktag);
	}
	return out.len > 0 ? out.data : "a lock";
}

static char *
describe(const Process *process)
{
	const Wait *wait = &process->wait;
	int			len = strlen(wait->name);
	int			shown;
	char	   *name;

	if (wait->kind == WAIT_POSTGRES)
		return describe_postgres(process->pid);
	if (!PrefixAllows(wait->name))
		return wait->kind == WAIT_JOB ? "a job of another queue" : "another lock";
	if (wait->kind == WAIT_JOB)
		return psprintf("a job of queue \"%.*s\"", len - (int) strlen("queue//"),
						wait->name + strlen("queue/"));
	shown = pg_encoding_mbcliplen(PG_UTF8, wait->name, len, NAME_SHOWN);
	name = Utf8ToMessage(pnstrdup(wait->name, shown));
	return psprintf(wait->kind == WAIT_LOCK ? "lock \"%s%s\"" : "the end of lock \"%s%s\"", name,
					shown < len ? "..." : "");
}

/*
 * Appends the process, and then those by which it is stuck.  Those of the lowest ranks are enough:
 * they lead back to the first process.
 */
static void
append_process(StringInfo detail, StringInfo log, const Graph *graph, const Ranks ranks,
			   int number, bool *named)
{
	const Process *process = &graph->processes[number];
	char	   *what = describe(process);
	int64		weight = 0;

	named[number] = true;
	appendStringInfo(log, "\nProcess %d: %s", process->pid,
					 pgstat_get_backend_current_activity(process->pid, false));
	for (int rank = 1; weight <= process->slack && rank < PROCESSES_MAX + 2; rank++)
	{
		for (int i = 0; weight <= process->slack && i < graph->count; i++)
		{
			if (ranks[i] != rank || graph->weights[number][i] == 0)
				continue;
			weight += graph->weights[number][i];
			appendStringInfo(detail, "%sProcess %d waits for %s; blocked by process %d.",
							 detail->len > 0 ? "\n" : "", process->pid, what,
							 graph->processes[i].pid);
			if (!named[i])
				append_process(detail, log, graph, ranks, i, named);
		}
	}
}

pg_noreturn static void
raise_deadlock(const Graph *graph, const Ranks ranks)
{
	StringInfoData detail;
	StringInfoData log;
	bool		named[PROCESSES_MAX] = {false};

	initStringInfo(&detail);
	initStringInfo(&log);
	append_process(&detail, &log, graph, ranks, 0, named);
	SegmentCount(EVENT_DEADLOCK);
	ereport(ERROR,
			(errcode(ERRCODE_T_R_DEADLOCK_DETECTED),
			 errmsg("deadlock detected"),
			 errdetail_internal("%s", detail.data),
			 errdetail_log("%s%s", detail.data, log.data),
			 errhint("See server log for query details.")));
}

int64
DeadlockTurn(DeadlockSearch *search, int64 now)
{
	MemoryContext context;
	MemoryContext old;
	Graph	   *first;
	Ranks		ranks;

	if (now < search->next)
		return search->next;
	context = AllocSetContextCreate(CurrentMemoryContext, "ddblock deadlock",
									ALLOCSET_DEFAULT_SIZES);
	old = MemoryContextSwitchTo(context);
	first = walk();
	if (find_stuck(first, 0, ranks))
	{
		Graph	   *second = walk();

		keep_confirmed(second, first);
		if (find_stuck(second, 0, ranks) && is_last(second, ranks))
		{
			search->goes_first = second->processes[0].in_line;
			if (!search->goes_first)
				raise_deadlock(second, ranks);
		}
	}
	MemoryContextSwitchTo(old);
	MemoryContextDelete(context);
	search->next = SegmentNow() + search->pause;
	search->pause = Min(search->pause * 2, PAUSE_MOST_US);
	return search->next;
}

void
DeadlockWaitForRelease(uint32 lease_index, uint32 lease_generation)
{
	SlotWait   *wait = &segment_slots[CompatMyProcNumber()].wait;

	wait->lease_index = lease_index;
	wait->lease_generation = lease_generation;
	wait->queue[0] = '\0';
	pg_write_barrier();
	shared_write(&wait->since, (uint64) SegmentNow());
}

void
DeadlockWaitForJob(const char *queue, char **resources)
{
	SlotWait   *wait = &segment_slots[CompatMyProcNumber()].wait;

	strlcpy(wait->queue, queue, sizeof(wait->queue));
	wait->resources = resources == NULL ? PG_UINT64_MAX : 0;
	for (; resources != NULL && *resources != NULL; resources++)
		wait->resources |= resource_bit(*resources);
	pg_write_barrier();
	shared_write(&wait->since, (uint64) SegmentNow());
}

void
DeadlockEndWait(void)
{
	shared_write(&segment_slots[CompatMyProcNumber()].wait.since, 0);
	pg_memory_barrier();		/* the wait ends before the next one writes its fields */
}
