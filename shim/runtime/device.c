/* SPDX-License-Identifier: Apache-2.0
 *
 * Devices: which there are, which one the thread works on, what they can do, their limits and
 * their peers. properties.c fills cudaDeviceProp.
 */
#include "shim/runtime/runtime.h"

#include <stdlib.h>

cudaError_t hand_cudaGetDeviceCount(int *count)
{
	CUresult status;
	cudaError_t error;

	if (!count)
		return cudaErrorInvalidValue;
	*count = 0;
	error = runtime_init();
	if (error)
		return error;
	status = cuDeviceGetCount(count);
	/* CUDA 13's remembers it, so that a host function may ask, too (an H200). */
	if (VCUDA_ABI >= 13 && status == CUDA_ERROR_NOT_PERMITTED) {
		*count = runtime_devices();
		status = CUDA_SUCCESS;
	}
	error = runtime_status(status);
	return error || *count ? error : cudaErrorNoDevice;
}

cudaError_t hand_cudaGetDevice(int *device)
{
	return device ? runtime_current_device(device, NULL) : cudaErrorInvalidValue;
}

cudaError_t hand_cudaSetDevice(int device)
{
	cudaError_t error = runtime_bind(device);

	if (!error)
		runtime_thread.chosen = device;
	return error;
}

/* Mapping host memory needs no flag since CUDA 3.2, and programs of before still give it; the
 * driver's function refuses it. */
static cudaError_t primary_flags(CUdevice device, unsigned flags)
{
	return runtime_status(
		cuDevicePrimaryCtxSetFlags(device, flags & ~(unsigned)cudaDeviceMapHost));
}

cudaError_t hand_cudaInitDevice(int device, unsigned int deviceFlags, unsigned int flags)
{
	CUdevice driver;
	CUcontext context;
	cudaError_t error;

	error = runtime_device(device, &driver);
	/* NVIDIA's runtime does not look at other flags. */
	if (!error && flags & cudaInitDeviceFlagsAreValid)
		error = primary_flags(driver, deviceFlags);
	return error ? error : runtime_primary(device, &context);
}

/* The order of the list is the order of preference.  The thread has no context afterwards:
 * the next call that needs one takes the first of them. */
cudaError_t hand_cudaSetValidDevices(int *device_arr, int len)
{
	CUdevice device;
	cudaError_t error = runtime_init();
	int count = 0;

	if (!error)
		error = runtime_status(cuDeviceGetCount(&count));
	if (error)
		return error;
	if (len < 0 || len > count || (len && !device_arr))
		return cudaErrorInvalidValue;
	for (int i = 0; i < len; i++) {
		error = runtime_device(device_arr[i], &device);
		if (error)
			return error;
	}
	if (len)
		runtime_thread.chosen = device_arr[0];
	return runtime_status(cuCtxSetCurrent(NULL));
}

/* What is about primary contexts is refused where a context of the program's own is current.
 * A green one is part of the primary one. */
static cudaError_t primary_only(void)
{
	CUcontext current = NULL;
	CUgreenCtx green = NULL;

	if (cuCtxGetCurrent(&current) || !current || runtime_thread.primary)
		return cudaSuccess;
	return !cuStreamGetGreenCtx(CU_STREAM_LEGACY, &green) && green
		       ? cudaSuccess
		       : cudaErrorIncompatibleDriverContext;
}

cudaError_t hand_cudaSetDeviceFlags(unsigned int flags)
{
	const unsigned wait = flags & (unsigned)cudaDeviceScheduleMask;
	CUdevice device;
	int ordinal;
	cudaError_t error = runtime_current_device(&ordinal, &device);

	if (!error && !(flags & ~(unsigned)cudaDeviceMask) && !(wait & (wait - 1)))
		error = primary_only();
	/* Since CUDA 12 it makes the device the thread's. */
	return error ?: primary_flags(device, flags) ?: runtime_enter();
}

cudaError_t hand_cudaGetDeviceFlags(unsigned int *flags)
{
	CUcontext current = NULL;
	CUdevice device;
	int ordinal, active;
	cudaError_t error;

	if (!flags)
		return cudaErrorInvalidValue;
	/* Of a context that is gone too. */
	error = runtime_init();
	if (!error)
		error = runtime_status(cuCtxGetCurrent(&current));
	if (error || current)
		return error ? error : runtime_status(cuCtxGetFlags(flags));
	error = runtime_current_device(&ordinal, &device);
	if (error)
		return error;
	error = runtime_status(cuDevicePrimaryCtxGetState(device, flags, &active));
	if (!error)
		*flags |= cudaDeviceMapHost; /* always on since 3.2 */
	return error;
}

