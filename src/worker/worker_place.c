/*-------------------------------------------------------------------------
 *
 * worker_place.c
 *	  Finds Region and endpoint in settings, environment and the shared AWS files.
 *
 * Region and endpoint are looked up once per server start and kept in the
 * segment, because a new worker must find the leases that it adopts in the same
 * table.  If the lookup fails, nobody can have acquired a lock yet: the worker
 * stays up, tells every caller what is missing, and tries again after a reload.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <stdlib.h>

#include "aws/aws.h"
#include "shared/errors.h"
#include "shared/settings.h"
#include "worker/worker.h"

static char problem[MAILBOX_TEXT_SIZE];

/* The Region is needed even if the endpoint is set: signatures contain it. */
static bool
find_endpoint(SegmentPlace *place)
{
	aws_settings set = WorkerAwsSettings();
	char		error[MAILBOX_TEXT_SIZE / 2];
	const char *what = "No usable Region";

	if (aws_find_region(&set, WorkerEnvironment(), place->region, sizeof(place->region),
						error, sizeof(error)))
	{
		what = "No usable endpoint";
		if (aws_find_endpoint(&set, WorkerEnvironment(), place->url, sizeof(place->url),
							  error, sizeof(error)))
		{
			if (place->url[0] == '\0')
				aws_default_endpoint(place->region, place->url, sizeof(place->url));
			if (aws_endpoint_host(place->url, place->host, sizeof(place->host), error,
								  sizeof(error)))
				return true;
		}
	}
	snprintf(problem, sizeof(problem), "%s: %s.", what, error);
	return false;
}

/* So that one can compare the logs of clusters that should share a table. */
static void
log_place(void)
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

/* Only their names: the values may contain a password. */
static void
log_proxies(void)
{
	static const char *const names[] = {
		"http_proxy", "HTTP_PROXY", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"
	};

	for (int i = 0; i < lengthof(names); i++)
	{
		const char *value = getenv(names[i]);

		if (value == NULL || value[0] == '\0')
			continue;
		ereport(LOG,
				(errmsg("ddblock ignores \"%s\" in the server's environment", names[i]),
				 errdetail("It connects to DynamoDB without a proxy.")));
	}
}

bool
WorkerFindPlace(void)
{
	SegmentPlace place;

	if (segment->place.url[0] != '\0')
	{
		WorkerFindCredentials();
		WorkerCheckExposure();
		return true;
	}
	memset(&place, 0, sizeof(place));
	if (!find_endpoint(&place))
	{
		ErrorsNoPlace(LOG, problem);
		return false;
	}
	segment->place = place;
	WorkerFindCredentials();
	log_place();
	log_proxies();
	WorkerCheckExposure();
	return true;
}

const char *
WorkerPlaceProblem(void)
{
	return problem;
}
