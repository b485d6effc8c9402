/* SPDX-License-Identifier: Apache-2.0
 *
 * What is set of a descriptor after it was made, and asked.
 */
#include "shim/libraries/cusparse/content.h"

/* --- matrices of the older functions --- */

/* NULL: no descriptor, or a value that is none. */
static struct cusparse_matrix *matrix_of(const void *descriptor, int value, int last)
{
	struct cusparse_object *o = cusparse_of(descriptor, CUSPARSE_ITEM_MATRIX);

	return o && value >= 0 && value <= last ? &o->content.matrix : NULL;
}

static cusparseStatus_t matrix_set(struct cusparse_matrix *m, size_t at, int value)
{
	if (!m)
		return CUSPARSE_STATUS_INVALID_VALUE;
	memcpy((char *)m + at, &value, sizeof(value));
	return CUSPARSE_STATUS_SUCCESS;
}

cusparseStatus_t hand_cusparseSetMatType(cusparseMatDescr_t descrA, cusparseMatrixType_t type)
{
	struct cusparse_matrix *m = matrix_of(descrA, type, CUSPARSE_MATRIX_TYPE_TRIANGULAR);

	return matrix_set(m, offsetof(struct cusparse_matrix, type), type);
}

cusparseStatus_t hand_cusparseSetMatFillMode(
	cusparseMatDescr_t descrA, cusparseFillMode_t fillMode)
{
	struct cusparse_matrix *m = matrix_of(descrA, fillMode, 1);

	return matrix_set(m, offsetof(struct cusparse_matrix, fill), fillMode);
}

cusparseStatus_t hand_cusparseSetMatDiagType(
	cusparseMatDescr_t descrA, cusparseDiagType_t diagType)
{
	struct cusparse_matrix *m = matrix_of(descrA, diagType, 1);

	return matrix_set(m, offsetof(struct cusparse_matrix, diagonal), diagType);
}

cusparseStatus_t hand_cusparseSetMatIndexBase(
	cusparseMatDescr_t descrA, cusparseIndexBase_t base)
{
	struct cusparse_matrix *m = matrix_of(descrA, base, 1);

	return matrix_set(m, offsetof(struct cusparse_matrix, base), base);
}

cusparseMatrixType_t hand_cusparseGetMatType(const cusparseMatDescr_t descrA)
{
	const struct cusparse_matrix *m = matrix_of(descrA, 0, 0);

	return m ? m->type : CUSPARSE_MATRIX_TYPE_GENERAL;
}

cusparseFillMode_t hand_cusparseGetMatFillMode(const cusparseMatDescr_t descrA)
{
	const struct cusparse_matrix *m = matrix_of(descrA, 0, 0);

	return m ? m->fill : 0;
}

cusparseDiagType_t hand_cusparseGetMatDiagType(const cusparseMatDescr_t descrA)
{
	const struct cusparse_matrix *m = matrix_of(descrA, 0, 0);

	return m ? m->diagonal : 0;
}

cusparseIndexBase_t hand_cusparseGetMatIndexBase(const cusparseMatDescr_t descrA)
{
	const struct cusparse_matrix *m = matrix_of(descrA, 0, 0);

	return m ? m->base : CUSPARSE_INDEX_BASE_ZERO;
}

/* --- sparse matrices: where they lie --- */

static struct cusparse_object *spmat(const void *descriptor)
{
	return cusparse_of(descriptor, CUSPARSE_ITEM_SPMAT);
}

static struct cusparse_object *spmat_in(const void *descriptor, int32_t format)
{
	struct cusparse_object *o = spmat(descriptor);

	return o && o->content.spmat.format == format ? o : NULL;
}

/* As NVIDIA's does, it takes NULL: CuPy's arrays of no elements are at NULL. */
static cusparseStatus_t places_set(
	struct cusparse_object *o, void *first, void *second, void *third)
{
	if (!o)
		return CUSPARSE_STATUS_INVALID_VALUE;
	o->place[0] = first;
	o->place[1] = second;
	o->place[2] = third;
	return CUSPARSE_STATUS_SUCCESS;
}

cusparseStatus_t hand_cusparseCsrSetPointers(
	cusparseSpMatDescr_t spMatDescr, void *csrRowOffsets, void *csrColInd, void *csrValues)
{
	return places_set(
		spmat_in(spMatDescr, CUSPARSE_FORMAT_CSR), csrRowOffsets, csrColInd, csrValues);
}

cusparseStatus_t hand_cusparseCscSetPointers(
	cusparseSpMatDescr_t spMatDescr, void *cscColOffsets, void *cscRowInd, void *cscValues)
{
	return places_set(
		spmat_in(spMatDescr, CUSPARSE_FORMAT_CSC), cscColOffsets, cscRowInd, cscValues);
}

