/*-------------------------------------------------------------------------
 *
 * lock.pml
 *	  A model of doc/internals/protocol.md: one lock item, two clusters that contend
 *	  for it, two sessions in one of them, and a network that loses, delays
 *	  and duplicates.  README.md tells what is left out.
 *
 *	 lock.pml		bounds, state, promises, and the world: DynamoDB, the
 *					network, time, an operator
 *	 lockmgr.pml	a cluster: its lock manager and its sessions
 *	 tidy.pml		keeps the states few
 *
 * Every event is one atomic step.  Events come in any order and after any
 * delay, so each process may stall anywhere.
 *
 * Time is counted in ticks, by timers that count down to 0 ("passed"): equal
 * situations at different times are one state.
 *
 * A comment "Rule:" gives the rule of doc/internals/protocol.md that a guard stands for.
 * The names in #ifdef are seeded bugs, each a rule broken: test/check-model
 * switches them on one by one, and wants to see each found.
 *
 *-------------------------------------------------------------------------
 */

#include "reached.pml"

/* ---- bounds ---- */

#ifndef OPS_A0
#define OPS_A0		1			/* lock operations of cluster A's sessions */
#endif
#ifndef OPS_A1
#define OPS_A1		0
#endif
#ifndef OPS_B
#define OPS_B		1			/* ... and of cluster B's */
#endif
#ifndef RENEWALS
#define RENEWALS	0			/* by either cluster, all in all */
#endif
#ifndef FAULTS
#define FAULTS		0			/* calls lost, left on the way, throttled */
#endif
#ifndef STALE
#define STALE		0			/* moments of the past that polls may show later */
#endif
#ifndef SLIPS
#define SLIPS		0			/* ticks that a clock loses */
#endif
#ifndef FORCED
#define FORCED		0			/* an operator marks the item released */
#endif
#ifndef PURGES
#define PURGES		0			/* the released item is deleted */
#endif
#ifndef BEHIND
#define BEHIND		1			/* the cluster whose tokens are too low; 2: none */
#endif
#ifndef BLOCK
#define BLOCK		1			/* tokens reserved while others wait: 1 or 2 */
#endif

#ifndef KEEPS
#define KEEPS		0			/* acquires and hand-overs that keep the lock for a minimum */
#endif
#ifndef ENDINGS
#define ENDINGS		0			/* releases that end that time */
#endif

/* Leases, and the minimum, in ticks. */
#ifndef LONG
#define LONG		3
#endif
#define SHORT		2
#define MARGIN		1
#define AT_LEAST	3

/* A cluster's writes that still matter at one time; new_write() checks it. */
#define SLOTS		6

/* ---- DynamoDB and the network ---- */

/* The item.  Owner and lease are those of the write that stands in it. */
byte	item_version;			/* 0: there is no item */
bit		item_released;
byte	item_token;				/* 0: it has none */
byte	item_kept;				/* timer: until then, nobody is granted the lock */

/*
 * The item as it was at some moment at which it was held: polls are eventually
 * consistent.  One that shows it free is no other than one whose reply is slow.
 */
byte	past_version;			/* 0: no moment was kept */
byte	past_token;
byte	stale = STALE;

/*
 * Writes, by their nonce: cluster A's from 1, B's from SLOTS + 1.  A nonce is
 * used again once nothing refers to it and no copy of it can be applied: from
 * then on nothing can tell it from a fresh one.
 */
#define NOTHING		0			/* a free slot */
#define ACQUIRE		1
#define RENEW		2
#define HAND_OVER	3
#define RELEASE		4
#define SETTLED		5			/* stands or stood in the item, that is all */

typedef write
{
	unsigned op : 3;
	unsigned owner : 1;			/* a cluster */
	unsigned expected : 4;		/* acquire: 0, or the version known dead */
	unsigned lease : 2;
	unsigned token : 5;			/* the last that it reserves */
	unsigned first : 5;
	unsigned loose : 1;			/* copies of it may arrive at any time */
	unsigned keeps : 1;			/* acquire, hand-over: the lock is kept */
	unsigned kept : 2;			/* ... timer: for so long, from its first copy on */
	unsigned ends : 1;			/* release: it is kept no longer */
};
write	w[2 * SLOTS + 1];

/* ---- the clusters ---- */

/*
 * A lock's states: lock_state in lockmgr_private.h.  Two more are for what is
 * decided, and may have to wait for a free connection.
 */
#define IDLE			0
#define ACQUIRING		1
#define POLLING			2
#define READING			3
#define HELD			4
#define RENEWING		5
#define HANDING_OVER	6
#define RELEASING		7
#define LOST			8
#define PASSING_ON		9		/* ours, nobody believes: hand over or release */
#define TO_RELEASE		10		/* target is to be released */

