/* SPDX-License-Identifier: Apache-2.0
 *
 * Modules in every form and launches in every form, with kernels that nvcc compiled
 * (softgpu_kernels.cu): what loads, what is refused, what is computed, and that a fault sticks.
 */
#include "tests/unit/softgpu_test.h"

#include <stdio.h>
#include <unistd.h>

static char *load(const char *name)
{
	char path[512];
	char *bytes;
	FILE *file;
	long end;

	snprintf(path, sizeof(path), "%s/%s", IMAGES, name);
	file = fopen(path, "rb");
	assert_non_null(file);
	fseek(file, 0, SEEK_END);
	end = ftell(file);
	rewind(file);
	bytes = calloc(1, (size_t)end + 1);
	assert_non_null(bytes);
	assert_int_equal(fread(bytes, 1, (size_t)end, file), end);
	fclose(file);
	return bytes;
}

static CUmodule module_of(const char *name)
{
	char *image = load(name);
	CUmodule module;

	ok(cuModuleLoadData(&module, image));
	free(image);
	return module;
}

/* A context of its own, for what poisons it. */
static CUcontext context_new(void)
{
	CUcontext context;

	ok(cuCtxCreate(&context, NULL, 0, 0));
	return context;
}

static void every_image_loads_and_runs(void **state)
{
	static const char *const names[] = {
		"kernels.ptx", "none.fatbin", "zstd.fatbin", "lz4.fatbin"};

	(void)state;
	for (int i = 0; i < 4; i++) {
		CUmodule module = module_of(names[i]);
		int values[100], n = 100, value = i;
		CUdeviceptr d, counter;
		CUfunction add;
		size_t size;
		unsigned count;
		void *params[] = {&d, &n, &value};

		for (int k = 0; k < n; k++)
			values[k] = k;
		ok(cuModuleGetFunctionCount(&count, module));
		assert_int_equal(count, 8);
		ok(cuModuleGetFunction(&add, module, "add"));
		is(cuModuleGetFunction(&add, module, "subtract"), CUDA_ERROR_NOT_FOUND);
		ok(cuModuleGetGlobal(&counter, &size, module, "counter"));
		assert_int_equal(size, 4);
		ok(cuMemsetD32(counter, 1000, 1));
		ok(cuMemAlloc(&d, sizeof(values)));
		ok(cuMemcpyHtoD(d, values, sizeof(values)));
		ok(cuLaunchKernel(add, 4, 1, 1, 32, 1, 1, 0, NULL, params, NULL));
		ok(cuMemcpyDtoH(values, d, sizeof(values)));
		for (int k = 0; k < n; k++)
			assert_int_equal(values[k], k + 1000 + i);
		ok(cuMemFree(d));
		ok(cuModuleUnload(module));
		is(cuModuleUnload(module), CUDA_ERROR_INVALID_HANDLE);
	}
}

/* A kernel of one statement, in line 6. */
#define PTX_OF_ONE                                                                             \
	".version 8.0\n.target sm_75\n.address_size 64\n.visible .entry k()\n"                 \
	"{ .reg .b32 %%r<5>; .reg .b64 %%rd<3>; .reg .f32 %%f<3>;\n%s\nret; }\n"

static void what_is_not_an_image_is_refused(void **state)
{
	static const char garbage[64] = "this is neither PTX nor anything else";
	static const char broken[] = ".version 8.0\n.target sm_75\n.address_size 64\n"
				     ".visible .entry k()\n{\n\tfrobnicate.u32 %r1;\n";
	char log[256] = "";
	CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
	void *values[] = {log, (void *)sizeof(log)};
	CUmodule module;

	(void)state;
	is(cuModuleLoadData(&module, garbage), CUDA_ERROR_INVALID_IMAGE);
	is(cuModuleLoadData(&module, NULL), CUDA_ERROR_INVALID_VALUE);
	is(cuModuleLoadDataEx(&module, broken, 2, options, values), CUDA_ERROR_INVALID_PTX);
	assert_non_null(strstr(log, "PTX line"));
	assert_true((size_t)values[1] == strlen(log) + 1);
	is(cuModuleLoad(&module, "/nowhere/kernels.ptx"), CUDA_ERROR_FILE_NOT_FOUND);
}

