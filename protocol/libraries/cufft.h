/* SPDX-License-Identifier: Apache-2.0
 *
 * cuFFT as both ends know it: the types of its ABI (the same in 11 and 12; no header of
 * NVIDIA's is needed to build), what a plan is made of, and the frames.
 */
#ifndef VCUDA_PROTOCOL_LIBRARIES_CUFFT_H
#define VCUDA_PROTOCOL_LIBRARIES_CUFFT_H

#include <cuComplex.h>
#include <driver_types.h>
#include <library_types.h>

#include "protocol/libraries/plain.h"

typedef int cufftHandle;
typedef int cufftResult;
typedef int cufftType;
typedef int cufftProperty;
typedef int cufftXtCallbackType;
typedef int cufftXtWorkAreaPolicy;
typedef int cufftXtSubFormat;
typedef int cufftXtCopyType;
typedef int cufftXtQueryType;
typedef float cufftReal;
typedef double cufftDoubleReal;
typedef cuComplex cufftComplex;
typedef cuDoubleComplex cufftDoubleComplex;

enum {
	CUFFT_SUCCESS = 0,
	CUFFT_INVALID_PLAN = 1,
	CUFFT_ALLOC_FAILED = 2,
	CUFFT_INVALID_TYPE = 3,
	CUFFT_INVALID_VALUE = 4,
	CUFFT_INTERNAL_ERROR = 5,
	CUFFT_EXEC_FAILED = 6,
	CUFFT_SETUP_FAILED = 7,
	CUFFT_INVALID_SIZE = 8,
	CUFFT_INVALID_DEVICE = 11,
	CUFFT_NO_WORKSPACE = 13,
	CUFFT_NOT_IMPLEMENTED = 14,
	CUFFT_NOT_SUPPORTED = 16,
};

enum {
	CUFFT_R2C = 0x2a,
	CUFFT_C2R = 0x2c,
	CUFFT_C2C = 0x29,
	CUFFT_D2Z = 0x6a,
	CUFFT_Z2D = 0x6c,
	CUFFT_Z2Z = 0x69,
};

/* ---- several GPUs: what programs see ---- */

enum {
	CUFFT_XT_FORMAT_INPUT,
	CUFFT_XT_FORMAT_OUTPUT,
	CUFFT_XT_FORMAT_INPLACE,
	CUFFT_XT_FORMAT_INPLACE_SHUFFLED,
	CUFFT_XT_FORMAT_1D_INPUT_SHUFFLED,
};

enum { CUFFT_COPY_HOST_TO_DEVICE, CUFFT_COPY_DEVICE_TO_HOST, CUFFT_COPY_DEVICE_TO_DEVICE };
enum { CUFFT_QUERY_1D_FACTORS };
#define CUFFT_FORWARD (-1)
#define CUFFT_INVERSE 1

#define CUDA_XT_DESCRIPTOR_VERSION 0x01000000
#define MAX_CUDA_DESCRIPTOR_GPUS 64

typedef struct cudaXtDesc_t {
	int version;
	int nGPUs;
	int GPUs[MAX_CUDA_DESCRIPTOR_GPUS];
	void *data[MAX_CUDA_DESCRIPTOR_GPUS];
	size_t size[MAX_CUDA_DESCRIPTOR_GPUS];
	void *cudaXtState;
} cudaXtDesc;

typedef enum libFormat_t { LIB_FORMAT_CUFFT, LIB_FORMAT_UNDEFINED } libFormat;

typedef struct cudaLibXtDesc_t {
	int version;
	cudaXtDesc *descriptor;
	libFormat library;
	int subFormat;
	void *libDescriptor;
} cudaLibXtDesc;

typedef struct cufftXt1dFactors_t {
	long long int size;
	long long int stringCount;
	long long int stringLength;
	long long int substringLength;
	long long int factor1;
	long long int factor2;
	long long int stringMask;
	long long int substringMask;
	long long int factor1Mask;
	long long int factor2Mask;
	int stringShift;
	int substringShift;
	int factor1Shift;
	int factor2Shift;
} cufftXt1dFactors;

/* ---- plans ---- */

/* Plans of a program at once; their numbers are from 1 to here. */
#define CUFFT_PLANS 4096
#define CUFFT_RANK 3
#define CUFFT_PROPERTIES 4 /* cufftProperty, from 1 on */
#define CUFFT_POLICIES 3   /* cufftXtWorkAreaPolicy, from 0 on */
#define CUFFT_CALLBACKS 8  /* cufftXtCallbackType, from 0 on */
/* Of one callback, with its name: LTO-IR of a function is some KiB. */
#define CUFFT_CALLBACK_MOST (16u << 20)
#define CUFFT_CALLBACK_NAME 4096u
/* Of all that the agent holds for a program at once. */
#define CUFFT_CALLBACKS_HELD (64u << 20)

