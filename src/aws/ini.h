/*-------------------------------------------------------------------------
 *
 * ini.h
 *	  Reads the text of an AWS config or credentials file.
 *
 * Works on the caller's bytes, allocates nothing, keeps no copy.
 *
 * The format, after the AWS SDKs and Tools Reference Guide, "Shared config and
 * credentials files", and what the SDKs and the AWS CLI agree on:
 *
 *	[section]					# a comment, also right behind the bracket
 *	name = value				# a comment only after white space
 *	nested =
 *	  sub-property = value		(a comment would be part of the value)
 *	long = begin
 *	  end						(the value is "begin\nend"; no comment here)
 *
 * A line indented deeper than the property above it belongs to that property;
 * so a file indented as a whole is read, as the AWS CLI does.  Lines that are
 * blank or start with # or ; are skipped.  Names of properties ignore case,
 * names of sections do not.  Sections that occur twice are merged, and the
 * last definition of a property counts.
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
	INI_TOO_LONG				/* is there, but does not fit */
} ini_result;

/*
 * Number of the first line, counted from 1, that the format does not allow; 0
 * if there is none.  The other functions skip such lines, so ask this first.
 */
extern int	ini_malformed_line(ini_slice text);

/*
 * A section is named by a kind ("profile" for "[profile NAME]", where NAME may
 * stand in quotes) and its name, or by its name alone if kind is NULL
 * ("[NAME]").
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
