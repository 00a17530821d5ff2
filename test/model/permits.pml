/*-------------------------------------------------------------------------
 *
 * permits.pml
 *	  A model of a cluster that waits for permits of a semaphore and is heard: clusters A and C
 *	  take one permit each again and again, cluster B waits for some at once, and marks the item with
 *	  their number.  Whoever sees the mark, in the reply to his release or in a poll, counts these permits as
 *	  taken.  README.md tells what is left out; heard.pml has a lock of one holder.
 *
 * A mark has no part in who may have permits: that is shared.pml's.  What is checked is that it
 * is heard, and that it costs no more than it may.
 *
 * The names in #ifdef are seeded bugs.
 *
 *-------------------------------------------------------------------------
 */

#include "reached.pml"

/* ---- bounds ---- */

#ifndef LIMIT
#define LIMIT	2			/* permits of the semaphore, */
#endif
#ifndef WANTED
#define WANTED	2			/* ... and how many of them B wants */
#endif
#ifndef GRANTS
#define GRANTS	2			/* of A, and as many of C */
#endif
#ifndef WAITS
#define WAITS	1			/* of B, one after the other */
#endif
#ifndef FAULTS
#define FAULTS	1			/* marks that are lost, or left on the way; or B gives up */
#endif
#ifndef DEAD
#define DEAD	0			/* marks of a cluster that is gone */
#endif

#define MARKS	3			/* of B */

/* ---- DynamoDB ---- */

byte	has[2];				/* permits of A, and of C */
byte	b_has;
byte	mark;				/* in the item; 0: none */
bit		ended[MARKS + DEAD + 1];	/* its time has passed, on all clocks */

#define total		(has[0] + has[1] + b_has)
#define by_b(m)		((m) <= MARKS)

typedef a_mark
{
	byte wait;				/* of B, in which it was written; 0: another cluster's */
	bit loose;				/* a copy may be applied at any time */
	bit had;				/* B has had its permits since, and had found it in the item */
};
a_mark	m[MARKS + DEAD + 1];

/* ---- the clusters ---- */

#define NO			0
#define NO_ROOM		1		/* the permits that the mark wants are not free: not before its end */
#define PAUSES		2		/* they are free: for two polls */

typedef taker
{
	byte grants;
	byte yields;			/* to the mark */
	byte seen;				/* ... */
	byte heard;				/* the mark for which it has paused; 0: or B has had its permits since */
	byte polled;			/* B has polled so often since then */
	bit due;				/* it has seen the mark of B's present wait, and nobody who had not has taken a
							 * permit since */
};
taker	t[2];
bit		waits;				/* B does */
byte	wait;				/* the number of that wait */
byte	marks;				/* that B has written */
bit		stale;				/* B's last poll was */
bit		written;			/* others have taken permits since B's mark was put */
byte	faults = FAULTS;
byte	dead = DEAD;

inline must(promise, condition_met)
{
	if
	:: (condition_met) -> skip
	:: else ->
		printf("broken: I%d\n", promise);
		assert(false)
	fi
}

/* Rule: somebody has permits; in which epoch does not matter. */
#ifdef MARK_ON_A_FREE_ITEM
#define may_mark	true
#else
#define may_mark	(total > 0)
#endif

/* I7: there are permits that somebody has. */
inline put_mark(n)
{
	if
	:: may_mark ->
		must(7, total > 0);
		printf("DynamoDB: mark %d\n", n);
		mark = n;
		written = 0;
		ended[n] = 0
	:: else -> reached("a mark is refused, because nobody has a permit")
	fi
}

/* Rule: the number that the mark has. */
#ifdef NUMBER_IGNORED
#define counted		1
#else
#define counted		WANTED
#endif

/*
 * The cluster sees the item.  Rule: as long as the permits that the mark wants are not free, it leaves
 * them; when they are, it pauses, once for each mark.
 */
inline observe(c, more)
{
	t[c].due = mark != 0 && by_b(mark) && waits && m[mark].wait == wait && t[c].heard != mark;
	if
#ifdef PERMITS_MARK_NOT_HEARD
	:: true -> t[c].yields = NO
#else
	:: mark == 0 || ended[mark] -> t[c].yields = NO
	:: mark != 0 && !ended[mark] ->
		must(5, !m[mark].had);	/* I5: it is for somebody who may still wait */
		t[c].seen = mark;
		if
		:: t[c].heard == mark -> skip
		:: t[c].heard != mark && total + more + counted > LIMIT ->
			/* I5: it waits for no room that is there. */
			must(5, total + WANTED > LIMIT);
			t[c].yields = NO_ROOM
		:: else ->
			t[c].heard = mark;
			t[c].polled = 0;
			t[c].yields = PAUSES
		fi;
		if
		:: !by_b(mark) -> reached("a dead cluster's mark for permits is heard")
		:: t[c].yields == NO_ROOM && waits -> reached("others leave permits that are free")
		:: else -> skip
		fi
#endif
	fi
}

