/*-------------------------------------------------------------------------
 *
 * queue.pml
 *	  A model of one resource's queue: jobs are pushed, claimed, worked on,
 *	  completed; a resource is dropped, a job is cancelled, an empty head is
 *	  removed; sessions and clusters die at any step, and requests are lost,
 *	  repeated and late.
 *
 * The lock is one step here: it is free, or a session has it and its token, until
 * the session releases it, dies or loses it.  What the session sent before stays
 * under way.  That nobody believes in a lock that somebody else has is for lock.pml
 * to show.
 *
 * A comment "Rule:" gives the rule that a step stands for; the names in #ifdef
 * are seeded bugs.
 *
 *-------------------------------------------------------------------------
 */

#include "reached.pml"

/* ---- bounds ---- */

#ifndef PRESENT
#define PRESENT		1			/* jobs that are there to begin with */
#endif
#ifndef PUSHES
#define PUSHES		0			/* jobs that are pushed, each by a pusher of its own */
#endif
#ifndef WORKERS
#define WORKERS		2			/* sessions that work */
#endif
#ifndef FAULTS
#define FAULTS		1			/* replies that are lost */
#endif
#ifndef COPIES
#define COPIES		1			/* requests that are applied once more, at any time */
#endif
#ifndef LOSSES
#define LOSSES		1			/* locks that are lost while their sessions live */
#endif
#ifndef DEATHS
#define DEATHS		1			/* of sessions */
#endif
#ifndef CRASHES
#define CRASHES		0			/* of a session's whole cluster */
#endif
#ifndef DROPS
#define DROPS		0
#endif
#ifndef CANCELS
#define CANCELS		0			/* of job 2 */
#endif
#ifndef PURGES
#define PURGES		0			/* removals of the head */
#endif
#ifndef RIDES
#define RIDES		0			/* pushers, as bits, whose jobs ride on the head */
#endif
#ifndef GUESSES
#define GUESSES		0			/* pushers need not read the head first */
#endif
#ifndef QUITTERS
#define QUITTERS	0			/* pushers that die before they know */
#endif

#define JOBS		(PRESENT + PUSHES)
#define PUSHERS		2
#define SESSIONS	2
#define ROOM		4			/* requests under way */

/* ---- DynamoDB ---- */

byte	seq;						/* 0: there is no head */
byte	done;
byte	token;
byte	floor;					/* numbers of a resource without a head begin above it */
byte	known_floor;			/* ... as the pushers' cluster knows it */
bit		job[4];			/* is there such an item? */
bit		rider[4];				/* or does it ride on the head? */
byte	pushed[8];				/* by the transaction's token: the number; 0: not applied */
byte	transactions;

/* ---- under way ---- */

#define PUSH		1
#define CLAIM		2
#define COMPLETE	3
#define DROP		4
#define CANCEL		5
#define PURGE		6

#define FIRST		8			/* in a push's n: it has found no head, and n is the floor */
#define number_in(n)	((n) & 7)

typedef request
{
	byte kind;					/* 0: none */
	byte who;					/* pusher or session */
	byte n;						/* the number that its condition names */
	byte t;						/* the token of the lock, or of the transaction */
};
request	way[ROOM];

#define has_room \
	(way[0].kind == 0 || way[1].kind == 0 || way[2].kind == 0 || way[3].kind == 0)

/* ---- who asks ---- */

#define NONE		0			/* no reply */
#define OK			1
#define REFUSED		2

#define IDLE		0
#define LOOKED		1			/* it has read the head, or has the lock */
#define ASKS		2
#define CLAIMED		3
#define WORKS		4
#define COMMITTED	5			/* its cluster's worker completes the job */
#define COMPLETES	6
#define ENDED		7

typedef pusher
{
	byte state;
	byte n;
	byte t;
	byte reply;
	byte found;					/* refused: the head's seq; applied: the job's number */
	byte before;				/* the highest number that was confirmed when it began */
};
pusher	p[PUSHERS];

