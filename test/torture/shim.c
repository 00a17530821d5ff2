/*
 * shim.c
 *	  A library to be preloaded into a PostgreSQL cluster: moves its wall clock,
 *	  breaks its name resolution, and lets its machine stand still, all by command.
 *
 * The file that $TORTURE_SHIM names is mapped: an offset of the wall clock in
 * seconds, whether names resolve, how often one was refused, and for how many
 * microseconds the machine has stood still.  The driver writes all but the third.
 *
 * A step of the wall clock leaves CLOCK_BOOTTIME alone.  It misses the time for which a
 * hypervisor has stopped the machine.  The driver adds to that only while the cluster's
 * processes are stopped, and no more than they have been: no clock goes back.
 *
 * One name is known: HOST, which is 127.0.0.1.
 *
 * With "late_select", a signal that ends a sleep of select()'s caller comes just before
 * select() waits, which it does not notice then: so PostgreSQL 15's postmaster may sleep over
 * the end of a child.
 */
#define _GNU_SOURCE

#include <dlfcn.h>
#include <fcntl.h>
#include <netdb.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/select.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#define HOST "dynamodb.torture"

typedef struct Commands
{
	int64_t		offset;
	int64_t		names_fail;
	int64_t		refused;
	int64_t		stood_still_us;
	int64_t		late_select;
} Commands;

typedef int (*clock_gettime_function) (clockid_t, struct timespec *);
typedef int (*timer_settime_function) (timer_t, int, const struct itimerspec *,
									   struct itimerspec *);
typedef int (*getaddrinfo_function) (const char *, const char *,
									 const struct addrinfo *, struct addrinfo **);
typedef int (*select_function) (int, fd_set *, fd_set *, fd_set *, struct timeval *);

static volatile Commands nothing;
static volatile Commands *commands = &nothing;
static clock_gettime_function real_clock_gettime;
static timer_settime_function real_timer_settime;
static getaddrinfo_function real_getaddrinfo;
static select_function real_select;

__attribute__((constructor))
static void
attach(void)
{
	const char *path = getenv("TORTURE_SHIM");
	int			fd = path != NULL ? open(path, O_RDWR | O_CLOEXEC) : -1;
	void	   *map;

	*(void **) &real_clock_gettime = dlsym(RTLD_NEXT, "clock_gettime");
	*(void **) &real_timer_settime = dlsym(RTLD_NEXT, "timer_settime");
	*(void **) &real_getaddrinfo = dlsym(RTLD_NEXT, "getaddrinfo");
	*(void **) &real_select = dlsym(RTLD_NEXT, "select");
	if (fd < 0)
		return;
	map = mmap(NULL, sizeof(Commands), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (map != MAP_FAILED)
		commands = map;
	close(fd);
}

static void
move(struct timespec *time, int64_t us)
{
	int64_t		ns = time->tv_sec * INT64_C(1000000000) + time->tv_nsec + us * 1000;

	time->tv_sec = ns / 1000000000;
	time->tv_nsec = ns % 1000000000;
}

int
clock_gettime(clockid_t clock, struct timespec *now)
{
	int			result = real_clock_gettime(clock, now);

	if (result == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE))
		now->tv_sec += commands->offset;
	if (result == 0 && clock == CLOCK_BOOTTIME)
		move(now, -commands->stood_still_us);
	return result;
}

/* The kernel's timers are of its own CLOCK_BOOTTIME; no others have an absolute time. */
int
timer_settime(timer_t timer, int flags, const struct itimerspec *restrict value,
			  struct itimerspec *restrict old)
{
	struct itimerspec moved = *value;

	if ((flags & TIMER_ABSTIME) != 0 && (value->it_value.tv_sec != 0 || value->it_value.tv_nsec != 0))
		move(&moved.it_value, commands->stood_still_us);
	return real_timer_settime(timer, flags, &moved, old);
}

int
gettimeofday(struct timeval *restrict now, void *restrict zone)
{
	struct timespec precise;

	(void) zone;
	if (clock_gettime(CLOCK_REALTIME, &precise) != 0)
		return -1;
	now->tv_sec = precise.tv_sec;
	now->tv_usec = precise.tv_nsec / 1000;
	return 0;
}

time_t
time(time_t *result)
{
	struct timespec precise;

	if (clock_gettime(CLOCK_REALTIME, &precise) != 0)
		return (time_t) -1;
	if (result != NULL)
		*result = precise.tv_sec;
	return precise.tv_sec;
}

int
getaddrinfo(const char *restrict node, const char *restrict service,
			const struct addrinfo *restrict hints, struct addrinfo **restrict result)
{
	if (node == NULL || strcmp(node, HOST) != 0)
		return real_getaddrinfo(node, service, hints, result);
	if (commands->names_fail)
	{
		__atomic_add_fetch(&commands->refused, 1, __ATOMIC_RELAXED);
		return EAI_AGAIN;
	}
	return real_getaddrinfo("127.0.0.1", service, hints, result);
}

int
select(int count, fd_set *restrict read, fd_set *restrict write, fd_set *restrict error,
	   struct timeval *restrict timeout)
{
	/* Without descriptors, it is a sleep itself. */
	if (count > 0 && commands->late_select)
		sleep(60);
	return real_select(count, read, write, error, timeout);
}
