/* SPDX-License-Identifier: Apache-2.0
 *
 * A payload in fewer bytes, and back.  Each is coded for itself, so that one that is sent again
 * may be coded anew, or not at all.  Coded bytes say how they are coded:
 *
 *     kind: 1 byte        enum codec_kind, not RAW
 *     FILL: 1 byte        which one all are
 *     ZSTD: a frame       of zstd's
 *     PLANES: for each of WIDTH planes 4 bytes, enum codec_form << 24 | length; then the
 * planes; then what WIDTH leaves over, as it is
 *
 * Planes are for numbers of WIDTH bytes: each is rotated left by one bit, so that the exponent
 * of a float is a byte and its sign is with the fraction, and byte I of all numbers together is
 * plane I.  The planes of exponents, and those of high bytes that are 0, are what shrinks.
 *
 * A struct codec belongs to one thread at a time.  What is coded may change meanwhile, as
 * memory of a hostile program does: each byte of it is read once.
 */
#ifndef VCUDA_TRANSPORT_CODEC_CODEC_H
#define VCUDA_TRANSPORT_CODEC_CODEC_H

#include <stdbool.h>
#include <stdint.h>

#include "protocol/wire/frame.h"

#define CODEC_MOST FRAME_PAYLOAD_MAX /* bytes of a payload, and of what it is coded to */

enum codec_kind {
	CODEC_RAW,
	CODEC_FILL,
	CODEC_ZSTD,
	CODEC_PLANES_2,
	CODEC_PLANES_4,
	CODEC_PLANES_8,
	CODEC_KINDS
};

enum codec_form { CODEC_FORM_RAW, CODEC_FORM_FILL, CODEC_FORM_ZSTD };

/* Payload bytes for each coded byte, as a sample says. */
struct codec_guess {
	float ratio[CODEC_KINDS];
};

struct codec;

/* NULL: no memory. It takes about 3 MiB once it has coded something. */
struct codec *codec_new(void);
void codec_free(struct codec *codec); /* NULL is fine */

const char *codec_name(enum codec_kind kind);

/* Whether all of N bytes (> 0) are one, and which. */
bool codec_is_fill(const void *bytes, uint32_t n, unsigned char *byte);

/* Looks at 4 KiB of N bytes. */
void codec_guess(struct codec *codec, const void *bytes, uint32_t n, struct codec_guess *guess);

/* N bytes, at most CODEC_MOST, as KIND. How many bytes of *coded, the codec's until its next
 * use, say the same; 0: not enough fewer, or there is no memory. */
uint32_t codec_encode(struct codec *codec, enum codec_kind kind, const void *bytes, uint32_t n,
	const unsigned char **coded);

/* Where CODEC_MOST coded bytes may be received for codec_decode. NULL: no memory. */
unsigned char *codec_input(struct codec *codec);

/* CODED_N bytes of codec_input, which are all of them, to N bytes at TO, at most CODEC_MOST.
 * TO is only written: others may write there, too. 0; -EPROTO: they are not what makes N bytes;
 * or -ENOMEM. */
int codec_decode(struct codec *codec, uint32_t coded_n, void *to, uint32_t n);

/* Whether CODED_N bytes of codec_input stand for a fill, and of which byte. */
bool codec_fills(const struct codec *codec, uint32_t coded_n, unsigned char *byte);

#endif
