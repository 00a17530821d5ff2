/*-------------------------------------------------------------------------
 *
 * clock.pml
 *	  A model of the time in the version: two clusters and a client in Java contend
 *	  for one lock; each cluster may take a dead holder's lock by DynamoDB's clock.
 *	  README.md tells what is left out.
 *
 * Time is counted in ticks from 0 to END, because a version has a time in it.  The
 * clusters' clocks run right while they wait for a confirmation or believe; before
 * that, one may have stood still, so that the time that it writes is wrong.
 *
 * A comment "Rule:" gives the rule of doc/internals/protocol.md that a guard stands for.  The
 * names in #ifdef are seeded bugs.
 *
 *-------------------------------------------------------------------------
 */

#include "reached.pml"

/* ---- bounds ---- */

#ifndef OPS
#define OPS			1			/* acquires, by each cluster; each may try again and again */
#endif
#ifndef RENEWALS
#define RENEWALS	0			/* by either cluster, all in all */
#endif
#ifndef FAULTS
#define FAULTS		0			/* calls whose reply is not waited for */
#endif
#ifndef JAVA
#define JAVA		0			/* acquires of the client in Java */
#endif
#ifndef SHORTER
#define SHORTER		0			/* a renewal may make the lease shorter */
#endif
#ifndef AHEAD
#define AHEAD		1			/* DynamoDB's front ends: at most so far ahead, */
#endif
#ifndef BEHIND
#define BEHIND		1			/* ... and so far behind */
#endif
#ifndef EARLY
#define EARLY		3			/* how far the time that cluster A writes may be behind */
#endif
#ifndef WALLS
#define WALLS		0			/* the wall clocks are right, and veto */
#endif

#ifndef END
#define END			8
#endif
#define LEASE		3
#define SHORT		2
#define MARGIN		1
#define SLACK		1			/* AHEAD + BEHIND <= SLACK + MARGIN */
#define NO_TIME		255
#define NO_OFFSET	100

/* ---- DynamoDB ---- */

byte	now;
byte	item;					/* the version; 0: free */
byte	item_time;				/* the time in it, or NO_TIME */
byte	item_lease;
byte	item_token;				/* that of the last acquire; a token is its version */
byte	serial;					/* of the last version */

/* A copy of a write, and its reply. */
#define NO_COPY		0
#define SENT		1
#define SERVED		2

typedef copy
{
	byte state;
	bit acquires;
	bit deaf;					/* nobody waits for its reply any more */
	byte version;
	byte time;
	byte lease;
	byte expected;
	byte sent;
	byte date;					/* of the reply; + BEHIND, so that it is not negative */
	bit done;					/* it was applied */
	byte shown;					/* else the item */
	byte shown_time;
	byte shown_lease;
};

/* ---- the clusters ---- */

#define IDLE		0
#define WAITING		1			/* has seen another one's version */
#define ACQUIRING	2
#define HELD		3
#define RENEWING	4

typedef cluster
{
	byte ops;					/* left */
	byte state;
	byte until;					/* end of the belief; 0: none */
	byte version;
	byte offset;				/* DynamoDB's clock at most so far ahead, + NO_OFFSET; 0: unknown */
	byte pending;
	byte pending_time;
	byte pending_lease;
	byte first_sent;
	byte expected;
	byte seen;
	byte seen_at;
	byte seen_lease;
	bit dead;					/* by DynamoDB's clock */
	byte last_date;				/* of an earlier reply */
	copy c[2];
};
cluster	k[2];

byte	java_until;				/* end of its belief */
byte	java_seen;
byte	java_seen_at;

byte	renewals = RENEWALS;
byte	faults = FAULTS;
byte	java = JAVA;
byte	date;
byte	base;
byte	offset;
byte	i;

#define me k[m]
#define believes(m) (now < k[m].until)

/* Rule: no take-over by a Date that is more than the slack from this machine's wall clock. */
#ifdef NO_VETO
#define vetoed(date_) false
#else
#define vetoed(date_) (WALLS && date_ > now + SLACK + BEHIND)
#endif

/* Kept only if something depends on it. */
#ifdef DATE_OF_ANOTHER_REPLY
#define note_date(date_) me.last_date = date_
#else
#define note_date(date_) me.last_date = (WALLS -> date_ : 0)
#endif

inline check()
{
	if
	:: (believes(0) && believes(1)) || ((believes(0) || believes(1)) && now < java_until) ->
		printf("broken: I1\n");
		assert(false)
	:: else
	fi
}

