/*-------------------------------------------------------------------------
 *
 * worker_endpoint.c
 *	  Finds Region and endpoint in settings, environment and the shared AWS files.
 *
 * Region and endpoint are looked up once per server start and kept in the
 * segment, because a new worker must find the leases that it adopts in the same
 * table.  If the lookup fails, nobody can have acquired a lock yet: the worker
 * stays up, tells every session what is missing, and tries again after a reload.
 *
 * Instance metadata is the last source for the Region.  Sessions wait while the worker asks it for
 * the first time.  If it does not tell the Region, the worker asks again, with growing delays, and
 * refuses requests.  But if the metadata server has failed for a moment, a request is refused only
 * when it has waited for ddblock.retry_timeout.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "common/pg_prng.h"

#include "shared/errors.h"
#include "worker/worker.h"

#define NO_REGION "No usable Region"

static char problem[MAILBOX_TEXT_SIZE];
static bool may_pass;			/* the problem may pass by itself */
static int64 look_at;			/* when to look again; PG_INT64_MAX: after a reload */

static aws_fetch fetch;
static bool asking;				/* the worker is asking instance metadata for the Region */
static bool outdated;			/* ... and a reload came after it began to ask */
static char told[64];			/* the Region that instance metadata told, or "" */
static char tried[MAILBOX_TEXT_SIZE / 2];	/* why the other sources have no Region */
static aws_renewal renewal;

/*
 * Sets the problem.  The log shows only the first one until a reload: it cannot tell a new problem
 * from an old one, because curl's words for a time-out differ each time.
 */
static void
set_problem(const char *what, const char *error, const char *more)
{
	bool		first = problem[0] == '\0';

	may_pass = false;
	snprintf(problem, sizeof(problem), "%s: %s%s%s.", what, error, more[0] != '\0' ? "; " : "",
			 more);
	if (first)
		ErrorsNoPlace(LOG, problem);
}

static void
take_region(aws_fetch *done, bool found)
{
	asking = false;
	look_at = 0;
	if (found)
		strlcpy(told, done->name, sizeof(told));
	else if (!outdated)
	{
		aws_renewal_failed(&renewal, SegmentNow(), pg_prng_uint64(&pg_global_prng_state));
		look_at = renewal.next;
		set_problem(NO_REGION, tried, done->error);
		may_pass = done->may_pass;
	}
	SegmentTell(&segment->trouble, !found && may_pass ? DYNAMO_UNREACHABLE : DYNAMO_OK, problem);
	aws_wipe(done);
}

/*
 * Is the table's ARN that of a table in another Region?  Amazon's endpoints refuse every request
 * for such a table.
 */
static bool
is_elsewhere(const char *setting, const char *table, const SegmentPlace *place, char *error,
			 size_t size)
{
	char		region[64];

	if (sscanf(table, "arn:%*[^:]:%*[^:]:%63[^:]", region) != 1 ||
		strcmp(region, place->region) == 0 || !aws_is_own_endpoint(place->url))
		return false;
	snprintf(error, size, "%s names a table in Region \"%s\", not in \"%s\"", setting, region,
			 place->region);
	return true;
}

/* The Region is needed even if the endpoint is set: signatures contain it. */
static bool
find_place(const aws_profile *profile, SegmentPlace *place)
{
	aws_found	result;
	char		error[MAILBOX_TEXT_SIZE / 2] = "";
	char		path[MAXPGPATH];

	memset(place, 0, sizeof(*place));
	result = aws_find_region(profile, place->region, sizeof(place->region), tried, sizeof(tried));
	if (result == AWS_NOT_HERE && told[0] != '\0')
	{
		strlcpy(place->region, told, sizeof(place->region));
		result = AWS_FOUND;
	}
	if (result != AWS_FOUND)
	{
		outdated = false;
		asking = result == AWS_NOT_HERE &&
			aws_make_region_plan(profile, &fetch.plan, error, sizeof(error)) == AWS_FOUND;
		if (asking)
			WorkerFetchStart(&fetch, take_region);
		else
			set_problem(NO_REGION, tried, error);
		return false;
	}
	if (!aws_find_endpoint(profile, AWS_DYNAMODB, place->region, place->url,
						   sizeof(place->url), error, sizeof(error)) ||
		!aws_endpoint_host(place->url, place->host, sizeof(place->host), error, sizeof(error)))
		set_problem("No usable endpoint", error, "");
	else if (!aws_find_ca_file(profile, path, sizeof(path), error, sizeof(error)))
		set_problem(NO_AUTHORITIES, error, "");
	else if (is_elsewhere("ddblock.lock_table", ddblock_lock_table, place, error, sizeof(error)) ||
			 is_elsewhere("ddblock.queue_table", ddblock_queue_table, place, error, sizeof(error)))
		set_problem(NO_REGION, error, "");
	else
		return true;
	return false;
}

bool
WorkerFindPlace(int64 now, int64 *wake)
{
	aws_profile profile;
	SegmentPlace place;
	bool		found = false;

	WorkerFetchRun();
	if (segment->place.url[0] == '\0' && !asking && look_at <= now)
	{
		look_at = PG_INT64_MAX;
		WorkerOpenProfile(&profile);
		found = find_place(&profile, &place);
		aws_profile_close(&profile);
		if (found)
			segment->place = place;
	}
	if (segment->place.url[0] == '\0')
	{
		*wake = asking || may_pass ? now + WORKER_FETCH_LOOK_US : look_at;
		return false;
	}
	WorkerFindCredentials();

	/* The log names the table, so that people can compare the clusters that should share it. */
	if (found)
	{
		const char *source = WorkerCredentialsSource();

		ereport(LOG,
				(errmsg("ddblock uses lock table \"%s\" in Region \"%s\" at %s", ddblock_lock_table,
						segment->place.region, segment->place.url),
				 source == NULL ? errdetail("There are no credentials yet.") :
				 WorkerCredentials() != NULL ?
				 errdetail("The credentials come from: %s.", source) :
				 errdetail("The credentials are being fetched from: %s.", source)));
	}
	WorkerCheckExposure();
	return true;
}

void
WorkerPlaceReload(void)
{
	problem[0] = '\0';
	may_pass = false;
	renewal = (aws_renewal) {0};
	look_at = 0;
	outdated = asking;
	if (asking)
		WorkerFetchGiveUp();
}

const char *
WorkerPlaceProblem(bool *passes)
{
	*passes = may_pass;
	return problem;
}
