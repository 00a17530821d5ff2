/*-------------------------------------------------------------------------
 *
 * queue_claim.c
 *	  A claim's states, and what transactions and savepoints do to them.
 *
 *-------------------------------------------------------------------------
 */
#include "queue/queue.h"

#include <string.h>

#include "dynamo/dynamo_codec.h"

/*
 * After so many jobs, or so long, a resource goes behind the others in the index.  Each time costs
 * a write unit.
 */
#define TURN_JOBS 8
#define TURN_MS 30000

queue_claim
queue_claim_begin(int level)
{
	return (queue_claim) {.claimed_level = level};
}

void
queue_claim_take(queue_claim *claim, const queue_row *head, int64_t delay_ms, int64_t now)
{
	claim->number = head->done + 1;
	claim->stays_until = 0;
	/* If due equals turn, the claim itself has put the resource behind the others. */
	if (head->turn < head->due && claim->number % TURN_JOBS != 0)
		claim->stays_until = now + (TURN_MS - (head->due - delay_ms - head->turn)) * 1000;
	claim->last = head->seq == claim->number;
}

void
queue_claim_complete(queue_claim *claim, int level, queue_place *place, const char *queue,
					 const char *resource)
{
	place->token = claim->token;
	place->number = claim->number;
	place->last = claim->last;
	place->rides = claim->rides;
	place->stays_until = claim->stays_until;
	dynamo_json_copy(place->queue, sizeof(place->queue), queue);
	dynamo_json_copy(place->resource, sizeof(place->resource), resource);
	claim->place = place;
	claim->finish_level = level;
}

/*
 * A (sub)transaction ends.  What it has claimed or completed belongs to the level above if it has
 * committed; level 0 is no transaction.
 */
queue_fate
queue_claim_end(queue_claim *claim, int level, bool committed, bool is_void)
{
	if (committed && level == 1 && claim->finish_level > 0)
		return QUEUE_CLAIM_PASSES;
	if (claim->finish_level >= level && committed)
		claim->finish_level = level - 1;
	else if (claim->finish_level >= level)
	{
		queue_place_free(claim->place);
		claim->finish_level = 0;
	}
	if (claim->claimed_level >= level && !committed)
		return QUEUE_CLAIM_ENDS;
	if (claim->claimed_level >= level)
		claim->claimed_level = level - 1;
	return level == 1 && is_void ? QUEUE_CLAIM_VOID : QUEUE_CLAIM_STAYS;
}
