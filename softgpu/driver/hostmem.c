/* SPDX-License-Identifier: Apache-2.0
 *
 * Pinned host memory.  What cuMemHostAlloc gives lies in the window, so that its device address
 * is its own.  Registered memory lies elsewhere: if it is shared memory, the window gets a
 * second mapping of it when its device address is asked for; a kernel cannot reach private
 * memory.
 */
#include "softgpu/driver/softgpu.h"

#include <stdlib.h>
#include <sys/mman.h>

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
		return CUDA_ERROR_INVALID_VALUE;
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
	else
		context_ref(context);
	pthread_rwlock_unlock(&memory_lock);
	if (ret)
		free(reg);
	return ret;
}

CUresult cuMemHostRegister(void *p, size_t bytesize, unsigned int Flags)
{
	return cuMemHostRegister_v2(p, bytesize, Flags);
}

/* memory_lock_taking() was called. */
static void alias_drop(struct registered *reg)
{
	struct range *range;

	if (!reg->alias)
		return;
	range = ranges_find(&memory_blocks, reg->alias_start);
	if (range) {
		struct block *block = range->owner;

		ranges_remove(&memory_blocks, reg->alias_start);
		context_unref(block->context);
		free(block);
	}
	memory_decommit(reg->alias_start, reg->alias_span);
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
		alias_drop(reg);
		context_unref(reg->context);
		free(reg);
	}
	memory_unlock_taking();
	return ret;
}

/* A second mapping of the pages of REG; only shared memory can be mapped twice. */
static CUresult alias_make(struct registered *reg)
{
	uint64_t first = reg->start & ~(PAGE - 1);
	uint64_t span = ((reg->start + reg->size + PAGE - 1) & ~(PAGE - 1)) - first;
	uint64_t at;
	struct block *block = calloc(1, sizeof(*block));

	if (!block)
		return CUDA_ERROR_OUT_OF_MEMORY;
	at = ranges_gap(&memory_blocks, span, PAGE, memory_window.base + GRANULE,
		memory_window.base + memory_window.span);
	*block = (struct block){.kind = BLOCK_ALIAS,
		.start = at,
		.size = span,
		.span = span,
		.device = reg->context->device,
		.context = reg->context};
	if (!at || !ranges_insert(&memory_blocks, at, span, block)) {
		free(block);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	/* Old size 0: the mapping is doubled and not moved. */
	if (mremap(pointer(first), 0, span, MREMAP_MAYMOVE | MREMAP_FIXED, pointer(at)) ==
		MAP_FAILED) {
		ranges_remove(&memory_blocks, at);
		free(block);
		log_note("registered memory at 0x%llx is private: a kernel cannot reach it",
			(unsigned long long)reg->start);
		return CUDA_ERROR_NOT_SUPPORTED;
	}
	context_ref(reg->context);
	reg->alias_start = at;
	reg->alias_span = span;
	reg->alias = at + (reg->start - first);
	return CUDA_SUCCESS;
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
	if (range && ((struct block *)range->owner)->kind == BLOCK_HOST) {
		*pdptr = address;
	} else {
		range = ranges_find(&memory_registered, address);
		if (!range) {
			ret = CUDA_ERROR_INVALID_VALUE;
		} else {
			struct registered *reg = range->owner;

			if (!reg->alias)
				ret = alias_make(reg);
			if (!ret)
				*pdptr = reg->alias + (address - reg->start);
		}
	}
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
