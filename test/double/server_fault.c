/*-------------------------------------------------------------------------
 *
 * server_fault.c
 *	  Which fault strikes which request.
 *
 *-------------------------------------------------------------------------
 */
#include <stdlib.h>
#include <string.h>

#include "server.h"

static const char *const names[FAULT_KINDS] = {
	"drop", "lose_reply", "duplicate", "late_apply", "late_reply", "reset", "http_500",
	"http_503", "throttle", "conflict", "truncate", "corrupt", "wrong_crc", "partition",
	"slow_tls", "expired", "empty"
};

const char *
server_fault_name(server_fault_kind kind)
{
	return names[kind];
}

int
server_fault_kind_named(const char *name)
{
	for (int i = 0; i < FAULT_KINDS; i++)
	{
		if (strcmp(names[i], name) == 0)
			return i;
	}
	return -1;
}

/* Lots are drawn only for a request that the fault could strike. */
static bool
strikes(server *s, const server_fault *fault)
{
	if (fault->count == 0)
		return false;
	return fault->probability >= 1 ||
		(double) (server_random(s) >> 11) / 9007199254740992.0 < fault->probability;
}

/* A reset is for connections that have been used before. */
static bool
matches(const server_fault *fault, const connection *c, const char *operation)
{
	if (fault->kind == FAULT_SLOW_TLS ||
		(fault->kind == FAULT_RESET && c->served == 0))
		return false;
	return (fault->key == NULL || strcmp(fault->key, c->key) == 0) &&
		(fault->operation == NULL || strcmp(fault->operation, operation) == 0);
}

static const server_fault *
struck(server *s, server_fault *fault)
{
	if (fault->count > 0)
		fault->count--;
	s->struck[fault->kind]++;
	return fault;
}

/* The first one in the order in which they were given. */
const server_fault *
server_fault_strike(server *s, const connection *c, const char *operation)
{
	for (server_fault *fault = s->faults; fault != NULL; fault = fault->next)
	{
		if (matches(fault, c, operation) && strikes(s, fault))
			return struck(s, fault);
	}
	return NULL;
}

const server_fault *
server_fault_at_handshake(server *s)
{
	for (server_fault *fault = s->faults; fault != NULL; fault = fault->next)
	{
		if (fault->kind == FAULT_SLOW_TLS && strikes(s, fault))
			return struck(s, fault);
	}
	return NULL;
}

void
server_fault_free(server_fault *fault)
{
	free(fault->key);
	free(fault->operation);
	free(fault->error);
	free(fault->answer);
	free(fault);
}
