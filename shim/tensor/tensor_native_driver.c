/* SPDX-License-Identifier: Apache-2.0
 *
 * The machine's own libcuda, which the program loads anyway.
 */
#include <dlfcn.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include "shim/tensor/tensor_native.h"

#define DEVICES 64

static struct {
	bool ready;
	int count;
	CUuuid uuids[DEVICES];
	CUresult (*cuInit)(unsigned);
	CUresult (*cuDeviceGetCount)(int *);
	CUresult (*cuDeviceGet)(CUdevice *, int);
	CUresult (*cuDeviceGetUuid_v2)(CUuuid *, CUdevice);
	CUresult (*cuCtxGetCurrent)(CUcontext *);
	CUresult (*cuCtxGetDevice)(CUdevice *);
	CUresult (*cuCtxSetCurrent)(CUcontext);
	CUresult (*cuCtxSynchronize)(void);
	CUresult (*cuStreamSynchronize)(CUstream);
	CUresult (*cuDevicePrimaryCtxRetain)(CUcontext *, CUdevice);
	CUresult (*cuDevicePrimaryCtxRelease_v2)(CUdevice);
	CUresult (*cuMemAddressReserve)(
		CUdeviceptr *, size_t, size_t, CUdeviceptr, unsigned long long);
	CUresult (*cuMemAddressFree)(CUdeviceptr, size_t);
	CUresult (*cuMemMap)(
		CUdeviceptr, size_t, size_t, CUmemGenericAllocationHandle, unsigned long long);
	CUresult (*cuMemUnmap)(CUdeviceptr, size_t);
	CUresult (*cuMemSetAccess)(CUdeviceptr, size_t, const CUmemAccessDesc *, size_t);
	CUresult (*cuMemRelease)(CUmemGenericAllocationHandle);
	CUresult (*cuMemImportFromShareableHandle)(
		CUmemGenericAllocationHandle *, void *, CUmemAllocationHandleType);
} driver;

static const struct {
	const char *name;
	void *at;
} functions[] = {
	{"cuInit", &driver.cuInit},
	{"cuDeviceGetCount", &driver.cuDeviceGetCount},
	{"cuDeviceGet", &driver.cuDeviceGet},
	{"cuDeviceGetUuid_v2", &driver.cuDeviceGetUuid_v2},
	{"cuCtxGetCurrent", &driver.cuCtxGetCurrent},
	{"cuCtxGetDevice", &driver.cuCtxGetDevice},
	{"cuCtxSetCurrent", &driver.cuCtxSetCurrent},
	{"cuCtxSynchronize", &driver.cuCtxSynchronize},
	{"cuStreamSynchronize", &driver.cuStreamSynchronize},
	{"cuDevicePrimaryCtxRetain", &driver.cuDevicePrimaryCtxRetain},
	{"cuDevicePrimaryCtxRelease_v2", &driver.cuDevicePrimaryCtxRelease_v2},
	{"cuMemAddressReserve", &driver.cuMemAddressReserve},
	{"cuMemAddressFree", &driver.cuMemAddressFree},
	{"cuMemMap", &driver.cuMemMap},
	{"cuMemUnmap", &driver.cuMemUnmap},
	{"cuMemSetAccess", &driver.cuMemSetAccess},
	{"cuMemRelease", &driver.cuMemRelease},
	{"cuMemImportFromShareableHandle", &driver.cuMemImportFromShareableHandle},
};

static int open_driver(void)
{
	void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);
	CUresult status;

	if (!library)
		return native_fail(CUDA_ERROR_NO_DEVICE, "%s", dlerror());
	for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++) {
		void *function = dlsym(library, functions[i].name);

		if (!function)
			return native_fail(CUDA_ERROR_NOT_SUPPORTED,
				"the machine's driver has no %s", functions[i].name);
		memcpy(functions[i].at, &function, sizeof(function));
	}
	status = driver.cuInit(0);
	if (!status)
		status = driver.cuDeviceGetCount(&driver.count);
	if (driver.count > DEVICES)
		driver.count = DEVICES;
	for (int i = 0; !status && i < driver.count; i++) {
		CUdevice device;

		status = driver.cuDeviceGet(&device, i);
		if (!status)
			status = driver.cuDeviceGetUuid_v2(&driver.uuids[i], device);
	}
	if (status)
		return native_fail((int)status, "the machine's driver does not start");
	driver.ready = true;
	return 0;
}

