/*-------------------------------------------------------------------------
 *
 * shared.pml
 *	  A model of shared locks and semaphores: one lock item, two clusters that hold permits in it or want it for
 *	  themselves, a client in Java, an operator, and a network that loses,
 *	  delays and duplicates.  README.md tells the rules and what is left out.
 *
 *	 shared.pml			bounds, state, promises, and the world: DynamoDB, time,
 *						the client in Java, the operator
 *	 shared_lockmgr.pml	a cluster: its lock manager and its sessions
 *	 shared_tidy.pml	keeps the states few
 *
 * As in lock.pml, every event is one atomic step, events come in any order and
 * after any delay, and time is counted by timers that count down to 0.
 *
 * A comment "Rule:" gives the rule that a guard stands for.  The names in #ifdef
 * are seeded bugs, each a rule broken.
 *
 *-------------------------------------------------------------------------
 */

#include "reached.pml"

/* ---- what a session may ask for ---- */

#define EXCLUSIVE	1
#define ONE_OF_ONE	2			/* a permit of a semaphore, limit 1 */
#define ONE_OF_TWO	3
#define TWO_OF_TWO	4			/* two permits at once */
#define PLAIN		5			/* a shared lock: no limit */

#define NO_LIMIT	7
#define limit(wish) \
	((wish) == ONE_OF_ONE -> 1 : ((wish) == PLAIN -> NO_LIMIT : 2))
#define permits(wish)	(1 + ((wish) == TWO_OF_TWO))
#define plain(wish)		((wish) == PLAIN)

/* ---- bounds ---- */

#ifndef OPS_A
#define OPS_A		1			/* lock operations of cluster A's sessions */
#endif
#ifndef OPS_B
#define OPS_B		1			/* ... and of cluster B's */
#endif
#ifndef WISHES_A
#define WISHES_A	(1 << ONE_OF_TWO)	/* sets: each operation is one of these */
#endif
#ifndef WISHES_B
#define WISHES_B	WISHES_A
#endif
#ifndef RENEWALS
#define RENEWALS	0			/* by either cluster, all in all */
#endif
#ifndef FAULTS
#define FAULTS		0			/* calls lost, or left on the way */
#endif
#ifndef SLIPS
#define SLIPS		0			/* ticks that a cluster's clock loses */
#endif
#ifndef FORCED
#define FORCED		0			/* an operator releases the item by force */
#endif
#ifndef JAVA
#define JAVA		0			/* locks taken by the client in Java */
#endif
#ifndef GATES
#define GATES		0			/* gates set or renewed */
#endif
#ifndef CRASHES
#define CRASHES		0			/* of the cluster CRASHER */
#endif
#ifndef CRASHER
#define CRASHER		0
#endif
#ifndef BEHIND
#define BEHIND		2			/* the cluster whose tokens are too low; 2: none */
#endif

/* Leases, in ticks. */
#ifndef LEASE_A
#define LEASE_A		2
#endif
#ifndef LEASE_B
#define LEASE_B		2
#endif
#define JAVA_LEASE	2
#define MARGIN		1

/* A cluster's writes that still matter at one time; new_write() checks it. */
#define SLOTS		7
#define JAVA_WRITE	(2 * SLOTS + 1)	/* the version of the client in Java */

/* ---- DynamoDB and the network ---- */

/*
 * The item's mode says what its ownerName and isReleased say.  The rest of the
 * item may outlive the mode that it belongs to: an operator who only adds
 * isReleased, and a Java client that updates, leave entries and gate behind.
 */
#define ABSENT		0
#define RELEASED	1
#define SHARED		2			/* ownerName is shared/<epoch> */
#define OWNED		3			/* ... a cluster's */
#define JAVAS		4			/* ... the Java client's */

/* Incarnations: cluster A's, cluster B's, and that of the one that crashed. */
#define CLUSTERS	2
#define ENTRIES		3

typedef entry
{
	byte v;						/* 0: there is no entry */
	byte n;
};
typedef item
{
	byte mode;
	byte version;				/* recordVersionNumber; of no use if released */
	byte epoch;
	byte token;					/* 0: it has none */
	byte lease;
	bit plain;
	byte total;
	entry h[ENTRIES];
	byte gate;					/* its version; 0: there is none */
};
item	it;

