/* SPDX-License-Identifier: Apache-2.0
 *
 * How a plan is split over GPUs, what each transforms, and how the parts lie.  See multi.h.
 */
#include "shim/libraries/cufft/multi.h"

#define SMALLEST 32 /* x and y of slabs, as NVIDIA's */
#define STRINGS 8
#define DOUBLE (CUFFT_Z2Z & ~CUFFT_C2C) /* in a cufftType: of doubles */

static size_t smaller(size_t a, size_t b)
{
	return a < b ? a : b;
}

static size_t larger(size_t a, size_t b)
{
	return a > b ? a : b;
}

size_t fft_share(const struct fft_multi *m, size_t total, int gpu, size_t *first)
{
	size_t least = total / (size_t)m->count, more = total % (size_t)m->count;
	size_t number = (size_t)gpu;

	*first = number * least + smaller(number, more);
	return least + (number < more);
}

/* ---- the whole ---- */

static bool kind_of_type(int type, enum fft_kind *kind, size_t *each)
{
	*each = type & DOUBLE ? 16 : 8;
	switch (type & ~DOUBLE) {
	case CUFFT_C2C: *kind = FFT_COMPLEX; return true;
	case CUFFT_R2C: *kind = FFT_FORWARD_REAL; return true;
	case CUFFT_C2R: *kind = FFT_INVERSE_REAL; return true;
	default: return false;
	}
}

/* Halves are refused, as NVIDIA's do (SETUP_FAILED). */
static cufftResult kind_of(const struct cufft_content *c, enum fft_kind *kind, size_t *each)
{
	bool real = c->in_type == CUDA_R_32F || c->in_type == CUDA_R_64F;
	bool half = c->out_type == CUDA_R_32F || c->out_type == CUDA_R_64F;

	if (c->form != CUFFT_FORM_XT)
		return kind_of_type(c->in_type, kind, each) ? CUFFT_SUCCESS
							    : CUFFT_INVALID_TYPE;
	if (c->run_type != CUDA_C_32F && c->run_type != CUDA_C_64F)
		return CUFFT_SETUP_FAILED;
	*kind = real ? FFT_FORWARD_REAL : half ? FFT_INVERSE_REAL : FFT_COMPLEX;
	*each = c->run_type == CUDA_C_64F ? 16 : 8;
	return CUFFT_SUCCESS;
}

static bool side_real(const struct fft_multi *m, bool out)
{
	return m->kind == (out ? FFT_INVERSE_REAL : FFT_FORWARD_REAL);
}

/* Of the last dimension, complex numbers of which the other half follows. */
static size_t row_complex(const struct fft_multi *m, size_t n)
{
	return m->kind == FFT_COMPLEX ? n : n / 2 + 1;
}

/* One batch of a side whose layout the program says; false: batches lie between each other. */
static bool side_told(struct fft_multi *m, const struct cufft_content *c, bool out)
{
	const int64_t *embed = out ? c->out_embed : c->in_embed;
	int64_t stride = out ? c->out_stride : c->in_stride;
	int64_t dist = out ? c->out_dist : c->in_dist;
	size_t bytes = side_real(m, out) ? m->each / 2 : m->each, last = 0;

	for (int i = 0; i < c->rank; i++) {
		size_t n = (size_t)c->n[i];

		if (i == c->rank - 1 && !side_real(m, out))
			n = row_complex(m, n);
		if (i && embed[i] < 1)
			return false;
		last = (i ? last * (size_t)embed[i] : 0) + n - 1;
	}
	if (stride < 1 || dist < 1 || (uint64_t)dist < last * (uint64_t)stride + 1)
		return false;
	m->side[out] =
		(struct fft_side){(size_t)dist * bytes, (last * (size_t)stride + 1) * bytes};
	return true;
}

