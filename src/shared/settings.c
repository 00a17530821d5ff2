/*-------------------------------------------------------------------------
 *
 * settings.c
 *	  Defines the ddblock.* settings and checks their values.
 *
 * Endpoint, Region, table and keys are fixed at server start, so that no SQL
 * user can have requests with the server's signature sent elsewhere.
 *
 * The secret key, the session token and the proxy with its password never stay in the
 * variable that PostgreSQL knows: SHOW would show it, and a reload logs changed values.
 * Their check hook moves the text to the setting's "extra" and leaves an empty
 * string.  If a statement that names one of them fails, such as ALTER SYSTEM,
 * the log does not get its text.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <limits.h>

#include "mb/pg_wchar.h"
#include "tcop/tcopprot.h"
#include "utils/varlena.h"

#include "aws/aws.h"
#include "dynamo/dynamo.h"
#include "lock/leadership.h"
#include "lock/join_list.h"
#include "shared/compat.h"
#include "shared/errors.h"
#include "shared/settings.h"

/* ALTER SYSTEM does not take secrets, because it writes to a file that few people protect. */
#define SECRET_FLAGS \
	(GUC_SUPERUSER_ONLY | GUC_NO_SHOW_ALL | GUC_NOT_IN_SAMPLE | GUC_DISALLOW_IN_AUTO_FILE)
#define PREFIX "ddblock."
#define NEAR_MAX 5				/* letters that differ between a mistyped name and what was meant */
#define KEY_NAME_MAX 255
#define TABLE_NAME_MIN 3
#define TABLE_NAME_MAX 255
#define TABLE_ARN_MAX 1024
#define OWNER_NAME_MAX 255

/*
 * The variables have the settings' defaults already, because without preloading nobody defines the
 * settings, and some functions work all the same.
 */
char	   *ddblock_region = "";
char	   *ddblock_endpoint_url = "";
char	   *ddblock_global_table_region = "";
char	   *ddblock_lock_table = "lockTable";
char	   *ddblock_queue_table = "queueTable";
char	   *ddblock_partition_key = "key";
char	   *ddblock_sort_key = "";
char	   *ddblock_sort_key_value = "";
char	   *ddblock_sort_separator = "";
char	   *ddblock_owner_name = "";
int			ddblock_max_leases;
int			ddblock_superuser_reserved_leases;
int			ddblock_max_connections;
int			ddblock_connect_timeout;
int			ddblock_request_timeout;
int			ddblock_retry_timeout;
int			ddblock_poll_interval;
int			ddblock_released_item_ttl;
bool		ddblock_keep_warm;
bool		ddblock_log_grants;
char	   *ddblock_leaderships = "";
bool		ddblock_leaderships_on_standby;
char	   *ddblock_access_key_id = "";
char	   *ddblock_secret_access_key = "";
char	   *ddblock_session_token = "";
char	   *ddblock_profile = "";
char	   *ddblock_ca_file = "";
char	   *ddblock_proxy = "";
int			ddblock_clock_takeover;
int			ddblock_clock_slack;
int			ddblock_role_max_leases;
char	   *ddblock_lock_prefix = "";
int			ddblock_lease_duration;
double		ddblock_safety_margin;
char	   *ddblock_join_locks = "";
int			ddblock_on_lease_lost;
bool		ddblock_commit_guard;
bool		ddblock_release_on_rollback;

static const struct config_enum_entry clock_takeover_options[] = {
	{"auto", CLOCK_TAKEOVER_AUTO, false},
	{"on", CLOCK_TAKEOVER_ON, false},
	{"off", CLOCK_TAKEOVER_OFF, false},
	{NULL, 0, false}
};

static const struct config_enum_entry on_lease_lost_options[] = {
	{"cancel", ON_LEASE_LOST_CANCEL, false},
	{"terminate", ON_LEASE_LOST_TERMINATE, false},
	{"none", ON_LEASE_LOST_NONE, false},
	{NULL, 0, false}
};

/* What PostgreSQL sees of the secrets: always "". */
static char *shown_secret_access_key;
static char *shown_session_token;
static char *shown_proxy;

/*
 * A setting that says where the locks are has an invalid value, so the server does not start.
 * PostgreSQL only warns of an invalid value in a configuration file, and uses the default.  But if
 * this cluster had its locks in another table than the other clusters, the locks would not exclude
 * those.
 */
