/* SPDX-License-Identifier: Apache-2.0
 *
 * The software GPU, as a device whose streams neither wait for 64-bit words in memory nor write
 * them.  Its own functions come before those of the library that it is linked with.
 */
#include <cuda.h>
#include <dlfcn.h>

#define EXPORT __attribute__((visibility("default")))

EXPORT CUresult cuDeviceGetAttribute(int *value, CUdevice_attribute attribute, CUdevice device)
{
	__typeof__(&cuDeviceGetAttribute) next = dlsym(RTLD_NEXT, "cuDeviceGetAttribute");

	if (attribute != CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS)
		return next(value, attribute, device);
	*value = 0;
	return CUDA_SUCCESS;
}
