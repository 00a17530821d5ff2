/*-------------------------------------------------------------------------
 *
 * test_sigv4.c
 *	  Tests of aws/sigv4.c.
 *
 * The references are Amazon's published vectors (data/sigv4), and botocore, run by
 * botocore_sign.py, for what the vectors lack: x-amz-target together with a token,
 * long bodies, UTF-8.  Neither is skipped if missing.
 *
 *-------------------------------------------------------------------------
 */
#include <cjson/cJSON.h>
#include <dirent.h>
#include <openssl/evp.h>
#include <openssl/sha.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "../unit.h"
#include "aws/aws.h"

#define VECTOR_COUNT 38
#define BOTOCORE_COUNT 40
#define MAX_HEADERS 70

static char *
read_text(const char *folder, const char *name)
{
	char		path[4096];
	FILE	   *file;
	char	   *text = calloc(1, 65536);

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	file = fopen(path, "rb");
	if (file == NULL)
		fail_msg("cannot open %s", path);
	assert_in_range(fread(text, 1, 65535, file), 1, 65534);
	fclose(file);
	return text;
}

/* ---- Amazon's vectors ---- */

typedef struct vector
{
	char	   *request_text;
	char	   *canonical_text;
	cJSON	   *context;
	sigv4_header headers[MAX_HEADERS];
	char		body_hash[65];
	char		amz_date[SIGV4_DATE_SIZE];
	sigv4_request request;
} vector;

static void
add_header(vector *v, const char *name, const char *value)
{
	v->headers[v->request.header_count].name = name;
	v->headers[v->request.header_count].value = value;
	v->request.header_count++;
}

/* Cuts the text after its first line and returns what follows. */
static char *
cut_line(char *text)
{
	char	   *newline = strchr(text, '\n');

	if (newline == NULL)
		return text + strlen(text);
	*newline = '\0';
	return newline + 1;
}

/* The suite's format of requests: "Name:value", folded lines begin with a space. */
static void
parse_request(vector *v)
{
	char	   *rest = cut_line(v->request_text);

	*strchr(v->request_text, ' ') = '\0';
	v->request.method = v->request_text;
	while (*rest != '\0' && *rest != '\n')
	{
		char	   *line = rest;
		char	   *newline = strchr(line, '\n');

		while (newline != NULL && newline[1] == ' ')
			newline = strchr(newline + 1, '\n');
		if (newline == NULL)
			rest = line + strlen(line);
		else
		{
			*newline = '\0';
			rest = newline + 1;
		}
		add_header(v, line, strchr(line, ':') + 1);
		*strchr(line, ':') = '\0';
	}
	v->request.body = *rest == '\n' ? rest + 1 : rest;
	v->request.body_len = strlen(v->request.body);
}

static const char *
context_text(const vector *v, const char *name)
{
	return cJSON_GetStringValue(cJSON_GetObjectItem(v->context, name));
}

static void
parse_context(vector *v)
{
	cJSON	   *credentials = cJSON_GetObjectItem(v->context, "credentials");
	const char *token;
	const char *from;
	char	   *to = v->amz_date;

	v->request.region = context_text(v, "region");
	v->request.service = context_text(v, "service");
	v->request.access_key_id = cJSON_GetStringValue(
		cJSON_GetObjectItem(credentials, "access_key_id"));
	v->request.secret_access_key = cJSON_GetStringValue(
		cJSON_GetObjectItem(credentials, "secret_access_key"));

	for (from = context_text(v, "timestamp"); *from != '\0'; from++)
		if (*from != '-' && *from != ':')
			*to++ = *from;
	v->request.amz_date = v->amz_date;
	add_header(v, "X-Amz-Date", v->amz_date);

	token = cJSON_GetStringValue(cJSON_GetObjectItem(credentials, "token"));
	if (token != NULL &&
		!cJSON_IsTrue(cJSON_GetObjectItem(v->context, "omit_session_token")))
		add_header(v, "X-Amz-Security-Token", token);
}

static void
add_body_hash(vector *v)
{
	unsigned char hash[32];

	if (!cJSON_IsTrue(cJSON_GetObjectItem(v->context, "sign_body")))
		return;
	SHA256(v->request.body, v->request.body_len, hash);
	for (int i = 0; i < 32; i++)
		sprintf(v->body_hash + 2 * i, "%02x", hash[i]);
	add_header(v, "x-amz-content-sha256", v->body_hash);
}

static void
parse_canonical(vector *v)
{
	char	   *path = cut_line(v->canonical_text);
	char	   *query = cut_line(path);

	cut_line(query);
	v->request.path = path;
	v->request.query = query;
}