static bool place_refused = false;

static emit_log_hook_type prev_emit_log = NULL;

#define LETTERS_AND_DIGITS \
	"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"

/*
 * Checks what a check hook cannot check, because a hook sees only one setting.  A sort key's value
 * without a sort key is an error, too: the name of the setting for the key may be mistyped.
 */
static void
check_keys(void)
{
	if ((ddblock_sort_key[0] == '\0') != (ddblock_sort_key_value[0] == '\0'))
		ErrorsArgument(errmsg("\"ddblock.sort_key\" and \"ddblock.sort_key_value\" must be set "
							  "together"),
					   errhint("Set both if the lock table has a sort key, and neither if it has "
							   "none."));
	if (strcmp(ddblock_sort_key, ddblock_partition_key) == 0)
		ErrorsArgument(errmsg("\"ddblock.sort_key\" and \"ddblock.partition_key\" must differ"));
	if (ddblock_sort_separator[0] != '\0' && ddblock_sort_key[0] == '\0')
		ErrorsArgument(errmsg("\"ddblock.sort_separator\" needs \"ddblock.sort_key\""),
					   errhint("Set \"ddblock.sort_key\", too, if the lock table has a sort key."));
}

static bool
refuse_place(void)
{
	place_refused = true;
	return false;
}

static bool
all_in(const char *text, const char *allowed)
{
	return text[strspn(text, allowed)] == '\0';
}

static bool
check_region(char **newval, void **extra, GucSource source)
{
	if (strlen(*newval) <= 63 && all_in(*newval, LETTERS_AND_DIGITS "-"))
		return true;
	GUC_check_errdetail("A Region consists of letters, digits and hyphens, such as \"eu-central-1\".");
	return refuse_place();
}

static bool
check_endpoint_url(char **newval, void **extra, GucSource source)
{
	char		host[1024];
	char		error[64];

	if (**newval == '\0' ||
		aws_endpoint_host(*newval, host, sizeof(host), error, sizeof(error)))
		return true;
	GUC_check_errdetail("The URL must have the form http://host, https://host, http://host:port "
						"or https://host:port, without a path.");
	return refuse_place();
}

static bool
check_table(char **newval, void **extra, GucSource source)
{
	size_t		len = strlen(*newval);

	if (strncmp(*newval, "arn:", 4) == 0)
	{
		if (len <= TABLE_ARN_MAX && all_in(*newval, LETTERS_AND_DIGITS "-_.:/"))
			return true;
	}
	else if (len >= TABLE_NAME_MIN && len <= TABLE_NAME_MAX &&
			 all_in(*newval, LETTERS_AND_DIGITS "-_."))
		return true;
	GUC_check_errdetail("A table's name has %d to %d characters: letters, digits, hyphens, "
						"underscores and dots. A table's ARN is accepted too.",
						TABLE_NAME_MIN, TABLE_NAME_MAX);
	return refuse_place();
}

/* Is the text UTF-8 of min to max bytes, without control characters? */
static bool
plain_text(const char *text, size_t min, size_t max)
{
	size_t		len = strlen(text);

	if (len < min || len > max || !pg_verify_mbstr(PG_UTF8, text, len, true))
		return false;
	for (const unsigned char *c = (const unsigned char *) text; *c; c++)
	{
		if (*c < 0x20 || *c == 0x7f)
			return false;
	}
	return true;
}

static bool
check_partition_key(char **newval, void **extra, GucSource source)
{
	if (!plain_text(*newval, 1, KEY_NAME_MAX))
		GUC_check_errdetail("A key's name has 1 to %d bytes of UTF-8, without control characters.",
							KEY_NAME_MAX);
	else if (dynamo_is_attribute(*newval))
		GUC_check_errdetail("The lock item has another attribute of this name.");
	else
		return true;
	return refuse_place();
}

static bool
check_sort_key(char **newval, void **extra, GucSource source)
{
	return **newval == '\0' || check_partition_key(newval, extra, source);
}

