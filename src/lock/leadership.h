/*-------------------------------------------------------------------------
 *
 * leadership.h
 *	  Leaderships: locks that the cluster itself wants to hold, to lead.
 *
 * To the lock manager, a leadership is a session with a slot of its own, which waits for
 * its lock, holds it, and lets go of it, through the mailbox.  So its lease is saved,
 * adopted, renewed and lost as all leases are.  While the leadership has its hold, the
 * cluster leads: transactions of its sessions join the hold.
 *
 *		 listed, or rested
 *	 RESTING ---------> STANDING ---------> LEADING ---> GIVING_UP
 *		^ ^                 |      granted    |  asked to,     |
 *		| +-----------------+                 |  not listed    |
 *		|   refused, asked to, not listed     |                |
 *		+-------------------------------------+----------------+
 *						lost                       the lock is free
 *
 * A leadership that is giving up has let go of its hold: no transaction joins any more, and
 * the lock is free when the transactions that have joined before have ended.
 *
 * The leaderships are in shared memory, each with a counter of changes; the worker writes
 * them, sessions read them.
 *
 *-------------------------------------------------------------------------
 */
#ifndef DDBLOCK_LOCK_LEADERSHIP_H
#define DDBLOCK_LOCK_LEADERSHIP_H

#include "lock/mailbox.h"

#define LEADERSHIPS_MAX		16
#define LEADERSHIP_NAME_MAX	255		/* bytes */

typedef enum leadership_state
{
	LEADERSHIP_NONE,				/* the slot is unused */
	LEADERSHIP_RESTING,			/* until stand_at */
	LEADERSHIP_STANDING,			/* asks for the lock */
	LEADERSHIP_LEADING,
	LEADERSHIP_GIVING_UP
} leadership_state;

typedef struct leadership
{
	leadership_state state;
	lockmgr_session me;			/* the leadership as a session */
	uint64_t	seq;			/* STANDING, LEADING: the request for the lock */
	lockmgr_grant grant;		/* LEADING, GIVING_UP: what the leadership was granted */
	int64_t		since;			/* when the state began */
	int64_t		stand_at;		/* RESTING: when to stand for the lock */
	int64_t		rest_us;		/* GIVING_UP: how long to rest when the lock is free */
	int64_t		interrupt_at;	/* GIVING_UP: when to interrupt the transactions that have
								 * joined; 0: never */
	char		name[LEADERSHIP_NAME_MAX + 1];
} leadership;

/* A leadership in shared memory. */
typedef struct leadership_entry
{
	shared32	changes;
	leadership	c;
} leadership_entry;

/* The worker's side: what runs the leaderships. */
typedef struct leadership_worker
{
	void	   *arg;
	const mailbox *box;
	lockmgr    *lm;
	leadership_entry *entries;	/* [LEADERSHIPS_MAX] */
	uint32_t	first_slot;		/* the slots of the leaderships begin with this one */
	int64_t		retry_us;		/* how long to rest after a refusal */

	/* Fills in the leadership's request for its lock, in its slot. */
	void		(*post) (void *arg, const leadership *c);

	/* Reads the answer in the leadership's slot, and sets c->grant.  False: the lock is refused. */
	bool		(*take) (void *arg, leadership *c);
} leadership_worker;

/*
 * Reads the next name of a list such as "a, b".  False at the end, with *wrong NULL; or if the
 * list is wrong, with *wrong a sentence that says why.
 */
extern bool leadership_list_next(const char **at, char name[LEADERSHIP_NAME_MAX + 1],
							   const char **wrong);
extern bool leadership_is_listed(const char *list, const char *name);

/* NULL, or what is wrong with the list as a whole. */
extern const char *leadership_list_wrong(const char *list);

/*
 * Takes the next steps of all leaderships: stands for the locks that the list names, and gives up
 * all others.  Returns when to call this again, if nothing happens before.
 */
extern int64_t leaderships_run(leadership_worker *me, int64_t now, const char *list);

/*
 * Gives up the leadership of this name.  The leadership rests for rest_us when the lock is free.
 * After wait_us (0: never) it interrupts the transactions that have joined.  Returns whether the
 * cluster led.
 */
extern bool leadership_resign(leadership_worker *me, int64_t now, const char *name,
							int64_t rest_us, int64_t wait_us);

/* Copies a leadership, for a session.  False: the worker is writing it, try again. */
extern bool leadership_read(leadership_entry *entry, leadership *copy);

#endif							/* DDBLOCK_LOCK_LEADERSHIP_H */
