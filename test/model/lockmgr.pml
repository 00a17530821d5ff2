/*-------------------------------------------------------------------------
 *
 * lockmgr.pml
 *	  A cluster: its lock manager and its sessions.
 *
 * To be read beside src/lock/lockmgr*.c: the names are the same, and what
 * stands under a file's name models that file.
 *
 *-------------------------------------------------------------------------
 */

/* ---- lockmgr_send.c ---- */

/*
 * Rule: DynamoDB's clock, but above all tokens seen.  The clock is past every
 * token so far, or, in the cluster BEHIND, behind them all.
 */
#define new_token(c) \
	(max(max(k[c].top_token, clock_floor), (c != BEHIND) * highest_token) + 1)

/*
 * Rule: while others wait, a write reserves a block of tokens, for grants that
 * need no request.  A block of two has a first, a last, and an end to miss.
 */
#define others_wait(c) \
	(BLOCK > 1 && todo[2 * (c)] > 0 && todo[2 * (c) + 1] > 0)

inline send(c)
{
	k[c].call = SENT;
#ifdef TAKEOVER_WAIT_FROM_SENDING
	k[c].sent_ago = 0;
#endif
#ifdef DEADLINE_FROM_LAST_COPY
	if
	:: k[c].pending != 0 -> k[c].pending_end = w[k[c].pending].lease
	:: else -> skip
	fi
#endif
}

/*
 * Rule: a release leaves the minimum as it is.  What undoes an acquire that nobody was
 * granted ends it, as does a session that says so.
 */
#ifdef RELEASE_ENDS_KEPT
#define ends_kept(c)	true
#else
#ifdef UNGRANTED_STAYS_KEPT
#define ends_kept(c)	false
#else
#define ends_kept(c)	(k[c].kept == 0 || k[c].ends_kept)
#endif
#endif

/*
 * A write with a fresh nonce leaves for the first time.  Rule: the moment a
 * shorter lease is sent, the old deadline no longer holds.
 */
inline new_write(c, the_op, the_expected, the_lease, the_token, the_keeps)
{
	slot = c * SLOTS + 1;
	do
	:: w[slot].op != NOTHING -> slot++
	:: else -> break
	od;
	assert(slot <= (c + 1) * SLOTS);
	w[slot].owner = c;
	w[slot].expected = the_expected;
	w[slot].lease = the_lease;
	w[slot].first = the_token;
	w[slot].token = the_token + (the_token != 0 && others_wait(c));
	w[slot].op = the_op;
	w[slot].keeps = the_keeps;
	w[slot].kept = the_keeps * AT_LEAST;
	w[slot].ends = the_op == RELEASE && ends_kept(c);
	highest_token = max(highest_token, w[slot].token);
	k[c].pending = slot;
	k[c].pending_end = w[slot].lease;
	k[c].true_pending = less(k[c].pending_end, MARGIN);
	k[c].maybe = 0;
	printf("%d: write %d op %d expects %d lease %d token %d\n", c, slot,
		   w[slot].op, w[slot].expected, w[slot].lease, w[slot].token);
#ifndef SHORTENED_LEASE_BELIEVED_LONG
	if
	:: w[slot].op == RENEW && less(k[c].pending_end, MARGIN) < k[c].deadline ->
		k[c].deadline = less(k[c].pending_end, MARGIN)
	:: else -> skip
	fi;
#endif
	send(c)
}

/*
 * Rule: while a write may have happened, only that write is repeated, with its
 * nonce.  One that certainly did not gets a fresh nonce, token and deadline.
 */
#ifdef RETRY_WITHOUT_NONCE
#define same_nonce(c)	(false)
#else
#define same_nonce(c)	(k[c].maybe)
#endif

inline repeat_write(c)
{
	if
	:: same_nonce(c) ->
		printf("%d: repeats write %d\n", c, k[c].pending);
		send(c)
	:: else ->
		old = k[c].pending;
#ifdef TOKEN_OF_FIRST_ATTEMPT
		new_write(c, w[old].op, w[old].expected, w[old].lease, w[old].first,
				  w[old].keeps)
#else
		new_write(c, w[old].op, w[old].expected, w[old].lease,
				  (w[old].token != 0) * new_token(c), w[old].keeps)
#endif
	fi
}

