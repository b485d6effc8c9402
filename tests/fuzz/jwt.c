/* SPDX-License-Identifier: Apache-2.0
 *
 * Fuzz target: any bytes as a signed token, and as claims behind a signature that nobody made.
 * Nobody is let in without a right signature, and none of these has one. Input that begins with
 * '{' is read as a key set, and as claims that the issuer did sign: who is let in by them is
 * what they say.
 */
#include <openssl/bn.h>
#include <openssl/core_names.h>
#include <openssl/ec.h>
#include <openssl/evp.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpu-agent/identity/jwt.h"
#include "gpu-agent/identity/text.h"

#define NOW 1500000000
#define HALF 32u /* bytes of each number of a signature by P-256 */

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

static const struct jwt_expected expected = {"https://i", "vcuda-agent"};

/* RFC 7515, A.2 and A.3: the RSA and P-256 keys of its examples. */
static const char jwks[] =
	"{\"keys\":[{\"kty\":\"RSA\",\"kid\":\"r\",\"e\":\"AQAB\",\"n\":"
	"\"ofgWCuLjybRlzo0tZWJjNiuSfb4p4fAkd_wWJcyQoTbji9k0l8W26mPddxHmfHQp-Vaw-4qPCJrcS2mJPMEz"
	"P1Pt0Bm4d4QlL-yRT-SFd2lZS-pCgNMsD1W_YpRPEwOWvG6b32690r2jZ47soMZo9wGzjb_7OMg0LOL-"
	"bSf63kp"
	"aSHSXndS5z5rexMdbBYUsLA9e-KXBdQOS-"
	"UTo7WTBEMa2R2CapHg665xsmtdVMTBQY4uDZlxvb3qCo5ZwKh9kG4"
	"LT6_I5IhlJH7aGhyxXFvUK-DWNmoudF8NAco9_"
	"h9iaGNj8q2ethFkMLs91kzk2PAcDTW9gb54h4FRWyuXpoQ\"},"
	"{\"kty\":\"EC\",\"kid\":\"e\",\"crv\":\"P-256\","
	"\"x\":\"f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU\","
	"\"y\":\"x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0\"}]}";

static const char alphabet[] =
	"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

static size_t encode(const uint8_t *bytes, size_t n, char *out)
{
	uint32_t bits = 0;
	unsigned have = 0;
	size_t got = 0;

	for (size_t i = 0; i < n; i++) {
		bits = bits << 8 | bytes[i];
		for (have += 8; have >= 6; have -= 6)
			out[got++] = alphabet[bits >> (have - 6) & 63];
	}
	if (have)
		out[got++] = alphabet[bits << (6 - have) & 63];
	return got;
}

static void refused(struct key_set *keys, const char *token, size_t n)
{
	struct jwt_subject subject;
	const char *why;

	if (!jwt_verify(keys, &expected, token, n, NOW, &subject, &why) || !why[0])
		abort();
}

/* The whole of the grammar below base64 is reached by encoding the input here. */
static void refused_encoded(struct key_set *keys, const uint8_t *bytes, size_t n)
{
	const uint8_t *line = memchr(bytes, '\n', n);
	size_t head = line ? (size_t)(line - bytes) : n, rest = line ? n - head - 1 : 0, at;
	char token[8192];

	if (n > 4096)
		return;
	at = encode(bytes, head, token);
	token[at++] = '.';
	at += encode(line ? line + 1 : bytes, rest, token + at);
	token[at++] = '.';
	at += encode(bytes, n < 64 ? n : 64, token + at);
	refused(keys, token, at);
}

/* --- an issuer ---------------------------------------------------------------------------- */

static EVP_PKEY *issuer;
static struct key_set *issued;

static size_t encode_number(const char *name, char *out)
{
	uint8_t raw[HALF];
	BIGNUM *number = NULL;
	size_t n;

	if (!EVP_PKEY_get_bn_param(issuer, name, &number) ||
		BN_bn2binpad(number, raw, HALF) != (int)HALF)
		abort();
	BN_free(number);
	n = encode(raw, HALF, out);
	out[n] = 0;
	return n;
}

