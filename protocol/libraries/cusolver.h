/* SPDX-License-Identifier: Apache-2.0
 *
 * cuSOLVER as both ends know it: the types of its ABI (no header of NVIDIA's is needed to
 * build), and what its objects of parameters hold, which is how they travel.
 */
#ifndef VCUDA_PROTOCOL_LIBRARIES_CUSOLVER_H
#define VCUDA_PROTOCOL_LIBRARIES_CUSOLVER_H

#include "protocol/libraries/cublas.h"
#include "protocol/libraries/items.h"
#include "protocol/wire/handle.h"

typedef struct cusolverDnContext *cusolverDnHandle_t;
typedef struct cusolverDnParams *cusolverDnParams_t;
typedef struct syevjInfo *syevjInfo_t;
typedef struct gesvdjInfo *gesvdjInfo_t;
typedef struct cusolverDnIRSParams *cusolverDnIRSParams_t;
typedef struct cusolverDnIRSInfos *cusolverDnIRSInfos_t;
typedef struct cusolverSpContext *cusolverSpHandle_t;
typedef struct cusolverRfCommon *cusolverRfHandle_t;
typedef struct csrqrInfo *csrqrInfo_t;
typedef struct csrcholInfo *csrcholInfo_t;
typedef struct csrluInfoHost *csrluInfoHost_t;
typedef struct csrqrInfoHost *csrqrInfoHost_t;
typedef struct csrcholInfoHost *csrcholInfoHost_t;
typedef struct cusparseMatDescr *cusparseMatDescr_t;
typedef int cusolver_int_t;
typedef int cusolverStatus_t;
typedef int cusolverDnFunction_t;
typedef int cusolverAlgMode_t;
typedef int cusolverEigMode_t;
typedef int cusolverEigType_t;
typedef int cusolverEigRange_t;
typedef int cusolverEigComp_t;
typedef int cusolverDirectMode_t;
typedef int cusolverStorevMode_t;
typedef int cusolverDeterministicMode_t;
typedef int cusolverMathMode_t;
typedef int cusolverPrecType_t;
typedef int cusolverIRSRefinement_t;
typedef int cusolverRfMatrixFormat_t;
typedef int cusolverRfUnitDiagonal_t;
typedef int cusolverRfFactorization_t;
typedef int cusolverRfTriangularSolve_t;
typedef int cusolverRfResetValuesFastMode_t;
typedef int cusolverRfNumericBoostReport_t;

enum {
	CUSOLVER_STATUS_SUCCESS = 0,
	CUSOLVER_STATUS_NOT_INITIALIZED = 1,
	CUSOLVER_STATUS_ALLOC_FAILED = 2,
	CUSOLVER_STATUS_INVALID_VALUE = 3,
	CUSOLVER_STATUS_INTERNAL_ERROR = 7,
	CUSOLVER_STATUS_NOT_SUPPORTED = 9,
	CUSOLVER_STATUS_IRS_PARAMS_NOT_INITIALIZED = 12,
	CUSOLVER_STATUS_IRS_INFOS_NOT_INITIALIZED = 25,
};

/* The objects, as items. */
enum cusolver_item {
	CUSOLVER_ITEM_PARAMS = 1,
	CUSOLVER_ITEM_SYEVJ,
	CUSOLVER_ITEM_GESVDJ,
	CUSOLVER_ITEM_REFINEMENT,
	CUSOLVER_ITEM_MATRIX, /* cusparseMatDescr_t */
	CUSOLVER_ITEM_INFOS,  /* from here on the agent's: their handles travel */
	CUSOLVER_ITEM_QR,
	CUSOLVER_ITEM_CHOLESKY,
};

#define CUSOLVER_FUNCTIONS 8 /* of cusolverDnFunction_t; 7 in 12.4 */

struct cusolver_params {
	uint8_t algorithm[CUSOLVER_FUNCTIONS]; /* 1 + cusolverAlgMode_t; 0: was not set */
};

/* Parameters of Jacobi's method. What was not set is the library's default. */
struct cusolver_jacobi {
	double tolerance;
	int32_t max_sweeps, sort;
	uint32_t set; /* bits of enum cusolver_jacobi_set */
	uint32_t reserved;
};
enum cusolver_jacobi_set {
	CUSOLVER_SET_TOLERANCE = 1,
	CUSOLVER_SET_MAX_SWEEPS = 2,
	CUSOLVER_SET_SORT = 4,
};

/* Parameters of a refinement. What was not set is the library's default. */
struct cusolver_refinement {
	double tolerance, tolerance_inner;
	int32_t solver, main_precision, lowest_precision;
	int32_t max_turns, max_turns_inner;
	uint32_t set; /* bits of enum cusolver_refinement_set */
};
enum cusolver_refinement_set {
	CUSOLVER_SET_REFINEMENT_SOLVER = 1,
	CUSOLVER_SET_MAIN_PRECISION = 2,
	CUSOLVER_SET_LOWEST_PRECISION = 4,
	CUSOLVER_SET_REFINEMENT_TOLERANCE = 8,
	CUSOLVER_SET_INNER_TOLERANCE = 16,
	CUSOLVER_SET_MAX_TURNS = 32,
	CUSOLVER_SET_MAX_INNER_TURNS = 64,
	CUSOLVER_SET_NO_FALLBACK = 128,
};
#define CUSOLVER_MAX_TURNS 50 /* until it is set */

/* What a sparse matrix is, as cuSPARSE's enumerations say it. */
struct cusolver_matrix {
	int32_t type, fill, diagonal, base;
};

/* An item's content. */
union cusolver_content {
	struct cusolver_params params;
	struct cusolver_jacobi jacobi;
	struct cusolver_refinement refinement;
	struct cusolver_matrix matrix;
};

static inline uint32_t cusolver_content_bytes(uint32_t kind)
{
	return kind == CUSOLVER_ITEM_PARAMS	  ? sizeof(struct cusolver_params)
	       : kind == CUSOLVER_ITEM_REFINEMENT ? sizeof(struct cusolver_refinement)
	       : kind == CUSOLVER_ITEM_MATRIX	  ? sizeof(struct cusolver_matrix)
						  : sizeof(struct cusolver_jacobi);
}

/* Of what only the agent has: enum handle_kind's; 0: it travels by content. */
static inline uint32_t cusolver_object_kind(uint32_t kind)
{
	return kind == CUSOLVER_ITEM_INFOS	? KIND_cusolverDnIRSInfos
	       : kind == CUSOLVER_ITEM_QR	? KIND_csrqrInfo
	       : kind == CUSOLVER_ITEM_CHOLESKY ? KIND_csrcholInfo
						: KIND_NONE;
}

/* A factor that is handed out (cusolverRf), in memory of the device: its n + 1 rows, columns
 * and values, each at a multiple of 8 bytes. */
static inline void cusolver_factor_places(uint64_t n, uint32_t entries, uint64_t at[3])
{
	at[0] = 0;
	at[1] = (4 * (n + 1) + 7) & ~7ull;
	at[2] = at[1] + ((4ull * entries + 7) & ~7ull);
}

static inline uint64_t cusolver_factor_bytes(uint64_t n, uint32_t entries)
{
	uint64_t at[3];

	cusolver_factor_places(n, entries, at);
	return at[2] + 8ull * entries;
}

/* Bytes of a real number of that type; 0: not one that cuSOLVER takes. */
static inline uint32_t cusolver_number_bytes(cudaDataType type)
{
	return type == CUDA_R_32F ? 4 : type == CUDA_R_64F ? 8 : 0;
}

#endif
