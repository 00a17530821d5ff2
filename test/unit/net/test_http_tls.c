/*
 * test_http_tls.c
 *	  The HTTP pool over TLS: which servers it trusts, and how it fails.
 *
 * Makes two certificate authorities and the servers' certificates anew in each
 * run; the only files are the authorities' certificates and OpenSSL's settings,
 * in a directory of their own.
 */
#define BEFORE_ALL make_authorities
#define AFTER_ALL drop_authorities
#include "http_fixture.h"

#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <semaphore.h>
#include <sys/stat.h>

typedef struct authority
{
	EVP_PKEY   *key;
	X509	   *certificate;
	char		file[64];
} authority;

static char directory[] = "/tmp/ddblock_tls_XXXXXX";
static char permissive[64];
static authority trusted;
static authority foreign;

/* ---- certificates ---- */

static void
add_extension(X509 *certificate, int nid, const char *value)
{
	X509_EXTENSION *extension = X509V3_EXT_conf_nid(NULL, NULL, nid, value);

	assert_non_null(extension);
	assert_int_equal(X509_add_ext(certificate, extension, -1), 1);
	X509_EXTENSION_free(extension);
}

/* Makes OpenSSL accept obsolete protocols. */
static int
permit_old_protocols(void)
{
	FILE	   *file;

	snprintf(permissive, sizeof(permissive), "%s/openssl.cnf", directory);
	file = fopen(permissive, "w");
	if (file == NULL)
		return -1;
	fputs("openssl_conf = conf\n[conf]\nssl_conf = ssl\n"
		  "[ssl]\nsystem_default = all\n"
		  "[all]\nMinProtocol = TLSv1\nCipherString = DEFAULT@SECLEVEL=0\n",
		  file);
	fclose(file);
	return setenv("OPENSSL_CONF", permissive, 1);
}

/* Unsigned; valid since from_s seconds from now, for an hour. */
static X509 *
make_certificate(EVP_PKEY *key, const char *name, X509 *issuer, long from_s)
{
	static long serial;
	X509	   *certificate = X509_new();
	X509_NAME  *subject = X509_get_subject_name(certificate);

	X509_set_version(certificate, 2);
	ASN1_INTEGER_set(X509_get_serialNumber(certificate), ++serial);
	X509_gmtime_adj(X509_getm_notBefore(certificate), from_s);
	X509_gmtime_adj(X509_getm_notAfter(certificate), from_s + 3600);
	X509_set_pubkey(certificate, key);
	X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_ASC,
							   (const unsigned char *) name, -1, -1, 0);
	X509_set_issuer_name(certificate, issuer != NULL ?
						 X509_get_subject_name(issuer) : subject);
	return certificate;
}

static void
make_authority(authority *a, const char *name)
{
	FILE	   *file;

	a->key = EVP_EC_gen("P-256");
	a->certificate = make_certificate(a->key, name, NULL, -60);
	add_extension(a->certificate, NID_basic_constraints, "critical,CA:TRUE");
	assert_true(X509_sign(a->certificate, a->key, EVP_sha256()) > 0);
	snprintf(a->file, sizeof(a->file), "%s/%s.pem", directory, name);
	file = fopen(a->file, "w");
	assert_non_null(file);
	assert_int_equal(PEM_write_X509(file, a->certificate), 1);
	fclose(file);
}

/* A server with a certificate for the given alternative name. */
static SSL_CTX *
make_context(const char *alternative_name, long from_s)
{
	SSL_CTX    *context = SSL_CTX_new(TLS_server_method());
	EVP_PKEY   *key = EVP_EC_gen("P-256");
	X509	   *certificate = make_certificate(key, "server",
											   trusted.certificate, from_s);

	add_extension(certificate, NID_subject_alt_name, alternative_name);
	assert_true(X509_sign(certificate, trusted.key, EVP_sha256()) > 0);
	assert_int_equal(SSL_CTX_use_certificate(context, certificate), 1);
	assert_int_equal(SSL_CTX_use_PrivateKey(context, key), 1);
	X509_free(certificate);
	EVP_PKEY_free(key);
	return context;
}

