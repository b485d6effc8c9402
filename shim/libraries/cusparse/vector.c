/* SPDX-License-Identifier: Apache-2.0
 *
 * Vectors and dense matrices: what they hold, set and told.
 */
#include "shim/libraries/cusparse/content.h"

/* --- sparse vectors --- */

cusparseStatus_t hand_cusparseCreateSpVec(cusparseSpVecDescr_t *spVecDescr, int64_t size,
	int64_t nnz, void *indices, void *values, cusparseIndexType_t idxType,
	cusparseIndexBase_t idxBase, cudaDataType valueType)
{
	struct cusparse_object *o;

	if (size < 0 || nnz < 0 || nnz > size || !cusparse_index(idxType) ||
		!cusparse_base(idxBase) || !cusparse_scalar_bytes(valueType))
		return CUSPARSE_STATUS_INVALID_VALUE;
	o = cusparse_made((void **)spVecDescr, CUSPARSE_ITEM_SPVEC);
	if (!o)
		return cusparse_unmade(spVecDescr);
	o->content.spvec = (struct cusparse_spvec){.size = size,
		.count = nnz,
		.index_type = idxType,
		.base = idxBase,
		.type = (int32_t)valueType};
	o->place[0] = indices;
	o->place[1] = values;
	return CUSPARSE_STATUS_SUCCESS;
}

cusparseStatus_t hand_cusparseSpVecGet(cusparseSpVecDescr_t spVecDescr, int64_t *size,
	int64_t *nnz, void **indices, void **values, cusparseIndexType_t *idxType,
	cusparseIndexBase_t *idxBase, cudaDataType *valueType)
{
	const struct cusparse_object *o = cusparse_of(spVecDescr, CUSPARSE_ITEM_SPVEC);

	if (!o || !size || !nnz || !indices || !values || !idxType || !idxBase || !valueType)
		return CUSPARSE_STATUS_INVALID_VALUE;
	*size = o->content.spvec.size;
	*nnz = o->content.spvec.count;
	*indices = o->place[0];
	*values = o->place[1];
	*idxType = o->content.spvec.index_type;
	*idxBase = o->content.spvec.base;
	*valueType = (cudaDataType)o->content.spvec.type;
	return CUSPARSE_STATUS_SUCCESS;
}

cusparseStatus_t hand_cusparseSpVecGetIndexBase(
	cusparseConstSpVecDescr_t spVecDescr, cusparseIndexBase_t *idxBase)
{
	const struct cusparse_object *o = cusparse_of(spVecDescr, CUSPARSE_ITEM_SPVEC);

	if (!o || !idxBase)
		return CUSPARSE_STATUS_INVALID_VALUE;
	*idxBase = o->content.spvec.base;
	return CUSPARSE_STATUS_SUCCESS;
}

/* --- where values lie --- */

static cusparseStatus_t values_get(
	const void *descriptor, uint32_t kind, unsigned place, void **values)
{
	const struct cusparse_object *o = cusparse_of(descriptor, kind);

	if (!o || !values)
		return CUSPARSE_STATUS_INVALID_VALUE;
	*values = o->place[place];
	return CUSPARSE_STATUS_SUCCESS;
}

static cusparseStatus_t values_set(
	const void *descriptor, uint32_t kind, unsigned place, void *values)
{
	struct cusparse_object *o = cusparse_of(descriptor, kind);

	if (!o || !values)
		return CUSPARSE_STATUS_INVALID_VALUE;
	o->place[place] = values;
	return CUSPARSE_STATUS_SUCCESS;
}

cusparseStatus_t hand_cusparseSpVecGetValues(cusparseSpVecDescr_t spVecDescr, void **values)
{
	return values_get(spVecDescr, CUSPARSE_ITEM_SPVEC, 1, values);
}

cusparseStatus_t hand_cusparseSpVecSetValues(cusparseSpVecDescr_t spVecDescr, void *values)
{
	return values_set(spVecDescr, CUSPARSE_ITEM_SPVEC, 1, values);
}

cusparseStatus_t hand_cusparseDnVecGetValues(cusparseDnVecDescr_t dnVecDescr, void **values)
{
	return values_get(dnVecDescr, CUSPARSE_ITEM_DNVEC, 0, values);
}

cusparseStatus_t hand_cusparseDnVecSetValues(cusparseDnVecDescr_t dnVecDescr, void *values)
{
	return values_set(dnVecDescr, CUSPARSE_ITEM_DNVEC, 0, values);
}

cusparseStatus_t hand_cusparseDnMatGetValues(cusparseDnMatDescr_t dnMatDescr, void **values)
{
	return values_get(dnMatDescr, CUSPARSE_ITEM_DNMAT, 0, values);
}

