/*-------------------------------------------------------------------------
 *
 * worker_campaigns.h
 *	  The cluster's campaigns: see lock/campaign.h.
 *
 *-------------------------------------------------------------------------
 */
#ifndef DDBLOCK_WORKER_CAMPAIGNS_H
#define DDBLOCK_WORKER_CAMPAIGNS_H

#include "postgres.h"

/* Before the worker adopts: a session may want to resign. */
extern void WorkerCampaignsInit(void);

/* Once in each turn; returns when it must be called again. */
extern int64 WorkerCampaignsRun(int64 now);

/* As campaign_resign(). */
extern bool WorkerCampaignsResign(int64 now, const char *name, int64 rest_us, int64 wait_us);

#endif							/* DDBLOCK_WORKER_CAMPAIGNS_H */
