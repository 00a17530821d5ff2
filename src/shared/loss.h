/*-------------------------------------------------------------------------
 *
 * loss.h
 *	  Each loss of a lease is counted and logged once.
 *
 * For the worker and for the session: the first to notice counts and logs.
 *
 *-------------------------------------------------------------------------
 */
#ifndef DDBLOCK_SHARED_LOSS_H
#define DDBLOCK_SHARED_LOSS_H

#include "postgres.h"

#include <signal.h>

#include "shared/segment.h"

/* The worker sends it to a session that has lost a lease. */
#define LOSS_SIGNAL SIGUSR2

#define LOSS_WHY_AT_MOST "the session was to hold it no longer (\"at_most\")"

/* The worker: the session has got this hold. */
extern void LossExpect(HoldEntry *entry, lockmgr_session session, uint64 seq);

/*
 * Counts and logs that the lease under the hold that the session got for this
 * request is lost, unless that was done.  The name is in UTF-8.  Cannot fail, needs
 * no transaction.
 */
extern void LossTell(uint32 hold_index, lockmgr_session session, uint64 seq,
					 const char *name, size_t name_len, lease_loss loss, const char *why);

/* A copy of the last one; false if there was none, or it is just being noted. */
extern bool LossLast(SegmentLoss *copy);

#endif							/* DDBLOCK_SHARED_LOSS_H */
