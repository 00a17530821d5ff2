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
 * The result is a plan.  If the credentials are keys in the settings, the environment or a file,
 * the plan has them.  Otherwise the plan says how fetch.c can fetch them, for example by a request
 * to the instance's metadata service.
 *
 * The caller passes functions that read the environment and files, so tests and fuzzers need
 * neither.  Order and names of the sources are those of the AWS SDKs and Tools Reference Guide,
 * "Standardized credential providers".
 * ----------------------------------------------------------------
 */

/* The values of ddblock's settings; NULL or "" where unset. */
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
	char		source[384];	/* for messages: "environment", "profile \"x\" in
								 * /home/pg/.aws/credentials" */
	char		file[1024];		/* the shared file that has these keys, or "" */
	int64_t		expires_s;		/* epoch seconds; 0: never, or unknown */
} aws_credentials;

/* The caller's access to environment and files.  arg is passed to both functions. */
typedef struct aws_environment
{
	void	   *arg;
	const char *(*get) (void *arg, const char *name);	/* as getenv() */

	const char *home;			/* the directory that "~" stands for; NULL: unknown */

	/*
	 * Returns the whole file, malloc'd, and its size in *len.  Returns NULL, with errno set, if
	 * the file cannot be read or is over 1 MiB.
	 */
	char	   *(*read_file) (void *arg, const char *path, size_t *len);
} aws_environment;

/* What looking into one source has found.  A source is the environment, for example. */
typedef enum aws_found
{
	AWS_FOUND,
	AWS_NOT_HERE,				/* the source has nothing: the search goes on with the next */
	AWS_BROKEN					/* the source is unusable: the search ends */
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

/*
 * How to get credentials.  First come the credentials that the source gives: "keys", or what
 * "fetcher" fetches with the parameters in "from".  Then the roles are assumed, each with the
 * credentials of the step before.  Example: a profile with role_arn and credential_source =
 * Ec2InstanceMetadata gives the fetcher aws_fetch_metadata and one role.
 */
typedef struct aws_plan
{
	const struct aws_fetcher *fetcher;	/* NULL: the first credentials are in keys */
	aws_credentials keys;		/* keys.source is set in each case */
	char		sts_url[AWS_TEXT_SIZE]; /* set if a role is assumed, as is sts_region */
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
			char		token_file[AWS_TEXT_SIZE];	/* where "aws sso login" keeps the token */
		}			sso;
		char		command[AWS_TEXT_SIZE];
		struct
		{
			char		url[AWS_TEXT_SIZE];
			char		token[AWS_TEXT_SIZE * 4];	/* "" if there is none */
			char		token_file[AWS_TEXT_SIZE];	/* if set, used instead of token */
		}			container;
		struct
		{
			char		url[AWS_TEXT_SIZE]; /* without a path */
			int			timeout_ms;
			int			attempts;	/* how often each request is sent; 0: fetch.c decides */
			bool		region; /* fetch the instance's Region instead of credentials */
		}			metadata;
	}			from;
	aws_role	roles[AWS_ROLES_MAX];	/* in the order in which they are assumed */
	int			role_count;
	char		tried[2048];	/* for messages: why each earlier source had no credentials */
} aws_plan;

/* A profile with the settings and the environment: see profile.c. */
typedef struct aws_profile aws_profile;

/*
 * Makes a plan from the first source that has credentials.  Unless the result is AWS_FOUND, error
 * says why the last source failed, and then why each earlier one did.
 */
extern aws_found aws_make_plan(const aws_profile *profile, aws_plan *plan,
							   char *error, size_t error_size);

/*
 * Writes an error that says first why the last source failed ("last"), then why each earlier one
 * did ("tried").
 */
extern void aws_plan_error(char *to, size_t size, const char *last, const char *tried);

/* Overwrites a variable that may contain secrets. */
#define aws_wipe(thing) explicit_bzero(thing, sizeof(*(thing)))

/* ----------------------------------------------------------------
 * endpoint.c: Finds the AWS Region, and the endpoints of DynamoDB and of the services that give
 * credentials: in the settings, the environment and the shared files.
 * ----------------------------------------------------------------
 */

