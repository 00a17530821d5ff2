/*-------------------------------------------------------------------------
 *
 * dynamo_error.c
 *	  What DynamoDB's errors mean: for the codec, and in words for people.
 *
 * Names from the API Reference: "Common Error Types", the errors of each
 * operation, and BatchStatementError.  One error may have several names
 * (ThrottlingException, Throttling, ThrottlingError); the table has it without
 * these endings.
 *
 *-------------------------------------------------------------------------
 */
#include "dynamo/dynamo_codec.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#define ANY NULL				/* any text, also without a type */
#define SOME ""					/* any text that has an error type of DynamoDB */

static const char about_keys[] = "";	/* stands for words that dynamo_is_about_keys() finds */

/*
 * A kind of error.  The first kind that fits an error counts.  One without a message only gives
 * the error a status.
 */
typedef struct error_kind
{
	const char *type;
	const char *words;			/* the error's text has these words; NULL: it need not */
	dynamo_status status;
	dynamo_words say;
} error_kind;

#define LIMIT "53400"			/* configuration_limit_exceeded */
#define NO_CONNECTION "08006"	/* connection_failure */
#define NO_AUTHORIZATION "28000"	/* invalid_authorization_specification */
#define NO_PRIVILEGE "42501"	/* insufficient_privilege */
#define STATE "55000"			/* object_not_in_prerequisite_state */
#define INTERNAL "XX000"		/* internal_error */

#define THROTTLES "DynamoDB throttles requests to %s"
#define QUOTA "requests to %s exceed a quota of the AWS account"
#define RAISE_QUOTA \
	"Have the account's quota raised in this Region (Service Quotas, Amazon DynamoDB). The " \
	"table's own capacity does not matter."
#define KMS_KEY "KMS key access"
#define DENIED "IAM denies access to %s"
#define UNREACHED "could not reach DynamoDB at %s"
#define FAULT "DynamoDB at %s failed to process a request"
#define WHO_FAULT \
	"The request may or may not have taken effect. Try again, but push a job again only with the " \
	"same id. If this lasts, look at the AWS Health Dashboard for DynamoDB in this Region, and at " \
	"proxies on the way."
#define REPLACE_KEYS \
	"Put valid credentials into the source that the detail names. Then reload the configuration; " \
	"restart the server if they are in its environment."
#define UNKNOWN_KEY { \
	NO_AUTHORIZATION, "DynamoDB does not know the access key or session token", \
	"The key may be mistyped, deleted, inactive, or for another part of AWS (such as " \
	"China) than the Region. " REPLACE_KEYS \
}
#define BAD_SIGNATURE "DynamoDB does not accept the signature of a request"

