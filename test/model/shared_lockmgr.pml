/*-------------------------------------------------------------------------
 *
 * shared_lockmgr.pml
 *	  A cluster of shared.pml: its lock manager and its sessions.
 *
 *-------------------------------------------------------------------------
 */

/* ---- sending ---- */

#define new_token(c) \
	(max(max(k[c].top_token, clock_floor), (c != BEHIND) * highest_token) + 1)

/* A write with a fresh nonce; its other fields are for the caller to set. */
inline new_write(c, the_op, the_expected)
{
	slot = c * SLOTS + 1;
	do
	:: w[slot].op != NOTHING -> slot++
	:: else -> break
	od;
	assert(slot <= (c + 1) * SLOTS);
	w[slot].me = k[c].me;
	w[slot].expected = the_expected;
	w[slot].epoch = (k[c].epoch != 0 -> k[c].epoch : it.epoch);
	w[slot].wish = k[c].wish;
	w[slot].n = permits(k[c].wish);
	w[slot].op = the_op;
	k[c].pending = slot;
	k[c].pending_end = lease_of(c);
	k[c].maybe = 0;
	k[c].call = SENT;
	printf("%d: write %d kind %d expects %d epoch %d wish %d\n", c, slot,
		   w[slot].op, w[slot].expected, w[slot].epoch, w[slot].wish)
}

inline with_token(c)
{
	w[slot].token = new_token(c);
	highest_token = max(highest_token, w[slot].token)
}

/* ---- what the item shows ---- */

inline watch(c, s, the_version, the_lease)
{
	if
	:: k[c].seen[s] != (the_version) ->
		k[c].seen[s] = the_version;
		k[c].dead_in[s] = ((the_version) != 0 -> the_lease : 0)
	:: else -> skip
	fi
}

/*
 * Rule: each version is watched from the reply that first showed it, an entry's
 * for the entry's own lease.
 */
inline observe(c)
{
	k[c].top_token = max(k[c].top_token, it.token);
	for (o : 0 .. ENTRIES - 1) {
		i = (it.mode == SHARED) * it.h[o].v;
		i = (o == k[c].me && i == k[c].version -> 0 : i);
		watch(c, o, i, incarnation_lease(o))
	}
	watch(c, WHOLE, mode_is_owned * it.version, it.lease);
	watch(c, THE_GATE, it.gate, lease_of(cluster_of(it.gate)))
}

#define dead(c, s)		in_set(k[c].dead, s)
#define gone(c, s)		(it.h[s].v == 0 || dead(c, s))

/*
 * Rule: when a version has been watched for its lease, no other read is needed:
 * the write names it.  EARLIER_LOOK: also a version that has been replaced meanwhile.
 */
#ifdef EARLIER_LOOK
#define taken_for_dead(c, e)	(dead(c, e) || in_set(k[c].stale, e))
#define dead_version(c, e) \
	(dead(c, e) -> it.h[e].v : in_set(k[c].stale, e) * k[c].seen[e])
#else
#define taken_for_dead(c, e)	dead(c, e)
#define dead_version(c, e)		(dead(c, e) * it.h[e].v)
#endif
#define gate_gone(c)	(it.gate == 0 || dead(c, THE_GATE))
#define dead_permits(c) \
	(taken_for_dead(c, 0) * it.h[0].n + taken_for_dead(c, 1) * it.h[1].n + \
	 taken_for_dead(c, 2) * it.h[2].n)

/* Rule: the whole item is dead once all entries are, as the same read shows. */
#ifdef ONE_DEAD_ENTRY_IS_ENOUGH
#define all_gone(c)		(dead(c, 0) || dead(c, 1) || dead(c, 2))
#else
#define all_gone(c)		(gone(c, 0) && gone(c, 1) && gone(c, 2))
#endif
#define can_take_over(c) \
	((mode_is_owned && dead(c, WHOLE)) || (it.mode == SHARED && all_gone(c)))
#define can_acquire(c)	(is_free || can_take_over(c))
#define can_open(c)		(can_acquire(c) && gate_gone(c))

#define room_by_look(c) \
	(plain(k[c].wish) || it.total + permits(k[c].wish) <= \
						 limit(k[c].wish) + dead_permits(c))
