/*-------------------------------------------------------------------------
 *
 * lease.h
 *	  The session of ddblock-run that holds the lock, and what its server says of the lease.
 *
 *-------------------------------------------------------------------------
 */
#ifndef CLIENT_LEASE_H
#define CLIENT_LEASE_H

#include <stdbool.h>
#include <stdint.h>

typedef struct lease_state
{
	const char *name;			/* of the lock */
	int64_t		length_us;		/* so long the lock outlives the session */
	int64_t		deadline;		/* on now_us(): the lock is ours until then */
	bool		lost;			/* the lock, or the connection */
	int64_t		told_at;		/* when the question was sent that was answered last */
	char	   *others;			/* processes of other sessions that held the lock then */
	bool		joined;			/* it is the lock of who runs us, too */
	bool		released;
} lease_state;

extern lease_state lease;

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

#endif							/* CLIENT_LEASE_H */
