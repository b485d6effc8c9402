/* SPDX-License-Identifier: Apache-2.0
 *
 * Fetching: addressing, filtering and conversion as the CUDA programming guide describes them
 * ("Texture fetching").  Weights have 8 bits behind the point, as on NVIDIA's devices; sums are
 * made in double and rounded once.
 */
#include <math.h>
#include <string.h>

#include "softgpu/ptx/internal.h"
#include "softgpu/ptx/ops/round.h"
#include "softgpu/ptx/texture.h"

/* Beyond this a coordinate is as good as infinite. */
#define FAR 1e9

/* ---- one texel ---- */

uint32_t ptx_texel_bytes(enum ptx_texel texel)
{
	static const uint8_t bytes[] = {1, 1, 2, 2, 4, 4, 2, 4, 1};

	return bytes[texel];
}

static double srgb(double v)
{
	return v <= 0.04045 ? v / 12.92 : pow((v + 0.055) / 1.055, 2.4);
}

static double normalized(double v, double most)
{
	return v < -most ? -1.0 : v / most;
}

/* Channel K of what lies at P. */
static double channel(const struct ptx_texture *t, const unsigned char *p, uint32_t k)
{
	const bool plain = t->integers;
	uint16_t half;
	int16_t small;
	uint32_t word;
	float f;

	if (t->texel == PTX_TEXEL_10_10_10_2) {
		memcpy(&word, p, 4);
		return k < 3 ? (word >> 10 * k & 1023) / 1023.0 : (word >> 30) / 3.0;
	}
	p += k * ptx_texel_bytes(t->texel);
	switch (t->texel) {
	case PTX_TEXEL_U8:
		if (plain)
			return *p;
		return t->srgb && k < 3 ? srgb(*p / 255.0) : *p / 255.0;
	case PTX_TEXEL_S8: return plain ? (int8_t)*p : normalized((int8_t)*p, 127.0);
	case PTX_TEXEL_U16: memcpy(&half, p, 2); return plain ? half : half / 65535.0;
	case PTX_TEXEL_S16:
		memcpy(&small, p, 2);
		return plain ? small : normalized(small, 32767.0);
	case PTX_TEXEL_F16: memcpy(&half, p, 2); return (double)ptx_half_to_float(half);
	case PTX_TEXEL_F32: memcpy(&f, p, 4); return (double)f;
	case PTX_TEXEL_S32: memcpy(&word, p, 4); return (int32_t)word;
	default: memcpy(&word, p, 4); return word;
	}
}

static bool whole_numbers(const struct ptx_texture *t)
{
	return t->texel == PTX_TEXEL_U32 || t->texel == PTX_TEXEL_S32 ||
	       (t->integers && t->texel < PTX_TEXEL_F16);
}

static void outside(const struct ptx_texture *t, double *v)
{
	int32_t bits;

	for (uint32_t k = 0; k < 4; k++) {
		if (t->memory || k >= t->channels) {
			v[k] = k == 3 && !t->memory;
		} else if (whole_numbers(t)) {
			memcpy(&bits, &t->border[k], sizeof(bits));
			v[k] = bits;
		} else {
			v[k] = (double)t->border[k];
		}
	}
}

/* The texel at AT (less than 0: outside). False: it does not lie in the device's memory. */
static bool texel(const struct ptx_texture *t, const struct ptx_texture_level *level,
	const int64_t *at, double *v)
{
	const uint32_t size = t->blocks ? ptx_block_bytes(t->blocks)
					: ptx_texel_bytes(t->texel) * t->channels;
	const uint32_t side = t->blocks ? PTX_BLOCK_SIDE : 1;
	static const unsigned char none[16];
	const unsigned char *p;
	uint64_t address;

	if (at[0] < 0 || at[1] < 0 || at[2] < 0) {
		outside(t, v);
		return true;
	}
	address = ptx_level_address(
		level, (uint64_t)at[0] / side * size, (uint64_t)at[1] / side, (uint64_t)at[2]);
	p = (const unsigned char *)(uintptr_t)address;
	if (ptx_texture_absent(t, address)) {
		p = none;
	} else if (address - ptx_device_window.base > ptx_device_window.span - size) {
		if (!ptx_outside(address, size))
			return false;
	} else if (ptx_denied(ptx_current->warp, address)) {
		return false;
	}
	if (t->blocks) {
		ptx_block_texel(
			t->blocks, p, (uint32_t)at[0] % side, (uint32_t)at[1] % side, v);
		if (t->channels < 4)
			v[3] = t->block_view ? 0.0 : 1.0; /* as on an H200 */
		for (uint32_t k = 0; t->srgb && k < 3; k++)
			v[k] = srgb(v[k]);
		return true;
	}
	for (uint32_t k = 0; k < t->channels && k < 4; k++)
		v[k] = channel(t, p, k);
	for (uint32_t k = t->channels; k < 4; k++)
		v[k] = k == 3;
	return true;
}

