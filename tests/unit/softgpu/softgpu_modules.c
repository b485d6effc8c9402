/* SPDX-License-Identifier: Apache-2.0
 *
 * Modules in every form, with kernels that nvcc compiled (softgpu_kernels.cu): what loads and
 * runs, what is refused, and libraries and linked texts.
 */
#include "tests/unit/softgpu/softgpu_images.h"

#include <stdio.h>
#include <sys/resource.h>

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
	char *image = load("kernels.cubin", NULL);
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

static void libraries_belong_to_no_context(void **state)
{
	CUcontext first, second;
	char *image = load("zstd.fatbin", NULL);
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

/* With addresses for one copy of a long text, and not for two. */
static void a_library_reads_its_text_where_it_is(void **state)
{
	const size_t size = 64u << 20;
	char *text, field[32];
	FILE *statm;
	struct rlimit before, now;
	unsigned count;
	CUlibrary library;

	(void)state;
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
	skip(); /* whose own memory has addresses without a limit */
#endif
	text = malloc(size + 1);
	statm = fopen("/proc/self/statm", "r");
	assert_true(text && statm && fgets(field, sizeof(field), statm));
	fclose(statm);
	memset(text, '\n', size);
	text[size] = 0;
	count = (unsigned)snprintf(text, size,
		".version 8.0\n.target sm_75\n.address_size 64\n.visible .entry k()\n{ ret; "
		"}\n");
	text[count] = '\n';
	assert_int_equal(getrlimit(RLIMIT_AS, &before), 0);
	now = before;
	now.rlim_cur = strtoull(field, NULL, 10) * 4096 + size + size / 2;
	assert_int_equal(setrlimit(RLIMIT_AS, &now), 0);
	ok(cuLibraryLoadData(&library, text, NULL, NULL, 0, NULL, NULL, 0));
	assert_int_equal(setrlimit(RLIMIT_AS, &before), 0);
	ok(cuLibraryGetKernelCount(&count, library));
	assert_int_equal(count, 1);
	ok(cuLibraryUnload(library));
	free(text);
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

/* A graph may have a kernel of a module that is gone: it can be read, and destroyed. */
static void a_node_outlives_its_module(void **state)
{
	CUDA_KERNEL_NODE_PARAMS params = {.gridDimX = 3,
		.gridDimY = 1,
		.gridDimZ = 1,
		.blockDimX = 1,
		.blockDimY = 1,
		.blockDimZ = 1};
	CUDA_KERNEL_NODE_PARAMS read = {0};
	CUmodule others[16], module;
	char text[256];
	CUgraphNode node;
	CUgraphExec exec;
	CUgraph graph;

	(void)state;
	snprintf(text, sizeof(text), PTX_OF_ONE, "");
	ok(cuModuleLoadData(&module, text));
	ok(cuModuleGetFunction(&params.func, module, "k"));
	ok(cuGraphCreate(&graph, 0));
	ok(cuGraphAddKernelNode(&node, graph, NULL, 0, &params));
	ok(cuGraphInstantiateWithFlags(&exec, graph, 0));
	ok(cuModuleUnload(module));
	for (int i = 0; i < 16; i++) /* where the one that is gone was */
		ok(cuModuleLoadData(&others[i], text));
	ok(cuGraphKernelNodeGetParams(node, &read));
	assert_int_equal(read.gridDimX, 3);
	ok(cuGraphExecDestroy(exec));
	ok(cuGraphDestroy(graph));
	for (int i = 0; i < 16; i++)
		ok(cuModuleUnload(others[i]));
}

/* Relocatable code of a large library: names that each input has for itself. With each looked
 * for by reading all inputs again, this took minutes. */
static void inputs_with_thousands_of_names_are_linked(void **state)
{
	enum { INPUTS = 6, NAMES = 20000, LINE = 64 };
	char *text = malloc(LINE * (NAMES + 1));
	CUlinkState link;
	CUmodule module;
	CUfunction last;
	void *image;
	size_t size;

	(void)state;
	assert_non_null(text);
	ok(cuLinkCreate(0, NULL, NULL, &link));
	for (int input = 0; input < INPUTS; input++) {
		size_t n = (size_t)sprintf(
			text, ".version 8.0\n.target sm_75\n.address_size 64\n");

		for (int k = 0; k < NAMES; k++)
			n += (size_t)sprintf(text + n,
				".global .align 4 .u32 own_%d_%d = %d;\n", k, input, k);
		n += (size_t)sprintf(text + n,
			".global .u32 all = %d;\n.visible .entry k%d() { .reg .b32 %%r; "
			"ld.global.u32 %%r, [all]; ret; }\n",
			input, input);
		ok(cuLinkAddData(link, CU_JIT_INPUT_PTX, text, n + 1, NULL, 0, NULL, NULL));
	}
	ok(cuLinkComplete(link, &image, &size));
	ok(cuModuleLoadData(&module, image));
	ok(cuModuleGetFunction(&last, module, "k5"));
	ok(cuModuleUnload(module));
	ok(cuLinkDestroy(link));
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_image_loads_and_runs),
		cmocka_unit_test(what_is_not_an_image_is_refused),
		cmocka_unit_test(what_is_no_ptx_is_refused),
		cmocka_unit_test(machine_code_is_refused),
		cmocka_unit_test(machine_code_in_a_fat_binary_loads_but_does_not_run),
		cmocka_unit_test(libraries_belong_to_no_context),
		cmocka_unit_test(a_library_reads_its_text_where_it_is),
		cmocka_unit_test(linked_texts_run_together),
		cmocka_unit_test(inputs_with_thousands_of_names_are_linked),
		cmocka_unit_test(a_node_outlives_its_module),
	};

	return cmocka_run_group_tests(tests, context_setup, context_teardown);
}
