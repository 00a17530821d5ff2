/*-------------------------------------------------------------------------
 *
 * fuzz_endpoint_url.c
 *	  Any text as an endpoint's URL: no crash; and the Host header of what is accepted
 *	  is a part of the URL, has nothing that a header or a URL could break at, and is
 *	  accepted as a URL with the same Host header.
 *
 * The first byte chooses how much room there is.
 *
 *-------------------------------------------------------------------------
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "aws/aws.h"

int			LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static void
check(bool promise)
{
	if (!promise)
		abort();
}

int
LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	size_t		room;
	char	   *url;
	char	   *host;
	char		error[80] = "";

	if (size == 0)
		return 0;
	room = 1 + bytes[0] * 2;
	url = malloc(size);
	memcpy(url, bytes + 1, size - 1);
	url[size - 1] = '\0';
	host = malloc(room);
	if (aws_endpoint_host(url, host, room, error, sizeof(error)))
	{
		size_t		len = strnlen(host, room);
		char		again[600];
		char		same[600];

		check(len > 0 && len < room && strstr(url, "://") != NULL);
		check(strspn(host, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
					 "0123456789-._:[]") == len);
		check(strncmp(strstr(url, "://") + 3, host, strcspn(host, ":")) == 0);
		snprintf(again, sizeof(again), "%.*s%s", (int) (strstr(url, "://") + 3 - url), url, host);
		check(aws_endpoint_host(again, same, sizeof(same), error, sizeof(error)));
		check(strcmp(same, host) == 0);
		check(aws_is_own_endpoint(again) == aws_is_own_endpoint(url));
	}
	else
		check(error[0] != '\0');
	free(host);
	free(url);
	return 0;
}
