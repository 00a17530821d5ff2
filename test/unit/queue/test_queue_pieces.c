/*-------------------------------------------------------------------------
 *
 * test_queue_pieces.c
 *	  A call on the queues' table in pieces: its request, its reply.
 *
 *-------------------------------------------------------------------------
 */
#define BEFORE_EACH start
#define AFTER_EACH end
#include "../unit.h"

#include "queue/queue.h"

#define ME 5					/* a session's generation */
#define PIECE 1000

static queue_pieces pieces;
#define TAIL "{\"sk\":\"x\"}"
static char whole[sizeof(queue_request) + sizeof(TAIL) - 1];

static int
start(void **state)
{
	queue_request request = {.kind = QUEUE_FIND,.queue = "q"};

	(void) state;
	memcpy(whole, &request, sizeof(request));
	memcpy(whole + sizeof(request), TAIL, strlen(TAIL));
	return 0;
}

static int
end(void **state)
{
	(void) state;
	queue_pieces_clear(&pieces);
	return 0;
}

static queue_taken
take(uint32_t generation, uint32_t offset)
{
	uint32_t	left = (uint32_t) sizeof(whole) - offset;

	return queue_pieces_take(&pieces, generation, sizeof(whole), offset, whole + offset,
							 left < PIECE ? left : PIECE);
}

/* All pieces; the request is sent as that call, at the worker's time. */
static void
ask(uint64_t seq)
{
	queue_kind	kind;
	queue_taken taken;
	char	   *body;
	uint32_t	offset = 0;

	while ((taken = take(ME, offset)) == QUEUE_PIECES_MORE)
		offset += PIECE;
	assert_int_equal(taken, QUEUE_PIECES_WHOLE);
	body = queue_pieces_build(&pieces, seq, "t", 5000, &kind);
	assert_non_null(strstr(body, "\":now\":{\"N\":\"5000\"}"));
	assert_non_null(strstr(body, ",\"ExclusiveStartKey\":" TAIL "}"));
	assert_int_equal(kind, QUEUE_FIND);
	free(body);
}

static bool
reply(uint32_t generation, uint64_t seq, const char *text)
{
	char	   *bytes = strdup(text);

	if (queue_pieces_reply(&pieces, generation, seq, bytes, strlen(text)))
		return true;
	free(bytes);
	return false;
}

static void
assert_gives(uint32_t offset, uint32_t room, const char *text)
{
	uint32_t	len = room;
	const char *bytes = queue_pieces_give(&pieces, ME, offset, &len);

	assert_non_null(bytes);
	assert_int_equal(len, strlen(text));
	assert_memory_equal(bytes, text, len);
}

TEST(a_request_comes_and_its_reply_goes_in_pieces)
{
	ask(1);
	assert_true(reply(ME, 1, "abcdefgh"));
	assert_gives(0, 5, "abcde");
	assert_gives(5, 5, "fgh");
	assert_gives(8, 5, "");
}

TEST(a_piece_may_come_twice)
{
	assert_int_equal(take(ME, 0), QUEUE_PIECES_MORE);
	assert_int_equal(take(ME, PIECE), QUEUE_PIECES_MORE);
	assert_int_equal(take(ME, PIECE), QUEUE_PIECES_MORE);
	assert_int_equal(take(ME, 3 * PIECE), QUEUE_PIECES_REFUSED);
}

TEST(a_piece_that_does_not_fit_is_refused)
{
	assert_int_equal(queue_pieces_take(&pieces, ME, 10, 0, whole, 10), QUEUE_PIECES_REFUSED);
	assert_int_equal(queue_pieces_take(&pieces, ME, UINT32_MAX, 0, whole, 10), QUEUE_PIECES_REFUSED);
	assert_int_equal(take(ME, 0), QUEUE_PIECES_MORE);
	assert_int_equal(queue_pieces_take(&pieces, ME, sizeof(whole), PIECE, whole, sizeof(whole)),
					 QUEUE_PIECES_REFUSED);
}