/*
 * Writes, by their nonce: cluster A's from 1, B's from SLOTS + 1.  As in
 * lock.pml, a nonce is used again once nothing can tell it from a fresh one.
 */
#define NOTHING		0			/* a free slot */
#define ACQUIRE		1			/* exclusive lock ... */
#define RENEW		2
#define RELEASE		3
#define OPEN		4			/* shared mode ... */
#define JOIN		5			/* also: replace an own entry */
#define RENEW_ENTRY	6
#define MORE		7			/* change permits ... */
#define LESS		8
#define LEAVE		9			/* leave or last, whichever fits */
#define GATE		10
#define RENEW_GATE	11
#define JOURNAL		12			/* release what a dead incarnation held */
#define SETTLED		13			/* stands or stood in the item, that is all */

typedef write
{
	unsigned op : 4;
	unsigned me : 2;			/* an incarnation */
	unsigned wish : 3;
	unsigned expected : 4;		/* the version that it replaces; 0: none */
	unsigned epoch : 4;
	unsigned token : 5;
	unsigned n : 2;				/* permits of the entry, or of the change */
	unsigned freed : 3;			/* permits of the entries that it takes off */
	unsigned raise : 2;			/* leaseDuration that it raises; 0: does not */
	unsigned gate : 4;			/* the gate that it may ignore, for it is dead */
	unsigned loose : 1;			/* copies of it may arrive at any time */
	unsigned applied : 1;
	unsigned old : 1;			/* the item's token was erased since */
	unsigned fits : 1;			/* the item meets its condition: fits() */
#ifdef LAST_UNCONDITIONAL
	unsigned last : 1;
#endif
	byte dead[ENTRIES];			/* versions of the entries that it takes off */
};
write	w[2 * SLOTS + 2];

/* ---- the clusters ---- */

#define IDLE			0
#define ACQUIRING		1		/* ACQUIRE, OPEN, JOIN */
#define POLLING			2
#define HELD			3
#define WRITING			4		/* held, and a renewal or change under way */
#define LEAVING			5		/* LEAVE, RELEASE */
#define LOST			6
#define GATING			7
#define JOURNALING		8

/* The call in flight. */
#define NO_CALL			0
#define SENT			1
#define DONE			2		/* applied; its reply is on the way */

/* What can be watched until it is dead: entries, by incarnation, and: */
#define WHOLE			ENTRIES			/* the lock of a single owner */
#define THE_GATE		(ENTRIES + 1)
#define SUBJECTS		(ENTRIES + 2)

typedef cluster
{
	unsigned me : 2;
	unsigned state : 4;
	unsigned wish : 3;			/* what the head of the queue wants; 0: nobody */
	unsigned hold0 : 3;			/* wishes of those who have a permit, or the lock; */
	unsigned hold1 : 3;			/* ... 0: nobody */
	unsigned exclusive : 1;
	unsigned n : 2;				/* permits of our entry, as confirmed */
	unsigned version : 4;		/* confirmed, of our entry or our lock; 0: none */
	unsigned epoch : 4;
	unsigned deadline : 2;		/* timer */

	unsigned pending : 4;		/* nonce of the write under way; 0: none */
	unsigned pending_end : 2;	/* timer: the end of its lease */
	unsigned maybe : 1;			/* a copy of it may have been applied */
	unsigned call : 2;

	unsigned gate : 4;			/* the version of our gate; 0: none */
	unsigned gate_end : 2;		/* timer */

	unsigned strays : 15;		/* set of nonces */
	unsigned retired : 15;		/* set of nonces */
	unsigned top_token : 5;		/* highest token ever seen */
	byte seen[SUBJECTS];		/* versions of others */
	byte dead_in[SUBJECTS];		/* timers: until they are dead */

	/* What a look would show, by the item and the above: see tidy_look(). */
	unsigned news : 1;			/* a version that is not in seen */
	unsigned dead : 5;			/* set of subjects */
#ifdef EARLIER_LOOK
	unsigned stale : 3;			/* set of entries */
#endif
};
cluster	k[CLUSTERS];
byte	todo[CLUSTERS];			/* operations left */

