/*-------------------------------------------------------------------------
 *
 * server_control.c
 *	  Commands to the server: POST /_double, with JSON.
 *
 *	{"command":"fault","kind":KIND,...}	adds a fault; {"id":n}
 *	{"command":"clear"[,"id":n]}		removes it, or all; ends what hangs
 *	{"command":"stats"}					requests, faults, connections; how much is
 *										to happen later
 *	{"command":"credentials","key":K[,"secret":S][,"token":T]
 *		[,"state":"valid|expired|gone"]}	adds or changes one
 *	{"command":"call","target":"PutItem","body":{...}}
 *										unsigned, unharmed, unthrottled, allowed
 *	{"command":"items"[,"table":T]}		the table's items ("lockTable")
 *	{"command":"clock","skew_s":n,"date_error_ms":n}	the server's own clock; by how
 *										much, at most, replies' Dates differ from it
 *	{"command":"capacity","writes_per_s":n}	of each item; 0: no limit
 *
 *	{"command":"deny","action":"dynamodb:PutItem"[,"table":T]}
 *										every request that needs it is refused.  "*" and
 *										"?" are wildcards; T, or of an index: "T/index/I"
 *	{"command":"allow_all"}				ends all denials
 *
 * A fault has "probability" or "count" (else: it strikes until cleared), and
 * may have "key", "operation", "delay_ms", "applied", "error", "answer"
 * ("none", "500" or "close", of late_apply), "refuse" (of partition).
 *
 *-------------------------------------------------------------------------
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server.h"

static const char *
text_of(const cJSON *command, const char *name)
{
	const cJSON *member = cJSON_GetObjectItemCaseSensitive(command, name);

	return cJSON_IsString(member) ? member->valuestring : NULL;
}

static double
number_of(const cJSON *command, const char *name, double otherwise)
{
	const cJSON *member = cJSON_GetObjectItemCaseSensitive(command, name);

	return cJSON_IsNumber(member) ? member->valuedouble : otherwise;
}

static bool
flag_of(const cJSON *command, const char *name)
{
	return cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(command, name));
}

static char *
copy_of(const cJSON *command, const char *name)
{
	const char *text = text_of(command, name);

	return text != NULL ? strdup(text) : NULL;
}

static bool
refuse(cJSON *reply, const char *why)
{
	cJSON_AddStringToObject(reply, "error", why);
	return false;
}

static bool
add_fault(server *s, const cJSON *command, cJSON *reply)
{
	const char *kind = text_of(command, "kind");
	server_fault **end = &s->faults;
	server_fault *fault;

	if (kind == NULL || server_fault_kind_named(kind) < 0)
		return refuse(reply, "no such kind of fault");
	fault = calloc(1, sizeof(server_fault));
	fault->id = ++s->last_fault;
	fault->kind = (server_fault_kind) server_fault_kind_named(kind);
	fault->probability = number_of(command, "probability", 1);
	fault->count = (int) number_of(command, "count", -1);
	fault->key = copy_of(command, "key");
	fault->operation = copy_of(command, "operation");
	fault->delay_us = (int64_t) (number_of(command, "delay_ms", 0) * 1000);
	fault->applied = flag_of(command, "applied");
	fault->error = copy_of(command, "error");
	fault->answer = copy_of(command, "answer");
	fault->refuse = flag_of(command, "refuse");
	while (*end != NULL)
		end = &(*end)->next;
	*end = fault;
	cJSON_AddNumberToObject(reply, "id", fault->id);
	return true;
}

/* What hangs, hangs no longer than the fault: those connections end. */
static void
end_parked(server *s)
{
	connection *next;

	for (connection *c = s->connections; c != NULL; c = next)
	{
		next = c->next;
		if (c->parked)
			server_close(s, c, false);
	}
}

static bool
clear(server *s, const cJSON *command, cJSON *reply)
{
	int			id = (int) number_of(command, "id", 0);
	server_fault **link = &s->faults;
	int			cleared = 0;

	while (*link != NULL)
	{
		server_fault *fault = *link;

		if (id != 0 && fault->id != id)
		{
			link = &fault->next;
			continue;
		}
		*link = fault->next;
		server_fault_free(fault);
		cleared++;
	}
	end_parked(s);
	cJSON_AddNumberToObject(reply, "cleared", cleared);
	return true;
}

static void
add_counts(cJSON *reply, const char *name, const server_count *list)
{
	cJSON	   *counts = cJSON_AddObjectToObject(reply, name);

	for (; list != NULL; list = list->next)
		cJSON_AddNumberToObject(counts, list->name, (double) list->count);
}

