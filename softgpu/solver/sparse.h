/* SPDX-License-Identifier: Apache-2.0
 *
 * Sparse matrices (cusolverSp, cusolverRf).  They are spread out to dense ones of double
 * complex numbers, whatever their type, and LAPACK does the rest: right, and small.  A call
 * waits for its stream and works in the caller's thread.
 */
#ifndef VCUDA_SOFTGPU_SOLVER_SPARSE_H
#define VCUDA_SOFTGPU_SOLVER_SPARSE_H

#include <complex.h>

#include "softgpu/solver/solver.h"

typedef double complex number;

struct solver_sparse_handle {
	CUstream stream;
};

/* cusparseMatDescr_t */
struct solver_sparse_descriptor {
	int type, fill, diagonal, base;
};

/* Compressed rows on the device. */
struct solver_sparse_matrix {
	enum solver_type type;
	int m, n, entries;
	const struct solver_sparse_descriptor *descriptor;
	const void *values;
	const int *rows, *columns;
};

/* Waits for the stream; until solver_sparse_end the device's memory may be touched. A cuSOLVER
 * status; there is nothing to end where it is not 0. */
int solver_sparse_begin(CUstream stream);
void solver_sparse_end(void);
/* Whether the device has so many elements there. */
bool solver_sparse_reaches(const void *at, uint64_t elements, unsigned size);
number solver_sparse_get(enum solver_type type, const void *at, int64_t i);
void solver_sparse_set(enum solver_type type, void *at, int64_t i, number value);
/* The matrix as columns of m numbers, the caller's to free; NULL with *status where its indices
 * are none or memory lacks. Between begin and end. */
number *solver_sparse_dense(const struct solver_sparse_matrix *a, int *status);
/* `count` numbers of the device, the caller's to free; NULL with *status. */
number *solver_sparse_vector(enum solver_type type, const void *at, int64_t count, int *status);
/* Writes them to the device; a status. */
int solver_sparse_store(enum solver_type type, void *to, const number *from, int64_t count);

/* The factorization Q R of m × n numbers, m >= n, in their place. */
struct solver_sparse_qr {
	int m, n;
	number *a, *tau;
};
/* Takes `a`, which solver_sparse_qr_drop frees; a status. */
int solver_sparse_qr(struct solver_sparse_qr *qr, number *a, int m, int n);
void solver_sparse_qr_drop(struct solver_sparse_qr *qr);
/* The first of R's diagonal that is not above `tolerance`; -1: there is none. */
int solver_sparse_qr_singular(const struct solver_sparse_qr *qr, double tolerance);
/* What is nearest to a solution, of m numbers, in the first n. */
int solver_sparse_qr_solve(const struct solver_sparse_qr *qr, number *b);

/* The factorization L L^H in the lower triangle of n × n numbers; -1, or where it ended. */
int solver_sparse_cholesky(number *a, int n);
int solver_sparse_cholesky_singular(const number *a, int n, double tolerance);
int solver_sparse_cholesky_solve(const number *a, int n, number *b);

#endif
