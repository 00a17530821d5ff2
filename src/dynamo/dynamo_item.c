/*-------------------------------------------------------------------------
 *
 * dynamo_item.c
 *	  Reads a lock item from DynamoDB's JSON, for the codec's replies.
 *
 * The item may be ours, a Java or Go client's, or not a lock at all.  Lease and
 * version of a held lock must be readable, because they decide when it is dead;
 * other attributes are ignored if they have an unexpected type.  A released item
 * is free whatever else it contains.
 *
 * A Java client that updates an item keeps the attributes that it does not
 * know; these then describe an earlier holder.  See "The item" in
 * doc/internals/protocol.md.
 *
 *-------------------------------------------------------------------------
 */
#include "dynamo/dynamo_codec.h"

#include <openssl/evp.h>
#include <stdlib.h>
#include <string.h>

static void
copy_attribute(char *to, size_t size, const cJSON *attributes, const char *name)
{
	dynamo_json_copy(to, size, dynamo_json_attribute(attributes, name));
}

/*
 * Reads holder and time of release, which only ddblock writes.  They are valid if no other client
 * has acquired or released the lock since.
 */
static void
read_ours(const cJSON *attributes, dynamo_item *item)
{
	const cJSON *map = dynamo_json_member(dynamo_json_member(attributes, "holder"), "M");
	const char *holder_owner = dynamo_json_attribute(map, "owner");
	const char *released_version = dynamo_json_attribute(attributes, "releasedVersion");

	item->by_ddblock = !item->released &&
		dynamo_json_same(holder_owner, dynamo_json_attribute(attributes, "ownerName"));
	if (item->by_ddblock)
	{
		dynamo_holder *holder = &item->holder;
		int64_t		pid = dynamo_json_positive(map, "pid");

		copy_attribute(holder->database, DYNAMO_HOLDER_SIZE, map, "database");
		copy_attribute(holder->user, DYNAMO_HOLDER_SIZE, map, "user");
		copy_attribute(holder->application, DYNAMO_HOLDER_SIZE, map, "application");
		copy_attribute(holder->host, DYNAMO_HOLDER_SIZE, map, "host");
		holder->pid = pid <= INT32_MAX ? (int32_t) pid : 0;
		holder->since_ms = dynamo_json_positive(map, "since");
		copy_attribute(holder->system, DYNAMO_SYSTEM_SIZE, map, "system");
	}
	if (item->released &&
		dynamo_json_same(released_version, dynamo_json_attribute(attributes, "recordVersionNumber")))
		item->released_at = dynamo_json_positive(attributes, "releasedAt");
}

/* What is wrong with the data attribute, or NULL. */
static const char *
read_data(const cJSON *attributes, dynamo_item *item)
{
	const char *text = dynamo_json_text(dynamo_json_member(attributes, "data"), "B");
	size_t		len;
	size_t		digits;
	size_t		padding;

	if (text == NULL)
		return NULL;
	len = strlen(text);
	digits = strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/");
	padding = strspn(text + digits, "=");
	item->data = malloc(len / 4 * 3 + 1);
	if (item->data == NULL)
		return "out of memory";
	/* OpenSSL alone would accept white space around the padded base64, and '=' anywhere. */
	if (len % 4 == 0 && padding <= 2 && digits + padding == len &&
		EVP_DecodeBlock(item->data, (const unsigned char *) text, (int) len) >= 0)
	{
		item->data_len = len / 4 * 3 - padding;
		return NULL;
	}
	free(item->data);
	item->data = NULL;
	item->data_len = 0;
	return "the lock item's data is not base64";
}

