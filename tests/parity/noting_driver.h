/* SPDX-License-Identifier: Apache-2.0
 *
 * A driver that notes what it was called with: functions for generated.c, which includes this
 * once.
 */
#ifndef VCUDA_TESTS_PARITY_NOTING_DRIVER_H
#define VCUDA_TESTS_PARITY_NOTING_DRIVER_H

#include <cuda.h>
#include <stdint.h>
#include <string.h>

static CUfunc_cache config_value;
static CUresult set_config(CUfunc_cache config)
{
	config_value = config;
	return CUDA_ERROR_UNSUPPORTED_LIMIT;
}

static CUresult occupancy(int *blocks, CUfunction function, int block, size_t shared)
{
	assert_ptr_equal(function, (CUfunction)0x88);
	*blocks = block + (int)shared;
	return CUDA_SUCCESS;
}

static CUresult encode(CUtensorMap *map, CUtensorMapDataType type, cuuint32_t rank,
	void *address, const cuuint64_t *dim, const cuuint64_t *strides, const cuuint32_t *box,
	const cuuint32_t *element, CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle,
	CUtensorMapL2promotion promotion, CUtensorMapFloatOOBfill fill)
{
	assert_int_equal((uintptr_t)map % _Alignof(CUtensorMap), 0);
	assert_int_equal(type, CU_TENSOR_MAP_DATA_TYPE_FLOAT32);
	assert_int_equal(rank, 3);
	assert_ptr_equal(address, (void *)0x70000);
	assert_true(dim[0] == 64 && dim[2] == 1ull << 33);
	assert_true(strides[1] == 512);
	assert_true(box[2] == 4 && element[0] == 1);
	assert_true(!interleave && !swizzle && !promotion && !fill);
	memset(map, 0x5a, sizeof(*map));
	return CUDA_SUCCESS;
}

static CUresult set_attribute(
	CUstream stream, CUstreamAttrID attr, const CUstreamAttrValue *value)
{
	assert_ptr_equal(stream, (CUstream)0x99);
	assert_int_equal(attr, CU_LAUNCH_ATTRIBUTE_PRIORITY);
	assert_int_equal(value->priority, -3);
	return CUDA_SUCCESS;
}

static CUresult wait_value(
	CUstream stream, CUdeviceptr address, cuuint64_t value, unsigned flags)
{
	assert_null(stream);
	assert_true(address == 0x7000 && value == 1ull << 63 && !flags);
	return CUDA_SUCCESS;
}

#endif
