/*-------------------------------------------------------------------------
 *
 * leaderships.c
 *	  SQL functions of leaderships, locks that the cluster itself holds to lead, and the
 *	  function behind the view ddb_leaderships.
 *
 * The view only reads shared memory.  A transaction that reads it does not join the locks.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "funcapi.h"

#include "sql/sql.h"

/* The state for the view.  "lost": the lease is over, and the worker has not noticed it yet. */
static const char *
state_of(const leadership *c)
{
	switch (c->state)
	{
		case LEADERSHIP_LEADING:
			return mailbox_valid_until(&segment_mailbox, c->grant.lease_index,
									   c->grant.lease_generation) > SegmentNow() ? "leading" : "lost";
		case LEADERSHIP_GIVING_UP:
			return "giving up";
		case LEADERSHIP_RESTING:
			return "resting";
		case LEADERSHIP_STANDING:
		case LEADERSHIP_NONE:
			break;
	}
	return "following";
}

static int
count_joined(const leadership *c)
{
	HoldCopy	held;
	int			count = 0;

	for (uint32 i = 0; i < segment->max_leases; i++)
		count += SegmentReadHold(i, &held) && held.hold.joined &&
			held.hold.lease_index == c->grant.lease_index &&
			held.hold.lease_generation == c->grant.lease_generation;
	return count;
}

PG_FUNCTION_INFO_V1(ddb_leaderships);
Datum
ddb_leaderships(PG_FUNCTION_ARGS)
{
	ErrorsRequirePreload();
	InitMaterializedSRF(fcinfo, 0);
	for (uint32 i = 0; i < LEADERSHIPS_MAX; i++)
	{
		leadership	c;
		lockmgr_watch watch;
		bool		has_lease;
		Row			row;

		SegmentReadLeadership(i, &c);
		if (c.state == LEADERSHIP_NONE || !PrefixAllows(c.name))
			continue;
		has_lease = c.state == LEADERSHIP_LEADING || c.state == LEADERSHIP_GIVING_UP;

		RowStart(&row, fcinfo);
		RowValue(&row, "name", NOTICE, "name of a leadership", c.name);
		RowText(&row, "state", state_of(&c));
		RowClock(&row, "since", c.since);
		if (has_lease)
			RowSet(&row, "token", Int64GetDatum(c.grant.token));
		RowSet(&row, "joined", Int32GetDatum(has_lease ? count_joined(&c) : 0));
		/* The leading cluster is the lock's owner, as far as this cluster knows it. */
		if (c.state == LEADERSHIP_LEADING)
			RowValue(&row, "leader", NOTICE, "owner of a lock", segment->owner);
		else if (c.state == LEADERSHIP_STANDING &&
				 WaitingReadWatch(&segment_slots[c.me.slot], c.seq, &watch) && watch.held)
			RowValue(&row, "leader", NOTICE, "owner of a lock", watch.owner);
		if (c.state == LEADERSHIP_GIVING_UP && c.interrupt_at != 0)
			RowClock(&row, "interrupts_at", c.interrupt_at);
		if (c.state == LEADERSHIP_RESTING)
			RowClock(&row, "stands_again_at", c.stand_at);
		RowPut(&row, fcinfo);
	}
	return (Datum) 0;
}

PG_FUNCTION_INFO_V1(ddb_leadership_held);
PG_FUNCTION_INFO_V1(ddb_leadership_require);
PG_FUNCTION_INFO_V1(ddb_leadership_resign);

Datum
ddb_leadership_held(PG_FUNCTION_ARGS)
{
	LockName	name = ArgumentAllowedName(fcinfo);

	PG_RETURN_BOOL(LeaderJoin(&name) != 0);
}

Datum
ddb_leadership_require(PG_FUNCTION_ARGS)
{
	LockName	name = ArgumentAllowedName(fcinfo);

	PG_RETURN_INT64(LeaderRequire(&name));
}

/* (name, stand_back, wait) */
Datum
ddb_leadership_resign(PG_FUNCTION_ARGS)
{
	LockName	name = ArgumentAllowedName(fcinfo);
	int64		rest_ms = ArgumentTime(fcinfo, 1, "stand_back", YEAR_MS, "1 year");
	int64		wait_ms = ArgumentPeriod(fcinfo, 2, "wait", 0);

	PG_RETURN_BOOL(LeaderResign(&name, rest_ms, wait_ms));
}
