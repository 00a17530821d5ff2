/*-------------------------------------------------------------------------
 *
 * client.h
 *	  What the files of ddblock-run share.
 *
 *-------------------------------------------------------------------------
 */
#ifndef DDBLOCK_CLIENT_CLIENT_H
#define DDBLOCK_CLIENT_CLIENT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

/* ----------------------------------------------------------------
 * command.c: The command that ddblock-run runs: its process group, its signals, its terminal.
 * ----------------------------------------------------------------
 */

typedef struct command_state
{
	bool		runs;
	int			status;			/* when it has ended: the exit status for us */
	int			signals;		/* readable when there is something for command_read_signals() */
} command_state;

extern command_state command;

extern void command_start(char **argv);

/*
 * Passes signals on to the command, and finds out whether it has ended.  Returns the last
 * signal that was meant to end us, or 0.
 */
extern int	command_read_signals(void);

/* Tells it to end (SIGTERM, once), or ends it and what it has left in its group (SIGKILL). */
extern void command_end(bool at_once);

/* ----------------------------------------------------------------
 * common.c: What all files of ddblock-run use: exit statuses, messages, the clock.
 * ----------------------------------------------------------------
 */

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

/* ----------------------------------------------------------------
 * lease.c: The session of ddblock-run that holds the lock, and what its server says of the lease.
 * ----------------------------------------------------------------
 */

typedef struct command_lease
{
	const char *name;			/* of the lock */
	int64_t		length_us;		/* so long the lock outlives the session */
	int64_t		deadline;		/* on now_us(): the lock is ours until then */
	bool		lost;			/* the lock, or the connection */
	int64_t		told_at;		/* when the question was sent that was answered last */
	char	   *others;			/* processes of other sessions that held the lock then */
	bool		joined;			/* it is the lock of who runs us, too */
	bool		released;
} command_lease;

extern command_lease lease;

typedef struct lease_wish
{
	const char *dbname;			/* null: as psql */
	const char *name;
	const char *length;			/* null: ddblock.lease_duration */
	bool		waits;
	const char *wait;			/* null: without limit */
	int			busy_status;	/* exits with it if the lock is not free in time */
} lease_wish;

/*
 * Takes the lock, and puts into the environment how the command's sessions join it.  Waits
 * for the server; what goes wrong ends the program.
 */
extern void lease_take(const lease_wish *wish);

/*
 * From here on, nothing waits for the server.  All of this may find that the lock is lost.
 *
 * lease_ask() asks until when the lock is ours, unless a question is under way, or the last
 * one was sent less than that ago; returns when there is something to do here.
 */
extern int64_t lease_ask(int64_t interval_us);
extern int64_t lease_release(void);
extern int	lease_socket(void); /* readable when there is something for lease_read(); or -1 */
extern void lease_read(void);

/* When a command must be told to end, so that it has ended at the deadline. */
extern int64_t lease_end_at(void);

extern void lease_lose(const char *why);

/* Ends the session. */
extern void lease_close(void);

#endif							/* DDBLOCK_CLIENT_CLIENT_H */
