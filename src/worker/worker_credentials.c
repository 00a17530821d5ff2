/*-------------------------------------------------------------------------
 *
 * worker_credentials.c
 *	  The credentials in use: when they are looked up, and who else can read them.
 *
 * The worker looks credentials up at its start, after a reload, before a call if there are none,
 * and when DynamoDB refuses those in use (see worker_call.c).  Keys in settings, environment or
 * files can be used at once.  Other credentials are fetched, and fetched again long before they
 * expire.  The old ones stay in use until the new ones are there, so no call waits for a renewal.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <stdlib.h>
#include <sys/stat.h>

#include "common/pg_prng.h"
#include "utils/timestamp.h"

#include "worker/worker.h"

static aws_credentials credentials;
static bool have_credentials;
static char credentials_error[MAILBOX_TEXT_SIZE - 64];

static aws_fetch fetch;
static bool fetching;
static bool reloaded;			/* a reload came after this fetch began: another fetch follows */
static bool outdated;			/* ... and other credentials are to be fetched since then */
static bool may_pass;			/* the last fetch has failed, but the next one may not */
static bool trouble;			/* the log says that fetching fails */
static char told[sizeof(credentials.source)];	/* the source that the log has named last */
static aws_renewal renewal;
static aws_renewal wanted;		/* when a call may cause a fetch again */

static void look_up(bool keep);

static int64
time_left(const aws_credentials *of, int64 now)
{
	if (of->expires_s == 0)
		return AWS_RENEWAL_NEVER;
	return of->expires_s * USECS_PER_SEC - WorkerEpochLikely(now);
}

static const char *
expiry(void)
{
	if (credentials.expires_s == 0)
		return "never";
	return timestamptz_to_str(credentials.expires_s * USECS_PER_SEC - EPOCH_DIFFERENCE_US);
}

/* Logs the first fetch from a source, and the first one after trouble, but not each renewal. */
static void
log_success(void)
{
	if (strcmp(told, credentials.source) != 0 || trouble)
		ereport(LOG,
				(errmsg("ddblock has fetched credentials from: %s", credentials.source),
				 errdetail("They expire: %s.", expiry())));
	strlcpy(told, credentials.source, sizeof(told));
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
			 errdetail("The last source that was tried: %s.", credentials_error),
			 have_credentials ?
			 errhint("Those in use stay in use; they expire: %s. The worker tries again and "
					 "again.", expiry()) :
			 errhint("The worker tries again and again.")));
}

/*
 * Takes the result of a fetch.  If the fetch asked nobody, because all that it needed was in
 * settings, environment and files, then the next call that needs credentials looks them up again:
 * files may change at any time.
 */
static void
take(aws_fetch *done, bool found)
{
	int64		now = SegmentNow();
	bool		asked = done->plan.fetcher != NULL || done->plan.role_count > 0;

	may_pass = !found && asked && done->may_pass;
	if (!asked)
		wanted = (aws_renewal) {0};
	/* Valid credentials stay in use rather than new ones that have expired. */
	if (found && have_credentials && time_left(&credentials, now) > 0 &&
		time_left(&done->found, now) <= 0)
	{
		found = false;
		snprintf(done->error, sizeof(done->error), "%s: the credentials have already expired",
				 done->found.source);
	}
	if (found)
	{
		credentials = done->found;
		have_credentials = true;
		credentials_error[0] = '\0';
		aws_renewal_succeeded(&renewal, now, time_left(&credentials, now),
							  pg_prng_uint64(&pg_global_prng_state));
		if (asked || trouble)
			log_success();
	}
	else
	{
		strlcpy(credentials_error, done->error, sizeof(credentials_error));
		aws_renewal_failed(&renewal, now, pg_prng_uint64(&pg_global_prng_state));
		if (asked)
			wanted = (aws_renewal) {.next = now + AWS_RENEWAL_RETRY_US};
		if (asked || have_credentials)
			log_failure();
	}
}

static void
fetched(aws_fetch *done, bool found)
{
	bool		again = reloaded;

	if (!outdated)
		take(done, found);
	fetching = reloaded = outdated = false;
	aws_wipe(done);
	if (again)
		look_up(false);
}

static aws_found
make_plan(aws_plan *plan, char *error, size_t error_size)
{
	aws_profile profile;
	aws_found	result;

	WorkerOpenProfile(&profile);
	result = aws_make_plan(&profile, plan, error, error_size);
	aws_profile_close(&profile);
	return result;
}

