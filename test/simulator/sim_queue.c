/*-------------------------------------------------------------------------
 *
 * sim_queue.c
 *	  Queues: the table, the worker's side, and the promises Q1 to Q5.
 *
 *-------------------------------------------------------------------------
 */
#include "sim_queue.h"

#define TABLE "queue"

void
sim_resource_name(int resource, char name[QUEUE_RESOURCE_MAX + 1])
{
	snprintf(name, QUEUE_RESOURCE_MAX + 1, "r%d", resource);
}

static int
resource_of(const char *name)
{
	return atoi(name + 1);
}

/* The packed reply to a request without faults; malloc'd. */
static char *
ask_table(sim *s, const queue_request *request, int64_t now_ms)
{
	char	   *body = queue_build(TABLE, request, NULL);
	dynamo_reply reply;
	char	   *bytes;
	char	   *packed;
	size_t		len;
	int			status = sim_request(s, dynamo_target(queue_op(request->kind)), body, &bytes, &len);

	dynamo_read(&reply, NULL, queue_op(request->kind), 1, status, NULL, bytes, len);
	packed = queue_pack(&reply, now_ms, &len);
	if (reply.status != DYNAMO_OK || packed == NULL)
		abort();
	dynamo_reply_free(&reply);
	free(bytes);
	free(body);
	return packed;
}

char *
sim_queue_read(sim *s, queue_kind kind, int resource, int64_t now_ms)
{
	queue_request request = {.kind = kind,.queue = SIM_QUEUE_NAME,.now_ms = now_ms};

	sim_resource_name(resource, request.resource);
	return ask_table(s, &request, now_ms);
}

bool
sim_first_row(const char *reply, queue_row *row)
{
	queue_reply head;

	memcpy(&head, reply, sizeof(head));
	if (head.rows > 0)
		memcpy(row, reply + sizeof(head) + head.next_len, sizeof(*row));
	return head.rows > 0;
}

int
sim_riders(const char *reply, int64_t numbers[SIM_JOBS])
{
	queue_reply head;
	queue_row	row;
	uint32_t	left = 0;
	int			count = 0;

	memcpy(&head, reply, sizeof(head));
	reply += sizeof(head) + head.next_len;
	for (bool first = true; head.rows > 0 && (first || left-- > 0); first = false)
	{
		memcpy(&row, reply, sizeof(row));
		reply += sizeof(row) + row.queue_len + row.resource_len + row.id_len + row.error_len +
			row.payload_len;
		if (first)
			left = row.riders;
		else if (count < SIM_JOBS)
			numbers[count++] = row.number;
	}
	return count;
}

bool
sim_rides(const char *reply, int64_t number)
{
	int64_t		numbers[SIM_JOBS];
	int			count = sim_riders(reply, numbers);

	for (int i = 0; i < count; i++)
	{
		if (numbers[i] == number)
			return true;
	}
	return false;
}

void
sim_queue_table_new(sim *s)
{
	queue_request request = {.kind = QUEUE_CREATE_TABLE};

	if (!s->plan.queue)
		return;
	free(ask_table(s, &request, 0));
	s->resources = calloc((size_t) s->plan.locks, sizeof(sim_resource));
	if (s->resources == NULL)
		abort();
}

/* ---- the record, and what may become of a job ---- */

static sim_job *
job_of(const sim *s, int resource, int64_t number)
{
	return &s->resources[resource].jobs[number];
}

static void
pushed(sim *s, sim_resource *r, const queue_request *request)
{
	if (!r->head && request->first && request->seq >= r->seq)
	{
		r->head = true;
		r->seq = r->done = request->seq;
	}
	else if (!r->head || r->seq != request->seq)
	{
		/* A repeated transaction, which DynamoDB knows by its token. */
		if (strcmp(r->jobs[request->seq + 1].uuid, request->uuid) != 0)
			sim_wrong(s, "Q4: a push is applied after number %" PRId64 ", but that was not the last",
					  request->seq);
		return;
	}
	/* A field that pushes do not use says who pushes: see begin(). */
	for (int64_t n = 1; n <= r->seq; n++)
	{
		if (r->jobs[n].pusher == request->pushed_at)
			sim_wrong(s, "Q2: a push has made job %" PRId64 ", and makes %" PRId64, n, r->seq + 1);
	}
	if (r->done == r->seq)
		r->due = request->now_ms;
	for (int i = 0; i < request->jobs; i++)
	{
		memcpy(r->jobs[++r->seq].uuid, request->uuid, sizeof(request->uuid));
		r->jobs[r->seq].pusher = request->pushed_at;
	}
}

