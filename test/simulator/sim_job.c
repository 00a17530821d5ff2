/*-------------------------------------------------------------------------
 *
 * sim_job.c
 *	  Sessions that push, claim, complete, fail, cancel and drop jobs, and remove heads.
 *
 * They do as src/session/queue_*.c does, one step at a time.  The work of a job is a row
 * that is written together with the completion: it is there when that transaction has
 * committed, and not if it, or a savepoint, was rolled back.
 *
 *-------------------------------------------------------------------------
 */
#include "sim_queue.h"

static sim_task *
task_of(const sim_cluster *c, int slot)
{
	return &c->queues->slots[slot].task;
}

/* ---- calls ---- */

static void
post_piece(sim *s, sim_cluster *c, int slot, uint32_t offset)
{
	sim_task   *task = task_of(c, slot);
	sim_piece  *piece = &c->queues->slots[slot].request;
	bool		more = task->have > 0;
	uint32_t	left = task->total - offset;
	lockmgr_request request = {
		.session = c->sessions[slot].me,.kind = SIM_QUEUE,.name = "",
	};

	c->queues->slots[slot].task.calling = false;
	if (!more && offset == 0)
		task->life = c->life;
	piece->kind = more ? PIECE_MORE : PIECE_REQUEST;
	piece->total = task->total;
	piece->offset = more ? task->have : offset;
	piece->len = more ? 0 : left < SIM_PIECE ? left : SIM_PIECE;
	memcpy(piece->data, task->bytes + (more ? 0 : offset), piece->len);
	sim_post_request(s, c, slot, request, task->resource);
}

/* Has the task make a call; its reply comes to replied(). */
static void
call(sim *s, sim_cluster *c, int slot, sim_task_state state, queue_kind kind)
{
	sim_task   *task = task_of(c, slot);
	queue_job	job = {.payload_len = 1};
	int64_t		riders[SIM_JOBS];
	uint8_t		random[16];

	if (kind == QUEUE_DROP)
		task->request.jobs = sim_riders(task->reply, riders);
	task->state = state;
	task->request.kind = kind;
	memcpy(task->request.queue, SIM_QUEUE_NAME, sizeof(SIM_QUEUE_NAME));
	sim_resource_name(task->resource, task->request.resource);
	for (int i = 0; i < 16; i++)
		random[i] = (uint8_t) sim_random(s);
	snprintf(task->request.uuid, sizeof(task->request.uuid), "%02x%02x%02x%02x%02x%02x%02x%02x",
			 random[0], random[1], random[2], random[3], random[4], random[5], random[6], random[7]);
	task->total = sizeof(task->request);
	memcpy(task->bytes, &task->request, sizeof(task->request));
	for (int i = 0; kind == QUEUE_PUSH && i < task->request.jobs; i++)
	{
		memcpy(task->bytes + task->total, &job, sizeof(job));
		task->bytes[task->total + sizeof(job)] = '1';
		task->total += (uint32_t) sizeof(job) + 1;
	}
	if (kind == QUEUE_BURY)
		task->bytes[task->total++] = '1';
	if (kind == QUEUE_DROP)
	{
		memcpy(task->bytes + task->total, riders, (size_t) task->request.jobs * sizeof(riders[0]));
		task->total += (uint32_t) ((size_t) task->request.jobs * sizeof(riders[0]));
	}
	task->have = 0;
	task->failures = 0;
	task->calling = true;
}

static void fail(sim *s, sim_cluster *c, int slot);
static void replied(sim *s, sim_cluster *c, int slot);

/* The answer to a piece. */
static void
take_piece(sim *s, sim_cluster *c, int slot)
{
	sim_task   *task = task_of(c, slot);
	const sim_piece *out = &c->queues->slots[slot].answer;

	if (out->kind == PIECE_MORE)
		post_piece(s, c, slot, c->queues->slots[slot].request.offset +
				   c->queues->slots[slot].request.len);
	else if (out->kind == PIECE_REPLY)
	{
		if (task->have + out->len > sizeof(task->reply))
		{
			sim_wrong(s, "a reply has more bytes than the simulator has room for");
			return;
		}
		memcpy(task->reply + task->have, out->data, out->len);
		task->have += out->len;
		if (task->have < out->total)
			post_piece(s, c, slot, 0);
		else
			replied(s, c, slot);
	}
	else if (out->kind == PIECE_FAILED && dynamo_is_transient(out->status) && task->failures++ < 8)
	{
		task->have = 0;
		task->calling = true;	/* at its next step */
	}
	else
		fail(s, c, slot);
}

