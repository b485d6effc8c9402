/* SPDX-License-Identifier: Apache-2.0
 *
 * Devices: which there are, which one the thread works on, what they can do, their limits and
 * their peers. properties.c fills cudaDeviceProp.
 */
#include "shim/runtime/runtime.h"

#include <stdlib.h>

cudaError_t hand_cudaGetDeviceCount(int *count)
{
	cudaError_t error;

	if (!count)
		return cudaErrorInvalidValue;
	*count = 0;
	error = runtime_init();
	if (!error)
		error = runtime_status(cuDeviceGetCount(count));
	if (!error && !*count)
		error = cudaErrorNoDevice;
	return error;
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

cudaError_t hand_cudaInitDevice(int device, unsigned int deviceFlags, unsigned int flags)
{
	CUdevice driver;
	CUcontext context;
	cudaError_t error;

	if (flags & ~(unsigned)cudaInitDeviceFlagsAreValid)
		return cudaErrorInvalidValue;
	error = runtime_device(device, &driver);
	if (!error && flags)
		error = runtime_status(cuDevicePrimaryCtxSetFlags(driver, deviceFlags));
	return error ? error : runtime_primary(device, &context);
}

/* The order of the list is the order of preference; a thread that has not chosen yet takes the
 * first. */
cudaError_t hand_cudaSetValidDevices(int *device_arr, int len)
{
	CUdevice device;
	CUcontext current = NULL;
	cudaError_t error = runtime_init();

	if (error)
		return error;
	if (len < 0 || (len && !device_arr))
		return cudaErrorInvalidValue;
	for (int i = 0; i < len; i++) {
		error = runtime_device(device_arr[i], &device);
		if (error)
			return error;
	}
	if (len && cuCtxGetCurrent(&current) == CUDA_SUCCESS && !current)
		runtime_thread.chosen = device_arr[0];
	return cudaSuccess;
}

cudaError_t hand_cudaSetDeviceFlags(unsigned int flags)
{
	CUdevice device;
	int ordinal;
	cudaError_t error = runtime_current_device(&ordinal, &device);

	if (error)
		return error;
	return runtime_status(cuDevicePrimaryCtxSetFlags(device, flags));
}

cudaError_t hand_cudaGetDeviceFlags(unsigned int *flags)
{
	CUcontext current = NULL;
	CUdevice device;
	int ordinal, active;
	cudaError_t error;

	if (!flags)
		return cudaErrorInvalidValue;
	error = runtime_current_device(&ordinal, &device);
	if (error)
		return error;
	(void)cuCtxGetCurrent(&current);
	error = runtime_status(current ? cuCtxGetFlags(flags)
				       : cuDevicePrimaryCtxGetState(device, flags, &active));
	if (!error)
		*flags |= cudaDeviceMapHost; /* always on since 3.2 */
	return error;
}

cudaError_t hand_cudaDeviceReset(void)
{
	return runtime_reset();
}

cudaError_t hand_cudaDeviceSynchronize(void)
{
	cudaError_t error = runtime_enter();

	return error ? error : runtime_status(cuCtxSynchronize());
}

/* Attribute and limit numbers are the driver's own. */
_Static_assert(
	(int)cudaDevAttrMultiProcessorCount == CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT &&
		(int)cudaDevAttrClusterLaunch == CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH &&
		(int)cudaDevAttrHostNumaId == CU_DEVICE_ATTRIBUTE_HOST_NUMA_ID,
	"attribute numbers");

cudaError_t hand_cudaDeviceGetAttribute(int *value, enum cudaDeviceAttr attr, int device)
{
	CUdevice driver;
	cudaError_t error = runtime_device(device, &driver);

	if (error)
		return error;
	return runtime_status(cuDeviceGetAttribute(value, (CUdevice_attribute)attr, driver));
}

_Static_assert((int)cudaLimitStackSize == CU_LIMIT_STACK_SIZE &&
		       (int)cudaLimitPersistingL2CacheSize == CU_LIMIT_PERSISTING_L2_CACHE_SIZE,
	"limit numbers");

cudaError_t hand_cudaDeviceSetLimit(enum cudaLimit limit, size_t value)
{
	cudaError_t error = runtime_enter();

	return error ? error : runtime_status(cuCtxSetLimit((CUlimit)limit, value));
}

cudaError_t hand_cudaDeviceGetLimit(size_t *pValue, enum cudaLimit limit)
{
	cudaError_t error = runtime_enter();

	return error ? error : runtime_status(cuCtxGetLimit(pValue, (CUlimit)limit));
}

_Static_assert((int)cudaFuncCachePreferEqual == CU_FUNC_CACHE_PREFER_EQUAL, "cache numbers");

cudaError_t hand_cudaDeviceGetCacheConfig(enum cudaFuncCache *pCacheConfig)
{
	CUfunc_cache config;
	cudaError_t error = runtime_enter();

	if (!pCacheConfig)
		return cudaErrorInvalidValue;
	if (!error)
		error = runtime_status(cuCtxGetCacheConfig(&config));
	if (!error)
		*pCacheConfig = (enum cudaFuncCache)config;
	return error;
}

cudaError_t hand_cudaDeviceSetCacheConfig(enum cudaFuncCache cacheConfig)
{
	cudaError_t error = runtime_enter();

	return error ? error : runtime_status(cuCtxSetCacheConfig((CUfunc_cache)cacheConfig));
}

/* Banks are four bytes wide on every GPU since Maxwell, whatever is asked for. */
cudaError_t hand_cudaDeviceGetSharedMemConfig(enum cudaSharedMemConfig *pConfig)
{
	cudaError_t error = runtime_enter();

	if (!pConfig)
		return cudaErrorInvalidValue;
	*pConfig = cudaSharedMemBankSizeFourByte;
	return error;
}

cudaError_t hand_cudaDeviceSetSharedMemConfig(enum cudaSharedMemConfig config)
{
	if ((int)config < (int)cudaSharedMemBankSizeDefault ||
		(int)config > (int)cudaSharedMemBankSizeEightByte)
		return cudaErrorInvalidValue;
	return runtime_enter();
}

cudaError_t hand_cudaDeviceGetStreamPriorityRange(int *leastPriority, int *greatestPriority)
{
	return RUNTIME_DRIVER(cuCtxGetStreamPriorityRange(leastPriority, greatestPriority));
}

cudaError_t hand_cudaDeviceGetByPCIBusId(int *device, const char *pciBusId)
{
	CUdevice found, other;
	int count;
	cudaError_t error;

	if (!device || !pciBusId)
		return cudaErrorInvalidValue;
	error = runtime_init();
	if (!error)
		error = runtime_status(cuDeviceGetByPCIBusId(&found, pciBusId));
	if (!error)
		error = runtime_status(cuDeviceGetCount(&count));
	if (error)
		return error;
	for (int i = 0; i < count; i++) {
		if (cuDeviceGet(&other, i) == CUDA_SUCCESS && other == found) {
			*device = i;
			return cudaSuccess;
		}
	}
	return cudaErrorInvalidDevice;
}

cudaError_t hand_cudaDeviceGetPCIBusId(char *pciBusId, int len, int device)
{
	CUdevice driver;
	cudaError_t error = runtime_device(device, &driver);

	if (!pciBusId || len <= 0)
		return cudaErrorInvalidValue;
	return error ? error : runtime_status(cuDeviceGetPCIBusId(pciBusId, len, driver));
}

cudaError_t hand_cudaDeviceCanAccessPeer(int *canAccessPeer, int device, int peerDevice)
{
	CUdevice from, to;
	cudaError_t error = runtime_device(device, &from);

	if (!error)
		error = runtime_device(peerDevice, &to);
	if (!canAccessPeer)
		return cudaErrorInvalidValue;
	return error ? error : runtime_status(cuDeviceCanAccessPeer(canAccessPeer, from, to));
}

cudaError_t hand_cudaDeviceEnablePeerAccess(int peerDevice, unsigned int flags)
{
	CUcontext peer;
	cudaError_t error = runtime_enter();

	if (flags)
		return cudaErrorInvalidValue;
	if (!error)
		error = runtime_primary(peerDevice, &peer);
	return error ? error : runtime_status(cuCtxEnablePeerAccess(peer, 0));
}

cudaError_t hand_cudaDeviceDisablePeerAccess(int peerDevice)
{
	CUcontext peer;
	cudaError_t error = runtime_enter();

	if (!error)
		error = runtime_primary(peerDevice, &peer);
	return error ? error : runtime_status(cuCtxDisablePeerAccess(peer));
}

_Static_assert((int)cudaDevP2PAttrCudaArrayAccessSupported ==
		       CU_DEVICE_P2P_ATTRIBUTE_CUDA_ARRAY_ACCESS_SUPPORTED,
	"peer attribute numbers");

cudaError_t hand_cudaDeviceGetP2PAttribute(
	int *value, enum cudaDeviceP2PAttr attr, int srcDevice, int dstDevice)
{
	CUdevice from, to;
	cudaError_t error = runtime_device(srcDevice, &from);

	if (!error)
		error = runtime_device(dstDevice, &to);
	if (error)
		return error;
	return runtime_status(
		cuDeviceGetP2PAttribute(value, (CUdevice_P2PAttribute)attr, from, to));
}

cudaError_t hand_cudaCtxResetPersistingL2Cache(void)
{
	cudaError_t error = runtime_enter();

	return error ? error : runtime_status(cuCtxResetPersistingL2Cache());
}

_Static_assert((int)cudaFlushGPUDirectRDMAWritesTargetCurrentDevice ==
		       CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TARGET_CURRENT_CTX,
	"flush numbers");

cudaError_t hand_cudaDeviceFlushGPUDirectRDMAWrites(
	enum cudaFlushGPUDirectRDMAWritesTarget target,
	enum cudaFlushGPUDirectRDMAWritesScope scope)
{
	return RUNTIME_DRIVER(
		cuFlushGPUDirectRDMAWrites((CUflushGPUDirectRDMAWritesTarget)target,
			(CUflushGPUDirectRDMAWritesScope)scope));
}

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

cudaError_t hand_cudaProfilerStart(void)
{
	return runtime_enter();
}

cudaError_t hand_cudaProfilerStop(void)
{
	return runtime_enter();
}

#if CUDART_VERSION < 13000
/* The names of CUDA 3, which CUDA 12 still exports. */
cudaError_t hand_cudaThreadExit(void)
{
	return runtime_reset();
}

cudaError_t hand_cudaThreadSynchronize(void)
{
	return hand_cudaDeviceSynchronize();
}

cudaError_t hand_cudaThreadSetLimit(enum cudaLimit limit, size_t value)
{
	return hand_cudaDeviceSetLimit(limit, value);
}

cudaError_t hand_cudaThreadGetLimit(size_t *pValue, enum cudaLimit limit)
{
	return hand_cudaDeviceGetLimit(pValue, limit);
}

cudaError_t hand_cudaThreadGetCacheConfig(enum cudaFuncCache *pCacheConfig)
{
	return hand_cudaDeviceGetCacheConfig(pCacheConfig);
}

cudaError_t hand_cudaThreadSetCacheConfig(enum cudaFuncCache cacheConfig)
{
	return hand_cudaDeviceSetCacheConfig(cacheConfig);
}

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
