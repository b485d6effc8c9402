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

/* The attribute's place in the descriptor; NULL: no descriptor of that kind, or none of those.
 */
static void *find(const void *desc, enum cublaslt_kind kind, int number, size_t *bytes)
{
	const struct attribute *attributes = attributes_of(kind);

	if (!desc || *(const uint64_t *)desc != kind)
		return NULL;
	for (; attributes->bytes; attributes++)
		if (attributes->number == number) {
			*bytes = attributes->bytes;
			return (char *)(uintptr_t)desc + attributes->at;
		}
	return NULL;
}

cublasStatus_t cublaslt_attribute_set(
	void *desc, enum cublaslt_kind kind, int number, const void *from, size_t from_bytes)
{
	size_t bytes = 0;
	void *at = find(desc, kind, number, &bytes);

	if (!at || !from || from_bytes != bytes)
		return CUBLAS_STATUS_INVALID_VALUE;
	memcpy(at, from, bytes);
	return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublaslt_attribute_get(const void *desc, enum cublaslt_kind kind, int number,
	void *to, size_t to_bytes, size_t *written)
{
	size_t bytes = 0;
	const void *at = find(desc, kind, number, &bytes);

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
	if (size < sizeof(desc))
		return CUBLAS_STATUS_ALLOC_FAILED;
	memcpy(matLayout, &desc, sizeof(desc));
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

	return desc && desc->kind == CUBLASLT_LAYOUT ? desc : NULL;
}

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
	if (size < sizeof(desc))
		return CUBLAS_STATUS_ALLOC_FAILED;
	memcpy(pref, &desc, sizeof(desc));
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

	return desc && desc->kind == CUBLASLT_PREFERENCE ? desc : NULL;
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
