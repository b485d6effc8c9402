// SPDX-License-Identifier: Apache-2.0
/* Launches that cannot be: too many threads, no blocks, too much shared memory; nothing runs. */
#include "check.h"

__global__ void add(int *data)
{
	extern __shared__ int part[];

	if (threadIdx.x == 0 && threadIdx.y == 0 && threadIdx.z == 0 && blockIdx.x == 0 &&
		blockIdx.y == 0) {
		part[0] = 1;
		*data += part[0];
	}
}

/* The compiler is told that there are never more threads. */
__global__ void __launch_bounds__(64) bounded(int *data)
{
	*data += 1;
}

/* One attribute, of whose value a launch depends. */
static void attribute_is(cudaError_t want, int id, int size, const void *value, int *data)
{
	cudaLaunchAttribute attribute = {};
	cudaLaunchConfig_t config = {};
	void *arguments[] = {&data};

	attribute.id = (cudaLaunchAttributeID)id;
	memcpy(&attribute.val, value, (size_t)size);
	config.gridDim = config.blockDim = dim3(1);
	config.attrs = &attribute;
	config.numAttrs = 1;
	cudaError_t got = cudaLaunchKernelExC(&config, (const void *)bounded, arguments);
	if (got != want)
		FAIL("attribute %d gave %s, not %s", id, cudaGetErrorName(got),
			cudaGetErrorName(want));
	CUDA_IS(want, cudaGetLastError());
}

/* All values are looked at when the kernel is launched. */
static void attributes(int *data)
{
	cudaAccessPolicyWindow window = {data, 4, 2.0f, cudaAccessPropertyPersisting,
		cudaAccessPropertyStreaming};
	int number = 9;

	attribute_is(cudaErrorInvalidValue, cudaLaunchAttributeAccessPolicyWindow,
		sizeof(window), &window, data);
	attribute_is(cudaErrorInvalidValue, cudaLaunchAttributeMemSyncDomain, sizeof(number),
		&number, data);
	attribute_is(cudaErrorInvalidValue, 70, sizeof(number), &number, data);
	number = cudaSyncPolicySpin; /* a stream's */
	attribute_is(cudaErrorInvalidValue, cudaLaunchAttributeSynchronizationPolicy,
		sizeof(number), &number, data);
#if CUDART_VERSION >= 13000
	number = 101;
	attribute_is(cudaErrorInvalidValue, cudaLaunchAttributePreferredSharedMemoryCarveout,
		sizeof(number), &number, data);
#endif
	CUDA(cudaDeviceSynchronize());
}

static void launch_fails(cudaError_t want, dim3 grid, dim3 block, size_t shared, int *data)
{
	add<<<grid, block, shared>>>(data);
	cudaError_t got = cudaGetLastError();
	if (got != want)
		FAIL("grid %u,%u,%u block %u,%u,%u shared %zu gave %s, not %s", grid.x, grid.y,
			grid.z, block.x, block.y, block.z, shared, cudaGetErrorName(got),
			cudaGetErrorName(want));
	CUDA(cudaGetLastError());
}

int main()
{
	int *data, got = 0;

	CUDA(cudaMalloc(&data, sizeof(int)));
	CUDA(cudaMemset(data, 0, sizeof(int)));
	launch_fails(BAD_CONFIGURATION, dim3(1), dim3(1025), 4, data);
	launch_fails(BAD_CONFIGURATION, dim3(1), dim3(32, 33), 4, data);
	launch_fails(BAD_CONFIGURATION, dim3(1), dim3(1, 1, 65), 4, data);
	launch_fails(BAD_CONFIGURATION, dim3(0), dim3(32), 4, data);
	launch_fails(BAD_CONFIGURATION, dim3(1), dim3(0), 4, data);
	launch_fails(BAD_CONFIGURATION, dim3(1, 65536), dim3(32), 4, data);
	launch_fails(BAD_CONFIGURATION, dim3(1, 1, 65536), dim3(32), 4, data);
	launch_fails(BAD_CONFIGURATION, dim3(0x80000000u), dim3(32), 4, data);
	launch_fails(cudaErrorInvalidValue, dim3(1), dim3(32), (48 << 10) + 4, data);

	bounded<<<1, 65>>>(data);
	CUDA_IS(cudaErrorInvalidValue, cudaGetLastError());
	attributes(data);

	/* cudaLaunchKernel returns what the <<<>>> form leaves behind. */
	void *arguments[] = {&data};
	CUDA_IS(BAD_CONFIGURATION,
		cudaLaunchKernel((const void *)add, dim3(1), dim3(2000), arguments, 4, 0));
	CUDA_IS(BAD_CONFIGURATION, cudaGetLastError());

	CUDA(cudaDeviceSynchronize());
	CUDA(cudaMemcpy(&got, data, sizeof(got), cudaMemcpyDeviceToHost));
	CHECK_EQ(got, 0);

	/* At the limits it runs. */
	add<<<dim3(1, 3), 1024, 48 << 10>>>(data);
	add<<<dim3(2), dim3(8, 2, 64), 4>>>(data);
	LAUNCHED();
	CUDA(cudaMemcpy(&got, data, sizeof(got), cudaMemcpyDeviceToHost));
	CHECK_EQ(got, 2);
	CUDA(cudaFree(data));
	printf("bad launches are refused\n");
	return 0;
}
