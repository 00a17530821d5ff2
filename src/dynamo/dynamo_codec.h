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
 * Code of a batch's statement), or for "type: message": some types are ambiguous.
 * DYNAMO_MALFORMED for unknown types.
 */
extern dynamo_status dynamo_error_status(const char *text);

/* ---- JSON from elsewhere ---- */

/* NULL if the bytes are not exactly one JSON object, or value, or memory is short. */
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

/* Are both there, and the same? */
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
	char		closing[DYNAMO_DEPTH_MAX + 8];	/* ... and what closes each */
} dynamo_text;

/* Opens the brace or bracket; expected: bytes that the text will probably need */
extern void dynamo_text_start(dynamo_text *text, char brace, size_t expected);

/* Returns the malloc'd, NUL-terminated text, or NULL when memory was short. */
extern char *dynamo_text_finish(dynamo_text *text);

/* These bytes as they are; NULL if there are none. */
extern void dynamo_text_append(dynamo_text *text, const void *bytes, size_t len);

/* Begins a member; name NULL: an element, or a value whose name was begun. */
extern void dynamo_text_name(dynamo_text *text, const char *name);

/* Begins a member that is an object or an array; closes all of them but so many. */
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

/* Members with DynamoDB's values; name NULL as above. */
extern void dynamo_put_s(dynamo_text *text, const char *name, const char *s);
extern void dynamo_put_text(dynamo_text *text, const char *name, const char *s, size_t len);
extern void dynamo_put_n(dynamo_text *text, const char *name, int64_t value);
extern void dynamo_put_lease(dynamo_text *text, const char *name, int64_t lease_ms);

/* Opens a map, for its members. */
extern void dynamo_put_map(dynamo_text *text, const char *name);

/* A value: standard base64, with padding and without line ends. */
extern void dynamo_put_bytes(dynamo_text *text, const uint8_t *bytes, size_t len);

/* The members of a request that name its table; and those of an item that are its key. */
extern void dynamo_put_table(dynamo_text *text, const char *table);
extern void dynamo_put_key(dynamo_text *text, const dynamo_table *table, dynamo_key key);

/* What a placeholder for a value stands for. */
typedef struct dynamo_value
{
	const char *name;
	const char *text;			/* NULL: the number */
	int64_t		number;
} dynamo_value;

/* False if the name is not among them. */
extern bool dynamo_put_value(dynamo_text *text, const char *name, const dynamo_value *values,
							 size_t count);

/* The number in a placeholder such as "a12"; -1: it is none of these letters. */
extern int	dynamo_number_in(const char *name, const char *letters);

/* The attribute for a placeholder: "key" and "sort" are the table's. */
extern void dynamo_put_attribute_name(dynamo_text *text, const char *name,
									  const dynamo_table *table);

/*
 * ExpressionAttributeNames and -Values: what each "#name" and ":value" stands for, in the
 * expressions that were appended since the text had "from" bytes.  DynamoDB refuses a
 * placeholder that is declared and not used.  name NULL: attributes are called as in there.
 */
typedef void (*dynamo_stands_for) (dynamo_text *text, const char *name, const void *of);
extern void dynamo_put_placeholders(dynamo_text *text, size_t from, dynamo_stands_for name,
									dynamo_stands_for value, const void *of);

/* ---- requests about one item ---- */

#define BODY_ROOM 2048			/* for a request without names and data */

/* Members of a request.  The second ends the first; who builds the request ends the last. */
#define UPDATE ",\"UpdateExpression\":\""
#define CONDITION "\",\"ConditionExpression\":\""
#define CONDITION_ONLY ",\"ConditionExpression\":\""

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

/* ... and that they know the names of the additional attributes. */
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
	cJSON	   *replaced;		/* REPLACE: the item */
} dynamo_request;

/* In shared mode: what begins and ends the expressions, but for releases of the item; */
extern void dynamo_put_shared(dynamo_request *request);

/* ... the attribute for a placeholder, or NULL; and its value, or false. */
extern const char *dynamo_shared_name(const dynamo_write *write, const char *name);
extern bool dynamo_put_shared_value(dynamo_text *text, const char *name,
									const dynamo_write *write);

/* Does the reply bring the item as it is after the write? */
extern bool dynamo_shared_shows_item(dynamo_shared_kind kind);

/* Does it release the item?  Then dynamo_put_shared() continues the update of a release. */
extern bool dynamo_shared_releases(dynamo_shared_kind kind);

/* Sets the request's attributes and names. */
extern void dynamo_parse_extras(dynamo_request *request);

/* Pieces of an update: ", #a0 = :a0 ..." and ", #o1 ..."; as above. */
extern void dynamo_put_extras_set(dynamo_request *request);
extern void dynamo_put_extras_remove(dynamo_request *request);
extern const char *dynamo_extra_name(const dynamo_request *request, const char *name);
extern bool dynamo_put_extra_value(dynamo_text *text, const char *name,
								   const dynamo_request *request);

/* REPLACE: the new item's members but its key, and the condition. */
extern void dynamo_put_new_item(dynamo_text *text, const dynamo_table *table,
								const dynamo_write *write);
extern void dynamo_put_replacement(dynamo_request *request);

/* Members of a CreateTable, and of an index in there: both 0: on-demand. */
extern void dynamo_put_creation(dynamo_text *text, const dynamo_creation *how);
extern void dynamo_put_units(dynamo_text *text, const dynamo_creation *how);

/* From a table's description: can nobody delete it?  And the type of a key, or NULL. */
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
 * Item has been read, but for this.  *shared is malloc'd if there is something to
 * tell, else NULL.  Returns why an item in shared mode is unusable, or NULL.
 */
extern const char *dynamo_shared_read(const cJSON *attributes, const dynamo_item *item,
									  dynamo_shared **shared);

/* The lock item's attributes; NULL after the last one. */
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

/* May be called twice. */
extern void dynamo_page_free(dynamo_page *page);

/* False if table does not describe one. */
extern bool dynamo_table_read(dynamo_table_info *info, const cJSON *table);

#endif							/* DDBLOCK_DYNAMO_DYNAMO_CODEC_H */
