/*-------------------------------------------------------------------------
 *
 * worker_answer.c
 *	  Answers to sessions, in their slots.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "worker/worker.h"

MailboxAnswer *
WorkerBeginAnswer(lockmgr_session session, uint64 seq, uint32 granted)
{
	if (!mailbox_begin_answer(&segment_mailbox, session, seq, granted))
		return NULL;
	return &segment_slots[session.slot].answer;
}

void
WorkerAnswerResult(lockmgr_session session, uint64 seq, MailboxResult result)
{
	MailboxAnswer *out = WorkerBeginAnswer(session, seq, LOCKMGR_NO_HOLD);

	if (out == NULL)
		return;
	out->result = result;
	mailbox_end_answer(&segment_mailbox, session, seq);
}

void
WorkerFillFailure(MailboxAnswer *out, MailboxResult result, dynamo_op op,
				  dynamo_status status, const char *message)
{
	MailboxFailure *failure = &out->failure;

	out->result = result;
	failure->op = op;
	failure->status = status;
	strlcpy(failure->message, message, sizeof(failure->message));
	strlcpy(failure->hint, status == DYNAMO_CREDENTIALS ? WorkerCredentialsWords() : "",
			sizeof(failure->hint));
}

void
WorkerAnswerFailure(lockmgr_session session, uint64 seq, MailboxResult result, dynamo_op op,
					dynamo_status status, const char *message, const char *hint)
{
	MailboxAnswer *out = WorkerBeginAnswer(session, seq, LOCKMGR_NO_HOLD);

	if (out == NULL)
		return;
	WorkerFillFailure(out, result, op, status, message);
	if (hint != NULL)
		strlcpy(out->failure.hint, hint, sizeof(out->failure.hint));
	mailbox_end_answer(&segment_mailbox, session, seq);
}

dynamo_item
WorkerItem(const dynamo_item *item)
{
	dynamo_item copy = *item;

	copy.wrong = NULL;
	copy.data = NULL;
	copy.attributes = copy.attribute_names = NULL;
	return copy;
}

static void
fill_item(MailboxAnswer *out, MailboxResult result, const dynamo_item *item,
		  const dynamo_shared *shared)
{
	MailboxItem *found = &out->found;
	size_t		room = sizeof(found->data);

	out->result = result;
	found->item = WorkerItem(item);
	found->unusable = dynamo_unusable(item, shared) != NULL;
	found->has_data = item->data != NULL;
	if (found->has_data && item->data_len <= room)
	{
		memcpy(found->data, item->data, item->data_len);
		room -= item->data_len;
	}
	found->attributes_len = item->attributes != NULL ? strlen(item->attributes) : 0;
	if (found->attributes_len > 0 && found->attributes_len <= room)
		memcpy(found->data + sizeof(found->data) - found->attributes_len, item->attributes,
			   found->attributes_len);
	found->mode = lockmgr_mode(shared);
	found->clusters = found->mode == MODE_EXCLUSIVE ? 0 : shared->count;
	found->permits = found->mode == MODE_EXCLUSIVE ? 0 : shared->total;
	for (int i = 0; i < found->clusters; i++)
	{
		Utf8Copy(found->cluster[i], sizeof(found->cluster[i]), shared->entries[i].name);
		found->cluster_permits[i] = shared->entries[i].permits;
	}
}

void
WorkerAnswer(void *arg, const lockmgr_answer *answer)
{
	MailboxAnswer *out = WorkerBeginAnswer(answer->session, answer->seq,
									  answer->result == LOCKMGR_GRANTED ?
									  answer->grant.hold_index : LOCKMGR_NO_HOLD);

	if (out == NULL)
		return;
	out->result = (MailboxResult) answer->result;
	switch (answer->result)
	{
		case LOCKMGR_GRANTED:
		case LOCKMGR_RENEWED:
			out->grant = answer->grant;
			break;
		case LOCKMGR_LOST:
			out->loss = answer->loss;
			break;
		case LOCKMGR_FOUND:
			fill_item(out, MAILBOX_FOUND, answer->item, answer->shared);
			break;
		case LOCKMGR_DEADLOCK:
		case LOCKMGR_BAD_ITEM:
		case LOCKMGR_FAILED:
			WorkerFillFailure(out, out->result, answer->op, answer->status, answer->message);
			break;
		default:				/* the answer has only its result */
			break;
	}
	mailbox_end_answer(&segment_mailbox, answer->session, answer->seq);
}

void
WorkerAnswerTable(const WorkerCall *call, const dynamo_reply *reply)
{
	const dynamo_result *result = reply->results;
	MailboxAnswer *out = WorkerBeginAnswer(call->session, call->id, LOCKMGR_NO_HOLD);
	/* A batch succeeds as a call even if its statement does not. */
	dynamo_status status = reply->status == DYNAMO_OK ? result->status : reply->status;

	if (out == NULL)
		return;
	if (dynamo_is_failure(status))
		WorkerFillFailure(out, MAILBOX_FAILED, call->op, status,
						  dynamo_is_failure(reply->status) ? reply->message : result->message);
	else if (call->op == DYNAMO_READ && result->json != NULL)
	{
		MailboxUnusable *unusable = &out->unusable;

		out->result = MAILBOX_UNUSABLE;
		strlcpy(unusable->why, dynamo_unusable(&result->item, result->shared),
				sizeof(unusable->why));
		(void) dynamo_digest(result->json, unusable->digest, sizeof(unusable->digest));
		unusable->released = result->item.released;
		(void) dynamo_token_above(result->json, 0, &unusable->token_may_fall);
		dynamo_show(result->json, unusable->item, sizeof(unusable->item));
	}
	else if (call->op == DYNAMO_READ || status == DYNAMO_CONDITION_FAILED)
		fill_item(out, MAILBOX_CHANGED, &result->item, result->shared);
	else if (dynamo_is_description(call->op))
	{
		out->result = MAILBOX_DESCRIBED;
		out->table = reply->table;
	}
	else
		out->result = MAILBOX_DONE;
	mailbox_end_answer(&segment_mailbox, call->session, call->id);
}
