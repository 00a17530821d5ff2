/*-------------------------------------------------------------------------
 *
 * aws.h
 *	  Credentials, Region, endpoint, signing, DynamoDB's clock.
 *
 *-------------------------------------------------------------------------
 */
#ifndef DDBLOCK_AWS_AWS_H
#define DDBLOCK_AWS_AWS_H

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* ----------------------------------------------------------------
 * credential_chain.c: Finds out where the AWS credentials come from: settings, environment, web
 * identity, shared config and credentials files, container, instance metadata.
 *
 * The result is a plan.  Keys are in the plan itself; all else must be fetched:
 * fetch.c.  The caller passes functions that read the environment and files, so
 * tests and fuzzers need neither.  Order and names are those of the AWS SDKs and
 * Tools Reference Guide, "Standardized credential providers".
 * ----------------------------------------------------------------
 */

/* The settings; NULL or "" where unset. */
typedef struct aws_settings
{
	const char *access_key_id;
	const char *secret_access_key;
	const char *session_token;
	const char *profile;
	const char *region;
	const char *endpoint_url;
	const char *ca_file;
} aws_settings;

typedef struct aws_credentials
{
	char		access_key_id[256];
	char		secret_access_key[256];
	char		session_token[8192];	/* "" if there is none */
	char		source[384];	/* for people: "environment", "profile \"x\" in
								 * /home/pg/.aws/credentials" */
	char		file[1024];		/* the shared file they came from, or "" */
	int64_t		expires_s;		/* epoch seconds; 0: never, or unknown */
} aws_credentials;

/* Access to environment and files.  Both functions get arg. */
typedef struct aws_environment
{
	void	   *arg;
	const char *(*get) (void *arg, const char *name);	/* as getenv() */

	const char *home;			/* for "~"; NULL: unknown */

	/*
	 * The whole file, malloc'd, and its size in *len; NULL and errno if it cannot
	 * be read or is over 1 MiB.
	 */
	char	   *(*read_file) (void *arg, const char *path, size_t *len);
} aws_environment;

typedef enum aws_found
{
	AWS_FOUND,
	AWS_NOT_HERE,				/* nothing in this source: try the next */
	AWS_BROKEN					/* this source is unusable: stop */
} aws_found;

#define AWS_NAME_SIZE	256
#define AWS_TEXT_SIZE	2048	/* ARNs, paths, URLs, commands */
#define AWS_ROLES_MAX	8

/* A role to assume; "" and 0 where unset. */
typedef struct aws_role
{
	char		arn[AWS_TEXT_SIZE];
	char		session_name[AWS_NAME_SIZE];
	char		external_id[1536];
	int			duration_s;
} aws_role;

typedef struct aws_plan
{
	const struct aws_fetcher *fetcher;	/* gets what the credentials begin with; NULL: */
	aws_credentials keys;		/* ... these are known already; source is set in each case */
	char		sts_url[AWS_TEXT_SIZE]; /* if a role is assumed */
	char		sts_region[AWS_NAME_SIZE];
	union
	{
		struct
		{
			aws_role	role;
			char		token_file[AWS_TEXT_SIZE];
		}			web;
		struct
		{
			char		url[AWS_TEXT_SIZE];
			char		oidc_url[AWS_TEXT_SIZE];
			char		account_id[AWS_NAME_SIZE];
			char		role_name[AWS_NAME_SIZE];
			char		token_file[AWS_TEXT_SIZE];	/* in the cache */
		}			sso;
		char		command[AWS_TEXT_SIZE];
		struct
		{
			char		url[AWS_TEXT_SIZE];
			char		token[AWS_TEXT_SIZE * 4];	/* "" if there is none */
			char		token_file[AWS_TEXT_SIZE];	/* precedes token */
		}			container;
		struct
		{
			char		url[AWS_TEXT_SIZE]; /* without a path */
			int			timeout_ms;
			int			attempts;	/* 0: not set */
			bool		region; /* the instance's Region, and no credentials */
		}			metadata;
	}			from;
	aws_role	roles[AWS_ROLES_MAX];	/* to be assumed one after the other */
	int			role_count;
	char		tried[2048];	/* what was tried before, and why it did not apply */
} aws_plan;

