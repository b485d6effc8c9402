/* SPDX-License-Identifier: Apache-2.0
 *
 * Sobol's sequence, in the order of Gray's code. The first dimensions have the direction
 * numbers that S. Joe and F. Y. Kuo published (2008); those behind, and the scrambled ones,
 * have random matrices with the one property that a single dimension needs: every run of 2^k
 * numbers has one in each interval of 2^-k.
 */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "softgpu/rand/rand.h"

#define DEGREE_MAX 9

/* Dimensions from the second on: the polynomial's degree and inner coefficients, and the odd
 * numbers that the recurrence begins with. */
static const struct joe_kuo {
	uint8_t degree;
	uint8_t inner;
	uint16_t m[DEGREE_MAX];
} joe_kuo[] = {
	{1, 0, {1}},
	{2, 1, {1, 3}},
	{3, 1, {1, 3, 1}},
	{3, 2, {1, 1, 1}},
	{4, 1, {1, 1, 3, 3}},
	{4, 4, {1, 3, 5, 13}},
	{5, 2, {1, 1, 5, 5, 17}},
	{5, 4, {1, 1, 5, 5, 5}},
	{5, 7, {1, 1, 7, 11, 19}},
	{5, 11, {1, 1, 5, 1, 1}},
	{5, 13, {1, 1, 1, 3, 11}},
	{5, 14, {1, 3, 5, 5, 31}},
	{6, 1, {1, 3, 3, 9, 7, 49}},
	{6, 13, {1, 1, 1, 15, 21, 21}},
	{6, 16, {1, 3, 1, 13, 27, 49}},
	{6, 19, {1, 1, 1, 15, 7, 5}},
	{6, 22, {1, 3, 1, 15, 13, 25}},
	{6, 25, {1, 1, 5, 5, 19, 61}},
	{7, 1, {1, 3, 7, 11, 23, 15, 103}},
	{7, 4, {1, 3, 7, 13, 13, 15, 69}},
	{7, 7, {1, 1, 3, 13, 7, 35, 63}},
	{7, 8, {1, 3, 5, 9, 1, 25, 53}},
	{7, 14, {1, 3, 1, 13, 9, 35, 107}},
	{7, 19, {1, 3, 1, 5, 27, 61, 31}},
	{7, 21, {1, 1, 5, 11, 19, 41, 61}},
	{7, 28, {1, 3, 5, 3, 3, 13, 69}},
	{7, 31, {1, 1, 7, 13, 1, 19, 1}},
	{7, 32, {1, 3, 7, 5, 13, 19, 59}},
	{7, 37, {1, 1, 3, 9, 25, 29, 41}},
	{7, 41, {1, 3, 5, 13, 23, 1, 55}},
	{7, 42, {1, 3, 7, 3, 13, 59, 17}},
	{7, 50, {1, 3, 1, 3, 5, 53, 69}},
	{7, 55, {1, 1, 5, 5, 23, 33, 13}},
	{7, 56, {1, 1, 7, 7, 1, 61, 123}},
	{7, 59, {1, 1, 7, 9, 13, 61, 49}},
	{7, 62, {1, 3, 3, 5, 3, 55, 33}},
	{8, 14, {1, 3, 1, 15, 31, 13, 49, 245}},
	{8, 21, {1, 3, 5, 15, 31, 59, 63, 97}},
	{8, 22, {1, 3, 1, 11, 11, 11, 77, 249}},
	{8, 38, {1, 3, 1, 11, 27, 43, 71, 9}},
	{8, 47, {1, 1, 7, 15, 21, 11, 81, 45}},
	{8, 49, {1, 3, 7, 3, 25, 31, 65, 79}},
	{8, 50, {1, 3, 1, 1, 19, 11, 3, 205}},
	{8, 52, {1, 1, 5, 9, 19, 21, 29, 157}},
	{8, 56, {1, 3, 7, 11, 1, 33, 89, 185}},
	{8, 67, {1, 3, 3, 3, 15, 9, 79, 71}},
	{8, 70, {1, 3, 7, 11, 15, 39, 119, 27}},
	{8, 84, {1, 1, 3, 1, 11, 31, 97, 225}},
	{8, 97, {1, 1, 1, 3, 23, 43, 57, 177}},
	{8, 103, {1, 3, 7, 7, 17, 17, 37, 71}},
	{8, 115, {1, 3, 1, 5, 27, 63, 123, 213}},
	{8, 122, {1, 1, 3, 5, 11, 43, 53, 133}},
	{9, 8, {1, 3, 5, 5, 29, 17, 47, 173, 479}},
	{9, 13, {1, 3, 3, 11, 3, 1, 109, 9, 69}},
	{9, 16, {1, 1, 1, 5, 17, 39, 23, 5, 343}},
	{9, 22, {1, 3, 1, 5, 25, 15, 31, 103, 499}},
	{9, 25, {1, 1, 1, 11, 11, 17, 63, 105, 183}},
	{9, 44, {1, 1, 5, 11, 9, 29, 97, 231, 363}},
	{9, 47, {1, 1, 5, 15, 19, 45, 41, 7, 383}},
	{9, 52, {1, 3, 7, 7, 31, 19, 83, 137, 221}},
	{9, 55, {1, 1, 1, 3, 23, 15, 111, 223, 83}},
	{9, 59, {1, 1, 5, 13, 31, 15, 55, 25, 161}},
	{9, 62, {1, 1, 3, 13, 25, 47, 39, 87, 257}},
	{9, 67, {1, 1, 1, 11, 21, 53, 125, 249, 293}},
	{9, 74, {1, 1, 7, 11, 11, 7, 57, 79, 323}},
	{9, 81, {1, 1, 5, 5, 17, 13, 81, 3, 131}},
	{9, 82, {1, 1, 7, 13, 23, 7, 65, 251, 475}},
	{9, 87, {1, 3, 5, 1, 9, 43, 3, 149, 11}},
	{9, 91, {1, 1, 3, 13, 31, 13, 13, 255, 487}},
	{9, 94, {1, 3, 3, 1, 5, 63, 89, 91, 127}},
	{9, 103, {1, 1, 3, 3, 1, 19, 123, 127, 237}},
	{9, 104, {1, 1, 5, 7, 23, 31, 37, 243, 289}},
	{9, 109, {1, 1, 5, 11, 17, 53, 117, 183, 491}},
	{9, 122, {1, 1, 1, 5, 1, 13, 13, 209, 345}},
	{9, 124, {1, 1, 3, 15, 1, 57, 115, 7, 33}},
	{9, 137, {1, 3, 1, 11, 7, 43, 81, 207, 175}},
	{9, 138, {1, 3, 1, 1, 15, 27, 63, 255, 49}},
	{9, 143, {1, 3, 5, 3, 27, 61, 105, 171, 305}},
	{9, 145, {1, 1, 5, 3, 1, 3, 57, 249, 149}},
	{9, 152, {1, 1, 3, 5, 5, 57, 15, 13, 159}},
	{9, 157, {1, 1, 1, 11, 7, 11, 105, 141, 225}},
	{9, 167, {1, 3, 3, 5, 27, 59, 121, 101, 271}},
	{9, 173, {1, 3, 5, 9, 11, 49, 51, 59, 115}},
	{9, 176, {1, 1, 7, 1, 23, 45, 125, 71, 419}},
	{9, 181, {1, 1, 3, 5, 23, 5, 105, 109, 75}},
	{9, 182, {1, 1, 7, 15, 7, 11, 67, 121, 453}},
	{9, 185, {1, 3, 7, 3, 9, 13, 31, 27, 449}},
	{9, 191, {1, 3, 1, 15, 19, 39, 39, 89, 15}},
	{9, 194, {1, 1, 1, 1, 1, 33, 73, 145, 379}},
	{9, 199, {1, 3, 1, 15, 15, 43, 29, 13, 483}},
	{9, 218, {1, 1, 7, 3, 19, 27, 85, 131, 431}},
	{9, 220, {1, 3, 3, 3, 5, 35, 23, 195, 349}},
	{9, 227, {1, 3, 3, 7, 9, 27, 39, 59, 297}},
	{9, 229, {1, 1, 3, 9, 11, 17, 13, 241, 157}},
	{9, 230, {1, 3, 7, 15, 25, 57, 33, 189, 213}},
	{9, 234, {1, 1, 7, 1, 9, 55, 73, 83, 217}},
	{9, 236, {1, 3, 3, 13, 19, 27, 23, 113, 249}},
	{9, 241, {1, 3, 5, 3, 23, 43, 3, 253, 479}},
	{9, 244, {1, 1, 5, 5, 11, 5, 45, 117, 217}},
};
#define JOE_KUO (sizeof(joe_kuo) / sizeof(joe_kuo[0]))

