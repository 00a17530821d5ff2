/*-------------------------------------------------------------------------
 *
 * fuzz_duration.c
 *	  Any bytes as a leaseDuration: no crash, and results within bounds.
 *
 *-------------------------------------------------------------------------
 */
#include <stdint.h>
#include <stdlib.h>

#include "dynamo/dynamo.h"

int			LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

int
LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	int64_t		milliseconds = -1;
	bool		understood = duration_parse((const char *) bytes, size, &milliseconds);

	if (understood && (milliseconds < 0 || milliseconds > INT64_MAX / 1000000))
		abort();
	if (!understood && milliseconds != -1)
		abort();
	return 0;
}
