// SPDX-License-Identifier: Apache-2.0
/* Libraries, the context-free modules: by the driver's cuLibrary calls and by the runtime's. */
#include "driver.h"

extern "C" const char module_ptx[];

enum { N = 256 };

static void check_reversed(const int *device)
{
	int got[N];

	CUDA(cudaMemcpy(got, device, sizeof(got), cudaMemcpyDeviceToHost));
	for (int i = 0; i < N; i++)
		CHECK_EQ_AT(i, got[i], i / 64 * 64 + 63 - i % 64);
}

static void fill(int *device)
{
	int numbers[N];

	for (int i = 0; i < N; i++)
		numbers[i] = i;
	CUDA(cudaMemcpy(device, numbers, sizeof(numbers), cudaMemcpyHostToDevice));
}

static void by_driver(int *device)
{
	ENTRY(cuLibraryLoadData);
	ENTRY(cuLibraryUnload);
	ENTRY(cuLibraryGetKernel);
	ENTRY(cuLibraryGetGlobal);
	ENTRY(cuLibraryGetModule);
	ENTRY(cuLibraryGetKernelCount);
	ENTRY(cuKernelGetFunction);
	ENTRY(cuKernelGetName);
	ENTRY(cuKernelGetAttribute);
	ENTRY(cuKernelGetParamInfo);
	ENTRY(cuLaunchKernel);
	ENTRY(cuModuleGetFunction);
	CUlibrary library;
	CUkernel kernel;
	CUfunction function;
	CUmodule module;
	CUdeviceptr calls;
	size_t size, offset;
	unsigned count = 0;
	int number;
	const char *name;
	void *arguments[] = {&device};

	DRIVER(p_cuLibraryLoadData(&library, module_ptx, NULL, NULL, 0, NULL, NULL, 0));
	DRIVER(p_cuLibraryGetKernelCount(&count, library));
	CHECK_EQ(count, 3u);
	DRIVER(p_cuLibraryGetKernel(&kernel, library, "reverse"));
	DRIVER_IS(CUDA_ERROR_NOT_FOUND, p_cuLibraryGetKernel(&kernel, library, "missing"));
	DRIVER(p_cuLibraryGetKernel(&kernel, library, "reverse"));
	DRIVER(p_cuKernelGetName(&name, kernel));
	CHECK(!strcmp(name, "reverse"));
	DRIVER(p_cuKernelGetParamInfo(kernel, 0, &offset, &size));
	CHECK(offset == 0 && size == 8);
	DRIVER(p_cuKernelGetAttribute(&number, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, kernel, 0));
	CHECK_EQ(number, 1024);

	/* A kernel is launched as it is, or as the function that it is in this context. */
	fill(device);
	DRIVER(p_cuLaunchKernel(
		(CUfunction)kernel, N / 64, 1, 1, 64, 1, 1, 64 * sizeof(int), 0, arguments, NULL));
	check_reversed(device);
	DRIVER(p_cuKernelGetFunction(&function, kernel));
	fill(device);
	DRIVER(p_cuLaunchKernel(
		function, N / 64, 1, 1, 64, 1, 1, 64 * sizeof(int), 0, arguments, NULL));
	check_reversed(device);
	DRIVER(p_cuLibraryGetModule(&module, library));
	DRIVER(p_cuModuleGetFunction(&function, module, "reverse"));
	fill(device);
	DRIVER(p_cuLaunchKernel(
		function, N / 64, 1, 1, 64, 1, 1, 64 * sizeof(int), 0, arguments, NULL));
	check_reversed(device);

	DRIVER(p_cuLibraryGetGlobal(&calls, &size, library, "calls"));
	CHECK_EQ(size, sizeof(int));
	CUDA(cudaMemcpy(&number, (void *)calls, sizeof(number), cudaMemcpyDeviceToHost));
	CHECK_EQ(number, 7);
	DRIVER(p_cuLibraryUnload(library));
}

static void by_runtime(int *device)
{
	cudaLibrary_t library;
	cudaKernel_t kernel;
	unsigned count = 0;
	void *calls = NULL;
	size_t size = 0;
	int number = 0;
	void *arguments[] = {&device};

	CUDA(cudaLibraryLoadData(&library, module_ptx, NULL, NULL, 0, NULL, NULL, 0));
	CUDA(cudaLibraryGetKernelCount(&count, library));
	CHECK_EQ(count, 3u);
	CUDA(cudaLibraryGetKernel(&kernel, library, "reverse"));
	fill(device);
	CUDA(cudaLaunchKernel(
		(const void *)kernel, dim3(N / 64), dim3(64), arguments, 64 * sizeof(int), 0));
	check_reversed(device);
	CUDA(cudaLibraryGetGlobal(&calls, &size, library, "calls"));
	CHECK_EQ(size, sizeof(int));
	CUDA(cudaMemcpy(&number, calls, sizeof(number), cudaMemcpyDeviceToHost));
	CHECK_EQ(number, 7);
	CUDA_IS(cudaErrorSymbolNotFound, cudaLibraryGetKernel(&kernel, library, "missing"));
	(void)cudaGetLastError();
	CUDA(cudaLibraryUnload(library));
}

/* Code that cannot be loaded is no mistake until something of it is asked for. */
static void of_no_use()
{
	CUDA(cudaFree(0));
	cudaLibrary_t library;
	cudaKernel_t kernel;
	cudaJitOption option = cudaJitMaxRegisters;
	void *none = NULL;
	unsigned count = 1;

	CUDA(cudaLibraryLoadData(&library, "neither text nor code", NULL, NULL, 0, NULL, NULL, 0));
	CUDA(cudaLibraryGetKernelCount(&count, library));
	CHECK_EQ(count, 0u);
	CUDA(cudaLibraryEnumerateKernels(&kernel, 1, library));
	CUDA_IS(cudaErrorInvalidKernelImage, cudaLibraryGetKernel(&kernel, library, "reverse"));
	CUDA(cudaLibraryUnload(library));
	CUDA_IS(cudaErrorInvalidValue,
		cudaLibraryLoadData(&library, module_ptx, &option, &none, 1, NULL, NULL, 0));
	option = (cudaJitOption)200;
	CUDA_IS(cudaErrorInvalidValue,
		cudaLibraryLoadData(&library, module_ptx, &option, &none, 1, NULL, NULL, 0));

	/* What the JIT says is there at once, though that it failed is told later. */
	char log[2000] = "";
	cudaJitOption options[] = {cudaJitErrorLogBuffer, cudaJitErrorLogBufferSizeBytes};
	void *values[] = {log, (void *)sizeof(log)};
	CUDA(cudaLibraryLoadData(&library, ".version 8.0\n.target sm_80\nrubbish\n", options, values,
		2, NULL, NULL, 0));
	CHECK(log[0]);
	CUDA(cudaLibraryUnload(library));
	(void)cudaGetLastError();
}

int main()
{
	int *device;

	CUDA(cudaMalloc(&device, N * sizeof(int)));
	by_driver(device);
	by_runtime(device);
	of_no_use();
	CUDA(cudaFree(device));
	printf("libraries are right\n");
	return 0;
}
