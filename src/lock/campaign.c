/*-------------------------------------------------------------------------
 *
 * campaign.c
 *	  Campaigns: locks that the cluster itself wants to hold, to lead.
 *
 * The next worker goes on with what it finds in shared memory: it asks a request without an
 * answer again, takes an answer that was not taken, and adopts a lease.  Each step publishes the
 * campaign's new state before it lets go of the hold, so that no transaction joins a leadership
 * that has ended.
 *
 *-------------------------------------------------------------------------
 */
#include "lock/campaign.h"

#include <string.h>

bool
campaign_list_next(const char **at, char name[CAMPAIGN_NAME_MAX + 1], const char **wrong)
{
	const char *start = *at + strspn(*at, " \t");
	const char *end = start + strcspn(start, ",");
	const char *next = *end == ',' ? end + 1 : end;

	*wrong = NULL;
	if (**at == '\0')
		return false;
	while (end > start && (end[-1] == ' ' || end[-1] == '\t'))
		end--;
	if (end == start)
		*wrong = "A name is empty.";
	else if (end - start > CAMPAIGN_NAME_MAX)
		*wrong = "A name is longer than 255 bytes.";
	else if (next[-1] == ',' && next[strspn(next, " \t")] == '\0')
		*wrong = "The list must not end with a comma.";
	if (*wrong != NULL)
		return false;
	memcpy(name, start, (size_t) (end - start));
	name[end - start] = '\0';
	*at = next;
	return true;
}

bool
campaign_is_listed(const char *list, const char *name)
{
	char		listed[CAMPAIGN_NAME_MAX + 1];
	const char *wrong;

	while (campaign_list_next(&list, listed, &wrong))
	{
		if (strcmp(listed, name) == 0)
			return true;
	}
	return false;
}

const char *
campaign_list_wrong(const char *list)
{
	char		name[CAMPAIGN_NAME_MAX + 1];
	const char *at = list;
	const char *wrong;
	int			count = 0;

	while (campaign_list_next(&at, name, &wrong))
	{
		if (++count > CAMPAIGNS_MAX)
			return "The list has more than 16 names.";
		if (*at != '\0' && campaign_is_listed(at, name))
			return "A name is there twice.";
	}
	return wrong;
}

bool
campaign_read(campaign_entry *entry, campaign *copy)
{
	uint32_t	before = shared_begin_read(&entry->changes);

	*copy = entry->c;
	return shared_end_read(&entry->changes, before);
}

static campaign_entry *
find(campaigner *me, const char *name)
{
	for (int i = 0; i < CAMPAIGNS_MAX; i++)
	{
		const campaign *c = &me->entries[i].c;

		if (c->state != CAMPAIGN_NONE && strcmp(c->name, name) == 0)
			return &me->entries[i];
	}
	return NULL;
}

static void
publish(campaign_entry *entry, const campaign *next)
{
	shared_begin_change(&entry->changes);
	entry->c = *next;
	shared_end_change(&entry->changes);
}

/*
 * Begins a campaign.  If all slots are in use, by campaigns that are no longer listed and still
 * give up, campaigns_run() tries again.
 */
static void
add(campaigner *me, int64_t now, const char *name)
{
	uint32_t	i = 0;
	campaign	next = {.state = CAMPAIGN_RESTING,.since = now,.stand_at = now};

	while (i < CAMPAIGNS_MAX && me->entries[i].c.state != CAMPAIGN_NONE)
		i++;
	if (i == CAMPAIGNS_MAX)
		return;
	strcpy(next.name, name);
	next.me = mailbox_attach(me->box, me->first_slot + i);
	publish(&me->entries[i], &next);
}

static void
enter(campaign *next, campaign_state state, int64_t now)
{
	next->state = state;
	next->since = now;
}

static void
rest(campaign *next, int64_t now, int64_t rest_us)
{
	enter(next, CAMPAIGN_RESTING, now);
	next->stand_at = now + rest_us;
}

/* Is the lease valid that the campaign was granted? */
static bool
has_lease(const campaigner *me, int64_t now, const campaign *c)
{
	return now < mailbox_valid_until(me->box, c->grant.lease_index, c->grant.lease_generation);
}