#define can_join(c) \
	(it.mode == SHARED && it.plain == plain(k[c].wish) && \
	 gate_gone(c) && gone(c, k[c].me) && room_by_look(c))

#define ready(c) \
	(k[c].wish == EXCLUSIVE -> can_acquire(c) : (can_open(c) || can_join(c)))

/* The dead entries that the new write takes off. */
inline name_dead(c)
{
	w[slot].freed = dead_permits(c);
	for (i : 0 .. ENTRIES - 1) {
		w[slot].dead[i] = dead_version(c, i)
	}
}

/* ---- what a cluster writes ---- */

/* Rule: the first attempt is blind; a refusal shows the item. */
inline first_try(c)
{
	new_write(c, (k[c].wish == EXCLUSIVE -> ACQUIRE : OPEN), 0);
	with_token(c);
	k[c].state = ACQUIRING
}

/* Rule: a join raises the item's lease, never lowers it. */
inline join(c)
{
	new_write(c, JOIN, it.h[k[c].me].v);
	with_token(c);
	name_dead(c);
#ifdef LEASE_NOT_RAISED
	w[slot].raise = 0;
#else
	w[slot].raise = (it.lease < lease_of(c)) * it.lease;
#endif
	w[slot].gate = it.gate
}

/* A look at the item, and what follows. */
inline look(c)
{
#ifdef EARLIER_LOOK
	if
	:: k[c].stale != 0 && k[c].wish != EXCLUSIVE && can_join(c) -> skip
	:: else -> k[c].stale = 0; observe(c)
	fi;
#else
	observe(c);
#endif
	if
	:: k[c].wish != EXCLUSIVE && can_join(c) ->
		join(c);
		k[c].state = ACQUIRING
	:: !(k[c].wish != EXCLUSIVE && can_join(c)) && ready(c) ->
		first_try(c);
		if
		:: it.mode == SHARED && k[c].wish == EXCLUSIVE ->
			reached("all are dead, and an exclusive acquire names the item")
		:: it.mode == SHARED && k[c].wish != EXCLUSIVE ->
			reached("all are dead, and an open names the item")
		:: else -> skip
		fi;
		w[slot].expected = (is_free -> 0 : it.version);
		w[slot].gate = it.gate
	:: else -> k[c].state = POLLING
	fi
}

#define can_get_more(c) \
	(it.mode == SHARED && it.epoch == k[c].epoch && \
	 it.h[k[c].me].v == k[c].version && gate_gone(c) && \
	 holds(c) + permits(k[c].wish) <= 2 && \
	 it.total + permits(k[c].wish) <= limit(k[c].wish) + more_freed(c))
#ifdef CHANGE_LEAVES_THE_DEAD
#define more_freed(c)	0
#else
#define more_freed(c)	dead_permits(c)
#endif

inline more(c)
{
	new_write(c, MORE, k[c].version);
	w[slot].gate = it.gate;
#ifndef CHANGE_LEAVES_THE_DEAD
	name_dead(c);
#endif
	k[c].state = WRITING
}

inline fewer(c)
{
	new_write(c, LESS, k[c].version);
	w[slot].n = k[c].n - holds(c);
	k[c].state = WRITING
}

inline renew(c)
{
	renewals--;
	new_write(c, (k[c].exclusive -> RENEW : RENEW_ENTRY), k[c].version);
	k[c].state = WRITING
}

/* Rule: belief ends before the release, or the leave, is sent. */
inline leave(c, the_version)
{
	k[c].hold0 = 0;
	k[c].hold1 = 0;
	k[c].deadline = 0;
	new_write(c, (k[c].exclusive -> RELEASE : LEAVE), the_version);
#ifdef LAST_UNCONDITIONAL
	w[slot].last = (it.h[0].v != 0) + (it.h[1].v != 0) + (it.h[2].v != 0) == 1;
#endif
	k[c].state = LEAVING
}

/* ---- the cluster's own state ---- */

inline forget_pending(c)
{
	k[c].pending = 0;
	k[c].pending_end = 0;
	k[c].maybe = 0
}

