/*-------------------------------------------------------------------------
 *
 * bar.pml
 *	  A model of an acquire that arrives late: its session has given up, and a copy
 *	  of it is applied at any later time.  Who has sent such a copy bars it: raises
 *	  the item's token to its own, whoever holds the item, then releases what had
 *	  arrived.  README.md tells what is left out.
 *
 * The names in #ifdef are seeded bugs.
 *
 *-------------------------------------------------------------------------
 */

#include "reached.pml"

/* ---- bounds ---- */

#ifndef TRIES
#define TRIES	2			/* acquires and hand-overs, by each cluster */
#endif
#ifndef CLUSTERS
#define CLUSTERS 2
#endif
#ifndef FAULTS
#define FAULTS	2			/* copies left on the way */
#endif
#ifndef PURGES
#define PURGES	0			/* the released item is deleted for its age */
#endif
#ifndef DELETES
#define DELETES	0			/* releases that delete the item */
#endif

#define SLOTS	(CLUSTERS * TRIES)

/* ---- DynamoDB ---- */

byte	item;				/* its version, the nonce of the write that stands in it; 0: none */
bit		released;
byte	token;
byte	granted;			/* token of the last grant */

typedef write
{
	byte first;				/* the condition is on this token, */
	byte last;				/* ... and this one is written */
	byte expected;			/* the version known dead; 0: none */
	bit loose;				/* a copy may be applied at any time */
	bit bar;				/* it is to be barred */
	bit bar_loose;			/* a copy of the bar may be applied at any time, */
	bit new_loose;			/* ... of the bar that makes an item */
};
write	w[SLOTS + 1];

/* ---- the clusters ---- */

#define IDLE	0
#define WAITING	1			/* for the reply to an acquire */
#define HELD	2
#define LOST	3			/* the lease is over, the item may still be ours */

typedef cluster
{
	byte state;
	byte pending;
	byte tries;				/* made */
	byte top;				/* highest token seen or reserved */
};
cluster	k[CLUSTERS];

byte	faults = FAULTS;
byte	purges = PURGES;
byte	deletes = DELETES;
byte	n, t;

#define me	k[c]

inline must(promise, condition_met)
{
	if
	:: (condition_met) -> skip
	:: else ->
		printf("broken: I%d\n", promise);
		assert(false)
	fi
}

#define owner(v)	(((v) - 1) / TRIES)
#define believed(v)	((v) != 0 && k[owner(v)].state == HELD && k[owner(v)].pending == (v))
#define awaited(v)	((v) != 0 && k[owner(v)].state == WAITING && k[owner(v)].pending == (v))
#define raise(c, by)	k[c].top = ((by) > k[c].top -> (by) : k[c].top)

#define acquirable(v) \
	((item == 0 || released || item == w[v].expected) && token < w[v].first)

/* Rule: a hand-over demands a token below its first, too, else it lowers a bar. */
#ifdef HAND_OVER_OF_ANY_TOKEN
#define above(v)	true
#else
#define above(v)	(token < w[v].first)
#endif

/* I1: nothing that somebody believes in is replaced. */
inline apply(v)
{
	must(1, item == 0 || released || !believed(item));
	printf("DynamoDB: write %d replaces version %d\n", v, item);
	item = v;
	released = 0;
	token = w[v].last
}

/* I2: tokens rise in the order of grants. */
inline grant(c, v)
{
	printf("%d: is granted %d\n", c, w[v].last);
	must(2, w[v].first > granted);
	granted = w[v].last;
	me.pending = v;
	me.state = HELD
}

/* A new write of one or two tokens.  Rule: to reserve them raises the highest at once. */
inline reserve(c, v, ahead, many)
{
	v = c * TRIES + 1 + me.tries;
	me.tries++;
	w[v].first = me.top + 1 + ahead;
	w[v].last = me.top + ahead + many;
	me.top = w[v].last
}

/* The version is released if it stands in the item. */
inline let_go(v)
{
	if
	:: item == v && !released -> must(7, !believed(v)); released = 1
	:: else -> skip
	fi
}

/*
 * Rule: whoever has sent a copy whose end is unknown and did not get the lock bars it,
 * also after a refusal that shows a token below.
 */
inline give_up(c)
{
	w[me.pending].bar = w[me.pending].loose;
	me.pending = 0;
	me.state = IDLE
}

inline try(c, ahead, many)
{
	d_step
	{
		reserve(c, n, ahead, many);
		w[n].expected = (item != 0 && !released && !believed(item) && !awaited(item) -> item : 0);
		me.pending = n;
		me.state = WAITING
	}
}

inline hand_over(c, ahead)
{
	d_step
	{
		me.state = LOST;		/* the session before has let go */
		t = me.pending;
		reserve(c, n, ahead, 1);
		if
		:: item == t && !released && above(n) -> apply(n); grant(c, n)
		:: item == t && !released && !above(n) ->
			reached("a hand-over meets a bar");
			raise(c, token)
		:: else -> skip
		fi
	}
}