/* ---- the claim and its transaction ---- */

static sim_hold *
hold_of(sim_cluster *c, int slot)
{
	sim_task   *task = task_of(c, slot);

	for (int i = 0; i < SIM_HOLDS; i++)
	{
		sim_hold   *hold = &c->sessions[slot].holds[i];

		if (task->has_claim && hold->used && hold->token == task->claim.token &&
			hold->lock == task->resource)
			return hold;
	}
	return NULL;
}

static void
end_claim(sim *s, sim_cluster *c, int slot)
{
	sim_hold   *hold = hold_of(c, slot);

	task_of(c, slot)->has_claim = false;
	if (hold != NULL)
		sim_let_go(s, c, slot, hold->index);
}

/* What a push will guess. */
static void
remember(const sim_cluster *c, int resource, int64_t seq, uint32_t taken)
{
	char		name[QUEUE_RESOURCE_MAX + 1];

	sim_resource_name(resource, name);
	queue_memory_note(c->queues->memory, SIM_QUEUE_NAME, name, seq, taken);
}

/* The job becomes the worker's, with the hold. */
static void
pass_on(sim *s, sim_cluster *c, int slot)
{
	sim_task   *task = task_of(c, slot);
	sim_hold   *hold = hold_of(c, slot);
	sim_place  *p = (sim_place *) task->claim.place;
	queue_place was;
	sim_race	before;

	p->session = c->sessions[slot].me;
	p->hold_index = hold != NULL ? hold->index : LOCKMGR_NO_HOLD;
	p->hold_seq = hold != NULL ? hold->seq : 0;
	if (hold != NULL)
		sim_clear_hold(s, hold);
	task->has_claim = false;
	before = sim_begin_race(s, c, slot, SIDE_SESSION);
	queue_place_pass(&p->place, &was);
	sim_end_race(before);
	shared_write(&c->queues->news, 1);
	c->box.ring(c->box.arg, (uint32_t) slot);
	if (was.last)
		remember(c, task->resource, was.number, 0);
	if (was.number != task->claim.number)
		sim_wrong(s, "Q1: the worker gets job %" PRId64 ", not %" PRId64, was.number,
				  task->claim.number);
	if (!was.last)
		sim_tell_jobs(s, c, task->resource, 0);
}

/* A transaction (level 1) or subtransaction ends. */
static void
end_level(sim *s, sim_cluster *c, int slot, bool committed)
{
	sim_task   *task = task_of(c, slot);
	int			level = task->level--;
	bool		ends = !committed && task->made_level >= level;
	bool		is_void = hold_of(c, slot) == NULL;
	queue_fate	fate;

	task->guarded = false;
	if (task->work_level >= level)
		task->work_level = committed ? level - 1 : 0;
	if (task->made_level >= level)
		task->made_level = level - 1;
	if (!task->has_claim)
		return;
	fate = queue_claim_end(&task->claim, level, committed, is_void);
	sim_say(s, "%d: session %d ends level %d, %s: fate %d", c->number, slot, level,
			committed ? "committed" : "rolled back", (int) fate);
	switch (fate)
	{
		case QUEUE_CLAIM_STAYS:
			if (ends)
				sim_wrong(s, "Q1: a claim that was rolled back keeps a job from all others");
			break;
		case QUEUE_CLAIM_ENDS:
			end_claim(s, c, slot);
			break;
		case QUEUE_CLAIM_VOID:
			task->has_claim = false;
			break;
		case QUEUE_CLAIM_PASSES:
			pass_on(s, c, slot);
			break;
	}
	if (ends)
		task->has_claim = false;
}

static void
roll_back(sim *s, sim_cluster *c, int slot)
{
	while (task_of(c, slot)->level > 0)
		end_level(s, c, slot, false);
}

