/*-------------------------------------------------------------------------
 *
 * lockmgr_double.h
 *	  A DynamoDB for tests of the lock manager: a few items in memory.
 *
 * It works on dynamo_write and dynamo_result themselves, so no JSON and no
 * network is involved.  The conditions repeat the tables "Operations" and "Shared
 * locks" in doc/internals/protocol.md, independently of the codec.
 *
 *-------------------------------------------------------------------------
 */
#ifndef DDBLOCK_TEST_LOCKMGR_DOUBLE_H
#define DDBLOCK_TEST_LOCKMGR_DOUBLE_H

#include "../unit.h"
#include "dynamo/dynamo.h"

#define DOUBLE_ITEMS 1100
#define DOUBLE_NAME_SIZE 64

typedef struct double_item
{
	char		name[DOUBLE_NAME_SIZE];
	dynamo_item item;			/* without its data, which is below */
	uint8_t		data[64];
	size_t		data_len;
	char		attributes[64]; /* as the write had them */
	char		names[64];		/* their names, if the item has them */
	dynamo_shared *shared;		/* with room for all entries; NULL: no map */
} double_item;

typedef struct double_table
{
	int			count;
	double_item *items[DOUBLE_ITEMS];
	unsigned	reads;
	unsigned	writes;			/* including refused ones */
	bool		silent;			/* refusals come without the item */
	bool		refuses;		/* every acquire, */
	bool		refuses_others; /* ... or every other write but an acquire, */
	bool		refuses_changes;	/* ... or every change of permits */
	bool		ignores;		/* conditions of renewals */
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
	{
		free(table->items[--table->count]->shared);
		free(table->items[table->count]);
	}
}

#define DOUBLE_SHARED_SIZE \
	(sizeof(dynamo_shared) + DYNAMO_ENTRIES_MAX * sizeof(dynamo_entry))

/* What a read tells of shared mode: malloc'd, or NULL. */
static inline dynamo_shared *
double_read_shared(const double_item *found)
{
	dynamo_shared *shared;

	if (found->shared == NULL || !found->item.exists)
		return NULL;
	shared = malloc(DOUBLE_SHARED_SIZE);
	if (shared == NULL)
		abort();
	memcpy(shared, found->shared, DOUBLE_SHARED_SIZE);
	shared->current = !found->item.released && shared->current;
	if (!shared->current)
		shared->count = shared->total = 0;
	return shared;
}

/* The map, made if need be. */
static inline dynamo_shared *
double_shared(double_item *found)
{
	if (found->shared == NULL)
		found->shared = calloc(1, DOUBLE_SHARED_SIZE);
	if (found->shared == NULL)
		abort();
	return found->shared;
}

static inline dynamo_entry *
double_entry(double_item *found, const char *incarnation)
{
	for (int i = 0; found->shared != NULL && i < found->shared->count; i++)
	{
		if (strcmp(found->shared->entries[i].incarnation, incarnation) == 0)
			return &found->shared->entries[i];
	}
	return NULL;
}

static inline void
double_remove_entry(double_item *found, const char *incarnation)
{
	dynamo_entry *entry = double_entry(found, incarnation);

	found->shared->total -= entry->permits;
	*entry = found->shared->entries[--found->shared->count];
}

/* An acquire must know the additional attributes, also one that leaves them. */
static inline bool
double_knows_names(const double_item *found, const dynamo_write *write)
{
	const char *names = found->item.attribute_names;

	return strcmp(write->old_attributes != NULL ? write->old_attributes : "",
				  names != NULL ? names : "") == 0;
}

