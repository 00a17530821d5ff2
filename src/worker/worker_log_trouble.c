/*-------------------------------------------------------------------------
 *
 * worker_log_trouble.c
 *	  Tells people when DynamoDB does not work for us: the log, and sessions
 *	  that wait.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "lock/trouble_log.h"
#include "worker/worker.h"

const char *
WorkerLeftOut(int count)
{
	return count == 0 ? "" :
		psprintf("\nThe log shows one such failure a minute; %d were left out before it.", count);
}

/*
 * Throttling has ended when DynamoDB has throttled no request for so long.  A request that succeeds
 * does not mean its end, because some requests succeed meanwhile.
 */
#define THROTTLING_ENDS_US (60 * USECS_PER_SEC)

/* Logs throttling of each of the two tables, once when it begins, and once when it has ended. */
void
WorkerLogThrottling(dynamo_op op, const dynamo_reply *reply)
{
	static int64 last[2];
	bool		queue = dynamo_is_queue(op);
	const char *table = queue ? ddblock_queue_table : ddblock_lock_table;
	const dynamo_result *throttled = NULL;
	int64		now = SegmentNow();

	for (int i = 0; i < reply->count && throttled == NULL; i++)
	{
		if (reply->results[i].status == DYNAMO_THROTTLED)
			throttled = &reply->results[i];
	}
	if (throttled != NULL && last[queue] == 0)
		ereport(LOG,
				(errmsg("DynamoDB throttles requests to table \"%s\", which are repeated", table),
				 errdetail("%s", Utf8Quiet(throttled->message)),
				 errhint("%s", dynamo_error_words(DYNAMO_THROTTLED, throttled->message)->hint)));
	if (throttled != NULL)
		last[queue] = now;
	else if (last[queue] != 0 && now - last[queue] >= THROTTLING_ENDS_US)
	{
		last[queue] = 0;
		ereport(LOG,
				(errmsg("DynamoDB has throttled no request to table \"%s\" for a minute", table)));
	}
}

/* trouble_log.h says which failures the log shows if some requests fail and others do not. */
void
WorkerLogTrouble(const dynamo_reply *reply)
{
	static trouble_log log;
	dynamo_status status = reply->status;
	bool		trouble = status == DYNAMO_UNREACHABLE || status == DYNAMO_UNKNOWN ||
		status == DYNAMO_CREDENTIALS || status == DYNAMO_CLOCK_SKEW ||
		status == DYNAMO_ACCESS_DENIED || status == DYNAMO_TABLE_MISSING ||
		status == DYNAMO_MALFORMED || status == DYNAMO_UNTRUSTED || status == DYNAMO_WRONG_SERVICE;
	const dynamo_words *words = trouble ? dynamo_error_words(status, reply->message) : NULL;
	int			left_out;

	if (!trouble)
	{
		if (trouble_log_succeeded(&log, SegmentNow()))
			ereport(LOG, (errmsg("DynamoDB replies again")));
	}
	else if (trouble_log_failed(&log, words, SegmentNow(), &left_out))
	{
		const char *hint = status != DYNAMO_TABLE_MISSING ? words->hint :
			"Compare Region, endpoint and table with those of the other clusters. If they agree, "
			"create the table with ddb_lock_table_create().";
		bool		sources = status == DYNAMO_CREDENTIALS && !WorkerCredentialsTold();

		ereport(LOG,
				(errmsg("could not use table \"%s\" at %s", ddblock_lock_table, segment->place.url),
				 errdetail("%s%s%s%s", Utf8Quiet(reply->message),
						   sources ? "\n" : "", sources ? WorkerCredentialsWords() : "",
						   WorkerLeftOut(left_out)),
				 errhint("%s", hint)));
	}
}

void
WorkerPublishTrouble(const dynamo_reply *reply)
{
	static bool published = false;
	bool		repeats = dynamo_is_transient(reply->status);

	if (repeats || published)
		SegmentTell(&segment->trouble, repeats ? reply->status : DYNAMO_OK,
					repeats ? reply->message : "");
	published = repeats;
}