static int
make_authorities(void **state)
{
	(void) state;
	if (mkdtemp(directory) == NULL || permit_old_protocols() != 0)
		return -1;
	make_authority(&trusted, "trusted");
	make_authority(&foreign, "foreign");
	return 0;
}

static int
drop_authorities(void **state)
{
	authority  *all[] = {&trusted, &foreign};

	(void) state;
	for (int i = 0; i < 2; i++)
	{
		unlink(all[i]->file);
		X509_free(all[i]->certificate);
		EVP_PKEY_free(all[i]->key);
	}
	unlink(permissive);
	return rmdir(directory);
}

/* ---- tests ---- */

static test_client *
tls_client(int port, const char *ca_file)
{
	test_client *c = client_start("https", "127.0.0.1", port);

	c->config.ca_file = ca_file;
	client_open(c);
	return c;
}

#define HTTPS_TEST(name, script) \
	SERVER_TEST(name, server_start(script, make_context("IP:127.0.0.1", -60)), \
				tls_client(s->port, trusted.file))

HTTPS_TEST(trusted_server, serve_echo)
{
	for (int i = 0; i < 3; i++)
	{
		client_ask(c, "hello");
		assert_replied(c, 200, "hello");
	}
	assert_int_equal(server_connections(s), 1);
}

/* The server never sees a request. */
static void
check_refused(SSL_CTX *context, const char *ca_file, const char *words)
{
	test_server *s = server_start(serve_echo, context);
	test_client *c = tls_client(s->port, ca_file);

	client_ask(c, "secret");
	assert_failed(c, HTTP_UNTRUSTED, "TLS", words);
	s->expected_requests = 0;
	client_free(c);
	server_free(s);
}

TEST(unknown_authority)
{
	check_refused(make_context("IP:127.0.0.1", -60), NULL, "certificate");
	check_refused(make_context("IP:127.0.0.1", -60), foreign.file,
				  "certificate");
}

/* A connection made with the old certificates is not used any more. */
SERVER_TEST(reconfigured_trust, server_start(serve_echo, make_context("IP:127.0.0.1", -60)),
			tls_client(s->port, foreign.file))
{
	client_ask(c, "one");
	assert_failed(c, HTTP_UNTRUSTED, "TLS", "certificate");
	c->config.ca_file = trusted.file;
	assert_true(http_pool_reconfigure(c->pool, &c->config));
	client_ask(c, "two");
	assert_replied(c, 200, "two");
	c->config.ca_file = NULL;
	assert_true(http_pool_reconfigure(c->pool, &c->config));
	client_ask(c, "three");
	assert_failed(c, HTTP_UNTRUSTED, "TLS", "certificate");
	s->expected_requests = 1;
}

static void
trust(test_client *c, const authority *a)
{
	FILE	   *file = fopen(c->config.ca_file, "w");

	assert_int_equal(PEM_write_X509(file, a->certificate), 1);
	fclose(file);
	assert_true(http_pool_reconfigure(c->pool, &c->config));
}

static sem_t may_reply;

static void
serve_echo_when_it_may(test_connection *c)
{
	while (connection_read_request(c))
	{
		sem_wait(&may_reply);
		connection_reply(c, 200, "", c->request + c->body_at);
	}
}

/* The same file has other authorities.  What the old ones vouched for counts no more. */
static void
check_changed_file(test_server *s, test_client *c)
{
	char		file[64];

	snprintf(file, sizeof(file), "%s/changing.pem", directory);
	c->config.ca_file = file;
	for (int i = 0; i < 3; i++)
	{
		int			requests = server_requests(s);

		trust(c, &trusted);
		sem_post(&may_reply);
		client_ask(c, "one");
		assert_replied(c, 200, "one");
		if (i > 0)
		{
			client_post(c, "under way");
			while (server_requests(s) < requests + 2)
			{
				client_settle(c);
				usleep(1000);
			}
		}
		trust(c, &foreign);
		if (i > 0)
		{
			sem_post(&may_reply);
			client_run_until(c, c->answers + 1);
			assert_replied(c, 200, "under way");
		}
		client_ask(c, "two");
		assert_failed(c, HTTP_UNTRUSTED, "TLS", "certificate");
	}
	trust(c, &trusted);
	client_post(c, "first on its connection");
	trust(c, &foreign);
	sem_post(&may_reply);
	client_run_until(c, c->answers + 1);
	client_ask(c, "two");
	assert_failed(c, HTTP_UNTRUSTED, "TLS", "certificate");
	unlink(file);
	c->config.ca_file = trusted.file;
}

