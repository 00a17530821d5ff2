/*-------------------------------------------------------------------------
 *
 * shared_tidy.pml
 *	  Keeps the states of shared.pml few, as tidy.pml does those of lock.pml:
 *	  makes those equal that differ only in what can never matter again, or in
 *	  how nonces and tokens are numbered.  No part of the protocol.
 *
 *-------------------------------------------------------------------------
 */

c_code {
#define NONCES (2 * SLOTS + 1)
#define TOKENS (2 * SLOTS + 10)	/* more than there can be */

static int may_apply(int n);

/* Can the item's token be erased? */
static int
token_may_fall(void)
{
	return now.java > 0 || now.it.mode == JAVAS;
}

/* Can the version come to stand in the item by a copy on the way? */
static int
may_come(int n)
{
	return n != 0 && n <= 2 * SLOTS &&
		(may_apply(n) || n == now.k[0].pending || n == now.k[1].pending);
}

static int
epoch_may_stand(int n)
{
	return (now.it.mode == SHARED && now.it.epoch == n) || may_come(n);
}

static int
entry_may_stand(int me, int n)
{
	return now.it.h[me].v == n || may_come(n);
}

static int
dead_may_stand(int n)
{
#ifndef DEAD_WITHOUT_VERSION
	int e;

	for (e = 0; e < ENTRIES; e++)
		if (now.w[n].dead[e] != 0 && !entry_may_stand(e, now.w[n].dead[e]))
			return 0;
#endif
	return 1;
}

static int
join_may_apply(int n)
{
#ifndef JOIN_WITHOUT_TOKEN
	if (now.w[n].token <= now.it.token && !token_may_fall())
		return 0;
#endif
	if (now.w[n].expected != 0 &&
		!entry_may_stand(now.w[n].me, now.w[n].expected))
		return 0;
	return epoch_may_stand(now.w[n].epoch) && dead_may_stand(n);
}

static int
journal_may_apply(int n)
{
	int m, me = now.w[n].me;

	if (now.it.h[me].v != 0 ||
		(now.it.mode == OWNED && now.w[now.it.version].me == me))
		return 1;
	for (m = 1; m <= 2 * SLOTS; m++)
		if (now.w[m].me == me && now.w[m].op != JOURNAL && may_apply(m))
			return 1;
	return 0;
}

/* Can a copy of the write that is on the way ever be applied? */
static int
may_apply(int n)
{
	if (n == 0 || n > 2 * SLOTS || !now.w[n].loose)
		return 0;
	switch (now.w[n].op)
	{
		case ACQUIRE:
		case OPEN:
			return now.w[n].token > now.it.token || token_may_fall();
		case RENEW:
		case RELEASE:
			return (now.it.mode == OWNED &&
					now.it.version == now.w[n].expected) ||
				may_come(now.w[n].expected);
		case JOIN:
			return join_may_apply(n);
		case RENEW_ENTRY:
		case LESS:
		case LEAVE:
		case MORE:
			return entry_may_stand(now.w[n].me, now.w[n].expected) &&
				dead_may_stand(n);
		case GATE:
			return epoch_may_stand(now.w[n].epoch);
		case RENEW_GATE:
			return now.it.gate == now.w[n].expected ||
				may_come(now.w[n].expected);
		case JOURNAL:
			return journal_may_apply(n);
	}
	return 0;
}

/* Forgets what no longer matters of the writes. */
static void
tidy_writes(void)
{
	int n, e;

	for (n = 1; n <= 2 * SLOTS; n++)
	{
		if (now.w[n].op == NOTHING)
			continue;
		if (now.w[n].op != ACQUIRE && now.w[n].op != OPEN &&
			now.w[n].op != JOIN && now.w[n].op != MORE)
		{
			now.w[n].wish = 0;
			if (now.w[n].op != LESS)
				now.w[n].n = 0;
		}
		if (now.w[n].op == ACQUIRE)
			now.w[n].n = 0;
		if (now.w[n].op == ACQUIRE || now.w[n].op == RENEW ||
			now.w[n].op == RELEASE || now.w[n].op == JOURNAL ||
			now.w[n].op == OPEN)
			now.w[n].epoch = 0;
		if (n == now.k[0].pending || n == now.k[1].pending)
			continue;
		if (may_apply(n))
		{
			if ((now.w[n].op == ACQUIRE || now.w[n].op == OPEN) &&
				now.w[n].expected != 0 &&
				now.it.version != now.w[n].expected &&
				!may_come(now.w[n].expected))
				now.w[n].expected = 0;
			if (now.w[n].gate != 0 && now.it.gate != now.w[n].gate &&
				!may_come(now.w[n].gate))
				now.w[n].gate = 0;
			continue;
		}
		now.w[n].op = SETTLED;
		now.w[n].wish = now.w[n].expected = now.w[n].epoch = 0;
		now.w[n].token = now.w[n].n = now.w[n].freed = 0;
		now.w[n].raise = now.w[n].gate = now.w[n].loose = 0;
		now.w[n].applied = now.w[n].old = 0;
#ifdef LAST_UNCONDITIONAL
		now.w[n].last = 0;
#endif
		for (e = 0; e < ENTRIES; e++)
			now.w[n].dead[e] = 0;
	}
}

static int
standing(int s)
{
	if (s == THE_GATE)
		return now.it.gate;
	if (s == WHOLE)
		return now.it.mode == OWNED || now.it.mode == JAVAS ? now.it.version : 0;
	return now.it.mode == SHARED ? now.it.h[s].v : 0;
}

/*
 * Who wants nothing any more needs to remember nothing; and a version that
 * cannot come back need not be watched.
 */
static void
tidy_cluster(int c)
{
	int s, n, idle = now.todo[c] == 0 && now.k[c].wish == 0;

	if (c != BEHIND)			/* its clock is above all tokens anyway */
		now.k[c].top_token = 0;
	if (idle)
		now.k[c].retired = now.k[c].top_token = 0;
	if (now.k[c].pending != 0)
	{
		n = now.w[now.k[c].pending].op;
		if (n == LEAVE || n == RELEASE || n == JOURNAL)
			now.k[c].pending_end = 0;
	}
	for (s = 0; s < SUBJECTS; s++)
	{
		n = now.k[c].seen[s];
		if (n == 0 || (!idle && (n == standing(s) || may_apply(n))))
			continue;
#ifdef EARLIER_LOOK
		if (!idle && s < ENTRIES && now.it.mode == SHARED &&
			standing(s) != 0)
			continue;
#endif
		now.k[c].seen[s] = 0;
		now.k[c].dead_in[s] = 0;
	}
}

static int
refers(int c, int n)
{
	int s;

	for (s = 0; s < SUBJECTS; s++)
		if (now.k[c].seen[s] == n)
			return 1;
	return now.k[c].version == n || now.k[c].pending == n ||
		now.k[c].epoch == n || now.k[c].gate == n;
}

static int
item_refers(int n)
{
	return now.it.version == n || now.it.epoch == n || now.it.gate == n ||
		now.it.h[0].v == n || now.it.h[1].v == n || now.it.h[2].v == n ||
		now.java_seen == n;
}

static int
a_write_refers(int n)
{
	int m, e;

	for (m = 1; m <= 2 * SLOTS; m++)
	{
		if (now.w[m].op == NOTHING)
			continue;
		if (now.w[m].expected == n || now.w[m].epoch == n ||
			now.w[m].gate == n)
			return 1;
		for (e = 0; e < ENTRIES; e++)
			if (now.w[m].dead[e] == n)
				return 1;
	}
	return 0;
}

static void
forget_nonce(int n)
{
	int c;

	for (c = 0; c < CLUSTERS; c++)
	{
		now.k[c].retired &= ~(1 << n);
		now.k[c].strays &= ~(1 << n);
	}
	now.overruled &= ~(1 << n);
}

/* Frees the nonces that nothing refers to. */
static void
tidy_slots(void)
{
	int n;

	for (n = 1; n <= 2 * SLOTS; n++)
	{
		if (now.w[n].op != SETTLED || item_refers(n) ||
			refers(0, n) || refers(1, n) || a_write_refers(n))
			continue;
		now.w[n].op = NOTHING;
		now.w[n].me = 0;
		forget_nonce(n);
	}
}

static uchar order[NONCES + 1];	/* from old to new nonces */
static int taken[CLUSTERS];

static void
number(int n)
{
	int c = n > SLOTS;

	if (n != 0 && n < NONCES && order[n] == 0 && now.w[n].op != NOTHING)
		order[n] = c * SLOTS + ++taken[c];
}

/* Numbers nonces anew, in a fixed order of what refers to them. */
static void
choose_order(void)
{
	int c, e, n, token, highest = 0;

	memset(order, 0, sizeof(order));
	order[NONCES] = NONCES;
	taken[0] = taken[1] = 0;
	number(now.it.version);
	number(now.it.epoch);
	for (e = 0; e < ENTRIES; e++)
		number(now.it.h[e].v);
	number(now.it.gate);
	number(now.java_seen);
	for (c = 0; c < CLUSTERS; c++)
	{
		number(now.k[c].version);
		number(now.k[c].pending);
		number(now.k[c].epoch);
		number(now.k[c].gate);
		for (e = 0; e < SUBJECTS; e++)
			number(now.k[c].seen[e]);
	}
	for (n = 1; n <= 2 * SLOTS; n++)
		if (now.w[n].token > highest)
			highest = now.w[n].token;
	for (token = highest; token > 0; token--)
		for (n = 1; n <= 2 * SLOTS; n++)
			if (now.w[n].token == token)
				number(n);
	for (token = 1; token < SETTLED; token++)
		for (n = 1; n <= 2 * SLOTS; n++)
			if (now.w[n].op == token)
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

#define NEW(nonce) nonce = order[nonce]

static void
tidy_order(void)
{
	int c, e, n;
	struct write copy[NONCES + 1];

	choose_order();
	memset(copy, 0, sizeof(copy));
	for (n = 1; n <= 2 * SLOTS; n++)
	{
		struct write *new = &copy[order[n]];

		if (order[n] == 0)
			continue;
		*new = now.w[n];
		NEW(new->expected);
		NEW(new->epoch);
		NEW(new->gate);
		for (e = 0; e < ENTRIES; e++)
			NEW(new->dead[e]);
	}
	memcpy(now.w, copy, sizeof(now.w));
	now.overruled = ordered_set(now.overruled);
	NEW(now.it.version);
	NEW(now.it.epoch);
	NEW(now.it.gate);
	NEW(now.java_seen);
	for (e = 0; e < ENTRIES; e++)
		NEW(now.it.h[e].v);
	for (c = 0; c < CLUSTERS; c++)
	{
		NEW(now.k[c].version);
		NEW(now.k[c].pending);
		NEW(now.k[c].epoch);
		NEW(now.k[c].gate);
		for (e = 0; e < SUBJECTS; e++)
			NEW(now.k[c].seen[e]);
		now.k[c].strays = ordered_set(now.k[c].strays);
		now.k[c].retired = ordered_set(now.k[c].retired);
	}
}

#define EACH_TOKEN(do_it) \
	for (i = 1; i <= 2 * SLOTS; i++) \
		do_it(now.w[i].token); \
	for (i = 0; i < CLUSTERS; i++) \
		do_it(now.k[i].top_token); \
	do_it(now.it.token); \
	do_it(now.exclusive_token); \
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
tidy_java(void)
{
	if (now.java_seen == 0 ||
		(now.java > 0 && now.java_seen == now.it.version))
		return;
	now.java_seen = now.java_dead_in = 0;
}

/*
 * Rule: dead is what was watched for its lease, or is a retired nonce of ours.
 */
static void
tidy_look(int c)
{
	int s, version;

	now.k[c].news = now.k[c].dead = 0;
#ifdef EARLIER_LOOK
	now.k[c].stale = 0;
#endif
	if (now.k[c].wish == 0)
		return;
	for (s = 0; s < SUBJECTS; s++)
	{
		version = standing(s);
		if (s == now.k[c].me && version == now.k[c].version)
			continue;			/* held */
#ifdef STAY
		if (s == 0)
			continue;
#endif
		if (version != now.k[c].seen[s])
			now.k[c].news = 1;
#ifndef DEAD_IS_LEFT_ALONE
		else if (version != 0 && now.k[c].dead_in[s] == 0)
			now.k[c].dead |= 1 << s;
#endif
#ifdef EARLIER_LOOK
		if (s < ENTRIES && version != now.k[c].seen[s] && version != 0 &&
			now.k[c].seen[s] != 0 && now.k[c].dead_in[s] == 0)
			now.k[c].stale |= 1 << s;
#endif
		if (version != 0 && now.k[c].retired >> version & 1)
			now.k[c].dead |= 1 << s;
	}
}

static void
tidy_all(void)
{
	int n;

	tidy_java();
	tidy_cluster(0);
	tidy_cluster(1);
	tidy_writes();
	tidy_slots();
	tidy_tokens();
	tidy_order();
	tidy_look(0);
	tidy_look(1);
	for (n = 1; n <= 2 * SLOTS; n++)
		now.w[n].fits = fits(n);
}
}

#define tidy()	c_code { tidy_all(); }