/* Q3: a job is completed, failed or buried only under the token of the last claim. */
static void
check_current(sim *s, const sim_resource *r, const queue_request *request, const char *what)
{
	if (request->token != r->token || request->number != r->done + 1)
		sim_wrong(s, "Q3: job %" PRId64 " of %s is %s under token %" PRId64 "; the last claim, of job %"
				  PRId64 ", has %" PRId64, request->number, request->resource, what, request->token,
				  r->done + 1, r->token);
}

/* Q1: no job is finished before its work is committed. */
static void
finished(sim *s, sim_resource *r, const queue_request *request, bool gone)
{
	sim_job    *job = &r->jobs[request->number];

	job->gone |= gone;
	if (job->worked == 0 && !job->gone)
		sim_wrong(s, "Q1: job %" PRId64 " of %s is finished, but its work is not committed",
				  request->number, request->resource);
	r->done = request->number;
	if (r->due > request->now_ms && request->stays)
		sim_wrong(s, "Q5: the next job of %s waits for a finished one", request->resource);
	r->due = r->done == r->seq ? 0 : request->stays ? r->due : request->now_ms;
	r->retry_at = 0;
}

/* Q2: a claimed job is left alone for a while.  An operator's claim is no attempt. */
static void
claimed(sim *s, sim_resource *r, const queue_request *request)
{
	if (request->token <= r->token)
		sim_wrong(s, "Q3: %s is claimed under token %" PRId64 " after %" PRId64, request->resource,
				  request->token, r->token);
	r->token = request->token;
	if (request->all)
		return;
	if (request->now_ms < r->retry_at || request->now_ms < r->due)
		sim_wrong(s, "Q2: job %" PRId64 " of %s is claimed before it is due", r->done + 1,
				  request->resource);
	if (request->attempts > 0)
		r->due = request->now_ms + request->delay_ms;
	r->retry_at = request->attempts > 0 ? 0 : request->now_ms + request->delay_ms;
}

/* DynamoDB has applied a write. */
static void
written(sim *s, const queue_request *request)
{
	sim_resource *r = &s->resources[resource_of(request->resource)];

	switch (request->kind)
	{
		case QUEUE_PUSH:
			pushed(s, r, request);
			break;
		case QUEUE_CLAIM:
			claimed(s, r, request);
			break;
		case QUEUE_COMPLETE:
		case QUEUE_COMPLETE_LAST:
			check_current(s, r, request, "completed");
			if ((request->kind == QUEUE_COMPLETE_LAST) != (r->seq == request->number))
				sim_wrong(s, "Q1: job %" PRId64 " of %s counts as the last one of %" PRId64,
						  request->number, request->resource, r->seq);
			finished(s, r, request, false);
			s->totals->jobs_completed++;
			break;
		case QUEUE_FAIL:
			check_current(s, r, request, "failed");
			r->due = request->now_ms + request->delay_ms;
			r->retry_at = 0;
			s->totals->jobs_failed++;
			break;
		case QUEUE_BURY:
			if (r->done >= request->number)
				break;			/* a repeated transaction */
			check_current(s, r, request, "buried");
			finished(s, r, request, true);
			s->totals->jobs_dead++;
			break;
		case QUEUE_DROP:
			if (r->seq != request->seq && r->done < r->seq)
				sim_wrong(s, "Q1: jobs of %s are dropped that came after number %" PRId64,
						  request->resource, request->seq);
			while (r->done < r->seq)
				r->jobs[++r->done].gone = true;
			r->due = r->retry_at = 0;
			break;
		case QUEUE_CANCEL:
		case QUEUE_CANCEL_RIDER:
			if (!r->jobs[request->number].gone && request->number <= r->done + 1)
				sim_wrong(s, "Q1: job %" PRId64 " of %s is cancelled, and may be running",
						  request->number, request->resource);
			r->jobs[request->number].gone = true;
			break;
		case QUEUE_DELETE_HEAD:
			if (r->head && (r->done < r->seq || r->seq != request->seq))
				sim_wrong(s, "Q1: the head of %s is removed after number %" PRId64 ", and it has %"
						  PRId64 " - %" PRId64, request->resource, request->seq, r->seq, r->done);
			s->totals->heads_removed += r->head;
			r->head = false;
			r->token = r->due = r->retry_at = 0;
			break;
		case QUEUE_DELETE_JOB:
			if (request->number > r->done)
				sim_wrong(s, "Q1: job %" PRId64 " of %s is deleted before it is finished",
						  request->number, request->resource);
			break;
		default:
			break;
	}
}

