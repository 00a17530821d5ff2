/*-------------------------------------------------------------------------
 *
 * http_request.c
 *	  A request, copied into one block of memory.
 *
 * curl's header list is a public structure that curl only reads, so we build it
 * in that block, instead of two allocations for each header.
 *
 *-------------------------------------------------------------------------
 */
#include "net/net.h"

#include <stdlib.h>
#include <string.h>

/* Without it, curl asks before it sends a large body, and waits. */
static const char no_expect[] = "Expect:";

/* The text behind the one before; NULL stays NULL. */
static char *
add_text(char **text, const char *added)
{
	char	   *start = *text;

	if (added == NULL)
		return NULL;
	strcpy(*text, added);
	*text += strlen(added) + 1;
	return start;
}

http_request *
http_request_new(const char *method, const char *url,
				 const char *const *headers, int header_count,
				 const char *body, size_t len)
{
	size_t		size;
	size_t		nodes_size = (header_count + 1) * sizeof(struct curl_slist);
	size_t		text_size = sizeof(no_expect);
	http_request *request;
	struct curl_slist *node;
	char	   *text;

	for (int i = 0; i < header_count; i++)
		text_size += strlen(headers[i]) + 1;
	if (method != NULL)
		text_size += strlen(method) + strlen(url) + 2;
	size = sizeof(*request) + nodes_size + text_size + len;
	request = malloc(size);
	if (request == NULL)
		return NULL;
	memset(request, 0, sizeof(*request));
	request->size = size;
	node = (struct curl_slist *) (request + 1);
	text = (char *) node + nodes_size;
	request->headers = node;
	for (int i = 0; i <= header_count; i++)
	{
		bool		last = i == header_count;

		node[i].data = add_text(&text, last ? no_expect : headers[i]);
		node[i].next = last ? NULL : &node[i + 1];
	}
	request->method = add_text(&text, method);
	request->url = add_text(&text, url);
	if (len > 0)
		memcpy(text, body, len);
	request->body = text;
	request->len = len;
	return request;
}

void
http_request_free(http_request *request)
{
	/* Headers and body may have secrets. */
	if (request != NULL)
		explicit_bzero(request, request->size);
	free(request);
}
