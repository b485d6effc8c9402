/* SPDX-License-Identifier: Apache-2.0
 *
 * What a sparse matrix's descriptor says, and what of it can be set.
 */
#include <string.h>

#include "softgpu/sparse/sparse.h"

static int compressed_get(const struct sparse_matrix *m, int format, int64_t *rows,
	int64_t *cols, int64_t *nnz, void **offsets, void **indices, void **values,
	int *offset_type, int *index_type, int *base, int *type)
{
	if (!m || m->format != format || !rows || !cols || !nnz || !offsets || !indices ||
		!values || !offset_type || !index_type || !base || !type)
		return SPARSE_INVALID_VALUE;
	*rows = m->rows;
	*cols = m->cols;
	*nnz = m->nnz;
	*offsets = m->offsets;
	*indices = m->indices;
	*values = m->values;
	*offset_type = m->offset_type;
	*index_type = m->index_type;
	*base = m->base;
	*type = m->type;
	return SPARSE_SUCCESS;
}

static int blocked_ell_get(const struct sparse_matrix *m, int64_t *rows, int64_t *cols,
	int64_t *block, int64_t *ell_cols, void **indices, void **values, int *index_type,
	int *base, int *type)
{
	if (!m || m->format != SPARSE_BLOCKED_ELL || !rows || !cols || !block || !ell_cols ||
		!indices || !values || !index_type || !base || !type)
		return SPARSE_INVALID_VALUE;
	*rows = m->rows;
	*cols = m->cols;
	*block = m->row_block;
	*ell_cols = m->ell_cols;
	*indices = m->indices;
	*values = m->values;
	*index_type = m->index_type;
	*base = m->base;
	*type = m->type;
	return SPARSE_SUCCESS;
}

static int values_get(const struct sparse_matrix *m, void **values)
{
	if (!m || !values)
		return SPARSE_INVALID_VALUE;
	*values = m->values;
	return SPARSE_SUCCESS;
}

