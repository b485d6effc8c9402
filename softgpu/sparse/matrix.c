/* SPDX-License-Identifier: Apache-2.0
 *
 * Descriptors of sparse matrices.
 */
#include <stdlib.h>

#include "softgpu/sparse/sparse.h"

/* CONTENT has what its format has; the checks are those of all formats. */
static int matrix_new(struct sparse_matrix **out, struct sparse_matrix content, int64_t values)
{
	struct sparse_matrix *m;

	if (!out || content.rows < 0 || content.cols < 0 || content.nnz < 0 || values < 0 ||
		(values && (!content.indices || !content.values)) ||
		!sparse_index_size(content.index_type) ||
		!sparse_index_size(content.offset_type) ||
		(content.base != 0 && content.base != 1))
		return SPARSE_INVALID_VALUE;
	if (!sparse_size(content.type))
		return SPARSE_NOT_SUPPORTED;
	m = malloc(sizeof(*m));
	if (!m)
		return SPARSE_ALLOC_FAILED;
	*m = content;
	m->batches = 1;
	*out = m;
	return SPARSE_SUCCESS;
}

#define ANY(POINTER) ((void *)(uintptr_t)(POINTER))

static int compressed_new(struct sparse_matrix **out, int format, int64_t rows, int64_t cols,
	int64_t nnz, const void *offsets, const void *indices, const void *values,
	int offset_type, int index_type, int base, int type)
{
	/* Where a matrix is still to be found, all its arrays may be given later. */
	if (nnz > 0 && (format == SPARSE_CSR ? rows : cols) > 0 && !offsets)
		return SPARSE_INVALID_VALUE;
	if (format == SPARSE_CSR && offset_type != index_type)
		return SPARSE_NOT_SUPPORTED; /* as natively (H200, 2026-11-23) */
	return matrix_new(out,
		(struct sparse_matrix){
			.format = format,
			.rows = rows,
			.cols = cols,
			.nnz = nnz,
			.offsets = ANY(offsets),
			.indices = ANY(indices),
			.values = ANY(values),
			.offset_type = offset_type,
			.index_type = index_type,
			.base = base,
			.type = type,
		},
		0);
}

#define COMPRESSED(CONST, NAME, FORMAT)                                                        \
	CALL(cusparseCreate##CONST##NAME, struct sparse_matrix **m, int64_t rows,              \
		int64_t cols, int64_t nnz, const void *offsets, const void *indices,           \
		const void *values, int offset_type, int index_type, int base, int type)       \
	{                                                                                      \
		return compressed_new(m, FORMAT, rows, cols, nnz, offsets, indices, values,    \
			offset_type, index_type, base, type);                                  \
	}
COMPRESSED(, Csr, SPARSE_CSR)
COMPRESSED(Const, Csr, SPARSE_CSR)
COMPRESSED(, Csc, SPARSE_CSC)
COMPRESSED(Const, Csc, SPARSE_CSC)

static int coo_new(struct sparse_matrix **out, int64_t rows, int64_t cols, int64_t nnz,
	const void *row, const void *col, const void *values, int index_type, int base,
	int type)
{
	if (nnz > 0 && !row)
		return SPARSE_INVALID_VALUE;
	return matrix_new(out,
		(struct sparse_matrix){
			.format = SPARSE_COO,
			.rows = rows,
			.cols = cols,
			.nnz = nnz,
			.offsets = ANY(row),
			.indices = ANY(col),
			.values = ANY(values),
			.offset_type = index_type,
			.index_type = index_type,
			.base = base,
			.type = type,
		},
		nnz);
}

static int bsr_new(struct sparse_matrix **out, int64_t brows, int64_t bcols, int64_t bnnz,
	int64_t row_block, int64_t col_block, const void *offsets, const void *indices,
	const void *values, int offset_type, int index_type, int base, int type, int order)
{
	int64_t rows, cols;

	if (brows < 0 || bcols < 0 || row_block <= 0 || col_block <= 0 ||
		__builtin_mul_overflow(brows, row_block, &rows) ||
		__builtin_mul_overflow(bcols, col_block, &cols) || (brows && !offsets) ||
		(order != SPARSE_ORDER_COL && order != SPARSE_ORDER_ROW))
		return SPARSE_INVALID_VALUE;
	return matrix_new(out,
		(struct sparse_matrix){
			.format = SPARSE_BSR,
			.rows = rows,
			.cols = cols,
			.nnz = bnnz,
			.row_block = row_block,
			.col_block = col_block,
			.offsets = ANY(offsets),
			.indices = ANY(indices),
			.values = ANY(values),
			.offset_type = offset_type,
			.index_type = index_type,
			.base = base,
			.type = type,
			.order = order,
		},
		0);
}