static bool
check_sort_key_value(char **newval, void **extra, GucSource source)
{
	size_t		len = strlen(*newval);

	if (len <= DYNAMO_SORT_MAX && pg_verify_mbstr(PG_UTF8, *newval, len, true))
		return true;
	GUC_check_errdetail("A sort key's value has 1 to %d bytes of UTF-8.", DYNAMO_SORT_MAX);
	return refuse_place();
}

static bool
check_sort_separator(char **newval, void **extra, GucSource source)
{
	size_t		len = strlen(*newval);

	if (len == 0 || (len == 1 && all_in(*newval, "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~")))
		return true;
	GUC_check_errdetail("A separator is one ASCII character that is neither a letter, a digit, "
						"a space nor a control character, such as \"#\".");
	return refuse_place();
}

static bool
check_owner_name(char **newval, void **extra, GucSource source)
{
	if (plain_text(*newval, 0, OWNER_NAME_MAX))
		return true;
	GUC_check_errdetail("The name has at most %d bytes of UTF-8, without control characters.",
						OWNER_NAME_MAX);
	return refuse_place();
}

/* Where the locks are kept, and the cluster's name there. */
static void
define_place(void)
{
	DefineCustomStringVariable("ddblock.region",
							   "AWS Region of the lock table.",
							   "If empty, it is taken from AWS_REGION, AWS_DEFAULT_REGION or the "
							   "shared config file.",
							   &ddblock_region, "", PGC_POSTMASTER, 0,
							   check_region, NULL, NULL);
	DefineCustomStringVariable("ddblock.endpoint_url",
							   "URL of the DynamoDB endpoint, as http(s)://host[:port].",
							   "If empty, the public endpoint of the Region is used.",
							   &ddblock_endpoint_url, "", PGC_POSTMASTER, 0,
							   check_endpoint_url, NULL, NULL);
	DefineCustomStringVariable("ddblock.global_table_region",
							   "The only Region of a global table in which ddblock acquires locks.",
							   "Must be set, to the same Region on every server, if the lock "
							   "table is replicated with eventual consistency. If empty, ddblock "
							   "refuses such a table.",
							   &ddblock_global_table_region, "", PGC_POSTMASTER, 0,
							   check_region, NULL, NULL);
	DefineCustomStringVariable("ddblock.lock_table",
							   "Name or ARN of the lock table.",
							   "ddb_lock_table_create() creates it.",
							   &ddblock_lock_table, "lockTable", PGC_POSTMASTER, 0,
							   check_table, NULL, NULL);
	DefineCustomStringVariable("ddblock.queue_table",
							   "Name or ARN of the queues' table.",
							   "ddb_queue_table_create() creates it.",
							   &ddblock_queue_table, "queueTable", PGC_POSTMASTER, 0,
							   check_table, NULL, NULL);
	DefineCustomStringVariable("ddblock.partition_key",
							   "Name of the lock table's partition key.",
							   "The key has type S; its value is the lock's name.",
							   &ddblock_partition_key, "key", PGC_POSTMASTER, 0,
							   check_partition_key, NULL, NULL);
	DefineCustomStringVariable("ddblock.sort_key",
							   "Name of the lock table's sort key.",
							   "The key has type S. Empty if the table has no sort key.",
							   &ddblock_sort_key, "", PGC_POSTMASTER, 0,
							   check_sort_key, NULL, NULL);
	DefineCustomStringVariable("ddblock.sort_key_value",
							   "Value of the sort key of locks whose name gives no other.",
							   "Must be set if and only if ddblock.sort_key is set.",
							   &ddblock_sort_key_value, "", PGC_POSTMASTER, 0,
							   check_sort_key_value, NULL, NULL);
	DefineCustomStringVariable("ddblock.sort_separator",
							   "Character between partition key and sort key in a lock's name.",
							   "If empty, a name is a partition key, and all locks have the same "
							   "sort key. Must be the same on every server.",
							   &ddblock_sort_separator, "", PGC_POSTMASTER, 0,
							   check_sort_separator, NULL, NULL);
	DefineCustomStringVariable("ddblock.owner_name",
							   "Name of this cluster in the locks that it holds.",
							   "If empty, it is \"cluster_name@host\", or the host's name if "
							   "cluster_name is empty, too.",
							   &ddblock_owner_name, "", PGC_POSTMASTER, 0,
							   check_owner_name, NULL, NULL);
}

