/*-------------------------------------------------------------------------
 *
 * campaign_names.c
 *	  Locks that the cluster itself wants to hold: no session takes them.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "session/session.h"
#include "shared/settings.h"

void
CampaignNamesRefuse(const LockName *name, const HeldLock *held)
{
	if ((held == NULL || !held->leader) && !campaign_is_listed(ddblock_leaderships, name->utf8))
		return;
	ereport(ERROR,
			(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
			 errmsg("lock \"%s\" is for this cluster as a whole, not for a session",
					name->text),
			 errdetail("\"ddblock.leaderships\" names it."),
			 errhint("Ask with ddb_leadership_held() whether this cluster holds it.")));
}
