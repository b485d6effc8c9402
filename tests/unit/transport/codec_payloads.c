/* SPDX-License-Identifier: Apache-2.0
 *
 * Payloads that are coded come back as they were, of each kind and length; what lies about its
 * lengths is refused, and nothing beyond the payload is written.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "transport/codec/codec.h"

static uint32_t seed = 1;

static uint32_t number(void)
{
	seed = seed * 1664525u + 1013904223u;
	return seed >> 8;
}

/* About normal: the sum of four. */
static float weight(void)
{
	float sum = 0;

	for (int i = 0; i < 4; i++)
		sum += (float)(number() & 0xffff) / 65536 - 0.5f;
	return 0.02f * sum;
}

static void make_bf16(unsigned char *to, uint32_t n)
{
	for (uint32_t i = 0; i + 2 <= n; i += 2) {
		float f = weight();
		uint32_t u;

		memcpy(&u, &f, sizeof(u));
		to[i] = (unsigned char)(u >> 16);
		to[i + 1] = (unsigned char)(u >> 24);
	}
}

static void make_f32(unsigned char *to, uint32_t n)
{
	for (uint32_t i = 0; i + 4 <= n; i += 4) {
		float f = weight();

		memcpy(to + i, &f, sizeof(f));
	}
}

static void make_tokens(unsigned char *to, uint32_t n)
{
	for (uint32_t i = 0; i + 8 <= n; i += 8) {
		uint64_t token = number() % 50257;

		memcpy(to + i, &token, sizeof(token));
	}
}

static void make_random(unsigned char *to, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		to[i] = (unsigned char)(number() >> 4);
}

static void make_text(unsigned char *to, uint32_t n)
{
	static const char *const words[] = {"copy ", "kernel ", "stream ", "device ", "of "};

	for (uint32_t i = 0; i < n;) {
		const char *word = words[number() % 5];

		for (; *word && i < n; word++)
			to[i++] = (unsigned char)*word;
	}
}

static void make_zeros(unsigned char *to, uint32_t n)
{
	memset(to, 0, n);
}

static const struct sort {
	const char *name;
	void (*make)(unsigned char *to, uint32_t n);
	enum codec_kind kind; /* the one that is the best for it */
	double least;	      /* times that this makes it smaller */
} sorts[] = {
	{"bf16", make_bf16, CODEC_PLANES_2, 1.4},
	{"f32", make_f32, CODEC_PLANES_4, 1.15},
	{"tokens", make_tokens, CODEC_PLANES_8, 3},
	{"text", make_text, CODEC_ZSTD, 3},
	{"zeros", make_zeros, CODEC_FILL, 1000},
	{"random", make_random, CODEC_RAW, 1},
};
#define SORTS (sizeof(sorts) / sizeof(sorts[0]))

/* Codes N bytes and decodes them with OTHER; 0: they do not shrink. */
static uint32_t there_and_back(struct codec *codec, struct codec *other, enum codec_kind kind,
	const unsigned char *bytes, uint32_t n, unsigned char *back)
{
	const unsigned char *coded;
	uint32_t got = codec_encode(codec, kind, bytes, n, &coded);

	if (!got)
		return 0;
	assert_true(got < n);
	memcpy(codec_input(other), coded, got);
	memset(back, 0xa5, n);
	back[n] = 0x5a;
	assert_int_equal(codec_decode(other, got, back, n), 0);
	assert_memory_equal(back, bytes, n);
	assert_int_equal(back[n], 0x5a);
	return got;
}

static void test_there_and_back(void **state)
{
	static const uint32_t sizes[] = {1, 2, 3, 7, 8, 9, 63, 64, 65, 1000, 4095, 4096, 4097,
		65536, 65537, 524288, CODEC_MOST - 1, CODEC_MOST};
	struct codec *codec = codec_new(), *other = codec_new();
	unsigned char *bytes = malloc(CODEC_MOST + 1), *back = malloc(CODEC_MOST + 1);

	(void)state;
	assert_non_null(codec_input(other));
	for (size_t i = 0; i < SORTS; i++)
		for (size_t size = 0; size < sizeof(sizes) / sizeof(sizes[0]); size++) {
			uint32_t n = sizes[size];

			sorts[i].make(bytes, n);
			for (unsigned kind = CODEC_FILL; kind < CODEC_KINDS; kind++) {
				uint32_t got =
					there_and_back(codec, other, kind, bytes, n, back);

				if (kind == sorts[i].kind && n >= 65536)
					assert_true(got && n >= sorts[i].least * got);
				if (sorts[i].kind == CODEC_RAW)
					assert_int_equal(got, 0);
			}
		}
	free(bytes);
	free(back);
	codec_free(codec);
	codec_free(other);
}