static void
define_sizes(void)
{
	DefineCustomIntVariable("ddblock.max_leases",
							"Maximum number of locks that this cluster holds at a time.",
							"Each takes about 4 kB of shared memory.",
							&ddblock_max_leases, 1024, 1, 100000, PGC_POSTMASTER, 0,
							NULL, NULL, NULL);
	DefineCustomIntVariable("ddblock.superuser_reserved_leases",
							"Number of leases that are reserved for superusers.",
							"At most ddblock.max_leases - 1.",
							&ddblock_superuser_reserved_leases, 3, 0, 100000, PGC_POSTMASTER, 0,
							NULL, NULL, NULL);
	DefineCustomIntVariable("ddblock.max_connections",
							"Maximum number of connections to DynamoDB.",
							"The ddblock worker uses them for all sessions, and keeps at least a "
							"quarter of them for renewals.",
							&ddblock_max_connections, 128, 2, 1000, PGC_POSTMASTER, 0,
							NULL, NULL, NULL);
}

static void
define_timeouts(void)
{
	DefineCustomIntVariable("ddblock.connect_timeout",
							"Maximum time to wait for a connection to DynamoDB.",
							"Covers name resolution, TCP and TLS.",
							&ddblock_connect_timeout, 3000, 100, 300000, PGC_SIGHUP, GUC_UNIT_MS,
							NULL, NULL, NULL);
	DefineCustomIntVariable("ddblock.request_timeout",
							"Maximum time to wait for the reply to one attempt of a request.",
							"An attempt to renew a lease waits for at most a third of the time left to "
							"its deadline, or twice as long as the slowest of the last replies took.",
							&ddblock_request_timeout, 5000, 100, 300000, PGC_SIGHUP, GUC_UNIT_MS,
							NULL, NULL, NULL);
	DefineCustomIntVariable("ddblock.retry_timeout",
							"Time after which a call fails if DynamoDB cannot be reached.",
							"Until then the worker repeats attempts. It repeats renewals until the "
							"lease's deadline, whatever this setting is.",
							&ddblock_retry_timeout, 30000, 100, 86400000, PGC_SIGHUP, GUC_UNIT_MS,
							NULL, NULL, NULL);
	DefineCustomIntVariable("ddblock.poll_interval",
							"Longest time between two reads of a lock that another client holds.",
							"The worker reads each lock that sessions of this cluster wait for, "
							"more often at the beginning of a wait.",
							&ddblock_poll_interval, 250, 20, 60000, PGC_SIGHUP, GUC_UNIT_MS,
							NULL, NULL, NULL);
	DefineCustomEnumVariable("ddblock.clock_takeover",
							 "Takes a dead holder's lock over by DynamoDB's clock, without waiting.",
							 "\"auto\" does so at Amazon's own endpoints over https, unless "
							 "ddblock.ca_file, AWS_CA_BUNDLE or the profile's ca_bundle is set.",
							 &ddblock_clock_takeover, CLOCK_TAKEOVER_AUTO, clock_takeover_options,
							 PGC_SIGHUP, 0, NULL, NULL, NULL);
	DefineCustomIntVariable("ddblock.clock_slack",
							"How far the clocks of DynamoDB's servers may differ from each other.",
							"A lock is taken over by DynamoDB's clock so much later. If that clock "
							"and this machine's differ by more, it is not.",
							&ddblock_clock_slack, 5000, 1000, 3600000, PGC_SIGHUP, GUC_UNIT_MS,
							NULL, NULL, NULL);
	DefineCustomIntVariable("ddblock.released_item_ttl",
							"Time after which DynamoDB may delete a released lock's item.",
							"0 keeps items for ever. Keep 0 if a Java lock client uses the same "
							"table: it leaves the ttl attribute on locks that it holds.",
							&ddblock_released_item_ttl, 0, 0, INT_MAX, PGC_SIGHUP, GUC_UNIT_S,
							NULL, NULL, NULL);
	DefineCustomBoolVariable("ddblock.keep_warm",
							 "Keeps a connection to DynamoDB open while there are no other requests.",
							 "Costs one small read after every 15 seconds without another request.",
							 &ddblock_keep_warm, true, PGC_SIGHUP, 0,
							 NULL, NULL, NULL);
}