typedef session
{
	byte state;
	bit locks;					/* it believes in its lock */
	byte t;
	byte n;
	byte reply;
	byte found_done;			/* of the head, in a reply */
	byte found_token;
	bit found_jobs;				/* done < seq */
	bit rides;					/* the next job came with the head */
};
session	s[SESSIONS];

byte	holder;					/* of the lock: a session + 1 */
byte	lock_token;

/* ---- what is promised ---- */

byte	confirmed;				/* the highest number that a pusher knows of */
byte	claims_to;				/* the highest token that has claimed */
byte	worked[4];		/* how often the job's work was committed */
bit		dropped[4];
bit		cancelled[4];
byte	drop_state;
byte	drop_n;
byte	cancel_state;
byte	purges = PURGES;
bit		given[4];				/* there was a job with this number */
byte	last_given;

byte	faults = FAULTS;
byte	copies = COPIES;
byte	losses = LOSSES;
byte	deaths = DEATHS;
byte	crashes = CRASHES;
byte	quitters = QUITTERS;

/* Scratch, within one step. */
hidden byte	j;
hidden byte	k;

inline must(promise, condition_met)
{
	if
	:: (condition_met) -> skip
	:: else ->
		printf("broken: I%d\n", promise);
		assert(false)
	fi
}

inline send(the_kind, the_who, the_n, the_t)
{
	j = (way[0].kind == 0 -> 0 : (way[1].kind == 0 -> 1 : (way[2].kind == 0 -> 2 : 3)));
	way[j].kind = the_kind;
	way[j].who = the_who;
	way[j].n = the_n;
	way[j].t = the_t
}

/* ---- a pusher ---- */

/* Rule: a repeated push has the same token; another number gets a fresh one. */
inline fresh()
{
	transactions++;
	p[i].t = transactions;
	must(0, transactions < 8)
}

/* DynamoDB knows a transaction's token for ten minutes, and nobody repeats it for so long. */
inline end_pusher()
{
	pushed[p[i].t] = 0;
	p[i].state = ENDED;
	p[i].n = 0;
	p[i].t = 0;
	p[i].reply = NONE;
	p[i].found = 0;
	p[i].before = 0
}

/* Rule: without a head, numbers begin above the floor. */
#ifdef PURGED_WITHOUT_FLOOR
#define after(head_seq)	(head_seq > 0 -> head_seq : FIRST)
#else
#define after(head_seq)	(head_seq > 0 -> head_seq : known_floor | FIRST)
#endif

proctype a_pusher(byte i)
{
end:
	do
	:: d_step { p[i].state == IDLE ->
			p[i].n = after(seq);
			p[i].before = confirmed;
			fresh();
			p[i].state = LOOKED }
#if GUESSES
	/*
	 * Rule: a guess is a number that the head has had; the condition refuses it.  For 0: that there
	 * is no head, as it was.
	 */
	:: d_step { p[i].state == IDLE && seq > (floor > 0) ->
			reached("a push guesses wrong");
			p[i].n = (seq > 1 -> seq - 1 : FIRST);
			p[i].before = confirmed;
			fresh();
			p[i].state = LOOKED }
	:: d_step { p[i].state == IDLE && seq == 0 && last_given > 0 ->
			reached("a push guesses the number of a head that was removed");
			p[i].n = last_given;
			p[i].before = confirmed;
			fresh();
			p[i].state = LOOKED }
#endif
	:: d_step { p[i].state == LOOKED && has_room ->
			printf("pusher %d: pushes after %d, transaction %d\n", i, p[i].n, p[i].t);
			send(PUSH, i, p[i].n, p[i].t);
			p[i].reply = NONE;
			p[i].state = ASKS }
	:: d_step { p[i].state == ASKS && p[i].reply == OK ->
			printf("pusher %d: has number %d\n", i, p[i].found);
			must(4, p[i].found > p[i].before);
			confirmed = (p[i].found > confirmed -> p[i].found : confirmed);
			end_pusher() }
	:: d_step { p[i].state == ASKS && p[i].reply == REFUSED ->
			reached("a push is refused");
			p[i].n = after(p[i].found);
			fresh();
			p[i].state = LOOKED }
	:: d_step { p[i].state == ASKS && p[i].reply == NONE && faults > 0 ->
			faults--;
			printf("pusher %d: no reply\n", i);
#ifdef PUSHED_ANEW
			p[i].n = after(seq);
			fresh();
#endif
			p[i].state = LOOKED }
	:: d_step { p[i].state == ASKS && quitters > 0 ->
			quitters--;
			printf("pusher %d: dies\n", i);
			end_pusher() }
	od
}

