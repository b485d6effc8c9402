/* SPDX-License-Identifier: Apache-2.0 */
#include "shim/driver/memory/pinned/words.h"

#include <stdatomic.h>
#include <string.h>
#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>
#endif

/* By the upper half alone: SSE compares four of those at once, and no whole words. */
bool words_by_halves(const unsigned char *at, size_t words, uint64_t low, uint64_t span)
{
	const uint32_t first = (uint32_t)(low >> 32);
	const uint32_t most = (uint32_t)((low + span) >> 32) - first;
	uint32_t found = low + span < low;

	for (size_t i = 0; i < words; i++) {
		uint32_t half;

		memcpy(&half, at + 8 * i + 4, 4);
		found |= half - first <= most;
	}
	return found;
}

#if defined(__x86_64__)
/* The least upper half of how far the words are behind LOW: an addition and a minimum for four
 * of them. The lower halves take part, each for itself, and are not looked at. */
__attribute__((target("avx2"))) bool words_by_avx2(
	const unsigned char *at, size_t words, uint64_t low, uint64_t span)
{
	const __m256i move = _mm256_set1_epi64x((int64_t)(0 - low));
	__m256i least = _mm256_set1_epi32(-1), other = least;
	uint32_t halves[8], found = UINT32_MAX;
	size_t i = 0;

	for (; i + 8 <= words; i += 8) {
		const __m256i *word = (const __m256i *)(const void *)(at + 8 * i);

		least = _mm256_min_epu32(
			least, _mm256_add_epi64(move, _mm256_loadu_si256(word)));
		other = _mm256_min_epu32(
			other, _mm256_add_epi64(move, _mm256_loadu_si256(word + 1)));
	}
	_mm256_storeu_si256((__m256i *)(void *)halves, _mm256_min_epu32(least, other));
	for (unsigned half = 1; half < 8; half += 2)
		found = halves[half] < found ? halves[half] : found;
	for (; i < words; i++) {
		uint64_t word;

		memcpy(&word, at + 8 * i, 8);
		word -= low;
		found = word >> 32 < found ? (uint32_t)(word >> 32) : found;
	}
	return found <= span >> 32;
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
bool words_by_avx2(const unsigned char *at, size_t words, uint64_t low, uint64_t span)
{
	return words_by_halves(at, words, low, span);
}

bool words_have_avx2(void)
{
	return false;
}
#endif

bool words_maybe_in(const unsigned char *at, size_t words, uint64_t low, uint64_t span)
{
	return words_have_avx2() ? words_by_avx2(at, words, low, span)
				 : words_by_halves(at, words, low, span);
}
