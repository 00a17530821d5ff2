/*-------------------------------------------------------------------------
 *
 * scale.c
 *	  Many clusters on one table that has only so much capacity.
 *
 * Each cluster has the shipped lock manager and codec; the DynamoDB double refuses what
 * exceeds its capacity: of the table, and of each item, as a token bucket each.  One queue of
 * events, one source of random numbers: a run is always the same.  Nothing is lost on the
 * way, and all clocks are right: what goes wrong here is load alone.
 *
 *	scale [NAME=NUMBER...]
 *
 *	clusters=10		so many
 *	own=20			locks that each of them holds from its start to the end
 *	hot=1			locks for which sessions compete, in all
 *	rivals=2		sessions of each cluster that do
 *	leaderships=0		that each cluster follows; the first one leads them all
 *	hold_ms=200		how long a rival has its lock, at most; on average half of it
 *	think_ms=1000	... and then wants none
 *	lease_ms=20000
 *	poll_ms=250		ddblock.poll_interval
 *	warm_s=40		the beginning, which does not count
 *	calm_s=30		then so long without shortage,
 *	short_s=0		... so long with one,
 *	after_s=10		... and so long without
 *	part=50			in the shortage, the table has this percentage of the units that the calm
 *					took; else it has enough
 *	fail=0			1: in the shortage, every request gets a 503 instead, and nothing is done
 *	item=1000		write units a second that an item (a partition) has; three times as many
 *					for reads
 *	seed=1
 *	seconds=0		1: prints a line for each second, too: number, requests, throttled, grants, lost
 *
 * Prints one line for each of the three spans.  Rates are per second.  Fails if a shortage costs a
 * lease, if it makes the clusters send more than three times as much as before, or if rivals do not get
 * three quarters as many locks as before within two seconds after it.
 *
 *-------------------------------------------------------------------------
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dynamo/dynamo.h"
#include "dynamo_double.h"
#include "lock/lockmgr.h"

#define MS		INT64_C(1000)
#define SECOND	INT64_C(1000000)
#define EPOCH	(INT64_C(1800000000) * SECOND)	/* DynamoDB's time at our time 0 */
#define HOP		(2 * MS)		/* of a packet, on average */
#define NO_LOCK	(-1)

/* A price list of 2025 (us-east-1, on demand): dollars for a million units. */
#define WRITE_PRICE	0.625
#define READ_PRICE	0.125
#define MONTH_S		(730.0 * 3600)

static const dynamo_table table = {.name = "locks",.partition_key = "key"};

static struct
{
	const char *name;
	int64_t		value;
}			options[] = {
	{"clusters", 10}, {"own", 20}, {"hot", 1}, {"rivals", 2}, {"leaderships", 0},
	{"hold_ms", 200}, {"think_ms", 1000}, {"lease_ms", 20000}, {"poll_ms", 250},
	{"warm_s", 40}, {"calm_s", 30}, {"short_s", 0}, {"after_s", 10}, {"part", 50},
	{"fail", 0}, {"item", 1000}, {"seed", 1}, {"seconds", 0},
};

typedef enum span
{
	WARM,
	CALM,
	SHORT,
	AFTER,
	SPANS
} span;

static const char *const span_names[SPANS] = {"warm", "calm", "short", "after"};

/* What is counted in a span. */
typedef struct counts
{
	int64_t		requests;
	int64_t		throttled;		/* of them, or statements of theirs */
	double		writes;			/* units */
	double		reads;
	int64_t		grants;			/* to rivals */
	int64_t		failed;			/* their requests that ended with an error */
	int64_t		lost;			/* leases */
	int64_t    *waits;			/* of those who were granted a lock */
	int64_t		room;
} counts;

typedef struct bucket
{
	uint64_t	item;
	double		units;
	int64_t		at;
} bucket;

typedef enum event_kind
{
	WAKE,						/* of a cluster's lock manager */
	ASK,						/* a session wants something */
	ARRIVE,						/* a request, at DynamoDB */
	ANSWER						/* a reply, at the cluster */
} event_kind;

typedef struct call call;

