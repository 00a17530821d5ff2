/*-------------------------------------------------------------------------
 *
 * test_credential_chain.c
 *	  aws/credential_chain.c, with environment variables and files from two tables.
 *
 *-------------------------------------------------------------------------
 */
#include <errno.h>

#include "../unit.h"
#include "aws/aws.h"

#define CREDENTIALS "/home/pg/.aws/credentials"
#define CONFIG "/home/pg/.aws/config"
#define LAST "instance metadata: AWS_EC2_METADATA_DISABLED is true"
#define CONTAINER \
	"container AWS_CONTAINER_CREDENTIALS_RELATIVE_URI, " \
	"AWS_CONTAINER_CREDENTIALS_FULL_URI: not set"
#define KEYS(id, secret) "aws_access_key_id = " id "\naws_secret_access_key = " secret "\n"

/* What a file has that exists, but that we may not read. */
static const char UNREADABLE[] = "";

typedef struct pair
{
	const char *name;
	const char *value;
} pair;

typedef struct world
{
	pair		variables[16];
	pair		files[4];
	bool		homeless;
} world;

static const char *
get(void *arg, const char *name)
{
	const world *w = arg;

	for (int i = 0; i < 16 && w->variables[i].name != NULL; i++)
		if (strcmp(w->variables[i].name, name) == 0)
			return w->variables[i].value;
	return strcmp(name, "AWS_EC2_METADATA_DISABLED") == 0 ? "true" : NULL;
}

static char *
read_file(void *arg, const char *path, size_t *len)
{
	const world *w = arg;
	char	   *text;

	errno = ENOENT;
	for (int i = 0; i < 4 && w->files[i].name != NULL; i++)
	{
		if (strcmp(w->files[i].name, path) != 0)
			continue;
		if (w->files[i].value == UNREADABLE)
		{
			errno = EACCES;
			return NULL;
		}
		*len = strlen(w->files[i].value);
		text = malloc(*len + 1);	/* not malloc(0); without a NUL */
		memcpy(text, w->files[i].value, *len);
		return text;
	}
	return NULL;
}

static aws_environment
environment(const world *w)
{
	return (aws_environment) {
		.arg = (void *) w,.get = get,.home = w->homeless ? NULL : "/home/pg",.read_file = read_file
	};
}

static const aws_settings none;
static aws_plan plan;
static aws_credentials found;
static aws_found result;
static char error[2048];
static char words[1024];		/* of Region and endpoint */

/* ---- with a profile that is opened for this, until the next one is ---- */

static const aws_profile *
open_profile(const aws_settings *settings, const aws_environment *env)
{
	static aws_profile profile;

	aws_profile_close(&profile);
	aws_profile_open(&profile, settings, env);
	return &profile;
}

static aws_found
make_region_plan(const aws_environment *env)
{
	return result = aws_make_region_plan(open_profile(&none, env), &plan, words, sizeof(words));
}

static aws_found
find_region(const aws_settings *settings, const aws_environment *env, char *region, size_t size)
{
	return aws_find_region(open_profile(settings, env), region, size, words, sizeof(words));
}

static bool
find_endpoint(const aws_settings *settings, const aws_environment *env, aws_service service,
			  char *region, char *url, size_t size)
{
	return aws_find_endpoint(open_profile(settings, env), service, region, url, size, words,
							 sizeof(words));
}

static bool
find_ca_file(const aws_settings *settings, const aws_environment *env, char *path, size_t size)
{
	return aws_find_ca_file(open_profile(settings, env), path, size, words, sizeof(words));
}

static aws_found
make_plan(const aws_settings *settings, const aws_environment *env, char *why, size_t size)
{
	return result = aws_make_plan(open_profile(settings, env), &plan, why, size);
}

static bool
find(const aws_settings *settings, const world *w)
{
	aws_environment env = environment(w);

	(void) make_plan(settings != NULL ? settings : &none, &env, error, sizeof(error));
	found = plan.keys;
	return result == AWS_FOUND;
}

static void
assert_found(const aws_settings *settings, const world *w,
			 const char *access_key_id, const char *secret_access_key,
			 const char *session_token, const char *source)
{
	if (!find(settings, w))
		fail_msg("%s", error);
	assert_string_equal(found.access_key_id, access_key_id);
	assert_string_equal(found.secret_access_key, secret_access_key);
	assert_string_equal(found.session_token, session_token);
	assert_string_equal(found.source, source);
	assert_null(plan.fetcher);
	assert_int_equal(plan.role_count, 0);
	assert_string_equal(error, "");
}

static void
assert_refused(const aws_settings *settings, const world *w,
			   const char *message)
{
	static const aws_plan zero;

	assert_false(find(settings, w));
	assert_string_equal(error, message);
	assert_memory_equal(&plan, &zero, sizeof(plan));
}

/* Like assert_refused(), for the end of what the message says of the last source. */
static void
assert_refused_with(const aws_settings *settings, const world *w,
					const char *end)
{
	char	   *before;

	assert_false(find(settings, w));
	before = strstr(error, "; before it: ");
	if (before != NULL)
		*before = '\0';
	if (strlen(error) < strlen(end) ||
		strcmp(error + strlen(error) - strlen(end), end) != 0)
		fail_msg("\"%s\" does not end in \"%s\"", error, end);
	assert_null(strstr(error, "HIDDEN"));
	assert_string_equal(found.secret_access_key, "");
}

/* NULL: it is refused. */
static void
assert_service_in(const aws_settings *settings, const world *w, aws_service service,
				  const char *region, const char *wanted)
{
	aws_environment env = environment(w);
	char		signed_for[64];
	char		url[128];
	bool		ok;

	snprintf(signed_for, sizeof(signed_for), "%s", region);
	ok = find_endpoint(settings, &env, service, signed_for, url, sizeof(url));
	if (!ok && wanted != NULL)
		fail_msg("%s", words);
	assert_int_equal(ok, wanted != NULL);
	assert_string_equal(url, wanted != NULL ? wanted : "");
	if (service != AWS_DYNAMODB || strcmp(region, "local") != 0)
		assert_string_equal(signed_for, region);
}

static void
assert_endpoint(const aws_settings *settings, const world *w, const char *wanted)
{
	assert_service_in(settings, w, AWS_DYNAMODB, "us-east-1", wanted);
}

/* ---- which source ---- */

static const world everything = {
	.variables = {
		{"AWS_ACCESS_KEY_ID", "ENVKEY"},
		{"AWS_SECRET_ACCESS_KEY", "ENVHIDDEN"},
		{"AWS_SESSION_TOKEN", "ENVTOKEN"},
	},
	.files = {
		{CREDENTIALS, "[default]\n" KEYS("FILEKEY", "FILEHIDDEN")
			"[work]\n" KEYS("WORKKEY", "WORKHIDDEN")},
	},
};

TEST(settings_win_over_the_environment)
{
	const aws_settings settings = {
		.access_key_id = "SETKEY",.secret_access_key = "SETHIDDEN"
	};

	assert_found(&settings, &everything, "SETKEY", "SETHIDDEN", "", "settings");
}

