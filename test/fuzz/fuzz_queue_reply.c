/*-------------------------------------------------------------------------
 *
 * fuzz_queue_reply.c
 *	  Any bytes as DynamoDB's reply about a queue: what a session gets has the
 *	  length that it promises, and no number that a table cannot have.
 *
 * The first byte chooses the operation, the second the HTTP status; the rest is
 * the body.
 *
 *-------------------------------------------------------------------------
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "queue/queue.h"

int			LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static void
check(bool promise)
{
	if (!promise)
		abort();
}

static size_t
check_row(const char *packed, size_t offset, size_t len)
{
	queue_row	row;

	check(len - offset >= sizeof(row));
	memcpy(&row, packed + offset, sizeof(row));
	check(row.seq >= 0 && row.done >= 0 && row.token >= 0 && row.attempts >= 0);
	check(row.due >= 0 && row.number >= 0 && row.pushed_at >= 0);
	offset += sizeof(row);
	for (int i = 0; i < 5; i++)
	{
		const uint32_t lengths[] = {row.queue_len, row.resource_len, row.id_len, row.error_len,
			row.payload_len};

		check(lengths[i] <= len - offset);
		check(memchr(packed + offset, '\0', lengths[i]) == NULL);
		offset += lengths[i];
	}
	return offset;
}

int
LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	dynamo_reply reply;
	dynamo_op	op;

	if (size < 2)
		return 0;
	op = DYNAMO_QUEUE_READ + bytes[0] % (DYNAMO_OP_COUNT - DYNAMO_QUEUE_READ);
	dynamo_read(&reply, NULL, op, 1, bytes[1] % 2 == 0 ? 200 : 400, NULL, (const char *) bytes + 2,
				size - 2);
	if (reply.status == DYNAMO_OK || reply.status == DYNAMO_CONDITION_FAILED)
	{
		size_t		len;
		char	   *packed = queue_pack(&reply, 1, &len);
		queue_reply head;
		size_t		offset = sizeof(head);

		check(packed != NULL && len >= sizeof(head));
		memcpy(&head, packed, sizeof(head));
		check(head.rows >= 0 && head.next_len <= len - offset);
		offset += head.next_len;
		for (int i = 0; i < head.rows; i++)
			offset = check_row(packed, offset, len);
		check(offset == len);
		free(packed);
	}
	dynamo_reply_free(&reply);
	return 0;
}
