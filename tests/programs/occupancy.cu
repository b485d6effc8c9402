// SPDX-License-Identifier: Apache-2.0
/* What the runtime says about functions, and launches at the limits that it says. */
#include "driver.h"

__global__ void plain(int *out)
{
	out[blockIdx.x * blockDim.x + threadIdx.x] = threadIdx.x;
}

__global__ void with_shared(int *out)
{
	__shared__ int part[1000];

	part[threadIdx.x] = threadIdx.x;
	__syncthreads();
	out[threadIdx.x] = part[blockDim.x - 1 - threadIdx.x];
}

__global__ void __launch_bounds__(128) bounded(int *out)
{
	out[threadIdx.x] = 1;
}

__global__ void dynamic(int *out, int last)
{
	extern __shared__ int part[];

	if (threadIdx.x == 0) {
		part[0] = 3;
		part[last] = 4;
		*out = part[0] + part[last];
	}
}

static void attributes()
{
	cudaFuncAttributes a;

	CUDA(cudaFuncGetAttributes(&a, (const void *)plain));
	CHECK(a.maxThreadsPerBlock == 1024);
	CHECK(a.numRegs > 0 && a.numRegs <= 255);
	CHECK_EQ(a.sharedSizeBytes, 0u);
	CHECK(a.binaryVersion >= 50 && a.ptxVersion >= 50);
	CUDA(cudaFuncGetAttributes(&a, (const void *)with_shared));
	CHECK_EQ(a.sharedSizeBytes, 4000u);
	CUDA(cudaFuncGetAttributes(&a, (const void *)bounded));
	CHECK_EQ(a.maxThreadsPerBlock, 128);
	CUDA(cudaFuncGetAttributes(&a, dynamic));
	CHECK(a.maxDynamicSharedSizeBytes >= 48 << 10);
}

/* On devices that have clusters; the software GPU has them, though it says that it is an 8.0. */
static void clusters()
{
	cudaDeviceProp properties;
	cudaLaunchAttribute size = {};
	cudaLaunchConfig_t config = {};
	int one = 0, two = 0, largest = 0;

	CUDA(cudaGetDeviceProperties(&properties, 0));
	if (!device_attribute(cudaDevAttrClusterLaunch) &&
		!strstr(properties.name, "software GPU"))
		return;
	size.id = cudaLaunchAttributeClusterDimension;
	size.val.clusterDim.x = size.val.clusterDim.y = size.val.clusterDim.z = 1;
	config.gridDim = dim3(16);
	config.blockDim = dim3(256);
	config.attrs = &size;
	config.numAttrs = 1;
	CUDA(cudaOccupancyMaxActiveClusters(&one, plain, &config));
	CHECK(one >= device_attribute(cudaDevAttrMultiProcessorCount) / 2);
	size.val.clusterDim.x = 2;
	CUDA(cudaOccupancyMaxActiveClusters(&two, plain, &config));
	CHECK(two >= 1 && two <= one / 2);
	CUDA(cudaOccupancyMaxPotentialClusterSize(&largest, plain, &config));
	CHECK(largest >= 2 && largest <= 16);
	size.val.clusterDim.x = 64;
	CUDA_IS(cudaErrorInvalidClusterSize,
		cudaOccupancyMaxActiveClusters(&two, plain, &config));
}

static void occupancy()
{
	int per_sm = device_attribute(cudaDevAttrMaxThreadsPerMultiProcessor);
	int blocks = 0, fewer = 0, grid = 0, block = 0;
	size_t available = 0;

	CUDA(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, plain, 256, 0));
	CHECK(blocks >= 1 && blocks <= per_sm / 256);
	CUDA(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&fewer, plain, 256, 40 << 10));
	CHECK(fewer >= 1 && fewer <= blocks);
	CUDA(cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
		&fewer, plain, 1024, 0, cudaOccupancyDisableCachingOverride));
	CHECK(fewer >= 1 && fewer <= per_sm / 1024);
	CUDA(cudaOccupancyMaxPotentialBlockSize(&grid, &block, plain, 0, 0));
	CHECK(grid >= 1 && block >= 32 && block <= 1024 && block % 32 == 0);
	CUDA(cudaOccupancyMaxPotentialBlockSize(&grid, &block, bounded, 0, 0));
	CHECK(block >= 32 && block <= 128);
	clusters();
	CUDA(cudaOccupancyAvailableDynamicSMemPerBlock(&available, plain, 1, 256));
	CHECK(available >= 32 << 10);
}

/* More than 48 KiB of dynamic shared memory only after asking. */
static void large_shared(int *out)
{
	int most = device_attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin), got = 0;
	int bytes = most < 64 << 10 ? most : 64 << 10;

	if (bytes <= 48 << 10)
		return;
	dynamic<<<1, 32, bytes>>>(out, bytes / 4 - 1);
	CUDA_IS(cudaErrorInvalidValue, cudaGetLastError());
	CUDA(cudaFuncSetAttribute(dynamic, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes));
	dynamic<<<1, 32, bytes>>>(out, bytes / 4 - 1);
	LAUNCHED();
	CUDA(cudaMemcpy(&got, out, sizeof(got), cudaMemcpyDeviceToHost));
	CHECK_EQ(got, 7);

	cudaFuncAttributes a;
	CUDA(cudaFuncGetAttributes(&a, dynamic));
	CHECK_EQ(a.maxDynamicSharedSizeBytes, bytes);
	CUDA_IS(cudaErrorInvalidValue,
		cudaFuncSetAttribute(
			dynamic, cudaFuncAttributeMaxDynamicSharedMemorySize, most + 1024));
	(void)cudaGetLastError();
}

static int blocks_of(void (*kernel)(int *))
{
	int blocks;

	CUDA(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, kernel, 2, 16));
	return blocks;
}