/* A front end's clock, + BEHIND. */
inline read_front_end()
{
	select(i : 0 .. AHEAD + BEHIND);
	date = now + i;
	i = 0
}

/*
 * Rule: the time is our estimate of DynamoDB's clock when the first copy is sent.  A
 * renewal's is no earlier than what the reply that confirmed the lease implies.
 */
inline stamp()
{
	select(i : 0 .. (m == 0 -> EARLY : 0));
	me.pending_time = (now > i -> now - i : 0);
	i = 0;
#ifndef RENEWAL_OF_ANY_TIME
	if
	:: me.state == RENEWING && now + me.offset > me.pending_time + NO_OFFSET ->
		me.pending_time = now + me.offset - NO_OFFSET
	:: else
	fi;
#endif
	if
	:: vetoed(me.last_date) -> me.pending_time = NO_TIME
	:: else
	fi
}

inline send(n)
{
	me.c[n].state = SENT;
	me.c[n].acquires = (me.state == ACQUIRING);
	me.c[n].deaf = 0;
	me.c[n].version = me.pending;
	me.c[n].time = me.pending_time;
	me.c[n].lease = me.pending_lease;
	me.c[n].expected = me.expected;
	me.c[n].sent = now
}

inline new_write(what, length)
{
	me.state = what;
	me.expected = (what == RENEWING -> me.version : me.seen);
	serial++;
	me.pending = serial;
	me.pending_lease = length;
	me.first_sent = now;
	stamp();
	send(0)
}

/* DynamoDB handles a copy. */
inline serve(n)
{
	read_front_end();
	me.c[n].state = SERVED;
	me.c[n].date = date;
	me.c[n].done = (me.c[n].acquires ->
		(item == me.c[n].expected || item == 0) && me.c[n].version > item_token :
		item == me.c[n].expected);
	if
	:: me.c[n].done ->
		item_token = (me.c[n].acquires -> me.c[n].version : item_token);
		item = me.c[n].version;
		item_time = me.c[n].time;
		item_lease = me.c[n].lease
	:: else
	fi;
	me.c[n].shown = item;
	me.c[n].shown_time = item_time;
	me.c[n].shown_lease = item_lease;
	date = 0
}

inline forget(n)
{
	me.c[n].state = NO_COPY;
	me.c[n].acquires = 0;
	me.c[n].deaf = 0;
	me.c[n].version = 0;
	me.c[n].time = 0;
	me.c[n].lease = 0;
	me.c[n].expected = 0;
	me.c[n].sent = 0;
	me.c[n].date = 0;
	me.c[n].done = 0;
	me.c[n].shown = 0;
	me.c[n].shown_time = 0;
	me.c[n].shown_lease = 0
}

/* No write is under way. */
inline settled()
{
	me.pending = 0;
	me.pending_time = 0;
	me.pending_lease = 0;
	me.first_sent = 0;
	me.expected = 0
}

inline see_nothing()
{
	me.seen = 0;
	me.seen_at = 0;
	me.seen_lease = 0;
	me.dead = 0
}

/* The lease is over for us, or given up: nothing is written. */
inline go_idle()
{
	me.state = IDLE;
	me.until = 0;
	me.version = 0;
	me.offset = 0;
	settled();
	see_nothing()
}

/* Rule: dead, if this reply's Date is past the time in the version, its lease, and the slack. */
inline observe(version, time, lease_, date_)
{
	if
	:: version != me.seen ->
		me.seen = version;
		me.seen_at = now;
		me.seen_lease = lease_;
		me.dead = 0
	:: else
	fi;
	if
	:: version != 0 && time != NO_TIME && date_ >= time + lease_ + SLACK + BEHIND &&
		!vetoed(date_) ->
		me.dead = 1;
		reached("dead by the clock")
	:: else
	fi;
	me.state = WAITING;
	settled()
}

/*
 * Rule: belief ends a lease, less the margin, after the first copy was sent, and as long
 * after the moment in which DynamoDB's clock, by this reply, was at the time in the version.
 */
