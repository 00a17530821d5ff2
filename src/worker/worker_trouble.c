/*-------------------------------------------------------------------------
 *
 * worker_trouble.c
 *	  Tells people when DynamoDB does not work for us: the log, and sessions
 *	  that wait.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "shared/segment.h"
#include "shared/settings.h"
#include "shared/shared.h"
#include "worker/worker.h"

void
WorkerLogTrouble(const dynamo_reply *reply)
{
	static bool logged = false;
	bool		trouble = reply->status == DYNAMO_UNREACHABLE ||
		reply->status == DYNAMO_UNKNOWN || reply->status == DYNAMO_CREDENTIALS ||
		reply->status == DYNAMO_CLOCK_SKEW ||
		reply->status == DYNAMO_ACCESS_DENIED ||
		reply->status == DYNAMO_TABLE_MISSING || reply->status == DYNAMO_MALFORMED ||
		reply->status == DYNAMO_UNTRUSTED || reply->status == DYNAMO_WRONG_SERVICE;

	if (trouble == logged)
		return;
	logged = trouble;
	if (!trouble)
		ereport(LOG, (errmsg("DynamoDB replies again")));
	else
		ereport(LOG,
				(errmsg("could not use table \"%s\" at %s: %s%s%s", ddblock_lock_table,
						segment->place.url,
						Utf8Quiet(reply->type, strlen(reply->type)),
						reply->type[0] ? ": " : "",
						Utf8Quiet(reply->message, strlen(reply->message))),
				 reply->status == DYNAMO_CREDENTIALS && !WorkerCredentialsTold() ?
				 errhint("%s", WorkerCredentialsHint()) : 0,
				 reply->status == DYNAMO_TABLE_MISSING ?
				 errhint("Compare Region, endpoint and table with those of the other clusters. If "
						 "they agree, create the table with ddb_lock_table_create().") : 0));
}

void
WorkerPublishTrouble(const dynamo_reply *reply)
{
	static bool published = false;
	bool		repeats = dynamo_is_transient(reply->status);

	if (repeats || published)
		SegmentTellTrouble(repeats ? reply->status : DYNAMO_OK, repeats ? reply->message : "");
	published = repeats;
}
