/*-------------------------------------------------------------------------
 *
 * worker_gate.h
 *	  Asks DynamoDB what must be known before locks are acquired (lock/gate.h).
 *
 *-------------------------------------------------------------------------
 */
#ifndef DDBLOCK_WORKER_WORKER_GATE_H
#define DDBLOCK_WORKER_WORKER_GATE_H

#include "postgres.h"

#include "lock/gate.h"
#include "worker/worker_call.h"

/* After the place and the clock. */
extern void WorkerGateInit(void);

/* Call for each reply, to any call. */
extern void WorkerGateSee(const WorkerCall *call, const dynamo_reply *reply);

/* Asks what is due.  Returns when it must be called again. */
extern int64 WorkerGateRun(int64 now);

/* As gate_passes(), gate_idle() and gate_judge(). */
extern bool WorkerGatePasses(int64 now);
extern void WorkerGateIdle(void);
extern gate_verdict WorkerGateJudge(int64 since, int64 now, const gate_words **words,
									int64 *until);

#endif							/* DDBLOCK_WORKER_WORKER_GATE_H */
