/* SPDX-License-Identifier: Apache-2.0
 *
 * Launches in every form, with kernels that nvcc compiled (softgpu_kernels.cu): what is
 * refused, what is computed, and that a fault sticks.
 */
#include <unistd.h>

#include "tests/unit/softgpu/softgpu_images.h"

static void functions_describe_themselves(void **state)
{
	CUmodule module = module_of("kernels.ptx"), home;
	CUfunction mixed, small, sum;
	size_t offset, size;
	const char *name;
	int value;

	(void)state;
	ok(cuModuleGetFunction(&mixed, module, "mixed"));
	ok(cuModuleGetFunction(&small, module, "small"));
	ok(cuModuleGetFunction(&sum, module, "sum_shared"));
	ok(cuFuncGetName(&name, mixed));
	assert_string_equal(name, "mixed");
	ok(cuFuncGetModule(&home, mixed));
	assert_ptr_equal(home, module);
	ok(cuFuncGetParamInfo(mixed, 1, &offset, &size));
	assert_int_equal(offset, 8);
	assert_int_equal(size, 8);
	ok(cuFuncGetParamInfo(mixed, 3, &offset, &size));
	assert_int_equal(offset, 24);
	is(cuFuncGetParamInfo(mixed, 4, &offset, &size), CUDA_ERROR_INVALID_VALUE);
	ok(cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, small));
	assert_int_equal(value, 64);
	ok(cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, sum));
	assert_int_equal(value, 128);
	ok(cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_NUM_REGS, sum));
	assert_true(value >= 1 && value <= 255);
	ok(cuFuncSetAttribute(sum, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 100000));
	is(cuFuncSetAttribute(sum, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 200000),
		CUDA_ERROR_INVALID_VALUE);
	is(cuFuncSetAttribute(sum, CU_FUNC_ATTRIBUTE_NUM_REGS, 1), CUDA_ERROR_INVALID_VALUE);
	ok(cuModuleUnload(module));
}

static void parameters_by_array_and_by_buffer(void **state)
{
	CUmodule module = module_of("kernels.ptx");
	char a = -3;
	double b = 12.75;
	short c = 1000;
	int got[3];
	struct {
		char a;
		double b;
		short c;
		CUdeviceptr out;
	} buffer = {-4, 99.5, -7, 0};
	size_t size = sizeof(buffer);
	CUdeviceptr out;
	CUfunction mixed;
	void *params[] = {&a, &b, &c, &out};
	void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &buffer, CU_LAUNCH_PARAM_BUFFER_SIZE,
		&size, CU_LAUNCH_PARAM_END};

	(void)state;
	ok(cuMemAlloc(&out, sizeof(got)));
	buffer.out = out;
	ok(cuModuleGetFunction(&mixed, module, "mixed"));
	ok(cuLaunchKernel(mixed, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL));
	ok(cuMemcpyDtoH(got, out, sizeof(got)));
	assert_int_equal(got[0], -3);
	assert_int_equal(got[1], 12);
	assert_int_equal(got[2], 1000);
	ok(cuLaunchKernel(mixed, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, extra));
	ok(cuMemcpyDtoH(got, out, sizeof(got)));
	assert_int_equal(got[0], -4);
	assert_int_equal(got[1], 99);
	assert_int_equal(got[2], -7);
	is(cuLaunchKernel(mixed, 1, 1, 1, 1, 1, 1, 0, NULL, params, extra),
		CUDA_ERROR_INVALID_VALUE);
	is(cuLaunchKernel(mixed, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL),
		CUDA_ERROR_INVALID_VALUE);
	size = 4;
	is(cuLaunchKernel(mixed, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, extra),
		CUDA_ERROR_INVALID_VALUE);
	ok(cuMemFree(out));
	ok(cuModuleUnload(module));
}

