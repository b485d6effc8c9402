/* SPDX-License-Identifier: Apache-2.0
 *
 * Block-compressed texels, BC1 to BC5: blocks of 4 x 4 of them, of 8 bytes or of two times 8;
 * BC6H and BC7 are texture_bptc.c's.
 * As Direct3D's and OpenGL's specifications say; what lies between two ends is exact here,
 * where a device may round it.
 */
#include "softgpu/ptx/texture.h"

#include <string.h>

uint32_t ptx_block_bytes(enum ptx_blocks blocks)
{
	switch (blocks) {
	case PTX_BLOCKS_NONE: return 0;
	case PTX_BC1:
	case PTX_BC4:
	case PTX_BC4_SIGNED: return 8;
	default: return 16;
	}
}

static void colour(uint16_t word, double *v)
{
	v[0] = (word >> 11) / 31.0;
	v[1] = (word >> 5 & 63) / 63.0;
	v[2] = (word & 31) / 31.0;
}

/* Two colours and a place between them for each texel; where the first is not the greater one,
 * the middle and black, if that is allowed. */
static void colours(const unsigned char *p, uint32_t at, bool black, double *v)
{
	double ends[2][3];
	uint16_t word[2];
	uint32_t bits;

	memcpy(word, p, sizeof(word));
	memcpy(&bits, p + 4, sizeof(bits));
	colour(word[0], ends[0]);
	colour(word[1], ends[1]);
	bits = bits >> 2 * at & 3;
	black = black && word[0] <= word[1];
	v[3] = black && bits == 3 ? 0.0 : 1.0;
	for (int k = 0; k < 3; k++) {
		const double a = ends[0][k], b = ends[1][k];

		if (bits < 2)
			v[k] = bits ? b : a;
		else if (black)
			v[k] = bits == 3 ? 0.0 : (a + b) / 2;
		else
			v[k] = bits == 2 ? (2 * a + b) / 3 : (a + 2 * b) / 3;
	}
}

/* Two values and one of eight places for each texel: six between them, or four and the least
 * and the greatest value that there is. */
static double value(const unsigned char *p, uint32_t at, bool is_signed)
{
	const int ends[2] = {is_signed ? (int8_t)p[0] : p[0], is_signed ? (int8_t)p[1] : p[1]};
	const double most = is_signed ? 127.0 : 255.0;
	const int steps = ends[0] > ends[1] ? 7 : 5;
	double a, b;
	uint64_t bits = 0;
	int place;

	memcpy(&bits, p + 2, 6);
	place = bits >> 3 * at & 7;
	/* Signed ones have two for the least. */
	a = ends[0] < -most ? -1.0 : ends[0] / most;
	b = ends[1] < -most ? -1.0 : ends[1] / most;
	if (place < 2)
		return place ? b : a;
	if (steps == 5 && place >= 6)
		return place == 7 ? 1.0 : is_signed ? -1.0 : 0.0;
	return (a * (steps + 1 - place) + b * (place - 1)) / steps;
}

void ptx_block_texel(
	enum ptx_blocks blocks, const unsigned char *p, uint32_t x, uint32_t y, double *v)
{
	const uint32_t at = 4 * y + x;
	const bool is_signed = blocks == PTX_BC4_SIGNED || blocks == PTX_BC5_SIGNED;

	v[1] = v[2] = v[3] = 0.0;
	switch (blocks) {
	case PTX_BC1: colours(p, at, true, v); break;
	case PTX_BC2:
		colours(p + 8, at, false, v);
		v[3] = (p[at / 2] >> 4 * (at & 1) & 15) / 15.0;
		break;
	case PTX_BC3:
		colours(p + 8, at, false, v);
		v[3] = value(p, at, false);
		break;
	case PTX_BC6H:
	case PTX_BC6H_SIGNED:
	case PTX_BC7: ptx_bptc_texel(blocks, p, at, v); break;
	default:
		v[0] = value(p, at, is_signed);
		if (blocks == PTX_BC5 || blocks == PTX_BC5_SIGNED)
			v[1] = value(p + 8, at, is_signed);
		break;
	}
}