/* Q2: is there a reason why the work of the job may be done again? */
static bool
is_excused(const sim *s, const sim_job *job, const sim_cluster *by, const sim_hold *hold)
{
	const sim_cluster *c = &s->cluster[job->cluster];

	return job->lost || !sim_holds(s, by, hold) || job->incarnation != c->incarnation ||
		c->slots[job->session.slot].words.generation.value != job->session.generation ||
		mailbox_valid_until(&c->box, job->hold.lease, job->hold.generation) <= sim_local(s, c);
}

/* The work of a job is committed. */
void
sim_check_worked(sim *s, const sim_cluster *c, int slot, int resource, int64_t number,
				 const sim_hold *hold)
{
	sim_job    *job = job_of(s, resource, number);

	if (job->worked > 0 && !is_excused(s, job, c, hold))
		sim_wrong(s, "Q2: job %" PRId64 " of r%d is done again, and nothing was lost", number,
				  resource);
	job->worked++;
	job->cluster = c->number;
	job->incarnation = c->incarnation;
	job->hold = *hold;
	job->session = c->sessions[slot].me;
	s->totals->jobs_worked++;
}

/* What rides waits.  The reply as it is: who reads it leaves out what does not. */
static void
check_riders(sim *s, int resource, const queue_row *head)
{
	queue_request request = {.kind = QUEUE_READ_HEAD,.queue = SIM_QUEUE_NAME};
	char	   *body;
	char	   *bytes;
	size_t		len;

	sim_resource_name(resource, request.resource);
	body = queue_build(TABLE, &request, NULL);
	(void) sim_request(s, dynamo_target(queue_op(request.kind)), body, &bytes, &len);
	bytes = realloc(bytes, len + 1);
	if (bytes == NULL)
		abort();
	bytes[len] = '\0';
	for (const char *at = bytes; (at = strstr(at, "job#")) != NULL;)
	{
		int64_t		number = strtoll(at += 4, NULL, 10);

		if (number <= head->done || number > head->seq)
			sim_wrong(s, "Q5: job %" PRId64 " rides on r%d, which has %" PRId64 " - %" PRId64, number,
					  resource, head->seq, head->done);
	}
	free(bytes);
	free(body);
}

/* Q5: the head says what was pushed and finished. */
static void
check_head(sim *s, int resource)
{
	const sim_resource *r = &s->resources[resource];
	char	   *reply = sim_queue_read(s, QUEUE_READ_HEAD, resource, 0);
	queue_row	head = {.seq = 0};

	(void) sim_first_row(reply, &head);
	check_riders(s, resource, &head);
	if (head.seq != (r->head ? r->seq : 0) || head.done != (r->head ? r->done : 0) ||
		head.token != r->token)
		sim_wrong(s, "Q5: r%d has %" PRId64 " - %" PRId64 " jobs, not %" PRId64 " - %" PRId64,
				  resource, head.seq, head.done, r->seq, r->done);
	if (head.due != (r->retry_at > 0 ? r->retry_at : r->due))
		sim_wrong(s, "Q5: r%d is due at %" PRId64 ", not at %" PRId64, resource, head.due,
				  r->retry_at > 0 ? r->retry_at : r->due);
	free(reply);
}