static bool
check_secret(char **newval, void **extra, GucSource source)
{
	char	   *empty = guc_strdup(LOG, "");

	if (empty == NULL)
		return false;
	*extra = *newval;			/* PostgreSQL frees both */
	*newval = empty;
	return true;
}

/* Sets a message of its own, because PostgreSQL's would quote the value, with the password. */
static bool
check_proxy(char **newval, void **extra, GucSource source)
{
	char		shown[320];

	if (**newval == '\0' || strcmp(*newval, "none") == 0 ||
		aws_proxy_shown(*newval, shown, sizeof(shown)))
		return check_secret(newval, extra, source);
	GUC_check_errmsg("invalid value for parameter \"%s\"", "ddblock.proxy");
	GUC_check_errdetail("It must be \"none\", or a URL of the form http://host:port or "
						"https://host:port. \"user:password@\" may precede the host, with %%40 "
						"for \"@\" and the like.");
	return false;
}

static void
assign_secret_access_key(const char *newval, void *extra)
{
	ddblock_secret_access_key = extra;
}

static void
assign_session_token(const char *newval, void *extra)
{
	ddblock_session_token = extra;
}

static void
assign_proxy(const char *newval, void *extra)
{
	ddblock_proxy = extra;
}

static void
define_credentials(void)
{
	DefineCustomStringVariable("ddblock.access_key_id",
							   "AWS access key id.",
							   "If empty, the credentials come from the environment or the shared "
							   "config and credentials files, as for every AWS tool.",
							   &ddblock_access_key_id, "", PGC_SIGHUP, SECRET_FLAGS,
							   NULL, NULL, NULL);
	DefineCustomStringVariable("ddblock.secret_access_key",
							   "AWS secret access key.",
							   "Belongs to ddblock.access_key_id. Always shown as empty.",
							   &shown_secret_access_key, "", PGC_SIGHUP, SECRET_FLAGS,
							   check_secret, assign_secret_access_key, NULL);
	DefineCustomStringVariable("ddblock.session_token",
							   "AWS session token, with temporary credentials.",
							   "Belongs to ddblock.access_key_id. Always shown as empty.",
							   &shown_session_token, "", PGC_SIGHUP, SECRET_FLAGS,
							   check_secret, assign_session_token, NULL);
	DefineCustomStringVariable("ddblock.profile",
							   "Profile in the shared config and credentials files.",
							   "If empty, ddblock uses AWS_PROFILE, AWS_DEFAULT_PROFILE or \"default\".",
							   &ddblock_profile, "", PGC_SIGHUP, 0,
							   NULL, NULL, NULL);
	DefineCustomStringVariable("ddblock.ca_file",
							   "File with the certificate authorities to trust, in PEM format.",
							   "If empty, ddblock uses AWS_CA_BUNDLE, the profile's ca_bundle, or "
							   "else the system's authorities.",
							   &ddblock_ca_file, "", PGC_SIGHUP, 0,
							   NULL, NULL, NULL);
	DefineCustomStringVariable("ddblock.proxy",
							   "URL of the proxy to DynamoDB, as http(s)://[user:password@]host[:port].",
							   "\"none\" for none. If empty, ddblock uses https_proxy and the like. "
							   "Always shown as empty.",
							   &shown_proxy, "", PGC_SIGHUP, SECRET_FLAGS,
							   check_proxy, assign_proxy, NULL);
}

/*
 * Accepts an invalid prefix from a file, or one that a role got while the library was not
 * preloaded.  Otherwise PostgreSQL would ignore the value and use the default "", which allows all
 * names.  Few names, or none, begin with an invalid prefix.
 */
static bool
check_lock_prefix(char **newval, void **extra, GucSource source)
{
	bool		ascii = true;

	for (const unsigned char *c = (const unsigned char *) *newval; *c; c++)
		ascii &= *c >= 0x20 && *c < 0x7f;
	if (source < PGC_S_INTERACTIVE || (ascii && strlen(*newval) <= DYNAMO_NAME_MAX))
		return true;
	GUC_check_errdetail("A prefix has at most %d printable ASCII characters.", DYNAMO_NAME_MAX);
	return false;
}