/*
 * Finds the Region: the first that is set of ddblock.region, AWS_REGION, AWS_DEFAULT_REGION and the
 * profile's "region".  Unless the result is AWS_FOUND, region is "", and error says why:
 *
 * AWS_NOT_HERE: none of these is set.  Instance metadata may have the Region.
 * AWS_BROKEN: the text cannot be the name of a Region, or the shared files are unusable.
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
 * Finds a service's endpoint: the first that is set of
 *
 * - for DynamoDB, ddblock.endpoint_url
 * - AWS_ENDPOINT_URL_DYNAMODB, or that of the other service
 * - AWS_ENDPOINT_URL
 * - endpoint_url of the service in the profile's services section
 * - the profile's endpoint_url
 *
 * If none is set, it is Amazon's endpoint for the Region, with FIPS and dual stack if the
 * environment or the profile asks for them.  AWS_IGNORE_CONFIGURED_ENDPOINT_URLS and
 * ignore_configured_endpoint_urls turn off all in the list except the setting.  A slash at the end
 * of the URL is removed.  Returns false, with url "" and an error, if the URL is invalid, or if
 * the configuration asks for an endpoint that ddblock cannot use.
 *
 * Requests are signed for the region.  For DynamoDB, the Region "local" becomes "us-east-1" unless
 * an endpoint is configured: region must have room for that.
 */
extern bool aws_find_endpoint(const aws_profile *profile, aws_service service,
							  char *region, char *url, size_t size,
							  char *error, size_t error_size);

/* Removes a slash at the end of a URL. */
extern void aws_drop_slash(char *url);

/* ----------------------------------------------------------------
 * endpoint_url.c: What an endpoint's URL may be.
 * ----------------------------------------------------------------
 */

/*
 * Checks that a URL has the form scheme://host[:port][/], where the scheme is http or https.
 * Writes the value of the Host header: "host" or "host:port", without the port if it is the
 * scheme's default.  Returns false, with an error, if the URL has another form.
 */
extern bool aws_endpoint_host(const char *url, char *host, size_t size,
							  char *error, size_t error_size);

/*
 * Does the host, which a port and a path may follow, mean this machine, or one of the addresses at
 * which ECS and EKS serve credentials to the machine's own containers?  Plain HTTP is safe there,
 * and no proxy leads there.
 */
extern bool aws_is_local_host(const char *host);

/*
 * Checks a proxy's URL: an endpoint's URL, in which "user:password@" may precede the host.  Copies
 * it without user, password and final slash, so that it may be shown.  Returns false, with shown
 * "", if the URL has another form.
 */
extern bool aws_proxy_shown(const char *proxy, char *shown, size_t size);

/* ----------------------------------------------------------------
 * partition.c: Amazon's own endpoints.
 * ----------------------------------------------------------------
 */

/* Does the URL lead to one of Amazon's own hosts, by https? */
extern bool aws_is_own_endpoint(const char *url);

/* Says why the text cannot be the name of a Region; NULL: it can. */
extern const char *aws_wrong_region(const char *text);

/*
 * Writes https://NAME.REGION.SUFFIX, as the Region's partition has it; false if it does not fit.
 * Example: https://dynamodb.eu-west-1.amazonaws.com.
 */
extern bool aws_own_endpoint(const char *name, const char *region, bool fips,
							 bool dual_stack, char *url, size_t size);

