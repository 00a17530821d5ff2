/*
 * test_http_proxy.c
 *	  Which proxy a request goes through, without TLS; test_http_tls.c has tunnels.
 *
 * 0.0.0.0 leads to this machine, too, but is no name of it that proxies are not used for.
 */
#define BEFORE_ALL forget_variables
#include "http_fixture.h"

static const char *const variables[] = {
	"http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY", "all_proxy", "ALL_PROXY",
	"no_proxy", "NO_PROXY"
};

static int
forget_variables(void **state)
{
	(void) state;
	for (size_t i = 0; i < COUNT_OF(variables); i++)
		unsetenv(variables[i]);
	return 0;
}

/* ---- the choice ---- */

typedef struct choice
{
	const char *url;
	const char *setting;
	const char *variables[3];	/* "name=value" */
	const char *expected;
} choice;

static void
check_choice(const choice *of)
{
	test_client *c = client_start("http", "127.0.0.1", 1);

	for (int i = 0; i < 3 && of->variables[i] != NULL; i++)
		putenv((char *) of->variables[i]);
	c->config.url = of->url;
	c->config.proxy = of->setting;
	client_open(c);
	if (strcmp(http_pool_proxy(c->pool), of->expected) != 0)
		fail_msg("%s, \"%s\", %s: \"%s\", not \"%s\"", of->url,
				 of->setting != NULL ? of->setting : "",
				 of->variables[0] != NULL ? of->variables[0] : "",
				 http_pool_proxy(c->pool), of->expected);
	client_free(c);
	forget_variables(NULL);
}

TEST(who_chooses_the_proxy)
{
	static const char https[] = "https://dynamodb.test";
	static const char http[] = "http://dynamodb.test:8000";
	const choice choices[] = {
		{https, NULL, {NULL}, ""},
		{https, "", {NULL}, ""},
		{https, "http://p:1", {NULL}, "http://p:1"},
		{https, "http://p:1", {"https_proxy=http://other:2"}, "http://p:1"},
		{https, "none", {"https_proxy=http://other:2"}, ""},
		{https, "https://u:w@p:1/", {NULL}, "https://p:1"},
		{https, "http://u@[2001:db8::1]:1", {NULL}, "http://[2001:db8::1]:1"},
		{https, NULL, {"https_proxy=http://p:1", "HTTPS_PROXY=http://q:1", "all_proxy=http://r:1"}, "http://p:1"},
		{https, NULL, {"HTTPS_PROXY=http://q:1", "all_proxy=http://r:1"}, "http://q:1"},
		{https, NULL, {"https_proxy=", "all_proxy=http://r:1", "ALL_PROXY=http://s:1"}, "http://r:1"},
		{https, NULL, {"ALL_PROXY=http://s:1"}, "http://s:1"},
		{https, NULL, {"http_proxy=http://p:1"}, ""},
		{https, NULL, {"https_proxy=u:w@p:1"}, "http://p:1"},
		{http, NULL, {"http_proxy=http://p:1", "all_proxy=http://r:1"}, "http://p:1"},
		{http, NULL, {"HTTP_PROXY=http://p:1"}, ""},
		{http, NULL, {"https_proxy=http://p:1", "HTTPS_PROXY=http://p:1"}, ""},
		{http, NULL, {"ALL_PROXY=http://s:1"}, "http://s:1"},
	};

	for (size_t i = 0; i < COUNT_OF(choices); i++)
		check_choice(&choices[i]);
}

TEST(hosts_without_a_proxy)
{
	static const char proxy[] = "http://p:1";
	const choice choices[] = {
		{"http://localhost:8000", proxy, {NULL}, ""},
		{"http://127.0.0.1", proxy, {NULL}, ""},
		{"https://127.9.8.7:1", proxy, {NULL}, ""},
		{"http://[::1]:8000", proxy, {NULL}, ""},
		{"http://169.254.170.2", proxy, {NULL}, ""},
		{"http://[fd00:ec2::23]", proxy, {NULL}, ""},
		{"http://127.0.0.1.test", proxy, {NULL}, proxy},
		{"https://a.b.test", proxy, {"no_proxy=other.test, b.test"}, ""},
		{"https://a.b.test", proxy, {"NO_PROXY=.test"}, ""},
		{"https://a.b.test", proxy, {"no_proxy=*"}, ""},
		{"https://a.b.test", proxy, {"no_proxy=x.test", "NO_PROXY=*"}, proxy},
		{"https://ab.test", proxy, {"no_proxy=b.test"}, proxy},
		{"https://10.1.2.3", proxy, {"no_proxy=10.0.0.0/8"}, ""},
		{"https://11.1.2.3", proxy, {"no_proxy=10.0.0.0/8"}, proxy},
		{"https://10.1.2.3", NULL, {"https_proxy=http://p:1", "no_proxy=10.1.2.3"}, ""},
	};

	for (size_t i = 0; i < COUNT_OF(choices); i++)
		check_choice(&choices[i]);
}

/* ---- requests ---- */

static void
serve_request_itself(test_connection *c)
{
	while (connection_read_request(c))
		connection_reply(c, 200, "", c->request);
}

static void
set_proxy(test_client *c, const char *user, int port)
{
	char		proxy[100];

	snprintf(proxy, sizeof(proxy), "http://%s127.0.0.1:%d", user, port);
	c->config.proxy = proxy;
	assert_true(http_pool_reconfigure(c->pool, &c->config));
	c->config.proxy = NULL;
}

