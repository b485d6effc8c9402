/* SPDX-License-Identifier: Apache-2.0
 *
 * cuBLASLt as both ends know it: the types of its ABI (the same in 12 and 13; no header of
 * NVIDIA's is needed to build), and its frames.
 *
 * A descriptor is content, never a name: it lives in the app, in the bytes of NVIDIA's own
 * struct, and travels whole with each call.
 */
#ifndef VCUDA_PROTOCOL_LIBRARIES_CUBLASLT_H
#define VCUDA_PROTOCOL_LIBRARIES_CUBLASLT_H

#include <stddef.h>
#include <stdio.h>

#include "protocol/libraries/cublas.h"
#include "protocol/libraries/items.h"

typedef struct cublasLtContext *cublasLtHandle_t;
/* As large as any library has them; of cuBLAS before 13.2 a layout and a preference have 8
 * words. */
typedef struct {
	uint64_t data[14];
} cublasLtMatrixLayoutOpaque_t;
typedef cublasLtMatrixLayoutOpaque_t *cublasLtMatrixLayout_t;
typedef struct {
	uint64_t data[8];
} cublasLtMatmulAlgo_t;
typedef struct {
	uint64_t data[32];
} cublasLtMatmulDescOpaque_t;
typedef cublasLtMatmulDescOpaque_t *cublasLtMatmulDesc_t;
typedef struct {
	uint64_t data[8];
} cublasLtMatrixTransformDescOpaque_t;
typedef cublasLtMatrixTransformDescOpaque_t *cublasLtMatrixTransformDesc_t;
typedef struct {
	uint64_t data[12];
} cublasLtMatmulPreferenceOpaque_t;
typedef cublasLtMatmulPreferenceOpaque_t *cublasLtMatmulPreference_t;
typedef struct {
	uint64_t data[8];
} cublasLtEmulationDescOpaque_t;
typedef cublasLtEmulationDescOpaque_t *cublasLtEmulationDesc_t;
typedef struct {
	cublasLtMatmulAlgo_t algo;
	size_t workspaceSize;
	cublasStatus_t state;
	float wavesCount;
	int reserved[4];
} cublasLtMatmulHeuristicResult_t;
_Static_assert(sizeof(cublasLtMatmulHeuristicResult_t) == 96, "");

typedef int cublasLtMatrixLayoutAttribute_t;
typedef int cublasLtMatmulDescAttributes_t;
typedef int cublasLtMatrixTransformDescAttributes_t;
typedef int cublasLtMatmulPreferenceAttributes_t;
typedef int cublasLtEmulationDescAttributes_t;
typedef int cublasLtMatmulAlgoCapAttributes_t;
typedef int cublasLtMatmulAlgoConfigAttributes_t;
typedef void (*cublasLtLoggerCallback_t)(
	int logLevel, const char *functionName, const char *message);