/* ----------------------------------------------------------------
 * epoch_clock.c: DynamoDB's time.
 *
 * Signatures and fencing tokens use DynamoDB's clock, as the Date headers of its replies show it,
 * extrapolated by this machine's steady clock.  So setting the machine's wall clock has no effect.
 * Times are in microseconds; an offset is epoch time minus the steady clock's time.
 *
 * A Date has whole seconds, and the server wrote it between the sending of the request and the
 * receipt of the reply.  So each reply gives an interval of offsets.  Example: a request is sent at
 * 7.0 s on the steady clock, the reply is received at 7.2 s, and its Date is 1000 s.  The server's
 * time was 1000 to 1001 s at some moment between 7.0 and 7.2 s, so the offset is between 992.8 and
 * 994.0 s.  The intersection of the intervals of all replies is narrower than each.  It widens with
 * time by the drift that the steady clock may have.
 *
 * A single Date may be wrong.  So each Date is compared with the believed interval:
 *
 * - If the Date agrees with it, the intersection of both is believed.
 * - If the Date is at most EPOCH_STEP_US from it, the Date's interval is believed instead.
 * - If the Date is further away, it contradicts the believed interval.  It does not change that,
 *   but is counted as a vote for the Date's own interval, the "other interval".
 *
 * Before any Date is believed, there is no such interval.  Then the first two rules are one: a
 * Date's interval is believed if it is at most EPOCH_NEAR_US from the wall clock's offset.
 *
 * Votes are counted by these rules:
 *
 * - A further vote for the other interval may be up to EPOCH_STEP_US away from it, because the
 *   clocks of DynamoDB's servers differ by a little.  It counts only if its request was sent after
 *   the vote before was received.
 * - A Date that contradicts both intervals takes a vote away.  If there is only one vote, the
 *   Date's interval replaces the other interval instead, with one vote.
 * - A Date that does not contradict the believed interval clears the votes.
 * - With EPOCH_VOTES the other interval is believed.
 *
 * If the wall clock contradicts the other interval, too, the votes must also span at least
 * EPOCH_DOUBT_US: several Dates in a row may be wrong, and the machine right.  There is one
 * exception: no Date was believed yet, and DynamoDB has refused a signature with the wall clock's
 * time.  Then the machine is wrong, because whatever changes Dates on their way to us does not
 * check signatures.
 * ----------------------------------------------------------------
 */

#define EPOCH_VOTES		5
#define EPOCH_NEAR_US	INT64_C(5000000)	/* distance from the wall clock */
#define EPOCH_STEP_US	INT64_C(2000000)	/* distance from earlier Dates */
#define EPOCH_DOUBT_US	INT64_C(10000000)

typedef struct epoch_interval
{
	int64_t		low;			/* the lowest offset */
	int64_t		high;			/* the highest */
	int64_t		at;				/* when it was computed, on the steady clock */
} epoch_interval;

/* Plain data; may be copied. */
typedef struct epoch_clock
{
	bool		known;			/* a Date was believed; until then, "now" is the wall clock's */
	int64_t		drift_ppm;		/* how much too fast or too slow the steady clock may be */
	bool		wall_refused;	/* DynamoDB has refused a signature with the wall clock's time */
	epoch_interval now;			/* the believed interval */
	unsigned	votes;			/* votes for the other interval */
	epoch_interval other;		/* the other interval; undefined if there are no votes */
	int64_t		votes_since;	/* when the first vote came, on the steady clock */
} epoch_clock;

/* Starts with the wall clock's offset, which is all that is known before the first reply. */
extern void epoch_clock_start(epoch_clock *clock, int64_t wall_offset,
							  int64_t drift_ppm);

/*
 * Learns from a reply.  date_s: its Date, in epoch seconds, truncated.  sent, received: when the
 * request was sent and the reply received, on the steady clock.  wall_offset: the wall clock's
 * offset when the reply was received.
 */
extern void epoch_clock_reply(epoch_clock *clock, int64_t date_s,
							  int64_t sent, int64_t received, int64_t wall_offset);

/*
 * Call it before epoch_clock_reply() if DynamoDB has refused the request because of the time of
 * its signature.
 */
extern void epoch_clock_refused(epoch_clock *clock);

/* The lowest and the highest offset that is possible at the time "now". */
extern int64_t epoch_clock_low(const epoch_clock *clock, int64_t now);
extern int64_t epoch_clock_high(const epoch_clock *clock, int64_t now);

/*
 * The offset to sign with.  It follows the newest Dates, even if they are not believed yet: a
 * wrong time does no harm there, because DynamoDB only refuses the signature.
 */
extern int64_t epoch_clock_likely(const epoch_clock *clock);

/* ----------------------------------------------------------------
 * fetch.c: Fetches the credentials of a plan, one errand after the other.
 *
 * An errand is an HTTP request to send or a command to run.  The caller does it: no function here
 * waits or reads a clock.
 *
 * aws_fetch_begin(fetch);
 * while ((step = aws_fetch_next(fetch, env, now)) is an errand)
 * wait fetch->pause_ms, do fetch->errand, and pass its result to aws_fetch_result();
 * ----------------------------------------------------------------
 */

#define AWS_HEADERS_MAX 6

