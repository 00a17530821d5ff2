/*-------------------------------------------------------------------------
 *
 * queue_finish.c
 *	  How a job is finished: two forms of one write, and what a refusal means.
 *
 * The head of a resource without jobs must not be in the index, so the write that
 * finishes the last job differs from the others.  Each form demands the claim's
 * token, and that the job is not finished.  The likely form is sent first; its
 * refusal brings the head, which says whether the other one is right.
 *
 *-------------------------------------------------------------------------
 */
#include "queue/queue.h"

queue_kind
queue_finish_kind(const queue_finish *finish)
{
	return finish->last ? QUEUE_COMPLETE_LAST : QUEUE_COMPLETE;
}

queue_outcome
queue_finish_reply(queue_finish *finish, dynamo_status status, const queue_row *head)
{
	if (status == DYNAMO_OK)
		return QUEUE_FINISHED;
	if (status != DYNAMO_CONDITION_FAILED)
		return QUEUE_AGAIN;
	/* Another token's claim may have finished it; whoever did, it is finished. */
	if (head != NULL && head->done >= finish->number)
		return QUEUE_FINISHED;
	if (head == NULL || head->token != finish->token || head->done != finish->number - 1)
		return QUEUE_REFUSED;
	finish->last = head->seq == finish->number;
	return QUEUE_AGAIN;
}