/* The task is over; a job that an earlier transaction has claimed stays. */
static void
end_task(sim *s, sim_cluster *c, int slot)
{
	sim_task   *task = task_of(c, slot);

	task->calling = false;
	task->state = TASK_NONE;
	while (task->level > 0)
		end_level(s, c, slot, true);
	shared_write(&c->queues->slots[slot].wish, 0);
}

/* An error: the transaction is rolled back. */
static void
fail(sim *s, sim_cluster *c, int slot)
{
	sim_task   *task = task_of(c, slot);

	roll_back(s, c, slot);
	end_task(s, c, slot);
	if (hold_of(c, slot) != NULL)
		task->state = TASK_WORK;
	else
		task->has_claim = false;
}

void
sim_queue_cancelled(sim *s, sim_cluster *c, int slot)
{
	if (c->queues != NULL && task_of(c, slot)->state != TASK_NONE)
		fail(s, c, slot);
}

/* The session ends: its transaction is rolled back, its holds end by the worker. */
void
sim_queue_session_ends(sim *s, sim_cluster *c, int slot)
{
	sim_task   *task;

	if (c->queues == NULL)
		return;
	task = task_of(c, slot);
	while (task->level > 0 && task->has_claim)
		(void) queue_claim_end(&task->claim, task->level--, false, true);
	*task = (sim_task) {.state = TASK_NONE};
	shared_write(&c->queues->slots[slot].wish, 0);
	(void) s;
}

/* ---- what the task does next ---- */

static void
look(sim *s, sim_cluster *c, int slot, sim_task_state state)
{
	call(s, c, slot, state, QUEUE_READ_HEAD);
}

static uint32_t
taken(const queue_row *head)
{
	return head->riders * queue_ride_size(0, 1);
}

/* in_use: by the jobs that ride on the head.  Half of the jobs are large. */
static void
push(sim *s, sim_cluster *c, int slot, int64_t seq, uint32_t in_use)
{
	sim_task   *task = task_of(c, slot);

	task->request.rides = sim_chance(s, 50) && queue_may_ride(in_use, queue_ride_size(0, 1));
	task->request.jobs = seq + 2 <= SIM_JOBS && sim_chance(s, 30) ? 2 : 1;
	task->request.seq = seq;
	if (seq + task->request.jobs > SIM_JOBS)
		end_task(s, c, slot);
	else
		call(s, c, slot, TASK_PUSH, QUEUE_PUSH);
}

/* head: NULL if there is none, or it is to be looked at. */
static void
push_after(sim *s, sim_cluster *c, int slot, const queue_row *head)
{
	sim_task   *task = task_of(c, slot);

	task->request.first = head == NULL || head->seq == 0;
	if (!task->request.first)
		push(s, c, slot, head->seq, taken(head));
	else if (c->queues->floor < 0)
		call(s, c, slot, TASK_PUSH_FLOOR, QUEUE_READ_FLOOR);
	else
		push(s, c, slot, c->queues->floor, 0);
}

/* The head's last number, as this cluster remembers it. */
static void
guess(sim *s, sim_cluster *c, int slot)
{
	sim_task   *task = task_of(c, slot);
	char		name[QUEUE_RESOURCE_MAX + 1];
	int64_t		seq;
	uint32_t	in_use;

	sim_resource_name(task->resource, name);
	task->request.now_ms = sim_now_ms(s, c);
	if (queue_memory_guess(c->queues->memory, SIM_QUEUE_NAME, name, &seq, &in_use))
		push(s, c, slot, seq, in_use);
	else
		look(s, c, slot, TASK_PUSH_LOOK);
}

/* Q1: what is confirmed is there.  Q4: its number is above those that were confirmed before. */
static void
confirm(sim *s, sim_cluster *c, int slot)
{
	sim_task   *task = task_of(c, slot);
	sim_resource *r = &s->resources[task->resource];
	int64_t		number = task->request.seq;

	for (int i = 0; i < task->request.jobs; i++)
	{
		if (++number > r->seq || strcmp(r->jobs[number].uuid, task->request.uuid) != 0)
			sim_wrong(s, "Q1: the push of job %" PRId64 " of r%d is confirmed, and another's job is "
					  "there", number, task->resource);
		if (number <= task->before)
			sim_wrong(s, "Q4: job %" PRId64 " of r%d was pushed after %" PRId64, number,
					  task->resource, task->before);
		s->totals->jobs_pushed++;
	}
	if (r->confirmed < number)
		r->confirmed = number;
	remember(c, task->resource, number, 0);
	sim_tell_jobs(s, c, task->resource, QUEUE_ATTEMPTS_UNKNOWN);
	end_task(s, c, slot);
}

