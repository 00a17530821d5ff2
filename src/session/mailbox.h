/*-------------------------------------------------------------------------
 *
 * mailbox.h
 *	  A session's side of the mailbox: ask the worker, wait for its answer.
 *
 * One request at a time.  Waiting never lasts beyond an interrupt:
 * if anything is raised meanwhile, the request is cancelled and the worker
 * gives back whatever it gets for it, even if it has got it already.
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
 * Sends the request, setting its seq, and fills the answer, which may be a
 * failure.  waiting, if not NULL, says how long and for which lock.
 */
extern void MailboxCall(MailboxRequest *request, Waiting *waiting,
						MailboxAnswer *answer);

/*
 * Tells the worker that the session wants no more of the lease that it got for
 * the request seq.  Neither waits nor fails.
 */
extern void MailboxLetGo(uint32 lease_index, uint64 seq);

#endif							/* DDBLOCK_SESSION_MAILBOX_H */
