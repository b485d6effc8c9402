/* SPDX-License-Identifier: Apache-2.0
 *
 * Block-compressed texels, BC6H and BC7: blocks of 4 x 4 of them, of 16 bytes, in one of 14 or
 * 8 modes, as the specification of ARB_texture_compression_bptc has them, which allows no other
 * result in any bit.
 *
 * The texels of a block are in one to three subsets, each with two ends of its own; an index
 * says where between them a texel lies.
 */
#include <string.h>

#include "softgpu/ptx/ops/round.h"
#include "softgpu/ptx/texture.h"

#define TEXELS 16

/* Bit AT: the texel is of the second subset. */
static const uint16_t two[64] = {0xcccc, 0x8888, 0xeeee, 0xecc8, 0xc880, 0xfeec, 0xfec8, 0xec80,
	0xc800, 0xffec, 0xfe80, 0xe800, 0xffe8, 0xff00, 0xfff0, 0xf000, 0xf710, 0x008e, 0x7100,
	0x08ce, 0x008c, 0x7310, 0x3100, 0x8cce, 0x088c, 0x3110, 0x6666, 0x366c, 0x17e8, 0x0ff0,
	0x718e, 0x399c, 0xaaaa, 0xf0f0, 0x5a5a, 0x33cc, 0x3c3c, 0x55aa, 0x9696, 0xa55a, 0x73ce,
	0x13c8, 0x324c, 0x3bdc, 0x6996, 0xc33c, 0x9966, 0x0660, 0x0272, 0x04e4, 0x4e40, 0x2720,
	0xc936, 0x936c, 0x39c6, 0x639c, 0x9336, 0x9cc6, 0x817e, 0xe718, 0xccf0, 0x0fcc, 0x7744,
	0xee22};

/* Two bits for each texel: its subset. */
static const uint32_t three[64] = {0xaa685050, 0x6a5a5040, 0x5a5a4200, 0x5450a0a8, 0xa5a50000,
	0xa0a05050, 0x5555a0a0, 0x5a5a5050, 0xaa550000, 0xaa555500, 0xaaaa5500, 0x90909090,
	0x94949494, 0xa4a4a4a4, 0xa9a59450, 0x2a0a4250, 0xa5945040, 0x0a425054, 0xa5a5a500,
	0x55a0a0a0, 0xa8a85454, 0x6a6a4040, 0xa4a45000, 0x1a1a0500, 0x0050a4a4, 0xaaa59090,
	0x14696914, 0x69691400, 0xa08585a0, 0xaa821414, 0x50a4a450, 0x6a5a0200, 0xa9a58000,
	0x5090a0a8, 0xa8a09050, 0x24242424, 0x00aa5500, 0x24924924, 0x24499224, 0x50a50a50,
	0x500aa550, 0xaaaa4444, 0x66660000, 0xa5a0a5a0, 0x50a050a0, 0x69286928, 0x44aaaa44,
	0x66666600, 0xaa444444, 0x54a854a8, 0x95809580, 0x96969600, 0xa85454a8, 0x80959580,
	0xaa141414, 0x96960000, 0xaaaa1414, 0xa05050a0, 0xa0a5a5a0, 0x96000000, 0x40804080,
	0xa9a8a9a8, 0xaaaaaa44, 0x2a4a5254};

/* Texels whose index has a bit less, since it is known: of the second subset of two, and of the
 * second and third of three. That of the first subset is texel 0. */
static const uint8_t anchor_two[64] = {15, 15, 15, 15, 15, 15, 15, 15, 15, 15, 15, 15, 15, 15,
	15, 15, 15, 2, 8, 2, 2, 8, 8, 15, 2, 8, 2, 2, 8, 8, 2, 2, 15, 15, 6, 8, 2, 8, 15, 15, 2,
	8, 2, 2, 2, 15, 15, 6, 6, 2, 6, 8, 15, 15, 2, 2, 15, 15, 15, 15, 15, 2, 2, 15};
static const uint8_t anchor_three_second[64] = {3, 3, 15, 15, 8, 3, 15, 15, 8, 8, 6, 6, 6, 5, 3,
	3, 3, 3, 8, 15, 3, 3, 6, 10, 5, 8, 8, 6, 8, 5, 15, 15, 8, 15, 3, 5, 6, 10, 8, 15, 15, 3,
	15, 5, 15, 15, 15, 15, 3, 15, 5, 5, 5, 8, 5, 10, 5, 10, 8, 13, 15, 12, 3, 3};
