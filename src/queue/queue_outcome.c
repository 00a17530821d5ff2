/*-------------------------------------------------------------------------
 *
 * queue_outcome.c
 *	  What a head, and the replies to writes of it, mean: is a job due, claimed, finished?
 *
 * The head of a resource without jobs must not be in the index, so the write that
 * finishes the last job differs from the others.  Each form demands the claim's
 * token, and that the job is not finished.  The likely form is sent first; its
 * refusal brings the head, which says whether the other one is right.
 *
 *-------------------------------------------------------------------------
 */
#include "queue/queue.h"

#define BACKOFF_FIRST_MS INT64_C(5000)
#define BACKOFF_MOST_MS INT64_C(600000)

/*
 * RIDE_TOGETHER: a head with several small jobs stays below a kilobyte, which is a write unit.
 * RIDE_ALONE: a single job of up to 2 kB costs less on the head than as an item.
 */
#define RIDE_TOGETHER 640
#define RIDE_ALONE 2048
#define RIDE_NAMES 60			/* what a job takes beside its id and payload: number, time,
								 * names of attributes */

bool
queue_may_ride(uint32_t taken, size_t size)
{
	return size <= (taken == 0 ? RIDE_ALONE : taken < RIDE_TOGETHER ? RIDE_TOGETHER - taken : 0);
}

uint32_t
queue_ride_size(size_t id_len, size_t payload_len)
{
	return (uint32_t) (RIDE_NAMES + id_len + payload_len);
}

bool
queue_is_due(const queue_row *head, int64_t now_ms)
{
	return head != NULL && head->done < head->seq && head->due <= now_ms && !head->paused;
}

bool
queue_is_spent(const queue_row *head, int64_t token)
{
	return head->done == head->seq && !head->paused && head->token < token;
}

int64_t
queue_backoff_ms(int64_t attempts)
{
	return attempts >= 7 ? BACKOFF_MOST_MS : BACKOFF_FIRST_MS << (attempts > 0 ? attempts : 0);
}

/*
 * A claim that is refused while the head has its own token was applied by an earlier copy, because
 * no other claim has this token.  But the jobs may have been dropped since.
 */
bool
queue_is_claimed(dynamo_status status, const queue_row *head, int64_t token)
{
	return head != NULL && (status == DYNAMO_OK ||
							(head->token == token && head->done < head->seq));
}

/* If the FAIL was refused because the job was finished or dropped, nothing must be put back. */
bool
queue_is_put_back(dynamo_status status, const queue_row *head, int64_t number)
{
	return status == DYNAMO_OK || (head != NULL && head->done >= number);
}

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
	/* The job is finished, by this token's claim or by another one's. */
	if (head != NULL && head->done >= finish->number)
		return QUEUE_FINISHED;
	if (head == NULL || head->token != finish->token || head->done != finish->number - 1)
		return QUEUE_REFUSED;
	finish->last = head->seq == finish->number;
	return QUEUE_AGAIN;
}
