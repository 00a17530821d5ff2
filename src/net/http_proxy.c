/*-------------------------------------------------------------------------
 *
 * http_proxy.c
 *	  Finds out which proxy a request goes through.
 *
 * curl can find that out by itself, but does not tell us, and we must know whether a failure is the
 * proxy's or the server's.  So this file reads the environment's variables as curl does.  It asks
 * curl only whether no_proxy names a host.
 *
 * curl's messages quote a proxy's URL that curl cannot read, with the password in it.  So curl gets
 * only URLs that aws_proxy_shown() has accepted.
 *
 *-------------------------------------------------------------------------
 */
#include "net/net.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "aws/aws.h"

/* curl calls this before it looks up the host's name: it uses no proxy. */
static int
refuse_to_resolve(void *resolver, void *reserved, void *arg)
{
	bool	   *direct = arg;

	(void) resolver;
	(void) reserved;
	*direct = true;
	return 1;
}

/* curl calls this before it connects to the host's address: it uses no proxy. */
static curl_socket_t
refuse_to_open(void *arg, curlsocktype purpose, struct curl_sockaddr *address)
{
	bool	   *direct = arg;

	(void) purpose;
	(void) address;
	*direct = true;
	return CURL_SOCKET_BAD;
}

/*
 * Does no_proxy name the URL's host?  A transfer with an unusable proxy tells, and always fails
 * before it sends anything:
 *
 * - If no_proxy does not name the host, curl uses the proxy, and fails because of its scheme.
 * - If no_proxy names the host, curl ignores the proxy.  It fails when it looks the host up, or if
 *   the host is an address, when it connects.
 */
static bool
is_excepted(const char *url)
{
	CURL	   *easy = curl_easy_init();
	bool		direct = false;

	if (easy == NULL)
		return false;
	curl_easy_setopt(easy, CURLOPT_URL, url);
	curl_easy_setopt(easy, CURLOPT_PROXY, HTTP_PROXY_UNUSABLE);
	curl_easy_setopt(easy, CURLOPT_RESOLVER_START_FUNCTION, refuse_to_resolve);
	curl_easy_setopt(easy, CURLOPT_RESOLVER_START_DATA, &direct);
	curl_easy_setopt(easy, CURLOPT_OPENSOCKETFUNCTION, refuse_to_open);
	curl_easy_setopt(easy, CURLOPT_OPENSOCKETDATA, &direct);
	curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
	(void) curl_easy_perform(easy);
	curl_easy_cleanup(easy);
	return direct;
}

void
http_proxy_find(http_proxy *proxy, const char *setting, const char *url)
{
	/* As in curl, HTTP_PROXY is not among them: in a CGI script, a client can set it. */
	static const char *const names[2][4] = {
		{"http_proxy", "all_proxy", "ALL_PROXY"},
		{"https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"}
	};
	const char *value = setting;
	const char *variable = NULL;
	const char *host = strstr(url, "://");
	bool		bare;
	int			len;

	memset(proxy, 0, sizeof(*proxy));
	if (setting == NULL || setting[0] == '\0')
	{
		bool		secure = strncasecmp(url, "https:", 6) == 0;

		for (int i = 0; i < 4 && names[secure][i] != NULL && variable == NULL; i++)
		{
			value = getenv(names[secure][i]);
			if (value != NULL && value[0] != '\0')
				variable = names[secure][i];
		}
		if (variable == NULL)
			return;
	}
	else if (strcmp(setting, "none") == 0)
		return;
	if ((host != NULL && aws_is_local_host(host + 3)) || is_excepted(url))
		return;
	/* In a variable, the scheme may be missing: then curl assumes http://. */
	bare = variable != NULL && strstr(value, "://") == NULL;
	len = snprintf(proxy->url, sizeof(proxy->url), "%s%s", bare ? "http://" : "", value);
	if (len < (int) sizeof(proxy->url) &&
		aws_proxy_shown(proxy->url, proxy->shown, sizeof(proxy->shown)))
		return;
	proxy->url[0] = '\0';
	proxy->unusable = variable != NULL ? variable : "proxy";
}