#define PROXY_TEST(name, script) \
	SERVER_TEST(name, server_start(script, NULL), client_start("http", "0.0.0.0", s->port))

/* By http, the proxy gets the request itself. */
PROXY_TEST(plain_request, serve_request_itself)
{
	char		line[64];

	snprintf(line, sizeof(line), "POST http://0.0.0.0:%d/ HTTP/1.1\r\n", s->port);
	client_ask(c, "direct");
	assert_non_null(strstr(c->body, "POST / HTTP/1.1\r\n"));
	set_proxy(c, "user:p%40ss@", s->port);
	client_ask(c, "one");
	assert_non_null(strstr(c->body, line));
	assert_non_null(strstr(c->body, "\r\nProxy-Authorization: Basic dXNlcjpwQHNz\r\n"));
	c->config.proxy = "none";
	assert_true(http_pool_reconfigure(c->pool, &c->config));
	client_ask(c, "two");
	assert_non_null(strstr(c->body, "POST / HTTP/1.1\r\n"));
	assert_null(strstr(c->body, "Proxy-Authorization"));
}

PROXY_TEST(each_url_for_itself, serve_request_itself)
{
	const char *const headers[] = {"X-Mine: yes"};
	char		url[64];

	snprintf(url, sizeof(url), "http://0.0.0.0:%d/path", s->port);
	c->config.url = NULL;
	client_open(c);
	set_proxy(c, "", s->port);
	for (int i = 0; i < 4; i++)
	{
		assert_true(http_pool_send(c->pool, "GET", url, i % 2, headers, 1, "", 0,
								   PATIENCE_MS, client_done, c));
		client_run_until(c, i + 1);
		assert_ptr_equal(strstr(c->body, i % 2 ? "GET /path" : "GET http://0.0.0.0"), c->body);
	}
}

/* It refuses what it should pass on; that one is not sent again at once. */
static void
serve_407(test_connection *c)
{
	while (connection_read_request(c))
		connection_reply(c, c->server->requests == 2 ? 407 : 200,
						 "Proxy-Authenticate: Basic realm=\"x\"\r\n", "ok");
}

PROXY_TEST(user_that_the_proxy_refuses, serve_407)
{
	set_proxy(c, "user:pAssw0rd@", s->port);
	client_ask(c, "one");
	assert_replied(c, 200, "ok");
	for (int i = 0; i < 3; i++)
	{
		client_ask(c, "two");
		assert_failed(c, HTTP_NOT_SENT, "proxy", "HTTP status 407, user and password are missing");
	}
	set_proxy(c, "user:other@", s->port);
	client_ask(c, "three");
	assert_replied(c, 200, "ok");
	s->expected_requests = 3;
}

PROXY_TEST(proxy_out_of_reach, serve_echo)
{
	int			port;
	int			closed = bind_loopback(&port);

	set_proxy(c, "user:pAssw0rd@", port);
	for (int i = 0; i < 2; i++)
	{
		client_ask(c, "one");
		assert_failed(c, HTTP_NOT_SENT, "proxy", "refused");
	}
	c->config.proxy = "http://user:pAssw0rd@proxy.invalid:1";
	assert_true(http_pool_reconfigure(c->pool, &c->config));
	client_ask(c, "two");
	assert_failed(c, HTTP_NOT_SENT, "proxy", "resolve proxy");
	assert_null(strstr(c->reply.error, "pAssw0rd"));
	close(closed);
}

/* curl's own messages would quote them. */
PROXY_TEST(unusable_variables_are_not_quoted, serve_echo)
{
	static const char *const values[] = {
		"socks5://u:pAssw0rd@127.0.0.1:1", "http://u:pAssw0rd@", "http://u:pAss w0rd@127.0.0.1:1",
		"http://u:pAssw0rd@127.0.0.1:99999", "http://u:pAssw0rd@@127.0.0.1:1",
		"http://u:pAssw0rd@127.0.0.1:1/path", "http://u:pAssw0rd%0@127.0.0.1:1",
		"u:pAssw0rd", "http://u:pAssw0rd"
	};

	for (size_t i = 0; i < COUNT_OF(values); i++)
	{
		setenv("all_proxy", values[i], 1);
		client_open(c);
		assert_string_equal(http_pool_proxy(c->pool), "");
		client_ask(c, "one");
		assert_failed(c, HTTP_NOT_SENT, "proxy", "\"all_proxy\" is not the URL of an HTTP proxy");
	}
	forget_variables(NULL);
}

/* Such a user makes curl go without a proxy. */
PROXY_TEST(users_that_curl_cannot_read, serve_echo)
{
	set_proxy(c, "u:pAssw0rd%0A@", s->port);
	client_ask(c, "one");
	assert_failed(c, HTTP_NOT_SENT, "proxy", "\"proxy\" is not the URL of an HTTP proxy");
	s->expected_requests = 0;
}

/* ... and such ones do not. */
PROXY_TEST(users_of_all_kinds, serve_request_itself)
{
	static const char *const users[] = {"u:%20@", ":p@", "u@", "@", "u:@", "%7F:%ff@", "u:!$&'()*+,;=:p@"};

	for (size_t i = 0; i < COUNT_OF(users); i++)
	{
		set_proxy(c, users[i], s->port);
		client_ask(c, "one");
		assert_ptr_equal(strstr(c->body, "POST http://0.0.0.0:"), c->body);
	}
}
