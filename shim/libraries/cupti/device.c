/* SPDX-License-Identifier: Apache-2.0
 *
 * Devices: what is asked about them, and their records.
 */
#include <string.h>

#include "shim/libraries/cupti/cupti.h"

static int attribute(CUdevice device, CUdevice_attribute which)
{
	int value = 0;

	cupti_own++;
	if (cuDeviceGetAttribute(&value, which, device))
		value = 0;
	cupti_own--;
	return value;
}

/* Both edges of the clock, bits to bytes. */
static uint64_t bandwidth(CUdevice device) /* kB/s */
{
	return 2 * (uint64_t)attribute(device, CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE) *
	       (uint64_t)attribute(device, CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH) / 8;
}

EXPORT CUptiResult cuptiGetDeviceId(CUcontext context, uint32_t *deviceId)
{
	CUdevice device = 0;
	CUresult status;

	COUNT(cuptiGetDeviceId);
	if (!deviceId)
		return cupti_result(CUPTI_ERROR_INVALID_PARAMETER);
	cupti_own++;
	status = context ? cuCtxGetDevice_v2(&device, context) : cuCtxGetDevice(&device);
	cupti_own--;
	if (status)
		return cupti_result(CUPTI_ERROR_INVALID_CONTEXT);
	*deviceId = (uint32_t)device;
	return CUPTI_SUCCESS;
}

static bool is_served(int major, int minor)
{
	return major >= 7 && minor >= 0;
}

EXPORT CUptiResult cuptiComputeCapabilitySupported(int major, int minor, int *support)
{
	COUNT(cuptiComputeCapabilitySupported);
	if (!support)
		return cupti_result(CUPTI_ERROR_INVALID_PARAMETER);
	*support = is_served(major, minor);
	return CUPTI_SUCCESS;
}

EXPORT CUptiResult cuptiDeviceSupported(CUdevice dev, int *support)
{
	COUNT(cuptiDeviceSupported);
	if (!support)
		return cupti_result(CUPTI_ERROR_INVALID_PARAMETER);
	*support = is_served(attribute(dev, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR), 0);
	return CUPTI_SUCCESS;
}

EXPORT CUptiResult cuptiDeviceVirtualizationMode(
	CUdevice dev, CUpti_DeviceVirtualizationMode *mode)
{
	COUNT(cuptiDeviceVirtualizationMode);
	(void)dev;
	if (!mode)
		return cupti_result(CUPTI_ERROR_INVALID_PARAMETER);
	*mode = 0; /* none */
	return CUPTI_SUCCESS;
}

EXPORT CUptiResult cuptiDeviceGetAttribute(
	CUdevice device, CUpti_DeviceAttribute attrib, size_t *valueSize, void *value)
{
	enum { GLOBAL_MEMORY_BANDWIDTH = 3 };
	uint64_t number;

	COUNT(cuptiDeviceGetAttribute);
	if (!valueSize || !value)
		return cupti_result(CUPTI_ERROR_INVALID_PARAMETER);
	if (attrib != GLOBAL_MEMORY_BANDWIDTH)
		return cupti_result(CUPTI_ERROR_NOT_SUPPORTED);
	if (*valueSize < sizeof(number))
		return cupti_result(CUPTI_ERROR_PARAMETER_SIZE_NOT_SUFFICIENT);
	number = bandwidth(device);
	memcpy(value, &number, sizeof(number));
	*valueSize = sizeof(number);
	return CUPTI_SUCCESS;
}

static uint32_t number_of(CUdevice device, CUdevice_attribute which)
{
	return (uint32_t)attribute(device, which);
}

static void put_device(CUdevice device)
{
	static char names[64][96];
	CUpti_ActivityDevice5 out = {
		.kind = CUPTI_ACTIVITY_KIND_DEVICE,
		.flags = CUPTI_ACTIVITY_FLAG_DEVICE_CONCURRENT_KERNELS,
		.globalMemoryBandwidth = bandwidth(device),
		.id = (uint32_t)device,
		.maxIPC = UINT32_MAX,
		.isCudaVisible = 1,
	};
	size_t bytes = 0;

	out.constantMemorySize = number_of(device, CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY);
	out.l2CacheSize = number_of(device, CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE);
	out.numThreadsPerWarp = number_of(device, CU_DEVICE_ATTRIBUTE_WARP_SIZE);
	out.coreClockRate = number_of(device, CU_DEVICE_ATTRIBUTE_CLOCK_RATE);
	out.numMemcpyEngines = number_of(device, CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT);
	out.numMultiprocessors = number_of(device, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
	out.maxBlocksPerMultiprocessor =
		number_of(device, CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR);
	out.maxWarpsPerMultiprocessor =
		number_of(device, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR) / 32;
	out.maxSharedMemoryPerMultiprocessor =
		number_of(device, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR);
	out.maxRegistersPerMultiprocessor =
		number_of(device, CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR);
	out.maxRegistersPerBlock =
		number_of(device, CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK);
	out.maxSharedMemoryPerBlock =
		number_of(device, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK);
	out.maxThreadsPerBlock = number_of(device, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
	out.maxBlockDimX = number_of(device, CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X);
	out.maxBlockDimY = number_of(device, CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y);
	out.maxBlockDimZ = number_of(device, CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z);
	out.maxGridDimX = number_of(device, CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X);
	out.maxGridDimY = number_of(device, CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y);
	out.maxGridDimZ = number_of(device, CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z);
	out.computeCapabilityMajor =
		number_of(device, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
	out.computeCapabilityMinor =
		number_of(device, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
	out.eccEnabled = number_of(device, CU_DEVICE_ATTRIBUTE_ECC_ENABLED);
	(void)cuDeviceTotalMem(&bytes, device);
	out.globalMemorySize = bytes;
	(void)cuDeviceGetUuid(&out.uuid, device);
	if (device < 64) {
		(void)cuDeviceGetName(names[device], sizeof(names[device]), device);
		out.name = names[device];
	}
	deliver_record(&out, sizeof(out));
}

/* Once for each time that the kind is enabled, as soon as there are devices. */
void device_records(void)
{
	int count = 0;

	if (!activity_devices_due())
		return;
	cupti_own++;
	if (cuDeviceGetCount(&count))
		count = 0;
	for (int i = 0; i < count; i++)
		put_device(i);
	cupti_own--;
	if (count)
		activity_devices_told();
}
