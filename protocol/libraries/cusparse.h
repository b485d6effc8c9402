/* SPDX-License-Identifier: Apache-2.0
 *
 * cuSPARSE as both ends know it: the types of its ABI (the same for CUDA 12 and 13; no header
 * of NVIDIA's is needed to build), and what its descriptors hold, which is how they travel.
 *
 * A descriptor is the program's own.  The agent makes the library's of its content for one
 * call. One in which a call leaves something (an analysis, a plan, the size of a result) has a
 * number from then on, by which the agent keeps the library's own.
 */
#ifndef VCUDA_PROTOCOL_LIBRARIES_CUSPARSE_H
#define VCUDA_PROTOCOL_LIBRARIES_CUSPARSE_H

#include <stdio.h>

#include "protocol/libraries/cublas.h"
#include "protocol/libraries/items.h"

typedef struct cusparseContext *cusparseHandle_t;
typedef struct cusparseMatDescr *cusparseMatDescr_t;
typedef struct bsrsv2Info *bsrsv2Info_t;
typedef struct bsrsm2Info *bsrsm2Info_t;
typedef struct csric02Info *csric02Info_t;
typedef struct bsric02Info *bsric02Info_t;
typedef struct csrilu02Info *csrilu02Info_t;
typedef struct bsrilu02Info *bsrilu02Info_t;
typedef struct csru2csrInfo *csru2csrInfo_t;
typedef struct cusparseColorInfo *cusparseColorInfo_t;
typedef struct pruneInfo *pruneInfo_t;
typedef struct cusparseSpVecDescr *cusparseSpVecDescr_t;
typedef struct cusparseDnVecDescr *cusparseDnVecDescr_t;
typedef struct cusparseSpMatDescr *cusparseSpMatDescr_t;
typedef struct cusparseDnMatDescr *cusparseDnMatDescr_t;
typedef struct cusparseSpVecDescr const *cusparseConstSpVecDescr_t;
typedef struct cusparseDnVecDescr const *cusparseConstDnVecDescr_t;
typedef struct cusparseSpMatDescr const *cusparseConstSpMatDescr_t;
typedef struct cusparseDnMatDescr const *cusparseConstDnMatDescr_t;
typedef struct cusparseSpSVDescr *cusparseSpSVDescr_t;
typedef struct cusparseSpSMDescr *cusparseSpSMDescr_t;
typedef struct cusparseSpGEMMDescr *cusparseSpGEMMDescr_t;
typedef struct cusparseSpGEAMDescr *cusparseSpGEAMDescr_t;
typedef struct cusparseSpMatConvertDescr *cusparseSpMatConvertDescr_t;
typedef void (*cusparseLoggerCallback_t)(int level, const char *function, const char *message);

typedef int cusparseStatus_t;
typedef int cusparsePointerMode_t;
typedef int cusparseAction_t;
typedef int cusparseMatrixType_t;
typedef int cusparseFillMode_t;
typedef int cusparseDiagType_t;
typedef int cusparseIndexBase_t;
typedef int cusparseOperation_t;
typedef int cusparseDirection_t;
typedef int cusparseSolvePolicy_t;
typedef int cusparseCsr2CscAlg_t;
typedef int cusparseFormat_t;
typedef int cusparseOrder_t;
typedef int cusparseIndexType_t;
typedef int cusparseSpMatAttribute_t;
typedef int cusparseSparseToDenseAlg_t;
typedef int cusparseDenseToSparseAlg_t;
typedef int cusparseSpMVAlg_t;
typedef int cusparseSpSVAlg_t;
typedef int cusparseSpSVUpdate_t;
typedef int cusparseSpSMAlg_t;
typedef int cusparseSpSMUpdate_t;
typedef int cusparseSpMMAlg_t;
typedef int cusparseSpGEMMAlg_t;
typedef int cusparseSpGEAMAlg_t;
typedef int cusparseSDDMMAlg_t;
typedef int cusparseSpMatConvertAlg_t;
/* What a matrix's format has of them, in the order of the function that makes it. */
typedef struct {
	cusparseFormat_t format;
	void *place[8];
} cusparseSpMatPointers_t;
typedef struct {
	cusparseFormat_t format;
	int64_t size[8];
} cusparseSpMatSizes_t;
typedef struct {
	unsigned short x;
} __half;

enum {
	CUSPARSE_STATUS_SUCCESS = 0,
	CUSPARSE_STATUS_NOT_INITIALIZED = 1,
	CUSPARSE_STATUS_ALLOC_FAILED = 2,
	CUSPARSE_STATUS_INVALID_VALUE = 3,
	CUSPARSE_STATUS_ARCH_MISMATCH = 4,
	CUSPARSE_STATUS_MAPPING_ERROR = 5,
	CUSPARSE_STATUS_EXECUTION_FAILED = 6,
	CUSPARSE_STATUS_INTERNAL_ERROR = 7,
	CUSPARSE_STATUS_MATRIX_TYPE_NOT_SUPPORTED = 8,
	CUSPARSE_STATUS_ZERO_PIVOT = 9,
	CUSPARSE_STATUS_NOT_SUPPORTED = 10,
	CUSPARSE_STATUS_INSUFFICIENT_RESOURCES = 11,
};
enum {
	CUSPARSE_FORMAT_CSR = 1,
	CUSPARSE_FORMAT_CSC = 2,
	CUSPARSE_FORMAT_COO = 3,
	CUSPARSE_FORMAT_BLOCKED_ELL = 5,
	CUSPARSE_FORMAT_BSR = 6,
	CUSPARSE_FORMAT_SLICED_ELLPACK = 7,
};
enum { CUSPARSE_ORDER_COL = 1, CUSPARSE_ORDER_ROW = 2 };
enum { CUSPARSE_INDEX_16U = 1, CUSPARSE_INDEX_32I = 2, CUSPARSE_INDEX_64I = 3 };
enum { CUSPARSE_INDEX_BASE_ZERO = 0, CUSPARSE_INDEX_BASE_ONE = 1 };
enum { CUSPARSE_MATRIX_TYPE_GENERAL = 0, CUSPARSE_MATRIX_TYPE_TRIANGULAR = 3 };
enum {
	CUSPARSE_SPMAT_FILL_MODE = 0,
	CUSPARSE_SPMAT_DIAG_TYPE = 1,
	CUSPARSE_SPMAT_STORAGE = 2,
	CUSPARSE_SPMAT_SYMMETRY_TYPE = 3,
};