#define GETS(CONST)                                                                            \
	CALL(cusparse##CONST##CsrGet, struct sparse_matrix *m, int64_t *rows, int64_t *cols,   \
		int64_t *nnz, void **offsets, void **indices, void **values, int *offset_type, \
		int *index_type, int *base, int *type)                                         \
	{                                                                                      \
		return compressed_get(m, SPARSE_CSR, rows, cols, nnz, offsets, indices,        \
			values, offset_type, index_type, base, type);                          \
	}                                                                                      \
	CALL(cusparse##CONST##CscGet, struct sparse_matrix *m, int64_t *rows, int64_t *cols,   \
		int64_t *nnz, void **offsets, void **indices, void **values, int *offset_type, \
		int *index_type, int *base, int *type)                                         \
	{                                                                                      \
		return compressed_get(m, SPARSE_CSC, rows, cols, nnz, offsets, indices,        \
			values, offset_type, index_type, base, type);                          \
	}                                                                                      \
	CALL(cusparse##CONST##CooGet, struct sparse_matrix *m, int64_t *rows, int64_t *cols,   \
		int64_t *nnz, void **row, void **col, void **values, int *index_type,          \
		int *base, int *type)                                                          \
	{                                                                                      \
		int offset_type;                                                               \
                                                                                               \
		return compressed_get(m, SPARSE_COO, rows, cols, nnz, row, col, values,        \
			&offset_type, index_type, base, type);                                 \
	}                                                                                      \
	CALL(cusparse##CONST##BlockedEllGet, struct sparse_matrix *m, int64_t *rows,           \
		int64_t *cols, int64_t *block, int64_t *ell_cols, void **indices,              \
		void **values, int *index_type, int *base, int *type)                          \
	{                                                                                      \
		return blocked_ell_get(m, rows, cols, block, ell_cols, indices, values,        \
			index_type, base, type);                                               \
	}                                                                                      \
	CALL(cusparse##CONST##SpMatGetValues, struct sparse_matrix *m, void **values)          \
	{                                                                                      \
		return values_get(m, values);                                                  \
	}
GETS()
GETS(Const)

static int pointers_set(
	struct sparse_matrix *m, int format, void *offsets, void *indices, void *values)
{
	if (!m || m->format != format)
		return SPARSE_INVALID_VALUE;
	m->offsets = offsets;
	m->indices = indices;
	m->values = values;
	return SPARSE_SUCCESS;
}

#define SET_POINTERS(NAME, FORMAT)                                                             \
	CALL(cusparse##NAME##SetPointers, struct sparse_matrix *m, void *offsets,              \
		void *indices, void *values)                                                   \
	{                                                                                      \
		return pointers_set(m, FORMAT, offsets, indices, values);                      \
	}
SET_POINTERS(Csr, SPARSE_CSR)
SET_POINTERS(Csc, SPARSE_CSC)
SET_POINTERS(Coo, SPARSE_COO)

CALL(cusparseSpMatSetValues, struct sparse_matrix *m, void *values)
{
	if (!m)
		return SPARSE_INVALID_VALUE;
	m->values = values;
	return SPARSE_SUCCESS;
}

CALL(cusparseSpMatGetFormat, const struct sparse_matrix *m, int *format)
{
	if (!m || !format)
		return SPARSE_INVALID_VALUE;
	*format = m->format;
	return SPARSE_SUCCESS;
}

CALL(cusparseSpMatGetIndexBase, const struct sparse_matrix *m, int *base)
{
	if (!m || !base)
		return SPARSE_INVALID_VALUE;
	*base = m->base;
	return SPARSE_SUCCESS;
}

CALL(cusparseSpMatGetSize, const struct sparse_matrix *m, int64_t *rows, int64_t *cols,
	int64_t *nnz)
{
	if (!m || !rows || !cols || !nnz)
		return SPARSE_INVALID_VALUE;
	*rows = m->rows;
	*cols = m->cols;
	*nnz = m->nnz;
	if (m->format == SPARSE_BLOCKED_ELL)
		*nnz = m->rows * m->ell_cols;
	if (m->format == SPARSE_BSR) {
		*rows /= m->row_block;
		*cols /= m->col_block;
	}
	return SPARSE_SUCCESS;
}

/* ---- batches ---- */

CALL(cusparseSpMatGetStridedBatch, const struct sparse_matrix *m, int *batches)
{
	if (!m || !batches)
		return SPARSE_INVALID_VALUE;
	*batches = m->batches;
	return SPARSE_SUCCESS;
}

static int batch_set(struct sparse_matrix *m, bool format, int batches, int64_t offsets,
	int64_t indices, int64_t values)
{
	if (!format || batches <= 0 || offsets < 0 || indices < 0 || values < 0)
		return SPARSE_INVALID_VALUE;
	m->batches = batches;
	m->offsets_stride = offsets;
	m->indices_stride = indices;
	m->values_stride = values;
	return SPARSE_SUCCESS;
}

CALL(cusparseCooSetStridedBatch, struct sparse_matrix *m, int batches, int64_t stride)
{
	return batch_set(m, m && m->format == SPARSE_COO, batches, stride, stride, stride);
}

CALL(cusparseCsrSetStridedBatch, struct sparse_matrix *m, int batches, int64_t offsets,
	int64_t entries)
{
	return batch_set(m, m && (m->format == SPARSE_CSR || m->format == SPARSE_CSC), batches,
		offsets, entries, entries);
}

CALL(cusparseBsrSetStridedBatch, struct sparse_matrix *m, int batches, int64_t offsets,
	int64_t indices, int64_t values)
{
	return batch_set(m, m && m->format == SPARSE_BSR, batches, offsets, indices, values);
}

/* ---- attributes ---- */

/* Where it is kept, and how many values it has. */
static int *attribute(struct sparse_matrix *m, int attribute, int *values)
{
	int *const fields[] = {&m->fill, &m->diag, &m->storage, &m->symmetry};
	static const int counts[] = {2, 2, 3, 3};

	if (attribute < 0 || attribute > 3)
		return NULL;
	*values = counts[attribute];
	return fields[attribute];
}

CALL(cusparseSpMatSetAttribute, struct sparse_matrix *m, int name, void *data, size_t size)
{
	int *field, values, value;

	if (!m || !data || size != sizeof(value))
		return SPARSE_INVALID_VALUE;
	memcpy(&value, data, sizeof(value));
	field = attribute(m, name, &values);
	if (!field || value < 0 || value >= values)
		return SPARSE_INVALID_VALUE;
	*field = value;
	return SPARSE_SUCCESS;
}

CALL(cusparseSpMatGetAttribute, struct sparse_matrix *m, int name, void *data, size_t size)
{
	int *field, values;

	if (!m || !data || size != sizeof(int))
		return SPARSE_INVALID_VALUE;
	field = attribute(m, name, &values);
	if (!field)
		return SPARSE_INVALID_VALUE;
	memcpy(data, field, sizeof(*field));
	return SPARSE_SUCCESS;
}
