/*-------------------------------------------------------------------------
 *
 * deadlock.pml
 *	  A model of deadlocks across clusters: three sessions, each in its cluster, and
 *	  three locks.  Who holds a lock and waits for another one shows an edge in the
 *	  item that he holds; who waits follows the edges, and ends his own wait if he
 *	  finds himself in a circle.  README.md tells what is left out.
 *
 * A waiting session never gets another lock, so a circle comes into being only when a
 * session begins to wait: "was" has the circles that there were at one moment.
 *
 * The clock is DynamoDB's.  An edge's "at" is a tick that had begun when the edge was
 * composed; M is a tick that had not begun when the circle was seen.
 *
 * The names in #ifdef are seeded bugs.
 *
 *-------------------------------------------------------------------------
 */

#include "reached.pml"

/* ---- bounds ---- */

#ifndef WAITS
#define WAITS	2			/* of each session; with FOREVER: that are remembered somewhere */
#endif
#ifndef WAITS_1
#define WAITS_1	WAITS		/* of session 1 */
#endif
#ifndef LOSES
#define LOSES	1			/* leases may be lost */
#endif
#ifndef END
#define END		2			/* the last tick; the first is 0 */
#endif
#ifndef EARLY
#define EARLY	0			/* how far a lower bound of the clock may be behind */
#endif
#ifndef LATE
#define LATE	0			/* how far an upper one may be ahead */
#endif
#ifndef NEAR
#define NEAR	0			/* 1: sessions 0 and 1 are of one cluster; 3: sessions 1 and 2 */
#endif
#ifndef CIRCLE
#define CIRCLE	0			/* 2, 3: a circle of so many that lasts, for ROUNDS; 0: anything happens */
#endif
#ifndef ROUNDS
#define ROUNDS	6
#endif

#define SESSIONS	3
#define LOCKS		3
#if CIRCLE == 0
#define LOOKERS		1			/* session 0 */
#else
#define LOOKERS		3
#endif

/* ---- waits: of session 0 from 1 on, of session 1 from WAITS + 1 on ... ---- */

#define IDS				(SESSIONS * WAITS)
#define session_of(id)	(((id) - 1) / WAITS)
#define number_of(id)	(((id) - 1) % WAITS + 1)

byte	waits_for[IDS + 1];	/* the lock */
byte	since[IDS + 1];		/* when it began, a lower bound */
byte	begun[SESSIONS];	/* so many waits have */

/* ---- DynamoDB ---- */

byte	now;

typedef lock
{
	byte owner;				/* session + 1; 0: the item is released */
	bit believed;			/* that session's cluster believes so; else the lease is lost */
	byte edge;				/* the wait that the item shows, or 0 */
	byte at;
	bit loose;				/* a copy of a renewal is on its way, */
	byte way;				/* ... with this edge */
	byte way_at;
};
lock	k[LOCKS];

#define holds(s, l)	(k[l].owner == (s) + 1 && k[l].believed)
#define takeable(l)	(!k[l].believed)

/* ---- the sessions ---- */

byte	wait[SESSIONS];		/* the present one, or 0 */

/* What a looker's cluster has read of each item. */
typedef reading
{
	byte edge;
	byte at;
};
reading	v[LOOKERS * LOCKS];

#define reads(s, l)	v[(s) * LOCKS + (l)]

/* The circle that it has seen: the waits of the others in it. */
typedef sight
{
	byte first;
	byte second;			/* 0: two are in it */
	byte m;
#ifdef EACH_AT_HAS_RISEN
	byte first_at;
	byte second_at;
#endif
};
sight	c[LOOKERS];

int		was;				/* the circles that there were, by the numbers of their waits */
#ifdef FOREVER
bit		seen_now;			/* in this step */
#else
hidden byte seen_now;
#endif
int		ended;				/* those of which a member has ended its wait */

/* Of one d_step: they have no part in a state. */
hidden byte e1, e2, a1, a2, l1, l2, i, victim;
hidden int circle;
hidden byte found;

inline must(promise, condition_met)
{
	if
	:: (condition_met) -> skip
	:: else ->
		printf("broken: I%d\n", promise);
		assert(false)
	fi
}

#define near(s, t)	((s) == (t) || (s) + (t) == NEAR)

#if LOOKERS > 1
#define weight(s)	((s) == 0 -> 1 : ((s) == 1 -> WAITS + 1 : (WAITS + 1) * (WAITS + 1)))
#define is_looked_for(s)	true
#else
/* The looker's own wait is the present one. */
#define weight(s)	((s) == 0 -> 0 : ((s) == 1 -> 1 : WAITS + 1))
#define is_looked_for(s)	((s) == 0)
#endif
#define part(id)	((id) == 0 -> 0 : number_of(id) * weight(session_of(id)))

