/*
 * test_http_pool.c
 *	  The HTTP pool without failures: what is sent, what comes back, which
 *	  connections are used, and in which order.
 *
 * This program has its own clock_gettime(), which libcurl calls, too: connections
 * become idle without waiting.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE				/* memmem() */
#endif

#include "http_fixture.h"

#include <sys/syscall.h>
#include <time.h>

#include "net/net.h"

static int	seconds_ahead;

int
clock_gettime(clockid_t clock, struct timespec *now)
{
	long		result = syscall(SYS_clock_gettime, clock, now);

	now->tv_sec += __atomic_load_n(&seconds_ahead, __ATOMIC_SEQ_CST);
	return (int) result;
}

/* ---- requests ---- */

/* Replies with the request itself. */
static void
serve_mirror(test_connection *c)
{
	while (connection_read_request(c))
		connection_reply(c, 200, "", c->request);
}

HTTP_TEST(request_is_sent_as_given, serve_mirror)
{
	char		header[] = "X-Mine: yes";
	const char *headers[] = {"Host: example.test", header};
	char		body[] = "{\"a\":1}";

	assert_true(http_pool_post(c->pool, headers, 2, body, strlen(body),
							   PATIENCE_MS, client_done, c));
	/* Everything was copied. */
	memset(header, 'z', sizeof(header));
	memset(body, 'z', sizeof(body));
	client_run_until(c, 1);
	assert_int_equal(c->reply.outcome, HTTP_REPLIED);
	assert_non_null(strstr(c->body, "POST / HTTP/1.1\r\n"));
	assert_non_null(strstr(c->body, "\r\nHost: example.test\r\n"));
	assert_non_null(strstr(c->body, "\r\nX-Mine: yes\r\n"));
	assert_non_null(strstr(c->body, "\r\nContent-Length: 7\r\n"));
	assert_non_null(strstr(c->body, "\r\n\r\n{\"a\":1}"));
	assert_null(strstr(c->body, "Transfer-Encoding"));
	assert_null(strstr(c->body, "Accept-Encoding"));
}

HTTP_TEST(other_methods_and_urls_in_any_order, serve_mirror)
{
	static const char *const methods[] = {"PUT", "GET", "POST", "GET", "PUT", "POST"};
	const char *headers[] = {"X-Mine: yes"};
	char		url[64];
	char		line[64];

	for (int i = 0; i < (int) COUNT_OF(methods); i++)
	{
		const char *body = strcmp(methods[i], "POST") == 0 ? "a=1" : "";

		snprintf(url, sizeof(url), "http://127.0.0.1:%d/path/%d?q=1", s->port, i);
		snprintf(line, sizeof(line), "%s /path/%d?q=1 HTTP/1.1\r\n", methods[i], i);
		assert_true(http_pool_send(c->pool, methods[i], url, false, headers, 1, body,
								   strlen(body), PATIENCE_MS, client_done, c));
		memset(url, 'z', sizeof(url) - 1);
		client_run_until(c, i + 1);
		assert_int_equal(c->reply.outcome, HTTP_REPLIED);
		assert_ptr_equal(strstr(c->body, line), c->body);
		assert_non_null(strstr(c->body, "\r\nX-Mine: yes\r\n"));
		assert_string_equal(strstr(c->body, "\r\n\r\n") + 4, body);
		assert_int_equal(strstr(c->body, "Content-Length") != NULL,
						 strcmp(methods[i], "GET") != 0);
	}
	assert_int_equal(s->connection_count, 1);
}

/* curl would ask before it sends more than 1 MB; 64 kB is sent in pieces. */
static void
serve_length(test_connection *c)
{
	while (connection_read_request(c))
	{
		char		text[64];

		snprintf(text, sizeof(text), "%zu%s", c->len - c->body_at,
				 strstr(c->request, "Expect") != NULL ? " Expect" : "");
		connection_reply(c, 200, "", text);
	}
}

HTTP_TEST(bodies_of_all_sizes, serve_length)
{
	static const size_t sizes[] = {0, 1, 16383, 16384, 16385, 65536, 1100000};
	char	   *body = malloc(1100000);

	memset(body, 'x', 1100000);
	for (size_t i = 0; i < COUNT_OF(sizes); i++)
	{
		char		expected[64];

		client_post_for(c, body, sizes[i], PATIENCE_MS);
		client_run_until(c, c->answers + 1);
		snprintf(expected, sizeof(expected), "%zu", sizes[i]);
		assert_replied(c, 200, expected);
	}
	assert_int_equal(server_connections(s), 1);
	free(body);
}

/* ---- replies ---- */

