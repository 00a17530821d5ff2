/*-------------------------------------------------------------------------
 *
 * queue_head.c
 *	  Writes of a resource's head: claim, complete, fail, drop, pause.
 *
 *-------------------------------------------------------------------------
 */
#include "queue/queue_head.h"

#include "dynamo/dynamo_codec.h"

#define OURS "#token = :token AND #done = :before"

void
queue_put_head_update(dynamo_text *text, const char *table, const queue_request *request,
					  const char *update, const char *condition)
{
	char		key[QUEUE_KEY_SIZE];

	queue_resource_key(key, request);
	queue_put_table(text, table);
	queue_put_key(text, key, "head");
	queue_put_expressions(text, update, condition);
}

void
queue_put_claim(dynamo_text *text, const char *table, const queue_request *request)
{
	/* An operator's claim neither waits nor counts. */
	if (request->all)
		queue_put_head_update(text, table, request, "SET #token = :token",
							  "#done = :before AND #seq >= :number"
							  " AND (attribute_not_exists(#token) OR #token < :token)");
	else
		queue_put_head_update(text, table, request,
							  "SET #token = :token, #due = :later"
							  ", #attempts = if_not_exists(#attempts, :zero) + :one",
							  "#done < #seq AND #due <= :now AND attribute_not_exists(#paused)"
							  " AND (attribute_not_exists(#token) OR #token < :token)");
	dynamo_text_raw(text, QUEUE_CAPACITY ",\"ReturnValues\":\"ALL_NEW\"");
	queue_put_names(text, request->all ? "token done seq" : "token due attempts done seq paused");
	queue_put_values(text);
	dynamo_put_n_member(text, ":token", request->token);
	if (request->all)
	{
		dynamo_put_n_member(text, ":before", request->number - 1);
		dynamo_put_n_member(text, ":number", request->number);
		return;
	}
	dynamo_put_n_member(text, ":now", request->now_ms);
	dynamo_put_n_member(text, ":later", request->now_ms + request->delay_ms);
	dynamo_put_n_member(text, ":zero", 0);
	dynamo_put_n_member(text, ":one", 1);
}

void
queue_put_finish(dynamo_text *text, const char *table, const queue_request *request, bool last)
{
	if (last)
		queue_put_head_update(text, table, request,
							  "SET #done = :number REMOVE #attempts, #lastError, #ready, #due",
							  OURS " AND #seq = :number");
	else
		queue_put_head_update(text, table, request,
							  "SET #done = :number, #due = :now REMOVE #attempts, #lastError",
							  OURS " AND #seq > :number");
	queue_put_names(text, last ? "done attempts lastError ready due token seq" :
					"done due attempts lastError token seq");
	queue_put_values(text);
	dynamo_put_n_member(text, ":token", request->token);
	dynamo_put_n_member(text, ":before", request->number - 1);
	dynamo_put_n_member(text, ":number", request->number);
	if (!last)
		dynamo_put_n_member(text, ":now", request->now_ms);
	dynamo_text_raw(text, "}");
}

void
queue_put_complete(dynamo_text *text, const char *table, const queue_request *request)
{
	queue_put_finish(text, table, request, request->kind == QUEUE_COMPLETE_LAST);
	dynamo_text_raw(text, QUEUE_CAPACITY);
}

void
queue_put_fail(dynamo_text *text, const char *table, const queue_request *request)
{
	queue_put_head_update(text, table, request, "SET #due = :later, #lastError = :error", OURS);
	dynamo_text_raw(text, QUEUE_CAPACITY);
	queue_put_names(text, "due lastError token done");
	queue_put_values(text);
	dynamo_put_n_member(text, ":later", request->now_ms + request->delay_ms);
	dynamo_put_s_member(text, ":error", request->error);
	dynamo_put_n_member(text, ":token", request->token);
	dynamo_put_n_member(text, ":before", request->number - 1);
}

/* A push after the head was read changes seq, and refuses this. */
void
queue_put_drop(dynamo_text *text, const char *table, const queue_request *request)
{
	queue_put_head_update(text, table, request,
						  "SET #done = #seq REMOVE #ready, #due, #attempts, #lastError",
						  "#seq = :seq AND #done < #seq");
	dynamo_text_raw(text, QUEUE_CAPACITY);
	queue_put_names(text, "done seq ready due attempts lastError");
	queue_put_values(text);
	dynamo_put_n_member(text, ":seq", request->seq);
}

/* A resource may be paused before its first job. */
void
queue_put_pause(dynamo_text *text, const char *table, const queue_request *request)
{
	bool		pause = request->kind == QUEUE_PAUSE;

	queue_put_head_update(text, table, request, pause ? "SET #paused = :one" : "REMOVE #paused",
						  pause ? "attribute_not_exists(#paused)" : "attribute_exists(#paused)");
	dynamo_text_raw(text, QUEUE_CAPACITY);
	queue_put_names(text, "paused");
	if (!pause)
		return;
	queue_put_values(text);
	dynamo_put_n_member(text, ":one", 1);
}
