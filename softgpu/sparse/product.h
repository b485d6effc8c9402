/* SPDX-License-Identifier: Apache-2.0
 *
 * Products of a sparse matrix, for functions that check their arguments in their own way.
 */
#ifndef VCUDA_SOFTGPU_SPARSE_PRODUCT_H
#define VCUDA_SOFTGPU_SPARSE_PRODUCT_H

#include "softgpu/sparse/sparse.h"

/* y = alpha op(A) x + beta y */
int sparse_product_vector(struct sparse_handle *h, int op, const void *alpha,
	const struct sparse_matrix *a, const struct sparse_vector *x, const void *beta,
	const struct sparse_vector *y, int compute);
/* C = alpha op(A) op(B) + beta C */
int sparse_product_matrix(struct sparse_handle *h, int op_a, int op_b, const void *alpha,
	const struct sparse_matrix *a, const struct sparse_dense *b, const void *beta,
	const struct sparse_dense *c, int compute);

#endif
