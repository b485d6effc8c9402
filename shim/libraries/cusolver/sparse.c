/* SPDX-License-Identifier: Apache-2.0
 *
 * Sparse matrices: their descriptors, which are cuSPARSE's, and calls that take a complex
 * number by value.
 */
#include "shim/generated/cusolver_hand.h"
#include "shim/libraries/cusolver/cusolver.h"

#include "protocol/generated/cusolver_ops.h"

bool cusolver_matrix_of(const void *descriptor, struct cusolver_matrix *matrix)
{
	int32_t content[4];

	if (!descriptor || !vcuda_front_matrix(descriptor, content))
		return false;
	matrix->type = content[0];
	matrix->fill = content[1];
	matrix->diagonal = content[2];
	matrix->base = content[3];
	return matrix->type >= 0 && matrix->type <= 3 && matrix->fill >= 0 &&
	       matrix->fill <= 1 && matrix->diagonal >= 0 && matrix->diagonal <= 1 &&
	       matrix->base >= 0 && matrix->base <= 1;
}

/* Items in the order of the parameters, which run_NAME gets at the agent. The stub has counted
 * the call. */
#define COMPLEX(P, TYPE, REAL, PUT)                                                            \
	cusolverStatus_t hand_cusolverSp##P##csreigvsi(cusolverSpHandle_t handle, int m,       \
		int nnz, const cusparseMatDescr_t descrA, const TYPE *csrValA,                 \
		const int *csrRowPtrA, const int *csrColIndA, TYPE mu0, const TYPE *x0,        \
		int maxite, REAL eps, TYPE *mu, TYPE *x)                                       \
	{                                                                                      \
		struct library_items items;                                                    \
                                                                                               \
		library_begin(&items, &cusolverSpHandle_front, FRONT_COUNTED,                  \
			OP_cusolverSp##P##csreigvsi, LIBRARY_CALL, handle);                    \
		library_put_int(&items, (uint32_t)m);                                          \
		library_put_int(&items, (uint32_t)nnz);                                        \
		library_put_descriptor(&items, descrA, CUSOLVER_ITEM_MATRIX);                  \
		library_put_device(&items, csrValA);                                           \
		library_put_device(&items, csrRowPtrA);                                        \
		library_put_device(&items, csrColIndA);                                        \
		PUT(&items, mu0.x);                                                            \
		PUT(&items, mu0.y);                                                            \
		library_put_device(&items, x0);                                                \
		library_put_int(&items, (uint32_t)maxite);                                     \
		PUT(&items, eps);                                                              \
		library_put_device(&items, mu);                                                \
		library_put_device(&items, x);                                                 \
		return library_send(&items);                                                   \
	}                                                                                      \
                                                                                               \
	cusolverStatus_t hand_cusolverSp##P##csrqrSetup(cusolverSpHandle_t handle, int m,      \
		int n, int nnzA, const cusparseMatDescr_t descrA, const TYPE *csrValA,         \
		const int *csrRowPtrA, const int *csrColIndA, TYPE mu, csrqrInfo_t info)       \
	{                                                                                      \
		struct library_items items;                                                    \
                                                                                               \
		library_begin(&items, &cusolverSpHandle_front, FRONT_COUNTED,                  \
			OP_cusolverSp##P##csrqrSetup, LIBRARY_LEARNED, handle);                \
		library_put_int(&items, (uint32_t)m);                                          \
		library_put_int(&items, (uint32_t)n);                                          \
		library_put_int(&items, (uint32_t)nnzA);                                       \
		library_put_descriptor(&items, descrA, CUSOLVER_ITEM_MATRIX);                  \
		library_put_device(&items, csrValA);                                           \
		library_put_device(&items, csrRowPtrA);                                        \
		library_put_device(&items, csrColIndA);                                        \
		PUT(&items, mu.x);                                                             \
		PUT(&items, mu.y);                                                             \
		library_put_descriptor(&items, info, CUSOLVER_ITEM_QR);                        \
		return library_send(&items);                                                   \
	}
COMPLEX(C, cuComplex, float, library_put_float)
COMPLEX(Z, cuDoubleComplex, double, library_put_double)
