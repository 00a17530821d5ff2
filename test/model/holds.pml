/*-------------------------------------------------------------------------
 *
 * holds.pml
 *	  A model of one cluster's lease and its sessions' holds in shared memory:
 *	  the worker grants holds on one lease without a request, and may die
 *	  between any two of its steps; the next worker adopts what stands in
 *	  shared memory.  A session may join another one's hold, and may give its
 *	  hold to the cluster: then somebody outside believes in it.  With LEADERSHIP,
 *	  session 0 is the cluster's leadership, and who joins is a leader's transaction.
 *
 * DynamoDB is one step here: the lease is acquired, renewed or over, and another
 * cluster may have the lock only when it is over.  That this is so, also with
 * blocks of tokens, is for lock.pml to show (BLOCK=2).
 *
 * Each step reads or writes one thing in shared memory, such as an entry.  Time
 * is counted as in lock.pml.  A comment "Rule:" gives the rule that a step
 * stands for; the names in #ifdef are seeded bugs.
 *
 *-------------------------------------------------------------------------
 */

#include "reached.pml"

/* ---- bounds ---- */

#define SESSIONS	3
#ifndef OPS_0
#define OPS_0		1			/* lock operations of the sessions */
#endif
#ifndef OPS_1
#define OPS_1		1
#endif
#ifndef OPS_2
#define OPS_2		1
#endif
#ifndef DEATHS
#define DEATHS		1			/* of the worker */
#endif
#ifndef RENEWALS
#define RENEWALS	1
#endif
#ifndef LEASES
#define LEASES		2			/* acquired one after the other */
#endif
#ifndef FOREIGN
#define FOREIGN		1			/* grants to the other cluster */
#endif
#ifndef JOINS
#define JOINS		0			/* requests to join a hold, among the operations */
#endif
#ifndef DETACHES
#define DETACHES	0			/* holds that are given to the cluster */
#endif
#ifndef ENDS
#define ENDS		0			/* sessions that end in the middle of that */
#endif

#ifndef INTERRUPTS
#define INTERRUPTS	0			/* of those who have joined a leadership that has ended */
#endif

#define LEASE		2			/* ticks, less the margin */
#define BLOCK		2			/* tokens */

/* ---- shared memory ---- */

/* The lease's slot.  Generation 0: free. */
byte	generation;
byte	valid_until;			/* timer */
bit		lost;					/* its holders must acknowledge that */
byte	next_token;				/* of the block; above last_token: used up */
byte	last_token;

/*
 * Rule: the directory has an entry for each hold: one for each session, as a
 * session has at most one hold on a lock.
 */
typedef hold
{
	byte request;				/* 0: there is no hold */
	byte token;
};
hold	held[SESSIONS];

/* The hold that a session has given to the cluster; request 0: there is none. */
byte	detached_by;
byte	detached_request;
byte	detached_token;

/* Between a session and the worker. */
typedef session
{
	byte request;				/* what it waits for, or has; 0: nothing */
	byte answered;				/* the request that the worker has answered ... */
	byte token;					/* ... with this token ... */
	byte generation;			/* ... and generation */
	byte let_go;				/* the request whose hold it has ended */
	byte join;					/* it wants to join the hold with this token ... */
	bit late;					/* ... after the leadership has given that up */
	bit detach;					/* it wants the cluster to have its hold ... */
	bit detached;				/* ... which the worker has answered */
	bit ended;					/* the slot's last session has ended */
	bit in;						/* it has read the answer: it believes */
	byte todo;
	byte asked;
};
session	s[SESSIONS];
#ifdef LET_GO_BY_ENTRY
bit		let_go;					/* one flag, in the lock's one entry */
#endif

/* ---- who works under a detached hold, outside of the cluster ---- */

bit		out_in;					/* it believes, ... */
byte	out_token;
byte	out_until;				/* timer: ... until the deadline that it was told */
byte	out_generation;
byte	out_release;			/* the token whose hold it wants to end */

/* ---- the rest of the world ---- */

