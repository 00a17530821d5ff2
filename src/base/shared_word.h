/*-------------------------------------------------------------------------
 *
 * shared_word.h
 *	  Atomic words in shared memory, and counters of changes, without
 *	  PostgreSQL.
 *
 * Reads and writes of a word are relaxed; the barriers between them are
 * explicit, as in PostgreSQL's port/atomics.h.
 *
 * A counter of changes guards a larger record that has one writer: it is odd
 * while the writer writes, and another number afterwards.  The writer never
 * waits.  A reader copies, then asks shared_end_read() whether the copy is
 * whole (as with PostgreSQL's st_changecount).
 *
 * The simulator (test/simulator) compiles this with SHARED_STEP set to a
 * function of its own.  It is called before each access to a word, and may let
 * another process act there.
 *
 *-------------------------------------------------------------------------
 */
#ifndef DDBLOCK_BASE_SHARED_WORD_H
#define DDBLOCK_BASE_SHARED_WORD_H

#include <stdbool.h>
#include <stdint.h>

#ifdef SHARED_STEP
extern void SHARED_STEP(void);
#else
#define SHARED_STEP() ((void) 0)
#endif

typedef struct shared32
{
	volatile uint32_t value;
} shared32;

typedef struct shared64
{
	volatile uint64_t value __attribute__((aligned(8)));
} shared64;

/* Reading and writing a word, of either size. */
#define shared_read(word) \
	(SHARED_STEP(), __atomic_load_n(&(word)->value, __ATOMIC_RELAXED))
#define shared_write(word, new_value) \
	(SHARED_STEP(), __atomic_store_n(&(word)->value, (new_value), __ATOMIC_RELAXED))

/*
 * Operations that read and write a word in one step.  Other processes see what the process did
 * before such an operation before they see the operation.  They may see what it writes after the
 * operation first, if the processor has no atomic instructions (arm64 before version 8.1).
 */
#define shared_add(word, addend) \
	(SHARED_STEP(), __atomic_add_fetch(&(word)->value, (addend), __ATOMIC_SEQ_CST))
#define shared_exchange(word, new_value) \
	(SHARED_STEP(), __atomic_exchange_n(&(word)->value, (new_value), __ATOMIC_SEQ_CST))
#define shared_compare_exchange(word, expected, new_value) \
	(SHARED_STEP(), __atomic_compare_exchange_n(&(word)->value, (expected), (new_value), \
												false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))

#define shared_read_barrier() __atomic_thread_fence(__ATOMIC_ACQUIRE)
#define shared_write_barrier() __atomic_thread_fence(__ATOMIC_RELEASE)
#define shared_full_barrier() __atomic_thread_fence(__ATOMIC_SEQ_CST)

/* If a writer dies in the middle of a change, the next one begins it again. */
static inline void
shared_begin_change(shared32 *changes)
{
	shared_write(changes, shared_read(changes) | 1);
	shared_write_barrier();
}

static inline void
shared_end_change(shared32 *changes)
{
	shared_write_barrier();
	shared_write(changes, shared_read(changes) + 1);
}

static inline uint32_t
shared_begin_read(shared32 *changes)
{
	uint32_t	before = shared_read(changes);

	shared_read_barrier();
	return before;
}

static inline bool
shared_end_read(shared32 *changes, uint32_t before)
{
	shared_read_barrier();
	return before % 2 == 0 && shared_read(changes) == before;
}

#endif							/* DDBLOCK_BASE_SHARED_WORD_H */