/* The cluster leads, and gives that up: publishes the new state, then ends the campaign's hold. */
static void
give_up(campaigner *me, int64_t now, campaign_entry *entry, int64_t rest_us,
		int64_t wait_us)
{
	campaign	next = entry->c;

	enter(&next, CAMPAIGN_GIVING_UP, now);
	next.rest_us = rest_us;
	next.interrupt_at = wait_us != 0 ? now + wait_us : 0;
	publish(entry, &next);
	mailbox_let_go(me->box, next.me, next.seq, next.grant.hold_index);
}

static void
step(campaigner *me, int64_t now, campaign_entry *entry, bool listed)
{
	campaign	next = entry->c;

	switch (next.state)
	{
		case CAMPAIGN_NONE:
			break;
		case CAMPAIGN_RESTING:
			if (!listed)
			{
				mailbox_detach(me->box, next.me);
				enter(&next, CAMPAIGN_NONE, now);
			}
			else if (now >= next.stand_at)
			{
				enter(&next, CAMPAIGN_STANDING, now);
				next.seq = mailbox_begin_post(me->box, next.me);
				me->post(me->arg, &next);
				mailbox_end_post(me->box, next.me);
			}
			publish(entry, &next);
			break;
		case CAMPAIGN_STANDING:
			if (!listed)
			{
				mailbox_cancel(me->box, next.me, next.seq);
				rest(&next, now, 0);
			}
			else if (mailbox_accept(me->box, next.me, next.seq))
			{
				if (me->take(me->arg, &next))
					enter(&next, CAMPAIGN_LEADING, now);
				else
					rest(&next, now, me->retry_us);
			}
			publish(entry, &next);
			break;
		case CAMPAIGN_LEADING:
			if (!has_lease(me, now, &next))
			{
				rest(&next, now, 0);
				publish(entry, &next);
				mailbox_let_go(me->box, next.me, next.seq, next.grant.hold_index);
			}
			else if (!listed)
				give_up(me, now, entry, 0, 0);
			break;
		case CAMPAIGN_GIVING_UP:
			if (!has_lease(me, now, &next))
				rest(&next, now, next.rest_us);
			else if (next.interrupt_at != 0 && now >= next.interrupt_at)
			{
				next.interrupt_at = 0;
				lockmgr_revoke(me->lm, now, next.grant.lease_index, next.grant.lease_generation,
							   next.grant.token);
			}
			publish(entry, &next);
			break;
	}
}

int64_t
campaigns_run(campaigner *me, int64_t now, const char *list)
{
	char		name[CAMPAIGN_NAME_MAX + 1];
	const char *at = list;
	const char *wrong;
	int64_t		wake = INT64_MAX;

	while (campaign_list_next(&at, name, &wrong))
	{
		if (find(me, name) == NULL)
			add(me, now, name);
	}
	for (int i = 0; i < CAMPAIGNS_MAX; i++)
	{
		campaign_entry *entry = &me->entries[i];
		const campaign *c = &entry->c;
		campaign_state before;

		do
		{
			before = c->state;
			step(me, now, entry, campaign_is_listed(list, c->name));
		}
		while (c->state != before);
		if (c->state == CAMPAIGN_RESTING && c->stand_at < wake)
			wake = c->stand_at;
		if (c->state == CAMPAIGN_GIVING_UP && c->interrupt_at != 0 && c->interrupt_at < wake)
			wake = c->interrupt_at;
	}
	return wake;
}

bool
campaign_resign(campaigner *me, int64_t now, const char *name, int64_t rest_us,
				int64_t wait_us)
{
	campaign_entry *entry = find(me, name);
	campaign	next;

	if (entry == NULL)
		return false;
	next = entry->c;
	if (next.state == CAMPAIGN_LEADING && has_lease(me, now, &next))
	{
		give_up(me, now, entry, rest_us, wait_us);
		return true;
	}
	if (next.state == CAMPAIGN_GIVING_UP)
	{
		next.rest_us = rest_us;
		next.interrupt_at = wait_us != 0 ? now + wait_us : 0;
	}
	else
	{
		if (next.state == CAMPAIGN_STANDING)
			mailbox_cancel(me->box, next.me, next.seq);
		else if (next.state == CAMPAIGN_LEADING)
			mailbox_let_go(me->box, next.me, next.seq, next.grant.hold_index);
		rest(&next, now, rest_us);
	}
	publish(entry, &next);
	return false;
}