/* Settings, environment and shared files: see profile.c. */
typedef struct aws_profile aws_profile;

/*
 * Tries one source after the other.  Unless the result is AWS_FOUND, error says why the last
 * source failed, and then why each earlier one did.
 */
extern aws_found aws_make_plan(const aws_profile *profile, aws_plan *plan,
							   char *error, size_t error_size);

/* Such an error. */
extern void aws_plan_error(char *to, size_t size, const char *last, const char *tried);

/* Overwrites what may have secrets. */
#define aws_wipe(thing) explicit_bzero(thing, sizeof(*(thing)))

/* ----------------------------------------------------------------
 * endpoint.c: Finds the AWS region and the endpoints of DynamoDB and of the services that
 * give credentials, where credential_chain.c looks for credentials.
 * ----------------------------------------------------------------
 */

/*
 * Region: setting, AWS_REGION, AWS_DEFAULT_REGION, the profile's "region".  "" if there is
 * none (AWS_NOT_HERE: instance metadata may have it), or if it cannot be part of a host
 * name, or if the files are unusable; error then says why, and what was tried.
 */
extern aws_found aws_find_region(const aws_profile *profile, char *region, size_t size,
								 char *error, size_t error_size);

typedef enum aws_service
{
	AWS_DYNAMODB,
	AWS_STS,
	AWS_SSO,
	AWS_SSO_OIDC
} aws_service;

/*
 * Endpoint: for DynamoDB the setting; AWS_ENDPOINT_URL_SERVICE, AWS_ENDPOINT_URL, the
 * profile's services section, its endpoint_url; else Amazon's for the Region, with FIPS and
 * dual stack if the environment or the profile asks for them.
 * AWS_IGNORE_CONFIGURED_ENDPOINT_URLS and ignore_configured_endpoint_urls apply to all but
 * the setting.  A slash at the end is removed.  False and "" if that is not a URL, or if
 * another endpoint is wanted than ddblock can use; error then says why.
 *
 * Requests are signed for the region, which becomes "us-east-1" where DynamoDB's is "local":
 * it must have room for that.
 */
extern bool aws_find_endpoint(const aws_profile *profile, aws_service service,
							  char *region, char *url, size_t size,
							  char *error, size_t error_size);

/* Removes a slash at the end. */
extern void aws_drop_slash(char *url);

/* ----------------------------------------------------------------
 * endpoint_url.c: What an endpoint's URL may be.
 * ----------------------------------------------------------------
 */

/*
 * The only definition of an endpoint's URL: scheme://host[:port][/], where the
 * scheme is http or https.  Writes the Host header's value ("host" or
 * "host:port", without the scheme's default port).  False, with an error text,
 * if the URL has another form.
 */
extern bool aws_endpoint_host(const char *url, char *host, size_t size,
							  char *error, size_t error_size);

/*
 * Is the host, with or without a port and a path, this machine, or one of the addresses that ECS and
 * EKS have on each?  Plain HTTP is safe there, and no proxy leads there.
 */
extern bool aws_is_local_host(const char *host);

/*
 * A proxy's URL: an endpoint's, in which "user:password@" may precede the host.  Copies it
 * without these; false, with nothing to be shown, if it has another form.
 */
extern bool aws_proxy_shown(const char *proxy, char *shown, size_t size);

/* ----------------------------------------------------------------
 * partition.c: Amazon's own endpoints.
 * ----------------------------------------------------------------
 */

/* Is the URL one of Amazon's own hosts, by https, on the port of that? */
extern bool aws_is_own_endpoint(const char *url);

/* Why the text cannot be a Region, or NULL. */
extern const char *aws_wrong_region(const char *text);

/* https://NAME.REGION.SUFFIX of the Region's partition; false if it does not fit. */
extern bool aws_own_endpoint(const char *name, const char *region, bool fips,
							 bool dual_stack, char *url, size_t size);

