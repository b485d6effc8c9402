/* SPDX-License-Identifier: Apache-2.0
 *
 * Sparse matrices: made in each format, and told.
 */
#include "shim/libraries/cusparse/content.h"

static cusparseStatus_t make(cusparseSpMatDescr_t *to, const struct cusparse_spmat *content,
	int64_t count, void *first, void *second, void *third)
{
	struct cusparse_object *o;

	if (content->rows < 0 || content->cols < 0 || count < 0 ||
		!cusparse_base(content->base) || !cusparse_index(content->index_type) ||
		!cusparse_index(content->offset_type) || !cusparse_order(content->order) ||
		!cusparse_scalar_bytes((cudaDataType)content->type))
		return CUSPARSE_STATUS_INVALID_VALUE;
	o = cusparse_made((void **)to, CUSPARSE_ITEM_SPMAT);
	if (!o)
		return cusparse_unmade(to);
	o->content.spmat = *content;
	o->count = count;
	o->place[0] = first;
	o->place[1] = second;
	o->place[2] = third;
	return CUSPARSE_STATUS_SUCCESS;
}

static struct cusparse_object *find(const void *descriptor, int32_t format)
{
	struct cusparse_object *o = cusparse_of(descriptor, CUSPARSE_ITEM_SPMAT);

	return o && o->content.spmat.format == format ? o : NULL;
}

cusparseStatus_t hand_cusparseCreateCsr(cusparseSpMatDescr_t *spMatDescr, int64_t rows,
	int64_t cols, int64_t nnz, void *csrRowOffsets, void *csrColInd, void *csrValues,
	cusparseIndexType_t csrRowOffsetsType, cusparseIndexType_t csrColIndType,
	cusparseIndexBase_t idxBase, cudaDataType valueType)
{
	if (csrRowOffsetsType != csrColIndType && cusparse_index(csrRowOffsetsType) &&
		cusparse_index(csrColIndType))
		return CUSPARSE_STATUS_NOT_SUPPORTED; /* as NVIDIA's */
	return make(spMatDescr,
		&(struct cusparse_spmat){.rows = rows,
			.cols = cols,
			.format = CUSPARSE_FORMAT_CSR,
			.offset_type = csrRowOffsetsType,
			.index_type = csrColIndType,
			.base = idxBase,
			.type = (int32_t)valueType,
			.order = CUSPARSE_ORDER_ROW},
		nnz, csrRowOffsets, csrColInd, csrValues);
}

cusparseStatus_t hand_cusparseCreateCsc(cusparseSpMatDescr_t *spMatDescr, int64_t rows,
	int64_t cols, int64_t nnz, void *cscColOffsets, void *cscRowInd, void *cscValues,
	cusparseIndexType_t cscColOffsetsType, cusparseIndexType_t cscRowIndType,
	cusparseIndexBase_t idxBase, cudaDataType valueType)
{
	return make(spMatDescr,
		&(struct cusparse_spmat){.rows = rows,
			.cols = cols,
			.format = CUSPARSE_FORMAT_CSC,
			.offset_type = cscColOffsetsType,
			.index_type = cscRowIndType,
			.base = idxBase,
			.type = (int32_t)valueType,
			.order = CUSPARSE_ORDER_COL},
		nnz, cscColOffsets, cscRowInd, cscValues);
}

cusparseStatus_t hand_cusparseCreateCoo(cusparseSpMatDescr_t *spMatDescr, int64_t rows,
	int64_t cols, int64_t nnz, void *cooRowInd, void *cooColInd, void *cooValues,
	cusparseIndexType_t cooIdxType, cusparseIndexBase_t idxBase, cudaDataType valueType)
{
	return make(spMatDescr,
		&(struct cusparse_spmat){.rows = rows,
			.cols = cols,
			.format = CUSPARSE_FORMAT_COO,
			.offset_type = cooIdxType,
			.index_type = cooIdxType,
			.base = idxBase,
			.type = (int32_t)valueType,
			.order = CUSPARSE_ORDER_ROW},
		nnz, cooRowInd, cooColInd, cooValues);
}

cusparseStatus_t hand_cusparseCreateBsr(cusparseSpMatDescr_t *spMatDescr, int64_t brows,
	int64_t bcols, int64_t bnnz, int64_t rowBlockSize, int64_t colBlockSize,
	void *bsrRowOffsets, void *bsrColInd, void *bsrValues,
	cusparseIndexType_t bsrRowOffsetsType, cusparseIndexType_t bsrColIndType,
	cusparseIndexBase_t idxBase, cudaDataType valueType, cusparseOrder_t order)
{
	if (rowBlockSize <= 0 || colBlockSize <= 0)
		return CUSPARSE_STATUS_INVALID_VALUE;
	return make(spMatDescr,
		&(struct cusparse_spmat){.rows = brows,
			.cols = bcols,
			.size = {rowBlockSize, colBlockSize},
			.format = CUSPARSE_FORMAT_BSR,
			.offset_type = bsrRowOffsetsType,
			.index_type = bsrColIndType,
			.base = idxBase,
			.type = (int32_t)valueType,
			.order = order},
		bnnz, bsrRowOffsets, bsrColInd, bsrValues);
}