/* ---- the rest of the world ---- */

byte	java_deadline;			/* timer; 0: it does not believe */
byte	java_seen;
byte	java_dead_in;			/* timer */
byte	java = JAVA;
byte	exclusive_token;		/* highest of a granted exclusive lock */
byte	granted_token;			/* highest of any granted one */
byte	clock_floor;			/* no clock that makes tokens is behind this */
byte	highest_token;			/* ever made */
short	overruled;				/* set of nonces: an operator took the lock */
byte	renewals = RENEWALS;
byte	faults = FAULTS;
byte	slips = SLIPS;
byte	forced = FORCED;
byte	gates = GATES;
byte	crashes = CRASHES;

/* Scratch, within one step. */
hidden byte	slot;
hidden byte	i;
hidden byte	sum;
hidden byte	o;
hidden byte	believers;
hidden byte	ok;

#define in_set(set, x)	(((set) >> (x)) & 1)
#define less(timer, by)	(((timer) > (by)) * ((timer) - (by)))
#define max(a, b)		((a) + ((b) > (a)) * ((b) - (a)))

#define cluster_of(x)	((x) > SLOTS)
#define lease_of(c)		((c) == 0 -> LEASE_A : LEASE_B)
#define incarnation_lease(e) \
	(((e) == 2 -> CRASHER : (e)) == 0 -> LEASE_A : LEASE_B)

/*
 * Rule: a session believes while its cluster's lease is held and before the
 * deadline.  Whom an operator overruled does not count, as in lock.pml.
 */
#define holds(c)		((k[c].hold0 != 0) + (k[c].hold1 != 0))
#define has(c) \
	((k[c].state == HELD || k[c].state == WRITING) && holds(c) > 0)
#define believes(c) \
	(has(c) && k[c].deadline > 0 && !in_set(overruled, k[c].version))
#define java_believes	(java_deadline > 0)

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

/* Who believes now: set of clusters, and the Java client. */
inline count_believers()
{
	believers = believes(0) + 2 * believes(1) + 4 * java_believes
}
#define both_clusters	((believers & 3) == 3)

/*
 * I1, when a belief begins or is extended: an exclusive one is alone, and those
 * who believe in permits are within the limit of one of them.
 */
inline check_beliefs(c)
{
	count_believers();
	must(1, !(both_clusters && (k[0].exclusive || k[1].exclusive)));
	must(1, !(in_set(believers, c) && java_believes));
	sum = max(k[0].hold0, k[0].hold1);
	sum = max(sum, max(k[1].hold0, k[1].hold1));
	must(1, !both_clusters || plain(sum) || holds(0) + holds(1) <= limit(sum));
	if
	:: both_clusters && plain(sum) -> reached("both clusters share the lock")
	:: both_clusters && !plain(sum) -> reached("both clusters have a permit")
	:: else -> skip
	fi
}

/*
 * I1, when a grant is applied: with all who believe at this moment, it is within
 * its caller's limit.  I6: it does not get past the gate of a living waiter.
 */
inline check_admission(x, before)
{
	count_believers();
	o = 1 - cluster_of(x);
	must(1, !java_believes);
	must(1, !in_set(believers, o) ||
		 (!k[o].exclusive && w[x].wish != EXCLUSIVE));
	if
	:: w[x].wish != EXCLUSIVE && !plain(w[x].wish) ->
		must(1, it.total <= limit(w[x].wish));
		sum = it.h[w[x].me].n + in_set(believers, o) * holds(o);
		must(1, sum <= limit(w[x].wish))
	:: else -> skip
	fi;
	ok = (k[0].gate == before && k[0].gate_end > 0) ||
		(k[1].gate == before && k[1].gate_end > 0);
	must(6, w[x].wish == EXCLUSIVE || before == 0 || !ok)
}

/* I5: no permit belongs to nobody. */
#ifdef NO_I5
#define check_total()	skip
#else
#define check_total() \
	must(5, it.mode != SHARED || \
		 it.total == it.h[0].n + it.h[1].n + it.h[2].n)
#endif

/*
 * I1: no copy of a write applies twice.  Two exceptions: once the item's token
 * is erased, an old write may make the item again (doc/internals/protocol.md, "Tokens"),
 * and a journal's release may have to take off what arrived late.
 */