byte	highest_token;			/* that DynamoDB has */
byte	granted_token;
bit		foreign;				/* the other cluster has the lock */
byte	generations;
byte	deaths = DEATHS;
byte	renewals = RENEWALS;
byte	leases = LEASES;
byte	foreigners = FOREIGN;
byte	joins = JOINS;
byte	detaches = DETACHES;
byte	ends = ENDS;
byte	interrupts = INTERRUPTS;
bit		given_back;				/* the item is released, and belief goes on */

/* Scratch, within one step. */
hidden byte	j;

/* Rule: a session believes in a hold on this lease, before the deadline. */
#define believes(i) \
	(s[i].in && s[i].generation == generation && valid_until > 0)
#define out_believes	(out_in && out_until > 0)
#define nobody_believes \
	(!believes(0) && !believes(1) && !believes(2) && !out_believes)

/* Rule: whoever joins a hold has its token, so all who believe have one token. */
#define has_no_other(i, the_token)	(!believes(i) || s[i].token == the_token)
#define nobody_has_another(the_token) \
	(has_no_other(0, the_token) && has_no_other(1, the_token) && \
	 has_no_other(2, the_token) && (!out_believes || out_token == the_token))

/*
 * The leadership is a session whose hold others join as leader's transactions; while the
 * leadership itself has it, the cluster leads.
 */
#ifdef LEADERSHIP
#define is_leadership(i)		(i == 0)
#define leads(the_token)	(held[0].request != 0 && held[0].token == the_token)
#else
#define is_leadership(i)		false
#define leads(the_token)	true
#endif

#define entries \
	((held[0].request != 0) + (held[1].request != 0) + (held[2].request != 0) + \
	 (detached_request != 0))

inline must(promise, condition_met)
{
	if
	:: (condition_met) -> skip
	:: else ->
		printf("broken: I%d\n", promise);
		assert(false)
	fi
}

/* ---- a session ---- */

proctype a_session(byte i)
{
	bit truly;

end:
	do
	/* It asks.  Rule: no other request of the session has the same number. */
	:: d_step { s[i].request == 0 && s[i].todo > 0 ->
			s[i].todo--;
			s[i].asked++;
			s[i].request = s[i].asked;
			printf("session %d: request %d\n", i, s[i].request) }

	/* The same, to join the hold with a token that it has heard of. */
	:: d_step { s[i].request == 0 && s[i].todo > 0 && joins > 0 && granted_token > 0 &&
			!is_leadership(i) ->
			joins--;
			s[i].todo--;
			s[i].asked++;
			s[i].request = s[i].asked;
			s[i].join = granted_token;
			s[i].late = !leads(granted_token);
			printf("session %d: request %d, joins %d\n", i, s[i].request, s[i].join) }

	/* It reads the answer, and believes from then on. */
	:: d_step { s[i].request != 0 && !s[i].in && !s[i].detach &&
			s[i].answered == s[i].request ->
			s[i].in = 1;
			printf("session %d: has token %d\n", i, s[i].token);
			if
			:: believes(i) ->
				must(1, nobody_has_another(s[i].token) && !foreign);
				if
				:: s[i].join != 0 ->
					must(2, s[i].token == granted_token);
					must(9, !s[i].late);
					reached("a session has joined a hold")
				:: else ->
					must(2, s[i].token > granted_token);
					granted_token = s[i].token;
					reached("a session has a hold")
				fi
			:: else -> reached("an answer comes after the deadline")
			fi }

	/*
	 * It lets go, or acknowledges a loss, or no longer wants what it waits for:
	 * then it cannot know whether the worker has just granted it.  Rule: it
	 * names itself and the request.
	 */
	:: d_step { s[i].request != 0 && s[i].let_go == 0 ->
			printf("session %d: lets go of request %d\n", i, s[i].request);
			s[i].in = 0;
			s[i].token = 0;
			s[i].generation = 0;
			s[i].let_go = s[i].request;
			s[i].request = 0;
			s[i].join = 0;
			s[i].late = 0;
			s[i].detach = 0;
			s[i].detached = 0;
#ifdef LET_GO_BY_ENTRY
			let_go = 1
#endif
		}

	/*
	 * It gives its hold to the cluster, and reads the answer.  Rule: it does not
	 * believe any more when it asks; if it cancels that, the hold has ended.
	 */
	:: d_step { s[i].in && s[i].let_go == 0 && !out_in && detaches > 0 ->
			detaches--;
			s[i].in = 0;
			s[i].detach = 1;
			printf("session %d: detaches\n", i) }
	:: d_step { s[i].detached && !out_in ->
			printf("outside: token %d\n", s[i].token);
			out_in = 1;
			out_token = s[i].token;
			out_generation = s[i].generation;
			out_until = (s[i].generation == generation -> valid_until : 0);
			if
			:: out_believes ->
				must(1, nobody_has_another(out_token) && !foreign);
				must(2, out_token == granted_token);
				reached("a detached hold")
			:: else -> skip
			fi;
			s[i].token = 0;
			s[i].generation = 0;
			s[i].request = 0;
			s[i].join = 0;
			s[i].detach = 0;
			s[i].detached = 0 }

	/* It ends instead.  Rule: an ending session cancels what it has not taken. */
	:: d_step { s[i].detach && s[i].let_go == 0 && !s[i].ended && ends > 0 ->
			ends--;
			printf("session %d: ends, lets go of request %d\n", i, s[i].request);
			s[i].token = 0;
			s[i].generation = 0;
			s[i].let_go = s[i].request;
			s[i].request = 0;
			s[i].join = 0;
			s[i].detach = 0;
			s[i].detached = 0;
			s[i].ended = 1 }

	/*
	 * The commit guard.  Rule: it reads the deadline, then the generation.  If
	 * both are right, then it did hold the lock when it read the first one.
	 */
#ifdef GENERATION_FIRST
	:: d_step { s[i].in && s[i].generation == generation -> skip };
		d_step {
			must(3, !s[i].in || valid_until == 0 || believes(i)) }
#else
	:: d_step { s[i].in && valid_until > 0 -> truly = believes(i) };
		d_step {
			must(3, !s[i].in || s[i].generation != generation || truly);
			truly = 0 }
#endif
	od
}

