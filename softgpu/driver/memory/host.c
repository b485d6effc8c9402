/* SPDX-License-Identifier: Apache-2.0
 *
 * Pinned host memory.  Its device address is its own: what cuMemHostAlloc gives lies in the
 * window; registered memory lies elsewhere, where the interpreter looks when an address is not
 * in the window.
 */
#include "softgpu/driver/softgpu.h"

#include <stdlib.h>

#define ALLOC_FLAGS                                                                            \
	(CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP | CU_MEMHOSTALLOC_WRITECOMBINED)
#define REGISTER_FLAGS                                                                         \
	(CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP |                          \
		CU_MEMHOSTREGISTER_IOMEMORY | CU_MEMHOSTREGISTER_READ_ONLY)

static void *pointer(uint64_t address)
{
	return (void *)(uintptr_t)address;
}

CUresult cuMemHostAlloc(void **pp, size_t bytesize, unsigned int Flags)
{
	struct CUctx_st *context;
	uint64_t address;
	CUresult ret = soft_context_current(&context);

	if (ret)
		return ret;
	if (!pp || !bytesize || Flags & ~(unsigned)ALLOC_FLAGS)
		return CUDA_ERROR_INVALID_VALUE;
	ret = memory_allocate(
		context, context->device, bytesize, PAGE, BLOCK_HOST, NULL, &address);
	if (ret)
		return ret;
	pthread_rwlock_wrlock(&memory_lock);
	((struct block *)ranges_find(&memory_blocks, address)->owner)->flags =
		Flags | CU_MEMHOSTALLOC_DEVICEMAP;
	pthread_rwlock_unlock(&memory_lock);
	*pp = pointer(address);
	return CUDA_SUCCESS;
}

CUresult cuMemAllocHost_v2(void **pp, size_t bytesize)
{
	return cuMemHostAlloc(pp, bytesize, 0);
}

CUresult cuMemFreeHost(void *p)
{
	struct CUctx_st *context;
	CUresult ret = soft_context_current(&context);

	if (ret)
		return ret;
	if (!p)
		return CUDA_SUCCESS;
	queue_drain(context, 0);
	return memory_release((uintptr_t)p, BLOCK_HOST);
}

CUresult cuMemHostRegister_v2(void *p, size_t bytesize, unsigned int Flags)
{
	struct CUctx_st *context;
	struct registered *reg;
	uint64_t start = (uintptr_t)p, end;
	CUresult ret = soft_context_current(&context);

	if (ret)
		return ret;
	if (!p || !bytesize || Flags & ~(unsigned)REGISTER_FLAGS ||
		__builtin_add_overflow(start, bytesize, &end))
		return CUDA_ERROR_INVALID_VALUE;
	if (memory_in_window(start) || memory_in_window(end - 1))
		return memory_pinned(p, bytesize) ? CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED
						  : CUDA_ERROR_INVALID_VALUE;
	reg = calloc(1, sizeof(*reg));
	if (!reg)
		return CUDA_ERROR_OUT_OF_MEMORY;
	reg->start = start;
	reg->size = bytesize;
	reg->flags = Flags;
	reg->context = context;
	pthread_rwlock_wrlock(&memory_lock);
	if (!ranges_free(&memory_registered, start, bytesize))
		ret = CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
	else if (!ranges_insert(&memory_registered, start, bytesize, reg))
		ret = CUDA_ERROR_OUT_OF_MEMORY;
	else if (ptx_outside_add(start, bytesize))
		context_ref(context);
	else {
		ranges_remove(&memory_registered, start);
		ret = CUDA_ERROR_OUT_OF_MEMORY;
	}
	pthread_rwlock_unlock(&memory_lock);
	if (ret)
		free(reg);
	return ret;
}

CUresult cuMemHostRegister(void *p, size_t bytesize, unsigned int Flags)
{
	return cuMemHostRegister_v2(p, bytesize, Flags);
}

CUresult cuMemHostUnregister(void *p)
{
	struct CUctx_st *context;
	struct range *range;
	CUresult ret = soft_context_current(&context);

	if (ret)
		return ret;
	if (!p)
		return CUDA_ERROR_INVALID_VALUE;
	queue_drain(context, 0);
	memory_lock_taking();
	range = ranges_find(&memory_registered, (uintptr_t)p);
	if (!range || range->start != (uintptr_t)p) {
		ret = CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
	} else {
		struct registered *reg = range->owner;

		ranges_remove(&memory_registered, reg->start);
		ptx_outside_remove(reg->start);
		context_unref(reg->context);
		free(reg);
	}
	memory_unlock_taking();
	return ret;
}

CUresult cuMemHostGetDevicePointer_v2(CUdeviceptr *pdptr, void *p, unsigned int Flags)
{
	uint64_t address = (uintptr_t)p;
	struct CUctx_st *context;
	struct range *range;
	CUresult ret = soft_context_current(&context);

	if (ret)
		return ret;
	if (!pdptr || !p || Flags)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_rwlock_wrlock(&memory_lock);
	range = ranges_find(&memory_blocks, address);
	if ((range && ((struct block *)range->owner)->kind == BLOCK_HOST) ||
		ranges_find(&memory_registered, address))
		*pdptr = address;
	else
		ret = CUDA_ERROR_INVALID_VALUE;
	pthread_rwlock_unlock(&memory_lock);
	return ret;
}

CUresult cuMemHostGetFlags(unsigned int *pFlags, void *p)
{
	struct CUctx_st *context;
	struct range *range;
	CUresult ret = soft_context_current(&context);

	if (ret)
		return ret;
	if (!pFlags || !p)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_rwlock_rdlock(&memory_lock);
	range = ranges_find(&memory_blocks, (uintptr_t)p);
	if (range && ((struct block *)range->owner)->kind == BLOCK_HOST) {
		*pFlags = ((struct block *)range->owner)->flags;
	} else {
		range = ranges_find(&memory_registered, (uintptr_t)p);
		if (range)
			*pFlags = ((struct registered *)range->owner)->flags;
		else
			ret = CUDA_ERROR_INVALID_VALUE;
	}
	pthread_rwlock_unlock(&memory_lock);
	return ret;
}