TEST(the_environment_wins_over_the_files)
{
	const aws_settings empty = {"", "", "", "", "", "", ""};

	assert_found(NULL, &everything, "ENVKEY", "ENVHIDDEN", "ENVTOKEN",
				 "environment");
	assert_found(&empty, &everything, "ENVKEY", "ENVHIDDEN", "ENVTOKEN",
				 "environment");
}

TEST(a_token_may_have_its_old_name)
{
	world		w = {
		.variables = {{"AWS_ACCESS_KEY_ID", "A"}, {"AWS_SECRET_ACCESS_KEY", "S"},
			{"AWS_SECURITY_TOKEN", "OLD"}},
		.files = {{CREDENTIALS, "[default]\n" KEYS("B", "SB") "aws_security_token = OLDB\n"}},
	};

	assert_true(find(NULL, &w));
	assert_string_equal(plan.keys.session_token, "OLD");
	w.variables[3] = (pair) {"AWS_SESSION_TOKEN", "NEW"};
	assert_true(find(NULL, &w));
	assert_string_equal(plan.keys.session_token, "NEW");
	memset(w.variables, 0, sizeof(w.variables));
	assert_true(find(NULL, &w));
	assert_string_equal(plan.keys.session_token, "OLDB");
	w.files[0].value = "[default]\n" KEYS("B", "SB") "aws_security_token = OLDB\naws_session_token = NEWB\n";
	assert_true(find(NULL, &w));
	assert_string_equal(plan.keys.session_token, "NEWB");
}

TEST(the_profile_setting_wins_over_the_environment)
{
	const aws_settings settings = {.profile = "work"};

	assert_found(&settings, &everything, "WORKKEY", "WORKHIDDEN", "",
				 "profile \"work\" in " CREDENTIALS);
}

TEST(names_all_sources_if_none_has_credentials)
{
	const world empty = {0};
	const world no_keys = {
		.files = {
			{CREDENTIALS, "[other]\n"},
			{CONFIG, "[default]\nregion = us-east-1\n"}
		},
	};

	assert_refused(NULL, &empty,
				   LAST "; before it: settings ddblock.access_key_id: not set; "
				   "environment AWS_ACCESS_KEY_ID: not set; "
				   "web identity AWS_WEB_IDENTITY_TOKEN_FILE: not set; "
				   "profile \"default\" in /home/pg/.aws/credentials: "
				   "file not found; "
				   "profile \"default\" in /home/pg/.aws/config: "
				   "file not found; " CONTAINER);
	assert_refused(NULL, &no_keys,
				   LAST "; before it: settings ddblock.access_key_id: not set; "
				   "environment AWS_ACCESS_KEY_ID: not set; "
				   "web identity AWS_WEB_IDENTITY_TOKEN_FILE: not set; "
				   "profile \"default\" in /home/pg/.aws/credentials: "
				   "no such profile; profile \"default\" in /home/pg/.aws/config "
				   "aws_access_key_id: not set; " CONTAINER);
}

TEST(half_configured_sources_are_refused)
{
	const aws_settings key_only = {.access_key_id = "SETKEY"};
	const aws_settings secret_only = {.secret_access_key = "SETHIDDEN"};
	const aws_settings token_only = {.session_token = "SETHIDDEN"};
	const world environment_half = {
		.variables = {{"AWS_ACCESS_KEY_ID", "ENVKEY"}},
		.files = {everything.files[0]},
	};
	const world file_half = {
		.files = {
			{CREDENTIALS, "[default]\naws_access_key_id = A\n"
			"aws_secret_access_key =\n"},
			{CONFIG, "[default]\n" KEYS("B", "HIDDEN")},
		},
	};

	assert_refused(&key_only, &everything,
				   "settings: ddblock.access_key_id is set "
				   "but ddblock.secret_access_key is not");
	assert_refused_with(&secret_only, &everything,
						"settings: ddblock.secret_access_key is set "
						"but ddblock.access_key_id is not");
	assert_refused_with(&token_only, &everything,
						"settings: ddblock.session_token is set "
						"but ddblock.access_key_id is not");
	assert_refused_with(NULL, &environment_half,
						"environment: AWS_ACCESS_KEY_ID is set "
						"but AWS_SECRET_ACCESS_KEY is not");
	assert_refused_with(NULL, &file_half,
						"profile \"default\" in /home/pg/.aws/credentials: "
						"aws_access_key_id is set "
						"but aws_secret_access_key is not");
}

/* ---- which profile, which file ---- */

TEST(chooses_the_profile)
{
	const aws_settings settings = {.profile = "a"};
	world		w = {
		.variables = {{"AWS_PROFILE", "b"}, {"AWS_DEFAULT_PROFILE", "c"}},
		.files = {
			{CREDENTIALS,
				"[a]\naws_access_key_id=A\naws_secret_access_key=S\n"
				"[b]\naws_access_key_id=B\naws_secret_access_key=S\n"
				"[c]\naws_access_key_id=C\naws_secret_access_key=S\n"
			"[default]\naws_access_key_id=D\naws_secret_access_key=S\n"},
		},
	};

	assert_found(&settings, &w, "A", "S", "", "profile \"a\" in " CREDENTIALS);
	assert_found(NULL, &w, "B", "S", "", "profile \"b\" in " CREDENTIALS);
	w.variables[0].value = "";
	assert_found(NULL, &w, "C", "S", "", "profile \"c\" in " CREDENTIALS);
	w.variables[1].value = NULL;
	assert_found(NULL, &w, "D", "S", "", "profile \"default\" in " CREDENTIALS);
}

TEST(a_named_profile_must_exist)
{
	const aws_settings settings = {.profile = "gone"};
	const world by_variable = {
		.variables = {{"AWS_PROFILE", "default"}},
		.files = {{CONFIG, "[profile other]\n"}},
	};

	assert_refused_with(&settings, &everything,
						"profile \"gone\" in /home/pg/.aws/credentials: no such "
						"profile, in /home/pg/.aws/config: file not found");
	assert_false(find(&settings, &everything));
	assert_non_null(strstr(error, "environment: not used, because ddblock.profile is set"));
	assert_refused_with(NULL, &by_variable,
						"profile \"default\" in /home/pg/.aws/credentials: file "
						"not found, in /home/pg/.aws/config: no such "
						"profile");
}

TEST(the_credentials_file_wins_over_the_config_file)
{
	world		w = {
		.files = {
			{CREDENTIALS, "[default]\n" KEYS("A", "SA")},
			{CONFIG, "[default]\n" KEYS("B", "SB") "aws_session_token = TB\n"},
		},
	};

	assert_found(NULL, &w, "A", "SA", "", "profile \"default\" in " CREDENTIALS);
	w.files[0].value = "[other]\n";
	assert_found(NULL, &w, "B", "SB", "TB", "profile \"default\" in " CONFIG);
	w.files[0].name = "/elsewhere";
	assert_found(NULL, &w, "B", "SB", "TB", "profile \"default\" in " CONFIG);
}

