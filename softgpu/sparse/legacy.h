/* SPDX-License-Identifier: Apache-2.0
 *
 * What the functions of one type each share: their matrices have a descriptor without arrays,
 * and their letters are S, D, C and Z.
 */
#ifndef VCUDA_SOFTGPU_SPARSE_LEGACY_H
#define VCUDA_SOFTGPU_SPARSE_LEGACY_H

#include "softgpu/sparse/sparse.h"

enum {
	SPARSE_H = SPARSE_R_16F,
	SPARSE_S = SPARSE_R_32F,
	SPARSE_D = SPARSE_R_64F,
	SPARSE_C = SPARSE_C_32F,
	SPARSE_Z = SPARSE_C_64F
};
#define EACH_TYPE(M) M(S) M(D) M(C) M(Z)

struct legacy_descr { /* cusparseMatDescr_t */
	int type, fill, diag, base;
};

/* csric02Info_t and its like: where a factorization or solution met a zero. */
struct legacy_info {
	struct legacy_state *state;
};

struct legacy_state {
	struct sparse_state base;
	int64_t zero; /* with the matrix's base; -1: none */
	bool boost;   /* a small pivot is replaced */
	double tolerance;
	sparse_number boost_value;
	int *order; /* of csru2csr: where each entry was; free() takes it */
	int64_t count;
};

/* The state of a task that has one. */
static inline struct legacy_state *legacy_state(const struct sparse_task *task)
{
	return (struct legacy_state *)sparse_task_state(task);
}

/* Of 32-bit indices. */
struct sparse_matrix legacy_csr(const struct legacy_descr *descr, int type, int64_t rows,
	int64_t cols, int64_t nnz, const void *values, const int *offsets, const int *indices);
struct sparse_matrix legacy_bsr(const struct legacy_descr *descr, int type, int dir,
	int64_t rows, int64_t cols, int64_t nnz, const void *values, const int *offsets,
	const int *indices, int row_block, int col_block);

/* The first of what a call may be refused for: no handle, a size below 0, a missing
 * descriptor. */
int legacy_check(const struct sparse_handle *h, bool sizes, const struct legacy_descr *descr);
/* Whether a block may have this shape: as many of them as an int counts have a number of
 * elements. */
bool legacy_block(int rows, int cols);
/* The ends of …_bufferSize and …_bufferSizeExt. */
int legacy_tell(int status, int *size);
int legacy_tell_bytes(int status, size_t *size);

/* A count that the program wants on the host or, by the pointer mode, on the device. */
struct legacy_count {
	int *device; /* NULL: `value` is read when the task has run */
	int value;
};
/* Runs what leaves a count: `at` is where in the arguments it is. */
int legacy_submit_count(struct sparse_handle *h, sparse_run *run, void *arguments, size_t size,
	struct legacy_count *count, int *where, struct sparse_state *state);
/* For the task. */
void legacy_count(struct sparse_task *task, struct legacy_count *count, int64_t value);

/* How many entries the offsets of a matrix name, whose nnz a call does not give; -1: the handle
 * failed. */
int64_t legacy_nnz(struct sparse_task *task, const int *offsets, int64_t lines);

/* bsr_by_column.c: cusparse?gebsr2gebsc of a TYPE. */
int legacy_gebsr2gebsc(struct sparse_handle *h, int type, int mb, int nb, int nnzb,
	const void *values, const int *offsets, const int *indices, int rows, int cols,
	void *to_values, int *to_indices, int *to_offsets, int action, int base);

#endif
