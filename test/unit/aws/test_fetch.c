/*
 * test_fetch.c
 *	  aws/fetch.c: what is asked, and what is made of the answers.
 */
#include "../unit.h"
#include "aws/aws.h"

#define NOW_S INT64_C(1640000000)

static aws_fetch fetch;
static const char *file_text;	/* of every file; NULL: there is none */
static char file_path[300];		/* the last one that was read */

static const char *
get(void *arg, const char *name)
{
	(void) arg;
	(void) name;
	return NULL;
}

static char *
read_file(void *arg, const char *path, size_t *len)
{
	(void) arg;
	snprintf(file_path, sizeof(file_path), "%s", path);
	if (file_text == NULL)
		return NULL;
	*len = strlen(file_text);
	return strdup(file_text);
}

static const aws_environment env = {.get = get,.home = "/home/pg",.read_file = read_file};

/* ---- one errand after the other ---- */

static void
begin(const aws_fetcher *fetcher)
{
	fetch.plan.fetcher = fetcher;
	strcpy(fetch.plan.keys.source, "SOURCE");
	strcpy(fetch.plan.tried, "BEFORE");
	strcpy(fetch.plan.sts_url, "https://sts.example");
	strcpy(fetch.plan.sts_region, "us-east-1");
	aws_fetch_begin(&fetch);
}

static void
assert_asks(const char *method, const char *url)
{
	assert_int_equal(aws_fetch_next(&fetch, &env, NOW_S), AWS_STEP_HTTP);
	assert_string_equal(fetch.errand.method, method);
	assert_string_equal(fetch.errand.url, url);
	/* STS and single sign-on are elsewhere: a proxy may lead there. */
	assert_int_equal(fetch.errand.direct, strstr(url, "sts.example") == NULL &&
					 (fetch.fetcher == &aws_fetch_metadata || fetch.fetcher == &aws_fetch_container));
}

static void
assert_header(const char *line)
{
	for (int i = 0; i < fetch.errand.header_count; i++)
		if (strcmp(fetch.errand.headers[i], line) == 0)
			return;
	fail_msg("no header \"%s\"", line);
}

static void
reply(int status, const char *body)
{
	const aws_result result = {
		.done = true,.status = status,.body = body,.len = strlen(body)
	};
	static const aws_errand nothing;

	aws_fetch_result(&fetch, &result, NOW_S);
	assert_memory_equal(&fetch.errand, &nothing, sizeof(nothing));
}

static void
no_reply_because(const char *problem)
{
	const aws_result result = {.problem = problem,.body = ""};

	aws_fetch_result(&fetch, &result, NOW_S);
}

static void
no_reply(void)
{
	no_reply_because("connect: Refused");
}

static void
assert_done(const char *id, const char *secret, const char *token, int64_t expires_s)
{
	if (aws_fetch_next(&fetch, &env, NOW_S) != AWS_STEP_DONE)
		fail_msg("%s", fetch.error);
	assert_string_equal(fetch.found.access_key_id, id);
	assert_string_equal(fetch.found.secret_access_key, secret);
	assert_string_equal(fetch.found.session_token, token);
	assert_string_equal(fetch.found.source, "SOURCE");
	assert_int_equal(fetch.found.expires_s, expires_s);
}

static void
assert_failed(const char *words)
{
	char		wanted[500];

	snprintf(wanted, sizeof(wanted), "SOURCE: %s; before it: BEFORE", words);
	assert_int_equal(aws_fetch_next(&fetch, &env, NOW_S), AWS_STEP_FAILED);
	assert_string_equal(fetch.error, wanted);
	assert_null(strstr(fetch.error, "HIDDEN"));
	memset(&fetch, 0, sizeof(fetch));
}

#define JSON(token_name) \
	"{\"Code\":\"Success\",\"AccessKeyId\":\"ID\",\"SecretAccessKey\":\"HIDDEN\"," \
	"\"" token_name "\":\"TOKEN\",\"Expiration\":\"2021-12-20T11:33:20Z\",\"Version\":1}"
#define EXPIRES_S NOW_S

/* ---- the instance ---- */

#define METADATA "http://169.254.169.254"
#define ROLES METADATA "/latest/meta-data/iam/security-credentials/"

