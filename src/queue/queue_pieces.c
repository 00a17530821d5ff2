/*-------------------------------------------------------------------------
 *
 * queue_pieces.c
 *	  A session's call in pieces: what the worker has of it.
 *
 * If the worker ends, what it has of a call is lost.  The session then sends the call anew, as
 * after an unknown outcome.
 *
 *-------------------------------------------------------------------------
 */
#include "queue/queue.h"

#include <stdlib.h>
#include <string.h>

#define REQUEST_MAX (sizeof(queue_request) + QUEUE_PUSH_BYTES + \
					 QUEUE_PUSH_MAX * (sizeof(queue_job) + QUEUE_ID_MAX))

void
queue_pieces_clear(queue_pieces *pieces)
{
	free(pieces->bytes);
	memset(pieces, 0, sizeof(*pieces));
}

void
queue_pieces_expect(queue_pieces *pieces, uint32_t generation, uint64_t seq)
{
	queue_pieces_clear(pieces);
	pieces->generation = generation;
	pieces->sent = seq;
}

queue_taken
queue_pieces_take(queue_pieces *pieces, uint32_t generation, uint32_t total, uint32_t offset,
				  const char *bytes, uint32_t len)
{
	if (offset == 0)
	{
		queue_pieces_clear(pieces);
		if (total < sizeof(queue_request) || total > REQUEST_MAX)
			return QUEUE_PIECES_REFUSED;
		pieces->bytes = malloc(total);
		pieces->generation = generation;
		pieces->total = total;
		if (pieces->bytes == NULL)
			return QUEUE_PIECES_REFUSED;
	}
	if (pieces->bytes == NULL || pieces->generation != generation || pieces->is_reply)
		return QUEUE_PIECES_LOST;
	/* A piece may come twice, because a new worker takes a request again that is not answered. */
	if (offset > pieces->len || len > pieces->total - offset)
		return QUEUE_PIECES_REFUSED;
	memcpy(pieces->bytes + offset, bytes, len);
	pieces->len = offset + len;
	return pieces->len < pieces->total ? QUEUE_PIECES_MORE : QUEUE_PIECES_WHOLE;
}

char *
queue_pieces_build(queue_pieces *pieces, uint64_t seq, const char *table, int64_t now_ms,
				   queue_kind *kind)
{
	queue_request request;
	char	   *body;

	memcpy(&request, pieces->bytes, sizeof(request));
	request.tail_len = pieces->total - sizeof(request);
	if (request.now_ms == 0)
		request.now_ms = now_ms;
	*kind = request.kind;
	body = queue_build(table, &request, pieces->bytes + sizeof(request));
	queue_pieces_expect(pieces, pieces->generation, seq);
	return body;
}

bool
queue_pieces_reply(queue_pieces *pieces, uint32_t generation, uint64_t seq, char *bytes,
				   size_t len)
{
	if (pieces->generation != generation || pieces->sent != seq)
		return false;
	queue_pieces_clear(pieces);
	pieces->generation = generation;
	pieces->is_reply = true;
	pieces->bytes = bytes;
	pieces->len = pieces->total = (uint32_t) len;
	return true;
}

const char *
queue_pieces_give(const queue_pieces *pieces, uint32_t generation, uint32_t offset, uint32_t *len)
{
	if (!pieces->is_reply || pieces->generation != generation || offset > pieces->total)
		return NULL;
	if (*len > pieces->total - offset)
		*len = pieces->total - offset;
	return pieces->bytes + offset;
}