TEST(each_file_names_profiles_its_own_way)
{
	const aws_settings settings = {.profile = "a"};
	world		w = {
		.files = {
			{CREDENTIALS, "[profile a]\n" KEYS("WRONG", "S")},
			{CONFIG, "[a]\n" KEYS("WRONG", "S") "[profile a]\n"
			KEYS("RIGHT", "S")},
		},
	};

	assert_found(&settings, &w, "RIGHT", "S", "", "profile \"a\" in " CONFIG);
	w.files[1].value = "[default]\n" KEYS("WRONG", "S") "[profile default]\n"
		KEYS("RIGHT", "S");
	assert_found(NULL, &w, "RIGHT", "S", "", "profile \"default\" in " CONFIG);
}

TEST(finds_the_files)
{
	const char *keys = "[default]\n" KEYS("A", "S");
	const char *config_keys = "[default]\n" KEYS("B", "S");
	const world moved = {
		.variables = {{"AWS_SHARED_CREDENTIALS_FILE", "/etc/keys"}},
		.files = {{"/etc/keys", keys}, {CREDENTIALS, config_keys}},
	};
	const world moved_config = {
		.variables = {{"AWS_CONFIG_FILE", "~/x"}},
		.files = {{"/home/pg/x", config_keys}},
	};
	const world no_home = {
		.homeless = true,
		.files = {{"/.aws/credentials", keys}, {"~/.aws/credentials", keys}},
	};

	assert_found(NULL, &moved, "A", "S", "", "profile \"default\" in /etc/keys");
	assert_string_equal(found.file, "/etc/keys");
	assert_found(NULL, &moved_config, "B", "S", "", "profile \"default\" in /home/pg/x");
	assert_false(find(NULL, &no_home));
	assert_non_null(strstr(error, "profile \"default\" in ~/.aws/credentials: file not found; "
						   "profile \"default\" in ~/.aws/config: file not found"));
	assert_int_equal(result, AWS_NOT_HERE);
}

/* What it says could choose another store, or another account. */
TEST(a_file_that_cannot_be_read_is_not_absent)
{
	const struct
	{
		world		w;
		const char *why;
	}			cases[] = {
		{{.files = {{CONFIG, UNREADABLE}}}, CONFIG " cannot be read: Permission denied"},
		{{.files = {{CREDENTIALS, UNREADABLE}}}, CREDENTIALS " cannot be read: Permission denied"},
		{{.variables = {{"AWS_CONFIG_FILE", "/etc/aws"}}},
			"/etc/aws (AWS_CONFIG_FILE) cannot be read: No such file or directory"},
		{{.variables = {{"AWS_SHARED_CREDENTIALS_FILE", "/etc/aws"}}},
			"/etc/aws (AWS_SHARED_CREDENTIALS_FILE) cannot be read: "
		"No such file or directory"},
	};
	const aws_settings by_setting = {.endpoint_url = "http://set"};

	for (size_t i = 0; i < COUNT_OF(cases); i++)
	{
		aws_environment env = environment(&cases[i].w);
		char		text[300];

		assert_refused_with(NULL, &cases[i].w, cases[i].why);
		assert_int_equal(result, AWS_BROKEN);
		assert_int_equal(find_region(&none, &env, text, sizeof(text)),
						 AWS_BROKEN);
		assert_non_null(strstr(words, cases[i].why));
		assert_endpoint(&none, &cases[i].w, NULL);
		assert_non_null(strstr(words, cases[i].why));
		assert_endpoint(&by_setting, &cases[i].w, "http://set");
	}
}

/* ---- what a profile names instead of keys ---- */

#define ROLE "role_arn = arn:aws:iam::1:role/x\n"

TEST(unusable_profiles_are_refused)
{
	static const struct
	{
		const char *config;
		const char *end;
	}			cases[] = {
		{ROLE, "role_arn needs source_profile or credential_source"},
		{ROLE "source_profile = b\ncredential_source = Environment\n",
		"has both source_profile and credential_source"},
		{ROLE "credential_source = Elsewhere\n",
		"credential_source is neither Environment nor EcsContainer nor Ec2InstanceMetadata"},
		{ROLE "credential_source = Environment\n",
		"credential_source: environment AWS_ACCESS_KEY_ID: not set"},
		{ROLE "source_profile = default\nmfa_serial = arn:aws:iam::1:mfa/me\n",
		"mfa_serial needs a person at each renewal: a server cannot use this role"},
		{ROLE "source_profile = b\n[profile b]\nregion = x\n",
		"profile \"b\" in " CONFIG " aws_access_key_id: not set"},
		{ROLE "source_profile = b\n[profile b]\n" ROLE "source_profile = default\n",
		"profile \"b\": source_profile leads in a circle"},
		{ROLE "source_profile = b\n[profile b]\n" ROLE "source_profile = c\n"
			"[profile c]\n" ROLE "source_profile = b\n",
		"profile \"c\": source_profile leads in a circle"},
		{ROLE "source_profile = b\n", "profile \"b\", the source_profile of another, does not exist"},
		{"role_arn = x\nsource_profile = default\n", "role_arn is not the ARN of a role"},
		{ROLE "source_profile = default\nrole_session_name = a b\n",
		"role_session_name is not 2 to 64 letters, digits and _+=,.@-"},
		{ROLE "source_profile = default\nduration_seconds = 899\n",
		"duration_seconds is not between 900 and 43200"},
		{ROLE "source_profile = default\nduration_seconds = 1h\n",
		"duration_seconds is not between 900 and 43200"},
		{"web_identity_token_file = /x\n",
		"web_identity_token_file is set but role_arn is not"},
		{"login_session = x\n", "login_session needs a person: a server cannot use it"},
		{"sso_start_url = https://x\n",
		"single sign-on needs sso_region and sso_start_url"},
		{"sso_start_url = https://x\nsso_region = r\nsso_role_name = n\n",
		"single sign-on needs sso_account_id and sso_role_name"},
		{"sso_session = s\n",
		"sso_session names a section [sso-session] that does not exist"},
		{"sso_session = s\nsso_region = r\n[sso-session s]\nsso_region = q\n",
		"sso_region is too long, or not that of the section [sso-session]"},
		{"sso_session = s\nsso_region = r\n[sso-session s]\nsso_start_url = https://x\n",
		"sso_region is too long, or not that of the section [sso-session]"},
		{"sso_session = s\nsso_start_url = https://y\n[sso-session s]\nsso_start_url = https://x\n",
		"sso_start_url is too long, or not that of the section [sso-session]"},
	};
	char		config[400];
	world		w = {
		.variables = {{"AWS_REGION", "us-east-1"}}, .files = {{CONFIG, config}}
	};

	for (size_t i = 0; i < COUNT_OF(cases); i++)
	{
		snprintf(config, sizeof(config), "[default]\n%s", cases[i].config);
		assert_refused_with(NULL, &w, cases[i].end);
	}
}

