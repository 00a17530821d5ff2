/*-------------------------------------------------------------------------
 *
 * queue_memory.c
 *	  The last numbers of heads, as this cluster has seen them: what a push guesses.
 *
 *-------------------------------------------------------------------------
 */
#include "queue/queue.h"

#define WAYS 4					/* a resource has one of so many places */
#define SEQ_MOST (INT64_C(1) << 48)

/* FNV-1a over both names, each with its final zero; the result is never 0. */
static uint64_t
key_of(const char *queue, const char *resource)
{
	const char *names[] = {queue, resource};
	uint64_t	hash = UINT64_C(0xcbf29ce484222325);

	for (int i = 0; i < 2; i++)
	{
		const char *at = names[i];

		do
			hash = (hash ^ (unsigned char) *at) * UINT64_C(0x100000001b3);
		while (*at++ != '\0');
	}
	/* Mixes the bits: so far, names that differ only in their last letters have similar hashes. */
	hash = (hash ^ hash >> 33) * UINT64_C(0xff51afd7ed558ccd);
	return (hash ^ hash >> 33) | 1;
}

/* The place that the resource has, or that it would get. */
static queue_memory *
place_of(queue_memory *memory, uint64_t key)
{
	queue_memory *set = &memory[(key >> 3) % (QUEUE_MEMORY / WAYS) * WAYS];
	queue_memory *found = &set[(key >> 1) % WAYS];

	for (int i = 0; i < WAYS; i++)
	{
		uint64_t	at = shared_read(&set[i].key);

		if (at == key)
			return &set[i];
		if (at == 0)
			found = &set[i];
	}
	return found;
}

void
queue_memory_note(queue_memory *memory, const char *queue, const char *resource, int64_t seq,
				  uint32_t taken)
{
	uint64_t	key = key_of(queue, resource);
	queue_memory *at = place_of(memory, key);

	if (seq == 0 && shared_read(&at->key) != key)
		return;
	shared_write(&at->key, seq != 0 ? key : 0);
	shared_write(&at->seq, (uint64_t) seq ^ key);
	shared_write(&at->taken, taken);
}

bool
queue_memory_guess(queue_memory *memory, const char *queue, const char *resource, int64_t *seq,
				   uint32_t *taken)
{
	uint64_t	key = key_of(queue, resource);
	queue_memory *at = place_of(memory, key);

	*seq = (int64_t) (shared_read(&at->seq) ^ key);
	*taken = shared_read(&at->taken);
	return shared_read(&at->key) == key && *seq > 0 && *seq <= SEQ_MOST;
}
