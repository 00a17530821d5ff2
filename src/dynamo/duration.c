/*-------------------------------------------------------------------------
 *
 * duration.c
 *	  Reads the leaseDuration strings that lock clients write.
 *
 * Two grammars: plain decimal milliseconds, and what Go's
 * time.ParseDuration() takes (https://pkg.go.dev/time#ParseDuration), but
 * without a sign.  Sums are kept in nanoseconds and saturate at 2^63-1 of them,
 * 292 years.
 *
 *-------------------------------------------------------------------------
 */
#include "dynamo/dynamo.h"

#include <string.h>

#define NS_PER_MS		INT64_C(1000000)

static const struct
{
	const char *name;
	int64_t		ns;
}			units[] = {
	{"ns", 1},
	{"us", 1000},
	{"\xc2\xb5s", 1000},		/* U+00B5, micro sign */
	{"\xce\xbcs", 1000},		/* U+03BC, Greek mu */
	{"ms", NS_PER_MS},
	{"s", 1000 * NS_PER_MS},
	{"m", 60 * 1000 * NS_PER_MS},
	{"h", 3600 * 1000 * NS_PER_MS},
};

static bool
is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* Reads digits, possibly none; larger numbers become max. */
static int64_t
read_digits(const char **at, const char *end, int64_t max)
{
	int64_t		value = 0;

	for (; *at < end && is_digit(**at); (*at)++)
	{
		int64_t		digit = **at - '0';

		value = value > (max - digit) / 10 ? max : value * 10 + digit;
	}
	return value;
}

/* a * b + c, or the highest value. */
static int64_t
saturated(int64_t a, int64_t b, int64_t c)
{
	return a > (INT64_MAX - c) / b ? INT64_MAX : a * b + c;
}

/* A unit's nanoseconds, 0 if there is none.  Its name ends before a digit or point, as in Go. */
static int64_t
read_unit(const char **at, const char *end)
{
	const char *from = *at;
	size_t		len;

	while (*at < end && !is_digit(**at) && **at != '.')
		(*at)++;
	len = (size_t) (*at - from);

	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++)
	{
		if (strlen(units[i].name) == len && memcmp(units[i].name, from, len) == 0)
			return units[i].ns;
	}
	return 0;
}

/* The digits between the point and the unit, which ends them, rounded up to nanoseconds. */
static int64_t
fraction_ns(const char *digits, int64_t unit_ns)
{
	int64_t		sum = 0;
	int64_t		weight = unit_ns;
	bool		inexact = false;

	for (; is_digit(*digits); digits++)
	{
		int64_t		product = (*digits - '0') * weight;

		sum += product / 10;
		inexact |= product % 10 != 0 || (weight == 0 && *digits != '0');
		weight /= 10;
	}
	return sum + (inexact ? 1 : 0);
}

bool
duration_parse(const char *text, size_t len, int64_t *milliseconds)
{
	const char *at = text;
	const char *end = text + len;
	int64_t		total_ns = 0;
	int64_t		plain;

	if (len == 0)
		return false;
	plain = read_digits(&at, end, DURATION_MAX_MS);
	if (at == end)
	{
		*milliseconds = plain;
		return true;
	}

	/* Go's: one "1.5h" after the other */
	at = text;
	while (at < end)
	{
		const char *from = at;
		int64_t		whole = read_digits(&at, end, INT64_MAX);
		const char *fraction = at;
		int64_t		unit_ns;

		if (at < end && *at == '.')
		{
			fraction = ++at;
			while (at < end && is_digit(*at))
				at++;
			if (fraction == at && fraction == from + 1)
				return false;	/* a lone point */
		}
		else if (at == from)
			return false;		/* no digit at all */

		unit_ns = read_unit(&at, end);
		if (unit_ns == 0)
			return false;
		total_ns = saturated(whole, unit_ns, total_ns);
		total_ns = saturated(fraction_ns(fraction, unit_ns), 1, total_ns);
	}
	plain = total_ns / NS_PER_MS + (total_ns % NS_PER_MS != 0 ? 1 : 0);
	*milliseconds = plain < DURATION_MAX_MS ? plain : DURATION_MAX_MS;
	return true;
}
