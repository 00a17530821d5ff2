/*-------------------------------------------------------------------------
 *
 * heard.pml
 *	  A model of a cluster that waits and is heard: cluster A takes one lock again and
 *	  again, cluster B waits for it and marks the item that A holds.  A reads the mark
 *	  from the reply to its release, and stays back.  README.md tells what is left out.
 *
 * A mark has no part in who may have the lock.  What is checked is that it is heard, and
 * that it costs no more than it may.
 *
 * The names in #ifdef are seeded bugs.
 *
 *-------------------------------------------------------------------------
 */

#include "reached.pml"

/* ---- bounds ---- */

#ifndef GRANTS
#define GRANTS	4			/* of A */
#endif
#ifndef WAITS
#define WAITS	2			/* of B, one after the other */
#endif
#ifndef FAULTS
#define FAULTS	2			/* marks that are lost, or left on the way; or B gives up */
#endif
#ifndef DEAD
#define DEAD	0			/* marks of a cluster that is gone, or of a forger */
#endif

#define MARKS	4			/* of B */

/* ---- DynamoDB ---- */

#define NOBODY	0
#define A		1
#define B		2

byte	holder;				/* of the item */
byte	mark;				/* in the item; 0: none, or its end has passed */

#define by_b(m)	((m) <= MARKS)

typedef a_mark
{
	byte wait;				/* of B, in which it was written; 0: another cluster's */
	bit loose;				/* a copy may be applied at any time */
	bit stayed;				/* A has stayed back for it since B last had the lock */
	bit had;				/* B has had the lock since, and had found it in the item */
};
a_mark	m[MARKS + DEAD + 1];

/* ---- the clusters ---- */

byte	grants = GRANTS;
byte	heard;				/* the mark for which A has stayed back; 0: or others had the lock */
bit		due;				/* A has released the item with a mark of B's present wait in it */
bit		stays;				/* A stays back, */
byte	polled;				/* ... since B has polled so often */
bit		waits;				/* B does */
byte	wait;				/* the number of that wait */
byte	marks;				/* that B has written */
bit		stale;				/* B's last poll was */
bit		spent;				/* A was granted the lock since B's last mark */
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

/* Rule: the item is there, has the holder that was seen, and is not released. */
#ifdef MARK_ON_A_RELEASED_ITEM
#define may_mark	true
#else
#define may_mark	(holder == A)
#endif

/* I7: it is a held item. */
inline put_mark(n)
{
	if
	:: may_mark ->
		must(7, holder == A);
		printf("DynamoDB: mark %d\n", n);
		mark = n
	:: else -> reached("a mark is refused, because the lock has been released")
	fi
}

/*
 * The reply to A's release shows the mark.  Rule: A stays back once for each mark, unless
 * others have had the lock since.
 */
#ifdef MARK_NOT_HEARD
#define is_heard	false
#else
#ifdef HEARD_AGAIN
#define is_heard	(mark != 0)
#else
#define is_heard	(mark != 0 && mark != heard)
#endif
#endif

inline hear()
{
	if
	:: is_heard ->
		/* I5: it is bounded how long that is, and it is for somebody who may still wait. */
		must(5, !m[mark].stayed && !m[mark].had);
		m[mark].stayed = 1;
		heard = mark;
		polled = 0;
		stays = 1;
		if
		:: !by_b(mark) -> reached("a dead cluster's mark is heard")
		:: by_b(mark) && waits && m[mark].wait != wait ->
			reached("a mark of an earlier wait is heard")
		:: else -> skip
		fi
	:: else -> skip
	fi
}

/*
 * Two polls, and a round trip: a poll may be stale, but then the next one is not.  Who does
 * not wait does not poll; time passes.
 */
#ifdef ONE_POLL
#define long_enough	(polled >= 1 || !waits)
#else
#define long_enough	(polled >= 2 || !waits)
#endif

proctype cluster_a()
{
end:
	do
	:: d_step { holder == NOBODY && !stays && grants > 0 ->
			printf("0: is granted\n");
			must(6, !(due && waits));	/* I6: B comes first */
			due = 0;
			grants--;
			spent = 1;
			holder = A }
	:: d_step { holder == A ->
			printf("0: releases\n");
			holder = NOBODY;
			due = mark != 0 && by_b(mark) && waits && m[mark].wait == wait && !m[mark].stayed;
			hear() }
	:: d_step { stays && long_enough -> stays = 0 }
	od
}

inline get_it()
{
	printf("1: is granted\n");
	holder = B;
	waits = 0;
	due = 0;
	heard = 0;
	n = 1;
	do
	:: n <= MARKS + DEAD -> m[n].stayed = 0; n++
	:: else -> break
	od;
	/* Rule: an acquire removes the mark of the cluster that acquires. */
	if
	:: mark != 0 && by_b(mark) ->
		m[mark].had = 1;
#ifndef MARK_OUTLIVES_ITS_WAIT
		mark = 0
#endif
	:: else -> skip
	fi
}

inline poll(sees_free, is_stale)
{
	stale = is_stale;
	polled = (polled < 2 -> polled + 1 : 2);
	if
	:: sees_free && holder == NOBODY -> get_it()
	:: else -> skip
	fi
}

/* No mark is known to stand, or it was of no use. */
#define is_due	(holder == A && marks < MARKS && (mark == 0 || spent))

inline new_mark()
{
	marks++;
	m[marks].wait = wait;
	spent = 0
}

proctype cluster_b()
{
	byte n;

end:
	do
	:: d_step { !waits && holder != B && wait < WAITS ->
			wait++;
			waits = 1;
			stale = 0;
			spent = 1 }
	:: d_step { waits -> poll(true, 0) }
	:: d_step { waits && !stale -> reached("a poll is stale"); poll(false, 1) }

	/* A mark is a poll as well, which is not stale; but it may be lost, or arrive late. */
	:: d_step { waits && is_due -> new_mark(); put_mark(marks) }
	:: d_step { waits && is_due && faults > 0 -> new_mark(); faults-- }
	:: d_step { waits && is_due && faults > 0 -> new_mark(); m[marks].loose = 1; faults-- }

	:: d_step { waits && faults > 0 ->
			reached("B gives up, and leaves its mark");
			faults--;
			waits = 0;
			due = 0 }
	:: d_step { holder == B -> printf("1: releases\n"); holder = NOBODY }
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
	:: d_step { dead > 0 && holder == A -> n = MARKS + dead; dead--; mark = n }

	/* Its end has passed: sooner or later, if nobody repeats it. */
	:: d_step { mark != 0 && !(waits && by_b(mark) && m[mark].wait == wait) -> mark = 0 }
	od
}

/* In the end, nobody stays back for ever. */
proctype audit()
{
	timeout -> must(5, !stays)
}

init
{
	atomic
	{
		run cluster_a();
		run cluster_b();
		run network();
		run audit()
	}
}
