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
 * The worker or the session, whichever notices the loss first, counts and logs it.
 * ----------------------------------------------------------------
 */

/*
 * The worker sends this signal to a session that must look at its leases: one is lost, or its
 * deadline comes sooner.
 */
#define LOSS_SIGNAL SIGUSR2

#define LOSS_WHY_AT_MOST "the session was to hold it no longer (\"at_most\")"

/*
 * Counts and logs the loss of a lease, unless somebody has done that already.  hold_index: the
 * hold that the session got for its request seq.  name is in UTF-8.  Cannot fail, and needs no
 * transaction.
 */
extern void LossTell(uint32 hold_index, lockmgr_session session, uint64 seq,
					 const char *name, lease_loss loss, const char *why);

/* Copies the last loss.  False if there was none, or if a process is writing one. */
extern bool LossLast(SegmentLoss *copy);

/* ----------------------------------------------------------------
 * times.c: Our times and durations as PostgreSQL's types, and as text.
 * ----------------------------------------------------------------
 */

/* From 1970 to the beginning of PostgreSQL's time. */
#define EPOCH_DIFFERENCE_US \
	((POSTGRES_EPOCH_JDATE - UNIX_EPOCH_JDATE) * USECS_PER_DAY)

/*
 * Converts epoch milliseconds, which any client may have written.  False if they are not above 0,
 * or not before the year 10000.
 */
extern bool TimesFromEpoch(int64 epoch_ms, TimestampTz *timestamp);

/* Converts a moment of SegmentNow()'s clock to the wall clock, as both clocks stand now. */
extern TimestampTz TimesFromClock(int64 moment);

extern Interval *TimesInterval(int64 microseconds);

/*
 * The interval in milliseconds, rounded up.  But an interval below "least" milliseconds is rounded
 * down, to stay below: with least 2000, 1999.5 ms becomes 1999.  False if the interval has months,
 * which have no fixed length, or is infinite.
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
 * catalogs).  What the functions return is palloc'd, and ends with a NUL.
 * ----------------------------------------------------------------
 */

/* The server's text as UTF-8.  Raises 22021 or 22P05 for text that cannot be converted. */
extern char *Utf8FromServer(const char *text);

/*
 * For what a program may act on: names, ids, owners, payloads.  Converts exactly.  NULL if the
 * database's encoding lacks a character, or if the text is not UTF-8.
 */
extern char *Utf8ToServer(const char *utf8);

/* Can Utf8ToServer() convert all of UTF-8 in this database? */
extern bool Utf8IsWhole(void);

/*
 * As Utf8ToServer(), but also reports text that cannot be converted, as 22P05 or 22021.  what: the
 * value's name.
 */
extern char *Utf8ToServerOr(int elevel, const char *what, const char *utf8);

/*
 * For people to read: whatever cannot be converted becomes a question mark, and nothing is
 * raised.  Only for messages, and for what describes a holder or a failure.
 */
extern char *Utf8ToReader(const char *utf8);

/*
 * Makes a lock's name, or what other clients wrote, harmless for a message or the log.  Characters
 * that could end a line, steer a terminal or turn the text around become \xNN, byte by byte.
 * Needs no catalogs.  Takes UTF-8 or the server's encoding.
 */
extern char *Utf8Quiet(const char *text);

/* Utf8Quiet(), then Utf8ToReader(). */
extern char *Utf8ToMessage(const char *utf8);

/* An item's owner, for a message: owner "TEXT", or an owner without a name. */
extern const char *Utf8Owner(const char *text);

/* Copies the server's text as UTF-8, cut to fit.  NULL becomes "". */
extern void Utf8Copy(char *dest, size_t size, const char *text);

#endif							/* DDBLOCK_SHARED_SHARED_H */
