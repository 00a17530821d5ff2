/*-------------------------------------------------------------------------
 *
 * double_number.c
 *	  DynamoDB's numbers.
 *
 *-------------------------------------------------------------------------
 */
#include "double_number.h"

#include <ctype.h>
#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define EXPONENT_MAX 126		/* of 0.9E+126 = 9E+125 */
#define EXPONENT_MIN (-129)		/* of 0.1E-129 = 1E-130 */

/* Room for the digits of any two numbers side by side, and a carry. */
#define COLUMNS (EXPONENT_MAX - EXPONENT_MIN + DOUBLE_DIGITS_MAX + 2)

/*
 * Sets the number from digits of any count, the first of which stands right
 * of the point before scaling.
 */
static const char *
set_digits(double_number *number, int sign, const char *digits, long count, long exponent)
{
	while (count > 0 && digits[0] == 0)
	{
		digits++;
		count--;
		exponent--;
	}
	while (count > 0 && digits[count - 1] == 0)
		count--;
	memset(number, 0, sizeof(*number));
	if (count == 0)
		return NULL;
	if (exponent > EXPONENT_MAX)
		return "Number overflow. Attempting to store a number with magnitude larger"
			" than supported range";
	if (exponent < EXPONENT_MIN)
		return "Number underflow. Attempting to store a number with magnitude smaller"
			" than supported range";
	if (count > DOUBLE_DIGITS_MAX)
		return "DynamoDB only supports precision up to 38 digits";
	number->sign = sign;
	number->exponent = (int) exponent;
	number->count = (int) count;
	memcpy(number->digits, digits, (size_t) count);
	return NULL;
}

/* [+-]digits[.digits][e[+-]digits], at least one digit before the e */
const char *
double_number_parse(double_number *number, const char *text)
{
	static const char *const wrong = "A value provided cannot be converted into a number";
	char		digits[512];
	long		count = 0;
	long		point = -1;
	long		scale = 0;
	int			sign = *text == '-' ? -1 : 1;

	if (*text == '-' || *text == '+')
		text++;
	for (; isdigit((unsigned char) *text) || (*text == '.' && point < 0); text++)
	{
		if (*text == '.')
			point = count;
		else if (count < (long) sizeof(digits))
			digits[count++] = (char) (*text - '0');
		else
			return wrong;
	}
	if (count == 0)
		return wrong;
	if (*text == 'e' || *text == 'E')
	{
		char	   *end;

		text++;
		if (!isdigit((unsigned char) text[*text == '-' || *text == '+']))
			return wrong;
		scale = strtol(text, &end, 10);
		if (scale > INT_MAX / 2 || scale < INT_MIN / 2)
			scale = scale > 0 ? INT_MAX / 2 : INT_MIN / 2;
		text = end;
	}
	if (*text != '\0')
		return wrong;
	return set_digits(number, sign, digits, count, (point < 0 ? count : point) + scale);
}

/* Compares the absolute values. */
static int
compare_magnitude(const double_number *a, const double_number *b)
{
	int			common = a->count < b->count ? a->count : b->count;
	int			order;

	if (a->sign == 0 || b->sign == 0)
		return abs(a->sign) - abs(b->sign);
	if (a->exponent != b->exponent)
		return a->exponent < b->exponent ? -1 : 1;
	order = memcmp(a->digits, b->digits, (size_t) common);
	return order != 0 ? order : a->count - b->count;
}

int
double_number_compare(const double_number *a, const double_number *b)
{
	if (a->sign != b->sign)
		return a->sign - b->sign;
	return a->sign >= 0 ? compare_magnitude(a, b) : compare_magnitude(b, a);
}

/* Adds factor (1 or -1) times the digits into columns; column 1 is EXPONENT_MAX's. */
static void
add_columns(int columns[COLUMNS], const double_number *number, int factor)
{
	for (int i = 0; i < number->count; i++)
		columns[1 + EXPONENT_MAX - number->exponent + i] += factor * number->digits[i];
}

const char *
double_number_add(double_number *sum, const double_number *a, const double_number *b)
{
	const double_number *large = compare_magnitude(a, b) >= 0 ? a : b;
	const double_number *small = large == a ? b : a;
	int			columns[COLUMNS] = {0};
	char		digits[COLUMNS];
	int			carry = 0;
	int			sign = large->sign;

	add_columns(columns, large, 1);
	add_columns(columns, small, large->sign == small->sign ? 1 : -1);
	for (int i = COLUMNS - 1; i >= 0; i--)
	{
		int			value = columns[i] + carry;

		carry = value < 0 ? -1 : value / 10;
		digits[i] = (char) (value - carry * 10);
	}
	return set_digits(sum, sign, digits, COLUMNS, EXPONENT_MAX + 1);
}

void
double_number_format(const double_number *number, char text[DOUBLE_NUMBER_TEXT])
{
	char	   *to = text;
	int			i = 0;

	if (number->sign < 0)
		*to++ = '-';
	if (number->exponent <= 0)
		*to++ = '0';
	for (; i < number->exponent; i++)
		*to++ = (char) ('0' + (i < number->count ? number->digits[i] : 0));
	if (number->count > i)
	{
		*to++ = '.';
		for (int zero = number->exponent; zero < 0; zero++)
			*to++ = '0';
		for (; i < number->count; i++)
			*to++ = (char) ('0' + number->digits[i]);
	}
	*to = '\0';
}
