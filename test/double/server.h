/*-------------------------------------------------------------------------
 *
 * server.h
 *	  The double as an HTTP server: what its parts share.
 *
 * One process, one thread, one epoll.  A connection has one request at a time
 * in hand; what a client sends behind it waits.  A request goes through
 * server_request(): signature, faults, the double, reply.  What is to happen
 * later (a late reply, a late copy of a write, a slow handshake) is an event.
 *
 *-------------------------------------------------------------------------
 */
#ifndef SERVER_H
#define SERVER_H

#include <openssl/ssl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "dynamo_double.h"

#define SERVER_HEADERS_MAX 64
#define SERVER_KEY_SIZE 129		/* an access key's id, and its NUL */
#define SERVER_TARGET_SIZE 64
#define SERVER_CONTROL_PATH "/_double"

typedef struct server server;
typedef struct connection connection;

typedef struct server_bytes
{
	char	   *data;
	size_t		len;
	size_t		size;
} server_bytes;

typedef struct server_header
{
	char	   *name;			/* in lower case */
	char	   *value;			/* trimmed */
} server_header;

/* A request inside a connection's buffer. */
typedef struct server_http
{
	char	   *method;
	char	   *path;
	char	   *query;			/* behind the '?', or "" */
	server_header headers[SERVER_HEADERS_MAX];
	int			header_count;
	char	   *body;
	size_t		body_len;
	size_t		total;			/* bytes of the buffer that it takes */
} server_http;

struct connection
{
	int			fd;				/* -1: closed, and to be freed */
	SSL		   *ssl;			/* NULL: plain */
	bool		undecided;		/* nothing has come that tells TLS or plain */
	bool		handshaken;
	bool		handshake_held; /* waits for its event */
	bool		serving;		/* its request is being looked at, right now */
	bool		busy;			/* a request is in hand */
	bool		parked;			/* ... and will never be answered */
	bool		close_after;	/* when all is written */
	uint32_t	watched;		/* epoll's events */
	int			served;			/* requests answered before this one */
	char		key[SERVER_KEY_SIZE];	/* of the last request */
	server_bytes in;
	server_bytes out;
	size_t		written;		/* of out */
	connection *next;
	connection *previous;
};

/* Something that is to happen later. */
typedef enum server_event_kind
{
	SERVER_REPLY,				/* sends bytes on the connection */
	SERVER_APPLY,				/* applies a copy of a request */
	SERVER_HANDSHAKE			/* lets the connection begin with TLS */
} server_event_kind;

typedef struct server_event
{
	server_event_kind kind;
	int64_t		due_us;
	connection *c;				/* NULL: it has gone, or none is needed */
	char		target[SERVER_TARGET_SIZE];
	char	   *bytes;			/* a reply or a request's body; owned */
	size_t		len;
	struct server_event *next;
} server_event;

typedef struct server_credential
{
	char	   *key;
	char	   *secret;
	char	   *token;			/* NULL: none */
	enum
	{
		SERVER_VALID, SERVER_EXPIRED, SERVER_GONE
	}			state;
	char		scope[256];		/* of the derived key */
	unsigned char derived[32];
	struct server_credential *next;
} server_credential;

typedef enum server_fault_kind
{
	FAULT_DROP,
	FAULT_LOSE_REPLY,
	FAULT_DUPLICATE,
	FAULT_LATE_APPLY,
	FAULT_LATE_REPLY,
	FAULT_RESET,
	FAULT_HTTP_500,
	FAULT_HTTP_503,
	FAULT_THROTTLE,
	FAULT_CONFLICT,
	FAULT_TRUNCATE,
	FAULT_CORRUPT,
	FAULT_WRONG_CRC,
	FAULT_PARTITION,
	FAULT_SLOW_TLS,
	FAULT_EXPIRED,
	FAULT_EMPTY					/* 200 {}, without a header of DynamoDB's */
} server_fault_kind;

#define FAULT_KINDS (FAULT_EMPTY + 1)

