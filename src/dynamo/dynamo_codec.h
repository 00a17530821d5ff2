/*-------------------------------------------------------------------------
 *
 * dynamo_codec.h
 *	  What the codec's files know of each other: JSON, and the parts of requests and replies.
 *
 * Only src/dynamo and src/queue use it.
 *
 *-------------------------------------------------------------------------
 */
#ifndef DDBLOCK_DYNAMO_DYNAMO_CODEC_H
#define DDBLOCK_DYNAMO_DYNAMO_CODEC_H

#include <cjson/cJSON.h>

#include "dynamo/dynamo.h"

/* The calls of DynamoDB's API: what a reply has depends on them. */
typedef enum dynamo_api
{
	API_GET_ITEM,
	API_UPDATE_ITEM,
	API_PUT_ITEM,
	API_DELETE_ITEM,
	API_QUERY,
	API_SCAN,
	API_BATCH,
	API_TRANSACT,
	API_DESCRIBE_TABLE,
	API_CREATE_TABLE,
	API_UPDATE_TTL
} dynamo_api;

extern dynamo_api dynamo_api_of(dynamo_op op);

/* Does it write one item, so that a condition may refuse it? */
extern bool dynamo_is_single_write(dynamo_op op);

/*
 * The status for an error's type ("ThrottlingException" in __type, "ThrottlingError" as the
 * Code of a batch's statement) and, where the type is ambiguous, its message.
 * DYNAMO_MALFORMED for unknown types.
 */
extern dynamo_status dynamo_error_status(const char *type, const char *message);

/* ---- dynamo_json.c ---- */

/* NULL if the bytes are not exactly one JSON object, or memory is short. */
extern cJSON *dynamo_json_parse(const char *body, size_t len);

/* The object's member; NULL if there is none, or object is not an object. */
extern const cJSON *dynamo_json_member(const cJSON *object, const char *name);

/* The text of a string member, else NULL. */
extern const char *dynamo_json_text(const cJSON *object, const char *name);

/* The text of an item's attribute {"S":"..."}; NULL if it is missing or not an S. */
extern const char *dynamo_json_attribute(const cJSON *attributes, const char *name);

/*
 * An N attribute that is an integer in 1 .. 2^63-1, else 0.  DynamoDB prints
 * numbers in plain digits, without sign, point or exponent if it can.
 */
extern int64_t dynamo_json_positive(const cJSON *attributes, const char *name);

/* Are both there, and the same? */
extern bool dynamo_json_same(const char *a, const char *b);

/* Copies valid UTF-8, cut at a character's boundary if it does not fit. */
extern void dynamo_json_copy(char *to, size_t size, const char *from);

/* ---- dynamo_text.c ---- */

typedef struct dynamo_text
{
	char	   *bytes;
	size_t		len;
	size_t		size;
	bool		failed;
} dynamo_text;

/* expected: bytes that the text will probably need */
extern void dynamo_text_start(dynamo_text *text, size_t expected);

/* Returns the malloc'd, NUL-terminated text, or NULL when memory was short. */
extern char *dynamo_text_finish(dynamo_text *text);

/* Appends text that is JSON already. */
extern void dynamo_text_raw(dynamo_text *text, const char *json);

/* Appends the escaped content of a JSON string, without quotes. */
extern void dynamo_text_escaped(dynamo_text *text, const char *s, size_t len);

/* Appends a JSON string with its quotes. */
extern void dynamo_text_string(dynamo_text *text, const char *s, size_t len);

extern void dynamo_text_int(dynamo_text *text, int64_t value);

/* Appends standard base64, with padding and without line ends. */
extern void dynamo_text_base64(dynamo_text *text, const uint8_t *data, size_t len);

/* Appends a comma, except after an opening brace or bracket. */
extern void dynamo_text_comma(dynamo_text *text);

/* ---- dynamo_put.c ---- */

/* Attributes of the lock item, as a set. */
#define A_OWNER			(1 << 0)
#define A_VERSION		(1 << 1)
#define A_LEASE			(1 << 2)
#define A_TOKEN			(1 << 3)
#define A_HOLDER		(1 << 4)
#define A_DATA			(1 << 5)
#define A_RELEASED		(1 << 6)
#define A_RELEASED_AT	(1 << 7)
#define A_TTL			(1 << 8)
#define A_RELEASED_VERSION	(1 << 9)
#define A_SHARED		(1 << 10)
#define A_ATTRIBUTE_NAMES	(1 << 11)
#define A_KEPT			(1 << 12)
#define A_WANTED		(1 << 13)

#define A_ITEM			((1 << 14) - 1) /* all of them */

/* Names inside "shared". */
#define A_SHARED_OWNER	(1 << 14)
#define A_KIND			(1 << 15)
#define A_TOTAL			(1 << 16)
#define A_ENTRIES		(1 << 17)
#define A_GATE			(1 << 18)
#define A_ENTRY_VERSION	(1 << 19)
#define A_PERMITS		(1 << 20)

/*
 * What an acquire and an opening of shared mode demand: a free item (a take-over:
 * or a dead version), and a token above the item's, so that a late copy of an old
 * write is refused.
 */
#define FREE "(attribute_not_exists(#key) OR attribute_exists(#isReleased)"
#define RELEASED "(attribute_exists(#isReleased)"
#define OR_DEAD " OR #recordVersionNumber = :expected"
#define TOKEN_BELOW(first) \
	"(attribute_not_exists(#fencingToken) OR #fencingToken < " first ")"
#define NEW_TOKEN(first) ") AND " TOKEN_BELOW(first)