/* The same of all, and Q1: each job that waits is there. */
void
sim_check_queue(sim *s)
{
	for (int i = 0; s->plan.queue && i < s->plan.locks; i++)
	{
		const sim_resource *r = &s->resources[i];
		char	   *head = sim_queue_read(s, QUEUE_READ_HEAD, i, 0);
		char	   *item;

		check_head(s, i);
		for (int64_t n = r->done + 1; n <= r->seq; n++)
		{
			queue_request request = {.kind = QUEUE_READ_JOB,.queue = SIM_QUEUE_NAME,.number = n};
			queue_row	job;

			sim_resource_name(i, request.resource);
			item = ask_table(s, &request, 0);
			if (!r->jobs[n].gone && !sim_rides(head, n) && !sim_first_row(item, &job))
				sim_wrong(s, "Q1: job %" PRId64 " of r%d is lost", n, i);
			free(item);
		}
		free(head);
	}
}

/* ---- the floor ---- */

void
sim_raise_floor(sim *s, int64_t to)
{
	queue_request request = {.kind = QUEUE_RAISE_FLOOR,.seq = s->queue_floor,.number = to};

	free(ask_table(s, &request, 0));
	s->queue_floor = to;
}

/* Of a slot, the last call: it may still be on its way to the worker. */
bool
sim_floor_counts(sim *s)
{
	for (size_t i = 1; i <= s->event_count; i++)
	{
		const sim_call *call = s->events[i].call;

		if (call != NULL && call->queue != NULL && call->queue->request.first)
			return false;
	}
	for (int i = 0; i < s->plan.clusters * s->plan.sessions; i++)
	{
		const sim_task *task =
			&s->cluster[i / s->plan.sessions].queues->slots[i % s->plan.sessions].task;

		if (task->request.first || task->state == TASK_PUSH_FLOOR)
			return false;
	}
	for (int i = 0; i < s->plan.clusters; i++)
		s->cluster[i].queues->floor = -1;
	return true;
}

/* ---- hints ---- */

void
sim_tell_jobs(sim *s, sim_cluster *c, int resource, int64_t attempts)
{
	char		name[QUEUE_RESOURCE_MAX + 1];

	sim_resource_name(resource, name);
	queue_hint_add(c->queues->hints, sim_local(s, c), SIM_QUEUE_NAME, name, attempts);
	for (int i = 0; i < s->plan.sessions; i++)
	{
		if (shared_exchange(&c->queues->slots[i].wish, 0) != 0)
			sim_step_at(s, c, i, s->now + sim_between(s, 20, 20 * MS));
	}
}

/* Between two steps of a session or the worker, another session leaves a hint. */
void
sim_queue_meanwhile(sim *s, sim_cluster *c)
{
	if (sim_chance(s, 5))
		sim_tell_jobs(s, c, (int) sim_between(s, 0, s->plan.locks - 1), QUEUE_ATTEMPTS_UNKNOWN);
}

/* ---- the worker ---- */

static void
post_call(sim *s, sim_cluster *c, const struct sim_queue_call *what, char *body)
{
	sim_call   *call = calloc(1, sizeof(sim_call));

	if (call == NULL || body == NULL)
		abort();
	call->queue = memcpy(malloc(sizeof(*what)), what, sizeof(*what));
	call->id = what->seq;
	call->op = queue_op(what->request.kind);
	call->count = 1;
	call->body = body;
	sim_say(s, "%d: sends %s of job %" PRId64 " of %s, token %" PRId64 ", as %s", c->number,
			dynamo_op_name(call->op), what->request.number, what->request.resource,
			what->request.token, what->finishes ? "worker" : "session");
	sim_dispatch(s, c, call, SECOND);
}

/* DynamoDB's time, or a little earlier.  The cluster's estimate is vague, as its clock drifts so much. */
int64_t
sim_now_ms(const sim *s, const sim_cluster *c)
{
	return (SIM_EPOCH + s->now) / MS - c->number * 300;
}

static void
host_send(void *arg, uint32_t index, const queue_request *asked, bool repeat)
{
	struct sim_queues *q = arg;
	struct sim_queue_call what = {.request = *asked,.finishes = true,.place = index};

	(void) repeat;
	if (!sim_lives(q->c))
		return;
	what.request.now_ms = sim_now_ms(q->s, q->c);
	post_call(q->s, q->c, &what, queue_build(TABLE, &what.request, NULL));
}