typedef struct server_fault
{
	int			id;
	server_fault_kind kind;
	double		probability;
	int			count;			/* how often it may still strike; -1: for ever */
	char	   *key;			/* only that cluster; NULL: all */
	char	   *operation;		/* only that one; NULL: all */
	int64_t		delay_us;
	bool		applied;
	char	   *error;			/* type, NULL: the kind's own in rotation */
	char	   *answer;			/* late_apply: "none", "500" or "close" */
	bool		refuse;			/* partition: connections are reset */
	struct server_fault *next;
} server_fault;

/* How many times something with that name has happened. */
typedef struct server_count
{
	char		name[SERVER_TARGET_SIZE];
	long		count;
	struct server_count *next;
} server_count;

/* What no policy allows: patterns, as IAM has them. */
typedef struct server_denial
{
	char	   *action;
	char	   *resource;
	struct server_denial *next;
} server_denial;

#define SERVER_BUCKETS 65536

/* Writes that an item may still take. */
typedef struct server_bucket
{
	uint64_t	item;
	double		left;
	int64_t		since_us;
} server_bucket;

struct server
{
	dynamo_double *d;
	SSL_CTX    *tls;			/* NULL: plain */
	int			listener;
	int			epoll;
	connection *connections;
	connection *closed;
	server_event *events;		/* by due_us */
	server_credential *credentials;
	server_fault *faults;
	int			last_fault;
	server_denial *denials;
	int64_t		skew_s;			/* of our clock */
	int64_t		date_error_ms;	/* of each Date, beside that, either way */
	uint64_t	random;
	int			turn;			/* of what goes in rotation */
	double		writes_per_s;	/* of an item; 0: no limit */
	bool		unlimited;		/* during the operator's own call; nor denied */
	server_bucket *buckets;
	server_count *requests;		/* by operation */
	server_count *refused;		/* by error type of signatures, or by denied action */
	server_count *keys;			/* requests by access key */
	long		struck[FAULT_KINDS];
	long		accepted;		/* connections */
};

/* server_loop.c */
extern int64_t server_now_us(void);
extern uint64_t server_random(server *s);
extern void server_run(server *s);
extern server_event *server_event_new(server *s, server_event_kind kind,
									  int64_t delay_us, connection *c);
extern void server_append(server_bytes *to, const char *data, size_t len);

/* server_connection.c */
extern void server_accept(server *s);
extern void server_ready(server *s, connection *c, uint32_t events);
extern void server_begin_handshake(server *s, connection *c);
extern void server_close(server *s, connection *c, bool reset);
extern void server_free_closed(server *s);

/* Appends to what is to be written; the request in hand has been answered. */
extern void server_send(server *s, connection *c, const char *data, size_t len);
extern void server_park(connection *c);

/* server_http.c */

/* 1: a request is there; 0: not yet; -1: this is none */
extern int	server_http_parse(server_bytes *in, server_http *http);
extern const char *server_http_header(const server_http *http, const char *name);
extern void server_http_reply(server *s, server_bytes *to, int status,
							  const char *body, size_t len, uint32_t crc);

/* server_auth.c */

/* Error type, with the message, or NULL: it is signed as it should be. */
extern const char *server_auth_check(server *s, const server_http *http,
									 char key[SERVER_KEY_SIZE], char *message,
									 size_t size);
extern void server_auth_set(server *s, const char *key, const char *secret,
							const char *token, const char *state);

/* server_fault.c */
extern const char *server_fault_name(server_fault_kind kind);
extern int	server_fault_kind_named(const char *name);	/* -1: none */

/* The one that strikes now, counted, or NULL. */
extern const server_fault *server_fault_strike(server *s, const connection *c,
											   const char *operation);
extern const server_fault *server_fault_at_handshake(server *s);
extern void server_fault_free(server_fault *fault);

/* server_request.c */
extern void server_request(server *s, connection *c, const server_http *http);
extern bool server_admit(void *context, uint64_t item);
extern bool server_allows(void *context, const char *action, const char *resource);
extern void server_count_up(server_count **list, const char *name);

/* server_control.c: the reply to a command, malloc'd; false: it was refused */
extern bool server_control(server *s, const char *body, size_t len, char **reply);
extern void server_allow_all(server *s);

#endif							/* SERVER_H */