/* The note comes first: if anything fails from here on, the lock is let go. */
static void
try_lock(sim *s, sim_cluster *c, int slot)
{
	sim_task   *task = task_of(c, slot);
	lockmgr_request request = sim_make_request(s, c, slot, LOCKMGR_TRY, task->resource);

	task->has_claim = true;
	task->claim = queue_claim_begin(task->level);
	task->made_level = task->level;
	task->state = TASK_TRY;
	request.ask.mode = MODE_EXCLUSIVE;
	request.ask.permits = 1;
	request.ask.at_least_ms = request.ask.at_most_us = 0;
	sim_post_request(s, c, slot, request, task->resource);
}

static void
claim(sim *s, sim_cluster *c, int slot, int64_t token)
{
	sim_task   *task = task_of(c, slot);

	task->claim.token = token;
	task->request.token = token;
	task->request.all = task->cancels;
	task->request.attempts = sim_between(s, 0, 1);	/* it may be wrong */
	task->request.delay_ms = sim_between(s, 300, 5000);
	call(s, c, slot, TASK_CLAIM, QUEUE_CLAIM);
}

static void
finish(sim *s, sim_cluster *c, int slot, queue_kind kind)
{
	sim_task   *task = task_of(c, slot);

	task->request.last = task->finish.last;
	if (kind != QUEUE_BURY)
		kind = queue_finish_kind(&task->finish);
	call(s, c, slot, TASK_FINISH, kind);
}

static void job_read(sim *s, sim_cluster *c, int slot, bool found);

/* The head after the claim: whose turn is it? */
static void
claimed(sim *s, sim_cluster *c, int slot)
{
	sim_task   *task = task_of(c, slot);

	if (task->cancels && task->head.done + 1 != task->request.number)
	{
		end_claim(s, c, slot);
		end_task(s, c, slot);
		return;
	}
	queue_claim_take(&task->claim, &task->head, task->request.delay_ms, sim_local(s, c));
	task->request.number = task->claim.number;
	task->finish = (queue_finish) {
		.number = task->claim.number,.token = task->claim.token,.last = task->claim.last,
	};
	remember(c, task->resource, task->head.seq, 0);
	task->claim.rides = task->request.rides = sim_rides(task->reply, task->claim.number);
	if (task->claim.rides)
		job_read(s, c, slot, true);
	else
		call(s, c, slot, TASK_READ, QUEUE_READ_JOB);
}

/* Q3: nobody else works on the resource.  Q4: it is the next job's turn. */
static void
hand_out(sim *s, sim_cluster *c, int slot)
{
	sim_task   *task = task_of(c, slot);
	const sim_resource *r = &s->resources[task->resource];
	const sim_hold *hold = hold_of(c, slot);

	if (hold == NULL || !sim_holds(s, c, hold))
	{
		fail(s, c, slot);
		return;
	}
	if (task->claim.number != r->done + 1 && !r->jobs[task->claim.number].gone)
		sim_wrong(s, "Q4: job %" PRId64 " of r%d is handed out, and %" PRId64 " is the next",
				  task->claim.number, task->resource, r->done + 1);
	for (int i = 0; i < s->plan.clusters * s->plan.sessions; i++)
	{
		sim_cluster *other = &s->cluster[i / s->plan.sessions];
		int			at = i % s->plan.sessions;
		const sim_hold *beside = hold_of(other, at);

		if (beside != NULL && beside != hold && beside->lock == hold->lock &&
			task_of(other, at)->state == TASK_WORK && sim_holds(s, other, beside))
			sim_wrong(s, "Q3: two sessions work on r%d", task->resource);
	}
	s->totals->jobs_claimed++;
	task->state = TASK_WORK;
}

