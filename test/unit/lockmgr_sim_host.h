/*-------------------------------------------------------------------------
 *
 * lockmgr_sim_host.h
 *	  The workers of test_lockmgr_random.c: they host the lock manager as the
 *	  background worker does, and check all that it does.
 *
 * A session speaks to its worker through a slot that outlives workers, and
 * rings; the worker then reads the slot.  Leases are saved where they outlive
 * workers, too.
 *
 *-------------------------------------------------------------------------
 */
#ifndef DDBLOCK_TEST_LOCKMGR_SIM_HOST_H
#define DDBLOCK_TEST_LOCKMGR_SIM_HOST_H

#include "lockmgr_sim.h"

static inline int
sim_lock_number(const char *name, size_t len)
{
	for (int i = 0; i < SIM_LOCKS; i++)
	{
		if (strlen(sim_lock_names[i]) == len &&
			memcmp(sim_lock_names[i], name, len) == 0)
			return i;
	}
	abort();
}

/* Does a session of the cluster believe in this lease, by its own clock? */
static inline bool
sim_believes(const sim *s, const sim_cluster *c, uint32_t index)
{
	return c->saved[index].state == LEASE_HELD &&
		sim_local(s, c) < c->saved[index].valid_until;
}

/* I1: nobody else believes in the lock at this moment. */
static inline void
sim_check_alone(sim *s, int cluster, uint32_t index)
{
	int			lock = s->cluster[cluster].saved_lock[index];

	for (int c = 0; c < s->clusters; c++)
	{
		for (uint32_t i = 0; i < s->max_leases; i++)
		{
			if ((c != cluster || i != index) &&
				s->cluster[c].saved_lock[i] == lock &&
				sim_believes(s, &s->cluster[c], i))
				sim_wrong(s, "two holders of %s: clusters %d and %d",
						  sim_lock_names[lock], cluster, c);
		}
	}
}

/* No write takes away what somebody believes in: only renewals change that. */
static inline void
sim_check_overwrite(sim *s, const sim_call *call, const dynamo_write *write)
{
	int			lock = sim_lock_number(write->name, write->name_len);

	for (int c = 0; c < s->clusters; c++)
	{
		for (uint32_t i = 0; i < s->max_leases; i++)
		{
			const sim_cluster *other = &s->cluster[c];

			if (other->saved_lock[i] != lock || !sim_believes(s, other, i))
				continue;
			if (c != call->cluster || write->op != DYNAMO_RENEW ||
				strcmp(other->saved[i].pending.version, write->version) != 0)
				sim_wrong(s, "%s by cluster %d while cluster %d believes in %s",
						  dynamo_op_name(write->op), call->cluster, c,
						  sim_lock_names[lock]);
		}
	}
}

/* I2: tokens rise in grant order. */
static inline void
sim_check_grant(sim *s, int cluster, uint32_t index, const lease *lease)
{
	int			lock = s->cluster[cluster].saved_lock[index];

	s->grants++;
	if (lease->token <= s->last_token[lock])
		sim_wrong(s, "token %" PRId64 " of %s after %" PRId64, lease->token,
				  sim_lock_names[lock], s->last_token[lock]);
	s->last_token[lock] = lease->token;
}

typedef struct sim_host_arg
{
	sim		   *s;
	int			cluster;
} sim_host_arg;

static sim_host_arg sim_host_args[SIM_CLUSTERS];

/* What is sent must have been saved before, or another worker could not repeat it. */
static void
sim_host_send(void *arg, const lockmgr_call *call)
{
	sim_host_arg *a = arg;
	sim		   *s = a->s;
	sim_cluster *c = &s->cluster[a->cluster];
	lockmgr_counts counts;

	lockmgr_count(c->lm, &counts);
	if (counts.calls > 2 * s->max_calls)
		sim_wrong(s, "%u calls in flight", counts.calls);
	for (int w = 0; w < call->count; w++)
	{
		const dynamo_write *write = &call->writes[w];
		bool		saved = write->op == DYNAMO_READ;

		for (uint32_t i = 0; i < s->max_leases; i++)
			saved |= c->saved[i].state != LEASE_FREE &&
				strcmp(c->saved[i].pending.version, write->version) == 0 &&
				c->saved_lock[i] == sim_lock_number(write->name, write->name_len);
		for (uint32_t i = 0; i < s->max_leases; i++)
		{
			if (write->op == DYNAMO_RELEASE && c->saved[i].state == LEASE_LOST &&
				strcmp(c->saved[i].pending.version, write->version) == 0 &&
				sim_local(s, c) < c->lost_until[i] &&
				sim_local(s, c) < c->saved[i].lease_end)
				sim_wrong(s, "released before the session knew that it was lost");
		}
		if (!saved)
			sim_wrong(s, "cluster %d: %s sent without being saved", a->cluster,
					  dynamo_op_name(write->op));
		if (write->lease_ms <= 0 && write->op != DYNAMO_READ && write->op != DYNAMO_RELEASE)
			sim_wrong(s, "%s without a lease", dynamo_op_name(write->op));
	}
	sim_send(s, a->cluster, call);
}