static uint64_t mix(uint64_t x)
{
	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
	x = (x ^ x >> 27) * 0x94d049bb133111ebu;
	return x ^ x >> 31;
}

uint64_t rand_constant(uint32_t dimension)
{
	return mix(0x9e3779b97f4a7c15u * (dimension + 1ull));
}

/* m[j] < 2^(j+1), all odd: m[j] stands j + 1 bits behind the point. */
static void published(const struct joe_kuo *row, uint64_t m[64])
{
	unsigned s = row->degree;

	for (unsigned j = 0; j < s; j++)
		m[j] = row->m[j];
	for (unsigned j = s; j < 64; j++) {
		m[j] = m[j - s] ^ m[j - s] << s;
		for (unsigned k = 1; k < s; k++)
			if (row->inner >> (s - 1 - k) & 1)
				m[j] ^= m[j - k] << k;
	}
}

void rand_vectors(bool scrambled, uint32_t dimension, uint64_t vectors[64])
{
	uint64_t m[64];

	if (!dimension)
		for (unsigned j = 0; j < 64; j++)
			m[j] = 1;
	else if (dimension <= JOE_KUO)
		published(&joe_kuo[dimension - 1], m);
	for (unsigned j = 0; j < 64; j++) {
		uint64_t lowest = 1ull << (63 - j);
		uint64_t noise = mix(dimension * 64ull + j + 1) & ~(lowest | (lowest - 1));

		vectors[j] =
			dimension > JOE_KUO || scrambled ? lowest | noise : m[j] << (63 - j);
	}
}

