// SPDX-License-Identifier: Apache-2.0
/* Modules of PTX text by the driver API, whose entry points the runtime hands out: functions,
 * globals, both ways of passing arguments, and what is said of bad ones. */
#include "driver.h"

#include <string>
#include <vector>

extern "C" const char module_ptx[];

struct pair {
	short factor;
	double add;
};

static void arguments_in_a_buffer(CUfunction scale, CUdeviceptr in, CUdeviceptr out, int n)
{
	ENTRY(cuLaunchKernel);
	ENTRY(cuFuncGetParamInfo);
	char buffer[64] = {};
	size_t offset[4], bytes[4], size = 0;
	pair by = {-2, 100.0};

	for (size_t i = 0; i < 4; i++) {
		DRIVER(p_cuFuncGetParamInfo(scale, i, &offset[i], &bytes[i]));
		size = offset[i] + bytes[i];
	}
	CHECK_EQ(bytes[0], 8u);
	CHECK_EQ(bytes[2], 4u);
	CHECK_EQ(bytes[3], sizeof(pair));
	CHECK_EQ(offset[3], 24u);
	CHECK_EQ(size, 40u);
	DRIVER_IS(CUDA_ERROR_INVALID_VALUE, p_cuFuncGetParamInfo(scale, 4, offset, bytes));

	memcpy(buffer + offset[0], &in, sizeof(in));
	memcpy(buffer + offset[1], &out, sizeof(out));
	memcpy(buffer + offset[2], &n, sizeof(n));
	memcpy(buffer + offset[3], &by, sizeof(by));
	void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, buffer, CU_LAUNCH_PARAM_BUFFER_SIZE,
		&size, CU_LAUNCH_PARAM_END};
	DRIVER(p_cuLaunchKernel(scale, (n + 63) / 64, 1, 1, 64, 1, 1, 0, 0, NULL, extra));

	/* Less than there is to pass is no mistake, and more is one. */
	memset(buffer + offset[2], 0, sizeof(n));
	size = offset[3];
	DRIVER(p_cuLaunchKernel(scale, 1, 1, 1, 1, 1, 1, 0, 0, NULL, extra));
	size = sizeof(buffer);
	DRIVER_IS(CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES,
		p_cuLaunchKernel(scale, 1, 1, 1, 1, 1, 1, 0, 0, NULL, extra));
}

