/*-------------------------------------------------------------------------
 *
 * leadership.c
 *	  Leaderships: locks that the cluster itself wants to hold, to lead.
 *
 * The next worker goes on with what it finds in shared memory: it asks a request without an
 * answer again, takes an answer that was not taken, and adopts a lease.  Each step publishes the
 * leadership's new state before it lets go of the hold, so that no transaction joins a leadership
 * that has ended.
 *
 *-------------------------------------------------------------------------
 */
#include "lock/leadership.h"

#include <string.h>

bool
leadership_list_next(const char **at, char name[LEADERSHIP_NAME_MAX + 1], const char **wrong)
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
	else if (end - start > LEADERSHIP_NAME_MAX)
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
leadership_is_listed(const char *list, const char *name)
{
	char		listed[LEADERSHIP_NAME_MAX + 1];
	const char *wrong;

	while (leadership_list_next(&list, listed, &wrong))
	{
		if (strcmp(listed, name) == 0)
			return true;
	}
	return false;
}

const char *
leadership_list_wrong(const char *list)
{
	char		name[LEADERSHIP_NAME_MAX + 1];
	const char *at = list;
	const char *wrong;
	int			count = 0;

	while (leadership_list_next(&at, name, &wrong))
	{
		if (++count > LEADERSHIPS_MAX)
			return "The list has more than 16 names.";
		if (*at != '\0' && leadership_is_listed(at, name))
			return "A name is there twice.";
	}
	return wrong;
}

bool
leadership_read(leadership_entry *entry, leadership *copy)
{
	uint32_t	before = shared_begin_read(&entry->changes);

	*copy = entry->c;
	return shared_end_read(&entry->changes, before);
}

static leadership_entry *
find(leadership_worker *me, const char *name)
{
	for (int i = 0; i < LEADERSHIPS_MAX; i++)
	{
		const leadership *c = &me->entries[i].c;

		if (c->state != LEADERSHIP_NONE && strcmp(c->name, name) == 0)
			return &me->entries[i];
	}
	return NULL;
}

static void
publish(leadership_entry *entry, const leadership *next)
{
	shared_begin_change(&entry->changes);
	entry->c = *next;
	shared_end_change(&entry->changes);
}

/*
 * Begins a leadership.  If all slots are in use, by leaderships that are no longer listed and still
 * give up, leaderships_run() tries again.
 */
static void
add(leadership_worker *me, int64_t now, const char *name)
{
	uint32_t	i = 0;
	leadership	next = {.state = LEADERSHIP_RESTING,.since = now,.stand_at = now};

	while (i < LEADERSHIPS_MAX && me->entries[i].c.state != LEADERSHIP_NONE)
		i++;
	if (i == LEADERSHIPS_MAX)
		return;
	strcpy(next.name, name);
	next.me = mailbox_attach(me->box, me->first_slot + i);
	publish(&me->entries[i], &next);
}

static void
enter(leadership *next, leadership_state state, int64_t now)
{
	next->state = state;
	next->since = now;
}

static void
rest(leadership *next, int64_t now, int64_t rest_us)
{
	enter(next, LEADERSHIP_RESTING, now);
	next->stand_at = now + rest_us;
}

/* Is the lease valid that the leadership was granted? */
static bool
has_lease(const leadership_worker *me, int64_t now, const leadership *c)
{
	return now < mailbox_valid_until(me->box, c->grant.lease_index, c->grant.lease_generation);
}

/* The cluster leads, and gives that up: publishes the new state, then ends the leadership's hold. */
static void
give_up(leadership_worker *me, int64_t now, leadership_entry *entry, int64_t rest_us,
		int64_t wait_us)
{
	leadership	next = entry->c;

	enter(&next, LEADERSHIP_GIVING_UP, now);
	next.rest_us = rest_us;
	next.interrupt_at = wait_us != 0 ? now + wait_us : 0;
	publish(entry, &next);
	mailbox_let_go(me->box, next.me, next.seq, next.grant.hold_index);
}

static void
step(leadership_worker *me, int64_t now, leadership_entry *entry, bool listed)
{
	leadership	next = entry->c;

	switch (next.state)
	{
		case LEADERSHIP_NONE:
			break;
		case LEADERSHIP_RESTING:
			if (!listed)
			{
				mailbox_detach(me->box, next.me);
				enter(&next, LEADERSHIP_NONE, now);
			}
			else if (now >= next.stand_at)
			{
				enter(&next, LEADERSHIP_STANDING, now);
				next.seq = mailbox_begin_post(me->box, next.me);
				me->post(me->arg, &next);
				mailbox_end_post(me->box, next.me);
			}
			publish(entry, &next);
			break;
		case LEADERSHIP_STANDING:
			if (!listed)
			{
				mailbox_cancel(me->box, next.me, next.seq);
				rest(&next, now, 0);
			}
			else if (mailbox_accept(me->box, next.me, next.seq))
			{
				if (me->take(me->arg, &next))
					enter(&next, LEADERSHIP_LEADING, now);
				else
					rest(&next, now, me->retry_us);
			}
			publish(entry, &next);
			break;
		case LEADERSHIP_LEADING:
			if (!has_lease(me, now, &next))
			{
				rest(&next, now, 0);
				publish(entry, &next);
				mailbox_let_go(me->box, next.me, next.seq, next.grant.hold_index);
			}
			else if (!listed)
				give_up(me, now, entry, 0, 0);
			break;
		case LEADERSHIP_GIVING_UP:
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
leaderships_run(leadership_worker *me, int64_t now, const char *list)
{
	char		name[LEADERSHIP_NAME_MAX + 1];
	const char *at = list;
	const char *wrong;
	int64_t		wake = INT64_MAX;

	while (leadership_list_next(&at, name, &wrong))
	{
		if (find(me, name) == NULL)
			add(me, now, name);
	}
	for (int i = 0; i < LEADERSHIPS_MAX; i++)
	{
		leadership_entry *entry = &me->entries[i];
		const leadership *c = &entry->c;
		leadership_state before;

		do
		{
			before = c->state;
			step(me, now, entry, leadership_is_listed(list, c->name));
		}
		while (c->state != before);
		if (c->state == LEADERSHIP_RESTING && c->stand_at < wake)
			wake = c->stand_at;
		if (c->state == LEADERSHIP_GIVING_UP && c->interrupt_at != 0 && c->interrupt_at < wake)
			wake = c->interrupt_at;
	}
	return wake;
}

bool
leadership_resign(leadership_worker *me, int64_t now, const char *name, int64_t rest_us,
				int64_t wait_us)
{
	leadership_entry *entry = find(me, name);
	leadership	next;

	if (entry == NULL)
		return false;
	next = entry->c;
	if (next.state == LEADERSHIP_LEADING && has_lease(me, now, &next))
	{
		give_up(me, now, entry, rest_us, wait_us);
		return true;
	}
	if (next.state == LEADERSHIP_GIVING_UP)
	{
		next.rest_us = rest_us;
		next.interrupt_at = wait_us != 0 ? now + wait_us : 0;
	}
	else
	{
		if (next.state == LEADERSHIP_STANDING)
			mailbox_cancel(me->box, next.me, next.seq);
		else if (next.state == LEADERSHIP_LEADING)
			mailbox_let_go(me->box, next.me, next.seq, next.grant.hold_index);
		rest(&next, now, rest_us);
	}
	publish(entry, &next);
	return false;
}