TEST(a_role_needs_a_region)
{
	const world w = {
		.files = {{CONFIG, "[default]\n" ROLE "source_profile = default\n" KEYS("A", "HIDDEN")}},
	};

	assert_false(find(NULL, &w));
	assert_non_null(strstr(error, "Region or endpoint of STS: ddblock.region, AWS_REGION"));
}

TEST(a_role_precedes_keys_and_keys_precede_a_process)
{
	world		w = {
		.variables = {{"AWS_REGION", "us-east-1"}},
		.files = {{CONFIG, "[default]\n" ROLE "source_profile = default\n"}, everything.files[0]},
	};

	assert_true(find(NULL, &w));
	assert_null(plan.fetcher);
	assert_string_equal(plan.keys.access_key_id, "FILEKEY");
	assert_int_equal(plan.role_count, 1);
	assert_string_equal(plan.roles[0].arn, "arn:aws:iam::1:role/x");
	assert_string_equal(plan.roles[0].session_name, "ddblock");
	assert_string_equal(plan.sts_url, "https://sts.us-east-1.amazonaws.com");
	assert_string_equal(plan.keys.source, "role arn:aws:iam::1:role/x of profile \"default\", "
						"assumed with profile \"default\" in " CREDENTIALS);
	assert_string_equal(plan.keys.file, CREDENTIALS);

	w.files[0].value = "[default]\ncredential_process = /bin/x\n" KEYS("A", "HIDDEN");
	assert_found(NULL, &w, "FILEKEY", "FILEHIDDEN", "", "profile \"default\" in " CREDENTIALS);
	w.files[1].name = "/elsewhere";
	assert_true(find(NULL, &w));
	assert_ptr_equal(plan.fetcher, &aws_fetch_process);
	assert_string_equal(plan.from.command, "/bin/x");
	assert_string_equal(plan.keys.source, "credential_process of profile \"default\"");
}

TEST(roles_are_assumed_from_the_last_profile_to_the_first)
{
	const aws_settings settings = {.profile = "a",.region = "cn-north-1"};
	const world w = {
		.files = {{CONFIG,
				"[profile a]\nrole_arn = arn:a\nsource_profile = b\nexternal_id = X\n"
				"[profile b]\nrole_arn = arn:b\nsource_profile = c\nduration_seconds = 900\n"
			"[profile c]\n" KEYS("C", "S")}},
	};

	assert_true(find(&settings, &w));
	assert_string_equal(plan.keys.access_key_id, "C");
	assert_int_equal(plan.role_count, 2);
	assert_string_equal(plan.roles[0].arn, "arn:b");
	assert_int_equal(plan.roles[0].duration_s, 900);
	assert_string_equal(plan.roles[1].arn, "arn:a");
	assert_string_equal(plan.roles[1].external_id, "X");
	assert_string_equal(plan.sts_url, "https://sts.cn-north-1.amazonaws.com.cn");
}

/* ---- web identity, containers, the instance ---- */

TEST(web_identity_comes_before_the_files_but_after_a_named_profile)
{
	world		w = {
		.variables = {
			{"AWS_WEB_IDENTITY_TOKEN_FILE", "/token"}, {"AWS_REGION", "eu-west-1"},
			{"AWS_ROLE_ARN", "arn:r"}, {"AWS_ROLE_SESSION_NAME", "me"},
		},
		.files = {everything.files[0]},
	};
	const aws_settings settings = {.profile = "work"};

	assert_true(find(NULL, &w));
	assert_ptr_equal(plan.fetcher, &aws_fetch_web_identity);
	assert_string_equal(plan.from.web.token_file, "/token");
	assert_string_equal(plan.from.web.role.arn, "arn:r");
	assert_string_equal(plan.from.web.role.session_name, "me");
	assert_string_equal(plan.sts_url, "https://sts.eu-west-1.amazonaws.com");
	assert_found(&settings, &w, "WORKKEY", "WORKHIDDEN", "", "profile \"work\" in " CREDENTIALS);
	w.variables[2].value = "";
	assert_refused_with(NULL, &w, "web identity: AWS_WEB_IDENTITY_TOKEN_FILE is set "
						"but AWS_ROLE_ARN is not");
}

TEST(container_urls)
{
	static const struct
	{
		const char *full;
		const char *refusal;	/* NULL: accepted */
	}			cases[] = {
		{"http://localhost:8080/x", NULL},
		{"http://LOCALHOST/x", NULL},
		{"http://127.1.2.3/x?y=z", NULL},
		{"http://[::1]:80/", NULL},
		{"https://anywhere.example?hidden", NULL},
		{"http://169.254.170.2/x", NULL},
		{"http://169.254.170.23/v1/credentials", NULL},
		{"http://[fd00:ec2::23]/v1/credentials", NULL},
		{"https://anywhere.example:8443/x", NULL},
		{"http://169.254.169.254/x", "plain HTTP is accepted only from this machine, ECS and EKS Pod Identity"},
		{"http://localhost.example/x", "plain HTTP is accepted only from this machine, ECS and EKS Pod Identity"},
		{"http://127.0.0.1.example/x", "plain HTTP is accepted only from this machine, ECS and EKS Pod Identity"},
		{"http://127.100.100.100.evil.example/c", "plain HTTP is accepted only from this machine, ECS and EKS Pod Identity"},
		{"http://128.0.0.1/x", "plain HTTP is accepted only from this machine, ECS and EKS Pod Identity"},
		{"http://localhost@evil.example/x", "URL must end after its host and port"},
		{"http://evil.example#@localhost/", "URL must end after its host and port"},
		{"https://a/x#y", "URL contains a fragment"},
		{"https://a/x y", "URL contains white space or a character that is not ASCII"},
		{"/credentials", "URL does not begin with http:// or https://"},
		{"ftp://a/x", "URL does not begin with http:// or https://"},
	};

	for (size_t i = 0; i < COUNT_OF(cases); i++)
	{
		const world w = {.variables = {{"AWS_CONTAINER_CREDENTIALS_FULL_URI", cases[i].full}}};

		if (cases[i].refusal != NULL)
			assert_refused_with(NULL, &w, cases[i].refusal);
		else
		{
			if (!find(NULL, &w))
				fail_msg("%s: %s", cases[i].full, error);
			assert_ptr_equal(plan.fetcher, &aws_fetch_container);
			assert_string_equal(plan.from.container.url, cases[i].full);
			/* The path is a secret. */
			assert_memory_equal(plan.keys.source, "container at http", 17);
			assert_null(strchr(strstr(plan.keys.source, "://") + 3, '/'));
			assert_null(strchr(plan.keys.source, '?'));
		}
	}
}

