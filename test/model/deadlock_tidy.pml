/*-------------------------------------------------------------------------
 *
 * deadlock_tidy.pml
 *	  Keeps the states of deadlock.pml few, where session 0 alone looks: makes those
 *	  equal that differ only in what can never matter again, or in how waits are numbered.
 *
 * No part of the rule.  It is called at the end of each step.  With FOREVER, the number of
 * waits that are remembered is bounded, not the number of waits; and time is told from the
 * moment at which the circle was seen: 0 until M, then 1.  All that was composed before M
 * is equally old.  In a trace it shows as waits that change their numbers.
 *
 *-------------------------------------------------------------------------
 */

c_code {
/* All places that refer to a wait. */
#define EACH_WAIT(do_it) \
	do_it(now.wait[1]); \
	do_it(now.wait[2]); \
	do_it(now.v[1].edge); \
	do_it(now.v[2].edge); \
	do_it(now.k[1].edge); \
	do_it(now.k[2].edge); \
	do_it(now.k[1].way); \
	do_it(now.k[2].way); \
	do_it(now.c[0].first); \
	do_it(now.c[0].second)

static void
tidy_lock(int l)
{
	/* What shows no more than what was read, or than what the item shows. */
	if (now.k[l].edge == now.v[l].edge && now.k[l].at <= now.v[l].at)
		now.k[l].edge = now.k[l].at = 0;
	if ((now.k[l].way == now.v[l].edge && now.k[l].way_at <= now.v[l].at) ||
		(now.k[l].way == now.k[l].edge && now.k[l].way_at <= now.k[l].at))
		now.k[l].way = now.k[l].way_at = now.k[l].loose = 0;
	/* A lost lease matters if it may show something. */
	if (!now.k[l].believed && now.k[l].edge == 0 && !now.k[l].loose)
		now.k[l].owner = 0;
}

static uchar renumbered[IDS + 1];
static uchar taken[SESSIONS];

static void
number(int id)
{
	int s = (id - 1) / WAITS;

	if (id != 0 && renumbered[id] == 0)
		renumbered[id] = s * WAITS + ++taken[s];
}

/* Clears what was noted of waits that nothing refers to, and numbers the others anew. */
static void
tidy_was(void)
{
	int i, j, was = 0;

	for (i = 0; i <= WAITS; i++)
		for (j = 0; j <= WAITS; j++)
		{
			int a = i == 0 ? 0 : renumbered[WAITS + i];
			int b = j == 0 ? 0 : renumbered[2 * WAITS + j];

			if ((now.was & (1 << (i + j * (WAITS + 1)))) && (i == 0 || a != 0) && (j == 0 || b != 0))
				was |= 1 << ((i == 0 ? 0 : a - WAITS) +
							 (j == 0 ? 0 : b - 2 * WAITS) * (WAITS + 1));
		}
#ifndef ANY_CIRCLE
	now.was = was;
#else
	now.was = now.was != 0;
#endif
}

static void
tidy_waits(void)
{
	uchar old[IDS + 1];
	int i;

	memset(renumbered, 0, sizeof(renumbered));
	memset(taken, 0, sizeof(taken));
	EACH_WAIT(number);
#ifndef FOREVER
	for (i = 1; i <= IDS; i++)
	{
		if (i > WAITS && renumbered[i] == 0)
			now.waits_for[i] = 0;
		else
			renumbered[i] = i;
	}
	tidy_was();
#else
	tidy_was();
	memcpy(old, now.waits_for, sizeof(old));
	memset(now.waits_for + WAITS + 1, 0, 2 * WAITS);
	for (i = 1; i <= IDS; i++)
		if (renumbered[i] != 0)
			now.waits_for[renumbered[i]] = old[i];
#define RENUMBER(id) id = renumbered[id]
	EACH_WAIT(RENUMBER);
	for (i = 1; i < SESSIONS; i++)
		now.begun[i] = taken[i];
	now.begun[0] = now.wait[0] != 0;
#endif
}

/* What was composed until now was composed before M. */
static void
tidy_time(void)
{
#ifdef FOREVER
	int l;

	if (now.c[0].first != 0 && !now.seen_now)
		return;
	now.seen_now = 0;
	now.now = 0;
	now.c[0].m = now.c[0].first != 0;
	for (l = 1; l < LOCKS; l++)
		now.k[l].at = now.k[l].way_at = now.v[l].at = 0;
#endif
}

/* Its one wait is over. */
static void
tidy_end(void)
{
	now.now = END;
	now.wait[1] = now.wait[2] = 0;
	now.begun[1] = now.begun[2] = WAITS;
	memset(now.k, 0, sizeof(now.k));
	memset(now.v, 0, sizeof(now.v));
	memset(now.waits_for, 0, sizeof(now.waits_for));
	memset(now.since, 0, sizeof(now.since));
}

static void
tidy_all(void)
{
#ifndef FOREVER
	if (now.begun[0] > 0 && now.wait[0] == 0)
		tidy_end();
#endif
	tidy_time();
	tidy_lock(1);
	tidy_lock(2);
	tidy_waits();
}
}

#define tidy()	c_code { tidy_all(); }