inline drop_lease(c)
{
	forget_pending(c);
	k[c].hold0 = 0;
	k[c].hold1 = 0;
	k[c].exclusive = 0;
	k[c].n = 0;
	k[c].version = 0;
	k[c].epoch = 0;
	k[c].deadline = 0;
	k[c].strays = 0;
	k[c].state = (k[c].wish != 0 -> POLLING : IDLE)
}

#define retire(c, x)	k[c].retired = k[c].retired | (1 << (x))
#define stray(c, x)		k[c].strays = k[c].strays | (1 << (x))
#ifdef NO_STRAY
#define keep_stray(c)	skip
#else
#define keep_stray(c)	stray(c, k[c].pending)
#endif

/* Nobody waits any more: our gate means nothing. */
inline forget_gate(c)
{
	if
	:: k[c].gate != 0 -> retire(c, k[c].gate)
	:: else -> skip
	fi;
	k[c].gate = 0;
	k[c].gate_end = 0
}

inline written(c)
{
	k[c].version = k[c].pending;
	k[c].deadline = less(k[c].pending_end, MARGIN);
	k[c].top_token = max(k[c].top_token, w[k[c].pending].token);
	k[c].strays = 0;
	if
	:: w[k[c].version].op == OPEN ->
		k[c].epoch = k[c].version;
		k[c].n = w[k[c].version].n
	:: w[k[c].version].op == JOIN ->
		k[c].epoch = w[k[c].version].epoch;
		k[c].n = w[k[c].version].n
	:: w[k[c].version].op == ACQUIRE -> k[c].exclusive = 1
	:: w[k[c].version].op == MORE -> k[c].n = k[c].n + w[k[c].version].n
	:: w[k[c].version].op == LESS -> k[c].n = k[c].n - w[k[c].version].n
	:: else -> skip
	fi;
	forget_pending(c)
}

inline grant(c)
{
	printf("%d: granted, version %d wish %d\n", c, k[c].version, k[c].wish);
	if
	:: k[c].hold0 == 0 ->
		k[c].hold0 = k[c].wish;
		k[c].hold1 = (permits(k[c].wish) == 2 -> k[c].wish : 0)
	:: else -> k[c].hold1 = k[c].wish
	fi;
	k[c].wish = 0;
	forget_gate(c);
	k[c].state = HELD;
	check_beliefs(c)
}

inline lose(c)
{
	printf("%d: lost\n", c);
	k[c].state = LOST;
	if
	:: k[c].pending != 0 && k[c].call == NO_CALL ->
		keep_stray(c);
		forget_pending(c)
	:: else -> skip
	fi
}

/* ---- replies ---- */

#define stray_stands(c) \
	(k[c].exclusive -> \
	 it.mode == OWNED && in_set(k[c].strays, it.version) : \
	 it.mode == SHARED && it.epoch == k[c].epoch && \
	 in_set(k[c].strays, it.h[k[c].me].v))

inline acquire_done(c)
{
	written(c);
	/* Rule: a write that is settled after its deadline grants nothing. */
	if
	:: k[c].wish != 0 && k[c].deadline > 0 ->
		check_token(c, w[k[c].version].token);
		if
		:: k[c].exclusive -> reached("an exclusive lock is granted")
		:: else -> reached("a permit is granted")
		fi;
		grant(c)
	:: else ->
		reached("granted too late, or to nobody");
		leave(c, k[c].version)
	fi
}

inline writing_done(c)
{
	/* Rule: too late is too late, even if the timer was later still. */
	if
	:: k[c].state == WRITING && holds(c) > 0 && k[c].deadline == 0 ->
		reached("renewed too late");
		k[c].state = LOST
	:: else -> skip
	fi;
	ok = w[k[c].pending].op == MORE && k[c].wish != 0;
	written(c);
	if
	:: k[c].state == WRITING && holds(c) > 0 && k[c].deadline == 0 ->
		k[c].state = LOST
	:: k[c].state == WRITING && holds(c) > 0 && k[c].deadline > 0 ->
		k[c].state = HELD;
		check_beliefs(c);
		if
		:: ok && k[c].n >= holds(c) + permits(k[c].wish) ->
			reached("a change grants another permit");
			grant(c)
		:: else -> skip
		fi
	:: holds(c) == 0 -> leave(c, k[c].version)
	:: else -> skip
	fi
}