static int blocked_ell_new(struct sparse_matrix **out, int64_t rows, int64_t cols,
	int64_t block, int64_t ell_cols, const void *indices, const void *values,
	int index_type, int base, int type)
{
	if (block <= 0 || ell_cols < 0 || ell_cols > cols || rows % block || cols % block ||
		ell_cols % block)
		return SPARSE_INVALID_VALUE;
	return matrix_new(out,
		(struct sparse_matrix){
			.format = SPARSE_BLOCKED_ELL,
			.rows = rows,
			.cols = cols,
			.row_block = block,
			.col_block = block,
			.ell_cols = ell_cols,
			.indices = ANY(indices),
			.values = ANY(values),
			.offset_type = index_type,
			.index_type = index_type,
			.base = base,
			.type = type,
			.order = SPARSE_ORDER_ROW,
		},
		rows && ell_cols);
}

static int sliced_ell_new(struct sparse_matrix **out, int64_t rows, int64_t cols, int64_t nnz,
	int64_t ell_values, int64_t slice, const void *offsets, const void *indices,
	const void *values, int offset_type, int index_type, int base, int type)
{
	if (slice <= 0 || ell_values < nnz || (rows && !offsets))
		return SPARSE_INVALID_VALUE;
	return matrix_new(out,
		(struct sparse_matrix){
			.format = SPARSE_SLICED_ELL,
			.rows = rows,
			.cols = cols,
			.nnz = nnz,
			.row_block = slice,
			.ell_values = ell_values,
			.offsets = ANY(offsets),
			.indices = ANY(indices),
			.values = ANY(values),
			.offset_type = offset_type,
			.index_type = index_type,
			.base = base,
			.type = type,
		},
		ell_values);
}

#define FORMATS(CONST)                                                                         \
	CALL(cusparseCreate##CONST##Coo, struct sparse_matrix **m, int64_t rows, int64_t cols, \
		int64_t nnz, const void *row, const void *col, const void *values,             \
		int index_type, int base, int type)                                            \
	{                                                                                      \
		return coo_new(m, rows, cols, nnz, row, col, values, index_type, base, type);  \
	}                                                                                      \
	CALL(cusparseCreate##CONST##Bsr, struct sparse_matrix **m, int64_t brows,              \
		int64_t bcols, int64_t bnnz, int64_t row_block, int64_t col_block,             \
		const void *offsets, const void *indices, const void *values, int offset_type, \
		int index_type, int base, int type, int order)                                 \
	{                                                                                      \
		return bsr_new(m, brows, bcols, bnnz, row_block, col_block, offsets, indices,  \
			values, offset_type, index_type, base, type, order);                   \
	}                                                                                      \
	CALL(cusparseCreate##CONST##BlockedEll, struct sparse_matrix **m, int64_t rows,        \
		int64_t cols, int64_t block, int64_t ell_cols, const void *indices,            \
		const void *values, int index_type, int base, int type)                        \
	{                                                                                      \
		return blocked_ell_new(m, rows, cols, block, ell_cols, indices, values,        \
			index_type, base, type);                                               \
	}                                                                                      \
	CALL(cusparseCreate##CONST##SlicedEll, struct sparse_matrix **m, int64_t rows,         \
		int64_t cols, int64_t nnz, int64_t ell_values, int64_t slice,                  \
		const void *offsets, const void *indices, const void *values, int offset_type, \
		int index_type, int base, int type)                                            \
	{                                                                                      \
		return sliced_ell_new(m, rows, cols, nnz, ell_values, slice, offsets, indices, \
			values, offset_type, index_type, base, type);                          \
	}
FORMATS()
FORMATS(Const)

CALL(cusparseDestroySpMat, struct sparse_matrix *m)
{
	if (!m)
		return SPARSE_INVALID_VALUE;
	free(m);
	return SPARSE_SUCCESS;
}