static const error_kind kinds[] = {
	{"ConditionalCheckFailed", NULL, DYNAMO_CONDITION_FAILED, {0}},

	/* ThrottlingReasons: the end of the name says why. */
	{ANY, "KeyRangeThroughputExceeded", DYNAMO_THROTTLED, {
			LIMIT, "one partition key of %s gets more requests than DynamoDB serves",
			"More capacity does not help: a partition key takes 1,000 writes or 3,000 reads a "
			"second at most. Use the busiest lock, or resource of a queue, less often, or divide "
			"it into several."
	}},
	{ANY, "OnDemandThroughput", DYNAMO_THROTTLED, {
			LIMIT, "requests exceed the maximum on-demand throughput that is set for %s",
			"Raise this maximum of the table, or of the index in the detail, or remove it."
	}},
	{ANY, "AccountLimitExceeded", DYNAMO_THROTTLED, {LIMIT, QUOTA, RAISE_QUOTA}},
	{"RequestLimitExceeded", NULL, DYNAMO_THROTTLED, {LIMIT, QUOTA, RAISE_QUOTA}},
	{"LimitExceeded", NULL, DYNAMO_THROTTLED, {
			LIMIT, "a quota for table operations is exceeded for %s",
			"Try again when fewer tables are being created, changed or deleted. If the account "
			"has too many tables, have the quota raised (Service Quotas, Amazon DynamoDB)."
	}},
	{ANY, "ProvisionedThroughputExceeded", DYNAMO_THROTTLED, {
			LIMIT, THROTTLES,
			"Raise the table's capacity, or switch it to on-demand. If that is not used up, one lock, "
			"or one resource of a queue, is too busy: use it less often."
	}},
	{"Throttling", NULL, DYNAMO_THROTTLED, {
			LIMIT, THROTTLES,
			"An on-demand table grows by itself: try again in some minutes. If its capacity is "
			"provisioned, raise it."
	}},
	{"ProvisionedThroughputExceeded", NULL, DYNAMO_THROTTLED, {0}},
	{"RequestThrottled", NULL, DYNAMO_THROTTLED, {0}},
	{"TooManyRequests", NULL, DYNAMO_THROTTLED, {0}},
	{ANY, NULL, DYNAMO_THROTTLED, {
			LIMIT, THROTTLES,
			"A proxy, or a server that is not DynamoDB, probably limits requests: raise its "
			"limit, or try again later."
	}},

	{"TransactionConflict", NULL, DYNAMO_CONFLICT, {0}},
	{"ReplicatedWriteConflict", NULL, DYNAMO_CONFLICT, {
			LIMIT, "another Region writes to the same item of %s",
			"Try again. If this happens often, acquire each lock in one Region only."
	}},
	{ANY, "the item is as the write expects", DYNAMO_CONFLICT, {
			LIMIT, "%s refuses writes for no visible reason",
			"Keep other programs from writing to the table. If there are none, the server at "
			"\"ddblock.endpoint_url\" may not be DynamoDB itself."
	}},
	{"TransactionCanceled", NULL, DYNAMO_CONFLICT, {
			LIMIT, "DynamoDB canceled a transaction on %s and does not say why",
			"Try again. If this lasts, look for throttling (AWS console, DynamoDB, Monitor), and for "
			"other programs that write to the table."
	}},
	{ANY, NULL, DYNAMO_CONFLICT, {
			LIMIT, "another DynamoDB transaction is writing to an item of %s",
			"Try again. If this lasts, keep programs other than ddblock from writing to the table."
	}},

	/*
	 * These two come before the next ones, because their texts may have the words of those as the
	 * cause.
	 */
	{ANY, "No usable Region", DYNAMO_UNREACHABLE, {
			NO_CONNECTION, "there is no Region yet for %s",
			"Its source, which the detail names last, has not replied with one. Try again."
	}},
	{ANY, "still being fetched", DYNAMO_UNREACHABLE, {
			NO_CONNECTION, "there are no valid credentials yet for DynamoDB at %s",
			"Their source, which the server's log names, has not replied in time, or not with "
			"credentials. Try again."
	}},
	{ANY, "proxy: ", DYNAMO_UNREACHABLE, {
			NO_CONNECTION, UNREACHED,
			"Check \"ddblock.proxy\", or https_proxy and the like in the server's environment, and "
			"whether the proxy allows that address."
	}},
	{ANY, "name resolution:", DYNAMO_UNREACHABLE, {
			NO_CONNECTION, UNREACHED,
			"Check \"ddblock.region\", \"ddblock.endpoint_url\", and this server's DNS resolver."
	}},
	{ANY, NULL, DYNAMO_UNREACHABLE, {
			NO_CONNECTION, UNREACHED,
			"Check \"ddblock.region\", \"ddblock.endpoint_url\", and what is between this server "
			"and that address: routes, firewalls, security groups, a VPC endpoint, a proxy."
	}},

	{"TransactionInProgress", NULL, DYNAMO_UNKNOWN, {0}},
	{"InternalServer", NULL, DYNAMO_UNKNOWN, {0}},
	{"RequestTimeout", NULL, DYNAMO_UNKNOWN, {0}},
	{"RequestAborted", NULL, DYNAMO_UNKNOWN, {0}},
	{SOME, NULL, DYNAMO_UNKNOWN, {NO_CONNECTION, FAULT, WHO_FAULT}},
	{ANY, "HTTP status 5", DYNAMO_UNKNOWN, {NO_CONNECTION, FAULT, WHO_FAULT}},
	{ANY, "is in doubt", DYNAMO_UNKNOWN, {
			NO_CONNECTION, "this server's clock is not that of DynamoDB at %s",
			"Set this server's clock, and keep it right with an NTP client. Or try again in 10 s."
	}},
	{ANY, "no Date header", DYNAMO_UNKNOWN, {
			NO_CONNECTION, "replies from DynamoDB at %s do not show the time",
			"A proxy on the way removes the header \"Date\" from replies, or "
			"\"ddblock.endpoint_url\" does not lead to DynamoDB itself. The request may have "
			"taken effect."
	}},
	{ANY, NULL, DYNAMO_UNKNOWN, {
			NO_CONNECTION, "no usable reply from DynamoDB at %s",
			"The request may or may not have taken effect. Try again, but push a job again only "
			"with the same id. If this lasts, check the network between this server and that "
			"address."
	}},

	{"InvalidSignature", "Signature expired", DYNAMO_CLOCK_SKEW, {0}},
	{"InvalidSignature", "Signature not yet current", DYNAMO_CLOCK_SKEW, {0}},
	{"RequestTimeTooSkewed", NULL, DYNAMO_CLOCK_SKEW, {0}},
	{"RequestExpired", NULL, DYNAMO_CLOCK_SKEW, {0}},
	{ANY, NULL, DYNAMO_CLOCK_SKEW, {
			NO_AUTHORIZATION, "DynamoDB does not accept the time of a request's signature",
			"Set this server's clock, and keep it right with an NTP client: it is minutes away from "
			"DynamoDB's."
	}},

	{"ExpiredToken", NULL, DYNAMO_CREDENTIALS, {
			NO_AUTHORIZATION, "the credentials for DynamoDB have expired",
			"ddblock renews a role's credentials by itself: if the detail says why that fails, "
			"mend that. " REPLACE_KEYS
	}},
	{"UnrecognizedClient", NULL, DYNAMO_CREDENTIALS, UNKNOWN_KEY},
	{"InvalidClientTokenId", NULL, DYNAMO_CREDENTIALS, UNKNOWN_KEY},
	{"InvalidSignature", NULL, DYNAMO_CREDENTIALS, {
			NO_AUTHORIZATION, BAD_SIGNATURE,
			"The secret access key is probably not that of the access key. " REPLACE_KEYS
	}},
	{"IncompleteSignature", NULL, DYNAMO_CREDENTIALS, {
			NO_AUTHORIZATION, BAD_SIGNATURE,
			"A proxy probably changes headers of requests. If there is none, the credentials are "
			"wrong. " REPLACE_KEYS
	}},
	{"MissingAuthenticationToken", NULL, DYNAMO_CREDENTIALS, {
			NO_AUTHORIZATION, BAD_SIGNATURE,
			"A proxy probably removes headers of requests. If there is none, the credentials are "
			"wrong. " REPLACE_KEYS
	}},
	{ANY, NULL, DYNAMO_CREDENTIALS, {
			NO_AUTHORIZATION, "there are no credentials for DynamoDB",
			"The detail says what each source lacks: mend the one that ddblock should use. Or give "
			"this machine a role, or set \"ddblock.access_key_id\" and "
			"\"ddblock.secret_access_key\"."
	}},

	{"AccessDenied", NULL, DYNAMO_ACCESS_DENIED, {0}},
	{"NotAuthorized", NULL, DYNAMO_ACCESS_DENIED, {0}},
	{"OptInRequired", NULL, DYNAMO_ACCESS_DENIED, {
			NO_PRIVILEGE, "the AWS account is not enabled for DynamoDB in this Region",
			"Enable the Region in the account's settings (AWS console, Account). If it is "
			"enabled, check the account's status."
	}},
	{ANY, "control policy", DYNAMO_ACCESS_DENIED, {
			NO_PRIVILEGE, "the AWS organization denies access to %s",
			"A policy of the AWS organization denies it, and no policy of this account can allow "
			"it: ask who administers the organization."
	}},
	{ANY, "permissions boundary", DYNAMO_ACCESS_DENIED, {
			NO_PRIVILEGE, DENIED,
			"The permissions boundary of the server's role or user must allow the action, and not "
			"deny it."
	}},
	{ANY, "VPC endpoint policy", DYNAMO_ACCESS_DENIED, {
			NO_PRIVILEGE, DENIED,
			"The policy of the VPC endpoint for DynamoDB must allow the action on this table, and "
			"not deny it."
	}},
	{ANY, "session policy", DYNAMO_ACCESS_DENIED, {
			NO_PRIVILEGE, DENIED,
			"Whoever assumed the role passed a session policy: that must allow the action, too, "
			"and not deny it."
	}},
	{ANY, "perform: kms:", DYNAMO_ACCESS_DENIED, {
			NO_PRIVILEGE, "AWS KMS denies the use of the encryption key of %s",
			"The key's policy and IAM must both allow the denied action to the server's role or user, "
			"and neither may deny it."
	}},
	{ANY, KMS_KEY, DYNAMO_ACCESS_DENIED, {
			NO_PRIVILEGE, "AWS KMS denies the use of the encryption key of %s",
			"If the table's key exists (AWS console, KMS), allow kms:Decrypt to the server's role "
			"or user, both in the key's policy and in IAM."
	}},
	{ANY, "explicit deny in a resource-based policy", DYNAMO_ACCESS_DENIED, {
			NO_PRIVILEGE, DENIED,
			"A statement with \"Deny\" in the table's own policy forbids it: change that "
			"statement. Another \"Allow\" does not help."
	}},
	{ANY, "resource-based policy", DYNAMO_ACCESS_DENIED, {
			NO_PRIVILEGE, DENIED,
			"The table's own policy must allow the action to the server's role or user (DynamoDB "
			"console, Permissions). Compare the account numbers in the detail: the table may be "
			"another account's."
	}},
	{ANY, "explicit deny", DYNAMO_ACCESS_DENIED, {
			NO_PRIVILEGE, DENIED,
			"A statement with \"Deny\" in a policy of the server's role or user forbids it: change "
			"that statement. Another \"Allow\" does not help."
	}},
	{ANY, NULL, DYNAMO_ACCESS_DENIED, {
			NO_PRIVILEGE, DENIED,
			"Add the denied action to the IAM policy of the server's role or user."
	}},

	{"ResourceNotFound", NULL, DYNAMO_TABLE_MISSING, {
			"42P01", "%s does not exist in DynamoDB", NULL	/* shared/errors.c makes a hint */
	}},
	{"ResourceInUse", NULL, DYNAMO_TABLE_IN_USE, {
			"55006", "%s is being changed",
			"Look at the table in the DynamoDB console. If it is being changed, try again when it "
			"is ACTIVE."
	}},

	{"Validation", NULL, DYNAMO_VALIDATION, {0}},
	{"Serialization", NULL, DYNAMO_VALIDATION, {0}},
	{"IdempotentParameterMismatch", NULL, DYNAMO_VALIDATION, {0}},
	{"UnknownOperation", NULL, DYNAMO_VALIDATION, {
			"0A000", "the server at %s lacks an operation that this call needs",
			"DynamoDB has it, so this is another server: see what it lacks in ddblock's "
			"compatibility.md, or change \"ddblock.endpoint_url\"."
	}},
	{"ItemCollectionSizeLimitExceeded", NULL, DYNAMO_VALIDATION, {
			"54000", "a partition key of %s has too much data for a table with local indexes",
			"Use a table without local secondary indexes."
	}},
	{ANY, "exceeded the maximum allowed size", DYNAMO_VALIDATION, {
			"54000", "an item of %s would be larger than the 400 kB that DynamoDB allows",
			"Use less data, fewer attributes, or a smaller payload."
	}},
	{ANY, "KMS ", DYNAMO_VALIDATION, {
			STATE, "the encryption key of %s cannot be used",
			"Enable this AWS KMS key again, or cancel its deletion; or give the table another key."
	}},
	{ANY, "different AttributeName", DYNAMO_VALIDATION, {
			STATE, "time-to-live of %s is enabled on another attribute",
			"Find out who uses that, and disable it. An hour later, call ddb_lock_table_create() "
			"or ddb_queue_table_create() again."
	}},
	{ANY, about_keys, DYNAMO_VALIDATION, {
			STATE, "the keys of %s do not match the settings",
			"Compare the table's keys with \"ddblock.partition_key\" and \"ddblock.sort_key\"; "
			"their type must be S (string). For another table, change \"ddblock.lock_table\" on "
			"all clusters."
	}},
	{ANY, NULL, DYNAMO_VALIDATION, {
			INTERNAL, "DynamoDB refuses a request to %s",
			"If the detail does not say what to do, report it as an error of ddblock."
	}},

	{ANY, NULL, DYNAMO_UNTRUSTED, {
			NO_CONNECTION, "could not make a trusted connection to DynamoDB at %s",
			"The server's certificate must name that host, and come from an authority that this "
			"machine or \"ddblock.ca_file\" trusts. Or \"ddblock.endpoint_url\" is wrong, perhaps "
			"only its \"https\"."
	}},
	{ANY, NULL, DYNAMO_WRONG_SERVICE, {
			NO_CONNECTION, "the server at %s does not reply as DynamoDB does",
			"Check \"ddblock.endpoint_url\", whether it must begin with \"https\", and proxies on "
			"the way."
	}},
	{SOME, NULL, DYNAMO_MALFORMED, {
			INTERNAL, "DynamoDB refuses a request to %s with an error that ddblock does not know",
			"If the detail does not say what to do, report it as an error of ddblock."
	}},
	{ANY, NULL, DYNAMO_MALFORMED, {
			INTERNAL, "unexpected reply from DynamoDB at %s",
			"Check whether \"ddblock.endpoint_url\" leads to DynamoDB itself, and proxies on the "
			"way. If it does, report the detail as an error of ddblock."
	}},
};
#define KINDS (sizeof(kinds) / sizeof(kinds[0]))