inline call_done(c)
{
	k[c].call = NO_CALL;
	if
	:: k[c].state == ACQUIRING -> acquire_done(c)
	:: k[c].state == WRITING || k[c].state == LOST -> writing_done(c)
	:: k[c].state == LEAVING || k[c].state == JOURNALING -> drop_lease(c)
	:: k[c].state == GATING ->
		forget_gate(c);
		if
		:: k[c].wish == EXCLUSIVE ->
			k[c].gate = k[c].pending;
			k[c].gate_end = less(k[c].pending_end, MARGIN)
		:: else -> retire(c, k[c].pending)
		fi;
		drop_lease(c)
	fi
}

/* Refused, and ours does not stand. */
inline acquire_refused(c)
{
	if
	:: k[c].maybe -> retire(c, k[c].pending)
	:: else -> skip
	fi;
	drop_lease(c);
#ifdef EARLIER_LOOK
	k[c].stale = 0;				/* the refusal shows the item */
#endif
	if
	:: k[c].wish != 0 -> look(c)
	:: else -> skip
	fi
}

inline writing_refused(c)
{
	if
	:: ours_stands(c, k[c].version) ->
		/*
		 * No room, or a gate: held as before.  Rule: its nonce is a stray, even
		 * if no outcome was unknown.
		 */
		assert(w[k[c].pending].op == MORE);
		reached("a change is refused, and the permits stay");
		keep_stray(c);
		forget_pending(c)
	:: else ->
		if
		:: stray_stands(c) ->
			reached("a write meets our stray");
			/* Rule: goes on from the stray; what it has too much goes back. */
			ok = w[k[c].pending].op == RENEW_ENTRY;
			renewals = renewals + ok;
			k[c].version = it.h[k[c].me].v;
			k[c].n = it.h[k[c].me].n;
			k[c].strays = 0;
			forget_pending(c)
		:: else ->
			if
			:: k[c].state == WRITING ->
				reached("a lease turns out to be lost");
				check_taken(c)
			:: else -> skip
			fi;
			drop_lease(c)
		fi
	fi;
	if
	:: k[c].version != 0 && k[c].state == WRITING && holds(c) > 0 ->
		k[c].state = HELD
	:: k[c].version != 0 && holds(c) == 0 -> leave(c, k[c].version)
	:: else -> skip
	fi
}

inline leave_refused(c)
{
	if
	:: stray_stands(c) ->
		/* Rule: a write that nobody settled has succeeded: leave from there. */
		reached("a leave meets our stray");
		i = (k[c].exclusive -> it.version : it.h[k[c].me].v);
		k[c].strays = 0;
		leave(c, i)
	:: else ->
		check_released(c);
		/* An acquire that was never confirmed may still come. */
		if
		:: k[c].version == 0 -> retire(c, w[k[c].pending].expected)
		:: else -> skip
		fi;
		drop_lease(c)
	fi
}

inline call_refused(c)
{
	k[c].call = NO_CALL;
	if
	:: k[c].state == ACQUIRING -> acquire_refused(c)
	:: k[c].state == WRITING || k[c].state == LOST -> writing_refused(c)
	:: k[c].state == LEAVING -> leave_refused(c)
	:: k[c].state == GATING ->
		if
		:: k[c].maybe -> retire(c, k[c].pending)
		:: else -> skip
		fi;
		drop_lease(c)
	:: k[c].state == JOURNALING -> drop_lease(c)
	fi
}

/* The call that is in flight is served.  A refusal is settled at once. */
inline serve(c)
{
	if
	:: w[k[c].pending].fits ->
		apply(k[c].pending);
		k[c].call = DONE
	:: else ->
		if
		:: (k[c].state == ACQUIRING || k[c].state == WRITING ||
			k[c].state == LOST) && ours_stands(c, k[c].pending) ->
			reached("an earlier copy has succeeded");
			call_done(c)
		:: k[c].state == GATING && it.mode == SHARED &&
			it.gate == k[c].pending -> call_done(c)
		:: else ->
			if
			:: (w[k[c].pending].op == OPEN || w[k[c].pending].op == JOIN ||
				w[k[c].pending].op == MORE) && it.gate != 0 &&
				it.gate != w[k[c].pending].gate ->
				reached("a gate keeps others out")
			:: else -> skip
			fi;
			call_refused(c)
		fi
	fi
}