static int64_t
host_later(void *arg, uint32_t index, unsigned failures, const dynamo_reply *reply)
{
	struct sim_queues *q = arg;

	(void) index;
	(void) reply;
	return sim_between(q->s, 0, failures < 6 ? 20 * MS << failures : SECOND);
}

/* Q1, Q2: the worker is right about the outcome. */
static void
host_ended(void *arg, uint32_t index, queue_outcome outcome, bool more)
{
	struct sim_queues *q = arg;
	sim		   *s = q->s;
	const sim_place *p;
	const sim_resource *r;

	sim_complete_meanwhile(s, q->c);
	p = &q->places[index];
	r = &s->resources[resource_of(p->place.resource)];
	if (outcome == QUEUE_FINISHED && r->done < p->place.number)
		sim_wrong(s, "Q1: job %" PRId64 " of %s counts as finished", p->place.number,
				  p->place.resource);
	if (outcome == QUEUE_REFUSED && r->token == p->place.token && r->done < p->place.number)
		sim_wrong(s, "Q2: the completion of job %" PRId64 " of %s is given up", p->place.number,
				  p->place.resource);
	if (!sim_lives(q->c))
		return;
	if (more)
		sim_tell_jobs(s, q->c, resource_of(p->place.resource), 0);
	if (p->hold_index != LOCKMGR_NO_HOLD &&
		lockmgr_hold_seq(q->c->worker.lm, p->hold_index) == p->hold_seq)
		lockmgr_let_go(q->c->worker.lm, sim_local(s, q->c), p->session, p->hold_index);
}

static queue_place *
host_place(void *arg, uint32_t index)
{
	return &((struct sim_queues *) arg)->places[index].place;
}

void
sim_queue_new(sim *s, sim_cluster *c)
{
	struct sim_queues *q;
	size_t		sessions = (size_t) s->plan.sessions;

	if (!s->plan.queue)
		return;
	q = c->queues = calloc(1, sizeof(struct sim_queues));
	if (q == NULL)
		abort();
	q->s = s;
	q->c = c;
	q->place_count = s->plan.sessions > 2 ? 2 : 1;
	q->places = calloc((size_t) q->place_count, sizeof(sim_place));
	q->notes = calloc((size_t) q->place_count, sizeof(queue_note));
	q->slots = calloc(sessions, sizeof(sim_queue_slot));
	if (q->places == NULL || q->notes == NULL || q->slots == NULL)
		abort();
	q->finisher = (queue_finisher) {
		.arg = q,.count = (uint32_t) q->place_count,.notes = q->notes,.news = &q->news,
		.place = host_place,.send = host_send,.later = host_later,.ended = host_ended,
	};
	q->wake = INT64_MAX;
	q->floor = -1;
}

/* What the worker before has left is news, too; what it had of calls is lost. */
void
sim_queue_worker_starts(const sim *s, sim_cluster *c)
{
	struct sim_queues *q = c->queues;

	if (q == NULL)
		return;
	memset(q->notes, 0, (size_t) q->place_count * sizeof(queue_note));
	q->finisher.unfinished = 0;
	shared_write(&q->news, 1);
	q->wake = 0;
	for (int i = 0; i < s->plan.sessions; i++)
		queue_pieces_clear(&q->slots[i].buffer);
}

/* A crash: shared memory is gone. */
void
sim_queue_crashes(const sim *s, sim_cluster *c)
{
	struct sim_queues *q = c->queues;

	if (q == NULL)
		return;
	memset(q->hints, 0, sizeof(q->hints));
	memset(q->memory, 0, sizeof(q->memory));
	q->floor = -1;
	memset(q->places, 0, (size_t) q->place_count * sizeof(sim_place));
	for (int i = 0; i < s->plan.sessions; i++)
	{
		q->slots[i].task = (sim_task) {.state = TASK_NONE};
		q->slots[i].wish.value = 0;
	}
}

void
sim_queue_free(sim *s, sim_cluster *c)
{
	struct sim_queues *q = c->queues;

	if (q == NULL)
		return;
	for (int i = 0; i < s->plan.sessions; i++)
		queue_pieces_clear(&q->slots[i].buffer);
	free(q->places);
	free(q->notes);
	free(q->slots);
	free(q);
}