typedef struct event
{
	int64_t		at;
	uint64_t	number;			/* of events at one time, the first one is first */
	event_kind	kind;
	int			cluster;
	int			session;
	call	   *call;
} event;

struct call
{
	uint64_t	id;
	dynamo_op	op;
	int			count;
	bool		consistent;
	uint64_t	item;			/* of a read */
	char	   *body;
	dynamo_reply reply;
};

typedef struct session
{
	uint64_t	seq;
	int			lock;			/* wanted or held, or NO_LOCK */
	bool		holds;
	int64_t		since;
	lockmgr_grant grant;
} session;

/* The first session holds the own locks, the next ones are rivals, the others leaderships'. */
typedef struct cluster
{
	int			number;
	lockmgr    *lm;
	char		owner[64];
	session    *sessions;
	int			own;			/* so many are held */
	int64_t		wake;			/* the event that is scheduled; INT64_MAX: none */
	uint32_t   *lost;			/* holds that nobody has acknowledged */
	int			lost_count;
} cluster;

static int64_t now = 1;		/* 0 would mean "none" */
static uint64_t random_state;
static uint64_t event_number;
static event *events;
static size_t event_count;
static size_t event_room;
static cluster *clusters;
static dynamo_double *the_double;
static bucket table_writes;
static bucket table_reads;
static double table_rate = -1;	/* write units a second; negative: enough */
static double read_rate;
static bucket *items;
static size_t item_slots;
static counts counted[SPANS];
static int	sessions;

/* What is counted in each second. */
static struct
{
	int			requests;
	int			throttled;
	int			grants;
	int			lost;
}		   *seconds;

static int64_t
option(const char *name)
{
	for (size_t i = 0; i < sizeof(options) / sizeof(options[0]); i++)
		if (strcmp(options[i].name, name) == 0)
			return options[i].value;
	abort();
}

static void *
get_zeroed(size_t count, size_t size)
{
	void	   *memory = calloc(count, size);

	if (memory == NULL)
		abort();
	return memory;
}

static uint64_t
next_random(void)
{
	/* splitmix64 */
	uint64_t	z = (random_state += UINT64_C(0x9e3779b97f4a7c15));

	z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
	return z ^ (z >> 31);
}

/* Below "most". */
static int64_t
up_to(int64_t most)
{
	return most > 0 ? (int64_t) (next_random() % (uint64_t) most) : 0;
}

/* ---- the queue of events: a binary heap ---- */

static bool
is_earlier(const event *a, const event *b)
{
	return a->at != b->at ? a->at < b->at : a->number < b->number;
}

static void
schedule(event e)
{
	size_t		i = event_count++;

	if (event_count > event_room)
	{
		event_room = event_room == 0 ? 1024 : 2 * event_room;
		events = realloc(events, event_room * sizeof(event));
		if (events == NULL)
			abort();
	}
	e.number = event_number++;
	for (; i > 0 && is_earlier(&e, &events[(i - 1) / 2]); i = (i - 1) / 2)
		events[i] = events[(i - 1) / 2];
	events[i] = e;
}

static event
take_event(void)
{
	event		first = events[0];
	event		last = events[--event_count];
	size_t		i = 0;

	for (;;)
	{
		size_t		child = 2 * i + 1;

		if (child + 1 < event_count && is_earlier(&events[child + 1], &events[child]))
			child++;
		if (child >= event_count || !is_earlier(&events[child], &last))
			break;
		events[i] = events[child];
		i = child;
	}
	events[i] = last;
	return first;
}

static void
ask_at(int64_t at, const cluster *c, int number)
{
	schedule((event) {.at = at,.kind = ASK,.cluster = c->number,.session = number});
}

static span
span_now(void)
{
	int64_t		end = option("warm_s") * SECOND;

	if (now < end)
		return WARM;
	end += option("calm_s") * SECOND;
	if (now < end)
		return CALM;
	return now < end + option("short_s") * SECOND ? SHORT : AFTER;
}

/* ---- capacity ---- */

