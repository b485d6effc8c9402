/* SPDX-License-Identifier: Apache-2.0
 *
 * Launches as CUDA 3 and older made them, whose shape and parameters are state of the function,
 * and those on several devices at once.  Both end in the launches of launch.c.
 */
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "shim/driver/module/module.h"
#include "shim/engine/driver.h"
#include "shim/generated/cuda_hand.h"

#define PARAM_BYTES 4096 /* what a kernel's parameters took at the most before CUDA 12.1 */

/* One piece of memory: the function, when it is gone, frees it without a look (module.c). */
struct launch_old {
	unsigned block[3], shared;
	size_t bytes;
	unsigned char params[PARAM_BYTES];
};

/* The function's state, made at its first use. */
static CUresult launch_old_of(CUfunction f, struct launch_old **out)
{
	struct function *function;
	CUresult status = function_find(f, &function);
	struct launch_old *made, *none = NULL;

	if (status)
		return status;
	*out = atomic_load(&function->old);
	if (*out)
		return CUDA_SUCCESS;
	made = calloc(1, sizeof(*made));
	if (!made)
		return CUDA_ERROR_OUT_OF_MEMORY;
	if (atomic_compare_exchange_strong(&function->old, &none, made)) {
		*out = made;
	} else {
		free(made);
		*out = none;
	}
	return CUDA_SUCCESS;
}

CUresult hand_cuFuncSetBlockShape(CUfunction hfunc, int x, int y, int z)
{
	struct launch_old *old;
	CUresult status = launch_old_of(hfunc, &old);

	if (status)
		return status;
	if (x <= 0 || y <= 0 || z <= 0)
		return CUDA_ERROR_INVALID_VALUE;
	old->block[0] = (unsigned)x;
	old->block[1] = (unsigned)y;
	old->block[2] = (unsigned)z;
	return CUDA_SUCCESS;
}

CUresult hand_cuFuncSetSharedSize(CUfunction hfunc, unsigned int bytes)
{
	struct launch_old *old;
	CUresult status = launch_old_of(hfunc, &old);

	if (!status)
		old->shared = bytes;
	return status;
}

CUresult hand_cuParamSetSize(CUfunction hfunc, unsigned int numbytes)
{
	struct launch_old *old;
	CUresult status = launch_old_of(hfunc, &old);

	if (status)
		return status;
	if (numbytes > PARAM_BYTES)
		return CUDA_ERROR_INVALID_VALUE;
	old->bytes = numbytes;
	return CUDA_SUCCESS;
}

CUresult hand_cuParamSetv(CUfunction hfunc, int offset, void *ptr, unsigned int numbytes)
{
	struct launch_old *old;
	CUresult status = launch_old_of(hfunc, &old);

	if (status)
		return status;
	if (!ptr || offset < 0 || offset > PARAM_BYTES ||
		numbytes > PARAM_BYTES - (unsigned)offset)
		return CUDA_ERROR_INVALID_VALUE;
	memcpy(old->params + offset, ptr, numbytes);
	return CUDA_SUCCESS;
}

CUresult hand_cuLaunchGridAsync(CUfunction f, int grid_width, int grid_height, CUstream hStream)
{
	struct launch_old *old;
	CUresult status = launch_old_of(f, &old);
	void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, NULL, CU_LAUNCH_PARAM_BUFFER_SIZE,
		NULL, CU_LAUNCH_PARAM_END};

	if (status)
		return status;
	if (grid_width <= 0 || grid_height <= 0)
		return CUDA_ERROR_INVALID_VALUE;
	extra[1] = old->params;
	extra[3] = &old->bytes;
	return hand_cuLaunchKernel(f, (unsigned)grid_width, (unsigned)grid_height, 1,
		old->block[0], old->block[1], old->block[2], old->shared, hStream, NULL, extra);
}

/* ---- on several devices ---- */