static void *vector_table(bool wide, bool scrambled)
{
	size_t count = (size_t)RAND_DIMENSIONS * (wide ? 64 : 32);
	void *table = calloc(count, wide ? sizeof(uint64_t) : sizeof(uint32_t));
	uint64_t vectors[64];

	for (uint32_t d = 0; table && d < RAND_DIMENSIONS; d++) {
		rand_vectors(scrambled, d, vectors);
		if (wide)
			memcpy((uint64_t *)table + 64ull * d, vectors, sizeof(vectors));
		for (unsigned j = 0; !wide && j < 32; j++)
			((uint32_t *)table)[32ull * d + j] = (uint32_t)(vectors[j] >> 32);
	}
	return table;
}

static void *constant_table(bool wide)
{
	void *table = calloc(RAND_DIMENSIONS, wide ? sizeof(uint64_t) : sizeof(uint32_t));

	for (uint32_t d = 0; table && d < RAND_DIMENSIONS; d++) {
		if (wide)
			((uint64_t *)table)[d] = rand_constant(d);
		else
			((uint32_t *)table)[d] = (uint32_t)(rand_constant(d) >> 32);
	}
	return table;
}

/* Made once; whoever makes one too many frees it. */
static const void *keep(_Atomic(void *) *kept, void *made)
{
	void *none = NULL;

	if (!made || atomic_compare_exchange_strong(kept, &none, made))
		return made;
	free(made);
	return none;
}

const void *rand_vector_table(bool wide, bool scrambled)
{
	static _Atomic(void *) kept[2][2];
	_Atomic(void *) *at = &kept[wide][scrambled];

	return atomic_load(at) ? atomic_load(at) : keep(at, vector_table(wide, scrambled));
}

const void *rand_constant_table(bool wide)
{
	static _Atomic(void *) kept[2];

	return atomic_load(&kept[wide]) ? atomic_load(&kept[wide])
					: keep(&kept[wide], constant_table(wide));
}

/* The number with that index; 32-bit generators use the upper half. */
static uint64_t sobol_at(const uint64_t vectors[64], uint64_t index)
{
	uint64_t gray = index ^ index >> 1, x = 0;

	for (unsigned j = 0; gray; j++, gray >>= 1)
		if (gray & 1)
			x ^= vectors[j];
	return x;
}

static double uniform(uint64_t x, bool wide_generator, bool wide)
{
	if (!wide) /* single precision has the upper 32 bits of either */
		return (float)(uint32_t)(x >> 32) * 0x1p-32f + 0x1p-33f;
	if (wide_generator)
		return (double)(x >> 11) * 0x1p-53 + 0x1p-54;
	return (double)(x >> 32) * 0x1p-32 + 0x1p-32;
}

static void put(const struct rand_engine *e, const struct rand_order *order, void *to,
	size_t at, uint64_t x)
{
	bool wide_generator = rand_is_64(e->set.type);
	double u;

	switch (order->what) {
	case RAND_BITS: ((uint32_t *)to)[at] = (uint32_t)(x >> 32); return;
	case RAND_BITS_64: ((uint64_t *)to)[at] = x; return;
	case RAND_UNIFORM:
	case RAND_UNIFORM_DOUBLE:
		u = uniform(x, wide_generator, order->what == RAND_UNIFORM_DOUBLE);
		break;
	case RAND_POISSON: u = uniform(x, wide_generator, true) - 0x1p-33; break;
	case RAND_NORMAL_DOUBLE:
	case RAND_LOG_NORMAL_DOUBLE:
		u = rand_icdf(wide_generator ? ((double)(x >> 11) + 0.5) * 0x1p-53
					     : ((double)(x >> 32) + 0.5) * 0x1p-32);
		break;
	default: u = rand_icdf(((double)(x >> 32) + 0.5) * 0x1p-32); break;
	}
	rand_put(order, to, at, u);
}

void rand_sobol_fill(struct rand_engine *e, const struct rand_order *order, void *to)
{
	bool scrambled =
		e->set.type == RAND_SCRAMBLED_SOBOL32 || e->set.type == RAND_SCRAMBLED_SOBOL64;
	size_t each = order->n / e->set.dimensions;
	uint64_t vectors[64];

	for (uint32_t d = 0; d < e->set.dimensions; d++) {
		uint64_t constant = scrambled ? rand_constant(d) : 0, x;

		rand_vectors(scrambled, d, vectors);
		x = sobol_at(vectors, e->at) ^ constant;
		for (size_t i = 0; i < each; i++) {
			uint64_t next = e->at + i + 1;

			put(e, order, to, d * each + i, x);
			x ^= vectors[next ? __builtin_ctzll(next) : 63];
		}
	}
	e->at += each;
}