static void
job_read(sim *s, sim_cluster *c, int slot, bool found)
{
	sim_task   *task = task_of(c, slot);

	if (!found)
		call(s, c, slot, TASK_CHECK_GONE, QUEUE_CHECK_GONE);
	else if (task->cancels)
	{
		s->resources[task->resource].jobs[task->claim.number].gone = true;
		finish(s, c, slot, QUEUE_COMPLETE);
	}
	else if (task->head.attempts > SIM_ATTEMPTS)
	{
		task->request.now_ms = task->head.due - task->request.delay_ms;
		task->request.attempts = task->head.attempts - 1;
		snprintf(task->request.id, sizeof(task->request.id), "%019" PRId64 "#%s",
				 task->request.number, task->request.resource);
		finish(s, c, slot, QUEUE_BURY);
		task->request.now_ms = 0;
	}
	else
		hand_out(s, c, slot);
}

static void
finish_replied(sim *s, sim_cluster *c, int slot, dynamo_status status, const queue_row *head)
{
	sim_task   *task = task_of(c, slot);
	queue_outcome outcome = queue_finish_reply(&task->finish, status, head);

	if (outcome == QUEUE_AGAIN)
		finish(s, c, slot, task->request.kind);
	else if (outcome == QUEUE_FINISHED && task->request.kind != QUEUE_BURY && !task->claim.rides)
		call(s, c, slot, TASK_DELETE, QUEUE_DELETE_JOB);
	else
	{
		end_claim(s, c, slot);
		end_task(s, c, slot);
	}
}

static void
cancel(sim *s, sim_cluster *c, int slot, const queue_row *head)
{
	sim_task   *task = task_of(c, slot);

	if (head == NULL || head->done == head->seq)
	{
		end_task(s, c, slot);
		return;
	}
	task->request.number = sim_between(s, head->done + 1, head->seq);
	if (task->request.number > head->done + 1)
		call(s, c, slot, TASK_CANCEL, sim_rides(task->reply, task->request.number) ?
			 QUEUE_CANCEL_RIDER : QUEUE_CANCEL);
	else
	{
		task->cancels = true;
		try_lock(s, c, slot);
	}
}

/* Of a head that is empty.  First the floor, and another time the head. */
static void
purge(sim *s, sim_cluster *c, int slot, const queue_row *head)
{
	sim_task   *task = task_of(c, slot);

	if (head != NULL && queue_is_spent(head, INT64_MAX) && head->seq > s->queue_floor)
		sim_raise_floor(s, head->seq);
	else if (head != NULL && queue_is_spent(head, INT64_MAX) && sim_floor_counts(s))
	{
		task->request.seq = head->seq;
		call(s, c, slot, TASK_PURGE, QUEUE_DELETE_HEAD);
		return;
	}
	end_task(s, c, slot);
}

static void
drop(sim *s, sim_cluster *c, int slot, const queue_row *head)
{
	if (head == NULL || head->done == head->seq)
	{
		end_task(s, c, slot);
		return;
	}
	task_of(c, slot)->request.seq = head->seq;
	call(s, c, slot, TASK_DROP, QUEUE_DROP);
}

/* I8: a session is told that its job was claimed anew only if it was. */
static void
check_put_back(sim *s, const sim_task *task, bool put_back)
{
	const sim_resource *r = &s->resources[task->resource];

	if (!put_back && r->token == task->claim.token && r->done < task->claim.number)
		sim_wrong(s, "I8: job %" PRId64 " of r%d counts as claimed anew", task->claim.number,
				  task->resource);
}