HTTPS_TEST(authorities_that_change, serve_echo_when_it_may)
{
	sem_init(&may_reply, 0, 0);
	check_changed_file(s, c);
}

TEST(wrong_name)
{
	check_refused(make_context("IP:127.0.0.2", -60), trusted.file, "127.0.0.1");
	check_refused(make_context("DNS:other.test", -60), trusted.file,
				  "127.0.0.1");
}

TEST(expired_certificate)
{
	check_refused(make_context("IP:127.0.0.1", -7200), trusted.file, "expired");
}

TEST(no_authority_file)
{
	check_refused(make_context("IP:127.0.0.1", -60), "/nonexistent/ca.pem", "");
}

TEST(fifo_as_authority_file)
{
	char		fifo[64];

	snprintf(fifo, sizeof(fifo), "%s/fifo", directory);
	assert_int_equal(mkfifo(fifo, 0600), 0);
	check_refused(make_context("IP:127.0.0.1", -60), fifo, fifo);
	unlink(fifo);
}

TEST(old_protocol)
{
	SSL_CTX    *context = make_context("IP:127.0.0.1", -60);

	SSL_CTX_set_min_proto_version(context, TLS1_VERSION);
	SSL_CTX_set_max_proto_version(context, TLS1_1_VERSION);
	check_refused(context, trusted.file, "");
}

/* http to a TLS server, and https to a server without TLS. */
static void
serve_web_page(test_connection *c)
{
	static const char page[] = "HTTP/1.1 400 Bad Request\r\n\r\n";

	assert_int_equal(write(c->fd, page, sizeof(page) - 1), sizeof(page) - 1);
	connection_outwait(c);
}

SERVER_TEST(tls_to_a_server_without, server_start(serve_web_page, NULL),
			tls_client(s->port, trusted.file))
{
	client_ask(c, "secret");
	assert_failed(c, HTTP_UNTRUSTED, "TLS", "wrong version");
}

/*
 * A TLS server replies to http with an alert.  It can hardly have applied
 * anything, but we do not rely on that.
 */
static void
serve_alert(test_connection *c)
{
	static const char alert[] = {0x15, 0x03, 0x01, 0x00, 0x02, 0x02, 0x16};

	connection_read_request(c);
	assert_int_equal(write(c->fd, alert, sizeof(alert)), sizeof(alert));
}

HTTP_TEST(plain_text_to_a_tls_server, serve_alert)
{
	client_ask(c, "one");
	assert_failed(c, HTTP_FOREIGN, "reply", "HTTP/0.9");
}

/* The handshake breaks off: perhaps the server is just starting. */
static void
serve_end(test_connection *c)
{
	(void) c;
}

SERVER_TEST(handshake_that_breaks_off, server_start(serve_end, NULL),
			tls_client(s->port, trusted.file))
{
	client_ask(c, "one");
	assert_failed(c, HTTP_NOT_SENT, "TLS", "");
}

/* Ended by our time-out for the request, and by curl's for connecting. */
SERVER_TEST(handshake_that_hangs, server_start(serve_nothing, NULL),
			tls_client(s->port, trusted.file))
{
	client_post(c, "one");
	client_time_out(c);
	assert_failed(c, HTTP_NOT_SENT, "TLS", "Timed out after");

	c->config.connect_timeout_ms = 500;
	client_open(c);
	client_ask(c, "two");
	assert_failed(c, HTTP_NOT_SENT, "TLS", "Timed out after");
}