/* ---- addressing ---- */

/* The index that stands for I of N; -1: outside. */
static int64_t address(int64_t i, int64_t n, enum ptx_address_mode mode)
{
	int64_t m;

	if (i >= 0 && i < n)
		return i;
	switch (mode) {
	case PTX_WRAP: m = i % n; return m < 0 ? m + n : m;
	case PTX_MIRROR:
		m = i % (2 * n);
		m = m < 0 ? m + 2 * n : m;
		return m < n ? m : 2 * n - 1 - m;
	case PTX_BORDER: return -1;
	default: return i < 0 ? 0 : n - 1;
	}
}

/* Along one axis: the one or two texels and the second one's weight, of 256. */
struct axis {
	int64_t i[2];
	uint32_t weight;
};

static struct axis axis(const struct ptx_texture *t, const struct ptx_fetch *fetch, double c,
	uint32_t size, uint32_t which, bool linear, int32_t offset)
{
	enum ptx_address_mode mode = fetch->cube ? PTX_CLAMP : t->address[which];
	/* Whole numbers count texels, whatever the texture's coordinates are. */
	const bool shares = t->normalized && !fetch->whole;
	struct axis a = {0};
	int64_t i;

	/* Only what is normalised can go round. */
	if (!shares && mode != PTX_BORDER)
		mode = PTX_CLAMP;
	if (shares) {
		if (mode == PTX_WRAP)
			c -= floor(c);
		c *= size;
	}
	c = c > -FAR ? c < FAR ? c : FAR : -FAR; /* and NaN: -FAR */
	if (linear) {
		/* Eight bits behind the point. */
		int64_t fixed = (int64_t)floor((c - 0.5) * 256.0 + 0.5);

		i = fixed >> 8;
		a.weight = (uint32_t)fixed & 255;
	} else {
		i = (int64_t)floor(c);
	}
	i += offset;
	a.i[0] = address(i, size, mode);
	a.i[1] = linear ? address(i + 1, size, mode) : a.i[0];
	return a;
}

/* ---- filtering ---- */

/* A box of up to 8 texels. */
static bool blend(const struct ptx_texture *t, const struct ptx_texture_level *level,
	const struct axis *axes, double *v)
{
	double sum[4] = {0}, one[4];

	for (uint32_t k = 0; k < 8; k++) {
		const uint32_t x = k & 1, y = k >> 1 & 1, z = k >> 2;
		const uint32_t weight = (x ? axes[0].weight : 256 - axes[0].weight) *
					(y ? axes[1].weight : 256 - axes[1].weight) *
					(z ? axes[2].weight : 256 - axes[2].weight);
		const int64_t at[3] = {axes[0].i[x], axes[1].i[y], axes[2].i[z]};

		if (!weight)
			continue;
		if (!texel(t, level, at, one))
			return false;
		for (uint32_t c = 0; c < 4; c++)
			sum[c] += weight == 1u << 24 ? one[c] : one[c] * weight / 16777216.0;
	}
	memcpy(v, sum, sizeof(sum));
	return true;
}

/* The four texels that a linear filter would blend, counter-clockwise from the lower left. */
static bool gather(const struct ptx_texture *t, const struct ptx_texture_level *level,
	const struct axis *axes, uint32_t component, double *v)
{
	static const uint8_t corner[4][2] = {{0, 1}, {1, 1}, {1, 0}, {0, 0}};
	double one[4];

	for (uint32_t k = 0; k < 4; k++) {
		const int64_t at[3] = {
			axes[0].i[corner[k][0]], axes[1].i[corner[k][1]], axes[2].i[0]};

		if (!texel(t, level, at, one))
			return false;
		v[k] = one[component];
	}
	return true;
}

