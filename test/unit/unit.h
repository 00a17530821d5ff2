/*-------------------------------------------------------------------------
 *
 * unit.h
 *	  What each program of test/unit shares: the headers of cmocka, and main().
 *
 * TEST(name) { ... } is a test, and adds itself to the program.  A program whose
 * tests need a fixture defines BEFORE_EACH, AFTER_EACH, BEFORE_ALL or AFTER_ALL as
 * the name of a function before it includes this.
 *
 *-------------------------------------------------------------------------
 */
#ifndef DDBLOCK_TEST_UNIT_H
#define DDBLOCK_TEST_UNIT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#ifdef BEFORE_ALL
static int	BEFORE_ALL(void **state);
#else
#define BEFORE_ALL NULL
#endif
#ifdef AFTER_ALL
static int	AFTER_ALL(void **state);
#else
#define AFTER_ALL NULL
#endif
#ifdef BEFORE_EACH
static int	BEFORE_EACH(void **state);
#else
#define BEFORE_EACH NULL
#endif
#ifdef AFTER_EACH
static int	AFTER_EACH(void **state);
#else
#define AFTER_EACH NULL
#endif

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

/* cmocka passes over what is empty. */
static struct CMUnitTest unit_tests[128];
static size_t unit_test_count;

static inline void
add_test(const char *name, CMUnitTestFunction function)
{
	if (unit_test_count == COUNT_OF(unit_tests))
		abort();
	unit_tests[unit_test_count++] = (struct CMUnitTest) {
		name, function, BEFORE_EACH, AFTER_EACH, NULL
	};
}

#define TEST(name) \
	static void name(void **state); \
	__attribute__((constructor)) static void add_##name(void) \
	{ \
		add_test(#name, name); \
	} \
	static void name(void **state __attribute__((unused)))

int
main(void)
{
	return cmocka_run_group_tests_name(__BASE_FILE__, unit_tests, BEFORE_ALL, AFTER_ALL);
}

#endif							/* DDBLOCK_TEST_UNIT_H */
