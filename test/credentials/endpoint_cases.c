/*-------------------------------------------------------------------------
 *
 * endpoint_cases.c
 *	  Runs botocore's tests of endpoints: DynamoDB's, and those of the services that give
 *	  credentials.
 *
 * endpoint_cases DIR, where DIR is tests/functional/endpoint-rules of botocore's source.
 * Prints the sums, and the cases that have another result than they should; exits with 1
 * if there are any.
 *
 * A case is the parameters of a client, and its endpoint or an error.  Here, the parameters
 * are set by the environment.  Words of errors are each SDK's own, so a case that wants an
 * error accepts any.
 *
 *-------------------------------------------------------------------------
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cjson/cJSON.h>

#include "aws/aws.h"

#define MAX_REASONS 20

static const char *const services[] = {
	[AWS_DYNAMODB] = "dynamodb",[AWS_STS] = "sts",[AWS_SSO] = "sso",[AWS_SSO_OIDC] = "sso-oidc"
};

typedef enum verdict
{
	RIGHT,
	REFUSED,
	APART,
	FAILED
} verdict;

static const char *const verdict_names[] = {"right", "refused", "does not apply", "FAILED"};

/* Why a case is not simply right, and how often. */
static struct
{
	verdict		verdict;
	char		words[300];
	int			count;
}			reasons[MAX_REASONS];

static void
count_reason(verdict verdict, const char *words)
{
	int			i = 0;

	while (i < MAX_REASONS - 1 && reasons[i].count > 0 && strcmp(reasons[i].words, words) != 0)
		i++;
	reasons[i].verdict = verdict;
	snprintf(reasons[i].words, sizeof(reasons[i].words), "%.299s", words);
	reasons[i].count++;
}

static const cJSON *
member(const cJSON *object, const char *name)
{
	return cJSON_GetObjectItemCaseSensitive(object, name);
}

/* NULL if it is missing. */
static const char *
text_of(const cJSON *object, const char *name)
{
	const cJSON *value = member(object, name);

	if (cJSON_IsBool(value))
		return cJSON_IsTrue(value) ? "true" : "false";
	return cJSON_GetStringValue(value);
}

/* ---- the environment of a case ---- */

static const char *
get(void *arg, const char *name)
{
	static const struct
	{
		const char *variable;
		const char *param;
	}			names[] = {
		{"AWS_REGION", "Region"},
		{"AWS_ENDPOINT_URL", "Endpoint"},
		{"AWS_USE_FIPS_ENDPOINT", "UseFIPS"},
		{"AWS_USE_DUALSTACK_ENDPOINT", "UseDualStack"},
		{"AWS_ACCOUNT_ID_ENDPOINT_MODE", "AccountIdEndpointMode"},
	};
	const char *global = text_of(arg, "UseGlobalEndpoint");

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (strcmp(names[i].variable, name) == 0)
			return text_of(arg, names[i].param);
	if (global != NULL && strcmp(name, "AWS_STS_REGIONAL_ENDPOINTS") == 0)
		return strcmp(global, "true") == 0 ? "legacy" : "regional";
	return NULL;
}

static char *
read_file(void *arg, const char *path, size_t *len)
{
	(void) arg;
	(void) path;
	*len = 0;
	return calloc(1, 1);
}

/* ---- what is right ---- */

static bool
is_one_of(const char *text, const char *const *list)
{
	for (; *list != NULL; list++)
		if (strstr(text, *list) != NULL)
			return true;
	return false;
}

/* Why the case says nothing about ddblock, though it has another result here; or NULL. */
static const char *
does_not_apply(const char *wanted_url, const char *wanted_error, const char *mode,
			   const char *url)
{
	static const char *const account[] = {".ddb.", ".search-ddb.", NULL};
	static const char *const account_error[] = {"account ID", "AccountId", NULL};

	if (wanted_url != NULL && strcmp(mode, "preferred") == 0 && is_one_of(wanted_url, account))
		return strstr(url, "://dynamodb.") == NULL ? NULL :
			"an account-based endpoint, which is only preferred: ddblock uses the Region's";
	if (wanted_url != NULL && strstr(wanted_url, "://search-dynamodb") != NULL)
		return "an operation of search, which ddblock does not use";
	if (wanted_error != NULL && strcmp(mode, "preferred") == 0 &&
		is_one_of(wanted_error, account_error))
		return "an account ID that is invalid: ddblock does not use it";
	if (wanted_error != NULL && strstr(wanted_error, "override is not supported") != NULL)
		return "a dual-stack endpoint that is configured by its URL: ddblock uses what is configured";
	return NULL;
}

