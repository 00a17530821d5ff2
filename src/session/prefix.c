/*-------------------------------------------------------------------------
 *
 * prefix.c
 *	  ddblock.lock_prefix: which names a session may use.
 *
 * It is for roles that must not take each other's locks.  Whatever takes, shows or
 * removes a lock by its name asks here, and so does ddb_fence_check(), because a high
 * token would keep others out of a resource.  What concerns only locks that the
 * session holds already does not ask: a session can always release its locks,
 * even if the setting has changed.
 *
 * The prefix is ASCII (see settings.c), so the encoding of names does not matter.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "dynamo/dynamo.h"
#include "session/session.h"
#include "shared/settings.h"
#include "shared/shared.h"

bool
PrefixAllows(const char *name, size_t len)
{
	size_t		prefix_len;

	/* Without preloading there is no such setting. */
	if (ddblock_lock_prefix == NULL)
		return true;
	prefix_len = strlen(ddblock_lock_prefix);
	return len >= prefix_len && memcmp(name, ddblock_lock_prefix, prefix_len) == 0;
}

static void
refuse(const char *what, const char *name)
{
	ereport(ERROR,
			(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
			 errmsg("permission denied for %s \"%s\"", what, name),
			 errdetail("Names in this session must begin with \"%s\", the value of "
					   "\"ddblock.lock_prefix\".", ddblock_lock_prefix)));
}

void
PrefixRequire(const LockName *name)
{
	if (!PrefixAllows(name->utf8, strlen(name->utf8)))
		refuse("lock", name->text);
}

void
PrefixRequireResource(const char *resource)
{
	if (!PrefixAllows(resource, strlen(resource)))
		refuse("resource", Utf8Quiet(resource, strlen(resource)));
}

const char *
PrefixNarrow(const char *asked)
{
	char	   *own = Utf8FromServer(ddblock_lock_prefix, strlen(ddblock_lock_prefix));
	size_t		own_len = strlen(own);

	if (own_len > DYNAMO_NAME_MAX ||
		strncmp(own, asked, Min(own_len, strlen(asked))) != 0)
		refuse("prefix", Utf8ToMessage(asked, strlen(asked)));
	return own_len < strlen(asked) ? asked : own;
}