/* The reply to a release shows the item as it is then. */
#ifdef REPLY_SHOWS_WHAT_WAS
#define of_before	1
#else
#define of_before	0
#endif

#ifdef ONE_POLL
#define long_enough(c)	(t[c].polled >= 1 || !waits)
#else
#define long_enough(c)	(t[c].polled >= 2 || !waits)
#endif

/* Rule: what B leaves, others may take.  B decides by one number, so is that. */
#define kept_back(c)	(t[c].yields != NO && total + 1 + counted > LIMIT)

inline take(c)
{
	printf("%d: is granted\n", c);
	/* I6: B comes first, if there is not enough for both. */
	must(6, !(t[c].due && waits && total + 1 + WANTED > LIMIT));
	if
	:: t[c].due && waits -> reached("who yields takes what is left")
	:: !t[c].due && mark != 0 ->
		reached("a permit is taken by who has not seen the mark");
		t[1 - c].due = 0
	:: else -> skip
	fi;
	t[c].grants--;
	has[c] = 1;
	written = mark != 0 && by_b(mark)
}

proctype cluster(byte c)
{
end:
	do
	:: d_step { has[c] == 0 && t[c].grants > 0 && total < LIMIT && !kept_back(c) -> take(c) }
	:: d_step { has[c] == 1 ->
			printf("%d: releases\n", c);
			has[c] = 0;
			observe(c, of_before) }
	:: d_step { t[c].yields == NO_ROOM -> observe(c, 0) }
	:: d_step { t[c].yields == PAUSES && long_enough(c) -> t[c].yields = NO }
	:: d_step { t[c].yields != NO && ended[t[c].seen] -> t[c].yields = NO; t[c].due = 0 }
	od
}

inline over()
{
	waits = 0;
	t[0].due = 0;
	t[1].due = 0
}

inline get_them()
{
	printf("2: is granted\n");
	b_has = WANTED;
	over();
	t[0].heard = 0;
	t[1].heard = 0;
	/* Rule: whoever gets permits removes his own cluster's mark. */
	if
	:: mark != 0 && by_b(mark) ->
		m[mark].had = 1;
#ifndef MARK_OUTLIVES_ITS_WAIT
		mark = 0
#endif
	:: else -> skip
	fi
}

#define more_polls(c)	t[c].polled = (t[c].polled < 2 -> t[c].polled + 1 : 2)

inline poll(sees, is_stale)
{
	stale = is_stale;
	more_polls(0);
	more_polls(1);
	if
	:: sees && total + WANTED <= LIMIT -> get_them()
	:: else -> skip
	fi
}

/* Rule: a mark is written anew when others have written the item: perhaps B has missed a pause. */
#define is_anew	(mark != 0 && by_b(mark) && m[mark].wait == wait && written)
#define is_due	(total > 0 && marks < MARKS && (mark == 0 || is_anew))

inline new_mark()
{
	if
	:: mark != 0 -> reached("a mark for permits is written anew")
	:: else -> skip
	fi;
	marks++;
	m[marks].wait = wait
}

proctype waiter()
{
end:
	do
	:: d_step { !waits && b_has == 0 && wait < WAITS ->
			wait++;
			waits = 1;
			stale = 0 }
	:: d_step { waits -> poll(true, 0) }
	:: d_step { waits && !stale -> reached("a poll for permits is stale"); poll(false, 1) }
	:: d_step { waits && is_due -> new_mark(); put_mark(marks) }
	:: d_step { waits && is_due && faults > 0 -> new_mark(); faults-- }
	:: d_step { waits && is_due && faults > 0 -> new_mark(); m[marks].loose = 1; faults-- }
	:: d_step { waits && faults > 0 ->
			reached("B gives up, and leaves its mark for permits");
			faults--;
			over() }
	:: d_step { b_has > 0 -> printf("2: releases\n"); b_has = 0 }
	od
}

proctype network()
{
	byte n;

end:
	do
	:: d_step { m[1].loose -> m[1].loose = 0; put_mark(1) }
	:: d_step { m[2].loose -> m[2].loose = 0; put_mark(2) }
	:: d_step { m[3].loose -> m[3].loose = 0; put_mark(3) }
	:: d_step { dead > 0 && total > 0 -> n = MARKS + dead; dead--; mark = n }

	/* Its end has passed: sooner or later, if nobody repeats it. */
	:: d_step { mark != 0 && !(waits && by_b(mark) && m[mark].wait == wait) ->
			ended[mark] = 1;
			mark = 0 }
	od
}

/* In the end, nobody is kept back for ever. */
proctype audit()
{
	timeout -> must(5, t[0].yields == NO && t[1].yields == NO && !waits)
}

init
{
	atomic
	{
		t[0].grants = GRANTS;
		t[1].grants = GRANTS;
		run cluster(0);
		run cluster(1);
		run waiter();
		run network();
		run audit()
	}
}
