/*-------------------------------------------------------------------------
 *
 * worker_credentials.c
 *	  The credentials in use: when they are looked up, and who else can read them.
 *
 * They are looked up at start, after a reload, before a call if there are none, and
 * again when DynamoDB refuses those in use: see worker_call.c.  Keys are there at
 * once.  Others are fetched, and fetched again long before they expire; those in use
 * stay in use until new ones are there, so that no call waits for a renewal.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <stdlib.h>
#include <sys/stat.h>

#include "utils/timestamp.h"

#include "aws/renewal.h"
#include "shared/compat.h"
#include "shared/segment.h"
#include "shared/settings.h"
#include "worker/worker_clock.h"
#include "worker/worker_credentials.h"
#include "worker/worker_environment.h"
#include "worker/worker_fetch.h"
#include "worker/worker_random.h"

/* While something is fetched, somebody may wait for it, or for a time-out. */
#define LOOK_AGAIN_US INT64CONST(100000)

static aws_credentials credentials;
static bool have_credentials;
static char credentials_error[MAILBOX_TEXT_SIZE - 64];

static aws_fetch fetch;
static bool fetching;
static bool outdated;			/* the settings have changed since it began */
static bool trouble;			/* the log says that fetching fails */
static bool told;				/* ... where the credentials come from */
static int64 last_wanted;		/* by a call: when that fetch began or failed, or 0 */
static aws_renewal renewal;

static void look_up(bool keep);
static void take(const aws_credentials *found);
static void forget(void);
static void fetched(aws_fetch *done, bool found);
static void log_success(void);
static void log_failure(void);
static const char *expiry(void);
static uint64 random_bits(void);
static void check_exposure(const char *path, char *told);
static bool readable_by_all(const char *path);

void
WorkerFindCredentials(void)
{
	renewal = (aws_renewal) {0};
	look_up(false);
}

void
WorkerWantCredentials(void)
{
	int64		now = SegmentNow();

	if (fetching || (last_wanted != 0 && now - last_wanted < AWS_RENEWAL_RETRY_US))
		return;
	look_up(false);
	last_wanted = fetching ? now : 0;
}

bool
WorkerCredentialsComing(void)
{
	return fetching;
}

int64
WorkerRenewCredentials(int64 now)
{
	WorkerFetchRun();
	if (!fetching && renewal.next != 0 && renewal.next <= now)
		look_up(true);
	if (fetching)
		return now + LOOK_AGAIN_US;
	return renewal.next != 0 ? renewal.next : PG_INT64_MAX;
}

/*
 * Keys replace those in use at once, as does the lack of any, unless those in use
 * are to be kept until there are others.
 */
static void
look_up(bool keep)
{
	aws_settings set = WorkerAwsSettings();

	if (fetching)
	{
		outdated = true;
		return;
	}
	if (!aws_make_plan(&set, WorkerEnvironment(), &fetch.plan, fetch.error,
					   sizeof(fetch.error)))
	{
		if (!keep)
			forget();
		fetched(&fetch, false);
	}
	else
	{
		fetching = true;
		WorkerFetchStart(&fetch, fetched);
	}
}

static void
take(const aws_credentials *found)
{
	int64		left = AWS_RENEWAL_NEVER;
	int64		now = SegmentNow();

	credentials = *found;
	have_credentials = true;
	credentials_error[0] = '\0';
	if (found->expires_s != 0)
		left = found->expires_s * USECS_PER_SEC - WorkerEpochLikely(now);
	aws_renewal_succeeded(&renewal, now, left, random_bits());
}

static void
forget(void)
{
	aws_credentials_wipe(&credentials);
	have_credentials = false;
}

/*
 * Without a plan there was nothing to fetch, and files may change at any time: the
 * next call looks again.
 */