typedef enum aws_step
{
	AWS_STEP_HTTP,				/* send the errand's request */
	AWS_STEP_PROCESS,			/* run the errand's body as a command of the shell */
	AWS_STEP_DONE,				/* the credentials are in fetch->found, or the Region in
								 * fetch->name */
	AWS_STEP_FAILED				/* fetch->error says why */
} aws_step;

/* What the caller does next.  Valid until it calls aws_fetch_result(). */
typedef struct aws_errand
{
	const char *method;			/* NULL: a command */
	char		url[AWS_TEXT_SIZE * 2];
	char		headers[AWS_HEADERS_MAX][8400];	/* "Name: value" */
	int			header_count;
	char		body[65536];
	int			timeout_ms;
	bool		direct;			/* not through a proxy: the service belongs to this machine */
} aws_errand;

/* The result of an errand. */
typedef struct aws_result
{
	bool		done;			/* a reply came, or the command ended by itself */
	int			status;			/* the HTTP status, or the command's exit status */
	const char *body;			/* the reply's body, or the command's output; a NUL follows */
	size_t		len;
	int64_t		date_s;			/* the Date header, epoch seconds; 0: none */
	const char *problem;		/* unless done: why not, for messages */
} aws_result;

typedef struct aws_fetch aws_fetch;

/*
 * A way to fetch credentials, in one step or several, which fetch->step counts from 0.  In each
 * step, "ask" prepares the errand, and "take" reads its result.  Either returns false if that
 * fails; then fetch->error says why.  "take" sets fetch->fetcher to NULL when it has the
 * credentials.
 */
typedef struct aws_fetcher
{
	bool		(*ask) (aws_fetch *fetch);
	bool		(*take) (aws_fetch *fetch, const aws_result *result);
} aws_fetcher;

struct aws_fetch
{
	aws_plan	plan;
	const aws_fetcher *fetcher; /* the plan's, or that of roles; NULL: it has its credentials */
	int			roles_assumed;
	int			step;			/* of the fetcher */
	int			tries;			/* how often this step's errand has failed */
	const aws_environment *env; /* for "ask" */
	int64_t		now_s;			/* the caller's time in epoch seconds, plus clock_error_s */
	int64_t		clock_error_s;	/* by how much the caller's time lags behind STS's Date */
	cJSON	   *json;			/* for "take": the result's body; NULL: it is no JSON */
	char		token[8192];	/* given by the metadata service, by single sign-on, or in a
								 * container's token file */
	char		name[AWS_NAME_SIZE];	/* of the instance's role, or Region */
	int			pause_ms;		/* how long to wait before the errand, because a server has
								 * refused it for the moment */
	bool		may_pass;		/* the last errand failed, but may succeed a moment later */
	aws_errand	errand;
	aws_credentials found;		/* the credentials so far: the plan's, then those of each role */
	char		error[960];
};

/* Begins to fetch.  The caller has set fetch->plan. */
extern void aws_fetch_begin(aws_fetch *fetch);

/* Prepares the next errand.  now_s: the time in epoch seconds. */
extern aws_step aws_fetch_next(aws_fetch *fetch, const aws_environment *env,
							   int64_t now_s);
extern void aws_fetch_result(aws_fetch *fetch, const aws_result *result, int64_t now_s);

/* ----------------------------------------------------------------
 * fetch_container.c, fetch_metadata.c, fetch_process.c, fetch_sso.c, fetch_sts.c: The ways to
 * fetch credentials.  Private to src/aws.
 * ----------------------------------------------------------------
 */

extern const aws_fetcher aws_fetch_web_identity;	/* a role, with a token from a file */
extern const aws_fetcher aws_fetch_sso; /* a role of IAM Identity Center */
extern const aws_fetcher aws_fetch_process; /* credentials that a command prints */
extern const aws_fetcher aws_fetch_container;	/* ECS, EKS Pod Identity */
extern const aws_fetcher aws_fetch_metadata;	/* the EC2 instance's role, or its Region */
extern const aws_fetcher aws_fetch_role;	/* the next of the plan's roles */

/* ----------------------------------------------------------------
 * fetcher.c: Functions that the ways to fetch credentials share.  Private to src/aws.
 *
 * "asked" is the part of an error that names what was asked for, for example "AssumeRole".
 * ----------------------------------------------------------------
 */