static void
replied(sim *s, sim_cluster *c, int slot)
{
	sim_task   *task = task_of(c, slot);
	queue_reply reply;
	queue_row	row;
	const queue_row *head = sim_first_row(task->reply, &row) ? &row : NULL;

	memcpy(&reply, task->reply, sizeof(reply));
	switch (task->state)
	{
		case TASK_PUSH_LOOK:
			task->request.now_ms = reply.now_ms;
			push_after(s, c, slot, head);
			break;
		case TASK_PUSH_FLOOR:
			c->queues->floor = head != NULL ? head->seq : 0;
			push_after(s, c, slot, NULL);
			break;
		case TASK_PUSH:
			if (reply.status == DYNAMO_OK)
				confirm(s, c, slot);
			else if (head != NULL && head->seq != task->request.seq)
				push_after(s, c, slot, head);
			else
				look(s, c, slot, TASK_PUSH_LOOK);
			break;
		case TASK_CLAIM:
			if (head != NULL)
				task->head = *head;
			if (queue_is_claimed(reply.status, head, task->claim.token))
				claimed(s, c, slot);
			else
			{
				end_claim(s, c, slot);
				end_task(s, c, slot);
			}
			break;
		case TASK_READ:
			job_read(s, c, slot, head != NULL);
			break;
		case TASK_CHECK_GONE:
			if (reply.status == DYNAMO_OK)
				finish(s, c, slot, QUEUE_COMPLETE);
			else
				call(s, c, slot, TASK_READ, QUEUE_READ_JOB);
			break;
		case TASK_FINISH:
			finish_replied(s, c, slot, reply.status, head);
			break;
		case TASK_FAIL:
			check_put_back(s, task, queue_is_put_back(reply.status, head, task->request.number));
			/* FALLTHROUGH */
		case TASK_DELETE:
			end_claim(s, c, slot);
			end_task(s, c, slot);
			break;
		case TASK_CANCEL_LOOK:
			cancel(s, c, slot, head);
			break;
		case TASK_DROP_LOOK:
			drop(s, c, slot, head);
			break;
		case TASK_PURGE_LOOK:
			purge(s, c, slot, head);
			break;
		case TASK_CANCEL:
		case TASK_DROP:
		case TASK_PURGE:
		default:
			end_task(s, c, slot);
			break;
	}
}

/* The session has an answer; its request is over. */
void
sim_queue_answered(sim *s, sim_cluster *c, int slot)
{
	const lockmgr_request *request = &c->sessions[slot].request;
	sim_task   *task;

	if (c->queues == NULL)
		return;
	task = task_of(c, slot);
	if (request->kind == SIM_QUEUE && task->state != TASK_NONE)
		take_piece(s, c, slot);
	else if (task->state == TASK_TRY)
	{
		const lockmgr_answer *answer = &c->slots[slot].answer;

		if (answer->result == LOCKMGR_GRANTED)
			claim(s, c, slot, answer->grant.token);
		else
		{
			task->has_claim = false;
			end_task(s, c, slot);
		}
	}
}

/* ---- the search ---- */

typedef struct searcher
{
	sim		   *s;
	sim_cluster *c;
	int			slot;
} searcher;

static searcher at_work;

static int64_t
search_clock(void *arg)
{
	(void) arg;
	return sim_local(at_work.s, at_work.c);
}

static bool
search_hints(void *arg)
{
	char		name[QUEUE_RESOURCE_MAX + 1];
	int64_t		attempts;

	(void) arg;
	if (!queue_hint_take(at_work.c->queues->hints, sim_local(at_work.s, at_work.c), SIM_QUEUE_NAME,
						 NULL, NULL, &attempts, name))
		return false;
	task_of(at_work.c, at_work.slot)->resource = atoi(name + 1);
	at_work.s->totals->hints++;
	return true;
}

/* The index, as it is now. */
static bool
search_look(void *arg, int64_t since, bool last, int64_t *again)
{
	sim		   *s = at_work.s;
	char	   *reply;
	queue_reply head;
	size_t		offset;
	int64_t		pick;
	bool		found;

	(void) arg;
	(void) since;
	(void) last;
	(void) again;
	reply = sim_queue_read(s, QUEUE_FIND, 0, sim_now_ms(s, at_work.c));
	memcpy(&head, reply, sizeof(head));
	offset = sizeof(head) + head.next_len;
	found = head.rows > 0;
	pick = found ? sim_between(s, 0, head.rows - 1) : 0;
	for (int64_t i = 0; found && i <= pick; i++)
	{
		queue_row	row;

		memcpy(&row, reply + offset, sizeof(row));
		offset += sizeof(row) + row.queue_len;
		task_of(at_work.c, at_work.slot)->resource = reply[offset + 1] - '0';
		offset += row.resource_len + row.id_len + row.error_len + row.payload_len;
	}
	free(reply);
	return found;
}

/* A session that wants a job does not sleep beside a hint. */
static void
check_sleep(sim *s, const sim_cluster *c, int slot)
{
	const struct sim_queues *q = c->queues;

	for (int i = 0; i < QUEUE_HINTS; i++)
	{
		if (q->hints[i].state.value == QUEUE_HINT_READY && q->slots[slot].wish.value == 1 &&
			(int64_t) q->hints[i].since.value > sim_local(s, c) - 4 * SECOND)
			sim_wrong(s, "hints: session %d of cluster %d sleeps beside one for %s", slot, c->number,
					  q->hints[i].resource);
	}
}

