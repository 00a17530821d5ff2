/*-------------------------------------------------------------------------
 *
 * aws_cases.c
 *	  Runs the AWS SDK for Rust's test data for credentials, case by case.
 *
 * aws_cases DIR, where DIR is aws-config/test-data of that SDK's source.  Prints a
 * table of all cases; exits with 1 if a case has another result than it should.
 *
 * A case is an environment, files, the HTTP traffic, and what comes of it.  Each
 * request must be the next one of the traffic: its method and URL, and the headers
 * that carry tokens.  Names of errors are each SDK's own, so a case that wants an
 * error accepts any; the table shows ours.
 *
 *-------------------------------------------------------------------------
 */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/wait.h>

#include <cjson/cJSON.h>

#include "aws/aws.h"

#define NOW_S INT64_C(1640000000)	/* December 2021 */

static const char *data;
static int	good;
static int	bad;
static int	apart;

/* Cases that have another result here, and why. */
static const struct
{
	const char *name;
	const char *reason;
}			exceptions[] = {
	{"imds-endpoint-tests: explicit endpoint override",
	"does not apply: an option of the SDK's interface, which ddblock does not have"},
	{"imds-endpoint-tests: explicit mode override",
	"does not apply: an option of the SDK's interface, which ddblock does not have"},
	{"assume-role-tests: SSO token profile selected",
	"does not apply: the profile leads to a token, and ddblock needs credentials; it refuses the profile"},
};

static const char *
exception_of(const char *name)
{
	for (size_t i = 0; i < sizeof(exceptions) / sizeof(exceptions[0]); i++)
		if (strcmp(exceptions[i].name, name) == 0)
			return exceptions[i].reason;
	return NULL;
}

static void
report(const char *name, bool as_wanted, const char *words)
{
	const char *reason = exception_of(name);
	const char *verdict = as_wanted ? "passed" : "FAILED";

	if (reason != NULL)
	{
		verdict = "-";
		words = reason;
		apart++;
	}
	else if (as_wanted)
		good++;
	else
		bad++;
	printf("| %s | %s | %s |\n", name, verdict, words);
}

static char *
slurp(const char *path, size_t *len)
{
	FILE	   *file = fopen(path, "r");
	char	   *text = calloc(1, 1 << 20);

	*len = 0;
	if (file == NULL)
	{
		free(text);
		return NULL;
	}
	*len = fread(text, 1, (1 << 20) - 1, file);
	fclose(file);
	return text;
}

static cJSON *
read_json(const char *dir, const char *name)
{
	char		path[1000];
	size_t		len;
	char	   *text;
	cJSON	   *json;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	text = slurp(path, &len);
	json = text != NULL ? cJSON_ParseWithLength(text, len) : NULL;
	free(text);
	return json;
}

static const cJSON *
member(const cJSON *object, const char *name)
{
	return cJSON_GetObjectItemCaseSensitive(object, name);
}

static const char *
text_of(const cJSON *object, const char *name)
{
	const char *text = cJSON_GetStringValue(member(object, name));

	return text != NULL ? text : "";
}

/* ---- the world of a case ---- */

typedef struct world
{
	const cJSON *variables;
	const char *dir;			/* its files are in fs/, or NULL */
	const cJSON *files;			/* ... or here */
	const char *config;			/* ... or the text of the config file */
	bool		profile_only;	/* the case is about profiles alone */
} world;

static const char *
get(void *arg, const char *name)
{
	const world *w = arg;

	if (w->profile_only && strncmp(name, "AWS_ACCESS_KEY", 14) == 0)
		return NULL;
	if (w->profile_only && strncmp(name, "AWS_SECRET", 10) == 0)
		return NULL;
	if (w->profile_only && strcmp(name, "AWS_EC2_METADATA_DISABLED") == 0)
		return "true";
	return cJSON_GetStringValue(member(w->variables, name));
}

