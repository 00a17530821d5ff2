/*-------------------------------------------------------------------------
 *
 * mailbox.h
 *	  A session's side of the mailbox: ask the worker, wait for its answer.
 *
 * A session has one request at a time, and waits interruptibly.  An error while it
 * waits cancels the request; the worker then releases what the request gets, or
 * has got already.
 *
 *-------------------------------------------------------------------------
 */
#ifndef DDBLOCK_SESSION_MAILBOX_H
#define DDBLOCK_SESSION_MAILBOX_H

#include "postgres.h"

#include "session/waiting.h"
#include "shared/segment.h"

/* Takes the process's slot, once in a process.  See SessionAttach(). */
extern void MailboxAttach(void);

/* This session; its generation is 0 before MailboxAttach(). */
extern lockmgr_session MailboxSession(void);
extern MailboxSlot *MailboxMySlot(void);

/*
 * Sets the request's seq, posts it with its name and data, and waits for the
 * answer, which may be a failure.  The answer is read where the worker wrote it: it
 * is valid until the session's next request.  NULL: the lease that was to be
 * renewed is past its deadline, or it is time for what waiting says.  waiting: how long, and for which lock; or NULL.
 */
extern const MailboxAnswer *MailboxCall(MailboxRequest *request, const char *name,
										const void *data, Waiting *waiting);

/* The number of the session's last request. */
extern uint64 MailboxLastSeq(void);

/*
 * The session announces requests, up to this number; and does not post what is left of them.
 * Neither can fail.
 */
extern void MailboxAnnounce(uint64 last);
extern void MailboxWithdraw(void);

/*
 * The session no longer wants the lease that it got for its request seq.  Neither
 * waits nor fails.
 */
extern void MailboxLetGo(uint32 hold_index, uint64 seq);

#endif							/* DDBLOCK_SESSION_MAILBOX_H */