/* A time-out, a broken connection, a 500: the write may have happened. */
inline call_unknown(c)
{
	printf("%d: outcome of write %d unknown\n", c, k[c].pending);
	k[c].call = NO_CALL;
	k[c].maybe = 1;
	w[k[c].pending].loose = 1;
	if
	:: k[c].state == LOST ->
		keep_stray(c);
		forget_pending(c)
	:: else -> skip
	fi
}

/* The cluster crashes: its memory and its sessions are gone. */
inline crash(c)
{
	printf("%d: crashes\n", c);
	crashes--;
	if
	:: k[c].call == SENT -> w[k[c].pending].loose = 1
	:: else -> skip
	fi;
	k[c].call = NO_CALL;
	k[c].wish = 0;
	k[c].gate = 0;
	k[c].gate_end = 0;
	k[c].top_token = 0;
	k[c].retired = 0;
	for (i : 0 .. SUBJECTS - 1) {
		k[c].seen[i] = 0;
		k[c].dead_in[i] = 0
	}
	drop_lease(c)
}

/* ---- the cluster ---- */

/* A session asks; a second one may wait until there is another permit. */
#define ask(c, the_wish) \
	:: d_step { k[c].state == IDLE && todo[c] > 0 && \
				in_set(wishes(c), the_wish) -> \
				todo[c]--; \
				k[c].wish = the_wish; \
				first_try(c); \
				tidy() } \
	:: d_step { k[c].state == HELD && todo[c] > 0 && k[c].wish == 0 && \
				in_set(wishes(c), the_wish) && the_wish != EXCLUSIVE && \
				!k[c].exclusive && !plain(the_wish) && !plain(k[c].hold0) -> \
				todo[c]--; \
				k[c].wish = the_wish; \
				tidy() }
#define wishes(c)		((c) == 0 -> WISHES_A : WISHES_B)

/* Rule: a permit passes without a request to whom its limit suits. */
#define passes(c, the_hold) \
	(k[c].wish != 0 && k[c].deadline > 0 && k[c].state == HELD && \
	 !k[c].exclusive && permits(k[c].wish) == 1 && \
	 limit(k[c].wish) >= limit(the_hold))

inline after_let_go(c)
{
	printf("%d: a session lets go\n", c);
	if
	:: k[c].hold0 == 0 -> k[c].hold0 = k[c].hold1; k[c].hold1 = 0
	:: else -> skip
	fi;
	if
	:: k[c].state == HELD && holds(c) == 0 -> leave(c, k[c].version)
	:: else -> skip				/* first the write must be settled */
	fi
}

/* STAY: a session of A keeps its permit while another one of A waits. */
#ifdef STAY
#define may_let_go(c)	(c != 0 || k[c].wish == 0 || k[c].state == LOST)
#define may_pass_on(c)	(c != 0)
#else
#define may_let_go(c)	(true)
#define may_pass_on(c)	(true)
#endif

#define let_go(c, the_hold) \
	:: d_step { the_hold != 0 && may_let_go(c) -> \
				the_hold = 0; \
				after_let_go(c); \
				tidy() } \
	:: d_step { the_hold != 0 && may_pass_on(c) && passes(c, the_hold) -> \
				printf("%d: a permit passes on\n", c); \
				reached("a permit passes on without a request"); \
				the_hold = k[c].wish; \
				k[c].wish = 0; \
				check_beliefs(c); \
				tidy() }