#define check_once(x) \
	must(1, !w[x].applied || w[x].old || w[x].op == JOURNAL)

/*
 * I2: an exclusive lock's token is above all, a shared one's above all exclusive
 * ones.
 */
inline check_token(c, its_token)
{
	if
	:: in_set(overruled, k[c].version) || w[k[c].version].old -> skip
	:: else ->
		sum = (k[c].exclusive -> granted_token : exclusive_token);
		must(2, its_token > sum);
		granted_token = max(granted_token, its_token);
		exclusive_token = max(exclusive_token, k[c].exclusive * its_token)
	fi
}

/*
 * Rule: ours stands if the item is not released, has our epoch, and our entry
 * has the nonce, whatever the item's version is.
 */
#ifdef ITEM_VERSION_AS_NONCE
#define entry_stands(c, x) \
	(it.mode == SHARED && (x == k[c].pending -> it.version == x : \
						   it.h[k[c].me].v == x))
#else
#define entry_stands(c, x) \
	(it.mode == SHARED && it.h[k[c].me].v == x && \
	 (k[c].epoch == 0 || it.epoch == k[c].epoch))
#endif
#define ours_stands(c, x) \
	(k[c].exclusive || w[x].op == ACQUIRE -> \
	 it.mode == OWNED && it.version == x : entry_stands(c, x))
/* I8: what sessions are told is true. */
#define check_taken(c) \
	must(8, k[c].deadline == 0 || in_set(overruled, k[c].version))
inline check_released(c)
{
	ok = k[c].version == 0 || !ours_stands(c, k[c].version);
	must(8, ok)
}

/* ---- DynamoDB: one conditional write ---- */

#define entry_of(x)		it.h[w[x].me]
#define mode_is_owned	(it.mode == OWNED || it.mode == JAVAS)
#define is_free			(it.mode == ABSENT || it.mode == RELEASED)

c_code {
static int
plain_wish(int x)
{
	return now.w[x].wish == PLAIN;
}

static int
free_for(int x)
{
	return now.it.mode == ABSENT || now.it.mode == RELEASED ||
		(now.w[x].expected != 0 && now.it.version == now.w[x].expected);
}

static int
token_above(int x)
{
	return now.it.token < now.w[x].token;
}

/* Rule: every condition on what we have in shared mode names the epoch. */
static int
same_epoch(int x)
{
#ifdef TOTAL_OUTLIVES_RELEASE	/* there is none */
	return now.it.mode == SHARED;
#else
	return now.it.mode == SHARED && now.it.epoch == now.w[x].epoch;
#endif
}

static int
version_stands(int x)
{
	return now.w[x].expected != 0 &&
		now.it.h[now.w[x].me].v == now.w[x].expected;
}

static int
renewal_fits(int x)
{
#ifdef RENEWAL_WITHOUT_EPOCH
	return version_stands(x);
#else
	return same_epoch(x) && version_stands(x);
#endif
}

/* Rule: whoever adds permits respects the gate of a living waiter. */
static int
gate_open(int x)
{
#ifdef GATE_IGNORED
	return 1;
#endif
	return now.it.gate == 0 || now.it.gate == now.w[x].gate;
}

/* Rule: a grant is within its caller's limit. */
static int
room_for(int x)
{
	int limit = now.w[x].wish == ONE_OF_ONE ? 1 : 2;

#ifdef TOTAL_UNCONDITIONAL
	return 1;
#endif
	return plain_wish(x) ||
		now.it.total + now.w[x].n <= limit + now.w[x].freed;
}

/* Rule: dead entries are taken off by their versions. */
static int
dead_stand(int x)
{
#ifndef DEAD_WITHOUT_VERSION
	int e;

	for (e = 0; e < ENTRIES; e++)
		if (now.w[x].dead[e] != 0 && now.it.h[e].v != now.w[x].dead[e])
			return 0;
#endif
	return 1;
}

static int
more_fits(int x)
{
	return same_epoch(x) && room_for(x) && gate_open(x) && dead_stand(x);
}

/* Rule: a join or replacement needs a token above the item's. */
static int
join_fits(int x)
{
#ifndef JOIN_WITHOUT_TOKEN
	if (!token_above(x))
		return 0;
#endif
	return more_fits(x) && now.it.plain == plain_wish(x) &&
		now.it.h[now.w[x].me].v == now.w[x].expected &&
		(now.w[x].raise == 0 || now.it.lease == now.w[x].raise);
}

static int
journal_fits(int x)
{
	return (now.it.mode == SHARED && now.it.h[now.w[x].me].v != 0) ||
		(now.it.mode == OWNED && now.w[now.it.version].me == now.w[x].me);
}

/* Does the item meet the write's condition? */
static int
fits(int x)
{
	switch (now.w[x].op)
	{
		case ACQUIRE:
			return free_for(x) && token_above(x);
		case RENEW:
		case RELEASE:
			return now.it.mode == OWNED && now.it.version == now.w[x].expected;
		case OPEN:
			return free_for(x) && token_above(x) && gate_open(x);
		case JOIN:
			return join_fits(x);
		case RENEW_ENTRY:
		case LESS:
			return renewal_fits(x);
		case MORE:
			return version_stands(x) && more_fits(x);
		case LEAVE:
			return same_epoch(x) && version_stands(x);
		case GATE:
			return same_epoch(x) && gate_open(x);
		case RENEW_GATE:
			return same_epoch(x) && now.it.gate == now.w[x].expected;
		case JOURNAL:
			return journal_fits(x);
	}
	return 0;
}
}

