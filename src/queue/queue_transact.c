/*-------------------------------------------------------------------------
 *
 * queue_transact.c
 *	  Transactions on the queue's table: push, cancel, bury.
 *
 *-------------------------------------------------------------------------
 */
#include "queue/queue_transact.h"

#include <openssl/evp.h>
#include <stdio.h>
#include <string.h>

#include "dynamo/dynamo_codec.h"
#include "queue/queue_head.h"

static void
start(dynamo_text *text, const queue_request *request)
{
	dynamo_text_raw(text, "{\"ClientRequestToken\":");
	dynamo_text_string(text, request->uuid, strlen(request->uuid));
	dynamo_text_raw(text, QUEUE_CAPACITY ",\"TransactItems\":[");
}

static void
put_push_head(dynamo_text *text, const char *table, const queue_request *request)
{
	dynamo_text_raw(text, "{\"Update\":");
	queue_put_head_update(text, table, request,
						  "SET #seq = :last, #done = if_not_exists(#done, :zero), #ready = :queue"
						  ", #due = if_not_exists(#due, :now)",
						  request->seq == 0 ? "attribute_not_exists(#seq)" : "#seq = :seq");
	queue_put_names(text, "seq done ready due");
	queue_put_values(text);
	if (request->seq > 0)
		dynamo_put_n_member(text, ":seq", request->seq);
	dynamo_put_n_member(text, ":last", request->seq + request->jobs);
	dynamo_put_n_member(text, ":zero", 0);
	dynamo_put_s_member(text, ":queue", request->queue);
	dynamo_put_n_member(text, ":now", request->now_ms);
	dynamo_text_raw(text, "}}}");
}

static void
put_job(dynamo_text *text, const char *table, const queue_request *request, int64_t number,
		const queue_job *job, const char *bytes)
{
	char		pk[QUEUE_KEY_SIZE];
	char		sk[QUEUE_NUMBER_SIZE];

	queue_resource_key(pk, request);
	queue_job_key(sk, number);
	dynamo_text_raw(text, ",{\"Put\":");
	queue_put_table(text, table);
	dynamo_text_raw(text, ",\"Item\":{");
	queue_put_keys(text, pk, sk);
	if (job->id_len > 0)
	{
		dynamo_put_name(text, "id");
		dynamo_put_s(text, bytes, job->id_len);
	}
	dynamo_put_name(text, "payload");
	dynamo_put_s(text, bytes + job->id_len, job->payload_len);
	dynamo_put_n_member(text, "pushedAt", request->now_ms);
	dynamo_text_raw(text, "},\"ConditionExpression\":\"attribute_not_exists(#pk)\"");
	queue_put_names(text, "pk");
	dynamo_text_raw(text, "}}");
}

bool
queue_digest(const char *payload, size_t len, char digest[QUEUE_DIGEST_SIZE])
{
	unsigned char bytes[(QUEUE_DIGEST_SIZE - 1) / 2];

	if (EVP_Digest(payload, len, bytes, NULL, EVP_sha256(), NULL) != 1)
		return false;
	for (size_t i = 0; i < sizeof(bytes); i++)
		snprintf(digest + 2 * i, 3, "%02x", bytes[i]);
	return true;
}

static void
put_id(dynamo_text *text, const char *table, const queue_request *request, int64_t number,
	   const queue_job *job, const char *bytes)
{
	char		pk[QUEUE_KEY_SIZE];

	queue_part_key(pk, "id", request);
	dynamo_text_raw(text, ",{\"Put\":");
	queue_put_table(text, table);
	dynamo_text_raw(text, ",\"Item\":{");
	dynamo_put_s_member(text, "pk", pk);
	dynamo_put_name(text, "sk");
	dynamo_put_s(text, bytes, job->id_len);
	dynamo_put_s_member(text, "resource", request->resource);
	dynamo_put_s_member(text, "digest", job->digest);
	dynamo_put_n_member(text, "number", number);
	dynamo_put_n_member(text, "ttl", request->now_ms / 1000 + request->dedup_s);
	dynamo_text_raw(text, "}");
	queue_put_expressions(text, NULL, "attribute_not_exists(#pk) OR #ttl < :now");
	queue_put_names(text, "pk ttl");
	queue_put_values(text);
	dynamo_put_n_member(text, ":now", request->now_ms / 1000);
	dynamo_text_raw(text, "}}}");
}

