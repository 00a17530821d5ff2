/*
 * test_reactor.c
 *	  The reactor: its descriptor is readable when there is something to do.
 */
#include <errno.h>
#include <poll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define BEFORE_EACH set_up
#define AFTER_EACH tear_down
#include "../unit.h"
#include "net/net.h"

static struct
{
	reactor    *r;
	int			near;			/* the end in the reactor */
	int			far;
	int			io_calls;
	int			io_fd;
	int			io_events;
	int			timer_calls;
	int			order;			/* counts all calls */
	int			io_order;
	int			timer_order;
	void		(*on_io) (int fd);
}			f;

static void
on_io(void *arg, int fd, int events)
{
	assert_ptr_equal(arg, &f);
	f.io_calls++;
	f.io_fd = fd;
	f.io_events = events;
	f.io_order = ++f.order;
	if (f.on_io != NULL)
		f.on_io(fd);
}

static void
on_timer(void *arg)
{
	assert_ptr_equal(arg, &f);
	f.timer_calls++;
	f.timer_order = ++f.order;
}

static int
set_up(void **state)
{
	int			pair[2];

	(void) state;
	memset(&f, 0, sizeof(f));
	f.r = reactor_new();
	if (f.r == NULL || socketpair(AF_UNIX, SOCK_STREAM, 0, pair) != 0)
		return -1;
	f.near = pair[0];
	f.far = pair[1];
	reactor_serve(f.r, on_io, on_timer, &f);
	return 0;
}

static int
tear_down(void **state)
{
	(void) state;
	reactor_free(f.r);
	close(f.near);
	close(f.far);
	return 0;
}

static bool
has_work(int timeout_ms)
{
	struct pollfd p = {.fd = reactor_fd(f.r),.events = POLLIN};

	return poll(&p, 1, timeout_ms) == 1;
}

static void
wait_for_work(void)
{
	assert_true(has_work(30000));
}

static int64_t
boot_time_us(void)
{
	struct timespec now;

	clock_gettime(CLOCK_BOOTTIME, &now);
	return (int64_t) now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

TEST(readable_socket_is_reported)
{
	assert_true(reactor_watch(f.r, f.near, EPOLLIN));
	assert_false(has_work(0));
	assert_int_equal(write(f.far, "x", 1), 1);
	wait_for_work();
	reactor_run(f.r);
	assert_int_equal(f.io_calls, 1);
	assert_int_equal(f.io_fd, f.near);
	assert_int_equal(f.io_events, EPOLLIN);
}

/* An event that was not handled is reported again. */
TEST(events_are_levels)
{
	assert_true(reactor_watch(f.r, f.near, EPOLLIN));
	assert_int_equal(write(f.far, "x", 1), 1);
	reactor_run(f.r);
	reactor_run(f.r);
	assert_int_equal(f.io_calls, 2);
}

TEST(watch_can_change_and_end)
{
	assert_true(reactor_watch(f.r, f.near, EPOLLIN));
	assert_true(reactor_watch(f.r, f.near, EPOLLIN | EPOLLOUT));
	reactor_run(f.r);
	assert_int_equal(f.io_events, EPOLLOUT);
	assert_true(reactor_watch(f.r, f.near, 0));
	assert_false(has_work(0));
	assert_true(reactor_watch(f.r, f.near, EPOLLOUT));
	reactor_run(f.r);
	assert_int_equal(f.io_calls, 2);
}

/* So that a read finds the end. */
TEST(closed_peer_makes_readable)
{
	assert_true(reactor_watch(f.r, f.near, EPOLLIN));
	shutdown(f.far, SHUT_RDWR);
	wait_for_work();
	reactor_run(f.r);
	assert_int_equal(f.io_events, EPOLLIN | EPOLLHUP);
}

TEST(bad_descriptor_is_refused)
{
	errno = 0;
	assert_false(reactor_watch(f.r, -1, EPOLLIN));
	assert_int_equal(errno, EBADF);
	errno = 0;
	assert_false(reactor_watch(f.r, 1000, EPOLLIN));
	assert_int_equal(errno, EBADF);
	/* The failure was not recorded as a success. */
	assert_false(reactor_watch(f.r, 1000, EPOLLIN));
}

/* Removes the other socket, and opens a new one with its number. */
static void
replace_other(int fd)
{
	int			other = fd == f.near ? f.far : f.near;
	int			pair[2];

	f.on_io = NULL;
	assert_true(reactor_watch(f.r, other, 0));
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	assert_int_equal(dup2(pair[0], other), other);
	assert_true(reactor_watch(f.r, other, EPOLLIN));
	close(pair[0]);
	close(pair[1]);
}

/*
 * Both sockets are ready in one turn, and the first callback replaces the
 * second socket: the event fetched for the old one must not reach the new.
 */
TEST(event_of_a_replaced_socket_is_dropped)
{
	assert_true(reactor_watch(f.r, f.near, EPOLLOUT));
	assert_true(reactor_watch(f.r, f.far, EPOLLOUT));
	f.on_io = replace_other;
	reactor_run(f.r);
	assert_int_equal(f.io_calls, 1);
}

TEST(more_sockets_than_one_turn_takes)
{
	int			fds[100];
	int			seen[100] = {0};
	int			missing = 100;

	for (int i = 0; i < 100; i++)
	{
		fds[i] = dup(f.near);
		assert_true(fds[i] >= 0);
		assert_true(reactor_watch(f.r, fds[i], EPOLLOUT));
	}
	while (missing > 0)
	{
		wait_for_work();
		reactor_run(f.r);
		for (int i = 0; i < 100; i++)
		{
			if (seen[i] == 0 && fds[i] == f.io_fd)
			{
				seen[i] = 1;
				missing--;
				assert_true(reactor_watch(f.r, fds[i], 0));
			}
		}
	}
	assert_false(has_work(0));
	for (int i = 0; i < 100; i++)
		close(fds[i]);
}

TEST(timer_fires_once_and_not_early)
{
	int64_t		start = boot_time_us();

	assert_true(reactor_set_timer(f.r, 3000));
	wait_for_work();
	assert_true(boot_time_us() - start >= 3000);
	reactor_run(f.r);
	assert_int_equal(f.timer_calls, 1);
	assert_false(has_work(0));
}

TEST(timer_of_zero_fires)
{
	assert_true(reactor_set_timer(f.r, 0));
	wait_for_work();
	reactor_run(f.r);
	assert_int_equal(f.timer_calls, 1);
}

TEST(timer_can_be_put_off_and_cancelled)
{
	assert_true(reactor_set_timer(f.r, 0));
	wait_for_work();
	assert_true(reactor_set_timer(f.r, INT64_C(3600) * 1000000));
	assert_false(has_work(0));
	assert_true(reactor_set_timer(f.r, 0));
	wait_for_work();
	assert_true(reactor_set_timer(f.r, -1));
	assert_false(has_work(0));
	reactor_run(f.r);
	assert_int_equal(f.timer_calls, 0);
}

/* A reply that has arrived wins against an expired time-out. */
TEST(sockets_come_before_the_timer)
{
	assert_true(reactor_set_timer(f.r, 0));
	wait_for_work();
	assert_true(reactor_watch(f.r, f.near, EPOLLOUT));
	reactor_run(f.r);
	assert_int_equal(f.io_order, 1);
	assert_int_equal(f.timer_order, 2);
}

TEST(run_without_work_returns)
{
	reactor_run(f.r);
	assert_int_equal(f.order, 0);
}