inline clear_entries()
{
	for (i : 0 .. ENTRIES - 1) {
		it.h[i].v = 0;
		it.h[i].n = 0
	}
	it.total = 0;
	it.plain = 0
}

/* Rule: a release removes the entries, and leaves the gate to its waiter. */
inline release_item()
{
	it.mode = RELEASED;
	it.version = 0;
	it.epoch = 0;
	it.lease = 0;
	clear_entries()
}

inline own(x, the_mode)
{
	it.mode = the_mode;
	it.epoch = 0;
	it.gate = 0;
	it.token = w[x].token;
	it.lease = lease_of(cluster_of(x));
#ifdef TOTAL_OUTLIVES_RELEASE	/* the entries do, and total is set anew */
	it.total = 0
#else
	clear_entries()
#endif
}

inline take_off_dead(x)
{
	for (i : 0 .. ENTRIES - 1) {
		if
		:: w[x].dead[i] != 0 ->
			it.h[i].v = 0;
			it.h[i].n = 0
		:: else -> skip
		fi
	}
}

/* Rule: the last one out releases the item. */
inline leave_item(x)
{
	sum = (it.h[0].v != 0) + (it.h[1].v != 0) + (it.h[2].v != 0);
#ifdef LAST_UNCONDITIONAL
	sum = (w[x].last -> 1 : sum);
#endif
	if
	:: sum == 1 -> reached("the last one leaves"); release_item()
	:: else ->
		reached("one of two leaves");
		it.total = it.total - entry_of(x).n;
		entry_of(x).v = 0;
		entry_of(x).n = 0
	fi
}

inline note_admission(x)
{
	if
	:: w[x].freed > 0 && w[x].op == MORE -> reached("a change takes off the dead")
	:: w[x].freed > 0 && w[x].op == JOIN && w[x].expected == 0 ->
		reached("a join takes off the dead")
	:: w[x].op == JOIN && w[x].expected != 0 -> reached("an entry is replaced")
	:: else -> skip
	fi;
	if
	:: slot != 0 && w[x].op != GATE && w[x].gate == slot ->
		reached("a dead gate is taken off")
	:: else -> skip
	fi
}

