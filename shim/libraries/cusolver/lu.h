/* SPDX-License-Identifier: Apache-2.0
 *
 * LU of a sparse matrix of the host, in the program: P A Q^T = L U. Numbers are doubles
 * whatever the type of the matrix is.
 */
#ifndef VCUDA_SHIM_LIBRARIES_CUSOLVER_LU_H
#define VCUDA_SHIM_LIBRARIES_CUSOLVER_LU_H

#include "shim/libraries/cusolver/cusolver.h"

/* Columns, or rows, of entries; those of i: from[i] … from[i + 1] - 1. */
struct cusolver_entries {
	int *from, *index;
	double *re, *im; /* im is NULL where the matrix is real */
	int count, room;
};

struct cusolver_lu {
	int n;
	bool complex;
	int *p, *q; /* row p[k] of the matrix is the k-th, as is column q[k] */
	struct cusolver_entries l, u; /* by columns, without their diagonals; L's is 1 */
	double *re, *im;	      /* U's diagonal */
};

/* P's and Q's places and the diagonal, for n rows; false: no memory. It is then dropped, too.
 */
bool cusolver_lu_make(struct cusolver_lu *lu, int n, bool complex);
void cusolver_lu_drop(struct cusolver_lu *lu);
/* Factors the matrix, whose values are `re` and `im` (NULL: real), in the order of columns q. A
 * row of the diagonal is taken where it is at least THRESHOLD times the largest of its column.
 * A column of zeros gets a pivot of zero. 0, or a cusolverStatus_t. */
int cusolver_lu_factor(struct cusolver_lu *lu, const struct cusolver_pattern *a,
	const double *re, const double *im, double threshold);
/* The first pivot of at most TOL, or -1. */
int cusolver_lu_zero(const struct cusolver_lu *lu, double tol);
/* Solves with what was factored: b, of 2n doubles (real, imaginary), becomes x; `work` has room
 * for as many. */
void cusolver_lu_solve(const struct cusolver_lu *lu, double *b, double *work);
/* One factor by rows, columns ascending; U with its diagonal. `to` has room for its entries and
 * n + 1 places. */
void cusolver_lu_rows(const struct cusolver_lu *lu, bool upper, struct cusolver_entries *to);
/* How many entries that has. */
int cusolver_lu_count(const struct cusolver_lu *lu, bool upper);

#endif
