/*-------------------------------------------------------------------------
 *
 * sigv4.c
 *	  AWS Signature Version 4 for a POST with a body held in memory.
 *
 * The pieces of the canonical request are hashed one by one, and never assembled.  A request costs
 * three hashes (body, canonical request, secret) and one HMAC.  The key is derived once a day, by
 * four HMACs.
 *
 * OpenSSL's implementations, and the context for HMACs, are fetched once per process: to fetch them
 * takes longer than to hash a small request.
 *
 *-------------------------------------------------------------------------
 */
#include "aws/aws.h"

#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/params.h>
#include <time.h>

#define ALGORITHM "AWS4-HMAC-SHA256"
#define MAX_HEADERS 64
#define MAX_SECRET 512
#define MAX_NAMES 1024			/* the list of signed headers, with a NUL */
#define HASH_SIZE 32
#define HEX_SIZE (2 * HASH_SIZE + 1)
#define DATE_LEN 8				/* the day at the start of x-amz-date */

static CRYPTO_ONCE fetch_once = CRYPTO_ONCE_STATIC_INIT;
static EVP_MD *sha256_md;
static EVP_MAC_CTX *hmac_ctx;	/* with SHA-256 and without a key; NULL: it could not be made */

static void
fetch_algorithms(void)
{
	EVP_MAC    *mac = EVP_MAC_fetch(NULL, "HMAC", NULL);
	const OSSL_PARAM params[] = {
		OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, "SHA256", 0),
		OSSL_PARAM_construct_end(),
	};

	sha256_md = EVP_MD_fetch(NULL, "SHA256", NULL);
	if (mac != NULL)
		hmac_ctx = EVP_MAC_CTX_new(mac);
	if (hmac_ctx != NULL && EVP_MAC_CTX_set_params(hmac_ctx, params) != 1)
	{
		EVP_MAC_CTX_free(hmac_ctx);
		hmac_ctx = NULL;
	}
	EVP_MAC_free(mac);
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

