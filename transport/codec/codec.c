/* SPDX-License-Identifier: Apache-2.0 */
#define ZSTD_STATIC_LINKING_ONLY /* the name of a parameter that every libzstd has */
#include "transport/codec/codec.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#include "transport/codec/guess.h"
#include "transport/codec/planes.h"

#define LEVEL 1
/* Of a plane of exponents nothing repeats, but some are seldom: the search for matches is
 * nearly off, and Huffman's codes are on. Three times as fast as level 1, and 3 % smaller. */
#define PLANE_LEVEL (-100)
#define SAMPLE_PIECES 2

struct codec {
	ZSTD_CCtx *zstd, *plane;
	ZSTD_DCtx *open;
	unsigned char *own;   /* CODEC_MOST: a copy, or planes */
	unsigned char *coded; /* CODEC_MOST */
};

const char *codec_name(enum codec_kind kind)
{
	static const char *const names[CODEC_KINDS] = {
		"raw", "fill", "zstd", "planes2", "planes4", "planes8"};

	return kind < CODEC_KINDS ? names[kind] : "unknown";
}

static unsigned codec_width(enum codec_kind kind)
{
	return kind >= CODEC_PLANES_2 && kind <= CODEC_PLANES_8 ? 2u << (kind - CODEC_PLANES_2)
								: 0;
}

struct codec *codec_new(void)
{
	return calloc(1, sizeof(struct codec));
}

void codec_free(struct codec *codec)
{
	if (!codec)
		return;
	ZSTD_freeCCtx(codec->zstd);
	ZSTD_freeCCtx(codec->plane);
	ZSTD_freeDCtx(codec->open);
	free(codec->own);
	free(codec->coded);
	free(codec);
}

static bool codec_buffers(struct codec *codec)
{
	if (!codec->own)
		codec->own = malloc(CODEC_MOST);
	if (!codec->coded)
		codec->coded = malloc(CODEC_MOST);
	return codec->own && codec->coded;
}

static bool codec_packs(struct codec *codec)
{
	if (!codec->zstd) {
		codec->zstd = ZSTD_createCCtx();
		if (codec->zstd)
			ZSTD_CCtx_setParameter(codec->zstd, ZSTD_c_compressionLevel, LEVEL);
	}
	if (!codec->plane) {
		codec->plane = ZSTD_createCCtx();
		if (codec->plane && !ZSTD_isError(ZSTD_CCtx_setParameter(codec->plane,
					    ZSTD_c_literalCompressionMode, ZSTD_ps_enable)))
			ZSTD_CCtx_setParameter(
				codec->plane, ZSTD_c_compressionLevel, PLANE_LEVEL);
	}
	return codec->zstd && codec->plane && codec_buffers(codec);
}

bool codec_is_fill(const void *bytes, uint32_t n, unsigned char *byte)
{
	enum { STEP = 512 };
	const unsigned char *at = bytes, *end = at + n;
	uint64_t first, words[STEP / 8];

	*byte = *at;
	memset(&first, *byte, sizeof(first));
	for (; end - at >= STEP; at += STEP) {
		uint64_t differs = 0;

		memcpy(words, at, STEP);
		for (unsigned i = 0; i < STEP / 8; i++)
			differs |= words[i] ^ first;
		if (differs)
			return false;
	}
	for (; at < end; at++)
		if (*at != *byte)
			return false;
	return true;
}

void codec_guess(struct codec *codec, const void *bytes, uint32_t n, struct codec_guess *guess)
{
	unsigned char sample[GUESS_SAMPLE], planes[GUESS_SAMPLE], packed[GUESS_SAMPLE + 256];
	uint32_t piece = GUESS_SAMPLE / SAMPLE_PIECES, have = n & ~7u;
	size_t got;

	*guess = (struct codec_guess){.ratio = {[CODEC_RAW] = 1}};
	if (!codec_packs(codec) || have < 64)
		return;
	if (have > GUESS_SAMPLE) {
		for (uint32_t i = 0; i < SAMPLE_PIECES; i++)
			memcpy(sample + i * piece,
				(const char *)bytes +
					((have - piece) / SAMPLE_PIECES * i & ~7u),
				piece);
		have = GUESS_SAMPLE;
	} else {
		memcpy(sample, bytes, have);
	}
	got = ZSTD_compress2(codec->zstd, packed, sizeof(packed), sample, have);
	if (!ZSTD_isError(got))
		guess->ratio[CODEC_ZSTD] = (float)have / (float)got;
	for (unsigned kind = CODEC_PLANES_2; kind <= CODEC_PLANES_8; kind++) {
		unsigned width = codec_width(kind);
		uint32_t count = have / width;
		float bits = 0;

		planes_split(width, sample, count, planes);
		for (unsigned i = 0; i < width; i++)
			bits += guess_bits(planes + i * count, count);
		/* What two planes show, eight show as well, from fewer samples of each and with
		 * more tables. */
		guess->ratio[kind] = 8 * (float)width / (bits > 0.1f ? bits : 0.1f) *
				     (1 - 0.005f * (float)width);
	}
}

/* A plane of COUNT bytes to TO, which has room for ROOM. Its bytes and *form; -1: no room. */
static int64_t plane_encode(struct codec *codec, const unsigned char *plane, uint32_t count,
	unsigned char *to, uint32_t room, enum codec_form *form)
{
	size_t got;

	if (room && codec_is_fill(plane, count, to)) {
		*form = CODEC_FORM_FILL;
		return 1;
	}
	if (guess_shrinks(plane, count)) {
		got = ZSTD_compress2(
			codec->plane, to, room < count ? room : count, plane, count);
		if (!ZSTD_isError(got)) {
			*form = CODEC_FORM_ZSTD;
			return (int64_t)got;
		}
	}
	*form = CODEC_FORM_RAW;
	if (count > room)
		return -1;
	memcpy(to, plane, count);
	return count;
}