/* Attributes, by NVIDIA's numbers. */
enum {
	CUBLASLT_MATRIX_LAYOUT_TYPE = 0,
	CUBLASLT_MATRIX_LAYOUT_ORDER = 1,
	CUBLASLT_MATRIX_LAYOUT_ROWS = 2,
	CUBLASLT_MATRIX_LAYOUT_COLS = 3,
	CUBLASLT_MATRIX_LAYOUT_LD = 4,
	CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT = 5,
	CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET = 6,
	CUBLASLT_MATRIX_LAYOUT_PLANE_OFFSET = 7,
	CUBLASLT_MATRIX_LAYOUT_BATCH_MODE = 8,
	CUBLASLT_GROUPED_MATRIX_LAYOUT_ROWS_ARRAY = 9, /* 9 to 13: 13 only */
	CUBLASLT_GROUPED_MATRIX_LAYOUT_COLS_ARRAY = 10,
	CUBLASLT_GROUPED_MATRIX_LAYOUT_LD_ARRAY = 11,
	CUBLASLT_GROUPED_MATRIX_LAYOUT_ROWS_COLS_ARRAY_INTEGER_WIDTH = 12,
	CUBLASLT_GROUPED_MATRIX_LAYOUT_LD_ARRAY_INTEGER_WIDTH = 13,
};
enum {
	CUBLASLT_BATCH_MODE_STRIDED = 0,
	CUBLASLT_BATCH_MODE_POINTER_ARRAY = 1,
	CUBLASLT_BATCH_MODE_GROUPED = 2,
};
enum { CUBLASLT_INTEGER_WIDTH_32 = 0, CUBLASLT_INTEGER_WIDTH_64 = 1 };
enum { CUBLASLT_ORDER_COL = 0, CUBLASLT_ORDER_ROW = 1 };
enum {
	CUBLASLT_MATMUL_DESC_COMPUTE_TYPE = 0,
	CUBLASLT_MATMUL_DESC_SCALE_TYPE = 1,
	CUBLASLT_MATMUL_DESC_POINTER_MODE = 2,
	CUBLASLT_MATMUL_DESC_TRANSA = 3,
	CUBLASLT_MATMUL_DESC_TRANSB = 4,
	CUBLASLT_MATMUL_DESC_TRANSC = 5,
	CUBLASLT_MATMUL_DESC_FILL_MODE = 6,
	CUBLASLT_MATMUL_DESC_EPILOGUE = 7,
	CUBLASLT_MATMUL_DESC_BIAS_POINTER = 8,
	CUBLASLT_MATMUL_DESC_BIAS_BATCH_STRIDE = 10,
	CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER = 11,
	CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD = 12,
	CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_BATCH_STRIDE = 13,
	CUBLASLT_MATMUL_DESC_ALPHA_VECTOR_BATCH_STRIDE = 14,
	CUBLASLT_MATMUL_DESC_SM_COUNT_TARGET = 15,
	CUBLASLT_MATMUL_DESC_A_SCALE_POINTER = 17,
	CUBLASLT_MATMUL_DESC_B_SCALE_POINTER = 18,
	CUBLASLT_MATMUL_DESC_C_SCALE_POINTER = 19,
	CUBLASLT_MATMUL_DESC_D_SCALE_POINTER = 20,
	CUBLASLT_MATMUL_DESC_AMAX_D_POINTER = 21,
	CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_DATA_TYPE = 22,
	CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_SCALE_POINTER = 23,
	CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_AMAX_POINTER = 24,
	CUBLASLT_MATMUL_DESC_FAST_ACCUM = 25,
	CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE = 26,
	CUBLASLT_MATMUL_DESC_ATOMIC_SYNC_NUM_CHUNKS_D_ROWS = 27, /* 27 to 30: 12 only */
	CUBLASLT_MATMUL_DESC_ATOMIC_SYNC_NUM_CHUNKS_D_COLS = 28,
	CUBLASLT_MATMUL_DESC_ATOMIC_SYNC_IN_COUNTERS_POINTER = 29,
	CUBLASLT_MATMUL_DESC_ATOMIC_SYNC_OUT_COUNTERS_POINTER = 30,
	CUBLASLT_MATMUL_DESC_A_SCALE_MODE = 31,
	CUBLASLT_MATMUL_DESC_B_SCALE_MODE = 32,
	CUBLASLT_MATMUL_DESC_C_SCALE_MODE = 33,
	CUBLASLT_MATMUL_DESC_D_SCALE_MODE = 34,
	CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_SCALE_MODE = 35,
	CUBLASLT_MATMUL_DESC_D_OUT_SCALE_POINTER = 36,
	CUBLASLT_MATMUL_DESC_D_OUT_SCALE_MODE = 37,
	CUBLASLT_MATMUL_DESC_EMULATION_DESCRIPTOR = 38, /* from here on: 13 only */
	CUBLASLT_MATMUL_DESC_ALPHA_BATCH_STRIDE = 39,
	CUBLASLT_MATMUL_DESC_BETA_BATCH_STRIDE = 40,
	CUBLASLT_MATMUL_DESC_BATCH_INVARIANCE_FLAGS = 41,
};
enum { CUBLASLT_BATCH_INVARIANCE_UNSET = 0x8000 };
enum {
	CUBLASLT_EPILOGUE_DEFAULT = 1,
	CUBLASLT_EPILOGUE_RELU = 2,
	CUBLASLT_EPILOGUE_BIAS = 4,
	CUBLASLT_EPILOGUE_RELU_BIAS = 6,
	CUBLASLT_EPILOGUE_GELU = 32,
	CUBLASLT_EPILOGUE_GELU_BIAS = 36,
	CUBLASLT_EPILOGUE_RELU_AUX = 130,
	CUBLASLT_EPILOGUE_RELU_AUX_BIAS = 134,
	CUBLASLT_EPILOGUE_DRELU = 136,
	CUBLASLT_EPILOGUE_DRELU_BGRAD = 152,
	CUBLASLT_EPILOGUE_GELU_AUX = 160,
	CUBLASLT_EPILOGUE_GELU_AUX_BIAS = 164,
	CUBLASLT_EPILOGUE_DGELU = 192,
	CUBLASLT_EPILOGUE_DGELU_BGRAD = 208,
	CUBLASLT_EPILOGUE_BGRADA = 256,
	CUBLASLT_EPILOGUE_BGRADB = 512,
};
enum {
	CUBLASLT_POINTER_MODE_HOST = 0,
	CUBLASLT_POINTER_MODE_DEVICE = 1,
	CUBLASLT_POINTER_MODE_DEVICE_VECTOR = 2,
	CUBLASLT_POINTER_MODE_ALPHA_DEVICE_VECTOR_BETA_ZERO = 3,
	CUBLASLT_POINTER_MODE_ALPHA_DEVICE_VECTOR_BETA_HOST = 4,
};
enum {
	CUBLASLT_MATRIX_TRANSFORM_DESC_SCALE_TYPE = 0,
	CUBLASLT_MATRIX_TRANSFORM_DESC_POINTER_MODE = 1,
	CUBLASLT_MATRIX_TRANSFORM_DESC_TRANSA = 2,
	CUBLASLT_MATRIX_TRANSFORM_DESC_TRANSB = 3,
};
enum {
	CUBLASLT_MATMUL_PREF_SEARCH_MODE = 0,
	CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES = 1,
	CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK = 3,
	CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES = 5,
	CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES = 6,
	CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES = 7,
	CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES = 8,
	CUBLASLT_MATMUL_PREF_MAX_WAVES_COUNT = 9,
	CUBLASLT_MATMUL_PREF_IMPL_MASK = 12,
	CUBLASLT_MATMUL_PREF_GROUPED_AVERAGE_REDUCTION_DIM = 13, /* 13 to 15: 13 only */
	CUBLASLT_MATMUL_PREF_GROUPED_DESC_D_AVERAGE_ROWS = 14,
	CUBLASLT_MATMUL_PREF_GROUPED_DESC_D_AVERAGE_COLS = 15,
};
enum { CUBLASLT_SEARCH_BEST_FIT = 0, CUBLASLT_SEARCH_LIMITED_BY_ALGO_ID = 1 };
enum {
	CUBLASLT_EMULATION_DESC_STRATEGY = 0,
	CUBLASLT_EMULATION_DESC_SPECIAL_VALUES_SUPPORT = 1,
	CUBLASLT_EMULATION_DESC_FIXEDPOINT_MANTISSA_CONTROL = 2,
	CUBLASLT_EMULATION_DESC_FIXEDPOINT_MAX_MANTISSA_BIT_COUNT = 3,
	CUBLASLT_EMULATION_DESC_FIXEDPOINT_MANTISSA_BIT_OFFSET = 4,
	CUBLASLT_EMULATION_DESC_FIXEDPOINT_MANTISSA_BIT_COUNT_POINTER = 5,
};
enum {
	CUBLASLT_ALGO_CAP_TILE_IDS = 6,
	CUBLASLT_ALGO_CAP_EPILOGUE_MASK = 12,
	CUBLASLT_ALGO_CONFIG_ID = 0,
	CUBLASLT_ALGO_CONFIG_TILE_ID = 1,
	CUBLASLT_ALGO_CONFIG_SPLITK_NUM = 2,
};