/* Attribute and limit numbers are the driver's own. */
_Static_assert(
	(int)cudaDevAttrMultiProcessorCount == CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT &&
		(int)cudaDevAttrClusterLaunch == CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH &&
		(int)cudaDevAttrHostNumaId == CU_DEVICE_ATTRIBUTE_HOST_NUMA_ID,
	"attribute numbers");

_Static_assert((int)cudaLimitStackSize == CU_LIMIT_STACK_SIZE &&
		       (int)cudaLimitPersistingL2CacheSize == CU_LIMIT_PERSISTING_L2_CACHE_SIZE,
	"limit numbers");

_Static_assert((int)cudaFuncCachePreferEqual == CU_FUNC_CACHE_PREFER_EQUAL, "cache numbers");

/* Makes no context current, so that its first call finds none. */
cudaError_t hand_cudaCtxResetPersistingL2Cache(void)
{
	cudaError_t error = runtime_init();

	return error ? error : (cudaError_t)cuCtxResetPersistingL2Cache();
}

/* Banks are four bytes wide on every GPU since Maxwell, whatever is asked for. */
cudaError_t hand_cudaDeviceGetSharedMemConfig(enum cudaSharedMemConfig *pConfig)
{
	cudaError_t error = runtime_enter();

	if (!pConfig)
		return cudaErrorInvalidValue;
	if (!error)
		*pConfig = cudaSharedMemBankSizeFourByte;
	return error;
}

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
cudaError_t hand_cudaDeviceSetSharedMemConfig(enum cudaSharedMemConfig config)
{
	return RUNTIME_DRIVER(cuCtxSetSharedMemConfig((CUsharedconfig)config));
}
#pragma GCC diagnostic pop

cudaError_t hand_cudaDeviceGetByPCIBusId(int *device, const char *pciBusId)
{
	CUdevice found;
	cudaError_t error;

	if (!device || !pciBusId)
		return cudaErrorInvalidValue;
	error = runtime_init();
	if (!error)
		error = runtime_status(cuDeviceGetByPCIBusId(&found, pciBusId));
	return error ? error : runtime_ordinal(found, device);
}

cudaError_t hand_cudaDeviceGetPCIBusId(char *pciBusId, int len, int device)
{
	CUdevice driver;
	cudaError_t error = pciBusId ? runtime_device(device, &driver) : cudaErrorInvalidValue;

	return error ? error : runtime_status(cuDeviceGetPCIBusId(pciBusId, len, driver));
}

cudaError_t hand_cudaDeviceEnablePeerAccess(int peerDevice, unsigned int flags)
{
	CUcontext peer;
	cudaError_t error = runtime_enter() ?: primary_only();

	if (!error)
		error = runtime_primary(peerDevice, &peer);
	if (!error && flags)
		error = cudaErrorInvalidValue;
	return error ? error : runtime_status(cuCtxEnablePeerAccess(peer, 0));
}

cudaError_t hand_cudaDeviceDisablePeerAccess(int peerDevice)
{
	CUcontext peer;
	cudaError_t error = runtime_enter() ?: primary_only();

	if (!error)
		error = runtime_primary(peerDevice, &peer);
	return error ? error : runtime_status(cuCtxDisablePeerAccess(peer));
}

_Static_assert((int)cudaDevP2PAttrCudaArrayAccessSupported ==
		       CU_DEVICE_P2P_ATTRIBUTE_CUDA_ARRAY_ACCESS_SUPPORTED,
	"peer attribute numbers");

_Static_assert((int)cudaFlushGPUDirectRDMAWritesTargetCurrentDevice ==
		       CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TARGET_CURRENT_CTX,
	"flush numbers");

/* Only packs its arguments: no device is asked. */
struct cudaChannelFormatDesc hand_cudaCreateChannelDesc(
	int x, int y, int z, int w, enum cudaChannelFormatKind f)
{
	return (struct cudaChannelFormatDesc){.x = x, .y = y, .z = z, .w = w, .f = f};
}

cudaError_t hand_cudaDriverGetVersion(int *driverVersion)
{
	if (!driverVersion)
		return cudaErrorInvalidValue;
	if (cuDriverGetVersion(driverVersion) != CUDA_SUCCESS)
		*driverVersion = 0; /* as natively where there is no driver */
	return cudaSuccess;
}

cudaError_t hand_cudaRuntimeGetVersion(int *runtimeVersion)
{
	if (!runtimeVersion)
		return cudaErrorInvalidValue;
	*runtimeVersion = CUDART_VERSION;
	return cudaSuccess;
}

#if CUDART_VERSION < 13000
/* Once converted doubles for GPUs that had none; nothing to do on any GPU of today. */
cudaError_t hand_cudaSetDoubleForDevice(double *d)
{
	return d ? cudaSuccess : cudaErrorInvalidValue;
}

cudaError_t hand_cudaSetDoubleForHost(double *d)
{
	return d ? cudaSuccess : cudaErrorInvalidValue;
}
#endif
