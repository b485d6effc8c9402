/* SPDX-License-Identifier: Apache-2.0
 *
 * cuSOLVER as both ends know it: the types of its ABI (no header of NVIDIA's is needed to
 * build), and what its objects of parameters hold, which is how they travel.
 */
#ifndef VCUDA_PROTOCOL_LIBRARIES_CUSOLVER_H
#define VCUDA_PROTOCOL_LIBRARIES_CUSOLVER_H

#include "protocol/libraries/cublas.h"
#include "protocol/libraries/items.h"

typedef struct cusolverDnContext *cusolverDnHandle_t;
typedef struct cusolverDnParams *cusolverDnParams_t;
typedef struct syevjInfo *syevjInfo_t;
typedef struct gesvdjInfo *gesvdjInfo_t;
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

enum {
	CUSOLVER_STATUS_SUCCESS = 0,
	CUSOLVER_STATUS_NOT_INITIALIZED = 1,
	CUSOLVER_STATUS_ALLOC_FAILED = 2,
	CUSOLVER_STATUS_INVALID_VALUE = 3,
	CUSOLVER_STATUS_NOT_SUPPORTED = 9,
};

/* The objects, as items. */
enum cusolver_item {
	CUSOLVER_ITEM_PARAMS = 1,
	CUSOLVER_ITEM_SYEVJ,
	CUSOLVER_ITEM_GESVDJ,
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

/* An item's content. */
union cusolver_content {
	struct cusolver_params params;
	struct cusolver_jacobi jacobi;
};

static inline uint32_t cusolver_content_bytes(uint32_t kind)
{
	return kind == CUSOLVER_ITEM_PARAMS ? sizeof(struct cusolver_params)
					    : sizeof(struct cusolver_jacobi);
}

/* Bytes of a real number of that type; 0: not one that cuSOLVER takes. */
static inline uint32_t cusolver_number_bytes(cudaDataType type)
{
	return type == CUDA_R_32F ? 4 : type == CUDA_R_64F ? 8 : 0;
}

#endif
