/* SPDX-License-Identifier: Apache-2.0
 *
 * The environment: what is set is obeyed, injected faults come where they were asked for, and
 * nonsense is refused.  It is read once a process, so each case is a process of its own.
 */
#include "tests/unit/softgpu/softgpu_test.h"

#include <stdio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static const char text[] = ".version 7.0\n.target sm_75\n.address_size 64\n"
			   ".visible .entry nothing()\n{\n\tret;\n}\n";

/* In the child: a step that fails ends it with the line's number. */
#define step(condition)                                                                        \
	do {                                                                                   \
		if (!(condition)) {                                                            \
			fprintf(stderr, "line %d: %s\n", __LINE__, #condition);                \
			_exit(1);                                                              \
		}                                                                              \
	} while (0)

static void run(void (*body)(void), const char *name, const char *value, const char *other,
	const char *other_value)
{
	int status;
	pid_t child = fork();

	assert_true(child >= 0);
	if (!child) {
		alarm(60);
		setenv(name, value, 1);
		if (other)
			setenv(other, other_value, 1);
		body();
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

static CUfunction nothing(CUcontext *context)
{
	CUfunction function;
	CUmodule module;

	step(!cuInit(0));
	step(!cuCtxCreate(context, NULL, 0, 0));
	step(!cuModuleLoadData(&module, text));
	step(!cuModuleGetFunction(&function, module, "nothing"));
	return function;
}

static CUresult launch(CUfunction function)
{
	return cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL);
}

static void second_launch_faults(void)
{
	CUcontext context;
	CUfunction function = nothing(&context);

	step(launch(function) == CUDA_SUCCESS);
	step(cuCtxSynchronize() == CUDA_SUCCESS);
	step(launch(function) == CUDA_SUCCESS);
	step(cuCtxSynchronize() == CUDA_ERROR_ILLEGAL_ADDRESS);
	step(launch(function) == CUDA_ERROR_ILLEGAL_ADDRESS);
	step(cuCtxDestroy(context) == CUDA_SUCCESS);
	/* The device is well: only the context was poisoned. */
	function = nothing(&context);
	step(launch(function) == CUDA_SUCCESS);
	step(cuCtxSynchronize() == CUDA_SUCCESS);
}

static void first_launch_times_out(void)
{
	CUcontext context;
	CUfunction function = nothing(&context);
	struct timespec begin, end;
	double seconds;
	int limited = 0;

	step(!cuDeviceGetAttribute(&limited, CU_DEVICE_ATTRIBUTE_KERNEL_EXEC_TIMEOUT, 0));
	step(limited == 1);
	clock_gettime(CLOCK_MONOTONIC, &begin);
	step(launch(function) == CUDA_SUCCESS);
	step(cuCtxSynchronize() == CUDA_ERROR_LAUNCH_TIMEOUT);
	clock_gettime(CLOCK_MONOTONIC, &end);
	seconds = (double)(end.tv_sec - begin.tv_sec) +
		  (double)(end.tv_nsec - begin.tv_nsec) / 1e9;
	step(seconds >= 0.2);
}

static void a_hanging_launch_ends_with_its_context(void)
{
	CUcontext context;
	CUfunction function = nothing(&context);

	step(launch(function) == CUDA_SUCCESS);
	usleep(20000);
	step(cuStreamQuery(NULL) == CUDA_ERROR_NOT_READY);
	step(cuCtxDestroy(context) == CUDA_SUCCESS);
}

static void memory_ends_early(void)
{
	CUcontext context;
	CUdeviceptr a, b;

	step(!cuInit(0));
	step(!cuCtxCreate(&context, NULL, 0, 0));
	step(!cuMemAlloc(&a, 700 << 10));
	step(cuMemAlloc(&b, 700 << 10) == CUDA_ERROR_OUT_OF_MEMORY);
	step(!cuMemAlloc(&b, 100 << 10));
	step(!cuMemFree(a));
	step(!cuMemAlloc(&a, 700 << 10));
}

/* 64 threads each store 6 at their own place, and one more thing in shared memory. */
static const char sixes[] =
	".version 7.0\n.target sm_75\n.address_size 64\n"
	".visible .entry sixes(.param .u64 to)\n{\n"
	"\t.shared .u32 s;\n\t.reg .u64 %a, %i;\n\t.reg .u32 %t, %v;\n"
	"\tld.param.u64 %a, [to];\n\tcvta.to.global.u64 %a, %a;\n\tmov.u32 %t, %tid.x;\n"
	"\tmul.wide.u32 %i, %t, 4;\n\tadd.u64 %a, %a, %i;\n\tmov.u32 %v, 6;\n"
	"\tst.shared.u32 [s], %v;\n\tst.global.u32 [%a], %v;\n\tret;\n}\n";

static void every_second_launch_is_wrong(void)
{
	CUcontext context;
	CUfunction function;
	CUmodule module;
	CUdeviceptr memory;
	void *params[] = {&memory};
	unsigned got[64];

	step(!cuInit(0) && !cuCtxCreate(&context, NULL, 0, 0));
	step(!cuModuleLoadData(&module, sixes));
	step(!cuModuleGetFunction(&function, module, "sixes"));
	step(!cuMemAlloc(&memory, sizeof(got)));
	for (int round = 1; round <= 4; round++) {
		int wrong = 0;

		step(!cuLaunchKernel(function, 1, 1, 1, 64, 1, 1, 0, NULL, params, NULL));
		step(!cuMemcpyDtoH(got, memory, sizeof(got)));
		for (int k = 0; k < 64; k++)
			wrong += __builtin_popcount(got[k] ^ 6);
		step(wrong == (round % 2 ? 0 : 1));
	}
}

static void init_is_invalid(void)
{
	step(cuInit(0) == CUDA_ERROR_INVALID_VALUE);
}

static void driver_is_of_13_4(void)
{
	int version = 0;

	step(!cuDriverGetVersion(&version) && version == 13040);
	step(!cuInit(0));
}

static void there_is_no_device(void)
{
	step(cuInit(0) == CUDA_ERROR_NO_DEVICE);
}

static void injected_faults(void **state)
{
	(void)state;
	run(second_launch_faults, "VCUDA_SOFTGPU_FAULT", "launch-fault=2", NULL, NULL);
	run(first_launch_times_out, "VCUDA_SOFTGPU_FAULT", "hang-launch=1",
		"VCUDA_SOFTGPU_TIMEOUT_MS", "200");
	run(a_hanging_launch_ends_with_its_context, "VCUDA_SOFTGPU_FAULT", "hang-launch=1",
		NULL, NULL);
	run(every_second_launch_is_wrong, "VCUDA_SOFTGPU_FAULT", "wrong-result=2", NULL, NULL);
	run(memory_ends_early, "VCUDA_SOFTGPU_FAULT", "oom-at=1M,launch-fault=9", NULL, NULL);
}

static void nonsense_is_refused(void **state)
{
	(void)state;
	run(init_is_invalid, "VCUDA_SOFTGPU_MEMORY", "much", NULL, NULL);
	run(init_is_invalid, "VCUDA_SOFTGPU_MEMORY", "-1", NULL, NULL);
	run(init_is_invalid, "VCUDA_SOFTGPU_MEMORY", "99999999999T", NULL, NULL);
	run(init_is_invalid, "VCUDA_SOFTGPU_DEVICES", "9", NULL, NULL);
	run(init_is_invalid, "VCUDA_SOFTGPU_FAULT", "explode", NULL, NULL);
	run(init_is_invalid, "VCUDA_SOFTGPU_FAULT", "launch-fault=x", NULL, NULL);
	run(init_is_invalid, "VCUDA_SOFTGPU_DRIVER_VERSION", "13", NULL, NULL);
	run(init_is_invalid, "VCUDA_SOFTGPU_DRIVER_VERSION", "11.8", NULL, NULL);
	run(init_is_invalid, "VCUDA_SOFTGPU_DRIVER_VERSION", "13.6", NULL, NULL);
	run(there_is_no_device, "VCUDA_SOFTGPU_DEVICES", "0", NULL, NULL);
}

static void settings_are_told(void **state)
{
	(void)state;
	run(driver_is_of_13_4, "VCUDA_SOFTGPU_DRIVER_VERSION", "13.4", NULL, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(injected_faults),
		cmocka_unit_test(nonsense_is_refused),
		cmocka_unit_test(settings_are_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
