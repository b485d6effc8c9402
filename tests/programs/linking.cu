// SPDX-License-Identifier: Apache-2.0
/* Linking at run time with the driver API: a kernel in one PTX calls a function of another, from
 * memory and from a file; what cannot be linked is told in the log. */
#include "driver.h"

#include <string>
#include <vector>

#define HEAD ".version 7.0\n.target sm_70\n.address_size 64\n"

static const char kernel_text[] = HEAD R"(
.extern .func (.param .b32 r) twice_and(.param .b32 a);
.visible .entry fill(.param .u64 to)
{
	.reg .b32 %r<4>;
	.reg .b64 %rd<4>;
	ld.param.u64 %rd1, [to];
	cvta.to.global.u64 %rd1, %rd1;
	mov.u32 %r1, %tid.x;
	{
	.param .b32 a0;
	st.param.b32 [a0], %r1;
	.param .b32 r0;
	call (r0), twice_and, (a0);
	ld.param.b32 %r2, [r0];
	}
	mul.wide.u32 %rd2, %r1, 4;
	add.s64 %rd3, %rd1, %rd2;
	st.global.u32 [%rd3], %r2;
	ret;
}
)";

static const char function_text[] = HEAD R"(
.visible .func (.param .b32 r) twice_and(.param .b32 a)
{
	.reg .b32 %r<3>;
	ld.param.b32 %r1, [a];
	shl.b32 %r2, %r1, 1;
	add.s32 %r2, %r2, 7;
	st.param.b32 [r], %r2;
	ret;
}
)";

static void run(void *image)
{
	const unsigned n = 64;
	std::vector<unsigned> got(n);
	CUdeviceptr out;
	CUmodule module;
	CUfunction fill;
	void *params[] = {&out};

	DRIVER(cuModuleLoadData(&module, image));
	DRIVER(cuModuleGetFunction(&fill, module, "fill"));
	DRIVER(cuMemAlloc(&out, n * sizeof(unsigned)));
	DRIVER(cuLaunchKernel(fill, 1, 1, 1, n, 1, 1, 0, NULL, params, NULL));
	DRIVER(cuMemcpyDtoH(got.data(), out, n * sizeof(unsigned)));
	for (unsigned i = 0; i < n; i++)
		CHECK_EQ(got[i], 2 * i + 7);
	DRIVER(cuMemFree(out));
	DRIVER(cuModuleUnload(module));
}

static void from_memory()
{
	CUlinkState state;
	void *image = NULL;
	size_t size = 0;

	/* Twice: the second time both inputs are known already. */
	for (int times = 0; times < 2; times++) {
		DRIVER(cuLinkCreate(0, NULL, NULL, &state));
		DRIVER(cuLinkAddData(state, CU_JIT_INPUT_PTX, (void *)kernel_text,
			sizeof(kernel_text), "kernel", 0, NULL, NULL));
		DRIVER(cuLinkAddData(state, CU_JIT_INPUT_PTX, (void *)function_text,
			sizeof(function_text), "function", 0, NULL, NULL));
		DRIVER(cuLinkComplete(state, &image, &size));
		CHECK(image && size > 0);
		run(image);
		DRIVER(cuLinkDestroy(state));
	}
}

static void from_file()
{
	char path[] = "/tmp/linking-XXXXXX";
	int file = mkstemp(path);
	CUlinkState state;
	void *image = NULL;
	size_t size = 0;

	CHECK(file >= 0);
	CHECK(write(file, function_text, sizeof(function_text) - 1) ==
		(ssize_t)sizeof(function_text) - 1);
	close(file);
	DRIVER(cuLinkCreate(0, NULL, NULL, &state));
	DRIVER_IS(CUDA_ERROR_FILE_NOT_FOUND,
		cuLinkAddFile(state, CU_JIT_INPUT_PTX, "/no/such/file", 0, NULL, NULL));
	DRIVER(cuLinkAddFile(state, CU_JIT_INPUT_PTX, path, 0, NULL, NULL));
	DRIVER(cuLinkAddData(state, CU_JIT_INPUT_PTX, (void *)kernel_text, sizeof(kernel_text),
		"kernel", 0, NULL, NULL));
	DRIVER(cuLinkComplete(state, &image, &size));
	run(image);
	DRIVER(cuLinkDestroy(state));
	unlink(path);
}

