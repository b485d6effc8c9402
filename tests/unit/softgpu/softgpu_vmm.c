/* SPDX-License-Identifier: Apache-2.0
 *
 * The software GPU's VMM calls: memory of the device at a fixed address and at several, and
 * memory of the machine's.
 */
#include "tests/unit/softgpu/softgpu_test.h"

static void vmm_at_a_fixed_address(void **state)
{
	const CUdeviceptr wish = 0x200000000000;
	CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
		.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0}};
	CUmemAccessDesc access = {
		.location = prop.location, .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
	CUmemGenericAllocationHandle one, two, again;
	size_t granule, before, after, total;
	unsigned long long flags;
	CUdeviceptr p, other;
	uint32_t value = 0;

	(void)state;
	ok(cuMemGetAllocationGranularity(&granule, &prop, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
	assert_int_equal(granule, 2 << 20);
	ok(cuMemGetInfo(&before, &total));
	ok(cuMemAddressReserve(&p, (size_t)1 << 38, 0, fixed_address(wish), 0));
	if (fixed_address(wish))
		assert_true(p == wish);
	/* What is taken already is not given again. */
	ok(cuMemAddressReserve(&other, granule, 0, p + granule, 0));
	assert_true(other < p || other >= p + ((size_t)1 << 38));
	ok(cuMemCreate(&one, granule, &prop, 0));
	ok(cuMemCreate(&two, 2 * granule, &prop, 0));
	ok(cuMemGetInfo(&after, &total));
	assert_int_equal(before - after, 3 * granule);
	ok(cuMemMap(p, granule, 0, one, 0));
	is(cuMemMap(p, granule, 0, one, 0), CUDA_ERROR_INVALID_VALUE);
	ok(cuMemMap(p + granule, 2 * granule, 0, two, 0));
	is(cuMemcpyHtoD(p, &value, 4), CUDA_ERROR_INVALID_VALUE); /* no access yet */
	ok(cuMemSetAccess(p, 3 * granule, &access, 1));
	ok(cuMemGetAccess(&flags, &prop.location, p));
	assert_int_equal(flags, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
	/* Across the seam of two mappings. */
	ok(cuMemsetD8(p + granule - 4, 0x11, 8));
	ok(cuMemcpyDtoH(&value, p + granule - 2, 4));
	assert_int_equal(value, 0x11111111);
	is(cuMemsetD8(p + 3 * granule - 4, 0x11, 8), CUDA_ERROR_INVALID_VALUE);
	/* The same memory at a second address. */
	ok(cuMemMap(other, granule, 0, one, 0));
	ok(cuMemSetAccess(other, granule, &access, 1));
	value = 0xfeedface;
	ok(cuMemcpyHtoD(p + 64, &value, 4));
	value = 0;
	ok(cuMemcpyDtoH(&value, other + 64, 4));
	assert_int_equal(value, 0xfeedface);
	ok(cuMemRetainAllocationHandle(&again, (void *)(uintptr_t)(p + 5)));
	assert_true(again == one);
	ok(cuMemRelease(again));
	ok(cuMemRelease(one));
	ok(cuMemRelease(two));
	is(cuMemRelease(two), CUDA_ERROR_INVALID_VALUE);
	is(cuMemAddressFree(p, (size_t)1 << 38), CUDA_ERROR_INVALID_VALUE); /* still mapped */
	is(cuMemUnmap(p, granule / 2), CUDA_ERROR_INVALID_VALUE);
	ok(cuMemUnmap(p, 3 * granule));
	ok(cuMemUnmap(other, granule));
	is(cuMemcpyHtoD(p, &value, 4), CUDA_ERROR_INVALID_VALUE);
	ok(cuMemGetInfo(&after, &total));
	assert_int_equal(before, after);
	/* New physical memory reads as zeroes. */
	ok(cuMemCreate(&one, granule, &prop, 0));
	ok(cuMemMap(p, granule, 0, one, 0));
	ok(cuMemSetAccess(p, granule, &access, 1));
	value = 1;
	ok(cuMemcpyDtoH(&value, p + 64, 4));
	assert_int_equal(value, 0);
	ok(cuMemUnmap(p, granule));
	ok(cuMemRelease(one));
	ok(cuMemAddressFree(other, granule));
	ok(cuMemAddressFree(p, (size_t)1 << 38));
	is(cuMemCreate(&one, total + granule, &prop, 0), CUDA_ERROR_OUT_OF_MEMORY);
}

static void memory_of_the_machine(void **state)
{
	static const CUmemLocationType types[] = {
		CU_MEM_LOCATION_TYPE_HOST, CU_MEM_LOCATION_TYPE_HOST_NUMA};
	CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED};
	CUmemAccessDesc access = {.location.type = CU_MEM_LOCATION_TYPE_DEVICE,
		.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
	CUmemGenericAllocationHandle memory;
	size_t granule, before, after, total;
	unsigned long long flags;
	unsigned type;
	CUdeviceptr p;

	(void)state;
	ok(cuMemGetInfo(&before, &total));
	for (size_t i = 0; i < sizeof(types) / sizeof(*types); i++) {
		prop.location.type = access.location.type = types[i];
		ok(cuMemGetAllocationGranularity(
			&granule, &prop, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
		ok(cuMemCreate(&memory, granule, &prop, 0));
		ok(cuMemAddressReserve(&p, granule, 0, 0, 0));
		ok(cuMemMap(p, granule, 0, memory, 0));
		ok(cuMemSetAccess(p, granule, &access, 1));
		ok(cuMemGetAccess(&flags, &access.location, p));
		assert_int_equal(flags, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
		memset((void *)(uintptr_t)p, 7, granule);
		access.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
		ok(cuMemGetAccess(&flags, &access.location, p));
		assert_int_equal(flags, CU_MEM_ACCESS_FLAGS_PROT_NONE);
		ok(cuMemSetAccess(p, granule, &access, 1));
		ok(cuMemsetD8(p + 4, 9, granule - 4));
		ok(cuCtxSynchronize());
		assert_int_equal(*(char *)(uintptr_t)(p + 3), 7);
		assert_int_equal(*(char *)(uintptr_t)(p + granule - 1), 9);
		ok(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, p));
		assert_int_equal(type, CU_MEMORYTYPE_HOST);
		/* No device's, and no other node's than it was made for. */
		ok(cuMemGetInfo(&after, &total));
		assert_int_equal(before, after);
		access.location.type = CU_MEM_LOCATION_TYPE_HOST_NUMA;
		is(cuMemSetAccess(p, granule, &access, 1),
			i ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE);
		ok(cuMemUnmap(p, granule));
		ok(cuMemRelease(memory));
		ok(cuMemAddressFree(p, granule));
	}
	prop.location.id = 1;
	is(cuMemCreate(&memory, granule, &prop, 0), CUDA_ERROR_INVALID_VALUE);
	prop.location.type = CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT;
	is(cuMemCreate(&memory, granule, &prop, 0), CUDA_ERROR_INVALID_VALUE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(vmm_at_a_fixed_address),
		cmocka_unit_test(memory_of_the_machine),
	};

	setenv("VCUDA_SOFTGPU_MEMORY", "256M", 1);
	return cmocka_run_group_tests(tests, context_setup, context_teardown);
}