static void
sim_host_save(void *arg, uint32_t index, const lease *lease, const char *name,
			  size_t name_len)
{
	sim_host_arg *a = arg;
	sim		   *s = a->s;
	sim_cluster *c = &s->cluster[a->cluster];
	struct lease *saved = &c->saved[index];
	bool		granted = lease->state == LEASE_HELD && saved->state != LEASE_HELD;

	if (name != NULL)
		c->saved_lock[index] = sim_lock_number(name, name_len);
	if (saved->seq != lease->seq || saved->session.slot != lease->session.slot ||
		saved->session.generation != lease->session.generation)
		c->let_go[index] = false;
	*saved = *lease;
	if (granted)
		sim_check_grant(s, a->cluster, index, lease);
	if (sim_believes(s, c, index))
		sim_check_alone(s, a->cluster, index);
	if (lease->state != LEASE_HELD && lease->valid_until != 0)
		sim_wrong(s, "belief in a lease of state %d", (int) lease->state);
	if (lease->state == LEASE_HELD && lease->pending.version[0] != '\0' &&
		lease->valid_until > lease->pending.first_sent +
		lease->pending.lease_ms * 1000 - lease->pending.margin_us)
		sim_wrong(s, "a shortened lease is believed to be long");
	sim_say(s, "%d: lease %u state %d version %.8s pending %d %.8s", a->cluster,
			index, (int) lease->state, lease->version, (int) lease->pending.op,
			lease->pending.version);
}

/* I8: released means that DynamoDB has nothing of it. */
static inline void
sim_check_released(sim *s, const sim_cluster *c, const sim_session *session)
{
	for (int i = 0; i < SIM_HOLDS; i++)
	{
		const sim_hold *hold = &session->holds[i];
		const double_item *found;

		if (!hold->used || hold->lease != session->request.lease_index)
			continue;
		found = double_item_of(&s->table, sim_lock_names[hold->lock]);
		if (double_is_held(found) && strcmp(found->item.owner, c->owner) == 0 &&
			found->item.token == hold->token)
			sim_wrong(s, "told released, but the item says held");
	}
}

static void
sim_host_answer(void *arg, const lockmgr_answer *answer)
{
	sim_host_arg *a = arg;
	sim		   *s = a->s;
	sim_cluster *c = &s->cluster[a->cluster];
	sim_notes  *notes = &c->notes[answer->session.slot];
	sim_session *session = &c->sessions[answer->session.slot];

	sim_say(s, "%d: answers session %u request %" PRIu64 " kind %d result %d",
			a->cluster, answer->session.slot, answer->seq, (int) answer->kind,
			(int) answer->result);
	if (notes->owed_seq != answer->seq)
		sim_wrong(s, "an answer that nobody is owed");
	notes->owed_seq = 0;
	if (!session->waiting || session->request.seq != answer->seq ||
		session->generation != answer->session.generation)
	{
		/* It has moved on.  If it cancels once more, this is all we see. */
		if (answer->result == LOCKMGR_GRANTED &&
			session->generation == answer->session.generation)
			session->let_go = c->let_go[answer->lease_index] = true;
		return;
	}
	if (answer->kind != session->request.kind)
		sim_wrong(s, "an answer to another question");
	if (answer->result == LOCKMGR_GRANTED && !c->adopting &&
		sim_local(s, c) >= answer->valid_until)
		sim_wrong(s, "granted, but already over");
	if (answer->result == LOCKMGR_RELEASED)
		sim_check_released(s, c, session);
	if (answer->result == LOCKMGR_FAILED &&
		(answer->status == DYNAMO_OK || answer->status == DYNAMO_ACCESS_DENIED ||
		 s->phase >= SIM_DRAIN))
		sim_wrong(s, "failed without a fault, status %d", (int) answer->status);
	session->answer = *answer;
}

static void
sim_host_waits(void *arg, lockmgr_session session, uint64_t seq, uint32_t watch)
{
	sim_host_arg *a = arg;

	(void) session;
	(void) seq;
	if (watch >= (uint32_t) a->s->sessions)
		sim_wrong(a->s, "no watch to wait under");
}

