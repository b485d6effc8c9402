/* SPDX-License-Identifier: Apache-2.0
 *
 * What the cuFFT programs share. They are ordinary programs: natively they check NVIDIA's.
 */
#ifndef TESTS_CUFFT_CHECK_H
#define TESTS_CUFFT_CHECK_H

#include <complex.h>
#include <cuda_runtime_api.h>
#include <cufftXt.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/check.h"

#define FFT_IS(CALL, WANT) ANSWERS(CALL, WANT)
#define FFT(CALL) FFT_IS(CALL, CUFFT_SUCCESS)

/* Numbers of the device as they lie: real or complex, of float or double. */
struct numbers {
	void *device;
	unsigned char *host;
	size_t bytes;
	bool wide;
};

static inline struct numbers numbers_new(size_t reals, bool wide)
{
	struct numbers n = {.bytes = reals * (wide ? 8 : 4), .wide = wide};

	n.host = calloc(1, n.bytes);
	CUDA(cudaMalloc(&n.device, n.bytes));
	return n;
}

static inline void numbers_free(struct numbers *n)
{
	CUDA(cudaFree(n->device));
	free(n->host);
}

static inline double real_at(const struct numbers *n, size_t at)
{
	return n->wide ? ((const double *)(const void *)n->host)[at]
		       : (double)((const float *)(const void *)n->host)[at];
}

static inline double complex complex_at(const struct numbers *n, size_t at)
{
	return real_at(n, 2 * at) + I * real_at(n, 2 * at + 1);
}

static inline void real_put(struct numbers *n, size_t at, double value)
{
	if (n->wide)
		((double *)(void *)n->host)[at] = value;
	else
		((float *)(void *)n->host)[at] = (float)value;
}

/* Something without a pattern, the same each time, and exact in float. */
static inline double some_value(size_t at)
{
	return (double)((at * 2654435761u >> 8) % 2048) / 1024 - 1;
}

static inline void numbers_fill(struct numbers *n)
{
	for (size_t i = 0; i < n->bytes / (n->wide ? 8 : 4); i++)
		real_put(n, i, some_value(i));
}

static inline void numbers_send(const struct numbers *n)
{
	CUDA(cudaMemcpy(n->device, n->host, n->bytes, cudaMemcpyHostToDevice));
}

/* After what was asked of the streams. */
static inline void numbers_fetch(struct numbers *n)
{
	CUDA(cudaDeviceSynchronize());
	CUDA(cudaMemcpy(n->host, n->device, n->bytes, cudaMemcpyDeviceToHost));
}

/* Element AT of the transform of N[0] * N[1] * N[2] elements, by its definition. */
static inline double complex transform_at(
	const double complex *from, const int n[3], const int at[3], int direction)
{
	double complex sum = 0;

	for (int x = 0; x < n[0]; x++)
		for (int y = 0; y < n[1]; y++)
			for (int z = 0; z < n[2]; z++) {
				double turns = (double)(at[0] * x % n[0]) / n[0] +
					       (double)(at[1] * y % n[1]) / n[1] +
					       (double)(at[2] * z % n[2]) / n[2];

				sum += from[(x * n[1] + y) * n[2] + z] *
				       cexp(direction * 2 * M_PI * I * turns);
			}
	return sum;
}

/* Rounding grows with what is summed: its norm, and slowly with how many there are. */
static inline void near(const char *what, size_t at, double complex got, double complex want,
	size_t summed, bool wide)
{
	double most = (wide ? 1e-14 : 5e-6) * sqrt((double)summed) * (3 + log2((double)summed));

	if (!(cabs(got - want) <= most))
		DIE("%s: element %zu is %.9g%+.9gi, not %.9g%+.9gi", what, at, creal(got),
			cimag(got), creal(want), cimag(want));
}

#endif
