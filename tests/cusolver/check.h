/* SPDX-License-Identifier: Apache-2.0
 *
 * What the cuSOLVER programs share. They are ordinary programs: natively they check NVIDIA's.
 * Matrices are columns of double complex numbers on the host, whatever the type on the device,
 * so that products and norms are computed once for all types.
 */
#ifndef TESTS_CUSOLVER_CHECK_H
#define TESTS_CUSOLVER_CHECK_H

#include <complex.h>
#undef I
#include <cusolverDn.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/device.h"

typedef double complex number;

enum type { S, D, C, Z };
static const cudaDataType data_types[] = {CUDA_R_32F, CUDA_R_64F, CUDA_C_32F, CUDA_C_64F};

#define SOLVER_IS(CALL, WANT) ANSWERS(CALL, WANT)
#define SOLVER(CALL) SOLVER_IS(CALL, CUSOLVER_STATUS_SUCCESS)
#define CHECK(OK, ...)                                                                         \
	do {                                                                                   \
		if (!(OK))                                                                     \
			DIE(__VA_ARGS__);                                                      \
	} while (0)

/* The function of a type; and where real and complex ones have names of their own. */
#define TYPED(T, NAME, ...)                                                                    \
	((T) == S	   ? cusolverDnS##NAME(__VA_ARGS__)                                    \
		: (T) == D ? cusolverDnD##NAME(__VA_ARGS__)                                    \
		: (T) == C ? cusolverDnC##NAME(__VA_ARGS__)                                    \
			   : cusolverDnZ##NAME(__VA_ARGS__))
#define TYPED2(T, REAL, COMPLEX, ...)                                                          \
	((T) == S	   ? cusolverDnS##REAL(__VA_ARGS__)                                    \
		: (T) == D ? cusolverDnD##REAL(__VA_ARGS__)                                    \
		: (T) == C ? cusolverDnC##COMPLEX(__VA_ARGS__)                                 \
			   : cusolverDnZ##COMPLEX(__VA_ARGS__))

static inline bool is_complex(enum type t)
{
	return t >= C;
}
static inline enum type real_of(enum type t)
{
	return t == C ? S : t == Z ? D : t;
}
static inline size_t size_of(enum type t)
{
	return (size_t[]){4, 8, 8, 16}[t];
}
static inline double tolerance(enum type t, int n)
{
	return (real_of(t) == S ? 2e-6 : 4e-15) * (n + 10);
}

/* ---- the device ---- */

static inline int int_of(const int *at)
{
	int value;

	CUDA(cuMemcpyDtoH(&value, (CUdeviceptr)(uintptr_t)at, sizeof(value)));
	return value;
}

/* A new matrix on the device, its columns `ld` apart. */
static inline void *put(enum type t, const number *from, int rows, int cols, int ld)
{
	size_t count = (size_t)ld * (size_t)cols, bytes = count * size_of(t);
	void *at = device(bytes);
	char *copy = host(bytes);

	for (int j = 0; j < cols; j++)
		for (int i = 0; i < rows; i++) {
			number v = from[i + j * rows];
			size_t k = (size_t)i + (size_t)j * (size_t)ld;

			switch (t) {
			case S: ((float *)(void *)copy)[k] = (float)creal(v); break;
			case D: ((double *)(void *)copy)[k] = creal(v); break;
			case C: ((float complex *)(void *)copy)[k] = (float complex)v; break;
			case Z: ((number *)(void *)copy)[k] = v; break;
			}
		}
	if (bytes)
		CUDA(cuMemcpyHtoD((CUdeviceptr)(uintptr_t)at, copy, bytes));
	free(copy);
	return at;
}

static inline number *get(enum type t, const void *at, int rows, int cols, int ld)
{
	size_t count = (size_t)ld * (size_t)cols, bytes = count * size_of(t);
	number *to = host((size_t)rows * (size_t)cols * sizeof(*to));
	char *copy = host(bytes);

	if (bytes)
		CUDA(cuMemcpyDtoH(copy, (CUdeviceptr)(uintptr_t)at, bytes));
	for (int j = 0; j < cols; j++)
		for (int i = 0; i < rows; i++) {
			size_t k = (size_t)i + (size_t)j * (size_t)ld;
			number *v = &to[i + j * rows];

			switch (t) {
			case S: *v = (double)((float *)(void *)copy)[k]; break;
			case D: *v = ((double *)(void *)copy)[k]; break;
			case C: *v = (number)((float complex *)(void *)copy)[k]; break;
			case Z: *v = ((number *)(void *)copy)[k]; break;
			}
		}
	free(copy);
	return to;
}

/* ---- matrices ---- */

/* As the type can hold them, between -1 and 1: the same on each run. */
static inline number *some(enum type t, int rows, int cols)
{
	static uint64_t seed = 88172645463325252;
	number *a = host((size_t)rows * (size_t)cols * sizeof(*a));

	for (int i = 0; i < rows * cols; i++) {
		double part[2];

		for (int j = 0; j < 2; j++) {
			seed ^= seed << 13;
			seed ^= seed >> 7;
			seed ^= seed << 17;
			part[j] = (double)(float)((double)(seed >> 40) / (1 << 23) - 1);
		}
		a[i] = CMPLX(part[0], is_complex(t) ? part[1] : 0);
	}
	return a;
}

/* op(A) op(B), which is m by n; the inner length is k. op is N, T or C. */
static inline number *product(
	char op_a, const number *a, char op_b, const number *b, int m, int n, int k)
{
	number *c = host((size_t)m * (size_t)n * sizeof(*c));

	for (int j = 0; j < n; j++)
		for (int l = 0; l < k; l++)
			for (int i = 0; i < m; i++) {
				number x = op_a == 'N' ? a[i + l * m] : a[l + i * k];
				number y = op_b == 'N' ? b[l + j * k] : b[j + l * n];

				c[i + j * m] += (op_a == 'C' ? conj(x) : x) *
						(op_b == 'C' ? conj(y) : y);
			}
	return c;
}

static inline double norm(const number *a, int count)
{
	double sum = 0;

	for (int i = 0; i < count; i++)
		sum += creal(a[i]) * creal(a[i]) + cimag(a[i]) * cimag(a[i]);
	return sqrt(sum);
}

/* |a - b| as a part of |b|. NaN is not close to anything. */
static inline double distance(const number *a, const number *b, int count)
{
	double sum = 0, whole = norm(b, count);

	for (int i = 0; i < count; i++)
		sum += creal((a[i] - b[i]) * conj(a[i] - b[i]));
	return sqrt(sum) / (whole > 0 ? whole : 1);
}
#define CLOSE(T, A, B, COUNT, N, WHAT)                                                         \
	do {                                                                                   \
		double far_ = distance(A, B, COUNT);                                           \
		CHECK(far_ <= tolerance(T, N), "%s: type %d, size %d: off by %g", WHAT,        \
			(int)(T), (int)(N), far_);                                             \
	} while (0)

/* One of A's triangles, the other zero; `unit` puts ones on the diagonal. */
static inline number *triangle_of(
	const number *a, int rows, int cols, bool lower, bool unit, int ld)
{
	number *to = host((size_t)rows * (size_t)cols * sizeof(*to));

	for (int j = 0; j < cols; j++)
		for (int i = 0; i < rows; i++)
			if (i == j && unit)
				to[i + j * rows] = 1;
			else if (lower ? i >= j : i <= j)
				to[i + j * rows] = a[i + j * ld];
	return to;
}

static inline number *identity(int n)
{
	number *a = host((size_t)n * (size_t)n * sizeof(*a));

	for (int i = 0; i < n; i++)
		a[i + i * n] = 1;
	return a;
}

static inline number *copy_of(const number *a, int count)
{
	number *to = host((size_t)count * sizeof(*to));

	memcpy(to, a, (size_t)count * sizeof(*to));
	return to;
}

/* A Hermitian matrix (symmetric with `plain`), definite with a diagonal of N more. */
static inline number *hermitian(enum type t, int n, bool plain, double more)
{
	number *a = some(t, n, n);

	for (int j = 0; j < n; j++) {
		for (int i = 0; i < j; i++)
			a[j + i * n] = plain ? a[i + j * n] : conj(a[i + j * n]);
		if (!plain)
			a[j + j * n] = creal(a[j + j * n]);
		a[j + j * n] += more;
	}
	return a;
}

/* Columns that are orthonormal. */
#define ORTHONORMAL(T, Q, ROWS, COLS, WHAT)                                                    \
	do {                                                                                   \
		number *square_ = product('C', Q, 'N', Q, COLS, COLS, ROWS);                   \
		number *identity_ = identity(COLS);                                            \
		CLOSE(T, square_, identity_, (COLS) * (COLS), ROWS, WHAT);                     \
		free(square_);                                                                 \
		free(identity_);                                                               \
	} while (0)

/* Frees all that are named. */
#define FREE(...)                                                                              \
	do {                                                                                   \
		void *all_[] = {__VA_ARGS__};                                                  \
		for (size_t i_ = 0; i_ < sizeof(all_) / sizeof(*all_); i_++)                   \
			free(all_[i_]);                                                        \
	} while (0)
#define RELEASE(...)                                                                           \
	do {                                                                                   \
		void *all_[] = {__VA_ARGS__};                                                  \
		for (size_t i_ = 0; i_ < sizeof(all_) / sizeof(*all_); i_++)                   \
			release(all_[i_]);                                                     \
	} while (0)

static const int sizes[] = {0, 1, 2, 7, 16, 33, 64};
#define EACH_SIZE(N)                                                                           \
	for (size_t at_ = 0; at_ < sizeof(sizes) / sizeof(*sizes); at_++)                      \
		for (int N = sizes[at_], once_ = 1; once_; once_ = 0)
#define EACH_TYPE(T) for (enum type T = S; T <= Z; T++)

#endif