/* Does the item meet the condition of a write in shared mode? */
static inline bool
double_shared_condition(double_item *found, const dynamo_write *write)
{
	const dynamo_shared_write *asked = write->shared;
	const dynamo_item *item = &found->item;
	const dynamo_shared *shared = found->shared;
	const dynamo_admission *admission = asked->kind <= DYNAMO_SHARED_REPLACE ?
		&asked->entry.admission : asked->kind == DYNAMO_SHARED_CHANGE ? &asked->change : NULL;
	bool		opens = asked->kind == DYNAMO_SHARED_OPEN;
	bool		is_shared = item->exists && !item->released && shared != NULL &&
		shared->current && !opens && strcmp(item->owner, asked->epoch) == 0;
	const dynamo_entry *ours = asked->me != NULL ? double_entry(found, asked->me) : NULL;
	const char *gate = shared != NULL && shared->gate ? shared->gate_version : "";
	bool		adds = admission != NULL && admission->permits > 0;

	if (adds && gate[0] != '\0' && strcmp(gate, admission->dead_gate) != 0)
		return false;
	if (opens)
		return double_knows_names(found, write) && item->kept_until_ms <= write->past_ms && (!item->exists || item->released ||
				(write->expected[0] != '\0' && strcmp(item->version, write->expected) == 0)) &&
			(!item->has_token || item->token < write->last_token);
	if (!is_shared)
		return false;
	if (adds && admission->limit > 0 && shared->total + admission->permits -
		admission->freed > admission->limit)
		return false;
	for (int i = 0; adds && i < admission->dead_count; i++)
	{
		const dynamo_entry *dead = double_entry(found, admission->dead[i].incarnation);

		if (dead == NULL || strcmp(dead->version, admission->dead[i].version) != 0)
			return false;
	}
	switch (asked->kind)
	{
		case DYNAMO_SHARED_JOIN:
		case DYNAMO_SHARED_REPLACE:
			return shared->mode == asked->entry.mode &&
				item->token < write->last_token &&
				(asked->kind == DYNAMO_SHARED_JOIN ? ours == NULL :
				 ours != NULL && strcmp(ours->version, write->expected) == 0);
		case DYNAMO_SHARED_GATE:
			return gate[0] == '\0' || strcmp(gate, write->expected) == 0;
		case DYNAMO_SHARED_RENEW_GATE:
			return strcmp(gate, write->expected) == 0;
		default:
			break;
	}
	return ours != NULL && strcmp(ours->version, write->expected) == 0 &&
		(asked->kind != DYNAMO_SHARED_LEAVE || shared->count > 1) &&
		(asked->kind != DYNAMO_SHARED_LAST || shared->count == 1);
}

static inline void
double_put_entry(double_item *found, const dynamo_write *write)
{
	dynamo_shared *shared = found->shared;
	dynamo_entry *entry = double_entry(found, write->shared->me);

	if (entry != NULL)
		double_remove_entry(found, write->shared->me);
	entry = &shared->entries[shared->count++];
	*entry = (dynamo_entry) {
		.lease_ms = write->lease_ms,.token = write->last_token,
		.permits = write->shared->entry.admission.permits
	};
	snprintf(entry->incarnation, sizeof(entry->incarnation), "%s", write->shared->me);
	snprintf(entry->version, sizeof(entry->version), "%s", write->version);
	snprintf(entry->name, sizeof(entry->name), "%s", write->shared->entry.name);
	shared->total += entry->permits;
}