cusparseStatus_t hand_cusparseDnMatSetValues(cusparseDnMatDescr_t dnMatDescr, void *values)
{
	return values_set(dnMatDescr, CUSPARSE_ITEM_DNMAT, 0, values);
}

/* --- dense --- */

cusparseStatus_t hand_cusparseCreateDnVec(
	cusparseDnVecDescr_t *dnVecDescr, int64_t size, void *values, cudaDataType valueType)
{
	struct cusparse_object *o;

	if (size < 0 || !cusparse_scalar_bytes(valueType))
		return CUSPARSE_STATUS_INVALID_VALUE;
	o = cusparse_made((void **)dnVecDescr, CUSPARSE_ITEM_DNVEC);
	if (!o)
		return cusparse_unmade(dnVecDescr);
	o->content.dnvec = (struct cusparse_dnvec){.size = size, .type = (int32_t)valueType};
	o->place[0] = values;
	return CUSPARSE_STATUS_SUCCESS;
}

cusparseStatus_t hand_cusparseDnVecGet(
	cusparseDnVecDescr_t dnVecDescr, int64_t *size, void **values, cudaDataType *valueType)
{
	const struct cusparse_object *o = cusparse_of(dnVecDescr, CUSPARSE_ITEM_DNVEC);

	if (!o || !size || !values || !valueType)
		return CUSPARSE_STATUS_INVALID_VALUE;
	*size = o->content.dnvec.size;
	*values = o->place[0];
	*valueType = (cudaDataType)o->content.dnvec.type;
	return CUSPARSE_STATUS_SUCCESS;
}

cusparseStatus_t hand_cusparseCreateDnMat(cusparseDnMatDescr_t *dnMatDescr, int64_t rows,
	int64_t cols, int64_t ld, void *values, cudaDataType valueType, cusparseOrder_t order)
{
	struct cusparse_object *o;

	if (rows < 0 || cols < 0 || !cusparse_order(order) ||
		ld < (order == CUSPARSE_ORDER_COL ? rows : cols) ||
		!cusparse_scalar_bytes(valueType))
		return CUSPARSE_STATUS_INVALID_VALUE;
	o = cusparse_made((void **)dnMatDescr, CUSPARSE_ITEM_DNMAT);
	if (!o)
		return cusparse_unmade(dnMatDescr);
	o->content.dnmat = (struct cusparse_dnmat){.rows = rows,
		.cols = cols,
		.ld = ld,
		.type = (int32_t)valueType,
		.order = order,
		.batch = 1};
	o->place[0] = values;
	return CUSPARSE_STATUS_SUCCESS;
}

cusparseStatus_t hand_cusparseDnMatGet(cusparseDnMatDescr_t dnMatDescr, int64_t *rows,
	int64_t *cols, int64_t *ld, void **values, cudaDataType *type, cusparseOrder_t *order)
{
	const struct cusparse_object *o = cusparse_of(dnMatDescr, CUSPARSE_ITEM_DNMAT);

	if (!o || !rows || !cols || !ld || !values || !type || !order)
		return CUSPARSE_STATUS_INVALID_VALUE;
	*rows = o->content.dnmat.rows;
	*cols = o->content.dnmat.cols;
	*ld = o->content.dnmat.ld;
	*values = o->place[0];
	*type = (cudaDataType)o->content.dnmat.type;
	*order = o->content.dnmat.order;
	return CUSPARSE_STATUS_SUCCESS;
}

cusparseStatus_t hand_cusparseDnMatSetStridedBatch(
	cusparseDnMatDescr_t dnMatDescr, int batchCount, int64_t batchStride)
{
	struct cusparse_object *o = cusparse_of(dnMatDescr, CUSPARSE_ITEM_DNMAT);
	const struct cusparse_dnmat *m = o ? &o->content.dnmat : NULL;

	/* One matrix for all has the stride 0; else they do not overlap. */
	if (!o || batchCount <= 0 ||
		(batchCount > 1 && batchStride &&
			batchStride <
				m->ld * (m->order == CUSPARSE_ORDER_COL ? m->cols : m->rows)))
		return CUSPARSE_STATUS_INVALID_VALUE;
	o->content.dnmat.batch = batchCount;
	o->content.dnmat.stride = batchStride;
	return CUSPARSE_STATUS_SUCCESS;
}

cusparseStatus_t hand_cusparseDnMatGetStridedBatch(
	cusparseConstDnMatDescr_t dnMatDescr, int *batchCount, int64_t *batchStride)
{
	const struct cusparse_object *o = cusparse_of(dnMatDescr, CUSPARSE_ITEM_DNMAT);

	if (!o || !batchCount || !batchStride)
		return CUSPARSE_STATUS_INVALID_VALUE;
	*batchCount = o->content.dnmat.batch;
	*batchStride = o->content.dnmat.stride;
	return CUSPARSE_STATUS_SUCCESS;
}