static void
ask_metadata(bool region)
{
	strcpy(fetch.plan.from.metadata.url, METADATA);
	fetch.plan.from.metadata.timeout_ms = 700;
	fetch.plan.from.metadata.region = region;
	begin(&aws_fetch_metadata);
	assert_asks("PUT", METADATA "/latest/api/token");
	assert_header("X-aws-ec2-metadata-token-ttl-seconds: 21600");
	assert_int_equal(fetch.errand.timeout_ms, 700);
}

static void
begin_metadata(void)
{
	ask_metadata(false);
}

TEST(metadata_takes_three_requests)
{
	begin_metadata();
	reply(200, "T==");
	assert_asks("GET", ROLES);
	assert_header("X-aws-ec2-metadata-token: T==");
	reply(200, "a-role\nanother");
	assert_asks("GET", ROLES "a-role");
	assert_header("X-aws-ec2-metadata-token: T==");
	reply(200, JSON("Token"));
	assert_done("ID", "HIDDEN", "TOKEN", EXPIRES_S);
}

TEST(a_request_that_fails_is_repeated)
{
	begin_metadata();
	no_reply();
	assert_asks("PUT", METADATA "/latest/api/token");
	reply(200, "T");
	assert_asks("GET", ROLES);
	reply(503, "");
	assert_asks("GET", ROLES);
	reply(429, "");
	assert_asks("GET", ROLES);
	reply(200, "a");
	assert_asks("GET", ROLES "a");
	reply(200, JSON("Token"));
	assert_done("ID", "HIDDEN", "TOKEN", EXPIRES_S);
}

/* Only a server that answers is spared. */
TEST(there_are_pauses_for_a_server_that_is_overloaded)
{
	static const int pauses[] = {100, 200, 400, 800, 1600, 2000, 2000};

	fetch.plan.from.metadata.attempts = 9;
	begin_metadata();
	assert_int_equal(fetch.pause_ms, 0);
	no_reply();
	assert_int_equal(fetch.pause_ms, 0);
	assert_asks("PUT", METADATA "/latest/api/token");
	for (size_t i = 1; i < COUNT_OF(pauses); i++)
	{
		reply(i % 2 == 0 ? 429 : 503, "");
		assert_asks("PUT", METADATA "/latest/api/token");
		assert_int_equal(fetch.pause_ms, pauses[i]);
	}
	reply(200, "T");
	assert_asks("GET", ROLES);
	assert_int_equal(fetch.pause_ms, 0);
	reply(500, "");
	assert_asks("GET", ROLES);
	assert_int_equal(fetch.pause_ms, 100);
	reply(404, "");
	assert_failed("the instance has no role");
}

TEST(metadata_is_asked_as_often_as_it_is_set)
{
	for (int most = 1; most <= 5; most++)
	{
		fetch.plan.from.metadata.attempts = most;
		begin_metadata();
		for (int i = 1; i < most; i++)
		{
			if (i % 2 == 0)
				no_reply();
			else
				reply(500, "");
			assert_asks("PUT", METADATA "/latest/api/token");
		}
		reply(500, "");
		assert_failed("token: HTTP status 500");
	}
}

/* What is worth a repetition is no lack of credentials; but no machine needs metadata. */
TEST(a_failure_may_pass_or_not)
{
	static const struct
	{
		int			status;		/* 0: none */
		bool		metadata;
		bool		may_pass;
	}			cases[] = {
		{503, true, true}, {429, true, true}, {404, true, false}, {0, true, false},
		{503, false, true}, {429, false, true}, {403, false, false}, {0, false, true},
		{200, false, false},
	};

	for (size_t i = 0; i < COUNT_OF(cases); i++)
	{
		memset(&fetch, 0, sizeof(fetch));
		if (cases[i].metadata)
			ask_metadata(false);
		else
		{
			strcpy(fetch.plan.from.container.url, "http://localhost/");
			fetch.plan.fetcher = &aws_fetch_container;
			aws_fetch_begin(&fetch);
			assert_int_equal(aws_fetch_next(&fetch, &env, NOW_S), AWS_STEP_HTTP);
		}
		do
		{
			if (cases[i].status == 0)
				no_reply();
			else
				reply(cases[i].status, "");
		} while (aws_fetch_next(&fetch, &env, NOW_S) == AWS_STEP_HTTP);
		assert_int_equal(fetch.may_pass, cases[i].may_pass);
	}
}

static void
begin_region(void)
{
	memset(&fetch, 0, sizeof(fetch));
	ask_metadata(true);
	reply(200, "T");
	assert_asks("GET", METADATA "/latest/meta-data/placement/region");
	assert_header("X-aws-ec2-metadata-token: T");
}

