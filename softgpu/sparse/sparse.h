/* SPDX-License-Identifier: Apache-2.0
 *
 * cuSPARSE in plain loops.  A call becomes a task that runs as a host function in its stream,
 * so it is ordered with kernels and copies; what a call writes to the host is waited for.
 *
 * Whatever format a matrix has, a task reads it as a list of entries (entries.c), and whatever
 * type a number has, as a complex double (number.c): each operation is written once.
 */
#ifndef VCUDA_SOFTGPU_SPARSE_SPARSE_H
#define VCUDA_SOFTGPU_SPARSE_SPARSE_H

#include <complex.h>
#include <cuda.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SPARSE_EXPORT __attribute__((visibility("default")))

/* A function of the library's, declared before it is defined. */
#define CALL(NAME, ...)                                                                        \
	SPARSE_EXPORT int NAME(__VA_ARGS__);                                                   \
	SPARSE_EXPORT int NAME(__VA_ARGS__)

/* cusparseStatus_t */
enum {
	SPARSE_SUCCESS = 0,
	SPARSE_NOT_INITIALIZED = 1,
	SPARSE_ALLOC_FAILED = 2,
	SPARSE_INVALID_VALUE = 3,
	SPARSE_NO_HANDLE = SPARSE_INVALID_VALUE, /* as natively (H200, 2026-11-23) */
	SPARSE_EXECUTION_FAILED = 6,
	SPARSE_MATRIX_TYPE_NOT_SUPPORTED = 8,
	SPARSE_ZERO_PIVOT = 9,
	SPARSE_NOT_SUPPORTED = 10,
	SPARSE_INSUFFICIENT_RESOURCES = 11,
};

/* cudaDataType */
enum {
	SPARSE_R_32F = 0,
	SPARSE_R_64F = 1,
	SPARSE_R_16F = 2,
	SPARSE_R_8I = 3,
	SPARSE_C_32F = 4,
	SPARSE_C_64F = 5,
	SPARSE_C_16F = 6,
	SPARSE_R_32I = 10,
	SPARSE_R_16BF = 14,
	SPARSE_C_16BF = 15,
};

/* cusparseIndexType_t, cusparseFormat_t, cusparseOrder_t, cusparseOperation_t */
enum { SPARSE_INDEX_16U = 1, SPARSE_INDEX_32I = 2, SPARSE_INDEX_64I = 3 };
enum {
	SPARSE_CSR = 1,
	SPARSE_CSC = 2,
	SPARSE_COO = 3,
	SPARSE_BLOCKED_ELL = 5,
	SPARSE_BSR = 6,
	SPARSE_SLICED_ELL = 7
};
enum { SPARSE_ORDER_COL = 1, SPARSE_ORDER_ROW = 2 };
enum { SPARSE_OP_N = 0, SPARSE_OP_T = 1, SPARSE_OP_C = 2 };
enum { SPARSE_LOWER = 0, SPARSE_UPPER = 1 };

typedef double _Complex sparse_number;

struct sparse_handle {
	CUstream stream;
	int pointer_mode;      /* 1: scalars are the device's */
	_Atomic bool failed;   /* a task met memory that is not the device's */
	_Atomic unsigned refs; /* the program's, and each task's */
};

/* What a call leaves for later ones of the same descriptor, shared by that and by tasks. */
struct sparse_state {
	_Atomic unsigned refs;
	void (*fini)(struct sparse_state *state); /* of what it points at; may be NULL */
};

struct sparse_task;
typedef void sparse_run(struct sparse_task *task, void *arguments);

/* ---- task.c ---- */

/* Puts `run`, with a copy of its arguments, into the handle's stream. `state` may be NULL. */
int sparse_submit(struct sparse_handle *handle, sparse_run *run, const void *arguments,
	size_t size, struct sparse_state *state);
/* The same, waited for: `arguments` are then as the task left them. */
int sparse_finish(struct sparse_handle *handle, sparse_run *run, void *arguments, size_t size,
	struct sparse_state *state);
struct sparse_state *sparse_task_state(const struct sparse_task *task);

/* The elements [first, first + count) of an array of the device; NULL fails the handle. */
void *sparse_area(
	struct sparse_task *task, const void *at, int64_t first, int64_t count, unsigned size);
/* Memory of the task's own, zeroed; free() takes it. NULL fails the handle or, of a task that
 * is waited for, that one alone. */
void *sparse_scratch(struct sparse_task *task, int64_t elements, size_t size);
void sparse_fail(struct sparse_task *task);

/* A state of `size` bytes whose first member is struct sparse_state; one reference. */
void *sparse_state_new(size_t size, void (*fini)(struct sparse_state *));
void sparse_state_drop(struct sparse_state *state);
/* A descriptor of `bytes`, zeroed, whose first member points to a state like that, is put where
 * `to` says; its status. */
int sparse_descr_new(
	void *to, size_t bytes, size_t state_bytes, void (*fini)(struct sparse_state *));
int sparse_descr_drop(void *descr);

void sparse_handle_drop(struct sparse_handle *handle);

/* ---- status.c: NVIDIA's words ---- */

const char *sparse_status_name(int status);
const char *sparse_status_text(int status);

/* ---- number.c ---- */

