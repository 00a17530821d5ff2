/*-------------------------------------------------------------------------
 *
 * lockmgr_answer.c
 *	  Answers to sessions.
 *
 *-------------------------------------------------------------------------
 */
#include "lock/lockmgr_private.h"

#include <stdlib.h>

/* Answers the session's request, which ends it.  Nobody waits for an announced one yet. */
void
lm_answer(lockmgr *lm, lm_session *session, lockmgr_answer *answer)
{
	lm_request *request = &session->request;

	lm_assert(request->active);
	if (request->unreleased > 1 && answer->result != LOCKMGR_FAILED)
	{
		request->unreleased--;
		return;
	}
	if ((request->kind == LOCKMGR_ACQUIRE || request->kind == LOCKMGR_TRY) &&
		request->lock != NULL)
		lm_dequeue(lm, session);
	answer->session = session->id;
	answer->seq = request->seq;
	answer->kind = request->kind;
	if (answer->message == NULL)
		answer->message = "";
	request->active = false;
	lm_free_payload(request);
	if (session->announced_by != NULL)
	{
		session->outcome = answer->result;
		if (answer->result == LOCKMGR_GRANTED)
			session->granted = answer->hold_index;
		return;
	}
	lm->host.answer(lm->host.arg, answer);
}

void
lm_answer_result(lockmgr *lm, lm_session *session, lockmgr_result result)
{
	lockmgr_answer answer = {.result = result};

	lm_answer(lm, session, &answer);
}

/* The item is unusable. */
void
lm_answer_bad_item(lockmgr *lm, lm_session *session, const char *message)
{
	lockmgr_answer answer = {.result = LOCKMGR_BAD_ITEM, .message = message};

	lm_answer(lm, session, &answer);
}

/* The request fails with the lock's trouble. */
void
lm_answer_failed(lockmgr *lm, lm_session *session, const lm_lock *lock)
{
	lockmgr_answer answer = {
		.result = LOCKMGR_FAILED,
		.op = lock->trouble_op,
		.status = lock->trouble,
		.message = lock->trouble_message,
	};

	lm_answer(lm, session, &answer);
}

/* The session that waits for the lock's release, or NULL. */
lm_session *
lm_releaser(const lm_lock *lock)
{
	lm_session *session = lock->releaser;

	return session != NULL && session->request.active &&
		session->request.seq == lock->releaser_seq ? session : NULL;
}

/* Its request fails with the lock's trouble, too. */
void
lm_fail_releaser(lockmgr *lm, lm_lock *lock)
{
	lm_session *session = lm_releaser(lock);

	lock->releaser = NULL;
	if (session != NULL)
		lm_answer_failed(lm, session, lock);
}

/* Does the session that has the hold wait for its renewal? */
bool
lm_is_renewer(const lm_hold *hold)
{
	const lm_request *request = &hold->session->request;

	return request->active && request->kind == LOCKMGR_RENEW &&
		hold->lease->lock != NULL && request->lock == hold->lease->lock;
}

bool
lm_has_renewer(const lm_lease *lease)
{
	const lm_hold *hold = lease->holds;

	while (hold != NULL && !lm_is_renewer(hold))
		hold = hold->lease_next;
	return hold != NULL;
}

/* A session that waits for a renewal that changes the item's data, or NULL. */
lm_session *
lm_data_renewer(const lm_lease *lease)
{
	const lm_hold *hold = lease->holds;

	while (hold != NULL && !(lm_is_renewer(hold) && hold->session->request.data != NULL))
		hold = hold->lease_next;
	return hold != NULL ? hold->session : NULL;
}

void
lm_answer_renewer(lockmgr *lm, const lm_hold *hold, lockmgr_result result)
{
	lockmgr_answer answer = {
		.result = result,
		.valid_until = hold->lease->l.valid_until,
		.loss = hold->h.loss,
	};

	if (!lm_is_renewer(hold))
		return;
	hold->lease->lock->wanted_lease_ms = 0;
	lm_answer(lm, hold->session, &answer);
}

void
lm_answer_renewers(lockmgr *lm, const lm_lease *lease, lockmgr_result result)
{
	for (const lm_hold *hold = lease->holds; hold != NULL; hold = hold->lease_next)
		lm_answer_renewer(lm, hold, result);
}

/* Nobody knows whether the release was done. */
void
lm_answer_unconfirmed(lockmgr *lm, lm_session *session)
{
	lockmgr_answer answer = {
		.result = LOCKMGR_FAILED,
		.op = DYNAMO_RELEASE,
		.status = DYNAMO_UNKNOWN,
		.message = "the lease had ended before DynamoDB confirmed the release",
	};

	lm_answer(lm, session, &answer);
}

/* Call it after saving the lease: the session reads the lease directory next. */
void
lm_answer_releaser(lockmgr *lm, lm_lock *lock, lockmgr_result result)
{
	lm_session *session = lm_releaser(lock);
	lockmgr_answer answer = {.result = result};

	if (session == NULL)
		return;
	lock->releaser = NULL;
	if (result == LOCKMGR_FAILED)
		lm_answer_unconfirmed(lm, session);
	else
		lm_answer(lm, session, &answer);
}