/* ---- lockmgr_table.c, lockmgr_wait.c ---- */

inline let_go_of_lease(c)
{
	if
	:: k[c].holder != 0 -> todo[k[c].holder - 1]--; k[c].holder = 0
	:: else -> skip
	fi
}

/* Rule: a block of tokens dies with its lease. */
inline drop_block(c)
{
	k[c].next_token = 0;
	k[c].last_token = 0
}

/* Nothing of ours is left in DynamoDB, or nothing that we will touch. */
inline drop_lease(c)
{
	let_go_of_lease(c);
	k[c].state = IDLE;
	k[c].version = 0;
	k[c].deadline = 0;
	k[c].true_deadline = 0;
	k[c].stray = 0;
	k[c].kept = 0;
	k[c].ends_kept = 0;
	drop_block(c);
	k[c].target = 0;
	k[c].pending = 0;
	k[c].pending_end = 0;
	k[c].true_pending = 0;
	k[c].pending_for = 0;
	k[c].maybe = 0
}

#define retire(c, n)	k[c].retired = k[c].retired | (1 << (n))

/*
 * Rule: a foreign version is dead one lease after the reply that first showed
 * it was received.
 */
inline observe(c)
{
	k[c].top_token = max(k[c].top_token, k[c].reply_token);
	k[c].seen_kept = k[c].reply_kept;
	if
	:: k[c].reply_version == 0 || k[c].reply_released ->
		k[c].seen = 0;
		k[c].dead_in = 0
	:: k[c].reply_version != 0 && !k[c].reply_released &&
		k[c].reply_version != k[c].seen ->
		k[c].seen = k[c].reply_version;
#ifdef TAKEOVER_WAIT_FROM_SENDING
		k[c].dead_in = less(w[k[c].seen].lease, k[c].sent_ago)
#else
		k[c].dead_in = w[k[c].seen].lease
#endif
	:: else -> skip
	fi
}

/* Rule: what is dead, or a retired nonce of our own, may be taken over. */
#ifdef DEAD_IS_LEFT_ALONE
#define dead(c)			(false)
#else
#define dead(c)			(k[c].dead_in == 0)
#endif

#define overwritable(c) \
	(k[c].seen != 0 && \
	 (dead(c) || (w[k[c].seen].owner == c && in_set(k[c].retired, k[c].seen))))

/* Would DynamoDB grant it, as far as we know? */
#define ready(c)	((k[c].seen == 0 || overwritable(c)) && k[c].seen_kept == 0)

inline acquire_refused(c)
{
	if
	:: k[c].maybe -> retire(c, k[c].pending)
	:: else -> skip
	fi;
	is_done = k[c].pending_for != 0;
	drop_lease(c);
	observe(c);
	if
	:: is_done && !ready(c) ->
		if
		:: k[c].seen_kept > 0 -> reached("an acquire is refused because the lock is kept")
		:: else -> skip
		fi;
		k[c].state = POLLING
	:: else -> skip				/* the next one tries, with a higher token */
	fi
}

/* ---- lockmgr_lease.c ---- */

/* The block's next token is granted.  Rule: the block has an end. */
inline use_token(c)
{
#ifdef BLOCK_PAST_ITS_END
	k[c].next_token++
#else
	k[c].next_token = (k[c].next_token < k[c].last_token) * k[c].last_token;
	k[c].last_token = (k[c].next_token != 0) * k[c].last_token
#endif
}