/* ---- the worker ---- */

/* Its own memory, which dies with it: the grant that it is making. */
#define NO_GRANT		0
#define RESERVED		1		/* the token is the grantee's */
#define ANSWERED_EARLY	2
byte	step;
byte	grantee;
byte	grant_request;
byte	grant_token;

#define waits(i)		(s[i].request != 0 && s[i].answered != s[i].request)
#define some_wait		(waits(0) || waits(1) || waits(2))
#define leased			(generation != 0 && !lost)

/* Rule: the lock passes on when all who have it have let go. */
#ifdef FREE_WHEN_ONE_LETS_GO
#define has_taken(i)	(held[i].request != 0 && s[i].join == 0)
#define is_free \
	(!has_taken(0) && !has_taken(1) && !has_taken(2) && detached_request == 0)
#else
#define is_free			(entries == 0)
#endif

/* Rule: a hold is granted before the deadline, with a token of the block. */
#define may_grant \
	(step == NO_GRANT && leased && valid_until > 0 && is_free && \
	 next_token != 0 && next_token <= last_token)

inline save_hold()
{
	printf("worker: saves session %d's hold\n", grantee);
	held[grantee].request = grant_request;
	held[grantee].token = grant_token;
#ifdef LET_GO_BY_ENTRY
	let_go = 0
#endif
}

inline answer(i, the_request, the_token)
{
	printf("worker: answers session %d, token %d\n", i, the_token);
	s[i].answered = the_request;
	s[i].token = the_token;
	s[i].generation = generation
}

inline end_grant()
{
	step = NO_GRANT;
	grantee = 0;
	grant_request = 0;
	grant_token = 0
}

inline drop_block()
{
#ifdef BLOCK_OUTLIVES_LEASE
	skip
#else
	next_token = 0;
	last_token = 0
#endif
}