static void
check_vector(const char *folder)
{
	vector		v = {0};
	sigv4_key	key = {0};
	char	   *expected = read_text(folder, "header-signed-request.txt");
	char	   *context = read_text(folder, "context.json");
	char	   *wanted;
	char		out[1024];

	v.request_text = read_text(folder, "request.txt");
	v.canonical_text = read_text(folder, "header-canonical-request.txt");
	v.context = cJSON_Parse(context);
	assert_non_null(v.context);
	v.request.headers = v.headers;
	parse_request(&v);
	parse_context(&v);
	parse_canonical(&v);
	add_body_hash(&v);

	wanted = strstr(expected, "Authorization:");
	assert_non_null(wanted);
	wanted += strlen("Authorization:");
	cut_line(wanted);
	if (!sigv4_sign(&v.request, &key, out, sizeof(out)) ||
		strcmp(out, wanted) != 0)
		fail_msg("%s:\n got %s\nwant %s", folder, out, wanted);

	cJSON_Delete(v.context);
	free(context);
	free(expected);
	free(v.request_text);
	free(v.canonical_text);
	sigv4_key_wipe(&key);
}

TEST(signs_amazons_vectors)
{
	const char *root = TEST_DATA_DIR "/sigv4";
	DIR		   *dir = opendir(root);
	struct dirent *entry;
	int			count = 0;

	assert_non_null(dir);
	while ((entry = readdir(dir)) != NULL)
	{
		char		folder[4096];
		struct stat status;

		snprintf(folder, sizeof(folder), "%s/%s", root, entry->d_name);
		if (entry->d_name[0] == '.' || stat(folder, &status) != 0 ||
			!S_ISDIR(status.st_mode))
			continue;
		check_vector(folder);
		count++;
	}
	closedir(dir);
	assert_int_equal(count, VECTOR_COUNT);
}

/* ---- botocore ---- */

static uint32_t random_state;

static unsigned
pick(unsigned below)
{
	random_state = random_state * 1664525u + 1013904223u;
	return (random_state >> 8) % below;
}

/* Unusual parts of values, for which botocore and HTTP agree on white space. */
static void
random_value(char *out, size_t size)
{
	static const char *const pieces[] = {
		" ", "  ", "\t", " \t ", ",", ";", "=", "\"", "%41", "+", "/", ":", "A",
		"zz", "0", "\xc3\xa9", "\xe2\x82\xac", "\xf0\x9f\x94\x92", "'", "\\"
	};
	unsigned	n = pick(30);

	out[0] = '\0';
	while (n-- > 0)
		strncat(out, pieces[pick(COUNT_OF(pieces))],
				size - strlen(out) - 1);
}

typedef struct random_case
{
	sigv4_header headers[16];
	char		values[12][512];
	char		body[4096];
	char		secret[64];
	char		amz_date[SIGV4_DATE_SIZE];
	const char *token;
	sigv4_request request;
} random_case;

static void
make_random_case(random_case *c)
{
	static const char *const names[] = {
		"Content-Type", "X-Amz-Target", "x-amz-meta", "X-AMZ-META", "Accept",
		"a-", "A1", "zeta", "Content-Encoding", "x-amz"
	};
	static const char *const regions[] = {
		"us-east-1", "cn-north-1", "eu-central-2"
	};
	int			n = 0;
	int			extra = (int) pick(12);

	memset(c, 0, sizeof(*c));
	c->headers[n++] = (sigv4_header) {"Host", "dynamodb.example.com"};
	c->headers[n++] = (sigv4_header) {"X-Amz-Target",
	"DynamoDB_20120810.UpdateItem"};
	while (extra-- > 0)
	{
		random_value(c->values[extra], sizeof(c->values[0]));
		c->headers[n++] = (sigv4_header) {
			names[pick(COUNT_OF(names))], c->values[extra]};
	}
	while (pick(4) != 0 && strlen(c->body) < sizeof(c->body) - 600)
		random_value(c->body + strlen(c->body), 512);
	snprintf(c->secret, sizeof(c->secret), "secret/%u+%u", pick(3), pick(2));
	sigv4_amz_date((int64_t) pick(40000) * 86400 + pick(86400), c->amz_date);
	c->token = pick(3) != 0 ? "IQoJb3JpZ2luX2VjEJr//////////wEaCXVz+/==" : NULL;

	c->request = (sigv4_request) {
		.method = pick(4) != 0 ? "POST" : "GET",.path = "/",.query = "",
		.headers = c->headers,.header_count = n,
		.body = c->body,.body_len = strlen(c->body),
		.region = regions[pick(3)],.service = "dynamodb",
		.access_key_id = "AKIDEXAMPLE",.secret_access_key = c->secret,
		.amz_date = c->amz_date
	};
}

