/*-------------------------------------------------------------------------
 *
 * http_transfer.c
 *	  One request on one curl easy handle, and how it ended.
 *
 * The caller must know whether anything was sent.  curl calls on_start() when the connection is
 * ready, TLS included, just before it sends the first byte of a request.  So whatever curl's error
 * code is, the outcome of a failure before that call is HTTP_NOT_SENT or HTTP_UNTRUSTED, and after
 * it HTTP_UNKNOWN or HTTP_FOREIGN.  There is one exception: if a proxy replies with status 407, it
 * has not passed the request on, and the outcome is HTTP_NOT_SENT.
 *
 * curl repeats a POST by itself if a reused connection ends without a reply.  It calls on_start()
 * again then, which refuses.  (A body from a read callback that cannot be rewound would stop curl,
 * too, with error 65; but then head and body would go out as two packets, and wake the server up
 * twice.)
 *
 * curl stores all headers, also those of trailers and interim replies, and silently skips other
 * input, such as chunk extensions.  So a server could send without end.  Only curl's debug function
 * on_bytes() sees all input.  It counts the bytes, and other callbacks end the transfer if there
 * are too many.
 *
 * curl calls the functions on_...(), which must not call curl's multi interface.
 *
 *-------------------------------------------------------------------------
 */
#include "net/net.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "aws/aws.h"

#if LIBCURL_VERSION_NUM < 0x075700
#error "libcurl 7.87 or later is needed"
#endif

/* HTTP's status with which a proxy asks for user and password. */
#define PROXY_REFUSES 407

/* HTTP's name for the scheme by which we send user and password: as they are. */
#define OUR_SCHEME "Basic"

/* The names of all schemes that are in use consist of these characters. */
#define SCHEME_CHARACTERS "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-"

/* A reply's buffer that is larger than this is freed after the request. */
#define REPLY_KEEP 65536

/* curl's code for a header's line that is too long.  Before 8.6 it is that of a lack of memory. */
#if LIBCURL_VERSION_NUM >= 0x080600
#define LINE_TOO_LONG CURLE_TOO_LARGE
#else
#define LINE_TOO_LONG CURLE_OUT_OF_MEMORY
#endif

/* Limit for headers, trailers, interim replies and the framing of chunks. */
#define OVERHEAD_MAX 65536

/* ----------------------------------------------------------------
 * A request
 * ----------------------------------------------------------------
 */

http_request *
http_request_new(const char *method, const char *url,
				 const char *const *headers, int header_count,
				 const char *body, size_t len)
{
	size_t		url_size = url != NULL ? strlen(url) + 1 : 0;
	size_t		size = sizeof(http_request) + url_size + len;
	http_request *request = calloc(1, size);

	if (request == NULL)
		return NULL;
	request->size = size;
	request->method = method;
	if (url != NULL)
		request->url = strcpy((char *) (request + 1), url);
	request->len = len;
	request->body = (char *) (request + 1) + url_size;
	if (len > 0)
		memcpy((char *) request->body, body, len);
	for (int i = 0; i <= header_count; i++)
	{
		/* Without "Expect:", curl sends a large body only when the server has agreed. */
		struct curl_slist *longer = curl_slist_append(request->headers,
													  i < header_count ? headers[i] : "Expect:");

		if (longer == NULL)
		{
			http_request_free(request);
			return NULL;
		}
		request->headers = longer;
	}
	return request;
}

/* Wipes the request before it is freed: each part may have secrets. */
void
http_request_free(http_request *request)
{
	if (request == NULL)
		return;
	for (struct curl_slist *node = request->headers; node != NULL; node = node->next)
		explicit_bzero(node->data, strlen(node->data));
	curl_slist_free_all(request->headers);
	explicit_bzero(request, request->size);
	free(request);
}

/* ----------------------------------------------------------------
 * Functions that curl calls
 * ----------------------------------------------------------------
 */

/* Allows the first start of a request, and refuses the second. */
static int
on_start(void *arg, char *remote_ip, char *local_ip, int remote_port,
		 int local_port)
{
	http_transfer *t = arg;

	(void) remote_ip;
	(void) local_ip;
	(void) remote_port;
	(void) local_port;
	if (t->started)
		return CURL_PREREQFUNC_ABORT;
	t->started = true;
	return CURL_PREREQFUNC_OK;
}

