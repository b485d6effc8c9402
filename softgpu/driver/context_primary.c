/* SPDX-License-Identifier: Apache-2.0
 *
 * Primary contexts: one a device, there while somebody has retained it.
 */
#include "softgpu/driver/context_core.h"

CUresult cuDevicePrimaryCtxRetain(CUcontext *pctx, CUdevice dev)
{
	struct device *device = device_get(dev);
	CUresult ret = CUDA_SUCCESS;

	if (!device_initialised())
		return CUDA_ERROR_NOT_INITIALIZED;
	if (!device)
		return CUDA_ERROR_INVALID_DEVICE;
	if (!pctx)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&context_lock);
	if (!device->primary) {
		ret = soft_context_new(device, device->primary_flags, &device->primary);
		if (!ret)
			device->primary->primary = true;
	}
	if (!ret) {
		device->primary_refs++;
		*pctx = device->primary;
	}
	pthread_mutex_unlock(&context_lock);
	return ret;
}

/* Takes the primary context off its device once it has no users, or at once; ends it. */
static CUresult primary_drop(CUdevice dev, bool reset)
{
	struct device *device = device_get(dev);
	struct CUctx_st *context = NULL;

	if (!device_initialised())
		return CUDA_ERROR_NOT_INITIALIZED;
	if (!device)
		return CUDA_ERROR_INVALID_DEVICE;
	pthread_mutex_lock(&context_lock);
	if (!reset && !device->primary_refs) {
		pthread_mutex_unlock(&context_lock);
		return CUDA_ERROR_INVALID_CONTEXT;
	}
	if (reset)
		device->primary_refs = 0;
	else
		device->primary_refs--;
	if (device->primary && !device->primary_refs) {
		context = device->primary;
		device->primary = NULL;
		soft_context_unlist(context);
	}
	pthread_mutex_unlock(&context_lock);
	if (context)
		soft_context_end(context);
	return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxRelease_v2(CUdevice dev)
{
	return primary_drop(dev, false);
}

CUresult cuDevicePrimaryCtxRelease(CUdevice dev)
{
	return primary_drop(dev, false);
}

CUresult cuDevicePrimaryCtxReset_v2(CUdevice dev)
{
	return primary_drop(dev, true);
}

CUresult cuDevicePrimaryCtxReset(CUdevice dev)
{
	return primary_drop(dev, true);
}

CUresult cuDevicePrimaryCtxSetFlags_v2(CUdevice dev, unsigned int flags)
{
	struct device *device = device_get(dev);

	if (!device_initialised())
		return CUDA_ERROR_NOT_INITIALIZED;
	if (!device)
		return CUDA_ERROR_INVALID_DEVICE;
	if (!soft_context_flags_valid(flags))
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&context_lock);
	device->primary_flags = flags;
	if (device->primary)
		device->primary->flags = flags;
	pthread_mutex_unlock(&context_lock);
	return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxSetFlags(CUdevice dev, unsigned int flags)
{
	return cuDevicePrimaryCtxSetFlags_v2(dev, flags);
}

CUresult cuDevicePrimaryCtxGetState(CUdevice dev, unsigned int *flags, int *active)
{
	struct device *device = device_get(dev);

	if (!device_initialised())
		return CUDA_ERROR_NOT_INITIALIZED;
	if (!device)
		return CUDA_ERROR_INVALID_DEVICE;
	if (!flags || !active)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&context_lock);
	*flags = device->primary_flags;
	*active = device->primary != NULL;
	pthread_mutex_unlock(&context_lock);
	return CUDA_SUCCESS;
}