static void
write_case(FILE *file, const random_case *c)
{
	cJSON	   *json = cJSON_CreateObject();
	cJSON	   *headers = cJSON_AddArrayToObject(json, "headers");
	char	   *line;

	for (int i = 0; i < c->request.header_count; i++)
	{
		const char *pair[2] = {c->headers[i].name, c->headers[i].value};

		cJSON_AddItemToArray(headers, cJSON_CreateStringArray(pair, 2));
	}
	cJSON_AddStringToObject(json, "method", c->request.method);
	cJSON_AddStringToObject(json, "url", "https://dynamodb.example.com/");
	cJSON_AddStringToObject(json, "body", c->body);
	cJSON_AddStringToObject(json, "region", c->request.region);
	cJSON_AddStringToObject(json, "service", c->request.service);
	cJSON_AddStringToObject(json, "access_key_id", c->request.access_key_id);
	cJSON_AddStringToObject(json, "secret_access_key", c->secret);
	cJSON_AddStringToObject(json, "amz_date", c->amz_date);
	cJSON_AddItemToObject(json, "token", c->token == NULL ?
						  cJSON_CreateNull() : cJSON_CreateString(c->token));
	line = cJSON_PrintUnformatted(json);
	fprintf(file, "%s\n", line);
	free(line);
	cJSON_Delete(json);
}

/* Headers that botocore adds. */
static void
add_date_and_token(random_case *c)
{
	c->headers[c->request.header_count++] =
		(sigv4_header) {"X-Amz-Date", c->amz_date};
	if (c->token != NULL)
		c->headers[c->request.header_count++] =
			(sigv4_header) {"X-Amz-Security-Token", c->token};
}

/* Writes botocore's signatures; returns their number. */
static int
ask_botocore(const random_case *cases, char answers[][2048])
{
	char		input[] = "/tmp/test_sigv4_XXXXXX";
	FILE	   *file = fdopen(mkstemp(input), "w");
	FILE	   *botocore;
	int			i;

	assert_non_null(file);
	for (i = 0; i < BOTOCORE_COUNT; i++)
		write_case(file, &cases[i]);
	fclose(file);

	/* Through the environment, so that no path needs quoting. */
	setenv("SIGN_SCRIPT", TEST_DATA_DIR "/../aws/botocore_sign.py", 1);
	setenv("SIGN_INPUT", input, 1);
	botocore = popen("/usr/bin/python3 \"$SIGN_SCRIPT\" <\"$SIGN_INPUT\"", "r");
	assert_non_null(botocore);
	for (i = 0; i < BOTOCORE_COUNT; i++)
	{
		if (fgets(answers[i], 2048, botocore) == NULL)
			break;
		answers[i][strcspn(answers[i], "\n")] = '\0';
	}
	pclose(botocore);
	unlink(input);
	return i;
}

TEST(signs_like_botocore)
{
	static random_case cases[BOTOCORE_COUNT];
	static char answers[BOTOCORE_COUNT][2048];
	sigv4_key	key = {0};
	char		out[2048];

	random_state = 20261121;
	for (int i = 0; i < BOTOCORE_COUNT; i++)
		make_random_case(&cases[i]);
	assert_int_equal(ask_botocore(cases, answers), BOTOCORE_COUNT);
	for (int i = 0; i < BOTOCORE_COUNT; i++)
	{
		add_date_and_token(&cases[i]);
		assert_true(sigv4_sign(&cases[i].request, &key, out, sizeof(out)));
		assert_string_equal(out, answers[i]);
	}
	sigv4_key_wipe(&key);
}

/* ---- everything else ---- */

static const sigv4_header two_headers[] = {
	{"host", "example.amazonaws.com"},
	{"x-amz-date", "20150830T123600Z"}
};

static sigv4_request
plain_request(void)
{
	return (sigv4_request) {
		.method = "POST",.path = "/",.query = "",
		.headers = two_headers,.header_count = 2,
		.body = "{}",.body_len = 2,
		.region = "us-east-1",.service = "dynamodb",
		.access_key_id = "AKIDEXAMPLE",.secret_access_key = "one",
		.amz_date = "20150830T123600Z"
	};
}

