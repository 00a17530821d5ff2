/*-------------------------------------------------------------------------
 *
 * tidy.pml
 *	  Keeps the states few: makes those equal that differ only in what can
 *	  never matter again, or in how nonces and tokens are numbered.
 *
 * No part of the protocol.  It is called at the end of each step.  In a trace
 * it shows as nonces and tokens that change their numbers.
 *
 *-------------------------------------------------------------------------
 */

c_code {
#define TOKENS 32	/* more than there can be */

static int may_stand(int n);

/* Can a copy of the write that is on the way ever be applied? */
static int
may_apply(int n)
{
	if (n == 0 || !now.w[n].loose)
		return 0;
	if (now.w[n].op == ACQUIRE)
#ifdef BLOCK_CONDITIONAL_ON_LAST
		return now.w[n].token > now.item_token || now.purges > 0;
#else
		return now.w[n].first > now.item_token || now.purges > 0;
#endif
#ifdef RELEASE_WITHOUT_VERSION
	if (now.w[n].op == RELEASE)
		return 1;
#endif
	return may_stand(now.w[n].expected);
}

/* Does the version stand in the item, or can it come to? */
static int
may_stand(int n)
{
	return n != 0 && (now.item_version == n || may_apply(n));
}

static int
refers(int c, int n)
{
	return now.k[c].version == n || now.k[c].stray == n || now.k[c].target == n ||
		now.k[c].seen == n || now.k[c].reply_version == n;
}

/* Who wants nothing any more needs to remember nothing. */
static void
tidy_seen(int c)
{
	if (c != BEHIND)			/* its clock is above all tokens anyway */
		now.k[c].top_token = now.k[c].reply_token = 0;
	if (now.todo[2 * c] + now.todo[2 * c + 1] > 0)
		return;
	now.k[c].seen = 0;
	now.k[c].dead_in = 0;
	now.k[c].seen_kept = 0;
	now.k[c].top_token = 0;
	now.k[c].retired = 0;
}

/* Forgets what no longer matters of writes that cannot be applied again. */
static void
tidy_writes(void)
{
	int n;

	for (n = 1; n <= 2 * SLOTS; n++)
	{
		if (now.w[n].op == NOTHING ||
			n == now.k[0].pending || n == now.k[1].pending)
			continue;
		if (may_apply(n))
		{
			if (!may_stand(now.w[n].expected))
				now.w[n].expected = 0;
			continue;
		}
		now.w[n].op = SETTLED;
		now.w[n].expected = 0;
		now.w[n].token = now.w[n].first = 0;
		now.w[n].loose = 0;
		now.w[n].keeps = now.w[n].kept = now.w[n].ends = 0;
	}
}

static int
is_expected(int n)
{
	int m;

	for (m = 1; m <= 2 * SLOTS; m++)
		if (now.w[m].op != NOTHING && now.w[m].expected == n)
			return 1;
	return 0;
}

/* Frees the nonces that nothing refers to. */
static void
tidy_slots(void)
{
	int n;

	for (n = 1; n <= 2 * SLOTS; n++)
	{
		if (now.w[n].op != SETTLED || now.item_version == n ||
			now.past_version == n || refers(0, n) || refers(1, n) || is_expected(n))
			continue;
		now.w[n].op = NOTHING;
		now.w[n].owner = now.w[n].lease = 0;
		now.k[0].retired &= ~(1 << n);
		now.k[1].retired &= ~(1 << n);
		now.overruled &= ~(1 << n);
	}
}

static uchar order[2 * SLOTS + 1];	/* from old to new nonces */
static int taken[2];

static void
number(int n)
{
	int c = n > SLOTS;

	if (n != 0 && order[n] == 0 && now.w[n].op != NOTHING)
		order[n] = c * SLOTS + ++taken[c];
}

/* Numbers nonces anew, in a fixed order of what refers to them. */
static void
choose_order(void)
{
	int i, n, token, highest = 0;

	memset(order, 0, sizeof(order));
	taken[0] = taken[1] = 0;
	number(now.item_version);
	number(now.past_version);
	for (i = 0; i < 2; i++)
	{
		number(now.k[i].version);
		number(now.k[i].pending);
		number(now.k[i].stray);
		number(now.k[i].target);
		number(now.k[i].seen);
		number(now.k[i].reply_version);
	}
	for (n = 1; n <= 2 * SLOTS; n++)
		if (now.w[n].token > highest)
			highest = now.w[n].token;
	for (token = highest; token >= 0; token--)
		for (n = 1; n <= 2 * SLOTS; n++)
			if (now.w[n].op == ACQUIRE && now.w[n].token == token)
				number(n);
	for (n = 1; n <= 2 * SLOTS; n++)
		number(n);
}

static int
ordered_set(int set)
{
	int n, result = 0;

	for (n = 1; n <= 2 * SLOTS; n++)
		if (order[n] != 0)
			result |= ((set >> n) & 1) << order[n];
	return result;
}

static void
tidy_order(void)
{
	int i, n;
	struct write copy[2 * SLOTS + 1];

	choose_order();
	memset(copy, 0, sizeof(copy));
	for (n = 1; n <= 2 * SLOTS; n++)
	{
		if (order[n] == 0)
			continue;
		copy[order[n]] = now.w[n];
		copy[order[n]].expected = order[now.w[n].expected];
	}
	memcpy(now.w, copy, sizeof(copy));
	now.overruled = ordered_set(now.overruled);
	now.item_version = order[now.item_version];
	now.past_version = order[now.past_version];
	for (i = 0; i < 2; i++)
	{
		now.k[i].version = order[now.k[i].version];
		now.k[i].pending = order[now.k[i].pending];
		now.k[i].stray = order[now.k[i].stray];
		now.k[i].target = order[now.k[i].target];
		now.k[i].seen = order[now.k[i].seen];
		now.k[i].reply_version = order[now.k[i].reply_version];
		now.k[i].retired = ordered_set(now.k[i].retired);
	}
}

#define EACH_TOKEN(do_it) \
	for (i = 1; i <= 2 * SLOTS; i++) \
		do_it(now.w[i].token); \
	for (i = 1; i <= 2 * SLOTS; i++) \
		do_it(now.w[i].first); \
	for (i = 0; i < 2; i++) \
	{ \
		do_it(now.k[i].top_token); \
		do_it(now.k[i].reply_token); \
		do_it(now.k[i].next_token); \
		do_it(now.k[i].last_token); \
	} \
	do_it(now.item_token); \
	do_it(now.past_token); \
	do_it(now.granted_token); \
	do_it(now.clock_floor)

/* Only the order of tokens matters: makes them 1, 2, 3 ... */
static void
tidy_tokens(void)
{
	uchar map[TOKENS] = {0};
	int i, rank = 0;

#define MARK(token) map[token] = 1
	EACH_TOKEN(MARK);
	for (i = 1; i < TOKENS; i++)
	{
		if (map[i])
			map[i] = ++rank;
		else if (i == now.highest_token)
			map[i] = rank;
	}
	map[0] = 0;
#define RANK(token) token = map[token]
	EACH_TOKEN(RANK);
	now.highest_token = map[now.highest_token];
}
static void
tidy_all(void)
{
	tidy_seen(0);
	tidy_seen(1);
	tidy_writes();
	tidy_slots();
	tidy_tokens();
	tidy_order();
}
}

#define tidy()	c_code { tidy_all(); }