/* The sample finds the kind that is the best, and about how much it brings. */
static void test_guess(void **state)
{
	struct codec *codec = codec_new();
	unsigned char *bytes = malloc(524288);

	(void)state;
	for (size_t i = 0; i < SORTS; i++) {
		struct codec_guess guess;
		enum codec_kind best = CODEC_RAW;
		const unsigned char *coded;
		uint32_t got;

		if (sorts[i].kind == CODEC_FILL)
			continue;
		sorts[i].make(bytes, 524288);
		codec_guess(codec, bytes, 524288, &guess);
		for (unsigned kind = CODEC_ZSTD; kind < CODEC_KINDS; kind++)
			if (guess.ratio[kind] > guess.ratio[best] + 0.04f)
				best = kind;
		assert_string_equal(codec_name(best), codec_name(sorts[i].kind));
		got = codec_encode(codec, best, bytes, 524288, &coded);
		assert_true(!got || guess.ratio[best] < 1.3 * 524288 / got);
	}
	free(bytes);
	codec_free(codec);
}

static void test_fill(void **state)
{
	unsigned char bytes[2000], byte, back[2000];
	struct codec *codec = codec_new();
	const unsigned char *coded;

	(void)state;
	memset(bytes, 7, sizeof(bytes));
	for (uint32_t n = 1; n <= sizeof(bytes); n++)
		assert_true(codec_is_fill(bytes, n, &byte) && byte == 7);
	for (uint32_t at = 0; at < sizeof(bytes); at++) {
		bytes[at] = 6;
		assert_false(codec_is_fill(bytes, sizeof(bytes), &byte));
		bytes[at] = 7;
	}
	assert_int_equal(codec_encode(codec, CODEC_FILL, bytes, sizeof(bytes), &coded), 2);
	assert_true(codec_fills(codec, 2, &byte) && byte == 7);
	assert_int_equal(codec_decode(codec, 2, back, sizeof(back)), 0);
	assert_memory_equal(back, bytes, sizeof(back));
	codec_free(codec);
}

/* Any other length than the one that was coded, cut or longer input, and each bit flipped in
 * what says lengths. */
static void test_violations(void **state)
{
	enum { N = 6000 };
	struct codec *codec = codec_new(), *other = codec_new();
	unsigned char bytes[N], *back = malloc(CODEC_MOST + 1), kept[N];
	const unsigned char *coded;

	(void)state;
	for (unsigned kind = CODEC_ZSTD; kind < CODEC_KINDS; kind++) {
		uint32_t got;

		make_tokens(bytes, N);
		got = codec_encode(codec, kind, bytes, N, &coded);
		assert_true(got);
		memcpy(kept, coded, got);
		for (uint32_t n = 1; n <= 2 * N; n++) {
			memcpy(codec_input(other), kept, got);
			if (n != N)
				assert_int_equal(codec_decode(other, got, back, n), -EPROTO);
		}
		assert_int_equal(codec_decode(other, got, back, 0), -EPROTO);
		assert_int_equal(codec_decode(other, got, back, CODEC_MOST + 1), -EPROTO);
		assert_int_equal(codec_decode(other, CODEC_MOST + 1, back, N), -EPROTO);
		for (uint32_t cut = 0; cut < got; cut++) {
			memcpy(codec_input(other), kept, got);
			assert_int_equal(codec_decode(other, cut, back, N), -EPROTO);
		}
		memcpy(codec_input(other), kept, got);
		codec_input(other)[got] = 0;
		assert_int_equal(codec_decode(other, got + 1, back, N), -EPROTO);
		for (uint32_t bit = 0; bit < 8 * (1 + 4 * 8); bit++) {
			int ret;

			memcpy(codec_input(other), kept, got);
			codec_input(other)[bit / 8] ^= (unsigned char)(1u << bit % 8);
			back[N] = 0x5a;
			ret = codec_decode(other, got, back, N);
			assert_true(!ret || ret == -EPROTO);
			assert_int_equal(back[N], 0x5a);
		}
	}
	free(back);
	codec_free(codec);
	codec_free(other);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_there_and_back),
		cmocka_unit_test(test_guess),
		cmocka_unit_test(test_fill),
		cmocka_unit_test(test_violations),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