int native_driver(int *device)
{
	CUcontext context = NULL;
	int status = driver.ready ? 0 : open_driver();
	CUdevice current = 0;

	if (status)
		return status;
	if (*device == -1) {
		if (!driver.cuCtxGetCurrent(&context) && context)
			driver.cuCtxGetDevice(&current);
		*device = current;
	}
	return *device >= 0 && *device < driver.count
		       ? 0
		       : native_fail(
				 CUDA_ERROR_INVALID_DEVICE, "there is no device %d", *device);
}

void native_gpu(CUdevice device, uint8_t gpu[16])
{
	memcpy(gpu, &driver.uuids[device], 16);
}

static CUresult allow(const struct native_tensor *t)
{
	const CUmemAccessDesc access = {.location = {CU_MEM_LOCATION_TYPE_DEVICE, t->device},
		.flags = t->writable ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE
				     : CU_MEM_ACCESS_FLAGS_PROT_READ};

	return driver.cuMemSetAccess(t->base, t->room, &access, 1);
}

static CUresult map(struct native_tensor *t, int fd)
{
	CUresult status = driver.cuMemImportFromShareableHandle(
		&t->handle, (void *)(intptr_t)fd, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);

	if (status)
		return status;
	status = driver.cuMemAddressReserve(&t->base, t->room, 0, 0, 0);
	if (!status) {
		status = driver.cuMemMap(t->base, t->room, 0, t->handle, 0);
		if (!status) {
			status = allow(t);
			if (status)
				driver.cuMemUnmap(t->base, t->room);
		}
		if (status)
			driver.cuMemAddressFree(t->base, t->room);
	}
	if (status)
		driver.cuMemRelease(t->handle);
	return status;
}

/* For a thread that has no context yet: the device's primary one, until it is left. */
static bool enter(CUdevice device, CUresult *status)
{
	CUcontext context = NULL;

	*status = driver.cuCtxGetCurrent(&context);
	if (*status || context)
		return false;
	*status = driver.cuDevicePrimaryCtxRetain(&context, device);
	if (*status)
		return false;
	*status = driver.cuCtxSetCurrent(context);
	return true;
}

static void leave(CUdevice device)
{
	driver.cuCtxSetCurrent(NULL);
	driver.cuDevicePrimaryCtxRelease_v2(device);
}

int native_map(struct native_tensor *t, int fd)
{
	CUresult status;
	bool entered = enter(t->device, &status);

	if (!status)
		status = map(t, fd);
	if (entered)
		leave(t->device);
	close(fd);
	return status ? native_fail((int)status, "the machine's driver does not map the tensor")
		      : 0;
}

void native_unmap(struct native_tensor *t)
{
	driver.cuMemUnmap(t->base, t->room);
	driver.cuMemAddressFree(t->base, t->room);
	driver.cuMemRelease(t->handle);
}

int native_read_only(struct native_tensor *t)
{
	CUresult status;
	bool entered = enter(t->device, &status);

	t->writable = false;
	if (!status)
		status = allow(t);
	if (entered)
		leave(t->device);
	return status ? native_fail((int)status, "a sealed tensor could not be made read-only")
		      : 0;
}

int native_wait(void *stream)
{
	CUcontext context = NULL;
	CUresult status = driver.cuCtxGetCurrent(&context);

	if (!status && (stream || context))
		status =
			stream ? driver.cuStreamSynchronize(stream) : driver.cuCtxSynchronize();
	return status ? native_fail((int)status, "what the program had begun failed") : 0;
}
