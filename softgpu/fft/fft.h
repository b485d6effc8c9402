/* SPDX-License-Identifier: Apache-2.0
 *
 * cuFFT on the software GPU.  A transform is a task that runs as a host function in its stream,
 * so it is ordered with kernels and copies.  It copies one batch after the other into arrays of
 * double, whatever their type and layout, and FFTW transforms those; so results are at least as
 * exact as a GPU's.  The work area is asked for and checked, and not used.
 */
#ifndef VCUDA_SOFTGPU_FFT_FFT_H
#define VCUDA_SOFTGPU_FFT_FFT_H

#include <complex.h> /* first, so that FFTW's numbers are those of C */
#include <cuda.h>
#include <fftw3.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FFT_VERSION 12000 /* of CUDA 13.0 */
#define FFT_RANK 3
#define FFT_PLANS 4096

/* A function of the library's, declared before it is defined. */
#define FFT_CALL(NAME, ...)                                                                    \
	__attribute__((visibility("default"))) int NAME(__VA_ARGS__);                          \
	__attribute__((visibility("default"))) int NAME(__VA_ARGS__)

/* cufftResult */
enum {
	FFT_SUCCESS = 0,
	FFT_INVALID_PLAN = 1,
	FFT_ALLOC_FAILED = 2,
	FFT_INVALID_TYPE = 3,
	FFT_INVALID_VALUE = 4,
	FFT_EXEC_FAILED = 6,
	FFT_INVALID_SIZE = 8,
	FFT_NO_WORKSPACE = 13,
	FFT_NOT_SUPPORTED = 16,
	FFT_MISSING_DEPENDENCY = 17,
};

/* cufftType */
enum {
	FFT_C2C = 0x29,
	FFT_R2C = 0x2a,
	FFT_C2R = 0x2c,
	FFT_DOUBLE = 0x40, /* with this: Z2Z, D2Z, Z2D */
};

enum fft_number { FFT_F16, FFT_BF16, FFT_F32, FFT_F64 };
enum fft_kind { FFT_COMPLEX, FFT_FORWARD_REAL, FFT_INVERSE_REAL };

/* How a side lies in memory, in elements. */
struct fft_side {
	long long embed[FFT_RANK], stride, dist;
};

/* What a plan is for. One or two dimensions are the last of three. */
struct fft_shape {
	enum fft_kind kind;
	enum fft_number number;
	long long n[FFT_RANK], batch;
	bool basic; /* the sides are what follows from n, and from being in place */
	struct fft_side in, out;
};

struct fft_plan {
	_Atomic unsigned refs; /* the program's, and each task's */
	_Atomic bool failed;   /* a task met memory that is not the device's, untold */
	bool made, own_area;
	bool no_allocation;
	bool callbacks; /* it cannot be made */
	CUstream stream;
	CUdeviceptr area;
	size_t area_bytes;
	long long property[5]; /* cufftProperty */
	struct fft_shape shape;
	fftw_plan fftw[2]; /* forward and inverse, made when first used */
};

/* plan.c: the plan of that number, kept until it is dropped; NULL: none. */
struct fft_plan *fft_plan_get(int number);
void fft_plan_drop(struct fft_plan *plan);

/* shape.c: what becomes of the arguments of cufftXtMakePlanMany; a status. */
struct fft_arguments {
	int rank;
	const long long *n, *in_embed, *out_embed;
	long long in_stride, in_dist, out_stride, out_dist, batch;
	int in_type, out_type, run_type; /* cudaDataType */
};
int fft_shape_make(struct fft_shape *shape, const struct fft_arguments *arguments);
/* The types of a cufftType; false: it is none. */
bool fft_types(struct fft_arguments *arguments, int type);
size_t fft_shape_area(const struct fft_shape *shape); /* bytes of the work area */

/* transform.c */
uint32_t fft_bytes(const struct fft_shape *shape, bool out); /* of an element */
void fft_sides(const struct fft_shape *shape, bool in_place, struct fft_side sides[2]);
/* Elements from the first to the last, or UINT64_MAX where they are more than there are. */
uint64_t fft_extent(const struct fft_shape *shape, const struct fft_side *side, bool out);
/* False: there is no memory. DIRECTION: -1 or 1. */
bool fft_transform(struct fft_plan *plan, const void *in, void *out, int direction);
void fft_transform_end(struct fft_plan *plan); /* gives back what FFTW keeps for it */

#endif