/* Rule: the deadline counts from before the write's first copy was sent. */
inline written(c)
{
#ifdef DEADLINE_FROM_RESPONSE
	k[c].pending_end = w[k[c].pending].lease;
#endif
	k[c].version = k[c].pending;
	k[c].deadline = less(k[c].pending_end, MARGIN);
	k[c].true_deadline = k[c].true_pending;
	k[c].top_token = max(k[c].top_token, w[k[c].pending].token);
	if
	:: w[k[c].pending].op != RENEW ->
		k[c].kept = w[k[c].pending].kept;
		k[c].ends_kept = 0
	:: else -> skip
	fi;
	if
	:: BLOCK > 1 && w[k[c].pending].token != 0 ->
		k[c].next_token = w[k[c].pending].first;
		k[c].last_token = w[k[c].pending].token
	:: else -> skip
	fi;
	k[c].pending = 0;
	k[c].pending_end = 0;
	k[c].true_pending = 0;
	k[c].maybe = 0
}

/* Rule: a write that is settled after its deadline grants nothing. */
inline grant_or_pass_on(c)
{
	if
	:: k[c].pending_for != 0 && k[c].deadline > 0 ->
		printf("%d: granted to session %d, version %d\n", c,
			   k[c].pending_for - 1, k[c].version);
		k[c].holder = k[c].pending_for;
		k[c].state = HELD;
		k[c].seen = 0;
		k[c].dead_in = 0;
		check_exclusive(c);
		check_deadline(c);
		if
		:: !in_set(overruled, k[c].version) ->
			check_token(w[k[c].version].first);
			granted_token = w[k[c].version].first
		:: else -> skip
		fi;
		check_kept();
		promised = k[c].kept;
		use_token(c)
	:: else ->
		if
		:: k[c].kept > 0 -> reached("a lock is kept, and was never granted")
		:: else -> skip
		fi;
		k[c].ends_kept = 1;
		k[c].state = PASSING_ON
	fi;
	k[c].pending_for = 0
}

inline lose_unreachable(c)
{
	printf("%d: lost, unreachable\n", c);
	k[c].state = LOST;
	drop_block(c);
	k[c].stray = k[c].pending
}

/*
 * The session has acknowledged the loss, or the lease has ended: release.  A
 * renewal that nobody settled may stand in the item.
 */
inline to_release(c, the_target)
{
	k[c].target = the_target;
	drop_block(c);
	let_go_of_lease(c);
	k[c].deadline = 0;
	k[c].true_deadline = 0;
	k[c].pending = 0;
	k[c].pending_end = 0;
	k[c].true_pending = 0;
	k[c].pending_for = 0;
	k[c].maybe = 0;
	k[c].state = TO_RELEASE
}

/* ---- lockmgr_reply.c: what came of a call ---- */

/* Rule: refused by our own pending nonce: an earlier copy has succeeded. */
#define refused(c) \
	(!k[c].reply_ok && (k[c].reply_released || \
						k[c].reply_version != k[c].pending))

inline acquire_settled(c)
{
	if
	:: refused(c) -> acquire_refused(c)
	:: else ->
		written(c);
		grant_or_pass_on(c)
	fi
}

inline hand_over_settled(c)
{
	if
	:: refused(c) ->
		check_taken(c);
		check_released(c);
		drop_lease(c);
		observe(c)
	:: else ->
		written(c);
		grant_or_pass_on(c)
	fi
}

inline renewal_settled(c)
{
	is_done = !refused(c);
	/* Rule: too late is too late, even if the timer was later still. */
	if
	:: has(c) && k[c].deadline == 0 -> lose_unreachable(c)
	:: else -> skip
	fi;
	if
	:: is_done && k[c].state == RENEWING && k[c].holder != 0 ->
		written(c);
		if
		:: k[c].deadline > 0 ->
			k[c].state = HELD;
			check_exclusive(c);
			check_deadline(c)
		:: else -> lose_unreachable(c)
		fi
	:: is_done && k[c].state == RENEWING && k[c].holder == 0 ->
		written(c);
		k[c].state = PASSING_ON
	:: is_done && k[c].state == LOST ->
		written(c);
		k[c].stray = 0;
		if
		:: k[c].holder == 0 -> to_release(c, k[c].version)
		:: else -> skip
		fi
	:: !is_done ->
		if
		:: k[c].state == RENEWING -> check_taken(c)
		:: else -> skip
		fi;
		drop_lease(c);
		observe(c)
	fi
}

