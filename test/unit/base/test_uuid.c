/*-------------------------------------------------------------------------
 *
 * test_uuid.c
 *	  UUIDs have the form of RFC 9562 and keep their random bits; those of version 8 tell
 *	  their time.
 *
 *-------------------------------------------------------------------------
 */
#include "../unit.h"
#include "base/uuid.h"

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

TEST(a_time_replaces_the_first_bits)
{
	char		uuid[UUID_SIZE] = "919108f7-52d1-4320-9bac-f847db4148a8";
	int64_t		ms = 0;

	assert_false(uuid_get_time(uuid, &ms));
	uuid_put_time(uuid, INT64_C(0x0123456789ab));
	assert_string_equal(uuid, "01234567-89ab-8ddb-9bac-f847db4148a8");
	assert_true(uuid_get_time(uuid, &ms));
	assert_int_equal(ms, INT64_C(0x0123456789ab));
}

TEST(a_time_that_does_not_fit_becomes_the_nearest)
{
	char		uuid[UUID_SIZE] = "919108f7-52d1-4320-9bac-f847db4148a8";

	uuid_put_time(uuid, -1);
	assert_string_equal(uuid, "00000000-0000-8ddb-9bac-f847db4148a8");
	uuid_put_time(uuid, INT64_MAX);
	assert_string_equal(uuid, "ffffffff-ffff-8ddb-9bac-f847db4148a8");
}

/* Each character of the form matters, and the end. */
TEST(other_texts_have_no_time)
{
	static const char good[] = "01234567-89ab-8ddb-9bac-f847db4148a8";
	char		text[UUID_SIZE + 1];
	int64_t		ms;

	for (size_t i = 0; i < sizeof(good); i++)
	{
		memcpy(text, good, sizeof(good));
		text[i] = 'G';
		text[sizeof(good)] = '\0';
		assert_false(uuid_get_time(text, &ms));
		text[i] = '\0';
		if (i < sizeof(good) - 1)
			assert_false(uuid_get_time(text, &ms));
	}
}
