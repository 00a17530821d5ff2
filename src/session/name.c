/*-------------------------------------------------------------------------
 *
 * name.c
 *	  Which names a session may use: an item can have them, they begin with
 *	  ddblock.lock_prefix, and the cluster does not hold such a lock itself.
 *
 * The prefix is for roles that must not take each other's locks.  Functions that take, show or
 * remove a lock by its name ask here.  So does ddb_fence_check(): a high token in a resource's
 * fence would keep others out.  Functions that concern only locks which the session holds already
 * do not ask: a session can always release its locks, even if the setting has changed.
 *
 * The prefix is ASCII (see settings.c), so it can be compared with a name in any encoding.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "session/session.h"

void
NameRequire(const LockName *name)
{
	dynamo_table table = SettingsTable();
	const char *wrong = dynamo_name_wrong(&table, name->utf8, strlen(name->utf8));

	if (wrong != NULL)
		ErrorsArgument(errmsg("no lock can have the name \"%s\"", name->text),
					   errdetail("%s", wrong),
					   table.sort_separator == '\0' ? 0 :
					   errhint("The first \"%c\" in a name is the separator: see "
							   "\"ddblock.sort_separator\".", table.sort_separator));
}

bool
PrefixAllows(const char *name)
{
	return strncmp(name, ddblock_lock_prefix, strlen(ddblock_lock_prefix)) == 0;
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
	if (!PrefixAllows(name->utf8))
		refuse("lock", name->text);
}

QueueName
QueueNameOf(const char *queue, const char *resource)
{
	char	   *utf8 = psprintf("queue/%s/%s", queue, resource);
	QueueName	name = {queue, resource, {.text = Utf8ToMessage(utf8),.utf8 = utf8}};

	NameRequire(&name.lock);
	PrefixRequire(&name.lock);
	return name;
}

void
PrefixRequireResource(const char *resource)
{
	if (!PrefixAllows(resource))
		refuse("resource", Utf8Quiet(resource));
}

const char *
PrefixNarrow(const char *asked)
{
	char	   *own = Utf8FromServer(ddblock_lock_prefix);
	size_t		own_len = strlen(own);

	if (own_len > DYNAMO_NAME_MAX ||
		strncmp(own, asked, Min(own_len, strlen(asked))) != 0)
		refuse("prefix", Utf8ToMessage(asked));
	return own_len < strlen(asked) ? asked : own;
}

void
NameRefuseLed(const LockName *name, const HeldLock *held)
{
	if ((held == NULL || !held->leader) && !leadership_is_listed(ddblock_leaderships, name->utf8))
		return;
	ErrorsState(errmsg("lock \"%s\" is for this cluster as a whole, not for a session",
					   name->text),
				errdetail("\"ddblock.leaderships\" names it."),
				errhint("Ask with ddb_leadership_held() whether this cluster holds it."));
}
