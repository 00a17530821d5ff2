/*-------------------------------------------------------------------------
 *
 * endpoint_url.c
 *	  Checks URLs of endpoints and proxies: scheme://host[:port][/].
 *
 * It is stricter than RFC 3986: of the URLs that it accepts, curl finds the same host and port.  So
 * the signed Host header names the server that curl connects to.
 *
 *-------------------------------------------------------------------------
 */
#include "aws/aws.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <stdlib.h>
#include <strings.h>

#define HOST_MAX 253			/* the longest DNS name */

/* The length of "http://" or "https://" at the start of url; 0: neither. */
static size_t
read_scheme(const char *url)
{
	if (strncasecmp(url, "https://", 8) == 0)
		return 8;
	return strncasecmp(url, "http://", 7) == 0 ? 7 : 0;
}

/* The length of "[ADDRESS]" at the start of text, with a valid IPv6 address; 0: there is none. */
static size_t
read_ipv6(const char *text)
{
	char		address[INET6_ADDRSTRLEN];
	struct in6_addr ignored;
	const char *end = strchr(text, ']');
	size_t		len;

	if (end == NULL)
		return 0;
	len = end - text - 1;
	if (len >= sizeof(address))
		return 0;
	memcpy(address, text + 1, len);
	address[len] = '\0';
	return inet_pton(AF_INET6, address, &ignored) == 1 ? len + 2 : 0;
}

bool
aws_endpoint_host(const char *url, char *host, size_t size,
				  char *error, size_t error_size)
{
	size_t		scheme_len = read_scheme(url);
	int			default_port = scheme_len == strlen("https://") ? 443 : 80;
	const char *name = url + scheme_len;
	size_t		host_len = name[0] == '[' ? read_ipv6(name) :
		strspn(name, AWS_LETTERS_DIGITS "-._");
	const char *rest = name + host_len;
	size_t		digits = rest[0] == ':' ? strspn(rest + 1, "0123456789") : 0;
	int			port = rest[0] != ':' ? default_port :
		digits >= 1 && digits <= 5 ? atoi(rest + 1) : 0;
	const char *wrong = NULL;
	int			written;

	if (rest[0] == ':')
		rest += 1 + digits;
	written = port == default_port ?
		snprintf(host, size, "%.*s", (int) host_len, name) :
		snprintf(host, size, "%.*s:%d", (int) host_len, name, port);
	if (scheme_len == 0)
		wrong = "URL does not begin with http:// or https://";
	else if (host_len == 0 || host_len > HOST_MAX || name[0] == '.')
		wrong = "URL has no valid host";
	else if (port < 1 || port > 65535)
		wrong = "URL has no valid port";
	else if (strcmp(rest, "") != 0 && strcmp(rest, "/") != 0)
		wrong = "URL must end after its host and port";
	else if (written < 0 || (size_t) written >= size)
		wrong = "URL's host is too long";
	snprintf(error, error_size, "%s", wrong != NULL ? wrong : "");
	return wrong == NULL;
}

bool
aws_is_local_host(const char *host)
{
	static const char *const names[] = {
		"localhost", "[::1]", "169.254.170.2", "169.254.170.23", "[fd00:ec2::23]"
	};
	char		address[INET_ADDRSTRLEN];
	struct in_addr parsed;

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
	{
		size_t		len = strlen(names[i]);

		/* The end of the text, a port or a path must follow; strchr() finds the final NUL, too. */
		if (strncasecmp(host, names[i], len) == 0 && strchr(":/?", host[len]) != NULL)
			return true;
	}
	if (strcspn(host, ":/?") >= sizeof(address))
		return false;
	snprintf(address, sizeof(address), "%.*s", (int) strcspn(host, ":/?"), host);
	return inet_pton(AF_INET, address, &parsed) == 1 &&
		ntohl(parsed.s_addr) >> 24 == 127;
}

/*
 * The number of characters at the start of text that may be a user and a password, in a URL's
 * encoding.  A control character (%00 to %1F) ends them: curl would silently use no proxy.
 */
static size_t
read_user(const char *text)
{
	size_t		len = 0;

	for (; text[len] != '\0' && text[len] != '@'; len++)
	{
		if (text[len] == '%' && text[len + 1] > '1' && isxdigit((unsigned char) text[len + 1]) &&
			isxdigit((unsigned char) text[len + 2]))
			continue;
		if (!isalnum((unsigned char) text[len]) && strchr("-._~!$&'()*+,;=:", text[len]) == NULL)
			break;
	}
	return len;
}

bool
aws_proxy_shown(const char *proxy, char *shown, size_t size)
{
	size_t		scheme_len = read_scheme(proxy);
	const char *host = proxy + scheme_len;
	size_t		user_len = read_user(host);
	char		parsed[HOST_MAX + sizeof(":65535")];
	char		error[64];
	int			len;

	if (host[user_len] == '@')
		host += user_len + 1;
	len = snprintf(shown, size, "%.*s%s", (int) scheme_len, proxy, host);
	if (len < 0 || (size_t) len >= size ||
		!aws_endpoint_host(shown, parsed, sizeof(parsed), error, sizeof(error)))
	{
		shown[0] = '\0';
		return false;
	}
	shown[scheme_len + strcspn(shown + scheme_len, "/")] = '\0';
	return true;
}
