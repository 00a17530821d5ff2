/*-------------------------------------------------------------------------
 *
 * double_private.h
 *	  What the parts of the double share.
 *
 * A handler returns false when double_fail() has said why.
 *
 *-------------------------------------------------------------------------
 */
#ifndef DOUBLE_PRIVATE_H
#define DOUBLE_PRIVATE_H

#include <stdint.h>

#include "double_expr.h"
#include "double_value.h"
#include "dynamo_double.h"

#define DOUBLE_MESSAGE_SIZE 1024
#define DOUBLE_VALIDATION "ValidationException"
#define DOUBLE_ITEM_MAX (400 * 1024)

typedef struct double_entry
{
	uint64_t	hash;
	char	   *key;			/* partition key, NUL, sort key */
	size_t		key_len;
	cJSON	   *item;
	size_t		bytes;
	struct double_entry *next;
} double_entry;

/* The names are inside the table's description. */
typedef struct double_key
{
	int			count;			/* 1 or 2 */
	const char *names[2];
	double_type types[2];
} double_key;

typedef struct double_index
{
	const char *name;			/* inside the description */
	double_key	key;
	const cJSON *projection;	/* inside the description */
	struct double_index *next;
} double_index;

typedef struct double_table
{
	char	   *name;
	cJSON	   *description;	/* as DescribeTable tells it */
	double_key	key;
	double_index *indexes;
	char	   *ttl;			/* the attribute, NULL: disabled */
	double_entry **buckets;
	size_t		bucket_count;
	size_t		count;
	double_entry **ordered;		/* all, in the order of a scan, or NULL */
	struct double_table *next;
} double_table;

#define DOUBLE_CACHE_BUCKETS 1024

typedef struct double_statement double_statement;

/* A ClientRequestToken of a transaction that was done. */
typedef struct double_transaction
{
	char	   *name;
	char	   *request;
	double		write_units;	/* what it has cost, */
	double		read_units;		/* ... and what it costs if it comes again */
	struct double_transaction *next;
} double_transaction;

struct dynamo_double
{
	double_table *tables;
	bool		(*admit) (void *context, uint64_t item);	/* NULL: every write is */
	void	   *admit_context;
	bool		(*allows) (void *context, const char *action, const char *resource);
	void	   *allows_context;
	int			cached;			/* expressions and statements */
	double_expr *expressions[DOUBLE_CACHE_BUCKETS];
	double_statement *statements[DOUBLE_CACHE_BUCKETS];
	double_transaction *transactions[DOUBLE_CACHE_BUCKETS];
};

/* An expression with a request's placeholders. */
typedef struct double_bound
{
	const double_expr *expr;	/* NULL: the request has none */
	double_scope scope;
} double_bound;

typedef struct double_call
{
	dynamo_double *d;
	cJSON	   *request;
	double_table *table;
	double_bound bound[DOUBLE_USE_COUNT];
	cJSON	   *reply;			/* of a success */
	const char *type;			/* of a failure */
	char		message[DOUBLE_MESSAGE_SIZE];
	cJSON	   *item;			/* that a failed condition shows, owned */
	cJSON	   *reasons;		/* of a transaction that was cancelled, owned */
	const dynamo_double_fault *faults;	/* of a batch */
	int			fault_count;
} double_call;

typedef bool (*double_handler) (double_call *call);

/* double_error.c */
extern bool double_fail(double_call *call, const char *type, const char *format,...)
			__attribute__((format(printf, 3, 4)));
extern cJSON *double_error_json(const char *type, const char *message, int *status);
extern void double_statement_code(const char *type, char *code, size_t size);
extern const char *double_error_message(const char *type);

/* double_table.c */
extern uint64_t double_hash(const char *bytes, size_t len);
extern double_table *double_table_named(dynamo_double *d, const char *name);
extern void double_table_free(double_table *table);
extern double_entry *double_table_find(double_table *table, const cJSON *key);
extern uint64_t double_table_hash(double_table *table, const cJSON *key);

/* Takes the item over; entry NULL: there is none with its key yet. */
extern void double_table_put(double_table *table, double_entry *entry, cJSON *item);
extern void double_table_delete(double_table *table, double_entry *entry);
extern void double_table_order(double_table *table);

/* Where in the order a scan goes on after that key. */
extern size_t double_table_after(double_table *table, const cJSON *key);

/* Only the key's attributes, as a new item. */
extern cJSON *double_table_key(const double_table *table, const cJSON *item);

/* double_arguments.c: what requests have in common */
extern bool double_text(double_call *call, const char *name, const char **text);
extern bool double_choice(double_call *call, const char *name,
						  const char *const *choices, const char *complaint,
						  const char **choice);
/* The name is right; call->table may be NULL. */
extern bool double_look_up_table(double_call *call);
extern bool double_find_table(double_call *call);
extern bool double_check_key_values(double_call *call, const cJSON *item);
extern bool double_read_key(double_call *call, const char *name, cJSON **key);
extern bool double_check_values(double_call *call, cJSON *item);

/* double_bind.c; uses ends with -1 */
extern bool double_check_idle(double_call *call, const int *uses);
extern bool double_bind(double_call *call, const int *uses);
extern bool double_bind_only(double_call *call, const int *uses);
extern bool double_check_keys(double_call *call);
extern void double_bound_free(double_bound *bound);
extern void double_cache_clear(dynamo_double *d);
extern void double_cache_grow(dynamo_double *d);

/* double_capacity.c */
extern bool double_admit(double_call *call, const cJSON *key);
extern double double_write_units(size_t before, size_t after);
extern double double_read_units(size_t bytes, bool consistent);
extern void double_add_capacity(double_call *call, double units);

/* double_items.c */
extern bool double_get_item(double_call *call);
extern bool double_put_item(double_call *call);
extern bool double_update(double_call *call);
extern bool double_delete_item(double_call *call);

/* Of a transaction: a condition and nothing else. */
extern bool double_check_condition_only(double_call *call);
extern bool double_condition_failed(double_call *call, const double_entry *entry,
									bool show);
extern bool double_store_update(double_call *call, double_entry *entry,
								const double_action *actions,
								const double_scope *scope, const cJSON *key,
								cJSON **item);

/* What an update shows, for "ALL_NEW" and so on; NULL: nothing.  old may be NULL. */
extern cJSON *double_returned(const char *return_values, const double_action *actions,
							  const double_scope *scope, const cJSON *old,
							  const cJSON *new);

/* double_policy.c; index may be NULL */
extern bool double_allowed(double_call *call, const char *operation, const char *table,
						   const char *index);
extern bool double_request_allowed(double_call *call, const char *operation,
								   const cJSON *request);

/* double_scan.c */
extern bool double_read_limit(double_call *call, int *limit);
extern bool double_scan(double_call *call);

/* double_query.c */
extern bool double_query(double_call *call);

/* double_transact.c */
extern bool double_transact_write(double_call *call);
extern void double_transactions_clear(dynamo_double *d);

/* double_admin.c */
extern bool double_create_table(double_call *call);
extern bool double_describe_table(double_call *call);
extern bool double_delete_table(double_call *call);
extern bool double_update_ttl(double_call *call);
extern bool double_describe_ttl(double_call *call);

/* double_batch.c */
extern bool double_execute_statement(double_call *call);
extern bool double_batch_statements(double_call *call);

#endif							/* DOUBLE_PRIVATE_H */
