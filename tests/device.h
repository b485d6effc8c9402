/* SPDX-License-Identifier: Apache-2.0
 *
 * The device and its memory, for the programs of the libraries that use the driver API.
 */
#ifndef TESTS_DEVICE_H
#define TESTS_DEVICE_H

#include <cuda.h>
#include <stdint.h>
#include <stdlib.h>

#include "tests/check.h"

/* The first device's primary context is current from then on. */
static inline void device_begin(void)
{
	CUdevice gpu;
	CUcontext context;

	CUDA(cuInit(0));
	CUDA(cuDeviceGet(&gpu, 0));
	CUDA(cuDevicePrimaryCtxRetain(&context, gpu));
	CUDA(cuCtxSetCurrent(context));
}

/* Zeroed memory of the device, and of the host; a byte where none is asked for. */
static inline void *device(size_t bytes)
{
	CUdeviceptr at;

	CUDA(cuMemAlloc(&at, bytes ? bytes : 1));
	CUDA(cuMemsetD8(at, 0, bytes ? bytes : 1));
	return (void *)(uintptr_t)at;
}
static inline void release(void *at)
{
	CUDA(cuMemFree((CUdeviceptr)(uintptr_t)at));
}
static inline void *host(size_t bytes)
{
	void *at = calloc(bytes ? bytes : 1, 1);

	if (!at)
		DIE("no memory for %zu bytes", bytes);
	return at;
}

#endif
