/*-------------------------------------------------------------------------
 *
 * attributes.c
 *	  Additional attributes of a lock, between jsonb and DynamoDB's JSON.
 *
 * DynamoDB's JSON names the type of each value.  A string becomes {"S": ...}, a number {"N": ...},
 * true and false {"BOOL": ...}, null {"NULL": true}, an array {"L": [...]}, an object {"M": {...}}.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "lib/stringinfo.h"
#include "utils/builtins.h"
#include "utils/fmgrprotos.h"
#include "utils/json.h"
#include "utils/jsonb.h"

#include "sql/sql.h"

#define COUNT_MAX 32			/* attributes */
#define NAME_BYTES_MAX 255
#define DEPTH_MAX 16			/* levels of arrays and objects */

/* The limits of DynamoDB's numbers. */
#define DIGITS_MAX 38
#define EXPONENT_MIN (-130)
#define EXPONENT_MAX 125

/* Raises for a number that DynamoDB cannot keep exactly, and would refuse. */
static void
put_number(StringInfo out, const JsonbValue *value)
{
	char	   *text = DatumGetCString(DirectFunctionCall1(numeric_out,
														   NumericGetDatum(value->val.numeric)));
	const char *point = strchr(text, '.');
	const char *first = text + strcspn(text, "123456789");
	const char *last = first;
	int64		exponent;

	for (const char *p = first; *p != '\0'; p++)
	{
		if (*p >= '1' && *p <= '9')
			last = p;
	}
	if (point == NULL)
		point = text + strlen(text);
	exponent = first < point ? point - first - 1 : point - first;
	if (*first != '\0' &&
		(last - first + 1 - (first < point && point < last) > DIGITS_MAX ||
		 exponent < EXPONENT_MIN || exponent > EXPONENT_MAX))
		ErrorsArgument(errmsg("argument \"%s\" has a number that DynamoDB cannot keep",
							  "attributes"),
					   errdetail("DynamoDB keeps %d digits, and exponents from %d to %d.",
								 DIGITS_MAX, EXPONENT_MIN, EXPONENT_MAX));
	appendStringInfo(out, "{\"N\":\"%s\"}", text);
}

static void
put_scalar(StringInfo out, const JsonbValue *value)
{
	switch (value->type)
	{
		case jbvString:
			appendStringInfoString(out, "{\"S\":");
			escape_json(out, Utf8FromServer(pnstrdup(value->val.string.val,
													 value->val.string.len)));
			appendStringInfoChar(out, '}');
			break;
		case jbvNumeric:
			put_number(out, value);
			break;
		case jbvBool:
			appendStringInfo(out, "{\"BOOL\":%s}", value->val.boolean ? "true" : "false");
			break;
		case jbvNull:
			appendStringInfoString(out, "{\"NULL\":true}");
			break;
		default:
			elog(ERROR, "unexpected type of a jsonb value: %d", (int) value->type);
	}
}

/* depth 1: the name is that of an attribute; else that of a member of an object in one. */
static void
put_name(StringInfo out, const JsonbValue *name, int depth)
{
	const char *text = pnstrdup(name->val.string.val, name->val.string.len);
	const char *utf8 = Utf8FromServer(text);

	if (utf8[0] == '\0' || strlen(utf8) > NAME_BYTES_MAX)
		ErrorsArgument(errmsg("names in argument \"%s\" must have 1 to %d bytes in UTF-8",
							  "attributes", NAME_BYTES_MAX));
	if (depth == 1 &&
		(dynamo_is_attribute(utf8) || strcmp(utf8, ddblock_partition_key) == 0 ||
		 strcmp(utf8, ddblock_sort_key) == 0))
		ErrorsArgument(errmsg("argument \"%s\" must not contain \"%s\"",
							  "attributes", Utf8Quiet(text)),
					   errdetail("The lock's item has an attribute of this name already."));
	escape_json(out, utf8);
	appendStringInfoChar(out, ':');
}

static void
put_attributes(StringInfo out, Jsonb *attributes)
{
	JsonbIterator *it = JsonbIteratorInit(&attributes->root);
	JsonbValue	value;
	JsonbIteratorToken token;
	int			depth = 1;

	/* The outermost object is the list of attributes: it has no type. */
	(void) JsonbIteratorNext(&it, &value, false);
	appendStringInfoChar(out, '{');
	while ((token = JsonbIteratorNext(&it, &value, false)) != WJB_DONE)
	{
		if (token == WJB_END_OBJECT || token == WJB_END_ARRAY)
		{
			appendStringInfoChar(out, token == WJB_END_OBJECT ? '}' : ']');
			if (--depth > 0)
				appendStringInfoChar(out, '}');
			continue;
		}
		/* A comma precedes each element and name, except the first; it never precedes a value. */
		if (strchr("{[:", out->data[out->len - 1]) == NULL)
			appendStringInfoChar(out, ',');
		if (token == WJB_KEY)
			put_name(out, &value, depth);
		else if (token == WJB_VALUE || token == WJB_ELEM)
			put_scalar(out, &value);
		else
		{
			if (++depth > DEPTH_MAX)
				ErrorsArgument(errmsg("argument \"%s\" must not have more than %d levels",
									  "attributes", DEPTH_MAX));
			appendStringInfoString(out, token == WJB_BEGIN_OBJECT ? "{\"M\":{" : "{\"L\":[");
		}
	}
}

const char *
ArgumentAttributes(FunctionCallInfo fcinfo, int number, size_t data_len)
{
	StringInfoData out;
	Jsonb	   *attributes;

	if (PG_ARGISNULL(number))
		return NULL;
	attributes = PG_GETARG_JSONB_P(number);
	if (!JB_ROOT_IS_OBJECT(attributes))
		ErrorsArgument(errmsg("argument \"%s\" must be a JSON object", "attributes"));
	if (JB_ROOT_COUNT(attributes) == 0)
		return NULL;
	if (JB_ROOT_COUNT(attributes) > COUNT_MAX)
		ErrorsArgument(errmsg("argument \"%s\" must not have more than %d members",
							  "attributes", COUNT_MAX),
					   errdetail("It has %d.", (int) JB_ROOT_COUNT(attributes)));

	initStringInfo(&out);
	put_attributes(&out, attributes);
	if (out.len + data_len > DYNAMO_DATA_MAX)
		ErrorsArgument(errmsg("arguments \"%s\" and \"%s\" must not be longer than %d bytes "
							  "together", "data", "attributes", DYNAMO_DATA_MAX),
					   errdetail("The data has %zu bytes, the attributes have %d as DynamoDB's "
								 "JSON.", data_len, out.len));
	return out.data;
}

Datum
AttributesShow(const char *json, size_t len, bool *isnull)
{
	const char *keys[] = {ddblock_partition_key, ddblock_sort_key};
	char	   *text = Utf8ToServerOr(ERROR, "attributes of the lock", pnstrdup(json, len));
	Datum		shown = DirectFunctionCall1(jsonb_in, CStringGetDatum(text));

	for (int i = 0; i < lengthof(keys); i++)
		shown = DirectFunctionCall2(jsonb_delete, shown, CStringGetTextDatum(keys[i]));
	*isnull = JB_ROOT_COUNT(DatumGetJsonbP(shown)) == 0;
	return shown;
}