/*
 * Makes the socket for a new connection, but not to a proxy that must not be asked now.  A tunnel
 * that is open may still serve the request.
 */
static curl_socket_t
on_open(void *arg, curlsocktype purpose, struct curl_sockaddr *address)
{
	http_transfer *t = arg;
	int			fd;

	(void) purpose;
	if (t->refusal != NULL)
		return CURL_SOCKET_BAD;
	fd = socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
	t->open_errno = fd < 0 ? errno : 0;
	return fd < 0 ? CURL_SOCKET_BAD : fd;
}

/* curl calls this when the connection is established, and TLS begins. */
static CURLcode
on_tls(CURL *easy, void *tls_context, void *arg)
{
	http_transfer *t = arg;

	(void) easy;
	(void) tls_context;
	t->tls_begun = true;
	return CURLE_OK;
}

/*
 * If the line is a proxy's Proxy-Authenticate header, stores the scheme by which we must
 * authenticate: ours if the proxy accepts it, else the first that the proxy names.  curl cannot
 * tell, because it ignores schemes that it was built without.
 */
static void
note_scheme(http_transfer *t, const char *line, size_t len)
{
	static const char name[] = "Proxy-Authenticate:";
	const size_t start = sizeof(name) - 1;
	char		list[256];

	if (len < start || strncasecmp(line, name, start) != 0)
		return;
	snprintf(list, sizeof(list), "%.*s", (int) (len - start), line + start);
	for (const char *item = list; item != NULL; item = strchr(item, ','))
	{
		size_t		token;

		item += strspn(item, ", \t");
		token = strspn(item, SCHEME_CHARACTERS);
		if (token == strlen(OUR_SCHEME) && strncasecmp(item, OUR_SCHEME, token) == 0)
			strcpy(t->scheme, OUR_SCHEME);
		else if (t->scheme[0] == '\0')
			snprintf(t->scheme, sizeof(t->scheme), "%.*s", (int) token, item);
	}
}

/*
 * curl's debug function.  It sees all input and output, decrypted.  It gets each header by itself,
 * also those of a proxy.
 */
static int
on_bytes(CURL *easy, curl_infotype type, char *data, size_t len, void *arg)
{
	http_transfer *t = arg;

	(void) easy;
	if (type == CURLINFO_HEADER_IN)
		note_scheme(t, data, len);
	if (type == CURLINFO_HEADER_IN || type == CURLINFO_DATA_IN)
		t->received += len;
	if (t->received > t->reply_max + OVERHEAD_MAX)
		t->too_large = true;
	return 0;
}

/* Ends a transfer that is too large.  curl calls this after each portion of input. */
static int
on_progress(void *arg, curl_off_t reply_len, curl_off_t replied,
			curl_off_t request_len, curl_off_t sent)
{
	const http_transfer *t = arg;

	(void) reply_len;
	(void) replied;
	(void) request_len;
	(void) sent;
	return t->too_large;
}

/* Wipes the reply.  all: also frees its buffer. */
static void
free_reply(http_transfer *t, bool all)
{
	if (t->reply_len > 0)
		explicit_bzero(t->reply, t->reply_len);
	t->reply_len = 0;
	if (!all)
		return;
	free(t->reply);
	t->reply = NULL;
	t->reply_size = 0;
}

/*
 * Makes room in the reply's buffer for len more bytes and a NUL.  Wipes the old buffer, because the
 * reply may have secrets; realloc() would leave a copy.
 */
static bool
have_space(http_transfer *t, size_t len)
{
	size_t		size = t->reply_size > 0 ? t->reply_size : 4096;
	size_t		kept = t->reply_len;
	char	   *grown;

	while (size < t->reply_len + len + 1)
		size *= 2;
	if (size == t->reply_size)
		return true;
	grown = malloc(size);
	if (grown == NULL)
		return false;
	if (kept > 0)
		memcpy(grown, t->reply, kept);
	free_reply(t, true);
	t->reply_len = kept;
	t->reply = grown;
	t->reply_size = size;
	return true;
}

/* Stores a part of the reply's body.  A return value other than len ends the transfer. */
static size_t
on_reply(char *data, size_t size, size_t count, void *arg)
{
	http_transfer *t = arg;
	size_t		len = size * count;

	if (len > t->reply_max - t->reply_len)
		t->too_large = true;
	if (t->too_large || !have_space(t, len))
		return CURL_WRITEFUNC_ERROR;
	memcpy(t->reply + t->reply_len, data, len);
	t->reply_len += len;
	return len;
}

