/* SPDX-License-Identifier: Apache-2.0
 *
 * Descriptors: made, initialised where the app has room for them, set and read.  An attribute
 * is a number of bytes at a place in the descriptor, by a table for each kind; whether values
 * go together is the agent's library's to say, when they are used.
 */
#include <stdlib.h>
#include <string.h>

#include "shim/libraries/cublaslt/forms.h"
#include "shim/generated/cublaslt_hand.h"
#include "shim/libraries/cublaslt/cublaslt.h"

struct attribute {
	uint8_t number, bytes;
	uint16_t at;
};

#define FIELD(NUMBER, STRUCT, MEMBER)                                                          \
	{NUMBER, sizeof(((struct STRUCT *)0)->MEMBER), offsetof(struct STRUCT, MEMBER)}

#define LAYOUT(NAME, MEMBER)                                                                   \
	FIELD(CUBLASLT_MATRIX_LAYOUT_##NAME, cublaslt_layout_desc, content.MEMBER)
#define GROUP(NAME, MEMBER)                                                                    \
	FIELD(CUBLASLT_GROUPED_MATRIX_LAYOUT_##NAME, cublaslt_layout_desc, group.MEMBER)
static const struct attribute layout_attributes[] = {
	LAYOUT(TYPE, type),
	LAYOUT(ORDER, order),
	LAYOUT(ROWS, rows),
	LAYOUT(COLS, cols),
	LAYOUT(LD, ld),
	LAYOUT(BATCH_COUNT, batch),
	LAYOUT(STRIDED_BATCH_OFFSET, batch_stride),
	LAYOUT(PLANE_OFFSET, plane),
	LAYOUT(BATCH_MODE, batch_mode),
#if VCUDA_ABI == 13
	GROUP(ROWS_ARRAY, at[0]),
	GROUP(COLS_ARRAY, at[1]),
	GROUP(LD_ARRAY, at[2]),
	GROUP(ROWS_COLS_ARRAY_INTEGER_WIDTH, shape_width),
	GROUP(LD_ARRAY_INTEGER_WIDTH, ld_width),
#endif
	{0},
};

#define MATMUL(NAME, MEMBER)                                                                   \
	FIELD(CUBLASLT_MATMUL_DESC_##NAME, cublaslt_matmul_desc, content.MEMBER)
#define ADDRESS(NAME, POINTER)                                                                 \
	FIELD(CUBLASLT_MATMUL_DESC_##NAME, cublaslt_matmul_desc, pointers[POINTER])
static const struct attribute matmul_attributes[] = {
	MATMUL(COMPUTE_TYPE, compute),
	MATMUL(SCALE_TYPE, scale),
	MATMUL(POINTER_MODE, pointer_mode),
	MATMUL(TRANSA, transa),
	MATMUL(TRANSB, transb),
	MATMUL(TRANSC, transc),
	MATMUL(FILL_MODE, fill),
	MATMUL(EPILOGUE, epilogue),
	ADDRESS(BIAS_POINTER, CUBLASLT_BIAS),
	MATMUL(BIAS_BATCH_STRIDE, bias_stride),
	ADDRESS(EPILOGUE_AUX_POINTER, CUBLASLT_AUX),
	MATMUL(EPILOGUE_AUX_LD, aux_ld),
	MATMUL(EPILOGUE_AUX_BATCH_STRIDE, aux_stride),
	MATMUL(ALPHA_VECTOR_BATCH_STRIDE, alpha_stride),
	MATMUL(SM_COUNT_TARGET, sm_count),
	ADDRESS(A_SCALE_POINTER, CUBLASLT_SCALE_A),
	ADDRESS(B_SCALE_POINTER, CUBLASLT_SCALE_B),
	ADDRESS(C_SCALE_POINTER, CUBLASLT_SCALE_C),
	ADDRESS(D_SCALE_POINTER, CUBLASLT_SCALE_D),
	ADDRESS(AMAX_D_POINTER, CUBLASLT_AMAX_D),
	MATMUL(EPILOGUE_AUX_DATA_TYPE, aux_type),
	ADDRESS(EPILOGUE_AUX_SCALE_POINTER, CUBLASLT_AUX_SCALE),
	ADDRESS(EPILOGUE_AUX_AMAX_POINTER, CUBLASLT_AUX_AMAX),
	MATMUL(FAST_ACCUM, fast_accum),
	MATMUL(BIAS_DATA_TYPE, bias_type),
#if VCUDA_ABI == 12
	MATMUL(ATOMIC_SYNC_NUM_CHUNKS_D_ROWS, chunk_rows),
	MATMUL(ATOMIC_SYNC_NUM_CHUNKS_D_COLS, chunk_cols),
	ADDRESS(ATOMIC_SYNC_IN_COUNTERS_POINTER, CUBLASLT_IN_COUNTERS),
	ADDRESS(ATOMIC_SYNC_OUT_COUNTERS_POINTER, CUBLASLT_OUT_COUNTERS),
#endif
	MATMUL(A_SCALE_MODE, scale_a),
	MATMUL(B_SCALE_MODE, scale_b),
	MATMUL(C_SCALE_MODE, scale_c),
	MATMUL(D_SCALE_MODE, scale_d),
	MATMUL(EPILOGUE_AUX_SCALE_MODE, scale_aux),
	ADDRESS(D_OUT_SCALE_POINTER, CUBLASLT_D_OUT_SCALE),
	MATMUL(D_OUT_SCALE_MODE, scale_d_out),
#if VCUDA_ABI == 13
	FIELD(CUBLASLT_MATMUL_DESC_EMULATION_DESCRIPTOR, cublaslt_matmul_desc, emulation),
	FIELD(CUBLASLT_MATMUL_DESC_ALPHA_BATCH_STRIDE, cublaslt_matmul_desc, more.alpha_stride),
	FIELD(CUBLASLT_MATMUL_DESC_BETA_BATCH_STRIDE, cublaslt_matmul_desc, more.beta_stride),
	FIELD(CUBLASLT_MATMUL_DESC_BATCH_INVARIANCE_FLAGS, cublaslt_matmul_desc,
		more.invariance),
#endif
	{0},
};

#define TRANSFORM(NAME, MEMBER)                                                                \
	FIELD(CUBLASLT_MATRIX_TRANSFORM_DESC_##NAME, cublaslt_transform_desc, content.MEMBER)
static const struct attribute transform_attributes[] = {
	TRANSFORM(SCALE_TYPE, scale),
	TRANSFORM(POINTER_MODE, pointer_mode),
	TRANSFORM(TRANSA, transa),
	TRANSFORM(TRANSB, transb),
	{0},
};

#define PREFERENCE(NAME, MEMBER)                                                               \
	FIELD(CUBLASLT_MATMUL_PREF_##NAME, cublaslt_preference_desc, content.MEMBER)
#define AVERAGE(NAME, MEMBER)                                                                  \
	FIELD(CUBLASLT_MATMUL_PREF_GROUPED_AVERAGE_##NAME, cublaslt_preference_desc,           \
		more.average_##MEMBER)
#define AVERAGE_OF_D(NAME, MEMBER)                                                             \
	FIELD(CUBLASLT_MATMUL_PREF_GROUPED_DESC_D_AVERAGE_##NAME, cublaslt_preference_desc,    \
		more.average_##MEMBER)
static const struct attribute preference_attributes[] = {
	PREFERENCE(SEARCH_MODE, search_mode),
	PREFERENCE(MAX_WORKSPACE_BYTES, max_workspace),
	PREFERENCE(REDUCTION_SCHEME_MASK, reduction_mask),
	PREFERENCE(MIN_ALIGNMENT_A_BYTES, alignment[0]),
	PREFERENCE(MIN_ALIGNMENT_B_BYTES, alignment[1]),
	PREFERENCE(MIN_ALIGNMENT_C_BYTES, alignment[2]),
	PREFERENCE(MIN_ALIGNMENT_D_BYTES, alignment[3]),
	PREFERENCE(MAX_WAVES_COUNT, max_waves),
	PREFERENCE(IMPL_MASK, impl_mask),
#if VCUDA_ABI == 13
	AVERAGE(REDUCTION_DIM, k),
	AVERAGE_OF_D(ROWS, rows),
	AVERAGE_OF_D(COLS, cols),
#endif
	{0},
};

#if VCUDA_ABI == 13
#define EMULATION(NAME, MEMBER)                                                                \
	FIELD(CUBLASLT_EMULATION_DESC_##NAME, cublaslt_emulation_desc, content.MEMBER)
static const struct attribute emulation_attributes[] = {
	EMULATION(STRATEGY, strategy),
	EMULATION(SPECIAL_VALUES_SUPPORT, special_values),
	EMULATION(FIXEDPOINT_MANTISSA_CONTROL, mantissa_control),
	EMULATION(FIXEDPOINT_MAX_MANTISSA_BIT_COUNT, max_bits),
	EMULATION(FIXEDPOINT_MANTISSA_BIT_OFFSET, bit_offset),
	EMULATION(FIXEDPOINT_MANTISSA_BIT_COUNT_POINTER, bit_count),
	{0},
};
#endif

static const struct attribute *attributes_of(enum cublaslt_kind kind)
{
	static const struct attribute none[] = {{0}};

	switch (kind) {
	case CUBLASLT_LAYOUT: return layout_attributes;
	case CUBLASLT_MATMUL: return matmul_attributes;
	case CUBLASLT_TRANSFORM: return transform_attributes;
	case CUBLASLT_PREFERENCE: return preference_attributes;
#if VCUDA_ABI == 13
	case CUBLASLT_EMULATION: return emulation_attributes;
#endif
	default: return none;
	}
}

/* A kind that can say more: as what, and where that lies. */
static const struct longer {
	enum cublaslt_kind plain, longer;
	uint16_t from, bytes;
} longer[] = {
	{CUBLASLT_LAYOUT, CUBLASLT_GROUPED_LAYOUT, CUBLASLT_LAYOUT_BYTES,
		sizeof(struct cublaslt_group)},
	{CUBLASLT_PREFERENCE, CUBLASLT_GROUPED_PREFERENCE, CUBLASLT_PREFERENCE_BYTES,
		sizeof(struct cublaslt_preference_more)},
};

static const struct longer *longer_of(enum cublaslt_kind kind)
{
	for (size_t i = 0; i < sizeof(longer) / sizeof(longer[0]); i++)
		if (longer[i].plain == kind)
			return &longer[i];
	return NULL;
}

/* The attribute's place in the descriptor; NULL: no descriptor of that kind, or none of those.
 * One that says more says so from when it is set: until then zeros are read. */
static void *find(void *desc, enum cublaslt_kind kind, int number, size_t *bytes, bool set)
{
	static const uint64_t nothing;
	const struct attribute *attributes = attributes_of(kind);
	const struct longer *more = longer_of(kind);
	uint64_t is = desc ? *(const uint64_t *)desc : 0;

	if (is != kind && (!more || is != more->longer))
		return NULL;
	for (; attributes->bytes && attributes->number != number; attributes++)
		;
	if (!attributes->bytes)
		return NULL;
	*bytes = attributes->bytes;
	if (!more || is == more->longer || attributes->at < more->from)
		return (char *)desc + attributes->at;
	if (!set)
		return (void *)(uintptr_t)&nothing;
	memset((char *)desc + more->from, 0, more->bytes);
	*(uint64_t *)desc = more->longer;
	return (char *)desc + attributes->at;
}

cublasStatus_t cublaslt_attribute_set(
	void *desc, enum cublaslt_kind kind, int number, const void *from, size_t from_bytes)
{
	size_t bytes = 0;
	void *at = find(desc, kind, number, &bytes, from != NULL);

	if (!at || !from || from_bytes != bytes)
		return CUBLAS_STATUS_INVALID_VALUE;
	memcpy(at, from, bytes);
	return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublaslt_attribute_get(const void *desc, enum cublaslt_kind kind, int number,
	void *to, size_t to_bytes, size_t *written)
{
	size_t bytes = 0;
	const void *at = find((void *)(uintptr_t)desc, kind, number, &bytes, false);

	if (!at || (to_bytes ? !to || to_bytes != bytes : !written))
		return CUBLAS_STATUS_INVALID_VALUE;
	if (to_bytes)
		memcpy(to, at, bytes);
	if (written)
		*written = bytes;
	return CUBLAS_STATUS_SUCCESS;
}

/* ---- layouts ---- */

cublasStatus_t hand_cublasLtMatrixLayoutInit_internal(cublasLtMatrixLayout_t matLayout,
	size_t size, cudaDataType type, uint64_t rows, uint64_t cols, int64_t ld)
{
	struct cublaslt_layout_desc desc = {
		.kind = CUBLASLT_LAYOUT,
		.content = {.type = (uint32_t)type,
			.rows = rows,
			.cols = cols,
			.ld = ld,
			.batch = 1},
	};

	if (!matLayout)
		return CUBLAS_STATUS_INVALID_VALUE;
	if (size < CUBLASLT_LAYOUT_BYTES)
		return CUBLAS_STATUS_ALLOC_FAILED;
	memcpy(matLayout, &desc, CUBLASLT_LAYOUT_BYTES);
	return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t hand_cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t *matLayout,
	cudaDataType type, uint64_t rows, uint64_t cols, int64_t ld)
{
	if (!matLayout)
		return CUBLAS_STATUS_INVALID_VALUE;
	*matLayout = calloc(1, sizeof(**matLayout));
	if (!*matLayout)
		return CUBLAS_STATUS_ALLOC_FAILED;
	return hand_cublasLtMatrixLayoutInit_internal(
		*matLayout, sizeof(**matLayout), type, rows, cols, ld);
}

const struct cublaslt_layout_desc *cublaslt_layout_of(cublasLtMatrixLayout_t layout)
{
	const struct cublaslt_layout_desc *desc = (const void *)layout;

	return desc && (desc->kind == CUBLASLT_LAYOUT || desc->kind == CUBLASLT_GROUPED_LAYOUT)
		       ? desc
		       : NULL;
}

#if VCUDA_ABI == 13

cublasStatus_t hand_cublasLtGroupedMatrixLayoutInit_internal(cublasLtMatrixLayout_t matLayout,
	size_t size, cudaDataType type, int groupCount, const void *rows_array,
	const void *cols_array, const void *ld_array)
{
	struct cublaslt_layout_desc desc = {
		.kind = CUBLASLT_GROUPED_LAYOUT,
		.content = {.type = (uint32_t)type,
			.batch = groupCount,
			.batch_mode = CUBLASLT_BATCH_MODE_GROUPED},
		.group = {.at = {(uintptr_t)rows_array, (uintptr_t)cols_array,
				  (uintptr_t)ld_array}},
	};

	if (!matLayout)
		return CUBLAS_STATUS_INVALID_VALUE;
	if (size < sizeof(desc))
		return CUBLAS_STATUS_ALLOC_FAILED;
	memcpy(matLayout, &desc, sizeof(desc));
	return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t hand_cublasLtGroupedMatrixLayoutCreate(cublasLtMatrixLayout_t *matLayout,
	cudaDataType type, int groupCount, const void *rows_array, const void *cols_array,
	const void *ld_array)
{
	if (!matLayout)
		return CUBLAS_STATUS_INVALID_VALUE;
	*matLayout = calloc(1, sizeof(**matLayout));
	if (!*matLayout)
		return CUBLAS_STATUS_ALLOC_FAILED;
	return hand_cublasLtGroupedMatrixLayoutInit_internal(*matLayout, sizeof(**matLayout),
		type, groupCount, rows_array, cols_array, ld_array);
}

#endif

/* ---- products ---- */

cublasStatus_t hand_cublasLtMatmulDescInit_internal(cublasLtMatmulDesc_t matmulDesc,
	size_t size, cublasComputeType_t computeType, cudaDataType_t scaleType)
{
	struct cublaslt_matmul_desc desc = {
		.kind = CUBLASLT_MATMUL,
		.content = {.compute = computeType,
			.scale = (int32_t)scaleType,
			.fill = CUBLASLT_FILL_FULL,
			.epilogue = CUBLASLT_EPILOGUE_DEFAULT,
			.aux_type = -1,
			.bias_type = -1},
		.more = CUBLASLT_MATMUL_MORE_DEFAULTS,
	};

	if (!matmulDesc)
		return CUBLAS_STATUS_INVALID_VALUE;
	if (size < sizeof(desc))
		return CUBLAS_STATUS_ALLOC_FAILED;
	memcpy(matmulDesc, &desc, sizeof(desc));
	return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t hand_cublasLtMatmulDescCreate(cublasLtMatmulDesc_t *matmulDesc,
	cublasComputeType_t computeType, cudaDataType_t scaleType)
{
	if (!matmulDesc)
		return CUBLAS_STATUS_INVALID_VALUE;
	*matmulDesc = calloc(1, sizeof(**matmulDesc));
	if (!*matmulDesc)
		return CUBLAS_STATUS_ALLOC_FAILED;
	return hand_cublasLtMatmulDescInit_internal(
		*matmulDesc, sizeof(**matmulDesc), computeType, scaleType);
}

const struct cublaslt_matmul_desc *cublaslt_matmul_of(cublasLtMatmulDesc_t matmulDesc)
{
	const struct cublaslt_matmul_desc *desc = (const void *)matmulDesc;

	return desc && desc->kind == CUBLASLT_MATMUL ? desc : NULL;
}

/* ---- transforms ---- */

cublasStatus_t hand_cublasLtMatrixTransformDescInit_internal(
	cublasLtMatrixTransformDesc_t transformDesc, size_t size, cudaDataType scaleType)
{
	struct cublaslt_transform_desc desc = {
		.kind = CUBLASLT_TRANSFORM, .content = {.scale = (int32_t)scaleType}};

	if (!transformDesc)
		return CUBLAS_STATUS_INVALID_VALUE;
	if (size < sizeof(desc))
		return CUBLAS_STATUS_ALLOC_FAILED;
	memcpy(transformDesc, &desc, sizeof(desc));
	return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t hand_cublasLtMatrixTransformDescCreate(
	cublasLtMatrixTransformDesc_t *transformDesc, cudaDataType scaleType)
{
	if (!transformDesc)
		return CUBLAS_STATUS_INVALID_VALUE;
	*transformDesc = calloc(1, sizeof(**transformDesc));
	if (!*transformDesc)
		return CUBLAS_STATUS_ALLOC_FAILED;
	return hand_cublasLtMatrixTransformDescInit_internal(
		*transformDesc, sizeof(**transformDesc), scaleType);
}

const struct cublaslt_transform_desc *cublaslt_transform_of(
	cublasLtMatrixTransformDesc_t transformDesc)
{
	const struct cublaslt_transform_desc *desc = (const void *)transformDesc;

	return desc && desc->kind == CUBLASLT_TRANSFORM ? desc : NULL;
}

/* ---- preferences ---- */

cublasStatus_t hand_cublasLtMatmulPreferenceInit_internal(
	cublasLtMatmulPreference_t pref, size_t size)
{
	struct cublaslt_preference_desc desc = {
		.kind = CUBLASLT_PREFERENCE, .content = CUBLASLT_PREFERENCE_DEFAULTS};

	if (!pref)
		return CUBLAS_STATUS_INVALID_VALUE;
	if (size < CUBLASLT_PREFERENCE_BYTES)
		return CUBLAS_STATUS_ALLOC_FAILED;
	memcpy(pref, &desc, CUBLASLT_PREFERENCE_BYTES);
	return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t hand_cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t *pref)
{
	if (!pref)
		return CUBLAS_STATUS_INVALID_VALUE;
	*pref = calloc(1, sizeof(**pref));
	if (!*pref)
		return CUBLAS_STATUS_ALLOC_FAILED;
	return hand_cublasLtMatmulPreferenceInit_internal(*pref, sizeof(**pref));
}

const struct cublaslt_preference_desc *cublaslt_preference_of(cublasLtMatmulPreference_t pref)
{
	const struct cublaslt_preference_desc *desc = (const void *)pref;

	return desc && (desc->kind == CUBLASLT_PREFERENCE ||
			       desc->kind == CUBLASLT_GROUPED_PREFERENCE)
		       ? desc
		       : NULL;
}

/* ---- emulation ---- */

#if VCUDA_ABI == 13

cublasStatus_t hand_cublasLtEmulationDescInit_internal(
	cublasLtEmulationDesc_t emulationDesc, size_t size)
{
	struct cublaslt_emulation_desc desc = {
		.kind = CUBLASLT_EMULATION, .content = CUBLASLT_EMULATION_DEFAULTS};

	if (!emulationDesc)
		return CUBLAS_STATUS_INVALID_VALUE;
	if (size < sizeof(desc))
		return CUBLAS_STATUS_ALLOC_FAILED;
	memcpy(emulationDesc, &desc, sizeof(desc));
	return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t hand_cublasLtEmulationDescCreate(cublasLtEmulationDesc_t *emulationDesc)
{
	if (!emulationDesc)
		return CUBLAS_STATUS_INVALID_VALUE;
	*emulationDesc = calloc(1, sizeof(**emulationDesc));
	if (!*emulationDesc)
		return CUBLAS_STATUS_ALLOC_FAILED;
	return hand_cublasLtEmulationDescInit_internal(*emulationDesc, sizeof(**emulationDesc));
}

#endif