TEST(the_relative_uri_of_a_container_wins)
{
	world		w = {
		.variables = {
			{"AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "/v2/x?a=1"},
			{"AWS_CONTAINER_CREDENTIALS_FULL_URI", "http://localhost/y"},
		},
	};

	assert_true(find(NULL, &w));
	assert_string_equal(plan.from.container.url, "http://169.254.170.2/v2/x?a=1");
	assert_string_equal(plan.keys.source, "container at http://169.254.170.2");
	w.variables[0].value = "@evil.example/";
	assert_refused_with(NULL, &w, "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI is not a path");
	assert_int_equal(result, AWS_BROKEN);
}

TEST(metadata_is_the_last_source)
{
	world		w = {.variables = {{"AWS_EC2_METADATA_DISABLED", "false"}, {NULL, NULL}}};

	assert_true(find(NULL, &w));
	assert_ptr_equal(plan.fetcher, &aws_fetch_metadata);
	assert_string_equal(plan.from.metadata.url, "http://169.254.169.254");
	assert_string_equal(plan.keys.source, "instance metadata at http://169.254.169.254");
	w.variables[1] = (pair) {"AWS_EC2_METADATA_SERVICE_ENDPOINT_MODE", "ipv6"};
	assert_true(find(NULL, &w));
	assert_string_equal(plan.from.metadata.url, "http://[fd00:ec2::254]");
	w.variables[1].value = "IPv5";
	assert_refused_with(NULL, &w, "instance metadata: endpoint mode \"IPv5\" is neither IPv4 nor IPv6");
	w.variables[1] = (pair) {"AWS_EC2_METADATA_SERVICE_ENDPOINT", "http://localhost:1338/"};
	assert_true(find(NULL, &w));
	assert_string_equal(plan.from.metadata.url, "http://localhost:1338");
	w.variables[1].value = "no URL";
	assert_refused_with(NULL, &w, "instance metadata: URL does not begin with http:// or https://");
}

TEST(metadata_is_asked_as_often_as_the_settings_say)
{
	static const char *const wrong[] = {"0", "-1", "1.5", "1s", "100", "12345678"};
	world		w = {
		.variables = {{"AWS_EC2_METADATA_DISABLED", "false"}, {NULL, NULL}},
		.files = {{CONFIG, "[default]\nmetadata_service_timeout = 3\n"
			"metadata_service_num_attempts = 4\n"}},
	};

	assert_true(find(NULL, &w));
	assert_int_equal(plan.from.metadata.timeout_ms, 3000);
	assert_int_equal(plan.from.metadata.attempts, 4);
	w.variables[1] = (pair) {"AWS_METADATA_SERVICE_TIMEOUT", "5"};
	w.variables[2] = (pair) {"AWS_METADATA_SERVICE_NUM_ATTEMPTS", "1"};
	assert_true(find(NULL, &w));
	assert_int_equal(plan.from.metadata.timeout_ms, 5000);
	assert_int_equal(plan.from.metadata.attempts, 1);
	for (size_t i = 0; i < COUNT_OF(wrong) * 2; i++)
	{
		w.variables[1].value = i % 2 == 0 ? wrong[i / 2] : NULL;
		w.variables[2].value = i % 2 == 1 ? wrong[i / 2] : NULL;
		assert_refused_with(NULL, &w, i % 2 == 0 ?
							"metadata_service_timeout is not between 1 and 60" :
							"metadata_service_num_attempts is not between 1 and 20");
	}
	w.variables[1].value = w.variables[2].value = NULL;
	w.files[0].name = "/elsewhere";
	assert_true(find(NULL, &w));
	assert_int_equal(plan.from.metadata.timeout_ms, 1000);
	assert_int_equal(plan.from.metadata.attempts, 0);
}

TEST(metadata_may_be_asked_for_the_region)
{
	world		w = {.variables = {{"AWS_EC2_METADATA_DISABLED", "true"}}};
	aws_environment env = environment(&w);

	assert_int_equal(make_region_plan(&env), AWS_NOT_HERE);
	assert_string_equal(words, "instance metadata: AWS_EC2_METADATA_DISABLED is true");
	w.variables[0].value = "1";
	assert_int_equal(make_region_plan(&env), AWS_BROKEN);
	assert_string_equal(words, "instance metadata: AWS_EC2_METADATA_DISABLED is neither true nor false");
	w.variables[0].value = "false";
	assert_int_equal(make_region_plan(&env), AWS_FOUND);
	assert_true(plan.from.metadata.region);
	assert_string_equal(plan.from.metadata.url, "http://169.254.169.254");
	w.variables[1] = (pair) {"AWS_METADATA_SERVICE_TIMEOUT", "soon"};
	assert_int_equal(make_region_plan(&env), AWS_BROKEN);
}

TEST(malformed_files_are_refused)
{
	world		w = {
		.files = {
			everything.files[0],
			{CONFIG, "[default]\nregion = x\naws_secret_access_key HIDDEN\n"},
		},
	};
	aws_environment env = environment(&w);
	char		text[64];

	assert_refused_with(NULL, &w, "/home/pg/.aws/config: line 3 is malformed");
	assert_int_equal(find_region(&none, &env, text, sizeof(text)),
					 AWS_BROKEN);
	assert_string_equal(text, "");
	assert_endpoint(&none, &w, NULL);
	w.files[1].value = "\xef\xbb\xbf[default]\nregion = x\n";
	assert_refused_with(NULL, &w, "config: line 1 is malformed: the file begins with a byte order mark");
}

/* ---- invalid values ---- */

static char *
repeat(char c, size_t n)
{
	char	   *text = malloc(n + 1);

	memset(text, c, n);
	text[n] = '\0';
	return text;
}

TEST(long_tokens_are_refused_never_cut)
{
	char	   *fits = repeat('S', sizeof(found.session_token) - 1);
	char	   *long_token = repeat('S', sizeof(found.session_token));
	char	   *file = calloc(1, 10000);
	aws_settings settings = {
		.access_key_id = "A",.secret_access_key = "S",.session_token = fits
	};
	world		w = {.files = {{CREDENTIALS, file}}};

	assert_found(&settings, &w, "A", "S", fits, "settings");
	settings.session_token = long_token;
	assert_refused(&settings, &w, "settings: "
				   "ddblock.session_token is too long");

	sprintf(file, "[default]\n" KEYS("A", "S") "aws_session_token = %s\n", fits);
	assert_found(NULL, &w, "A", "S", fits, "profile \"default\" in " CREDENTIALS);
	sprintf(file, "[default]\n" KEYS("A", "S") "aws_session_token = %s\n", long_token);
	assert_refused_with(NULL, &w, "profile \"default\" in /home/pg/.aws/credentials: "
						"aws_session_token is too long");
	free(fits);
	free(long_token);
	free(file);
}

TEST(values_that_no_header_can_carry_are_refused)
{
	world		w = {
		.variables = {
			{"AWS_ACCESS_KEY_ID", "A"},
			{"AWS_SECRET_ACCESS_KEY", "HIDDEN\n"},
		},
	};
	const world continued = {
		.files = {{CREDENTIALS, "[default]\n" KEYS("A", "HIDDEN") "  MORE\n"}},
	};

	assert_refused_with(NULL, &w, "environment: AWS_SECRET_ACCESS_KEY contains "
						"white space or a character that is not ASCII");
	w.variables[1].value = "HIDDEN\xc3\xa9";
	assert_refused_with(NULL, &w, "environment: AWS_SECRET_ACCESS_KEY contains "
						"white space or a character that is not ASCII");
	assert_refused_with(NULL, &continued, "aws_secret_access_key contains "
						"white space or a character that is not ASCII");
}

TEST(messages_are_ascii_and_fit)
{
	char	   *name = repeat('\xc3', 3000);
	const aws_settings settings = {.profile = name};
	const world w = {0};
	aws_environment env = environment(&w);
	char		small[40];

	assert_false(find(&settings, &w));
	assert_in_range(strlen(error), 1, sizeof(error) - 1);
	for (size_t i = 0; error[i] != '\0'; i++)
		assert_in_range(error[i], ' ', '~');
	assert_int_not_equal(make_plan(&settings, &env, small, sizeof(small)), AWS_FOUND);
	assert_int_equal(strlen(small), sizeof(small) - 1);
	free(name);
}

TEST(wipes_credentials)
{
	static const aws_plan zero;

	assert_true(find(NULL, &everything));
	aws_wipe(&found);
	assert_memory_equal(&found, &zero, sizeof(found));
	aws_wipe(&plan);
	assert_memory_equal(&plan, &zero, sizeof(plan));
}

/* ---- region ---- */

static void
assert_region(const aws_settings *settings, const world *w, const char *wanted)
{
	aws_environment env = environment(w);
	char		region[32];

	result = find_region(settings, &env, region, sizeof(region));
	assert_string_equal(region, wanted);
	assert_int_equal(result == AWS_FOUND, wanted[0] != '\0');
}

TEST(chooses_the_region)
{
	aws_settings settings = {.region = "set-1"};
	world		w = {
		.variables = {{"AWS_REGION", "env-1"}, {"AWS_DEFAULT_REGION", "env-2"}},
		.files = {
			{CONFIG, "[default]\nregion = file-1\n[profile p]\n"
			"region = file-2 # comment\n"},
			{CREDENTIALS, "[default]\n"},
		},
	};

	assert_region(&settings, &w, "set-1");
	settings.region = "";
	assert_region(&settings, &w, "env-1");
	w.variables[0].value = "";
	assert_region(&settings, &w, "env-2");
	w.variables[1].value = NULL;
	assert_region(&settings, &w, "file-1");
	settings.profile = "p";
	assert_region(&settings, &w, "file-2");
	settings.profile = "gone";
	assert_region(&settings, &w, "");
	assert_int_equal(result, AWS_BROKEN);
	settings.profile = NULL;
	w.files[1].value = "[default]\nregion = file-3\n";
	assert_region(&settings, &w, "file-3");
	w.files[0].value = w.files[1].value = "[default]\n";
	assert_region(&settings, &w, "");
	assert_int_equal(result, AWS_NOT_HERE);
}

TEST(says_why_there_is_no_region)
{
	world		w = {.files = {{CONFIG, "[default]\noutput = x\n"}}};

	assert_region(&none, &w, "");
	assert_string_equal(words, "ddblock.region, AWS_REGION, AWS_DEFAULT_REGION: not set; "
						"region of profile \"default\" in " CREDENTIALS ": file not "
						"found; region of profile \"default\" in " CONFIG ": not set");
	w.files[0].value = "[default]\nregion = a b\n";
	assert_region(&none, &w, "");
	assert_string_equal(words, "the profile's region: not the name of a Region");
	w.files[0].value = "[default]\nregion\n";
	assert_region(&none, &w, "");
	assert_string_equal(words, "shared files: " CONFIG ": line 2 is malformed");
	w.variables[0] = (pair) {"AWS_DEFAULT_REGION", "a.b"};
	assert_region(&none, &w, "");
	assert_string_equal(words, "AWS_DEFAULT_REGION: not the name of a Region");
}

TEST(refuses_what_is_no_region)
{
	static const char *const wrong[] = {
		"EU-CENTRAL-1", "us-East-1", "us east", "us-east-1.example.com/", "us-east-1\n", "a@b", "r\xc3\xa9",
		"a-region-longer-than-the-buffer-of-the-caller", "-us-east-1", "us-east-1-", "aws-global"
	};
	const world w = {.files = {{CONFIG, "[default]\nregion = us-east-1-fips\n"}}};

	for (size_t i = 0; i < COUNT_OF(wrong); i++)
	{
		const aws_settings settings = {.region = wrong[i]};

		assert_region(&settings, &w, "");
		assert_int_equal(result, AWS_BROKEN);
	}
	assert_region(&none, &w, "");
	assert_string_equal(words, "the profile's region: not the name of a Region: set "
						"AWS_USE_FIPS_ENDPOINT to \"true\" for FIPS");
	assert_null(aws_wrong_region("fakeRegion"));	/* of a local server */
	assert_null(aws_wrong_region("a-region-of-63-letters-"
								 "abcdefghijklmnopqrstuvwxyzabcdefghijklmn"));
	assert_non_null(aws_wrong_region("a-region-of-64-letters-"
									 "abcdefghijklmnopqrstuvwxyzabcdefghijklmno"));
}

/* ---- endpoint ---- */

static const char *const endpoint_config =
"[default]\nservices = dev\nendpoint_url = http://profile\n"
"[profile other]\nendpoint_url = http://other\n"
"[services dev]\ns3 =\n  endpoint_url = http://s3\n"
"dynamodb =\n  endpoint_url = http://service:8000\n  y = z\n"
"[services s3-only]\ns3 =\n  endpoint_url = http://s3\n";

#define OWN "https://dynamodb.us-east-1.amazonaws.com"

TEST(chooses_the_endpoint)
{
	aws_settings settings = {.endpoint_url = "http://set"};
	world		w = {
		.variables = {
			{"AWS_ENDPOINT_URL", "http://env/"},
			{"AWS_ENDPOINT_URL_DYNAMODB", "http://env-dynamodb"},
		},
		.files = {{CONFIG, endpoint_config}},
	};

	assert_endpoint(&settings, &w, "http://set");
	settings.endpoint_url = "http://set/";
	assert_endpoint(&settings, &w, "http://set");
	settings.endpoint_url = NULL;
	assert_endpoint(&settings, &w, "http://env-dynamodb");
	w.variables[1].value = "";
	assert_endpoint(&settings, &w, "http://env");
	w.variables[0].value = NULL;
	assert_endpoint(&settings, &w, "http://service:8000");
	settings.profile = "other";
	assert_endpoint(&settings, &w, "http://other");
	settings.profile = NULL;
	w.files[0].value = "[default]\nservices = s3-only\n"
		"endpoint_url = http://profile\n[services s3-only]\ns3 =\n  a = b\n";
	assert_endpoint(&settings, &w, "http://profile");
	w.files[0].value = "[default]\n";
	assert_endpoint(&settings, &w, OWN);
	w.files[0].name = "/elsewhere";
	assert_endpoint(&settings, &w, OWN);
}

TEST(ignores_configured_endpoints_if_told_to)
{
	const aws_settings settings = {.endpoint_url = "http://set"};
	const world by_variable = {
		.variables = {
			{"AWS_IGNORE_CONFIGURED_ENDPOINT_URLS", "True"},
			{"AWS_ENDPOINT_URL", "http://env"},
		},
		.files = {{CONFIG, endpoint_config}},
	};
	world		by_profile = {
		.variables = {{"AWS_ENDPOINT_URL", "http://env"}},
		.files = {{CONFIG, "[default]\nendpoint_url = http://profile\n"
			"ignore_configured_endpoint_urls = true\n"}},
	};

	assert_endpoint(&none, &by_variable, OWN);
	assert_endpoint(&settings, &by_variable, "http://set");
	assert_endpoint(&none, &by_profile, OWN);
	assert_endpoint(&settings, &by_profile, "http://set");

	/* The variable takes precedence over the profile. */
	by_profile.variables[1] =
		(pair) {"AWS_IGNORE_CONFIGURED_ENDPOINT_URLS", "false"};
	assert_endpoint(&none, &by_profile, "http://env");
	by_profile.variables[1].value = "yes";
	assert_endpoint(&none, &by_profile, NULL);
	assert_non_null(strstr(words, "is neither true nor false"));
}

TEST(never_guesses_an_endpoint)
{
	const aws_settings gone = {.profile = "gone"};
	world		w = {
		.files = {{CONFIG, "[default]\nservices = missing\n"
			"endpoint_url = http://profile\n"}},
	};
	aws_environment env = environment(&w);
	char		region[16] = "us-east-1";
	char		url[16];

	assert_endpoint(&none, &w, NULL);
	assert_endpoint(&gone, &w, NULL);
	assert_string_equal(words, "shared files: profile \"gone\" in " CREDENTIALS ": file "
						"not found, in " CONFIG ": no such profile");
	w.files[0].value = "[default]\nendpoint_url = http://longer-than-it\n";
	assert_false(find_endpoint(&none, &env, AWS_DYNAMODB, region, url, sizeof(url)));
	assert_string_equal(url, "");
	w.files[0].value = "[default]\n";
	assert_false(find_endpoint(&none, &env, AWS_DYNAMODB, region, url, sizeof(url)));
	assert_string_equal(url, "");
	w.files[0].value = "[default]\nendpoint_url = http://a b\n";
	assert_endpoint(&none, &w, NULL);
	w.files[0].value = "[default]\nendpoint_url = http://a/x\n";
	assert_endpoint(&none, &w, NULL);
	assert_string_equal(words, "endpoint of DynamoDB: URL must end after its host and port");
}

/* The Region "local" is DynamoDB Local, as in the SDKs. */
TEST(knows_the_region_local)
{
	const aws_settings settings = {.endpoint_url = "http://localhost:9"};
	world		w = {0};
	aws_environment env = environment(&w);
	char		region[64] = "local";
	char		url[64];

	assert_true(find_endpoint(&none, &env, AWS_DYNAMODB, region, url, sizeof(url)));
	assert_string_equal(url, "http://localhost:8000");
	assert_string_equal(region, "us-east-1");
	strcpy(region, "local");
	assert_true(find_endpoint(&settings, &env, AWS_DYNAMODB, region, url, sizeof(url)));
	assert_string_equal(url, "http://localhost:9");
	assert_string_equal(region, "local");
	assert_service_in(&none, &w, AWS_STS, "local", "https://sts.local.amazonaws.com");
	w.variables[0] = (pair) {"AWS_ACCOUNT_ID_ENDPOINT_MODE", "required"};
	assert_service_in(&none, &w, AWS_DYNAMODB, "local", "http://localhost:8000");
	w.variables[0] = (pair) {"AWS_USE_FIPS_ENDPOINT", "true"};
	assert_service_in(&none, &w, AWS_DYNAMODB, "local", NULL);
	w.variables[0].name = "AWS_USE_DUALSTACK_ENDPOINT";
	assert_service_in(&none, &w, AWS_DYNAMODB, "local", NULL);
	assert_string_equal(words, "endpoint of DynamoDB: the Region \"local\" has neither FIPS nor "
						"dual stack");
}

/* Each partition: without FIPS, with it. */
TEST(knows_amazons_endpoints)
{
	static const struct
	{
		const char *region;
		const char *suffix;
		const char *dual_stack;
	}			regions[] = {
		{"eu-west-1", "amazonaws.com", "api.aws"},
		{"xx-new-1", "amazonaws.com", "api.aws"},
		{"cn-north-1", "amazonaws.com.cn", "api.amazonwebservices.com.cn"},
		{"cn-north", "amazonaws.com", "api.aws"},	/* no Region of China's */
		{"cn-north-1x", "amazonaws.com", "api.aws"},
		{"us-gov-west-1", "amazonaws.com", "api.aws"},
		{"us-iso-east-1", "c2s.ic.gov", "api.aws.ic.gov"},
		{"us-isob-east-1", "sc2s.sgov.gov", "api.aws.scloud"},
		{"eu-isoe-west-1", "cloud.adc-e.uk", "api.cloud-aws.adc-e.uk"},
		{"us-isof-south-1", "csp.hci.ic.gov", "api.aws.hci.ic.gov"},
		{"eusc-de-east-1", "amazonaws.eu", "api.amazonwebservices.eu"},
	};
	static const char *const names[] = {
		[AWS_DYNAMODB] = "dynamodb",[AWS_STS] = "sts",[AWS_SSO] = "portal.sso",
		[AWS_SSO_OIDC] = "oidc"
	};

	for (size_t i = 0; i < COUNT_OF(regions) * COUNT_OF(names) * 4; i++)
	{
		const char *region = regions[i / 16].region;
		bool		fips = i & 1;
		bool		dual_stack = i & 2;
		bool		implied = !dual_stack && strcmp(region, "us-gov-west-1") == 0;
		aws_service service = i / 4 % 4;
		char		wanted[128];
		world		w = {
			.variables = {{"AWS_USE_FIPS_ENDPOINT", fips ? "True" : "false"}},
			.files = {{CONFIG, dual_stack ? "[default]\nuse_dualstack_endpoint = true\n" : ""}},
		};

		snprintf(wanted, sizeof(wanted), "https://%s%s.%s.%s", names[service],
				 fips && !implied ? "-fips" : "", region,
				 dual_stack ? regions[i / 16].dual_stack : regions[i / 16].suffix);
		assert_service_in(&none, &w, service, region, wanted);
		assert_true(aws_is_own_endpoint(wanted));
	}
}

TEST(fips_and_dual_stack_are_never_ignored)
{
	static const char *const names[] = {"AWS_USE_FIPS_ENDPOINT", "AWS_USE_DUALSTACK_ENDPOINT"};
	const aws_settings settings = {.endpoint_url = "http://set"};

	for (size_t i = 0; i < COUNT_OF(names); i++)
	{
		world		w = {.variables = {{names[i], "true"}}};

		assert_endpoint(&settings, &w, NULL);
		assert_string_equal(words, "endpoint of DynamoDB: FIPS or dual stack is wanted, but "
							"another endpoint is configured");
		w.variables[0].value = "1";
		assert_endpoint(&none, &w, NULL);
		assert_non_null(strstr(words, "is neither true nor false"));
		w.variables[0].value = "true-as-can-be";
		assert_endpoint(&none, &w, NULL);
		w.variables[0].value = "False";
		w.files[0] = (pair) {CONFIG, "[default]\nuse_fips_endpoint = true\n"
			"use_dualstack_endpoint = true\nendpoint_url = http://profile\n"};
		assert_service_in(&none, &w, AWS_STS, "us-east-1", NULL);
		w.variables[1] = (pair) {names[1 - i], "false"};
		assert_service_in(&none, &w, AWS_STS, "us-east-1", "http://profile");
		w.variables[1].value = NULL;
		w.variables[2] = (pair) {"AWS_IGNORE_CONFIGURED_ENDPOINT_URLS", "true"};
		assert_service_in(&none, &w, AWS_STS, "us-east-1", i == 0 ?
						  "https://sts.us-east-1.api.aws" : "https://sts-fips.us-east-1.amazonaws.com");
	}
}

TEST(refuses_the_endpoints_that_it_does_not_use)
{
	const aws_settings settings = {.endpoint_url = "http://set"};
	world		w = {.variables = {{"AWS_ACCOUNT_ID_ENDPOINT_MODE", "Preferred"}}};

	assert_endpoint(&none, &w, OWN);
	w.variables[0].value = "disabled";
	assert_endpoint(&none, &w, OWN);
	w.variables[0].value = "required";
	assert_endpoint(&none, &w, NULL);
	assert_string_equal(words, "endpoint of DynamoDB: AWS_ACCOUNT_ID_ENDPOINT_MODE or "
						"account_id_endpoint_mode is neither \"preferred\" nor \"disabled\": "
						"ddblock uses no account-based endpoints");
	assert_endpoint(&settings, &w, "http://set");
	assert_service_in(&none, &w, AWS_STS, "us-east-1", "https://sts.us-east-1.amazonaws.com");
	w.variables[0].value = "require";
	assert_endpoint(&settings, &w, NULL);
	w.variables[0].value = NULL;
	w.files[0] = (pair) {CONFIG, "[default]\naccount_id_endpoint_mode = required\n"
		"sts_regional_endpoints = legacy\n"};
	assert_endpoint(&none, &w, NULL);
	assert_service_in(&none, &w, AWS_STS, "us-east-1", NULL);
	assert_non_null(strstr(words, "sts_regional_endpoints is not \"regional\""));
	assert_service_in(&none, &w, AWS_SSO, "us-east-1", "https://portal.sso.us-east-1.amazonaws.com");
	w.variables[0] = (pair) {"AWS_STS_REGIONAL_ENDPOINTS", "regional"};
	assert_service_in(&none, &w, AWS_STS, "us-east-1", "https://sts.us-east-1.amazonaws.com");
}

/* ---- endpoints of the services that give credentials ---- */

static void
assert_service(const world *w, aws_service service, const char *region, const char *wanted)
{
	assert_service_in(&none, w, service, region, wanted);
}

TEST(finds_the_endpoints_of_other_services)
{
	world		w = {0};

	w.files[0] = (pair) {CONFIG, "[default]\nendpoint_url = http://all/\nservices = s\n"
		"[services s]\nsts =\n  endpoint_url = http://sts:1\n"};
	assert_service(&w, AWS_STS, "us-east-1", "http://sts:1");
	assert_service(&w, AWS_SSO, "us-east-1", "http://all");
	w.variables[0] = (pair) {"AWS_ENDPOINT_URL", "http://env"};
	assert_service(&w, AWS_STS, "us-east-1", "http://env");
	w.variables[1] = (pair) {"AWS_ENDPOINT_URL_STS", "http://env-sts"};
	assert_service(&w, AWS_STS, "us-east-1", "http://env-sts");
	w.variables[2] = (pair) {"AWS_IGNORE_CONFIGURED_ENDPOINT_URLS", "true"};
	assert_service(&w, AWS_STS, "us-east-1", "https://sts.us-east-1.amazonaws.com");
	w.variables[2].name = "OTHER";
	w.variables[1].value = "http://sts/path";
	assert_service(&w, AWS_STS, "us-east-1", NULL);
	assert_string_equal(words, "endpoint of STS: URL must end after its host and port");
	w.files[0].value = "[default]\nregion\n";
	assert_service(&w, AWS_STS, "us-east-1", NULL);
}

/* ---- certificate authorities ---- */

static void
assert_ca_file(const aws_settings *settings, const world *w, const char *expected)
{
	aws_environment env = environment(w);
	char		path[64];

	if (!find_ca_file(settings, &env, path, sizeof(path)))
		fail_msg("%s", words);
	assert_string_equal(path, expected);
}

TEST(chooses_the_authorities)
{
	aws_settings settings = {.ca_file = "/set.pem"};
	world		w = {
		.variables = {{"AWS_CA_BUNDLE", "/env.pem"}},
		.files = {
			{CONFIG, "[default]\nca_bundle = /file.pem\n[profile p]\n"},
			{"/set.pem", "x"}, {"/env.pem", "x"}, {"/file.pem", "x"},
		},
	};

	assert_ca_file(&settings, &w, "/set.pem");
	settings.ca_file = "";
	assert_ca_file(&settings, &w, "/env.pem");
	w.variables[0].value = "";
	assert_ca_file(&settings, &w, "/file.pem");
	settings.profile = "p";
	assert_ca_file(&settings, &w, "");
	settings.profile = "gone";
	assert_ca_file(&settings, &w, "");
}

TEST(says_which_authorities_cannot_be_read)
{
	aws_settings settings = {.ca_file = "/none.pem"};
	world		w = {
		.variables = {{"AWS_CA_BUNDLE", "/env.pem"}},
		.files = {
			{CONFIG, "[default]\nca_bundle = /a/path/that/is/longer/than/there/is/room/for/here/and/so/on.pem\n"},
			{"/env.pem", UNREADABLE},
		},
	};
	aws_environment env = environment(&w);
	char		path[64];

	assert_false(find_ca_file(&settings, &env, path, sizeof(path)));
	assert_string_equal(words, "ddblock.ca_file: /none.pem cannot be read: No such file or directory");
	assert_string_equal(path, "/none.pem");
	assert_false(find_ca_file(&none, &env, path, sizeof(path)));
	assert_string_equal(words, "AWS_CA_BUNDLE: /env.pem cannot be read: Permission denied");
	w.variables[0].value = NULL;
	assert_false(find_ca_file(&none, &env, path, sizeof(path)));
	assert_string_equal(words, "the profile's ca_bundle:  cannot be read: File name too long");
}