/* ---- what a descriptor says ---- */

struct cublaslt_layout {
	uint32_t type;
	int32_t order;
	uint64_t rows, cols;
	int64_t ld, batch_stride, plane;
	int32_t batch;
	uint32_t batch_mode;
};
_Static_assert(sizeof(struct cublaslt_layout) == 56, "");

/* A product's descriptor, without the addresses in it. */
struct cublaslt_matmul {
	int32_t compute, scale, pointer_mode;
	int32_t transa, transb, transc, fill;
	uint32_t epilogue;
	int32_t sm_count, aux_type, bias_type;
	int32_t chunk_rows, chunk_cols;
	int32_t scale_a, scale_b, scale_c, scale_d, scale_aux, scale_d_out; /* modes */
	int8_t fast_accum;
	uint8_t reserved[3];
	int64_t bias_stride, aux_ld, aux_stride, alpha_stride;
};
_Static_assert(sizeof(struct cublaslt_matmul) == 112, "");

/* The addresses. */
enum cublaslt_pointer {
	CUBLASLT_BIAS,
	CUBLASLT_AUX,
	CUBLASLT_SCALE_A,
	CUBLASLT_SCALE_B,
	CUBLASLT_SCALE_C,
	CUBLASLT_SCALE_D,
	CUBLASLT_AMAX_D,
	CUBLASLT_AUX_SCALE,
	CUBLASLT_AUX_AMAX,
	CUBLASLT_IN_COUNTERS,
	CUBLASLT_OUT_COUNTERS,
	CUBLASLT_D_OUT_SCALE,
	CUBLASLT_POINTERS
};