/* ---- a session ---- */

inline unlock()
{
	holder = (holder == i + 1 -> 0 : holder);
	s[i].locks = 0
}

inline forget()
{
	s[i].state = IDLE;
	s[i].t = 0;
	s[i].n = 0;
	s[i].reply = NONE;
	s[i].found_done = 0;
	s[i].found_token = 0;
	s[i].found_jobs = 0;
	s[i].rides = 0
}

/* I1: who works has the lock, and nobody else works. */
#define works(i)	(s[i].state == WORKS && s[i].locks)

proctype a_session(byte i)
{
end:
	do
	:: d_step { s[i].state == IDLE && holder == 0 && done < seq ->
			lock_token++;
			must(0, lock_token < 200);
			holder = i + 1;
			s[i].locks = 1;
			s[i].t = lock_token;
			printf("session %d: lock, token %d\n", i, s[i].t);
			s[i].state = LOOKED }
	:: d_step { s[i].state == LOOKED && has_room ->
			printf("session %d: claims\n", i);
			send(CLAIM, i, 0, s[i].t);
			s[i].reply = NONE;
			s[i].state = ASKS }

	/*
	 * Rule: refused by our own token, it was an earlier copy that claimed; and there is
	 * still a job.
	 */
#ifdef CLAIMED_WHAT_WAS_DROPPED
#define earlier_copy	(s[i].found_token == s[i].t)
#else
#define earlier_copy	(s[i].found_token == s[i].t && s[i].found_jobs)
#endif
	:: d_step { s[i].state == ASKS && s[i].reply != NONE ->
			if
			:: s[i].reply == OK || earlier_copy ->
				if
				:: s[i].reply == REFUSED -> reached("an earlier copy has claimed")
				:: else -> skip
				fi;
				s[i].n = s[i].found_done + 1;
				s[i].state = CLAIMED
			:: else ->
				unlock();
				forget()
			fi }
	:: d_step { s[i].state == ASKS && s[i].reply == NONE && faults > 0 ->
			faults--;
			s[i].state = LOOKED }

	/*
	 * Rule: the job goes out only under a valid lease: as it rode on the head when that was claimed,
	 * or after its item was read.
	 */
#ifdef RIDER_IGNORED
#define has_job	(job[s[i].n])
#else
#define has_job	(s[i].rides || job[s[i].n])
#endif
	:: d_step { s[i].state == CLAIMED ->
			if
#ifndef HANDED_OUT_UNDER_A_LOST_LEASE
			:: !s[i].locks -> forget()
			:: s[i].locks && has_job ->
#else
			:: has_job ->
#endif
				printf("session %d: works on job %d\n", i, s[i].n);
				must(1, s[i].locks && !works(1 - i));
				must(7, !cancelled[s[i].n]);
				s[i].state = WORKS
			:: else ->
				reached("a claimed job is not there");
				s[i].state = COMMITTED
			fi }

	/* Its transaction commits; the guard refuses that if the lease is lost. */
	:: d_step { s[i].state == WORKS ->
			if
			:: s[i].locks ->
				printf("session %d: commits job %d\n", i, s[i].n);
				worked[s[i].n]++;
				must(6, worked[s[i].n] == 1 || losses < LOSSES || deaths < DEATHS ||
					 crashes < CRASHES);
				s[i].state = COMMITTED
			:: else -> forget()
			fi }
#ifdef COMPLETED_BEFORE_COMMIT
	:: d_step { s[i].state == WORKS && s[i].locks -> s[i].state = COMMITTED }
#endif

	/* Rule: the worker repeats the completion until its outcome is known. */
	:: d_step { s[i].state == COMMITTED && has_room ->
			printf("session %d: completes job %d\n", i, s[i].n);
			send(COMPLETE, i, s[i].n, s[i].t);
			s[i].reply = NONE;
			s[i].state = COMPLETES }
	:: d_step { s[i].state == COMPLETES && s[i].reply != NONE ->
			if
			:: s[i].reply == REFUSED && s[i].found_done < s[i].n ->
				reached("an old token is refused")
			:: else -> skip
			fi;
			unlock();
			forget() }
	:: d_step { s[i].state == COMPLETES && s[i].reply == NONE && faults > 0 ->
			faults--;
			printf("session %d: no reply\n", i);
#ifdef UNKNOWN_COMPLETION_GIVEN_UP
			unlock();
			forget()
#else
			s[i].state = COMMITTED
#endif
		}

	/* Its lock is lost. */
	:: d_step { s[i].locks && losses > 0 ->
			losses--;
			printf("session %d: loses its lock\n", i);
			unlock() }

	/* It dies.  Rule: what it has committed, its worker completes. */
	:: d_step { s[i].state != IDLE && (deaths > 0 || crashes > 0) ->
			printf("session %d: dies\n", i);
			unlock();
			if
			:: deaths > 0 ->
				deaths--;
				if
				:: s[i].state == COMMITTED || s[i].state == COMPLETES ->
					reached("a session dies after its commit")
				:: else -> forget()
				fi
			:: else ->
				crashes--;
				if
				:: worked[s[i].n] > 0 && s[i].n > 0 ->
					reached("a cluster dies after a commit")
				:: else -> skip
				fi;
				forget()
			fi }
	od
}