/* A bucket has at most the units of one second. */
static bool
take_units(bucket *b, double rate, double units)
{
	b->units += (double) (now - b->at) / 1e6 * rate;
	b->at = now;
	if (b->units > rate)
		b->units = rate;
	if (b->units < units)
		return false;
	b->units -= units;
	return true;
}

/* The item's bucket: writes are counted threefold, so that one bucket does for both. */
static bucket *
bucket_of(uint64_t item)
{
	size_t		i = item % item_slots;

	item |= 1;					/* 0: the slot is unused */
	while (items[i].item != 0 && items[i].item != item)
		i = (i + 1) % item_slots;
	items[i].item = item;
	return &items[i];
}

static bool
admit(void *context, uint64_t item)
{
	double		rate = 3.0 * (double) option("item");

	(void) context;
	if (!take_units(bucket_of(item), rate, 3) ||
		(table_rate >= 0 && !take_units(&table_writes, table_rate, 1)))
	{
		counted[span_now()].throttled++;
		seconds[now / SECOND].throttled++;
		return false;
	}
	counted[span_now()].writes++;
	return true;
}

static bool
admit_read(const call *c)
{
	double		units = c->consistent ? 1 : 0.5;

	if (!take_units(bucket_of(c->item), 3.0 * (double) option("item"), units) ||
		(table_rate >= 0 && !take_units(&table_reads, read_rate, units)))
	{
		counted[span_now()].throttled++;
		seconds[now / SECOND].throttled++;
		return false;
	}
	counted[span_now()].reads += units;
	return true;
}

/* ---- effects of the lock managers ---- */

static uint64_t
hash_of(const char *name, size_t len)
{
	uint64_t	h = UINT64_C(14695981039346656037);

	for (size_t i = 0; i < len; i++)
		h = (h ^ (uint8_t) name[i]) * UINT64_C(1099511628211);
	return h;
}

static int64_t
hop(void)
{
	return HOP / 2 + up_to(HOP);
}

static void
host_send(void *arg, const lockmgr_call *out)
{
	const cluster *c = arg;
	call	   *made = get_zeroed(1, sizeof(call));

	made->id = out->id;
	made->op = out->op;
	made->count = out->count;
	made->consistent = !out->writes[0].maybe_stale;
	made->item = hash_of(out->writes[0].name, out->writes[0].name_len);
	made->body = out->op == DYNAMO_RENEW_BATCH ? dynamo_build_batch(&table, out->writes, out->count) :
		dynamo_build(&table, &out->writes[0]);
	counted[span_now()].requests++;
	seconds[now / SECOND].requests++;
	schedule((event) {.at = now + hop(),.kind = ARRIVE,.cluster = c->number,.call = made});
}

static void
host_save(void *arg, uint32_t index, const saved_lease *lease, const char *name, size_t name_len)
{
	(void) arg, (void) index, (void) lease, (void) name, (void) name_len;
}

static void
host_save_hold(void *arg, uint32_t index, const saved_hold *hold)
{
	(void) arg, (void) index, (void) hold;
}

static void
host_waits(void *arg, lockmgr_session session, uint64_t seq, uint32_t watch)
{
	(void) arg, (void) session, (void) seq, (void) watch;
}

static void
host_watch(void *arg, uint32_t watch, const lockmgr_watch *what)
{
	(void) arg, (void) watch, (void) what;
}

static void
host_no_batches(void *arg, const dynamo_reply *reply, bool for_good)
{
	(void) arg, (void) reply, (void) for_good;
}

static void
host_random(void *arg, void *bytes, size_t len)
{
	uint8_t    *to = bytes;

	(void) arg;
	while (len-- > 0)
		*to++ = (uint8_t) next_random();
}

static void
note_wait(counts *to, int64_t wait)
{
	if (to->grants == to->room)
	{
		to->room = to->room == 0 ? 1024 : 2 * to->room;
		to->waits = realloc(to->waits, (size_t) to->room * sizeof(int64_t));
		if (to->waits == NULL)
			abort();
	}
	to->waits[to->grants++] = wait;
}

static bool
is_rival(int number)
{
	return number > 0 && number <= option("rivals");
}

