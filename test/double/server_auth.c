/*-------------------------------------------------------------------------
 *
 * server_auth.c
 *	  Checks signatures, as AWS does: the other side's view of SigV4.
 *
 * Written from AWS's description ("Create a signed AWS API request"), and on
 * purpose without a look at src/aws/sigv4.c: the canonical request is laid
 * out as text from what has come over the wire.
 *
 *-------------------------------------------------------------------------
 */
#define _GNU_SOURCE				/* timegm() */

#include <ctype.h>
#include <openssl/hmac.h>
#include <openssl/sha.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "server.h"

#define ALGORITHM "AWS4-HMAC-SHA256"
#define SKEW_MAX_S (15 * 60)
#define INVALID "InvalidSignatureException"
#define HEX_SIZE 65

/* The Authorization header, taken apart. */
typedef struct authorization
{
	char		text[4096];
	const char *credential;
	const char *signed_headers;
	const char *signature;
	char		key[SERVER_KEY_SIZE];
	const char *scope;			/* DATE/REGION/SERVICE/aws4_request */
} authorization;

static void
copy(char **to, const char *from)
{
	free(*to);
	*to = from != NULL && from[0] != '\0' ? strdup(from) : NULL;
}

static server_credential *
find_credential(server *s, const char *key)
{
	server_credential *credential = s->credentials;

	while (credential != NULL && strcmp(credential->key, key) != 0)
		credential = credential->next;
	return credential;
}

/* Adds it, or changes what is not NULL. */
void
server_auth_set(server *s, const char *key, const char *secret, const char *token,
				const char *state)
{
	server_credential *credential = find_credential(s, key);

	if (credential == NULL)
	{
		credential = calloc(1, sizeof(server_credential));
		credential->key = strdup(key);
		credential->secret = strdup("");
		credential->next = s->credentials;
		s->credentials = credential;
	}
	if (secret != NULL)
		copy(&credential->secret, secret);
	if (token != NULL)
		copy(&credential->token, token);
	if (state != NULL)
		credential->state = strcmp(state, "expired") == 0 ? SERVER_EXPIRED :
			strcmp(state, "gone") == 0 ? SERVER_GONE : SERVER_VALID;
	credential->scope[0] = '\0';
}

static void
to_hex(const unsigned char hash[32], char hex[HEX_SIZE])
{
	for (int i = 0; i < 32; i++)
		snprintf(hex + 2 * i, 3, "%02x", hash[i]);
}

/* The value of NAME=value, up to the next comma or the end. */
static const char *
part_of(char *text, const char *name)
{
	char	   *at = strstr(text, name);

	return at == NULL ? NULL : at + strlen(name);
}

static bool
parse_authorization(const char *header, authorization *a)
{
	const char *slash;

	if (strncmp(header, ALGORITHM " ", strlen(ALGORITHM) + 1) != 0 ||
		strlen(header) >= sizeof(a->text))
		return false;
	strcpy(a->text, header + strlen(ALGORITHM) + 1);
	a->credential = part_of(a->text, "Credential=");
	a->signed_headers = part_of(a->text, "SignedHeaders=");
	a->signature = part_of(a->text, "Signature=");
	if (a->credential == NULL || a->signed_headers == NULL || a->signature == NULL)
		return false;
	for (char *c = a->text; *c != '\0'; c++)
	{
		if (*c == ',' || *c == ' ')
			*c = '\0';
	}
	slash = strchr(a->credential, '/');
	if (slash == NULL || slash - a->credential >= SERVER_KEY_SIZE)
		return false;
	snprintf(a->key, sizeof(a->key), "%.*s", (int) (slash - a->credential), a->credential);
	a->scope = slash + 1;
	return true;
}

static bool
is_signed(const authorization *a, const char *name)
{
	size_t		len = strlen(name);
	const char *at = a->signed_headers;

	while (at != NULL)
	{
		if (strncmp(at, name, len) == 0 && (at[len] == ';' || at[len] == '\0'))
			return true;
		at = strchr(at, ';');
		at = at == NULL ? NULL : at + 1;
	}
	return false;
}

