/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/tls/record.h"

#include <errno.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <string.h>

#define TAG 16
#define KEY 16

/* HKDF-Expand-Label(SECRET, LABEL, "", n) of at most one block. */
static int expand(
	const uint8_t secret[RECORD_SECRET], const char *label, uint8_t *out, size_t n)
{
	unsigned char info[64], block[EVP_MAX_MD_SIZE];
	size_t length = strlen(label);
	unsigned size = 0;

	info[0] = 0;
	info[1] = (unsigned char)n;
	info[2] = (unsigned char)(6 + length);
	memcpy(info + 3, "tls13 ", 6);
	memcpy(info + 9, label, length);
	info[9 + length] = 0; /* no context */
	info[10 + length] = 1;
	if (!HMAC(EVP_sha256(), secret, RECORD_SECRET, info, 11 + length, block, &size))
		return -ENOMEM;
	memcpy(out, block, n);
	OPENSSL_cleanse(block, sizeof(block));
	return 0;
}

static int set_key(struct record_half *half)
{
	uint8_t key[KEY];
	int ok;

	if (expand(half->keys.secret, "key", key, sizeof(key)) ||
		expand(half->keys.secret, "iv", half->iv, sizeof(half->iv)))
		return -ENOMEM;
	ok = EVP_CipherInit_ex(
		half->cipher, EVP_aes_128_gcm(), NULL, key, half->iv, half->sends);
	OPENSSL_cleanse(key, sizeof(key));
	return ok ? 0 : -ENOMEM;
}

int record_open(struct record_half *half, const struct record_keys *keys, bool sends)
{
	*half = (struct record_half){
		.cipher = EVP_CIPHER_CTX_new(),
		.keys = *keys,
		.sends = sends,
		.limit = RECORD_LIMIT,
	};
	if (half->cipher && !set_key(half))
		return 0;
	record_close(half);
	return -ENOMEM;
}

void record_close(struct record_half *half)
{
	EVP_CIPHER_CTX_free(half->cipher);
	OPENSSL_cleanse(half, sizeof(*half));
}

int record_update(struct record_half *half)
{
	uint8_t next[RECORD_SECRET];

	if (expand(half->keys.secret, "traffic upd", next, sizeof(next)))
		return -ENOMEM;
	memcpy(half->keys.secret, next, sizeof(next));
	OPENSSL_cleanse(next, sizeof(next));
	half->keys.sequence = 0;
	return set_key(half);
}

/* The cipher at the start of the next record, with its header as what is authenticated too. */
static bool begin(struct record_half *half, const unsigned char header[RECORD_HEADER])
{
	unsigned char nonce[sizeof(half->iv)];
	int n;

	memcpy(nonce, half->iv, sizeof(nonce));
	for (int i = 0; i < 8; i++)
		nonce[sizeof(nonce) - 1 - (size_t)i] ^=
			(unsigned char)(half->keys.sequence >> (8 * i));
	return EVP_CipherInit_ex(half->cipher, NULL, NULL, NULL, nonce, -1) &&
	       EVP_CipherUpdate(half->cipher, NULL, &n, header, RECORD_HEADER);
}

int record_seal(struct record_half *half, enum record_type type, const struct iovec *iov,
	int *at, size_t *offset, size_t n, unsigned char *out)
{
	const unsigned char inner = (unsigned char)type;
	size_t body = n + 1 + TAG;
	unsigned char *to = out + RECORD_HEADER;
	int done;

	out[0] = RECORD_DATA;
	out[1] = 3;
	out[2] = 3;
	out[3] = (unsigned char)(body >> 8);
	out[4] = (unsigned char)body;
	if (!begin(half, out))
		return -EIO;
	while (n) {
		size_t piece = iov[*at].iov_len - *offset;

		piece = piece < n ? piece : n;
		if (piece &&
			!EVP_CipherUpdate(half->cipher, to, &done,
				(const unsigned char *)iov[*at].iov_base + *offset, (int)piece))
			return -EIO;
		to += piece;
		n -= piece;
		*offset += piece;
		if (*offset == iov[*at].iov_len) {
			++*at;
			*offset = 0;
		}
	}
	if (!EVP_CipherUpdate(half->cipher, to, &done, &inner, 1) ||
		!EVP_CipherFinal_ex(half->cipher, to + 1, &done) ||
		!EVP_CIPHER_CTX_ctrl(half->cipher, EVP_CTRL_AEAD_GET_TAG, TAG, to + 1))
		return -EIO;
	half->keys.sequence++;
	return (int)(RECORD_HEADER + body);
}

int record_length(const unsigned char header[RECORD_HEADER])
{
	int body = header[3] << 8 | header[4];

	if (header[0] != RECORD_DATA || header[1] != 3 || header[2] != 3 || body < 1 + TAG ||
		body > RECORD_BODY_MAX)
		return -EPROTO;
	return body;
}

int record_unseal(struct record_half *half, const unsigned char *record, int body,
	unsigned char *out, enum record_type *type)
{
	const unsigned char *from = record + RECORD_HEADER;
	unsigned char inner, waste[TAG];
	int n = body - TAG - 1, done;

	if (!begin(half, record) ||
		(n && !EVP_CipherUpdate(half->cipher, out, &done, from, n)) ||
		!EVP_CipherUpdate(half->cipher, &inner, &done, from + n, 1) ||
		!EVP_CIPHER_CTX_ctrl(
			half->cipher, EVP_CTRL_AEAD_SET_TAG, TAG, (void *)(from + n + 1)) ||
		EVP_CipherFinal_ex(half->cipher, waste, &done) <= 0)
		return -EBADMSG;
	half->keys.sequence++;
	while (!inner && n) /* padding */
		inner = out[--n];
	*type = (enum record_type)inner;
	return n > RECORD_PLAIN ? -EBADMSG : n;
}