static const uint8_t anchor_three_third[64] = {15, 8, 8, 3, 15, 15, 3, 8, 15, 15, 15, 15, 15,
	15, 15, 8, 15, 8, 15, 3, 15, 8, 15, 8, 3, 15, 6, 10, 15, 15, 10, 8, 15, 3, 15, 10, 10,
	8, 9, 10, 6, 15, 8, 15, 3, 6, 6, 8, 15, 3, 15, 15, 15, 15, 15, 15, 15, 15, 15, 15, 3,
	15, 15, 8};

/* ---- what both have ---- */

struct reader {
	uint64_t words[2];
	unsigned at;
};

static uint32_t take(struct reader *r, unsigned n)
{
	uint32_t value = 0;

	for (unsigned k = 0; k < n; k++, r->at++)
		value |= (uint32_t)(r->words[r->at / 64] >> r->at % 64 & 1) << k;
	return value;
}

static unsigned subset_of(unsigned subsets, unsigned partition, unsigned at)
{
	if (subsets == 1)
		return 0;
	return subsets == 2 ? (unsigned)two[partition] >> at & 1u
			    : three[partition] >> 2 * at & 3u;
}

static bool is_anchor(unsigned subsets, unsigned partition, unsigned at)
{
	return !at || (subsets == 2 && at == anchor_two[partition]) ||
	       (subsets == 3 && (at == anchor_three_second[partition] ||
					at == anchor_three_third[partition]));
}

/* The index of texel AT among those that follow, of BITS each; the reader is behind all then.
 */
static uint32_t take_index(
	struct reader *r, unsigned subsets, unsigned partition, unsigned bits, unsigned at)
{
	uint32_t index = 0;

	for (unsigned k = 0; k < TEXELS; k++) {
		const uint32_t one = take(r, bits - is_anchor(subsets, partition, k));

		if (k == at)
			index = one;
	}
	return index;
}

/* Of 64. */
static int weight(unsigned bits, uint32_t index)
{
	static const uint8_t weights[3][16] = {{0, 21, 43, 64}, {0, 9, 18, 27, 37, 46, 55, 64},
		{0, 4, 9, 13, 17, 21, 26, 30, 34, 38, 43, 47, 51, 55, 60, 64}};

	return weights[bits - 2][index];
}

static int between(int a, int b, int weight)
{
	return (a * (64 - weight) + b * weight + 32) >> 6;
}

/* ---- BC7 ---- */

struct mode {
	uint8_t subsets, partition, rotation, selection, colour,
		alpha; /* bits, but the first */
	bool bit_each,
		bit_shared; /* below those of colour: of each end, or of a subset's two */
	uint8_t index, second;
};
static const struct mode modes[8] = {
	{3, 4, 0, 0, 4, 0, true, false, 3, 0},
	{2, 6, 0, 0, 6, 0, false, true, 3, 0},
	{3, 6, 0, 0, 5, 0, false, false, 2, 0},
	{2, 6, 0, 0, 7, 0, true, false, 2, 0},
	{1, 0, 2, 1, 5, 6, false, false, 2, 3},
	{1, 0, 2, 0, 7, 8, false, false, 2, 2},
	{1, 0, 0, 0, 7, 7, true, false, 4, 0},
	{2, 6, 0, 0, 5, 5, true, false, 2, 0},
};

#define SUBSETS 3

/* BITS of a byte as its highest ones, which its lowest ones are again. */
static uint8_t widen(unsigned value, unsigned bits)
{
	value <<= 8 - bits;
	return (uint8_t)(value | value >> bits);
}

static void take_ends(struct reader *r, const struct mode *mode, uint8_t ends[SUBSETS][2][4])
{
	const unsigned more = mode->bit_each || mode->bit_shared;
	unsigned value[SUBSETS][2][4] = {{{0}}};

	for (unsigned c = 0; c < (mode->alpha ? 4u : 3u); c++)
		for (unsigned s = 0; s < mode->subsets; s++)
			for (unsigned e = 0; e < 2; e++)
				value[s][e][c] = take(r, c < 3 ? mode->colour : mode->alpha);
	for (unsigned s = 0; more && s < mode->subsets; s++) {
		unsigned bit = 0;

		for (unsigned e = 0; e < 2; e++) {
			if (!e || mode->bit_each)
				bit = take(r, 1);
			for (unsigned c = 0; c < 4; c++)
				value[s][e][c] = value[s][e][c] << 1 | bit;
		}
	}
	for (unsigned s = 0; s < mode->subsets; s++)
		for (unsigned e = 0; e < 2; e++)
			for (unsigned c = 0; c < 4; c++)
				ends[s][e][c] =
					c == 3 && !mode->alpha
						? 255
						: widen(value[s][e][c],
							  (c < 3 ? mode->colour : mode->alpha) +
								  more);
}

