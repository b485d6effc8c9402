// SPDX-License-Identifier: Apache-2.0
/* What a driver answers about memory of the program's machine by cuMemCreate where CUDA does not say it: printed, so that
 * two drivers can be compared; only what was told to succeed before it must. */
#include "driver.h"

static const char *current;

#define ASK(...)                                                                                                               \
	do {                                                                                                                   \
		CUresult got_ = (__VA_ARGS__);                                                                                 \
		printf("%-10s %-60.60s %d\n", current, #__VA_ARGS__, (int)got_);                                               \
	} while (0)

template <typename T> static void attribute(const char *name, CUpointer_attribute which, CUdeviceptr at)
{
	ENTRY(cuPointerGetAttribute);
	T value = {};
	CUresult status = p_cuPointerGetAttribute(&value, which, at);
	/* Addresses and numbers of the driver's own are told by whether they are those that were given. */
	unsigned long long told = (unsigned long long)value;

	printf("%-10s %-60s %d %s%llu\n", current, name, (int)status, told == at ? "the address " : "",
		told == at ? 0ull : told);
}

static CUmemAccessDesc desc(CUmemLocationType type, int id, CUmemAccess_flags flags)
{
	CUmemAccessDesc access = {};

	access.location.type = type;
	access.location.id = id;
	access.flags = flags;
	return access;
}

static void asked(CUmemLocationType type)
{
	ENTRY(cuMemCreate);
	ENTRY(cuMemRelease);
	ENTRY(cuMemAddressReserve);
	ENTRY(cuMemAddressFree);
	ENTRY(cuMemMap);
	ENTRY(cuMemUnmap);
	ENTRY(cuMemSetAccess);
	ENTRY(cuMemGetAccess);
	ENTRY(cuMemGetAllocationGranularity);
	ENTRY(cuMemGetAddressRange);
	ENTRY(cuMemHostGetFlags);
	ENTRY(cuMemHostGetDevicePointer);
	ENTRY(cuMemHostRegister);
	ENTRY(cuMemHostUnregister);
	ENTRY(cuMemFreeHost);
	ENTRY(cuMemFree);
	ENTRY(cuMemsetD32);
	ENTRY(cuIpcGetMemHandle);
	const CUmemAccess_flags none = CU_MEM_ACCESS_FLAGS_PROT_NONE, read = CU_MEM_ACCESS_FLAGS_PROT_READ,
				all = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
	const CUmemLocationType device = CU_MEM_LOCATION_TYPE_DEVICE, host = CU_MEM_LOCATION_TYPE_HOST,
				numa = CU_MEM_LOCATION_TYPE_HOST_NUMA, nearest = CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT;
	CUmemGenericAllocationHandle memory = 0;
	CUmemAllocationProp prop = {};
	CUmemAccessDesc access;
	unsigned long long flags = 0;
	CUipcMemHandle handle;
	size_t granule = 0, size = 0;
	CUdeviceptr at = 0, base = 0;
	unsigned host_flags = 0;

	prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
	prop.location.type = type;
	current = type == host ? "HOST" : "HOST_NUMA";
	ASK(p_cuMemGetAllocationGranularity(&granule, &prop, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
	ASK(p_cuMemGetAllocationGranularity(&size, &prop, CU_MEM_ALLOC_GRANULARITY_RECOMMENDED));
	printf("%-10s granularity %zu, recommended %zu\n", current, granule, size);
	if (p_cuMemCreate(&memory, granule, &prop, 0)) {
		ASK(p_cuMemCreate(&memory, granule, &prop, 0));
		return;
	}
	DRIVER(p_cuMemAddressReserve(&at, granule, 0, 0, 0));
	DRIVER(p_cuMemMap(at, granule, 0, memory, 0));
	attribute<unsigned>("access flags before any were set", CU_POINTER_ATTRIBUTE_ACCESS_FLAGS, at);
	ASK(p_cuMemsetD32(at, 1, 16));
	/* For each place: whether it can be let, and what is told of it then. */
	const CUmemAccessDesc tried[] = {desc(host, 0, all), desc(host, 7, all), desc(numa, 0, all), desc(numa, 99, all),
		desc(nearest, 0, all), desc(host, 0, read), desc(numa, 0, read), desc(host, 0, none), desc(device, 0, read)};
	for (const CUmemAccessDesc &one : tried) {
		printf("%-10s access of place %d number %d to do %d: ", current, (int)one.location.type, one.location.id,
			(int)one.flags);
		printf("%d; ", (int)p_cuMemSetAccess(at, granule, &one, 1));
		flags = 77;
		printf("told %d ", (int)p_cuMemGetAccess(&flags, &one.location, at));
		printf("%llu\n", flags);
	}
	ASK(p_cuMemsetD32(at, 1, 16));
	access = desc(device, 0, all);
	DRIVER(p_cuMemSetAccess(at, granule, &access, 1));
	access = desc(type, 0, all);
	DRIVER(p_cuMemSetAccess(at, granule, &access, 1));
	ASK(p_cuMemsetD32(at, 0x01020304, 16));
	CUDA(cudaDeviceSynchronize());
	CHECK_EQ(((volatile unsigned *)at)[15], 0x01020304u);
	attribute<unsigned long long>("context", CU_POINTER_ATTRIBUTE_CONTEXT, at);
	attribute<unsigned>("memory type", CU_POINTER_ATTRIBUTE_MEMORY_TYPE, at);
	attribute<unsigned long long>("device pointer", CU_POINTER_ATTRIBUTE_DEVICE_POINTER, at);
	attribute<unsigned long long>("host pointer", CU_POINTER_ATTRIBUTE_HOST_POINTER, at);
	attribute<unsigned>("managed", CU_POINTER_ATTRIBUTE_IS_MANAGED, at);
	attribute<int>("device's number", CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, at);
	attribute<unsigned long long>("range's start", CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, at);
	attribute<unsigned long long>("range's size", CU_POINTER_ATTRIBUTE_RANGE_SIZE, at);
	attribute<unsigned>("mapped", CU_POINTER_ATTRIBUTE_MAPPED, at);
	attribute<unsigned>("capable of the older IPC", CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE, at);
	attribute<unsigned long long>("handle types", CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES, at);
	attribute<unsigned>("access flags", CU_POINTER_ATTRIBUTE_ACCESS_FLAGS, at);
	attribute<unsigned long long>("mapping's base", CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR, at);
	attribute<unsigned long long>("mapping's size", CU_POINTER_ATTRIBUTE_MAPPING_SIZE, at);
	ASK(p_cuMemGetAddressRange(&base, &size, at + 64));
	ASK(p_cuMemHostGetFlags(&host_flags, (void *)at));
	ASK(p_cuMemHostGetDevicePointer(&base, (void *)at, 0));
	ASK(p_cuMemHostRegister((void *)at, 4096, 0));
	ASK(p_cuMemHostUnregister((void *)at));
	ASK(p_cuMemFreeHost((void *)at));
	ASK(p_cuMemFree(at));
	ASK(p_cuIpcGetMemHandle(&handle, at));
	DRIVER(p_cuMemRelease(memory));
	DRIVER(p_cuMemUnmap(at, granule));
	DRIVER(p_cuMemAddressFree(at, granule));
}

/* Memory of the device, and whether the host is let to it. */
static void asked_of_the_device()
{
	ENTRY(cuMemCreate);
	ENTRY(cuMemRelease);
	ENTRY(cuMemAddressReserve);
	ENTRY(cuMemAddressFree);
	ENTRY(cuMemMap);
	ENTRY(cuMemUnmap);
	ENTRY(cuMemSetAccess);
	const size_t granule = 2 << 20;
	CUmemGenericAllocationHandle memory;
	CUmemAllocationProp prop = {};
	CUmemAccessDesc access;
	CUdeviceptr at;

	current = "DEVICE";
	prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
	prop.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
	DRIVER(p_cuMemCreate(&memory, granule, &prop, 0));
	DRIVER(p_cuMemAddressReserve(&at, granule, 0, 0, 0));
	DRIVER(p_cuMemMap(at, granule, 0, memory, 0));
	for (int place = 2; place <= 4; place++) {
		access = desc((CUmemLocationType)place, 0, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
		ASK(p_cuMemSetAccess(at, granule, &access, 1));
	}
	DRIVER(p_cuMemUnmap(at, granule));
	CUDA(cudaDeviceReset());
	CUDA(cudaFree(0));
	/* Whether a handle outlives the context that was current when it was made. */
	DRIVER(p_cuMemAddressReserve(&at, granule, 0, 0, 0));
	ASK(p_cuMemMap(at, granule, 0, memory, 0));
	ASK(p_cuMemUnmap(at, granule));
	ASK(p_cuMemRelease(memory));
	ASK(p_cuMemAddressFree(at, granule));
}

int main()
{
	CUDA(cudaFree(0));
	asked(CU_MEM_LOCATION_TYPE_HOST);
	asked(CU_MEM_LOCATION_TYPE_HOST_NUMA);
	asked_of_the_device();
	return 0;
}