/* After each event of the worker. */
void
sim_run_queue(sim *s, sim_cluster *c)
{
	if (c->queues == NULL || c->worker.lm == NULL || sim_is_dying(c) || s->now < c->paused_until)
		return;
	c->queues->wake = queue_finisher_run(&c->queues->finisher, sim_local(s, c));
}

int64_t
sim_queue_wake(const sim_cluster *c)
{
	return c->queues->wake;
}

/* Has the worker this hold, to finish its job? */
bool
sim_queue_has(const sim_cluster *c, uint32_t index)
{
	const saved_hold *h = &c->saved_holds[index].h;

	for (int i = 0; c->queues != NULL && i < c->queues->place_count; i++)
	{
		const sim_place *p = &c->queues->places[i];

		if (p->place.state.value == QUEUE_PLACE_READY && p->hold_index == index &&
			p->hold_seq == h->seq)
			return true;
	}
	return false;
}

/* A hold is lost: if its job's completion is under way, the work may be done again. */
void
sim_queue_lost(const sim *s, const sim_cluster *c, uint32_t index, uint64_t seq)
{
	for (int i = 0; s->plan.queue && i < s->plan.locks; i++)
	{
		sim_resource *r = &s->resources[i];

		for (int64_t n = r->done; n <= r->seq; n++)
		{
			if (r->jobs[n].cluster == c->number && r->jobs[n].hold.index == index &&
				r->jobs[n].hold.seq == seq)
				r->jobs[n].lost = true;
		}
	}
}

void
sim_queue_copy(sim_cluster *c, uint32_t slot)
{
	if (c->queues != NULL)
		c->queues->taken = c->queues->slots[slot].request;
}

/* Into the slot, with the answer. */
void
sim_queue_give(sim_cluster *c, uint32_t slot)
{
	c->queues->slots[slot].answer = c->queues->given;
}

static void
answer(sim *s, sim_cluster *c, lockmgr_session session, uint64_t seq)
{
	lockmgr_answer out = {
		.session = session,.seq = seq,.kind = SIM_QUEUE,.result = LOCKMGR_BUSY,.message = "",
	};

	if (!sim_lives(c))
		return;
	sim_write_answer(s, c, &out);
	if (c->owed[session.slot] == seq)
		c->owed[session.slot] = 0;
}

static void
answer_failure(sim *s, sim_cluster *c, lockmgr_session session, uint64_t seq, dynamo_status status)
{
	c->queues->given = (sim_piece) {.kind = PIECE_FAILED,.status = status};
	answer(s, c, session, seq);
}

/* False: the worker does not have it. */
static bool
answer_piece(sim *s, sim_cluster *c, lockmgr_session session, uint64_t seq, uint32_t offset)
{
	const queue_pieces *buffer = &c->queues->slots[session.slot].buffer;
	uint32_t	len = 300;
	const char *bytes = queue_pieces_give(buffer, session.generation, offset, &len);

	if (bytes == NULL)
		return false;
	c->queues->given = (sim_piece) {.kind = PIECE_REPLY,.total = buffer->total,.len = len};
	memcpy(c->queues->given.data, bytes, len);
	answer(s, c, session, seq);
	return true;
}

static void
send_whole(sim *s, sim_cluster *c, lockmgr_session session, uint64_t seq)
{
	queue_pieces *buffer = &c->queues->slots[session.slot].buffer;
	struct sim_queue_call what = {.session = session,.seq = seq};
	queue_kind	kind;
	int64_t		now = sim_now_ms(s, c);

	memcpy(&what.request, buffer->bytes, sizeof(what.request));
	if (what.request.now_ms == 0)
		what.request.now_ms = now;
	if (sim_lives(c))
		post_call(s, c, &what, queue_pieces_build(buffer, seq, TABLE, now, &kind));
}

/* I8: the pieces of a call are there, unless its worker has died. */
static void
check_lost(sim *s, const sim_cluster *c, lockmgr_session session, uint64_t seq)
{
	const sim_session *asker = &c->sessions[session.slot];

	if (asker->waiting && asker->request.seq == seq &&
		asker->me.generation == session.generation &&
		c->queues->slots[session.slot].task.life == c->life)
		sim_wrong(s, "I8: the worker has lost a part of the call of session %u", session.slot);
}

