// SPDX-License-Identifier: Apache-2.0
/* Launches as CUDA 3 made them (shape and parameters are state of the function), cooperative ones
 * by a list of devices, the first form of stream capture; and functions with 32-bit addresses,
 * which no context of today accepts. */
#include "driver.h"

#include <dlfcn.h>

#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

enum { WIDTH = 7, HEIGHT = 3, THREADS_X = 16, THREADS_Y = 2, COUNT = 7 * 3 * 16 * 2 };

__global__ void numbers(int *out, int add, float scale, long long big)
{
	extern __shared__ int shared[];
	int block = blockIdx.y * gridDim.x + blockIdx.x;
	int thread = threadIdx.y * blockDim.x + threadIdx.x;

	shared[thread] = (int)(scale * thread) + (int)(big >> 40);
	__syncthreads();
	out[block * blockDim.x * blockDim.y + thread] =
		shared[blockDim.x * blockDim.y - 1 - thread] + add;
}

__global__ void neighbours(const int *in, int *out)
{
	__shared__ int any;

	if (!threadIdx.x)
		any = in[(blockIdx.x + 1) % gridDim.x];
	__syncthreads();
	out[blockIdx.x * blockDim.x + threadIdx.x] = any + (int)threadIdx.x;
}

static CUfunction function_of(const void *kernel)
{
	cudaFunction_t function;

	CUDA(cudaGetFuncBySymbol(&function, kernel));
	return function;
}

static void expect(const int *device, int add, int big)
{
	static int host[COUNT];
	const int threads = THREADS_X * THREADS_Y;

	CUDA(cudaMemcpy(host, device, sizeof(host), cudaMemcpyDeviceToHost));
	for (int i = 0; i < COUNT; i++)
		CHECK_EQ_AT(i, host[i], 2 * (threads - 1 - i % threads) + big + add);
}

static void old_launches(void)
{
	CUfunction f = function_of((const void *)numbers);
	long long big = 5ll << 40;
	cudaStream_t stream;
	int *out;

	ENTRY(cuFuncSetBlockShape);
	ENTRY(cuFuncSetSharedSize);
	ENTRY(cuParamSetSize);
	ENTRY(cuParamSeti);
	ENTRY(cuParamSetf);
	ENTRY(cuParamSetv);
	ENTRY(cuLaunch);
	ENTRY(cuLaunchGrid);
	ENTRY(cuLaunchGridAsync);
	CUDA(cudaMalloc((void **)&out, COUNT * sizeof(int)));
	CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
	DRIVER_IS(CUDA_ERROR_INVALID_VALUE, p_cuFuncSetBlockShape(f, 0, 1, 1));
	DRIVER(p_cuFuncSetBlockShape(f, THREADS_X, THREADS_Y, 1));
	DRIVER(p_cuFuncSetSharedSize(f, THREADS_X * THREADS_Y * sizeof(int)));
	DRIVER(p_cuParamSetv(f, 0, &out, sizeof(out)));
	DRIVER(p_cuParamSeti(f, 8, 100));
	DRIVER(p_cuParamSetf(f, 12, 2.0f));
	DRIVER(p_cuParamSetv(f, 16, &big, sizeof(big)));
	DRIVER(p_cuParamSetSize(f, 24));
	DRIVER(p_cuLaunchGrid(f, WIDTH, HEIGHT));
	expect(out, 100, 5);
	/* What was not set again stays. */
	DRIVER(p_cuParamSeti(f, 8, 200));
	DRIVER(p_cuLaunchGridAsync(f, WIDTH, HEIGHT, stream));
	CUDA(cudaStreamSynchronize(stream));
	expect(out, 200, 5);
	/* One block. */
	DRIVER(p_cuParamSeti(f, 8, 300));
	DRIVER(p_cuLaunch(f));
	int first[2];
	CUDA(cudaMemcpy(first, out + THREADS_X * THREADS_Y - 1, sizeof(first),
		cudaMemcpyDeviceToHost));
	CHECK_EQ(first[0], 305);
	CHECK_EQ(first[1], 2 * (THREADS_X * THREADS_Y - 1) + 205);
	CUDA(cudaStreamDestroy(stream));
	CUDA(cudaFree(out));
}

