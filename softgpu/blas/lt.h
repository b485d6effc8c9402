/* SPDX-License-Identifier: Apache-2.0
 *
 * cuBLASLt on the software GPU: descriptors, one algorithm, products with what comes behind
 * them, transforms.  Every type is computed as f64, f32 or 32-bit integers; a call becomes a
 * task in its stream as cuBLAS's do.
 */
#ifndef VCUDA_SOFTGPU_BLAS_LT_H
#define VCUDA_SOFTGPU_BLAS_LT_H

#include "softgpu/blas/blas.h"

/* Types that cuBLAS itself does not have here. */
enum { LT_F8_E4M3 = 28, LT_F8_E5M2 = 29 };

/* Complex types that cuBLAS itself has only in planes. */
enum { LT_C16F = 6, LT_C16BF = 15 };

enum { LT_COL, LT_ROW, LT_COL32, LT_COL4_4R2_8C, LT_COL32_2R_4R4 };
/* How a batch lies: in steps; at addresses on the device; at such, each of a shape of its own,
 * which is on the device too. */
enum { LT_STRIDED, LT_POINTERS, LT_GROUPED };

/* How scale factors lie: one; one for each row of op(A) or column of op(B); one for each 128
 * elements along k, or for each 128 by 128. Those of sm_100 are not served. */
enum { LT_SCALE_ONE = 0, LT_SCALE_OUTER = 3, LT_SCALE_128 = 4, LT_SCALE_128X128 = 5 };

/* The bits of an epilogue. */
enum {
	LT_DEFAULT = 1,
	LT_RELU = 2,
	LT_BIAS = 4,
	LT_DRELU = 8,
	LT_BGRAD = 16,
	LT_GELU = 32,
	LT_DGELU = 64,
	LT_AUX = 128,
	LT_BGRADA = 256,
	LT_BGRADB = 512,
};

enum { LT_HOST, LT_DEVICE, LT_DEVICE_VECTOR, LT_VECTOR_ZERO, LT_VECTOR_HOST };

struct lt_layout {
	uint32_t type;
	int32_t order;
	uint64_t rows, cols;
	int64_t ld, batch_stride, plane;
	int32_t batch;
	uint32_t batch_mode;
	const void *array[3];	       /* of rows, columns, leading dimensions */
	int32_t shape_width, ld_width; /* 1: of 64 bits, else of 32 */
};

struct lt_matmul {
	int32_t compute, scale, pointer_mode;
	int32_t transa, transb, transc, fill;
	uint32_t epilogue;
	int32_t sm_count, aux_type, bias_type;
	int8_t fast_accum;
	int32_t modes[6]; /* how scale factors lie: of A, B, C, D, auxiliary matrix, D's own */
	int64_t bias_stride, aux_ld, aux_stride, alpha_stride;
	void *bias, *aux;
	const void *scale_a, *scale_b, *scale_c, *scale_d;
	void *amax, *aux_amax;
	const void *aux_scale;
	const struct lt_emulation *emulation; /* or NULL; nothing is emulated */
	int64_t alpha_batch, beta_batch; /* elements from one member's scalars to the next's */
	uint32_t invariance;		 /* any result here is the same in every batch */
};

struct lt_emulation {
	int32_t strategy, special_values, mantissa_control, max_bits, bit_offset;
	int32_t *bit_count; /* on the device: gets -1 */
};

struct lt_task {
	struct blas_task base; /* first: it is freed as one */
	struct lt_matmul desc;
	struct lt_layout a, b, c, d;
	const void *at_a, *at_b, *at_c, *alpha_at, *beta_at;
	void *at_d;
	double complex alpha, beta;
	int32_t *bit_count;
};

struct lt_transform {
	int32_t scale, pointer_mode, transa, transb;
};

struct lt_preference {
	uint32_t search_mode, reduction_mask, alignment[4];
	float max_waves;
	uint64_t max_workspace, impl_mask;
	uint32_t average[3]; /* k, rows, columns of a group's product: for a choice that there
				is not */
};

/* The one algorithm: its mark, then what it was configured to, which changes nothing. */
#define LT_ALGO 0x534f4654414c474full
enum { LT_CONFIGS = 9 };
enum { LT_IDS = 128 }; /* numbers that it goes by: as many as NVIDIA's have */
enum { LT_FMA = 1 };   /* of what tells how its numbers come about */
struct lt_algo {
	uint64_t mark;
	uint32_t config[LT_CONFIGS];
	uint32_t reserved[5];
};

struct lt_result {
	struct lt_algo algo;
	uint64_t workspace;
	int status;
	float waves;
	int reserved[4];
};

/* 0: not served. */
uint32_t lt_size(uint32_t type);
double lt_get(const void *at, uint32_t type, uint64_t i);
void lt_put(void *at, uint32_t type, uint64_t i, double value);

/* Where an element lies, in elements; how many elements the matrix takes, UINT64_MAX where the
 * layout cannot be. */
uint64_t lt_at(const struct lt_layout *l, uint64_t row, uint64_t col);
uint64_t lt_extent(const struct lt_layout *l);
/* Where member I of a batch begins, of elements of so many bytes; NULL, and the handle failed,
 * where the device does not have its address. */
void *lt_begin(struct blas_task *task, const void *base, const struct lt_layout *l, int i,
	uint64_t size);
/* Member I of a batch, which the device has; NULL, and the handle failed, where it has not. */
void *lt_member(struct blas_task *task, const void *base, const struct lt_layout *l, int i);

/* The real type of a complex one's halves; UINT32_MAX: it is none. */
uint32_t lt_half(uint32_t type);
/* A number of either kind, one behind the other. */
double complex lt_scalar(const void *at, uint32_t type, uint64_t i);
/* Whether a product of these complex types is served. */
bool lt_complex_match(const struct lt_matmul *d, const struct lt_layout *a,
	const struct lt_layout *b, const struct lt_layout *c, const struct lt_layout *out);
/* Member I of a product of complex numbers. */
void lt_complex_member(struct lt_task *t, int i);

/* Whether factors that lie so are served. */
bool lt_scales_served(const struct lt_matmul *d, uint32_t in, uint32_t out);
/* The factors of an operand, k by so many; false, and the handle failed, where the device has
 * not all of them. */
struct lt_scales {
	const float *at; /* NULL: 1 */
	int32_t mode;
	uint64_t k, outer;
};
bool lt_scales_reached(struct lt_task *t, const struct lt_scales *s);
double lt_scale(const struct lt_scales *s, uint64_t k, uint64_t outer);

/* Whether these can be multiplied: BLAS_SUCCESS, INVALID_VALUE or NOT_SUPPORTED. `c` may be
 * NULL.
 */
int lt_check(const struct lt_matmul *d, const struct lt_layout *a, const struct lt_layout *b,
	const struct lt_layout *c, const struct lt_layout *out);

#endif