static char *
read_file(void *arg, const char *path, size_t *len)
{
	const world *w = arg;
	char		full[1500];
	const char *text = w->files != NULL ?
		cJSON_GetStringValue(member(w->files, path)) : NULL;

	if (w->config != NULL && strcmp(path, "/home/.aws/config") == 0)
		text = w->config;
	if (text != NULL)
	{
		*len = strlen(text);
		return strdup(text);
	}
	errno = ENOENT;
	if (w->dir == NULL)
		return NULL;
	snprintf(full, sizeof(full), "%s/fs%s", w->dir, path);
	return slurp(full, len);
}

static aws_environment
environment(world *w)
{
	return (aws_environment) {
		.arg = w,.get = get,.home = get(w, "HOME") != NULL ? get(w, "HOME") : "/home",
		.read_file = read_file
	};
}

/* ---- traffic ---- */

typedef struct exchange
{
	const cJSON *request;
	int			connection;
	int			status;
	char	   *body;
} exchange;

static exchange exchanges[32];
static int	exchange_count;

static void
take_event(const cJSON *event)
{
	const cJSON *action = member(event, "action");
	const cJSON *request = member(member(action, "Request"), "request");
	const cJSON *response = member(member(member(action, "Response"), "response"), "Ok");
	const cJSON *body = member(action, "Data");
	int			connection = (int) cJSON_GetNumberValue(member(event, "connection_id"));

	if (request != NULL)
		exchanges[exchange_count++] = (exchange) {.request = request,.connection = connection};
	for (int i = exchange_count - 1; i >= 0; i--)
	{
		if (exchanges[i].connection != connection)
			continue;
		if (response != NULL)
			exchanges[i].status = (int) cJSON_GetNumberValue(member(response, "status"));
		if (body != NULL && strcmp(text_of(body, "direction"), "Response") == 0)
			exchanges[i].body = strdup(text_of(member(body, "data"), "Utf8"));
		return;
	}
}

static bool
same_url(const char *wanted, const char *ours)
{
	char		copy[4096];
	char	   *query;
	char	   *rest = NULL;
	size_t		len = strlen(wanted);

	if (strncmp(wanted, ours, len) == 0 &&
		(ours[len] == '\0' || strcmp(ours + len, "/") == 0))
		return true;
	/* The same parts of a query in another order. */
	snprintf(copy, sizeof(copy), "%s", wanted);
	query = strchr(copy, '?');
	if (query == NULL || strncmp(copy, ours, query + 1 - copy) != 0 || strlen(ours) != len)
		return false;
	for (char *part = strtok_r(query + 1, "&", &rest); part != NULL;
		 part = strtok_r(NULL, "&", &rest))
		if (strstr(ours, part) == NULL)
			return false;
	return true;
}

/* Does a header with a token have the recorded value? */
static bool
same_headers(const cJSON *request, const aws_errand *errand)
{
	static const char *const names[] = {
		"x-aws-ec2-metadata-token", "x-aws-ec2-metadata-token-ttl-seconds",
		"x-amz-sso_bearer_token", "accept"
	};
	bool		same = true;

	for (size_t n = 0; n < sizeof(names) / sizeof(names[0]); n++)
	{
		const char *wanted = cJSON_GetStringValue(cJSON_GetArrayItem(member(member(request, "headers"), names[n]), 0));
		size_t		len = strlen(names[n]);
		bool		found = wanted == NULL || strcmp(names[n], "accept") == 0;

		for (int i = 0; i < errand->header_count && !found; i++)
			found = strncasecmp(errand->headers[i], names[n], len) == 0 &&
				strcmp(errand->headers[i] + len, ": ") != 0 &&
				strcmp(errand->headers[i] + len + 2, wanted) == 0;
		same = same && found;
	}
	return same;
}

static void
run_command(aws_fetch *fetch)
{
	FILE	   *out = popen(fetch->errand.body, "r");
	char		output[65536] = "";
	size_t		len = fread(output, 1, sizeof(output) - 1, out);
	int			status = pclose(out);
	aws_result	result = {.done = true,.status = WEXITSTATUS(status),.body = output,.len = len};

	aws_fetch_result(fetch, &result, NOW_S);
}