/* Ends a transfer that is too large.  curl itself stores the headers: see header_of(). */
static size_t
on_header(char *line, size_t size, size_t count, void *arg)
{
	const http_transfer *t = arg;

	(void) line;
	return t->too_large ? CURL_WRITEFUNC_ERROR : size * count;
}

/* ----------------------------------------------------------------
 * The transfer
 * ----------------------------------------------------------------
 */

static bool
set_long(CURL *easy, CURLoption option, long value)
{
	return curl_easy_setopt(easy, option, value) == CURLE_OK;
}

/* A macro, because values have many types.  Use set_long() for integers. */
#define set_option(easy, option, value) (curl_easy_setopt(easy, option, value) == CURLE_OK)

/*
 * Sets the trusted authorities: ca_file, or curl's default file if that is "".  curl's default
 * directory is set only if there is no file, because curl does not cache a file's certificates if
 * there is also a directory.
 *
 * If the file is a FIFO, curl would block until it has a writer.  So for all but regular files, a
 * slash is added to the name: then opening it fails.
 */
bool
http_transfer_configure(http_transfer *t, const char *ca_file)
{
	const curl_version_info_data *curl = curl_version_info(CURLVERSION_NOW);
	const char *file = ca_file[0] != '\0' ? ca_file : curl->cainfo;
	char		no_file[PATH_MAX + 1];
	const char *dir;
	struct stat st;

	if (file != NULL && stat(file, &st) == 0 && !S_ISREG(st.st_mode))
	{
		snprintf(no_file, sizeof(no_file), "%s/", file);
		file = no_file;
	}
	dir = file != NULL ? NULL : curl->capath;
	return set_option(t->easy, CURLOPT_CAINFO, file) &&
		set_option(t->easy, CURLOPT_CAPATH, dir) &&
		set_option(t->easy, CURLOPT_PROXY_CAINFO, file) &&
		set_option(t->easy, CURLOPT_PROXY_CAPATH, dir);
}

bool
http_transfer_route(http_transfer *t, const http_proxy *proxy)
{
	t->proxied = proxy->url[0] != '\0' || proxy->unusable != NULL;
	t->proxy_unusable = proxy->unusable;
	if (!t->proxied)
		t->refusal = NULL;
	return set_option(t->easy, CURLOPT_PROXY,
					  proxy->unusable != NULL ? HTTP_PROXY_UNUSABLE : proxy->url);
}

/*
 * Reasons for options that may surprise:
 *
 * - Accept-Encoding is not set: x-amz-crc32 covers the bytes as they are sent.
 * - CURLOPT_SUPPRESS_CONNECT_HEADERS: a proxy's headers must not count as the server's.
 * - CURLOPT_QUICK_EXIT: otherwise, to abort a request whose name is being looked up takes until the
 *   resolver thread ends.
 * - CURLOPT_DNS_CACHE_TIMEOUT, CURLOPT_DNS_SHUFFLE_ADDRESSES: each new connection looks the name up
 *   and begins with any of its addresses.  curl would keep addresses for 60 s, or three leases.
 * - CURLOPT_SSL_SESSIONID_CACHE: a server whose TLS session is resumed is not checked against the
 *   authorities, which may have changed.
 *
 * curl's other defaults fit: no redirects, no cookies, no .netrc, TCP_NODELAY.  See "curl's timers
 * and caches" in doc/internals/architecture.md.
 */