HTTPS_TEST(idle_connection_closed_by_the_server, serve_one_and_close)
{
	for (int i = 1; i <= 5; i++)
	{
		client_ask(c, "again");
		assert_replied(c, 200, "again");
		server_wait_ended(s, i);
		client_settle(c);
	}
	assert_int_equal(server_requests(s), 5);
}

HTTPS_TEST(reused_connection_dies_unanswered, serve_one_then_close_on_the_second)
{
	client_ask(c, "one");
	assert_replied(c, 200, "ok");
	client_ask(c, "two");
	assert_failed(c, HTTP_UNKNOWN, "reply", "closed before a reply");
	s->expected_requests = 2;
}

/* ---- proxies ---- */

static SSL_CTX *end_server;		/* of the endpoint behind the proxy */

/* A proxy: lets a connection pass, and is the server at its end, too. */
static void
serve_tunnel(test_connection *c)
{
	connection_read_request(c);
	assert_ptr_equal(strstr(c->request, "CONNECT 0.0.0.0:8443 HTTP/1.1\r\n"), c->request);
	connection_print(c, "HTTP/1.1 200 Connection established\r\nDate: Thu, 01 Jan 1970 00:00:01 GMT\r\n\r\n");
	c->ssl = SSL_new(end_server);
	SSL_set_fd(c->ssl, c->fd);
	if (SSL_accept(c->ssl) == 1)
		serve_echo(c);
}

static test_client *
tunnel_client(const char *proxy_scheme, int proxy_port, const char *ca_file)
{
	test_client *c = client_start("https", "0.0.0.0", 8443);
	static char proxy[64];

	snprintf(proxy, sizeof(proxy), "%s://user:pAssw0rd@127.0.0.1:%d", proxy_scheme, proxy_port);
	c->config.ca_file = ca_file;
	c->config.proxy = proxy;
	client_open(c);
	return c;
}

SERVER_TEST(through_a_proxy, server_start(serve_tunnel, NULL),
			tunnel_client("http", s->port, trusted.file))
{
	end_server = make_context("IP:0.0.0.0", -60);
	for (int i = 0; i < 3; i++)
	{
		client_ask(c, "hello");
		assert_replied(c, 200, "hello");
		assert_int_equal(c->reply.date_s, 0);
	}
	assert_int_equal(server_connections(s), 1);
	server_stop(s);
	client_settle(c);
	client_ask(c, "hello");
	assert_failed(c, HTTP_NOT_SENT, "proxy", "refused");
	SSL_CTX_free(end_server);
}

/* The certificate is the endpoint's: that is no failure of the proxy. */
SERVER_TEST(wrong_server_behind_a_proxy, server_start(serve_tunnel, NULL),
			tunnel_client("http", s->port, trusted.file))
{
	end_server = make_context("IP:127.0.0.1", -60);
	client_ask(c, "secret");
	assert_failed(c, HTTP_UNTRUSTED, "TLS", "0.0.0.0");
	s->expected_requests = 1;
	SSL_CTX_free(end_server);
}

/* What it has read stands at the end of the test: for whom it was. */
static void
serve_refusal(test_connection *c)
{
	static const char *const refusals[] = {
		"407 Who\r\nProxy-Authenticate: BasicFoo\r\nProxy-Authenticate: NTLM,basic realm=\"x\"",
		"403 No", "502 Bad",
		"407 Who\r\nproxy-authenticate:NTLM, Digest realm=\"x\"\r\nProxy-Authenticate: OnlyOurs",
		"407 Who\r\nProxy-Authenticate: Digest realm=\"no Basic\"", "407 Who", "200"
	};

	while (connection_read_request(c))
	{
		assert_non_null(strstr(c->request, "\r\nProxy-Authorization: Basic "));
		assert_null(strstr(c->request, "secret"));
		connection_print(c, "HTTP/1.1 ");
		connection_print(c, refusals[c->number - 1]);
		connection_print(c, "\r\nConnection: close\r\nContent-Length: 0\r\n\r\n");
		return;
	}
}