static void
sim_host_watch(void *arg, uint32_t watch, const lockmgr_watch *what)
{
	sim_host_arg *a = arg;

	(void) what;
	if (watch >= (uint32_t) a->s->sessions)
		sim_wrong(a->s, "no such watch");
}

static void
sim_host_lost(void *arg, uint32_t index, const lease *lease, const char *name,
			  size_t name_len, const dynamo_item *by)
{
	sim_host_arg *a = arg;
	sim_cluster *c = &a->s->cluster[a->cluster];

	(void) name;
	(void) name_len;
	(void) by;
	a->s->losses++;
	c->lost_until[index] = lease->lease_end;
	if (c->saved[index].state != LEASE_LOST || lease->loss == LOSS_NONE)
		sim_wrong(a->s, "lost, but not saved as lost");
	sim_say(a->s, "%d: lease %u lost, reason %d", a->cluster, index, (int) lease->loss);
}

static void
sim_host_no_batches(void *arg, const dynamo_reply *reply)
{
	sim_host_arg *a = arg;

	(void) reply;
	if (!a->s->cluster[a->cluster].refuses_batches)
		sim_wrong(a->s, "batches given up without need");
}

static void
sim_host_random(void *arg, void *bytes, size_t len)
{
	sim_host_arg *a = arg;
	uint8_t    *to = bytes;

	while (len-- > 0)
		*to++ = (uint8_t) (sim_random(a->s) >> 17);
}

/* Releases what the session marked. */
static inline void
sim_read_let_go(sim *s, sim_cluster *c, lockmgr_session id)
{
	int64_t		now = sim_local(s, c);
	uint32_t	next;

	if (!c->sessions[id.slot].let_go)
		return;
	c->sessions[id.slot].let_go = false;
	for (uint32_t i = lockmgr_next_lease(c->lm, id.slot, LOCKMGR_NO_LEASE);
		 i != LOCKMGR_NO_LEASE; i = next)
	{
		next = lockmgr_next_lease(c->lm, id.slot, i);
		if (c->let_go[i])
		{
			c->let_go[i] = false;
			lockmgr_let_go(c->lm, now, id, i);
		}
	}
}

/* A worker reads a session's slot, in the order in which its news count. */
static inline void
sim_read_slot(sim *s, sim_cluster *c, int slot)
{
	sim_session *session = &c->sessions[slot];
	sim_notes  *notes = &c->notes[slot];
	lockmgr_session id = {.slot = (uint32_t) slot,.generation = session->generation};
	int64_t		now = sim_local(s, c);
	bool		asked = session->waiting &&
		session->request.seq > notes->taken_seq &&
		session->answer.seq != session->request.seq;

	if (session->waiting && session->request.seq > notes->taken_seq)
		notes->taken_seq = session->request.seq;
	if (id.generation != notes->generation)
	{
		lockmgr_session ended = id;

		ended.generation -= id.generation % 2;
		notes->generation = id.generation;
		notes->owed_seq = 0;
		lockmgr_session_end(c->lm, now, ended);
	}
	if (id.generation % 2 == 0)
		return;
	if (session->cancelled_seq > notes->cancelled_seq)
	{
		notes->cancelled_seq = session->cancelled_seq;
		if (notes->owed_seq <= session->cancelled_seq)
			notes->owed_seq = 0;
		lockmgr_cancel(c->lm, now, id, session->cancelled_seq);
	}
	sim_read_let_go(s, c, id);
	if (asked && session->request.seq > session->cancelled_seq)
	{
		notes->owed_seq = session->request.seq;
		lockmgr_ask(c->lm, now, &session->request);
	}
}

static inline void
sim_start_worker(sim *s, int cluster)
{
	sim_cluster *c = &s->cluster[cluster];
	lockmgr_config config = {
		.owner = c->owner,
		.max_leases = s->max_leases,
		.max_sessions = (uint32_t) s->sessions,
		.max_remembered = 2,
		.max_calls = s->max_calls,
		.request_timeout_us = SECOND,
		.retry_timeout_us = 5 * SECOND,
	};
	lockmgr_host host = {
		.arg = &sim_host_args[cluster],
		.send = sim_host_send,
		.save = sim_host_save,
		.answer = sim_host_answer,
		.waits = sim_host_waits,
		.watch = sim_host_watch,
		.lost = sim_host_lost,
		.no_batches = sim_host_no_batches,
		.random = sim_host_random,
	};

	sim_host_args[cluster] = (sim_host_arg) {s, cluster};
	sim_say(s, "%d: a worker starts", cluster);
	s->starts++;
	c->life++;
	memset(c->notes, 0, sizeof(c->notes));
	c->lm = lockmgr_new(&config, &host);
	if (c->lm == NULL)
		abort();
	lockmgr_set_clock(c->lm, c->epoch_offset);
	c->adopting = true;
	for (uint32_t i = 0; i < s->max_leases; i++)
	{
		if (c->saved[i].state != LEASE_FREE)
			lockmgr_adopt(c->lm, i, &c->saved[i], sim_lock_names[c->saved_lock[i]],
						  strlen(sim_lock_names[c->saved_lock[i]]));
	}
	for (int i = 0; i < s->sessions; i++)
		sim_read_slot(s, c, i);
	lockmgr_adopted(c->lm, sim_local(s, c));
	c->adopting = false;
}