/* What ptxas would refuse is refused, and told; what the interpreter does not have is not. */
static void what_is_no_ptx_is_refused(void **state)
{
	static const struct {
		const char *body, *said;
	} wrong[] =
		{
			{"frobnicate.u32 %r1, %r2;", "frobnicate"},
			{"add.u33 %r1, %r2, %r3;", "add.u33"},
			{"add.u32 %r1, %r2;", "add.u32"},
			{"add.u32 %r1, %r2, %undeclared;", "%undeclared"},
			{"add.u32 %r9, %r2, %r3;", "%r9"},
			{"add.u32 %r1, %r2, nothing;", "nothing"},
			{"ld.global.u32 %r1, [nowhere];", "nowhere"},
			{"mov.u32 %r1 } ] , ;", "mov.u32"},
			{"add.u32 %r1, %r2, %r3", "';'"},
			{"bra NOWHERE;", "NOWHERE"},
			{"call nobody, ();", "nobody"},
		},
	  *w;
	static const char *const served_elsewhere[] = {
		"tex.2d.v4.f32.f32 {%f1, %f1, %f1, %f1}, [%rd1, {%f1, %f1}];",
		"mov.u32 %r1, %envreg3;", "max.s32 %r1, %r1, %r2, %r3;",
		"wgmma.fence.sync.aligned;"};
	CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
	CUmodule module;
	char text[512], log[256];

	(void)state;
	for (w = wrong; w < wrong + sizeof(wrong) / sizeof(wrong[0]); w++) {
		void *values[] = {log, (void *)sizeof(log)};

		snprintf(text, sizeof(text), PTX_OF_ONE, w->body);
		log[0] = 0;
		if (cuModuleLoadDataEx(&module, text, 2, options, values) !=
			CUDA_ERROR_INVALID_PTX)
			fail_msg("%s: taken", w->body);
		if (!strstr(log, "PTX line 6") || !strstr(log, w->said))
			fail_msg("%s: said '%s'", w->body, log);
	}
	for (size_t i = 0; i < sizeof(served_elsewhere) / sizeof(served_elsewhere[0]); i++) {
		snprintf(text, sizeof(text), PTX_OF_ONE, served_elsewhere[i]);
		if (cuModuleLoadData(&module, text))
			fail_msg("%s: refused", served_elsewhere[i]);
		ok(cuModuleUnload(module));
	}
}

/* As on a device that the machine code is not for. */
static void machine_code_is_refused(void **state)
{
	char log[256] = "";
	CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
	void *values[] = {log, (void *)sizeof(log)};
	char *image = load("kernels.cubin");
	CUlibrary library;
	CUmodule module;

	(void)state;
	is(cuModuleLoadData(&module, image), CUDA_ERROR_NO_BINARY_FOR_GPU);
	is(cuModuleLoadDataEx(&module, image, 2, options, values),
		CUDA_ERROR_NO_BINARY_FOR_GPU);
	assert_non_null(strstr(log, "machine code"));
	is(cuLibraryLoadData(&library, image, NULL, NULL, 0, NULL, NULL, 0),
		CUDA_ERROR_NO_BINARY_FOR_GPU);
	memset(image + 40, 0xff, 8); /* where its sections are told of */
	is(cuModuleLoadData(&module, image), CUDA_ERROR_INVALID_IMAGE);
	free(image);
}

/* A program may carry kernels that it does not run here. */
static void machine_code_in_a_fat_binary_loads_but_does_not_run(void **state)
{
	CUmodule module = module_of("machine.fatbin");
	unsigned count = 0;
	CUfunction small;

	(void)state;
	ok(cuModuleGetFunctionCount(&count, module));
	assert_true(count > 0);
	is(cuModuleGetFunction(&small, module, "small"), CUDA_ERROR_NO_BINARY_FOR_GPU);
	is(cuModuleGetFunction(&small, module, "nothing"), CUDA_ERROR_NOT_FOUND);
	ok(cuModuleEnumerateFunctions(&small, 1, module));
	is(cuLaunchKernel(small, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL),
		CUDA_ERROR_NO_BINARY_FOR_GPU);
	ok(cuCtxSynchronize()); /* a refusal, not a fault */
	ok(cuModuleUnload(module));
}

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

static void libraries_belong_to_no_context(void **state)
{
	CUcontext first, second;
	char *image = load("zstd.fatbin");
	CUlibrary library, home;
	CUkernel kernel, all[16];
	CUfunction one, two;
	CUdeviceptr a, b, d;
	CUmodule module;
	const char *name;
	int n = 1, value = 1, got = 0;
	size_t size;
	unsigned count;
	void *params[] = {&d, &n, &value};

	(void)state;
	ok(cuCtxGetCurrent(&first));
	ok(cuLibraryLoadData(&library, image, NULL, NULL, 0, NULL, NULL, 0));
	free(image);
	ok(cuLibraryGetKernelCount(&count, library));
	assert_int_equal(count, 8);
	ok(cuLibraryEnumerateKernels(all, 16, library));
	ok(cuLibraryGetKernel(&kernel, library, "add"));
	is(cuLibraryGetKernel(&kernel, library, "none"), CUDA_ERROR_NOT_FOUND);
	ok(cuKernelGetName(&name, kernel));
	assert_string_equal(name, "add");
	ok(cuKernelGetLibrary(&home, kernel));
	assert_ptr_equal(home, library);
	ok(cuKernelGetFunction(&one, kernel));
	ok(cuLibraryGetGlobal(&a, &size, library, "counter"));
	second = context_new();
	ok(cuKernelGetFunction(&two, kernel));
	assert_ptr_not_equal(one, two);
	ok(cuLibraryGetGlobal(&b, &size, library, "counter"));
	assert_true(a != b);
	ok(cuLibraryGetModule(&module, library));
	/* A kernel launches as a function does. */
	ok(cuMemAlloc(&d, 4));
	ok(cuMemsetD32(d, 0, 1));
	ok(cuLaunchKernel((CUfunction)kernel, 1, 1, 1, 32, 1, 1, 0, NULL, params, NULL));
	ok(cuMemcpyDtoH(&got, d, 4));
	assert_int_equal(got, 8);
	ok(cuCtxDestroy(second));
	ok(cuLibraryUnload(library));
	is(cuLibraryUnload(library), CUDA_ERROR_INVALID_HANDLE);
	is(cuKernelGetName(&name, kernel), CUDA_ERROR_INVALID_HANDLE);
}