/* The call in flight. */
#define NO_CALL			0
#define SENT			1
#define SERVED			2		/* its reply is on the way */

typedef cluster
{
	unsigned state : 4;
	unsigned holder : 3;		/* session + 1 that has not let go; 0: none */
	unsigned version : 4;		/* confirmed; 0: none */
	unsigned deadline : 2;		/* timer */
	unsigned target : 4;
	unsigned stray : 4;			/* nonce of a renewal that nobody settled */
	unsigned next_token : 5;	/* of the block; 0: it is used up */
	unsigned last_token : 5;	/* ... and its end */

	unsigned pending : 4;		/* nonce of the write under way; 0: none */
	unsigned pending_end : 2;	/* timer: the end of its lease */
	unsigned pending_for : 3;	/* session + 1 that wants it; 0: nobody */
	unsigned maybe : 1;			/* a copy of it may have been applied */

	unsigned call : 2;
	unsigned reply_ok : 1;		/* SERVED: done; else refused, or a poll: */
	unsigned reply_version : 4; /* ... the item as it was */
	unsigned reply_released : 1;
	unsigned reply_token : 5;
	unsigned reply_kept : 2;	/* timer */

	unsigned seen : 4;			/* somebody else's version; 0: none */
	unsigned dead_in : 2;		/* timer: until it is dead */
	unsigned top_token : 5;		/* highest token ever seen */
	unsigned retired : 15;		/* set of nonces */

	unsigned kept : 2;			/* timer: our item is kept, */
	unsigned ends_kept : 1;		/* ... and the release is to end that */
	unsigned seen_kept : 2;		/* ... somebody else's is */

	unsigned true_deadline : 2; /* what deadline ought to be, by the rules, */
	unsigned true_pending : 2;	/* and what it will be once pending is settled */
#ifdef TAKEOVER_WAIT_FROM_SENDING
	unsigned sent_ago : 2;
#endif
};
cluster	k[2];
byte	todo[4];				/* operations left: sessions 0, 1 of A, 2 of B */

/* ---- the rest of the world ---- */

byte	granted_token;			/* of the last grant */
byte	promised;				/* timer: who was granted the lock has it that long */
byte	clock_floor;			/* no clock that makes tokens is behind this */
byte	highest_token;			/* ever made */
short	overruled;				/* set of nonces: an operator took the lock */
byte	renewals = RENEWALS;
byte	faults = FAULTS;
byte	slips = SLIPS;
byte	forced = FORCED;
byte	purges = PURGES;
byte	keeps = KEEPS;
byte	endings = ENDINGS;

/* Scratch, within one step. */
hidden byte	is_done;
hidden byte	old;
hidden byte	slot;

#define in_set(set, n)	((set >> (n)) & 1)
#define less(timer, by)	(((timer) > (by)) * ((timer) - (by)))
#define max(a, b)		((a) + ((b) > (a)) * ((b) - (a)))
#define wanted(c)		(todo[2 * (c)] > 0 || todo[2 * (c) + 1] > 0)

/*
 * Rule: a session believes while its lease is held and before the deadline.
 * Whom an operator overruled believes wrongly "until its next renewal": the
 * protocol says so, and it does not count.
 */
#define has(c) \
	((k[c].state == HELD || k[c].state == RENEWING) && k[c].holder != 0)
#define believes(c) \
	(has(c) && k[c].deadline > 0 && !in_set(overruled, k[c].version))

/* ---- what must hold: the promises of doc/internals/safety.md ---- */

inline must(promise, condition_met)
{
	if
	:: (condition_met) -> skip
	:: else ->
		printf("broken: I%d\n", promise);
		assert(false)
	fi
}

/* When a belief begins, or is extended, there is no other. */
#define check_exclusive(c)	must(1, !(believes(c) && believes(1 - (c))))

/* Tokens rise in the order of grants. */
#define check_token(token)	must(2, (token) > granted_token)

/* Nobody is granted the lock before the time that another grant was promised. */
#define check_kept()		must(9, promised == 0)

/* What was released is not kept for who was never granted it. */
#define check_not_kept(n) \
	must(9, w[n].op != RELEASE || item_kept <= promised)

/* No belief past the deadline, also that of a shorter lease under way. */
#ifdef NO_I3
#define check_deadline(c)	skip
#else
#define check_deadline(c) \
	must(3, !has(c) || (k[c].deadline <= k[c].true_deadline && \
						(k[c].state != RENEWING || \
						 k[c].deadline <= k[c].true_pending)))
#endif

/* No item made by what is no acquire; none released that somebody believes in. */
#define believed(v) \
	((believes(0) && k[0].version == (v)) || (believes(1) && k[1].version == (v)))
#define check_item(n) \
	must(7, (w[n].op == ACQUIRE || item_version != 0) && \
		 (w[n].op != RELEASE || !believed(item_version)))

