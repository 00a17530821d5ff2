/*-------------------------------------------------------------------------
 *
 * sigv4.c
 *	  AWS Signature Version 4 for a POST with a body held in memory.
 *
 * The pieces of the canonical request are hashed without being assembled.  A
 * request costs three hashes (body, canonical request, secret) and one HMAC; the
 * four HMACs that derive the key are computed once a day.
 *
 * OpenSSL's implementations are fetched once per process, because fetching one
 * costs more than hashing a small request.
 *
 *-------------------------------------------------------------------------
 */
#include "aws/sigv4.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define ALGORITHM "AWS4-HMAC-SHA256"
#define MAX_HEADERS 64
#define MAX_SECRET 512
#define HASH_SIZE 32
#define BLOCK_SIZE 64			/* SHA-256's, as HMAC needs it */
#define INNER_PAD 0x36
#define OUTER_PAD 0x5c
#define HEX_SIZE (2 * HASH_SIZE + 1)
#define DATE_LEN 8				/* the day at the start of x-amz-date */

/* Text in a buffer; failed once something did not fit. */
typedef struct text_buffer
{
	char	   *data;
	size_t		size;
	size_t		len;
	bool		overflow;
} text_buffer;

static CRYPTO_ONCE fetch_once = CRYPTO_ONCE_STATIC_INIT;
static EVP_MD *sha256_md;

static void
fetch_algorithms(void)
{
	sha256_md = EVP_MD_fetch(NULL, "SHA256", NULL);
}

static bool
have_algorithms(void)
{
	return CRYPTO_THREAD_run_once(&fetch_once, fetch_algorithms) == 1 &&
		sha256_md != NULL;
}

void
sigv4_amz_date(int64_t epoch_s, char out[SIGV4_DATE_SIZE])
{
	const int64_t last = INT64_C(253402300799); /* end of the year 9999 */
	time_t		when;
	struct tm	utc;

	when = epoch_s < 0 ? 0 : epoch_s > last ? last : epoch_s;
	gmtime_r(&when, &utc);
	strftime(out, SIGV4_DATE_SIZE, "%Y%m%dT%H%M%SZ", &utc);
}

/*
 * Text helpers
 */

static bool
is_space(char c)
{
	return c == ' ' || (c >= '\t' && c <= '\r');
}

static char
ascii_lower(char c)
{
	return c >= 'A' && c <= 'Z' ? (char) (c - 'A' + 'a') : c;
}

/* strcasecmp(), independent of the locale. */
static int
compare_names(const char *a, const char *b)
{
	while (*a != '\0' && ascii_lower(*a) == ascii_lower(*b))
	{
		a++;
		b++;
	}
	return (unsigned char) ascii_lower(*a) - (unsigned char) ascii_lower(*b);
}

static void
to_hex(const uint8_t hash[HASH_SIZE], char hex[HEX_SIZE])
{
	static const char digits[] = "0123456789abcdef";
	int			i;

	for (i = 0; i < HASH_SIZE; i++)
	{
		hex[2 * i] = digits[hash[i] >> 4];
		hex[2 * i + 1] = digits[hash[i] & 15];
	}
	hex[2 * HASH_SIZE] = '\0';
}

static void
put(text_buffer *buffer, const char *text)
{
	size_t		len = strlen(text);

	if (buffer->overflow || len >= buffer->size - buffer->len)
	{
		buffer->overflow = true;
		return;
	}
	memcpy(buffer->data + buffer->len, text, len + 1);
	buffer->len += len;
}

static void
put_lower(text_buffer *buffer, const char *text)
{
	size_t		i = buffer->len;

	put(buffer, text);
	for (; i < buffer->len; i++)
		buffer->data[i] = ascii_lower(buffer->data[i]);
}

/*
 * Hashing
 */

static bool
feed(EVP_MD_CTX *ctx, const char *text)
{
	return EVP_DigestUpdate(ctx, text, strlen(text)) == 1;
}

static bool
hash_bytes(EVP_MD_CTX *ctx, const void *data, size_t len,
		   uint8_t hash[HASH_SIZE])
{
	return EVP_DigestInit_ex2(ctx, sha256_md, NULL) == 1 &&
		EVP_DigestUpdate(ctx, data, len) == 1 &&
		EVP_DigestFinal_ex(ctx, hash, NULL) == 1;
}

/* XORs one of HMAC's paddings into the key's block, and starts a hash with it. */
static bool
hash_padded(EVP_MD_CTX *ctx, uint8_t block[BLOCK_SIZE], uint8_t pad,
			const void *data, size_t len, uint8_t hash[HASH_SIZE])
{
	for (int i = 0; i < BLOCK_SIZE; i++)
		block[i] ^= pad;
	return EVP_DigestInit_ex2(ctx, sha256_md, NULL) == 1 &&
		EVP_DigestUpdate(ctx, block, BLOCK_SIZE) == 1 &&
		EVP_DigestUpdate(ctx, data, len) == 1 &&
		EVP_DigestFinal_ex(ctx, hash, NULL) == 1;
}