proctype lock_manager(byte c)
{
end:
	do
	:: me.state == IDLE && me.tries < TRIES -> try(c, 0, 1)
	:: me.state == IDLE && me.tries < TRIES -> try(c, 2, 1)
	:: me.state == IDLE && me.tries < TRIES -> try(c, 0, 2)

	/* A copy is left on the way; another one may be answered. */
	:: d_step { me.state == WAITING && faults > 0 && !w[me.pending].loose ->
			faults--;
			w[me.pending].loose = 1 }
	:: d_step { me.state == WAITING ->
			n = me.pending;
			if
			:: acquirable(n) -> apply(n); grant(c, n)
			:: !acquirable(n) && item == n && !released -> grant(c, n)
			:: else ->
				raise(c, token);
#ifdef ONLY_CANCELED_ARE_BARRED
				w[n].bar = 0;
				me.pending = 0;
				me.state = IDLE
#else
				give_up(c)
#endif
			fi }

	/* The session is cancelled. */
	:: d_step { me.state == WAITING && w[me.pending].loose ->
			reached("a session is cancelled while its acquire is on the way");
			give_up(c) }

	/* It lets go, or the lease is over. */
	:: me.state == HELD && me.tries < TRIES -> hand_over(c, 0)
	:: me.state == HELD && me.tries < TRIES -> hand_over(c, 2)
	:: d_step { me.state == HELD -> me.state = LOST }
	:: d_step { me.state == LOST ->
			let_go(me.pending);
			me.pending = 0;
			me.state = IDLE }

	/* Rule: not what has a bar, which is above what this cluster wrote. */
	:: d_step { me.state == LOST && deletes > 0 && item == me.pending && !released &&
				token <= w[me.pending].last ->
			deletes--;
			printf("version %d is deleted\n", item);
			item = 0;
			token = 0;
			me.pending = 0;
			me.state = IDLE }
	od
}

/* ---- bars ---- */

#define barrable(v)	(item != 0 && token < w[v].first)

inline raise_token(v)
{
	token = w[v].last;
#ifdef BAR_RELEASES
	must(1, released || !believed(item));
	released = 1
#endif
}

/* Made anew, released. */
inline make_barred(v)
{
	item = v;
	released = 1;
	token = w[v].last
}

#ifdef NO_ITEM_SETTLES
#define make_missing(v)	skip
#else
#define make_missing(v)	make_barred(v)
#endif

inline bar_applied(v)
{
	d_step
	{
		w[v].bar && barrable(v) ->
#ifdef A_REFUSAL_SETTLES
		let_go(v);
#else
		if
		:: !released && believed(item) -> reached("the token of a held item is raised")
		:: else -> skip
		fi;
		raise_token(v);
#endif
		w[v].bar = 0
	}
}

#define bar_of(v) \
	:: bar_applied(v) \
	:: d_step { w[v].bar && item == 0 -> \
			reached("a bar makes the item"); \
			make_missing(v); w[v].bar = 0 } \
	\
	/* Refused: the acquire had arrived, or no copy can be applied any more. */ \
	:: d_step { w[v].bar && item != 0 && !barrable(v) -> let_go(v); w[v].bar = 0 } \
	\
	/* Copies of bars are left on the way, too. */ \
	:: d_step { w[v].bar && faults > 0 && !w[v].bar_loose -> faults--; w[v].bar_loose = 1 } \
	:: d_step { w[v].bar && item == 0 && faults > 0 && !w[v].new_loose -> \
			faults--; w[v].new_loose = 1 } \
	:: d_step { w[v].bar_loose && barrable(v) -> raise_token(v) } \
	:: d_step { w[v].new_loose && item == 0 -> make_barred(v) } \
	\
	/* The late copy itself. */ \
	:: d_step { w[v].loose && acquirable(v) -> \
			reached("a late copy is applied"); \
			apply(v) }

#if CLUSTERS > 2
#define waits_below(by)	(below(0, by) || below(1, by) || below(2, by))
#else
#define waits_below(by)	(below(0, by) || below(1, by))
#endif
#define below(c, by)	(k[c].state == WAITING && w[k[c].pending].first <= (by))

proctype dynamodb()
{
end:
	do
	bar_of(1) bar_of(2)
#if SLOTS > 2
	bar_of(3)
#endif
#if SLOTS > 3
	bar_of(4)
#endif
#if SLOTS > 4
	bar_of(5) bar_of(6)
#endif

	/*
	 * Rule: a day after the item's token.  No copy below it has a signature that is accepted, and
	 * nobody waits for the reply to one.
	 */
	:: d_step { purges > 0 && item != 0 && released && !waits_below(token) ->
			purges--;
			n = 1;
			do
			:: n <= SLOTS ->
#ifndef PURGED_WITH_ITS_BAR
				w[n].loose = w[n].loose && w[n].first > token;
				w[n].bar_loose = w[n].bar_loose && w[n].first > token;
				w[n].new_loose = w[n].new_loose && w[n].first > token;
#endif
				n++
			:: else -> break
			od;
			n = 0;
			do
			:: n < CLUSTERS -> raise(n, granted); n++
			:: else -> break
			od;
			item = 0;
			released = 0;
			token = 0 }
	od
}

/* I5: when all copies have arrived, and all bars are settled, nobody has the lock. */
proctype audit()
{
	timeout -> must(5, item == 0 || released)
}

init
{
	atomic
	{
		for (n : 0 .. CLUSTERS - 1) { run lock_manager(n) }
		run dynamodb();
		run audit()
	}
}