static void
host_answer(void *arg, const lockmgr_answer *answer)
{
	cluster    *c = arg;
	int			number = (int) answer->session.slot;
	session    *s = &c->sessions[number];
	counts	   *to = &counted[span_now()];

	if (answer->kind == LOCKMGR_RELEASE)
	{
		s->lock = NO_LOCK;
		s->holds = false;
		ask_at(now + option("think_ms") * MS / 2 + up_to(option("think_ms") * MS), c, number);
	}
	else if (answer->result != LOCKMGR_GRANTED)
	{
		to->failed++;
		ask_at(now + SECOND, c, number);
	}
	else if (number == 0)
	{
		c->own++;
		ask_at(now, c, number);
	}
	else
	{
		s->grant = answer->grant;
		s->holds = true;
		if (!is_rival(number))
			return;
		note_wait(to, now - s->since);
		seconds[now / SECOND].grants++;
		ask_at(now + up_to(option("hold_ms") * MS), c, number);
	}
}

static void
host_lost(void *arg, uint32_t index, const saved_hold *hold, const saved_lease *lease, const dynamo_item *by)
{
	cluster    *c = arg;

	(void) lease, (void) by;
	counted[span_now()].lost++;
	seconds[now / SECOND].lost++;
	c->lost[c->lost_count++] = index;
	c->own -= hold->session.slot == 0;
	if (hold->session.slot == 0)
		ask_at(now + SECOND, c, 0);
}

/* ---- clusters ---- */

/* Runs what is due, and schedules the next wake-up. */
static void
settle(cluster *c)
{
	int64_t		next;

	while (c->lost_count > 0)
	{
		uint32_t	index = c->lost[--c->lost_count];

		for (int i = 0; i < sessions; i++)
			lockmgr_let_go(c->lm, now, (lockmgr_session) {(uint32_t) i, 1}, index);
	}
	next = lockmgr_next_wake(c->lm);
	if (next >= c->wake)
		return;
	c->wake = next > now ? next : now;
	schedule((event) {.at = c->wake,.kind = WAKE,.cluster = c->number});
}

static void
ask(cluster *c, int number)
{
	session    *s = &c->sessions[number];
	char		name[64];
	lockmgr_request request = {
		.session = {(uint32_t) number, 1},
		.seq = ++s->seq,
		.kind = LOCKMGR_ACQUIRE,
		.name = name,
		.ask = {
			.permits = 1,
			.lease_ms = option("lease_ms"),
			.margin_us = option("lease_ms") * MS / 10,
			.leadership = number > option("rivals"),
			.holder = {.database = "postgres",.user = "postgres",.pid = 4242,.since_ms = EPOCH / 1000}
		}
	};

	if (number == 0)
	{
		if (c->own >= option("own"))
			return;
		snprintf(name, sizeof(name), "own/%d/%" PRIu64, c->number, s->seq);
	}
	else if (is_rival(number))
	{
		if (!s->holds && s->lock == NO_LOCK)
		{
			s->lock = (int) up_to(option("hot"));
			s->since = now;
		}
		snprintf(name, sizeof(name), "hot/%d", s->lock);
	}
	else
		snprintf(name, sizeof(name), "leadership/%d", number);
	if (s->holds)
	{
		request.kind = LOCKMGR_RELEASE;
		request.ask.hold_index = s->grant.hold_index;
		request.ask.lease_index = s->grant.lease_index;
		request.ask.lease_generation = s->grant.lease_generation;
		request.ask.valid_until = s->grant.valid_until;
	}
	request.name_len = strlen(name);
	lockmgr_ask(c->lm, now, &request);
}