cusparseStatus_t hand_cusparseCooSetPointers(
	cusparseSpMatDescr_t spMatDescr, void *cooRows, void *cooColumns, void *cooValues)
{
	return places_set(
		spmat_in(spMatDescr, CUSPARSE_FORMAT_COO), cooRows, cooColumns, cooValues);
}

/* How many parts it has; the values are the last. */
static unsigned places_of(const struct cusparse_object *o)
{
	return o->content.spmat.format == CUSPARSE_FORMAT_BLOCKED_ELL ? 2 : 3;
}

static void **values_of(struct cusparse_object *o)
{
	return &o->place[places_of(o) - 1];
}

cusparseStatus_t hand_cusparseSpMatGetValues(cusparseSpMatDescr_t spMatDescr, void **values)
{
	struct cusparse_object *o = spmat(spMatDescr);

	if (!o || !values)
		return CUSPARSE_STATUS_INVALID_VALUE;
	*values = *values_of(o);
	return CUSPARSE_STATUS_SUCCESS;
}

cusparseStatus_t hand_cusparseSpMatSetValues(cusparseSpMatDescr_t spMatDescr, void *values)
{
	struct cusparse_object *o = spmat(spMatDescr);

	if (!o)
		return CUSPARSE_STATUS_INVALID_VALUE;
	*values_of(o) = values;
	return CUSPARSE_STATUS_SUCCESS;
}

cusparseStatus_t hand_cusparseSpMatSetPointers(
	cusparseSpMatDescr_t spMatDescr, const cusparseSpMatPointers_t *pointers)
{
	struct cusparse_object *o = pointers ? spmat_in(spMatDescr, pointers->format) : NULL;

	if (!o)
		return CUSPARSE_STATUS_INVALID_VALUE;
	for (unsigned i = 0; i < places_of(o); i++)
		o->place[i] = pointers->place[i];
	return CUSPARSE_STATUS_SUCCESS;
}

cusparseStatus_t hand_cusparseSpMatGetPointers(
	cusparseSpMatDescr_t spMatDescr, cusparseSpMatPointers_t *pointers)
{
	const struct cusparse_object *o = spmat(spMatDescr);

	if (!o || !pointers)
		return CUSPARSE_STATUS_INVALID_VALUE;
	memset(pointers, 0, sizeof(*pointers));
	pointers->format = o->content.spmat.format;
	for (unsigned i = 0; i < places_of(o); i++)
		pointers->place[i] = o->place[i];
	return CUSPARSE_STATUS_SUCCESS;
}

/* --- sparse matrices: what they are --- */

cusparseStatus_t hand_cusparseSpMatGetFormat(
	cusparseConstSpMatDescr_t spMatDescr, cusparseFormat_t *format)
{
	const struct cusparse_object *o = spmat(spMatDescr);

	if (!o || !format)
		return CUSPARSE_STATUS_INVALID_VALUE;
	*format = o->content.spmat.format;
	return CUSPARSE_STATUS_SUCCESS;
}

cusparseStatus_t hand_cusparseSpMatGetIndexBase(
	cusparseConstSpMatDescr_t spMatDescr, cusparseIndexBase_t *idxBase)
{
	const struct cusparse_object *o = spmat(spMatDescr);

	if (!o || !idxBase)
		return CUSPARSE_STATUS_INVALID_VALUE;
	*idxBase = o->content.spmat.base;
	return CUSPARSE_STATUS_SUCCESS;
}

cusparseStatus_t hand_cusparseSpMatGetSize(
	cusparseConstSpMatDescr_t spMatDescr, int64_t *rows, int64_t *cols, int64_t *nnz)
{
	const struct cusparse_object *o = spmat(spMatDescr);
	const struct cusparse_spmat *m = o ? &o->content.spmat : NULL;

	if (!o || !rows || !cols || !nnz)
		return CUSPARSE_STATUS_INVALID_VALUE;
	*rows = m->rows;
	*cols = m->cols;
	*nnz = m->format == CUSPARSE_FORMAT_BLOCKED_ELL ? m->rows * o->count : o->count;
	return CUSPARSE_STATUS_SUCCESS;
}

cusparseStatus_t hand_cusparseSpMatGetSizes(
	cusparseConstSpMatDescr_t spMatDescr, cusparseSpMatSizes_t *sizes)
{
	const struct cusparse_object *o = spmat(spMatDescr);
	const struct cusparse_spmat *m = o ? &o->content.spmat : NULL;

	if (!o || !sizes)
		return CUSPARSE_STATUS_INVALID_VALUE;
	*sizes = (cusparseSpMatSizes_t){m->format, {m->rows, m->cols, o->count}};
	if (m->format == CUSPARSE_FORMAT_BLOCKED_ELL) {
		sizes->size[2] = m->size[0];
		sizes->size[3] = o->count;
	} else {
		sizes->size[3] = m->size[0];
		sizes->size[4] = m->size[1];
	}
	return CUSPARSE_STATUS_SUCCESS;
}

