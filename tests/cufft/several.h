/* SPDX-License-Identifier: Apache-2.0
 *
 * What the programs with plans on two GPUs share.
 */
#ifndef TESTS_CUFFT_SEVERAL_H
#define TESTS_CUFFT_SEVERAL_H

#include "tests/cufft/check.h"

/* A transform: dimensions that are one stand first. */
struct shape {
	int n[3], batch;
	bool wide, real, inverse; /* inverse: of a real transform */
};

static int both_gpus[2] = {0, 1};

/* Where there is one GPU, that one twice. False, and a line: cuFFT does not take them. */
static inline bool two_gpus(void)
{
	cufftHandle plan;
	cufftResult taken;
	int count;

	CUDA(cudaGetDeviceCount(&count));
	both_gpus[1] = count > 1;
	FFT(cufftCreate(&plan));
	taken = cufftXtSetGPUs(plan, 2, both_gpus);
	FFT(cufftDestroy(plan));
	if (taken)
		TELL("GPUs %d and %d: %d", both_gpus[0], both_gpus[1], taken);
	return !taken;
}

static inline cufftType type_of(const struct shape *s)
{
	if (!s->real)
		return s->wide ? CUFFT_Z2Z : CUFFT_C2C;
	if (s->inverse)
		return s->wide ? CUFFT_Z2D : CUFFT_C2R;
	return s->wide ? CUFFT_D2Z : CUFFT_R2C;
}

static inline cufftResult plan_make(cufftHandle plan, const struct shape *s, size_t *bytes)
{
	int n[3] = {s->n[0], s->n[1], s->n[2]}, rank = n[0] > 1 ? 3 : n[1] > 1 ? 2 : 1;
	cufftType type = type_of(s);

	if (s->batch > 1)
		return cufftMakePlanMany(plan, rank, n + 3 - rank, NULL, 1, 0, NULL, 1, 0, type,
			s->batch, bytes);
	return rank == 3   ? cufftMakePlan3d(plan, n[0], n[1], n[2], type, bytes)
	       : rank == 2 ? cufftMakePlan2d(plan, n[1], n[2], type, bytes)
			   : cufftMakePlan1d(plan, n[2], type, 1, bytes);
}

static inline cufftHandle plan_of(const struct shape *s)
{
	size_t bytes[2] = {1, 1}, again[2] = {2, 2};
	cufftHandle plan;

	FFT(cufftCreate(&plan));
	FFT(cufftXtSetGPUs(plan, 2, both_gpus));
	FFT(plan_make(plan, s, bytes));
	FFT(cufftGetSize(plan, again));
	if (again[0] != bytes[0] || again[1] != bytes[1])
		DIE("work areas are %zu and %zu, not %zu and %zu", again[0], again[1], bytes[0],
			bytes[1]);
	return plan;
}

/* Numbers that go in, and complex ones that come out. */
static inline size_t numbers(const struct shape *s)
{
	return (size_t)s->n[0] * (size_t)s->n[1] * (size_t)s->n[2] * (size_t)s->batch;
}

static inline size_t spectrum(const struct shape *s)
{
	return s->real ? numbers(s) / (size_t)s->n[2] * ((size_t)s->n[2] / 2 + 1) : numbers(s);
}

/* Of data in its place: real rows are padded. */
static inline size_t host_bytes(const struct shape *s)
{
	return spectrum(s) * (s->wide ? 16 : 8);
}

static inline double complex complex_of(const struct shape *s, const void *at, size_t i)
{
	const double *d = at;
	const float *f = at;

	return s->wide ? d[2 * i] + I * d[2 * i + 1]
		       : (double)f[2 * i] + I * (double)f[2 * i + 1];
}

/* Where real number I lies. */
static inline size_t padded(const struct shape *s, size_t i)
{
	size_t row = (size_t)s->n[2];

	return i / row * 2 * (row / 2 + 1) + i % row;
}

static inline void float_put(const struct shape *s, void *at, size_t i, double value)
{
	if (s->wide)
		((double *)at)[i] = value;
	else
		((float *)at)[i] = (float)value;
}

static inline void host_put(const struct shape *s, void *at, size_t i, double complex value)
{
	if (s->real) {
		float_put(s, at, padded(s, i), creal(value));
		return;
	}
	float_put(s, at, 2 * i, creal(value));
	float_put(s, at, 2 * i + 1, cimag(value));
}

static inline double complex host_at(const struct shape *s, const void *at, size_t i)
{
	if (!s->real)
		return complex_of(s, at, i);
	return s->wide ? ((const double *)at)[padded(s, i)]
		       : (double)((const float *)at)[padded(s, i)];
}

static inline void exec_complex(
	const struct shape *s, cufftHandle plan, cudaLibXtDesc *data, int direction)
{
	if (s->wide)
		FFT(cufftXtExecDescriptorZ2Z(plan, data, data, direction));
	else
		FFT(cufftXtExecDescriptorC2C(plan, data, data, direction));
}

static inline void exec_real(const struct shape *s, cufftHandle plan, cudaLibXtDesc *data)
{
	if (s->inverse && s->wide)
		FFT(cufftXtExecDescriptorZ2D(plan, data, data));
	else if (s->inverse)
		FFT(cufftXtExecDescriptorC2R(plan, data, data));
	else if (s->wide)
		FFT(cufftXtExecDescriptorD2Z(plan, data, data));
	else
		FFT(cufftXtExecDescriptorR2C(plan, data, data));
}

/* Each part is memory of its own GPU's. */
static inline void on_both(const cudaLibXtDesc *data)
{
	if (data->descriptor->nGPUs != 2)
		DIE("%d parts", data->descriptor->nGPUs);
	for (int g = 0; g < 2; g++) {
		struct cudaPointerAttributes a;

		CUDA(cudaPointerGetAttributes(&a, data->descriptor->data[g]));
		if (a.device != both_gpus[g] || data->descriptor->GPUs[g] != both_gpus[g])
			DIE("part %d is on device %d", g, a.device);
	}
}

#endif
