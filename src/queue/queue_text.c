/*-------------------------------------------------------------------------
 *
 * queue_text.c
 *	  What requests for the queue's table are made of.
 *
 *-------------------------------------------------------------------------
 */
#include "queue/queue_text.h"

#include <stdio.h>
#include <string.h>

#include "dynamo/dynamo_codec.h"

void
queue_put_table(dynamo_text *text, const char *table)
{
	dynamo_text_raw(text, "{\"TableName\":");
	dynamo_text_string(text, table, strlen(table));
}

void
queue_put_keys(dynamo_text *text, const char *pk, const char *sk)
{
	dynamo_put_s_member(text, "pk", pk);
	dynamo_put_s_member(text, "sk", sk);
}

void
queue_put_key(dynamo_text *text, const char *pk, const char *sk)
{
	dynamo_text_raw(text, ",\"Key\":{");
	queue_put_keys(text, pk, sk);
	dynamo_text_raw(text, "}");
}

void
queue_resource_key(char key[QUEUE_KEY_SIZE], const queue_request *request)
{
	snprintf(key, QUEUE_KEY_SIZE, "r#%s#%s", request->queue, request->resource);
}

void
queue_part_key(char key[QUEUE_KEY_SIZE], const char *what, const queue_request *request)
{
	snprintf(key, QUEUE_KEY_SIZE, "%s#%s", what, request->queue);
}

void
queue_job_key(char key[QUEUE_NUMBER_SIZE], int64_t number)
{
	snprintf(key, QUEUE_NUMBER_SIZE, "job#%019lld", (long long) number);
}

void
queue_put_names(dynamo_text *text, const char *names)
{
	dynamo_text_raw(text, ",\"ExpressionAttributeNames\":{");
	while (*names != '\0')
	{
		size_t		len = strcspn(names, " ");

		dynamo_text_comma(text);
		dynamo_text_raw(text, "\"#");
		dynamo_text_escaped(text, names, len);
		dynamo_text_raw(text, "\":\"");
		dynamo_text_escaped(text, names, len);
		dynamo_text_raw(text, "\"");
		names += len + strspn(names + len, " ");
	}
	dynamo_text_raw(text, "}");
}

void
queue_put_values(dynamo_text *text)
{
	dynamo_text_raw(text, ",\"ExpressionAttributeValues\":{");
}

void
queue_put_expressions(dynamo_text *text, const char *update, const char *condition)
{
	if (update != NULL)
	{
		dynamo_text_raw(text, ",\"UpdateExpression\":\"");
		dynamo_text_raw(text, update);
		dynamo_text_raw(text, "\"");
	}
	dynamo_text_raw(text, ",\"ConditionExpression\":\"");
	dynamo_text_raw(text, condition);
	dynamo_text_raw(text, "\",\"ReturnValuesOnConditionCheckFailure\":\"ALL_OLD\"");
}

void
queue_put_item(dynamo_text *text, const char *table, const char *pk, const char *sk)
{
	queue_put_table(text, table);
	queue_put_key(text, pk, sk);
	dynamo_text_raw(text, QUEUE_CAPACITY);
}