static void bc7_texel(struct reader *r, unsigned at, double *v)
{
	const unsigned number = r->words[0] & 255 ? (unsigned)__builtin_ctzll(r->words[0]) : 8;
	const struct mode *mode = &modes[number & 7];
	unsigned partition, rotation, selection, bits[2], subset;
	uint8_t ends[SUBSETS][2][4];
	uint32_t index[2];
	int out[4], alpha;

	if (number == 8) { /* reserved */
		v[0] = v[1] = v[2] = v[3] = 0.0;
		return;
	}
	r->at = number + 1;
	partition = take(r, mode->partition);
	rotation = take(r, mode->rotation);
	selection = take(r, mode->selection);
	take_ends(r, mode, ends);
	index[0] = take_index(r, mode->subsets, partition, mode->index, at);
	bits[0] = bits[1] = mode->index;
	index[1] = index[0];
	if (mode->second) {
		/* One is the colour's, the other alpha's. */
		bits[!selection] = mode->second;
		index[selection] = index[0];
		index[!selection] = take_index(r, 1, 0, mode->second, at);
	}
	subset = subset_of(mode->subsets, partition, at);
	for (unsigned c = 0; c < 4; c++)
		out[c] = between(ends[subset][0][c], ends[subset][1][c],
			weight(bits[c == 3], index[c == 3]));
	if (rotation) {
		alpha = out[3];
		out[3] = out[rotation - 1];
		out[rotation - 1] = alpha;
	}
	for (unsigned c = 0; c < 4; c++)
		v[c] = out[c] / 255.0;
}

/* ---- BC6H ---- */

/* The ends: of the first subset, then of the second one. */
enum { R0, G0, B0, R1, G1, B1, R2, G2, B2, R3, G3, B3, NUMBERS };
#define FIELDS 23

/* The bits of a number, in the order of the block's. */
#define F(number, first, last) ((number) << 8 | (first) << 4 | (last))