/* Which call said what a plan is: the library gets it by the same. */
enum cufft_form {
	CUFFT_FORM_1D,
	CUFFT_FORM_2D,
	CUFFT_FORM_3D,
	CUFFT_FORM_MANY,
	CUFFT_FORM_MANY64,
	CUFFT_FORM_XT,
	CUFFT_FORM_LAST
};

/* What is asked of it. */
enum cufft_what {
	CUFFT_WHAT_PLAN,     /* made, and how large its work area is */
	CUFFT_WHAT_SIZE,     /* as cufftGetSize… has it */
	CUFFT_WHAT_ESTIMATE, /* as cufftEstimate… has it */
	CUFFT_WHAT_LAST
};

struct cufft_content {
	int64_t n[CUFFT_RANK];
	int64_t in_embed[CUFFT_RANK], out_embed[CUFFT_RANK];
	int64_t in_stride, in_dist, out_stride, out_dist, batch;
	int64_t property[CUFFT_PROPERTIES];
	uint32_t major;
	uint32_t form; /* enum cufft_form */
	int32_t rank;
	uint32_t embeds;     /* bit 0: in_embed is no NULL; bit 1: out_embed */
	int32_t in_type;     /* a cufftType, but of CUFFT_FORM_XT cudaDataType */
	int32_t out_type;    /* of CUFFT_FORM_XT, and … */
	int32_t run_type;    /* … this */
	uint32_t properties; /* bit p - 1: property p is set */
};
_Static_assert(sizeof(struct cufft_content) == 8 * 22, "");

/* What a plan may have besides. It travels with its content in frames of its own, which an
 * older agent does not know; where it is zero, the content travels alone, as it always did. */
struct cufft_extra {
	uint64_t limit;	    /* of the work area, where a policy is set; see `limited` */
	uint32_t policy;    /* of the work area, and 1; 0: none was set */
	uint32_t limited;   /* the policy came with a limit */
	uint32_t callbacks; /* the number of their set; 0: none */
	uint32_t reserved;
};
_Static_assert(sizeof(struct cufft_extra) == 8 * 3, "");

/* All that a plan is made of: plans of which it is the same are one at the agent. */
struct cufft_whole {
	struct cufft_content plain;
	struct cufft_extra extra;
};

/* How much work area the plan needs; the agent has prepared it. */
struct wire_cufftXtGetSizeMany {
	struct cufft_content content;
	uint32_t what; /* enum cufft_what */
	uint32_t reserved;
};
struct wire_cufftXtGetSizeMany_reply {
	struct library_reply plain;
	uint64_t bytes;
};

/* The plan of this content is called `plan`. */
struct wire_cufftXtMakePlanMany {
	struct cufft_content content;
	int32_t plan;
	uint32_t reserved;
};
struct wire_cufftXtMakePlanMany_reply {
	struct library_reply plain;
};

/* Both of these for a plan that has something besides its content. */
struct wire_cufftXtSetWorkAreaPolicy {
	struct cufft_content content;
	struct cufft_extra extra;
	uint32_t what; /* enum cufft_what, where `plan` is 0 */
	int32_t plan;  /* its name; 0: the frame asks */
};
struct wire_cufftXtSetWorkAreaPolicy_reply {
	struct library_reply plain;
	uint64_t bytes; /* of the work area */
	uint64_t limit; /* as the library left it */
};

struct wire_cufftXtExec {
	uint64_t stream, input, output, area;
	int32_t plan;
	/* What the call is learned by. */
	uint32_t type;	 /* of the cufftExec… that was called, 0: cufftXtExec */
	uint64_t digest; /* of the plan's content */
	int32_t direction;
	uint32_t places; /* the alignment of both, and whether they are one */
};
#define CUFFT_EXEC_KEY 36u
struct wire_cufftXtExec_reply {
	struct library_reply plain;
};

/* A piece of a callback's name, its NUL, and its LTO-IR behind that; it follows. */
struct wire_cufftXtSetJITCallback {
	uint64_t at, total; /* of name and LTO-IR */
	uint64_t caller_info;
	uint32_t set;	   /* of callbacks: what a plan's content names */
	uint32_t type;	   /* cufftXtCallbackType */
	uint32_t name;	   /* bytes, with the NUL */
	uint32_t informed; /* there is a caller_info */
};
struct wire_cufftXtSetJITCallback_reply {
	struct library_reply plain;
};

struct wire_cufftXtSetCallbackSharedSize {
	uint64_t bytes;
	int32_t plan;
	uint32_t type;
};
struct wire_cufftXtSetCallbackSharedSize_reply {
	struct library_reply plain;
};

struct wire_cufftDestroy {
	int32_t plan;	    /* 0: it was not made */
	uint32_t callbacks; /* the set that ends with it, or 0 */
};
struct wire_cufftDestroy_reply {
	struct library_reply plain;
};

struct wire_cufftGetVersion {
	uint32_t major;
	uint32_t reserved;
};
struct wire_cufftGetVersion_reply {
	struct library_reply plain;
	int32_t version;
	uint32_t reserved;
};

#endif