static cusparseStatus_t batch_set(
	struct cusparse_object *o, int count, int64_t first, int64_t second, int64_t third)
{
	if (!o || count <= 0 || first < 0 || second < 0 || third < 0)
		return CUSPARSE_STATUS_INVALID_VALUE;
	o->content.spmat.batch = count;
	o->content.spmat.stride[0] = first;
	o->content.spmat.stride[1] = second;
	o->content.spmat.stride[2] = third;
	return CUSPARSE_STATUS_SUCCESS;
}

cusparseStatus_t hand_cusparseCooSetStridedBatch(
	cusparseSpMatDescr_t spMatDescr, int batchCount, int64_t batchStride)
{
	return batch_set(
		spmat_in(spMatDescr, CUSPARSE_FORMAT_COO), batchCount, batchStride, 0, 0);
}

cusparseStatus_t hand_cusparseCsrSetStridedBatch(cusparseSpMatDescr_t spMatDescr,
	int batchCount, int64_t offsetsBatchStride, int64_t columnsValuesBatchStride)
{
	return batch_set(spmat_in(spMatDescr, CUSPARSE_FORMAT_CSR), batchCount,
		offsetsBatchStride, columnsValuesBatchStride, 0);
}

cusparseStatus_t hand_cusparseBsrSetStridedBatch(cusparseSpMatDescr_t spMatDescr,
	int batchCount, int64_t offsetsBatchStride, int64_t columnsBatchStride,
	int64_t ValuesBatchStride)
{
	return batch_set(spmat_in(spMatDescr, CUSPARSE_FORMAT_BSR), batchCount,
		offsetsBatchStride, columnsBatchStride, ValuesBatchStride);
}

cusparseStatus_t hand_cusparseSpMatGetStridedBatch(
	cusparseConstSpMatDescr_t spMatDescr, int *batchCount)
{
	const struct cusparse_object *o = spmat(spMatDescr);

	if (!o || !batchCount)
		return CUSPARSE_STATUS_INVALID_VALUE;
	*batchCount = o->content.spmat.batch ? o->content.spmat.batch : 1;
	return CUSPARSE_STATUS_SUCCESS;
}

/* NULL: no attribute of that size. Each is an enum's number; one that was not set is 0. */
static int32_t *attribute_of(const void *descriptor, cusparseSpMatAttribute_t attribute,
	const void *data, size_t size)
{
	struct cusparse_object *o = spmat(descriptor);

	return o && data && size == sizeof(int32_t) && attribute >= 0 &&
			       attribute < CUSPARSE_ATTRIBUTES
		       ? &o->content.spmat.attribute[attribute]
		       : NULL;
}

cusparseStatus_t hand_cusparseSpMatGetAttribute(cusparseConstSpMatDescr_t spMatDescr,
	cusparseSpMatAttribute_t attribute, void *data, size_t dataSize)
{
	const int32_t *word = attribute_of(spMatDescr, attribute, data, dataSize);
	int32_t value;

	if (!word)
		return CUSPARSE_STATUS_INVALID_VALUE;
	value = *word ? *word - 1 : 0;
	memcpy(data, &value, sizeof(value));
	return CUSPARSE_STATUS_SUCCESS;
}

cusparseStatus_t hand_cusparseSpMatSetAttribute(cusparseSpMatDescr_t spMatDescr,
	cusparseSpMatAttribute_t attribute, void *data, size_t dataSize)
{
	int32_t *word = attribute_of(spMatDescr, attribute, data, dataSize);
	int32_t value;

	if (!word)
		return CUSPARSE_STATUS_INVALID_VALUE;
	memcpy(&value, data, sizeof(value));
	if (value < 0 || value > (attribute < CUSPARSE_SPMAT_STORAGE ? 1 : 2))
		return CUSPARSE_STATUS_INVALID_VALUE;
	*word = 1 + value;
	return CUSPARSE_STATUS_SUCCESS;
}

cusparseStatus_t hand_cusparseSpGEMM_getNumProducts(
	cusparseSpGEMMDescr_t spgemmDescr, int64_t *num_prods)
{
	const struct cusparse_object *o = cusparse_of(spgemmDescr, CUSPARSE_ITEM_SPGEMM);

	if (!o || !num_prods)
		return CUSPARSE_STATUS_INVALID_VALUE;
	*num_prods = o->count;
	return CUSPARSE_STATUS_SUCCESS;
}
