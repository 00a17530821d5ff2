/*-------------------------------------------------------------------------
 *
 * queue_finish.c
 *	  Jobs whose sessions have committed, and how the worker finishes them.
 *
 * A session that has committed can neither fail nor wait, and may end at once.  So the
 * worker finishes the job, and repeats that until the outcome is known, for as long as
 * it takes.  The session's hold ends only then, because nobody else should get the job
 * before it is finished.
 *
 * If the lease is lost meanwhile, or the session ends, another session may claim the
 * job anew.  Then this token is refused, and the job's work is done once more: that is
 * what "at least once" means, and what ddb_queue_mark_done() is for.
 *
 *-------------------------------------------------------------------------
 */
#include "queue/queue.h"

#include <string.h>

bool
queue_place_is_ready(queue_place *place)
{
	bool		ready = shared_read(&place->state) == QUEUE_PLACE_READY;

	shared_read_barrier();
	return ready;
}

uint32_t
queue_place_reserve(queue_place_at at, void *arg, uint32_t first, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
	{
		uint32_t	index = (first + i) % count;
		uint32_t	expected = QUEUE_PLACE_FREE;

		if (shared_compare_exchange(&at(arg, index)->state, &expected, QUEUE_PLACE_RESERVED))
			return index;
	}
	return QUEUE_NO_PLACE;
}

void
queue_place_free(queue_place *place)
{
	shared_write_barrier();
	shared_write(&place->state, QUEUE_PLACE_FREE);
}

void
queue_place_pass(queue_place *place, queue_place *copy)
{
	*copy = *place;
	shared_write_barrier();
	shared_write(&place->state, QUEUE_PLACE_READY);
}

bool
queue_finisher_is_idle(const queue_finisher *me)
{
	return me->unfinished == 0 && shared_read(me->news) == 0;
}

static queue_request
about(const queue_place *place, queue_kind kind)
{
	queue_request request = {.kind = kind,.number = place->number,.token = place->token};

	memcpy(request.queue, place->queue, sizeof(request.queue));
	memcpy(request.resource, place->resource, sizeof(request.resource));
	return request;
}

int64_t
queue_finisher_run(queue_finisher *me, int64_t now)
{
	bool		news = shared_exchange(me->news, 0) != 0;
	int64_t		wake = INT64_MAX;

	for (uint32_t i = 0; news && i < me->count; i++)
	{
		queue_place *place = me->place(me->arg, i);

		if (me->notes[i].known || !queue_place_is_ready(place))
			continue;
		me->notes[i] = (queue_note) {
			.known = true,.next = now,
			.finish = {.number = place->number,.token = place->token,.last = place->last},
		};
		me->unfinished++;
	}
	for (uint32_t i = 0; me->unfinished > 0 && i < me->count; i++)
	{
		queue_note *note = &me->notes[i];

		if (!note->known || note->in_flight)
			continue;
		if (note->next <= now)
		{
			const queue_place *place = me->place(me->arg, i);
			queue_request request = about(place, queue_finish_kind(&note->finish));

			request.stays = now < place->stays_until;
			note->in_flight = true;
			me->send(me->arg, i, &request, note->failures > 0);
		}
		else if (note->next < wake)
			wake = note->next;
	}
	return wake;
}

void
queue_finisher_reply(queue_finisher *me, uint32_t index, int64_t now, const dynamo_reply *reply)
{
	queue_note *note = &me->notes[index];
	queue_place *place = me->place(me->arg, index);
	queue_row	row;
	bool		exists = queue_refusing_head(reply, &row);
	queue_outcome outcome;

	note->in_flight = false;
	outcome = queue_finish_reply(&note->finish, reply->status, exists ? &row : NULL);
	if (outcome == QUEUE_AGAIN)
	{
		/*
		 * Attempts go on until a reply settles the outcome: a table may be restored, a policy
		 * corrected.
		 */
		if (reply->status == DYNAMO_CONDITION_FAILED && note->refusals++ == 0)
			note->next = 0;		/* in the other form, at once */
		else
			note->next = now + me->later(me->arg, index, ++note->failures, reply);
		return;
	}

	/*
	 * The deletion of the job's item is sent once: if it is lost, ddb_queue_purge() deletes the
	 * item.
	 */
	if (outcome == QUEUE_FINISHED && !place->rides)
	{
		queue_request request = about(place, QUEUE_DELETE_JOB);

		me->send(me->arg, QUEUE_NO_PLACE, &request, false);
	}
	/*
	 * The hold ends before the place is free, because a session that sees a free place tries for
	 * the lock.
	 */
	me->ended(me->arg, index, outcome,
			  outcome == QUEUE_FINISHED && place->last && !note->finish.last);
	note->known = false;
	me->unfinished--;
	queue_place_free(place);
}
