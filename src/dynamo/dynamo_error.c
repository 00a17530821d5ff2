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
#include "dynamo/dynamo_error.h"

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

bool
dynamo_is_transient(dynamo_status status)
{
	return status == DYNAMO_THROTTLED || status == DYNAMO_CONFLICT ||
		status == DYNAMO_UNREACHABLE || status == DYNAMO_UNKNOWN;
}
