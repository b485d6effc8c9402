/* SPDX-License-Identifier: Apache-2.0
 *
 * The library's descriptors, made and ended by kind.  Numbers are the library's to check.
 */
#include "gpu-agent/worker/libraries/cusparse/cusparse.h"

#define PLACE(I) ((void *)(uintptr_t)said->places.at[I])
/* The function's status; a library that lacks it does not support it. */
#define TRY(FUNCTION, ...)                                                                     \
	(l->FUNCTION ? l->FUNCTION(__VA_ARGS__) : CUSPARSE_STATUS_NOT_SUPPORTED)

static int make_matrix(
	const struct cusparse_library *l, const struct cusparse_said *said, void **made)
{
	const struct cusparse_matrix *m = &said->content.matrix;
	cusparseMatDescr_t d = NULL;
	int status = TRY(cusparseCreateMatDescr, &d);

	if (status)
		return status;
	*made = d;
	status = TRY(cusparseSetMatType, d, m->type);
	if (!status)
		status = TRY(cusparseSetMatFillMode, d, m->fill);
	if (!status)
		status = TRY(cusparseSetMatDiagType, d, m->diagonal);
	if (!status)
		status = TRY(cusparseSetMatIndexBase, d, m->base);
	return status;
}

static int make_dnmat(
	const struct cusparse_library *l, const struct cusparse_said *said, void **made)
{
	const struct cusparse_dnmat *m = &said->content.dnmat;
	cusparseDnMatDescr_t d = NULL;
	int status = TRY(cusparseCreateDnMat, &d, m->rows, m->cols, m->ld, PLACE(0),
		(cudaDataType)m->type, m->order);

	if (status)
		return status;
	*made = d;
	return m->batch == 1 && !m->stride
		       ? 0
		       : TRY(cusparseDnMatSetStridedBatch, d, m->batch, m->stride);
}

static int create_spmat(const struct cusparse_library *l, const struct cusparse_said *said,
	cusparseSpMatDescr_t *d)
{
	const struct cusparse_spmat *m = &said->content.spmat;
	int64_t count = said->places.count;
	cudaDataType type = (cudaDataType)m->type;

	switch (m->format) {
	case CUSPARSE_FORMAT_CSR:
		return TRY(cusparseCreateCsr, d, m->rows, m->cols, count, PLACE(0), PLACE(1),
			PLACE(2), m->offset_type, m->index_type, m->base, type);
	case CUSPARSE_FORMAT_CSC:
		return TRY(cusparseCreateCsc, d, m->rows, m->cols, count, PLACE(0), PLACE(1),
			PLACE(2), m->offset_type, m->index_type, m->base, type);
	case CUSPARSE_FORMAT_COO:
		return TRY(cusparseCreateCoo, d, m->rows, m->cols, count, PLACE(0), PLACE(1),
			PLACE(2), m->index_type, m->base, type);
	case CUSPARSE_FORMAT_BSR:
		return TRY(cusparseCreateBsr, d, m->rows, m->cols, count, m->size[0],
			m->size[1], PLACE(0), PLACE(1), PLACE(2), m->offset_type, m->index_type,
			m->base, type, m->order);
	case CUSPARSE_FORMAT_BLOCKED_ELL:
		return TRY(cusparseCreateBlockedEll, d, m->rows, m->cols, m->size[0], count,
			PLACE(0), PLACE(1), m->index_type, m->base, type);
	case CUSPARSE_FORMAT_SLICED_ELLPACK:
		return TRY(cusparseCreateSlicedEll, d, m->rows, m->cols, count, m->size[0],
			m->size[1], PLACE(0), PLACE(1), PLACE(2), m->offset_type, m->index_type,
			m->base, type);
	default: return CUSPARSE_STATUS_INVALID_VALUE;
	}
}

static int set_batch(const struct cusparse_library *l, cusparseSpMatDescr_t d,
	const struct cusparse_spmat *m)
{
	switch (m->format) {
	case CUSPARSE_FORMAT_CSR:
		return TRY(cusparseCsrSetStridedBatch, d, m->batch, m->stride[0], m->stride[1]);
	case CUSPARSE_FORMAT_COO:
		return TRY(cusparseCooSetStridedBatch, d, m->batch, m->stride[0]);
	case CUSPARSE_FORMAT_BSR:
		return TRY(cusparseBsrSetStridedBatch, d, m->batch, m->stride[0], m->stride[1],
			m->stride[2]);
	default: return CUSPARSE_STATUS_INVALID_VALUE;
	}
}

/* Sets what is not as it was before. */
static int set_rest(const struct cusparse_library *l, cusparseSpMatDescr_t d,
	const struct cusparse_spmat *before, const struct cusparse_spmat *now)
{
	int status = 0;

	if (now->batch != before->batch ||
		memcmp(now->stride, before->stride, sizeof(now->stride)))
		status = set_batch(l, d, now);
	for (int i = 0; !status && i < CUSPARSE_ATTRIBUTES; i++) {
		int32_t value = now->attribute[i] - 1;

		if (now->attribute[i] != before->attribute[i])
			status = TRY(cusparseSpMatSetAttribute, d, i, &value, sizeof(value));
	}
	return status;
}

static int make_spmat(
	const struct cusparse_library *l, const struct cusparse_said *said, void **made)
{
	static const struct cusparse_spmat fresh;
	cusparseSpMatDescr_t d = NULL;
	int status = create_spmat(l, said, &d);

	if (status)
		return status;
	*made = d;
	return set_rest(l, d, &fresh, &said->content.spmat);
}