#if LOOKERS == 1
#include "deadlock_tidy.pml"
#else
#define tidy()	skip
#endif

/* Kept only if something depends on it. */
#if LOOKERS > 1 || defined(A_TICK_AFTER_THE_FIRST_AND_OWN_BEGIN)
#define note_begin(id, time)	since[id] = time
#else
#define note_begin(id, time)	skip
#endif

/*
 * ---- what the rule says ----
 *
 * The proof: every edge of another cluster was composed after the circle was seen, and
 * the waits are the same.
 */
#define MEMORY	255			/* "at" of an edge that the looker's own cluster knows */

#ifdef WITHOUT_IDS
#define same(a, b)	((a) == (b) || ((a) != 0 && (b) != 0 && session_of(a) == session_of(b) && \
		waits_for[a] == waits_for[b]))
#else
#define same(a, b)	((a) == (b))
#endif

#ifdef M_NOT_ROUNDED_UP
#define M_AT_SIGHT	now
#else
#define M_AT_SIGHT	(now + 1)
#endif

#define max(a, b)	((a) > (b) -> (a) : (b))
#define known(a)	((a) == MEMORY -> 0 : (a))

/* M, and what weaker rules have instead. */
inline set_m(s, late)
{
	c[s].m = M_AT_SIGHT + late;
#ifdef A_TICK_AFTER_THE_FIRST
	c[s].m = max(known(a1), known(a2)) + 1;
#endif
#ifdef A_TICK_AFTER_THE_FIRST_AND_OWN_BEGIN
	c[s].m = max(known(a1), known(a2));
	c[s].m = max(c[s].m, since[wait[s]]) + 1;
#endif
#ifdef EACH_AT_HAS_RISEN
	c[s].first_at = a1;
	c[s].second_at = a2;
#endif
}

#define is_fresh(s)	(a1 >= c[s].m && a2 >= c[s].m)
#ifdef SEEN_ONCE
#define is_proven(s)	true
#endif
#ifdef SEEN_TWICE
#define is_proven(s)	is_same(s)
#endif
#ifdef EACH_AT_HAS_RISEN
#define is_proven(s)	(is_same(s) && (a1 > c[s].first_at || a1 == MEMORY) && \
		(a2 > c[s].second_at || a2 == MEMORY))
#endif
#ifdef ONE_EDGE_IS_ENOUGH
#define is_proven(s)	(is_same(s) && \
		((a1 >= c[s].m && a1 != MEMORY) || (a2 >= c[s].m && a2 != MEMORY)))
#endif
#ifndef is_proven
#define is_proven(s)	(is_same(s) && is_fresh(s))
#endif
#define is_same(s)	(c[s].first != 0 && same(c[s].first, e1) && same(c[s].second, e2))

/* The member that began last, by what the edges say; of two the one with the greater id. */
#define is_later(a, b)	((b) == 0 || since[a] > since[b] || (since[a] == since[b] && (a) > (b)))

inline choose_victim(s)
{
	victim = wait[s];
#ifndef EACH_IS_THE_VICTIM
	victim = (is_later(victim, e1) -> victim : e1);
	victim = (is_later(victim, e2) -> victim : e2)
#endif
}

/* ---- waits ---- */

inline end_wait(s)
{
	wait[s] = 0;
	if
	:: (s) < LOOKERS ->
		c[s].first = 0;
		c[s].second = 0;
		c[s].m = 0;
#ifdef EACH_AT_HAS_RISEN
		c[s].first_at = 0;
		c[s].second_at = 0;
#endif
#if LOOKERS == 1
		was = 0;
#endif
		skip
	:: else -> skip
	fi
}

/* The session for which a session waits, + 1; or 0. */
#define blocker(s) \
	(wait[s] != 0 && k[waits_for[wait[s]]].believed -> k[waits_for[wait[s]]].owner : 0)

/* Is there a circle now, with this session in it?  It has begun to wait. */
inline note_circle(s)
{
	circle = part(wait[s]);
	found = is_looked_for(s);
	e1 = blocker(s);
	if
	:: e1 == 0 || wait[e1 - 1] == 0 -> found = 0
	:: else ->
		circle = circle + part(wait[e1 - 1]);
		found = found || is_looked_for(e1 - 1);
		e2 = blocker(e1 - 1);
		if
		:: e2 == s + 1 -> skip
		:: e2 == 0 || e2 == e1 || wait[e2 - 1] == 0 || blocker(e2 - 1) != s + 1 -> found = 0
		:: else ->
			circle = circle + part(wait[e2 - 1]);
			found = found || is_looked_for(e2 - 1)
		fi
	fi;
	was = (found -> was | (1 << circle) : was)
}