static bool
check_join(char **newval, void **extra, GucSource source)
{
	const char *at = *newval;
	const char *wrong;
	join_entry	entry;

	while (join_list_next(&at, &entry, &wrong))
	{
		if (pg_verify_mbstr(PG_UTF8, entry.name, strlen(entry.name), true))
			continue;
		wrong = "A name is not UTF-8.";
		break;
	}
	if (wrong != NULL)
		GUC_check_errdetail("%s", wrong);
	return wrong == NULL;
}

/* Leases: per role and per session, and what happens to a session that loses one. */
static void
define_leases(void)
{
	DefineCustomIntVariable("ddblock.role_max_leases",
							"Maximum number of leases that the sessions of a role hold at a time.",
							"0 means no limit. Set it for a role, with ALTER ROLE.",
							&ddblock_role_max_leases, 0, 0, 100000, PGC_SUSET, 0,
							NULL, NULL, NULL);
	DefineCustomStringVariable("ddblock.lock_prefix",
							   "What the names of locks that a session uses must begin with.",
							   "If empty, all names are allowed. Set it for a role, with ALTER ROLE.",
							   &ddblock_lock_prefix, "", PGC_SUSET, 0,
							   check_lock_prefix, NULL, NULL);
	DefineCustomIntVariable("ddblock.lease_duration",
							"Length of a lease if the call gives none.",
							"If its cluster dies, one that waits gets the lock after this time. The worker "
							"renews a lease when a third of it has passed.",
							&ddblock_lease_duration, 20000, 2000, 86400000, PGC_USERSET, GUC_UNIT_MS,
							NULL, NULL, NULL);
	DefineCustomRealVariable("ddblock.safety_margin",
							 "Fraction of a lease by which the deadline lies before the lease's end.",
							 "Covers clocks that run at different rates. A session can widen "
							 "the server's margin; a narrower one has no effect.",
							 &ddblock_safety_margin, 0.1, 0.05, 0.5, PGC_USERSET, 0,
							 NULL, NULL, NULL);
	DefineCustomStringVariable("ddblock.join_locks",
							   "Locks that this session holds together with who has taken them.",
							   "TOKEN:NAME,... Set it when the session begins. ddblock-run does that.",
							   &ddblock_join_locks, "", PGC_BACKEND, GUC_DISALLOW_IN_FILE | GUC_NOT_IN_SAMPLE,
							   check_join, NULL, NULL);
	DefineCustomBoolVariable("ddblock.log_grants",
							 "Logs each grant, loss and release of a lock.",
							 "A line for each in the server's log, for people and for programs.",
							 &ddblock_log_grants, false, PGC_SIGHUP, 0,
							 NULL, NULL, NULL);
	DefineCustomEnumVariable("ddblock.on_lease_lost",
							 "What happens to a session when it loses a lease.",
							 "\"cancel\" cancels its statement, or terminates the session if it is "
							 "idle in a transaction; \"terminate\" terminates the session; "
							 "\"none\" only cancels a COMMIT that still waits.",
							 &ddblock_on_lease_lost, ON_LEASE_LOST_CANCEL,
							 on_lease_lost_options, PGC_SUSET, 0,
							 NULL, NULL, NULL);
	DefineCustomBoolVariable("ddblock.commit_guard",
							 "Refuses to commit the writes of a session that lost a lease.",
							 "It also refuses to start commands that ROLLBACK does not undo.",
							 &ddblock_commit_guard, true, PGC_SUSET, 0,
							 NULL, NULL, NULL);
	DefineCustomBoolVariable("ddblock.release_on_rollback",
							 "A rollback undoes what the transaction has acquired for the session.",
							 "A rollback to a savepoint undoes what was acquired since then.",
							 &ddblock_release_on_rollback, false, PGC_USERSET, 0,
							 NULL, NULL, NULL);
}

dynamo_table
SettingsTable(void)
{
	return (dynamo_table)
	{
		.name = ddblock_lock_table,
			.partition_key = ddblock_partition_key,
			.sort_key = ddblock_sort_key[0] ? ddblock_sort_key : NULL,
			.sort_value = ddblock_sort_key_value,
			.sort_separator = ddblock_sort_separator[0],
			.released_ttl_s = ddblock_released_item_ttl
	};
}

