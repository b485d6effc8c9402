/* SPDX-License-Identifier: Apache-2.0
 *
 * Fuzz target: any bytes as a signed token, and as claims behind a signature that nobody made.
 * Nobody is let in without a right signature, and none of these has one. Input that begins with
 * '{' is read as a key set.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "gpu-agent/identity/jwt.h"
#include "gpu-agent/identity/text.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

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
	const struct jwt_expected expected = {"https://i", "vcuda-agent"};
	struct jwt_subject subject;
	const char *why;

	if (!jwt_verify(keys, &expected, token, n, 1500000000, &subject, &why) || !why[0])
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