/* The batches of each side, and of a transform in place. */
static bool sides_make(struct fft_multi *m, const struct cufft_content *c)
{
	size_t rows = 1, n = (size_t)c->n[c->rank - 1], complex_bytes;

	for (int i = 0; i < c->rank - 1; i++)
		rows *= (size_t)c->n[i];
	complex_bytes = rows * row_complex(m, n) * m->each;
	m->in_place = (struct fft_side){complex_bytes, complex_bytes};
	if (c->embeds == 3) { /* without either list the layout is the default */
		if (!side_told(m, c, false) || !side_told(m, c, true))
			return false;
		m->in_place = (struct fft_side){
			m->side[0].dist, larger(m->side[0].extent, m->side[1].extent)};
		if (m->side[0].dist != m->side[1].dist)
			m->in_place = (struct fft_side){0};
		return true;
	}
	for (int out = 0; out < 2; out++) {
		size_t bytes = side_real(m, out) ? rows * n * m->each / 2 : complex_bytes;

		m->side[out] = (struct fft_side){bytes, bytes};
	}
	return true;
}

/* Of one transform there is one layout. */
static bool layout_default(const struct fft_multi *m, const struct cufft_content *c)
{
	for (int out = 0; c->embeds == 3 && out < 2; out++) {
		const int64_t *embed = out ? c->out_embed : c->in_embed;
		int64_t row = (int64_t)row_complex(m, (size_t)c->n[c->rank - 1]);

		if ((out ? c->out_stride : c->in_stride) != 1)
			return false;
		for (int i = 1; i < c->rank - 1; i++)
			if (embed[i] != c->n[i])
				return false;
		if (c->rank > 1 && embed[c->rank - 1] != (side_real(m, out) ? 2 * row : row))
			return false;
	}
	return true;
}

static int log2_of(size_t n)
{
	int bits = 0;

	while (n >>= 1)
		bits++;
	return bits;
}

static size_t line_least(int gpus)
{
	return gpus <= 4 ? 64 : gpus == 8 ? 128 : 1024;
}

/* The order of NVIDIA's result is told by these: so large ones were seen for 2 GPUs. */
static void factors_make(struct fft_multi *m)
{
	int bits = log2_of(m->x), bits1 = bits / 2 + 1, strings;
	size_t count = m->x == 64 && m->count == 2 ? 2 : larger(STRINGS, (size_t)m->count);
	cufftXt1dFactors *f = &m->factors;

	strings = log2_of(count);
	f->size = (long long)m->x;
	f->factor1 = 1LL << bits1;
	f->factor2 = 1LL << (bits - bits1);
	f->stringCount = 1LL << strings;
	f->stringLength = 1LL << (bits - strings);
	f->substringLength = 1LL << (bits1 - strings);
	f->stringMask = f->stringCount - 1;
	f->substringMask = f->substringLength - 1;
	f->factor1Mask = f->factor1 - 1;
	f->factor2Mask = f->factor2 - 1;
	f->stringShift = bits - strings;
	f->substringShift = bits1 - strings;
	f->factor1Shift = bits1;
	f->factor2Shift = bits - bits1;
}

static cufftResult line_make(struct fft_multi *m, size_t n)
{
	size_t gpus = (size_t)m->count;

	if (m->kind != FFT_COMPLEX || n & (n - 1) || gpus & (gpus - 1) ||
		n < line_least(m->count))
		return CUFFT_INVALID_SIZE;
	m->split = FFT_LINE;
	m->x = n;
	m->y = m->z = 1;
	factors_make(m);
	return CUFFT_SUCCESS;
}

/* Dimensions of one are none. */
static cufftResult single_make(struct fft_multi *m, const struct cufft_content *c)
{
	size_t n[CUFFT_RANK] = {0};
	int rank = 0;

	for (int i = 0; i < c->rank; i++)
		if (c->n[i] > 1 || m->kind != FFT_COMPLEX)
			n[rank++] = (size_t)c->n[i];
	if (!layout_default(m, c))
		return CUFFT_NOT_SUPPORTED;
	if (rank < 2)
		return line_make(m, rank ? n[0] : 1);
	if (n[0] < SMALLEST || n[1] < SMALLEST)
		return CUFFT_INVALID_SIZE;
	m->split = FFT_SLABS;
	m->x = n[0];
	m->y = rank == 2 ? row_complex(m, n[1]) : n[1];
	m->z = rank == 2 ? 1 : row_complex(m, n[2]);
	return CUFFT_SUCCESS;
}