/* Descriptors, as items. Those from CUSPARSE_ITEM_SPSV on have no content: they are only what
 * calls leave in them. */
enum cusparse_item {
	CUSPARSE_ITEM_MATRIX = 1, /* cusparseMatDescr_t */
	CUSPARSE_ITEM_SPVEC,
	CUSPARSE_ITEM_DNVEC,
	CUSPARSE_ITEM_DNMAT,
	CUSPARSE_ITEM_SPMAT,
	CUSPARSE_ITEM_SPSV,
	CUSPARSE_ITEM_SPSM,
	CUSPARSE_ITEM_SPGEMM,
	CUSPARSE_ITEM_SPGEAM,
	CUSPARSE_ITEM_BSRSV2,
	CUSPARSE_ITEM_BSRSM2,
	CUSPARSE_ITEM_CSRIC02,
	CUSPARSE_ITEM_BSRIC02,
	CUSPARSE_ITEM_CSRILU02,
	CUSPARSE_ITEM_BSRILU02,
	CUSPARSE_ITEM_CSRU2CSR,
	CUSPARSE_ITEM_COLOR,
	CUSPARSE_ITEM_PRUNE,
	CUSPARSE_ITEM_CONVERT,
	CUSPARSE_ITEM_END,
};

struct cusparse_matrix {
	int32_t type, fill, diagonal, base;
};

struct cusparse_spvec {
	int64_t size, count;
	int32_t index_type, base, type, reserved;
};

struct cusparse_dnvec {
	int64_t size;
	int32_t type, reserved;
};

struct cusparse_dnmat {
	int64_t rows, cols, ld, stride;
	int32_t type, order, batch, reserved;
};

#define CUSPARSE_ATTRIBUTES 4
#define CUSPARSE_PLACES 3 /* at most, where a sparse matrix or vector has its parts */

/* rows, cols, count: BSR has them in blocks; Blocked-ELL's count is its columns of blocks,
 * cusparseCreateBlockedEll's ellCols. */
struct cusparse_spmat {
	int64_t rows, cols;
	int64_t count;	   /* of a call that is kept by its content; else it is 0 here */
	int64_t size[2];   /* BSR: a block's; Blocked-ELL: a block's edge; Sliced-ELL: how many
			    * values, and the slice's rows */
	int64_t stride[3]; /* of a batch, as the format's function names them */
	int32_t format;
	int32_t offset_type, index_type, base, type, order;
	int32_t batch; /* 0: was not set */
	uint32_t reserved;
	int32_t attribute[CUSPARSE_ATTRIBUTES]; /* 1 + value; 0: was not set */
};

/* What of a descriptor may change from call to call: in the varying part, after its item. */
struct cusparse_places {
	uint64_t object; /* the descriptor's number; 0: it has none */
	int64_t count;	 /* a sparse matrix' */
	uint64_t at[CUSPARSE_PLACES];
};

/* An item's content. */
union cusparse_content {
	struct cusparse_matrix matrix;
	struct cusparse_spvec spvec;
	struct cusparse_dnvec dnvec;
	struct cusparse_dnmat dnmat;
	struct cusparse_spmat spmat;
	uint32_t none;
};

static inline uint32_t cusparse_content_bytes(uint32_t kind)
{
	switch (kind) {
	case CUSPARSE_ITEM_MATRIX: return sizeof(struct cusparse_matrix);
	case CUSPARSE_ITEM_SPVEC: return sizeof(struct cusparse_spvec);
	case CUSPARSE_ITEM_DNVEC: return sizeof(struct cusparse_dnvec);
	case CUSPARSE_ITEM_DNMAT: return sizeof(struct cusparse_dnmat);
	case CUSPARSE_ITEM_SPMAT: return sizeof(struct cusparse_spmat);
	default: return sizeof(uint32_t);
	}
}

/* How many bytes of struct cusparse_places it has. */
static inline uint32_t cusparse_places_bytes(uint32_t kind)
{
	uint32_t places = kind == CUSPARSE_ITEM_SPMAT				       ? 3
			  : kind == CUSPARSE_ITEM_SPVEC				       ? 2
			  : kind == CUSPARSE_ITEM_DNVEC || kind == CUSPARSE_ITEM_DNMAT ? 1
										       : 0;

	return kind == CUSPARSE_ITEM_MATRIX ? 0
					    : (uint32_t)(sizeof(struct cusparse_places) -
							 8 * (CUSPARSE_PLACES - places));
}

/* Where scalars and results lie. */
static inline enum library_place cusparse_place(int32_t pointers)
{
	return pointers == LIBRARY_POINTERS_DEVICE ? LIBRARY_DEVICE : LIBRARY_HOST;
}

/* Bytes of a scalar of a call that computes in that type; 0: no such type. */
static inline uint32_t cusparse_scalar_bytes(cudaDataType type)
{
	return cublas_data_bytes(type);
}

#endif
