/* SPDX-License-Identifier: Apache-2.0
 *
 * Addresses in data (shim/driver/memory/pinned/words.h): each way finds each address in each
 * place, and seldom one where there is none.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "shim/driver/memory/pinned/words.h"

/* Not a whole number of what is looked at together: the rest too is. */
#define WORDS 67
#define BYTES (8 * WORDS)

typedef bool look(const unsigned char *at, size_t words, uint64_t low, uint64_t span);

static const struct extent {
	uint64_t low, span;
} extents[] = {
	{0x7f1234560000, 1 << 20}, {0x7f12ffff0000, 2 << 20}, /* over a multiple of 2^32 */
	{0x7f1000000000, 0x500000000},			      /* of several */
	{0x200000000000, 0x100000000000},		      /* what the kernel may give */
	{0x7f1234560000, UINT64_MAX},			      /* while it grows: everything */
	{0xfffffffffff00000, 0xfffff},			      /* to the end of all addresses */
	{0x7fffffffffffff00, 0x200},			      /* where signed numbers end */
};

static void put(unsigned char *at, unsigned word, uint64_t value)
{
	memcpy(at + 8 * word, &value, 8);
}

/* Both edges in each place, among words that are far away. */
static void edges(look *by)
{
	unsigned char data[BYTES + 8];

	for (size_t e = 0; e < sizeof(extents) / sizeof(*extents); e++) {
		const uint64_t low = extents[e].low, span = extents[e].span;
		const uint64_t far = low + span + (1ull << 40);
		const uint64_t inside[] = {low, low + span / 2, low + span - 1};

		for (unsigned shift = 0; shift < 8; shift += 3)
			for (unsigned word = 0; word < WORDS; word++)
				for (unsigned i = 0; i < 3; i++) {
					for (unsigned w = 0; w < WORDS; w++)
						put(data + shift, w, far);
					put(data + shift, word, inside[i]);
					assert_true(by(data + shift, WORDS, low, span));
				}
	}
}

static void nothing(look *by)
{
	unsigned char data[BYTES];

	for (size_t e = 0; e < 4; e++) {
		const uint64_t low = extents[e].low, span = extents[e].span;
		const uint64_t outside[] = {0, 1, low - (1ull << 33), low + span + (1ull << 33),
			low ^ 1ull << 63, UINT64_MAX, 0x3ff0000000000000};

		for (size_t i = 0; i < sizeof(outside) / sizeof(*outside); i++) {
			for (unsigned w = 0; w < WORDS; w++)
				put(data, w, outside[i]);
			assert_false(by(data, WORDS, low, span));
		}
	}
}

static void halves(void **state)
{
	(void)state;
	edges(words_by_halves);
	nothing(words_by_halves);
}

static void avx2(void **state)
{
	(void)state;
	if (!words_have_avx2())
		skip();
	edges(words_by_avx2);
	nothing(words_by_avx2);
}

/* AVX2 looks how far behind the first address a word is: one right before it is outside, and
 * one that is behind the last by as much as upper halves do not tell. */
static void near(void **state)
{
	unsigned char data[BYTES];

	(void)state;
	if (!words_have_avx2())
		skip();
	for (size_t e = 0; e < 4; e++) {
		const uint64_t behind = ((extents[e].span >> 32) + 1) << 32;

		for (unsigned w = 0; w < WORDS; w++)
			put(data, w, extents[e].low + (w % 2 ? behind : -1ull));
		assert_false(words_by_avx2(data, WORDS, extents[e].low, extents[e].span));
	}
}

/* Words behind the last are not looked at. */
static void no_more(void **state)
{
	unsigned char data[BYTES];
	look *const ways[] = {words_by_halves, words_by_avx2};

	(void)state;
	for (int i = 0; i < 1 + words_have_avx2(); i++)
		for (unsigned words = 0; words < WORDS; words++) {
			memset(data, 0, sizeof(data));
			put(data, words, extents[0].low);
			assert_false(ways[i](data, words, extents[0].low, extents[0].span));
			assert_true(ways[i](data, words + 1, extents[0].low, extents[0].span));
		}
}

static void chosen(void **state)
{
	(void)state;
	edges(words_maybe_in);
	nothing(words_maybe_in);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(halves),
		cmocka_unit_test(avx2),
		cmocka_unit_test(near),
		cmocka_unit_test(no_more),
		cmocka_unit_test(chosen),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