#define most_waits(s)	((s) == 0 -> 1 : ((s) == 1 -> WAITS_1 : WAITS))

/*
 * Who holds nothing need not be modelled as waiting: he is in no circle until he has waited.
 *
 * Let session 0, which alone looks, have one wait, because all that it has seen is void with the
 * next one; let it wait for lock 1, and lock 0 close the circle, because locks are alike; and let
 * it hold lock 0 for ever, because in its wait it never gets it, and without it sees no circle.
 * Then edges in lock 0 are never read; who waits for lock 1, or for lock 2 without lock 1, is in
 * no circle; and a wait for lock 0 ends as if it were given up.
 */
#define is_wish(s, l) \
	((s) == 0 -> (l) == 1 : (l) != 1 && (holds(s, 1) || (holds(s, 2) && (l) == 0)))
#define is_for(s, l)	((s) != 0 && (l) != 0)
#define is_read(l)		((l) != 0)

inline begin(s, l, early)
{
	d_step
	{
		wait[s] == 0 && !holds(s, l) && is_wish(s, l) && begun[s] < most_waits(s) &&
			early <= now ->
		begun[s]++;
		i = (s) * WAITS + begun[s];
		printf("%d: begins to wait for lock %d, wait %d\n", s, l, i);
		wait[s] = i;
		waits_for[i] = l;
		note_begin(i, now - early);
		note_circle(s);
		tidy()
	}
}

inline give_up(s)
{
	d_step { wait[s] != 0 -> printf("%d: gives up\n", s); end_wait(s); tidy() }
}

/* ---- locks ---- */

inline forget_copy(l)
{
	k[l].loose = 0;
	k[l].way = 0;
	k[l].way_at = 0
}

/* Rule: whoever gets a lock, and whoever releases it, writes "holder" anew, or removes it. */
inline replace(l, owner_)
{
	k[l].owner = owner_;
	k[l].believed = (owner_ != 0);
	k[l].edge = 0;
	k[l].at = 0;
	forget_copy(l)
}

inline take(s, l)
{
	d_step
	{
		takeable(l) && is_for(s, l) && (wait[s] == 0 || waits_for[wait[s]] == l) ->
		printf("%d: gets lock %d\n", s, l);
		replace(l, s + 1);
		if
		:: wait[s] != 0 -> end_wait(s)
		:: else -> skip
		fi;
		tidy()
	}
}

/* Within a cluster a lock passes on without a write. */
inline pass_on(s, t, l)
{
	d_step
	{
		s != t && near(s, t) && holds(s, l) && wait[s] == 0 &&
			(wait[t] == 0 || waits_for[wait[t]] == l) ->
		printf("%d: passes lock %d on to %d\n", s, l, t);
		k[l].owner = t + 1;
		if
		:: wait[t] != 0 -> end_wait(t)
		:: else -> skip
		fi;
		tidy()
	}
}

inline release(s, l)
{
	d_step { holds(s, l) && is_for(s, l) && wait[s] == 0 ->
		printf("%d: releases lock %d\n", s, l);
		replace(l, 0);
		tidy() }
}

/* Also a release that never arrives.  The item stays as it is. */
inline lose(l)
{
	d_step { LOSES && k[l].believed && is_for(k[l].owner - 1, l) ->
		printf("%d: loses lock %d\n", k[l].owner - 1, l);
		if
		:: wait[k[l].owner - 1] != 0 -> reached("a lock is lost while its session waits")
		:: else -> skip
		fi;
		k[l].believed = 0;
		tidy() }
}

/* ---- writes and reads ---- */

/* A copy that is composed anew takes the place of one that never arrives. */
inline compose(l, early)
{
	k[l].loose = 1;
	k[l].way = wait[k[l].owner - 1];
	k[l].way_at = (k[l].way == 0 -> 0 : now - early);
	printf("%d: composes a renewal of lock %d with wait %d, at %d\n", k[l].owner - 1, l,
		   k[l].way, k[l].way_at)
}

/* One without an edge would only take one away that may have been read before, and is used later. */
inline renew(l, early)
{
	d_step { k[l].believed && wait[k[l].owner - 1] != 0 && is_read(l) && early <= now ->
		compose(l, early);
		tidy() }
}

inline write(l)
{
	printf("DynamoDB: lock %d shows wait %d, at %d\n", l, k[l].way, k[l].way_at);
	k[l].edge = k[l].way;
	k[l].at = k[l].way_at;
	forget_copy(l)
}

