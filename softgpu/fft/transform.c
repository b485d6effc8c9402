/* SPDX-License-Identifier: Apache-2.0
 *
 * A transform: each batch is brought into arrays of double, transformed and brought back.
 */
#include <limits.h>
#include <string.h>

#include "softgpu/fft/fft.h"

/* FFTW's planner is not for several threads. */
static pthread_mutex_t planner = PTHREAD_MUTEX_INITIALIZER;

static bool side_is_real(const struct fft_shape *s, bool out)
{
	return s->kind == (out ? FFT_INVERSE_REAL : FFT_FORWARD_REAL);
}

/* Of the last dimension: a real transform's complex side has the first half. */
static long long side_last(const struct fft_shape *s, bool out)
{
	return s->kind == (out ? FFT_FORWARD_REAL : FFT_INVERSE_REAL) ? s->n[2] / 2 + 1
								      : s->n[2];
}

uint32_t fft_bytes(const struct fft_shape *s, bool out)
{
	static const uint32_t bytes[] = {2, 2, 4, 8};

	return bytes[s->number] * (side_is_real(s, out) ? 1 : 2);
}

void fft_sides(const struct fft_shape *s, bool in_place, struct fft_side sides[2])
{
	if (!s->basic) {
		sides[0] = s->in;
		sides[1] = s->out;
		return;
	}
	for (int out = 0; out < 2; out++) {
		/* In place each row of real numbers leaves room for its complex ones. */
		long long last = in_place && side_is_real(s, out) ? 2 * (s->n[2] / 2 + 1)
								  : side_last(s, out);

		sides[out] = (struct fft_side){.embed = {s->n[0], s->n[1], last},
			.stride = 1,
			.dist = s->n[0] * s->n[1] * last};
	}
}

/* Where element (x, y, z) of a batch lies. */
static long long side_at(
	const struct fft_side *side, long long b, long long x, long long y, long long z)
{
	return b * side->dist + ((x * side->embed[1] + y) * side->embed[2] + z) * side->stride;
}

uint64_t fft_extent(const struct fft_shape *s, const struct fft_side *side, bool out)
{
	long long at = s->n[0] - 1, skip;

	if (__builtin_mul_overflow(at, side->embed[1], &at) ||
		__builtin_add_overflow(at, s->n[1] - 1, &at) ||
		__builtin_mul_overflow(at, side->embed[2], &at) ||
		__builtin_add_overflow(at, side_last(s, out) - 1, &at) ||
		__builtin_mul_overflow(at, side->stride, &at) ||
		__builtin_mul_overflow(s->batch - 1, side->dist, &skip) ||
		__builtin_add_overflow(at, skip, &at) || at == LLONG_MAX)
		return UINT64_MAX;
	return (uint64_t)at + 1;
}

static double number_in(enum fft_number number, const void *at)
{
	_Float16 half;
	uint32_t bits;
	float value;

	switch (number) {
	case FFT_F16: memcpy(&half, at, sizeof(half)); return (double)half;
	case FFT_BF16:
		bits = (uint32_t)*(const uint16_t *)at << 16;
		memcpy(&value, &bits, sizeof(value));
		return (double)value;
	case FFT_F32: return (double)*(const float *)at;
	default: return *(const double *)at;
	}
}

static void number_out(enum fft_number number, void *at, double wide)
{
	float value = (float)wide;
	_Float16 half = (_Float16)value;
	uint32_t bits;

	switch (number) {
	case FFT_F16: memcpy(at, &half, sizeof(half)); return;
	case FFT_BF16: /* to nearest, ties to even */
		memcpy(&bits, &value, sizeof(bits));
		*(uint16_t *)at =
			value != value ? 0x7fff
				       : (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
		return;
	case FFT_F32: *(float *)at = value; return;
	default: *(double *)at = wide;
	}
}

/* One batch between memory and an array in which nothing lies between the elements. */
static void batch_move(const struct fft_shape *s, const struct fft_side *side, bool out,
	long long b, double *array, char *memory)
{
	bool real = side_is_real(s, out);
	uint32_t bytes = fft_bytes(s, out), half = bytes / 2;
	long long last = side_last(s, out);

	for (long long row = 0; row < s->n[0] * s->n[1]; row++) {
		for (long long z = 0; z < last; z++) {
			char *at = memory + side_at(side, b, row / s->n[1], row % s->n[1], z) *
						    (long long)bytes;

			for (uint32_t part = 0; part < (real ? 1 : 2); part++, array++) {
				if (out)
					number_out(s->number, at + part * half, *array);
				else
					*array = number_in(s->number, at + part * half);
			}
		}
	}
}

static fftw_plan plan_make(const struct fft_shape *s, double *in, double *out, int direction)
{
	int n[FFT_RANK] = {(int)s->n[0], (int)s->n[1], (int)s->n[2]};

	switch (s->kind) {
	case FFT_FORWARD_REAL:
		return fftw_plan_dft_r2c(
			FFT_RANK, n, in, (fftw_complex *)(void *)out, FFTW_ESTIMATE);
	case FFT_INVERSE_REAL:
		return fftw_plan_dft_c2r(
			FFT_RANK, n, (fftw_complex *)(void *)in, out, FFTW_ESTIMATE);
	default:
		return fftw_plan_dft(FFT_RANK, n, (fftw_complex *)(void *)in,
			(fftw_complex *)(void *)out, direction, FFTW_ESTIMATE);
	}
}

static fftw_plan plan_of(struct fft_plan *plan, double *in, double *out, int direction)
{
	fftw_plan *kept = &plan->fftw[direction > 0];

	pthread_mutex_lock(&planner);
	if (!*kept)
		*kept = plan_make(&plan->shape, in, out, direction);
	pthread_mutex_unlock(&planner);
	return *kept;
}

static void plan_run(const struct fft_shape *s, fftw_plan plan, double *in, double *out)
{
	if (s->kind == FFT_FORWARD_REAL)
		fftw_execute_dft_r2c(plan, in, (fftw_complex *)(void *)out);
	else if (s->kind == FFT_INVERSE_REAL)
		fftw_execute_dft_c2r(plan, (fftw_complex *)(void *)in, out);
	else
		fftw_execute_dft(plan, (fftw_complex *)(void *)in, (fftw_complex *)(void *)out);
}

bool fft_transform(struct fft_plan *plan, const void *in, void *out, int direction)
{
	const struct fft_shape *s = &plan->shape;
	size_t elements = (size_t)(s->n[0] * s->n[1]) * (size_t)(s->n[2] + 2);
	double *from = fftw_alloc_real(2 * elements), *to = fftw_alloc_real(2 * elements);
	fftw_plan fftw = from && to ? plan_of(plan, from, to, direction) : NULL;
	struct fft_side sides[2];

	fft_sides(s, in == out, sides);
	for (long long b = 0; fftw && b < s->batch; b++) {
		batch_move(s, &sides[0], false, b, from, (char *)(uintptr_t)in);
		plan_run(s, fftw, from, to);
		batch_move(s, &sides[1], true, b, to, out);
	}
	fftw_free(from);
	fftw_free(to);
	return fftw;
}

void fft_transform_end(struct fft_plan *plan)
{
	pthread_mutex_lock(&planner);
	for (int i = 0; i < 2; i++)
		if (plan->fftw[i])
			fftw_destroy_plan(plan->fftw[i]);
	pthread_mutex_unlock(&planner);
}