/* False, with words, if the request is not the next one. */
static bool
replay(aws_fetch *fetch, int number, char *words, size_t size)
{
	const exchange *e = &exchanges[number < exchange_count ? number : exchange_count - 1];
	aws_result	result = {.problem = "no more traffic",.body = ""};

	if (exchange_count == 0 ||
		strcmp(text_of(e->request, "method"), fetch->errand.method) != 0 ||
		!same_url(text_of(e->request, "uri"), fetch->errand.url) ||
		!same_headers(e->request, &fetch->errand))
	{
		snprintf(words, size, "unexpected request: %s %s", fetch->errand.method, fetch->errand.url);
		return false;
	}
	if (number < exchange_count)
	{
		result.done = true;
		result.status = e->status;
		result.body = e->body != NULL ? e->body : "";
		result.len = strlen(result.body);
	}
	aws_fetch_result(fetch, &result, NOW_S);
	return true;
}

static bool
make_plan(const aws_settings *settings, const aws_environment *env, aws_plan *plan, char *words,
		  size_t size)
{
	aws_profile profile;
	aws_found	result;

	aws_profile_open(&profile, settings, env);
	result = aws_make_plan(&profile, plan, words, size);
	aws_profile_close(&profile);
	return result == AWS_FOUND;
}

static bool
fetch_all(const aws_environment *env, char *words, size_t size, aws_fetch *fetch)
{
	static const aws_settings none;
	int			number = 0;

	if (!make_plan(&none, env, &fetch->plan, words, size))
		return false;
	aws_fetch_begin(fetch);
	for (;;)
	{
		switch (aws_fetch_next(fetch, env, NOW_S))
		{
			case AWS_STEP_HTTP:
				if (!replay(fetch, number++, words, size))
				{
					snprintf(fetch->found.access_key_id, 10, "BROKEN");
					return true;
				}
				break;
			case AWS_STEP_PROCESS:
				run_command(fetch);
				break;
			case AWS_STEP_DONE:
				return true;
			case AWS_STEP_FAILED:
				snprintf(words, size, "%s", fetch->error);
				return false;
		}
	}
}

static bool
as_wanted(const cJSON *wanted, const aws_credentials *found)
{
	const cJSON *expiry = member(wanted, "expiry");

	return strcmp(text_of(wanted, "access_key_id"), found->access_key_id) == 0 &&
		strcmp(text_of(wanted, "secret_access_key"), found->secret_access_key) == 0 &&
		strcmp(text_of(wanted, "session_token"), found->session_token) == 0 &&
		(expiry == NULL || cJSON_GetNumberValue(expiry) == (double) found->expires_s);
}

/* What failed, without what was tried before. */
static const char *
last_words(char *words)
{
	char	   *before = strstr(words, "; before it: ");

	if (before != NULL)
		*before = '\0';
	return words;
}

static void
run_case(const char *set, const char *name)
{
	static aws_fetch fetch;
	char		dir[900];
	char		title[500];
	char		words[4000] = "";
	cJSON	   *variables;
	cJSON	   *traffic;
	cJSON	   *test;
	const cJSON *event;
	const cJSON *wanted;
	world		w;
	aws_environment env;
	bool		found;

	snprintf(dir, sizeof(dir), "%s/%s/%s", data, set, name);
	snprintf(title, sizeof(title), "%s: %s", set, name);
	variables = read_json(dir, "env.json");
	traffic = read_json(dir, "http-traffic.json");
	test = read_json(dir, "test-case.json");
	w = (world) {
		.variables = variables,.dir = dir,.profile_only = strcmp(set, "profile-provider") == 0
	};
	env = environment(&w);
	exchange_count = 0;
	cJSON_ArrayForEach(event, member(traffic, "events"))
		take_event(event);
	memset(&fetch, 0, sizeof(fetch));
	found = fetch_all(&env, words, sizeof(words), &fetch);
	wanted = member(member(test, "result"), "Ok");
	if (found && wanted != NULL && as_wanted(wanted, &fetch.found))
		report(title, true, fetch.found.source);
	else if (found)
		report(title, false, words[0] != '\0' ? words : fetch.found.access_key_id);
	else
		report(title, wanted == NULL, last_words(words));
	for (int i = 0; i < exchange_count; i++)
		free(exchanges[i].body);
	cJSON_Delete(variables);
	cJSON_Delete(traffic);
	cJSON_Delete(test);
}

