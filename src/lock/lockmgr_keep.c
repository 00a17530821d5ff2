/*-------------------------------------------------------------------------
 *
 * lockmgr_keep.c
 *	  A lock is kept from others for a minimum, whether it is released or not.
 *
 * The end is a moment of DynamoDB's clock, in the item.  It is counted from the latest
 * time that this clock may show, and compared with the earliest, so nobody gets the lock
 * too soon.  See "Minimum" in doc/internals/protocol.md.
 *
 *-------------------------------------------------------------------------
 */
#include "lock/lockmgr_private.h"

/* The pending write is sent for the first time now. */
void
lm_keep(const lockmgr *lm, int64_t now, lease_write *pending)
{
	pending->kept_until_ms = pending->at_least_ms == 0 ? 0 :
		(now + lm->epoch_offset_us) / 1000 + 1 + pending->at_least_ms;
}

/* A time of DynamoDB's clock that has certainly passed. */
int64_t
lm_past_ms(const lockmgr *lm, int64_t now)
{
	return (now + lm->earliest_us) / 1000;
}

bool
lm_is_kept(const lockmgr *lm, int64_t now, int64_t kept_until_ms)
{
	return kept_until_ms > lm_past_ms(lm, now);
}

/* The moment from which it is certainly kept no longer, as far as we know now. */
int64_t
lm_kept_end(const lockmgr *lm, int64_t kept_until_ms)
{
	return kept_until_ms < INT64_MAX / 1000 ? kept_until_ms * 1000 - lm->earliest_us : INT64_MAX;
}

/*
 * Is it so far away that no ddblock wrote it?  A minimum is a day at most; another one is
 * for clocks that differ.
 */
bool
lm_is_kept_too_long(const lockmgr *lm, int64_t now, int64_t kept_until_ms)
{
	return kept_until_ms > (now + lm->epoch_offset_us) / 1000 + INT64_C(2) * DYNAMO_KEPT_MAX_MS;
}
