/*-------------------------------------------------------------------------
 *
 * campaign.h
 *	  Campaigns: locks that the cluster itself wants to hold, to lead.
 *
 * To the lock manager, a campaign is a session with a slot of its own, which waits for
 * its lock, holds it, and lets go of it, through the mailbox.  So its lease is saved,
 * adopted, renewed and lost as all leases are.  While the campaign has its hold, the
 * cluster leads: transactions join the hold, and end it with it.
 *
 *		 listed, or rested
 *	 RESTING ---------> STANDING ---------> LEADING ---> GIVING_UP
 *		^ ^                 |      granted    |  asked to,     |
 *		| +-----------------+                 |  not listed    |
 *		|   refused, asked to, not listed     |                |
 *		+-------------------------------------+----------------+
 *						lost                       the lock is free
 *
 * A campaign that is giving up has let go of its hold: nobody joins it any more, and the
 * lock is free when those who have joined it have ended.
 *
 * The campaigns are in shared memory, each with a counter of changes; the worker writes
 * them, sessions read them.
 *
 *-------------------------------------------------------------------------
 */
#ifndef DDBLOCK_LOCK_CAMPAIGN_H
#define DDBLOCK_LOCK_CAMPAIGN_H

#include "lock/mailbox.h"

#define CAMPAIGNS_MAX		16
#define CAMPAIGN_NAME_MAX	255		/* bytes */

typedef enum campaign_state
{
	CAMPAIGN_NONE,				/* the slot is unused */
	CAMPAIGN_RESTING,			/* until stand_at */
	CAMPAIGN_STANDING,			/* asks for the lock */
	CAMPAIGN_LEADING,
	CAMPAIGN_GIVING_UP
} campaign_state;

typedef struct campaign
{
	campaign_state state;
	lockmgr_session me;
	uint64_t	seq;			/* STANDING, LEADING: the request for the lock */
	lockmgr_grant grant;		/* LEADING, GIVING_UP: as it was granted */
	int64_t		since;			/* of the state */
	int64_t		stand_at;		/* RESTING */
	int64_t		rest_us;		/* GIVING_UP: rests so long when the lock is free, and */
	int64_t		interrupt_at;	/* ... interrupts who has joined then; 0: never */
	char		name[CAMPAIGN_NAME_MAX + 1];
} campaign;

/* In shared memory. */
typedef struct campaign_entry
{
	shared32	changes;
	campaign	c;
} campaign_entry;

/* The worker's side. */
typedef struct campaigner
{
	void	   *arg;
	const mailbox *box;
	lockmgr    *lm;
	campaign_entry *entries;	/* [CAMPAIGNS_MAX] */
	uint32_t	first_slot;		/* of as many */
	int64_t		retry_us;		/* after a refusal */

	/* Fills in the request in the campaign's slot: it wants the lock. */
	void		(*post) (void *arg, const campaign *c);

	/* Reads the answer; sets what is granted.  False: it is refused. */
	bool		(*take) (void *arg, campaign *c);
} campaigner;

/*
 * The next name of a list "a, b"; false at the end, or if the list is wrong: then *wrong
 * says why, in a sentence, else it is NULL.
 */
extern bool campaign_list_next(const char **at, char name[CAMPAIGN_NAME_MAX + 1],
							   const char **wrong);
extern bool campaign_is_listed(const char *list, const char *name);

/* NULL, or what is wrong with the list as a whole. */
extern const char *campaign_list_wrong(const char *list);

/*
 * Stands for what is listed, and gives up the rest.  Returns when to call it again, if
 * nothing happens before.
 */
extern int64_t campaigns_run(campaigner *me, int64_t now, const char *list);

/*
 * Gives up the campaign, and rests for so long when the lock is free; after wait_us
 * (0: never) interrupts who has joined.  Returns whether the cluster led.
 */
extern bool campaign_resign(campaigner *me, int64_t now, const char *name,
							int64_t rest_us, int64_t wait_us);

/* For sessions.  False: the worker is writing it, try again. */
extern bool campaign_read(campaign_entry *entry, campaign *copy);

#endif							/* DDBLOCK_LOCK_CAMPAIGN_H */
