/*
 * test_endpoint_url.c
 *	  Which endpoint URLs are accepted, and the Host header they give.
 */
#include "../unit.h"
#include "aws/aws.h"

static void
check_host(const char *url, const char *expected)
{
	char		host[300];
	char		error[100] = "";

	if (!aws_endpoint_host(url, host, sizeof(host), error, sizeof(error)))
		fail_msg("%s: %s", url, error);
	assert_string_equal(host, expected);
}

static void
check_refused(const char *url, const char *words)
{
	char		host[300];
	char		error[100] = "";

	if (aws_endpoint_host(url, host, sizeof(host), error, sizeof(error)))
		fail_msg("%s was accepted", url);
	if (strstr(error, words) == NULL)
		fail_msg("%s: \"%s\" does not say \"%s\"", url, error, words);
}

TEST(host_header)
{
	check_host("https://dynamodb.eu-central-1.amazonaws.com",
			   "dynamodb.eu-central-1.amazonaws.com");
	check_host("https://dynamodb.eu-central-1.amazonaws.com/",
			   "dynamodb.eu-central-1.amazonaws.com");
	check_host("HTTP://localhost:8000", "localhost:8000");
	check_host("http://127.0.0.1:8000/", "127.0.0.1:8000");
	check_host("http://[::1]:8000", "[::1]:8000");
	check_host("https://[2001:db8::1]/", "[2001:db8::1]");
	check_host("http://under_score", "under_score");
}

TEST(default_port_is_left_out)
{
	check_host("https://h:443", "h");
	check_host("http://h:80/", "h");
	check_host("http://h:443", "h:443");
	check_host("https://h:80", "h:80");
	check_host("https://h:00443", "h");
	check_host("https://h:65535", "h:65535");
}

TEST(other_forms_are_refused)
{
	check_refused("", "http");
	check_refused("localhost:8000", "http");
	check_refused("ftp://h", "http");
	check_refused("http:/h", "http");
	check_refused("http://", "host");
	check_refused("http:///", "host");
	check_refused("http://:80", "host");
	check_refused("http://.h", "host");
	check_refused("http://[::1", "host");
	check_refused("http://[127.0.0.1]", "host");
	check_refused("http://[fe80::1%25eth0]", "host");
	check_refused("http://h:", "port");
	check_refused("http://h:/", "port");
	check_refused("http://h:0", "port");
	check_refused("http://h:65536", "port");
	check_refused("http://h:4294967376", "port");
	check_refused("http://h:-1", "port");
	check_refused("http://h:80a", "end");
	check_refused("http://h/path", "end");
	check_refused("http://h//", "end");
	check_refused("http://h?query", "end");
	check_refused("http://h#fragment", "end");
	check_refused("http://user@h", "end");
	check_refused("http://user:secret@h", "port");
	check_refused("http://h ", "end");
	check_refused("http://h\r\nX-Header: x", "end");
}

TEST(lengths)
{
	char		url[400] = "http://";
	char		host[8];
	char		error[100];

	memset(url + 7, 'h', 253);
	check_host(url, url + 7);
	url[7 + 253] = 'h';
	check_refused(url, "host");

	assert_true(aws_endpoint_host("http://h:12345", host, 8, error, sizeof(error)));
	assert_false(aws_endpoint_host("http://h:12345", host, 7, error, sizeof(error)));
	assert_non_null(strstr(error, "too long"));
}

TEST(knows_amazons_own_hosts)
{
	assert_true(aws_is_own_endpoint("https://dynamodb.eu-central-1.amazonaws.com"));
	assert_true(aws_is_own_endpoint("HTTPS://dynamodb.cn-north-1.Amazonaws.com.cn/"));
	assert_true(aws_is_own_endpoint("https://dynamodb.eu-west-1.api.aws:443"));
	assert_true(aws_is_own_endpoint("https://vpce-1.dynamodb.us-east-1.vpce.amazonaws.com"));
	assert_false(aws_is_own_endpoint("http://dynamodb.eu-central-1.amazonaws.com"));
	assert_false(aws_is_own_endpoint("https://dynamodb.eu-central-1.amazonaws.com:8443"));
	assert_false(aws_is_own_endpoint("https://dynamodb.amazonaws.com.example"));
	assert_false(aws_is_own_endpoint("https://amazonaws.com"));
	assert_false(aws_is_own_endpoint("https://notamazonaws.com"));
	assert_false(aws_is_own_endpoint("https://127.0.0.1"));
	assert_false(aws_is_own_endpoint("amazonaws.com"));
}

TEST(proxies_are_shown_without_user_and_password)
{
	static const struct
	{
		const char *url;
		const char *shown;
	}			cases[] = {
		{"http://proxy:3128", "http://proxy:3128"},
		{"https://proxy/", "https://proxy"},
		{"http://user:word@proxy:3128/", "http://proxy:3128"},
		{"http://user@[::1]:3128", "http://[::1]:3128"},
		{"http://:word@proxy", "http://proxy"},
		{"http://u%40v:w!$&'()*+,;=:x@proxy", "http://proxy"},
		{"http://@proxy", "http://proxy"},
	};
	static const char *const wrong[] = {
		"", "proxy:3128", "socks5://proxy:1080", "http://", "http://user:word@", "http://u@v@proxy",
		"http://user:wo rd@proxy", "http://user:w\"@proxy", "http://user:%4@proxy", "http://user:%0a@proxy", "http://user:%1F@proxy", "http://u/v@proxy",
		"http://proxy:0", "http://proxy/path", "http://proxy:3128?x", "http://user:w\n@proxy"
	};
	char		shown[64];

	for (size_t i = 0; i < COUNT_OF(cases); i++)
	{
		assert_true(aws_proxy_shown(cases[i].url, shown, sizeof(shown)));
		assert_string_equal(shown, cases[i].shown);
	}
	for (size_t i = 0; i < COUNT_OF(wrong); i++)
	{
		if (aws_proxy_shown(wrong[i], shown, sizeof(shown)))
			fail_msg("%s is shown as %s", wrong[i], shown);
		assert_string_equal(shown, "");
	}
	assert_false(aws_proxy_shown("http://proxy:3128", shown, sizeof("http://proxy:3128") - 1));
}