/* The next job of a push's tail; false if there is none, or it is not whole. */
static bool
next_job(const char *tail, size_t len, size_t *offset, queue_job *job, const char **bytes)
{
	if (len - *offset < sizeof(*job))
		return false;
	memcpy(job, tail + *offset, sizeof(*job));
	job->digest[QUEUE_DIGEST_SIZE - 1] = '\0';
	*offset += sizeof(*job);
	if (job->id_len > QUEUE_ID_MAX || job->payload_len > QUEUE_PAYLOAD_MAX ||
		len - *offset < (size_t) job->id_len + job->payload_len)
		return false;
	*bytes = tail + *offset;
	*offset += (size_t) job->id_len + job->payload_len;
	return true;
}

bool
queue_put_push(dynamo_text *text, const char *table, const queue_request *request, const char *tail)
{
	size_t		offset = 0;
	queue_job	job;
	const char *bytes;

	start(text, request);
	put_push_head(text, table, request);
	for (int i = 1; i <= request->jobs; i++)
	{
		if (!next_job(tail, request->tail_len, &offset, &job, &bytes))
			return false;
		put_job(text, table, request, request->seq + i, &job, bytes);
		if (job.id_len > 0)
			put_id(text, table, request, request->seq + i, &job, bytes);
	}
	dynamo_text_raw(text, "]}");
	return true;
}

/*
 * Deletes a job on condition that it is not the next one, which may be running.  Its number
 * stays; the session that claims it finds no job, and finishes it.
 */
void
queue_put_cancel(dynamo_text *text, const char *table, const queue_request *request)
{
	char		pk[QUEUE_KEY_SIZE];
	char		sk[QUEUE_NUMBER_SIZE];

	queue_resource_key(pk, request);
	queue_job_key(sk, request->number);
	start(text, request);
	dynamo_text_raw(text, "{\"ConditionCheck\":");
	queue_put_head_update(text, table, request, NULL, "#done < :before");
	queue_put_names(text, "done");
	queue_put_values(text);
	dynamo_put_n_member(text, ":before", request->number - 1);
	dynamo_text_raw(text, "}}},{\"Delete\":");
	queue_put_table(text, table);
	queue_put_key(text, pk, sk);
	queue_put_expressions(text, NULL, "attribute_exists(#pk)");
	queue_put_names(text, "pk");
	dynamo_text_raw(text, "}}]}");
}

static void
put_dead(dynamo_text *text, const char *table, const queue_request *request, const char *tail)
{
	char		pk[QUEUE_KEY_SIZE];

	queue_part_key(pk, "dead", request);
	queue_put_table(text, table);
	dynamo_text_raw(text, ",\"Item\":{");
	queue_put_keys(text, pk, request->id);
	dynamo_put_s_member(text, "resource", request->resource);
	dynamo_put_n_member(text, "number", request->number);
	dynamo_put_name(text, "payload");
	dynamo_put_s(text, tail, request->tail_len);
	dynamo_put_n_member(text, "pushedAt", request->pushed_at);
	dynamo_put_n_member(text, "attempts", request->attempts);
	dynamo_put_n_member(text, "due", request->now_ms);
	if (request->error[0] != '\0')
		dynamo_put_s_member(text, "lastError", request->error);
	dynamo_text_raw(text, "}");
}

/* The job dies and is finished at once: it is never both dead and worked on. */
void
queue_put_bury(dynamo_text *text, const char *table, const queue_request *request,
			   const char *tail)
{
	char		pk[QUEUE_KEY_SIZE];
	char		sk[QUEUE_NUMBER_SIZE];

	queue_resource_key(pk, request);
	queue_job_key(sk, request->number);
	start(text, request);
	dynamo_text_raw(text, "{\"Update\":");
	queue_put_finish(text, table, request, request->last);
	dynamo_text_raw(text, "}},{\"Put\":");
	put_dead(text, table, request, tail);
	dynamo_text_raw(text, "}},{\"Delete\":");
	queue_put_table(text, table);
	queue_put_key(text, pk, sk);
	dynamo_text_raw(text, "}}]}");
}