/* The first step of a grant; the advanced token is saved before all else. */
#define grant_to(i) \
	:: d_step { may_grant && waits(i) && s[i].join == 0 -> \
				grantee = i; \
				grant_request = s[i].request; \
				grant_token = next_token; \
				if \
				:: next_token == last_token -> \
					reached("a second session on one lease") \
				:: else -> skip \
				fi; \
				reserve_token(); \
				step = RESERVED }

/*
 * Rule: hold, token and the advanced next token are saved before the session is
 * answered.
 */
#ifdef ANSWERED_BEFORE_SAVED
#define reserve_token()	skip
#define finish_grant \
	:: d_step { step == RESERVED -> \
				answer(grantee, grant_request, grant_token); \
				step = ANSWERED_EARLY } \
	:: d_step { step == ANSWERED_EARLY -> \
				next_token++; \
				save_hold(); \
				end_grant() }
#else
#define reserve_token()	next_token++
#define finish_grant \
	:: d_step { step == RESERVED -> save_hold(); end_grant() }
#endif

/* A hold that is saved is answered; by the next worker, if need be. */
#define answer_hold(i) \
	:: d_step { step == NO_GRANT && held[i].request != 0 && \
				held[i].request == s[i].request && \
				s[i].answered != s[i].request -> \
				answer(i, held[i].request, held[i].token) }

/*
 * Rule: a session joins a hold that has the token which it names, while the lease
 * is valid.
 */
#ifdef JOIN_UNDER_OLD_TOKEN
#define has_token(the_token)	(entries > 0)
#else
#define has_token(the_token) \
	((held[0].request != 0 && held[0].token == the_token) || \
	 (held[1].request != 0 && held[1].token == the_token) || \
	 (held[2].request != 0 && held[2].token == the_token) || \
	 (detached_request != 0 && detached_token == the_token))
#endif
/* Rule: a leader's transaction joins the leadership's own hold. */
#ifdef LEAD_AFTER_GIVING_UP
#define may_lead(the_token)	true
#else
#define may_lead(the_token)	leads(the_token)
#endif
#define join_hold(i) \
	:: d_step { step == NO_GRANT && leased && valid_until > 0 && waits(i) && \
				held[i].request == 0 && s[i].join != 0 && has_token(s[i].join) && \
				may_lead(s[i].join) -> \
				printf("worker: saves session %d's hold\n", i); \
				if \
				:: detached_request != 0 && detached_token == s[i].join -> \
					reached("a session joins a detached hold") \
				:: is_leadership(0) && held[3 - i].request != 0 -> \
					reached("two transactions of a leader") \
				:: else -> skip \
				fi; \
				held[i].request = s[i].request; \
				held[i].token = s[i].join }

/* Rule: the cluster has the hold, under the name of who gave it, in one step. */
#define detach_hold(i) \
	:: d_step { step == NO_GRANT && leased && held[i].request != 0 && \
				s[i].detach && held[i].request == s[i].request && \
				detached_request == 0 -> \
				printf("worker: detaches session %d's hold\n", i); \
				detached_by = i; \
				detached_request = held[i].request; \
				detached_token = held[i].token; \
				held[i].request = 0; \
				held[i].token = 0 } \
	:: d_step { step == NO_GRANT && is_detached(i) && s[i].detach && \
				detached_request == s[i].request && !s[i].detached -> \
				printf("worker: answers session %d\n", i); \
				s[i].detached = 1 }
#define is_detached(i)	(detached_request != 0 && detached_by == i)

inline end_detached()
{
	printf("worker: ends the detached hold\n");
	detached_by = 0;
	detached_request = 0;
	detached_token = 0
}

/*
 * Rule: it ends by its token (or by its time: outside, belief ends before either).
 * Nobody acknowledges its loss.
 */
#ifdef RELEASE_OF_ANY_TOKEN
#define is_meant	(detached_request != 0)
#else
#define is_meant	(detached_request != 0 && detached_token == out_release)
#endif

/* Rule: what its session did not cancel, the end of another hold does not end. */
#ifdef DETACHED_ENDS_WITH_SESSION
#define is_cancelled(i)	(is_detached(i) && s[i].let_go != 0)
#else
#define is_cancelled(i)	(is_detached(i) && s[i].let_go == detached_request)
#endif