inline confirmed(n)
{
#ifdef COUNTED_FROM_RECEIPT
	me.c[n].sent = now;
#endif
#ifdef DATE_OF_ANOTHER_REPLY
	offset = me.last_date + NO_OFFSET - BEHIND - me.c[n].sent;
#else
	offset = me.c[n].date + NO_OFFSET - BEHIND - me.c[n].sent;
#endif
	base = me.first_sent;
#ifndef SECOND_BOUND_LEFT_OUT
	if
	:: me.pending_time != NO_TIME && me.pending_time + NO_OFFSET < base + offset ->
		base = (me.pending_time + NO_OFFSET > offset -> me.pending_time + NO_OFFSET - offset : 0);
		reached("a belief cut short")
	:: else
	fi;
#endif
	me.version = me.pending;
	me.offset = offset;
	me.until = base + me.pending_lease - MARGIN;
	base = 0;
	offset = 0;
	me.state = HELD;
	settled();
	see_nothing();
	if
	:: now >= me.until ->
		reached("confirmed too late");
		go_idle()
	:: else
	fi
}

/* The reply to a copy arrives. */
inline receive(n)
{
	if
	:: me.c[n].deaf || me.c[n].version != me.pending
	:: else ->
		if
		:: me.c[n].done || me.c[n].shown == me.pending -> confirmed(n)
		:: else ->
			if
			:: me.state == ACQUIRING ->
				observe(me.c[n].shown, me.c[n].shown_time, me.c[n].shown_lease, me.c[n].date)
			:: else ->
				go_idle()
			fi
		fi;
		note_date(me.c[n].date)
	fi;
	forget(n)
}

/* A look is one step: it is consistent. */
inline look()
{
	read_front_end();
	observe(item, item_time, item_lease, date);
	note_date(date);
	date = 0
}

#define free(n) (me.c[n].state == NO_COPY)
#define waits(n) (me.c[n].state != NO_COPY && !me.c[n].deaf)

proctype contend(byte m)
{
	do
	:: atomic { me.state == IDLE && me.ops > 0 && free(0) && now < END - 4 ->
		me.ops--; new_write(ACQUIRING, LEASE) }
	:: atomic { me.state == WAITING && now < END - 1 -> look() }
	/* Rule: a dead version is named in the condition. */
	:: atomic { me.state == WAITING && free(0) && now < END - 3 &&
		(me.dead || me.seen == 0 || now >= me.seen_at + me.seen_lease) ->
		if
		:: me.dead && now < me.seen_at + me.seen_lease -> reached("taken at once")
		:: else
		fi;
		new_write(ACQUIRING, LEASE) }
	:: atomic { me.state == HELD && believes(m) && renewals > 0 && free(0) ->
		renewals--; new_write(RENEWING, LEASE) }
#if SHORTER
	:: atomic { me.state == HELD && believes(m) && renewals > 0 && free(0) ->
		renewals--; new_write(RENEWING, SHORT);
		if
		:: now + SHORT - MARGIN < me.until -> me.until = now + SHORT - MARGIN
		:: else
		fi }
#endif
	:: atomic { me.c[0].state == SENT -> serve(0); check() }
	:: atomic { me.c[1].state == SENT -> serve(1); check() }
	:: atomic { me.c[0].state == SERVED -> receive(0); check() }
	:: atomic { me.c[1].state == SERVED -> receive(1); check() }
	/* A repetition has the same version, and the same time in it. */
	:: atomic { waits(0) && free(1) && faults > 0 ->
		faults--; me.c[0].deaf = 1; send(1); reached("a repetition") }
	/* The holder lets go without a word: it dies, or its release is lost. */
	:: atomic { me.state == HELD && !waits(0) && !waits(1) -> go_idle() }
	:: atomic { me.state == HELD && !waits(0) && !waits(1) && item == me.version ->
		item = 0; item_lease = 0; item_time = 0; go_idle() }
	:: atomic { now == END -> break }
	od
}

/* A client in Java: its versions have no time. */
proctype in_java()
{
	do
	:: atomic { java > 0 && now < END - 4 && item != 0 && java_seen != item ->
		java_seen = item; java_seen_at = now }
	:: atomic { java > 0 && now < END - 3 && now >= java_until &&
		(item == 0 || (java_seen == item && now >= java_seen_at + item_lease)) ->
		java--;
		serial++;
		item = serial;
#ifndef TIME_IN_AN_ATTRIBUTE
		item_time = NO_TIME;
#endif
		item_lease = LEASE;
		java_until = now + LEASE;
		reached("the client in Java has the lock");
		check() }
	:: atomic { now == END -> break }
	od
}

proctype time()
{
	do
	:: atomic { now < END -> now++; check() }
	:: atomic { now == END -> break }
	od
}

init
{
	atomic
	{
		k[0].ops = OPS;
		k[1].ops = OPS;
		run contend(0);
		run contend(1);
		run in_java();
		run time()
	}
}