inline release_settled(c)
{
	if
	:: !k[c].reply_ok && k[c].stray != 0 && !k[c].reply_released &&
		k[c].reply_version == k[c].stray ->
		/* A renewal that nobody settled has succeeded: release that. */
		k[c].target = k[c].stray;
		k[c].stray = 0;
		k[c].pending = 0;
		k[c].pending_end = 0;
		k[c].true_pending = 0;
		k[c].maybe = 0;
		k[c].state = TO_RELEASE
	:: else ->
		check_released(c);
		if
		:: !k[c].reply_ok && k[c].reply_version != k[c].pending &&
			k[c].version == 0 ->
			retire(c, w[k[c].pending].expected)
		:: else -> skip
		fi;
		is_done = k[c].reply_ok;
		drop_lease(c);
		if
		:: !is_done -> observe(c)
		:: else -> skip
		fi
	fi
}

/*
 * Rule: an acquire abandoned by its session is followed by a release
 * conditional on its nonce, not by a repeat.
 */
inline acquire_failed(c)
{
	if
	:: k[c].pending_for != 0 -> skip
	:: k[c].pending_for == 0 && k[c].maybe ->
		to_release(c, k[c].pending)
	:: else -> drop_lease(c)
	fi
}

inline renewal_failed(c)
{
	if
	:: k[c].state == LOST && k[c].holder == 0 ->
		to_release(c, k[c].version)
	:: has(c) && k[c].deadline == 0 -> lose_unreachable(c)
	:: k[c].state == RENEWING && k[c].holder == 0 &&
		(k[c].deadline == 0 || !k[c].maybe) ->
		if
		:: k[c].maybe -> k[c].stray = k[c].pending
		:: else -> skip
		fi;
		to_release(c, k[c].version)
	:: else -> skip				/* to be repeated */
	fi
}

/*
 * An unsettled release or hand-over is given up: by the rules when the lease is
 * over, here at any time.
 */
inline give_up(c)
{
	retire(c, w[k[c].pending].expected);
	if
	:: k[c].state == HANDING_OVER -> retire(c, k[c].pending)
	:: else -> skip
	fi;
	drop_lease(c)
}

inline forget_reply(c)
{
	k[c].call = NO_CALL;
	k[c].reply_ok = 0;
	k[c].reply_version = 0;
	k[c].reply_released = 0;
	k[c].reply_token = 0;
	k[c].reply_kept = 0
#ifdef TAKEOVER_WAIT_FROM_SENDING
	; k[c].sent_ago = 0
#endif
}

inline call_failed(c)
{
	if
	:: k[c].state == READING -> k[c].state = POLLING
	:: k[c].state == ACQUIRING -> acquire_failed(c)
	:: k[c].state == RENEWING || k[c].state == LOST -> renewal_failed(c)
	:: else -> skip				/* repeated, or given up */
	fi;
	forget_reply(c)
}

/* A time-out, a broken connection, a 500: the write may have happened. */
inline call_unknown(c)
{
	printf("%d: outcome of write %d unknown\n", c, k[c].pending);
	if
	:: k[c].state != READING ->
		k[c].maybe = 1;
		w[k[c].pending].loose = 1
	:: else -> skip
	fi;
	call_failed(c)
}

inline call_settled(c)
{
	if
#ifdef OWN_VERSION_IN_A_POLL_BELIEVED
	:: k[c].state == READING && k[c].reply_version != 0 &&
		w[k[c].reply_version].owner == c && !k[c].reply_released ->
		k[c].version = k[c].reply_version;
		k[c].deadline = less(w[k[c].version].lease, MARGIN);
		k[c].holder = 2 * c + 1;
		k[c].state = HELD;
		check_exclusive(c)
#endif
	:: k[c].state == READING ->
		observe(c);
		k[c].state = (ready(c) -> IDLE : POLLING)
	:: k[c].state == ACQUIRING -> acquire_settled(c)
	:: k[c].state == HANDING_OVER -> hand_over_settled(c)
	:: k[c].state == RELEASING -> release_settled(c)
	:: else -> renewal_settled(c)
	fi;
	forget_reply(c)
}

/* ---- the cluster: its lock manager, and its sessions ---- */