/* strcasecmp(), independent of the locale. */
static int
compare_names(const char *a, const char *b)
{
	while (*a != '\0' && aws_lower(*a) == aws_lower(*b))
	{
		a++;
		b++;
	}
	return (unsigned char) aws_lower(*a) - (unsigned char) aws_lower(*b);
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

/*
 * Hashing
 */

static bool
feed(EVP_MD_CTX *ctx, const char *text)
{
	return EVP_DigestUpdate(ctx, text, strlen(text)) == 1;
}

/* Computes an HMAC.  key NULL: with the key that the context has. */
static bool
hmac(EVP_MAC_CTX *ctx, const void *key, size_t key_len, const void *data, size_t len,
	 uint8_t mac[HASH_SIZE])
{
	return EVP_MAC_init(ctx, key, key_len, NULL) == 1 &&
		EVP_MAC_update(ctx, data, len) == 1 &&
		EVP_MAC_final(ctx, mac, NULL, HASH_SIZE) == 1;
}

/*
 * The canonical request
 */

/* Sorts by name.  The sort is stable: the values of a repeated header must keep their order. */
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

/* Writes the names in lower case, as in "content-type;host"; false if they do not fit. */
static bool
list_signed_headers(const sigv4_header *const *sorted, int count, char names[MAX_NAMES])
{
	size_t		len = 0;

	names[0] = '\0';
	for (int i = 0; i < count && len < MAX_NAMES; i++)
		if (!same_as_previous(sorted, i))
			len += (size_t) snprintf(names + len, MAX_NAMES - len, "%s%s", i > 0 ? ";" : "",
									 sorted[i]->name);
	for (; *names != '\0'; names++)
		*names = aws_lower(*names);
	return len < MAX_NAMES;
}

/* Hashes the value, trimmed, with one blank for each sequence of white space. */
static bool
feed_header_value(EVP_MD_CTX *ctx, const char *value)
{
	bool		ok = true;
	bool		first = true;

	for (;;)
	{
		size_t		len = 0;

		while (aws_is_space(*value))
			value++;
		while (value[len] != '\0' && !aws_is_space(value[len]))
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

/* names: as list_signed_headers() has written them.  It has a repeated header's name once. */
static bool
feed_headers(EVP_MD_CTX *ctx, const sigv4_header *const *sorted, int count, const char *names)
{
	bool		ok = true;

	for (int i = 0; i < count; i++)
	{
		if (same_as_previous(sorted, i))
			ok = ok && feed(ctx, ",");
		else
		{
			size_t		len = strlen(sorted[i]->name);

			ok = ok && (i == 0 || feed(ctx, "\n")) &&
				EVP_DigestUpdate(ctx, names, len) == 1 && feed(ctx, ":");
			names += len + 1;
		}
		ok = ok && feed_header_value(ctx, sorted[i]->value);
	}
	return ok && (count == 0 || feed(ctx, "\n"));
}

static bool
hash_canonical_request(const sigv4_request *request, const sigv4_header *const *sorted,
					   const char *signed_headers, char hex[HEX_SIZE])
{
	EVP_MD_CTX *ctx;
	uint8_t		hash[HASH_SIZE];
	char		body_hex[HEX_SIZE];
	bool		ok;

	if (EVP_Digest(request->body, request->body_len, hash, NULL, sha256_md, NULL) != 1)
		return false;
	to_hex(hash, body_hex);
	ctx = EVP_MD_CTX_new();
	ok = ctx != NULL && EVP_DigestInit_ex2(ctx, sha256_md, NULL) == 1 &&
		feed(ctx, request->method) && feed(ctx, "\n") &&
		feed(ctx, request->path) && feed(ctx, "\n") &&
		feed(ctx, request->query) && feed(ctx, "\n") &&
		feed_headers(ctx, sorted, request->header_count, signed_headers) &&
		feed(ctx, "\n") &&
		feed(ctx, signed_headers) && feed(ctx, "\n") &&
		feed(ctx, body_hex) &&
		EVP_DigestFinal_ex(ctx, hash, NULL) == 1;
	EVP_MD_CTX_free(ctx);
	if (ok)
		to_hex(hash, hex);
	return ok;
}

/*
 * The key
 */

/* A new context with the key of the request's day, Region, service and secret; NULL: failed. */
static EVP_MAC_CTX *
derive_key(const sigv4_request *request)
{
	EVP_MAC_CTX *ctx = EVP_MAC_CTX_dup(hmac_ctx);
	char		secret[MAX_SECRET];
	uint8_t		key[HASH_SIZE];
	int			len;

	len = snprintf(secret, sizeof(secret), "AWS4%s",
				   request->secret_access_key);
	if (ctx != NULL && !(len > 0 && (size_t) len < sizeof(secret) &&
						 hmac(ctx, secret, (size_t) len, request->amz_date, DATE_LEN, key) &&
						 hmac(ctx, key, HASH_SIZE, request->region,
							  strlen(request->region), key) &&
						 hmac(ctx, key, HASH_SIZE, request->service,
							  strlen(request->service), key) &&
						 hmac(ctx, key, HASH_SIZE, "aws4_request",
							  strlen("aws4_request"), key) &&
						 EVP_MAC_init(ctx, key, HASH_SIZE, NULL) == 1))
	{
		EVP_MAC_CTX_free(ctx);
		ctx = NULL;
	}
	OPENSSL_cleanse(secret, sizeof(secret));
	OPENSSL_cleanse(key, sizeof(key));
	return ctx;
}

/* Makes the cache have the request's key: derives it unless it is there. */
static bool
refresh_key(const sigv4_request *request, sigv4_key *key)
{
	char		scope[sizeof(key->scope)] = "";
	uint8_t		secret_hash[HASH_SIZE];
	int			len = snprintf(scope, sizeof(scope), "%.*s/%s/%s/aws4_request", DATE_LEN,
							   request->amz_date, request->region, request->service);

	if (strlen(request->amz_date) != SIGV4_DATE_SIZE - 1 ||
		len < 0 || (size_t) len >= sizeof(scope) ||
		EVP_Digest(request->secret_access_key, strlen(request->secret_access_key),
				   secret_hash, NULL, sha256_md, NULL) != 1)
		return false;
	if (key->mac != NULL && strcmp(key->scope, scope) == 0 &&
		CRYPTO_memcmp(key->secret_hash, secret_hash, HASH_SIZE) == 0)
		return true;

	sigv4_key_wipe(key);
	key->mac = derive_key(request);
	memcpy(key->scope, scope, sizeof(scope));
	memcpy(key->secret_hash, secret_hash, HASH_SIZE);
	return key->mac != NULL;
}

bool
sigv4_sign(const sigv4_request *request, sigv4_key *key,
		   char *out, size_t size)
{
	const sigv4_header *sorted[MAX_HEADERS];
	char		names[MAX_NAMES];
	char		hex[HEX_SIZE];
	char		to_sign[sizeof(ALGORITHM) + SIGV4_DATE_SIZE +
						sizeof(key->scope) + HEX_SIZE];
	uint8_t		signature[HASH_SIZE];
	int			len;

	if (size == 0)
		return false;
	out[0] = '\0';
	if (request->header_count > MAX_HEADERS ||
		CRYPTO_THREAD_run_once(&fetch_once, fetch_algorithms) != 1 ||
		sha256_md == NULL || hmac_ctx == NULL || !refresh_key(request, key))
		return false;
	sort_headers(request, sorted);
	if (!list_signed_headers(sorted, request->header_count, names) ||
		!hash_canonical_request(request, sorted, names, hex))
		return false;
	len = snprintf(to_sign, sizeof(to_sign), ALGORITHM "\n%s\n%s\n%s",
				   request->amz_date, key->scope, hex);
	if (!hmac(key->mac, NULL, 0, to_sign, (size_t) len, signature))
		return false;
	to_hex(signature, hex);
	len = snprintf(out, size, ALGORITHM " Credential=%s/%s, SignedHeaders=%s, Signature=%s",
				   request->access_key_id, key->scope, names, hex);
	if (len >= 0 && (size_t) len < size)
		return true;
	out[0] = '\0';
	return false;
}

void
sigv4_key_wipe(sigv4_key *key)
{
	EVP_MAC_CTX_free(key->mac);
	OPENSSL_cleanse(key, sizeof(*key));
}