/* Does the text begin with this error type, with any of its endings? */
static bool
begins_with(const char *text, const char *type)
{
	static const char *const endings[] = {"", "Exception", "Error"};
	size_t		len = strcspn(text, ":");
	size_t		stem = strlen(type);

	for (size_t i = 0; i < sizeof(endings) / sizeof(endings[0]); i++)
	{
		if (len == stem + strlen(endings[i]) && memcmp(text, type, stem) == 0 &&
			memcmp(text + stem, endings[i], len - stem) == 0)
			return true;
	}
	return false;
}

/*
 * Does the text begin with an error type?  Other texts are sentences, or begin with a phase of the
 * transport, such as "TLS:".
 */
static bool
has_type(const char *text)
{
	size_t		len = 0;

	while (isalnum((unsigned char) text[len]))
		len++;
	return isupper((unsigned char) text[0]) && len > strlen("TLS") &&
		(text[len] == ':' || text[len] == '\0');
}

static bool
fits(const error_kind *kind, const char *text)
{
	if (kind->type != ANY &&
		!(kind->type[0] == '\0' ? has_type(text) : begins_with(text, kind->type)))
		return false;
	if (kind->words == about_keys)
		return dynamo_is_about_keys(text);
	return kind->words == NULL || strstr(text, kind->words) != NULL;
}