static bool
stats(server *s, const cJSON *command, cJSON *reply)
{
	cJSON	   *faults;
	int			later = 0;

	(void) command;
	for (const server_event *event = s->events; event != NULL; event = event->next)
		later++;
	cJSON_AddNumberToObject(reply, "later", later);
	add_counts(reply, "requests", s->requests);
	add_counts(reply, "keys", s->keys);
	add_counts(reply, "refused", s->refused);
	faults = cJSON_AddObjectToObject(reply, "faults");
	for (int i = 0; i < FAULT_KINDS; i++)
	{
		if (s->struck[i] > 0)
			cJSON_AddNumberToObject(faults, server_fault_name((server_fault_kind) i),
									(double) s->struck[i]);
	}
	cJSON_AddNumberToObject(reply, "connections", (double) s->accepted);
	return true;
}

static bool
credentials(server *s, const cJSON *command, cJSON *reply)
{
	const char *key = text_of(command, "key");

	if (key == NULL || strlen(key) >= SERVER_KEY_SIZE)
		return refuse(reply, "no key, or too long");
	server_auth_set(s, key, text_of(command, "secret"), text_of(command, "token"),
					text_of(command, "state"));
	return true;
}

/* The reply is what the client would see, and its status. */
static bool
call(server *s, const cJSON *command, cJSON *reply)
{
	const char *operation = text_of(command, "target");
	const cJSON *body = cJSON_GetObjectItemCaseSensitive(command, "body");
	char		target[SERVER_TARGET_SIZE];
	char	   *text;
	char	   *result;
	size_t		len;
	int			status;

	if (operation == NULL || body == NULL)
		return refuse(reply, "no target or no body");
	snprintf(target, sizeof(target), "DynamoDB_20120810.%s", operation);
	text = cJSON_PrintUnformatted(body);
	s->unlimited = true;
	status = dynamo_double_request(s->d, target, text, strlen(text), &result, &len);
	s->unlimited = false;
	cJSON_AddNumberToObject(reply, "status", status);
	cJSON_AddRawToObject(reply, "reply", result);
	free(text);
	free(result);
	return true;
}

static void
add_item(const cJSON *item, void *context)
{
	cJSON_AddItemToArray(context, cJSON_Duplicate(item, 1));
}

static bool
items(server *s, const cJSON *command, cJSON *reply)
{
	const char *table = text_of(command, "table");

	dynamo_double_items(s->d, table != NULL ? table : "lockTable", add_item,
						cJSON_AddArrayToObject(reply, "items"));
	return true;
}

static bool
clock_command(server *s, const cJSON *command, cJSON *reply)
{
	(void) reply;
	s->skew_s = (int64_t) number_of(command, "skew_s", 0);
	s->date_error_ms = (int64_t) number_of(command, "date_error_ms", 0);
	return true;
}

static bool
capacity(server *s, const cJSON *command, cJSON *reply)
{
	(void) reply;
	s->writes_per_s = number_of(command, "writes_per_s", 0);
	return true;
}

static bool
deny(server *s, const cJSON *command, cJSON *reply)
{
	const char *resource = text_of(command, "table");
	server_denial *denial;

	if (text_of(command, "action") == NULL)
		return refuse(reply, "no action");
	denial = calloc(1, sizeof(server_denial));
	denial->action = copy_of(command, "action");
	denial->resource = strdup(resource != NULL ? resource : "*");
	denial->next = s->denials;
	s->denials = denial;
	return true;
}

void
server_allow_all(server *s)
{
	while (s->denials != NULL)
	{
		server_denial *next = s->denials->next;

		free(s->denials->action);
		free(s->denials->resource);
		free(s->denials);
		s->denials = next;
	}
}

static bool
allow_all(server *s, const cJSON *command, cJSON *reply)
{
	(void) command;
	(void) reply;
	server_allow_all(s);
	return true;
}

bool
server_control(server *s, const char *body, size_t len, char **text)
{
	static const struct
	{
		const char *name;
		bool		(*run) (server *s, const cJSON *command, cJSON *reply);
	}			commands[] = {
		{"fault", add_fault}, {"clear", clear}, {"stats", stats},
		{"credentials", credentials}, {"call", call}, {"items", items},
		{"clock", clock_command}, {"capacity", capacity},
		{"deny", deny}, {"allow_all", allow_all},
	};
	cJSON	   *command = cJSON_ParseWithLength(body, len);
	const char *name = text_of(command, "command");
	cJSON	   *reply = cJSON_CreateObject();
	bool		good = false;
	bool		known = false;

	for (size_t i = 0; name != NULL && i < sizeof(commands) / sizeof(commands[0]); i++)
	{
		if (strcmp(commands[i].name, name) != 0)
			continue;
		known = true;
		good = commands[i].run(s, command, reply);
	}
	if (!known)
		refuse(reply, "no such command");
	*text = cJSON_PrintUnformatted(reply);
	cJSON_Delete(reply);
	cJSON_Delete(command);
	return good;
}
