/*-------------------------------------------------------------------------
 *
 * common.h
 *	  What all files of ddblock-run use: exit statuses, messages, the clock.
 *
 *-------------------------------------------------------------------------
 */
#ifndef CLIENT_COMMON_H
#define CLIENT_COMMON_H

#include <stdint.h>
#include <stdlib.h>

/* Exit statuses, as flock(1) and timeout(1) have them. */
#define EXIT_BUSY		1		/* the lock was not free in time; --conflict-exit-code */
#define EXIT_LOST		124		/* the lock was lost; a command that still ran was ended */
#define EXIT_OURS		125		/* ddblock-run itself failed */
#define EXIT_NO_EXEC	126		/* the command cannot be run */
#define EXIT_NOT_FOUND	127		/* ... or is not there */
#define EXIT_SIGNAL		128		/* plus the signal that ended the command */

extern void say(const char *format,...) __attribute__((format(printf, 1, 2)));
extern char *text(const char *format,...) __attribute__((format(printf, 1, 2)));

/* The same pointer; ends the program if it is null. */
extern void *checked(void *memory);

/* The clock of leases, in microseconds; it counts the time in which the machine sleeps. */
extern int64_t now_us(void);

extern int64_t between(int64_t low, int64_t value, int64_t high);

#define die(...) \
	do { say(__VA_ARGS__); exit(EXIT_OURS); } while (0)

#endif							/* CLIENT_COMMON_H */
