/* SPDX-License-Identifier: Apache-2.0
 *
 * TLS 1.3 records (RFC 8446, 5.2) of one direction, behind the handshake: what a kernel with
 * kTLS would do on the socket.  Only TLS_AES_128_GCM_SHA256 is spoken, so a direction is its
 * traffic secret and a sequence number, and can travel to another process.
 *
 * No locks: a half belongs to whoever sends, or to whoever receives.
 */
#ifndef VCUDA_TRANSPORT_TLS_RECORD_H
#define VCUDA_TRANSPORT_TLS_RECORD_H

#include <openssl/types.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#define RECORD_SECRET 32
#define RECORD_HEADER 5
#define RECORD_PLAIN 16384			 /* most that one carries */
#define RECORD_BODY_MAX (RECORD_PLAIN + 256)	 /* what a peer may claim behind the header */
#define RECORD_OVERHEAD (RECORD_HEADER + 1 + 16) /* header, type and tag of ours */

enum record_type {
	RECORD_CHANGE_CIPHER = 20,
	RECORD_ALERT = 21,
	RECORD_HANDSHAKE = 22,
	RECORD_DATA = 23,
};

/* What must be known to go on with a direction elsewhere. */
struct record_keys {
	uint8_t secret[RECORD_SECRET];
	uint64_t sequence;
};

struct record_half {
	EVP_CIPHER_CTX *cipher;
	struct record_keys keys;
	uint8_t iv[12];
	bool sends;
	uint64_t limit; /* records under one key; RECORD_LIMIT */
};

/* 256 GiB of full records: below what AES-GCM bears (2^24.5 records, RFC 8446, 5.5). */
#define RECORD_LIMIT (1ull << 24)

/* 0, or -ENOMEM with nothing open. */
int record_open(struct record_half *half, const struct record_keys *keys, bool sends);
void record_close(struct record_half *half); /* and wipes it; fine for one that is all zeros */

/* The next key of the direction (RFC 8446, 7.2). 0, or -ENOMEM. */
int record_update(struct record_half *half);

/* One record of TYPE with the N <= RECORD_PLAIN bytes of IOV from *at and *offset on, which it
 * moves on, to OUT, which has room for N + RECORD_OVERHEAD. The bytes are read once, so they
 * may change meanwhile. Its length, or -EIO. */
int record_seal(struct record_half *half, enum record_type type, const struct iovec *iov,
	int *at, size_t *offset, size_t n, unsigned char *out);

/* What a record's header says of the body behind it, or -EPROTO: no record of ours. */
int record_length(const unsigned char header[RECORD_HEADER]);

/* The plaintext of RECORD, of BODY bytes behind its header, to OUT, which has room for BODY -
 * 17 bytes. Their number and *type; or -EBADMSG where it was not made with this key and
 * sequence number, and then it does not count. */
int record_unseal(struct record_half *half, const unsigned char *record, int body,
	unsigned char *out, enum record_type *type);

#endif