/* ----------------------------------------------------------------
 * epoch_clock.c: DynamoDB's time.
 *
 * Signatures and fencing tokens use DynamoDB's clock, as the Date headers of its
 * replies show it, extrapolated by our own steady clock.  So setting the
 * machine's wall clock has no effect.  Times are in microseconds; an offset is
 * epoch time minus our time.
 *
 * A Date has whole seconds, and it was written between the sending of the request
 * and the receipt of the reply: so each reply gives an interval of offsets.  The
 * intersection of all intervals is narrower; it widens with time by the drift
 * that our clock may have.
 *
 * A single Date may be wrong.  A Date that contradicts the earlier ones (or,
 * before there are any, the wall clock) by more than EPOCH_STEP_US (or
 * EPOCH_NEAR_US) votes for another interval, if its request was sent after the
 * previous vote was received, and if it is within EPOCH_STEP_US of that interval: servers'
 * clocks differ by a little.  A Date that contradicts that interval, too, takes a
 * vote away.  With EPOCH_VOTES the other interval is believed; a reply that agrees
 * with the believed interval clears the votes.  As long as the wall clock contradicts the
 * other interval, too, the votes must span at least EPOCH_DOUBT_US: several Dates
 * in a row may be wrong, and the machine right.  Not so if DynamoDB has refused the first signature,
 * which had the wall clock's time: what changes Dates on the way checks no signatures.
 * ----------------------------------------------------------------
 */

#define EPOCH_VOTES		5
#define EPOCH_NEAR_US	INT64_C(5000000)	/* to the wall clock */
#define EPOCH_STEP_US	INT64_C(2000000)	/* to earlier Dates */
#define EPOCH_DOUBT_US	INT64_C(10000000)

typedef struct epoch_interval
{
	int64_t		low;			/* offsets */
	int64_t		high;
	int64_t		at;				/* when it was computed, on our clock */
} epoch_interval;

/* Plain data; may be copied. */
typedef struct epoch_clock
{
	bool		known;			/* from Dates; else from the wall clock only */
	int64_t		drift_ppm;		/* maximal error of our clock, both ways */
	bool		wall_refused;	/* before any Date: a signature with the wall clock's time */
	epoch_interval now;			/* what is believed */
	unsigned	votes;			/* replies that contradict it, for: */
	epoch_interval other;		/* this interval, */
	int64_t		votes_since;	/* since then, on our clock */
} epoch_clock;

/* Before the first reply only the wall clock's offset is known. */
extern void epoch_clock_start(epoch_clock *clock, int64_t wall_offset,
							  int64_t drift_ppm);

/*
 * A reply with the Date date_s (epoch seconds, truncated) to a request that was
 * sent at "sent" was received at "received", on our clock; then the wall clock's offset was
 * wall_offset.
 */
extern void epoch_clock_reply(epoch_clock *clock, int64_t date_s,
							  int64_t sent, int64_t received, int64_t wall_offset);

/* Comes before it if the request was refused for the time of its signature. */
extern void epoch_clock_refused(epoch_clock *clock);

/* The lowest and the highest offset possible now. */
extern int64_t epoch_clock_low(const epoch_clock *clock, int64_t now);
extern int64_t epoch_clock_high(const epoch_clock *clock, int64_t now);

/*
 * For signing, which uses the newest Date, believed or not: DynamoDB refuses a
 * signature with a wrong time, which is harmless.
 */
extern int64_t epoch_clock_likely(const epoch_clock *clock);

/* ----------------------------------------------------------------
 * fetch.c: Fetches the credentials of a plan, one errand after the other.
 *
 * The caller does the errands: HTTP requests, and commands to run.  Nothing here
 * waits, and nothing reads a clock.
 *
 * aws_fetch_begin(fetch);
 * while ((step = aws_fetch_next(fetch, env, now)) is an errand)
 * do fetch->errand, and tell aws_fetch_result() what came of it;
 * ----------------------------------------------------------------
 */

#define AWS_HEADERS_MAX 6

typedef enum aws_step
{
	AWS_STEP_HTTP,				/* send the errand's request */
	AWS_STEP_PROCESS,			/* run the errand's body with the shell */
	AWS_STEP_DONE,				/* fetch->found has the credentials, or fetch->name
								 * the Region */
	AWS_STEP_FAILED				/* fetch->error says why */
} aws_step;

/* What the caller does next; valid until it tells the result. */
typedef struct aws_errand
{
	const char *method;
	char		url[AWS_TEXT_SIZE * 2];
	char		headers[AWS_HEADERS_MAX][8400];	/* "Name: value" */
	int			header_count;
	char		body[65536];
	int			timeout_ms;
	bool		direct;			/* to a service of this machine: never through a proxy */
} aws_errand;

