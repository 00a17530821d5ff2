/*-------------------------------------------------------------------------
 *
 * campaign.h
 *	  Campaigns: locks that the cluster itself wants to hold, to lead.
 *
 * To the lock manager, a campaign is a session with a slot of its own, which waits for
 * its lock, holds it, and lets go of it, through the mailbox.  So its lease is saved,
 * adopted, renewed and lost as all leases are.  While the campaign has its hold, the
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
 * A campaign that is giving up has let go of its hold: no transaction joins any more, and
 * the lock is free when the transactions that have joined before have ended.
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
	lockmgr_session me;			/* the campaign as a session */
	uint64_t	seq;			/* STANDING, LEADING: the request for the lock */
	lockmgr_grant grant;		/* LEADING, GIVING_UP: what the campaign was granted */
	int64_t		since;			/* when the state began */
	int64_t		stand_at;		/* RESTING: when to stand for the lock */
	int64_t		rest_us;		/* GIVING_UP: how long to rest when the lock is free */
	int64_t		interrupt_at;	/* GIVING_UP: when to interrupt the transactions that have
								 * joined; 0: never */
	char		name[CAMPAIGN_NAME_MAX + 1];
} campaign;

/* A campaign in shared memory. */
typedef struct campaign_entry
{
	shared32	changes;
	campaign	c;
} campaign_entry;

/* The worker's side: what runs the campaigns. */
typedef struct campaigner
{
	void	   *arg;
	const mailbox *box;
	lockmgr    *lm;
	campaign_entry *entries;	/* [CAMPAIGNS_MAX] */
	uint32_t	first_slot;		/* the slots of the campaigns begin with this one */
	int64_t		retry_us;		/* how long to rest after a refusal */

	/* Fills in the campaign's request for its lock, in its slot. */
	void		(*post) (void *arg, const campaign *c);

	/* Reads the answer in the campaign's slot, and sets c->grant.  False: the lock is refused. */
	bool		(*take) (void *arg, campaign *c);
} campaigner;

/*
 * Reads the next name of a list such as "a, b".  False at the end, with *wrong NULL; or if the
 * list is wrong, with *wrong a sentence that says why.
 */
extern bool campaign_list_next(const char **at, char name[CAMPAIGN_NAME_MAX + 1],
							   const char **wrong);
extern bool campaign_is_listed(const char *list, const char *name);

/* NULL, or what is wrong with the list as a whole. */
extern const char *campaign_list_wrong(const char *list);

/*
 * Takes the next steps of all campaigns: stands for the locks that the list names, and gives up
 * all others.  Returns when to call this again, if nothing happens before.
 */
extern int64_t campaigns_run(campaigner *me, int64_t now, const char *list);

/*
 * Gives up the leadership of this name.  The campaign rests for rest_us when the lock is free.
 * After wait_us (0: never) it interrupts the transactions that have joined.  Returns whether the
 * cluster led.
 */
extern bool campaign_resign(campaigner *me, int64_t now, const char *name,
							int64_t rest_us, int64_t wait_us);

/* Copies a campaign, for a session.  False: the worker is writing it, try again. */
extern bool campaign_read(campaign_entry *entry, campaign *copy);

#endif							/* DDBLOCK_LOCK_CAMPAIGN_H */
