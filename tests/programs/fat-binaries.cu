// SPDX-License-Identifier: Apache-2.0
/* Fat binaries loaded by the program itself: plain, compressed with zstd, compressed with LZ4. */
#include "driver.h"

extern "C" const char module_plain[], module_zstd[], module_lz4[];

struct pair {
	short factor;
	double add;
};

static void run(const char *which, const void *image, CUdeviceptr in, CUdeviceptr out)
{
	ENTRY(cuModuleLoadFatBinary);
	ENTRY(cuModuleLoadData);
	ENTRY(cuModuleUnload);
	ENTRY(cuModuleGetFunction);
	ENTRY(cuLaunchKernel);
	ENTRY(cuLibraryLoadData);
	ENTRY(cuLibraryGetKernel);
	ENTRY(cuLibraryUnload);
	CUmodule module;
	CUlibrary library;
	CUkernel kernel;
	CUfunction scale;
	int n = 64;
	float got[64];

	for (int way = 0; way < 3; way++) {
		pair by = {(short)(way + 2), way * 10.0};
		void *arguments[] = {&in, &out, &n, &by};
		if (way == 2) {
			DRIVER(p_cuLibraryLoadData(
				&library, image, NULL, NULL, 0, NULL, NULL, 0));
			DRIVER(p_cuLibraryGetKernel(&kernel, library, "scale"));
			scale = (CUfunction)kernel;
		} else {
			if (way)
				DRIVER(p_cuModuleLoadData(&module, image));
			else
				DRIVER(p_cuModuleLoadFatBinary(&module, image));
			DRIVER(p_cuModuleGetFunction(&scale, module, "scale"));
		}
		CUDA(cudaMemset((void *)out, 0xff, sizeof(got)));
		DRIVER(p_cuLaunchKernel(scale, 2, 1, 1, 32, 1, 1, 0, 0, arguments, NULL));
		CUDA(cudaMemcpy(got, (void *)out, sizeof(got), cudaMemcpyDeviceToHost));
		for (int i = 0; i < n; i++) {
			float want = (float)(i * (way + 2) + way * 10 + i % 8 + 1);
			if (got[i] != want)
				FAIL("%s, way %d: element %d is %g, not %g", which, way, i, got[i],
					want);
		}
		if (way == 2)
			DRIVER(p_cuLibraryUnload(library));
		else
			DRIVER(p_cuModuleUnload(module));
	}
}

int main()
{
	float numbers[64], *in, *out;

	for (int i = 0; i < 64; i++)
		numbers[i] = (float)i;
	CUDA(cudaMalloc(&in, sizeof(numbers)));
	CUDA(cudaMalloc(&out, sizeof(numbers)));
	CUDA(cudaMemcpy(in, numbers, sizeof(numbers), cudaMemcpyHostToDevice));
	run("plain", module_plain, (CUdeviceptr)in, (CUdeviceptr)out);
	run("zstd", module_zstd, (CUdeviceptr)in, (CUdeviceptr)out);
	run("lz4", module_lz4, (CUdeviceptr)in, (CUdeviceptr)out);
	CUDA(cudaFree(in));
	CUDA(cudaFree(out));
	printf("fat binaries are right\n");
	return 0;
}