static void bad_modules(CUmodule module)
{
	ENTRY(cuModuleLoadData);
	ENTRY(cuModuleLoadDataEx);
	ENTRY(cuModuleGetFunction);
	ENTRY(cuModuleGetGlobal);
	CUmodule none;
	CUfunction function;
	CUdeviceptr address;
	char log[4096] = "";
	CUjit_option options[] = {
		CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
	void *values[] = {log, (void *)sizeof(log)};

	DRIVER_IS(CUDA_ERROR_NOT_FOUND, p_cuModuleGetFunction(&function, module, "missing"));
	DRIVER_IS(CUDA_ERROR_NOT_FOUND, p_cuModuleGetGlobal(&address, NULL, module, "missing"));

	std::string text = module_ptx;
	size_t at = text.find("mov.u32");
	CHECK(at != std::string::npos);
	text.insert(at, "mov.u32 %r1 } ] , ;\n\t");
	DRIVER_IS(CUDA_ERROR_INVALID_PTX, p_cuModuleLoadData(&none, text.c_str()));
	DRIVER_IS(CUDA_ERROR_INVALID_PTX,
		p_cuModuleLoadDataEx(&none, text.c_str(), 2, options, values));
	CHECK(strlen(log) > 0);
}

/* Of what an enumeration told of and nobody has used, some attributes are not known. */
static void enumerated(CUmodule module)
{
	ENTRY(cuModuleEnumerateFunctions);
	ENTRY(cuFuncGetAttribute);
	ENTRY(cuFuncIsLoaded);
	ENTRY(cuFuncLoad);
	CUfunctionLoadingState state;
	CUfunction function;
	int number;

	DRIVER(p_cuModuleEnumerateFunctions(&function, 1, module));
	DRIVER(p_cuFuncIsLoaded(&state, function));
	CHECK_EQ(state, CU_FUNCTION_LOADING_STATE_UNLOADED);
	DRIVER(p_cuFuncGetAttribute(&number, CU_FUNC_ATTRIBUTE_NUM_REGS, function));
	DRIVER_IS(CUDA_ERROR_FUNCTION_NOT_LOADED,
		p_cuFuncGetAttribute(&number, CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES, function));
	DRIVER(p_cuFuncLoad(function));
	DRIVER(p_cuFuncIsLoaded(&state, function));
	CHECK_EQ(state, CU_FUNCTION_LOADING_STATE_LOADED);
	DRIVER(p_cuFuncGetAttribute(&number, CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES, function));
}

int main()
{
	const int n = 1000;
	std::vector<float> host(n), got(n);
	CUmodule module;
	CUfunction scale, reverse, nothing;
	CUdeviceptr in, out, calls;
	size_t size;
	int number;

	CUDA(cudaFree(0));
	ENTRY(cuModuleLoadData);
	ENTRY(cuModuleLoadDataEx);
	ENTRY(cuModuleUnload);
	ENTRY(cuModuleGetFunction);
	ENTRY(cuModuleGetGlobal);
	ENTRY(cuFuncGetAttribute);
	ENTRY(cuLaunchKernel);
	ENTRY(cuLaunchKernelEx);
	ENTRY(cuMemAlloc);
	ENTRY(cuMemFree);
	ENTRY(cuMemcpyHtoD);
	ENTRY(cuMemcpyDtoH);

	DRIVER(p_cuModuleLoadData(&module, module_ptx));
	enumerated(module);
	DRIVER(p_cuModuleGetFunction(&scale, module, "scale"));
	DRIVER(p_cuModuleGetFunction(&reverse, module, "reverse"));
	DRIVER(p_cuModuleGetFunction(&nothing, module, "nothing"));
	DRIVER(p_cuFuncGetAttribute(&number, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, nothing));
	CHECK_EQ(number, 64);

	DRIVER(p_cuMemAlloc(&in, n * sizeof(float)));
	DRIVER(p_cuMemAlloc(&out, n * sizeof(float)));
	for (int i = 0; i < n; i++)
		host[i] = (float)(i - 500);
	DRIVER(p_cuMemcpyHtoD(in, host.data(), n * sizeof(float)));

	pair by = {7, -0.25};
	void *arguments[] = {&in, &out, (void *)&n, &by};
	DRIVER(p_cuLaunchKernel(scale, 8, 1, 1, 128, 1, 1, 0, 0, arguments, NULL));
	DRIVER(p_cuMemcpyDtoH(got.data(), out, n * sizeof(float)));
	for (int i = 0; i < n; i++)
		CHECK_EQ_AT(i, got[i], host[i] * 7 - 0.25f + (float)(i % 8 + 1));
	arguments_in_a_buffer(scale, in, out, n);
	DRIVER(p_cuMemcpyDtoH(got.data(), out, n * sizeof(float)));
	for (int i = 0; i < n; i++)
		CHECK_EQ_AT(i, got[i], host[i] * -2 + 100.0f + (float)(i % 8 + 1));

	DRIVER(p_cuModuleGetGlobal(&calls, &size, module, "calls"));
	CHECK_EQ(size, sizeof(int));
	DRIVER(p_cuMemcpyDtoH(&number, calls, sizeof(number)));
	CHECK_EQ(number, 10);

	/* Dynamic shared memory, by the newer call. */
	std::vector<int> numbers(512), reversed(512);
	for (int i = 0; i < 512; i++)
		numbers[i] = i;
	DRIVER(p_cuMemcpyHtoD(out, numbers.data(), 512 * sizeof(int)));
	CUlaunchConfig config = {};
	config.gridDimX = 2;
	config.blockDimX = 256;
	config.gridDimY = config.gridDimZ = config.blockDimY = config.blockDimZ = 1;
	config.sharedMemBytes = 256 * sizeof(int);
	void *one[] = {&out};
	DRIVER(p_cuLaunchKernelEx(&config, reverse, one, NULL));
	DRIVER(p_cuMemcpyDtoH(reversed.data(), out, 512 * sizeof(int)));
	for (int i = 0; i < 512; i++)
		CHECK_EQ_AT(i, reversed[i], i / 256 * 256 + 255 - i % 256);

	/* A second copy of the module has globals of its own. */
	CUmodule second;
	CUdeviceptr other;
	DRIVER(p_cuModuleLoadDataEx(&second, module_ptx, 0, NULL, NULL));
	DRIVER(p_cuModuleGetGlobal(&other, NULL, second, "calls"));
	CHECK(other != calls);
	DRIVER(p_cuMemcpyDtoH(&number, other, sizeof(number)));
	CHECK_EQ(number, 7);
	DRIVER(p_cuModuleUnload(second));

	bad_modules(module);
	DRIVER(p_cuModuleUnload(module));
	DRIVER(p_cuMemFree(in));
	DRIVER(p_cuMemFree(out));
	printf("modules are right\n");
	return 0;
}