/* A cached key gives the same signature as a fresh one. */
static void
check_reuse(const sigv4_request *request, sigv4_key *used)
{
	sigv4_key	fresh = {0};
	char		a[512];
	char		b[512];

	assert_true(sigv4_sign(request, used, a, sizeof(a)));
	assert_true(sigv4_sign(request, &fresh, b, sizeof(b)));
	assert_string_equal(a, b);
	sigv4_key_wipe(&fresh);
}

TEST(notices_that_a_kept_key_no_longer_fits)
{
	sigv4_request request = plain_request();
	sigv4_key	key = {0};

	check_reuse(&request, &key);
	check_reuse(&request, &key);
	request.secret_access_key = "two";
	check_reuse(&request, &key);
	request.amz_date = "20150831T000000Z";
	check_reuse(&request, &key);
	request.region = "us-west-2";
	check_reuse(&request, &key);
	request.service = "sts";
	check_reuse(&request, &key);
	sigv4_key_wipe(&key);
}

TEST(keeps_the_derived_key)
{
	sigv4_request request = plain_request();
	sigv4_key	key = {0};
	EVP_MAC_CTX *mac;
	char		derived[512];
	char		kept[512];

	assert_true(sigv4_sign(&request, &key, derived, sizeof(derived)));
	mac = key.mac;
	assert_string_equal(key.scope, "20150830/us-east-1/dynamodb/aws4_request");
	assert_int_equal(EVP_MAC_init(mac, (const unsigned char *) "x", 1, NULL), 1);
	assert_true(sigv4_sign(&request, &key, kept, sizeof(kept)));
	assert_ptr_equal(key.mac, mac);
	assert_string_not_equal(kept, derived);
	sigv4_key_wipe(&key);
}

TEST(gives_nothing_unless_all_of_it_fits)
{
	sigv4_request request = plain_request();
	sigv4_key	key = {0};
	char		whole[512];

	assert_true(sigv4_sign(&request, &key, whole, sizeof(whole)));
	for (size_t size = 0; size <= strlen(whole) + 1; size++)
	{
		char	   *out = malloc(size + 1);	/* not 0 bytes; ASan sees the rest */
		bool		ok;

		memset(out, 'x', size + 1);
		ok = sigv4_sign(&request, &key, out, size);
		assert_int_equal(ok, size == strlen(whole) + 1);
		if (ok)
			assert_string_equal(out, whole);
		else if (size > 0)
			assert_string_equal(out, "");
		assert_int_equal(out[size], 'x');
		free(out);
	}
	sigv4_key_wipe(&key);
}

TEST(refuses_what_it_cannot_hold)
{
	sigv4_request request = plain_request();
	sigv4_header many[65];
	sigv4_key	key = {0};
	char		text[1024];
	char		out[4096];

	memset(text, 'a', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';

	request.secret_access_key = text;
	assert_false(sigv4_sign(&request, &key, out, sizeof(out)));
	assert_string_equal(out, "");

	request = plain_request();
	request.region = text;
	assert_false(sigv4_sign(&request, &key, out, sizeof(out)));

	request = plain_request();
	request.amz_date = "20150830";
	assert_false(sigv4_sign(&request, &key, out, sizeof(out)));

	request = plain_request();
	for (int i = 0; i < 65; i++)
		many[i] = (sigv4_header) {"name", "value"};
	request.headers = many;
	request.header_count = 64;
	assert_true(sigv4_sign(&request, &key, out, sizeof(out)));
	request.header_count = 65;
	assert_false(sigv4_sign(&request, &key, out, sizeof(out)));
	sigv4_key_wipe(&key);
}

TEST(wipes_the_key)
{
	sigv4_request request = plain_request();
	sigv4_key	key = {0};
	const sigv4_key zero = {0};
	char		out[512];

	assert_true(sigv4_sign(&request, &key, out, sizeof(out)));
	sigv4_key_wipe(&key);
	assert_memory_equal(&key, &zero, sizeof(key));
}

TEST(writes_dates_in_utc)
{
	static const struct
	{
		int64_t		epoch_s;
		const char *text;
	}			cases[] = {
		{0, "19700101T000000Z"},
		{1440938160, "20150830T123600Z"},
		{1709210096, "20240229T123456Z"},
		{4102444799, "20991231T235959Z"},
		{-1, "19700101T000000Z"},
		{INT64_MAX, "99991231T235959Z"},
	};
	char		out[SIGV4_DATE_SIZE];

	setenv("TZ", "EST5", 1);
	tzset();
	for (size_t i = 0; i < COUNT_OF(cases); i++)
	{
		sigv4_amz_date(cases[i].epoch_s, out);
		assert_string_equal(out, cases[i].text);
	}
}
