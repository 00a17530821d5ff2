/*-------------------------------------------------------------------------
 *
 * test_lockmgr_state.c
 *	  The table of a lock's states.  All other tests of the lock manager, and
 *	  the simulator, test that the manager obeys it: lm_enter() aborts.
 *
 *-------------------------------------------------------------------------
 */
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../unit.h"
#include "lock/lockmgr_private.h"

static void
assert_entered_from(lock_state state, unsigned from)
{
	for (lock_state s = 0; s < LOCK_STATE_COUNT; s++)
		assert_int_equal(lm_may_enter(s, state), (from >> s) & 1);
}

TEST(nobody_holds_what_was_not_written)
{
	assert_entered_from(LOCK_HELD, 1u << LOCK_ADOPTED | 1u << LOCK_ACQUIRING |
						1u << LOCK_HELD | 1u << LOCK_RENEWING | 1u << LOCK_HANDING_OVER);
}

TEST(a_lost_lease_is_never_held_again)
{
	assert_entered_from(LOCK_LOST, 1u << LOCK_ADOPTED | 1u << LOCK_HELD |
						1u << LOCK_RENEWING);
	assert_false(lm_may_enter(LOCK_LOST, LOCK_HELD));
	assert_false(lm_may_enter(LOCK_LOST, LOCK_RENEWING));
	assert_false(lm_may_enter(LOCK_LOST, LOCK_HANDING_OVER));
}

TEST(a_held_lock_is_not_forgotten)
{
	assert_false(lm_may_enter(LOCK_HELD, LOCK_IDLE));
}

TEST(every_state_is_on_a_way_from_idle_back_to_idle)
{
	unsigned	reached = 1u << LOCK_IDLE;
	unsigned	returns = 1u << LOCK_IDLE;

	for (int round = 0; round < LOCK_STATE_COUNT; round++)
	{
		for (lock_state from = 0; from < LOCK_STATE_COUNT; from++)
		{
			for (lock_state to = 0; to < LOCK_STATE_COUNT; to++)
			{
				if (!lm_may_enter(from, to))
					continue;
				if (reached & 1u << from)
					reached |= 1u << to;
				if (returns & 1u << to)
					returns |= 1u << from;
			}
		}
	}
	assert_int_equal(reached, (1u << LOCK_STATE_COUNT) - 1);
	assert_int_equal(returns, (1u << LOCK_STATE_COUNT) - 1);
}

TEST(a_transition_of_the_table_is_made)
{
	static lockmgr lm;
	lm_lock		lock = {.state = LOCK_IDLE};
	lm_lease	lease = {.l.state = LEASE_ACQUIRING,.lock = &lock};

	lock.lease = &lease;
	lm_enter(&lm, &lock, LOCK_ACQUIRING, INT64_MAX);
	assert_int_equal(lock.state, LOCK_ACQUIRING);
}

/* Does it abort to go from this state to that one? */
static bool
aborts_on(lm_lock *lock, lock_state from, lock_state to)
{
	static lockmgr lm;
	int			status;
	pid_t		child = fork();

	assert_true(child >= 0);
	lock->state = from;
	if (child == 0)
	{
		struct rlimit no_core = {0};

		signal(SIGABRT, SIG_DFL);
		setrlimit(RLIMIT_CORE, &no_core);
		(void) close(STDERR_FILENO);
		lm_enter(&lm, lock, to, INT64_MAX);
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	return WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT;
}

/* ... with such a lease? */
static bool
aborts(lock_state from, lock_state to, lease_state lease_state)
{
	lm_lock		lock;
	lm_lease	lease = {.l.state = lease_state,.lock = &lock};

	lock = (lm_lock) {.lease = &lease};
	return aborts_on(&lock, from, to);
}

TEST(any_other_aborts)
{
	assert_true(aborts(LOCK_LOST, LOCK_RENEWING, LEASE_HELD));
	assert_false(aborts(LOCK_HELD, LOCK_RENEWING, LEASE_HELD));
}

TEST(so_does_a_lease_that_does_not_fit)
{
	assert_true(aborts(LOCK_HELD, LOCK_LOST, LEASE_HELD));
	assert_true(aborts(LOCK_RENEWING, LOCK_HELD, LEASE_HELD));	/* by nobody */
	assert_true(aborts(LOCK_RELEASING, LOCK_IDLE, LEASE_FREE));	/* which needs none */
	assert_false(aborts(LOCK_HELD, LOCK_LOST, LEASE_LOST));
}

TEST(so_does_a_lease_of_another_lock_or_of_none)
{
	lm_lock		lock = {.lease = NULL};
	lm_lease	lease = {.l.state = LEASE_ACQUIRING};

	assert_true(aborts_on(&lock, LOCK_IDLE, LOCK_ACQUIRING));
	assert_false(aborts_on(&lock, LOCK_IDLE, LOCK_IDLE));
	lock.lease = &lease;
	assert_true(aborts_on(&lock, LOCK_IDLE, LOCK_ACQUIRING));
	lease.lock = &lock;
	assert_false(aborts_on(&lock, LOCK_IDLE, LOCK_ACQUIRING));
	lease.l.valid_until = 1;	/* nobody holds it */
	assert_true(aborts_on(&lock, LOCK_IDLE, LOCK_ACQUIRING));
}
