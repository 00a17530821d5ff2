/*-------------------------------------------------------------------------
 *
 * queue_pieces.h
 *	  A session's call on the queues' table, in pieces: what the worker has of it.
 *
 * A job is larger than a slot.  So a session hands its request over piece by piece, and
 * fetches the reply in the same way.  Each session has one buffer: for the request that
 * comes in, then for the reply that goes out.
 *
 *-------------------------------------------------------------------------
 */
#ifndef DDBLOCK_QUEUE_QUEUE_PIECES_H
#define DDBLOCK_QUEUE_QUEUE_PIECES_H

#include "queue/queue.h"

typedef struct queue_pieces
{
	uint32_t	generation;		/* of the session; 0: the buffer is empty */
	uint64_t	sent;			/* the call whose reply is to come; 0: none */
	bool		is_reply;
	char	   *bytes;			/* malloc'd; NULL: none */
	uint32_t	len;
	uint32_t	total;
} queue_pieces;

typedef enum queue_taken
{
	QUEUE_PIECES_LOST,			/* a worker before this one has had the pieces before it */
	QUEUE_PIECES_REFUSED,		/* it does not fit, or memory is short */
	QUEUE_PIECES_MORE,			/* there are more to come */
	QUEUE_PIECES_WHOLE
} queue_taken;

/* A piece of a request.  The first one begins a new call, whatever became of the last one. */
extern queue_taken queue_pieces_take(queue_pieces *pieces, uint32_t generation, uint32_t total,
									 uint32_t offset, const char *bytes, uint32_t len);

/*
 * The body of a whole request, malloc'd, or NULL if memory is short.  seq: the call's number; now_ms:
 * the time, if the request has none.
 */
extern char *queue_pieces_build(queue_pieces *pieces, uint64_t seq, const char *table,
								int64_t now_ms, queue_kind *kind);

/*
 * The reply, which becomes the buffer's.  False: nobody waits for it any more, and the buffer is
 * another call's.
 */
extern bool queue_pieces_reply(queue_pieces *pieces, uint32_t generation, uint64_t seq,
							   char *bytes, size_t len);

/* A piece of the reply, of *len bytes at most; NULL: a worker before this one has had it. */
extern const char *queue_pieces_give(const queue_pieces *pieces, uint32_t generation,
									 uint32_t offset, uint32_t *len);

extern void queue_pieces_clear(queue_pieces *pieces);

#endif							/* DDBLOCK_QUEUE_QUEUE_PIECES_H */
