/* SPDX-License-Identifier: Apache-2.0
 *
 * What the cuSPARSE programs share. They are ordinary programs: natively they check NVIDIA's.
 * Numbers are double complex on the host, whatever the type on the device. They are multiples
 * of 1/4 between -2 and 2, so that every type has them, and sums of few products are exact.
 */
#ifndef TESTS_CUSPARSE_CHECK_H
#define TESTS_CUSPARSE_CHECK_H

#include <complex.h>
#undef I
#include <cusparse.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/device.h"

typedef double complex number;

#define SPARSE_IS(CALL, WANT) ANSWERS(CALL, WANT)
#define SPARSE(CALL) SPARSE_IS(CALL, CUSPARSE_STATUS_SUCCESS)
#define CHECK(OK, ...)                                                                         \
	do {                                                                                   \
		if (!(OK))                                                                     \
			DIE(__VA_ARGS__);                                                      \
	} while (0)

static cusparseHandle_t handle;

/* The four types that legacy names have letters for. */
enum type { S, D, C, Z };
static const cudaDataType letters[] = {CUDA_R_32F, CUDA_R_64F, CUDA_C_32F, CUDA_C_64F};

#define TYPED(T, NAME, ...)                                                                    \
	((T) == S	   ? cusparseS##NAME(__VA_ARGS__)                                      \
		: (T) == D ? cusparseD##NAME(__VA_ARGS__)                                      \
		: (T) == C ? cusparseC##NAME(__VA_ARGS__)                                      \
			   : cusparseZ##NAME(__VA_ARGS__))

static inline bool is_complex(cudaDataType t)
{
	return t == CUDA_C_32F || t == CUDA_C_64F || t == CUDA_C_16F || t == CUDA_C_16BF;
}

static inline size_t size_of(cudaDataType t)
{
	switch ((int)t) {
	case CUDA_R_8I: return 1;
	case CUDA_R_16F:
	case CUDA_R_16BF: return 2;
	case CUDA_R_64F:
	case CUDA_C_32F: return 8;
	case CUDA_C_64F: return 16;
	default: return 4;
	}
}

/* How far a result may be from its own size. */
static inline double tolerance(cudaDataType t)
{
	switch ((int)t) {
	case CUDA_R_16F:
	case CUDA_C_16F: return 2e-3;
	case CUDA_R_16BF:
	case CUDA_C_16BF: return 1.6e-2;
	case CUDA_R_64F:
	case CUDA_C_64F: return 1e-13;
	default: return 2e-6;
	}
}

/* ---- the device ---- */

static inline void begin(void)
{
	device_begin();
	SPARSE(cusparseCreate(&handle));
}

static inline void *put_bytes(const void *from, size_t bytes)
{
	void *at = device(bytes);

	if (bytes)
		CUDA(cuMemcpyHtoD((CUdeviceptr)(uintptr_t)at, from, bytes));
	return at;
}
static inline void *get_bytes(const void *at, size_t bytes)
{
	void *to = host(bytes);

	CUDA(cuCtxSynchronize());
	if (bytes)
		CUDA(cuMemcpyDtoH(to, (CUdeviceptr)(uintptr_t)at, bytes));
	return to;
}

/* ---- numbers of any type ---- */

static inline void real_out(cudaDataType t, void *to, int64_t i, double v)
{
	float f = (float)v;
	uint32_t bits;

	memcpy(&bits, &f, sizeof(bits));
	switch ((int)t) {
	case CUDA_R_8I: ((int8_t *)to)[i] = (int8_t)v; break;
	case CUDA_R_32I: ((int32_t *)to)[i] = (int32_t)v; break;
	case CUDA_R_16F:
	case CUDA_C_16F: ((_Float16 *)to)[i] = (_Float16)f; break;
	case CUDA_R_16BF:
	case CUDA_C_16BF: ((uint16_t *)to)[i] = (uint16_t)(bits >> 16); break;
	case CUDA_R_64F:
	case CUDA_C_64F: ((double *)to)[i] = v; break;
	default: ((float *)to)[i] = f;
	}
}

static inline double real_in(cudaDataType t, const void *from, int64_t i)
{
	uint32_t bits;
	float f;

	switch ((int)t) {
	case CUDA_R_8I: return ((const int8_t *)from)[i];
	case CUDA_R_32I: return ((const int32_t *)from)[i];
	case CUDA_R_16F:
	case CUDA_C_16F: return (double)((const _Float16 *)from)[i];
	case CUDA_R_16BF:
	case CUDA_C_16BF:
		bits = (uint32_t)((const uint16_t *)from)[i] << 16;
		memcpy(&f, &bits, sizeof(f));
		return (double)f;
	case CUDA_R_64F:
	case CUDA_C_64F: return ((const double *)from)[i];
	default: return (double)((const float *)from)[i];
	}
}

static inline void number_out(cudaDataType t, void *to, int64_t i, number v)
{
	if (is_complex(t)) {
		real_out(t, to, 2 * i, creal(v));
		real_out(t, to, 2 * i + 1, cimag(v));
	} else {
		real_out(t, to, i, creal(v));
	}
}

static inline number number_in(cudaDataType t, const void *from, int64_t i)
{
	return is_complex(t) ? CMPLX(real_in(t, from, 2 * i), real_in(t, from, 2 * i + 1))
			     : CMPLX(real_in(t, from, i), 0);
}

static inline void *put(cudaDataType t, const number *from, int64_t count)
{
	void *copy = host((size_t)count * size_of(t)), *at;

	for (int64_t i = 0; i < count; i++)
		number_out(t, copy, i, from[i]);
	at = put_bytes(copy, (size_t)count * size_of(t));
	free(copy);
	return at;
}

static inline number *get(cudaDataType t, const void *at, int64_t count)
{
	void *copy = get_bytes(at, (size_t)count * size_of(t));
	number *to = host((size_t)count * sizeof(*to));

	for (int64_t i = 0; i < count; i++)
		to[i] = number_in(t, copy, i);
	free(copy);
	return to;
}

static inline void near(
	cudaDataType t, const number *got, const number *want, int64_t count, const char *what)
{
	for (int64_t i = 0; i < count; i++)
		CHECK(cabs(got[i] - want[i]) <= tolerance(t) * (4 + cabs(want[i])),
			"%s, type %d: number %ld is %g%+gi, not %g%+gi", what, (int)t, (long)i,
			creal(got[i]), cimag(got[i]), creal(want[i]), cimag(want[i]));
}

/* Of the device. */
static inline void same(
	cudaDataType t, const void *at, const number *want, int64_t count, const char *what)
{
	number *got = get(t, at, count);

	near(t, got, want, count, what);
	free(got);
}

static inline uint32_t chance(void)
{
	static uint64_t seed = 88172645463325252;

	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return (uint32_t)(seed >> 32);
}

static inline number any_number(cudaDataType t)
{
	bool whole = t == CUDA_R_8I || t == CUDA_R_32I;
	double re = (double)(chance() % 17) - 8, im = (double)(chance() % 17) - 8;

	return CMPLX(whole ? re : re / 4, is_complex(t) ? im / 4 : 0);
}

static inline number *some(cudaDataType t, int64_t count)
{
	number *a = host((size_t)count * sizeof(*a));

	for (int64_t i = 0; i < count; i++)
		a[i] = any_number(t);
	return a;
}

/* Row-major, mostly 0: about one in three places has a number that is not. */
static inline number *some_sparse(cudaDataType t, int64_t rows, int64_t cols)
{
	number *a = host((size_t)(rows * cols) * sizeof(*a));

	for (int64_t i = 0; i < rows * cols; i++)
		while (chance() % 3 == 0 && a[i] == 0)
			a[i] = any_number(t);
	return a;
}

static inline number op_number(int op, number v)
{
	return op == CUSPARSE_OPERATION_CONJUGATE_TRANSPOSE ? conj(v) : v;
}

/* Element (i, j) of op(A), of a row-major A with so many columns. */
static inline number op_at(int op, const number *a, int64_t cols, int64_t i, int64_t j)
{
	return op == CUSPARSE_OPERATION_NON_TRANSPOSE ? a[i * cols + j]
						      : op_number(op, a[j * cols + i]);
}

/* ---- sparse matrices of the generic functions ---- */

struct matrix {
	cusparseSpMatDescr_t descr;
	void *offsets, *indices, *values;
	int64_t nnz;
};

static inline void index_out(cusparseIndexType_t type, void *to, int64_t i, int64_t v)
{
	if (type == CUSPARSE_INDEX_64I)
		((int64_t *)to)[i] = v;
	else
		((int32_t *)to)[i] = (int32_t)v;
}

static inline void *put_indices(cusparseIndexType_t type, const int64_t *from, int64_t count)
{
	size_t size = type == CUSPARSE_INDEX_64I ? 8 : 4;
	void *copy = host((size_t)count * size), *at;

	for (int64_t i = 0; i < count; i++)
		index_out(type, copy, i, from[i]);
	at = put_bytes(copy, (size_t)count * size);
	free(copy);
	return at;
}

/* CSR, CSC or COO of a row-major matrix. */
static inline struct matrix sparse_of(cusparseFormat_t format, cudaDataType t, const number *a,
	int64_t rows, int64_t cols, cusparseIndexType_t index, cusparseIndexBase_t base)
{
	struct matrix m = {0};
	bool by_col = format == CUSPARSE_FORMAT_CSC;
	int64_t lines = by_col ? cols : rows, length = by_col ? rows : cols;
	int64_t *offsets = host((size_t)(lines + 1) * sizeof(*offsets));
	int64_t *line = host((size_t)(rows * cols) * sizeof(*line));
	int64_t *place = host((size_t)(rows * cols) * sizeof(*place));
	number *values = host((size_t)(rows * cols) * sizeof(*values));

	for (int64_t i = 0; i < lines; i++) {
		offsets[i] = m.nnz + base;
		for (int64_t j = 0; j < length; j++) {
			number v = by_col ? a[j * cols + i] : a[i * cols + j];

			if (v == 0)
				continue;
			line[m.nnz] = i + base;
			place[m.nnz] = j + base;
			values[m.nnz++] = v;
		}
	}
	offsets[lines] = m.nnz + base;
	m.offsets = format == CUSPARSE_FORMAT_COO ? put_indices(index, line, m.nnz)
						  : put_indices(index, offsets, lines + 1);
	m.indices = put_indices(index, place, m.nnz);
	m.values = put(t, values, m.nnz);
	if (format == CUSPARSE_FORMAT_CSR)
		SPARSE(cusparseCreateCsr(&m.descr, rows, cols, m.nnz, m.offsets, m.indices,
			m.values, index, index, base, t));
	else if (by_col)
		SPARSE(cusparseCreateCsc(&m.descr, rows, cols, m.nnz, m.offsets, m.indices,
			m.values, index, index, base, t));
	else
		SPARSE(cusparseCreateCoo(&m.descr, rows, cols, m.nnz, m.offsets, m.indices,
			m.values, index, base, t));
	free(offsets);
	free(line);
	free(place);
	free(values);
	return m;
}

/* CSR or, by rows of square blocks, BSR for the functions of one type each, with 32-bit
 * indices. */
struct arrays {
	int *offsets, *indices; /* of the device */
	void *values;
	int nnz; /* of BSR: blocks */
	cusparseMatDescr_t descr;
};

static inline bool any_in_block(const number *a, int cols, int row, int col, int block)
{
	for (int i = 0; i < block; i++)
		for (int j = 0; j < block; j++)
			if (a[(row * block + i) * cols + col * block + j] != 0)
				return true;
	return false;
}

/* Of a row-major matrix; `block` divides its sizes, and is 1 for CSR. */
static inline struct arrays arrays_of(cudaDataType t, const number *a, int rows, int cols,
	int block, cusparseDirection_t dir, cusparseIndexBase_t base)
{
	struct arrays m = {0};
	int lines = rows / block, size = block * block;
	int *offsets = host((size_t)(lines + 1) * 4),
	    *indices = host((size_t)(rows * cols) * 4);
	number *values = host((size_t)(rows * cols) * sizeof(*values));

	for (int i = 0; i < lines; i++) {
		offsets[i] = m.nnz + (int)base;
		for (int j = 0; j < cols / block; j++) {
			if (!any_in_block(a, cols, i, j, block))
				continue;
			for (int k = 0; k < size; k++)
				values[m.nnz * size +
					(dir == CUSPARSE_DIRECTION_ROW
							? k
							: k % block * block + k / block)] =
					a[(i * block + k / block) * cols + j * block +
						k % block];
			indices[m.nnz++] = j + (int)base;
		}
	}
	offsets[lines] = m.nnz + (int)base;
	m.offsets = put_bytes(offsets, (size_t)(lines + 1) * 4);
	m.indices = put_bytes(indices, (size_t)m.nnz * 4);
	m.values = put(t, values, m.nnz * size);
	SPARSE(cusparseCreateMatDescr(&m.descr));
	SPARSE(cusparseSetMatIndexBase(m.descr, base));
	free(offsets);
	free(indices);
	free(values);
	return m;
}

static inline void arrays_free(struct arrays *m)
{
	CUDA(cuCtxSynchronize());
	SPARSE(cusparseDestroyMatDescr(m->descr));
	release(m->offsets);
	release(m->indices);
	release(m->values);
}

static inline void matrix_free(struct matrix *m)
{
	CUDA(cuCtxSynchronize());
	SPARSE(cusparseDestroySpMat(m->descr));
	release(m->offsets);
	release(m->indices);
	release(m->values);
}

#endif
