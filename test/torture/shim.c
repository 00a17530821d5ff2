/*
 * shim.c
 *	  A library to be preloaded into a PostgreSQL cluster: moves its wall clock
 *	  and breaks its name resolution, both by command.
 *
 * The file that $TORTURE_SHIM names is mapped: an offset of the wall clock in
 * seconds, whether names resolve, and how often one was refused.  The driver
 * writes the first two.  CLOCK_BOOTTIME and CLOCK_MONOTONIC are left alone, as
 * a step of the wall clock leaves them alone.
 *
 * One name is known: HOST, which is 127.0.0.1.
 */
#define _GNU_SOURCE

#include <dlfcn.h>
#include <fcntl.h>
#include <netdb.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#define HOST "dynamodb.torture"

typedef struct Commands
{
	int64_t		offset;
	int64_t		names_fail;
	int64_t		refused;
} Commands;

typedef int (*clock_gettime_function) (clockid_t, struct timespec *);
typedef int (*getaddrinfo_function) (const char *, const char *,
									 const struct addrinfo *, struct addrinfo **);

static volatile Commands nothing;
static volatile Commands *commands = &nothing;
static clock_gettime_function real_clock_gettime;
static getaddrinfo_function real_getaddrinfo;

__attribute__((constructor))
static void
attach(void)
{
	const char *path = getenv("TORTURE_SHIM");
	int			fd = path != NULL ? open(path, O_RDWR | O_CLOEXEC) : -1;
	void	   *map;

	*(void **) &real_clock_gettime = dlsym(RTLD_NEXT, "clock_gettime");
	*(void **) &real_getaddrinfo = dlsym(RTLD_NEXT, "getaddrinfo");
	if (fd < 0)
		return;
	map = mmap(NULL, sizeof(Commands), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (map != MAP_FAILED)
		commands = map;
	close(fd);
}

int
clock_gettime(clockid_t clock, struct timespec *now)
{
	int			result = real_clock_gettime(clock, now);

	if (result == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE))
		now->tv_sec += commands->offset;
	return result;
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