static void issuer_begins(void)
{
	char x[64], y[64], set[256];
	int n;

	issuer = EVP_EC_gen("P-256");
	if (!issuer || !encode_number(OSSL_PKEY_PARAM_EC_PUB_X, x) ||
		!encode_number(OSSL_PKEY_PARAM_EC_PUB_Y, y))
		abort();
	n = snprintf(set, sizeof(set),
		"{\"keys\":[{\"kty\":\"EC\",\"kid\":\"i\",\"crv\":\"P-256\","
		"\"x\":\"%s\",\"y\":\"%s\"}]}",
		x, y);
	if (key_set_parse(&issued, set, (size_t)n, NULL))
		abort();
}

static void sign(const char *text, size_t n, uint8_t raw[2 * HALF])
{
	EVP_MD_CTX *ctx = EVP_MD_CTX_new();
	unsigned char der[128];
	const unsigned char *at = der;
	size_t size = sizeof(der);
	ECDSA_SIG *sig;

	if (!ctx || EVP_DigestSignInit(ctx, NULL, EVP_sha256(), NULL, issuer) != 1 ||
		EVP_DigestSign(ctx, der, &size, (const unsigned char *)text, n) != 1 ||
		!(sig = d2i_ECDSA_SIG(NULL, &at, (long)size)) ||
		BN_bn2binpad(ECDSA_SIG_get0_r(sig), raw, HALF) < 0 ||
		BN_bn2binpad(ECDSA_SIG_get0_s(sig), raw + HALF, HALF) < 0)
		abort();
	ECDSA_SIG_free(sig);
	EVP_MD_CTX_free(ctx);
}

static void must_be_name(const char *text, size_t room)
{
	const size_t n = strnlen(text, room);

	if (!n || n == room || strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789-.") != n)
		abort();
}

/* Whether one of the claim's texts is the agent's. */
static bool names_agent(const cJSON *aud)
{
	const cJSON *one;

	if (cJSON_IsString(aud))
		return !strcmp(aud->valuestring, expected.audience);
	cJSON_ArrayForEach(one, aud)
	{
		if (cJSON_IsString(one) && !strcmp(one->valuestring, expected.audience))
			return true;
	}
	return false;
}

static void signed_claims(const uint8_t *bytes, size_t n)
{
	static const char header[] = "{\"alg\":\"ES256\",\"kid\":\"i\"}";
	struct jwt_subject subject;
	char token[8192], text[4097];
	uint8_t raw[2 * HALF];
	const char *why;
	cJSON *claims;
	size_t at;

	if (n > 4096)
		return;
	if (!issuer)
		issuer_begins();
	at = encode((const uint8_t *)header, sizeof(header) - 1, token);
	token[at++] = '.';
	at += encode(bytes, n, token + at);
	sign(token, at, raw);
	token[at++] = '.';
	at += encode(raw, sizeof(raw), token + at);
	if (jwt_verify(issued, &expected, token, at, NOW, &subject, &why))
		return;
	must_be_name(subject.namespace, sizeof(subject.namespace));
	must_be_name(subject.account, sizeof(subject.account));
	must_be_name(subject.pod, sizeof(subject.pod));
	must_be_name(subject.pod_uid, sizeof(subject.pod_uid));
	memcpy(text, bytes, n);
	text[n] = 0;
	claims = cJSON_Parse(text);
	if (subject.expires + JWT_SKEW_S <= NOW ||
		!names_agent(cJSON_GetObjectItemCaseSensitive(claims, "aud")) ||
		strcmp(text_string(claims, "iss"), expected.issuer) != 0)
		abort();
	cJSON_Delete(claims);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
	static struct key_set *keys;
	struct key_set *others = NULL;
	char decoded[4096];
	ssize_t got;

	if (!keys && key_set_parse(&keys, jwks, sizeof(jwks) - 1, NULL))
		abort();
	refused(keys, (const char *)bytes, n);
	refused_encoded(keys, bytes, n);
	if (n && *bytes == '{' && !key_set_parse(&others, (const char *)bytes, n, NULL))
		key_set_close(others);
	if (n && *bytes == '{')
		signed_claims(bytes, n);
	cJSON_Delete(text_json((const char *)bytes, n));
	/* What is decoded is encoded to the very same: there is one way to write a token. */
	got = text_decode((const char *)bytes, n, decoded, sizeof(decoded));
	if (got >= 0) {
		char again[8192];

		if (encode((const uint8_t *)decoded, (size_t)got, again) != n ||
			memcmp(again, bytes, n) != 0)
			abort();
	}
	return 0;
}
