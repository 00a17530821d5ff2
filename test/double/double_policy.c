/*-------------------------------------------------------------------------
 *
 * double_policy.c
 *	  IAM policies: may a request do what it wants to?
 *
 *-------------------------------------------------------------------------
 */
#include <stdio.h>
#include <string.h>

#include "double_private.h"

#define ACTION_SIZE 64
#define RESOURCE_SIZE 640		/* two names, as long as they may be */
#define USER "arn:aws:sts::123456789012:assumed-role/tester/i-0"
#define ARN "arn:aws:dynamodb:eu-central-1:123456789012:table/"

void
dynamo_double_authorize(dynamo_double *d,
						bool (*allows) (void *context, const char *action,
										const char *resource),
						void *context)
{
	d->allows = allows;
	d->allows_context = context;
}

bool
double_allowed(double_call *call, const char *operation, const char *table, const char *index)
{
	dynamo_double *d = call->d;
	char		action[ACTION_SIZE];
	char		resource[RESOURCE_SIZE];

	snprintf(action, sizeof(action), "dynamodb:%s", operation);
	snprintf(resource, sizeof(resource), "%s%s%s", table, index != NULL ? "/index/" : "",
			 index != NULL ? index : "");
	return d->allows == NULL || d->allows(d->allows_context, action, resource) ||
		double_fail(call, "AccessDeniedException", "User: " USER " is not authorized to perform:"
					" %s on resource: " ARN "%s because no identity-based policy allows the %s"
					" action", action, resource, action);
}

/* What has no table has parts that have one each. */
bool
double_request_allowed(double_call *call, const char *operation, const cJSON *request)
{
	const char *table =
		cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(request, "TableName"));
	const char *index =
		cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(request, "IndexName"));

	return table == NULL || double_allowed(call, operation, table, index);
}