/* Sets fetch->error.  Always returns false, so that a caller can return its result. */
extern bool aws_fetch_fail(aws_fetch *fetch, const char *format,...)
			__attribute__((format(printf, 2, 3)));

/*
 * Begins the errand's request, which has no header and an empty body at first; then adds a header
 * to it.  Both return false, with an error, if the URL or the header is too long, or if the header
 * is not printable ASCII.
 */
extern bool aws_errand_request(aws_fetch *fetch, const char *method, int timeout_ms,
							   const char *url, const char *path);
extern bool aws_errand_header(aws_fetch *fetch, const char *name, const char *value);

/* Appends "name=value", after a "&" unless text is empty, escaped; false if it does not fit. */
extern bool aws_add_field(char *text, size_t size, const char *name, const char *value);

/* Was the request answered with HTTP status 200?  If not, sets an error. */
extern bool aws_fetch_succeeded(aws_fetch *fetch, const aws_result *result,
								const char *asked);

/*
 * Reads a token: the first line of its file.  Returns false, with an error, if the line is empty,
 * too long, or not printable ASCII, or if the file cannot be read.
 */
extern bool aws_read_token(aws_fetch *fetch, const char *path, char *token, size_t size);

/*
 * Copies the parts of credentials into fetch->found, and ends the fetcher.  The session token and
 * the time of expiry may be NULL; without the latter, the credentials do not expire.  Returns
 * false, with an error, if the credentials are unusable.
 */
extern bool aws_take_credentials(aws_fetch *fetch, const char *asked,
								 const char *access_key_id,
								 const char *secret_access_key,
								 const char *session_token,
								 const char *expiration);

/*
 * As aws_take_credentials(), with the members of a JSON object that have these names: key, secret,
 * session token, time of expiry.
 */
extern bool aws_take_json(aws_fetch *fetch, const char *asked, const cJSON *object,
						  const char *const names[4]);

/* The names that the services of instances and containers use. */
extern const char *const aws_role_names[4];

/* The string that is the object's member of this name; NULL: there is none. */
extern const char *aws_json_text(const cJSON *object, const char *name);

/* Overwrites all strings, because they may be secret, and frees the tree. */
extern void aws_json_free(cJSON *json);

/*
 * Reads a time in ISO 8601, such as "2026-11-22T10:53:54Z", and returns epoch seconds; 0: invalid.
 * Fractions of a second are ignored.  "UTC" or an offset such as "+01:00" may replace the "Z".
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
 * The number of the first invalid line, counted from 1; 0: all lines are valid.  The other
 * functions skip invalid lines, so call this one first.
 */
extern int	ini_malformed_line(ini_slice text);

/* Is there a section "[KIND SECTION]" (SECTION may be quoted), or "[SECTION]" if kind is NULL? */
extern bool ini_has_section(ini_slice text, const char *kind,
							const char *section);

/*
 * Writes the value of a property, or of its sub-property if subproperty is not NULL.  A property
 * that has sub-properties has the value "".  Unless the result is INI_FOUND, out is "".
 */
extern ini_result ini_get(ini_slice text, const char *kind,
						  const char *section, const char *property,
						  const char *subproperty, char *out, size_t size);

/* tolower() and isspace() for ASCII, independent of the locale. */
extern char aws_lower(char c);
extern bool aws_is_space(char c);

/* ----------------------------------------------------------------
 * profile.c: One profile, as the shared config and credentials files define it.
 *
 * Which files are read, and which profile is used: see AWS SDKs and Tools Reference Guide,
 * "Location of the shared config and credentials files" and "AWS_PROFILE".
 * ----------------------------------------------------------------
 */

#define AWS_PATH_SIZE 4096

typedef struct aws_profile_file
{
	char		path[AWS_PATH_SIZE];	/* the path as it was opened; begins with "~" if the home
										 * directory is unknown */
	ini_slice	text;			/* start is NULL if there is no such file */
	const char *kind;			/* the profile's section has this kind (ini_has_section) */
	bool		has_profile;
} aws_profile_file;

struct aws_profile
{
	aws_settings settings;		/* take precedence over the environment */
	const aws_environment *env; /* takes precedence over the files */
	const char *name;
	aws_profile_file credentials;
	aws_profile_file config;
	char		unusable[1024]; /* why the files cannot be used; then both are closed, and the
								 * profile has no properties.  "": they can */
};

