/*-------------------------------------------------------------------------
 *
 * worker_sign.c
 *	  The headers of a request to DynamoDB, its signature among them.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "aws/aws.h"
#include "shared/segment.h"
#include "shared/version.h"
#include "worker/worker.h"

#define SERVICE "dynamodb"

static sigv4_key signing_key;

int
WorkerSign(dynamo_op op, const char *body, const char *headers[WORKER_HEADERS_MAX])
{
	const aws_credentials *credentials = WorkerCredentials();
	char		date[SIGV4_DATE_SIZE];
	char		authorization[1024];
	static char lines[WORKER_HEADERS_MAX - 1][sizeof(credentials->session_token) + 64];
	sigv4_header names[] = {
		{"content-type", "application/x-amz-json-1.0"},
		{"host", segment->place.host},
		{"x-amz-date", date},
		{"x-amz-target", dynamo_target(op)},
		{"x-amz-security-token", credentials->session_token},
	};
	int			count = credentials->session_token[0] != '\0' ? 5 : 4;
	sigv4_request request = {
		.method = "POST",
		.path = "/",
		.query = "",
		.headers = names,
		.header_count = count,
		.body = body,
		.body_len = strlen(body),
		.region = segment->place.region,
		.service = SERVICE,
		.access_key_id = credentials->access_key_id,
		.secret_access_key = credentials->secret_access_key,
		.amz_date = date,
	};

	sigv4_amz_date(WorkerEpochLikely(SegmentNow()) / USECS_PER_SEC, date);
	if (!sigv4_sign(&request, &signing_key, authorization, sizeof(authorization)))
		return 0;
	for (int i = 0; i < count; i++)
	{
		snprintf(lines[i], sizeof(lines[i]), "%s: %s", names[i].name, names[i].value);
		headers[i] = lines[i];
	}
	snprintf(lines[count], sizeof(lines[count]), "Authorization: %s", authorization);
	headers[count] = lines[count];
	headers[count + 1] = "User-Agent: ddblock/" DDBLOCK_VERSION;
	return count + 2;
}