static void
start_cluster(int number)
{
	cluster    *c = &clusters[number];
	uint32_t	leases = (uint32_t) (option("own") + sessions + 8);
	lockmgr_config config = {
		.owner = c->owner,.max_leases = leases,.max_sessions = (uint32_t) sessions,
		.max_remembered = 64,.max_calls = 64,.request_timeout_us = 5 * SECOND,
		.retry_timeout_us = 30 * SECOND,.poll_interval_us = option("poll_ms") * MS,
	};
	lockmgr_host host = {
		.arg = c,.send = host_send,.save = host_save,.save_hold = host_save_hold,
		.answer = host_answer,.waits = host_waits,.watch = host_watch,.lost = host_lost,
		.no_batches = host_no_batches,.random = host_random,
	};

	*c = (cluster) {.number = number,.wake = INT64_MAX};
	snprintf(c->owner, sizeof(c->owner), "cluster%d/%d", number, number);
	c->sessions = get_zeroed((size_t) sessions, sizeof(session));
	c->lost = get_zeroed(leases, sizeof(uint32_t));
	c->lm = lockmgr_new(&config, &host);
	if (c->lm == NULL)
		abort();
	lockmgr_set_clock(c->lm, EPOCH, EPOCH);
	lockmgr_adopted(c->lm, now);
	for (int i = 0; i < sessions; i++)
	{
		c->sessions[i].lock = NO_LOCK;
		if (is_rival(i) && option("hot") == 0)
			continue;
		ask_at(now + (i == 0 || number > 0 ? up_to(option("lease_ms") * MS) : 0), c, i);
	}
}

/* ---- DynamoDB ---- */

static void
arrive(const event *e)
{
	call	   *c = e->call;
	char	   *bytes;
	size_t		len;
	int			status;

	if (option("fail") != 0 && span_now() == SHORT)
	{
		bytes = NULL;
		len = 0;
		status = 503;
	}
	else if (c->op == DYNAMO_READ && !admit_read(c))
		status = dynamo_double_error("ThrottlingException", NULL, &bytes, &len);
	else
		status = dynamo_double_request(the_double, dynamo_target(c->op), c->body, strlen(c->body),
									   &bytes, &len);
	dynamo_read(&c->reply, NULL, c->op, c->count, status, NULL, bytes, len);
	c->reply.date_s = (EPOCH + now) / SECOND;
	c->reply.wall_us = EPOCH + now;
	free(bytes);
	free(c->body);
	schedule((event) {.at = now + hop(),.kind = ANSWER,.cluster = e->cluster,.call = c});
}

static void
run_event(const event *e)
{
	cluster    *c = &clusters[e->cluster];

	switch (e->kind)
	{
		case ARRIVE:
			arrive(e);
			return;
		case ASK:
			ask(c, e->session);
			break;
		case ANSWER:
			lockmgr_reply(c->lm, now, e->call->id, &e->call->reply);
			dynamo_reply_free(&e->call->reply);
			free(e->call);
			break;
		case WAKE:
			if (e->at != c->wake)
				return;			/* another one has been scheduled since */
			c->wake = INT64_MAX;
			lockmgr_tick(c->lm, now);
			break;
	}
	settle(c);
}

/* ---- the program ---- */

static int
compare(const void *a, const void *b)
{
	int64_t		left = *(const int64_t *) a;
	int64_t		right = *(const int64_t *) b;

	return (left > right) - (left < right);
}

static double
wait_s(const counts *of, double part)
{
	if (of->grants == 0)
		return 0;
	return (double) of->waits[(int64_t) ((double) (of->grants - 1) * part)] / 1e6;
}

static void
report(span s, double length)
{
	counts	   *of = &counted[s];

	if (length <= 0)
		return;
	if (of->grants > 0)
		qsort(of->waits, (size_t) of->grants, sizeof(int64_t), compare);
	printf("%s: %.1f requests, %.1f throttled; %.1f write units, %.1f read units, %.0f dollars a "
		   "month; %.2f grants, waits of %.2f s (median), %.2f s (99 %%), %.2f s (longest); "
		   "%" PRId64 " failed, %" PRId64 " lost\n", span_names[s],
		   (double) of->requests / length, (double) of->throttled / length, of->writes / length,
		   of->reads / length,
		   (of->writes * WRITE_PRICE + of->reads * READ_PRICE) / length * MONTH_S / 1e6,
		   (double) of->grants / length, wait_s(of, 0.5), wait_s(of, 0.99), wait_s(of, 1),
		   of->failed, of->lost);
}

