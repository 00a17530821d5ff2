/*-------------------------------------------------------------------------
 *
 * dynamo_shared_item.c
 *	  Reads what a lock item tells of shared mode.
 *
 * The map "shared" may outlive the mode: an older ddblock's acquire, a Java client
 * that updates, and an operator who adds isReleased leave it in the item.  It is
 * valid if the item is not released and shared.owner equals ownerName.  Only the
 * gate counts in any mode.
 *
 * Everything that decides who may have a permit must be readable.  What is not known
 * here is ignored, so that later versions may add to it.
 *
 *-------------------------------------------------------------------------
 */
#include "dynamo/dynamo_codec.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The content of a map attribute, {"M":{...}}; NULL if it is none. */
static const cJSON *
map_attribute(const cJSON *attributes, const char *name)
{
	const cJSON *map = dynamo_json_member(dynamo_json_member(attributes, name), "M");

	return cJSON_IsObject(map) ? map : NULL;
}

static bool
read_version(const cJSON *map, char version[DYNAMO_VERSION_SIZE])
{
	const char *text = dynamo_json_attribute(map, "v");

	if (text == NULL || text[0] == '\0' || strlen(text) >= DYNAMO_VERSION_SIZE)
		return false;
	memcpy(version, text, strlen(text) + 1);
	return true;
}

/* Reads a lease.  As in leaseDuration, a longer one than 292 years counts as 292 years. */
static int64_t
read_lease(const cJSON *map)
{
	int64_t		lease_ms = dynamo_json_positive(map, "l");

	return lease_ms < DURATION_MAX_MS ? lease_ms : DURATION_MAX_MS;
}

static const char *
read_entry(const cJSON *json, dynamo_entry *entry)
{
	const cJSON *map = dynamo_json_member(json, "M");
	int64_t		permits = dynamo_json_positive(map, "n");

	if (strlen(json->string) >= sizeof(entry->incarnation))
		return "the name of an entry of the shared lock is too long";
	memcpy(entry->incarnation, json->string, strlen(json->string) + 1);
	if (!read_version(map, entry->version))
		return "an entry of the shared lock has no readable version";
	if (permits == 0 || permits > INT32_MAX)
		return "an entry of the shared lock has no readable number of permits";
	entry->permits = (int32_t) permits;
	entry->lease_ms = read_lease(map);
	if (entry->lease_ms == 0)
		return "an entry of the shared lock has no readable lease";
	entry->token = dynamo_json_positive(map, "t");
	if (entry->token == 0)
		return "an entry of the shared lock has no readable token";
	dynamo_json_copy(entry->name, sizeof(entry->name), dynamo_json_attribute(map, "o"));
	return NULL;
}

/* Reads all entries that can be read, and compares the sum of their permits with the total. */
static const char *
read_entries(const cJSON *map, dynamo_shared *shared)
{
	int64_t		total = dynamo_json_positive(map, "total");
	int64_t		sum = 0;
	const char *wrong = NULL;
	const cJSON *json;

	cJSON_ArrayForEach(json, map_attribute(map, "h"))
	{
		dynamo_entry *entry = &shared->entries[shared->count];
		const char *wrong_here;

		if (shared->count == DYNAMO_ENTRIES_MAX)
			return "the shared lock has too many entries";
		wrong_here = read_entry(json, entry);
		if (wrong_here != NULL)
		{
			wrong = wrong_here;
			continue;
		}
		sum += entry->permits;
		shared->count++;
	}
	if (wrong != NULL)
		return wrong;
	if (total != sum || total > INT32_MAX)
		return "the shared lock's total is not the sum of its entries' permits";
	shared->total = (int32_t) total;
	return NULL;
}

/*
 * Reads what counts in shared mode.  The entries come first, so that a cluster finds its own even
 * in an item that is unusable otherwise.
 */
static const char *
read_mode(const cJSON *attributes, const dynamo_item *item, const cJSON *map,
		  dynamo_shared *shared)
{
	const char *kind = dynamo_json_attribute(map, "kind");
	const char *wrong = read_entries(map, shared);
	lock_mode	mode = MODE_SHARED;
	char		lease[24];

	while (mode < MODE_COUNT && !dynamo_json_same(kind, dynamo_mode_name(mode)))
		mode++;
	shared->mode = mode < MODE_COUNT ? mode : MODE_SHARED;
	if (strlen(dynamo_json_attribute(map, "owner")) >= DYNAMO_EPOCH_SIZE)
		return "the shared lock's owner is too long";
	if (mode == MODE_COUNT)
		return "the shared lock is neither a shared lock nor a semaphore";
	if (!item->has_token || item->bad_token)
		return "the shared lock has no fencingToken";
	/* A join compares the text, so another spelling of the number would not do. */
	snprintf(lease, sizeof(lease), "%" PRId64, item->lease_ms);
	if (!dynamo_json_same(lease, dynamo_json_attribute(attributes, "leaseDuration")))
		return "the shared lock's leaseDuration is not a number of milliseconds";
	return wrong;
}

static const char *
read_gate(const cJSON *gate, dynamo_shared *shared)
{
	shared->gate = true;
	if (!read_version(gate, shared->gate_version))
		return "the gate of the shared lock has no readable version";
	shared->gate_lease_ms = read_lease(gate);
	if (shared->gate_lease_ms == 0)
		return "the gate of the shared lock has no readable lease";
	dynamo_json_copy(shared->gate_name, sizeof(shared->gate_name), dynamo_json_attribute(gate, "o"));
	return NULL;
}

const char *
dynamo_shared_read(const cJSON *attributes, const dynamo_item *item,
				   dynamo_shared **shared)
{
	const cJSON *map = map_attribute(attributes, "shared");
	const cJSON *gate = map_attribute(map, "gate");
	const char *owner = dynamo_json_attribute(map, "owner");
	bool		has_gate = dynamo_json_member(gate, "v") != NULL;
	bool		current = !item->released &&
		dynamo_json_same(owner, dynamo_json_attribute(attributes, "ownerName"));
	int			entries = current ? cJSON_GetArraySize(map_attribute(map, "h")) : 0;
	dynamo_shared *found;

	if (!current && !has_gate)
		return NULL;
	if (entries > DYNAMO_ENTRIES_MAX)
		entries = DYNAMO_ENTRIES_MAX;
	found = calloc(1, sizeof(dynamo_shared) + (size_t) entries * sizeof(dynamo_entry));
	if (found == NULL)
		return "out of memory";
	*shared = found;
	found->current = current;
	if (has_gate)
		found->wrong = read_gate(gate, found);
	if (current)
	{
		const char *wrong = read_mode(attributes, item, map, found);

		if (found->wrong == NULL)
			found->wrong = wrong;
	}
	return current ? found->wrong : NULL;
}