static verdict
judge(const cJSON *test, bool found, const char *url, const char *region, const char *words)
{
	const cJSON *expect = member(test, "expect");
	const cJSON *endpoint = member(expect, "endpoint");
	const cJSON *schemes = member(member(endpoint, "properties"), "authSchemes");
	const char *wanted_url = text_of(endpoint, "url");
	const char *wanted_error = text_of(expect, "error");
	const char *wanted_region = text_of(cJSON_GetArrayItem(schemes, 0), "signingRegion");
	const char *mode = text_of(member(test, "params"), "AccountIdEndpointMode");
	const char *reason;

	if (wanted_url == NULL && wanted_error == NULL)
		return FAILED;
	if (found && wanted_url != NULL && strcmp(url, wanted_url) == 0 &&
		(wanted_region == NULL || strcmp(region, wanted_region) == 0))
		return RIGHT;
	if (!found && wanted_error != NULL)
		return RIGHT;
	reason = found ? does_not_apply(wanted_url, wanted_error, mode != NULL ? mode : "", url) : words;
	if (reason == NULL)
		return FAILED;
	count_reason(found ? APART : REFUSED, reason);
	return found ? APART : REFUSED;
}

static void
run_case(aws_service service, const cJSON *test, int sums[4])
{
	static const aws_settings none;
	aws_environment env = {
		.arg = (void *) member(test, "params"),.get = get,.home = "/",.read_file = read_file
	};
	char		region[64];
	char		url[AWS_TEXT_SIZE] = "";
	char		words[1000];
	aws_profile profile;
	bool		found;
	verdict		verdict;

	aws_profile_open(&profile, &none, &env);
	found = aws_find_region(&profile, region, sizeof(region), words, sizeof(words)) == AWS_FOUND &&
		aws_find_endpoint(&profile, service, region, url, sizeof(url), words, sizeof(words));
	aws_profile_close(&profile);
	verdict = judge(test, found, url, region, words);
	sums[verdict]++;
	if (verdict == FAILED)
		printf("FAILED: %s: %s: %s\n", services[service], text_of(test, "documentation"),
			   found ? url : words);
}

static cJSON *
read_tests(const char *dir, const char *service)
{
	static char text[4 << 20];
	char		path[1000];
	FILE	   *file;
	cJSON	   *json;

	snprintf(path, sizeof(path), "%s/%s/endpoint-tests-1.json", dir, service);
	file = fopen(path, "r");
	json = file == NULL ? NULL : cJSON_ParseWithLength(text, fread(text, 1, sizeof(text), file));
	if (!cJSON_IsArray(member(json, "testCases")))
	{
		fprintf(stderr, "%s: no tests of endpoints\n", path);
		exit(2);
	}
	fclose(file);
	return json;
}

int
main(int argc, char **argv)
{
	static int	sums[4][4];
	int			failed = 0;

	if (argc != 2)
	{
		fprintf(stderr, "usage: endpoint_cases DIR\n");
		return 2;
	}
	for (int i = 0; i < 4; i++)
	{
		cJSON	   *json = read_tests(argv[1], services[i]);
		const cJSON *test;

		cJSON_ArrayForEach(test, member(json, "testCases"))
			run_case(i, test, sums[i]);
		cJSON_Delete(json);
		failed += sums[i][FAILED];
	}
	printf("| service | right | refused | does not apply | failed |\n|---|---|---|---|---|\n");
	for (int i = 0; i < 4; i++)
		printf("| %s | %d | %d | %d | %d |\n", services[i], sums[i][RIGHT], sums[i][REFUSED],
			   sums[i][APART], sums[i][FAILED]);
	printf("\n| cases | result | why |\n|---|---|---|\n");
	for (int i = 0; i < MAX_REASONS && reasons[i].count > 0; i++)
		printf("| %d | %s | %s |\n", reasons[i].count, verdict_names[reasons[i].verdict],
			   reasons[i].words);
	return failed > 0;
}