/*
 * Reads the files.  They are unusable if
 *
 * - one of them is malformed
 * - one of them exists, but cannot be read
 * - one of them is missing, although an environment variable names it
 * - a setting or a variable names a profile, and neither file has it
 *
 * Going on without such a file could lead to another table or another account.  It is no error
 * that a file at the default place or the default profile is missing.  The profile points to the
 * settings' texts and the environment, so it must not outlive them.
 */
extern void aws_profile_open(aws_profile *profile, const aws_settings *settings,
							 const aws_environment *env);

/* Overwrites and frees the files' text. */
extern void aws_profile_close(aws_profile *profile);

/*
 * Makes "other" another profile of the same files.  Do not close it: both share the files' text.
 * Returns false if neither file has this profile.
 */
extern bool aws_profile_other(const aws_profile *profile, const char *name,
							  aws_profile *other);

/* For messages: why a file does not have the profile. */
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
 * Finds the file of trusted certificate authorities: the first that is set of ddblock.ca_file,
 * AWS_CA_BUNDLE and the profile's "ca_bundle".  Writes "" if none is set.  Returns false if the
 * file cannot be read; error names it then, and says why.
 */
extern bool aws_find_ca_file(const aws_profile *profile, char *path, size_t size,
							 char *error, size_t error_size);

/* A setting, a variable or a property that is "" counts as unset. */
extern bool aws_is_set(const char *value);

/* The variable's value; NULL if it is unset or "". */
extern const char *aws_get_variable(const aws_environment *env,
									const char *name);

/*
 * Sets *on to whether the variable, or if that is unset the profile's property, is "true".  Returns
 * false for a value other than true and false, because the SDKs disagree on what others mean.
 */
extern bool aws_read_switch(const aws_profile *profile, const char *variable,
							const char *property, bool *on);

/*
 * Writes the value of the variable, or if that is unset of the profile's property, or if that is
 * unset, too, "".  property NULL: there is no such property.  Returns false if the value is too
 * long.
 */
extern bool aws_get_either(const aws_profile *profile, const char *variable,
						   const char *property, char *value, size_t size);

#define AWS_LETTERS_DIGITS \
	"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"

/* Copies the text; if it does not fit, writes nothing and returns false. */
extern bool aws_copy_text(const char *text, char *out, size_t size);

/*
 * Replaces all but printable ASCII by "?", so that a message is valid in every encoding: names of
 * profiles and paths may contain any bytes, and may be cut in the middle of a character.
 */
extern void aws_make_printable(char *text);

/*
 * Does the text have visible ASCII characters only, so that it can be part of a header or a URL
 * without escaping?  True for "".
 */
extern bool aws_is_visible_ascii(const char *text);

/* ----------------------------------------------------------------
 * plan_source.c: The sources of credentials that are not profiles.  For credential_chain.c and
 * plan_profile.c.
 *
 * Each function looks into one source, and adds what it finds there to the plan.
 * ----------------------------------------------------------------
 */

/* A search for credentials: its input, and where its result goes. */
typedef struct aws_search
{
	const aws_profile *profile; /* the configured profile; its roles may lead to others */
	aws_plan   *plan;
	char	   *error;			/* written unless the result is AWS_FOUND; has no secrets */
	size_t		error_size;
} aws_search;

/* Write an error, as snprintf() does, and return the result after which they are named. */
#define aws_not_here(s, ...) \
	(snprintf((s)->error, (s)->error_size, __VA_ARGS__), AWS_NOT_HERE)
#define aws_broken(s, ...) (snprintf((s)->error, (s)->error_size, __VA_ARGS__), AWS_BROKEN)

/*
 * Sets the fetcher of the plan, and the name of the source for messages (a format and its values).
 * Returns AWS_FOUND.
 */
#define aws_to_fetch(s, by, ...) \
	((s)->plan->fetcher = (by), \
	 snprintf((s)->plan->keys.source, sizeof((s)->plan->keys.source), __VA_ARGS__), AWS_FOUND)

/* The three parts of keys in one source: access key, secret key, session token. */
typedef struct aws_key_source
{
	const char *where;			/* for messages: "environment" */
	const char *names[3];		/* such as AWS_ACCESS_KEY_ID, for messages */
	const char *values[3];		/* NULL or "" where unset */
} aws_key_source;