#define NUMBERS_MOST (1LL << 40) /* so that no product of bytes overflows */

cufftResult fft_multi_shape(struct fft_multi *m, const struct cufft_content *c)
{
	cufftResult status = kind_of(c, &m->kind, &m->each);
	int64_t all = c->batch;

	if (status)
		return status;
	if (c->batch < 1)
		return CUFFT_INVALID_SIZE;
	for (int i = 0; i < c->rank; i++)
		if (c->n[i] < 1 || all > NUMBERS_MOST / c->n[i])
			return CUFFT_INVALID_SIZE;
		else
			all *= c->n[i];
	m->batch = (size_t)c->batch;
	if (m->batch == 1)
		return single_make(m, c);
	m->split = FFT_BATCHES;
	return sides_make(m, c) ? CUFFT_SUCCESS : CUFFT_NOT_SUPPORTED;
}

/* ---- a GPU's plans ---- */

int fft_type(const struct fft_multi *m, enum fft_kind kind)
{
	int type = kind == FFT_COMPLEX	      ? CUFFT_C2C
		   : kind == FFT_FORWARD_REAL ? CUFFT_R2C
					      : CUFFT_C2R;

	return type | (m->each == 16 ? DOUBLE : 0);
}

/* The planes of x that the GPU has, without x. */
static void part_planes(const struct fft_multi *m, const struct cufft_content *whole, int gpu,
	struct cufft_content *c)
{
	bool real = m->kind != FFT_COMPLEX;
	size_t first;

	c->batch = (int64_t)fft_share(m, m->x, gpu, &first);
	c->in_type = fft_type(m, m->kind);
	c->rank = (real ? whole->rank == 3 : m->z > 1) ? 2 : 1;
	c->n[0] = (int64_t)m->y;
	c->n[1] = c->rank == 2 ? (int64_t)m->z : 0;
	if (real) /* of the last dimension the shape has one half */
		c->n[c->rank - 1] = whole->n[whole->rank - 1];
}

/* Lines along x, of which the GPU has those of its y. */
static void part_lines(const struct fft_multi *m, int gpu, struct cufft_content *c)
{
	size_t first, lines = fft_share(m, m->y, gpu, &first) * m->z;

	c->in_type = fft_type(m, FFT_COMPLEX);
	c->rank = 1;
	c->n[0] = c->in_embed[0] = c->out_embed[0] = (int64_t)m->x;
	c->embeds = 3;
	c->in_stride = c->out_stride = (int64_t)lines;
	c->in_dist = c->out_dist = 1;
	c->batch = (int64_t)lines;
}

bool fft_multi_part(const struct fft_multi *m, const struct cufft_whole *whole, int gpu, int i,
	struct cufft_whole *part)
{
	struct cufft_content *c = &part->plain;
	size_t first;

	*part = *whole;
	if (m->split == FFT_BATCHES) {
		c->batch = (int64_t)fft_share(m, m->batch, gpu, &first);
		return !i && c->batch;
	}
	*c = (struct cufft_content){.major = VCUDA_ABI,
		.form = CUFFT_FORM_MANY64,
		.properties = whole->plain.properties};
	for (int p = 0; p < CUFFT_PROPERTIES; p++)
		c->property[p] = whole->plain.property[p];
	if (m->split == FFT_LINE) {
		c->in_type = fft_type(m, m->kind);
		c->rank = 1;
		c->n[0] = (int64_t)m->x;
		c->batch = 1;
		return !gpu && !i;
	}
	if (i)
		part_lines(m, gpu, c);
	else
		part_planes(m, &whole->plain, gpu, c);
	return true;
}

/* ---- where a part's bytes belong ---- */

bool fft_format(const struct fft_multi *m, cufftXtSubFormat format)
{
	switch (format) {
	case CUFFT_XT_FORMAT_INPUT:
	case CUFFT_XT_FORMAT_OUTPUT: return true;
	case CUFFT_XT_FORMAT_INPLACE: return m->split != FFT_BATCHES || m->in_place.dist;
	case CUFFT_XT_FORMAT_INPLACE_SHUFFLED: return m->split != FFT_BATCHES;
	case CUFFT_XT_FORMAT_1D_INPUT_SHUFFLED: return m->split == FFT_LINE;
	default: return false;
	}
}

