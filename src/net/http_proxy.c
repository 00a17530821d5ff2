/*-------------------------------------------------------------------------
 *
 * http_proxy.c
 *	  Which proxy a request goes through.
 *
 * curl finds that out by itself, but does not tell; we must know whose failure it was.  So
 * the environment's variables are read here, as curl does.  Whether no_proxy excepts a
 * host, curl is asked.  And curl's own messages quote a proxy that it cannot read, with its
 * password: it never gets such a one.
 *
 *-------------------------------------------------------------------------
 */
#include "net/net.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "aws/aws.h"

static int
refuse_to_resolve(void *resolver, void *reserved, void *arg)
{
	bool	   *direct = arg;

	(void) resolver;
	(void) reserved;
	*direct = true;
	return 1;
}

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
 * Does no_proxy name the URL's host?  curl is asked by a transfer that gets no further: with
 * a proxy, it fails at the scheme; without one, when it looks the host up, or connects.
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
	/* HTTP_PROXY is not among them: in a CGI script, a client can set it. */
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
	/* curl takes a variable's value without a scheme for http://. */
	bare = variable != NULL && strstr(value, "://") == NULL;
	len = snprintf(proxy->url, sizeof(proxy->url), "%s%s", bare ? "http://" : "", value);
	if (len < (int) sizeof(proxy->url) &&
		aws_proxy_shown(proxy->url, proxy->shown, sizeof(proxy->shown)))
		return;
	proxy->url[0] = '\0';
	proxy->unusable = variable != NULL ? variable : "proxy";
}