/* What came of it. */
typedef struct aws_result
{
	bool		done;			/* a reply came, or the command ended */
	int			status;			/* of HTTP, or of the command */
	const char *body;			/* or the command's output; a NUL follows */
	size_t		len;
	int64_t		date_s;			/* the Date header, epoch seconds; 0: none */
	const char *problem;		/* if nothing was done: why, for people */
} aws_result;

typedef struct aws_fetch aws_fetch;

/*
 * A way to fetch.  Steps are counted from 0.  ask prepares the errand; take reads
 * its result.  If they return false, fetch->error says why.
 */
typedef struct aws_fetcher
{
	bool		(*ask) (aws_fetch *fetch);
	bool		(*take) (aws_fetch *fetch, const aws_result *result);
} aws_fetcher;

struct aws_fetch
{
	aws_plan	plan;
	const aws_fetcher *fetcher; /* of the plan, or of a role; NULL: it is done */
	int			roles_assumed;
	int			step;			/* of the fetcher */
	int			tries;			/* of this step */
	const aws_environment *env; /* for "ask" */
	int64_t		now_s;			/* epoch seconds, with this correction: */
	int64_t		clock_error_s;	/* what STS's Date has shown */
	cJSON	   *json;			/* for "take": the result's body; NULL: it is no JSON */
	char		token[8192];	/* of the metadata service, or of single sign-on */
	char		name[AWS_NAME_SIZE];	/* of the instance's role, or Region */
	int			pause_ms;		/* before the errand is done: a server is overloaded */
	bool		may_pass;		/* what failed: the source may answer a moment later */
	aws_errand	errand;
	aws_credentials found;
	char		error[960];
};

/* fetch->plan is set. */
extern void aws_fetch_begin(aws_fetch *fetch);

/* now_s: epoch seconds. */
extern aws_step aws_fetch_next(aws_fetch *fetch, const aws_environment *env,
							   int64_t now_s);
extern void aws_fetch_result(aws_fetch *fetch, const aws_result *result, int64_t now_s);

/* ----------------------------------------------------------------
 * fetch_container.c, fetch_metadata.c, fetch_process.c, fetch_sso.c, fetch_sts.c: The ways to
 * fetch credentials.  Private to src/aws.
 * ----------------------------------------------------------------
 */

extern const aws_fetcher aws_fetch_web_identity;	/* a role, for the token in a file */
extern const aws_fetcher aws_fetch_sso; /* a role of IAM Identity Center */
extern const aws_fetcher aws_fetch_process; /* what a command prints */
extern const aws_fetcher aws_fetch_container;	/* ECS, EKS Pod Identity */
extern const aws_fetcher aws_fetch_metadata;	/* the EC2 instance's role, or its Region */
extern const aws_fetcher aws_fetch_role;	/* the next of the plan's roles */

/* ----------------------------------------------------------------
 * fetcher.c: What the ways to fetch credentials share.
 *
 * Private to src/aws.
 * ----------------------------------------------------------------
 */

/* Sets fetch->error, and returns false. */
extern bool aws_fetch_fail(aws_fetch *fetch, const char *format,...)
			__attribute__((format(printf, 2, 3)));

/* The errand's request; false, with an error, if the URL does not fit. */
extern bool aws_errand_request(aws_fetch *fetch, const char *method, int timeout_ms,
							   const char *url, const char *path);
extern bool aws_errand_header(aws_fetch *fetch, const char *name, const char *value);

/* Appends "&name=value", escaped; false if it does not fit. */
extern bool aws_add_field(char *text, size_t size, const char *name, const char *value);

/*
 * Was the request answered with 200?  False, with an error that names what was
 * asked, otherwise.
 */
extern bool aws_fetch_succeeded(aws_fetch *fetch, const aws_result *result,
								const char *asked);

/*
 * Reads a file's first line, as tokens are kept; false, with an error, if there is
 * none or it does not fit.
 */
extern bool aws_read_token(aws_fetch *fetch, const char *path, char *token, size_t size);

/*
 * Copies the parts of credentials; NULL where one is missing.  The session token and
 * the time of expiry may be missing: then the credentials do not expire.  False, with
 * an error, if they are unusable.
 */