struct cublaslt_emulation {
	int32_t strategy, special_values, mantissa_control, max_bits, bit_offset;
	uint32_t present;   /* the product's descriptor names one */
	uint64_t bit_count; /* an address */
};
_Static_assert(sizeof(struct cublaslt_emulation) == 32, "");

struct cublaslt_transform {
	int32_t scale, pointer_mode, transa, transb;
};

struct cublaslt_preference {
	uint32_t search_mode, reduction_mask;
	uint32_t alignment[4]; /* A, B, C, D */
	float max_waves;
	uint32_t reserved;
	uint64_t max_workspace, impl_mask;
};
_Static_assert(sizeof(struct cublaslt_preference) == 48, "");

/* What cuBLAS 13.2 and up can say more. Older agents do not know it (CUBLASLT_KNOWS_MORE). */

/* A layout of a grouped product: where its shapes lie on the device, and how wide they are. */
struct cublaslt_group {
	uint64_t at[3];		       /* the arrays of rows, columns and leading dimensions */
	int32_t shape_width, ld_width; /* CUBLASLT_INTEGER_WIDTH_… */
};
_Static_assert(sizeof(struct cublaslt_group) == 32, "");

struct cublaslt_matmul_more {
	int64_t alpha_stride, beta_stride; /* from one product of a batch to the next */
	uint32_t invariance;
	uint32_t reserved;
};
_Static_assert(sizeof(struct cublaslt_matmul_more) == 24, "");

struct cublaslt_preference_more {
	uint32_t average_k, average_rows, average_cols;
	uint32_t reserved;
};
_Static_assert(sizeof(struct cublaslt_preference_more) == 16, "");

/* What a new descriptor says.  Only what differs from it is set in the agent's, which may be of
 * a library that does not know the rest. */
#define CUBLASLT_FILL_FULL 2
#define CUBLASLT_REDUCTION_ALL 7u
#define CUBLASLT_ALIGNMENT 256u
#define CUBLASLT_PREFERENCE_DEFAULTS                                                           \
	{                                                                                      \
		.reduction_mask = CUBLASLT_REDUCTION_ALL,                                      \
		.alignment = {CUBLASLT_ALIGNMENT, CUBLASLT_ALIGNMENT, CUBLASLT_ALIGNMENT,      \
			CUBLASLT_ALIGNMENT},                                                   \
		.impl_mask = UINT64_MAX,                                                       \
	}
#define CUBLASLT_MATMUL_MORE_DEFAULTS                                                          \
	{                                                                                      \
		.invariance = CUBLASLT_BATCH_INVARIANCE_UNSET,                                 \
	}
#define CUBLASLT_EMULATION_DEFAULTS                                                            \
	{                                                                                      \
		.special_values = 0xffff,                                                      \
	}

