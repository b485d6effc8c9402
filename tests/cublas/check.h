/* SPDX-License-Identifier: Apache-2.0
 *
 * What the cuBLAS programs share: matrices of any type with a copy on the device, filled with
 * numbers that are the same in every run, and compared with what plain loops in double say.
 * They are ordinary programs, with cuBLAS's own functions: natively they check NVIDIA's.
 */
#ifndef TESTS_CUBLAS_CHECK_H
#define TESTS_CUBLAS_CHECK_H

#include <complex.h>
#include <cuda_runtime_api.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "protocol/generated/cublas_api.h"
#include "tests/check.h"

#define BLAS_IS(CALL, WANT) ANSWERS(CALL, WANT)
#define BLAS(CALL) BLAS_IS(CALL, CUBLAS_STATUS_SUCCESS)
#define REFUSED(CALL)                                                                          \
	do {                                                                                   \
		if (!(CALL))                                                                   \
			DIE("%s was taken", #CALL);                                            \
	} while (0)

struct matrix {
	cudaDataType type;
	int ld;
	size_t count; /* elements */
	size_t bytes;
	void *host, *device;
};

static inline float half_in(uint16_t half)
{
	_Float16 value;

	memcpy(&value, &half, sizeof(value));
	return (float)value;
}

static inline double complex get_at(const void *at, cudaDataType type, size_t i)
{
	uint32_t bits;
	float value;

	switch ((int)type) {
	case CUDA_R_32F: return ((const float *)at)[i];
	case CUDA_R_64F: return ((const double *)at)[i];
	case CUDA_C_32F: return ((const float complex *)at)[i];
	case CUDA_C_64F: return ((const double complex *)at)[i];
	case CUDA_R_8I: return ((const int8_t *)at)[i];
	case CUDA_R_32I: return ((const int32_t *)at)[i];
	case CUDA_R_16F: return half_in(((const uint16_t *)at)[i]);
	case CUDA_R_16BF:
		bits = (uint32_t)((const uint16_t *)at)[i] << 16;
		memcpy(&value, &bits, sizeof(value));
		return value;
	default: DIE("no type %d here", (int)type);
	}
}

static inline void put_at(void *at, cudaDataType type, size_t i, double complex v)
{
	_Float16 half = (_Float16)creal(v);
	float single = (float)creal(v);
	uint32_t bits;

	switch ((int)type) {
	case CUDA_R_32F: ((float *)at)[i] = single; break;
	case CUDA_R_64F: ((double *)at)[i] = creal(v); break;
	case CUDA_C_32F: ((float complex *)at)[i] = (float complex)v; break;
	case CUDA_C_64F: ((double complex *)at)[i] = v; break;
	case CUDA_R_8I: ((int8_t *)at)[i] = (int8_t)creal(v); break;
	case CUDA_R_32I: ((int32_t *)at)[i] = (int32_t)creal(v); break;
	case CUDA_R_16F: memcpy((uint16_t *)at + i, &half, sizeof(half)); break;
	case CUDA_R_16BF:
		memcpy(&bits, &single, sizeof(bits));
		((uint16_t *)at)[i] = (uint16_t)(bits >> 16);
		break;
	default: DIE("no type %d here", (int)type);
	}
}

static inline double complex some_number(cudaDataType type)
{
	static uint32_t state = 12345;
	int a, b;

	state = state * 1664525u + 1013904223u;
	a = (int)(state >> 16 & 15) - 7;
	b = (int)(state >> 24 & 15) - 7;
	/* Eighths: exact in every float type. */
	if (type == CUDA_C_32F || type == CUDA_C_64F)
		return a / 8.0 + b / 8.0 * I;
	return type == CUDA_R_8I || type == CUDA_R_32I ? a : a / 8.0;
}

static inline struct matrix matrix_new(cudaDataType type, int ld, int columns)
{
	struct matrix m = {.type = type, .ld = ld, .count = (size_t)ld * (size_t)columns};

	m.bytes = m.count * cublas_data_bytes(type);
	m.host = malloc(m.bytes);
	CUDA(cudaMalloc(&m.device, m.bytes));
	for (size_t i = 0; i < m.count; i++)
		put_at(m.host, type, i, some_number(type));
	CUDA(cudaMemcpy(m.device, m.host, m.bytes, cudaMemcpyHostToDevice));
	return m;
}

static inline void matrix_free(struct matrix *m)
{
	free(m->host);
	CUDA(cudaFree(m->device));
}

static inline double complex at_of(const struct matrix *m, int op, int row, int column)
{
	double complex v = get_at(m->host, m->type,
		op ? (size_t)row * (size_t)m->ld + (size_t)column
		   : (size_t)column * (size_t)m->ld + (size_t)row);

	return op == 2 ? conj(v) : v;
}

static inline double tolerance_of(cudaDataType type)
{
	switch ((int)type) {
	case CUDA_R_64F:
	case CUDA_C_64F: return 1e-12;
	case CUDA_R_16F: return 4e-3;
	case CUDA_R_16BF: return 3e-2;
	case CUDA_R_32I: return 0;
	default: return 2e-5;
	}
}

/* What the device has now must be what `host` holds, but for so much of 1 + its magnitude. */
static inline void matrix_within(const struct matrix *m, double tolerance, const char *what)
{
	void *got = malloc(m->bytes);

	CUDA(cudaMemcpy(got, m->device, m->bytes, cudaMemcpyDeviceToHost));
	for (size_t i = 0; i < m->count; i++) {
		double complex a = get_at(got, m->type, i), b = get_at(m->host, m->type, i);
		double off = cabs(a - b);

		if (!(off <= tolerance * (1 + cabs(b))))
			DIE("%s: element %zu is %g%+gi, not %g%+gi", what, i, creal(a),
				cimag(a), creal(b), cimag(b));
	}
	free(got);
}

static inline void matrix_check(const struct matrix *m, const char *what)
{
	matrix_within(m, tolerance_of(m->type), what);
}

#endif
