/* SPDX-License-Identifier: Apache-2.0
 *
 * Tensor maps: what a program says of a tensor, kept for the interpreter's bulk copies
 * (softgpu/ptx/bulk.h).  Tiles only; layouts that interleave and elements of less than 8 bits
 * are not served.
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

static bool dimension_valid(uint64_t dim, uint32_t box, uint32_t step)
{
	return dim && dim <= DIM_MAX && box && box <= TENSOR_BOX_MAX && step &&
	       step <= TENSOR_STRIDE_MAX;
}

CUresult cuTensorMapEncodeTiled(CUtensorMap *tensorMap, CUtensorMapDataType tensorDataType,
	cuuint32_t tensorRank, void *globalAddress, const cuuint64_t *globalDim,
	const cuuint64_t *globalStrides, const cuuint32_t *boxDim,
	const cuuint32_t *elementStrides, CUtensorMapInterleave interleave,
	CUtensorMapSwizzle swizzle, CUtensorMapL2promotion l2Promotion,
	CUtensorMapFloatOOBfill oobFill)
{
	struct tensor_map map = {.magic = TENSOR_MAGIC};
	uint64_t row;

	if (!tensorMap || !globalDim || !boxDim || !elementStrides || tensorRank < 1 ||
		tensorRank > 5 || (tensorRank > 1 && !globalStrides) ||
		(uintptr_t)globalAddress % 16 ||
		l2Promotion > CU_TENSOR_MAP_L2_PROMOTION_L2_256B ||
		oobFill > CU_TENSOR_MAP_FLOAT_OOB_FILL_NAN_REQUEST_ZERO_FMA)
		return CUDA_ERROR_INVALID_VALUE;
	if (tensorDataType >= sizeof(types) / sizeof(types[0]) ||
		interleave != CU_TENSOR_MAP_INTERLEAVE_NONE ||
		swizzle > CU_TENSOR_MAP_SWIZZLE_128B)
		return CUDA_ERROR_NOT_SUPPORTED;
	row = boxDim[0] * (uint64_t)types[tensorDataType].size;
	if (row % 16 || (swizzle && row > 16u << swizzle))
		return CUDA_ERROR_INVALID_VALUE;
	for (cuuint32_t k = 0; k < tensorRank; k++) {
		if (!dimension_valid(globalDim[k], boxDim[k], elementStrides[k]))
			return CUDA_ERROR_INVALID_VALUE;
		if (k && (globalStrides[k - 1] % 16 || globalStrides[k - 1] >= STRIDE_MAX))
			return CUDA_ERROR_INVALID_VALUE;
		map.last[k] = (uint32_t)(globalDim[k] - 1);
		map.box[k] = (uint16_t)boxDim[k];
		map.step[k] = (uint8_t)(k ? elementStrides[k] : 1);
		if (k)
			map.stride[k - 1] = globalStrides[k - 1];
	}
	map.type = types[tensorDataType].type;
	map.rank = (uint8_t)tensorRank;
	map.swizzle = (uint8_t)swizzle;
	map.fill_nan = oobFill != CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE;
	map.address = (uintptr_t)globalAddress;
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
