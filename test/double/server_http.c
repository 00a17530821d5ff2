/*-------------------------------------------------------------------------
 *
 * server_http.c
 *	  HTTP/1.1: requests with a Content-Length, replies as DynamoDB's.
 *
 *-------------------------------------------------------------------------
 */
#define _GNU_SOURCE				/* memmem() */

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "server.h"

#define HEAD_MAX 65536
#define BODY_MAX (16 * 1024 * 1024)
#define ID_LENGTH 52			/* of x-amzn-RequestId */

const char *
server_http_header(const server_http *http, const char *name)
{
	for (int i = 0; i < http->header_count; i++)
	{
		if (strcmp(http->headers[i].name, name) == 0)
			return http->headers[i].value;
	}
	return NULL;
}

/* Cuts off the spaces at both ends. */
static char *
trim(char *text)
{
	char	   *end = text + strlen(text);

	while (end > text && (end[-1] == ' ' || end[-1] == '\t'))
		*--end = '\0';
	return text + strspn(text, " \t");
}

static bool
parse_header(char *line, server_http *http)
{
	char	   *colon = strchr(line, ':');
	server_header *header = &http->headers[http->header_count];

	if (colon == NULL || http->header_count == SERVER_HEADERS_MAX)
		return false;
	*colon = '\0';
	for (char *c = line; *c != '\0'; c++)
		*c = (char) tolower((unsigned char) *c);
	header->name = line;
	header->value = trim(colon + 1);
	http->header_count++;
	return true;
}

/* METHOD PATH?QUERY HTTP/1.1 */
static bool
parse_request_line(char *line, server_http *http)
{
	char	   *rest;
	char	   *question;

	http->method = strtok_r(line, " ", &rest);
	http->path = strtok_r(NULL, " ", &rest);
	if (http->path == NULL || strncmp(rest, "HTTP/1.", 7) != 0)
		return false;
	question = strchr(http->path, '?');
	http->query = question == NULL ? "" : question + 1;
	if (question != NULL)
		*question = '\0';
	return true;
}

/* The head lies in the buffer with a NUL in the place of its last line's end. */
static bool
parse_head(char *head, server_http *http)
{
	char	   *rest;
	char	   *line = strtok_r(head, "\r\n", &rest);

	if (line == NULL || !parse_request_line(line, http))
		return false;
	while ((line = strtok_r(NULL, "\r\n", &rest)) != NULL)
	{
		if (!parse_header(line, http))
			return false;
	}
	return true;
}

/*
 * The length of the body, read without touching the head: that is taken apart
 * only when all has come.
 */
static long
content_length(const char *head, size_t len)
{
	static const char name[] = "\r\ncontent-length:";

	for (const char *at = head; at + sizeof(name) < head + len; at++)
	{
		if (strncasecmp(at, name, strlen(name)) == 0)
			return atol(at + strlen(name));
	}
	return 0;
}

int
server_http_parse(server_bytes *in, server_http *http)
{
	char	   *end;
	long		body;
	size_t		head;

	if (in->len == 0)
		return 0;
	end = memmem(in->data, in->len, "\r\n\r\n", 4);
	if (end == NULL)
		return in->len > HEAD_MAX ? -1 : 0;
	head = (size_t) (end - in->data) + 4;
	body = content_length(in->data, head);
	if (body < 0 || body > BODY_MAX)
		return -1;
	if (in->len < head + (size_t) body)
		return 0;

	memset(http, 0, sizeof(*http));
	http->body = in->data + head;
	http->body_len = (size_t) body;
	http->total = head + (size_t) body;
	*end = '\0';
	return parse_head(in->data, http) ? 1 : -1;
}

static const char *
reason_of(int status)
{
	switch (status)
	{
		case 200:
			return "OK";
		case 400:
			return "Bad Request";
		case 404:
			return "Not Found";
		case 500:
			return "Internal Server Error";
		default:
			return "Service Unavailable";
	}
}

static void
make_id(server *s, char id[ID_LENGTH + 1])
{
	static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";

	for (int i = 0; i < ID_LENGTH; i++)
		id[i] = alphabet[server_random(s) % (sizeof(alphabet) - 1)];
	id[ID_LENGTH] = '\0';
}

/* Front ends differ: each reply comes from any of them. */
static time_t
date_of_reply(server *s)
{
	struct timespec now;
	int64_t		ms;

	clock_gettime(CLOCK_REALTIME, &now);
	ms = (now.tv_sec + s->skew_s) * INT64_C(1000) + now.tv_nsec / 1000000;
	if (s->date_error_ms > 0)
		ms += (int64_t) (server_random(s) % (uint64_t) (2 * s->date_error_ms + 1)) - s->date_error_ms;
	return ms / 1000;
}

void
server_http_reply(server *s, server_bytes *to, int status, const char *body, size_t len,
				  uint32_t crc)
{
	char		head[512];
	char		date[64];
	char		id[ID_LENGTH + 1];
	time_t		now = date_of_reply(s);
	struct tm	utc;
	int			head_len;

	gmtime_r(&now, &utc);
	strftime(date, sizeof(date), "%a, %d %b %Y %H:%M:%S GMT", &utc);
	make_id(s, id);
	head_len = snprintf(head, sizeof(head),
						"HTTP/1.1 %d %s\r\nServer: Server\r\nDate: %s\r\n"
						"Content-Type: application/x-amz-json-1.0\r\n"
						"Content-Length: %zu\r\nConnection: keep-alive\r\n"
						"x-amzn-RequestId: %s\r\nx-amz-crc32: %lu\r\n\r\n",
						status, reason_of(status), date, len, id, (unsigned long) crc);
	server_append(to, head, (size_t) head_len);
	server_append(to, body, len);
}