/*
 * HMAC as in RFC 2104.  EVP_MAC, with a new context each time, would cost about as
 * much as the rest of signing.
 */
static bool
hmac(EVP_MD_CTX *ctx, const void *key, size_t key_len, const void *data,
	 size_t len, uint8_t mac[HASH_SIZE])
{
	uint8_t		block[BLOCK_SIZE] = {0};
	bool		ok = true;

	if (key_len > BLOCK_SIZE)
		ok = hash_bytes(ctx, key, key_len, block);
	else
		memcpy(block, key, key_len);
	ok = ok && hash_padded(ctx, block, INNER_PAD, data, len, mac) &&
		hash_padded(ctx, block, INNER_PAD ^ OUTER_PAD, mac, HASH_SIZE, mac);
	OPENSSL_cleanse(block, sizeof(block));
	return ok;
}

/*
 * The canonical request
 */

/* Stable: the values of a repeated header must keep their order. */
static void
sort_headers(const sigv4_request *request,
			 const sigv4_header *sorted[MAX_HEADERS])
{
	int			i;
	int			j;

	for (i = 0; i < request->header_count; i++)
	{
		const sigv4_header *header = &request->headers[i];

		for (j = i; j > 0; j--)
		{
			if (compare_names(sorted[j - 1]->name, header->name) <= 0)
				break;
			sorted[j] = sorted[j - 1];
		}
		sorted[j] = header;
	}
}

static bool
same_as_previous(const sigv4_header *const *sorted, int i)
{
	return i > 0 && compare_names(sorted[i - 1]->name, sorted[i]->name) == 0;
}

static void
put_signed_headers(text_buffer *out, const sigv4_header *const *sorted,
				   int count)
{
	int			i;

	for (i = 0; i < count; i++)
	{
		if (same_as_previous(sorted, i))
			continue;
		if (i > 0)
			put(out, ";");
		put_lower(out, sorted[i]->name);
	}
}

/* The value, trimmed, with each run of white space as one blank. */
static bool
feed_header_value(EVP_MD_CTX *ctx, const char *value)
{
	bool		ok = true;
	bool		first = true;

	for (;;)
	{
		size_t		len = 0;

		while (is_space(*value))
			value++;
		while (value[len] != '\0' && !is_space(value[len]))
			len++;
		if (len == 0)
			return ok;
		if (!first)
			ok = ok && feed(ctx, " ");
		ok = ok && EVP_DigestUpdate(ctx, value, len) == 1;
		value += len;
		first = false;
	}
}

static bool
feed_header_name(EVP_MD_CTX *ctx, const char *name)
{
	char		lower[64];
	size_t		len = 0;
	bool		ok = true;

	while (ok && *name != '\0')
	{
		for (len = 0; len < sizeof(lower) && name[len] != '\0'; len++)
			lower[len] = ascii_lower(name[len]);
		ok = EVP_DigestUpdate(ctx, lower, len) == 1;
		name += len;
	}
	return ok && feed(ctx, ":");
}

static bool
feed_headers(EVP_MD_CTX *ctx, const sigv4_header *const *sorted, int count)
{
	bool		ok = true;
	int			i;

	for (i = 0; i < count; i++)
	{
		if (same_as_previous(sorted, i))
			ok = ok && feed(ctx, ",");
		else
			ok = ok && (i == 0 || feed(ctx, "\n")) &&
				feed_header_name(ctx, sorted[i]->name);
		ok = ok && feed_header_value(ctx, sorted[i]->value);
	}
	return ok && (count == 0 || feed(ctx, "\n"));
}

static bool
hash_canonical_request(EVP_MD_CTX *ctx, const sigv4_request *request,
					   const sigv4_header *const *sorted,
					   const char *signed_headers, char hex[HEX_SIZE])
{
	uint8_t		hash[HASH_SIZE];
	char		body_hex[HEX_SIZE];

	if (!hash_bytes(ctx, request->body, request->body_len, hash))
		return false;
	to_hex(hash, body_hex);
	if (EVP_DigestInit_ex2(ctx, sha256_md, NULL) != 1 ||
		!feed(ctx, request->method) || !feed(ctx, "\n") ||
		!feed(ctx, request->path) || !feed(ctx, "\n") ||
		!feed(ctx, request->query) || !feed(ctx, "\n") ||
		!feed_headers(ctx, sorted, request->header_count) ||
		!feed(ctx, "\n") ||
		!feed(ctx, signed_headers) || !feed(ctx, "\n") ||
		!feed(ctx, body_hex) ||
		EVP_DigestFinal_ex(ctx, hash, NULL) != 1)
		return false;
	to_hex(hash, hex);
	return true;
}