static void list_of_one(void)
{
	int *in, *out, host[4] = {10, 20, 30, 40}, got[4 * 32];
	CUDA_LAUNCH_PARAMS params = {};
	void *args[] = {&in, &out};
	cudaStream_t stream;

	ENTRY(cuLaunchCooperativeKernelMultiDevice);
	CUDA(cudaStreamCreate(&stream));
	CUDA(cudaMalloc((void **)&in, sizeof(host)));
	CUDA(cudaMalloc((void **)&out, sizeof(got)));
	CUDA(cudaMemcpy(in, host, sizeof(host), cudaMemcpyHostToDevice));
	params.function = function_of((const void *)neighbours);
	params.gridDimX = 4;
	params.gridDimY = params.gridDimZ = 1;
	params.blockDimX = 32;
	params.blockDimY = params.blockDimZ = 1;
	params.kernelParams = args;
	/* Not in the default stream. */
	DRIVER_IS(CUDA_ERROR_INVALID_HANDLE,
		p_cuLaunchCooperativeKernelMultiDevice(&params, 1, 0));
	DRIVER_IS(CUDA_ERROR_INVALID_VALUE, p_cuLaunchCooperativeKernelMultiDevice(NULL, 1, 0));
	params.hStream = stream;
	DRIVER(p_cuLaunchCooperativeKernelMultiDevice(&params, 1, 0));
	CUDA(cudaMemcpyAsync(got, out, sizeof(got), cudaMemcpyDeviceToHost, stream));
	CUDA(cudaStreamSynchronize(stream));
	for (int i = 0; i < 4 * 32; i++)
		CHECK_EQ_AT(i, got[i], host[(i / 32 + 1) % 4] + i % 32);
#if CUDART_VERSION < 13000
	cudaLaunchParams runtime = {};
	runtime.func = (void *)neighbours;
	runtime.gridDim = dim3(4);
	runtime.blockDim = dim3(32);
	runtime.args = args;
	runtime.stream = stream;
	host[0] = 50;
	CUDA(cudaMemcpy(in, host, sizeof(host), cudaMemcpyHostToDevice));
	CUDA(cudaLaunchCooperativeKernelMultiDevice(&runtime, 1, 0));
	CUDA(cudaStreamSynchronize(stream));
	CUDA(cudaMemcpy(got, out, sizeof(got), cudaMemcpyDeviceToHost));
	CHECK_EQ(got[3 * 32 + 5], 55);
#endif
	CUDA(cudaStreamDestroy(stream));
	CUDA(cudaFree(in));
	CUDA(cudaFree(out));
}

/* By their names in the library: cuda.h turns these into newer ones. */
static void first_forms(void)
{
	void *driver = dlopen("libcuda.so.1", RTLD_NOW);
	unsigned bytes = 0, address = 0;
	size_t nodes = 0, all = 0, free = 0;
	cudaGraph_t graph;
	cudaStream_t stream;
	int *out;

	CHECK(driver);
	auto begin = (CUresult(*)(CUstream))dlsym(driver, "cuStreamBeginCapture");
	auto alloc = (CUresult(*)(unsigned *, unsigned))dlsym(driver, "cuMemAlloc");
	auto total = (CUresult(*)(unsigned *, CUdevice))dlsym(driver, "cuDeviceTotalMem");
	CHECK(begin && alloc && total);
	CUDA(cudaStreamCreate(&stream));
	CUDA(cudaMalloc((void **)&out, 64));
	DRIVER(begin(stream));
	CUDA(cudaMemsetAsync(out, 0, 64, stream));
	CUDA(cudaStreamEndCapture(stream, &graph));
	CUDA(cudaGraphGetNodes(graph, NULL, &nodes));
	CHECK_EQ((int)nodes, 1);
	CUDA(cudaGraphDestroy(graph));
	DRIVER_IS(CUDA_ERROR_INVALID_CONTEXT, alloc(&address, 4096));
	CUDA(cudaMemGetInfo(&free, &all));
	DRIVER(total(&bytes, 0));
	CHECK(all > 0xffffffffu ? bytes == 0xffffffffu : bytes >= all);
	CUDA(cudaFree(out));
	CUDA(cudaStreamDestroy(stream));
}

int main(void)
{
	CUDA(cudaFree(0));
	old_launches();
	list_of_one();
	first_forms();
	return 0;
}