cusparseStatus_t hand_cusparseCreateBlockedEll(cusparseSpMatDescr_t *spMatDescr, int64_t rows,
	int64_t cols, int64_t ellBlockSize, int64_t ellCols, void *ellColInd, void *ellValue,
	cusparseIndexType_t ellIdxType, cusparseIndexBase_t idxBase, cudaDataType valueType)
{
	if (ellBlockSize <= 0 || ellCols > cols)
		return CUSPARSE_STATUS_INVALID_VALUE;
	return make(spMatDescr,
		&(struct cusparse_spmat){.rows = rows,
			.cols = cols,
			.size = {ellBlockSize},
			.format = CUSPARSE_FORMAT_BLOCKED_ELL,
			.offset_type = ellIdxType,
			.index_type = ellIdxType,
			.base = idxBase,
			.type = (int32_t)valueType,
			.order = CUSPARSE_ORDER_ROW},
		ellCols, ellColInd, ellValue, NULL);
}

cusparseStatus_t hand_cusparseCreateSlicedEll(cusparseSpMatDescr_t *spMatDescr, int64_t rows,
	int64_t cols, int64_t nnz, int64_t sellValuesSize, int64_t sliceSize,
	void *sellSliceOffsets, void *sellColInd, void *sellValues,
	cusparseIndexType_t sellSliceOffsetsType, cusparseIndexType_t sellColIndType,
	cusparseIndexBase_t idxBase, cudaDataType valueType)
{
	if (sellValuesSize < 0 || sliceSize <= 0)
		return CUSPARSE_STATUS_INVALID_VALUE;
	return make(spMatDescr,
		&(struct cusparse_spmat){.rows = rows,
			.cols = cols,
			.size = {sellValuesSize, sliceSize},
			.format = CUSPARSE_FORMAT_SLICED_ELLPACK,
			.offset_type = sellSliceOffsetsType,
			.index_type = sellColIndType,
			.base = idxBase,
			.type = (int32_t)valueType,
			.order = CUSPARSE_ORDER_ROW},
		nnz, sellSliceOffsets, sellColInd, sellValues);
}

/* --- told --- */

/* What matrices of compressed rows and columns tell alike. */
static cusparseStatus_t compressed_get(const struct cusparse_object *o, int64_t *rows,
	int64_t *cols, int64_t *nnz, void **offsets, void **indices, void **values,
	cusparseIndexType_t *offsetType, cusparseIndexType_t *indexType,
	cusparseIndexBase_t *idxBase, cudaDataType *valueType)
{
	if (!o || !rows || !cols || !nnz || !offsets || !indices || !values || !offsetType ||
		!indexType || !idxBase || !valueType)
		return CUSPARSE_STATUS_INVALID_VALUE;
	*rows = o->content.spmat.rows;
	*cols = o->content.spmat.cols;
	*nnz = o->count;
	*offsets = o->place[0];
	*indices = o->place[1];
	*values = o->place[2];
	*offsetType = o->content.spmat.offset_type;
	*indexType = o->content.spmat.index_type;
	*idxBase = o->content.spmat.base;
	*valueType = (cudaDataType)o->content.spmat.type;
	return CUSPARSE_STATUS_SUCCESS;
}

cusparseStatus_t hand_cusparseCsrGet(cusparseSpMatDescr_t spMatDescr, int64_t *rows,
	int64_t *cols, int64_t *nnz, void **csrRowOffsets, void **csrColInd, void **csrValues,
	cusparseIndexType_t *csrRowOffsetsType, cusparseIndexType_t *csrColIndType,
	cusparseIndexBase_t *idxBase, cudaDataType *valueType)
{
	return compressed_get(find(spMatDescr, CUSPARSE_FORMAT_CSR), rows, cols, nnz,
		csrRowOffsets, csrColInd, csrValues, csrRowOffsetsType, csrColIndType, idxBase,
		valueType);
}

cusparseStatus_t hand_cusparseCscGet(cusparseSpMatDescr_t spMatDescr, int64_t *rows,
	int64_t *cols, int64_t *nnz, void **cscColOffsets, void **cscRowInd, void **cscValues,
	cusparseIndexType_t *cscColOffsetsType, cusparseIndexType_t *cscRowIndType,
	cusparseIndexBase_t *idxBase, cudaDataType *valueType)
{
	return compressed_get(find(spMatDescr, CUSPARSE_FORMAT_CSC), rows, cols, nnz,
		cscColOffsets, cscRowInd, cscValues, cscColOffsetsType, cscRowIndType, idxBase,
		valueType);
}

cusparseStatus_t hand_cusparseCooGet(cusparseSpMatDescr_t spMatDescr, int64_t *rows,
	int64_t *cols, int64_t *nnz, void **cooRowInd, void **cooColInd, void **cooValues,
	cusparseIndexType_t *idxType, cusparseIndexBase_t *idxBase, cudaDataType *valueType)
{
	cusparseIndexType_t same;

	return compressed_get(find(spMatDescr, CUSPARSE_FORMAT_COO), rows, cols, nnz, cooRowInd,
		cooColInd, cooValues, &same, idxType, idxBase, valueType);
}

cusparseStatus_t hand_cusparseBlockedEllGet(cusparseSpMatDescr_t spMatDescr, int64_t *rows,
	int64_t *cols, int64_t *ellBlockSize, int64_t *ellCols, void **ellColInd,
	void **ellValue, cusparseIndexType_t *ellIdxType, cusparseIndexBase_t *idxBase,
	cudaDataType *valueType)
{
	const struct cusparse_object *o = find(spMatDescr, CUSPARSE_FORMAT_BLOCKED_ELL);
	cusparseIndexType_t same;
	void *none;

	if (!o || !ellBlockSize)
		return CUSPARSE_STATUS_INVALID_VALUE;
	*ellBlockSize = o->content.spmat.size[0];
	return compressed_get(o, rows, cols, ellCols, ellColInd, ellValue, &none, &same,
		ellIdxType, idxBase, valueType);
}
