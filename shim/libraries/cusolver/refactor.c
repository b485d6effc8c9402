/* SPDX-License-Identifier: Apache-2.0
 *
 * Refactorization: what is set up from memory of the host goes by way of the device's, and so
 * do factors that are handed out, in memory that the program frees.
 */
#include <stdlib.h>

#include "protocol/generated/cusolver_ops.h"
#include "shim/generated/cusolver_hand.h"
#include "shim/libraries/cusolver/cusolver.h"

#define ROWS 0 /* of the handle's numbers that are kept: how many rows were set up */

cusolverStatus_t hand_cusolverRfSetupDevice(int n, int nnzA, int *csrRowPtrA, int *csrColIndA,
	double *csrValA, int nnzL, int *csrRowPtrL, int *csrColIndL, double *csrValL, int nnzU,
	int *csrRowPtrU, int *csrColIndU, double *csrValU, int *P, int *Q,
	cusolverRfHandle_t handle)
{
	const void *const part[][3] = {{csrRowPtrA, csrColIndA, csrValA},
		{csrRowPtrL, csrColIndL, csrValL}, {csrRowPtrU, csrColIndU, csrValU}};
	const int entries[] = {nnzA, nnzL, nnzU};
	struct library_items items;

	library_begin(&items, &cusolverRfHandle_front, FRONT_COUNTED, OP_cusolverRfSetupDevice,
		LIBRARY_CALL, handle);
	library_put_int(&items, (uint32_t)n);
	for (int i = 0; i < 3; i++) {
		library_put_int(&items, (uint32_t)entries[i]);
		for (int j = 0; j < 3; j++)
			library_put_device(&items, part[i][j]);
	}
	library_put_device(&items, P);
	library_put_device(&items, Q);
	library_send(&items);
	if (!items.status)
		items.handle->kept[ROWS] = (uint64_t)n;
	return items.status;
}

static int *ints_put(struct cusolver_memory *memory, const int *from, int64_t count)
{
	return cusolver_memory_put(memory, from, (uint64_t)count * sizeof(*from));
}

static double *doubles_put(struct cusolver_memory *memory, const double *from, int64_t count)
{
	return cusolver_memory_put(memory, from, (uint64_t)count * sizeof(*from));
}

cusolverStatus_t hand_cusolverRfSetupHost(int n, int nnzA, int *h_csrRowPtrA, int *h_csrColIndA,
	double *h_csrValA, int nnzL, int *h_csrRowPtrL, int *h_csrColIndL, double *h_csrValL,
	int nnzU, int *h_csrRowPtrU, int *h_csrColIndU, double *h_csrValU, int *h_P, int *h_Q,
	cusolverRfHandle_t handle)
{
	struct cusolver_memory memory = {0};
	int *rows_a, *columns_a, *rows_l, *columns_l, *rows_u, *columns_u, *p, *q;
	double *a, *l, *u;
	int status = CUSOLVER_STATUS_SUCCESS;

	if (!handle)
		return CUSOLVER_STATUS_NOT_INITIALIZED;
	if (n < 1 || nnzA < 1 || nnzL < 0 || nnzU < 0 || !h_csrRowPtrA || !h_csrColIndA ||
		!h_csrValA || !h_csrRowPtrL || !h_csrColIndL || !h_csrValL || !h_csrRowPtrU ||
		!h_csrColIndU || !h_csrValU || !h_P || !h_Q)
		return CUSOLVER_STATUS_INVALID_VALUE;
	rows_a = ints_put(&memory, h_csrRowPtrA, n + 1L);
	columns_a = ints_put(&memory, h_csrColIndA, nnzA);
	a = doubles_put(&memory, h_csrValA, nnzA);
	rows_l = ints_put(&memory, h_csrRowPtrL, n + 1L);
	columns_l = ints_put(&memory, h_csrColIndL, nnzL);
	l = doubles_put(&memory, h_csrValL, nnzL);
	rows_u = ints_put(&memory, h_csrRowPtrU, n + 1L);
	columns_u = ints_put(&memory, h_csrColIndU, nnzU);
	u = doubles_put(&memory, h_csrValU, nnzU);
	p = ints_put(&memory, h_P, n);
	q = ints_put(&memory, h_Q, n);
	cusolver_memory_wait(&memory);
	if (!memory.status)
		status = hand_cusolverRfSetupDevice(n, nnzA, rows_a, columns_a, a, nnzL, rows_l,
			columns_l, l, nnzU, rows_u, columns_u, u, p, q, handle);
	return cusolver_memory_end(&memory, status);
}

/* ---- factors handed out ---- */

struct factor {
	int *entries, **rows, **columns;
	double **values;
};

