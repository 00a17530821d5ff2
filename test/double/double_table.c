/*-------------------------------------------------------------------------
 *
 * double_table.c
 *	  A table's items: a hash table by key, and an order for scans.
 *
 * A scan goes by hash, then key: an order that stays as it is while items
 * come and go, so that a scan can go on after a key that is gone.
 *
 *-------------------------------------------------------------------------
 */
#include <stdlib.h>
#include <string.h>

#include "double_private.h"

#define BUCKETS_MIN 64

/* A key as bytes. */
typedef struct key_bytes
{
	uint64_t	hash;
	size_t		len;
	char	   *bytes;
	char		room[256];
} key_bytes;

/* FNV-1a */
uint64_t
double_hash(const char *bytes, size_t len)
{
	uint64_t	hash = 14695981039346656037ULL;

	for (size_t i = 0; i < len; i++)
		hash = (hash ^ (unsigned char) bytes[i]) * 1099511628211ULL;
	return hash;
}

double_table *
double_table_named(dynamo_double *d, const char *name)
{
	double_table *table = d->tables;

	while (table != NULL && strcmp(table->name, name) != 0)
		table = table->next;
	return table;
}

static void
free_entry(double_entry *entry)
{
	cJSON_Delete(entry->item);
	free(entry->key);
	free(entry);
}

void
double_table_free(double_table *table)
{
	for (size_t i = 0; i < table->bucket_count; i++)
	{
		while (table->buckets[i] != NULL)
		{
			double_entry *next = table->buckets[i]->next;

			free_entry(table->buckets[i]);
			table->buckets[i] = next;
		}
	}
	free(table->buckets);
	while (table->indexes != NULL)
	{
		double_index *next = table->indexes->next;

		free(table->indexes);
		table->indexes = next;
	}
	free(table->ordered);
	free(table->name);
	free(table->ttl);
	cJSON_Delete(table->description);
	free(table);
}

static const char *
key_text(const double_table *table, int i, const cJSON *item)
{
	return cJSON_GetObjectItemCaseSensitive(item, table->key.names[i])->child->valuestring;
}

static void
make_key(const double_table *table, const cJSON *item, key_bytes *key)
{
	const char *partition = key_text(table, 0, item);
	const char *sort = table->key.count > 1 ? key_text(table, 1, item) : "";
	size_t		partition_len = strlen(partition);
	size_t		sort_len = strlen(sort);

	key->len = partition_len + 1 + sort_len;
	key->bytes = key->len <= sizeof(key->room) ? key->room : malloc(key->len);
	memcpy(key->bytes, partition, partition_len + 1);
	memcpy(key->bytes + partition_len + 1, sort, sort_len);
	key->hash = double_hash(key->bytes, key->len);
}

static void
free_key(key_bytes *key)
{
	if (key->bytes != key->room)
		free(key->bytes);
}

double_entry *
double_table_find(double_table *table, const cJSON *item)
{
	key_bytes	key;
	double_entry *entry = NULL;

	make_key(table, item, &key);
	if (table->bucket_count > 0)
		entry = table->buckets[key.hash % table->bucket_count];
	while (entry != NULL &&
		   (entry->hash != key.hash || entry->key_len != key.len ||
			memcmp(entry->key, key.bytes, key.len) != 0))
		entry = entry->next;
	free_key(&key);
	return entry;
}

uint64_t
double_table_hash(double_table *table, const cJSON *item)
{
	key_bytes	key;

	make_key(table, item, &key);
	free_key(&key);
	return key.hash ^ double_hash(table->name, strlen(table->name));
}

static void
grow(double_table *table)
{
	size_t		count = table->bucket_count == 0 ? BUCKETS_MIN : table->bucket_count * 2;
	double_entry **buckets = calloc(count, sizeof(double_entry *));

	for (size_t i = 0; i < table->bucket_count; i++)
	{
		while (table->buckets[i] != NULL)
		{
			double_entry *entry = table->buckets[i];

			table->buckets[i] = entry->next;
			entry->next = buckets[entry->hash % count];
			buckets[entry->hash % count] = entry;
		}
	}
	free(table->buckets);
	table->buckets = buckets;
	table->bucket_count = count;
}

static void
forget_order(double_table *table)
{
	free(table->ordered);
	table->ordered = NULL;
}

void
double_table_put(double_table *table, double_entry *entry, cJSON *item)
{
	if (entry == NULL)
	{
		key_bytes	key;

		if (table->count >= table->bucket_count)
			grow(table);
		make_key(table, item, &key);
		entry = calloc(1, sizeof(double_entry));
		entry->hash = key.hash;
		entry->key_len = key.len;
		entry->key = memcpy(malloc(key.len), key.bytes, key.len);
		entry->next = table->buckets[key.hash % table->bucket_count];
		table->buckets[key.hash % table->bucket_count] = entry;
		table->count++;
		free_key(&key);
		forget_order(table);
	}
	else
		cJSON_Delete(entry->item);
	entry->item = item;
	entry->bytes = double_item_bytes(item);
}

void
double_table_delete(double_table *table, double_entry *entry)
{
	double_entry **link = &table->buckets[entry->hash % table->bucket_count];

	while (*link != entry)
		link = &(*link)->next;
	*link = entry->next;
	table->count--;
	free_entry(entry);
	forget_order(table);
}

static int
compare_places(uint64_t hash, const char *key, size_t len, const double_entry *entry)
{
	size_t		common = len < entry->key_len ? len : entry->key_len;
	int			order;

	if (hash != entry->hash)
		return hash < entry->hash ? -1 : 1;
	order = memcmp(key, entry->key, common);
	if (order != 0)
		return order;
	return len < entry->key_len ? -1 : len > entry->key_len;
}

static int
compare_entries(const void *a, const void *b)
{
	const double_entry *entry = *(double_entry *const *) a;

	return compare_places(entry->hash, entry->key, entry->key_len,
						  *(double_entry *const *) b);
}

void
double_table_order(double_table *table)
{
	size_t		count = 0;

	if (table->ordered != NULL)
		return;
	table->ordered = calloc(table->count + 1, sizeof(double_entry *));
	for (size_t i = 0; i < table->bucket_count; i++)
	{
		for (double_entry *entry = table->buckets[i]; entry != NULL; entry = entry->next)
			table->ordered[count++] = entry;
	}
	qsort(table->ordered, count, sizeof(double_entry *), compare_entries);
}

size_t
double_table_after(double_table *table, const cJSON *item)
{
	key_bytes	key;
	size_t		low = 0;
	size_t		high = table->count;

	make_key(table, item, &key);
	while (low < high)
	{
		size_t		middle = low + (high - low) / 2;

		if (compare_places(key.hash, key.bytes, key.len, table->ordered[middle]) < 0)
			high = middle;
		else
			low = middle + 1;
	}
	free_key(&key);
	return low;
}

cJSON *
double_table_key(const double_table *table, const cJSON *item)
{
	cJSON	   *key = cJSON_CreateObject();

	for (int i = 0; i < table->key.count; i++)
	{
		const cJSON *value = cJSON_GetObjectItemCaseSensitive(item, table->key.names[i]);

		cJSON_AddItemToObject(key, table->key.names[i], cJSON_Duplicate(value, 1));
	}
	return key;
}

void
dynamo_double_items(dynamo_double *d, const char *name,
					void (*visit) (const cJSON *item, void *context), void *context)
{
	double_table *table = double_table_named(d, name);

	if (table == NULL)
		return;
	double_table_order(table);
	for (size_t i = 0; i < table->count; i++)
		visit(table->ordered[i]->item, context);
}