static void
search(sim *s, sim_cluster *c, int slot)
{
	sim_task   *task = task_of(c, slot);
	queue_waited waited;
	sim_race	before;

	if (task->asleep && c->queues->slots[slot].wish.value == 1 && sim_local(s, c) < task->until)
		return;
	at_work = (searcher) {s, c, slot};
	before = sim_begin_race(s, c, slot, SIDE_HINTS);
	waited = queue_wait_turn(&task->wait, sim_random(s), &task->until);
	sim_end_race(before);
	task->asleep = waited == QUEUE_WAIT_SLEEP;
	if (task->asleep)
		check_sleep(s, c, slot);
	else if (waited != QUEUE_WAIT_TURN)
		shared_write(&c->queues->slots[slot].wish, 0);
	if (waited == QUEUE_WAIT_FOUND)
		try_lock(s, c, slot);
	else if (waited == QUEUE_WAIT_OVER)
		end_task(s, c, slot);
}

/* ---- work ---- */

/* Does the work, and completes the job.  False: all places are in use. */
static bool
complete(sim *s, sim_cluster *c, int slot)
{
	sim_task   *task = task_of(c, slot);
	struct sim_queues *q = c->queues;
	char		name[QUEUE_RESOURCE_MAX + 1];
	uint32_t	index = queue_place_reserve(q->finisher.place, q, (uint32_t) slot,
											(uint32_t) q->place_count);

	if (index == QUEUE_NO_PLACE)
		return false;
	sim_resource_name(task->resource, name);
	queue_claim_complete(&task->claim, task->level, &q->places[index].place, SIM_QUEUE_NAME, name);
	task->work_level = task->level;
	sim_say(s, "%d: session %d completes job %" PRId64 " of %s at level %d", c->number, slot,
			task->claim.number, name, task->level);
	return true;
}

/* The guard first; the session may be stopped before it commits. */
static void
commit(sim *s, sim_cluster *c, int slot)
{
	sim_task   *task = task_of(c, slot);
	const sim_hold *hold;

	while (task->level > 1)
		end_level(s, c, slot, true);
	hold = hold_of(c, slot);
	if (!task->guarded)
	{
		task->guarded = hold != NULL && sim_holds(s, c, hold);
		if (!task->guarded)
			fail(s, c, slot);
		return;
	}
	if (task->work_level > 0 && hold != NULL)
		sim_check_worked(s, c, slot, task->resource, task->claim.number, hold);
	end_level(s, c, slot, true);
	if (task->has_claim)
		return;
	task->state = TASK_NONE;
	if (s->phase == PHASE_STORM && sim_chance(s, 15))
		sim_end_session(s, c, slot);
}

static void
use_job(sim *s, sim_cluster *c, int slot)
{
	sim_task   *task = task_of(c, slot);
	bool		calm = s->phase >= PHASE_CALM;
	int64_t		dice = calm ? 70 : sim_between(s, 0, 99);
	const sim_hold *hold = hold_of(c, slot);

	if (hold == NULL || (!sim_holds(s, c, hold) && !task->guarded))
	{
		fail(s, c, slot);
		if (task->has_claim)
			end_claim(s, c, slot);
		task->state = TASK_NONE;
	}
	else if (task->level == 0)
		task->level = 1;
	else if (task->guarded)
		commit(s, c, slot);
	else if (dice < 10 && task->level < 4)
		task->level++;
	else if (dice < 20 && task->level > 1)
		end_level(s, c, slot, true);
	else if (dice < 30 && task->level > 1)
		end_level(s, c, slot, false);
	else if (dice < 34)
		roll_back(s, c, slot);
	else if (dice < 36)
		sim_end_session(s, c, slot);
	else if (dice < 50 && task->claim.finish_level == 0)
	{
		task->claim.stays_until = 0;
		task->request.delay_ms = sim_between(s, 0, 2000);
		call(s, c, slot, TASK_FAIL, QUEUE_FAIL);
	}
	else if (dice < 80 && task->claim.finish_level == 0)
	{
		if (!complete(s, c, slot))
			fail(s, c, slot);
	}
	else if (dice >= 60)
		commit(s, c, slot);
	if (task->state == TASK_WORK && !task->has_claim)
		end_task(s, c, slot);
}