static inline void
sim_kill_worker(sim *s, int cluster)
{
	sim_say(s, "%d: the worker dies", cluster);
	lockmgr_free(s->cluster[cluster].lm);
	s->cluster[cluster].lm = NULL;
}

/*
 * I5: what stands in the item in our name is known to be ours, unless it
 * arrived there after we had given up on it or a twin of it, or is dead anyway.
 */
static inline void
sim_check_known(sim *s, const sim_cluster *c, int lock)
{
	const dynamo_item *item = &double_item_of(&s->table, sim_lock_names[lock])->item;

	if (!item->exists || item->released || strcmp(item->owner, c->owner) != 0 ||
		s->written_late[lock] || s->now >= s->lease_end[lock])
		return;
	for (uint32_t i = 0; i < s->max_leases; i++)
	{
		const lease *l = &c->saved[i];

		if (l->state != LEASE_FREE && c->saved_lock[i] == lock &&
			(strcmp(l->version, item->version) == 0 ||
			 strcmp(l->pending.version, item->version) == 0 ||
			 strcmp(l->pending.expected, item->version) == 0 ||
			 strcmp(l->stray, item->version) == 0))
			return;
	}
	sim_wrong(s, "%s is held by nobody, version %s", sim_lock_names[lock], item->version);
}

/* A copy of the call reaches DynamoDB; the first one's outcome is the reply. */
static inline void
sim_apply(sim *s, sim_call *call)
{
	for (int i = 0; i < call->count; i++)
	{
		const dynamo_write *write = &call->writes[i].write;
		dynamo_result result;

		double_apply(&s->table, write, &result);
		sim_say(s, "%d: DynamoDB gets #%" PRIu64 " %s %s %.8s: status %d", call->cluster,
				call->id, dynamo_op_name(write->op), write->name, write->version,
				(int) result.status);
		if (write->op != DYNAMO_READ && result.status == DYNAMO_OK)
		{
			int			lock = sim_lock_number(write->name, write->name_len);

			sim_check_overwrite(s, call, write);
			s->lease_end[lock] = call->first_sent[i] + write->lease_ms * 900;
			s->written_late[lock] = call->answered || call->applied ||
				s->cluster[call->cluster].life != call->life;
		}
		if (!call->applied)
			call->results[i] = result;
	}
	call->applied = true;
}

/* The reply, or status in its stead, reaches the worker that waits for it. */
static inline void
sim_reply(sim *s, sim_call *call, dynamo_status status)
{
	sim_cluster *c = &s->cluster[call->cluster];
	dynamo_reply reply = {.count = call->count,.results = call->results};
	dynamo_result failures[DYNAMO_BATCH_MAX] = {{.status = DYNAMO_OK}};

	if (call->answered || c->lm == NULL || c->life != call->life)
		return;
	call->answered = true;
	if (status != DYNAMO_OK)
	{
		reply.status = status;
		reply.results = failures;
		for (int i = 0; i < call->count; i++)
			failures[i].status = status;
	}
	else if (call->op == DYNAMO_RENEW_BATCH && s->phase == SIM_STORM &&
			 sim_chance(s, s->fault_percent))
	{
		/* InternalServerError for one of the statements */
		call->results[sim_between(s, 0, call->count - 1)].status = DYNAMO_UNKNOWN;
	}
	else if (call->op != DYNAMO_RENEW_BATCH)
		reply.status = call->results[0].status;
	sim_say(s, "%d: reply to #%" PRIu64 ": status %d", call->cluster, call->id,
			(int) reply.status);
	lockmgr_reply(c->lm, sim_local(s, c), call->id, &reply);
	for (int i = 0; i < call->count; i++)
		sim_check_known(s, c, sim_lock_number(call->writes[i].name,
											  call->writes[i].write.name_len));
}

#endif							/* DDBLOCK_TEST_LOCKMGR_SIM_HOST_H */