inline acquire(c, session, the_keeps)
{
	keeps = keeps - the_keeps;
	new_write(c, ACQUIRE, overwritable(c) * k[c].seen, LONG, new_token(c), the_keeps);
	k[c].pending_for = session + 1;
	k[c].state = ACQUIRING
}

inline hand_over(c, session, the_keeps)
{
	keeps = keeps - the_keeps;
	new_write(c, HAND_OVER, k[c].version, LONG, new_token(c), the_keeps);
	k[c].pending_for = session + 1;
	k[c].state = HANDING_OVER
}

/* Rule: a renewal may reserve the next block. */
inline renew(c, the_lease)
{
	renewals--;
	new_write(c, RENEW, k[c].version, the_lease,
			  others_wait(c) * new_token(c), 0);
	k[c].state = RENEWING
}

/*
 * Rule: a hold on the same lease needs no request before the deadline, while no
 * renewal is failing and the block has a token.  As long as the item is kept, the lock
 * does not pass on, with a request or without: it is released.
 */
#ifdef KEPT_PASSES_ON
#define kept_here(c)	false
#else
#define kept_here(c)	(k[c].kept > 0)
#endif
#ifdef KEPT_IS_HANDED_OVER
#define may_hand_over(c)	true
#else
#define may_hand_over(c)	(k[c].kept == 0)
#endif

#define may_pass(c) \
	(BLOCK > 1 && !kept_here(c) && k[c].next_token != 0 && k[c].deadline > 0 && \
	 (k[c].state == PASSING_ON || \
	  (k[c].state == RENEWING && k[c].holder == 0 && !k[c].maybe)))

inline pass(c, session)
{
	printf("%d: passes on to session %d, token %d\n", c, session,
		   k[c].next_token);
	reached("a lock passes on without a request");
	if
	:: k[c].state == RENEWING -> reached("a lock passes on during a renewal")
	:: else -> skip
	fi;
	k[c].holder = session + 1;
	k[c].state = (k[c].state == PASSING_ON -> HELD : RENEWING);
	check_exclusive(c);
	check_deadline(c);
	if
	:: !in_set(overruled, k[c].version) ->
		check_token(k[c].next_token);
		granted_token = k[c].next_token
	:: else -> skip
	fi;
	check_kept();
	use_token(c)
}

/* A session's turn: an acquire, a hold on the same lease, or a hand-over. */
#define turn(c, s) \
	:: d_step { k[c].state == IDLE && todo[s] > 0 -> acquire(c, s, 0); tidy() } \
	:: d_step { k[c].state == IDLE && todo[s] > 0 && keeps > 0 -> \
				acquire(c, s, 1); \
				tidy() } \
	:: d_step { may_pass(c) && todo[s] > 0 -> pass(c, s); tidy() } \
	:: d_step { k[c].state == PASSING_ON && todo[s] > 0 && keeps > 0 && may_hand_over(c) -> \
				hand_over(c, s, 1); \
				tidy() } \
	:: d_step { k[c].state == PASSING_ON && todo[s] > 0 && may_hand_over(c) -> \
				if \
				:: BLOCK > 1 && k[c].next_token == 0 -> \
					reached("a block of tokens is used up") \
				:: else -> skip \
				fi; \
				hand_over(c, s, 0); \
				tidy() }

#ifdef KEPT_NOT_LOOKED_AT
#define may_try(c)	(k[c].seen != 0 && overwritable(c))
#else
#define may_try(c)	ready(c)
#endif