dynamo_status
dynamo_error_status(const char *text)
{
	for (size_t i = 0; i < KINDS; i++)
	{
		if (kinds[i].type != ANY && kinds[i].type[0] != '\0' && fits(&kinds[i], text))
			return kinds[i].status;
	}
	return DYNAMO_MALFORMED;
}

/*
 * DYNAMO_OK and DYNAMO_CONDITION_FAILED are no failures and have no words: the last kind stands
 * for them.
 */
const dynamo_words *
dynamo_error_words(dynamo_status status, const char *text)
{
	for (size_t i = 0; i < KINDS; i++)
	{
		if (kinds[i].status == status && kinds[i].say.message != NULL && fits(&kinds[i], text))
			return &kinds[i].say;
	}
	return &kinds[KINDS - 1].say;
}

/*
 * The message itself, if it names the refused action, as most of IAM's do: "... is not authorized
 * to perform: kms:Decrypt on resource: arn:... because ...".  That action may be another one than
 * ours. Else our own action comes before the message.
 */
void
dynamo_error_detail(char *to, size_t size, dynamo_status status, dynamo_op op, const char *text)
{
	if (status == DYNAMO_ACCESS_DENIED && strstr(text, "perform: ") == NULL &&
		strstr(text, KMS_KEY) == NULL)
		snprintf(to, size, "The action is %s: %s", dynamo_action(op), text);
	else
		snprintf(to, size, "%s", text);
}

/* Does the message have "key" or "keys", as a word of its own? */
static bool
speaks_of_key(const char *message)
{
	const char *at = message;

	while ((at = strpbrk(at, "kK")) != NULL)
	{
		const char *end = at + 3;
		bool		begins = at == message || !isalnum((unsigned char) at[-1]);

		if (begins && strncmp(at + 1, "ey", 2) == 0)
		{
			end += *end == 's';
			if (!isalnum((unsigned char) *end))
				return true;
		}
		at++;
	}
	return false;
}

/*
 * Every server has its own words for this, so each message that speaks of a key counts, unless it
 * speaks of a key's length, of an expression or of KMS.
 */
bool
dynamo_is_about_keys(const char *message)
{
	static const char *const others[] = {"exceeded", "empty", "uplicate", "xpression", "KMS"};
	bool		about = speaks_of_key(message);

	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		about = about && strstr(message, others[i]) == NULL;
	return about || strstr(message, "The table does not have the specified index") != NULL;
}

bool
dynamo_is_transient(dynamo_status status)
{
	return status == DYNAMO_THROTTLED || status == DYNAMO_CONFLICT ||
		status == DYNAMO_UNREACHABLE || status == DYNAMO_UNKNOWN;
}