TEST(metadata_tells_the_region)
{
	begin_region();
	reply(200, "eu-central-1");
	assert_int_equal(aws_fetch_next(&fetch, &env, NOW_S), AWS_STEP_DONE);
	assert_string_equal(fetch.name, "eu-central-1");
	begin_region();
	reply(200, "<html>");
	assert_failed("Region: not the name of a Region");
	begin_region();
	reply(404, "");
	assert_failed("Region: HTTP status 404");
}

TEST(metadata_fails)
{
	static const struct
	{
		int			step;		/* until then all goes well */
		int			tries;		/* then this reply, so often */
		int			status;		/* 0: none */
		const char *body;
		const char *words;
	}			cases[] = {
		{0, 2, 0, "", "token: connect: Refused"},
		{0, 3, 500, "", "token: HTTP status 500"},
		{0, 1, 403, "", "token: HTTP status 403, the service is switched off"},
		{0, 1, 302, "", "token: HTTP status 302"},
		{0, 1, 200, "", "token: the reply is empty or too long"},
		{0, 1, 200, "a\tb", "X-aws-ec2-metadata-token is no usable header"},
		{0, 1, 404, "", "token: HTTP status 404, the service lacks version 2 (IMDSv2), which ddblock needs"},
		{1, 1, 404, "", "the instance has no role"},
		{1, 1, 200, "\n", "name of the role: the reply is empty or too long"},
		{2, 1, 404, "", "credentials of the role: HTTP status 404"},
		{2, 1, 200, "", "credentials of the role: the reply is not a JSON object"},
		{2, 1, 200, "[\"HIDDEN\"]", "credentials of the role: the reply is not a JSON object"},
		{2, 1, 200, "{\"Code\":\"AssumeRoleUnauthorizedAccess\"}",
		"credentials of the role: AssumeRoleUnauthorizedAccess"},
		{2, 1, 200, "{\"AccessKeyId\":\"A\",\"SecretAccessKey\":5}",
		"credentials of the role: the reply has no credentials"},
		{2, 1, 200, "{\"AccessKeyId\":\"A\",\"SecretAccessKey\":\"HIDDEN\",\"Expiration\":\"soon\"}",
		"credentials of the role: the time of expiry is unreadable"},
		{2, 1, 200, "{\"AccessKeyId\":\"A\",\"SecretAccessKey\":\"HIDDEN\\n\"}",
		"credentials of the role: the credentials are too long or no text"},
	};

	for (size_t i = 0; i < COUNT_OF(cases); i++)
	{
		begin_metadata();
		for (int step = 0; step < cases[i].step; step++)
		{
			reply(200, "good");
			assert_int_equal(aws_fetch_next(&fetch, &env, NOW_S), AWS_STEP_HTTP);
		}
		for (int try = 0; try < cases[i].tries; try++)
		{
			if (try > 0)
				assert_int_equal(aws_fetch_next(&fetch, &env, NOW_S), AWS_STEP_HTTP);
			if (cases[i].status == 0)
				no_reply();
			else
				reply(cases[i].status, cases[i].body);
		}
		assert_failed(cases[i].words);
	}
}

/* Its reply, which is to cross one hop only, does not reach a container. */
TEST(a_token_that_does_not_come)
{
	begin_metadata();
	no_reply_because("reply: Timed out after 1000 ms (reply)");
	assert_asks("PUT", METADATA "/latest/api/token");
	no_reply_because("reply: Timed out after 1000 ms (reply)");
	assert_failed("token: reply: Timed out after 1000 ms (reply): in a container, the hop limit of "
				  "the instance's metadata must be 2 or more");
}

/* ---- containers ---- */

TEST(a_container_sends_its_token)
{
	strcpy(fetch.plan.from.container.url, "http://169.254.170.2/x?y=1");
	strcpy(fetch.plan.from.container.token, "Basic abc");
	begin(&aws_fetch_container);
	assert_asks("GET", "http://169.254.170.2/x?y=1");
	assert_header("Authorization: Basic abc");
	reply(200, JSON("Token"));
	assert_done("ID", "HIDDEN", "TOKEN", EXPIRES_S);

	/* A file precedes it. */
	strcpy(fetch.plan.from.container.token_file, "/token");
	file_text = "Bearer HIDDEN\r\n";
	begin(&aws_fetch_container);
	assert_asks("GET", "http://169.254.170.2/x?y=1");
	assert_header("Authorization: Bearer HIDDEN");
	reply(401, "");
	assert_failed("credentials: HTTP status 401");
}