extern bool aws_take_credentials(aws_fetch *fetch, const char *asked,
								 const char *access_key_id,
								 const char *secret_access_key,
								 const char *session_token,
								 const char *expiration);

/*
 * Takes the credentials whose parts have these names in JSON: key, secret, session token,
 * time of expiry.
 */
extern bool aws_take_json(aws_fetch *fetch, const char *asked, const cJSON *object,
						  const char *const names[4]);

/* As the machine's or container's own service names them. */
extern const char *const aws_role_names[4];

/* A string of the object, or NULL. */
extern const char *aws_json_text(const cJSON *object, const char *name);

/* Overwrites all strings. */
extern void aws_json_free(cJSON *json);

/*
 * ISO 8601: "2026-11-22T10:53:54Z"; fractions are read, and "UTC" and offsets in place
 * of "Z".  0: invalid.
 */
extern int64_t aws_read_time(const char *text);

/* ----------------------------------------------------------------
 * ini.c: Reads the text of an AWS config or credentials file.
 *
 * Works on the caller's bytes; allocates nothing.
 *
 * The format, after the AWS SDKs and Tools Reference Guide, "Shared config and
 * credentials files", and what the SDKs and the AWS CLI agree on:
 *
 * [section]					# a comment, also directly after the bracket
 * name = value				# a comment only after white space
 * nested =
 * sub-property = value		(a comment would be part of the value)
 * long = begin
 * end						(the value is "begin\nend"; no comment here)
 *
 * A line indented deeper than the property above it belongs to that property, so
 * a file may be indented as a whole, as in the AWS CLI.  Blank lines and lines
 * that start with # or ; are skipped.  Names of properties ignore case, names of
 * sections do not.  Sections that occur twice are merged; the last definition of
 * a property wins.
 * ----------------------------------------------------------------
 */

typedef struct ini_slice
{
	const char *start;
	size_t		len;
} ini_slice;

typedef enum ini_result
{
	INI_FOUND,
	INI_ABSENT,
	INI_TOO_LONG				/* found, but does not fit */
} ini_result;

/*
 * Number of the first invalid line, from 1; 0 if there is none.  The other
 * functions skip invalid lines, so check this first.
 */
extern int	ini_malformed_line(ini_slice text);

/*
 * Looks for "[KIND NAME]", where NAME may be quoted, or for "[NAME]" if kind is
 * NULL.
 */
extern bool ini_has_section(ini_slice text, const char *kind,
							const char *section);

/*
 * Writes a property's value, or that of one of its sub-properties if
 * subproperty is not NULL.  A property that has sub-properties has the value
 * "".  Unless the result is INI_FOUND, out is the empty string.
 */
extern ini_result ini_get(ini_slice text, const char *kind,
						  const char *section, const char *property,
						  const char *subproperty, char *out, size_t size);

/* Of ASCII, whatever the locale. */
extern char aws_lower(char c);
extern bool aws_is_space(char c);

/* ----------------------------------------------------------------
 * profile.c: One profile, as the shared config and credentials files define it.
 *
 * For credential_chain.c and endpoint.c.  Which files and which profile: AWS SDKs and
 * Tools Reference Guide, "Location of the shared config and credentials
 * files" and "AWS_PROFILE".
 * ----------------------------------------------------------------
 */

#define AWS_PATH_SIZE 4096

typedef struct aws_profile_file
{
	char		path[AWS_PATH_SIZE];	/* as opened; "~" stays if the home
										 * directory is unknown */
	ini_slice	text;			/* start is NULL if there is no such file */
	const char *kind;			/* how ini.c finds the profile's section */
	bool		has_profile;
} aws_profile_file;

struct aws_profile
{
	aws_settings settings;		/* what comes before the files, */
	const aws_environment *env; /* as does this */
	const char *name;
	aws_profile_file credentials;
	aws_profile_file config;
	char		unusable[1024]; /* why the files are, and the profile is empty; or "" */
};

/*
 * Reads the files.  They are unusable if one of them is malformed, or exists but cannot be
 * read, or is missing although a variable names it; or if neither has a profile that was
 * configured by name.  What such a file says could choose another store or another account.
 * A missing file or default profile is no error.  The profile points to the settings' texts and
 * the environment, so it must not outlive them.
 */