inline arrive(l)
{
	d_step { k[l].loose ->
		if
		:: !k[l].believed -> reached("a renewal arrives after its lease was lost")
		:: else -> skip
		fi;
		write(l);
		tidy() }
}

#define is_foreign(s, l)	(k[l].owner != 0 && !near(s, k[l].owner - 1))

inline copy_reading(s, l)
{
	reads(s, l).edge = k[l].edge;
	reads(s, l).at = k[l].at
}

/* It is used at any later time, so it may be as stale as can be. */
inline read(s, l)
{
	d_step { is_foreign(s, l) && k[l].edge != 0 &&
			(reads(s, l).edge != k[l].edge || reads(s, l).at != k[l].at) ->
		printf("%d: reads lock %d: wait %d, at %d\n", s, l, k[l].edge, k[l].at);
		copy_reading(s, l);
		tidy() }
}

/* The edge of a lock: in memory, if it is held in the looker's cluster. */
inline see(s, l, edge_, at_)
{
	if
	:: k[l].believed && near(s, k[l].owner - 1) ->
		edge_ = wait[k[l].owner - 1];
		at_ = MEMORY
	:: else ->
		edge_ = reads(s, l).edge;
		at_ = reads(s, l).at;
		edge_ = (edge_ != 0 && near(s, session_of(edge_)) -> 0 : edge_)
	fi
}

/* Does the chain of waits, as far as this session knows it, lead back to it? */
inline follow(s)
{
	e2 = 0;
	a2 = MEMORY;
	found = 0;
	l1 = waits_for[wait[s]];
	see(s, l1, e1, a1);
	if
	:: e1 == 0 -> skip
	:: else ->
		l2 = waits_for[e1];
		if
		:: holds(s, l2) -> found = (a1 != MEMORY)
		:: else ->
			see(s, l2, e2, a2);
			found = e2 != 0 && holds(s, waits_for[e2]) && !(a1 == MEMORY && a2 == MEMORY)
		fi
	fi
}

#define is_circle	(session_of(e1) != session_of(e2) || e2 == 0)

inline prove(s)
{
	printf("%d: is in a circle with waits %d and %d\n", s, e1, e2);
	circle = part(wait[s]) + part(e1) + part(e2);
	/* I8: it was one, at one moment. */
#ifdef ANY_CIRCLE
	must(8, was != 0);
#else
	must(8, is_circle && (was & (1 << circle)));
#endif
	reached("a circle is proven");
	choose_victim(s);
	if
	:: e2 != 0 -> reached("a circle of three is proven")
	:: else -> skip
	fi;
	if
	:: victim == wait[s] ->
		/* I5: one victim is enough. */
		must(5, !(ended & (1 << circle)));
#if LOOKERS > 1
		ended = ended | (1 << circle);
#endif
		printf("%d: is the victim\n", s);
		end_wait(s)
	:: else -> reached("another member is the victim")
	fi
}

inline look_on(s, late)
{
	if
	:: found && is_proven(s) -> prove(s)
	:: found && !is_same(s) ->
		printf("%d: sees a circle with waits %d and %d\n", s, e1, e2);
		c[s].first = e1;
		c[s].second = e2;
		set_m(s, late);
		seen_now = 1
	:: found && is_same(s) ->
#ifdef M_ANEW
		set_m(s, late);
#endif
		skip
	:: else -> skip
	fi
}

inline look(s, late)
{
	d_step { wait[s] != 0 -> follow(s); look_on(s, late); tidy() }
}

#if CIRCLE == 0

/* ---- anything happens ---- */

#if EARLY > 0
#define A_RENEWAL(l)	:: renew(l, 0) :: renew(l, 1)
#define A_WAIT(s, l)	:: begin(s, l, 0) :: begin(s, l, 1)
#else
#define A_RENEWAL(l)	:: renew(l, 0)
#define A_WAIT(s, l)	:: begin(s, l, 0)
#endif

#define OF_BOTH(s, l)	A_WAIT(s, l) :: take(s, l) :: release(s, l)
#define OF_LOCK(l) \
	OF_BOTH(0, l) OF_BOTH(1, l) OF_BOTH(2, l) \
	A_RENEWAL(l) :: lose(l) :: arrive(l)
#if LATE > 0
#define LOOK(s)	:: look(s, 0) :: look(s, 1)
#else
#define LOOK(s)	:: look(s, 0)
#endif
#if NEAR == 1
#define PASSES(l)	:: pass_on(0, 1, l) :: pass_on(1, 0, l)
#endif
#if NEAR == 3
#define PASSES(l)	:: pass_on(1, 2, l) :: pass_on(2, 1, l)
#endif