static void launches_are_checked(void **state)
{
	CUmodule module = module_of("kernels.ptx");
	CUfunction small, sum;
	CUdeviceptr d;
	void *params[] = {&d, &d};

	(void)state;
	ok(cuMemAlloc(&d, 4096));
	ok(cuModuleGetFunction(&small, module, "small"));
	ok(cuModuleGetFunction(&sum, module, "sum_shared"));
	is(cuLaunchKernel(small, 0, 1, 1, 1, 1, 1, 0, NULL, params, NULL),
		CUDA_ERROR_INVALID_VALUE);
	is(cuLaunchKernel(small, 1, 1, 1, 0, 1, 1, 0, NULL, params, NULL),
		CUDA_ERROR_INVALID_VALUE);
	is(cuLaunchKernel(small, 1, 65536, 1, 1, 1, 1, 0, NULL, params, NULL),
		CUDA_ERROR_INVALID_VALUE);
	is(cuLaunchKernel(sum, 1, 1, 1, 1025, 1, 1, 0, NULL, params, NULL),
		CUDA_ERROR_INVALID_VALUE);
	is(cuLaunchKernel(sum, 1, 1, 1, 1, 1, 65, 0, NULL, params, NULL),
		CUDA_ERROR_INVALID_VALUE);
	is(cuLaunchKernel(small, 1, 1, 1, 65, 1, 1, 0, NULL, params, NULL),
		CUDA_ERROR_INVALID_VALUE);
	is(cuLaunchKernel(sum, 1, 1, 1, 32, 1, 1, 49152, NULL, params, NULL),
		CUDA_ERROR_INVALID_VALUE);
	is(cuLaunchKernel((CUfunction)params, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL),
		CUDA_ERROR_INVALID_HANDLE);
	ok(cuLaunchKernel(small, 1, 1, 1, 64, 1, 1, 0, NULL, params, NULL));
	/* More than the static limit, once it is asked for. */
	ok(cuFuncSetAttribute(sum, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 100000));
	ok(cuLaunchKernel(sum, 1, 1, 1, 32, 1, 1, 100000, NULL, params, NULL));
	ok(cuCtxSynchronize());
	ok(cuMemFree(d));
	ok(cuModuleUnload(module));
}

static void launch_ex_and_cooperative(void **state)
{
	CUmodule module = module_of("kernels.ptx");
	CUlaunchAttribute cooperative = {
		.id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE, .value = {.cooperative = 1}};
	CUlaunchConfig config = {.gridDimX = 1,
		.gridDimY = 1,
		.gridDimZ = 1,
		.blockDimX = 64,
		.blockDimY = 1,
		.blockDimZ = 1,
		.sharedMemBytes = 256,
		.attrs = &cooperative,
		.numAttrs = 1};
	int from[64], got = 0, expected = 0;
	CUdeviceptr a, b;
	CUfunction sum;
	void *params[] = {&a, &b};

	(void)state;
	for (int i = 0; i < 64; i++)
		expected += from[i] = i * i;
	ok(cuMemAlloc(&a, sizeof(from)));
	ok(cuMemAlloc(&b, 4));
	ok(cuMemcpyHtoD(a, from, sizeof(from)));
	ok(cuModuleGetFunction(&sum, module, "sum_shared"));
	ok(cuLaunchKernelEx(&config, sum, params, NULL));
	ok(cuMemcpyDtoH(&got, b, 4));
	assert_int_equal(got, expected);
	ok(cuMemsetD32(b, 0, 1));
	ok(cuLaunchCooperativeKernel(sum, 1, 1, 1, 64, 1, 1, 256, NULL, params));
	ok(cuMemcpyDtoH(&got, b, 4));
	assert_int_equal(got, expected);
	is(cuLaunchCooperativeKernel(sum, 1000000, 1, 1, 64, 1, 1, 256, NULL, params),
		CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE);
	ok(cuMemFree(a));
	ok(cuMemFree(b));
	ok(cuModuleUnload(module));
}

/* What may stand for a launch's clusters: whole ones of them, that the grid is whole ones of.
 */
