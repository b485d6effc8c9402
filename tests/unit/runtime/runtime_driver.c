/* SPDX-License-Identifier: Apache-2.0
 *
 * A driver that does nothing but count: what runtime_register.c puts under the runtime front,
 * to see which driver calls the front makes and when.
 */
#include <cuda.h>
#include <stdatomic.h>
#include <string.h>

#include "tests/unit/runtime/runtime_driver.h"

struct driver_counts driver_counts;
CUresult driver_load_status = CUDA_SUCCESS;

static __thread CUcontext current;
static _Atomic uintptr_t primaries; /* each retain after a reset gives another context */

#define COUNT(field) atomic_fetch_add(&driver_counts.field, 1)

CUresult cuInit(unsigned flags)
{
	(void)flags;
	COUNT(other);
	return CUDA_SUCCESS;
}

CUresult cuDeviceGetCount(int *count)
{
	*count = 2;
	return CUDA_SUCCESS;
}

CUresult cuDeviceGet(CUdevice *device, int ordinal)
{
	COUNT(other);
	*device = ordinal;
	return ordinal >= 0 && ordinal < 2 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device)
{
	COUNT(retains);
	*context = (CUcontext)(0x1000 + (uintptr_t)device * 0x100 + atomic_load(&primaries));
	return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device)
{
	(void)device;
	return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxReset_v2(CUdevice device)
{
	(void)device;
	atomic_fetch_add(&primaries, 1);
	return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxGetState(CUdevice device, unsigned *flags, int *active)
{
	(void)device;
	*flags = 0;
	*active = 1;
	return CUDA_SUCCESS;
}

CUresult cuCtxGetApiVersion(CUcontext context, unsigned *version)
{
	*version = 3020;
	return context ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
}

CUresult cuCtxGetCurrent(CUcontext *context)
{
	*context = current;
	return CUDA_SUCCESS;
}

CUresult cuCtxSetCurrent(CUcontext context)
{
	COUNT(binds);
	current = context;
	return CUDA_SUCCESS;
}

CUresult cuCtxGetDevice(CUdevice *device)
{
	*device = (int)((uintptr_t)current / 0x100 % 0x10);
	return CUDA_SUCCESS;
}

CUresult cuCtxGetStreamPriorityRange(int *least, int *greatest)
{
	(void)least, (void)greatest;
	return current ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
}

CUresult cuLibraryLoadData(CUlibrary *library, const void *code, CUjit_option *options,
	void **values, unsigned count, CUlibraryOption *library_options, void **library_values,
	unsigned library_count)
{
	(void)options, (void)values, (void)count, (void)library_options, (void)library_values;
	(void)library_count;
	COUNT(loads);
	*library = (CUlibrary)code;
	return driver_load_status;
}

CUresult cuLibraryUnload(CUlibrary library)
{
	(void)library;
	COUNT(unloads);
	return CUDA_SUCCESS;
}

CUresult cuLibraryGetKernel(CUkernel *kernel, CUlibrary library, const char *name)
{
	(void)library;
	COUNT(kernels);
	*kernel = (CUkernel)name;
	return strcmp(name, "missing") ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

/* A new function each time, so that a stale one can be told. */
CUresult cuKernelGetFunction(CUfunction *function, CUkernel kernel)
{
	*function = (CUfunction)(uintptr_t)(0x100 + COUNT(functions));
	driver_counts.name = (const char *)kernel;
	return CUDA_SUCCESS;
}

CUresult cuLaunchKernel(CUfunction function, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
	unsigned by, unsigned bz, unsigned shared, CUstream stream, void **params, void **extra)
{
	(void)gx, (void)gy, (void)gz, (void)bx, (void)by, (void)bz, (void)shared, (void)stream;
	(void)params, (void)extra;
	if (!function || !current)
		return CUDA_ERROR_INVALID_CONTEXT;
	if (function == driver_counts.stale)
		return CUDA_ERROR_INVALID_HANDLE;
	driver_counts.launches++;
	driver_counts.launched = function;
	driver_counts.context = current;
	return CUDA_SUCCESS;
}