/*
 * Rule: what a session has cancelled ends also if the session has ended, which the
 * worker may read first.
 */
#ifdef CANCELED_DETACH_STAYS
#define read_end(i) \
	if \
	:: held[i].request == s[i].let_go -> \
		held[i].request = 0; \
		held[i].token = 0 \
	:: else -> skip \
	fi; \
	s[i].let_go = 0
#else
#define read_end(i)	skip
#endif

/* I5: no hold is kept that nobody knows of, and nobody has yet to end. */
#ifdef NO_I5
#define must_be_known(i)	skip
#else
#define must_be_known(i) \
	must(5, !is_detached(i) || out_in || out_release != 0 || \
		 (s[i].detach && s[i].request == detached_request) || \
		 s[i].let_go == detached_request)
#endif

/* Rule: a hold ends if its own session has let go of its own request. */
#ifdef LET_GO_BY_ENTRY
#define end_hold(i) \
	:: d_step { step == NO_GRANT && held[i].request != 0 && let_go -> \
				printf("worker: ends session %d's hold\n", i); \
				held[i].request = 0; \
				held[i].token = 0; \
				let_go = 0 } \
	:: d_step { step == NO_GRANT && s[i].let_go != 0 -> s[i].let_go = 0 }
#else
#define end_hold(i) \
	:: d_step { step == NO_GRANT && held[i].request != 0 && \
				s[i].let_go == held[i].request -> \
				printf("worker: ends session %d's hold\n", i); \
				if \
				:: s[i].answered != held[i].request -> \
					reached("a grant crosses with a cancellation") \
				:: else -> skip \
				fi; \
				held[i].request = 0; \
				held[i].token = 0 } \
	:: d_step { step == NO_GRANT && s[i].let_go != 0 && is_cancelled(i) -> \
				end_detached() } \
	:: d_step { step == NO_GRANT && s[i].let_go != 0 && \
				s[i].let_go != held[i].request && !is_cancelled(i) -> \
				s[i].let_go = 0; \
				must_be_known(i) }
#endif
#define end_session(i) \
	:: d_step { step == NO_GRANT && s[i].ended -> \
				s[i].ended = 0; \
				if \
				:: is_detached(i) && s[i].let_go == detached_request -> \
					reached("a session ends while its hold is detached") \
				:: else -> skip \
				fi; \
				read_end(i); \
				must_be_known(i) }

/* Rule: the slot is free again after the last hold has acknowledged the loss. */
#ifdef SLOT_FREED_AT_LOSS
#define may_free	(lost)
#else
#define may_free	(lost && entries == 0)
#endif

#define may_interrupt	(interrupts > 0 && held[0].request == 0 && entries > 0)

inline free_slot()
{
	generation = 0;
	valid_until = 0;
	lost = 0;
	drop_block()
}

