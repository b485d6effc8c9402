/* SPDX-License-Identifier: Apache-2.0
 *
 * cuBLAS on the software GPU, on OpenBLAS.  A call becomes a task that runs as a host
 * function in its stream, so it is ordered with kernels and copies; scalars in host pointer
 * mode are captured when it is made, results for the host are waited for.
 *
 * It is a library of its own beside libvcuda-softgpu.so, and uses only what that one exports.
 */
#ifndef VCUDA_SOFTGPU_BLAS_BLAS_H
#define VCUDA_SOFTGPU_BLAS_BLAS_H

#include <complex.h>
#include <cuda.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define BLAS_VERSION 130100

#define BLAS_EXPORT __attribute__((visibility("default")))

/* cublasStatus_t */
enum {
	BLAS_SUCCESS = 0,
	BLAS_NOT_INITIALIZED = 1,
	BLAS_ALLOC_FAILED = 3,
	BLAS_INVALID_VALUE = 7,
	BLAS_MAPPING_ERROR = 11,
	BLAS_EXECUTION_FAILED = 13,
	BLAS_NOT_SUPPORTED = 15,
};

/* cudaDataType */
enum blas_type {
	BLAS_F32 = 0,
	BLAS_F64 = 1,
	BLAS_F16 = 2,
	BLAS_I8 = 3,
	BLAS_C32 = 4,
	BLAS_C64 = 5,
	BLAS_I32 = 10,
	BLAS_BF16 = 14,
};

enum { BLAS_OP_N = 0, BLAS_OP_T = 1, BLAS_OP_C = 2 };
enum { BLAS_LOWER = 0, BLAS_UPPER = 1 };
enum { BLAS_LEFT = 0, BLAS_RIGHT = 1 };
enum { BLAS_NON_UNIT = 0, BLAS_UNIT = 1 };

struct blas_handle {
	CUstream stream;
	int pointer_mode, math, atomics, sm_count;
	int strategy, special_values, mantissa_control, max_bits, bit_offset; /* of emulation */
	_Atomic bool failed;   /* a task met memory that is not the device's */
	_Atomic unsigned refs; /* the program's, and each task's */
};

/* Memory that a task reads or writes: an address, or one of an array of addresses. */
struct blas_place {
	const void *at;
	long long stride; /* elements between members of a strided batch */
	enum blas_type type;
	bool array; /* `at` points to addresses on the device */
};

struct blas_task {
	void (*run)(struct blas_task *task);
	_Atomic unsigned owners; /* its stream or graph, and who waits for it */
	struct blas_handle *handle;
	CUcontext context;
	enum blas_type type; /* of the scalars, and of the computation */
	int op_a, op_b, uplo, side, diag;
	int m, n, k, lda, ldb, ldc, batch;
	int layout, fold, kl, ku; /* of a matrix that is not stored in full: element.h */
	bool conj;
	struct blas_place a, b, c; /* x, y and A for vectors */
	_Alignas(16) unsigned char alpha[16];
	_Alignas(16) unsigned char beta[16];
	const void *alpha_at, *beta_at; /* device pointer mode */
	enum blas_type scalar;		/* how alpha lies there */
	enum blas_type beta_scalar;	/* and beta */
	void *result;			/* device pointer mode */
	_Alignas(16) unsigned char value[16];
	uint32_t result_bytes;
	int *pivots, *info;
};

uint32_t blas_size(enum blas_type type); /* bytes of an element; 0: not served */

/* A task of the handle with its scalars (NULL: none), or NULL with *status. */
struct blas_task *blas_new(void *handle, void (*run)(struct blas_task *), enum blas_type type,
	enum blas_type scalar, const void *alpha, const void *beta, int *status);
/* Its beta, where that is of another type than alpha; blas_new() got none. */
void blas_beta(struct blas_task *task, enum blas_type scalar, const void *beta);
/* What a task that is made elsewhere begins with: zeroes, and then this. */
void blas_begin(struct blas_task *task, struct blas_handle *handle,
	void (*run)(struct blas_task *task));
/* One owner less. */
void blas_drop(struct blas_task *task);
void blas_handle_drop(struct blas_handle *handle);
/* Puts it into the stream, which drops it. With `result`, what the task leaves in `value` goes
 * there, to the host or the device as the pointer mode says. */
int blas_submit(struct blas_task *task, void *result, uint32_t result_bytes);

/* Whether the device has [at, at + bytes), elements of so many bytes that lie as numbers do.
 * For a running task, while which it stays so. */
bool blas_reaches(const void *at, uint64_t bytes, uint32_t element);
/* Member I of a place, of `elements` elements; NULL and the handle failed where the device does
 * not have it. */
void *blas_member(
	struct blas_task *task, const struct blas_place *place, int i, uint64_t elements);
/* Elements of a matrix of so many columns, and of a vector. A leading dimension that is too
 * small gives more than any device has. */
static inline uint64_t blas_extent(int rows, int cols, int ld)
{
	if (rows <= 0 || cols <= 0)
		return 0;
	if (ld < rows)
		return UINT64_MAX;
	return (uint64_t)(cols - 1) * (uint64_t)ld + (uint64_t)rows;
}
static inline uint64_t blas_vector(int n, int step)
{
	uint64_t s = (uint64_t)(step < 0 ? -(int64_t)step : (int64_t)step);

	return n > 0 ? (uint64_t)(n - 1) * s + 1 : 0;
}

static inline int blas_max(int a, int b)
{
	return a > b ? a : b;
}

/* The scalars as values of the computation. */
static inline float blas_f32(const unsigned char *p)
{
	return *(const float *)(const void *)p;
}
static inline double blas_f64(const unsigned char *p)
{
	return *(const double *)(const void *)p;
}

/* One of four statements, by the task's type. */
#define BY_TYPE(T, S, D, C, Z)                                                                 \
	switch ((T)->type) {                                                                   \
	case BLAS_F32: S; break;                                                               \
	case BLAS_F64: D; break;                                                               \
	case BLAS_C32: C; break;                                                               \
	case BLAS_C64: Z; break;                                                               \
	default: (T)->handle->failed = true;                                                   \
	}

float blas_half_in(uint16_t half);
uint16_t blas_half_out(float value);
float blas_bfloat_in(uint16_t half);
uint16_t blas_bfloat_out(float value);

#endif