/* What clusters have asked of DynamoDB in a second: of its front ends, and of the table. */
static double
sent(span s, bool units, double length)
{
	const counts *of = &counted[s];

	return (units ? of->writes + of->reads + (double) of->throttled : (double) of->requests) / length;
}

/* Did the clusters do well in the shortage? */
static bool
judge(void)
{
	double		calm_s = (double) option("calm_s");
	double		short_s = (double) option("short_s");
	double		more = sent(SHORT, false, short_s) / sent(CALM, false, calm_s);
	double		more_units = sent(SHORT, true, short_s) / sent(CALM, true, calm_s);
	double		enough = (double) counted[CALM].grants / calm_s * 3 / 4;
	int64_t		over = option("warm_s") + option("calm_s") + option("short_s");
	int64_t		wait = 0;

	while (wait < option("after_s") && seconds[over + wait].grants < enough)
		wait++;
	printf("in the shortage %.1f times as many requests, %.1f times as many units, as many locks "
		   "as before from second %" PRId64 " after it, %" PRId64 " leases lost\n", more, more_units,
		   wait + 1, counted[SHORT].lost + counted[AFTER].lost);
	return more <= 3 && more_units <= 3 && wait < 2 && counted[SHORT].lost + counted[AFTER].lost == 0;
}

static void
read_options(int argc, char **argv)
{
	for (int i = 1; i < argc; i++)
	{
		size_t		len = strcspn(argv[i], "=");
		bool		found = false;

		for (size_t k = 0; k < sizeof(options) / sizeof(options[0]); k++)
		{
			if (argv[i][len] != '=' || strlen(options[k].name) != len ||
				strncmp(options[k].name, argv[i], len) != 0)
				continue;
			options[k].value = strtoll(argv[i] + len + 1, NULL, 10);
			found = true;
		}
		if (!found)
		{
			fprintf(stderr, "scale: what is \"%s\"? See the top of scale.c.\n", argv[i]);
			exit(2);
		}
	}
}

static void
make_table(void)
{
	dynamo_creation how = {0};
	char	   *body = dynamo_build_create_table(&table, &how);
	char	   *reply;
	size_t		len;

	the_double = dynamo_double_new();
	if (body == NULL || dynamo_double_request(the_double, dynamo_target(DYNAMO_CREATE_TABLE), body,
											   strlen(body), &reply, &len) != 200)
		abort();
	free(reply);
	free(body);
	item_slots = 4 * (size_t) (option("clusters") * option("own") + option("hot") +
							   option("leaderships")) + 64;
	items = get_zeroed(item_slots, sizeof(bucket));
	dynamo_double_limit(the_double, admit, NULL);
}

int
main(int argc, char **argv)
{
	int64_t		end;
	span		last = WARM;

	read_options(argc, argv);
	random_state = (uint64_t) option("seed");
	end = (option("warm_s") + option("calm_s") + option("short_s") + option("after_s")) * SECOND;
	seconds = get_zeroed((size_t) (end / SECOND) + 2, sizeof(*seconds));
	sessions = (int) (1 + option("rivals") + option("leaderships"));
	make_table();
	clusters = get_zeroed((size_t) option("clusters"), sizeof(cluster));
	for (int i = 0; i < option("clusters"); i++)
		start_cluster(i);
	while (event_count > 0 && events[0].at < end)
	{
		event		e = take_event();

		now = e.at;
		if (span_now() == SHORT && last == CALM && option("fail") == 0)
		{
			double		part = (double) option("part") / 100 / (double) option("calm_s");

			table_rate = counted[CALM].writes * part;
			read_rate = counted[CALM].reads * part;
		}
		else if (span_now() == AFTER)
			table_rate = -1;
		last = span_now();
		run_event(&e);
	}
	report(CALM, (double) option("calm_s"));
	report(SHORT, (double) option("short_s"));
	report(AFTER, (double) option("after_s"));
	for (int64_t i = 0; option("seconds") != 0 && i < end / SECOND; i++)
		printf("%" PRId64 " %d %d %d %d\n", i, seconds[i].requests, seconds[i].throttled,
			   seconds[i].grants, seconds[i].lost);
	return option("short_s") == 0 || judge() ? 0 : 1;
}