TEST(unusable_token_files)
{
	static const char *const texts[] = {"", "\n", "a\x01", "a\xc3\xa9"};

	strcpy(fetch.plan.from.container.token_file, "/token");
	file_text = NULL;
	begin(&aws_fetch_container);
	assert_failed("cannot read the token file \"/token\"");
	for (size_t i = 0; i < COUNT_OF(texts); i++)
	{
		strcpy(fetch.plan.from.container.token_file, "/token");
		file_text = texts[i];
		begin(&aws_fetch_container);
		assert_failed("the token file \"/token\" is empty, too long, or no text");
	}
}

/* ---- roles ---- */

#define XML(id) \
	"<R><Credentials>\n <AccessKeyId>" id "</AccessKeyId><SecretAccessKey>HIDDEN" id \
	"</SecretAccessKey>\n<SessionToken>TOKEN" id "</SessionToken>" \
	"<Expiration>2021-12-20T12:33:20Z</Expiration></Credentials></R>"

static void
begin_role(void)
{
	strcpy(fetch.plan.keys.access_key_id, "BASE");
	strcpy(fetch.plan.keys.secret_access_key, "HIDDENBASE");
	strcpy(fetch.plan.roles[0].arn, "arn:aws:iam::1:role/a+b");
	strcpy(fetch.plan.roles[0].session_name, "me@here");
	strcpy(fetch.plan.roles[0].external_id, "x&y=z");
	fetch.plan.roles[0].duration_s = 900;
	fetch.plan.role_count = 1;
	begin(NULL);
	assert_asks("POST", "https://sts.example/");
}

TEST(a_role_is_assumed_with_a_signed_request)
{
	begin_role();
	assert_string_equal(fetch.errand.body, "Action=AssumeRole&Version=2011-06-15&"
						"RoleArn=arn%3Aaws%3Aiam%3A%3A1%3Arole%2Fa%2Bb&"
						"RoleSessionName=me%40here&ExternalId=x%26y%3Dz&DurationSeconds=900");
	assert_header("Content-Type: application/x-www-form-urlencoded");
	assert_header("host: sts.example");
	assert_header("x-amz-date: 20211220T113320Z");
	assert_non_null(strstr(fetch.errand.headers[3], "Authorization: AWS4-HMAC-SHA256 "
						   "Credential=BASE/20211220/us-east-1/sts/aws4_request, "
						   "SignedHeaders=content-type;host;x-amz-date, Signature="));
	reply(200, XML("ONE"));
	assert_done("ONE", "HIDDENONE", "TOKENONE", NOW_S + 3600);
}

TEST(the_next_role_is_assumed_with_the_one_before)
{
	begin_role();
	fetch.plan.roles[1] = fetch.plan.roles[0];
	fetch.plan.role_count = 2;
	reply(200, XML("ONE"));
	assert_asks("POST", "https://sts.example/");
	assert_header("x-amz-security-token: TOKENONE");
	assert_non_null(strstr(fetch.errand.headers[4], "Credential=ONE/"));
	reply(200, XML("TWO"));
	assert_done("TWO", "HIDDENTWO", "TOKENTWO", NOW_S + 3600);
}

TEST(sts_refuses)
{
	begin_role();
	reply(403, "<E><Code>AccessDenied</Code><Message>not you\nHIDDEN headers</Message></E>");
	assert_failed("AssumeRole: AccessDenied: not you");
	begin_role();
	reply(403, "nothing known");
	assert_failed("AssumeRole: HTTP status 403");
	begin_role();
	reply(200, "<R><AccessKeyId>A</AccessKeyId></R>");
	assert_failed("AssumeRole: the reply has no credentials");
	begin_role();
	reply(200, "<AccessKeyId>A</AccessKeyId><SecretAccessKey>HIDDEN");
	assert_failed("AssumeRole: the reply has no credentials");
}

TEST(sts_throttles)
{
	static const char *const codes[] = {
		"Throttling", "ThrottlingException", "RequestLimitExceeded", "IDPCommunicationError"
	};

	for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++)
	{
		char		body[200];
		char		words[100];

		snprintf(body, sizeof(body), "<E><Type>Sender</Type><Code>%s</Code><Message>slowly</Message></E>", codes[i]);
		snprintf(words, sizeof(words), "AssumeRole: %s: slowly", codes[i]);
		begin_role();
		for (int try = 0; try < 2; try++)
		{
			reply(400, body);
			assert_asks("POST", "https://sts.example/");
		}
		reply(400, body);
		assert_failed(words);
	}
}

