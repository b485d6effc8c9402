/* SPDX-License-Identifier: Apache-2.0
 *
 * What is known about an address.
 */
#include "softgpu/driver/softgpu.h"

#include <string.h>

/* Copied out under memory_lock, so that the answers fit together. */
struct known {
	bool found;
	CUmemorytype type;
	uint64_t start, address,
		host; /* device address and host address, 0 where there is none */
	size_t size;
	struct CUctx_st *context;
	struct CUmemPoolHandle_st *pool;
	int ordinal;
	unsigned long long id;
	CUmemAccess_flags access;
	bool managed; /* a variable of a module */
};

static bool know_block(const struct block *block, uint64_t address, struct known *known)
{
	if (address - block->start >= block->size)
		return false;
	*known = (struct known){
		.found = true,
		.type = block->kind == BLOCK_DEVICE ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_HOST,
		.start = block->start,
		.address = address,
		.host = block->kind == BLOCK_HOST ? address : 0,
		.size = block->size,
		.context = block->context,
		.pool = block->pool,
		.ordinal = block->device->ordinal,
		.id = block->id,
		.access = CU_MEM_ACCESS_FLAGS_PROT_READWRITE,
	};
	return true;
}

static struct known know(uint64_t address)
{
	struct known known = {0};
	struct range *range;

	pthread_rwlock_rdlock(&memory_lock);
	range = ranges_find(&memory_blocks, address);
	if (range && ((struct block *)range->owner)->kind != BLOCK_RESERVATION) {
		know_block(range->owner, address, &known);
	} else if (range && (range = ranges_find(&memory_mappings, address))) {
		const struct mapping *mapping = range->owner;
		const struct device *device = mapping->physical->device;

		known = (struct known){
			.found = true,
			.type = device ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_HOST,
			.start = mapping->start,
			.address = address,
			.host = device ? 0 : address,
			.size = mapping->size,
			.ordinal = device ? device->ordinal : 0,
			.id = mapping->physical->offset / GRANULE,
			.access = mapping_access(mapping),
		};
	} else if ((range = ranges_find(&memory_registered, address))) {
		const struct registered *reg = range->owner;

		known = (struct known){
			.found = true,
			.type = CU_MEMORYTYPE_HOST,
			.start = reg->start,
			.address = address,
			.host = address,
			.size = reg->size,
			.context = reg->context,
			.ordinal = reg->context->device->ordinal,
			.access = CU_MEM_ACCESS_FLAGS_PROT_READWRITE,
		};
	}
	pthread_rwlock_unlock(&memory_lock);
	known.managed = known.context && module_managed(known.context, address);
	return known;
}

static CUresult answer(const struct known *known, CUpointer_attribute attribute, void *data)
{
	switch (attribute) {
	case CU_POINTER_ATTRIBUTE_CONTEXT: *(CUcontext *)data = known->context; break;
	case CU_POINTER_ATTRIBUTE_MEMORY_TYPE: *(unsigned *)data = known->type; break;
	case CU_POINTER_ATTRIBUTE_DEVICE_POINTER: *(CUdeviceptr *)data = known->address; break;
	case CU_POINTER_ATTRIBUTE_HOST_POINTER:
		*(void **)data = (void *)(uintptr_t)known->host;
		break;
	case CU_POINTER_ATTRIBUTE_IS_MANAGED: *(bool *)data = known->managed; break;
	case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
	case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
	case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE: *(bool *)data = false; break;
	case CU_POINTER_ATTRIBUTE_BUFFER_ID:
	case CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID:
		*(unsigned long long *)data = known->id;
		break;
	case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
		*(int *)data = known->found ? known->ordinal : -2;
		break;
	case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
	case CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR: *(CUdeviceptr *)data = known->start; break;
	case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
	case CU_POINTER_ATTRIBUTE_MAPPING_SIZE: *(size_t *)data = known->size; break;
	case CU_POINTER_ATTRIBUTE_MAPPED: *(bool *)data = known->found; break;
	case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES: *(uint64_t *)data = 0; break;
	case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS: *(unsigned *)data = known->access; break;
	case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE: *(CUmemoryPool *)data = known->pool; break;
	default: return CUDA_ERROR_INVALID_VALUE;
	}
	return CUDA_SUCCESS;
}

CUresult cuPointerGetAttribute(void *data, CUpointer_attribute attribute, CUdeviceptr ptr)
{
	struct CUctx_st *context;
	struct known known;
	CUresult ret = soft_context_current(&context);

	if (ret)
		return ret;
	if (!data)
		return CUDA_ERROR_INVALID_VALUE;
	known = know(ptr);
	return known.found ? answer(&known, attribute, data) : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuPointerGetAttributes(unsigned int numAttributes, CUpointer_attribute *attributes,
	void **data, CUdeviceptr ptr)
{
	struct CUctx_st *context;
	struct known known;
	CUresult ret = soft_context_current(&context);

	if (ret)
		return ret;
	if (!attributes || !data)
		return CUDA_ERROR_INVALID_VALUE;
	known = know(ptr);
	for (unsigned i = 0; i < numAttributes && !ret; i++)
		ret = data[i] ? answer(&known, attributes[i], data[i])
			      : CUDA_ERROR_INVALID_VALUE;
	return ret;
}

/* Copies here are done before a call that must wait returns, so the flag changes nothing. */
CUresult cuPointerSetAttribute(
	const void *value, CUpointer_attribute attribute, CUdeviceptr ptr)
{
	struct CUctx_st *context;
	CUresult ret = soft_context_current(&context);

	if (ret)
		return ret;
	return value && attribute == CU_POINTER_ATTRIBUTE_SYNC_MEMOPS && know(ptr).found
		       ? CUDA_SUCCESS
		       : CUDA_ERROR_INVALID_VALUE;
}
