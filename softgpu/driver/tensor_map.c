/* SPDX-License-Identifier: Apache-2.0
 *
 * Tensor maps: what a program says of a tensor, kept for the interpreter's bulk copies
 * (softgpu/ptx/bulk.h).  Tiles and columns of pixels (im2col); layouts that interleave and
 * elements of less than 8 bits are not served.
 */
#include "softgpu/driver/softgpu.h"
#include "softgpu/ptx/bulk.h"

#include <string.h>

#define DIM_MAX (UINT64_C(1) << 32)
#define STRIDE_MAX (UINT64_C(1) << 40)

_Static_assert(sizeof(CUtensorMap) == sizeof(struct tensor_map), "");

static const struct {
	uint8_t type, size;
} types[] = {
	[CU_TENSOR_MAP_DATA_TYPE_UINT8] = {BULK_U8, 1},
	[CU_TENSOR_MAP_DATA_TYPE_UINT16] = {BULK_U16, 2},
	[CU_TENSOR_MAP_DATA_TYPE_UINT32] = {BULK_U32, 4},
	[CU_TENSOR_MAP_DATA_TYPE_INT32] = {BULK_S32, 4},
	[CU_TENSOR_MAP_DATA_TYPE_UINT64] = {BULK_U64, 8},
	[CU_TENSOR_MAP_DATA_TYPE_INT64] = {BULK_S64, 8},
	[CU_TENSOR_MAP_DATA_TYPE_FLOAT16] = {BULK_F16, 2},
	[CU_TENSOR_MAP_DATA_TYPE_FLOAT32] = {BULK_F32, 4},
	[CU_TENSOR_MAP_DATA_TYPE_FLOAT64] = {BULK_F64, 8},
	[CU_TENSOR_MAP_DATA_TYPE_BFLOAT16] = {BULK_BF16, 2},
	[CU_TENSOR_MAP_DATA_TYPE_FLOAT32_FTZ] = {BULK_F32, 4},
	[CU_TENSOR_MAP_DATA_TYPE_TFLOAT32] = {BULK_F32, 4},
	[CU_TENSOR_MAP_DATA_TYPE_TFLOAT32_FTZ] = {BULK_F32, 4},
};

/* What tiles and columns have in common: the tensor, and how it lies in shared memory. */
struct tensor {
	CUtensorMapDataType type;
	cuuint32_t rank;
	void *address;
	const cuuint64_t *dims, *strides;
	const cuuint32_t *steps;
	CUtensorMapInterleave interleave;
	CUtensorMapSwizzle swizzle;
	CUtensorMapL2promotion promotion;
	CUtensorMapFloatOOBfill fill;
};

static CUresult describe(struct tensor_map *map, const struct tensor *t)
{
	if (!t->dims || !t->steps || t->rank < 1 || t->rank > 5 ||
		(t->rank > 1 && !t->strides) || (uintptr_t)t->address % 16 ||
		t->promotion > CU_TENSOR_MAP_L2_PROMOTION_L2_256B ||
		t->fill > CU_TENSOR_MAP_FLOAT_OOB_FILL_NAN_REQUEST_ZERO_FMA)
		return CUDA_ERROR_INVALID_VALUE;
	if (t->type >= sizeof(types) / sizeof(types[0]) ||
		t->interleave != CU_TENSOR_MAP_INTERLEAVE_NONE ||
		t->swizzle > CU_TENSOR_MAP_SWIZZLE_128B)
		return CUDA_ERROR_NOT_SUPPORTED;
	if (t->fill && types[t->type].type < BULK_F16)
		return CUDA_ERROR_INVALID_VALUE; /* whole numbers have no NaN */
	*map = (struct tensor_map){.magic = TENSOR_MAGIC,
		.type = types[t->type].type,
		.rank = (uint8_t)t->rank,
		.swizzle = (uint8_t)t->swizzle,
		.fill_nan = t->fill != CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE,
		.address = (uintptr_t)t->address};
	for (cuuint32_t k = 0; k < t->rank; k++) {
		if (!t->dims[k] || t->dims[k] > DIM_MAX || !t->steps[k] ||
			t->steps[k] > TENSOR_STRIDE_MAX)
			return CUDA_ERROR_INVALID_VALUE;
		if (k && (t->strides[k - 1] % 16 || t->strides[k - 1] >= STRIDE_MAX))
			return CUDA_ERROR_INVALID_VALUE;
		map->last[k] = (uint32_t)(t->dims[k] - 1);
		map->step[k] = (uint8_t)(k ? t->steps[k] : 1);
		if (k)
			map->stride[k - 1] = t->strides[k - 1];
	}
	return CUDA_SUCCESS;
}