struct float_mode {
	uint8_t mode;
	bool relative; /* the other ends are told by how much they differ from the first one */
	uint8_t subsets, bits, difference[3];
	uint16_t fields[FIELDS];
};
static const struct float_mode float_modes[] = {
	{0, true, 2, 10, {5, 5, 5},
		{F(G2, 4, 4), F(B2, 4, 4), F(B3, 4, 4), F(R0, 0, 9), F(G0, 0, 9), F(B0, 0, 9),
			F(R1, 0, 4), F(G3, 4, 4), F(G2, 0, 3), F(G1, 0, 4), F(B3, 0, 0),
			F(G3, 0, 3), F(B1, 0, 4), F(B3, 1, 1), F(B2, 0, 3), F(R2, 0, 4),
			F(B3, 2, 2), F(R3, 0, 4), F(B3, 3, 3)}},
	{1, true, 2, 7, {6, 6, 6},
		{F(G2, 5, 5), F(G3, 4, 4), F(G3, 5, 5), F(R0, 0, 6), F(B3, 0, 0), F(B3, 1, 1),
			F(B2, 4, 4), F(G0, 0, 6), F(B2, 5, 5), F(B3, 2, 2), F(G2, 4, 4),
			F(B0, 0, 6), F(B3, 3, 3), F(B3, 5, 5), F(B3, 4, 4), F(R1, 0, 5),
			F(G2, 0, 3), F(G1, 0, 5), F(G3, 0, 3), F(B1, 0, 5), F(B2, 0, 3),
			F(R2, 0, 5), F(R3, 0, 5)}},
	{2, true, 2, 11, {5, 4, 4},
		{F(R0, 0, 9), F(G0, 0, 9), F(B0, 0, 9), F(R1, 0, 4), F(R0, 10, 10), F(G2, 0, 3),
			F(G1, 0, 3), F(G0, 10, 10), F(B3, 0, 0), F(G3, 0, 3), F(B1, 0, 3),
			F(B0, 10, 10), F(B3, 1, 1), F(B2, 0, 3), F(R2, 0, 4), F(B3, 2, 2),
			F(R3, 0, 4), F(B3, 3, 3)}},
	{6, true, 2, 11, {4, 5, 4},
		{F(R0, 0, 9), F(G0, 0, 9), F(B0, 0, 9), F(R1, 0, 3), F(R0, 10, 10), F(G3, 4, 4),
			F(G2, 0, 3), F(G1, 0, 4), F(G0, 10, 10), F(G3, 0, 3), F(B1, 0, 3),
			F(B0, 10, 10), F(B3, 1, 1), F(B2, 0, 3), F(R2, 0, 3), F(B3, 0, 0),
			F(B3, 2, 2), F(R3, 0, 3), F(G2, 4, 4), F(B3, 3, 3)}},
	{10, true, 2, 11, {4, 4, 5},
		{F(R0, 0, 9), F(G0, 0, 9), F(B0, 0, 9), F(R1, 0, 3), F(R0, 10, 10), F(B2, 4, 4),
			F(G2, 0, 3), F(G1, 0, 3), F(G0, 10, 10), F(B3, 0, 0), F(G3, 0, 3),
			F(B1, 0, 4), F(B0, 10, 10), F(B2, 0, 3), F(R2, 0, 3), F(B3, 1, 1),
			F(B3, 2, 2), F(R3, 0, 3), F(B3, 4, 4), F(B3, 3, 3)}},
	{14, true, 2, 9, {5, 5, 5},
		{F(R0, 0, 8), F(B2, 4, 4), F(G0, 0, 8), F(G2, 4, 4), F(B0, 0, 8), F(B3, 4, 4),
			F(R1, 0, 4), F(G3, 4, 4), F(G2, 0, 3), F(G1, 0, 4), F(B3, 0, 0),
			F(G3, 0, 3), F(B1, 0, 4), F(B3, 1, 1), F(B2, 0, 3), F(R2, 0, 4),
			F(B3, 2, 2), F(R3, 0, 4), F(B3, 3, 3)}},
	{18, true, 2, 8, {6, 5, 5},
		{F(R0, 0, 7), F(G3, 4, 4), F(B2, 4, 4), F(G0, 0, 7), F(B3, 2, 2), F(G2, 4, 4),
			F(B0, 0, 7), F(B3, 3, 3), F(B3, 4, 4), F(R1, 0, 5), F(G2, 0, 3),
			F(G1, 0, 4), F(B3, 0, 0), F(G3, 0, 3), F(B1, 0, 4), F(B3, 1, 1),
			F(B2, 0, 3), F(R2, 0, 5), F(R3, 0, 5)}},
	{22, true, 2, 8, {5, 6, 5},
		{F(R0, 0, 7), F(B3, 0, 0), F(B2, 4, 4), F(G0, 0, 7), F(G2, 5, 5), F(G2, 4, 4),
			F(B0, 0, 7), F(G3, 5, 5), F(B3, 4, 4), F(R1, 0, 4), F(G3, 4, 4),
			F(G2, 0, 3), F(G1, 0, 5), F(G3, 0, 3), F(B1, 0, 4), F(B3, 1, 1),
			F(B2, 0, 3), F(R2, 0, 4), F(B3, 2, 2), F(R3, 0, 4), F(B3, 3, 3)}},
	{26, true, 2, 8, {5, 5, 6},
		{F(R0, 0, 7), F(B3, 1, 1), F(B2, 4, 4), F(G0, 0, 7), F(B2, 5, 5), F(G2, 4, 4),
			F(B0, 0, 7), F(B3, 5, 5), F(B3, 4, 4), F(R1, 0, 4), F(G3, 4, 4),
			F(G2, 0, 3), F(G1, 0, 4), F(B3, 0, 0), F(G3, 0, 3), F(B1, 0, 5),
			F(B2, 0, 3), F(R2, 0, 4), F(B3, 2, 2), F(R3, 0, 4), F(B3, 3, 3)}},
	{30, false, 2, 6, {6, 6, 6},
		{F(R0, 0, 5), F(G3, 4, 4), F(B3, 0, 0), F(B3, 1, 1), F(B2, 4, 4), F(G0, 0, 5),
			F(G2, 5, 5), F(B2, 5, 5), F(B3, 2, 2), F(G2, 4, 4), F(B0, 0, 5),
			F(G3, 5, 5), F(B3, 3, 3), F(B3, 5, 5), F(B3, 4, 4), F(R1, 0, 5),
			F(G2, 0, 3), F(G1, 0, 5), F(G3, 0, 3), F(B1, 0, 5), F(B2, 0, 3),
			F(R2, 0, 5), F(R3, 0, 5)}},
	{3, false, 1, 10, {10, 10, 10},
		{F(R0, 0, 9), F(G0, 0, 9), F(B0, 0, 9), F(R1, 0, 9), F(G1, 0, 9), F(B1, 0, 9)}},
	{7, true, 1, 11, {9, 9, 9},
		{F(R0, 0, 9), F(G0, 0, 9), F(B0, 0, 9), F(R1, 0, 8), F(R0, 10, 10), F(G1, 0, 8),
			F(G0, 10, 10), F(B1, 0, 8), F(B0, 10, 10)}},
	{11, true, 1, 12, {8, 8, 8},
		{F(R0, 0, 9), F(G0, 0, 9), F(B0, 0, 9), F(R1, 0, 7), F(R0, 11, 10), F(G1, 0, 7),
			F(G0, 11, 10), F(B1, 0, 7), F(B0, 11, 10)}},
	{15, true, 1, 16, {4, 4, 4},
		{F(R0, 0, 9), F(G0, 0, 9), F(B0, 0, 9), F(R1, 0, 3), F(R0, 15, 10), F(G1, 0, 3),
			F(G0, 15, 10), F(B1, 0, 3), F(B0, 15, 10)}},
};

