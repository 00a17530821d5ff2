/*-------------------------------------------------------------------------
 *
 * worker_credentials.c
 *	  The credentials in use: when they are looked up, and who else can read them.
 *
 * They are looked up at start, after a reload, before a call if there are none, and
 * again when DynamoDB refuses those in use, as it does when they expire: see
 * worker_call.c.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <stdlib.h>
#include <sys/stat.h>

#include "shared/compat.h"
#include "shared/segment.h"
#include "shared/settings.h"
#include "worker/worker_credentials.h"
#include "worker/worker_environment.h"

static aws_credentials credentials;
static bool have_credentials;
static char credentials_error[MAILBOX_TEXT_SIZE - 64];

static void check_exposure(const char *path, char *told);
static bool readable_by_all(const char *path);

void
WorkerFindCredentials(void)
{
	aws_settings set = WorkerAwsSettings();

	aws_credentials_wipe(&credentials);
	have_credentials = aws_find_credentials(&set, WorkerEnvironment(), &credentials,
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
