/*-------------------------------------------------------------------------
 *
 * errors.h
 *	  What ddblock raises: codes, messages, details and hints in one place.
 *
 * Floor 3.  Lock names are given in the database's encoding; texts that come
 * from the worker are UTF-8 and hold no secrets.
 *
 *-------------------------------------------------------------------------
 */
#ifndef DDBLOCK_PG_ERRORS_H
#define DDBLOCK_PG_ERRORS_H

#include "postgres.h"

#include "pg/segment.h"

#define ERRCODE_DDBLOCK_LEASE_LOST MAKE_SQLSTATE('L', 'K', '0', '0', '1')

/* Raises unless the server has preloaded the library. */
extern void ErrorsRequirePreload(void);

extern void ErrorsNoWorker(void) pg_attribute_noreturn();

/* What keeps a session waiting, when its time is up. */
extern void ErrorsTrouble(dynamo_status status, const char *message) pg_attribute_noreturn();

/*
 * An answer that is none of those that the caller can use.  lock is the
 * lock's name, or NULL if the request was about the table.
 */
extern void ErrorsAnswer(const MailboxAnswer *answer, const char *lock) pg_attribute_noreturn();

/* The session's lease is lost, or it never had one. */
extern void ErrorsLost(const char *lock, lease_loss loss) pg_attribute_noreturn();
extern void ErrorsNotHeld(const char *lock) pg_attribute_noreturn();

/* Why, as a sentence. */
extern const char *ErrorsLossReason(lease_loss loss);

#endif							/* DDBLOCK_PG_ERRORS_H */
