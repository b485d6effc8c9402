/* SPDX-License-Identifier: Apache-2.0
 *
 * cuBLAS as both ends know it: the types of its ABI (the same in 12 and 13; no header of
 * NVIDIA's is needed to build), products in groups, and how many bytes a scalar has.
 */
#ifndef VCUDA_PROTOCOL_LIBRARIES_CUBLAS_H
#define VCUDA_PROTOCOL_LIBRARIES_CUBLAS_H

#include <cuComplex.h>
#include <cuda.h>
#include <driver_types.h>
#include <library_types.h>
#include <stdint.h>

#include "protocol/libraries/plain.h"

typedef struct cublasContext *cublasHandle_t;
typedef int cublasStatus_t;
typedef int cublasOperation_t;
typedef int cublasFillMode_t;
typedef int cublasSideMode_t;
typedef int cublasDiagType_t;
typedef int cublasPointerMode_t;
typedef int cublasAtomicsMode_t;
typedef int cublasMath_t;
typedef int cublasComputeType_t;
typedef int cublasGemmAlgo_t;
typedef int cublasEmulationStrategy_t;
#if CUDA_VERSION < 13000
typedef int cudaEmulationSpecialValuesSupport;
typedef int cudaEmulationMantissaControl;
#endif
typedef void (*cublasLogCallback)(const char *message);
typedef struct cublasXtContext *cublasXtHandle_t;
typedef int cublasXtPinnedMemMode_t;
typedef int cublasXtOpType_t;
typedef int cublasXtBlasOp_t;

enum {
	CUBLAS_STATUS_SUCCESS = 0,
	CUBLAS_STATUS_NOT_INITIALIZED = 1,
	CUBLAS_STATUS_ALLOC_FAILED = 3,
	CUBLAS_STATUS_INVALID_VALUE = 7,
	CUBLAS_STATUS_ARCH_MISMATCH = 8,
	CUBLAS_STATUS_MAPPING_ERROR = 11,
	CUBLAS_STATUS_EXECUTION_FAILED = 13,
	CUBLAS_STATUS_INTERNAL_ERROR = 14,
	CUBLAS_STATUS_NOT_SUPPORTED = 15,
	CUBLAS_STATUS_LICENSE_ERROR = 16,
};
enum { CUBLASXT_PINNING_DISABLED = 0, CUBLASXT_PINNING_ENABLED = 1 };
enum { CUBLASXT_FLOAT = 0, CUBLASXT_DOUBLECOMPLEX = 3, CUBLASXT_ROUTINE_MAX = 12 };
enum { CUBLAS_POINTER_MODE_HOST = 0, CUBLAS_POINTER_MODE_DEVICE = 1 };
enum {
	CUBLAS_COMPUTE_16F = 64,
	CUBLAS_COMPUTE_16F_PEDANTIC = 65,
	CUBLAS_COMPUTE_64F = 70,
	CUBLAS_COMPUTE_64F_PEDANTIC = 71,
	CUBLAS_COMPUTE_32I = 72,
	CUBLAS_COMPUTE_32I_PEDANTIC = 73,
	CUBLAS_COMPUTE_64F_EMULATED_FIXEDPOINT = 79,
};

/* Products in groups: the frame's two runs are, for each group, what it is learned by, and
 * behind all of them the scalars. */
struct cublas_group {
	int32_t transa, transb, m, n, k, lda, ldb, ldc;
	int32_t size; /* products of the group */
	uint32_t reserved;
};
struct cublas_group_scalars {
	uint64_t alpha, beta; /* bytes of the scalars' type */
};
enum cublas_grouped { CUBLAS_GROUPED_EX, CUBLAS_GROUPED_S, CUBLAS_GROUPED_D };
#define CUBLAS_GROUPS_MAX 512 /* in one frame */

struct wire_cublasGemmGroupedBatchedEx {
	struct library_state state;
	uint32_t which; /* enum cublas_grouped */
	uint32_t groups;
	int32_t a_type, b_type, c_type, compute;
	struct wire_run shapes;	 /* struct cublas_group: what it is learned by ends with them */
	struct wire_run scalars; /* struct cublas_group_scalars */
	struct wire_run places;	 /* uint64_t [3]: arrays of addresses, A, B, C */
};
_Static_assert(sizeof(struct wire_cublasGemmGroupedBatchedEx) == 80, "");

/* Bytes of one value of a data type; 0: unknown. */
static inline uint32_t cublas_data_bytes(cudaDataType type)
{
	switch ((int)type) {
	case CUDA_R_8I:
	case CUDA_R_8U: return 1;
	case CUDA_R_16F:
	case CUDA_R_16BF:
	case CUDA_C_8I:
	case CUDA_C_8U: return 2;
	case CUDA_R_32F:
	case CUDA_R_32I:
	case CUDA_R_32U:
	case CUDA_C_16F:
	case CUDA_C_16BF: return 4;
	case CUDA_R_64F:
	case CUDA_C_32F: return 8;
	case CUDA_C_64F: return 16;
	default: return 0;
	}
}

/* Bytes of alpha and beta of the Ex forms of gemm: the compute type's, complex where C is. */
static inline uint32_t cublas_compute_bytes(cublasComputeType_t compute, cudaDataType c)
{
	uint32_t times = c == CUDA_C_32F || c == CUDA_C_64F ? 2 : 1;

	switch (compute) {
	case CUBLAS_COMPUTE_16F:
	case CUBLAS_COMPUTE_16F_PEDANTIC: return 2;
	case CUBLAS_COMPUTE_64F:
	case CUBLAS_COMPUTE_64F_PEDANTIC:
	case CUBLAS_COMPUTE_64F_EMULATED_FIXEDPOINT: return 8 * times;
	case CUBLAS_COMPUTE_32I:
	case CUBLAS_COMPUTE_32I_PEDANTIC: return 4;
	default: return 4 * times;
	}
}

#endif
