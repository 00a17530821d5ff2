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
	API_UPDATE_TTL,
	API_DESCRIBE_TTL
} dynamo_api;

extern dynamo_api dynamo_api_of(dynamo_op op);

/* Does the operation write one item, so that a condition may refuse it? */
extern bool dynamo_is_single_write(dynamo_op op);

/*
 * The status for an error's type ("ThrottlingException" in __type, "ThrottlingError" as the
 * Code of a batch's statement), or for "type: message": some types are ambiguous.
 * DYNAMO_MALFORMED for unknown types.
 */
extern dynamo_status dynamo_error_status(const char *text);

/* ---- JSON from elsewhere ---- */

/*
 * Parses bytes that are not trusted.  NULL if they are not exactly one JSON object (the second:
 * one JSON value), or if memory is short.
 */
extern cJSON *dynamo_json_parse(const char *body, size_t len);
extern cJSON *dynamo_json_parse_any(const char *body, size_t len);

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

/* Are both texts there, and the same? */
extern bool dynamo_json_same(const char *a, const char *b);

/* Copies valid UTF-8, cut at a character's boundary if it does not fit; "" for NULL. */
extern void dynamo_json_copy(char *to, size_t size, const char *from);

/* ---- JSON of ours ---- */

/*
 * JSON in a growing buffer.  Every lock call needs a body, so it is written directly: a tree
 * of cJSON nodes would cost some fifty allocations.  Commas come between members, and
 * dynamo_text_finish() closes what is open.
 *
 * When memory is short, later calls do nothing and dynamo_text_finish() returns
 * NULL, so only that result needs a check.
 */
typedef struct dynamo_text
{
	char	   *bytes;			/* terminated */
	size_t		len;
	size_t		size;
	bool		failed;
	int			depth;			/* braces and brackets that are open */
	char		closing[DYNAMO_DEPTH_MAX + 8];	/* what closes each brace or bracket that is open */
} dynamo_text;

/* Begins the text with this brace or bracket; expected: bytes that the text will probably need. */
extern void dynamo_text_start(dynamo_text *text, char brace, size_t expected);

/* Returns the malloc'd, NUL-terminated text, or NULL when memory was short. */
extern char *dynamo_text_finish(dynamo_text *text);

/* Appends these bytes as they are; they may be NULL if len is 0. */
extern void dynamo_text_append(dynamo_text *text, const void *bytes, size_t len);

/* Begins a member; name NULL: begins an element, or a value whose name was written already. */
extern void dynamo_text_name(dynamo_text *text, const char *name);

/*
 * Begins a member that is an object or an array (name as in dynamo_text_name()); and closes what
 * is open until "depth" are left.
 */
extern void dynamo_text_open(dynamo_text *text, const char *name, char brace);
extern void dynamo_text_close(dynamo_text *text, int depth);

/* Appends, as printf(), what is JSON already; with its comma. */
extern void dynamo_text_raw(dynamo_text *text, const char *format,...)
			__attribute__((format(printf, 2, 3)));

/* Appends the escaped content of a JSON string, without quotes. */
extern void dynamo_text_escaped(dynamo_text *text, const char *s, size_t len);

/* Appends a JSON string with its quotes. */
extern void dynamo_text_string(dynamo_text *text, const char *s, size_t len);

extern void dynamo_text_json(dynamo_text *text, const cJSON *json);

/*
 * Append members with DynamoDB's values: {"S":"..."}, {"N":"..."}.  name as in dynamo_text_name().
 */
extern void dynamo_put_s(dynamo_text *text, const char *name, const char *s);
extern void dynamo_put_text(dynamo_text *text, const char *name, const char *s, size_t len);
extern void dynamo_put_n(dynamo_text *text, const char *name, int64_t value);
extern void dynamo_put_lease(dynamo_text *text, const char *name, int64_t lease_ms);

/* Opens a map, for its members. */
extern void dynamo_put_map(dynamo_text *text, const char *name);

/* Appends a binary value, in standard base64, with padding and without line ends. */
extern void dynamo_put_bytes(dynamo_text *text, const uint8_t *bytes, size_t len);

/*
 * Append the member of a request that names its table; and the members of an item that are its
 * key.
 */
extern void dynamo_put_table(dynamo_text *text, const char *table);
extern void dynamo_put_key(dynamo_text *text, const dynamo_table *table, dynamo_key key);

/* What a placeholder for a value stands for. */
typedef struct dynamo_value
{
	const char *name;
	const char *text;			/* NULL: the number */
	int64_t		number;
} dynamo_value;

/* Appends the value of this name; false if the name is not among them. */
extern bool dynamo_put_value(dynamo_text *text, const char *name, const dynamo_value *values,
							 size_t count);

/*
 * The number in a placeholder of these letters, 12 in "a12" for "a"; -1: it is another
 * placeholder.
 */
extern int	dynamo_number_in(const char *name, const char *letters);

/*
 * Appends the attribute's name for a placeholder.  "key" and "sort" stand for the table's keys;
 * others for themselves.
 */
extern void dynamo_put_attribute_name(dynamo_text *text, const char *name,
									  const dynamo_table *table);

/*
 * Appends ExpressionAttributeNames and -Values: what each "#name" and ":value" stands for, in the
 * expressions that were appended since the text had "from" bytes.  (DynamoDB refuses a placeholder
 * that is declared and not used.)  If the function "name" is NULL, each #name stands for itself.
 */
typedef void (*dynamo_stands_for) (dynamo_text *text, const char *name, const void *of);
extern void dynamo_put_placeholders(dynamo_text *text, size_t from, dynamo_stands_for name,
									dynamo_stands_for value, const void *of);

/* ---- requests about one item ---- */

