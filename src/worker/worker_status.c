/*-------------------------------------------------------------------------
 *
 * worker_status.c
 *	  What the worker publishes of itself, for ddb_status.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "utils/timestamp.h"

#include "worker/worker.h"

bool		worker_takes_over;

static WorkerStatus status;

void
WorkerStatusInit(void)
{
	status = segment->status;	/* only workers write it */
	status.since = GetCurrentTimestamp();
	status.credentials[0] = '\0';
	status.credentials_expire_s = 0;
	status.connections = 0;
	http_pool_library(status.http_library, sizeof(status.http_library));
	SegmentPublishStatus(&status);
	SegmentTell(&segment->trouble, DYNAMO_OK, "");	/* ends what an earlier worker told */
}

/* A reply that refuses a write's condition is good, too: mostly, somebody else has the lock. */
void
WorkerStatusReply(const dynamo_reply *reply)
{
	if (!dynamo_is_failure(reply->status))
		status.last_reply = SegmentNow();
}

void
WorkerStatusCopy(const char *owner, int64 until)
{
	strlcpy(status.copy, owner, sizeof(status.copy));
	status.copy_until = until;
}

void
WorkerPublishStatus(void)
{
	const aws_credentials *credentials = WorkerCredentials();
	const char *proxy = http_pool_proxy(worker_pool);

	strlcpy(status.credentials, credentials != NULL ? credentials->source : "",
			sizeof(status.credentials));
	status.credentials_expire_s = credentials != NULL ? credentials->expires_s : 0;
	status.has_place = true;
	status.takes_over = worker_takes_over;
	status.clock = segment->clock;
	status.connections = http_pool_connections(worker_pool);

	/* The log tells each change of the proxy, so that people can see which way requests go. */
	if (strcmp(status.proxy, proxy) != 0)
	{
		strlcpy(status.proxy, proxy, sizeof(status.proxy));
		ereport(LOG,
				(proxy[0] == '\0' ? errmsg("ddblock connects to DynamoDB without a proxy") :
				 errmsg("ddblock connects to DynamoDB through the proxy %s", proxy)));
	}
	SegmentPublishStatus(&status);
}
