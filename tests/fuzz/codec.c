/* SPDX-License-Identifier: Apache-2.0
 *
 * Fuzz target: coded payloads of a peer that violates the protocol.  The first four bytes say
 * how long the payload is to be, the rest is what came for it; nothing behind the payload may
 * be written, and what comes out depends on nothing else. The rest is a payload, too: what it
 * is coded to must come back as it was.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "transport/codec/codec.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define GUARD 64
#define ALIKE 65536u /* payloads up to there are decoded twice */

static void must(bool holds)
{
	if (!holds)
		abort();
}

static void decode(struct codec *codec, const uint8_t *data, uint32_t size, uint32_t n)
{
	unsigned char *to = malloc(n + GUARD), byte;
	int ret;

	must(to && codec_input(codec));
	memset(to + n, 0xa5, GUARD);
	memcpy(codec_input(codec), data, size);
	codec_fills(codec, size, &byte);
	ret = codec_decode(codec, size, to, n);
	must(ret <= 0);
	for (int i = 0; i < GUARD; i++)
		must(to[n + (uint32_t)i] == 0xa5);
	free(to);
}

/* What the codec still has of other payloads, and what stands behind what came, must not
 * matter. */
static int decode_among(struct codec *codec, const uint8_t *data, uint32_t size,
	unsigned char *to, uint32_t n, unsigned char old)
{
	const uint32_t behind = size + ALIKE < CODEC_MOST ? ALIKE : CODEC_MOST - size;
	const unsigned char *coded;

	memset(to, old, n);
	codec_encode(codec, CODEC_ZSTD, to, n, &coded);
	memset(codec_input(codec) + size, old, behind);
	memcpy(codec_input(codec), data, size);
	return codec_decode(codec, size, to, n);
}

static void decode_alike(struct codec *codec, const uint8_t *data, uint32_t size, uint32_t n)
{
	static unsigned char once[ALIKE], again[ALIKE];
	int ret;

	if (n < 4 || n > ALIKE)
		return;
	ret = decode_among(codec, data, size, once, n, 0);
	must(ret == decode_among(codec, data, size, again, n, 0xff));
	must(ret || !memcmp(once, again, n));
}

static void there_and_back(struct codec *codec, struct codec *other, enum codec_kind kind,
	const uint8_t *data, uint32_t n)
{
	const unsigned char *coded;
	uint32_t got = codec_encode(codec, kind, data, n, &coded);
	unsigned char *back;

	if (!got)
		return;
	back = malloc(n);
	must(back && got < n);
	memcpy(codec_input(other), coded, got);
	must(!codec_decode(other, got, back, n));
	must(!memcmp(back, data, n));
	free(back);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct codec *codec, *other;
	struct codec_guess guess;
	uint32_t n;

	if (!codec) {
		codec = codec_new();
		other = codec_new();
		must(codec && other && codec_input(codec) && codec_input(other));
	}
	if (size < 4 || size - 4 > CODEC_MOST)
		return 0;
	memcpy(&n, data, sizeof(n));
	data += 4;
	size -= 4;
	n %= CODEC_MOST + 2;
	decode(codec, data, (uint32_t)size, n);
	decode_alike(codec, data, (uint32_t)size, n);
	if (!size)
		return 0;
	codec_guess(codec, data, (uint32_t)size, &guess);
	for (unsigned kind = CODEC_FILL; kind < CODEC_KINDS; kind++)
		there_and_back(codec, other, (enum codec_kind)kind, data, (uint32_t)size);
	return 0;
}
