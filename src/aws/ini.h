/*-------------------------------------------------------------------------
 *
 * ini.h
 *	  Reads the text of an AWS config or credentials file.
 *
 * Works on the caller's bytes; allocates nothing.
 *
 * The format, after the AWS SDKs and Tools Reference Guide, "Shared config and
 * credentials files", and what the SDKs and the AWS CLI agree on:
 *
 *	[section]					# a comment, also directly after the bracket
 *	name = value				# a comment only after white space
 *	nested =
 *	  sub-property = value		(a comment would be part of the value)
 *	long = begin
 *	  end						(the value is "begin\nend"; no comment here)
 *
 * A line indented deeper than the property above it belongs to that property, so
 * a file may be indented as a whole, as in the AWS CLI.  Blank lines and lines
 * that start with # or ; are skipped.  Names of properties ignore case, names of
 * sections do not.  Sections that occur twice are merged; the last definition of
 * a property wins.
 *
 *-------------------------------------------------------------------------
 */
#ifndef DDBLOCK_AWS_INI_H
#define DDBLOCK_AWS_INI_H

#include <stdbool.h>
#include <stddef.h>

typedef struct ini_slice
{
	const char *start;
	size_t		len;
} ini_slice;

typedef enum ini_result
{
	INI_FOUND,
	INI_ABSENT,
	INI_TOO_LONG				/* found, but does not fit */
} ini_result;

/*
 * Number of the first invalid line, from 1; 0 if there is none.  The other
 * functions skip invalid lines, so check this first.
 */
extern int	ini_malformed_line(ini_slice text);

/*
 * Looks for "[KIND NAME]", where NAME may be quoted, or for "[NAME]" if kind is
 * NULL.
 */
extern bool ini_has_section(ini_slice text, const char *kind,
							const char *section);

/*
 * Writes a property's value, or that of one of its sub-properties if
 * subproperty is not NULL.  A property that has sub-properties has the value
 * "".  Unless the result is INI_FOUND, out is the empty string.
 */
extern ini_result ini_get(ini_slice text, const char *kind,
						  const char *section, const char *property,
						  const char *subproperty, char *out, size_t size);

#endif							/* DDBLOCK_AWS_INI_H */
