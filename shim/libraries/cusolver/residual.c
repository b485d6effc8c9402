/* SPDX-License-Identifier: Apache-2.0
 *
 * gesvda, which answers on the host how far each product of its factors is from the matrix,
 * where the program asks for that. The agent is not asked: what travels has no place for as
 * many numbers as there are matrices. They are worked out from the matrices and factors, copied
 * to the host.
 */
#include <stdlib.h>
#include <string.h>

#include "protocol/generated/cusolver_ops.h"
#include "protocol/libraries/letters.h"
#include "shim/generated/cusolver_hand.h"
#include "shim/libraries/cusolver/cusolver.h"

struct value {
	double re, im;
};

/* Matrices in a row, on the device and then on the host. */
struct batch {
	const void *at;
	long long stride;
	int rows, columns, ld;
	size_t size; /* of a real number */
	bool is_complex;
	char *copy;
};

static struct value value_at(const struct batch *b, int which, int i, int j)
{
	size_t each = b->is_complex ? 2 * b->size : b->size;
	size_t index =
		(size_t)which * (size_t)b->stride + (size_t)j * (size_t)b->ld + (size_t)i;
	const char *at = b->copy + index * each;
	struct value v = {0};
	float single[2] = {0};

	if (b->size == sizeof(double)) {
		memcpy(&v, at, each);
		return v;
	}
	memcpy(single, at, each);
	return (struct value){(double)single[0], (double)single[1]};
}

static void batch_get(
	struct batch *b, int count, struct cusolver_memory *memory, CUstream stream)
{
	size_t each = b->is_complex ? 2 * b->size : b->size, last, span, bytes;

	if (b->stride < 0 || b->ld < b->rows ||
		__builtin_mul_overflow((size_t)b->stride, (size_t)count - 1, &last) ||
		__builtin_add_overflow(last, (size_t)b->ld * ((size_t)b->columns - 1), &span) ||
		__builtin_add_overflow(span, (size_t)b->rows, &span) ||
		__builtin_mul_overflow(span, each, &bytes)) {
		memory->status = CUSOLVER_STATUS_INVALID_VALUE;
		return;
	}
	b->copy = malloc(bytes);
	if (!b->copy) {
		memory->status = CUSOLVER_STATUS_ALLOC_FAILED;
		return;
	}
	cusolver_memory_get(memory, stream, b->copy, b->at, bytes);
}

/* The shim is linked with no libm: half the exponent, then Newton's steps. */
static double root(double x)
{
	double r;
	uint64_t bits;

	if (!(x > 0))
		return x;
	memcpy(&bits, &x, sizeof(bits));
	bits = (bits >> 1) + (UINT64_C(1023) << 51);
	memcpy(&r, &bits, sizeof(r));
	for (int i = 0; i < 6; i++)
		r = (r + x / r) / 2;
	return r;
}

static double residual(const struct batch *a, const struct batch *s, const struct batch *u,
	const struct batch *v, int which)
{
	double sum = 0;

	for (int j = 0; j < a->columns; j++) {
		for (int i = 0; i < a->rows; i++) {
			struct value rest = value_at(a, which, i, j);

			for (int k = 0; k < s->rows; k++) {
				struct value x = value_at(u, which, i, k);
				struct value y = value_at(v, which, j, k);
				double scale = value_at(s, which, k, 0).re;

				rest.re -= scale * (x.re * y.re + x.im * y.im);
				rest.im -= scale * (x.im * y.re - x.re * y.im);
			}
			sum += rest.re * rest.re + rest.im * rest.im;
		}
	}
	return root(sum);
}

static int residuals(CUstream stream, struct batch parts[4], double *to, int count)
{
	struct cusolver_memory memory = {0};

	for (int i = 0; i < 4 && !memory.status; i++)
		batch_get(&parts[i], count, &memory, stream);
	for (int i = 0; i < count && !memory.status; i++)
		to[i] = residual(&parts[0], &parts[1], &parts[2], &parts[3], i);
	for (int i = 0; i < 4; i++)
		free(parts[i].copy);
	return cusolver_memory_end(&memory, CUSOLVER_STATUS_SUCCESS);
}

#define HAND_GESVDA(name, TYPE, REAL)                                                          \
	cusolverStatus_t hand_##name(cusolverDnHandle_t handle, cusolverEigMode_t jobz,        \
		int rank, int m, int n, const TYPE *d_A, int lda, long long int strideA,       \
		REAL *d_S, long long int strideS, TYPE *d_U, int ldu, long long int strideU,   \
		TYPE *d_V, int ldv, long long int strideV, TYPE *d_work, int lwork,            \
		int *d_info, double *h_R_nrmF, int batchSize)                                  \
	{                                                                                      \
		bool is_complex = sizeof(TYPE) > sizeof(REAL);                                 \
		struct batch parts[] = {                                                       \
			{d_A, strideA, m, n, lda, sizeof(REAL), is_complex, NULL},             \
			{d_S, strideS, rank, 1, rank, sizeof(REAL), false, NULL},              \
			{d_U, strideU, m, rank, ldu, sizeof(REAL), is_complex, NULL},          \
			{d_V, strideV, n, rank, ldv, sizeof(REAL), is_complex, NULL}};         \
		struct library_items items;                                                    \
                                                                                               \
		library_begin(&items, &cusolver_front, FRONT_COUNTED, OP_##name,               \
			LIBRARY_LEARNED, handle);                                              \
		PUT_INT(jobz), PUT_INT(rank), PUT_INT(m), PUT_INT(n), PUT(device, d_A),        \
			PUT_INT(lda), PUT_LONG(strideA), PUT(device, d_S), PUT_LONG(strideS),  \
			PUT(device, d_U), PUT_INT(ldu), PUT_LONG(strideU), PUT(device, d_V),   \
			PUT_INT(ldv), PUT_LONG(strideV), PUT(device, d_work), PUT_INT(lwork),  \
			PUT(device, d_info), PUT_INT(batchSize);                               \
		if (library_send(&items) || !h_R_nrmF || !jobz || m < 1 || n < 1 ||            \
			rank < 1 || batchSize < 1)                                             \
			return items.status;                                                   \
		return residuals(items.handle->stream, parts, h_R_nrmF, batchSize);            \
	}
SDCZ_TR(NOTHING, HAND_GESVDA, cusolverDn, gesvdaStridedBatched)