/* Asks how many entries each factor has or, where there is memory of the device for them, for
 * the factors. */
static int ask(uint16_t op, cusolverRfHandle_t handle, void *to, uint64_t n, uint32_t *entries,
	int factors)
{
	struct library_items items;

	library_begin(&items, &cusolverRfHandle_front, FRONT_COUNTED, op, LIBRARY_CALL, handle);
	library_put_int(&items, (uint32_t)n);
	library_put_device(&items, to);
	for (int i = 0; i < factors; i++)
		library_out(&items, &entries[i], sizeof(*entries));
	return library_send(&items);
}

static int room(const struct factor *f, uint64_t n, uint32_t entries)
{
	*f->rows = malloc((n + 1) * sizeof(**f->rows));
	*f->columns = malloc(entries * sizeof(**f->columns) + 1);
	*f->values = malloc(entries * sizeof(**f->values) + 1);
	*f->entries = (int)entries;
	return *f->rows && *f->columns && *f->values ? CUSOLVER_STATUS_SUCCESS
						     : CUSOLVER_STATUS_ALLOC_FAILED;
}

static void room_drop(const struct factor *f)
{
	free(*f->rows);
	free(*f->columns);
	free(*f->values);
	*f->rows = *f->columns = NULL;
	*f->values = NULL;
}

static int fetch(
	uint16_t op, cusolverRfHandle_t handle, const struct factor *f, int factors, uint64_t n)
{
	struct cusolver_memory memory = {0};
	uint32_t entries[2] = {0}, again[2];
	uint64_t bytes = 0;
	const char *from;
	int status = ask(op, handle, NULL, n, entries, factors);

	if (status)
		return status;
	for (int i = 0; i < factors; i++)
		bytes += cusolver_factor_bytes(n, entries[i]);
	from = cusolver_memory_put(&memory, NULL, bytes);
	if (from)
		status = ask(op, handle, (void *)(uintptr_t)from, n, again, factors);
	for (int i = 0; from && !status && i < factors; i++) {
		uint64_t at[3];

		status = again[i] != entries[i] ? CUSOLVER_STATUS_INTERNAL_ERROR
						: room(&f[i], n, entries[i]);
		if (status)
			break;
		cusolver_factor_places(n, entries[i], at);
		cusolver_memory_get(&memory, CU_STREAM_LEGACY, *f[i].rows, from + at[0],
			(n + 1) * sizeof(int));
		cusolver_memory_get(&memory, CU_STREAM_LEGACY, *f[i].columns, from + at[1],
			entries[i] * sizeof(int));
		cusolver_memory_get(&memory, CU_STREAM_LEGACY, *f[i].values, from + at[2],
			entries[i] * sizeof(double));
		from += cusolver_factor_bytes(n, entries[i]);
	}
	return cusolver_memory_end(&memory, status);
}

static int extract(uint16_t op, cusolverRfHandle_t handle, const struct factor *f, int factors)
{
	const struct library_handle *h = vcuda_library_find(&cusolverRfHandle_front, handle);
	int status;

	if (!h)
		return CUSOLVER_STATUS_NOT_INITIALIZED;
	for (int i = 0; i < factors; i++) {
		if (!f[i].entries || !f[i].rows || !f[i].columns || !f[i].values)
			return CUSOLVER_STATUS_INVALID_VALUE;
		*f[i].rows = *f[i].columns = NULL;
		*f[i].values = NULL;
	}
	status = fetch(op, handle, f, factors, h->kept[ROWS]);
	for (int i = 0; status && i < factors; i++)
		room_drop(&f[i]);
	return status;
}

cusolverStatus_t hand_cusolverRfExtractBundledFactorsHost(
	cusolverRfHandle_t handle, int *h_nnzM, int **h_Mp, int **h_Mi, double **h_Mx)
{
	struct factor f = {h_nnzM, h_Mp, h_Mi, h_Mx};

	return extract(OP_cusolverRfExtractBundledFactorsHost, handle, &f, 1);
}

cusolverStatus_t hand_cusolverRfExtractSplitFactorsHost(cusolverRfHandle_t handle, int *h_nnzL,
	int **h_csrRowPtrL, int **h_csrColIndL, double **h_csrValL, int *h_nnzU,
	int **h_csrRowPtrU, int **h_csrColIndU, double **h_csrValU)
{
	struct factor f[] = {{h_nnzL, h_csrRowPtrL, h_csrColIndL, h_csrValL},
		{h_nnzU, h_csrRowPtrU, h_csrColIndU, h_csrValU}};

	return extract(OP_cusolverRfExtractSplitFactorsHost, handle, f, 2);
}