TEST(a_wrong_clock_is_corrected_once)
{
	aws_result	result = {
		.done = true,.status = 403,.body = "<Code>SignatureDoesNotMatch</Code>",.date_s = NOW_S - 3600
	};

	begin_role();
	aws_fetch_result(&fetch, &result, NOW_S);
	assert_asks("POST", "https://sts.example/");
	assert_header("x-amz-date: 20211220T103320Z");
	result.date_s = NOW_S + 7200;
	aws_fetch_result(&fetch, &result, NOW_S);
	assert_failed("AssumeRole: SignatureDoesNotMatch: ");
}

TEST(web_identity_needs_no_signature)
{
	strcpy(fetch.plan.from.web.role.arn, "arn:a");
	strcpy(fetch.plan.from.web.role.session_name, "me");
	strcpy(fetch.plan.from.web.token_file, "/jwt");
	file_text = "e30.e30.HIDDEN_-\n";
	begin(&aws_fetch_web_identity);
	assert_asks("POST", "https://sts.example/");
	assert_string_equal(file_path, "/jwt");
	assert_int_equal(fetch.errand.header_count, 1);
	assert_string_equal(fetch.errand.body, "Action=AssumeRoleWithWebIdentity&Version=2011-06-15&"
						"RoleArn=arn%3Aa&RoleSessionName=me&WebIdentityToken=e30.e30.HIDDEN_-");
	reply(200, XML("WEB"));
	assert_done("WEB", "HIDDENWEB", "TOKENWEB", NOW_S + 3600);
}

/* ---- a command ---- */

static void
command_ends(int status, const char *output)
{
	strcpy(fetch.plan.from.command, "do it");
	begin(&aws_fetch_process);
	assert_int_equal(aws_fetch_next(&fetch, &env, NOW_S), AWS_STEP_PROCESS);
	assert_string_equal(fetch.errand.body, "do it");
	reply(status, output);
}

TEST(a_command_prints_credentials)
{
	command_ends(0, JSON("SessionToken"));
	assert_done("ID", "HIDDEN", "TOKEN", EXPIRES_S);
	command_ends(0, "{\"Version\":1,\"AccessKeyId\":\"A\",\"SecretAccessKey\":\"S\"}");
	assert_done("A", "S", "", 0);
	command_ends(3, JSON("SessionToken"));
	assert_failed("the command exited with status 3");
	command_ends(0, "HIDDEN");
	assert_failed("the command printed no JSON object");
	command_ends(0, "{\"Version\":2,\"AccessKeyId\":\"A\",\"SecretAccessKey\":\"S\"}");
	assert_failed("the command printed no \"Version\": 1");
	strcpy(fetch.plan.from.command, "do it");
	begin(&aws_fetch_process);
	assert_int_equal(aws_fetch_next(&fetch, &env, NOW_S), AWS_STEP_PROCESS);
	no_reply();
	assert_failed("the command connect: Refused");
}

/* ---- single sign-on ---- */

#define SSO_REPLY \
	"{\"roleCredentials\":{\"accessKeyId\":\"ID\",\"secretAccessKey\":\"HIDDEN\"," \
	"\"sessionToken\":\"TOKEN\",\"expiration\":1640000000999}}"
#define REFRESH \
	",\"refreshToken\":\"HIDDENR\",\"clientId\":\"C\",\"clientSecret\":\"HIDDENC\"," \
	"\"registrationExpiresAt\":\"2021-12-31T00:00:00Z\"}"

static void
begin_sso(const char *cache)
{
	strcpy(fetch.plan.from.sso.url, "https://portal.example");
	strcpy(fetch.plan.from.sso.oidc_url, "https://oidc.example");
	strcpy(fetch.plan.from.sso.account_id, "1");
	strcpy(fetch.plan.from.sso.role_name, "r+w");
	strcpy(fetch.plan.from.sso.token_file, "/cache");
	file_text = cache;
	begin(&aws_fetch_sso);
}

