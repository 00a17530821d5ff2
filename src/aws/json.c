/*-------------------------------------------------------------------------
 *
 * json.c
 *	  Credentials in JSON.
 *
 *-------------------------------------------------------------------------
 */
#include "aws/aws.h"

#include <openssl/crypto.h>
#include <string.h>


const char *const aws_role_names[4] = {
	"AccessKeyId", "SecretAccessKey", "Token", "Expiration"
};

const char *
aws_json_text(const cJSON *object, const char *name)
{
	return cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(object, name));
}

bool
aws_take_json(aws_fetch *fetch, const char *asked, const cJSON *object,
			  const char *const names[4])
{
	if (!cJSON_IsObject(object))
		return aws_fetch_fail(fetch, "%s: the reply is not a JSON object", asked);
	return aws_take_credentials(fetch, asked, aws_json_text(object, names[0]),
								aws_json_text(object, names[1]),
								aws_json_text(object, names[2]),
								aws_json_text(object, names[3]));
}

/* cJSON limits how deep it is. */
static void
wipe(cJSON *json)
{
	for (; json != NULL; json = json->next)
	{
		if (json->valuestring != NULL)
			OPENSSL_cleanse(json->valuestring, strlen(json->valuestring));
		wipe(json->child);
	}
}

void
aws_json_free(cJSON *json)
{
	wipe(json);
	cJSON_Delete(json);
}