static void preferred_clusters_are_checked(void **state)
{
	static const struct {
		unsigned cluster, preferred;
		CUresult status;
	} cases[] = {{2, 2, CUDA_SUCCESS}, {2, 4, CUDA_SUCCESS}, {2, 12, CUDA_SUCCESS},
		{2, 3, CUDA_ERROR_INVALID_CLUSTER_SIZE},
		{2, 0, CUDA_ERROR_INVALID_CLUSTER_SIZE},
		{2, 8, CUDA_ERROR_INVALID_CLUSTER_SIZE}, {0, 5, CUDA_SUCCESS}};
	CUmodule module = module_of("kernels.ptx");
	CUlaunchConfig config = {.gridDimX = 12,
		.gridDimY = 1,
		.gridDimZ = 1,
		.blockDimX = 64,
		.blockDimY = 1,
		.blockDimZ = 1};
	CUdeviceptr d;
	CUfunction small;
	void *params[] = {&d};

	(void)state;
	ok(cuMemAlloc(&d, 4096));
	ok(cuModuleGetFunction(&small, module, "small"));
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		CUlaunchAttribute attributes[2] = {
			{.id = CU_LAUNCH_ATTRIBUTE_PREFERRED_CLUSTER_DIMENSION,
				.value.preferredClusterDim = {cases[i].preferred, 1, 1}},
			{.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION,
				.value.clusterDim = {cases[i].cluster, 1, 1}}};

		config.attrs = attributes;
		config.numAttrs = cases[i].cluster ? 2 : 1;
		is(cuLaunchKernelEx(&config, small, params, NULL), cases[i].status);
	}
	ok(cuCtxSynchronize());
	ok(cuMemFree(d));
	ok(cuModuleUnload(module));
}

static void occupancy_is_arithmetic(void **state)
{
	CUmodule module = module_of("kernels.ptx");
	int blocks, few, grid, block, registers;
	CUfunction small, sum;
	size_t room;

	(void)state;
	ok(cuModuleGetFunction(&small, module, "small"));
	ok(cuModuleGetFunction(&sum, module, "sum_shared"));
	ok(cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, small, 64, 0));
	assert_int_equal(blocks, 32);
	ok(cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, small, 128, 0));
	assert_int_equal(blocks, 0); /* its launch bounds say 64 */
	ok(cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, sum, 1024, 0));
	ok(cuFuncGetAttribute(&registers, CU_FUNC_ATTRIBUTE_NUM_REGS, sum));
	assert_in_range(registers, 1, 64);
	assert_int_equal(blocks, registers <= 32 ? 2 : 1);
	ok(cuOccupancyMaxActiveBlocksPerMultiprocessor(&few, sum, 32, 40000));
	assert_int_equal(few, 4); /* 164 KiB by 40000 + 128 + 1024, in units of 128 */
	ok(cuOccupancyMaxPotentialBlockSize(&grid, &block, sum, NULL, 0, 0));
	assert_true(block > 0 && block % 32 == 0 && grid > 0);
	ok(cuOccupancyAvailableDynamicSMemPerBlock(&room, sum, 4, 32));
	ok(cuFuncSetAttribute(sum, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 100000));
	ok(cuOccupancyMaxActiveBlocksPerMultiprocessor(&few, sum, 32, room));
	assert_int_equal(few, 4);
	ok(cuModuleUnload(module));
}

/* Everything on the context fails in the same way from then on; another context does not. */
static void sticks(CUcontext context, CUcontext before, CUresult fault)
{
	CUdeviceptr p;
	CUstream stream;

	is(cuCtxSynchronize(), fault);
	is(cuCtxSynchronize(), fault);
	is(cuMemAlloc(&p, 4), fault);
	is(cuStreamCreate(&stream, 0), fault);
	is(cuStreamQuery(NULL), fault);
	ok(cuCtxDestroy(context));
	ok(cuCtxSetCurrent(before));
	ok(cuMemAlloc(&p, 4));
	ok(cuMemFree(p));
}

