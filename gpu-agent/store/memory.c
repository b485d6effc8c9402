/* SPDX-License-Identifier: Apache-2.0 */
#define __CUDA_API_VERSION_INTERNAL 1
#include "gpu-agent/store/memory.h"

#include <cuda.h>
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "gpu-agent/handoff.h"

struct memory {
	CUresult (*cuInit)(unsigned);
	CUresult (*cuDeviceGetCount)(int *);
	CUresult (*cuDeviceGet)(CUdevice *, int);
	CUresult (*cuDeviceGetUuid_v2)(CUuuid *, CUdevice);
	CUresult (*cuMemGetAllocationGranularity)(
		size_t *, const CUmemAllocationProp *, CUmemAllocationGranularity_flags);
	CUresult (*cuMemCreate)(CUmemGenericAllocationHandle *, size_t,
		const CUmemAllocationProp *, unsigned long long);
	CUresult (*cuMemRelease)(CUmemGenericAllocationHandle);
	CUresult (*cuMemExportToShareableHandle)(void *, CUmemGenericAllocationHandle,
		CUmemAllocationHandleType, unsigned long long);
	uint32_t count;
	struct memory_device {
		CUdevice device;
		uint8_t uuid[16];
		size_t granularity;
	} devices[HANDOFF_DEVICES];
};

static CUmemAllocationProp prop_of(CUdevice device)
{
	return (CUmemAllocationProp){
		.type = CU_MEM_ALLOCATION_TYPE_PINNED,
		.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
		.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = device},
	};
}

static int find_functions(struct memory *m, void *library, struct error *error)
{
	const struct {
		const char *name;
		void *at;
	} functions[] = {
		{"cuInit", &m->cuInit},
		{"cuDeviceGetCount", &m->cuDeviceGetCount},
		{"cuDeviceGet", &m->cuDeviceGet},
		{"cuDeviceGetUuid_v2", &m->cuDeviceGetUuid_v2},
		{"cuMemGetAllocationGranularity", &m->cuMemGetAllocationGranularity},
		{"cuMemCreate", &m->cuMemCreate},
		{"cuMemRelease", &m->cuMemRelease},
		{"cuMemExportToShareableHandle", &m->cuMemExportToShareableHandle},
	};

	for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++) {
		void *function = dlsym(library, functions[i].name);

		if (!function)
			return error_set(error, 0, "the driver has no %s", functions[i].name);
		memcpy(functions[i].at, &function, sizeof(function));
	}
	return 0;
}

static CUresult find_devices(struct memory *m)
{
	int count = 0;
	CUresult status = m->cuDeviceGetCount(&count);

	for (int i = 0; !status && i < count && m->count < HANDOFF_DEVICES; i++) {
		struct memory_device *d = &m->devices[m->count];
		CUmemAllocationProp prop;
		CUuuid uuid;

		status = m->cuDeviceGet(&d->device, i);
		if (!status)
			status = m->cuDeviceGetUuid_v2(&uuid, d->device);
		if (status)
			break;
		memcpy(d->uuid, &uuid, sizeof(d->uuid));
		prop = prop_of(d->device);
		status = m->cuMemGetAllocationGranularity(
			&d->granularity, &prop, CU_MEM_ALLOC_GRANULARITY_RECOMMENDED);
		m->count++;
	}
	return status;
}

struct memory *store_memory_open(const struct agent_config *config, struct error *error)
{
	static struct memory memory;
	void *library = dlopen(config->driver_path, RTLD_NOW | RTLD_LOCAL);
	CUresult status;

	if (!library) {
		error_set(error, 0, "%s", dlerror());
		return NULL;
	}
	if (find_functions(&memory, library, error))
		return NULL;
	status = memory.cuInit(0);
	if (!status)
		status = find_devices(&memory);
	if (!status && memory.count)
		return &memory;
	error_set(error, 0, "the driver finds no GPU (%d)", (int)status);
	return NULL;
}

static const struct memory_device *find(const struct memory *m, const uint8_t gpu[16])
{
	for (uint32_t i = 0; i < m->count; i++)
		if (!memcmp(m->devices[i].uuid, gpu, 16))
			return &m->devices[i];
	return NULL;
}

uint64_t store_memory_granularity(const struct memory *memory, const uint8_t gpu[16])
{
	const struct memory_device *d = find(memory, gpu);

	return d ? d->granularity : 0;
}

uint32_t store_memory_devices(const struct memory *memory)
{
	return memory->count;
}

uint32_t store_memory_device(const struct memory *memory, const uint8_t gpu[16])
{
	const struct memory_device *d = find(memory, gpu);

	return d ? (uint32_t)(d - memory->devices) : 0;
}

bool store_memory_gpu(const struct memory *memory, uint32_t device, uint8_t gpu[16])
{
	if (device >= memory->count)
		return false;
	memcpy(gpu, memory->devices[device].uuid, 16);
	return true;
}

int store_memory_make(
	struct memory *memory, const uint8_t gpu[16], uint64_t bytes, struct error *error)
{
	const struct memory_device *d = find(memory, gpu);
	CUmemGenericAllocationHandle handle;
	CUmemAllocationProp prop;
	CUresult status;
	int fd = -1;

	if (!d) {
		error_set(error, 0, "no such GPU");
		return -(int)CUDA_ERROR_INVALID_DEVICE;
	}
	prop = prop_of(d->device);
	status = memory->cuMemCreate(&handle, bytes, &prop, 0);
	if (!status) {
		status = memory->cuMemExportToShareableHandle(
			&fd, handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0);
		memory->cuMemRelease(handle);
	}
	if (!status)
		return fd;
	error_set(error, 0, "the driver makes no memory (%d)", (int)status);
	return -(int)status;
}