/*
 * What sessions are told is true.  "Released": the version is gone from the
 * item, or it is marked; not after a deletion, when a late copy of the acquire
 * may have made the item again.  "Taken": not before the deadline.
 */
#define check_released(c) \
	must(8, k[c].version == 0 || purges < PURGES || \
		 item_released || item_version == 0 || \
		 (item_version != w[k[c].pending].expected && \
		  item_version != k[c].version))
#define check_taken(c) \
	must(8, k[c].deadline == 0 || in_set(overruled, k[c].version))

/* ---- DynamoDB: one conditional write ---- */

/*
 * Rule: every condition on something we hold names the version that it
 * replaces, and demands that it is not released.
 */
#define standing(n)			(item_version != 0 && item_version == w[n].expected)
#define hold_condition(n)	(standing(n) && !item_released)

#ifdef HAND_OVER_ON_RELEASED
#define hand_over_condition(n)	standing(n)
#else
#define hand_over_condition(n)	hold_condition(n)
#endif

#ifdef RELEASE_WITHOUT_VERSION
#define release_condition(n) \
	(item_version != 0 && !item_released && w[item_version].owner == w[n].owner)
#else
#define release_condition(n)	hold_condition(n)
#endif

/*
 * Rule: free or known dead, and the item's token is below ours, which is the
 * first of those that the write reserves.
 */
#ifdef BLOCK_CONDITIONAL_ON_LAST
#define token_condition(n)	(item_token < w[n].token)
#else
#define token_condition(n)	(item_token < w[n].first)
#endif

/* Rule: every acquire, take-over and hand-over demands that no minimum runs. */
#ifdef KEPT_NOT_DEMANDED
#define kept_condition(n)	true
#else
#ifdef KEPT_IF_FREE
#define kept_condition(n)	(item_kept == 0 || standing(n))
#else
#define kept_condition(n)	(item_kept == 0)
#endif
#endif

#define acquire_condition(n) \
	((item_version == 0 || item_released || standing(n)) && \
	 token_condition(n) && kept_condition(n))

#define condition(n) \
	((w[n].op == ACQUIRE && acquire_condition(n)) || \
	 (w[n].op == RENEW && hold_condition(n)) || \
	 (w[n].op == HAND_OVER && hand_over_condition(n) && kept_condition(n)) || \
	 (w[n].op == RELEASE && release_condition(n)))

inline apply(n)
{
	check_item(n);
	printf("DynamoDB: write %d replaces version %d\n", n, item_version);
	item_version = n;
	if
	:: BLOCK > 1 && w[n].op == ACQUIRE && w[n].first < w[n].token ->
		reached("an acquire reserves a block of tokens")
	:: else -> skip
	fi;
	if
	:: w[n].op == ACQUIRE ->
		item_released = 0;
		item_token = w[n].token;
		item_kept = w[n].kept
	:: w[n].op == HAND_OVER -> item_token = w[n].token; item_kept = w[n].kept
	:: w[n].op == RENEW && w[n].token != 0 ->
		reached("a renewal reserves a block of tokens");
		item_token = w[n].token
	:: w[n].op == RELEASE ->
		item_released = 1;
		item_kept = (w[n].ends -> 0 : item_kept)
	:: else -> skip
	fi;
	check_not_kept(n)
}

#include "tidy.pml"
#include "lockmgr.pml"

/* ---- DynamoDB and the network: what happens ---- */

/* The call that is in flight is served; its reply is on the way then. */
inline serve(c)
{
	if
	:: k[c].state != READING && condition(k[c].pending) ->
		apply(k[c].pending);
		k[c].reply_ok = 1
	:: else ->
		k[c].reply_version = item_version;
		k[c].reply_released = item_released;
		k[c].reply_token = item_token;
		k[c].reply_kept = item_kept
	fi;
	k[c].call = SERVED
}

#define call_of(c) \
	:: d_step { k[c].call == SENT -> serve(c); tidy() } \
	\
	/* A poll shows the past. */ \
	:: d_step { k[c].call == SENT && k[c].state == READING && past_version != 0 -> \
				k[c].reply_version = past_version; \
				k[c].reply_released = 0; \
				k[c].reply_token = past_token; \
				k[c].call = SERVED; \
				tidy() } \
	\
	/* It is doubled: a copy is left on the way. */ \
	:: d_step { k[c].call == SENT && k[c].state != READING && faults > 0 && \
				!w[k[c].pending].loose -> \
				faults--; \
				w[k[c].pending].loose = 1; \
				tidy() }

/* A copy that was left on the way arrives, at any later time. */
#define old_copy(n) \
	:: d_step { w[n].loose && condition(n) -> apply(n); tidy() }