extern void aws_profile_open(aws_profile *profile, const aws_settings *settings,
							 const aws_environment *env);

/* Overwrites and frees the files' text. */
extern void aws_profile_close(aws_profile *profile);

/*
 * Another profile of the same files, which only the first one closes.  False if
 * neither file has it.
 */
extern bool aws_profile_other(const aws_profile *profile, const char *name,
							  aws_profile *other);

/* Why a file does not have the profile, for messages. */
extern const char *aws_profile_absence(const aws_profile_file *file);

/* A property of the profile in one of its files. */
extern ini_result aws_profile_get_from(const aws_profile *profile,
									   const aws_profile_file *file,
									   const char *property,
									   char *value, size_t size);

/* A property in either file; the credentials file takes precedence. */
extern ini_result aws_profile_get(const aws_profile *profile,
								  const char *property,
								  char *value, size_t size);

/*
 * The file with the authorities to trust: setting, AWS_CA_BUNDLE, the profile's "ca_bundle";
 * else "" is written.  False if it cannot be read; error then names it, and says why.
 */
extern bool aws_find_ca_file(const aws_profile *profile, char *path, size_t size,
							 char *error, size_t error_size);

/*
 * For settings, environment and files alike: "" means unset.
 */
extern bool aws_is_set(const char *value);

/* NULL if the variable is unset. */
extern const char *aws_get_variable(const aws_environment *env,
									const char *name);

/*
 * Sets *on to whether the variable, or else the profile's property, is "true".  Returns false for other
 * words than true and false, of which SDKs make different things.
 */
extern bool aws_read_switch(const aws_profile *profile, const char *variable,
							const char *property, bool *on);

/* Writes the variable, or else the profile's property (NULL: there is none), or ""; false if too long. */
extern bool aws_get_either(const aws_profile *profile, const char *variable,
						   const char *property, char *value, size_t size);

#define AWS_LETTERS_DIGITS \
	"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"

/* False if it does not fit; writes nothing then. */
extern bool aws_copy_text(const char *text, char *out, size_t size);

/*
 * Makes the name of a profile or a path printable in every encoding: it may
 * contain any bytes, and be cut in the middle of a character.
 */
extern void aws_make_printable(char *text);

/* May it be part of a header or a URL without escaping?  "" may. */
extern bool aws_is_visible_ascii(const char *text);

/* ----------------------------------------------------------------
 * plan_source.c: The parts of a plan for credentials, for credential_chain.c and plan_profile.c.
 *
 * Each function adds its part to the plan.
 * ----------------------------------------------------------------
 */

/* What each part is made from, and where it goes. */
typedef struct aws_search
{
	const aws_profile *profile; /* that of the settings: roles may lead to others */
	aws_plan   *plan;
	char	   *error;			/* unless the result is AWS_FOUND: why, without secrets */
	size_t		error_size;
} aws_search;

/* A format and its values, as the error; then the result. */
#define aws_not_here(s, ...) \
	(snprintf((s)->error, (s)->error_size, __VA_ARGS__), AWS_NOT_HERE)
#define aws_broken(s, ...) (snprintf((s)->error, (s)->error_size, __VA_ARGS__), AWS_BROKEN)

/* Who fetches what the plan has; the rest says for people what that is. */
#define aws_to_fetch(s, by, ...) \
	((s)->plan->fetcher = (by), \
	 snprintf((s)->plan->keys.source, sizeof((s)->plan->keys.source), __VA_ARGS__), AWS_FOUND)

/* The three parts of keys, as one source has them. */
typedef struct aws_key_source
{
	const char *where;			/* for people: "environment" */
	const char *names[3];
	const char *values[3];		/* NULL or "" where unset */
} aws_key_source;

extern aws_found aws_plan_keys(const aws_search *s, const aws_key_source *source);

/* Values of white space only count as unset. */
extern aws_found aws_plan_environment(const aws_search *s);
extern aws_found aws_plan_container(const aws_search *s);
extern aws_found aws_plan_metadata(const aws_search *s);

/*
 * Checks the parts of the plan's role before anything is sent, and adds the duration, "" where
 * unset.  The role's session gets a name if it has none.
 */
