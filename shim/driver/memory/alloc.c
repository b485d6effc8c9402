/* SPDX-License-Identifier: Apache-2.0
 *
 * cuMemAlloc and its relatives: memory.c does it.
 */
#include "shim/generated/cuda_hand.h"
#include "protocol/generated/cuda_ops.h"
#include "protocol/generated/cuda_wire.h"
#include "shim/driver/graph/capture.h"
#include "shim/driver/graph/graph_usage.h"
#include "shim/driver/graph/memory_node.h"
#include "shim/driver/context/context.h"
#include "shim/engine/engine.h"
#include "shim/driver/memory/managed/managed.h"
#include "shim/driver/memory/later.h"
#include "shim/driver/memory/memory.h"
#include "shim/driver/memory/pools/pool.h"
#include "shim/driver/memory/sharing/share.h"

/* Rows of pitched memory start at multiples of this: what NVIDIA's driver gives for every size.
 */
#define ALLOC_PITCH 512u

CUresult hand_cuMemAlloc_v2(CUdeviceptr *dptr, size_t bytesize)
{
	struct context *context = context_current();
	CUresult status;

	if (!dptr)
		return CUDA_ERROR_INVALID_VALUE;
	*dptr = 0; /* also where it fails, as natively */
	if (!context)
		return context_missing();
	status = capture_unsafe();
	if (status)
		return status;
	status = memory_alloc(context->device, bytesize, false, dptr);
	if (status == CUDA_ERROR_OUT_OF_MEMORY && later_all())
		status = memory_alloc(context->device, bytesize, false, dptr);
	return status;
}

CUresult hand_cuMemAllocPitch_v2(CUdeviceptr *dptr, size_t *pPitch, size_t WidthInBytes,
	size_t Height, unsigned int ElementSizeBytes)
{
	size_t pitch, bytes;
	CUresult status;

	if (dptr)
		*dptr = 0;
	if (pPitch)
		*pPitch = 0;
	status = context_missing();
	if (status)
		return status;
	if (!dptr || !pPitch ||
		(ElementSizeBytes != 4 && ElementSizeBytes != 8 && ElementSizeBytes != 16))
		return CUDA_ERROR_INVALID_VALUE;
	status = capture_unsafe();
	if (status)
		return status;
	if (!WidthInBytes || !Height)
		return CUDA_ERROR_INVALID_VALUE;
	if (WidthInBytes > SIZE_MAX - ALLOC_PITCH)
		return CUDA_ERROR_INVALID_VALUE;
	pitch = (WidthInBytes + ALLOC_PITCH - 1) & ~(size_t)(ALLOC_PITCH - 1);
	if (__builtin_mul_overflow(pitch, Height, &bytes))
		return CUDA_ERROR_INVALID_VALUE;
	status = hand_cuMemAlloc_v2(dptr, bytes);
	if (!status)
		*pPitch = pitch;
	return status;
}

CUresult hand_cuMemAllocManaged(CUdeviceptr *dptr, size_t bytesize, unsigned int flags)
{
	struct context *context = context_current();
	CUresult status;

	if (!dptr)
		return CUDA_ERROR_INVALID_VALUE;
	*dptr = 0;
	if (!bytesize || (flags != CU_MEM_ATTACH_GLOBAL && flags != CU_MEM_ATTACH_HOST))
		return CUDA_ERROR_INVALID_VALUE;
	if (!context)
		return context_missing();
	status = capture_unsafe();
	return status ? status : managed_alloc(context->home, bytesize, flags, dptr);
}

CUresult hand_cuMemFree_v2(CUdeviceptr dptr)
{
	struct managed_range managed;
	CUresult status;

	/* Of nothing, a context that is gone is told, and none at all is no mistake. */
	if (!dptr)
		return context_missing() == CUDA_ERROR_CONTEXT_IS_DESTROYED
			       ? CUDA_ERROR_CONTEXT_IS_DESTROYED
			       : CUDA_SUCCESS;
	status = capture_unsafe();
	if (status)
		return status;
	if (pool_free(dptr, &status))
		return status;
	if (graph_memory_free(dptr, GRAPH_USE_ANY, &status))
		return status;
	if (managed_find(dptr, &managed))
		return managed_free(dptr);
	if (share_close_pointer(dptr, &status))
		return status;
	return memory_free(dptr);
}

/* What was freed counts as free at once, as after a cudaFree that waits. */
CUresult hand_cuMemGetInfo_v2(size_t *free, size_t *total)
{
	struct context *context = context_current();
	struct shim_call call;
	const struct wire_cuMemGetInfo_v2_reply *reply;
	CUresult status;
	uint64_t kept;

	if (free)
		*free = 0;
	if (total)
		*total = 0;
	if (!context)
		return context_missing();
	status = memory_drain(context->device, &kept);
	if (status)
		return status;
	shim_begin(&call, OP_cuMemGetInfo_v2, sizeof(struct wire_cuMemGetInfo_v2));
	reply = shim_wait(&call, sizeof(*reply));
	if (reply && free)
		*free = reply->free + kept < reply->total ? reply->free + kept : reply->total;
	if (reply && total)
		*total = reply->total;
	return shim_end(&call);
}