proctype lock_manager(byte c)
{
end:
	do
	ask(c, EXCLUSIVE)
	ask(c, ONE_OF_ONE)
	ask(c, ONE_OF_TWO)
	ask(c, TWO_OF_TWO)
	ask(c, PLAIN)

	/* A look that would show nothing new is no step. */
	:: d_step { k[c].state == POLLING && (k[c].news || ready(c)) -> look(c);
			tidy() }
	:: d_step { k[c].state == HELD && k[c].wish != 0 && !can_get_more(c) &&
			k[c].news -> observe(c);
			tidy() }

	:: d_step { k[c].state == HELD && k[c].wish != 0 && !k[c].exclusive &&
			can_get_more(c) -> more(c);
			tidy() }
	:: d_step { k[c].state == HELD && !k[c].exclusive && holds(c) < k[c].n ->
			fewer(c);
			tidy() }
	:: d_step { k[c].state == HELD && renewals > 0 -> renew(c);
			tidy() }

	/*
	 * Rule: an exclusive waiter sets a gate, so that shared holders whose times
	 * overlap do not keep it out for ever, and renews it.
	 */
	:: d_step { k[c].state == POLLING && k[c].wish == EXCLUSIVE && gates > 0 &&
			it.mode == SHARED && !ready(c) && gate_gone(c) ->
			gates--;
			new_write(c, GATE, 0);
			w[slot].gate = it.gate;
			k[c].state = GATING;
			tidy() }
	:: d_step { k[c].state == POLLING && k[c].wish == EXCLUSIVE && gates > 0 &&
			it.mode == SHARED && !ready(c) && k[c].gate != 0 &&
			it.gate == k[c].gate ->
			gates--;
			new_write(c, RENEW_GATE, k[c].gate);
			k[c].state = GATING;
			tidy() }

	/* Rule: only the write that is not settled is repeated; or it is undone. */
	:: d_step { k[c].call == NO_CALL && k[c].pending != 0 &&
			(k[c].state != ACQUIRING || k[c].wish != 0) ->
			printf("%d: repeats write %d\n", c, k[c].pending);
			k[c].call = SENT;
			tidy() }
	:: d_step { k[c].call == NO_CALL && k[c].state == ACQUIRING &&
			k[c].wish == 0 ->
			i = k[c].pending;
			k[c].epoch = (w[i].op == OPEN -> i : w[i].epoch);
			k[c].exclusive = w[i].op == ACQUIRE;
			leave(c, i);
			tidy() }
	:: d_step { k[c].call == NO_CALL && k[c].pending != 0 &&
			(k[c].state == LEAVING || k[c].state == GATING ||
			 k[c].state == JOURNALING) ->
			printf("%d: gives up\n", c);
			if
			:: k[c].state == LEAVING ->
				retire(c, w[k[c].pending].expected);
				k[c].retired = k[c].retired | k[c].strays
			:: k[c].state == GATING -> retire(c, k[c].pending)
			:: else -> skip
			fi;
			drop_lease(c);
			tidy() }

	/* The deadline's timer, however late; what is left of a lost lease. */
	:: d_step { has(c) && k[c].deadline == 0 -> lose(c);
			tidy() }
	:: d_step { k[c].state == LOST && k[c].call == NO_CALL && holds(c) == 0 ->
			leave(c, k[c].version);
			tidy() }

	let_go(c, k[c].hold0)
	let_go(c, k[c].hold1)

	/* A session no longer wants what is under way for it. */
	:: d_step { k[c].wish != 0 && k[c].pending != 0 ->
			printf("%d: a session cancels\n", c);
			k[c].wish = 0;
			forget_gate(c);
			tidy() }

	/* Calls, their loss, and copies that are left on the way. */
	:: d_step { k[c].call == SENT -> serve(c);
			tidy() }
	:: d_step { k[c].call == DONE -> call_done(c);
			tidy() }
	:: d_step { k[c].call != NO_CALL && faults > 0 ->
			faults--;
			call_unknown(c);
			tidy() }
	:: d_step { k[c].call == SENT && faults > 0 && !w[k[c].pending].loose ->
			faults--;
			w[k[c].pending].loose = 1;
			tidy() }

	/* With a journal, or on another machine. */
	:: d_step { c == CRASHER && crashes > 0 && k[c].state != IDLE ->
			crash(c);
			new_write(c, JOURNAL, 0);
			k[c].me = 2;
			k[c].state = JOURNALING;
			tidy() }
	:: d_step { c == CRASHER && crashes > 0 && k[c].state != IDLE ->
			crash(c);
			k[c].me = 2;
			tidy() }
	od
}