/* ---- descriptors as items (protocol/libraries/items.h) ---- */

/* The words of each: struct cublaslt_layout, struct cublaslt_matmul_words, struct
 * cublaslt_transform. */
enum cublaslt_item {
	CUBLASLT_ITEM_LAYOUT = 1,
	CUBLASLT_ITEM_MATMUL = 2,
	CUBLASLT_ITEM_TRANSFORM = 3,
};

/* Behind struct cublaslt_layout where that is grouped. The varying part has the addresses that
 * are not NULL. */
struct cublaslt_group_words {
	int32_t shape_width, ld_width;
	uint8_t alignments[3]; /* library_alignment() of each */
	uint8_t reserved;
};
_Static_assert(sizeof(struct cublaslt_group_words) == 12, "");

/* The varying part has the addresses that are not NULL: in the order of enum cublaslt_pointer,
 * then that of the emulation. `emulation` is left out where there is none and nothing behind
 * it. */
struct cublaslt_matmul_words {
	struct cublaslt_matmul desc;
	uint8_t alignments[CUBLASLT_POINTERS]; /* library_alignment() of each */
	uint8_t bit_count;		       /* the same of the emulation's */
	uint8_t reserved[3];
	struct cublaslt_emulation emulation; /* where `present`; its bit_count is 0 */
	struct cublaslt_matmul_more more;    /* where it is not what a new descriptor says */
};
_Static_assert(sizeof(struct cublaslt_matmul_words) == 184, "");

/* Where alpha and beta lie, by a descriptor's pointer mode. */
static inline enum library_place cublaslt_alpha(int32_t mode)
{
	return mode == CUBLASLT_POINTER_MODE_HOST ? LIBRARY_HOST : LIBRARY_DEVICE;
}

static inline enum library_place cublaslt_beta(int32_t mode)
{
	switch (mode) {
	case CUBLASLT_POINTER_MODE_HOST:
	case CUBLASLT_POINTER_MODE_ALPHA_DEVICE_VECTOR_BETA_HOST: return LIBRARY_HOST;
	case CUBLASLT_POINTER_MODE_ALPHA_DEVICE_VECTOR_BETA_ZERO: return LIBRARY_NOWHERE;
	default: return LIBRARY_DEVICE;
	}
}

/* ---- frames of what is asked about algorithms ---- */

enum cublaslt_matrix { CUBLASLT_A, CUBLASLT_B, CUBLASLT_C, CUBLASLT_D, CUBLASLT_MATRICES };

/* A product as it stands, with no address in it. */
struct cublaslt_problem {
	uint32_t major;	  /* of the library that the app asked for */
	uint32_t layouts; /* bit i: matrix i has a layout */
	struct cublaslt_matmul desc;
	struct cublaslt_layout layout[CUBLASLT_MATRICES];
	struct cublaslt_emulation emulation; /* bit_count: its alignment */
};
_Static_assert(sizeof(struct cublaslt_problem) == 376, "");

#define CUBLASLT_ALGO_WORDS 8

/* The answers of the calls below are kept, refusals too, unless they are LIBRARY_PASSING. */
struct wire_cublasLtMatmulAlgoGetHeuristic {
	struct cublaslt_problem problem;
	struct cublaslt_preference preference;
	uint8_t pointers[CUBLASLT_POINTERS]; /* library_alignment() of each */
	uint32_t wanted;
	uint64_t algo[CUBLASLT_ALGO_WORDS]; /* of a search that is limited by it */
};
#define CUBLASLT_RESULTS_MAX 20 /* as many as an answer holds */
struct wire_cublasLtMatmulAlgoGetHeuristic_reply {
	struct library_reply first;
	uint64_t count; /* so many cublasLtMatmulHeuristicResult_t behind it */
};

struct wire_cublasLtMatmulAlgoCheck {
	struct cublaslt_problem problem;
	uint8_t pointers[CUBLASLT_POINTERS];
	uint32_t reserved;
	uint64_t algo[CUBLASLT_ALGO_WORDS];
};
struct wire_cublasLtMatmulAlgoCheck_reply {
	struct library_reply first;
	cublasLtMatmulHeuristicResult_t result;
};

