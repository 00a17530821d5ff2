/*-------------------------------------------------------------------------
 *
 * test_crc32.c
 *	  The checksum is the same as zlib's, which is DynamoDB's.
 *
 *-------------------------------------------------------------------------
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "dynamo/crc32.h"

static void
assert_crc(const char *text, uint32_t expected)
{
	assert_int_equal(crc32_of(text, strlen(text)), expected);
}

static void
agrees_with_published_values(void **state)
{
	(void) state;
	assert_crc("", 0);
	assert_crc("123456789", 0xcbf43926);
	assert_crc("The quick brown fox jumps over the lazy dog", 0x414fa339);
	/* as DynamoDB sends it with an empty object */
	assert_crc("{}", 2745614147u);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(agrees_with_published_values),
	};

	return cmocka_run_group_tests_name("crc32", tests, NULL, NULL);
}
