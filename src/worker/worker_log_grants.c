/*-------------------------------------------------------------------------
 *
 * worker_log_grants.c
 *	  ddblock.log_grants: a line in the log for each grant, loss and release.
 *
 * Programs read these lines, so a later version may add a key, but must not change one.  The text
 * behind the colon is JSON, and has no line break, whatever the lock's name is.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "utils/json.h"
#include "utils/timestamp.h"

#include "worker/worker.h"

static void
add_text(StringInfo out, const char *key, const char *text)
{
	appendStringInfo(out, ", \"%s\": ", key);
	escape_json(out, Utf8Quiet(text));
}

void
WorkerLogHold(const char *event, const saved_hold *hold, int64 until)
{
	const LeaseEntry *entry = &segment_leases[hold->lease_index];
	TimestampTz at;
	int64		now;
	StringInfoData out;

	if (!ddblock_log_grants || entry->lease.generation != hold->lease_generation)
		return;
	at = GetCurrentTimestamp();
	now = SegmentNow();
	initStringInfo(&out);
	appendStringInfo(&out, "{\"at\": \"%s\"", timestamptz_to_str(at));
	if (until < now)
		appendStringInfo(&out, ", \"until\": \"%s\"", timestamptz_to_str(at - (now - until)));
	add_text(&out, "lock", entry->name);
	appendStringInfo(&out, ", \"token\": " INT64_FORMAT ", \"mode\": \"%s\", \"permits\": %d, "
					 "\"joined\": %s, \"leader\": %s, \"pid\": %d", hold->token, dynamo_mode_name(hold->mode),
					 hold->permits, hold->joined ? "true" : "false",
					 hold->leadership ? "true" : "false", hold->holder.pid);
	add_text(&out, "user", hold->holder.user);
	add_text(&out, "database", hold->holder.database);
	add_text(&out, "owner", segment->owner);
	ereport(LOG, (errmsg("lock %s: %s}", event, out.data)));
}