struct place {
	double c[3];
	int64_t layer;
	int32_t offset[3];
};

static bool sample(const struct ptx_texture *t, const struct ptx_fetch *fetch,
	const struct place *place, uint32_t which, double *v)
{
	const struct ptx_texture_level *level = &t->levels[which];
	const uint32_t size[3] = {level->width, level->height, level->depth};
	const bool linear = (t->linear && !fetch->whole) || fetch->gather;
	struct axis axes[3] = {0};

	for (uint32_t k = 0; k < fetch->dims; k++)
		axes[k] = axis(t, fetch, place->c[k], size[k], k, linear, place->offset[k]);
	/* An H200 filters one dimension as a row of two, at 0: halfway to what is before that
	 * row, and only a border is not the row again. */
	if (fetch->dims == 1 && linear && t->address[1] == PTX_BORDER)
		axes[1] = (struct axis){.i = {-1, 0}, .weight = 128};
	if (t->layers)
		axes[2].i[0] = axes[2].i[1] = place->layer < 0 ? 0
					      : place->layer >= (int64_t)level->depth
						      ? (int64_t)level->depth - 1
						      : place->layer;
	return fetch->gather ? gather(t, level, axes, fetch->gather - 1, v)
			     : blend(t, level, axes, v);
}

/* ---- levels ---- */

static double length(const uint32_t *in, const uint32_t *size, uint32_t dims)
{
	double sum = 0.0;

	for (uint32_t k = 0; k < dims; k++) {
		float d;

		memcpy(&d, in + k, sizeof(d));
		sum += (double)d * size[k] * (double)d * size[k];
	}
	return sqrt(sum);
}

static double level_of(
	const struct ptx_texture *t, const struct ptx_fetch *fetch, const uint32_t *in)
{
	const uint32_t size[3] = {t->levels[0].width, t->levels[0].height, t->levels[0].depth};
	double level = 0.0;
	float given;

	if (fetch->level == PTX_LEVEL_GIVEN) {
		memcpy(&given, in + PTX_FETCH_LEVEL, sizeof(given));
		level = (double)given;
	} else if (fetch->level == PTX_LEVEL_GRAD) {
		double x = length(in + PTX_FETCH_LEVEL, size, fetch->dims);
		double y = length(in + PTX_FETCH_LEVEL + 4, size, fetch->dims);

		level = log2(x > y ? x : y);
	}
	level += (double)t->bias;
	level = level > (double)t->least ? level : (double)t->least;
	level = level < (double)t->most ? level : (double)t->most;
	return level > 0.0 ? level < t->nlevels - 1 ? level : t->nlevels - 1 : 0.0;
}

static bool sample_levels(const struct ptx_texture *t, const struct ptx_fetch *fetch,
	const struct place *place, const uint32_t *in, double *v)
{
	double level, next[4];
	uint32_t fixed, which, weight;

	if (t->nlevels == 1)
		return sample(t, fetch, place, 0, v);
	level = level_of(t, fetch, in);
	if (!t->level_linear)
		return sample(t, fetch, place, (uint32_t)floor(level + 0.5), v);
	fixed = (uint32_t)floor(level * 256.0 + 0.5);
	which = fixed >> 8;
	weight = fixed & 255;
	if (!sample(t, fetch, place, which, v))
		return false;
	if (!weight)
		return true;
	if (!sample(t, fetch, place, which + 1, next))
		return false;
	for (uint32_t k = 0; k < 4; k++)
		v[k] = (v[k] * (256 - weight) + next[k] * weight) / 256.0;
	return true;
}

/* ---- coordinates ---- */

