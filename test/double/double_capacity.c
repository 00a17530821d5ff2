/*-------------------------------------------------------------------------
 *
 * double_capacity.c
 *	  Capacity units: what a request costs.
 *
 *-------------------------------------------------------------------------
 */
#include <stdio.h>
#include <string.h>

#include "double_private.h"

#define WRITE_UNIT 1024
#define READ_UNIT 4096

static double
units(size_t bytes, size_t unit)
{
	return bytes <= unit ? 1 : (double) ((bytes + unit - 1) / unit);
}

/* The larger of the item before and after, 0 if there was or is none. */
double
double_write_units(size_t before, size_t after)
{
	return units(before > after ? before : after, WRITE_UNIT);
}

double
double_read_units(size_t bytes, bool consistent)
{
	return units(bytes, READ_UNIT) * (consistent ? 1 : 0.5);
}

/* May the item be written to now? */
bool
double_admit(double_call *call, const cJSON *key)
{
	dynamo_double *d = call->d;

	if (d->admit == NULL || d->admit(d->admit_context, double_table_hash(call->table, key)))
		return true;
	return double_fail(call, "ThrottlingException", "%s",
					   double_error_message("ThrottlingException"));
}

/* Adds to the reply what was consumed, if the request asks for it. */
void
double_add_capacity(double_call *call, double consumed)
{
	const cJSON *wanted = cJSON_GetObjectItemCaseSensitive(call->request,
														   "ReturnConsumedCapacity");
	char		text[32];
	cJSON	   *capacity;

	if (!cJSON_IsString(wanted) || strcmp(wanted->valuestring, "NONE") == 0)
		return;
	snprintf(text, sizeof(text), "%.1f", consumed);
	capacity = cJSON_AddObjectToObject(call->reply, "ConsumedCapacity");
	cJSON_AddStringToObject(capacity, "TableName", call->table->name);
	cJSON_AddRawToObject(capacity, "CapacityUnits", text);
	if (strcmp(wanted->valuestring, "TOTAL") != 0)
		cJSON_AddRawToObject(cJSON_AddObjectToObject(capacity, "Table"),
							 "CapacityUnits", text);
}