/* What is wrong with the attributes that tell when a held lock is dead, or NULL. */
static const char *
read_lease(const cJSON *attributes, dynamo_item *item)
{
	const char *version = dynamo_json_attribute(attributes, "recordVersionNumber");
	const char *lease = dynamo_json_attribute(attributes, "leaseDuration");
	const char *wrong = NULL;
	const char *wrong_lease = NULL;

	if (version == NULL || version[0] == '\0')
		wrong = dynamo_json_member(attributes, "recordVersionNumber") == NULL ?
			"the lock item has no recordVersionNumber" :
			"the lock item's recordVersionNumber is empty or not of type S";
	else if (strlen(version) >= DYNAMO_VERSION_SIZE)
		wrong = "the lock item's recordVersionNumber is too long";
	else
		memcpy(item->version, version, strlen(version) + 1);

	if (lease == NULL)
		wrong_lease = dynamo_json_member(attributes, "leaseDuration") == NULL ?
			"the lock item has no leaseDuration" :
			"the lock item's leaseDuration is not of type S";
	else if (!duration_parse(lease, strlen(lease), &item->lease_ms))
		wrong_lease = "the lock item's leaseDuration is unreadable";
	return wrong != NULL ? wrong : wrong_lease;
}

bool
dynamo_item_read(const cJSON *attributes, dynamo_item *item, dynamo_shared **shared)
{
	const cJSON *mark = dynamo_json_member(dynamo_json_member(attributes, "wanted"), "M");
	const char *mark_owner = dynamo_json_attribute(mark, "owner");
	const char *lease = dynamo_json_attribute(attributes, "leaseDuration");
	const char *wrong_lease;
	const char *wrong_data;
	const char *wrong_shared;
	bool		in_shared_mode;

	if (attributes == NULL)
		return true;
	if (!cJSON_IsObject(attributes))
		return false;
	item->exists = true;
	item->released = dynamo_json_member(attributes, "isReleased") != NULL;
	item->has_token = dynamo_json_member(attributes, "fencingToken") != NULL;
	item->token = dynamo_json_positive(attributes, "fencingToken");
	item->bad_token = item->has_token && item->token == 0;
	item->kept_until_ms = dynamo_json_positive(attributes, "keptUntil");
	item->bad_kept = item->kept_until_ms == 0 &&
		dynamo_json_member(attributes, "keptUntil") != NULL;
	copy_attribute(item->owner, DYNAMO_OWNER_SIZE, attributes, "ownerName");
	read_ours(attributes, item);
	/* The mark of a cluster that waits.  A mark that cannot be read counts as none. */
	dynamo_json_copy(item->wanted_by, sizeof(item->wanted_by),
					 mark_owner != NULL ? dynamo_incarnation(mark_owner) : NULL);
	item->wanted_until_ms = dynamo_json_positive(mark, "until");
	item->wanted_poll_ms = dynamo_json_positive(mark, "poll");
	item->wanted_permits = dynamo_json_positive(mark, "permits");
	item->wanted_limit = dynamo_json_positive(mark, "limit");

	wrong_lease = read_lease(attributes, item);
	wrong_data = read_data(attributes, item);
	wrong_shared = dynamo_shared_read(attributes, item, shared);
	in_shared_mode = *shared != NULL && (*shared)->current;

	/*
	 * Rust's dynamodb_lock up to 0.4.3 writes seconds where Amazon's client writes
	 * milliseconds, in the same format.  So a lease below 1,000 that no ddblock wrote is taken
	 * for the longer of the two: a holder that lives must not be taken for dead.
	 */
	if (!item->released && !item->by_ddblock && !in_shared_mode && lease != NULL &&
		item->lease_ms > 0 && item->lease_ms < 1000 && lease[strspn(lease, "0123456789")] == '\0')
	{
		item->lease_ms *= 1000;
		item->lease_in_seconds = true;
	}
	dynamo_attributes_read(attributes, in_shared_mode, item);
	if (item->released)
		return true;
	item->wrong = wrong_lease != NULL ? wrong_lease : wrong_data;
	if (item->wrong == NULL)
		item->wrong = wrong_shared;
	if (item->wrong == NULL && item->bad_names)
		item->wrong = DYNAMO_BAD_NAMES;
	return true;
}

void
dynamo_item_clear(dynamo_item *item)
{
	free(item->data);
	free(item->attributes);
	free(item->attribute_names);
}
