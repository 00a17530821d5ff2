/*-------------------------------------------------------------------------
 *
 * name.c
 *	  Which texts can be a lock's name.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "dynamo/dynamo.h"
#include "session/session.h"
#include "shared/settings.h"

void
NameRequire(const LockName *name)
{
	dynamo_table table = SettingsTable();
	const char *wrong = dynamo_name_wrong(&table, name->utf8, strlen(name->utf8));

	if (wrong != NULL)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("no lock can have the name \"%s\"", name->text),
				 errdetail("%s", wrong),
				 table.sort_separator == '\0' ? 0 :
				 errhint("The first \"%c\" in a name is the separator: see "
						 "\"ddblock.sort_separator\".", table.sort_separator)));
}
