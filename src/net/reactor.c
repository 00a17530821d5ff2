/*-------------------------------------------------------------------------
 *
 * reactor.c
 *	  An epoll instance with descriptors and one timerfd in it.
 *
 * The reactor remembers the events of each descriptor, so that to set the same events again costs
 * no system call.  It also counts how often each descriptor was removed.  Example: one epoll_wait()
 * returns events of the descriptors 7 and 8; the callback for 7 closes 8, and opens a socket that
 * gets the number 8.  The count differs, so the new socket does not get the old one's event.
 *
 *-------------------------------------------------------------------------
 */
#include "net/net.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/timerfd.h>
#include <unistd.h>

/* How many events one reactor_run() handles.  If there are more, the descriptor stays readable. */
#define EVENTS_PER_RUN 32

/* The timer's key in epoll; no descriptor has it. */
#define TIMER_KEY UINT64_MAX

typedef struct watch
{
	int			events;			/* of epoll; 0: not watched */
	uint32_t	life;			/* how often the descriptor was removed */
} watch;

struct reactor
{
	int			epoll_fd;
	int			timer_fd;
	watch	   *watches;		/* the index is the descriptor */
	int			watch_count;
	reactor_io_fn io;
	reactor_timer_fn timer;
	void	   *arg;
};

int64_t
reactor_now_us(void)
{
	struct timespec now;

	clock_gettime(CLOCK_BOOTTIME, &now);
	return (int64_t) now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

reactor *
reactor_new(void)
{
	reactor    *r = calloc(1, sizeof(*r));
	struct epoll_event event = {.events = EPOLLIN,.data.u64 = TIMER_KEY};

	if (r == NULL)
		return NULL;
	r->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	r->timer_fd = timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK);
	if (r->epoll_fd < 0 || r->timer_fd < 0 ||
		epoll_ctl(r->epoll_fd, EPOLL_CTL_ADD, r->timer_fd, &event) != 0)
	{
		int			save_errno = errno;

		reactor_free(r);
		errno = save_errno;
		return NULL;
	}
	return r;
}

void
reactor_free(reactor *r)
{
	if (r == NULL)
		return;
	if (r->timer_fd >= 0)
		close(r->timer_fd);
	if (r->epoll_fd >= 0)
		close(r->epoll_fd);
	free(r->watches);
	free(r);
}

int
reactor_fd(const reactor *r)
{
	return r->epoll_fd;
}

void
reactor_serve(reactor *r, reactor_io_fn io, reactor_timer_fn timer, void *arg)
{
	r->io = io;
	r->timer = timer;
	r->arg = arg;
}

static bool
have_watch(reactor *r, int fd)
{
	int			count = r->watch_count > 0 ? r->watch_count : 32;
	watch	   *grown;

	if (fd < r->watch_count)
		return true;
	while (count <= fd)
		count *= 2;
	grown = realloc(r->watches, count * sizeof(*grown));
	if (grown == NULL)
		return false;
	memset(grown + r->watch_count, 0,
		   (count - r->watch_count) * sizeof(*grown));
	r->watches = grown;
	r->watch_count = count;
	return true;
}

bool
reactor_watch(reactor *r, int fd, int events)
{
	struct epoll_event event;
	watch	   *w;

	if (fd < 0)
	{
		errno = EBADF;
		return false;
	}
	if (!have_watch(r, fd))
		return false;
	w = &r->watches[fd];
	if (w->events == events)
		return true;
	if (events == 0)
	{
		w->events = 0;
		w->life++;
		return epoll_ctl(r->epoll_fd, EPOLL_CTL_DEL, fd, NULL) == 0;
	}
	event.events = events;
	event.data.u64 = (uint64_t) w->life << 32 | (uint32_t) fd;
	if (epoll_ctl(r->epoll_fd, w->events == 0 ? EPOLL_CTL_ADD : EPOLL_CTL_MOD, fd, &event) != 0)
	{
		/*
		 * The descriptor was closed, which has removed it from epoll: curl 7.88 closes a socket
		 * that was not connected in time without telling us.  A new socket may get its number.
		 */
		w->events = 0;
		w->life++;
		return false;
	}
	w->events = events;
	return true;
}

bool
reactor_watches(const reactor *r, int fd)
{
	return fd < r->watch_count && r->watches[fd].events != 0;
}

bool
reactor_set_timer(reactor *r, int64_t microseconds)
{
	struct itimerspec when = {{0, 0}, {0, 0}};

	if (microseconds >= 0)
	{
		when.it_value.tv_sec = microseconds / 1000000;
		when.it_value.tv_nsec = microseconds % 1000000 * 1000;
		/* A time of zero would disarm the timer. */
		if (microseconds == 0)
			when.it_value.tv_nsec = 1;
	}
	return timerfd_settime(r->timer_fd, 0, &when, NULL) == 0;
}

void
reactor_run(reactor *r)
{
	struct epoll_event events[EVENTS_PER_RUN];
	int			count = epoll_wait(r->epoll_fd, events, EVENTS_PER_RUN, 0);
	bool		timer_fired = false;
	uint64_t	expirations;

	for (int i = 0; i < count; i++)
	{
		uint64_t	key = events[i].data.u64;

		if (key == TIMER_KEY)
			timer_fired = true;
		else
		{
			int			fd = (int) (uint32_t) key;
			const watch *w = &r->watches[fd];

			if (w->events != 0 && w->life == (uint32_t) (key >> 32) && r->io != NULL)
				r->io(r->arg, fd, events[i].events);
		}
	}
	/* A callback may have set the timer anew: then read() fails, and nothing is due. */
	if (timer_fired && read(r->timer_fd, &expirations, sizeof(expirations)) >= 0 &&
		r->timer != NULL)
		r->timer(r->arg);
}
