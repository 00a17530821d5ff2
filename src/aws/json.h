/*-------------------------------------------------------------------------
 *
 * json.h
 *	  Credentials in JSON.
 *
 * Private to src/aws.
 *
 *-------------------------------------------------------------------------
 */
#ifndef DDBLOCK_AWS_JSON_H
#define DDBLOCK_AWS_JSON_H

#include <cjson/cJSON.h>

#include "aws/fetch.h"

/* A string of the object, or NULL. */
extern const char *aws_json_text(const cJSON *object, const char *name);

/*
 * Takes the credentials whose parts have these names: key, secret, session token,
 * time of expiry.
 */
extern bool aws_take_json(aws_fetch *fetch, const char *asked, const cJSON *object,
						  const char *const names[4]);

/* As the machine's or container's own service names them. */
extern const char *const aws_role_names[4];

/* Overwrites all strings. */
extern void aws_json_free(cJSON *json);

#endif							/* DDBLOCK_AWS_JSON_H */