static void linked_texts_run_together(void **state)
{
	/* Each keeps a variable of the same name to itself; the first calls into the second. */
	static const char main_text[] =
		".version 7.5\n.target sm_75\n.address_size 64\n"
		".extern .func (.param .b32 r) twice(.param .b32 x);\n"
		".global .align 4 .u32 own = 5;\n"
		".visible .entry run(.param .u64 to)\n{\n"
		"\t.reg .b32 %r<4>;\n\t.reg .b64 %rd<3>;\n"
		"\tld.param.u64 %rd1, [to];\n\tcvta.to.global.u64 %rd2, %rd1;\n"
		"\tld.global.u32 %r1, [own];\n"
		"\t{\n\t.param .b32 p0;\n\tst.param.b32 [p0], %r1;\n\t.param .b32 q0;\n"
		"\tcall.uni (q0), twice, (p0);\n\tld.param.b32 %r2, [q0];\n\t}\n"
		"\tst.global.u32 [%rd2], %r2;\n\tret;\n}\n";
	static const char second_text[] =
		".version 7.5\n.target sm_75\n.address_size 64\n"
		".global .align 4 .u32 own = 100;\n"
		".visible .func (.param .b32 r) twice(.param .b32 x)\n{\n"
		"\t.reg .b32 %r<5>;\n\tld.param.b32 %r1, [x];\n"
		"\tld.global.u32 %r2, [own];\n\tadd.u32 %r3, %r1, %r1;\n"
		"\tadd.u32 %r4, %r3, %r2;\n\tst.param.b32 [r], %r4;\n\tret;\n}\n";
	CUlinkState link;
	CUmodule module;
	CUfunction run;
	CUdeviceptr d;
	void *image, *params[] = {&d};
	size_t size;
	int got = 0;

	(void)state;
	for (int order = 0; order < 2; order++) {
		const char *texts[] = {main_text, second_text};

		ok(cuLinkCreate(0, NULL, NULL, &link));
		for (int i = 0; i < 2; i++) {
			const char *text = texts[(i + order) % 2];

			ok(cuLinkAddData(link, CU_JIT_INPUT_PTX, (void *)(uintptr_t)text,
				strlen(text) + 1, "part", 0, NULL, NULL));
		}
		ok(cuLinkComplete(link, &image, &size));
		ok(cuModuleLoadData(&module, image));
		ok(cuLinkDestroy(link));
		ok(cuModuleGetFunction(&run, module, "run"));
		ok(cuMemAlloc(&d, 4));
		ok(cuLaunchKernel(run, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL));
		ok(cuMemcpyDtoH(&got, d, 4));
		assert_int_equal(got, 110);
		ok(cuMemFree(d));
		ok(cuModuleUnload(module));
	}
	is(cuLinkDestroy(link), CUDA_ERROR_INVALID_HANDLE);
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
		cmocka_unit_test(every_image_loads_and_runs),
		cmocka_unit_test(what_is_not_an_image_is_refused),
		cmocka_unit_test(what_is_no_ptx_is_refused),
		cmocka_unit_test(machine_code_is_refused),
		cmocka_unit_test(machine_code_in_a_fat_binary_loads_but_does_not_run),
		cmocka_unit_test(functions_describe_themselves),
		cmocka_unit_test(parameters_by_array_and_by_buffer),
		cmocka_unit_test(launches_are_checked),
		cmocka_unit_test(launch_ex_and_cooperative),
		cmocka_unit_test(libraries_belong_to_no_context),
		cmocka_unit_test(linked_texts_run_together),
		cmocka_unit_test(occupancy_is_arithmetic),
		cmocka_unit_test(an_illegal_address_is_sticky),
		cmocka_unit_test(a_trap_is_sticky),
		cmocka_unit_test(running_kernels_see_the_host_and_can_be_ended),
	};

	return cmocka_run_group_tests(tests, context_setup, context_teardown);
}
