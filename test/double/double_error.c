/*-------------------------------------------------------------------------
 *
 * double_error.c
 *	  DynamoDB's errors: types, HTTP statuses and messages.
 *
 *-------------------------------------------------------------------------
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "double_private.h"

#define DATABASE "com.amazonaws.dynamodb.v20120810#"
#define SERVICE "com.amazon.coral.service#"
#define VALIDATE "com.amazon.coral.validate#"

typedef struct error_kind
{
	const char *type;
	const char *prefix;
	int			status;
	const char *message;
} error_kind;

static const error_kind kinds[] = {
	{"ConditionalCheckFailedException", DATABASE, 400, "The conditional request failed"},
	{"ValidationException", VALIDATE, 400, "The request is not valid"},
	{"SerializationException", SERVICE, 400, "The request cannot be read"},
	{"UnknownOperationException", SERVICE, 400, "An unknown operation was requested."},
	{"ResourceNotFoundException", DATABASE, 400,
	"Cannot do operations on a non-existent table"},
	{"ResourceInUseException", DATABASE, 400, "Cannot create preexisting table"},
	{"ProvisionedThroughputExceededException", DATABASE, 400,
		"The level of configured provisioned throughput for the table was exceeded."
	" Consider increasing your provisioning level with the UpdateTable API."},
	{"ThrottlingException", SERVICE, 400,
		"Throughput exceeds the current capacity of your table or index. DynamoDB is"
		" automatically scaling your table or index so please try again shortly."},
	{"RequestLimitExceeded", DATABASE, 400,
		"Throughput exceeds the current throughput limit for your account. Please"
	" contact AWS Support at https://aws.amazon.com/support request a limit increase"},
	{"LimitExceededException", DATABASE, 400,
	"Subscriber limit exceeded: too many operations on tables at a time"},
	{"TransactionConflictException", DATABASE, 400,
	"Transaction is ongoing for the item"},
	{"TransactionCanceledException", DATABASE, 400,
	"Transaction cancelled, please refer cancellation reasons for specific reasons"},
	{"ReplicatedWriteConflictException", DATABASE, 400,
		"One or more items in this request are being modified by a request in another"
	" Region."},
	{"InternalServerError", DATABASE, 500, "Internal server error"},
	{"ServiceUnavailable", DATABASE, 503, "Service unavailable. Please try again later."},
	{"ExpiredTokenException", SERVICE, 400,
	"The security token included in the request is expired"},
	{"UnrecognizedClientException", SERVICE, 400,
	"The security token included in the request is invalid."},
	{"InvalidSignatureException", SERVICE, 400,
		"The request signature we calculated does not match the signature you provided."
		" Check your AWS Secret Access Key and signing method. Consult the service"
	" documentation for details."},
	{"IncompleteSignatureException", SERVICE, 400, "The signature is not complete"},
	{"MissingAuthenticationTokenException", SERVICE, 400,
	"Request is missing Authentication Token"},
	{"AccessDeniedException", SERVICE, 400,
	"You are not authorized to perform this operation on this resource"},
};

/* An unknown type is an error of the request. */
static const error_kind *
kind_of(const char *type)
{
	static const error_kind other = {"", DATABASE, 400, "The request failed"};

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
	{
		if (strcmp(kinds[i].type, type) == 0)
			return &kinds[i];
	}
	return &other;
}

bool
double_fail(double_call *call, const char *type, const char *format,...)
{
	va_list		args;

	call->type = type;
	va_start(args, format);
	vsnprintf(call->message, sizeof(call->message), format, args);
	va_end(args);
	return false;
}

const char *
double_error_message(const char *type)
{
	return kind_of(type)->message;
}

cJSON *
double_error_json(const char *type, const char *message, int *status)
{
	const error_kind *kind = kind_of(type);
	char		full[128];
	cJSON	   *json = cJSON_CreateObject();

	*status = kind->status;
	snprintf(full, sizeof(full), "%s%s", kind->prefix, type);
	cJSON_AddStringToObject(json, "__type", full);
	cJSON_AddStringToObject(json, "message", message != NULL ? message : kind->message);
	return json;
}

/* Statements have other names for some errors (BatchStatementErrorCodeEnum). */
void
double_statement_code(const char *type, char *code, size_t size)
{
	static const char ending[] = "Exception";
	size_t		len = strlen(type);

	if (strcmp(type, "ValidationException") == 0)
		type = "ValidationError", len = strlen(type);
	else if (strcmp(type, "ThrottlingException") == 0)
		type = "ThrottlingError", len = strlen(type);
	else if (len > strlen(ending) && strcmp(type + len - strlen(ending), ending) == 0)
		len -= strlen(ending);
	snprintf(code, size, "%.*s", (int) len, type);
}

int
dynamo_double_error(const char *type, const char *message, char **reply,
					size_t *reply_len)
{
	int			status;
	cJSON	   *json = double_error_json(type, message, &status);

	*reply = cJSON_PrintUnformatted(json);
	*reply_len = strlen(*reply);
	cJSON_Delete(json);
	return status;
}
