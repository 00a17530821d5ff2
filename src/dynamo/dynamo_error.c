/*-------------------------------------------------------------------------
 *
 * dynamo_error.c
 *	  What DynamoDB's errors mean, for the codec's replies.
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
#include <string.h>

typedef struct error_class
{
	const char *stem;
	dynamo_status status;
} error_class;

static const error_class classes[] = {
	{"ConditionalCheckFailed", DYNAMO_CONDITION_FAILED},
	{"ProvisionedThroughputExceeded", DYNAMO_THROTTLED},
	{"Throttling", DYNAMO_THROTTLED},
	{"RequestLimitExceeded", DYNAMO_THROTTLED},
	{"LimitExceeded", DYNAMO_THROTTLED},	/* for operations on tables */
	{"TransactionConflict", DYNAMO_CONFLICT},
	{"TransactionInProgress", DYNAMO_UNKNOWN},
	{"IdempotentParameterMismatch", DYNAMO_VALIDATION},
	{"ReplicatedWriteConflict", DYNAMO_CONFLICT},
	{"ExpiredToken", DYNAMO_CREDENTIALS},
	{"UnrecognizedClient", DYNAMO_CREDENTIALS},
	{"InvalidSignature", DYNAMO_CREDENTIALS},
	{"IncompleteSignature", DYNAMO_CREDENTIALS},
	{"MissingAuthenticationToken", DYNAMO_CREDENTIALS},
	{"InvalidClientTokenId", DYNAMO_CREDENTIALS},
	{"RequestTimeTooSkewed", DYNAMO_CLOCK_SKEW},
	{"RequestExpired", DYNAMO_CLOCK_SKEW},
	{"AccessDenied", DYNAMO_ACCESS_DENIED},
	{"ResourceNotFound", DYNAMO_TABLE_MISSING},
	{"ResourceInUse", DYNAMO_TABLE_IN_USE},
	{"Validation", DYNAMO_VALIDATION},
	{"Serialization", DYNAMO_VALIDATION},
	{"UnknownOperation", DYNAMO_VALIDATION},	/* another server, without PartiQL */
	{"InternalServer", DYNAMO_UNKNOWN},
};

/* Length of the type without the ending. */
static size_t
length_without(const char *type, const char *ending)
{
	size_t		len = strlen(type);
	size_t		cut = strlen(ending);

	if (len > cut && strcmp(type + len - cut, ending) == 0)
		return len - cut;
	return len;
}

/* Was the signature refused for its date?  Only the message tells. */
static bool
speaks_of_time(const char *message)
{
	return strstr(message, "Signature expired") != NULL ||
		strstr(message, "Signature not yet current") != NULL;
}

dynamo_status
dynamo_error_status(const char *type, const char *message)
{
	size_t		len = length_without(type, "Exception");

	if (type[len] == '\0')
		len = length_without(type, "Error");
	for (size_t i = 0; i < sizeof(classes) / sizeof(classes[0]); i++)
	{
		if (strlen(classes[i].stem) != len || memcmp(classes[i].stem, type, len) != 0)
			continue;
		if (classes[i].status == DYNAMO_CREDENTIALS && speaks_of_time(message))
			return DYNAMO_CLOCK_SKEW;
		return classes[i].status;
	}
	return DYNAMO_MALFORMED;
}

static bool
has_any(const char *message, const char *const *words, size_t count)
{
	for (size_t i = 0; i < count; i++)
	{
		if (strstr(message, words[i]) != NULL)
			return true;
	}
	return false;
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
 * Every server words it otherwise, so each message that speaks of a key counts, unless it
 * speaks of a key's length or of an expression.
 */
bool
dynamo_is_about_keys(const char *message)
{
	static const char *const others[] = {"exceeded", "empty", "uplicate", "xpression", "KMS"};

	return strstr(message, "The table does not have the specified index") != NULL ||
		(speaks_of_key(message) && !has_any(message, others, sizeof(others) / sizeof(others[0])));
}

bool
dynamo_is_transient(dynamo_status status)
{
	return status == DYNAMO_THROTTLED || status == DYNAMO_CONFLICT ||
		status == DYNAMO_UNREACHABLE || status == DYNAMO_UNKNOWN;
}