/*
 * The key
 */

static bool
write_scope(const sigv4_request *request, char *scope, size_t size)
{
	int			len;

	if (strlen(request->amz_date) != SIGV4_DATE_SIZE - 1)
		return false;
	len = snprintf(scope, size, "%.*s/%s/%s/aws4_request", DATE_LEN,
				   request->amz_date, request->region, request->service);
	return len > 0 && (size_t) len < size;
}

static bool
derive_key(EVP_MD_CTX *ctx, const sigv4_request *request, uint8_t key[HASH_SIZE])
{
	char		secret[MAX_SECRET];
	int			len;
	bool		ok;

	len = snprintf(secret, sizeof(secret), "AWS4%s",
				   request->secret_access_key);
	ok = len > 0 && (size_t) len < sizeof(secret) &&
		hmac(ctx, secret, (size_t) len, request->amz_date, DATE_LEN, key) &&
		hmac(ctx, key, HASH_SIZE, request->region, strlen(request->region), key) &&
		hmac(ctx, key, HASH_SIZE, request->service, strlen(request->service), key) &&
		hmac(ctx, key, HASH_SIZE, "aws4_request", strlen("aws4_request"), key);
	OPENSSL_cleanse(secret, sizeof(secret));
	return ok;
}

/* Derives the key for the request, unless it is the cached one. */
static bool
refresh_key(EVP_MD_CTX *ctx, const sigv4_request *request, sigv4_key *key)
{
	char		scope[sizeof(key->scope)] = "";
	uint8_t		secret_hash[HASH_SIZE];

	if (!write_scope(request, scope, sizeof(scope)) ||
		!hash_bytes(ctx, request->secret_access_key,
					strlen(request->secret_access_key), secret_hash))
		return false;
	if (key->valid && strcmp(key->scope, scope) == 0 &&
		CRYPTO_memcmp(key->secret_hash, secret_hash, HASH_SIZE) == 0)
		return true;

	sigv4_key_wipe(key);
	if (!derive_key(ctx, request, key->key))
	{
		sigv4_key_wipe(key);
		return false;
	}
	memcpy(key->scope, scope, sizeof(scope));
	memcpy(key->secret_hash, secret_hash, HASH_SIZE);
	key->valid = true;
	return true;
}

static bool
sign_hash(EVP_MD_CTX *ctx, const sigv4_request *request, const sigv4_key *key,
		  const char *request_hex, char hex[HEX_SIZE])
{
	char		to_sign[sizeof(ALGORITHM) + SIGV4_DATE_SIZE +
						sizeof(key->scope) + HEX_SIZE];
	uint8_t		signature[HASH_SIZE];
	int			len;

	len = snprintf(to_sign, sizeof(to_sign), ALGORITHM "\n%s\n%s\n%s",
				   request->amz_date, key->scope, request_hex);
	if (!hmac(ctx, key->key, HASH_SIZE, to_sign, (size_t) len, signature))
		return false;
	to_hex(signature, hex);
	return true;
}

static bool
write_authorization(EVP_MD_CTX *ctx, const sigv4_request *request,
					sigv4_key *key, text_buffer *out)
{
	const sigv4_header *sorted[MAX_HEADERS];
	size_t		signed_headers;
	char		hex[HEX_SIZE];

	if (request->header_count > MAX_HEADERS || !refresh_key(ctx, request, key))
		return false;
	sort_headers(request, sorted);

	put(out, ALGORITHM " Credential=");
	put(out, request->access_key_id);
	put(out, "/");
	put(out, key->scope);
	put(out, ", SignedHeaders=");
	signed_headers = out->len;
	put_signed_headers(out, sorted, request->header_count);
	if (out->overflow ||
		!hash_canonical_request(ctx, request, sorted,
								out->data + signed_headers, hex) ||
		!sign_hash(ctx, request, key, hex, hex))
		return false;
	put(out, ", Signature=");
	put(out, hex);
	return !out->overflow;
}

bool
sigv4_sign(const sigv4_request *request, sigv4_key *key,
		   char *out, size_t size)
{
	text_buffer buffer = {.data = out,.size = size};
	EVP_MD_CTX *ctx;
	bool		ok;

	if (size == 0)
		return false;
	out[0] = '\0';
	if (!have_algorithms() || (ctx = EVP_MD_CTX_new()) == NULL)
		return false;
	ok = write_authorization(ctx, request, key, &buffer);
	EVP_MD_CTX_free(ctx);
	if (!ok)
		out[0] = '\0';
	return ok;
}

void
sigv4_key_wipe(sigv4_key *key)
{
	OPENSSL_cleanse(key, sizeof(*key));
}