/* ... not even by one byte; its last piece fills it. */
TEST(a_piece_ends_with_its_request)
{
	uint32_t	left = (uint32_t) sizeof(whole) - PIECE;

	assert_int_equal(take(ME, 0), QUEUE_PIECES_MORE);
	assert_int_equal(queue_pieces_take(&pieces, ME, sizeof(whole), PIECE, whole, left + 1),
					 QUEUE_PIECES_REFUSED);
	assert_int_equal(queue_pieces_take(&pieces, ME, sizeof(whole), PIECE + 1, whole, 1),
					 QUEUE_PIECES_REFUSED);
	assert_int_equal(queue_pieces_take(&pieces, ME, sizeof(whole), PIECE, whole + PIECE, left),
					 QUEUE_PIECES_WHOLE);
}

TEST(a_request_with_a_time_keeps_it)
{
	queue_request request = {.kind = QUEUE_FIND,.queue = "q",.now_ms = 7};
	queue_kind	kind;
	char	   *body;

	assert_int_equal(queue_pieces_take(&pieces, ME, sizeof(request), 0, (const char *) &request,
									   sizeof(request)), QUEUE_PIECES_WHOLE);
	body = queue_pieces_build(&pieces, 1, "t", 5000, &kind);
	assert_non_null(strstr(body, "\":now\":{\"N\":\"7\"}"));
	free(body);
}

TEST(a_request_may_have_no_tail_or_the_largest_push)
{
	const uint32_t most = (uint32_t) (sizeof(queue_request) + QUEUE_PUSH_BYTES +
									  QUEUE_PUSH_MAX * (sizeof(queue_job) + QUEUE_ID_MAX));

	assert_int_equal(queue_pieces_take(&pieces, ME, sizeof(queue_request), 0, whole,
									   sizeof(queue_request)), QUEUE_PIECES_WHOLE);
	assert_int_equal(queue_pieces_take(&pieces, ME, most, 0, whole, 10), QUEUE_PIECES_MORE);
	assert_int_equal(queue_pieces_take(&pieces, ME, most + 1, 0, whole, 10), QUEUE_PIECES_REFUSED);
}

/* ... as if its first pieces had gone to a worker that has died. */
TEST(what_another_session_or_worker_has_is_lost)
{
	uint32_t	len = 5;

	assert_int_equal(take(ME, PIECE), QUEUE_PIECES_LOST);
	assert_int_equal(take(ME, 0), QUEUE_PIECES_MORE);
	assert_int_equal(take(ME + 2, PIECE), QUEUE_PIECES_LOST);
	assert_null(queue_pieces_give(&pieces, ME, 0, &len));
	ask(1);
	assert_false(reply(ME + 2, 1, "x"));
	assert_true(reply(ME, 1, "x"));
	assert_int_equal(take(ME, PIECE), QUEUE_PIECES_LOST);
	assert_null(queue_pieces_give(&pieces, ME + 2, 0, &len));
	assert_null(queue_pieces_give(&pieces, ME, 2, &len));
}

/* ... as a page of locks is. */
TEST(a_reply_may_come_to_no_request_in_pieces)
{
	assert_int_equal(take(ME, 0), QUEUE_PIECES_MORE);
	queue_pieces_expect(&pieces, ME, 2);
	assert_int_equal(take(ME, PIECE), QUEUE_PIECES_LOST);
	assert_false(reply(ME, 1, "old"));
	assert_false(reply(ME + 2, 2, "another's"));
	assert_true(reply(ME, 2, "page"));
	assert_gives(0, 5, "page");
}

TEST(a_cancelled_calls_late_reply_is_not_the_next_calls)
{
	ask(1);
	assert_int_equal(take(ME, 0), QUEUE_PIECES_MORE);
	assert_false(reply(ME, 1, "old"));
	assert_int_equal(take(ME, PIECE), QUEUE_PIECES_MORE);
	ask(2);
	assert_false(reply(ME, 1, "old"));
	assert_true(reply(ME, 2, "new"));
	assert_false(reply(ME, 2, "twice"));
	assert_gives(0, 5, "new");
}