static bool
check_leaderships(char **newval, void **extra, GucSource source)
{
	const char *at = *newval;
	const char *wrong = leadership_list_wrong(at);
	dynamo_table table = SettingsTable();
	char		name[LEADERSHIP_NAME_MAX + 1];

	if (wrong == NULL && **newval != '\0' && !plain_text(*newval, 1, SIZE_MAX))
		wrong = "A name is not UTF-8, or has control characters.";
	if (wrong != NULL)
	{
		GUC_check_errdetail("%s", wrong);
		return false;
	}
	/* ddblock.sort_separator has its value already, and does not change. */
	while (leadership_list_next(&at, name, &wrong))
	{
		wrong = dynamo_name_wrong(&table, name, strlen(name));
		if (wrong == NULL)
			continue;
		GUC_check_errdetail("No lock can have the name \"%s\". %s", name, wrong);
		return false;
	}
	return true;
}

/* Locks that the cluster itself holds. */
static void
define_leaderships(void)
{
	DefineCustomStringVariable("ddblock.leaderships",
							   "Names of locks that this cluster itself wants to hold, to lead.",
							   "NAME, ... The cluster that holds such a lock leads: ddb_leadership_held() "
							   "is true there, and false in all other clusters.",
							   &ddblock_leaderships, "", PGC_SIGHUP, GUC_LIST_INPUT,
							   check_leaderships, NULL, NULL);
	DefineCustomBoolVariable("ddblock.leaderships_on_standby",
							 "A hot standby wants to lead, too.",
							 "If off, it begins when it is promoted.",
							 &ddblock_leaderships_on_standby, false, PGC_SIGHUP, 0,
							 NULL, NULL, NULL);
}

static void
hide_statement(ErrorData *edata)
{
	static const char *const secrets[] = {"secret_access_key", "session_token", "ddblock.proxy"};
	bool		named = false;

	for (const char *at = debug_query_string; at != NULL && *at != '\0' && !named; at++)
	{
		for (int i = 0; i < lengthof(secrets); i++)
			named = named || pg_strncasecmp(at, secrets[i], strlen(secrets[i])) == 0;
	}
	if (named)
		edata->hide_stmt = edata->hide_ctx = true;
	if (prev_emit_log)
		prev_emit_log(edata);
}

/*
 * Refuses a ddblock setting that does not exist, such as a mistyped one.  PostgreSQL only warns of
 * it, so the default would apply where another value was meant: and locks in another table than the
 * other clusters' exclude nobody.
 */
static void
refuse_unknown(void)
{
	int			count;
	struct config_generic **settings = CompatSettings(&count);

	for (int i = 0; i < count; i++)
	{
		const char *name = settings[i]->name;
		const char *nearest = NULL;
		int			least = NEAR_MAX + 1;

		if (pg_strncasecmp(name, PREFIX, strlen(PREFIX)) != 0 ||
			!(settings[i]->flags & GUC_CUSTOM_PLACEHOLDER))
			continue;
		for (int j = 0; j < count; j++)
		{
			const char *known = settings[j]->name;
			int			distance;

			if (strncmp(known, PREFIX, strlen(PREFIX)) != 0 ||
				(settings[j]->flags & GUC_CUSTOM_PLACEHOLDER))
				continue;
			distance = varstr_levenshtein_less_equal(name, strlen(name), known, strlen(known),
													 1, 1, 1, least, true);
			if (distance < least)
			{
				least = distance;
				nearest = known;
			}
		}
		ereport(ERROR,
				(errcode(ERRCODE_CONFIG_FILE_ERROR),
				 errmsg("unrecognized configuration parameter \"%s\"", name),
				 nearest != NULL ? errhint("Perhaps you meant \"%s\".", nearest) :
				 errhint("This version of ddblock has no such setting. Remove it.")));
	}
}

void
SettingsDefine(void)
{
	define_place();
	if (place_refused)
		ereport(ERROR,
				(errcode(ERRCODE_CONFIG_FILE_ERROR),
				 errmsg("a setting that says where ddblock keeps its locks is invalid"),
				 errhint("See the warning before this message.")));
	define_sizes();
	define_timeouts();
	define_credentials();
	define_leases();
	define_leaderships();
	check_keys();
	refuse_unknown();
	prev_emit_log = emit_log_hook;
	emit_log_hook = hide_statement;
}