/* ---- operators ---- */

proctype dropper()
{
end:
	do
	:: d_step { drop_state == IDLE && seq > done ->
			drop_n = seq;
			drop_state = LOOKED }
	:: d_step { drop_state == LOOKED && has_room ->
			printf("operator: drops up to %d\n", drop_n);
			send(DROP, 0, drop_n, 0);
			drop_state = ENDED }
	od
}

proctype canceller()
{
end:
	do
	:: d_step { cancel_state == IDLE && seq >= 2 && has_room ->
			printf("operator: cancels job 2\n");
			send(CANCEL, 0, 2, 0);
			cancel_state = ENDED }
	od
}

/*
 * Rule: the floor is raised to the head's last number first.  The head is removed when nobody knows a lower
 * floor, and no push that found no head is under way: here when that is so, in the code after a time.
 */
#define first(a)	(way[a].kind == PUSH && (way[a].n & FIRST))
#ifdef PURGED_AT_ONCE
#define floor_counts	1
#else
#define floor_counts	(known_floor == floor && !((p[0].n | p[1].n) & FIRST) && \
						 !first(0) && !first(1) && !first(2) && !first(3))
#endif

proctype purger()
{
end:
	do
	:: d_step { purges > 0 && seq > floor && done == seq ->
			printf("operator: raises the floor to %d\n", seq);
			floor = seq }
	:: d_step { known_floor < floor -> known_floor = floor }
#ifdef PURGED_WITHOUT_FLOOR
	:: d_step { purges > 0 && seq > 0 && done == seq && has_room ->
#else
	:: d_step { purges > 0 && seq > 0 && seq <= floor && done == seq && floor_counts && has_room ->
#endif
			purges--;
			printf("operator: removes the head after %d\n", seq);
			send(PURGE, 0, seq, 0) }
	od
}

/* ---- DynamoDB ---- */

/* Rule: a push names the head's number, so one that is late pushes nothing. */
#ifdef PUSH_WITHOUT_SEQ
#define may_push	(!job[number_in(way[k].n) + 1] && !rider[number_in(way[k].n) + 1])
#else
#define may_push	(seq == (way[k].n & FIRST -> 0 : way[k].n))
#endif

inline apply_push()
{
	if
	:: pushed[way[k].t] > 0 ->		/* it knows the token */
		j = OK
	:: pushed[way[k].t] == 0 && may_push ->
		must(5, seq == 0 || seq == way[k].n);
		done = (seq == 0 -> number_in(way[k].n) : done);
		seq = number_in(way[k].n) + 1;
		printf("DynamoDB: job %d\n", seq);
		must(5, seq <= JOBS && !given[seq]);		/* nothing is pushed twice */
		if
		:: last_given > 0 && done == last_given && token == 0 -> reached("a push after a removal")
		:: else -> skip
		fi;
		given[seq] = 1;
		last_given = seq;
		job[seq] = !((RIDES >> way[k].who) & 1);
		rider[seq] = !job[seq];
		pushed[way[k].t] = seq;
		j = OK
	:: else -> j = REFUSED
	fi;
	if
	:: p[way[k].who].state == ASKS && p[way[k].who].t == way[k].t ->
		p[way[k].who].reply = j;
		p[way[k].who].found = (j == OK -> pushed[way[k].t] : seq)
	:: else -> skip
	fi
}

/* Rule: a claim's token is above the head's; so one that is late claims nothing. */
#ifdef CLAIM_OF_ANY_TOKEN
#define may_claim	(done < seq)
#else
#define may_claim	(done < seq && token < way[k].t)
#endif

/* Rule: a completion has the claim's token, and the next number. */
#ifdef COMPLETION_WITHOUT_TOKEN
#define may_complete	(done == way[k].n - 1)
#else
#ifdef COMPLETION_WITHOUT_NUMBER
#define may_complete	(token == way[k].t)
#else
#define may_complete	(token == way[k].t && done == way[k].n - 1)
#endif
#endif

inline answer_session()
{
	if
	:: s[way[k].who].t == way[k].t &&
	   ((way[k].kind == CLAIM && s[way[k].who].state == ASKS) ||
		(way[k].kind == COMPLETE && s[way[k].who].state == COMPLETES)) ->
		s[way[k].who].reply = j;
		s[way[k].who].found_done = done;
		s[way[k].who].found_token = token;
		s[way[k].who].found_jobs = (done < seq);
		s[way[k].who].rides = (way[k].kind == CLAIM && done < seq && rider[done + 1])
	:: else -> skip
	fi
}

inline apply_claim()
{
	if
	:: may_claim ->
		token = way[k].t;
		claims_to = (claims_to > way[k].t -> claims_to : way[k].t);
		j = OK
	:: else -> j = REFUSED
	fi;
	answer_session()
}

inline apply_complete()
{
	if
	:: may_complete ->
		printf("DynamoDB: job %d is done\n", way[k].n);
		must(3, way[k].t == claims_to);
		must(2, worked[way[k].n] > 0 || cancelled[way[k].n]);
		must(5, way[k].n > done);
		done = way[k].n;
		job[done] = 0;
		rider[done] = 0;
		j = OK
	:: else -> j = REFUSED
	fi;
	answer_session()
}

/* Rule: a drop takes only jobs that its sender has seen. */
#ifdef DROP_UNCONDITIONAL
#define may_drop	(done < seq)
#else
#define may_drop	(done < seq && seq == way[k].n)
#endif

inline apply_drop()
{
	if
	:: may_drop ->
		printf("DynamoDB: dropped\n");
		must(2, seq <= way[k].n);
		for (j : 1 .. JOBS) {
			if
			:: j > done && j <= seq ->
				dropped[j] = 1;
				job[j] = 0;
				rider[j] = 0
			:: else -> skip
			fi
		}
		done = seq;
		if
		:: s[0].state == WORKS || s[1].state == WORKS -> reached("a running job is dropped")
		:: else -> skip
		fi
	:: else -> skip
	fi
}

/* Rule: a job is cancelled only while it is not the next one. */
#ifdef CANCEL_OF_THE_NEXT
#define may_cancel	(done < way[k].n && (job[way[k].n] || rider[way[k].n]))
#else
#define may_cancel	(done + 1 < way[k].n && (job[way[k].n] || rider[way[k].n]))
#endif

inline apply_cancel()
{
	if
	:: may_cancel ->
		printf("DynamoDB: job %d is cancelled\n", way[k].n);
		job[way[k].n] = 0;
		rider[way[k].n] = 0;
		cancelled[way[k].n] = 1;
		must(7, (s[0].state != WORKS || s[0].n != way[k].n) &&
			 (s[1].state != WORKS || s[1].n != way[k].n))
	:: else -> skip
	fi
}

/* Rule: a head is removed only if no number was given since it was seen empty. */
#ifdef PURGED_ANY_HEAD
#define may_purge	(seq > 0)
#else
#define may_purge	(seq > 0 && seq == way[k].n)
#endif

inline apply_purge()
{
	if
	:: may_purge ->
		printf("DynamoDB: the head is gone\n");
		must(2, done == seq);
		seq = 0;
		done = 0;
		token = 0
	:: else ->
		if
		:: seq > 0 -> reached("a removal comes too late")
		:: else -> skip
		fi
	fi
}

#define serve(the_slot) \
	:: d_step { way[the_slot].kind != 0 && copies > 0 -> \
				copies--; k = the_slot; apply(); k = 0; j = 0 } \
	:: d_step { way[the_slot].kind != 0 -> \
				k = the_slot; apply(); \
				way[k].kind = 0; way[k].who = 0; way[k].n = 0; way[k].t = 0; \
				k = 0; j = 0 }

inline apply()
{
	if
	:: way[k].kind == PUSH -> apply_push()
	:: way[k].kind == CLAIM -> apply_claim()
	:: way[k].kind == COMPLETE -> apply_complete()
	:: way[k].kind == DROP -> apply_drop()
	:: way[k].kind == CANCEL -> apply_cancel()
	:: way[k].kind == PURGE -> apply_purge()
	fi
}

proctype dynamodb()
{
end:
	do
	serve(0)
	serve(1)
	serve(2)
	serve(3)
	od
}

/* Nothing can happen any more.  Then all that was pushed is worked on, or was taken out. */
#define is_gone(n)	(last_given < n || worked[n] > 0 || dropped[n] || cancelled[n])

proctype drained()
{
	timeout ->
		must(2, last_given >= confirmed);
#if WORKERS
		must(5, done == seq && !job[1] && !job[2] && !job[3]);
		must(2, is_gone(1) && is_gone(2) && is_gone(3))
#endif
}

init
{
	atomic
	{
		seq = PRESENT;
		confirmed = PRESENT;
		last_given = PRESENT;
		given[1] = (PRESENT > 0);
		given[2] = (PRESENT > 1);
		job[1] = (PRESENT > 0);
		job[2] = (PRESENT > 1);
#if PUSHES > 0
		run a_pusher(0);
#endif
#if PUSHES > 1
		run a_pusher(1);
#endif
#if WORKERS > 0
		run a_session(0);
#endif
#if WORKERS > 1
		run a_session(1);
#endif
#if DROPS
		run dropper();
#endif
#if CANCELS
		run canceller();
#endif
#if PURGES
		run purger();
#endif
		run dynamodb();
		run drained()
	}
}