TEST(single_sign_on)
{
	begin_sso("{\"accessToken\":\"HIDDENT\",\"expiresAt\":\"2021-12-20T11:33:21Z\"}");
	assert_asks("GET", "https://portal.example/federation/credentials?role_name=r%2Bw&account_id=1");
	assert_header("x-amz-sso_bearer_token: HIDDENT");
	reply(200, SSO_REPLY);
	assert_done("ID", "HIDDEN", "TOKEN", EXPIRES_S);
	begin_sso("{\"accessToken\":\"HIDDENT\",\"expiresAt\":\"2021-12-20T11:33:21Z\"}");
	assert_asks("GET", "https://portal.example/federation/credentials?role_name=r%2Bw&account_id=1");
	reply(401, "");
	assert_failed("the token is refused: run \"aws sso login\"");
	begin_sso(NULL);
	assert_failed("cannot read \"/cache\": run \"aws sso login\"");
	begin_sso("HIDDEN");
	assert_failed("no token in \"/cache\": run \"aws sso login\"");
	begin_sso("{\"accessToken\":\"HIDDENT\",\"expiresAt\":\"2021-12-20T11:33:20Z\"}");
	assert_failed("the token in \"/cache\" has expired: run \"aws sso login\"");
}

TEST(an_expired_token_is_exchanged)
{
	begin_sso("{\"accessToken\":\"OLD\",\"expiresAt\":\"2021-12-20T11:33:20Z\"" REFRESH);
	assert_asks("POST", "https://oidc.example/token");
	assert_header("Content-Type: application/json");
	assert_non_null(strstr(fetch.errand.body, "\"refresh_token\""));
	assert_non_null(strstr(fetch.errand.body, "\"HIDDENR\""));
	assert_non_null(strstr(fetch.errand.body, "\"HIDDENC\""));
	reply(200, "{\"accessToken\":\"HIDDENNEW\",\"expiresIn\":28800}");
	assert_asks("GET", "https://portal.example/federation/credentials?role_name=r%2Bw&account_id=1");
	assert_header("x-amz-sso_bearer_token: HIDDENNEW");
	reply(200, SSO_REPLY);
	assert_done("ID", "HIDDEN", "TOKEN", EXPIRES_S);
	begin_sso("{\"accessToken\":\"OLD\",\"expiresAt\":\"2021-12-20T11:33:20Z\"" REFRESH);
	assert_asks("POST", "https://oidc.example/token");
	reply(400, "{\"error\":\"invalid_grant\"}");
	assert_failed("new token: HTTP status 400");
}

/* ---- time ---- */

TEST(times)
{
	static const struct
	{
		const char *text;
		int64_t		seconds;
	}			cases[] = {
		{"1970-01-01T00:00:01Z", 1},
		{"2000-02-29T12:00:00Z", 951825600},
		{"2000-03-01T00:00:00Z", 951868800},
		{"2021-12-20T11:33:20Z", 1640000000},
		{"2021-12-20T11:33:20.999Z", 1640000000},
		{"2021-12-20T13:03:20+01:30", 1640000000},
		{"2021-12-20T03:33:20-08:00", 1640000000},
		{"2100-03-01T00:00:00Z", INT64_C(4107542400)},
		{"2021-12-20T13:03:20+0130", 1640000000},
		{"2021-12-20T11:33:20+0000", 1640000000},
		{"2021-12-20T11:33:20z", 1640000000},
		{"2021-12-20T11:33:20.5UTC", 1640000000},
		{"2021-12-20T11:33:20+00:00junk", 0},
		{"2021-12-20T11:33:20+0000junk", 0},
		{"2021-12-20T11:33:20UTC+1", 0},
		{"2021-12-20T11:33:20+00", 0},
		{"2021-12-20T11:33:20+", 0},
		{"2021-12-20T11:33:20+-1:-1", 0},
		{"2021-12-20T11:33:20+01:+1", 0},
		{"2021-12-20T11:33:20", 0},
		{"2021-13-20T11:33:20Z", 0},
		{"2021-12-20T24:33:20Z", 0},
		{"2021-12-20 11:33:20Z", 0},
		{"soon", 0},
		{"", 0},
	};

	for (size_t i = 0; i < COUNT_OF(cases); i++)
		if (aws_read_time(cases[i].text) != cases[i].seconds)
			fail_msg("%s: %lld", cases[i].text, (long long) aws_read_time(cases[i].text));
}

TEST(wipes_all)
{
	static const aws_fetch nothing;

	begin_role();
	aws_wipe(&fetch);
	assert_memory_equal(&fetch, &nothing, sizeof(nothing));
}