inline apply(x)
{
	check_once(x);
	printf("DynamoDB: write %d replaces version %d\n", x, it.version);
	w[x].applied = 1;
	slot = it.gate;
	if
	:: w[x].op == ACQUIRE -> own(x, OWNED); it.version = x
	:: w[x].op == RELEASE -> release_item()
	:: w[x].op == OPEN ->
		own(x, SHARED);
		it.version = x;
		it.epoch = x;
		it.plain = plain(w[x].wish);
		it.total = it.total + w[x].n;
		entry_of(x).v = x;
		entry_of(x).n = w[x].n
	:: w[x].op == JOIN ->
		it.version = x;
		it.token = w[x].token;
		it.total = it.total + w[x].n - w[x].freed;
		take_off_dead(x);
		it.gate = 0;
		entry_of(x).v = x;
		entry_of(x).n = w[x].n;
		if
		:: w[x].raise != 0 -> reached("a join raises the lease")
		:: else -> skip
		fi;
		it.lease = (w[x].raise != 0 -> lease_of(cluster_of(x)) : it.lease)
	:: w[x].op == RENEW || w[x].op == RENEW_ENTRY || w[x].op == MORE ||
		w[x].op == LESS ->
		it.version = x;
		if
		:: w[x].op != RENEW -> entry_of(x).v = x
		:: else -> skip
		fi;
		if
		:: w[x].op == MORE ->
			take_off_dead(x);
			it.gate = 0;
			it.total = it.total + w[x].n - w[x].freed;
			entry_of(x).n = entry_of(x).n + w[x].n
		:: w[x].op == LESS ->
			it.total = it.total - w[x].n;
			entry_of(x).n = entry_of(x).n - w[x].n
		:: else -> skip
		fi
	:: w[x].op == LEAVE -> it.version = x; leave_item(x)
	:: w[x].op == GATE || w[x].op == RENEW_GATE ->
		it.version = x;
		it.gate = x
	:: w[x].op == JOURNAL && it.mode == OWNED ->
		reached("a journal releases a lock");
		release_item()
	:: w[x].op == JOURNAL && it.mode == SHARED ->
		reached("a journal takes off an entry");
		it.version = x;
		leave_item(x)
	fi;
	if
	:: w[x].op == ACQUIRE || w[x].op == OPEN || w[x].op == JOIN ||
		w[x].op == MORE -> check_admission(x, slot)
	:: else -> skip
	fi;
	note_admission(x);
	check_total()
}

#include "shared_tidy.pml"
#include "shared_lockmgr.pml"

/* ---- the network: copies that were left on the way ---- */

#define old_copy(x) \
	:: w[x].loose && w[x].fits -> arriving = x

proctype network()
{
	byte arriving;

end:
	do
	:: atomic {
			if
			old_copy(1) old_copy(2) old_copy(3) old_copy(4)
			old_copy(5) old_copy(6) old_copy(7)
			old_copy(SLOTS + 1) old_copy(SLOTS + 2) old_copy(SLOTS + 3)
			old_copy(SLOTS + 4) old_copy(SLOTS + 5) old_copy(SLOTS + 6)
			old_copy(SLOTS + 7)
			fi;
			d_step {
				reached("a copy arrives late");
				apply(arriving);
				arriving = 0;
				tidy() } }
	od
}

/* ---- time ---- */

/* STAY: A's lease is renewed for ever while a session of A waits. */
#ifdef STAY
#define stays(c)	(c == 0 && has(c) && k[c].wish != 0)
#else
#define stays(c)	(false)
#endif

inline count_down(c)
{
	k[c].deadline = less(k[c].deadline, !stays(c));
	k[c].pending_end = less(k[c].pending_end, 1);
	k[c].gate_end = less(k[c].gate_end, 1);
	for (i : 0 .. SUBJECTS - 1) {
		k[c].dead_in[i] = less(k[c].dead_in[i], 1)
	}
}

inline count_down_java()
{
	java_deadline = less(java_deadline, 1);
	java_dead_in = less(java_dead_in, 1)
}

#define runs(c) \
	((k[c].deadline > 0 && !stays(c)) || k[c].pending_end > 0 || k[c].gate_end > 0 || \
	 k[c].dead_in[0] > 0 || k[c].dead_in[1] > 0 || k[c].dead_in[2] > 0 || \
	 k[c].dead_in[WHOLE] > 0 || k[c].dead_in[THE_GATE] > 0)
#define a_timer_runs \
	(runs(0) || runs(1) || java_deadline > 0 || java_dead_in > 0)

