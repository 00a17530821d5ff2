/*-------------------------------------------------------------------------
 *
 * dynamo_table.c
 *	  Reads the description of a table.
 *
 *-------------------------------------------------------------------------
 */
#include "dynamo/dynamo_codec.h"

#include <stdio.h>
#include <string.h>

static void
copy_text(char *to, size_t size, const char *from)
{
	dynamo_json_copy(to, size, from != NULL ? from : "");
}

/* The type of a key, from the list of attribute definitions. */
static const char *
key_type(const cJSON *table, const char *key)
{
	const cJSON *definition;

	cJSON_ArrayForEach(definition, dynamo_json_member(table, "AttributeDefinitions"))
	{
		const char *name = dynamo_json_text(definition, "AttributeName");

		if (name != NULL && strcmp(name, key) == 0)
			return dynamo_json_text(definition, "AttributeType");
	}
	return NULL;
}

/*
 * Is it a global table?  DescribeTable lists the replicas of version 2019.11.21,
 * with or without the Region that replies.  It does not list those of version
 * 2017.11.29; only DescribeGlobalTable does.
 */
static void
read_replicas(dynamo_table_info *info, const cJSON *table)
{
	const char *consistency = dynamo_json_text(table, "MultiRegionConsistency");
	const char *version = dynamo_json_text(table, "GlobalTableVersion");
	const cJSON *replica;

	info->strong = consistency != NULL && strcmp(consistency, "STRONG") == 0;
	info->replicated = version != NULL && strcmp(version, "2017.11.29") == 0;
	cJSON_ArrayForEach(replica, dynamo_json_member(table, "Replicas"))
	{
		const char *region = dynamo_json_text(replica, "RegionName");
		size_t		len = strlen(info->replicas);

		snprintf(info->replicas + len, sizeof(info->replicas) - len, "%s%s",
				 len > 0 ? ", " : "", region != NULL ? region : "?");
		info->replicated = true;
	}
}

bool
dynamo_table_read(dynamo_table_info *info, const cJSON *table)
{
	const cJSON *key;

	copy_text(info->status, sizeof(info->status), dynamo_json_text(table, "TableStatus"));
	cJSON_ArrayForEach(key, dynamo_json_member(table, "KeySchema"))
	{
		const char *name = dynamo_json_text(key, "AttributeName");
		const char *kind = dynamo_json_text(key, "KeyType");

		if (name == NULL || kind == NULL)
			return false;
		if (strcmp(kind, "HASH") == 0)
		{
			copy_text(info->partition_key, sizeof(info->partition_key), name);
			copy_text(info->partition_type, sizeof(info->partition_type),
					  key_type(table, name));
		}
		else if (strcmp(kind, "RANGE") == 0)
		{
			copy_text(info->sort_key, sizeof(info->sort_key), name);
			copy_text(info->sort_type, sizeof(info->sort_type), key_type(table, name));
		}
	}
	read_replicas(info, table);
	return info->status[0] != '\0' && info->partition_key[0] != '\0';
}