/* Host and everything that AWS itself defines has to be signed. */
static bool
check_signed_headers(const server_http *http, const authorization *a, char *message,
					 size_t size)
{
	static const char *const required[] = {"host", "x-amz-date", "x-amz-target"};
	const char *missing = NULL;

	for (int i = 0; i < 3; i++)
	{
		if (!is_signed(a, required[i]) || server_http_header(http, required[i]) == NULL)
			missing = required[i];
	}
	for (int i = 0; i < http->header_count; i++)
	{
		if (strncmp(http->headers[i].name, "x-amz-", 6) == 0 &&
			!is_signed(a, http->headers[i].name))
			missing = http->headers[i].name;
	}
	if (missing == NULL)
		return true;
	snprintf(message, size, "'%s' must be a 'SignedHeader' in the AWS Authorization.",
			 missing);
	return false;
}

static void
format_time(time_t when, char text[32])
{
	struct tm	utc;

	gmtime_r(&when, &utc);
	strftime(text, 32, "%Y%m%dT%H%M%SZ", &utc);
}

static bool
parse_time(const char *text, time_t *when)
{
	struct tm	utc = {0};
	char		zone;

	if (strlen(text) != 16 ||
		sscanf(text, "%4d%2d%2dT%2d%2d%2d%c", &utc.tm_year, &utc.tm_mon, &utc.tm_mday,
			   &utc.tm_hour, &utc.tm_min, &utc.tm_sec, &zone) != 7 || zone != 'Z')
		return false;
	utc.tm_year -= 1900;
	utc.tm_mon--;
	*when = timegm(&utc);
	return true;
}

static bool
check_date(server *s, const char *date, const authorization *a, char *message, size_t size)
{
	time_t		now = time(NULL) + s->skew_s;
	time_t		when;
	char		now_text[32];
	char		limit_text[32];

	if (!parse_time(date, &when))
	{
		snprintf(message, size, "Date must be in ISO-8601 'basic format'. Got '%s'.", date);
		return false;
	}
	if (strncmp(a->scope, date, 8) != 0 || a->scope[8] != '/')
	{
		snprintf(message, size, "Date in Credential scope does not match YYYYMMDD from"
				 " ISO-8601 version of date from HTTP");
		return false;
	}
	if (llabs((long long) now - (long long) when) <= SKEW_MAX_S)
		return true;
	format_time(now, now_text);
	format_time(when < now ? now - SKEW_MAX_S : now + SKEW_MAX_S, limit_text);
	if (when < now)
		snprintf(message, size, "Signature expired: %s is now earlier than %s (%s - 15"
				 " min.)", date, limit_text, now_text);
	else
		snprintf(message, size, "Signature not yet current: %s is still later than %s (%s"
				 " + 15 min.)", date, limit_text, now_text);
	return false;
}

/* The scope is DATE/REGION/dynamodb/aws4_request, with any region. */
static bool
check_scope(const authorization *a, char *message, size_t size)
{
	const char *region = strchr(a->scope, '/');
	const char *service = region == NULL ? NULL : strchr(region + 1, '/');

	if (service != NULL && service > region + 1 &&
		strcmp(service, "/dynamodb/aws4_request") == 0)
		return true;
	snprintf(message, size, "Credential should be scoped to correct service: 'dynamodb'. ");
	return false;
}

/* A header's values, spaces squeezed, several of one name joined by commas. */
static void
append_values(server_bytes *to, const server_http *http, const char *name, size_t len)
{
	bool		first = true;

	for (int i = 0; i < http->header_count; i++)
	{
		const char *value = http->headers[i].value;

		if (strlen(http->headers[i].name) != len ||
			memcmp(http->headers[i].name, name, len) != 0)
			continue;
		if (!first)
			server_append(to, ",", 1);
		first = false;
		for (; *value != '\0'; value++)
		{
			if (*value != ' ' || value[1] != ' ')
				server_append(to, value, 1);
		}
	}
}

static void
append_text(server_bytes *to, const char *text)
{
	server_append(to, text, strlen(text));
}

static void
canonical_request(server_bytes *to, const server_http *http, const authorization *a)
{
	unsigned char hash[32];
	char		hex[HEX_SIZE];
	const char *name = a->signed_headers;

	append_text(to, http->method);
	append_text(to, "\n");
	append_text(to, http->path);
	append_text(to, "\n");
	append_text(to, http->query);
	append_text(to, "\n");
	while (name != NULL)
	{
		size_t		len = strcspn(name, ";");

		server_append(to, name, len);
		append_text(to, ":");
		append_values(to, http, name, len);
		append_text(to, "\n");
		name = name[len] == ';' ? name + len + 1 : NULL;
	}
	append_text(to, "\n");
	append_text(to, a->signed_headers);
	append_text(to, "\n");
	SHA256((const unsigned char *) http->body, http->body_len, hash);
	to_hex(hash, hex);
	append_text(to, hex);
}