static void
serve_headers(test_connection *c)
{
	connection_read_request(c);
	connection_reply(c, 200,
					 "DATE: Tue, 15 Nov 1994 08:12:31 GMT\r\n"
					 "x-amz-CRC32:  2745614147 \r\n"
					 "X-AMZN-ErrorType: a#B:http://c/ \r\n", "{}");
	connection_read_request(c);
	connection_reply(c, 200, "Date: yesterday\r\n"
					 "x-amz-crc32: 12345678901234567890\r\n"
					 "x-amzn-ErrorType: \xe4\r\n", "{}");
	connection_outwait(c);
}

HTTP_TEST(checksum_and_date, serve_headers)
{
	client_ask(c, "one");
	assert_replied(c, 200, "{}");
	assert_int_equal(c->reply.len, 2);
	assert_string_equal(c->reply.crc32, "2745614147");
	assert_string_equal(c->reply.error_type, "a#B:http://c/");
	assert_int_equal(c->reply.date_s, 784887151);
	assert_true(c->reply.elapsed_us > 0);

	/* Invalid values count as absent; nothing is left from the reply before. */
	client_ask(c, "two");
	assert_replied(c, 200, "{}");
	assert_string_equal(c->reply.crc32, "");
	assert_string_equal(c->reply.error_type, "");
	assert_int_equal(c->reply.date_s, 0);
}

static void
serve_statuses(test_connection *c)
{
	connection_read_request(c);
	connection_reply(c, 500, "", "broken");
	connection_read_request(c);
	connection_reply(c, 302, "Location: /elsewhere\r\n", "moved");
	connection_read_request(c);
	connection_reply(c, 400, "", "");
	connection_outwait(c);
}

HTTP_TEST(every_status_is_a_reply, serve_statuses)
{
	client_ask(c, "one");
	assert_replied(c, 500, "broken");
	client_ask(c, "two");
	assert_replied(c, 302, "moved");
	client_ask(c, "three");
	assert_replied(c, 400, "");
	assert_int_equal(server_requests(s), 3);
}

static void
serve_pieces(test_connection *c)
{
	static const char chunked[] = "HTTP/1.1 200 OK\r\n"
	"Transfer-Encoding: chunked\r\n\r\n"
	"3\r\nabc\r\n4\r\ndefg\r\n0\r\n\r\n";
	static const char plain[] = "HTTP/1.1 100 Continue\r\n"
	"Date: Tue, 15 Nov 1994 08:12:31 GMT\r\n\r\n"
	"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";

	connection_read_request(c);
	for (const char *p = chunked; *p != '\0'; p++)
		connection_write(c, p, 1);
	connection_read_request(c);
	for (const char *p = plain; *p != '\0'; p++)
		connection_write(c, p, 1);
	connection_outwait(c);
}

HTTP_TEST(reply_in_single_bytes, serve_pieces)
{
	client_ask(c, "one");
	assert_replied(c, 200, "abcdefg");
	/* The Date of an interim reply is ignored. */
	client_ask(c, "two");
	assert_replied(c, 200, "hello");
	assert_int_equal(c->reply.date_s, 0);
}

HTTP_TEST(reply_of_just_the_greatest_size, serve_echo)
{
	char		body[10001];

	memset(body, 'x', 10000);
	body[10000] = '\0';
	client_ask(c, body);
	assert_replied(c, 200, body);
	/* A shorter reply has nothing of it. */
	client_ask(c, "short");
	assert_replied(c, 200, "short");
}

/* ---- connections ---- */

HTTP_TEST(a_connection_is_used_again, serve_echo)
{
	assert_int_equal(http_pool_connections(c->pool), 0);
	for (int i = 0; i < 20; i++)
		client_ask(c, "again");
	assert_int_equal(http_pool_connections(c->pool), 1);
	assert_int_equal(server_connections(s), 1);
	assert_int_equal(server_requests(s), 20);
}

HTTP_TEST(a_connection_idle_for_too_long_is_not, serve_echo)
{
	client_ask(c, "one");
	__atomic_add_fetch(&seconds_ahead, 55, __ATOMIC_SEQ_CST);
	client_ask(c, "two");
	assert_int_equal(server_connections(s), 1);
	__atomic_add_fetch(&seconds_ahead, 65, __ATOMIC_SEQ_CST);
	client_ask(c, "three");
	assert_replied(c, 200, "three");
	assert_int_equal(server_connections(s), 2);
}

/* Detected by the reactor, or when the next request is posted. */
HTTP_TEST(idle_connection_closed_by_the_server, serve_one_and_close)
{
	client_ask(c, "one");
	server_wait_ended(s, 1);
	client_settle(c);
	client_ask(c, "two");
	assert_replied(c, 200, "two");
	assert_int_equal(http_pool_connections(c->pool), 1);
	server_wait_ended(s, 2);
	client_ask(c, "three");
	assert_replied(c, 200, "three");
	assert_int_equal(server_requests(s), 3);
}

