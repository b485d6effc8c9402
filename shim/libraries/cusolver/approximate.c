/* SPDX-License-Identifier: Apache-2.0
 *
 * Approximate singular values of a batch (gesvda).  The program may want to know how well each
 * matrix was met: those numbers come with the answer, so that such a batch goes in pieces of as
 * many matrices as an answer has numbers for.
 */
#include "protocol/generated/cusolver_ops.h"
#include "shim/generated/cusolver_hand.h"
#include "shim/libraries/cusolver/cusolver.h"

struct batch {
	cusolverDnHandle_t handle;
	uint16_t op;
	int jobz, rank, m, n;
	uint32_t element, real; /* bytes */
	const void *a;
	int lda;
	long long step_a;
	void *s;
	long long step_s;
	void *u;
	int ldu;
	long long step_u;
	void *v;
	int ldv;
	long long step_v;
	void *work;
	int lwork, *info;
};

/* Matrix I of those that begin there. */
static void *from(const void *at, long long step, uint32_t bytes, int i)
{
	return (void *)((uintptr_t)at + (uint64_t)step * (uint64_t)i * bytes);
}

/* COUNT of them from FIRST on, and how well each was met; NUMBERS may be NULL. */
static int piece(const struct batch *b, int first, int count, double *numbers)
{
	struct library_items items;
	uint64_t wanted = (uint64_t)count, got = 0;

	library_begin(
		&items, &cusolver_front, FRONT_COUNTED, b->op, LIBRARY_LEARNED, b->handle);
	PUT_INT(b->jobz), PUT_INT(b->rank), PUT_INT(b->m), PUT_INT(b->n),
		PUT(device, from(b->a, b->step_a, b->element, first)), PUT_INT(b->lda),
		PUT_LONG(b->step_a), PUT(device, from(b->s, b->step_s, b->real, first)),
		PUT_LONG(b->step_s), PUT(device, from(b->u, b->step_u, b->element, first)),
		PUT_INT(b->ldu), PUT_LONG(b->step_u),
		PUT(device, from(b->v, b->step_v, b->element, first)), PUT_INT(b->ldv),
		PUT_LONG(b->step_v), PUT(device, b->work), PUT_INT(b->lwork),
		PUT(device, from(b->info, 1, sizeof(*b->info), first)), PUT_INT(count);
	if (!numbers)
		return library_send(&items);
	items.verb = LIBRARY_CALL;
	PUT(bytes, &wanted, sizeof(wanted));
	library_out_extra(&items, &got, sizeof(got));
	for (int i = 0; i < count; i++)
		library_out_extra(&items, &numbers[first + i], sizeof(*numbers));
	library_send(&items);
	/* An older agent makes no numbers. */
	return items.status ? items.status : got == wanted ? 0 : CUSOLVER_STATUS_NOT_SUPPORTED;
}

static int all(const struct batch *b, int batch, double *numbers)
{
	int most = (int)LIBRARY_NUMBERS, status = 0;

	if (!numbers || batch <= 0)
		return piece(b, 0, batch, NULL);
	for (int i = 0; i < batch && !status; i += most)
		status = piece(b, i, batch - i < most ? batch - i : most, numbers);
	return status;
}

#define APPROXIMATE(P, TYPE, REAL)                                                             \
	cusolverStatus_t hand_cusolverDn##P##gesvdaStridedBatched(cusolverDnHandle_t handle,   \
		cusolverEigMode_t jobz, int rank, int m, int n, const TYPE *d_A, int lda,      \
		long long int strideA, REAL *d_S, long long int strideS, TYPE *d_U, int ldu,   \
		long long int strideU, TYPE *d_V, int ldv, long long int strideV,              \
		TYPE *d_work, int lwork, int *d_info, double *h_R_nrmF, int batchSize)         \
	{                                                                                      \
		struct batch b = {handle, OP_cusolverDn##P##gesvdaStridedBatched, (int)jobz,   \
			rank, m, n, sizeof(TYPE), sizeof(REAL), d_A, lda, strideA, d_S,        \
			strideS, d_U, ldu, strideU, d_V, ldv, strideV, d_work, lwork, d_info}; \
                                                                                               \
		return all(&b, batchSize, h_R_nrmF);                                           \
	}
APPROXIMATE(S, float, float)
APPROXIMATE(D, double, double)
APPROXIMATE(C, cuComplex, float)
APPROXIMATE(Z, cuDoubleComplex, double)
