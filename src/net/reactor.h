/*-------------------------------------------------------------------------
 *
 * reactor.h
 *	  An epoll instance that holds curl's sockets and one timerfd: one
 *	  descriptor to wait for.
 *
 * The caller waits until reactor_fd() is readable (with poll, or in
 * a PostgreSQL WaitEventSet), then calls reactor_run().  Single-threaded.
 *
 *-------------------------------------------------------------------------
 */
#ifndef DDBLOCK_NET_REACTOR_H
#define DDBLOCK_NET_REACTOR_H

#include <stdbool.h>
#include <stdint.h>

typedef struct reactor reactor;

#define REACTOR_IN	1
#define REACTOR_OUT 2
#define REACTOR_ERR 4

typedef void (*reactor_io_fn) (void *arg, int fd, int events);
typedef void (*reactor_timer_fn) (void *arg);

/* Microseconds on CLOCK_BOOTTIME, which counts a suspended machine. */
extern int64_t reactor_now_us(void);

/* NULL with errno set on failure. */
extern reactor *reactor_new(void);
extern void reactor_free(reactor *r);
extern int	reactor_fd(const reactor *r);

/* All sockets share one callback, and there is one timer. */
extern void reactor_on_io(reactor *r, reactor_io_fn fn, void *arg);
extern void reactor_on_timer(reactor *r, reactor_timer_fn fn, void *arg);

/*
 * events 0 removes the descriptor; do so before closing it.  REACTOR_ERR is
 * always reported.  False with errno set on failure.
 */
extern bool reactor_watch(reactor *r, int fd, int events);

/* Microseconds from now on CLOCK_BOOTTIME; negative: no timer. */
extern bool reactor_set_timer(reactor *r, int64_t microseconds);

/*
 * Handles what is ready, without blocking: sockets first, so that a time-out never
 * wins against data that has already arrived.
 */
extern void reactor_run(reactor *r);

#endif							/* DDBLOCK_NET_REACTOR_H */