/* ... and, like a hand-over, that nobody was promised the lock for longer. */
#define NOT_KEPT \
	" AND (attribute_not_exists(#keptUntil) OR #keptUntil <= :past)"

/* {"S":"..."} */
extern void dynamo_put_s(dynamo_text *text, const char *s, size_t len);

/* DynamoDB's numbers are quoted; type N, or S for leaseDuration. */
extern void dynamo_put_number(dynamo_text *text, char type, int64_t value);

/* Opens a member of an object; its name is not escaped. */
extern void dynamo_put_name(dynamo_text *text, const char *name);

extern void dynamo_put_s_member(dynamo_text *text, const char *name, const char *s);
extern void dynamo_put_n_member(dynamo_text *text, const char *name, int64_t value);

/* The name of an attribute, in the order of the set; NULL after the last one. */
extern const char *dynamo_attribute(int number);

/* The members of an item that are its key. */
extern void dynamo_put_key(dynamo_text *text, const dynamo_table *table, dynamo_key key);

/*
 * Declares the placeholders of names; partition_key NULL: no condition mentions
 * #key.  More may follow, then the values.
 */
extern void dynamo_put_names(dynamo_text *text, const char *partition_key, int attributes);
extern void dynamo_put_values_start(dynamo_text *text);

/* A release's update, up to where its REMOVE may go on; its placeholders and values. */
extern void dynamo_put_release(dynamo_text *text, const dynamo_table *table,
							   const dynamo_write *write);
extern int	dynamo_release_attributes(const dynamo_table *table, const dynamo_write *write);
extern void dynamo_put_release_values(dynamo_text *text, const dynamo_table *table,
									  const dynamo_write *write);

/* ---- dynamo_item.c ---- */

/*
 * Reads {"ownerName":{"S":"..."},...}; json NULL: the item does not exist.
 * *item must be zeroed, and *shared NULL.  If an attribute cannot be understood,
 * item->wrong says so, and the rest holds what could be read.  False if json is not
 * an item.
 */
extern bool dynamo_item_read(const cJSON *attributes, dynamo_item *item,
							 dynamo_shared **shared);

/* Frees what the item points to. */
extern void dynamo_item_clear(dynamo_item *item);

/* Why an item with bad_names is unusable. */
#define DYNAMO_BAD_NAMES "the lock item's attributeNames is not a JSON array of names, as a text"

/* ---- dynamo_shared_item.c ---- */

/*
 * Item has been read, but for this.  *shared is malloc'd if there is something to
 * tell, else NULL.  Returns why an item in shared mode is unusable, or NULL.
 */
extern const char *dynamo_shared_read(const cJSON *attributes, const dynamo_item *item,
									  dynamo_shared **shared);

/* ---- dynamo_attributes.c ---- */

/* What a write sets and removes, parsed.  Both NULL: nothing. */
typedef struct dynamo_extras
{
	cJSON	   *set;			/* {"team":{"S":"x"},...} */
	cJSON	   *old;			/* ["team",...]: names that an earlier holder set */
} dynamo_extras;

/* False if memory is short, or what the write names is not what it must be. */
extern bool dynamo_extras_start(dynamo_extras *extras, const dynamo_write *write);
extern void dynamo_extras_end(dynamo_extras *extras);

/* Pieces of an update: ", #a0 = :a0 ..." and ", #o1 ...". */
extern void dynamo_put_extras_set(dynamo_text *text, const dynamo_extras *extras);
extern void dynamo_put_extras_remove(dynamo_text *text, const dynamo_extras *extras);

/* The placeholders' names, after others; their values, after others. */
extern void dynamo_put_extras_names(dynamo_text *text, const dynamo_extras *extras);
extern void dynamo_put_extras_values(dynamo_text *text, const dynamo_extras *extras,
									 const dynamo_write *write);

/*
 * Reads what the item has beside the attributes of a lock: item->attributes,
 * attribute_names, bad_names.  The rest of *item has been read.
 */
extern void dynamo_attributes_read(const cJSON *attributes, bool shared, dynamo_item *item);

/* ---- dynamo_shared_request.c ---- */

/* From the update's expression up to the last value, which the caller closes. */
extern void dynamo_put_shared(dynamo_text *text, const dynamo_table *table,
							  const dynamo_write *write);

/* Does the reply bring the item as it is after the write? */
extern bool dynamo_shared_shows_item(dynamo_shared_kind kind);

/* ---- dynamo_scan.c ---- */

/*
 * Reads a page from json, which was parsed from body.  *page must be zeroed, and
 * freed afterwards in any case.  DYNAMO_VALIDATION if the table has other keys,
 * DYNAMO_MALFORMED if the page is unusable; *wrong says why, if known.
 */
extern dynamo_status dynamo_page_read(dynamo_page *page, const dynamo_table *table,
									  const cJSON *json, const char *body,
									  size_t len, const char **wrong);

/* May be called twice. */
extern void dynamo_page_free(dynamo_page *page);

/* ---- dynamo_table.c ---- */

/* False if table does not describe one. */
extern bool dynamo_table_read(dynamo_table_info *info, const cJSON *table);

/* ---- dynamo_unusable.c ---- */

/* The item in DynamoDB's JSON, in a fixed order: malloc'd, NULL if memory is short. */
extern char *dynamo_sorted_json(const cJSON *attributes);

/* Of a REPLACE: from the new item up to the last value, which the caller closes. */
extern void dynamo_put_replacement(dynamo_text *text, const dynamo_table *table,
								   const dynamo_write *write);

#endif							/* DDBLOCK_DYNAMO_DYNAMO_CODEC_H */
