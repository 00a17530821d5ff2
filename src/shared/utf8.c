/*-------------------------------------------------------------------------
 *
 * utf8.c
 *	  Text between the database's encoding and UTF-8.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "catalog/namespace.h"
#include "common/string.h"
#include "lib/stringinfo.h"
#include "mb/pg_wchar.h"

#include "shared/shared.h"

/* Bytes of the longest character in any encoding, after any conversion. */
#define CHARACTER_MAX (MAX_MULTIBYTE_CHAR_LEN * MAX_CONVERSION_GROWTH)

/* A report quotes so many bytes of a text that cannot be converted. */
#define QUOTE_MAX 200

char *
Utf8FromServer(const char *text)
{
	char	   *utf8 = pg_server_to_any(text, strlen(text), PG_UTF8);

	return utf8 == text ? pstrdup(text) : utf8;
}

static int
bytes_mean(void)
{
	return GetDatabaseEncoding() == PG_SQL_ASCII ? PG_UTF8 : GetDatabaseEncoding();
}

bool
Utf8IsWhole(void)
{
	return bytes_mean() == PG_UTF8;
}

char *
Utf8ToServer(const char *utf8)
{
	int			to = bytes_mean();
	int			len = strlen(utf8);
	Oid			proc;
	unsigned char *text;
	int			room;

	if (!pg_verify_mbstr(PG_UTF8, utf8, len, true))
		return NULL;
	if (to == PG_UTF8 || pg_is_ascii(utf8))
		return pstrdup(utf8);
	proc = FindDefaultConversionProc(PG_UTF8, to);
	if (!OidIsValid(proc))
		return NULL;
	room = len * MAX_CONVERSION_GROWTH + 1;
	text = palloc(room);
	if (pg_do_encoding_conversion_buf(proc, PG_UTF8, to, (unsigned char *) utf8, len, text,
									  room, true) == len)
		return (char *) text;
	pfree(text);
	return NULL;
}

/*
 * Spells the text in ASCII: other characters as \65E5 or \+01F600, as in SQL's U&'...', and bytes
 * that are no characters as \xNN.
 */
static char *
spell(const char *utf8)
{
	StringInfoData out;
	int			len = strlen(utf8);

	initStringInfo(&out);
	while (len > 0 && out.len < QUOTE_MAX)
	{
		int			n = pg_encoding_verifymbchar(PG_UTF8, utf8, len);
		unsigned	point = n > 0 ? (unsigned) utf8_to_unicode((const unsigned char *) utf8) : 0;

		if (n <= 0)
			appendStringInfo(&out, "\\x%02X", (unsigned char) *utf8);
		else if (point < 0x20 || (point >= 0x7f && point <= 0xffff))
			appendStringInfo(&out, "\\%04X", point);
		else if (point > 0xffff)
			appendStringInfo(&out, "\\+%06X", point);
		else if (point == '\\')
			appendStringInfoString(&out, "\\\\");
		else
			appendStringInfoChar(&out, *utf8);
		utf8 += Max(n, 1);
		len -= Max(n, 1);
	}
	if (len > 0)
		appendStringInfoString(&out, "...");
	return out.data;
}

char *
Utf8ToServerOr(int elevel, const char *what, const char *utf8)
{
	char	   *text = Utf8ToServer(utf8);
	bool		is_utf8;

	if (text != NULL)
		return text;
	is_utf8 = pg_verify_mbstr(PG_UTF8, utf8, strlen(utf8), true);
	ereport(elevel,
			(errcode(is_utf8 ? ERRCODE_UNTRANSLATABLE_CHARACTER :
					 ERRCODE_CHARACTER_NOT_IN_REPERTOIRE),
			 is_utf8 ?
			 errmsg("the %s cannot be converted to encoding \"%s\"", what,
					GetDatabaseEncodingName()) :
			 errmsg("the %s is not UTF-8", what),
			 errdetail("It is \"%s\".", spell(utf8)),
			 is_utf8 ? errhint("Use a database whose encoding is UTF8.") : 0));
	return NULL;
}

/*
 * Converts character by character, so that a bad character becomes a question mark, and the others
 * are kept.  Each character is verified first, because names of databases and roles may be in any
 * encoding, and what other clients wrote to DynamoDB may be anything.
 */
static char *
convert_readable(const char *text, int from, int to)
{
	StringInfoData out;
	int			len = strlen(text);
	Oid			proc = InvalidOid;

	if (from != to)
		proc = FindDefaultConversionProc(from, to);

	initStringInfo(&out);
	while (len > 0)
	{
		unsigned char converted[CHARACTER_MAX + 1];
		int			n = pg_encoding_verifymbchar(from, text, len);

		if (n <= 0)
		{
			appendStringInfoChar(&out, '?');
			n = 1;
		}
		else if (from == to || !IS_HIGHBIT_SET(*text))
			appendBinaryStringInfo(&out, text, n);
		else if (OidIsValid(proc) &&
				 pg_do_encoding_conversion_buf(proc, from, to, (unsigned char *) text,
											   n, converted, sizeof(converted), true) == n)
			appendStringInfoString(&out, (char *) converted);
		else
			appendStringInfoChar(&out, '?');
		text += n;
		len -= n;
	}
	return out.data;
}

char *
Utf8ToReader(const char *utf8)
{
	return convert_readable(utf8, PG_UTF8, bytes_mean());
}

/*
 * How many bytes does the control character at the start of the text have?  0: there is none.
 * Control characters are those of ASCII, C1 (U+0080 to U+009F), and those of Unicode for direction
 * (U+061C, U+200E, U+200F, U+202A to U+202E, U+2066 to U+2069) and lines (U+2028, U+2029).
 */
static int
steering_length(const unsigned char *text)
{
	if (text[0] < 0x20 || text[0] == 0x7f)
		return 1;
	if ((text[0] == 0xc2 && text[1] >= 0x80 && text[1] <= 0x9f) ||
		(text[0] == 0xd8 && text[1] == 0x9c))
		return 2;
	if (text[0] != 0xe2)
		return 0;
	if (text[1] == 0x80 && (text[2] == 0x8e || text[2] == 0x8f ||
							(text[2] >= 0xa8 && text[2] <= 0xae)))
		return 3;
	return text[1] == 0x81 && text[2] >= 0xa6 && text[2] <= 0xa9 ? 3 : 0;
}

char *
Utf8Quiet(const char *text)
{
	StringInfoData out;

	initStringInfo(&out);
	while (*text != '\0')
	{
		int			steering = steering_length((const unsigned char *) text);

		for (int i = 0; i < steering; i++)
			appendStringInfo(&out, "\\x%02X", (unsigned char) text[i]);
		if (steering == 0)
			appendStringInfoChar(&out, *text);
		text += Max(steering, 1);
	}
	return out.data;
}

char *
Utf8ToMessage(const char *utf8)
{
	return Utf8ToReader(Utf8Quiet(utf8));
}

const char *
Utf8Owner(const char *text)
{
	return text[0] == '\0' ? "an owner without a name" : psprintf("owner \"%s\"", text);
}

void
Utf8Copy(char *dest, size_t size, const char *text)
{
	char	   *utf8 = convert_readable(text != NULL ? text : "", bytes_mean(), PG_UTF8);
	int			len = strlen(utf8);

	if (len >= size)
		len = pg_encoding_mbcliplen(PG_UTF8, utf8, len, size - 1);
	memcpy(dest, utf8, len);
	dest[len] = '\0';
	pfree(utf8);
}