proctype dynamodb()
{
end:
	do
	call_of(0)
	call_of(1)
	old_copy(1) old_copy(2) old_copy(3) old_copy(4) old_copy(5) old_copy(6)
	old_copy(SLOTS + 1) old_copy(SLOTS + 2) old_copy(SLOTS + 3)
	old_copy(SLOTS + 4) old_copy(SLOTS + 5) old_copy(SLOTS + 6)

	/* From now on polls may show this moment. */
	:: d_step { stale > 0 && item_version != 0 && !item_released ->
			stale--;
			past_version = item_version;
			past_token = item_token }
	od
}

/* ---- time, and an operator ---- */

/* DynamoDB's clock. */
inline count_down_kept()
{
	item_kept = less(item_kept, 1);
	promised = less(promised, 1);
	slot = 1;
	do
	:: slot <= 2 * SLOTS -> w[slot].kept = less(w[slot].kept, 1); slot++
	:: else -> break
	od
}

inline count_down(c)
{
	k[c].deadline = less(k[c].deadline, 1);
	k[c].true_deadline = less(k[c].true_deadline, 1);
	k[c].pending_end = less(k[c].pending_end, 1);
	k[c].true_pending = less(k[c].true_pending, 1);
	k[c].dead_in = less(k[c].dead_in, 1);
	k[c].kept = less(k[c].kept, 1);
	k[c].seen_kept = less(k[c].seen_kept, 1);
	k[c].reply_kept = less(k[c].reply_kept, 1);
#ifdef TAKEOVER_WAIT_FROM_SENDING
	k[c].sent_ago = k[c].sent_ago + (k[c].call != NO_CALL && k[c].sent_ago < LONG);
#endif
	check_deadline(c)
}

#define runs(c) \
	(k[c].deadline > 0 || k[c].pending_end > 0 || k[c].dead_in > 0 || \
	 k[c].kept > 0 || k[c].seen_kept > 0 || item_kept > 0)

/*
 * A tick passes on both clusters' clocks, or on one only.  Rule: within one
 * lease a clock may lose as much as the margin, and no more.
 */
proctype time()
{
end:
	do
	:: d_step { (runs(0) || runs(1)) ->
			printf("tick\n");
			count_down_kept();
			count_down(0);
			count_down(1) }
	:: d_step { (runs(0) || runs(1)) && slips > 0 ->
			printf("tick, but not for A\n");
			count_down_kept();
			count_down(1);
			slips-- }
	:: d_step { (runs(0) || runs(1)) && slips > 0 ->
			printf("tick, but not for B\n");
			count_down_kept();
			count_down(0);
			slips-- }
	od
}

/* What the cluster believes on this version does not count any more. */
inline overrule(c)
{
	if
	:: k[c].version != 0 -> overruled = overruled | (1 << k[c].version)
	:: else -> skip
	fi
}

/* Is something under way that may still be granted? */
#define may_grant(c) \
	((k[c].state == ACQUIRING || k[c].state == HANDING_OVER) && \
	 k[c].pending_end > MARGIN)

/* Rule: not while it is kept. */
#ifdef PURGED_WHILE_KEPT
#define may_purge()		true
#else
#define may_purge()		(item_kept == 0)
#endif

proctype operator()
{
end:
	do
	/* Marks the item released, whoever holds it; its version stays. */
	:: d_step { forced > 0 && item_version != 0 && !item_released ->
			printf("operator releases version %d\n", item_version);
			forced--;
			overruled = overruled | (1 << item_version);
			overrule(0);
			overrule(1);
			item_released = 1 }

	/*
	 * A released item is deleted for its age: what was sent before can no longer
	 * be granted.  Rule: tokens rise if the clock of whoever makes the item
	 * again is past the last one.
	 */
	:: d_step { purges > 0 && item_version != 0 && item_released && may_purge() &&
			!may_grant(0) && !may_grant(1) ->
			printf("version %d is deleted\n", item_version);
			purges--;
#ifdef TOKEN_RESET_AFTER_DELETE
			k[0].top_token = 0;
			k[1].top_token = 0;
			highest_token = 0;
#else
			clock_floor = max(clock_floor, item_token);
#endif
			item_version = 0;
			item_released = 0;
			item_token = 0;
			item_kept = 0;
			tidy() }
	od
}

/*
 * I6: nothing can happen any more.  Then nobody waits, nobody holds, and
 * nothing is under way.
 */
proctype drained()
{
	timeout ->
		must(6, k[0].state == IDLE && k[1].state == IDLE &&
			 !wanted(0) && !wanted(1))
}

init
{
	atomic
	{
		todo[0] = OPS_A0;
		todo[1] = OPS_A1;
		todo[2] = OPS_B;
		run lock_manager(0);
		run lock_manager(1);
		run dynamodb();
		run time();
		run operator();
		run drained()
	}
}