/* A direction as a face and a place on it. */
static uint32_t cube_face(double *c)
{
	const double x = c[0], y = c[1], z = c[2], ax = fabs(x), ay = fabs(y), az = fabs(z);
	double m, s, t;
	uint32_t face;

	if (ax >= ay && ax >= az) {
		face = x < 0;
		m = ax;
		s = x < 0 ? z : -z;
		t = -y;
	} else if (ay >= az) {
		face = 2 + (y < 0);
		m = ay;
		s = x;
		t = y < 0 ? -z : z;
	} else {
		face = 4 + (z < 0);
		m = az;
		s = z < 0 ? -x : x;
		t = -y;
	}
	c[0] = (s / m + 1.0) / 2.0;
	c[1] = (t / m + 1.0) / 2.0;
	return face;
}

static struct place place_of(
	const struct ptx_texture *t, const struct ptx_fetch *fetch, const uint32_t *in)
{
	const uint32_t first = fetch->layered, given = fetch->cube ? 3 : fetch->dims;
	struct place place = {0};
	float f;

	if (fetch->layered)
		place.layer = (int32_t)in[0];
	for (uint32_t k = 0; k < given && k < 3; k++) {
		memcpy(&f, in + first + k, sizeof(f));
		place.c[k] = fetch->whole ? (double)(int32_t)in[first + k] : (double)f;
	}
	if (fetch->cube) {
		int64_t cubes = t->layers / 6;

		place.layer = place.layer < 0	     ? 0
			      : place.layer >= cubes ? cubes - 1
						     : place.layer;
		place.layer = place.layer * 6 + cube_face(place.c);
	}
	if (fetch->offset)
		memcpy(place.offset, in + PTX_FETCH_OFFSET, sizeof(place.offset));
	return place;
}

bool ptx_texture_fetch(const struct ptx_texture *t, const struct ptx_fetch *fetch,
	const uint32_t *in, uint32_t *out)
{
	struct place place = place_of(t, fetch, in);
	double v[4];
	float f;

	if (t->memory && fetch->whole && fetch->dims == 1) {
		const int64_t i = (int32_t)in[0], at[3] = {i < t->levels[0].width ? i : -1};

		if (!texel(t, &t->levels[0], at, v))
			return false;
	} else if (!sample_levels(t, fetch, &place, in, v)) {
		return false;
	}
	for (uint32_t k = 0; k < 4; k++) {
		if (whole_numbers(t)) {
			out[k] = (uint32_t)(int64_t)v[k];
		} else {
			f = (float)v[k];
			memcpy(out + k, &f, sizeof(f));
		}
	}
	if (fetch->half == PTX_HALVES)
		for (uint32_t k = 0; k < 4; k++)
			out[k] = ptx_half_from(v[k]);
	else if (fetch->half)
		for (uint32_t k = 0; k < 2; k++)
			out[k] = ptx_half_from(v[2 * k]) | (uint32_t)ptx_half_from(v[2 * k + 1])
								   << 16;
	return true;
}

uint32_t ptx_texture_ask(
	const struct ptx_texture *t, enum ptx_texture_query query, uint32_t which)
{
	/* PTX has OpenCL's numbers for types and orders of channels. */
	static const uint16_t whole[] = {
		0x10da, 0x10d7, 0x10db, 0x10d8, 0x10dc, 0x10d9, 0x10dd, 0x10de, 0x10e0};
	static const uint16_t part[] = {
		0x10d2, 0x10d0, 0x10d3, 0x10d1, 0x10dc, 0x10d9, 0x10dd, 0x10de, 0x10e0};
	static const uint16_t order[] = {0, 0x10b0, 0x10b2, 0x10b4, 0x10b5};
	const struct ptx_texture_level *level = &t->levels[which < t->nlevels ? which : 0];

	if (which && which >= t->nlevels)
		return 0;
	switch (query) {
	case PTX_ASK_WIDTH: return level->width;
	case PTX_ASK_HEIGHT: return level->height;
	case PTX_ASK_DEPTH: return t->layers ? 1 : level->depth;
	case PTX_ASK_LAYERS: return t->layers;
	case PTX_ASK_LEVELS: return t->nlevels;
	case PTX_ASK_TYPE: return t->surface || t->integers ? whole[t->texel] : part[t->texel];
	case PTX_ASK_ORDER: return order[t->channels];
	case PTX_ASK_NORMALIZED: return t->normalized;
	case PTX_ASK_FILTER: return t->linear;
	case PTX_ASK_NOTHING: return 0;
	default: return t->address[query - PTX_ASK_ADDRESS_0];
	}
}
