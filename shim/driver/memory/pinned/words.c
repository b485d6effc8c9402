/* SPDX-License-Identifier: Apache-2.0 */
#include "shim/driver/memory/pinned/words.h"

#include <stdatomic.h>
#include <string.h>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

/* By the upper half alone: SSE compares four of those at once, and no whole words. */
bool words_by_halves(const unsigned char *at, uint64_t low, uint64_t span)
{
	const uint32_t first = (uint32_t)(low >> 32);
	const uint32_t most = (uint32_t)((low + span) >> 32) - first;
	uint32_t found = low + span < low;

	for (unsigned i = 0; i < WORDS_BLOCK; i++) {
		uint32_t half;

		memcpy(&half, at + 8 * i + 4, 4);
		found |= half - first <= most;
	}
	return found;
}

#if defined(__x86_64__)
typedef int64_t signed4 __attribute__((vector_size(32)));
typedef uint64_t words4 __attribute__((vector_size(32)));

/* AVX2 compares signed words: both sides are moved by 2^63. */
__attribute__((target("avx2"))) bool words_by_avx2(
	const unsigned char *at, uint64_t low, uint64_t span)
{
	const words4 move = (words4){} + (uint64_t)((1ull << 63) - low);
	const signed4 most = (signed4){} + (int64_t)((1ull << 63) + span);
	signed4 found = {};
	words4 word;

	for (unsigned i = 0; i < WORDS_BLOCK; i += 4) {
		memcpy(&word, at + 8 * i, sizeof(word));
		found |= (signed4)(word + move) < most;
	}
	return (found[0] | found[1] | found[2] | found[3]) != 0;
}

/* By hand: zig's runtime library has nothing for __builtin_cpu_supports. */
static bool find_avx2(void)
{
	const uint32_t vectors = 6; /* XCR0: the system keeps the registers of SSE and AVX */
	uint32_t a, b, c, d, kept;

	if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & bit_OSXSAVE))
		return false;
	__asm__("xgetbv" : "=a"(kept), "=d"(d) : "c"(0));
	return (kept & vectors) == vectors && __get_cpuid_count(7, 0, &a, &b, &c, &d) &&
	       b & bit_AVX2;
}

bool words_have_avx2(void)
{
	static _Atomic signed char known = -1;
	signed char has = atomic_load_explicit(&known, memory_order_relaxed);

	if (__builtin_expect(has < 0, 0)) {
		has = find_avx2();
		atomic_store_explicit(&known, has, memory_order_relaxed);
	}
	return has;
}
#else
bool words_by_avx2(const unsigned char *at, uint64_t low, uint64_t span)
{
	return words_by_halves(at, low, span);
}

bool words_have_avx2(void)
{
	return false;
}
#endif

bool words_maybe_in(const unsigned char *at, uint64_t low, uint64_t span)
{
	return words_have_avx2() ? words_by_avx2(at, low, span)
				 : words_by_halves(at, low, span);
}
