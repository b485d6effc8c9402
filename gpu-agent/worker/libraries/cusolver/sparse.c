/* SPDX-License-Identifier: Apache-2.0
 *
 * Sparse matrices: cuSPARSE's descriptor of one, and calls that take a complex number by value.
 */
#include <dlfcn.h>
#include <string.h>

#include "gpu-agent/worker/libraries/cusolver/cusolver.h"

/* A function of the cuSPARSE that this cuSOLVER stands on: a dependency of its. */
static int call_descriptor(
	const struct cusolver_library *l, const char *name, void *descriptor, int value)
{
	int (*function)(void *descriptor, int value);
	void *found = dlsym(l->library, name);

	if (!found)
		return CUSOLVER_STATUS_NOT_SUPPORTED;
	memcpy(&function, &found, sizeof(function));
	return function(descriptor, value) ? CUSOLVER_STATUS_INVALID_VALUE
					   : CUSOLVER_STATUS_SUCCESS;
}

int cusolver_matrix_make(
	const struct cusolver_library *l, const struct cusolver_matrix *m, void **to)
{
	int (*create)(void **descriptor);
	void *found = dlsym(l->library, "cusparseCreateMatDescr");
	int status;

	*to = NULL;
	if (!found)
		return CUSOLVER_STATUS_NOT_SUPPORTED;
	memcpy(&create, &found, sizeof(create));
	if (create(to))
		return CUSOLVER_STATUS_ALLOC_FAILED;
	status = call_descriptor(l, "cusparseSetMatType", *to, m->type);
	if (!status)
		status = call_descriptor(l, "cusparseSetMatFillMode", *to, m->fill);
	if (!status)
		status = call_descriptor(l, "cusparseSetMatDiagType", *to, m->diagonal);
	if (!status)
		status = call_descriptor(l, "cusparseSetMatIndexBase", *to, m->base);
	return status;
}

void cusolver_matrix_drop(const struct cusolver_library *l, void *descriptor)
{
	int (*destroy)(void *descriptor);
	void *found = dlsym(l->library, "cusparseDestroyMatDescr");

	if (!found || !descriptor)
		return;
	memcpy(&destroy, &found, sizeof(destroy));
	destroy(descriptor);
}

/* Items in the order of the parameters, as hand_NAME of the shim puts them. */
#define COMPLEX(P, TYPE, REAL, GET)                                                            \
	int run_cusolverSp##P##csreigvsi(struct library_frame *f)                              \
	{                                                                                      \
		const struct cusolver_library *l = f->library;                                 \
		int m = (int)library_get_int(f);                                               \
		int nnz = (int)library_get_int(f);                                             \
		cusparseMatDescr_t descr = library_get_descriptor(f, CUSOLVER_ITEM_MATRIX);    \
		TYPE *values = library_get_device(f);                                          \
		int *rows = library_get_device(f), *columns = library_get_device(f);           \
		REAL re = GET(f), im = GET(f);                                                 \
		TYPE *x0 = library_get_device(f);                                              \
		int most = (int)library_get_int(f);                                            \
		REAL eps = GET(f);                                                             \
		TYPE *mu = library_get_device(f), *x = library_get_device(f);                  \
                                                                                               \
		if (library_stop(f, !l->cusolverSp##P##csreigvsi, f->name))                    \
			return f->status;                                                      \
		return l->cusolverSp##P##csreigvsi(f->handle, m, nnz, descr, values, rows,     \
			columns, (TYPE){re, im}, x0, most, eps, mu, x);                        \
	}                                                                                      \
                                                                                               \
	int run_cusolverSp##P##csrqrSetup(struct library_frame *f)                             \
	{                                                                                      \
		const struct cusolver_library *l = f->library;                                 \
		int m = (int)library_get_int(f), n = (int)library_get_int(f);                  \
		int nnz = (int)library_get_int(f);                                             \
		cusparseMatDescr_t descr = library_get_descriptor(f, CUSOLVER_ITEM_MATRIX);    \
		TYPE *values = library_get_device(f);                                          \
		int *rows = library_get_device(f), *columns = library_get_device(f);           \
		REAL re = GET(f), im = GET(f);                                                 \
		csrqrInfo_t info = library_get_descriptor(f, CUSOLVER_ITEM_QR);                \
                                                                                               \
		if (library_stop(f, !l->cusolverSp##P##csrqrSetup, f->name))                   \
			return f->status;                                                      \
		return l->cusolverSp##P##csrqrSetup(f->handle, m, n, nnz, descr, values, rows, \
			columns, (TYPE){re, im}, info);                                        \
	}
COMPLEX(C, cuComplex, float, library_get_float)
COMPLEX(Z, cuDoubleComplex, double, library_get_double)
