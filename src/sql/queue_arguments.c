/*-------------------------------------------------------------------------
 *
 * queue_arguments.c
 *	  Reads and checks the arguments that the functions of queues share.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "mb/pg_wchar.h"
#include "utils/jsonb.h"
#include "utils/timestamp.h"

#include "sql/sql.h"

#define OUR_IDS "ddblock#"

static char *
check_queue(char *queue)
{
	size_t		len = strlen(queue);

	if (len == 0 || len > QUEUE_NAME_MAX ||
		strspn(queue, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-") != len)
		ErrorsArgument(errmsg("argument \"%s\" must have 1 to %d characters of A-Z, a-z, 0-9, "
							  "\"_\", \".\" and \"-\"", "queue", QUEUE_NAME_MAX));
	return queue;
}

QueueName
QueueCheckName(Datum queue, Datum resource)
{
	const char *name = check_queue(ArgumentUtf8(queue));

	return QueueNameOf(name, ArgumentCheckLength("resource", ArgumentUtf8(resource),
												 QUEUE_RESOURCE_MAX));
}

QueueName
QueueArgumentAnywhere(FunctionCallInfo fcinfo)
{
	ArgumentRequire(fcinfo, 0, "queue");
	ArgumentRequire(fcinfo, 1, "resource");
	return QueueCheckName(PG_GETARG_DATUM(0), PG_GETARG_DATUM(1));
}

QueueName
QueueArgument(FunctionCallInfo fcinfo)
{
	ErrorsRequirePreload();
	return QueueArgumentAnywhere(fcinfo);
}

const char *
QueueArgumentName(FunctionCallInfo fcinfo)
{
	ErrorsRequirePreload();
	ArgumentRequire(fcinfo, 0, "queue");
	return check_queue(ArgumentUtf8(PG_GETARG_DATUM(0)));
}

QueueName
QueueArgumentQueue(FunctionCallInfo fcinfo)
{
	return QueueNameOf(QueueArgumentName(fcinfo), "");
}

QueueName
QueueArgumentAny(FunctionCallInfo fcinfo)
{
	const char *queue = QueueArgumentName(fcinfo);

	if (PG_ARGISNULL(1))
		return QueueNameOf(queue, "");
	return QueueNameOf(queue, ArgumentCheckLength("of_resource", ArgumentUtf8(PG_GETARG_DATUM(1)),
												  QUEUE_RESOURCE_MAX));
}

char *
QueueCheckPayload(Datum payload)
{
	Jsonb	   *json = DatumGetJsonbP(payload);
	char	   *text = JsonbToCString(NULL, &json->root, VARSIZE(json));

	return ArgumentCheckLength("payload", Utf8FromServer(text), QUEUE_PAYLOAD_MAX);
}

/* Ids with our prefix are for jobs that were dead, and for jobs from the outbox: refuse these. */
char *
QueueCheckId(Datum id)
{
	char	   *utf8 = ArgumentCheckLength("id", ArgumentUtf8(id), QUEUE_CALLER_ID_MAX);

	if (strncmp(utf8, OUR_IDS, strlen(OUR_IDS)) == 0)
		ErrorsArgument(errmsg("argument \"%s\" must not begin with \"%s\"", "id", OUR_IDS));
	return utf8;
}

int64
QueueArgumentTime(FunctionCallInfo fcinfo, int number, const char *name,
				  int64 least_ms, int64 most_ms, int64 if_null)
{
	int64		milliseconds;

	if (PG_ARGISNULL(number))
		return if_null;
	milliseconds = ArgumentDuration(fcinfo, number, name, least_ms);
	if (milliseconds < least_ms || milliseconds > most_ms)
		ErrorsArgument(errmsg("argument \"%s\" must be between %s and %s", name,
							  TimesDuration(least_ms), TimesDuration(most_ms)));
	return milliseconds;
}

char *
QueueArgumentError(FunctionCallInfo fcinfo, int number)
{
	char	   *error;

	if (PG_ARGISNULL(number))
		return "";
	error = ArgumentUtf8(PG_GETARG_DATUM(number));
	error[pg_encoding_mbcliplen(PG_UTF8, error, strlen(error), QUEUE_ERROR_MAX)] = '\0';
	return error;
}