static const struct float_mode *take_float_mode(struct reader *r)
{
	uint32_t number = take(r, 2);

	if (number > 1)
		number |= take(r, 3) << 2;
	for (size_t k = 0; k < sizeof(float_modes) / sizeof(float_modes[0]); k++)
		if (float_modes[k].mode == number)
			return &float_modes[k];
	return NULL;
}

static int with_sign(uint32_t value, unsigned bits)
{
	return (int)(value << (32 - bits)) >> (32 - bits);
}

/* As many as the mode has, NUMBERS at most. */
static void take_numbers(
	struct reader *r, const struct float_mode *mode, bool is_signed, int *numbers)
{
	const unsigned end = mode->subsets == 2 ? 77 : 65;
	const uint32_t all = (1u << mode->bits) - 1;
	uint32_t raw[NUMBERS] = {0};

	for (const uint16_t *f = mode->fields; r->at < end; f++) {
		const int first = *f >> 4 & 15, last = *f & 15;
		const int step = first <= last ? 1 : -1;

		for (int bit = first;; bit += step) {
			raw[*f >> 8] |= take(r, 1) << bit;
			if (bit == last)
				break;
		}
	}
	for (unsigned k = 0; k < 6u * mode->subsets; k++) {
		if (k > B0 && mode->relative)
			raw[k] = (raw[k % 3] +
					 (uint32_t)with_sign(raw[k], mode->difference[k % 3])) &
				 all;
		numbers[k] = is_signed ? with_sign(raw[k], mode->bits) : (int)raw[k];
	}
}

/* An end of so many bits as one of 16, or of a sign and 15. */
static int spread(int x, unsigned bits, bool is_signed)
{
	const int most = is_signed ? (1 << (bits - 1)) - 1 : (1 << bits) - 1;
	const int size = x < 0 ? -x : x;
	int wide;

	if (bits >= (is_signed ? 16 : 15))
		return x;
	if (!x)
		return 0;
	wide = size >= most ? is_signed ? 0x7fff : 0xffff
			    : ((size << 15) + 0x4000) >> (bits - 1);
	return x < 0 ? -wide : wide;
}

static double as_float(int x, bool is_signed)
{
	const int size = x < 0 ? -x : x;
	const int bits = is_signed ? size * 31 >> 5 : size * 31 >> 6;

	return (double)ptx_half_to_float((uint16_t)(bits | (x < 0 ? 0x8000 : 0)));
}

static void bc6h_texel(struct reader *r, unsigned at, bool is_signed, double *v)
{
	const struct float_mode *mode = take_float_mode(r);
	int numbers[NUMBERS];
	unsigned partition = 0, bits;
	const int *ends;
	uint32_t index;

	v[0] = v[1] = v[2] = 0.0;
	if (!mode)
		return;
	take_numbers(r, mode, is_signed, numbers);
	if (mode->subsets == 2)
		partition = take(r, 5);
	bits = mode->subsets == 2 ? 3 : 4;
	index = take_index(r, mode->subsets, partition, bits, at);
	ends = numbers + 6 * subset_of(mode->subsets, partition, at);
	for (unsigned c = 0; c < 3; c++)
		v[c] = as_float(between(spread(ends[c], mode->bits, is_signed),
					spread(ends[c + 3], mode->bits, is_signed),
					weight(bits, index)),
			is_signed);
}

void ptx_bptc_texel(enum ptx_blocks blocks, const unsigned char *p, uint32_t at, double *v)
{
	struct reader reader = {.at = 0};

	memcpy(reader.words, p, sizeof(reader.words));
	if (blocks == PTX_BC7)
		bc7_texel(&reader, at, v);
	else
		bc6h_texel(&reader, at, blocks == PTX_BC6H_SIGNED, v);
}