bool
http_transfer_init(http_transfer *t, const http_pool_config *config)
{
	struct curl_header *none;
	CURL	   *easy = curl_easy_init();

	memset(t, 0, sizeof(*t));
	t->reply_max = config->reply_max;
	t->easy = easy;
	return easy != NULL &&
		curl_easy_header(easy, "Date", 0, CURLH_HEADER, -1, &none) != CURLHE_NOT_BUILT_IN &&
		(config->url == NULL || set_option(easy, CURLOPT_URL, config->url)) &&
		set_long(easy, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1) &&
		set_option(easy, CURLOPT_PROTOCOLS_STR, "http,https") &&
		set_long(easy, CURLOPT_HTTP_VERSION, CURL_HTTP_VERSION_1_1) &&
		set_long(easy, CURLOPT_POST, 1) &&
		set_long(easy, CURLOPT_NOSIGNAL, 1) &&
		set_long(easy, CURLOPT_QUICK_EXIT, 1) &&
		set_long(easy, CURLOPT_DNS_CACHE_TIMEOUT, 0) &&
		set_long(easy, CURLOPT_DNS_SHUFFLE_ADDRESSES, 1) &&
		set_long(easy, CURLOPT_SSL_SESSIONID_CACHE, 0) &&
		set_long(easy, CURLOPT_TCP_KEEPALIVE, 1) &&
		set_long(easy, CURLOPT_MAXAGE_CONN, config->idle_close_s) &&
		set_long(easy, CURLOPT_UPLOAD_BUFFERSIZE, 16384) &&
		set_long(easy, CURLOPT_SSLVERSION, CURL_SSLVERSION_TLSv1_2) &&
		set_long(easy, CURLOPT_SSL_VERIFYPEER, 1) &&
		set_long(easy, CURLOPT_SSL_VERIFYHOST, 2) &&
		set_long(easy, CURLOPT_PROXY_SSLVERSION, CURL_SSLVERSION_TLSv1_2) &&
		set_long(easy, CURLOPT_PROXY_SSL_VERIFYPEER, 1) &&
		set_long(easy, CURLOPT_PROXY_SSL_VERIFYHOST, 2) &&
		set_option(easy, CURLOPT_PRIVATE, t) &&
		set_option(easy, CURLOPT_ERRORBUFFER, t->error) &&
		set_option(easy, CURLOPT_OPENSOCKETFUNCTION, on_open) &&
		set_option(easy, CURLOPT_OPENSOCKETDATA, t) &&
		set_option(easy, CURLOPT_PREREQFUNCTION, on_start) &&
		set_option(easy, CURLOPT_PREREQDATA, t) &&
		set_option(easy, CURLOPT_SSL_CTX_FUNCTION, on_tls) &&
		set_option(easy, CURLOPT_SSL_CTX_DATA, t) &&
		set_option(easy, CURLOPT_WRITEFUNCTION, on_reply) &&
		set_option(easy, CURLOPT_WRITEDATA, t) &&
		set_option(easy, CURLOPT_HEADERFUNCTION, on_header) &&
		set_option(easy, CURLOPT_HEADERDATA, t) &&
		set_option(easy, CURLOPT_DEBUGFUNCTION, on_bytes) &&
		set_option(easy, CURLOPT_DEBUGDATA, t) &&
		set_long(easy, CURLOPT_VERBOSE, 1) &&
		set_option(easy, CURLOPT_XFERINFOFUNCTION, on_progress) &&
		set_option(easy, CURLOPT_XFERINFODATA, t) &&
		set_long(easy, CURLOPT_NOPROGRESS, 0);
}

void
http_transfer_destroy(http_transfer *t)
{
	curl_easy_cleanup(t->easy);
	free_reply(t, true);
}

bool
http_transfer_load(http_transfer *t, http_request *request, int connect_timeout_ms,
				   time_t reloaded_s)
{
	CURL	   *easy = t->easy;
	bool		get = request->method != NULL && strcmp(request->method, "GET") == 0;
	long		connect_ms = (long) ((request->deadline - reactor_now_us()) / 1000);
	long		reloaded_for_s = (long) (http_curl_seconds() - reloaded_s);

	/* A request to a URL of its own may be the first to that name: it may connect for longer. */
	if (request->url == NULL && connect_timeout_ms < connect_ms)
		connect_ms = connect_timeout_ms;
	t->request = request;
	t->tls_begun = false;
	t->started = false;
	t->too_large = false;
	t->scheme[0] = '\0';
	t->open_errno = 0;
	t->received = t->reply_len = 0;
	t->error[0] = '\0';
	/*
	 * The time to connect is at most what is left of the attempt: curl gives half of it to the
	 * first of several addresses.  curl caches authorities for whole seconds: so long that it may
	 * use only what it has read since the last reload.
	 */
	if (!have_space(t, 0) ||
		!set_option(easy, CURLOPT_HTTPHEADER, request->headers) ||
		!set_long(easy, CURLOPT_CONNECTTIMEOUT_MS, connect_ms > 0 ? connect_ms : 1) ||
		!set_long(easy, CURLOPT_CA_CACHE_TIMEOUT, reloaded_for_s > 0 ? reloaded_for_s - 1 : 0))
		return false;
	/* These are set already for POSTs to the pool's URL. */
	if (request->method != NULL &&
		(!set_option(easy, CURLOPT_URL, request->url) ||
		 !set_long(easy, get ? CURLOPT_HTTPGET : CURLOPT_POST, 1) ||
		 !set_option(easy, CURLOPT_CUSTOMREQUEST, request->method)))
		return false;
	/* A GET gets no body, because to set a body would make it a POST. */
	return get ||
		(set_option(easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t) request->len) &&
		 set_option(easy, CURLOPT_POSTFIELDS, request->body));
}