/*
 * Looks for a source of credentials, and fetches from it.  What becomes of the credentials in use:
 *
 *	 - If there is a source, they stay in use until the fetch has ended.  Keys need no time: then
 *	   the fetch ends within WorkerFetchStart().
 *	 - If there is no source, they are dropped, unless "keep".
 *	 - If a source is broken, they stay in use: somebody may be writing the source's file.
 */
static void
look_up(bool keep)
{
	aws_found	result = make_plan(&fetch.plan, fetch.error, sizeof(fetch.error));

	if (result == AWS_FOUND)
	{
		fetching = true;
		WorkerFetchStart(&fetch, fetched);
		return;
	}
	if (result == AWS_NOT_HERE && !keep)
	{
		aws_wipe(&credentials);
		have_credentials = false;
	}
	fetched(&fetch, false);
}

/*
 * A fetch that is under way goes on, and another one follows it.  Only if other credentials are to
 * be fetched since the reload, the fetch is given up.  Otherwise reloads that come faster than a
 * fetch takes would keep credentials from coming.
 */
void
WorkerFindCredentials(void)
{
	static aws_plan plan;
	char		ignored[sizeof(fetch.error)];

	renewal = wanted = (aws_renewal) {0};
	if (!fetching)
	{
		look_up(false);
		return;
	}
	reloaded = true;
	/* Plans can be compared byte by byte: each one is zeroed first, and so is its padding. */
	outdated = outdated || make_plan(&plan, ignored, sizeof(ignored)) != AWS_FOUND ||
		memcmp((const char *) &plan, (const char *) &fetch.plan, sizeof(plan)) != 0;
	aws_wipe(&plan);
	if (outdated)
		WorkerFetchGiveUp();
}

/* DynamoDB may refuse again and again what a source gives, so the delays between look-ups grow. */
void
WorkerWantCredentials(void)
{
	int64		now = SegmentNow();

	if (fetching || now < wanted.next)
		return;
	if (now - wanted.next > AWS_RENEWAL_RETRY_MAX_US)
		wanted.failures = 0;
	aws_renewal_failed(&wanted, now, pg_prng_uint64(&pg_global_prng_state));
	look_up(false);
}

bool
WorkerCredentialsComing(void)
{
	return fetching;
}

bool
WorkerCredentialsMayCome(void)
{
	return may_pass;
}

int64
WorkerRenewCredentials(int64 now)
{
	WorkerFetchRun();
	if (have_credentials)
		aws_renewal_check(&renewal, now, time_left(&credentials, now));
	if (!fetching && renewal.next != 0 && renewal.next <= now)
		look_up(true);
	if (fetching)
		return now + WORKER_FETCH_LOOK_US;
	return renewal.next != 0 ? renewal.next : PG_INT64_MAX;
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

bool
WorkerCredentialsTold(void)
{
	return trouble;
}

const char *
WorkerCredentialsWords(void)
{
	static char words[MAILBOX_TEXT_SIZE];

	if (have_credentials && credentials_error[0] == '\0')
		snprintf(words, sizeof(words), "The credentials came from %s.", credentials.source);
	else if (have_credentials)
		snprintf(words, sizeof(words), "The credentials came from %s. Fetching new ones failed: %s.",
				 credentials.source, credentials_error);
	else
		snprintf(words, sizeof(words), "The last source that was tried: %s.", credentials_error);
	return words;
}

/* May every user read the file, and enter every folder above it? */
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

/* Warns if every user can read the file, unless the last warning named it, too ("told"). */
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

void
WorkerCheckExposure(void)
{
	static char told_of_key[MAXPGPATH];
	static char told_of_token[MAXPGPATH];
	static char told_of_proxy[MAXPGPATH];
	static char told_of_shared[MAXPGPATH];

	if (ddblock_secret_access_key[0] != '\0')
		check_exposure(CompatSettingFile("ddblock.secret_access_key"), told_of_key);
	if (ddblock_session_token[0] != '\0')
		check_exposure(CompatSettingFile("ddblock.session_token"), told_of_token);
	if (strchr(ddblock_proxy, '@') != NULL)		/* there is a password before the '@' */
		check_exposure(CompatSettingFile("ddblock.proxy"), told_of_proxy);
	if (fetching)
		check_exposure(fetch.plan.keys.file, told_of_shared);
	else if (have_credentials)
		check_exposure(credentials.file, told_of_shared);
}