/* Behind the kind. 0: no room. */
static uint32_t planes_encode(struct codec *codec, unsigned width, const unsigned char *bytes,
	uint32_t n, unsigned char *to, uint32_t room)
{
	uint32_t count = n / width, left = n - count * width, at = 4 * width;

	if (!count || room < at + left)
		return 0;
	room -= left;
	planes_split(width, bytes, count, codec->own);
	for (unsigned i = 0; i < width; i++) {
		enum codec_form form;
		int64_t got = plane_encode(
			codec, codec->own + i * count, count, to + at, room - at, &form);
		uint32_t head;

		if (got < 0)
			return 0;
		head = (uint32_t)form << 24 | (uint32_t)got;
		memcpy(to + 4 * i, &head, sizeof(head));
		at += (uint32_t)got;
	}
	memcpy(to + at, bytes + count * width, left);
	return at + left;
}

uint32_t codec_encode(struct codec *codec, enum codec_kind kind, const void *bytes, uint32_t n,
	const unsigned char **coded)
{
	unsigned char *to;
	uint32_t most = n - n / 32 - 1, got;
	size_t packed;

	if (!n || n > CODEC_MOST || most < 3 || !codec_packs(codec))
		return 0;
	to = codec->coded;
	*coded = to;
	*to++ = (unsigned char)kind;
	switch (kind) {
	case CODEC_FILL: return codec_is_fill(bytes, n, to) ? 2 : 0;
	case CODEC_ZSTD:
		/* zstd reads more than once, and would code what is not there. */
		memcpy(codec->own, bytes, n);
		packed = ZSTD_compress2(codec->zstd, to, most - 1, codec->own, n);
		return ZSTD_isError(packed) ? 0 : (uint32_t)packed + 1;
	case CODEC_PLANES_2:
	case CODEC_PLANES_4:
	case CODEC_PLANES_8:
		got = planes_encode(codec, codec_width(kind), bytes, n, to, most - 1);
		return got ? got + 1 : 0;
	default: return 0;
	}
}

unsigned char *codec_input(struct codec *codec)
{
	return codec_buffers(codec) ? codec->coded : NULL;
}

bool codec_fills(const struct codec *codec, uint32_t coded_n, unsigned char *byte)
{
	if (coded_n != 2 || codec->coded[0] != CODEC_FILL)
		return false;
	*byte = codec->coded[1];
	return true;
}

/* FROM_N bytes of zstd's to exactly N of our own. */
static int codec_unpack(struct codec *codec, const unsigned char *from, uint32_t from_n,
	unsigned char *to, uint32_t n)
{
	size_t got;

	if (!codec->open)
		codec->open = ZSTD_createDCtx();
	if (!codec->open)
		return -ENOMEM;
	got = ZSTD_decompressDCtx(codec->open, to, n, from, from_n);
	return got == n ? 0 : -EPROTO;
}

/* Where plane I of COUNT bytes is, of FROM_N bytes coded as FORM. 0, or -errno. */
static int plane_decode(struct codec *codec, enum codec_form form, const unsigned char *from,
	uint32_t from_n, unsigned char *own, uint32_t count, const unsigned char **plane)
{
	*plane = own;
	switch (form) {
	case CODEC_FORM_RAW: *plane = from; return from_n == count ? 0 : -EPROTO;
	case CODEC_FORM_FILL:
		if (from_n != 1)
			return -EPROTO;
		memset(own, *from, count);
		return 0;
	case CODEC_FORM_ZSTD: return codec_unpack(codec, from, from_n, own, count);
	default: return -EPROTO;
	}
}

static int planes_decode(struct codec *codec, unsigned width, const unsigned char *from,
	uint32_t from_n, unsigned char *to, uint32_t n)
{
	const unsigned char *planes[PLANES_MOST] = {0};
	uint32_t count = n / width, left = n - count * width, at = 4 * width;

	if (!count || from_n < at + left)
		return -EPROTO;
	for (unsigned i = 0; i < width; i++) {
		uint32_t head, length;
		int ret;

		memcpy(&head, from + 4 * i, sizeof(head));
		length = head & 0xffffff;
		if (length > from_n - left - at)
			return -EPROTO;
		ret = plane_decode(codec, (enum codec_form)(head >> 24), from + at, length,
			codec->own + i * count, count, &planes[i]);
		if (ret)
			return ret;
		at += length;
	}
	if (from_n - at != left)
		return -EPROTO;
	planes_join(width, planes, count, to);
	memcpy(to + count * width, from + at, left);
	return 0;
}

int codec_decode(struct codec *codec, uint32_t coded_n, void *to, uint32_t n)
{
	const unsigned char *from = codec->coded;
	int ret;

	if (!from || !codec->own)
		return -ENOMEM;
	if (!n || n > CODEC_MOST || coded_n < 2 || coded_n > CODEC_MOST)
		return -EPROTO;
	coded_n--;
	switch (*from++) {
	case CODEC_FILL:
		if (coded_n != 1)
			return -EPROTO;
		memset(to, *from, n);
		return 0;
	case CODEC_ZSTD:
		/* It reads again what it wrote. */
		ret = codec_unpack(codec, from, coded_n, codec->own, n);
		if (!ret)
			memcpy(to, codec->own, n);
		return ret;
	case CODEC_PLANES_2: return planes_decode(codec, 2, from, coded_n, to, n);
	case CODEC_PLANES_4: return planes_decode(codec, 4, from, coded_n, to, n);
	case CODEC_PLANES_8: return planes_decode(codec, 8, from, coded_n, to, n);
	default: return -EPROTO;
	}
}
