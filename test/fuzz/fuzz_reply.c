/*-------------------------------------------------------------------------
 *
 * fuzz_reply.c
 *	  Any bytes as DynamoDB's reply: no crash, no leak, and nothing in the
 *	  result that its header does not promise.
 *
 * The first byte chooses the operation, the second the HTTP status, the third
 * the number of statements; the rest is the body.
 *
 *-------------------------------------------------------------------------
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "dynamo/dynamo.h"

int			LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static void
check(bool promise)
{
	if (!promise)
		abort();
}

static void
check_text(const char *text, size_t size)
{
	check(memchr(text, '\0', size) != NULL);
}

static void
check_item(const dynamo_item *item)
{
	check_text(item->owner, sizeof(item->owner));
	check_text(item->version, sizeof(item->version));
	check_text(item->holder.database, DYNAMO_HOLDER_SIZE);
	check_text(item->holder.user, DYNAMO_HOLDER_SIZE);
	check_text(item->holder.application, DYNAMO_HOLDER_SIZE);
	check_text(item->holder.host, DYNAMO_HOLDER_SIZE);
	check(item->lease_ms >= 0 && item->token >= 0 && item->released_at >= 0);
	check((item->token > 0) == (item->has_token && !item->bad_token));
	check(item->exists || (!item->released && !item->has_token && item->data == NULL));
	if (item->data != NULL && item->data_len > 0)
	{
		volatile uint8_t last = item->data[item->data_len - 1];

		(void) last;
	}
}

static void
check_shared(const dynamo_item *item, const dynamo_shared *shared)
{
	int64_t		total = 0;

	if (shared == NULL)
		return;
	check(item->exists && (shared->current || shared->gate));
	check_text(shared->gate_version, sizeof(shared->gate_version));
	check_text(shared->gate_name, sizeof(shared->gate_name));
	check(shared->count >= 0 && shared->count <= DYNAMO_ENTRIES_MAX);
	check(shared->current || shared->count == 0);
	for (int i = 0; i < shared->count; i++)
	{
		const dynamo_entry *entry = &shared->entries[i];

		check_text(entry->incarnation, sizeof(entry->incarnation));
		check_text(entry->version, sizeof(entry->version));
		check_text(entry->name, sizeof(entry->name));
		check(entry->version[0] != '\0' && entry->lease_ms > 0 && entry->token > 0);
		check(entry->permits > 0);
		total += entry->permits;
	}
	if (shared->wrong != NULL)
		return;
	check(!shared->gate || (shared->gate_version[0] != '\0' && shared->gate_lease_ms > 0));
	check(shared->total == total);
	check(!shared->current || (!item->released && item->token > 0));
}

static void
check_result(const dynamo_result *result)
{
	check_text(result->message, sizeof(result->message));
	check_item(&result->item);
	check_shared(&result->item, result->shared);

	/* an item on which a decision may rest can be understood */
	if (result->item.exists && !result->item.released && result->item.wrong == NULL &&
		(result->status == DYNAMO_OK || result->status == DYNAMO_CONDITION_FAILED))
		check(result->item.version[0] != '\0');
}

static void
check_page(const dynamo_page *page)
{
	for (int i = 0; i < page->count; i++)
	{
		check(strlen(page->rows[i].name) <= DYNAMO_NAME_MAX);
		check_text(page->rows[i].item.version, DYNAMO_VERSION_SIZE);
		check_shared(&page->rows[i].item, page->rows[i].shared);
	}
	check(page->next == NULL || strlen(page->next) <= DYNAMO_NAME_MAX);
	check(page->next_sort == NULL || page->next != NULL);
}

int
LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	static const int http_statuses[] = {200, 400, 413, 500, 503, 301};
	static const dynamo_table tables[] = {
		{"t", "key", NULL, NULL, 0, '\0'},
		{"t", "pk", "sk", "locks", 0, '\0'},
		{"t", "pk", "sk", "locks", 0, '#'}
	};
	dynamo_reply reply;
	dynamo_op	op;
	int			http_status;
	int			count;

	if (size < 3)
		return 0;
	op = (dynamo_op) (bytes[0] % DYNAMO_OP_COUNT);
	http_status = http_statuses[bytes[1] % 6];
	count = op == DYNAMO_RENEW_BATCH ? 1 + bytes[2] % DYNAMO_BATCH_MAX : 1;

	dynamo_read(&reply, &tables[bytes[2] % 3], op, count, http_status, NULL,
				(const char *) bytes + 3, size - 3);
	check_page(&reply.page);
	check(reply.count == count);
	check(reply.consumed >= 0);
	check_text(reply.message, sizeof(reply.message));
	check_text(reply.table.partition_key, sizeof(reply.table.partition_key));
	check_text(reply.table.sort_key, sizeof(reply.table.sort_key));
	for (int i = 0; i < count; i++)
	{
		check_result(&reply.results[i]);
		check(reply.status == DYNAMO_OK || reply.status == reply.results[i].status);
	}
	dynamo_reply_free(&reply);
	dynamo_reply_free(&reply);
	return 0;
}