/* The same questions, of a stream whose context has a part of the device, or with what older
 * agents do not know. An address stands for its alignment, as a number. */
struct cublaslt_more {
	struct cublaslt_matmul_more desc;
	struct cublaslt_group group[CUBLASLT_MATRICES];
	uint32_t grouped; /* bit i: matrix i has a group */
	uint32_t reserved;
	struct cublaslt_preference_more preference;
	uint64_t stream; /* CUBLASLT_NO_STREAM: of the device */
};
_Static_assert(sizeof(struct cublaslt_more) == 184, "");
#define CUBLASLT_NO_STREAM UINT64_MAX
struct wire_cublasLtMatmulAlgoGetHeuristicForStream {
	struct wire_cublasLtMatmulAlgoGetHeuristic plain;
	struct cublaslt_more more;
};
#define wire_cublasLtMatmulAlgoGetHeuristicForStream_reply                                     \
	wire_cublasLtMatmulAlgoGetHeuristic_reply
struct wire_cublasLtMatmulAlgoCheckForStream {
	struct wire_cublasLtMatmulAlgoCheck plain;
	struct cublaslt_more more;
};
#define wire_cublasLtMatmulAlgoCheckForStream_reply wire_cublasLtMatmulAlgoCheck_reply

struct wire_cublasLtMatmulAlgoGetIds {
	uint32_t major;
	int32_t compute, scale, a, b, c, d;
	uint32_t wanted;
};
#define CUBLASLT_IDS_MAX 480
struct wire_cublasLtMatmulAlgoGetIds_reply {
	struct library_reply first;
	uint64_t count; /* so many int32_t behind it */
};

struct wire_cublasLtMatmulAlgoInit {
	uint32_t major;
	int32_t compute, scale, a, b, c, d, id;
};
struct wire_cublasLtMatmulAlgoInit_reply {
	struct library_reply first;
	uint64_t algo[CUBLASLT_ALGO_WORDS];
};

/* An attribute of an algorithm, of either kind: at most CUBLASLT_SLICE bytes from `from` on. */
#define CUBLASLT_SLICE 1920u
#define CUBLASLT_ATTRIBUTE_MAX 16384u /* the longest list that is asked of the library */
struct wire_cublasLtMatmulAlgoCapGetAttribute {
	uint32_t major;
	int32_t attribute;
	uint32_t bytes; /* that the app has room for */
	uint32_t from;
	uint64_t algo[CUBLASLT_ALGO_WORDS];
};
struct wire_cublasLtMatmulAlgoCapGetAttribute_reply {
	struct library_reply first;
	uint64_t written;
	uint32_t bytes; /* so many behind it */
	uint32_t reserved;
};
#define wire_cublasLtMatmulAlgoConfigGetAttribute wire_cublasLtMatmulAlgoCapGetAttribute
#define wire_cublasLtMatmulAlgoConfigGetAttribute_reply                                        \
	wire_cublasLtMatmulAlgoCapGetAttribute_reply

struct wire_cublasLtMatmulAlgoConfigSetAttribute {
	uint32_t major;
	int32_t attribute;
	uint64_t bytes;
	uint64_t algo[CUBLASLT_ALGO_WORDS];
	uint64_t value[CUBLASLT_ALGO_WORDS];
};
struct wire_cublasLtMatmulAlgoConfigSetAttribute_reply {
	struct library_reply first;
	uint64_t algo[CUBLASLT_ALGO_WORDS];
};

/* Opens the library. */
struct wire_cublasLtGetVersion {
	uint64_t major;
};
#define wire_cublasLtGetVersion_reply library_opened
/* library_opened.knows */
#define CUBLASLT_KNOWS_MORE 1u /* items and questions with what cuBLAS 13.2 has more */

struct wire_cublasLtHeuristicsCacheGetCapacity {
	uint64_t major;
};
struct wire_cublasLtHeuristicsCacheGetCapacity_reply {
	struct library_reply first;
	uint64_t capacity;
};
struct wire_cublasLtHeuristicsCacheSetCapacity {
	uint64_t major, capacity;
};
struct wire_cublasLtHeuristicsCacheSetCapacity_reply {
	struct library_reply first;
};

#endif