void
http_transfer_unload(http_transfer *t)
{
	t->request = NULL;
	free_reply(t, t->reply_size > REPLY_KEEP);
}

/* ----------------------------------------------------------------
 * The end of a transfer
 * ----------------------------------------------------------------
 */

/*
 * The HTTP status that came from the proxy: its reply to CONNECT, or a 407 in place of the server's
 * reply; 0: none.
 */
static long
proxy_status(const http_transfer *t)
{
	long		status = 0;

	curl_easy_getinfo(t->easy, t->started ? CURLINFO_RESPONSE_CODE : CURLINFO_HTTP_CONNECTCODE,
					  &status);
	return !t->started || status == PROXY_REFUSES ? status : 0;
}

bool
http_transfer_has_address(const http_transfer *t)
{
	curl_off_t	name_found_us = 0;

	curl_easy_getinfo(t->easy, CURLINFO_NAMELOOKUP_TIME_T, &name_found_us);
	return name_found_us > 0;
}

static const char *
phase_of_failure(const http_transfer *t, CURLcode code)
{
	curl_off_t	uploaded = 0;

	if (t->proxied && (t->started ? proxy_status(t) == PROXY_REFUSES : proxy_status(t) / 100 != 2))
		return "proxy";
	if (code == CURLE_COULDNT_RESOLVE_HOST)
		return "name resolution";
	if (code == CURLE_COULDNT_CONNECT)
		return "connect";
	if (t->started)
	{
		/* curl aborts if on_start() refuses a second start, which has reset the count of bytes. */
		if (code == CURLE_ABORTED_BY_CALLBACK)
			return "reply";
		curl_easy_getinfo(t->easy, CURLINFO_SIZE_UPLOAD_T, &uploaded);
		return (size_t) uploaded < t->request->len ? "request" : "reply";
	}
	/* Newer versions of curl read the file of authorities before they call on_tls(). */
	if (t->tls_begun || code == CURLE_SSL_CACERT_BADFILE)
		return "TLS";
	return http_transfer_has_address(t) ? "connect" : "name resolution";
}

/* Writes the error, in one line: in our words where curl's own message would not help. */
static void
describe_failure(const http_transfer *t, CURLcode code, int64_t elapsed_us,
				 http_reply *reply)
{
	/* Do not show a message with a proxy's URL, which may have a password. */
	bool		usable = t->error[0] != '\0' && !(t->proxied && strstr(t->error, "://") != NULL);
	const char *words = usable ? t->error : curl_easy_strerror(code);
	long		refusal = strcmp(reply->phase, "proxy") == 0 ? proxy_status(t) : 0;
	bool		other = t->scheme[0] != '\0' && strcmp(t->scheme, OUR_SCHEME) != 0;
	long		os_errno = 0;

	if (code == CURLE_COULDNT_CONNECT)
		curl_easy_getinfo(t->easy, CURLINFO_OS_ERRNO, &os_errno);
	if (code == CURLE_COULDNT_CONNECT && t->open_errno != 0)
		os_errno = t->open_errno;
	if (t->proxy_unusable != NULL)
		snprintf(reply->error, sizeof(reply->error),
				 "\"%s\" is not the URL of an HTTP proxy", t->proxy_unusable);
	else if (t->refusal != NULL && !t->started)
		snprintf(reply->error, sizeof(reply->error), "%s", t->refusal);
	else if (refusal != 0)
	{
		reply->refused = refusal == PROXY_REFUSES || refusal == 401;
		snprintf(reply->error, sizeof(reply->error), "The proxy refuses %s: HTTP status %ld%s%s%s",
				 t->started ? "the request" : "CONNECT", refusal, !reply->refused ? "" :
				 other ? ", it wants " : ", user and password are missing or wrong",
				 other ? t->scheme : "", other ? ", and ddblock only sends " OUR_SCHEME : "");
	}
	else if (t->too_large)
		snprintf(reply->error, sizeof(reply->error),
				 "Reply is larger than %zu bytes, or its headers and framing than %d",
				 t->reply_max, OVERHEAD_MAX);
	else if (t->started && code == LINE_TOO_LONG)
		snprintf(reply->error, sizeof(reply->error),
				 "Out of memory, or a line of the reply's headers is too long");
	else if (t->started && code == CURLE_ABORTED_BY_CALLBACK)
		snprintf(reply->error, sizeof(reply->error),
				 "Connection closed before a reply came");
	else if (code == CURLE_OPERATION_TIMEDOUT)
		snprintf(reply->error, sizeof(reply->error),
				 "Timed out after %lld ms (%s)",
				 (long long) (elapsed_us / 1000), reply->phase);
	else if (os_errno != 0)
		snprintf(reply->error, sizeof(reply->error), "%.200s (%.50s)",
				 words, strerror((int) os_errno));
	else
		snprintf(reply->error, sizeof(reply->error), "%s", words);
	for (char *p = reply->error; *p != '\0'; p++)
		if ((unsigned char) *p < ' ')
			*p = ' ';
}

