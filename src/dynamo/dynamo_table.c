/*-------------------------------------------------------------------------
 *
 * dynamo_table.c
 *	  The table as a whole: requests, and its description.
 *
 *-------------------------------------------------------------------------
 */
#include "dynamo/dynamo_codec.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

const char *
dynamo_key_type(const cJSON *table, const char *key)
{
	const cJSON *definition;

	cJSON_ArrayForEach(definition, dynamo_json_member(table, "AttributeDefinitions"))
	{
		if (dynamo_json_same(dynamo_json_text(definition, "AttributeName"), key))
			return dynamo_json_text(definition, "AttributeType");
	}
	return NULL;
}

bool
dynamo_is_protected(const cJSON *table)
{
	return cJSON_IsTrue(dynamo_json_member(table, "DeletionProtectionEnabled"));
}

static int64_t
units_of(const cJSON *table, const char *which)
{
	const cJSON *units = dynamo_json_member(dynamo_json_member(table, "ProvisionedThroughput"), which);

	return cJSON_IsNumber(units) && units->valuedouble > 0 ? (int64_t) units->valuedouble : 0;
}

bool
dynamo_table_read(dynamo_table_info *info, const cJSON *table)
{
	const cJSON *key;
	const cJSON *replica;
	bool		sort;

	dynamo_json_copy(info->status, sizeof(info->status), dynamo_json_text(table, "TableStatus"));
	cJSON_ArrayForEach(key, dynamo_json_member(table, "KeySchema"))
	{
		const char *name = dynamo_json_text(key, "AttributeName");
		const char *kind = dynamo_json_text(key, "KeyType");

		if (name == NULL || kind == NULL)
			return false;
		sort = strcmp(kind, "RANGE") == 0;
		if (!sort && strcmp(kind, "HASH") != 0)
			continue;
		dynamo_json_copy(sort ? info->sort_key : info->partition_key, sizeof(info->sort_key), name);
		dynamo_json_copy(sort ? info->sort_type : info->partition_type, sizeof(info->sort_type),
						 dynamo_key_type(table, name));
	}
	dynamo_json_copy(info->arn, sizeof(info->arn), dynamo_json_text(table, "TableArn"));
	info->read_units = units_of(table, "ReadCapacityUnits");
	info->write_units = units_of(table, "WriteCapacityUnits");
	info->is_protected = dynamo_is_protected(table);
	info->strong = dynamo_json_same(dynamo_json_text(table, "MultiRegionConsistency"), "STRONG");

	/*
	 * Is it a global table?  DescribeTable lists the replicas of version 2019.11.21,
	 * with or without the Region that replies.  It does not list those of version
	 * 2017.11.29; only DescribeGlobalTable does.
	 */
	info->replicated = dynamo_json_same(dynamo_json_text(table, "GlobalTableVersion"), "2017.11.29");
	cJSON_ArrayForEach(replica, dynamo_json_member(table, "Replicas"))
	{
		const char *region = dynamo_json_text(replica, "RegionName");
		size_t		len = strlen(info->replicas);

		snprintf(info->replicas + len, sizeof(info->replicas) - len, "%s%s",
				 len > 0 ? ", " : "", region != NULL ? region : "?");
		info->replicated = true;
	}
	return info->status[0] != '\0' && info->partition_key[0] != '\0';
}

static char *
about_table(const dynamo_table *table, const char *more)
{
	dynamo_text text;

	dynamo_text_start(&text, '{', BODY_ROOM);
	dynamo_put_table(&text, table->name);
	dynamo_text_raw(&text, "%s", more);
	return dynamo_text_finish(&text);
}

char *
dynamo_build_describe_table(const dynamo_table *table)
{
	return about_table(table, "");
}

char *
dynamo_build_update_ttl(const dynamo_table *table)
{
	return about_table(table, ",\"TimeToLiveSpecification\":"
					   "{\"AttributeName\":\"ttl\",\"Enabled\":true}");
}

/* Puts a member about a key; name NULL: the table has no such key. */
static void
put_key(dynamo_text *text, const char *name, const char *what)
{
	int			depth = text->depth;

	if (name == NULL)
		return;
	dynamo_text_open(text, NULL, '{');
	dynamo_text_name(text, "AttributeName");
	dynamo_text_string(text, name, strlen(name));
	dynamo_text_raw(text, ",%s", what);
	dynamo_text_close(text, depth);
}

char *
dynamo_build_create_table(const dynamo_table *table, const dynamo_creation *how)
{
	dynamo_text text;

	dynamo_text_start(&text, '{', BODY_ROOM);
	dynamo_put_table(&text, table->name);
	dynamo_text_open(&text, "AttributeDefinitions", '[');
	put_key(&text, table->partition_key, "\"AttributeType\":\"S\"");
	put_key(&text, table->sort_key, "\"AttributeType\":\"S\"");
	dynamo_text_close(&text, 1);
	dynamo_text_open(&text, "KeySchema", '[');
	put_key(&text, table->partition_key, "\"KeyType\":\"HASH\"");
	put_key(&text, table->sort_key, "\"KeyType\":\"RANGE\"");
	dynamo_text_close(&text, 1);
	dynamo_put_creation(&text, how);
	return dynamo_text_finish(&text);
}

void
dynamo_put_units(dynamo_text *text, const dynamo_creation *how)
{
	if (how->read_units != 0 || how->write_units != 0)
		dynamo_text_raw(text, ",\"ProvisionedThroughput\":{\"ReadCapacityUnits\":%" PRId64
						",\"WriteCapacityUnits\":%" PRId64 "}", how->read_units, how->write_units);
}

void
dynamo_put_creation(dynamo_text *text, const dynamo_creation *how)
{
	dynamo_text_raw(text, ",\"BillingMode\":\"%s\"",
					how->read_units == 0 && how->write_units == 0 ? "PAY_PER_REQUEST" : "PROVISIONED");
	dynamo_put_units(text, how);
	if (how->protect)
		dynamo_text_raw(text, ",\"DeletionProtectionEnabled\":true");
}
