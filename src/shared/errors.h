/*-------------------------------------------------------------------------
 *
 * errors.h
 *	  What more than one file raises: codes, messages, details and hints in one place.
 *
 * Lock names are given in the database's encoding; texts that come
 * from the worker are UTF-8 and hold no secrets.
 *
 *-------------------------------------------------------------------------
 */
#ifndef DDBLOCK_SHARED_ERRORS_H
#define DDBLOCK_SHARED_ERRORS_H

#include "postgres.h"

#include "shared/compat.h"
#include "shared/segment.h"

#define ERRCODE_DDBLOCK_LEASE_LOST MAKE_SQLSTATE('L', 'K', '0', '0', '1')
#define ERRCODE_DDBLOCK_STALE_TOKEN MAKE_SQLSTATE('L', 'K', '0', '0', '2')

/*
 * The usual errors, at level ERROR: errmsg(), and more as in ereport().  An argument or a setting is wrong; what
 * is there now does not allow it; it is not supported; the session has no valid lease.
 */
#define ErrorsRaise(code, ...) ereport(ERROR, (errcode(code), __VA_ARGS__))
#define ErrorsArgument(...) ErrorsRaise(ERRCODE_INVALID_PARAMETER_VALUE, __VA_ARGS__)
#define ErrorsState(...) ErrorsRaise(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE, __VA_ARGS__)
#define ErrorsUnsupported(...) ErrorsRaise(ERRCODE_FEATURE_NOT_SUPPORTED, __VA_ARGS__)
#define ErrorsNoLease(...) \
	do { \
		SegmentCount(EVENT_LK001); \
		ErrorsRaise(ERRCODE_DDBLOCK_LEASE_LOST, __VA_ARGS__); \
	} while (0)

/* The server has not preloaded the library.  At level WARNING, returns. */
extern void ErrorsNotPreloaded(int elevel);

/* Raises that unless the server has. */
extern void ErrorsRequirePreload(void);

/* may_have_sent: the last worker may have sent the request, which is a write. */
pg_noreturn extern void ErrorsNoWorker(bool may_have_sent);

/*
 * No Region or endpoint is known, or, if it begins with the words below, no authorities:
 * problem says why.  At level LOG, returns.
 */
#define NO_AUTHORITIES "No usable certificate authorities"
extern void ErrorsNoPlace(int elevel, const char *problem);

/* True, after a report, if the lock table's keys are not those of the settings. */
extern bool ErrorsKeys(int elevel, const dynamo_table_info *table);

/* A call of the worker's, or past it: of this operation. */
pg_noreturn extern void ErrorsTrouble(dynamo_op op, dynamo_status status, const char *message);

/*
 * Raises the error for an answer that the caller cannot use. lock is the lock's
 * name, or NULL if the request was about the table.
 */
pg_noreturn extern void ErrorsAnswer(const MailboxAnswer *answer, const char *lock);

/* The session's lease is lost, or it never had one. */
pg_noreturn extern void ErrorsLost(const char *lock, lease_loss loss);
pg_noreturn extern void ErrorsNotHeld(const char *lock);

/* The cluster has a hold of the lock besides. */
pg_noreturn extern void ErrorsDetached(const char *lock);

/* No hold of the lock has this token, any more. */
pg_noreturn extern void ErrorsOtherToken(const char *lock, int64 token);

/*
 * ddb_fence_check() or ddb_fence_check_shared() met a token that refuses this one; "whose" is
 * empty, or begins with a space.
 */
pg_noreturn extern void ErrorsStaleToken(const char *resource, int64 recorded, const char *whose,
										  int64 given);

/* How a session holds a lock: the end of "It holds it ...". */
extern const char *ErrorsModeName(lock_mode mode);

/* Why, as a sentence. */
extern const char *ErrorsLossReason(lease_loss loss);

#endif							/* DDBLOCK_SHARED_ERRORS_H */
