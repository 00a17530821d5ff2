/*-------------------------------------------------------------------------
 *
 * double_number.h
 *	  DynamoDB's numbers: decimal, 38 digits, 1E-130 to 9.9E+125.
 *
 *-------------------------------------------------------------------------
 */
#ifndef DOUBLE_NUMBER_H
#define DOUBLE_NUMBER_H

#include <stddef.h>

#define DOUBLE_DIGITS_MAX 38
#define DOUBLE_NUMBER_TEXT 176	/* the longest in plain notation, and its NUL */

/* sign * 0.DIGITS * 10^exponent, no zero at either end of the digits */
typedef struct double_number
{
	int			sign;			/* -1, 0, 1; with 0 the rest is 0 */
	int			exponent;
	int			count;
	char		digits[DOUBLE_DIGITS_MAX];	/* 0 .. 9 */
} double_number;

/* Both return NULL or DynamoDB's complaint; the latter also of the result. */
extern const char *double_number_parse(double_number *number, const char *text);
extern const char *double_number_add(double_number *sum, const double_number *a,
									 const double_number *b);

extern int	double_number_compare(const double_number *a, const double_number *b);

/* The only spelling of a number that DynamoDB ever returns. */
extern void double_number_format(const double_number *number,
								 char text[DOUBLE_NUMBER_TEXT]);

#endif							/* DOUBLE_NUMBER_H */
