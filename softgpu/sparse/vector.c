/* SPDX-License-Identifier: Apache-2.0
 *
 * Descriptors of sparse and dense vectors and of dense matrices.
 */
#include <stdlib.h>

#include "softgpu/sparse/sparse.h"

/* A descriptor made const is the same here: what may be written is the caller's business. */

static int vector_new(struct sparse_vector **out, const struct sparse_vector *content)
{
	struct sparse_vector *v = malloc(sizeof(*v));

	if (!v)
		return SPARSE_ALLOC_FAILED;
	*v = *content;
	*out = v;
	return SPARSE_SUCCESS;
}

static int vector_free(struct sparse_vector *v)
{
	if (!v)
		return SPARSE_INVALID_VALUE;
	free(v);
	return SPARSE_SUCCESS;
}

static int vector_values(const struct sparse_vector *v, void **values)
{
	if (!v || !values)
		return SPARSE_INVALID_VALUE;
	*values = v->values;
	return SPARSE_SUCCESS;
}

/* ---- sparse ---- */

static int sparse_vector_new(struct sparse_vector **out, int64_t size, int64_t nnz,
	const void *indices, const void *values, int index_type, int base, int type)
{
	if (!out || size < 0 || nnz < 0 || nnz > size || (nnz && (!indices || !values)) ||
		!sparse_index_size(index_type) || (base != 0 && base != 1))
		return SPARSE_INVALID_VALUE;
	if (!sparse_size(type))
		return SPARSE_NOT_SUPPORTED;
	return vector_new(out, &(struct sparse_vector){
				       .size = size,
				       .nnz = nnz,
				       .indices = (void *)(uintptr_t)indices,
				       .values = (void *)(uintptr_t)values,
				       .index_type = index_type,
				       .base = base,
				       .type = type,
			       });
}

static int sparse_vector_get(const struct sparse_vector *v, int64_t *size, int64_t *nnz,
	void **indices, void **values, int *index_type, int *base, int *type)
{
	if (!v || !size || !nnz || !indices || !values || !index_type || !base || !type)
		return SPARSE_INVALID_VALUE;
	*size = v->size;
	*nnz = v->nnz;
	*indices = v->indices;
	*values = v->values;
	*index_type = v->index_type;
	*base = v->base;
	*type = v->type;
	return SPARSE_SUCCESS;
}

