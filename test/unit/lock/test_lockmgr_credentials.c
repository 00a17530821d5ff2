/*-------------------------------------------------------------------------
 *
 * test_lockmgr_credentials.c
 *	  An hour of simulated time on credentials that are valid for 15 minutes, from a
 *	  source that fails for half of it.
 *
 * The lock manager renews a lease; DynamoDB refuses its calls while the credentials
 * have expired.  They are fetched as the worker does it: aws/fetch.c, from a
 * container's address, when aws/renewal.c says so.
 *
 *-------------------------------------------------------------------------
 */
#include "lockmgr_harness.h"

#include <time.h>

#include "aws/aws.h"

#define MINUTE (60 * SECOND)
#define LIFETIME (15 * MINUTE)

typedef enum source_kind
{
	SOURCE_BY_LOT,				/* each try fails with probability 1/2 */
	SOURCE_IN_TURNS,			/* down for 7 minutes, up for 7 minutes */
	SOURCE_ONCE					/* gives credentials at the start only */
} source_kind;

typedef struct source
{
	source_kind kind;
	uint64_t	random;
	int64_t		phase;
	int			tries;
	int			failures;
	aws_renewal renewal;
	int64_t		expires;		/* of the credentials in use */
} source;

static aws_fetch fetch;

static uint64_t
draw(source *s)
{
	s->random = s->random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return s->random >> 11;
}

static bool
is_down(source *s, int64_t now)
{
	if (s->tries == 0)
		return false;
	switch (s->kind)
	{
		case SOURCE_BY_LOT:
			return draw(s) % 2 == 0;
		case SOURCE_IN_TURNS:
			return (now + s->phase) / (7 * MINUTE) % 2 == 1;
		case SOURCE_ONCE:
			break;
	}
	return true;
}

static int64_t
epoch_s(const harness *h)
{
	return (h->now + h->epoch_offset) / SECOND;
}

/* One whole fetch; each of its tries meets the same source. */
static void
fetch_now(harness *h, source *s)
{
	static const aws_environment env;
	bool		down = is_down(s, h->now);
	time_t		expires = epoch_s(h) + LIFETIME / SECOND;
	char		stamp[40];
	char		body[200];
	aws_step	step;

	s->tries++;
	s->failures += down;
	strftime(stamp, sizeof(stamp), "%Y-%m-%dT%H:%M:%SZ", gmtime(&expires));
	snprintf(body, sizeof(body), "{\"AccessKeyId\":\"A\",\"SecretAccessKey\":\"S\","
			 "\"Token\":\"T\",\"Expiration\":\"%s\"}", stamp);
	memset(&fetch, 0, sizeof(fetch));
	fetch.plan.fetcher = &aws_fetch_container;
	strcpy(fetch.plan.from.container.url, "http://169.254.170.2/x");
	aws_fetch_begin(&fetch);
	while ((step = aws_fetch_next(&fetch, &env, epoch_s(h))) == AWS_STEP_HTTP)
		aws_fetch_result(&fetch, &(aws_result) {
			.done = !down,.status = 200,.body = body,.len = strlen(body),.problem = "connect"
		}, epoch_s(h));
	if (step == AWS_STEP_DONE)
	{
		s->expires = fetch.found.expires_s * SECOND - h->epoch_offset;
		aws_renewal_succeeded(&s->renewal, h->now, s->expires - h->now, draw(s));
	}
	else
		aws_renewal_failed(&s->renewal, h->now, draw(s));
}

static void
run_an_hour(harness *h, source *s)
{
	int64_t		end = h->now + 60 * MINUTE;

	fetch_now(h, s);
	acquire(h, 0, "a");
	while (h->now < end)
	{
		if (s->renewal.next <= h->now)
			fetch_now(h, s);
		h->fate = h->now < s->expires ? (int) FATE_OK : FATE_STATUS + DYNAMO_CREDENTIALS;
		run(h, SECOND);
	}
}

TEST(a_source_that_fails_every_other_time_loses_no_lease)
{
	for (uint64_t seed = 1; seed <= 20; seed++)
	{
		harness    *h = harness_start();
		source		s = {.kind = SOURCE_BY_LOT,.random = seed};

		run_an_hour(h, &s);
		assert_in_range(s.failures, 1, s.tries - 4);
		assert_int_equal(h->lost_count, 0);
		assert_true(holds(h, 0, "a"));
		harness_free(h);
	}
}

TEST(a_source_that_is_down_every_other_seven_minutes_loses_no_lease)
{
	for (uint64_t seed = 1; seed <= 20; seed++)
	{
		harness    *h = harness_start();
		source		s = {
			.kind = SOURCE_IN_TURNS,.random = seed,.phase = (int64_t) seed * 42 * SECOND
		};

		run_an_hour(h, &s);
		assert_in_range(s.failures, 1, s.tries - 4);
		assert_int_equal(h->lost_count, 0);
		assert_true(holds(h, 0, "a"));
		harness_free(h);
	}
}

TEST(a_source_that_never_answers_again_loses_it)
{
	harness    *h = harness_start();
	source		s = {.kind = SOURCE_ONCE,.random = 1};

	run_an_hour(h, &s);
	assert_int_equal(h->lost_count, 1);
	assert_false(holds(h, 0, "a"));
	/* Tried at least once a minute, and not all the time. */
	assert_in_range(s.tries, 50, 150);
	harness_free(h);
}
