/*-------------------------------------------------------------------------
 *
 * lockmgr_double.h
 *	  A DynamoDB for tests of the lock manager: a few items in memory.
 *
 * It works on dynamo_write and dynamo_result themselves, so no JSON and no
 * network is involved.  The conditions repeat the table "Operations" in
 * doc/protocol.md, independently of the codec.
 *
 *-------------------------------------------------------------------------
 */
#ifndef DDBLOCK_TEST_LOCKMGR_DOUBLE_H
#define DDBLOCK_TEST_LOCKMGR_DOUBLE_H

#include "../unit.h"
#include "dynamo/dynamo.h"

#define DOUBLE_ITEMS 1024
#define DOUBLE_NAME_SIZE 64

typedef struct double_item
{
	char		name[DOUBLE_NAME_SIZE];
	dynamo_item item;			/* without its data, which is below */
	uint8_t		data[64];
	size_t		data_len;
} double_item;

typedef struct double_table
{
	int			count;
	double_item *items[DOUBLE_ITEMS];
	unsigned	reads;
	unsigned	writes;			/* including refused ones */
} double_table;

/* Never NULL: a name that was never written has an item with exists false. */
static inline double_item *
double_find(double_table *table, const char *name, size_t len)
{
	double_item *item;

	for (int i = 0; i < table->count; i++)
	{
		item = table->items[i];
		if (strlen(item->name) == len && memcmp(item->name, name, len) == 0)
			return item;
	}
	if (table->count == DOUBLE_ITEMS || len >= DOUBLE_NAME_SIZE)
		abort();
	item = calloc(1, sizeof(double_item));
	if (item == NULL)
		abort();
	table->items[table->count++] = item;
	memcpy(item->name, name, len);
	return item;
}

static inline void
double_free(double_table *table)
{
	while (table->count > 0)
		free(table->items[--table->count]);
}

static inline double_item *
double_item_of(double_table *table, const char *name)
{
	return double_find(table, name, strlen(name));
}

/* Is the lock held? */
static inline bool
double_is_held(const double_item *found)
{
	return found->item.exists && !found->item.released;
}

static inline bool
double_may_acquire(const dynamo_item *item, const dynamo_write *write)
{
	bool		dead = write->expected[0] != '\0' && item->exists &&
		strcmp(item->version, write->expected) == 0;

	if (item->exists && !item->released && !dead)
		return false;
	return !item->exists || !item->has_token ||
		(!item->bad_token && item->token < write->first_token);
}

static inline bool
double_is_ours(const dynamo_item *item, const dynamo_write *write)
{
	return item->exists && !item->released &&
		strcmp(item->owner, write->owner) == 0 &&
		strcmp(item->version, write->expected) == 0;
}

static inline bool
double_condition(const dynamo_item *item, const dynamo_write *write)
{
	return write->op == DYNAMO_ACQUIRE ? double_may_acquire(item, write) :
		double_is_ours(item, write);
}

static inline void
double_set_data(double_item *found, const dynamo_write *write)
{
	found->data_len = write->data != NULL ? write->data_len : 0;
	if (found->data_len > sizeof(found->data))
		abort();
	if (write->data != NULL)
		memcpy(found->data, write->data, write->data_len);
}

static inline void
double_change(double_item *found, const dynamo_write *write)
{
	dynamo_item *item = &found->item;

	snprintf(item->version, sizeof(item->version), "%s", write->version);
	switch (write->op)
	{
		case DYNAMO_ACQUIRE:
			item->exists = true;
			item->released = false;
			item->released_at = 0;
			snprintf(item->owner, sizeof(item->owner), "%s", write->owner);
			/* FALLTHROUGH */
		case DYNAMO_HAND_OVER:
			item->lease_ms = write->lease_ms;
			item->token = write->last_token;
			item->has_token = true;
			item->bad_token = false;
			item->holder = *write->holder;
			double_set_data(found, write);
			break;
		case DYNAMO_RENEW:
			item->lease_ms = write->lease_ms;
			if (write->holder != NULL)
				item->holder = *write->holder;
			break;
		case DYNAMO_RELEASE:
			item->released = true;
			item->released_at = write->now_s;
			memset(&item->holder, 0, sizeof(item->holder));
			found->data_len = 0;
			break;
		default:
			abort();
	}
}

/* Applies one request, or one statement of a batch. */
static inline void
double_apply(double_table *table, const dynamo_write *write,
			 dynamo_result *result)
{
	double_item *found = double_find(table, write->name, write->name_len);

	memset(result, 0, sizeof(*result));
	result->status = DYNAMO_OK;
	if (write->op == DYNAMO_READ)
	{
		table->reads++;
		result->item = found->item;
		return;
	}
	table->writes++;
	if (double_condition(&found->item, write))
	{
		if (write->op == DYNAMO_ACQUIRE)
			result->item = found->item;
		double_change(found, write);
	}
	else
	{
		result->status = DYNAMO_CONDITION_FAILED;
		snprintf(result->type, sizeof(result->type),
				 "ConditionalCheckFailedException");
		result->item = found->item;
	}
}

/* Copies a write with all that it points to, except names and data. */
typedef struct double_write
{
	dynamo_write write;
	char		name[DOUBLE_NAME_SIZE];
	char		owner[DYNAMO_OWNER_SIZE];
	char		version[DYNAMO_VERSION_SIZE];
	char		expected[DYNAMO_VERSION_SIZE];
	uint8_t		data[64];
	dynamo_holder holder;
} double_write;

static inline void
double_copy_write(double_write *to, const dynamo_write *from)
{
	memset(to, 0, sizeof(*to));
	to->write = *from;
	if (from->name_len >= sizeof(to->name) || from->data_len > sizeof(to->data))
		abort();
	memcpy(to->name, from->name, from->name_len);
	snprintf(to->owner, sizeof(to->owner), "%s", from->owner);
	snprintf(to->version, sizeof(to->version), "%s",
			 from->version ? from->version : "");
	snprintf(to->expected, sizeof(to->expected), "%s",
			 from->expected ? from->expected : "");
	if (from->holder != NULL)
		to->holder = *from->holder;
	if (from->data != NULL)
		memcpy(to->data, from->data, from->data_len);
	to->write.name = to->name;
	to->write.owner = to->owner;
	to->write.version = to->version;
	to->write.expected = to->expected;
	to->write.holder = from->holder != NULL ? &to->holder : NULL;
	to->write.data = from->data != NULL ? to->data : NULL;
}

#endif							/* DDBLOCK_TEST_LOCKMGR_DOUBLE_H */