/* The first connection ends after its reply; the others are kept. */
static void
serve_one_then_echo(test_connection *c)
{
	if (c->number == 1)
		serve_one_and_close(c);
	else
		serve_echo(c);
}

/* A connection that the server has closed does not keep new ones from being reused. */
HTTP_TEST(connections_are_used_again_after_one_has_ended, serve_one_then_echo)
{
	client_ask(c, "one");
	server_wait_ended(s, 1);
	client_settle(c);
	client_ask(c, "two");
	__atomic_add_fetch(&seconds_ahead, 5, __ATOMIC_SEQ_CST);
	client_ask(c, "three");
	client_ask(c, "four");
	client_ask(c, "five");
	assert_replied(c, 200, "five");
	assert_int_equal(server_connections(s), 2);
}

/* An unsolicited reply, sent after the first one has been read. */
static pthread_barrier_t first_was_read;

static void
serve_unasked_reply(test_connection *c)
{
	connection_read_request(c);
	connection_reply(c, 200, "", c->request + c->body_at);
	if (c->number == 1)
	{
		pthread_barrier_wait(&first_was_read);
		connection_reply(c, 408, "", "too slow");
	}
	if (connection_read_request(c))
		connection_reply(c, 200, "", c->request + c->body_at);
	connection_outwait(c);
}

HTTP_TEST(unasked_reply_is_not_the_next_one, serve_unasked_reply)
{
	pthread_barrier_init(&first_was_read, NULL, 2);
	client_ask(c, "one");
	assert_replied(c, 200, "one");
	client_settle(c);
	pthread_barrier_wait(&first_was_read);
	client_wait(c);
	client_settle(c);
	client_ask(c, "two");
	assert_replied(c, 200, "two");
	assert_int_equal(server_connections(s), 2);
	pthread_barrier_destroy(&first_was_read);
}

/* Replies to nobody before all requests have arrived. */
static pthread_mutex_t crowd_mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t crowd_changed = PTHREAD_COND_INITIALIZER;
static int	crowd;

static void
serve_crowd_of_four(test_connection *c)
{
	while (connection_read_request(c))
	{
		pthread_mutex_lock(&crowd_mutex);
		crowd++;
		pthread_cond_broadcast(&crowd_changed);
		while (crowd < 4)
			pthread_cond_wait(&crowd_changed, &crowd_mutex);
		pthread_mutex_unlock(&crowd_mutex);
		connection_reply(c, 200, "", c->request + c->body_at);
	}
}

typedef struct one_of_many
{
	test_client *client;
	char		body[16];
	int			answers;
} one_of_many;

static void
one_of_many_done(void *arg, const http_reply *reply)
{
	one_of_many *one = arg;

	client_done(one->client, reply);
	assert_replied(one->client, 200, one->body);
	one->answers++;
}

/* All four connections are used at once, and never a fifth. */
HTTP_TEST(many_requests_over_few_connections, serve_crowd_of_four)
{
	one_of_many many[100];

	crowd = 0;
	for (int i = 0; i < 100; i++)
	{
		many[i] = (one_of_many) {.client = c};
		snprintf(many[i].body, sizeof(many[i].body), "body %d", i);
		assert_true(http_pool_post(c->pool, NULL, 0, many[i].body,
								   strlen(many[i].body), PATIENCE_MS,
								   one_of_many_done, &many[i]));
		assert_int_equal(http_pool_pending(c->pool), i + 1);
	}
	client_run_until(c, 100);
	for (int i = 0; i < 100; i++)
		assert_int_equal(many[i].answers, 1);
	assert_int_equal(http_pool_pending(c->pool), 0);
	assert_int_equal(server_requests(s), 100);
	assert_int_equal(server_connections(s), 4);
	assert_int_equal(http_pool_connections(c->pool), 4);
}

static void
post_next_done(void *arg, const http_reply *reply)
{
	test_client *c = arg;
	int			answers_before = c->answers;

	client_done(c, reply);
	assert_replied(c, 200, "next");
	if (c->answers < 10)
		assert_true(http_pool_post(c->pool, NULL, 0, "next", 4, PATIENCE_MS,
								   post_next_done, c));
	assert_int_equal(c->answers, answers_before + 1);
}

TEST(posting_from_a_done_function)
{
	for (int connections = 1; connections <= 2; connections++)
	{
		test_server *s = server_start(serve_echo, NULL);
		test_client *c = client_start("http", "127.0.0.1", s->port);

		c->config.max_connections = connections;
		client_open(c);
		assert_true(http_pool_post(c->pool, NULL, 0, "next", 4, PATIENCE_MS,
								   post_next_done, c));
		client_run_until(c, 10);
		assert_int_equal(server_requests(s), 10);
		assert_int_equal(server_connections(s), 1);
		client_free(c);
		server_free(s);
	}
}

