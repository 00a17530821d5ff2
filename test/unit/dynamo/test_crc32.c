/*-------------------------------------------------------------------------
 *
 * test_crc32.c
 *	  The checksum is the same as zlib's, which is DynamoDB's.
 *
 *-------------------------------------------------------------------------
 */
#include "../unit.h"
#include "dynamo/dynamo.h"

static void
assert_crc(const char *text, uint32_t expected)
{
	assert_int_equal(crc32_of(text, strlen(text)), expected);
}

TEST(agrees_with_published_values)
{
	assert_crc("", 0);
	assert_crc("123456789", 0xcbf43926);
	assert_crc("The quick brown fox jumps over the lazy dog", 0x414fa339);
	/* as DynamoDB sends it with an empty object */
	assert_crc("{}", 2745614147u);
}