/* Every stream of the list waits for what is on all the others. */
static CUresult launch_meet(const CUDA_LAUNCH_PARAMS *list, unsigned count)
{
	CUresult status = CUDA_SUCCESS;

	for (unsigned i = 0; !status && i < count; i++) {
		CUcontext context;
		CUevent event;

		status = cuStreamGetCtx(list[i].hStream, &context);
		if (!status)
			status = cuCtxPushCurrent(context);
		if (status)
			return status;
		status = cuEventCreate(&event, CU_EVENT_DISABLE_TIMING);
		if (!status) {
			status = cuEventRecord(event, list[i].hStream);
			for (unsigned j = 0; !status && j < count; j++)
				if (j != i)
					status = cuStreamWaitEvent(list[j].hStream, event, 0);
			cuEventDestroy(event);
		}
		cuCtxPopCurrent(&context);
	}
	return status;
}

static bool launch_alike(const CUDA_LAUNCH_PARAMS *a, const CUDA_LAUNCH_PARAMS *b)
{
	return a->gridDimX == b->gridDimX && a->gridDimY == b->gridDimY &&
	       a->gridDimZ == b->gridDimZ && a->blockDimX == b->blockDimX &&
	       a->blockDimY == b->blockDimY && a->blockDimZ == b->blockDimZ &&
	       a->sharedMemBytes == b->sharedMemBytes;
}

/* As CUDA wants them: named streams, a device each, the same shape everywhere. */
static CUresult launch_list_check(const CUDA_LAUNCH_PARAMS *list, unsigned count)
{
	CUdevice device, other;

	for (unsigned i = 0; i < count; i++) {
		CUresult status;

		if (!list[i].hStream || list[i].hStream == CU_STREAM_LEGACY ||
			list[i].hStream == CU_STREAM_PER_THREAD)
			return CUDA_ERROR_INVALID_HANDLE;
		if (!launch_alike(&list[0], &list[i]))
			return CUDA_ERROR_INVALID_VALUE;
		status = cuStreamGetDevice(list[i].hStream, &device);
		for (unsigned j = 0; !status && j < i; j++) {
			status = cuStreamGetDevice(list[j].hStream, &other);
			if (!status && other == device)
				return CUDA_ERROR_INVALID_DEVICE;
		}
		if (status)
			return status;
	}
	return CUDA_SUCCESS;
}

CUresult hand_cuLaunchCooperativeKernelMultiDevice(
	CUDA_LAUNCH_PARAMS *launchParamsList, unsigned int numDevices, unsigned int flags)
{
	const unsigned known = CUDA_COOPERATIVE_LAUNCH_MULTI_DEVICE_NO_PRE_LAUNCH_SYNC |
			       CUDA_COOPERATIVE_LAUNCH_MULTI_DEVICE_NO_POST_LAUNCH_SYNC;
	CUresult status;

	if (!launchParamsList || !numDevices || flags & ~known)
		return CUDA_ERROR_INVALID_VALUE;
	status = launch_list_check(launchParamsList, numDevices);
	if (!status && !(flags & CUDA_COOPERATIVE_LAUNCH_MULTI_DEVICE_NO_PRE_LAUNCH_SYNC))
		status = launch_meet(launchParamsList, numDevices);
	for (unsigned i = 0; !status && i < numDevices; i++) {
		const CUDA_LAUNCH_PARAMS *p = &launchParamsList[i];
		CUcontext context;

		/* A kernel without a context takes that of the stream. */
		status = cuStreamGetCtx(p->hStream, &context);
		if (!status)
			status = cuCtxPushCurrent(context);
		if (status)
			break;
		status = cuLaunchCooperativeKernel(p->function, p->gridDimX, p->gridDimY,
			p->gridDimZ, p->blockDimX, p->blockDimY, p->blockDimZ,
			p->sharedMemBytes, p->hStream, p->kernelParams);
		cuCtxPopCurrent(&context);
	}
	if (!status && !(flags & CUDA_COOPERATIVE_LAUNCH_MULTI_DEVICE_NO_POST_LAUNCH_SYNC))
		status = launch_meet(launchParamsList, numDevices);
	return status;
}
