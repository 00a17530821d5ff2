/*-------------------------------------------------------------------------
 *
 * campaign_names.h
 *	  Locks that the cluster itself wants to hold: no session takes them.
 *
 *-------------------------------------------------------------------------
 */
#ifndef DDBLOCK_SESSION_CAMPAIGN_NAMES_H
#define DDBLOCK_SESSION_CAMPAIGN_NAMES_H

#include "postgres.h"

#include "session/held.h"
#include "session/session.h"

/*
 * Raises 55000 if ddblock.leaderships has the name, or if the transaction has the lock as a
 * leader's.  held: this session's note of it, or NULL.
 */
extern void CampaignNamesRefuse(const LockName *name, const HeldLock *held);

#endif							/* DDBLOCK_SESSION_CAMPAIGN_NAMES_H */
