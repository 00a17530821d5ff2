/*-------------------------------------------------------------------------
 *
 * shared.h
 *	  What sessions and the worker both use, beside settings, errors and the segment.
 *
 *-------------------------------------------------------------------------
 */
#ifndef DDBLOCK_SHARED_SHARED_H
#define DDBLOCK_SHARED_SHARED_H

#include "postgres.h"

#include <signal.h>

#include "datatype/timestamp.h"

#include "shared/segment.h"

/* ----------------------------------------------------------------
 * report_loss.c: Each loss of a lease is counted and logged once.
 *
 * For the worker and for the session: the first to notice counts and logs.
 * ----------------------------------------------------------------
 */

/* The worker sends it to a session that has lost a lease. */
#define LOSS_SIGNAL SIGUSR2

#define LOSS_WHY_AT_MOST "the session was to hold it no longer (\"at_most\")"

/*
 * Counts and logs that the lease under the hold that the session got for this
 * request is lost, unless that was done.  The name is in UTF-8.  Cannot fail, needs
 * no transaction.
 */
extern void LossTell(uint32 hold_index, lockmgr_session session, uint64 seq,
					 const char *name, lease_loss loss, const char *why);

/* A copy of the last one; false if there was none, or it is just being noted. */
extern bool LossLast(SegmentLoss *copy);

/* ----------------------------------------------------------------
 * times.c: Our times and durations as PostgreSQL's types, and as text.
 * ----------------------------------------------------------------
 */

/* From 1970 to the beginning of PostgreSQL's time. */
#define EPOCH_DIFFERENCE_US \
	((POSTGRES_EPOCH_JDATE - UNIX_EPOCH_JDATE) * USECS_PER_DAY)

/* Epoch milliseconds, as written by anybody: false if 0 or out of reason. */
extern bool TimesFromEpoch(int64 epoch_ms, TimestampTz *timestamp);

/* A moment on the clock of leases, as seen by the wall clock now. */
extern TimestampTz TimesFromClock(int64 moment);

extern Interval *TimesInterval(int64 microseconds);

/*
 * Milliseconds, rounded up, but less than least if the interval is; false if it has months, which
 * have no fixed length, or is infinite.
 */
extern bool TimesMilliseconds(const Interval *interval, int64 least, int64 *milliseconds);

#define DAY_MS INT64CONST(86400000)

/* "1500 ms", "20 s", "2 days": palloc'd, for messages. */
extern char *TimesDuration(int64 milliseconds);

/* ----------------------------------------------------------------
 * utf8.c: Text between the database's encoding and UTF-8.
 *
 * Lock names are global, so they travel as UTF-8 whatever the
 * encoding of the database at either end.  Under SQL_ASCII the bytes are taken
 * for UTF-8.  Call inside a transaction (conversions are looked up in the
 * catalogs).  What they return is palloc'd, and ends with a NUL.
 * ----------------------------------------------------------------
 */

/* Exact: raises 22021 or 22P05 for what cannot be said. */
extern char *Utf8FromServer(const char *text);

/*
 * For what a program may act on: names, ids, owners, payloads.  Exact, or NULL if the
 * database's encoding cannot say it, or if it is not UTF-8.
 */
extern char *Utf8ToServer(const char *utf8);

/* Utf8ToServer() can say all of UTF-8 in this database. */
extern bool Utf8IsWhole(void);

/* Utf8ToServer(), which reports as 22P05 or 22021 what cannot be said.  what: the value's name. */
extern char *Utf8ToServerOr(int elevel, const char *what, const char *utf8);

/*
 * For people to read: whatever cannot be converted becomes a question mark, and nothing is
 * raised.  Only for messages, and for what describes a holder or a failure.
 */
extern char *Utf8ToReader(const char *utf8);

/*
 * For a message or the log: what others wrote, or a lock's name, with what could
 * end a line, steer a terminal or turn the text around as \xNN, byte by byte.
 * Needs no catalogs.  Takes UTF-8 or the server's encoding.
 */
extern char *Utf8Quiet(const char *text);

/* Utf8ToReader(), for a message. */
extern char *Utf8ToMessage(const char *utf8);

/* Of an item, for a message: owner "TEXT", or an owner without a name. */
extern const char *Utf8Owner(const char *text);

/* The server's text, cut to fit; "" for NULL. */
extern void Utf8Copy(char *dest, size_t size, const char *text);

#endif							/* DDBLOCK_SHARED_SHARED_H */