/*
 * Has TLS failed in a way that a repetition does not mend: because of a wrong certificate, or a
 * server without TLS?  A handshake that breaks off does not count: the server may just be starting.
 */
static bool
is_untrusted(const http_transfer *t, CURLcode code)
{
	static const char *const words[] = {
		"wrong version number", "packet length too long", "unsupported protocol",
		"alert protocol version"
	};

	if (code == CURLE_PEER_FAILED_VERIFICATION || code == CURLE_SSL_CACERT_BADFILE)
		return true;
	for (size_t i = 0; code == CURLE_SSL_CONNECT_ERROR &&
		 i < sizeof(words) / sizeof(words[0]); i++)
	{
		if (strstr(t->error, words[i]) != NULL)
			return true;
	}
	return false;
}

/* The value of a header of the reply itself, not of an interim reply or a trailer; "": none. */
static const char *
header_of(const http_transfer *t, const char *name)
{
	struct curl_header *header;

	return curl_easy_header(t->easy, name, 0, CURLH_HEADER, -1, &header) == CURLHE_OK ?
		header->value : "";
}

static void
copy_header(const http_transfer *t, const char *name, char *to, size_t size)
{
	if (aws_is_visible_ascii(header_of(t, name)))
		(void) aws_copy_text(header_of(t, name), to, size);
}

void
http_transfer_ended(const http_transfer *t, CURLcode code, int64_t elapsed_us,
					http_reply *reply)
{
	bool		refused = t->proxied && t->started && proxy_status(t) == PROXY_REFUSES;

	if (code == CURLE_OK && !refused)
	{
		long		status = 0;

		curl_easy_getinfo(t->easy, CURLINFO_RESPONSE_CODE, &status);
		t->reply[t->reply_len] = '\0';
		reply->outcome = HTTP_REPLIED;
		reply->status = (int) status;
		reply->body = t->reply;
		reply->len = t->reply_len;
		copy_header(t, "x-amz-crc32", reply->crc32, sizeof(reply->crc32));
		copy_header(t, "x-amzn-ErrorType", reply->error_type, sizeof(reply->error_type));
		reply->date_s = curl_getdate(header_of(t, "Date"), NULL);
		if (reply->date_s < 0)
			reply->date_s = 0;
		return;
	}
	if (t->started && !refused)
	{
		long		connects = 0;

		/*
		 * curl has this code if the reply does not begin as HTTP does ("HTTP/0.9").  On a reused
		 * connection the server has spoken HTTP before.
		 */
		curl_easy_getinfo(t->easy, CURLINFO_NUM_CONNECTS, &connects);
		reply->outcome = code == CURLE_UNSUPPORTED_PROTOCOL && connects > 0 ?
			HTTP_FOREIGN : HTTP_UNKNOWN;
	}
	else
		reply->outcome = is_untrusted(t, code) ? HTTP_UNTRUSTED : HTTP_NOT_SENT;
	reply->body = "";
	reply->phase = phase_of_failure(t, code);
	describe_failure(t, code, elapsed_us, reply);
}
