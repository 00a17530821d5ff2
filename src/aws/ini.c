/*-------------------------------------------------------------------------
 *
 * ini.c
 *	  Reads the text of an AWS config or credentials file.
 *
 * next_line() classifies one line after the other; each function loops over it.  The files are
 * small and rarely read, so there is no index of sections or properties.
 *
 *-------------------------------------------------------------------------
 */
#include "aws/aws.h"

typedef enum line_kind
{
	LINE_END,					/* no more lines */
	LINE_SECTION,				/* sets the reader's name */
	LINE_PROPERTY,				/* sets name and value */
	LINE_SUBPROPERTY,			/* sets name and value */
	LINE_CONTINUATION,			/* of a property's value; sets value */
	LINE_MALFORMED
} line_kind;

typedef struct reader
{
	ini_slice	rest;			/* the text that is not read yet */
	int			line;			/* the number of the last line read */
	bool		in_section;
	bool		in_property;	/* a line that is indented deeper belongs to a property, */
	bool		nested;			/* ... as a sub-property, because the property's value is empty */
	size_t		indent;			/* of the property's line */
	ini_slice	name;
	ini_slice	value;
} reader;

char
aws_lower(char c)
{
	return c >= 'A' && c <= 'Z' ? (char) (c - 'A' + 'a') : c;
}

bool
aws_is_space(char c)
{
	return c == ' ' || (c >= '\t' && c <= '\r');
}

static bool
is_comment_sign(char c)
{
	return c == '#' || c == ';';
}

static ini_slice
trim(const char *start, const char *end)
{
	while (start < end && aws_is_space(*start))
		start++;
	while (end > start && aws_is_space(end[-1]))
		end--;
	return (ini_slice) {start, end - start};
}

static bool
slice_is(ini_slice slice, const char *text)
{
	return slice.len == strlen(text) &&
		memcmp(slice.start, text, slice.len) == 0;
}

static bool
slice_is_ignoring_case(ini_slice slice, const char *text)
{
	size_t		i;

	for (i = 0; i < slice.len; i++)
		if (text[i] == '\0' ||
			aws_lower(slice.start[i]) != aws_lower(text[i]))
			return false;
	return text[i] == '\0';
}

/* Splits a line into name and value; false if it is not "NAME = VALUE". */
static bool
split(reader *r, ini_slice line)
{
	const char *equals = memchr(line.start, '=', line.len);

	if (equals == NULL)
		return false;
	r->name = trim(line.start, equals);
	r->value = trim(equals + 1, line.start + line.len);
	return r->name.len > 0;
}

static line_kind
read_section(reader *r, ini_slice line)
{
	const char *bracket = memchr(line.start, ']', line.len);
	ini_slice	behind;

	if (bracket == NULL)
		return LINE_MALFORMED;
	behind = trim(bracket + 1, line.start + line.len);
	if (behind.len > 0 && !is_comment_sign(behind.start[0]))
		return LINE_MALFORMED;
	r->name = trim(line.start + 1, bracket);
	r->in_section = true;
	r->in_property = false;
	return LINE_SECTION;
}

static line_kind
read_property(reader *r, ini_slice line, size_t indent)
{
	size_t		i;

	if (!r->in_section)
		return LINE_MALFORMED;
	for (i = 1; i < line.len; i++)
	{
		if (is_comment_sign(line.start[i]) && aws_is_space(line.start[i - 1]))
		{
			line = trim(line.start, line.start + i);
			break;
		}
	}
	if (!split(r, line))
		return LINE_MALFORMED;
	r->in_property = true;
	r->nested = r->value.len == 0;
	r->indent = indent;
	return LINE_PROPERTY;
}

static line_kind
next_line(reader *r)
{
	while (r->rest.len > 0)
	{
		const char *start = r->rest.start;
		const char *newline = memchr(start, '\n', r->rest.len);
		size_t		len = newline != NULL ? (size_t) (newline - start) : r->rest.len;
		ini_slice	line = trim(start, start + len);
		size_t		indent = line.start - start;

		r->rest.start += len + (newline != NULL);
		r->rest.len -= len + (newline != NULL);
		r->line++;
		if (line.len == 0 || is_comment_sign(line.start[0]))
			continue;
		if (memchr(line.start, '\0', line.len) != NULL)
			return LINE_MALFORMED;
		if (r->in_property && indent > r->indent)
		{
			if (r->nested)
				return split(r, line) ? LINE_SUBPROPERTY : LINE_MALFORMED;
			r->value = line;
			return LINE_CONTINUATION;
		}
		if (line.start[0] == '[')
			return read_section(r, line);
		return read_property(r, line, indent);
	}
	return LINE_END;
}

int
ini_malformed_line(ini_slice text)
{
	reader		r = {.rest = text};
	line_kind	kind;

	while ((kind = next_line(&r)) != LINE_END)
		if (kind == LINE_MALFORMED)
			return r.line;
	return 0;
}

static bool
section_is(ini_slice header, const char *kind, const char *section)
{
	size_t		kind_len;
	ini_slice	name;

	if (kind == NULL)
		return slice_is(header, section);
	kind_len = strlen(kind);
	if (header.len <= kind_len ||
		memcmp(header.start, kind, kind_len) != 0 ||
		!aws_is_space(header.start[kind_len]))
		return false;
	name = trim(header.start + kind_len, header.start + header.len);
	if (name.len >= 2 && name.start[0] == name.start[name.len - 1] &&
		(name.start[0] == '"' || name.start[0] == '\''))
	{
		name.start++;
		name.len -= 2;
	}
	return slice_is(name, section);
}

bool
ini_has_section(ini_slice text, const char *kind, const char *section)
{
	reader		r = {.rest = text};
	line_kind	line;

	while ((line = next_line(&r)) != LINE_END)
		if (line == LINE_SECTION && section_is(r.name, kind, section))
			return true;
	return false;
}

/* Appends to the *used bytes in out.  Leaves room for the final NUL. */
static ini_result
append(ini_slice value, char *out, size_t size, size_t *used)
{
	if (value.len >= size - *used)
		return INI_TOO_LONG;
	memcpy(out + *used, value.start, value.len);
	*used += value.len;
	return INI_FOUND;
}

ini_result
ini_get(ini_slice text, const char *kind, const char *section,
		const char *property, const char *subproperty,
		char *out, size_t size)
{
	const ini_slice newline = {"\n", 1};
	reader		r = {.rest = text};
	line_kind	line;
	ini_result	result = INI_ABSENT;
	bool		in_section = false;
	bool		in_property = false;
	size_t		used = 0;

	while ((line = next_line(&r)) != LINE_END)
	{
		if (line == LINE_SECTION)
		{
			in_section = section_is(r.name, kind, section);
			in_property = false;
		}
		else if (line == LINE_PROPERTY)
		{
			in_property = in_section &&
				slice_is_ignoring_case(r.name, property);
			if (!in_property)
				continue;
			used = 0;
			result = subproperty == NULL ?
				append(r.value, out, size, &used) : INI_ABSENT;
		}
		else if (line == LINE_SUBPROPERTY && in_property &&
				 subproperty != NULL &&
				 slice_is_ignoring_case(r.name, subproperty))
		{
			used = 0;
			result = append(r.value, out, size, &used);
		}
		else if (line == LINE_CONTINUATION && in_property &&
				 subproperty == NULL && result == INI_FOUND)
		{
			result = append(newline, out, size, &used);
			if (result == INI_FOUND)
				result = append(r.value, out, size, &used);
		}
	}
	out[result == INI_FOUND ? used : 0] = '\0';
	return result;
}
