/* SPDX-License-Identifier: Apache-2.0
 *
 * What the stubs of shim/generated/ may name: functions that many of cuBLAS's functions are a
 * form of, as their as() in cublas.api says.
 */
#ifndef VCUDA_SHIM_CUBLAS_FORMS_H
#define VCUDA_SHIM_CUBLAS_FORMS_H

#include <stdbool.h>

#include "shim/generated/cublas_hand.h"
#include "protocol/generated/cublas_api.h"
#include "protocol/libraries/cublas_status.h"

enum cublas_direction { TO_DEVICE, TO_HOST };
/* Steps are in elements of `size` bytes. */
cublasStatus_t cublas_copy_vector(enum cublas_direction direction, int64_t n, int64_t size,
	const void *from, int64_t from_step, void *to, int64_t to_step, bool async,
	CUstream stream);
cublasStatus_t cublas_copy_matrix(enum cublas_direction direction, int64_t rows, int64_t cols,
	int64_t size, const void *from, int64_t from_step, void *to, int64_t to_step,
	bool async, CUstream stream);

/* ---- the interface of before CUDA 4 (legacy.c) ---- */

/* The handle that cublasInit made in the thread's context; NULL: none. */
cublasHandle_t cublas_legacy(void);
cublasStatus_t cublas_legacy_init(void);
cublasStatus_t cublas_legacy_shutdown(void);
/* Keeps a thread's failure until cublasGetError, which is cublas_legacy_error. */
void cublas_legacy_done(cublasStatus_t status);
cublasStatus_t cublas_legacy_error(void);
cublasStatus_t cublas_legacy_alloc(int n, int elemSize, void **devicePtr);
cublasStatus_t cublas_legacy_free(void *devicePtr);
cublasStatus_t cublas_legacy_stream(cudaStream_t stream);
/* Where a result goes before it is returned, the thread's, zeroed; and what of it is. */
union cublas_legacy_answer {
	float s;
	double d;
	cuComplex c;
	cuDoubleComplex z;
	int i;
};
union cublas_legacy_answer *cublas_legacy_answer(void);
float cublas_legacy_single(cublasStatus_t status);
double cublas_legacy_twice(cublasStatus_t status);
cuComplex cublas_legacy_complex(cublasStatus_t status);
cuDoubleComplex cublas_legacy_complex_twice(cublasStatus_t status);
int cublas_legacy_index(cublasStatus_t status);
/* FUNCTION, with that handle: what it answers is kept, and its result, where it has one, is
 * returned. */
#define LEGACY(function, ...) cublas_legacy_done(function(cublas_legacy(), __VA_ARGS__))
#define LEGACY_S(function, ...)                                                                \
	cublas_legacy_single(function(cublas_legacy(), __VA_ARGS__, &cublas_legacy_answer()->s))
#define LEGACY_D(function, ...)                                                                \
	cublas_legacy_twice(function(cublas_legacy(), __VA_ARGS__, &cublas_legacy_answer()->d))
#define LEGACY_C(function, ...)                                                                \
	cublas_legacy_complex(                                                                 \
		function(cublas_legacy(), __VA_ARGS__, &cublas_legacy_answer()->c))
#define LEGACY_Z(function, ...)                                                                \
	cublas_legacy_complex_twice(                                                           \
		function(cublas_legacy(), __VA_ARGS__, &cublas_legacy_answer()->z))
#define LEGACY_I(function, ...)                                                                \
	cublas_legacy_index(function(cublas_legacy(), __VA_ARGS__, &cublas_legacy_answer()->i))
/* What a letter stands for. */
int cublas_operation(char letter);
int cublas_fill(char letter);
int cublas_side(char letter);
int cublas_diag(char letter);

/* ---- cublasXt (xt.h) ---- */

enum xt_type { XT_S, XT_D, XT_C, XT_Z };
enum xt_rank { XT_SYRK, XT_HERK, XT_SYR2K, XT_HER2K, XT_SYRKX, XT_HERKX };
enum xt_mirror { XT_SYMM, XT_HEMM, XT_SPMM };

cublasStatus_t xt_gemm(enum xt_type type, cublasXtHandle_t handle, int transa, int transb,
	size_t m, size_t n, size_t k, const void *alpha, const void *A, size_t lda,
	const void *B, size_t ldb, const void *beta, void *C, size_t ldc);
/* Without B where there is one operand. */
cublasStatus_t xt_rank(enum xt_type type, enum xt_rank what, cublasXtHandle_t handle, int uplo,
	int trans, size_t n, size_t k, const void *alpha, const void *A, size_t lda,
	const void *B, size_t ldb, const void *beta, void *C, size_t ldc);
/* A packed A has no lda. */
cublasStatus_t xt_mirror(enum xt_type type, enum xt_mirror what, cublasXtHandle_t handle,
	int side, int uplo, size_t m, size_t n, const void *alpha, const void *A, size_t lda,
	const void *B, size_t ldb, const void *beta, void *C, size_t ldc);
cublasStatus_t xt_trmm(enum xt_type type, cublasXtHandle_t handle, int side, int uplo,
	int trans, int diag, size_t m, size_t n, const void *alpha, const void *A, size_t lda,
	const void *B, size_t ldb, void *C, size_t ldc);
cublasStatus_t xt_trsm(enum xt_type type, cublasXtHandle_t handle, int side, int uplo,
	int trans, int diag, size_t m, size_t n, const void *alpha, const void *A, size_t lda,
	void *B, size_t ldb);

#endif