HTTP_TEST(freeing_drops_what_is_pending, serve_nothing)
{
	for (int i = 0; i < 10; i++)
		client_post(c, "pending");
	assert_int_equal(http_pool_pending(c->pool), 10);
	http_pool_free(c->pool);
	c->pool = NULL;
	assert_int_equal(c->answers, 0);
	/* The reactor still works, for another pool. */
	reactor_run(c->reactor);
	client_open(c);
}

TEST(library_has_name_and_version)
{
	char		name[64] = "";
	char		cut[8];

	http_pool_library(name, sizeof(name));
	assert_int_equal(strncmp(name, "libcurl/", 8), 0);
	assert_non_null(strstr(name, " OpenSSL/"));
	http_pool_library(cut, sizeof(cut));
	assert_string_equal(cut, "libcurl");
}

TEST(url_is_checked)
{
	http_pool_config config = {.url = "ftp://127.0.0.1",.max_connections = 1};
	char		error[256] = "";
	reactor    *r = reactor_new();

	assert_null(http_pool_new(r, &config, error, sizeof(error)));
	assert_string_not_equal(error, "");
	reactor_free(r);
}

/* ---- secrets ---- */

/* AddressSanitizer has these, valgrind has not. */
extern int	__sanitizer_install_malloc_and_free_hooks(void (*on_malloc) (const volatile void *, size_t),
													  void (*on_free) (const volatile void *)) __attribute__((weak));
extern size_t __sanitizer_get_allocated_size(const volatile void *memory) __attribute__((weak));

static pthread_t watched;		/* the server's threads are not */
static bool anywhere;
static int	secrets_freed;
static const char *kept_reply;

static void
ignore(const volatile void *memory, size_t size)
{
	(void) memory;
	(void) size;
}

/* Only replies begin with it: curl's own copies have the headers before it. */
static void
look_for_secret(const volatile void *memory)
{
	const char *bytes = (const char *) memory;
	size_t		size = memory != NULL ? __sanitizer_get_allocated_size(memory) : 0;

	if (size < 6 || !pthread_equal(pthread_self(), watched))
		return;
	if (anywhere ? memmem(bytes, size, "SECRET", 6) != NULL : memcmp(bytes, "SECRET", 6) == 0)
		secrets_freed++;
}

static void
keep_reply(void *arg, const http_reply *reply)
{
	kept_reply = reply->body;
	client_done(arg, reply);
}

HTTP_TEST(requests_and_replies_leave_no_secret_in_memory, serve_echo)
{
	static char body[60000];
	static const char nothing[sizeof(body)];
	const char *headers[] = {"X-Token: SECRET"};

	watched = pthread_self();
	if (__sanitizer_install_malloc_and_free_hooks != NULL)
		assert_int_not_equal(__sanitizer_install_malloc_and_free_hooks(ignore, look_for_secret), 0);
	anywhere = true;
	http_request_free(http_request_new("POST", "http://a/SECRET", headers, 1, "SECRET", 6));
	http_request_free(NULL);
	anywhere = false;
	assert_int_equal(secrets_freed, 0);

	/* Long enough to grow while it comes, and not to be freed at its end. */
	memset(body, '.', sizeof(body));
	memcpy(body, "SECRET", 6);
	c->config.reply_max = sizeof(body);
	client_open(c);
	assert_true(http_pool_post(c->pool, headers, 1, body, sizeof(body), PATIENCE_MS,
							   keep_reply, c));
	client_run_until(c, 1);
	assert_int_equal(c->reply.len, sizeof(body));
	assert_memory_equal(c->body, body, sizeof(body));
	assert_memory_equal(kept_reply, nothing, sizeof(body));
	assert_int_equal(secrets_freed, 0);
}

static int	half_sent;

static void
serve_half_a_secret(test_connection *c)
{
	connection_read_request(c);
	connection_print(c, "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nSECRET");
	__atomic_store_n(&half_sent, 1, __ATOMIC_SEQ_CST);
	connection_outwait(c);
}

HTTP_TEST(reply_that_has_only_begun_leaves_no_secret_in_memory, serve_half_a_secret)
{
	client_post(c, "one");
	while (!__atomic_load_n(&half_sent, __ATOMIC_SEQ_CST))
		client_settle(c);
	client_settle(c);
	http_pool_free(c->pool);
	c->pool = NULL;
	assert_int_equal(secrets_freed, 0);
}