proctype worker()
{
end:
	do
	grant_to(0)
	grant_to(1)
	grant_to(2)
	finish_grant
	answer_hold(0)
	answer_hold(1)
	answer_hold(2)
	end_hold(0)
	end_hold(1)
	end_hold(2)
	end_session(0)
	end_session(1)
	end_session(2)
	join_hold(0)
	join_hold(1)
	join_hold(2)
	detach_hold(0)
	detach_hold(1)
	detach_hold(2)
	:: d_step { step == NO_GRANT && out_release != 0 && is_meant ->
			if
			:: entries > 1 -> reached("a joined hold outlives the detached one")
			:: else -> skip
			fi;
			out_release = 0;
			end_detached() }
	:: d_step { step == NO_GRANT && out_release != 0 && !is_meant ->
			out_release = 0 }
	:: d_step { step == NO_GRANT && lost && detached_request != 0 ->
			end_detached() }

	/* The lease. */
	:: d_step { step == NO_GRANT && generation == 0 && leases > 0 && some_wait &&
			!foreign ->
			leases--;
			generations++;
			generation = generations;
			valid_until = LEASE;
			if
			:: granted_token > 0 -> reached("a second lease")
			:: else -> skip
			fi;
			if
			:: next_token == 0 || next_token > last_token ->
				next_token = highest_token + 1;
				last_token = highest_token + BLOCK
			:: else -> skip
			fi;
			highest_token = highest_token + BLOCK;
			printf("worker: has lease %d, tokens to %d\n", generation,
				   last_token) }
	:: d_step { step == NO_GRANT && leased && valid_until > 0 && renewals > 0 ->
			renewals--;
			valid_until = LEASE }
	:: d_step { step == NO_GRANT && leased && entries == 0 && !given_back ->
			printf("worker: releases\n");
			free_slot() }
	:: d_step { step == NO_GRANT && leased && valid_until == 0 ->
			printf("worker: lease lost\n");
			if
			:: entries > 0 -> reached("a lease is lost with a hold on it")
			:: else -> skip
			fi;
			lost = 1 }
	/*
	 * Who has joined a leadership that has ended is interrupted.  Rule: belief ends
	 * first, as in a loss; the item is released when they have acknowledged that.
	 */
#ifdef RELEASED_BEFORE_INTERRUPT
	:: d_step { step == NO_GRANT && leased && may_interrupt ->
			interrupts--;
			given_back = 1 }
	:: d_step { given_back ->
			given_back = 0;
			valid_until = 0;
			lost = 1 }
#else
	:: d_step { step == NO_GRANT && leased && may_interrupt ->
			interrupts--;
			printf("worker: interrupts who has joined\n");
			if
			:: believes(1) && believes(2) -> reached("two are interrupted")
			:: else -> skip
			fi;
			valid_until = 0;
			lost = 1 }
#endif
	:: d_step { step == NO_GRANT && may_free ->
			printf("worker: the slot is free\n");
			for (j : 0 .. SESSIONS - 1) {
				held[j].request = 0;
				held[j].token = 0
			}
			free_slot() }

	/* It dies, and the next one adopts what it finds. */
	:: d_step { deaths > 0 ->
			deaths--;
			printf("worker: dies\n");
			if
			:: step != NO_GRANT -> reached("the worker dies while it grants")
			:: step == NO_GRANT && entries > 0 -> reached("a hold is adopted")
			:: else -> skip
			fi;
			end_grant() }
	od
}

/* ---- the rest of the world ---- */

proctype world()
{
end:
	do
	:: d_step { valid_until > 0 || out_until > 0 ->
			printf("tick\n");
			valid_until = (valid_until > 0 -> valid_until - 1 : 0);
			out_until = (out_until > 0 -> out_until - 1 : 0) }

	/* Outside: it hears of renewals, or wants to end its hold. */
	:: d_step { out_in && out_generation == generation && valid_until > out_until ->
			out_until = valid_until }
	:: d_step { out_in && out_release == 0 ->
			printf("outside: releases token %d\n", out_token);
			out_release = out_token;
			out_in = 0;
			out_token = 0;
			out_until = 0;
			out_generation = 0 }

	/* The other cluster: when our lease is over, and no sooner. */
	:: d_step { foreigners > 0 && !foreign && (valid_until == 0 || given_back) ->
			foreigners--;
			foreign = 1;
			highest_token++;
			printf("the other cluster: token %d\n", highest_token);
			must(1, nobody_believes);
			must(2, highest_token > granted_token);
			granted_token = highest_token;
			if
			:: entries > 0 -> reached("the other cluster has it before a loss is noticed")
			:: else -> skip
			fi }
	:: d_step { foreign -> foreign = 0 }
	od
}

/* I5: nothing can happen any more.  Then nothing is left of any hold. */
proctype drained()
{
	timeout ->
#ifndef NO_I5
		must(5, entries == 0 && generation == 0 && !out_in && out_release == 0 &&
			 s[0].let_go == 0 && s[1].let_go == 0 && s[2].let_go == 0);
#endif
		skip
}

init
{
	atomic
	{
		s[0].todo = OPS_0;
		s[1].todo = OPS_1;
		s[2].todo = OPS_2;
		run a_session(0);
		run a_session(1);
		run a_session(2);
		run worker();
		run world();
		run drained()
	}
}