cufftXtSubFormat fft_order(const struct fft_multi *m, cufftXtSubFormat format)
{
	if (m->split == FFT_BATCHES)
		return format;
	return format == CUFFT_XT_FORMAT_INPUT	  ? CUFFT_XT_FORMAT_INPLACE
	       : format == CUFFT_XT_FORMAT_OUTPUT ? CUFFT_XT_FORMAT_INPLACE_SHUFFLED
						  : format;
}

static bool block_batches(
	const struct fft_multi *m, cufftXtSubFormat format, int gpu, struct fft_block *b)
{
	const struct fft_side *side = format == CUFFT_XT_FORMAT_INPUT	 ? &m->side[0]
				      : format == CUFFT_XT_FORMAT_OUTPUT ? &m->side[1]
									 : &m->in_place;
	size_t first, count = fft_share(m, m->batch, gpu, &first);

	b->base = first * side->dist;
	b->pitch = b->width = count ? (count - 1) * side->dist + side->extent : 0;
	b->rows = count > 0;
	return count;
}

static bool block_slabs(const struct fft_multi *m, bool shuffled, int gpu, struct fft_block *b)
{
	size_t row = m->z * m->each, plane = m->y * row, first;

	b->pitch = plane;
	b->rows = m->x;
	if (shuffled) {
		b->width = fft_share(m, m->y, gpu, &first) * row;
		b->base = first * row;
	} else {
		b->rows = fft_share(m, m->x, gpu, &first);
		b->width = plane;
		b->base = first * plane;
	}
	return true;
}

/* What lies side by side in the first pass of NVIDIA's: every factor2-th number, some of these
 * columns together. */
static bool block_redistributed(
	const struct fft_multi *m, int gpu, size_t i, struct fft_block *b)
{
	size_t gpus = (size_t)m->count, columns = (size_t)m->factors.factor2 / gpus;
	size_t strings = larger(1, (size_t)m->factors.stringCount / gpus);
	size_t together = larger(1, columns / strings);

	b->base = ((size_t)gpu * columns + i * together) * m->each;
	b->pitch = (size_t)m->factors.factor2 * m->each;
	b->width = together * m->each;
	b->rows = (size_t)m->factors.factor1;
	b->at = i * b->rows * b->width;
	return i < columns / together;
}

/* A string has a substring out of each row of factor1 numbers. */
static bool block_strings(const struct fft_multi *m, int gpu, size_t i, struct fft_block *b)
{
	size_t strings = (size_t)m->factors.stringCount / (size_t)m->count;

	b->width = (size_t)m->factors.substringLength * m->each;
	b->base = ((size_t)gpu * strings + i) * b->width;
	b->pitch = (size_t)m->factors.factor1 * m->each;
	b->rows = (size_t)m->factors.factor2;
	b->at = i * b->rows * b->width;
	return i < strings;
}

bool fft_block(const struct fft_multi *m, cufftXtSubFormat format, int gpu, size_t i,
	struct fft_block *b)
{
	cufftXtSubFormat order = fft_order(m, format);

	*b = (struct fft_block){0};
	if (m->split == FFT_BATCHES)
		return !i && block_batches(m, order, gpu, b);
	if (m->split == FFT_SLABS)
		return !i && block_slabs(m, order != CUFFT_XT_FORMAT_INPLACE, gpu, b);
	if (order == CUFFT_XT_FORMAT_INPLACE_SHUFFLED)
		return block_strings(m, gpu, i, b);
	if (order == CUFFT_XT_FORMAT_1D_INPUT_SHUFFLED)
		return block_redistributed(m, gpu, i, b);
	b->pitch = b->width = m->x / (size_t)m->count * m->each;
	b->base = (size_t)gpu * b->width;
	b->rows = 1;
	return !i;
}

size_t fft_part_bytes(const struct fft_multi *m, cufftXtSubFormat format, int gpu)
{
	struct fft_block b;
	size_t bytes = 0;

	for (size_t i = 0; fft_block(m, format, gpu, i, &b); i++)
		bytes += b.width * b.rows;
	return bytes;
}