static inline void
double_shared_change(double_item *found, const dynamo_write *write)
{
	const dynamo_shared_write *asked = write->shared;
	dynamo_item *item = &found->item;
	dynamo_shared *shared = double_shared(found);
	dynamo_entry *ours = asked->me != NULL ? double_entry(found, asked->me) : NULL;
	const dynamo_admission *admission = asked->kind == DYNAMO_SHARED_CHANGE ?
		&asked->change : &asked->entry.admission;

	snprintf(item->version, sizeof(item->version), "%s", write->version);
	if (write->unmark && (asked->kind <= DYNAMO_SHARED_REPLACE ||
						  (asked->kind == DYNAMO_SHARED_CHANGE && admission->permits > 0)))
		item->wanted_until_ms = 0;
	switch (asked->kind)
	{
		case DYNAMO_SHARED_OPEN:
			memset(shared, 0, DOUBLE_SHARED_SIZE);
			shared->current = item->exists = item->has_token = true;
			shared->mode = asked->entry.mode;
			item->released = false;
			item->lease_ms = write->lease_ms;
			item->kept_until_ms = 0;
			item->token = write->last_token;
			memset(&item->holder, 0, sizeof(item->holder));
			found->data_len = 0;
			snprintf(item->owner, sizeof(item->owner), "shared/%s", write->version);
			double_put_entry(found, write);
			break;
		case DYNAMO_SHARED_JOIN:
		case DYNAMO_SHARED_REPLACE:
			for (int i = 0; i < admission->dead_count; i++)
				double_remove_entry(found, admission->dead[i].incarnation);
			shared->gate = false;
			item->token = write->last_token;
			if (asked->entry.shorter_ms > 0)
				item->lease_ms = write->lease_ms;
			double_put_entry(found, write);
			break;
		case DYNAMO_SHARED_RENEW:
		case DYNAMO_SHARED_CHANGE:
			snprintf(ours->version, sizeof(ours->version), "%s", write->version);
			if (asked->kind == DYNAMO_SHARED_RENEW)
				break;
			ours->permits += admission->permits;
			shared->total += admission->permits;
			for (int i = 0; i < admission->dead_count; i++)
				double_remove_entry(found, admission->dead[i].incarnation);
			if (admission->permits > 0)
				shared->gate = false;
			break;
		case DYNAMO_SHARED_LEAVE:
			double_remove_entry(found, asked->me);
			break;
		case DYNAMO_SHARED_LAST:
			item->released = true;
			item->released_at = write->now_s;
			shared->current = false;
			shared->count = shared->total = 0;
			break;
		case DYNAMO_SHARED_GATE:
		case DYNAMO_SHARED_RENEW_GATE:
			shared->gate = true;
			shared->gate_lease_ms = asked->kind == DYNAMO_SHARED_GATE ? write->lease_ms :
				shared->gate_lease_ms;
			snprintf(shared->gate_version, sizeof(shared->gate_version), "%s", write->version);
			break;
		default:
			abort();
	}
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

/* Demanded of the item's token. */
static inline bool
double_is_below(const dynamo_item *item, int64_t token)
{
	return !item->has_token || (!item->bad_token && item->token < token);
}

static inline bool
double_may_acquire(const dynamo_item *item, const dynamo_write *write)
{
	bool		dead = write->expected[0] != '\0' && item->exists &&
		strcmp(item->version, write->expected) == 0;

	if (item->exists && !item->released && !dead)
		return false;
	if (write->must_exist && !item->exists)
		return false;
	if (item->bad_kept || item->kept_until_ms > write->past_ms)
		return false;
	return !item->exists || double_is_below(item, write->first_token);
}

static inline void
double_set_attributes(double_item *found, const char *attributes)
{
	char	   *names = attributes != NULL ? dynamo_attribute_names(attributes) : NULL;

	snprintf(found->names, sizeof(found->names), "%s", names != NULL ? names : "");
	snprintf(found->attributes, sizeof(found->attributes), "%s",
			 attributes != NULL ? attributes : "");
	found->item.attribute_names = names != NULL ? found->names : NULL;
	free(names);
}

static inline bool
double_is_ours(const dynamo_item *item, const dynamo_write *write)
{
	return item->exists && !item->released &&
		strcmp(item->owner, write->owner) == 0 &&
		strcmp(item->version, write->expected) == 0 &&
		(write->op != DYNAMO_HAND_OVER || (item->kept_until_ms <= write->past_ms &&
										   double_is_below(item, write->first_token)));
}

static inline bool
double_condition(const double_item *found, const dynamo_write *write)
{
	const dynamo_item *item = &found->item;

	switch (write->op)
	{
		case DYNAMO_ACQUIRE:
			return double_may_acquire(item, write) && double_knows_names(found, write);
		case DYNAMO_BAR:
			return item->exists && double_is_below(item, write->first_token);
		case DYNAMO_BAR_NEW:
			return !item->exists;
		case DYNAMO_MARK:
			return item->exists && !item->released &&
				(strcmp(item->owner, write->expected) == 0 ||
				 (found->shared != NULL && found->shared->current));
		case DYNAMO_DELETE:
			return item->exists && item->released && strcmp(item->version, write->expected) == 0 &&
				(!item->has_token || (!item->bad_token && item->token <= write->last_token));
		default:
			return double_is_ours(item, write);
	}
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

	if (write->op != DYNAMO_BAR && write->op != DYNAMO_MARK)
		snprintf(item->version, sizeof(item->version), "%s", write->version);
	switch (write->op)
	{
		case DYNAMO_BAR:
			item->token = write->last_token;
			item->has_token = true;
			break;
		case DYNAMO_MARK:
			snprintf(item->wanted_by, sizeof(item->wanted_by), "%s",
					 dynamo_incarnation(write->owner));
			item->wanted_until_ms = write->wanted_until_ms;
			item->wanted_poll_ms = write->wanted_poll_ms;
			item->wanted_permits = write->wanted_permits;
			item->wanted_limit = write->wanted_limit;
			break;
		case DYNAMO_BAR_NEW:
			item->exists = item->released = item->has_token = true;
			item->token = write->last_token;
			item->lease_ms = write->lease_ms;
			item->released_at = write->now_s;
			snprintf(item->owner, sizeof(item->owner), "%s", write->owner);
			break;
		case DYNAMO_DELETE:
			memset(item, 0, sizeof(*item));
			break;
		case DYNAMO_ACQUIRE:
			item->exists = true;
			item->released = false;
			item->released_at = 0;
			snprintf(item->owner, sizeof(item->owner), "%s", write->owner);
			double_set_attributes(found, write->attributes);
			if (write->unmark)
				item->wanted_until_ms = 0;
			/* FALLTHROUGH */
		case DYNAMO_HAND_OVER:
			item->lease_ms = write->lease_ms;
			item->token = write->last_token;
			item->has_token = true;
			item->bad_token = false;
			item->kept_until_ms = write->kept_until_ms;
			item->holder = *write->holder;
			double_set_data(found, write);
			break;
		case DYNAMO_RENEW:
			item->lease_ms = write->lease_ms;
			if (write->holder != NULL)
				item->holder = *write->holder;
			if (write->data != NULL)
				double_set_data(found, write);
			break;
		case DYNAMO_RELEASE:
			item->released = true;
			item->released_at = write->now_s;
			if (write->kept_until_ms == 0)
				item->kept_until_ms = 0;
			memset(&item->holder, 0, sizeof(item->holder));
			found->data_len = 0;
			if (write->old_attributes != NULL)
				double_set_attributes(found, NULL);
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
		result->shared = double_read_shared(found);
		return;
	}
	table->writes++;
	if (write->op == DYNAMO_ACQUIRE && table->refuses)
		result->status = DYNAMO_CONDITION_FAILED;
	else if ((table->refuses_others && write->op != DYNAMO_ACQUIRE) ||
			 (table->refuses_changes && write->shared != NULL &&
			  write->shared->kind == DYNAMO_SHARED_CHANGE))
	{
		result->status = DYNAMO_CONDITION_FAILED;
		result->item = found->item;
		result->shared = double_read_shared(found);
	}
	else if (write->op == DYNAMO_RENEW && write->shared == NULL && table->ignores)
		double_change(found, write);
	else if (write->shared != NULL && double_shared_condition(found, write))
	{
		double_shared_change(found, write);
		if (write->shared->kind == DYNAMO_SHARED_OPEN)
			return;
		result->item = found->item;
		result->shared = double_read_shared(found);
	}
	else if (write->shared == NULL && double_condition(found, write))
	{
		if (write->op == DYNAMO_ACQUIRE || write->op == DYNAMO_RELEASE)
			result->item = found->item;
		if (write->op == DYNAMO_ACQUIRE)
		{
			free(found->shared);
			found->shared = NULL;
		}
		double_change(found, write);
		if (write->op == DYNAMO_BAR || write->op == DYNAMO_MARK)
		{
			result->item = found->item;
			result->shared = double_read_shared(found);
		}
	}
	else
	{
		result->status = DYNAMO_CONDITION_FAILED;
		snprintf(result->message, sizeof(result->message),
				 "ConditionalCheckFailedException");
		if (table->silent)
			return;
		result->item = found->item;
		result->shared = double_read_shared(found);
	}
}

/* Copies a write with all that it points to, except names and data. */
typedef struct double_write
{
	dynamo_write write;
	char		name[DOUBLE_NAME_SIZE];
	char		owner[DYNAMO_OWNER_SIZE];
	char		version[DYNAMO_VERSION_SIZE];
	char		expected[DYNAMO_OWNER_SIZE];
	uint8_t		data[64];
	char		attributes[64];
	char		old_attributes[64];
	dynamo_holder holder;
	dynamo_shared_write shared;
	char		epoch[DYNAMO_OWNER_SIZE];
	char		me[DYNAMO_OWNER_SIZE];
	char		cluster[DYNAMO_OWNER_SIZE];
	dynamo_dead_entry dead[DYNAMO_ENTRIES_MAX];
	char		dead_text[DYNAMO_ENTRIES_MAX][2][DYNAMO_VERSION_SIZE];
	char		dead_gate[DYNAMO_VERSION_SIZE];
} double_write;

/* The same for the part that only shared mode has. */
static inline void
double_copy_shared(double_write *to, const dynamo_shared_write *from)
{
	dynamo_admission *admission;

	to->shared = *from;
	to->write.shared = &to->shared;
	snprintf(to->epoch, sizeof(to->epoch), "%s", from->epoch);
	to->shared.epoch = to->epoch;
	if (from->me != NULL)
	{
		snprintf(to->me, sizeof(to->me), "%s", from->me);
		to->shared.me = to->me;
	}
	if (from->kind <= DYNAMO_SHARED_REPLACE)
	{
		snprintf(to->cluster, sizeof(to->cluster), "%s", from->entry.name);
		to->shared.entry.name = to->cluster;
		admission = &to->shared.entry.admission;
	}
	else if (from->kind == DYNAMO_SHARED_CHANGE)
		admission = &to->shared.change;
	else
		return;
	if (admission->permits <= 0)
		return;
	snprintf(to->dead_gate, sizeof(to->dead_gate), "%s", admission->dead_gate);
	admission->dead_gate = to->dead_gate;
	for (int i = 0; i < admission->dead_count; i++)
	{
		snprintf(to->dead_text[i][0], DYNAMO_VERSION_SIZE, "%s", admission->dead[i].incarnation);
		snprintf(to->dead_text[i][1], DYNAMO_VERSION_SIZE, "%s", admission->dead[i].version);
		to->dead[i] = (dynamo_dead_entry) {to->dead_text[i][0], to->dead_text[i][1]};
	}
	admission->dead = to->dead;
}

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
	if (from->attributes != NULL)
	{
		snprintf(to->attributes, sizeof(to->attributes), "%s", from->attributes);
		to->write.attributes = to->attributes;
	}
	if (from->old_attributes != NULL)
	{
		snprintf(to->old_attributes, sizeof(to->old_attributes), "%s", from->old_attributes);
		to->write.old_attributes = to->old_attributes;
	}
	if (from->shared != NULL)
		double_copy_shared(to, from->shared);
}

#endif							/* DDBLOCK_TEST_LOCKMGR_DOUBLE_H */