unsigned sparse_size(int type); /* of a number; 0: no such type */
unsigned sparse_index_size(int type);
bool sparse_complex(int type);
sparse_number sparse_load(int type, const void *array, int64_t i);
void sparse_store(int type, void *array, int64_t i, sparse_number value);
int64_t sparse_index(int type, const void *array, int64_t i);
void sparse_set_index(int type, void *array, int64_t i, int64_t value);

/* A scalar that the program gave, on the host or on the device. */
struct sparse_scalar {
	const void *device; /* NULL: `value` is it */
	int type;
	sparse_number value;
};
struct sparse_scalar sparse_scalar(
	const struct sparse_handle *handle, const void *at, int type);
bool sparse_scalar_value(
	struct sparse_task *task, const struct sparse_scalar *scalar, sparse_number *value);

/* alpha · sum + beta · old, where an old value times 0 is not read. */
void sparse_blend(int type, void *array, int64_t i, sparse_number alpha, sparse_number sum,
	sparse_number beta);

/* ---- descriptors ---- */

struct sparse_vector { /* cusparseDnVecDescr_t, cusparseSpVecDescr_t */
	int64_t size, nnz;
	void *indices; /* of a sparse one */
	void *values;
	int index_type, base, type;
};

struct sparse_dense { /* cusparseDnMatDescr_t */
	int64_t rows, cols, ld;
	void *values;
	int type, order;
	int batches;
	int64_t stride;
};

struct sparse_matrix { /* cusparseSpMatDescr_t */
	int format;
	int64_t rows, cols; /* in elements */
	int64_t nnz;	    /* of BSR: blocks */
	void *offsets;	    /* of rows, columns or slices; COO: the rows */
	void *indices;
	void *values;
	int offset_type, index_type, base, type;
	int64_t row_block,
		col_block;  /* BSR; blocked ELL: a square; sliced ELL: rows of a slice */
	int64_t ell_cols;   /* blocked ELL */
	int64_t ell_values; /* sliced ELL: values with padding */
	int order;	    /* of a block's elements */
	int batches;
	int64_t offsets_stride, indices_stride, values_stride;
	int fill, diag, storage, symmetry;
};

/* ---- entries.c ---- */

struct sparse_entry {
	int64_t row, col;
	int64_t at; /* in the matrix's values */
};

struct sparse_entries {
	struct sparse_entry *list; /* free() takes it */
	int64_t count;
};

/* The entries of one matrix of a batch, as they lie in memory, padding left out; `transposed`
 * swaps rows and columns. False: the handle has failed, there is nothing to free. */
bool sparse_entries(struct sparse_task *task, const struct sparse_matrix *matrix, int batch,
	bool transposed, struct sparse_entries *entries);
/* By row, then by column; entries of one place keep their order. */
void sparse_sort(struct sparse_entries *entries);
/* The value of an entry of the matrix, conjugated for SPARSE_OP_C. */
sparse_number sparse_entry_value(
	const struct sparse_matrix *matrix, const struct sparse_entry *entry, int op);

/* Whether the matrix is of a format that sparse_put writes. */
static inline bool sparse_writable(const struct sparse_matrix *m)
{
	return m->format == SPARSE_CSR || m->format == SPARSE_CSC || m->format == SPARSE_COO;
}
/* Writes the offsets of a matrix that has these entries. They are put into the order of the
 * matrix's format; a CSC matrix swaps their rows and columns. */
bool sparse_put_offsets(struct sparse_task *task, const struct sparse_matrix *matrix,
	struct sparse_entries *entries);
/* The offsets, the places and, unless NULL, the values: that of an entry is values[at], to
 * which `beta` times the old value is added. */
bool sparse_put(struct sparse_task *task, const struct sparse_matrix *matrix,
	struct sparse_entries *entries, const sparse_number *values, sparse_number beta);

/* The same of a BSR matrix, in bsr_convert.c: blocks lie where entries are. The number of
 * blocks, or -1 where the handle fails; places and, unless NULL, values. */
int64_t sparse_put_block_offsets(struct sparse_task *task, const struct sparse_matrix *matrix,
	const struct sparse_entries *entries);
bool sparse_put_blocks(struct sparse_task *task, const struct sparse_matrix *matrix,
	const struct sparse_entries *entries, const sparse_number *values);

/* ---- small things ---- */

/* All that a call here needs of a program's memory, in bytes: it has its own. A call whose size
 * natively depends on the matrix does not have a size of 0 here, either. */
#define SPARSE_WORKSPACE 16

static inline bool sparse_op(int op)
{
	return op >= SPARSE_OP_N && op <= SPARSE_OP_C;
}
static inline int64_t sparse_op_rows(int op, int64_t rows, int64_t cols)
{
	return op == SPARSE_OP_N ? rows : cols;
}
/* Where element (row, col) of a dense matrix lies. */
static inline int64_t sparse_dense_at(const struct sparse_dense *d, int64_t row, int64_t col)
{
	return d->order == SPARSE_ORDER_ROW ? row * d->ld + col : col * d->ld + row;
}
/* One matrix of a batch, all of which the device has; NULL fails the handle. */
void *sparse_dense_values(
	struct sparse_task *task, const struct sparse_dense *dense, int batch);

/* Whether a product's numbers may have these types, as NVIDIA's tables have them: those of A,
 * B, C and of what is computed. */
bool sparse_types(int a, int b, int c, int compute);

#endif