#define BODY_ROOM 2048			/* room for a request, but for the lock's name and data */

/*
 * Members of a request.  CONDITION ends the update before it; who builds the request ends the last
 * one.
 */
#define UPDATE ",\"UpdateExpression\":\""
#define CONDITION "\",\"ConditionExpression\":\""
#define CONDITION_ONLY ",\"ConditionExpression\":\""

/*
 * What an acquire and an opening of shared mode demand: a free item (in a take-over: or a dead
 * version), and a token below the write's first, so that a late copy of an old write is refused.
 */
#define FREE "(attribute_not_exists(#key) OR attribute_exists(#isReleased)"
#define RELEASED "(attribute_exists(#isReleased)"
#define OR_DEAD " OR #recordVersionNumber = :expected"
#define TOKEN_BELOW(first) \
	"(attribute_not_exists(#fencingToken) OR #fencingToken < " first ")"
#define NEW_TOKEN(first) ") AND " TOKEN_BELOW(first)

/* They demand, as a hand-over does, that keptUntil does not keep the lock from others. */
#define NOT_KEPT \
	" AND (attribute_not_exists(#keptUntil) OR #keptUntil <= :past)"

/* They demand that the item has the additional attributes that we know of. */
#define OLD_NAMES(write) \
	((write)->old_attributes != NULL ? "#attributeNames = :oldNames" : \
	 "attribute_not_exists(#attributeNames)")

typedef struct dynamo_request
{
	dynamo_text text;
	const dynamo_table *table;
	const dynamo_write *write;
	cJSON	   *set;			/* additional attributes: {"team":{"S":"x"},...}; or NULL */
	cJSON	   *old;			/* names that an earlier holder set: ["team",...]; or NULL */
	cJSON	   *replaced;		/* REPLACE: the unusable item */
} dynamo_request;

/*
 * Puts the update and condition of a write in shared mode.  For a release of the item,
 * put_release() has begun the update, and this ends it.
 */
extern void dynamo_put_shared(dynamo_request *request);

/*
 * In shared mode: the attribute for a placeholder, or NULL if it is none of shared mode; and its
 * value, or false.
 */
extern const char *dynamo_shared_name(const dynamo_write *write, const char *name);
extern bool dynamo_put_shared_value(dynamo_text *text, const char *name,
									const dynamo_write *write);

/* Does the reply to this kind of write show the item as it is after the write? */
extern bool dynamo_shared_shows_item(dynamo_shared_kind kind);

/*
 * Does this kind of write release the item?  Then dynamo_put_shared() continues the update of a
 * release.
 */
extern bool dynamo_shared_releases(dynamo_shared_kind kind);

/*
 * Parses the additional attributes that the request sets, and the names of those that it removes.
 */
extern void dynamo_parse_extras(dynamo_request *request);

/*
 * Additional attributes: pieces of an update, ", #a0 = :a0 ..." and ", #o1 ..."; the attribute for
 * a placeholder, or NULL; and its value, or false.
 */
extern void dynamo_put_extras_set(dynamo_request *request);
extern void dynamo_put_extras_remove(dynamo_request *request);
extern const char *dynamo_extra_name(const dynamo_request *request, const char *name);
extern bool dynamo_put_extra_value(dynamo_text *text, const char *name,
								   const dynamo_request *request);

/* REPLACE: puts the new item's members but its key; and the condition. */
extern void dynamo_put_new_item(dynamo_text *text, const dynamo_table *table,
								const dynamo_write *write);
extern void dynamo_put_replacement(dynamo_request *request);

/*
 * Put members of a CreateTable: how the table is billed; and the units of the table or of an
 * index.
 */
extern void dynamo_put_creation(dynamo_text *text, const dynamo_creation *how);
extern void dynamo_put_units(dynamo_text *text, const dynamo_creation *how);

/*
 * From a table's description: is it protected from deletion?  And the type of a key attribute, or
 * NULL.
 */
extern bool dynamo_is_protected(const cJSON *table);
extern const char *dynamo_key_type(const cJSON *table, const char *key);

/* ---- items ---- */

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

/*
 * Reads what an item tells of shared mode, when all else in *item has been read.  *shared is
 * malloc'd if the item tells something, else NULL.  Returns why an item in shared mode is
 * unusable, or NULL.
 */
extern const char *dynamo_shared_read(const cJSON *attributes, const dynamo_item *item,
									  dynamo_shared **shared);

/* The attributes that lock items have, by number from 0; NULL after the last one. */
extern const char *dynamo_attribute(int number);

/*
 * Reads what the item has beside the attributes of a lock: item->attributes,
 * attribute_names, bad_names.  The rest of *item has been read.
 */
extern void dynamo_attributes_read(const cJSON *attributes, bool shared, dynamo_item *item);

/* The item in DynamoDB's JSON, in a fixed order: malloc'd, NULL if memory is short. */
extern char *dynamo_sorted_json(const cJSON *attributes);

/*
 * Reads a page from json, which was parsed from body.  *page must be zeroed, and
 * freed afterwards in any case.  DYNAMO_VALIDATION if the table has other keys,
 * DYNAMO_MALFORMED if the page is unusable; *wrong says why, if known.
 */
extern dynamo_status dynamo_page_read(dynamo_page *page, const dynamo_table *table,
									  const cJSON *json, const char *body,
									  size_t len, const char **wrong);

/* Frees what the page points to.  It may be called twice. */
extern void dynamo_page_free(dynamo_page *page);

/* Reads a table's description; false if the JSON does not describe a table. */
extern bool dynamo_table_read(dynamo_table_info *info, const cJSON *table);

#endif							/* DDBLOCK_DYNAMO_DYNAMO_CODEC_H */