/* Time is told from when a circle was seen: see deadlock_tidy.pml. */
#ifdef FOREVER
#define may_tick	(c[0].first != 0 && now == 0)
#else
#define may_tick	(now < END)
#endif

proctype anything()
{
end:
	do
	OF_LOCK(0) OF_LOCK(1) OF_LOCK(2)
	:: give_up(0) :: give_up(1) :: give_up(2)
	LOOK(0) :: read(0, 1) :: read(0, 2)
#if NEAR > 0
	PASSES(0) PASSES(1) PASSES(2)
#endif
	:: d_step { may_tick -> now++; printf("tick %d\n", now) }
	od
}

#else

/* ---- a circle that lasts ---- */

/*
 * In each round, in any order: each lock in the circle is renewed; each session reads each of them,
 * and looks.  Who is a victim ends its wait; the others go on with what they have read.  If three
 * are in it, only the victim-to-be looks, or, in fewer rounds, all do (ALL_LOOK): else the states
 * would be too many.
 */
#ifdef ALL_LOOK
#define is_over	true
#else
#define is_over	(ended != 0)
#endif
#define WRITE(l)		(1 << (l))
#define READ(s, l)		(1 << (3 + 3 * (s) + (l)))
#define LOOK(s)			(1 << (12 + (s)))
#define ALL_OF(l)		(WRITE(l) | READ(0, l) | READ(1, l) | READ(2, l) | LOOK(l))
#if CIRCLE == 2
#define ALL				((ALL_OF(0) | ALL_OF(1) | LOOK(2)) & ~OWN)
#endif
#if CIRCLE == 3 && defined(ALL_LOOK)
#define ALL				((ALL_OF(0) | ALL_OF(1) | ALL_OF(2)) & ~OWN)
#endif
#ifndef ALL
#define ALL				(WRITE(0) | WRITE(1) | WRITE(2) | READ(0, 1) | READ(0, 2) | LOOK(0))
#endif
#define OWN				(READ(0, 0) | READ(1, 1) | READ(2, 2))

int		todo = ALL;

#define due(what)	(todo & (what))
#define done(what)	todo = todo & ~(what)

inline write_in_round(l, early)
{
	d_step { due(WRITE(l)) && early <= now ->
		done(WRITE(l));
		if
		:: wait[l] != 0 -> compose(l, early); write(l)
		:: else -> skip
		fi }
}

inline read_in_round(s, l)
{
	d_step { due(READ(s, l)) -> done(READ(s, l)); copy_reading(s, l) }
}

inline look_in_round(s, late)
{
	d_step { due(LOOK(s)) ->
		done(LOOK(s));
		if
		:: wait[s] != 0 -> follow(s); look_on(s, late)
		:: else -> skip
		fi }
}

#define OF_LOCK(l)	:: write_in_round(l, 0) :: write_in_round(l, EARLY)
#define OF_SESSION(s) \
	:: read_in_round(s, 0) :: read_in_round(s, 1) :: read_in_round(s, 2) \
	:: look_in_round(s, 0) :: look_in_round(s, LATE)

proctype rounds()
{
end:
	do
	OF_LOCK(0) OF_LOCK(1) OF_LOCK(2)
	OF_SESSION(0) OF_SESSION(1) OF_SESSION(2)
	:: d_step { todo == 0 && now < ROUNDS ->
		now++;
		printf("tick %d\n", now);
		/* I6: there is a victim; who is behind the circle is none. */
		must(6, now < ROUNDS || is_over);
		must(8, CIRCLE == 3 || wait[2] != 0);
		todo = ALL }
	od
}

inline wait_for(s, l, begin_)
{
	d_step
	{
		wait[s] = s * WAITS + 1;
		waits_for[wait[s]] = l;
		since[wait[s]] = begin_;
		note_circle(s)
	}
}

#endif

/* Each session holds the lock of its number. */
init
{
	atomic
	{
		d_step
		{
			i = 0;
			do
			:: i < LOCKS -> k[i].owner = i + 1; k[i].believed = 1; i++
			:: else -> break
			od
		}
#if CIRCLE == 0
		run anything()
#else
		/* Let session 0 be the member that began last.  The third one is in the circle, or behind it. */
		wait_for(0, 1, 2);
#if CIRCLE == 2
		wait_for(1, 0, 1);
		if
		:: wait_for(2, 0, 0)
		:: wait_for(2, 0, 3)
		fi;
#else
		wait_for(1, 2, 1);
		wait_for(2, 0, 0);
#endif
		run rounds()
#endif
	}
}
