/* SPDX-License-Identifier: Apache-2.0
 *
 * What a plan is for, out of the arguments of the calls that make plans.
 */
#include <limits.h>
#include <string.h>

#include "softgpu/fft/fft.h"

/* cudaDataType, real and complex, of each enum fft_number */
static const int real_types[] = {2, 14, 0, 1};
static const int complex_types[] = {6, 15, 4, 5};

bool fft_types(struct fft_arguments *a, int type)
{
	enum fft_number number = type & FFT_DOUBLE ? FFT_F64 : FFT_F32;

	a->in_type = a->out_type = a->run_type = complex_types[number];
	switch (type & ~FFT_DOUBLE) {
	case FFT_C2C: return true;
	case FFT_R2C: a->in_type = real_types[number]; return true;
	case FFT_C2R: a->out_type = real_types[number]; return true;
	default: return false;
	}
}

static bool shape_types(struct fft_shape *s, const struct fft_arguments *a)
{
	for (unsigned i = FFT_F16; i <= FFT_F64; i++) {
		bool in = a->in_type == complex_types[i], out = a->out_type == complex_types[i];

		s->number = i;
		s->kind = in && out ? FFT_COMPLEX : in ? FFT_INVERSE_REAL : FFT_FORWARD_REAL;
		/* What it computes in may be said by the input's type. */
		if (a->run_type == complex_types[i] ||
			(a->run_type == real_types[i] && a->in_type == real_types[i]))
			return (in || a->in_type == real_types[i]) &&
			       (out || a->out_type == real_types[i]) && (in || out);
	}
	return false;
}

static bool shape_side(const struct fft_shape *s, struct fft_side *side, int rank,
	const long long *embed, long long stride, long long dist)
{
	int first = FFT_RANK - rank;

	*side = (struct fft_side){.embed = {1, 1, 1}, .stride = stride, .dist = dist};
	for (int i = 0; i < rank; i++)
		side->embed[first + i] = embed[i];
	for (int i = first + 1; i < FFT_RANK; i++)
		if (side->embed[i] < 1)
			return false;
	return stride > 0 && dist >= 0 && (dist || s->batch == 1);
}

/* In half precision NVIDIA's library has powers of two only. */
static bool shape_suits(const struct fft_shape *s)
{
	for (int i = 0; s->number < FFT_F32 && i < FFT_RANK; i++)
		if (s->n[i] & (s->n[i] - 1))
			return false;
	return true;
}

int fft_shape_make(struct fft_shape *s, const struct fft_arguments *a)
{
	long long all = 1;
	int first;

	*s = (struct fft_shape){.n = {1, 1, 1}, .batch = a->batch};
	if (a->rank < 1 || a->rank > FFT_RANK || !a->n)
		return FFT_INVALID_VALUE;
	first = FFT_RANK - a->rank;
	if (!shape_types(s, a))
		return FFT_INVALID_TYPE;
	if (a->batch < 1)
		return FFT_INVALID_SIZE;
	for (int i = 0; i < a->rank; i++) {
		s->n[first + i] = a->n[i];
		if (a->n[i] < 1 || a->n[i] > INT_MAX ||
			__builtin_mul_overflow(all, a->n[i], &all))
			return FFT_INVALID_SIZE;
	}
	if (__builtin_mul_overflow(all, a->batch, &all) || all > LLONG_MAX / 32)
		return FFT_INVALID_SIZE;
	if (!shape_suits(s))
		return FFT_NOT_SUPPORTED;
	s->basic = !a->in_embed || !a->out_embed;
	if (s->basic)
		return FFT_SUCCESS;
	return shape_side(s, &s->in, a->rank, a->in_embed, a->in_stride, a->in_dist) &&
			       shape_side(s, &s->out, a->rank, a->out_embed, a->out_stride,
				       a->out_dist)
		       ? FFT_SUCCESS
		       : FFT_INVALID_VALUE;
}

/* That of one complex copy, as NVIDIA's library needs it for many sizes; none for tiny ones. */
size_t fft_shape_area(const struct fft_shape *s)
{
	size_t elements = (size_t)(s->n[0] * s->n[1] * s->n[2] * s->batch);
	size_t bytes[] = {4, 4, 8, 16};

	return elements < 64 ? 0 : elements * bytes[s->number];
}
