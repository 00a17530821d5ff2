/*-------------------------------------------------------------------------
 *
 * worker_place.c
 *	  Finds Region, endpoint and credentials in settings, environment and the
 *	  shared AWS files.
 *
 * Region and endpoint are looked up once per server start and kept in the
 * segment, because a new worker must find the leases that it adopts in the same
 * table.  If the lookup fails, nobody can have acquired a lock yet: the worker
 * stays up, tells every caller what is missing, and tries again after a reload.
 *
 * Credentials may change at any time.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <fcntl.h>
#include <pwd.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "storage/fd.h"
#include "utils/memutils.h"

#include "aws/endpoint.h"
#include "shared/compat.h"
#include "shared/errors.h"
#include "shared/settings.h"
#include "worker/worker_place.h"

#define FILE_MAX (1024 * 1024)	/* larger AWS files are not read */

static aws_credentials credentials;
static bool have_credentials;
static char credentials_error[MAILBOX_TEXT_SIZE - 64];
static char problem[MAILBOX_TEXT_SIZE];

static const char *get_env(void *arg, const char *name);
static char *read_file(void *arg, const char *path, size_t *len);
static size_t read_up_to(int fd, char *bytes, size_t size);
static const char *find_home(void);
static bool find_endpoint(SegmentPlace *place);
static void log_place(void);
static void log_proxies(void);
static void check_exposure(const char *path, char *told);
static bool readable_by_all(const char *path);

static aws_environment environment = {.get = get_env,.read_file = read_file};

static const char *
get_env(void *arg, const char *name)
{
	return getenv(name);
}

/* O_NONBLOCK: to open a FIFO must not wait until somebody writes to it. */
static char *
read_file(void *arg, const char *path, size_t *len)
{
	int			fd = OpenTransientFile(path, O_RDONLY | O_NONBLOCK);
	struct stat st;
	char	   *bytes = NULL;

	if (fd < 0)
		return NULL;
	if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size <= FILE_MAX &&
		(bytes = malloc(st.st_size + 1)) != NULL)
		*len = read_up_to(fd, bytes, st.st_size);
	CloseTransientFile(fd);
	return bytes;
}

static size_t
read_up_to(int fd, char *bytes, size_t size)
{
	size_t		len = 0;
	ssize_t		got;

	while (len < size && (got = read(fd, bytes + len, size - len)) > 0)
		len += got;
	return len;
}

/* HOME may be missing in the server's environment: pg_ctlcluster removes it. */
static const char *
find_home(void)
{
	const char *home = getenv("HOME");
	struct passwd *user;

	if (home != NULL && home[0] != '\0')
		return home;
	user = getpwuid(geteuid());
	return user != NULL ? MemoryContextStrdup(TopMemoryContext, user->pw_dir) : NULL;
}

static aws_settings
settings(void)
{
	return (aws_settings)
	{
		.access_key_id = ddblock_access_key_id,
			.secret_access_key = ddblock_secret_access_key,
			.session_token = ddblock_session_token,
			.profile = ddblock_profile,
			.region = ddblock_region,
			.endpoint_url = ddblock_endpoint_url,
	};
}

bool
WorkerFindPlace(void)
{
	SegmentPlace place;

	if (environment.home == NULL)
		environment.home = find_home();
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

/* The Region is needed even if the endpoint is set: signatures contain it. */
static bool
find_endpoint(SegmentPlace *place)
{
	aws_settings set = settings();
	char		error[MAILBOX_TEXT_SIZE / 2];
	const char *what = "No usable Region";

	if (aws_find_region(&set, &environment, place->region, sizeof(place->region),
						error, sizeof(error)))
	{
		what = "No usable endpoint";
		if (aws_find_endpoint(&set, &environment, place->url, sizeof(place->url),
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

const char *
WorkerPlaceProblem(void)
{
	return problem;
}

/* So that one can compare the logs of clusters that should share a table. */
static void
log_place(void)
{
	ereport(LOG,
			(errmsg("ddblock uses lock table \"%s\" in Region \"%s\" at %s", ddblock_table,
					segment->place.region, segment->place.url),
			 have_credentials ?
			 errdetail("The credentials come from: %s.", credentials.source) :
			 errdetail("There are no credentials yet.")));
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
				(errmsg("ddblock ignores \"%s\" of the server's environment", names[i]),
				 errdetail("It connects to DynamoDB without a proxy.")));
	}
}

void
WorkerFindCredentials(void)
{
	aws_settings set = settings();

	aws_credentials_wipe(&credentials);
	have_credentials = aws_find_credentials(&set, &environment, &credentials,
											credentials_error,
											sizeof(credentials_error));
}

const aws_credentials *
WorkerCredentials(void)
{
	return have_credentials ? &credentials : NULL;
}

const char *
WorkerCredentialsHint(void)
{
	static char hint[MAILBOX_TEXT_SIZE];

	if (have_credentials)
		snprintf(hint, sizeof(hint), "The credentials came from %s.", credentials.source);
	else
		snprintf(hint, sizeof(hint), "In the order of trying: %s.", credentials_error);
	return hint;
}

const char *
WorkerCaFile(void)
{
	const char *bundle = getenv("AWS_CA_BUNDLE");

	if (ddblock_ca_file[0] != '\0')
		return ddblock_ca_file;
	return bundle != NULL && bundle[0] != '\0' ? bundle : NULL;
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
	if (have_credentials)
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
			(errmsg("every user of this machine can read \"%s\", which has ddblock's secret",
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
