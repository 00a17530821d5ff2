/*-------------------------------------------------------------------------
 *
 * test_uuid.c
 *	  Version-4 UUIDs have the form of RFC 9562 and keep their random bits.
 *
 *-------------------------------------------------------------------------
 */
#include "../unit.h"
#include "lock/uuid.h"

/* The example of RFC 9562, appendix A.3, from its random bits. */
TEST(gives_the_uuid_of_the_rfc)
{
	static const uint8_t random[16] = {
		0x91, 0x91, 0x08, 0xf7, 0x52, 0xd1, 0x03, 0x20,
		0x1b, 0xac, 0xf8, 0x47, 0xdb, 0x41, 0x48, 0xa8,
	};
	char		uuid[UUID_SIZE];

	uuid_v4(random, uuid);
	assert_string_equal(uuid, "919108f7-52d1-4320-9bac-f847db4148a8");
}

TEST(sets_version_and_variant_whatever_the_bytes)
{
	uint8_t		random[16];
	char		uuid[UUID_SIZE];

	memset(random, 0x00, sizeof(random));
	uuid_v4(random, uuid);
	assert_string_equal(uuid, "00000000-0000-4000-8000-000000000000");
	memset(random, 0xff, sizeof(random));
	uuid_v4(random, uuid);
	assert_string_equal(uuid, "ffffffff-ffff-4fff-bfff-ffffffffffff");
}