static CUcontext own_context()
{
	CUcontext context;

#if CUDA_VERSION >= 13000
	ENTRY(cuCtxCreate);
	DRIVER(p_cuCtxCreate(&context, NULL, 0, 0));
#else /* cuda.h has the version before the last one under the plain name */
	auto p_cuCtxCreate = driver_entry<decltype(&cuCtxCreate)>("cuCtxCreate", 3020);
	DRIVER(p_cuCtxCreate(&context, 0, 0));
#endif
	return context;
}

/* What CUDA 13's runtime is told holds for the kernel, in each context of the device and behind a
 * reset, and a function of it that was told itself keeps to that. CUDA 12's runtime tells the
 * function in the current context. */
static const bool of_kernel = CUDART_VERSION >= 13000;

static void cache_config()
{
	const int all = blocks_of(plain);
	cudaFunction_t function;
	CUcontext context;
	int few;

	ENTRY(cuCtxDestroy);
	ENTRY(cuFuncSetCacheConfig);
	CUDA(cudaFuncSetCacheConfig(plain, cudaFuncCachePreferL1));
	few = blocks_of(plain);
	CHECK(few >= 1 && few <= all);
	context = own_context();
	CHECK_EQ(blocks_of(plain), of_kernel ? few : all);
	CUDA(cudaFuncSetCacheConfig(plain, cudaFuncCachePreferShared));
	CHECK_EQ(blocks_of(plain), all);
	DRIVER(p_cuCtxDestroy(context));
	CHECK_EQ(blocks_of(plain), of_kernel ? all : few);

	CUDA(cudaGetFuncBySymbol(&function, (const void *)plain));
	DRIVER(p_cuFuncSetCacheConfig((CUfunction)function, CU_FUNC_CACHE_PREFER_L1));
	CHECK_EQ(blocks_of(plain), few);
	CUDA(cudaFuncSetCacheConfig(plain, cudaFuncCachePreferShared));
	CHECK_EQ(blocks_of(plain), of_kernel ? few : all);

	CUDA(cudaFuncSetCacheConfig(bounded, cudaFuncCachePreferL1));
	CHECK_EQ(blocks_of(bounded), few);
	CUDA(cudaDeviceReset());
	CHECK_EQ(blocks_of(bounded), of_kernel ? few : all);
}

static int most_dynamic(CUfunction function)
{
	int value;

	ENTRY(cuFuncGetAttribute);
	DRIVER(p_cuFuncGetAttribute(
		&value, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, function));
	return value;
}

static int most_dynamic(CUkernel kernel)
{
	int value;

	ENTRY(cuKernelGetAttribute);
	DRIVER(p_cuKernelGetAttribute(
		&value, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, kernel, 0));
	return value;
}

static int most_dynamic(void (*stub)(int *))
{
	cudaFuncAttributes a;

	CUDA(cudaFuncGetAttributes(&a, stub));
	return a.maxDynamicSharedSizeBytes;
}

static void set_most_dynamic(int bytes)
{
	CUDA(cudaFuncSetAttribute(plain, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes));
}

static void attributes_of_kernel_and_function()
{
	const auto attribute = CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
	const int fresh = most_dynamic(plain);
	cudaFunction_t found;
	cudaKernel_t kernel;
	CUcontext context;

	ENTRY(cuCtxDestroy);
	ENTRY(cuFuncSetAttribute);
	ENTRY(cuKernelSetAttribute);
	CUDA(cudaGetFuncBySymbol(&found, (const void *)plain));
	CUDA(cudaGetKernel(&kernel, (const void *)plain));
	CUfunction function = (CUfunction)found;

	set_most_dynamic(20000);
	CHECK_EQ(most_dynamic(function), 20000);
	CHECK_EQ(most_dynamic((CUkernel)kernel), of_kernel ? 20000 : fresh);
	context = own_context();
	CHECK_EQ(most_dynamic(plain), of_kernel ? 20000 : fresh);
	DRIVER(p_cuCtxDestroy(context));

	DRIVER(p_cuFuncSetAttribute(function, attribute, 30000));
	CHECK_EQ(most_dynamic(function), 30000);
	CHECK_EQ(most_dynamic(plain), of_kernel ? 20000 : 30000);
	set_most_dynamic(10000);
	CHECK_EQ(most_dynamic(function), of_kernel ? 30000 : 10000);
	DRIVER(p_cuKernelSetAttribute(attribute, 15000, (CUkernel)kernel, 0));
	CHECK_EQ(most_dynamic((CUkernel)kernel), 15000);
	CHECK_EQ(most_dynamic(function), of_kernel ? 30000 : 10000);
	CUDA(cudaDeviceReset());
	CHECK_EQ(most_dynamic(plain), 15000);
}

int main()
{
	int *out, got[1024];

	CUDA(cudaMalloc(&out, sizeof(got)));
	attributes();
	occupancy();
	large_shared(out);
	CUDA(cudaFuncSetCacheConfig(with_shared, cudaFuncCachePreferShared));
	with_shared<<<1, 1000>>>(out);
	LAUNCHED();
	CUDA(cudaMemcpy(got, out, 1000 * sizeof(int), cudaMemcpyDeviceToHost));
	for (int i = 0; i < 1000; i++)
		CHECK_EQ_AT(i, got[i], 999 - i);

	bounded<<<1, 129>>>(out);
	CHECK(cudaGetLastError() != cudaSuccess);
	bounded<<<1, 128>>>(out);
	LAUNCHED();
	CUDA(cudaDeviceSynchronize());
	CUDA(cudaFree(out));
	attributes_of_kernel_and_function();
	cache_config();
	printf("functions are as the runtime says\n");
	return 0;
}
