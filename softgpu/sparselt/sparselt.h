/* SPDX-License-Identifier: Apache-2.0
 *
 * cuSPARSELt: products in which of each four numbers of one matrix, along the dimension that is
 * summed over, two are left out.
 *
 * A program's handle and descriptors are arrays of bytes. What they hold lies in them, so there
 * is nothing to free, and a copy is as good.
 *
 * A compressed matrix has, for each row of op(A) or column of op(B) and each four numbers of
 * it, the two that are kept, and after all of those four bits with their places.
 */
#ifndef VCUDA_SOFTGPU_SPARSELT_SPARSELT_H
#define VCUDA_SOFTGPU_SPARSELT_SPARSELT_H

#include "softgpu/sparse/sparse.h"

enum { LT_COMPUTE_32I, LT_COMPUTE_16F, LT_COMPUTE_32F };
enum { LT_GROUP = 4, LT_KEPT = 2 };

/* Far beyond any memory, and small enough that the bytes of a batch have a number. */
#define LT_MOST_NUMBERS ((int64_t)1 << 40)
#define LT_MOST_BATCHES (1 << 20)

struct lt_handle { /* cusparseLtHandle_t */
	uint64_t mark;
};

struct lt_matrix { /* cusparseLtMatDescriptor_t */
	uint64_t mark;
	int64_t rows, cols, ld;
	int type, order;
	bool structured;
	int batches;
	int64_t stride;
};

struct lt_matmul { /* cusparseLtMatmulDescriptor_t, cusparseLtMatmulPlan_t */
	uint64_t mark;
	struct lt_matrix a, b, c, d;
	int op_a, op_b, compute;
	/* attributes, as they are set */
	int relu, gelu, alpha_vector, beta_vector;
	float upper_bound, threshold, gelu_scaling;
	void *bias;
	int64_t bias_stride;
	void *sparse; /* kept and told alone */
};

struct lt_algorithm { /* cusparseLtMatmulAlgSelection_t */
	uint64_t mark;
	int id, iterations, split_k, split_k_mode, split_k_buffers;
};

#define LT_BYTES 512 /* of a program's array */
_Static_assert(sizeof(struct lt_matmul) <= LT_BYTES, "a plan fits its array");

/* Whether the array is what was made by its …Init. */
bool lt_is_handle(const struct lt_handle *handle);
bool lt_is_matrix(const struct lt_matrix *matrix);
bool lt_is_matmul(const struct lt_matmul *matmul);
bool lt_is_plan(const struct lt_matmul *plan);

/* A structured matrix as it is read along its groups: those of a row of op(A), of a column of
 * op(B). */
struct lt_lines {
	struct lt_matrix matrix;
	bool by_row; /* a line is a row of the matrix in memory */
	int64_t lines, groups;
};
struct lt_lines lt_lines(const struct lt_matrix *matrix, bool is_a, int op);
/* Where number I of a line lies in a batch's matrix. */
int64_t lt_line_at(const struct lt_lines *l, int64_t line, int64_t i);
/* Bytes of one compressed matrix, without its batch. */
int64_t lt_compressed_bytes(const struct lt_lines *l);

/* The memory of a matrix's batch; NULL fails the task. */
void *lt_values(
	struct sparse_task *task, const struct lt_matrix *matrix, const void *at, int batch);
static inline int64_t lt_at(const struct lt_matrix *m, int64_t row, int64_t col)
{
	return m->order == SPARSE_ORDER_ROW ? row * m->ld + col : col * m->ld + row;
}

/* Puts a task into a stream. */
int lt_submit(CUstream stream, sparse_run *run, const void *arguments, size_t size);

#endif