static void
mac(const void *key, size_t key_len, const char *text, size_t len, unsigned char out[32])
{
	unsigned int out_len = 32;

	HMAC(EVP_sha256(), key, (int) key_len, (const unsigned char *) text, len, out,
		 &out_len);
}

/* Derives the key of the scope, unless that is the one of the last request. */
static void
derive_key(server_credential *credential, const char *scope)
{
	char		start[600];
	const char *part = scope;

	if (strcmp(credential->scope, scope) == 0)
		return;
	snprintf(start, sizeof(start), "AWS4%s", credential->secret);
	mac(start, strlen(start), part, strcspn(part, "/"), credential->derived);
	while ((part = strchr(part, '/')) != NULL)
	{
		unsigned char key[32];

		part++;
		memcpy(key, credential->derived, sizeof(key));
		mac(key, sizeof(key), part, strcspn(part, "/"), credential->derived);
	}
	snprintf(credential->scope, sizeof(credential->scope), "%s", scope);
}

/* As AWS does, the message tells everything that should have been signed. */
static bool
check_signature(server_credential *credential, const server_http *http,
				const authorization *a, char *message, size_t size)
{
	server_bytes request = {0};
	server_bytes to_sign = {0};
	unsigned char hash[32];
	char		hex[HEX_SIZE];
	bool		good;

	canonical_request(&request, http, a);
	SHA256((const unsigned char *) request.data, request.len, hash);
	to_hex(hash, hex);
	append_text(&to_sign, ALGORITHM "\n");
	append_text(&to_sign, server_http_header(http, "x-amz-date"));
	append_text(&to_sign, "\n");
	append_text(&to_sign, a->scope);
	append_text(&to_sign, "\n");
	append_text(&to_sign, hex);

	derive_key(credential, a->scope);
	mac(credential->derived, sizeof(credential->derived), to_sign.data, to_sign.len, hash);
	to_hex(hash, hex);
	good = strcmp(hex, a->signature) == 0;
	if (!good)
		snprintf(message, size, "The request signature we calculated does not match the"
				 " signature you provided. Check your AWS Secret Access Key and signing"
				 " method. Consult the service documentation for details.\n\nThe Canonical"
				 " String for this request should have been\n'%s'\n\nThe String-to-Sign"
				 " should have been\n'%s'\n", request.data, to_sign.data);
	free(request.data);
	free(to_sign.data);
	return good;
}

/* Is the key known and alive, with the right token?  NULL or the error. */
static const char *
check_credential(const server_credential *credential, const char *token, char *message,
				 size_t size)
{
	bool		same;

	if (credential != NULL && credential->state == SERVER_EXPIRED)
	{
		snprintf(message, size, "The security token included in the request is expired");
		return "ExpiredTokenException";
	}
	same = credential != NULL && credential->state == SERVER_VALID &&
		(credential->token == NULL) == (token == NULL) &&
		(token == NULL || strcmp(token, credential->token) == 0);
	if (same)
		return NULL;
	snprintf(message, size, "The security token included in the request is invalid.");
	return "UnrecognizedClientException";
}

const char *
server_auth_check(server *s, const server_http *http, char key[SERVER_KEY_SIZE],
				  char *message, size_t size)
{
	const char *header = server_http_header(http, "authorization");
	const char *error;
	server_credential *credential;
	authorization a;

	key[0] = '\0';
	if (header == NULL)
	{
		snprintf(message, size, "Request is missing Authentication Token");
		return "MissingAuthenticationTokenException";
	}
	if (!parse_authorization(header, &a))
	{
		snprintf(message, size, "Authorization header requires 'Credential', 'Signature'"
				 " and 'SignedHeaders' parameters. Authorization=%s", header);
		return "IncompleteSignatureException";
	}
	memcpy(key, a.key, SERVER_KEY_SIZE);
	credential = find_credential(s, key);
	error = check_credential(credential, server_http_header(http, "x-amz-security-token"),
							 message, size);
	if (error != NULL)
		return error;
	if (!check_signed_headers(http, &a, message, size) ||
		!check_scope(&a, message, size) ||
		!check_date(s, server_http_header(http, "x-amz-date"), &a, message, size) ||
		!check_signature(credential, http, &a, message, size))
		return INVALID;
	return NULL;
}
