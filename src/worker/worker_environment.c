/*-------------------------------------------------------------------------
 *
 * worker_environment.c
 *	  What src/aws and src/net get: settings, environment and files.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "storage/fd.h"

#include "worker/worker.h"

#define FILE_MAX (1024 * 1024)	/* larger AWS files are not read */

static const char *
get_env(void *arg, const char *name)
{
	return getenv(name);
}

/*
 * O_NONBLOCK: opening a FIFO must not wait for somebody who writes to it.  A device counts as an
 * empty file: people switch a shared file off by giving its name as /dev/null.
 */
static char *
read_file(void *arg, const char *path, size_t *len)
{
	int			fd = OpenTransientFile(path, O_RDONLY | O_NONBLOCK);
	struct stat st;
	char	   *bytes = NULL;
	int			problem;

	if (fd < 0)
		return NULL;
	errno = EINVAL;				/* if it is neither a file nor a device */
	if (fstat(fd, &st) == 0 && (S_ISREG(st.st_mode) || S_ISCHR(st.st_mode)))
	{
		errno = EFBIG;
		if (st.st_size <= FILE_MAX && (bytes = malloc(st.st_size + 1)) != NULL)
		{
			ssize_t		got = 0;

			/* A file that shrinks while we read it ends earlier. */
			*len = 0;
			while (*len < (size_t) st.st_size &&
				   (got = read(fd, bytes + *len, st.st_size - *len)) > 0)
				*len += got;
			if (got < 0)
			{
				explicit_bzero(bytes, *len);
				free(bytes);
				bytes = NULL;
			}
		}
	}
	problem = errno;
	CloseTransientFile(fd);
	errno = problem;
	return bytes;
}

const aws_environment *
WorkerEnvironment(void)
{
	static aws_environment environment = {.get = get_env,.read_file = read_file};
	static char home[MAXPGPATH];
	static bool looked_for_home;

	/* HOME may be missing in the server's environment: pg_ctlcluster removes it. */
	if (!looked_for_home && get_home_path(home))
		environment.home = home;
	looked_for_home = true;
	return &environment;
}

void
WorkerOpenProfile(aws_profile *profile)
{
	const aws_settings settings = {
		.access_key_id = ddblock_access_key_id,
		.secret_access_key = ddblock_secret_access_key,
		.session_token = ddblock_session_token,
		.profile = ddblock_profile,
		.region = segment->place.region[0] != '\0' ? segment->place.region : ddblock_region,
		.endpoint_url = ddblock_endpoint_url,
		.ca_file = ddblock_ca_file,
	};

	aws_profile_open(profile, &settings, WorkerEnvironment());
}

const char *
WorkerCaFile(void)
{
	static char path[MAXPGPATH];
	aws_profile profile;
	char		ignored[MAILBOX_TEXT_SIZE];

	WorkerOpenProfile(&profile);
	(void) aws_find_ca_file(&profile, path, sizeof(path), ignored, sizeof(ignored));
	aws_profile_close(&profile);
	return path[0] != '\0' ? path : NULL;
}

static void
add_settings(http_pool_config *config)
{
	config->ca_file = WorkerCaFile();
	config->proxy = ddblock_proxy;
	config->connect_timeout_ms = ddblock_connect_timeout;
}

http_pool *
WorkerNewPool(reactor *r, http_pool_config config)
{
	char		error[256];
	http_pool  *pool;

	add_settings(&config);
	pool = http_pool_new(r, &config, error, sizeof(error));
	if (pool == NULL)
		ereport(FATAL,
				(errmsg("could not set up HTTP connections: %s", error)));
	return pool;
}

void
WorkerReloadPool(http_pool *pool)
{
	http_pool_config config = {0};

	add_settings(&config);
	if (!http_pool_reconfigure(pool, &config))
		ereport(ERROR,
				(errcode(ERRCODE_OUT_OF_MEMORY), errmsg("out of memory")));
}