static int
is_visible(const struct dirent *entry)
{
	return entry->d_name[0] != '.';
}

static void
run_set(const char *set)
{
	char		path[900];
	struct dirent **names;
	int			count;

	snprintf(path, sizeof(path), "%s/%s", data, set);
	count = scandir(path, &names, is_visible, alphasort);
	if (count <= 0)
	{
		report(set, false, "no such test data");
		return;
	}
	for (int i = 0; i < count; i++)
	{
		run_case(set, names[i]->d_name);
		free(names[i]);
	}
	free(names);
}

/* ---- URLs of containers and of the instance's metadata ---- */

static void
run_urls(const char *folder, const char *set, bool container)
{
	static aws_plan plan;
	static const aws_settings none;
	char		dir[900];
	char		file[100];
	char		title[500];
	cJSON	   *all;
	const cJSON *test;

	snprintf(dir, sizeof(dir), "%s%s", data, folder);
	snprintf(file, sizeof(file), "%s.json", set);
	all = read_json(dir, file);
	if (!cJSON_IsArray(member(all, "tests")))
		report(set, false, "no such test data");
	cJSON_ArrayForEach(test, member(all, "tests"))
	{
		const char *wanted = cJSON_GetStringValue(member(member(test, "result"), "Ok"));
		cJSON	   *variables = cJSON_Duplicate(member(test, "env"), true);
		world		w = {.variables = variables,.files = member(test, "fs")};
		aws_environment env = environment(&w);
		char		words[4000];
		char		url[AWS_TEXT_SIZE + 30] = "";
		bool		found;

		/* So that the container is the last source. */
		if (container)
			cJSON_AddStringToObject(variables, "AWS_EC2_METADATA_DISABLED", "true");
		found = make_plan(&none, &env, &plan, words, sizeof(words));
		if (found && plan.fetcher == &aws_fetch_container)
			snprintf(url, sizeof(url), "%s", plan.from.container.url);
		else if (found && plan.fetcher == &aws_fetch_metadata)
			snprintf(url, sizeof(url), "%s/latest/api/token", plan.from.metadata.url);
		snprintf(title, sizeof(title), "%s: %s", set, text_of(test, "docs"));
		if (found)
			report(title, wanted != NULL && strcmp(url, wanted) == 0, url);
		else
			report(title, wanted == NULL, last_words(words));
		cJSON_Delete(variables);
	}
	cJSON_Delete(all);
}

/* ---- chains of profiles ---- */

static void
write_sections(const char *kind, const cJSON *sections, char *config, size_t size)
{
	const cJSON *section;
	const cJSON *property;

	cJSON_ArrayForEach(section, sections)
	{
		size_t		used = strlen(config);

		snprintf(config + used, size - used, "[%s %s]\n", kind, section->string);
		cJSON_ArrayForEach(property, section)
		{
			used = strlen(config);
			snprintf(config + used, size - used, "%s = %s\n", property->string,
					 property->valuestring);
		}
	}
}