proctype lock_manager(byte c)
{
end:
	do
	turn(c, 2 * c)
	turn(c, 2 * c + 1)

	/*
	 * A poll that would show nothing new is no step.  Rule: when the minimum is over,
	 * a waiter tries again.
	 */
	:: d_step { k[c].state == POLLING && (!wanted(c) || may_try(c)) ->
			k[c].state = IDLE;
			tidy() }
	:: d_step { k[c].state == POLLING && wanted(c) && !may_try(c) &&
			((k[c].seen != 0 && item_released) || item_kept < k[c].seen_kept ||
			 (!item_released && item_version != k[c].seen) ||
			 (past_version != 0 && past_version != k[c].seen)) ->
			k[c].state = READING; send(c);
			tidy() }

	/* Renewals: of either length, at any time. */
	:: d_step { k[c].state == HELD && renewals > 0 -> renew(c, LONG);
			tidy() }
	:: d_step { k[c].state == HELD && renewals > 0 -> renew(c, SHORT);
			tidy() }

	/* What is not settled is repeated; or abandoned, if it is an acquire. */
	:: d_step { k[c].call == NO_CALL &&
			(k[c].state == RENEWING || k[c].state == HANDING_OVER ||
			 k[c].state == RELEASING ||
			 (k[c].state == ACQUIRING && k[c].pending_for != 0)) ->
			repeat_write(c);
			tidy() }
	:: d_step { k[c].call == NO_CALL && k[c].state == ACQUIRING &&
			k[c].pending_for == 0 -> acquire_failed(c);
			tidy() }
	:: d_step { k[c].call == NO_CALL && k[c].maybe &&
			(k[c].state == HANDING_OVER || k[c].state == RELEASING) ->
			give_up(c);
			tidy() }

	/* Released although somebody waits: others must have their turn, too. */
	:: d_step { k[c].state == PASSING_ON ->
			new_write(c, RELEASE, k[c].version, 0, 0, 0);
			drop_block(c);
			k[c].deadline = 0;
			k[c].true_deadline = 0;
			k[c].state = RELEASING;
			tidy() }
	:: d_step { k[c].state == TO_RELEASE ->
			new_write(c, RELEASE, k[c].target, 0, 0, 0);
			k[c].target = 0;
			k[c].state = RELEASING;
			tidy() }

	/* The deadline's timer, however late; what is left of a lost lease. */
	:: d_step { has(c) && k[c].deadline == 0 -> lose_unreachable(c);
			tidy() }
	:: d_step { k[c].state == LOST && k[c].call == NO_CALL && k[c].holder == 0 ->
			to_release(c, k[c].version);
			tidy() }

	/*
	 * A session lets go, or acknowledges a loss (rule: belief ends before the
	 * release is sent); or it no longer wants what it waits for.
	 */
	:: d_step { k[c].holder != 0 ->
			printf("%d: session %d lets go\n", c, k[c].holder - 1);
			let_go_of_lease(c);
			if
			:: k[c].state == HELD -> k[c].state = PASSING_ON
			:: else -> skip		/* first the renewal must be settled */
			fi;
			tidy() }
	:: d_step { k[c].state == HELD && k[c].holder != 0 && k[c].kept > 0 && endings > 0 &&
			believes(c) ->
			printf("%d: session %d lets go, and ends the minimum\n", c, k[c].holder - 1);
			reached("a session ends the minimum");
			endings--;
			promised = 0;
			k[c].ends_kept = 1;
			let_go_of_lease(c);
			k[c].state = PASSING_ON;
			tidy() }
	:: d_step { k[c].pending_for != 0 ->
			printf("%d: session %d cancels\n", c, k[c].pending_for - 1);
			todo[k[c].pending_for - 1]--;
			k[c].pending_for = 0;
			tidy() }

	/* Replies, and their loss. */
	:: d_step { k[c].call == SERVED -> call_settled(c);
			tidy() }
	:: d_step { k[c].call != NO_CALL && faults > 0 ->
			faults--;
			call_unknown(c);
			tidy() }
#ifdef FIVE_HUNDRED_IS_FAILURE
	:: d_step { k[c].call == SERVED && k[c].reply_ok && faults > 0 ->
			faults--;
			printf("%d: a 500 for write %d\n", c, k[c].pending);
			call_failed(c);
			tidy() }
#endif
	/* Throttled, or never sent: this attempt was certainly not applied. */
	:: d_step { k[c].call == SENT && k[c].state != READING && faults > 0 &&
			(k[c].maybe || !w[k[c].pending].loose) ->
			printf("%d: write %d throttled\n", c, k[c].pending);
			faults--;
			call_failed(c);
			tidy() }
	od
}