/* A tick passes on all clocks, or not on that of one cluster. */
proctype time()
{
end:
	do
	:: d_step { a_timer_runs ->
			printf("tick\n");
			count_down(0);
			count_down(1);
			count_down_java();
			tidy() }
	:: d_step { a_timer_runs && slips > 0 ->
			printf("tick, but not for A\n");
			slips--;
			count_down(1);
			count_down_java();
			tidy() }
	:: d_step { a_timer_runs && slips > 0 ->
			printf("tick, but not for B\n");
			slips--;
			count_down(0);
			count_down_java();
			tidy() }
	od
}

/* ---- the client in Java ---- */

/* PutItem and DeleteItem erase the token, and all the rest. */
inline erase()
{
	clock_floor = max(clock_floor, it.token);
	for (i : 1 .. 2 * SLOTS) {
		w[i].old = w[i].op != NOTHING
	}
	it.token = 0;
	it.gate = 0;
	it.epoch = 0;
	clear_entries()
}

#define java_may_acquire \
	(java > 0 && java_deadline == 0 && it.version != JAVA_WRITE && \
	 (is_free || (java_seen == it.version && java_dead_in == 0)))

inline java_acquire()
{
	java--;
	it.mode = JAVAS;
	it.version = JAVA_WRITE;
	it.epoch = 0;
	it.lease = JAVA_LEASE;
	java_deadline = JAVA_LEASE;
	java_seen = 0;
	if
	:: it.h[0].v != 0 || it.h[1].v != 0 ->
		reached("a Java client updates, and leaves the entries")
	:: else -> skip
	fi;
	count_believers();
	must(1, (believers & 3) == 0)
}

proctype java_client()
{
end:
	do
	/* It knows one version and the item's lease, counted from its own look. */
	:: d_step { java > 0 && !is_free && it.version != JAVA_WRITE &&
			java_seen != it.version ->
			java_seen = it.version;
			java_dead_in = it.lease;
			tidy() }
	:: d_step { java_may_acquire ->
			printf("Java: PutItem\n");
			if
			:: it.mode == SHARED -> reached("a Java client takes over from the dead")
			:: else -> skip
			fi;
			erase();
			java_acquire();
			tidy() }
	:: d_step { java_may_acquire && it.mode != ABSENT ->
			printf("Java: UpdateItem\n");
			java_acquire();
			tidy() }
	:: d_step { it.mode == JAVAS && it.version == JAVA_WRITE ->
			printf("Java: DeleteItem\n");
			java_deadline = 0;
			erase();
			it.mode = ABSENT;
			it.version = 0;
			it.lease = 0;
			tidy() }
	:: d_step { it.mode == JAVAS && it.version == JAVA_WRITE ->
			printf("Java: releases\n");
			java_deadline = 0;
			it.mode = RELEASED;
			it.version = 0;
			it.lease = 0;
			tidy() }
	od
}

/* ---- an operator ---- */

/* What is believed on what stands, or on our version, does not count any more. */
#define with(x)		((x) != 0) << (x)

inline overrule()
{
	printf("operator releases version %d\n", it.version);
	forced--;
	overruled = overruled | with(it.h[0].v) | with(it.h[1].v) |
		with(it.h[2].v) | with(k[0].version) | with(k[1].version);
	overruled = overruled |
		((it.mode == OWNED) << (it.version * (it.mode == OWNED)));
	overruled = overruled & ~1;
	java_deadline = 0
}

proctype operator()
{
end:
	do
	/* With ddb_lock_release_force() ... */
	:: d_step { forced > 0 && !is_free ->
			overrule();
			release_item();
			tidy() }
	/* ... or by adding isReleased: the entries stay. */
	:: d_step { forced > 0 && !is_free ->
			overrule();
			it.mode = RELEASED;
			it.version = 0;
			tidy() }
	od
}

/* I6: nothing can happen any more.  Then nobody waits, nothing is under way. */
#define at_rest(c) \
	(k[c].state == IDLE && k[c].wish == 0 && todo[c] == 0)

proctype drained()
{
	timeout ->
		must(6, at_rest(0) && at_rest(1))
}

init
{
	atomic
	{
		todo[0] = OPS_A;
		todo[1] = OPS_B;
		k[0].me = 0;
		k[1].me = 1;
		run lock_manager(0);
		run lock_manager(1);
		run network();
		run time();
		run java_client();
		run operator();
		run drained()
	}
}