/* A session that has a job, and nothing else to do, completes it. */
void
sim_queue_complete_one(sim *s, sim_cluster *c)
{
	for (int i = 0; i < s->plan.sessions; i++)
	{
		sim_task   *task = task_of(c, i);
		const sim_hold *hold = hold_of(c, i);

		if (task->state != TASK_WORK || hold == NULL || !sim_holds(s, c, hold))
			continue;
		if (task->level == 0)
			task->level = 1;
		if (task->claim.finish_level == 0 && !complete(s, c, i))
			return;
		for (int times = 0; times < 2 && task->state == TASK_WORK; times++)
			commit(s, c, i);
		return;
	}
}

/* ---- begin ---- */

static void
begin(sim *s, sim_cluster *c, int slot, sim_task_state state, int resource)
{
	sim_task   *task = task_of(c, slot);

	*task = (sim_task) {.state = state,.resource = resource,.level = 1};
	task->level += sim_chance(s, 50) ? 0 : (int) sim_between(s, 1, 2);
	task->before = s->resources[resource].confirmed;
	task->request.pushed_at = (int64_t) ++s->event_serial;
	if (state == TASK_PUSH_LOOK && sim_chance(s, 70))
	{
		guess(s, c, slot);
		return;
	}
	if (state != TASK_SEARCH)
	{
		look(s, c, slot, state);
		return;
	}
	task->wait = (queue_wait) {
		.wish = &c->queues->slots[slot].wish,
		.deadline = sim_local(s, c) + sim_between(s, 0, 10 * SECOND),
		.pause = s->plan.poll_interval_us,
		.hints_first = sim_chance(s, 80),
		.clock = search_clock,
		.try_hints = search_hints,
		.look = search_look,
	};
}

/* A session without a lock may begin something with queues.  Returns whether it does. */
bool
sim_queue_begin(sim *s, sim_cluster *c, int slot)
{
	int64_t		dice = sim_between(s, 0, 99);
	int			resource;

	if (c->queues == NULL || dice >= 98)
		return false;
	resource = (int) sim_between(s, 0, s->plan.locks - 1);
	begin(s, c, slot, dice < 25 ? TASK_PUSH_LOOK : dice < 82 ? TASK_SEARCH :
		  dice < 90 ? TASK_PURGE_LOOK : sim_chance(s, 60) ? TASK_CANCEL_LOOK : TASK_DROP_LOOK,
		  resource);
	return true;
}

/* Has the session something to do with a job now? */
bool
sim_queue_is_busy(const sim_cluster *c, int slot)
{
	return c->queues != NULL && task_of(c, slot)->state != TASK_NONE &&
		!task_of(c, slot)->asleep;
}

/* The task's next step, if there is a task.  Returns whether there is. */
bool
sim_queue_step(sim *s, sim_cluster *c, int slot)
{
	sim_task   *task = c->queues != NULL ? task_of(c, slot) : NULL;

	if (task == NULL || task->state == TASK_NONE)
		return false;
	if (s->phase >= PHASE_PROBE)
		fail(s, c, slot);		/* all jobs are worked off: it finds none */
	else if (task->calling)
		post_piece(s, c, slot, 0);
	else if (task->state == TASK_SEARCH)
		search(s, c, slot);
	else if (task->state == TASK_WORK)
		use_job(s, c, slot);
	return true;
}

/* Q1: what was pushed is worked off, now that there are no faults. */
bool
sim_queue_left(const sim *s)
{
	for (int i = 0; s->plan.queue && i < s->plan.locks; i++)
	{
		if (s->resources[i].done < s->resources[i].seq)
			return true;
	}
	return false;
}

void
sim_queue_work_off(sim *s)
{
	for (int i = 0; i < s->plan.clusters; i++)
	{
		sim_cluster *c = &s->cluster[i];

		if (c->sessions[0].me.generation != 0 && !sim_busy(&c->sessions[0]) &&
			task_of(c, 0)->state == TASK_NONE)
			begin(s, c, 0, TASK_SEARCH, 0);
	}
}