int cusparse_change(const struct cusparse_library *l, void *descriptor,
	const struct cusparse_said *before, const struct cusparse_said *said)
{
	const struct cusparse_spmat *m = &said->content.spmat;
	cusparseSpMatDescr_t d = descriptor;
	int status = 0;

	if (memcmp(before->places.at, said->places.at, sizeof(said->places.at)))
		switch (m->format) {
		case CUSPARSE_FORMAT_CSR:
			status = TRY(cusparseCsrSetPointers, d, PLACE(0), PLACE(1), PLACE(2));
			break;
		case CUSPARSE_FORMAT_CSC:
			status = TRY(cusparseCscSetPointers, d, PLACE(0), PLACE(1), PLACE(2));
			break;
		case CUSPARSE_FORMAT_COO:
			status = TRY(cusparseCooSetPointers, d, PLACE(0), PLACE(1), PLACE(2));
			break;
		case CUSPARSE_FORMAT_BLOCKED_ELL:
			status = TRY(cusparseSpMatSetValues, d, PLACE(1));
			break;
		default: status = TRY(cusparseSpMatSetValues, d, PLACE(2));
		}
	return status ? status : set_rest(l, d, &before->content.spmat, m);
}

static int make_vector(
	const struct cusparse_library *l, const struct cusparse_said *said, void **made)
{
	const struct cusparse_spvec *s = &said->content.spvec;
	const struct cusparse_dnvec *d = &said->content.dnvec;

	if (said->kind == CUSPARSE_ITEM_DNVEC)
		return TRY(cusparseCreateDnVec, (cusparseDnVecDescr_t *)made, d->size, PLACE(0),
			(cudaDataType)d->type);
	return TRY(cusparseCreateSpVec, (cusparseSpVecDescr_t *)made, s->size, s->count,
		PLACE(0), PLACE(1), s->index_type, s->base, (cudaDataType)s->type);
}

/* KIND(ITEM, C type, what makes it, what ends it): descriptors without content. */
#define KINDS(KIND)                                                                            \
	KIND(SPSV, cusparseSpSVDescr_t, SpSV_createDescr, SpSV_destroyDescr)                   \
	KIND(SPSM, cusparseSpSMDescr_t, SpSM_createDescr, SpSM_destroyDescr)                   \
	KIND(SPGEMM, cusparseSpGEMMDescr_t, SpGEMM_createDescr, SpGEMM_destroyDescr)           \
	KIND(SPGEAM, cusparseSpGEAMDescr_t, SpGEAM_createDescr, SpGEAM_destroyDescr)           \
	KIND(BSRSV2, bsrsv2Info_t, CreateBsrsv2Info, DestroyBsrsv2Info)                        \
	KIND(BSRSM2, bsrsm2Info_t, CreateBsrsm2Info, DestroyBsrsm2Info)                        \
	KIND(CSRIC02, csric02Info_t, CreateCsric02Info, DestroyCsric02Info)                    \
	KIND(BSRIC02, bsric02Info_t, CreateBsric02Info, DestroyBsric02Info)                    \
	KIND(CSRILU02, csrilu02Info_t, CreateCsrilu02Info, DestroyCsrilu02Info)                \
	KIND(BSRILU02, bsrilu02Info_t, CreateBsrilu02Info, DestroyBsrilu02Info)                \
	KIND(CSRU2CSR, csru2csrInfo_t, CreateCsru2csrInfo, DestroyCsru2csrInfo)                \
	KIND(COLOR, cusparseColorInfo_t, CreateColorInfo, DestroyColorInfo)                    \
	KIND(PRUNE, pruneInfo_t, CreatePruneInfo, DestroyPruneInfo)                            \
	KIND(CONVERT, cusparseSpMatConvertDescr_t, SpMatConvertDescrCreate,                    \
		SpMatConvertDescrDestroy)

int cusparse_make(
	const struct cusparse_library *l, const struct cusparse_said *said, void **made)
{
	switch (said->kind) {
	case CUSPARSE_ITEM_MATRIX: return make_matrix(l, said, made);
	case CUSPARSE_ITEM_SPVEC:
	case CUSPARSE_ITEM_DNVEC: return make_vector(l, said, made);
	case CUSPARSE_ITEM_DNMAT: return make_dnmat(l, said, made);
	case CUSPARSE_ITEM_SPMAT: return make_spmat(l, said, made);
#define KIND(ITEM, TYPE, MAKE, END)                                                            \
	case CUSPARSE_ITEM_##ITEM: return TRY(cusparse##MAKE, (TYPE *)made);
		KINDS(KIND)
#undef KIND
	default: return CUSPARSE_STATUS_INVALID_VALUE;
	}
}

/* What was made, the library that made it can end. */
#define END(FUNCTION, DESCRIPTOR) ((void)(l->FUNCTION && l->FUNCTION(DESCRIPTOR)))

void cusparse_unmake(const struct cusparse_library *l, uint32_t kind, void *made)
{
	switch (kind) {
	case CUSPARSE_ITEM_MATRIX: END(cusparseDestroyMatDescr, made); break;
	case CUSPARSE_ITEM_SPVEC: END(cusparseDestroySpVec, made); break;
	case CUSPARSE_ITEM_DNVEC: END(cusparseDestroyDnVec, made); break;
	case CUSPARSE_ITEM_DNMAT: END(cusparseDestroyDnMat, made); break;
	case CUSPARSE_ITEM_SPMAT: END(cusparseDestroySpMat, made); break;
#define KIND(ITEM, TYPE, MAKE, UNMAKE)                                                         \
	case CUSPARSE_ITEM_##ITEM: END(cusparse##UNMAKE, made); break;
		KINDS(KIND)
#undef KIND
	default: break;
	}
}