static void
fetched(aws_fetch *done, bool found)
{
	bool		tried = fetching;

	fetching = false;
	if (tried && outdated)
	{
		outdated = false;
		look_up(false);
		return;
	}
	if (found)
	{
		take(&done->found);
		if (done->plan.base != AWS_BASE_KEYS || done->plan.role_count > 0)
			log_success();
	}
	else
	{
		strlcpy(credentials_error, done->error, sizeof(credentials_error));
		if (tried || have_credentials)
		{
			last_wanted = tried ? SegmentNow() : 0;
			aws_renewal_failed(&renewal, SegmentNow(), random_bits());
			log_failure();
		}
	}
	aws_fetch_wipe(done);
}

/* The first time, and after trouble: not at each renewal. */
static void
log_success(void)
{
	if (!told || trouble)
		ereport(LOG,
				(errmsg("ddblock has fetched credentials from: %s", credentials.source),
				 errdetail("They expire: %s.", expiry())));
	told = true;
	trouble = false;
}

static void
log_failure(void)
{
	if (trouble)
		return;
	trouble = true;
	ereport(LOG,
			(errmsg("ddblock could not fetch credentials"),
			 errdetail("Tried: %s.", credentials_error),
			 have_credentials ?
			 errhint("Those in use stay in use; they expire: %s. The worker tries again and "
					 "again.", expiry()) :
			 errhint("The worker tries again and again.")));
}

static const char *
expiry(void)
{
	if (credentials.expires_s == 0)
		return "never";
	return timestamptz_to_str((credentials.expires_s -
							   (POSTGRES_EPOCH_JDATE - UNIX_EPOCH_JDATE) * SECS_PER_DAY) *
							  USECS_PER_SEC);
}

static uint64
random_bits(void)
{
	uint64		bits;

	WorkerFillRandom(NULL, &bits, sizeof(bits));
	return bits;
}

const aws_credentials *
WorkerCredentials(void)
{
	return have_credentials ? &credentials : NULL;
}

const char *
WorkerCredentialsSource(void)
{
	if (have_credentials)
		return credentials.source;
	return fetching ? fetch.plan.keys.source : NULL;
}

const char *
WorkerCredentialsHint(void)
{
	static char hint[MAILBOX_TEXT_SIZE];

	if (have_credentials && credentials_error[0] == '\0')
		snprintf(hint, sizeof(hint), "The credentials came from %s.", credentials.source);
	else if (have_credentials)
		snprintf(hint, sizeof(hint), "The credentials came from %s. Fetching new ones failed: %s.",
				 credentials.source, credentials_error);
	else
		snprintf(hint, sizeof(hint), "ddblock tried these sources, in this order: %s.",
				 credentials_error);
	return hint;
}

void
WorkerCheckExposure(void)
{
	static char told_of_key[MAXPGPATH];
	static char told_of_token[MAXPGPATH];
	static char told_of_shared[MAXPGPATH];

	if (ddblock_secret_access_key[0] != '\0')
		check_exposure(CompatSettingFile("ddblock.secret_access_key"), told_of_key);
	if (ddblock_session_token[0] != '\0')
		check_exposure(CompatSettingFile("ddblock.session_token"), told_of_token);
	if (fetching)
		check_exposure(fetch.plan.keys.file, told_of_shared);
	else if (have_credentials)
		check_exposure(credentials.file, told_of_shared);
}

/* Warns once per file; "told" is the last one. */
static void
check_exposure(const char *path, char *told)
{
	if (path == NULL || strcmp(path, told) == 0 || !readable_by_all(path))
		return;
	strlcpy(told, path, MAXPGPATH);
	ereport(WARNING,
			(errmsg("every user of this machine can read \"%s\", which contains ddblock's secret",
					path),
			 errhint("Replace the secret, and keep it in a file that belongs to the server's "
					 "user and has mode 0600: the shared credentials file, or one that "
					 "postgresql.conf includes.")));
}

/* Others may read the file and enter every folder above it. */
static bool
readable_by_all(const char *path)
{
	char	   *real = realpath(path, NULL);
	mode_t		wanted = S_IROTH;
	bool		all = real != NULL;

	while (all && real[0] != '\0')
	{
		struct stat st;

		all = stat(real, &st) == 0 && (st.st_mode & wanted) != 0;
		wanted = S_IXOTH;
		*strrchr(real, '/') = '\0';
	}
	free(real);
	return all;
}