extern aws_found aws_plan_keys(const aws_search *s, const aws_key_source *source);

/* A variable that has only white space counts as unset. */
extern aws_found aws_plan_environment(const aws_search *s);
extern aws_found aws_plan_container(const aws_search *s);
extern aws_found aws_plan_metadata(const aws_search *s);

/*
 * Checks a role of the plan, and completes it: with the duration (text in seconds; "": unset), and
 * with a session name if it has none.  where: names the source in an error.
 */
extern aws_found aws_plan_role(const aws_search *s, const char *where, aws_role *role,
							   const char *duration);

/*
 * Makes a plan to fetch the Region from instance metadata, for use when aws_find_region() has found
 * none.  Unless the result is AWS_FOUND, error says why this is impossible.
 */
extern aws_found aws_make_region_plan(const aws_profile *profile, aws_plan *plan,
									  char *error, size_t error_size);

/* ----------------------------------------------------------------
 * plan_profile.c: The part of a plan that a profile defines.
 * ----------------------------------------------------------------
 */

extern aws_found aws_plan_profile(const aws_search *s);

/* ----------------------------------------------------------------
 * renewal.c: Decides when credentials are fetched again.
 *
 * They are fetched again in the background, long before they expire: after a random 40 to 50
 * percent of the time that they are still valid.  Example: credentials that are valid for 60
 * minutes are fetched again after 24 to 30 minutes.
 *
 * - So a source may fail for about half of that time before the credentials expire.
 * - A thousand servers that got their credentials at the same moment do not all ask again at the
 *   same moment.
 * - If the source gives the same credentials again, the next fetch follows after 40 to 50 percent
 *   of what is left then: the source is asked ever more often.
 * - If the source fails, it is asked again with growing delays.
 *
 * Times are microseconds of the caller's clock.
 * ----------------------------------------------------------------
 */

#define AWS_RENEWAL_NEVER		INT64_MAX
#define AWS_RENEWAL_SOONEST_US	INT64_C(20000000)	/* the shortest delay after a success */
#define AWS_RENEWAL_RETRY_US	INT64_C(2000000)	/* the delay after a failure; doubles */
#define AWS_RENEWAL_RETRY_MAX_US INT64_C(60000000)

/* Zero it before first use. */
typedef struct aws_renewal
{
	int64_t		next;			/* when to fetch again, or AWS_RENEWAL_NEVER; 0: not known yet */
	unsigned	failures;		/* in a row */
} aws_renewal;

/*
 * Credentials have been fetched.  left: how long they are valid from now on; AWS_RENEWAL_NEVER:
 * they do not expire.
 */
extern void aws_renewal_succeeded(aws_renewal *renewal, int64_t now, int64_t left,
								  uint64_t random);

/*
 * Brings the next fetch forward if the credentials expire earlier than was thought, because
 * DynamoDB's time has been corrected.  left: how long they are valid from now on.
 */
extern void aws_renewal_check(aws_renewal *renewal, int64_t now, int64_t left);

/* The source has failed. */
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
 * A cache of the derived key for one day, region, service and secret.  Zero it before first use,
 * and wipe it with sigv4_key_wipe().  sigv4_sign() notices a new secret by its hash.
 */
typedef struct sigv4_key
{
	struct evp_mac_ctx_st *mac; /* OpenSSL's context with the derived key; NULL: none */
	char		scope[128];		/* "20261121/us-east-1/dynamodb/aws4_request" */
	uint8_t		secret_hash[32];
} sigv4_key;

typedef struct sigv4_request
{
	const char *method;			/* "POST" */
	const char *path;			/* "/", already encoded */
	const char *query;			/* the canonical query string; "" for DynamoDB */
	const sigv4_header *headers;	/* all headers to sign, including host and
									 * x-amz-date, in any order */
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
 * Writes the value of the Authorization header to out.  Returns false, with out "", if the value
 * does not fit or OpenSSL fails.
 */
extern bool sigv4_sign(const sigv4_request *request, sigv4_key *key,
					   char *out, size_t size);

extern void sigv4_key_wipe(sigv4_key *key);

#endif							/* DDBLOCK_AWS_AWS_H */