/* Whether a row of so many elements can lie in shared memory as the tensor says. */
static bool row_fits(const struct tensor *t, cuuint32_t elements)
{
	const uint64_t row = elements * (uint64_t)types[t->type].size;

	return elements && elements <= TENSOR_BOX_MAX && row % 16 == 0 &&
	       (!t->swizzle || row <= 16u << t->swizzle);
}

CUresult cuTensorMapEncodeTiled(CUtensorMap *tensorMap, CUtensorMapDataType tensorDataType,
	cuuint32_t tensorRank, void *globalAddress, const cuuint64_t *globalDim,
	const cuuint64_t *globalStrides, const cuuint32_t *boxDim,
	const cuuint32_t *elementStrides, CUtensorMapInterleave interleave,
	CUtensorMapSwizzle swizzle, CUtensorMapL2promotion l2Promotion,
	CUtensorMapFloatOOBfill oobFill)
{
	const struct tensor t = {tensorDataType, tensorRank, globalAddress, globalDim,
		globalStrides, elementStrides, interleave, swizzle, l2Promotion, oobFill};
	struct tensor_map map;
	CUresult ret;

	if (!tensorMap || !boxDim)
		return CUDA_ERROR_INVALID_VALUE;
	ret = describe(&map, &t);
	if (ret)
		return ret;
	if (!row_fits(&t, boxDim[0]))
		return CUDA_ERROR_INVALID_VALUE;
	for (cuuint32_t k = 0; k < tensorRank; k++) {
		if (!boxDim[k] || boxDim[k] > TENSOR_BOX_MAX)
			return CUDA_ERROR_INVALID_VALUE;
		map.box[k] = (uint16_t)boxDim[k];
	}
	memcpy(tensorMap, &map, sizeof(map));
	return CUDA_SUCCESS;
}

CUresult cuTensorMapEncodeIm2col(CUtensorMap *tensorMap, CUtensorMapDataType tensorDataType,
	cuuint32_t tensorRank, void *globalAddress, const cuuint64_t *globalDim,
	const cuuint64_t *globalStrides, const int *pixelBoxLowerCorner,
	const int *pixelBoxUpperCorner, cuuint32_t channelsPerPixel, cuuint32_t pixelsPerColumn,
	const cuuint32_t *elementStrides, CUtensorMapInterleave interleave,
	CUtensorMapSwizzle swizzle, CUtensorMapL2promotion l2Promotion,
	CUtensorMapFloatOOBfill oobFill)
{
	/* The corners' bits less the sign, by rank. */
	static const uint8_t bits[] = {[3] = 15, [4] = 7, [5] = 4};
	const struct tensor t = {tensorDataType, tensorRank, globalAddress, globalDim,
		globalStrides, elementStrides, interleave, swizzle, l2Promotion, oobFill};
	struct tensor_map map;
	CUresult ret;

	if (!tensorMap || !pixelBoxLowerCorner || !pixelBoxUpperCorner || tensorRank < 3)
		return CUDA_ERROR_INVALID_VALUE;
	ret = describe(&map, &t);
	if (ret)
		return ret;
	if (!row_fits(&t, channelsPerPixel) || !pixelsPerColumn ||
		pixelsPerColumn > TENSOR_PIXELS_MAX)
		return CUDA_ERROR_INVALID_VALUE;
	for (cuuint32_t k = 0; k < tensorRank - 2; k++) {
		const int limit = 1 << bits[tensorRank];
		const int lower = pixelBoxLowerCorner[k], upper = pixelBoxUpperCorner[k];

		if (lower < -limit || lower >= limit || upper < -limit || upper >= limit ||
			lower > (int64_t)map.last[k + 1] + upper)
			return CUDA_ERROR_INVALID_VALUE;
		map.lower[k] = (int16_t)lower;
		map.upper[k] = (int16_t)upper;
	}
	map.im2col = true;
	map.box[0] = (uint16_t)channelsPerPixel;
	map.box[1] = (uint16_t)pixelsPerColumn;
	memcpy(tensorMap, &map, sizeof(map));
	return CUDA_SUCCESS;
}

CUresult cuTensorMapReplaceAddress(CUtensorMap *tensorMap, void *globalAddress)
{
	struct tensor_map map;

	if (!tensorMap || (uintptr_t)globalAddress % 16)
		return CUDA_ERROR_INVALID_VALUE;
	memcpy(&map, tensorMap, sizeof(map));
	if (map.magic != TENSOR_MAGIC)
		return CUDA_ERROR_INVALID_VALUE;
	map.address = (uintptr_t)globalAddress;
	memcpy(tensorMap, &map, sizeof(map));
	return CUDA_SUCCESS;
}