extern aws_found aws_plan_role(const aws_search *s, const char *where, aws_role *role,
							   const char *duration);

/*
 * A plan that finds the Region in instance metadata, after what aws_find_region() has tried.
 * Unless the result is AWS_FOUND, error says why not.
 */
extern aws_found aws_make_region_plan(const aws_profile *profile, aws_plan *plan,
									  char *error, size_t error_size);

/* ----------------------------------------------------------------
 * plan_profile.c: The part of a plan that a profile defines.
 * ----------------------------------------------------------------
 */

extern aws_found aws_plan_profile(const aws_search *s);

/* ----------------------------------------------------------------
 * renewal.c: When credentials are fetched again.
 *
 * In the background, long before they expire: when 40 to 50 percent of the time
 * that they have left has passed.  So a source may fail for about half of that time,
 * and a thousand servers that got theirs at once do not ask again at once.  A source
 * that gives the same credentials again is asked ever more often, as they get old.
 * A source that fails is asked again with growing delays.
 *
 * Times are microseconds of the caller's clock.
 * ----------------------------------------------------------------
 */

#define AWS_RENEWAL_NEVER		INT64_MAX
#define AWS_RENEWAL_SOONEST_US	INT64_C(20000000)	/* after a success */
#define AWS_RENEWAL_RETRY_US	INT64_C(2000000)	/* after a failure; doubles */
#define AWS_RENEWAL_RETRY_MAX_US INT64_C(60000000)

/* Zero it before first use. */
typedef struct aws_renewal
{
	int64_t		next;			/* when to ask, or AWS_RENEWAL_NEVER */
	unsigned	failures;		/* in a row */
} aws_renewal;

/* left: how long the credentials are still valid; AWS_RENEWAL_NEVER: they do not expire. */
extern void aws_renewal_succeeded(aws_renewal *renewal, int64_t now, int64_t left,
								  uint64_t random);

/* The clock may have been corrected: "left" is what is left now. */
extern void aws_renewal_check(aws_renewal *renewal, int64_t now, int64_t left);
extern void aws_renewal_failed(aws_renewal *renewal, int64_t now, uint64_t random);

/* ----------------------------------------------------------------
 * sigv4.c: AWS Signature Version 4 for a POST with a body held in memory.
 *
 * Uses OpenSSL for SHA-256 and HMAC.  Source of the algorithm: AWS
 * General Reference, "Create a signed AWS API request".
 * ----------------------------------------------------------------
 */

typedef struct sigv4_header
{
	const char *name;			/* any case */
	const char *value;
} sigv4_header;

/*
 * Caches the derived key for one day, region, service and secret.  Zero it before
 * first use and wipe it with sigv4_key_wipe().  It compares the secret's hash, so
 * it notices a new secret.
 */
typedef struct sigv4_key
{
	struct evp_mac_ctx_st *mac; /* OpenSSL's, with the derived key; NULL: none */
	char		scope[128];		/* "20261121/us-east-1/dynamodb/aws4_request" */
	uint8_t		secret_hash[32];
} sigv4_key;

typedef struct sigv4_request
{
	const char *method;			/* "POST" */
	const char *path;			/* "/", already encoded */
	const char *query;			/* canonical query string, "" for DynamoDB */
	const sigv4_header *headers;	/* all headers to sign, including host and
									 * x-amz-date; in any order */
	int			header_count;
	const void *body;
	size_t		body_len;
	const char *region;
	const char *service;		/* "dynamodb" */
	const char *access_key_id;
	const char *secret_access_key;
	const char *amz_date;		/* "20261121T093000Z", see sigv4_amz_date() */
} sigv4_request;

#define SIGV4_DATE_SIZE 17

/* Formats epoch seconds as UTC "YYYYMMDDTHHMMSSZ". */
extern void sigv4_amz_date(int64_t epoch_s, char out[SIGV4_DATE_SIZE]);

/*
 * Writes the value of the Authorization header to out.  False, and "", if it
 * does not fit or OpenSSL fails.
 */
extern bool sigv4_sign(const sigv4_request *request, sigv4_key *key,
					   char *out, size_t size);

extern void sigv4_key_wipe(sigv4_key *key);

#endif							/* DDBLOCK_AWS_AWS_H */