#define SPARSE_VECTOR(CONST)                                                                   \
	CALL(cusparseCreate##CONST##SpVec, struct sparse_vector **v, int64_t size,             \
		int64_t nnz, const void *indices, const void *values, int index_type,          \
		int base, int type)                                                            \
	{                                                                                      \
		return sparse_vector_new(                                                      \
			v, size, nnz, indices, values, index_type, base, type);                \
	}                                                                                      \
	CALL(cusparse##CONST##SpVecGet, struct sparse_vector *v, int64_t *size, int64_t *nnz,  \
		void **indices, void **values, int *index_type, int *base, int *type)          \
	{                                                                                      \
		return sparse_vector_get(                                                      \
			v, size, nnz, indices, values, index_type, base, type);                \
	}                                                                                      \
	CALL(cusparse##CONST##SpVecGetValues, struct sparse_vector *v, void **values)          \
	{                                                                                      \
		return vector_values(v, values);                                               \
	}
SPARSE_VECTOR()
SPARSE_VECTOR(Const)

CALL(cusparseDestroySpVec, struct sparse_vector *v)
{
	return vector_free(v);
}

CALL(cusparseSpVecGetIndexBase, const struct sparse_vector *v, int *base)
{
	if (!v || !base)
		return SPARSE_INVALID_VALUE;
	*base = v->base;
	return SPARSE_SUCCESS;
}

CALL(cusparseSpVecSetValues, struct sparse_vector *v, void *values)
{
	if (!v || !values)
		return SPARSE_INVALID_VALUE;
	v->values = values;
	return SPARSE_SUCCESS;
}

/* ---- dense ---- */

static int dense_vector_new(
	struct sparse_vector **out, int64_t size, const void *values, int type)
{
	if (!out || size < 0 || (size && !values))
		return SPARSE_INVALID_VALUE;
	if (!sparse_size(type))
		return SPARSE_NOT_SUPPORTED;
	return vector_new(out, &(struct sparse_vector){
				       .size = size,
				       .values = (void *)(uintptr_t)values,
				       .type = type,
			       });
}

static int dense_vector_get(
	const struct sparse_vector *v, int64_t *size, void **values, int *type)
{
	if (!v || !size || !values || !type)
		return SPARSE_INVALID_VALUE;
	*size = v->size;
	*values = v->values;
	*type = v->type;
	return SPARSE_SUCCESS;
}

#define DENSE_VECTOR(CONST)                                                                    \
	CALL(cusparseCreate##CONST##DnVec, struct sparse_vector **v, int64_t size,             \
		const void *values, int type)                                                  \
	{                                                                                      \
		return dense_vector_new(v, size, values, type);                                \
	}                                                                                      \
	CALL(cusparse##CONST##DnVecGet, struct sparse_vector *v, int64_t *size, void **values, \
		int *type)                                                                     \
	{                                                                                      \
		return dense_vector_get(v, size, values, type);                                \
	}                                                                                      \
	CALL(cusparse##CONST##DnVecGetValues, struct sparse_vector *v, void **values)          \
	{                                                                                      \
		return vector_values(v, values);                                               \
	}
DENSE_VECTOR()
DENSE_VECTOR(Const)

CALL(cusparseDestroyDnVec, struct sparse_vector *v)
{
	return vector_free(v);
}

CALL(cusparseDnVecSetValues, struct sparse_vector *v, void *values)
{
	if (!v || (v->size && !values))
		return SPARSE_INVALID_VALUE;
	v->values = values;
	return SPARSE_SUCCESS;
}

/* ---- dense matrices ---- */

static int dense_new(struct sparse_dense **out, int64_t rows, int64_t cols, int64_t ld,
	const void *values, int type, int order)
{
	struct sparse_dense *d;

	if (!out || rows < 0 || cols < 0 || (rows && cols && !values) ||
		(order != SPARSE_ORDER_COL && order != SPARSE_ORDER_ROW) ||
		ld < (order == SPARSE_ORDER_COL ? rows : cols))
		return SPARSE_INVALID_VALUE;
	if (!sparse_size(type))
		return SPARSE_NOT_SUPPORTED;
	d = malloc(sizeof(*d));
	if (!d)
		return SPARSE_ALLOC_FAILED;
	*d = (struct sparse_dense){
		.rows = rows,
		.cols = cols,
		.ld = ld,
		.values = (void *)(uintptr_t)values,
		.type = type,
		.order = order,
		.batches = 1,
	};
	*out = d;
	return SPARSE_SUCCESS;
}

static int dense_get(const struct sparse_dense *d, int64_t *rows, int64_t *cols, int64_t *ld,
	void **values, int *type, int *order)
{
	if (!d || !rows || !cols || !ld || !values || !type || !order)
		return SPARSE_INVALID_VALUE;
	*rows = d->rows;
	*cols = d->cols;
	*ld = d->ld;
	*values = d->values;
	*type = d->type;
	*order = d->order;
	return SPARSE_SUCCESS;
}

static int dense_get_values(const struct sparse_dense *d, void **values)
{
	if (!d || !values)
		return SPARSE_INVALID_VALUE;
	*values = d->values;
	return SPARSE_SUCCESS;
}

#define DENSE(CONST)                                                                           \
	CALL(cusparseCreate##CONST##DnMat, struct sparse_dense **d, int64_t rows,              \
		int64_t cols, int64_t ld, const void *values, int type, int order)             \
	{                                                                                      \
		return dense_new(d, rows, cols, ld, values, type, order);                      \
	}                                                                                      \
	CALL(cusparse##CONST##DnMatGet, struct sparse_dense *d, int64_t *rows, int64_t *cols,  \
		int64_t *ld, void **values, int *type, int *order)                             \
	{                                                                                      \
		return dense_get(d, rows, cols, ld, values, type, order);                      \
	}                                                                                      \
	CALL(cusparse##CONST##DnMatGetValues, struct sparse_dense *d, void **values)           \
	{                                                                                      \
		return dense_get_values(d, values);                                            \
	}
DENSE()
DENSE(Const)

CALL(cusparseDestroyDnMat, struct sparse_dense *d)
{
	if (!d)
		return SPARSE_INVALID_VALUE;
	free(d);
	return SPARSE_SUCCESS;
}

CALL(cusparseDnMatSetValues, struct sparse_dense *d, void *values)
{
	if (!d || (d->rows && d->cols && !values))
		return SPARSE_INVALID_VALUE;
	d->values = values;
	return SPARSE_SUCCESS;
}

CALL(cusparseDnMatSetStridedBatch, struct sparse_dense *d, int batches, int64_t stride)
{
	if (!d || batches <= 0 || stride < 0)
		return SPARSE_INVALID_VALUE;
	d->batches = batches;
	d->stride = stride;
	return SPARSE_SUCCESS;
}

CALL(cusparseDnMatGetStridedBatch, const struct sparse_dense *d, int *batches, int64_t *stride)
{
	if (!d || !batches || !stride)
		return SPARSE_INVALID_VALUE;
	*batches = d->batches;
	*stride = d->stride;
	return SPARSE_SUCCESS;
}

void *sparse_dense_values(struct sparse_task *task, const struct sparse_dense *d, int batch)
{
	bool by_row = d->order == SPARSE_ORDER_ROW;
	int64_t lines = by_row ? d->rows : d->cols, length = by_row ? d->cols : d->rows;
	int64_t elements = 0, first;

	if (__builtin_mul_overflow(d->stride, (int64_t)batch, &first) ||
		(lines && length &&
			(__builtin_mul_overflow(lines - 1, d->ld, &elements) ||
				__builtin_add_overflow(elements, length, &elements)))) {
		sparse_fail(task);
		return NULL;
	}
	return sparse_area(task, d->values, first, elements, sparse_size(d->type));
}
