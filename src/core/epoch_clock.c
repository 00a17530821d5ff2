/*-------------------------------------------------------------------------
 *
 * epoch_clock.c
 *	  What time it is in DynamoDB.
 *
 *-------------------------------------------------------------------------
 */
#include "core/epoch_clock.h"

#define SECOND INT64_C(1000000)

int64_t
epoch_offset_agree(int64_t offset, int64_t date_s, int64_t sent,
				   int64_t received)
{
	int64_t		earliest = date_s * SECOND - received;
	int64_t		latest = (date_s + 1) * SECOND - sent;

	if (offset < earliest)
		return earliest;
	return offset > latest ? latest : offset;
}