static void
check_refusals(test_client *c)
{
	static const char *const words[] = {
		"HTTP status 407, user and password are missing or wrong", "HTTP status 403",
		"HTTP status 502", "HTTP status 407, it wants NTLM, and ddblock only sends Basic",
		"HTTP status 407, it wants Digest, and ddblock only sends Basic",
		"HTTP status 407, user and password are missing or wrong"
	};

	for (int i = 0; i < (int) COUNT_OF(words); i++)
	{
		client_ask(c, "secret");
		assert_failed(c, HTTP_NOT_SENT, "proxy", words[i]);
		assert_null(strstr(c->reply.error, "pAssw0rd"));
		if (i == 1 || i == 2)
			continue;
		/* It is not asked again soon, unless the settings may have changed. */
		client_ask(c, "secret");
		assert_failed(c, HTTP_NOT_SENT, "proxy", words[i]);
		assert_true(http_pool_reconfigure(c->pool, &c->config));
	}
	client_ask(c, "secret");	/* the tunnel ends at once */
	assert_failed(c, HTTP_NOT_SENT, "TLS", "");
}

SERVER_TEST(proxy_that_refuses, server_start(serve_refusal, NULL),
			tunnel_client("http", s->port, trusted.file))
{
	check_refusals(c);
}

/* The first tunnel is made, and no other.  Its server replies when it may. */
static void
serve_one_tunnel(test_connection *c)
{
	bool		tunnel = connection_read_request(c) && c->number == 1;

	if (!tunnel)
	{
		connection_reply(c, 407, "Proxy-Authenticate: Basic realm=\"x\"\r\n", "");
		return;
	}
	connection_print(c, "HTTP/1.1 200 Connection established\r\n\r\n");
	c->ssl = SSL_new(end_server);
	SSL_set_fd(c->ssl, c->fd);
	if (SSL_accept(c->ssl) != 1)
		return;
	while (connection_read_request(c))
	{
		sem_wait(&may_reply);
		connection_reply(c, 200, "", c->request + c->body_at);
	}
}

/* A tunnel that is there stays in use while the proxy refuses, and is not asked for, others. */
SERVER_TEST(tunnel_of_a_proxy_that_refuses, server_start(serve_one_tunnel, NULL),
			tunnel_client("http", s->port, trusted.file))
{
	end_server = make_context("IP:0.0.0.0", -60);
	sem_init(&may_reply, 0, 1);
	client_ask(c, "one");
	assert_replied(c, 200, "one");
	for (int i = 0; i < 3; i++)
	{
		client_post(c, "two");
		client_ask(c, "no tunnel");
		assert_failed(c, HTTP_NOT_SENT, "proxy", "HTTP status 407");
		sem_post(&may_reply);
		client_run_until(c, c->answers + 1);
		assert_replied(c, 200, "two");
	}
	assert_int_equal(server_connections(s), 2);
	server_stop(s);
	SSL_CTX_free(end_server);
}

SERVER_TEST(proxy_with_tls_that_refuses,
			server_start(serve_refusal, make_context("IP:127.0.0.1", -60)),
			tunnel_client("https", s->port, trusted.file))
{
	check_refusals(c);
}

SERVER_TEST(proxy_that_is_not_trusted,
			server_start(serve_refusal, make_context("IP:127.0.0.1", -60)),
			tunnel_client("https", s->port, foreign.file))
{
	client_ask(c, "secret");
	assert_failed(c, HTTP_UNTRUSTED, "proxy", "certificate");
	s->expected_requests = 0;
}

SERVER_TEST(tls_to_a_proxy_without, server_start(serve_web_page, NULL),
			tunnel_client("https", s->port, trusted.file))
{
	client_ask(c, "secret");
	assert_failed(c, HTTP_UNTRUSTED, "proxy", "wrong version");
}

SERVER_TEST(proxy_that_hangs, server_start(serve_nothing, NULL),
			tunnel_client("http", s->port, trusted.file))
{
	client_post(c, "secret");
	client_time_out(c);
	assert_failed(c, HTTP_NOT_SENT, "proxy", "Timed out after");
}
