/*-------------------------------------------------------------------------
 *
 * sim_several.c
 *	  Sessions that announce their next requests, to get several locks.
 *
 * They do as src/session/several.c does: announce tries of locks in the order of their
 * names, claim them one after the other, and withdraw the rest when one is busy; then
 * they may wait for that one.  Now and then a session asks for something else instead.
 *
 *-------------------------------------------------------------------------
 */
#include "sim.h"

void
sim_announce(sim *s, sim_cluster *c, int slot)
{
	sim_session *session = &c->sessions[slot];
	sim_announced *announced = &session->announced;
	lockmgr_request request = sim_make_request(s, c, slot, SIM_ANNOUNCE, 0);

	*announced = (sim_announced) {.used = true};
	for (int lock = 0; lock < s->plan.locks && announced->count < SIM_ANNOUNCED; lock++)
	{
		if (s->plan.locks <= SIM_ANNOUNCED || sim_chance(s, 30))
			announced->locks[announced->count++] = lock;
	}
	request.ask.mode = MODE_EXCLUSIVE;
	request.ask.permits = 1;
	request.data = NULL;
	request.attributes = NULL;
	request.ask.deletes_item = false;
	announced->first = c->slots[slot].words.request_seq + 2;
	announced->request = request;
	if (announced->count == 0)
	{
		announced->used = false;
		return;
	}
	mailbox_announce(&c->box, session->me, announced->first + (uint64_t) announced->count - 1);
	sim_post_request(s, c, slot, request, 0);
}

/* Is a claim with this number to come? */
static bool
is_to_come(const sim_cluster *c, const sim_session *session, uint64_t seq)
{
	const sim_announced *announced = &session->announced;

	return announced->used && seq > c->slots[session->me.slot].words.request_seq &&
		seq < announced->first + (uint64_t) announced->count;
}

/* Was the hold granted for a request that its session will post? */
bool
sim_is_announced(const sim_cluster *c, const saved_hold *hold)
{
	const sim_session *session = &c->sessions[hold->session.slot];

	return session->me.generation == hold->session.generation && hold->ends_at == 0 &&
		is_to_come(c, session, hold->seq);
}

static void
withdraw(sim *s, sim_cluster *c, int slot)
{
	sim_session *session = &c->sessions[slot];
	sim_announced *announced = &session->announced;
	sim_race	before = sim_begin_race(s, c, slot, SIDE_SESSION);

	sim_say(s, "%d: session %d withdraws what it has announced", c->number, slot);
	announced->used = false;
	mailbox_withdraw(&c->box, session->me);
	sim_end_race(before);
}

/* Not what it has announced with this number. */
static void
ask_another(sim *s, sim_cluster *c, int slot, int announced)
{
	const sim_session *session = &c->sessions[slot];
	int			lock = (int) sim_between(s, 0, s->plan.locks - 1);
	bool		tries = lock != announced && sim_chance(s, 50);

	for (int i = 0; i < SIM_HOLDS; i++)
		tries &= !session->holds[i].used || session->holds[i].lock != lock;
	sim_post(s, c, slot, tries ? LOCKMGR_TRY : LOCKMGR_LOOK_UP, lock);
}

/* The next step of a session that has announced requests. */
void
sim_claim(sim *s, sim_cluster *c, int slot)
{
	sim_session *session = &c->sessions[slot];
	sim_announced *announced = &session->announced;
	uint64_t	seq = c->slots[slot].words.request_seq + 1;
	bool		refused = announced->refused;
	bool		full = session->holds[0].used && session->holds[1].used;
	int			lock = session->lock;
	lockmgr_request request = announced->request;

	announced->refused = false;
	if (!is_to_come(c, session, seq))
		announced->used = false;
	else if (refused || full || s->phase >= PHASE_DRAIN || sim_chance(s, 8))
		withdraw(s, c, slot);
	else if (sim_chance(s, 5))
		ask_another(s, c, slot, announced->locks[seq - announced->first]);
	else
	{
		lock = announced->locks[seq - announced->first];
		request.kind = LOCKMGR_TRY;
		request.name = s->lock[lock].name;
		request.name_len = s->lock[lock].name_len;
		sim_post_request(s, c, slot, request, lock);
		return;
	}
	if (refused && !full && s->phase < PHASE_DRAIN && sim_chance(s, 60))
		sim_post(s, c, slot, LOCKMGR_ACQUIRE, lock);
}

void
sim_claim_answered(sim *s, sim_session *session, const lockmgr_answer *answer)
{
	sim_announced *announced = &session->announced;

	if (!announced->used || answer->seq < announced->first)
		return;
	announced->refused = answer->result != LOCKMGR_GRANTED;
	s->totals->claimed += answer->result == LOCKMGR_GRANTED;
}

/* The worker has read an announcement. */
void
sim_ask_announced(const sim *s, sim_cluster *c, int64_t now, lockmgr_session session)
{
	const sim_announced *announced = &c->taken_announced;

	for (int i = 0; i < announced->count; i++)
	{
		const sim_lock *lock = &s->lock[announced->locks[i]];
		lockmgr_request request = announced->request;

		request.session = session;
		request.kind = LOCKMGR_TRY;
		request.seq = announced->first + (uint64_t) i;
		request.name = lock->name;
		request.name_len = lock->name_len;
		lockmgr_announce(c->worker.lm, now, &request);
	}
}