static void an_illegal_address_is_sticky(void **state)
{
	CUcontext before, context;
	CUdeviceptr nowhere = 0x1000;
	CUfunction wild;
	CUmodule module;
	CUevent event;
	void *params[] = {&nowhere};

	(void)state;
	ok(cuCtxGetCurrent(&before));
	context = context_new();
	module = module_of("kernels.ptx");
	ok(cuModuleGetFunction(&wild, module, "wild"));
	ok(cuEventCreate(&event, 0));
	ok(cuLaunchKernel(wild, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL));
	cuEventRecord(event, NULL);
	is(cuEventSynchronize(event), CUDA_ERROR_ILLEGAL_ADDRESS);
	sticks(context, before, CUDA_ERROR_ILLEGAL_ADDRESS);
}

static void a_trap_is_sticky(void **state)
{
	CUcontext before, context;
	CUfunction trap;
	CUmodule module;

	(void)state;
	ok(cuCtxGetCurrent(&before));
	context = context_new();
	module = module_of("kernels.ptx");
	ok(cuModuleGetFunction(&trap, module, "trap"));
	ok(cuLaunchKernel(trap, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL));
	sticks(context, before, CUDA_ERROR_LAUNCH_FAILED);
}

/* Memory that the host writes ends a kernel that spins; so does the end of its context. */
static void running_kernels_see_the_host_and_can_be_ended(void **state)
{
	CUcontext before, context;
	CUfunction forever;
	CUmodule module;
	CUstream stream;
	CUdeviceptr d, never;
	static volatile int registered;
	volatile int *stop;
	void *params[] = {&d};

	(void)state;
	ok(cuCtxGetCurrent(&before));
	context = context_new();
	module = module_of("kernels.ptx");
	ok(cuModuleGetFunction(&forever, module, "forever"));
	ok(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	ok(cuMemHostAlloc((void **)(uintptr_t)&stop, 4, 0));
	*stop = 0;
	ok(cuMemHostGetDevicePointer(&d, (void *)(uintptr_t)stop, 0));
	ok(cuLaunchKernel(forever, 1, 1, 1, 1, 1, 1, 0, stream, params, NULL));
	usleep(20000);
	is(cuStreamQuery(stream), CUDA_ERROR_NOT_READY);
	__atomic_store_n(stop, 1, __ATOMIC_RELEASE);
	ok(cuStreamSynchronize(stream));
	/* Registered memory, outside of the window, as well; not once it is unregistered. */
	ok(cuMemHostRegister((void *)(uintptr_t)&registered, sizeof(registered), 0));
	d = (uintptr_t)&registered;
	ok(cuLaunchKernel(forever, 1, 1, 1, 1, 1, 1, 0, stream, params, NULL));
	usleep(20000);
	is(cuStreamQuery(stream), CUDA_ERROR_NOT_READY);
	__atomic_store_n(&registered, 1, __ATOMIC_RELEASE);
	ok(cuStreamSynchronize(stream));
	ok(cuMemHostUnregister((void *)(uintptr_t)&registered));
	ok(cuMemAlloc(&never, 4));
	d = never;
	ok(cuLaunchKernel(forever, 1, 1, 1, 1, 1, 1, 0, stream, params, NULL));
	ok(cuCtxDestroy(context));
	ok(cuCtxSetCurrent(before));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(functions_describe_themselves),
		cmocka_unit_test(parameters_by_array_and_by_buffer),
		cmocka_unit_test(launches_are_checked),
		cmocka_unit_test(launch_ex_and_cooperative),
		cmocka_unit_test(preferred_clusters_are_checked),
		cmocka_unit_test(occupancy_is_arithmetic),
		cmocka_unit_test(an_illegal_address_is_sticky),
		cmocka_unit_test(a_trap_is_sticky),
		cmocka_unit_test(running_kernels_see_the_host_and_can_be_ended),
	};

	return cmocka_run_group_tests(tests, context_setup, context_teardown);
}