/* A function that nobody defines, and what is no PTX at all. */
static void refused()
{
	char log[2048] = "";
	CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
	void *values[] = {log, (void *)sizeof(log)};
	const char nonsense[] = ".version nonsense";
	CUlinkState state;
	CUmodule module;
	CUresult status;
	void *image = NULL;
	size_t size = 0;

	DRIVER(cuLinkCreate(2, options, values, &state));
	CHECK(cuLinkAddData(state, CU_JIT_INPUT_PTX,
		(void *)nonsense, sizeof(nonsense), "nonsense", 0, NULL, NULL) != CUDA_SUCCESS);
	CHECK(log[0]);
	DRIVER(cuLinkDestroy(state));

	values[1] = (void *)sizeof(log); /* it has become the text's length */
	DRIVER(cuLinkCreate(2, options, values, &state));
	DRIVER(cuLinkAddData(state, CU_JIT_INPUT_PTX, (void *)kernel_text, sizeof(kernel_text), "alone",
		0, NULL, NULL));
	status = cuLinkComplete(state, &image, &size);
	/* Told now, or when the result is loaded. */
	if (status)
		CHECK(strstr(log, "twice_and"));
	else
		status = cuModuleLoadData(&module, image);
	CHECK(status != CUDA_SUCCESS);
	DRIVER(cuLinkDestroy(state));
}

/* Two inputs with one name between them, which no input may have beside another. */
static void defined_twice()
{
	char log[2048] = "";
	CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
	void *values[] = {log, (void *)sizeof(log)};
	CUlinkState state;
	CUresult status = CUDA_SUCCESS;
	void *image = NULL;
	size_t size = 0;

	DRIVER(cuLinkCreate(2, options, values, &state));
	for (const char *name : {"first", "second"})
		if (!status)
			status = cuLinkAddData(state, CU_JIT_INPUT_PTX, (void *)function_text,
				sizeof(function_text), name, 0, NULL, NULL);
	if (!status)
		status = cuLinkComplete(state, &image, &size);
	CHECK(status != CUDA_SUCCESS);
	CHECK(strstr(log, "twice_and"));
	DRIVER(cuLinkDestroy(state));
}

/* 60 values that are all needed before the first is stored: how many registers a thread gets. */
static int registers(unsigned limit)
{
	CUjit_option options[] = {CU_JIT_MAX_REGISTERS};
	void *values[] = {(void *)(size_t)limit};
	std::string text = HEAD ".visible .entry many(.param .u64 at)\n{\n.reg .b32 %r<60>;\n"
				".reg .b64 %rd;\nld.param.u64 %rd, [at];\ncvta.to.global.u64 %rd, %rd;\n";
	CUlinkState state;
	CUmodule module;
	CUfunction many;
	void *image;
	size_t size;
	int count;

	for (int i = 0; i < 60; i++)
		text += "ld.volatile.global.u32 %r" + std::to_string(i) + ", [%rd+" +
			std::to_string(4 * i) + "];\n";
	for (int i = 0; i < 60; i++)
		text += "st.volatile.global.u32 [%rd+" + std::to_string(4 * i) + "], %r" +
			std::to_string(59 - i) + ";\n";
	text += "ret;\n}\n";
	DRIVER(cuLinkCreate(limit ? 1 : 0, options, values, &state));
	DRIVER(cuLinkAddData(state, CU_JIT_INPUT_PTX, (void *)text.c_str(), text.size() + 1, "many",
		0, NULL, NULL));
	DRIVER(cuLinkComplete(state, &image, &size));
	DRIVER(cuModuleLoadData(&module, image));
	DRIVER(cuModuleGetFunction(&many, module, "many"));
	DRIVER(cuFuncGetAttribute(&count, CU_FUNC_ATTRIBUTE_NUM_REGS, many));
	DRIVER(cuModuleUnload(module));
	DRIVER(cuLinkDestroy(state));
	return count;
}

int main()
{
	CUdevice device;
	CUcontext context;

	DRIVER(cuInit(0));
	DRIVER(cuDeviceGet(&device, 0));
	DRIVER(cuDevicePrimaryCtxRetain(&context, device));
	DRIVER(cuCtxSetCurrent(context));
	from_memory();
	from_file();
	refused();
	defined_twice();
	CHECK(registers(0) >= 60);
	CHECK(registers(40) <= 40);
	return 0;
}