void
sim_queue_ask(sim *s, sim_cluster *c, lockmgr_session session, uint64_t seq)
{
	const sim_piece *taken = &c->queues->taken;
	queue_taken result = QUEUE_PIECES_LOST;

	if (taken->kind == PIECE_REQUEST)
		result = queue_pieces_take(&c->queues->slots[session.slot].buffer, session.generation,
								   taken->total, taken->offset, taken->data, taken->len);
	else if (answer_piece(s, c, session, seq, taken->offset))
		return;
	switch (result)
	{
		case QUEUE_PIECES_LOST:
			check_lost(s, c, session, seq);
			answer_failure(s, c, session, seq, DYNAMO_UNKNOWN);
			break;
		case QUEUE_PIECES_REFUSED:
			sim_wrong(s, "I8: a piece does not fit");
			break;
		case QUEUE_PIECES_MORE:
			c->queues->given = (sim_piece) {.kind = PIECE_MORE};
			answer(s, c, session, seq);
			break;
		case QUEUE_PIECES_WHOLE:
			send_whole(s, c, session, seq);
			break;
	}
}

static bool
is_wanted(const sim_cluster *c, const struct sim_queue_call *what)
{
	const mailbox_slot *words = &c->slots[what->session.slot].words;

	return words->generation.value == what->session.generation &&
		words->cancelled_seq.value < what->seq;
}

static void
session_replied(sim *s, sim_cluster *c, const struct sim_queue_call *what, const dynamo_reply *reply)
{
	queue_pieces *buffer = &c->queues->slots[what->session.slot].buffer;
	char	   *bytes;
	size_t		len;

	if (reply->status != DYNAMO_OK && reply->status != DYNAMO_CONDITION_FAILED)
	{
		answer_failure(s, c, what->session, what->seq, reply->status);
		return;
	}
	bytes = queue_pack(reply, sim_now_ms(s, c), &len);
	if (!queue_pieces_reply(buffer, what->session.generation, what->seq, bytes, len))
		free(bytes);
	else if (!is_wanted(c, what))
		queue_pieces_clear(buffer);
	else
		(void) answer_piece(s, c, what->session, what->seq, 0);
}

/* If the worker dies in the middle, the place is not free. */
static void
finisher_replied(sim *s, sim_cluster *c, uint32_t index, const dynamo_reply *reply)
{
	struct sim_queues *q = c->queues;
	sim_race	before;

	if (index == QUEUE_NO_PLACE || sim_is_dying(c))
		return;
	before = sim_begin_race(s, c, (int) sim_between(s, 0, s->plan.sessions - 1), SIDE_WORKER);
	queue_finisher_reply(&q->finisher, index, sim_local(s, c), reply);
	sim_end_race(before);
	if (sim_is_dying(c) && q->places[index].place.state.value == QUEUE_PLACE_FREE)
		q->places[index].place.state.value = QUEUE_PLACE_READY;
}

void
sim_queue_reply(sim *s, sim_cluster *c, const sim_call *call, const dynamo_reply *reply)
{
	const struct sim_queue_call *what = call->queue;

	if (what->finishes)
		finisher_replied(s, c, what->place, reply);
	else
		session_replied(s, c, what, reply);
}

/* A copy of a call has reached DynamoDB. */
void
sim_queue_applied(sim *s, const sim_call *call, const dynamo_reply *reply)
{
	sim_say(s, "%d: DynamoDB gets %s of job %" PRId64 " of %s: %s", call->cluster,
			dynamo_op_name(call->op), call->queue->request.number, call->queue->request.resource,
			reply->status == DYNAMO_OK ? "done" : reply->message);
	if (reply->status == DYNAMO_OK)
	{
		written(s, &call->queue->request);
		if (dynamo_is_queue_write(call->op))
			check_head(s, resource_of(call->queue->request.resource));
	}
	else if (reply->status != DYNAMO_CONDITION_FAILED)
		sim_wrong(s, "DynamoDB does not understand %s: %s", dynamo_op_name(call->op),
				  reply->message);
}
