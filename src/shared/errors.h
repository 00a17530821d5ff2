/*-------------------------------------------------------------------------
 *
 * errors.h
 *	  Errors that more than one file raises: codes, messages, details and hints in one place.
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
 * The usual errors.  The arguments are errmsg() and, as in ereport(), errdetail() and so on.
 *
 *	 - ErrorsArgument: an argument or a setting is wrong.
 *	 - ErrorsState: the state of a lock, of the table or of the server does not allow the call.
 *	 - ErrorsUnsupported: ddblock does not support this.
 *	 - ErrorsNoLease: the session has no valid lease (LK001).
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

/* Raises the error of ErrorsNotPreloaded(), unless the server has preloaded the library. */
extern void ErrorsRequirePreload(void);

/* No worker runs.  may_have_sent: the last one may have sent the request, which is a write. */
pg_noreturn extern void ErrorsNoWorker(bool may_have_sent);

/*
 * ddblock does not know where its lock table is or, if "problem" begins with NO_AUTHORITIES, which
 * servers to trust.  problem: says why.  At level LOG, returns.
 */
#define NO_AUTHORITIES "No usable certificate authorities"
extern void ErrorsNoPlace(int elevel, const char *problem);

/* Do the lock table's keys differ from those in the settings?  If so, reports that first. */
extern bool ErrorsKeys(int elevel, const dynamo_table_info *table);

/* A call of this operation has failed, or gets no reply. */
pg_noreturn extern void ErrorsTrouble(dynamo_op op, dynamo_status status, const char *message);

/*
 * Raises the error for an answer that the caller cannot use. lock is the lock's
 * name, or NULL if the request was about the table.
 */
pg_noreturn extern void ErrorsAnswer(const MailboxAnswer *answer, const char *lock);

/* The session's lease on the lock is lost; the session does not hold the lock. */
pg_noreturn extern void ErrorsLost(const char *lock, lease_loss loss);
pg_noreturn extern void ErrorsNotHeld(const char *lock);

/* The lock has a detached hold already, and cannot have another one. */
pg_noreturn extern void ErrorsDetached(const char *lock);

/* The cluster has no hold on the lock with this token, or has it no longer. */
pg_noreturn extern void ErrorsOtherToken(const char *lock, int64 token);

/*
 * The token "given" is stale, because of the token "recorded" for the resource.  whose: "", or what
 * the recorded token is, such as " of a shared lock", with a space before it.
 */
pg_noreturn extern void ErrorsStaleToken(const char *resource, int64 recorded, const char *whose,
										  int64 given);

/* How a session holds a lock: the end of "It holds it ...". */
extern const char *ErrorsModeName(lock_mode mode);

/* Why a lease was lost, as a sentence. */
extern const char *ErrorsLossReason(lease_loss loss);

#endif							/* DDBLOCK_SHARED_ERRORS_H */