static bool
same_base(const cJSON *wanted, const aws_plan *plan)
{
	const cJSON *keys = member(wanted, "AccessKey");
	const cJSON *web = member(wanted, "WebIdentityToken");
	const cJSON *sso = member(wanted, "Sso");

	if (keys != NULL)
		return plan->fetcher == NULL &&
			strcmp(text_of(keys, "access_key_id"), plan->keys.access_key_id) == 0 &&
			strcmp(text_of(keys, "secret_access_key"), plan->keys.secret_access_key) == 0;
	if (web != NULL)
		return plan->fetcher == &aws_fetch_web_identity &&
			strcmp(text_of(web, "role_arn"), plan->from.web.role.arn) == 0 &&
			strcmp(text_of(web, "web_identity_token_file"), plan->from.web.token_file) == 0 &&
			(member(web, "role_session_name") == NULL ||
			 strcmp(text_of(web, "role_session_name"), plan->from.web.role.session_name) == 0);
	if (sso != NULL)
		return plan->fetcher == &aws_fetch_sso &&
			strcmp(text_of(sso, "sso_account_id"), plan->from.sso.account_id) == 0 &&
			strcmp(text_of(sso, "sso_role_name"), plan->from.sso.role_name) == 0 &&
			strstr(plan->from.sso.url, text_of(sso, "sso_region")) != NULL;
	return strcmp(text_of(wanted, "NamedSource"), "Ec2InstanceMetadata") == 0 &&
		plan->fetcher == &aws_fetch_metadata;
}

static bool
same_chain(const cJSON *wanted, const aws_plan *plan)
{
	if (!same_base(cJSON_GetArrayItem(wanted, 0), plan) ||
		cJSON_GetArraySize(wanted) != plan->role_count + 1)
		return false;
	for (int i = 0; i < plan->role_count; i++)
	{
		const cJSON *role = member(cJSON_GetArrayItem(wanted, i + 1), "AssumeRole");

		if (strcmp(text_of(role, "role_arn"), plan->roles[i].arn) != 0 ||
			strcmp(text_of(role, "external_id"), plan->roles[i].external_id) != 0 ||
			(member(role, "role_session_name") != NULL &&
			 strcmp(text_of(role, "role_session_name"), plan->roles[i].session_name) != 0))
			return false;
	}
	return true;
}

static void
run_chains(void)
{
	static aws_plan plan;
	cJSON	   *all = read_json(data, "assume-role-tests.json");
	cJSON	   *variables = cJSON_Parse("{\"AWS_EC2_METADATA_DISABLED\":\"false\",\"HOME\":\"/home\"}");
	const cJSON *test;
	char		title[500];

	if (!cJSON_IsArray(all))
		report("assume-role-tests", false, "no such test data");
	cJSON_ArrayForEach(test, all)
	{
		const cJSON *input = member(test, "input");
		const cJSON *wanted = member(member(test, "output"), "ProfileChain");
		aws_settings settings = {.profile = text_of(input, "selected_profile"),.region = "us-east-1"};
		char		config[4000] = "";
		char		words[4000];
		world		w = {.variables = variables,.config = config};
		aws_environment env = environment(&w);
		bool		found;

		write_sections("profile", member(input, "profiles"), config, sizeof(config));
		write_sections("sso-session", member(input, "sso_sessions"), config, sizeof(config));
		/* A profile without credentials is an error only if nothing comes after it. */
		cJSON_ReplaceItemInObject(variables, "AWS_EC2_METADATA_DISABLED",
								  cJSON_CreateString(strstr(config, "credential_source = Ec2") ? "false" : "true"));
		found = make_plan(&settings, &env, &plan, words, sizeof(words));
		snprintf(title, sizeof(title), "assume-role-tests: %s", text_of(test, "docs"));
		if (found)
			report(title, wanted != NULL && same_chain(wanted, &plan), plan.keys.source);
		else
			report(title, wanted == NULL, last_words(words));
	}
	cJSON_Delete(variables);
	cJSON_Delete(all);
}

int
main(int argc, char **argv)
{
	if (argc != 2)
	{
		fprintf(stderr, "usage: aws_cases DIR\n");
		return 2;
	}
	data = argv[1];
	printf("| case | result | source, or the end of the error |\n|---|---|---|\n");
	run_set("default-credential-provider-chain");
	run_set("profile-provider");
	run_urls("", "ecs-tests", true);
	run_urls("/imds-config", "imds-endpoint-tests", false);
	run_chains();
	printf("\n%d passed, %d failed, %d do not apply\n", good, bad, apart);
	return bad > 0 || good == 0;
}
