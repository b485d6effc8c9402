// SPDX-License-Identifier: Apache-2.0
/* Machine code for another GPU, and no PTX: a program that carries it runs, a launch from it
 * fails with an error that stays until it is asked for, and a load of it alone fails at once. */
#include "driver.h"

extern "C" const char module_cubin[];

__global__ void set(int *data)
{
	*data = 1;
}

static void launch_fails(int *data)
{
	int got;

	set<<<1, 1>>>(data);
	CUDA_IS(cudaErrorNoKernelImageForDevice, cudaPeekAtLastError());
	CUDA_IS(cudaErrorNoKernelImageForDevice, cudaGetLastError());
	CUDA(cudaGetLastError());
	CUDA(cudaDeviceSynchronize());
	CUDA(cudaMemcpy(&got, data, sizeof(got), cudaMemcpyDeviceToHost));
	CHECK_EQ(got, 7);
}

int main()
{
	ENTRY(cuModuleLoadData);
	ENTRY(cuModuleLoadDataEx);
	ENTRY(cuLibraryLoadData);
	int *data, seven = 7, major;
	CUmodule module;

	CUDA(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, 0));
	if (major == 7)
		SKIP("compute capability 7.5 is what the machine code here is for");
	CUDA(cudaMalloc((void **)&data, sizeof(*data)));
	CUDA(cudaMemcpy(data, &seven, sizeof(seven), cudaMemcpyHostToDevice));
	launch_fails(data);
	launch_fails(data);
	DRIVER_IS(CUDA_ERROR_NO_BINARY_FOR_GPU, p_cuModuleLoadData(&module, module_cubin));
	DRIVER_IS(CUDA_ERROR_NO_BINARY_FOR_GPU,
		p_cuModuleLoadDataEx(&module, module_cubin, 0, NULL, NULL));
	CUDA(cudaDeviceSynchronize());
	CUDA(cudaFree(data));
	return 0;
}
