// SPDX-License-Identifier: Apache-2.0
/* Memory in stream order: cudaMallocAsync and cudaFreeAsync, the default pool and one of our own. */
#include "check.h"

#include <vector>

__global__ void fill(int *data, int n, int value)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < n)
		data[i] = value + i;
}

/* Takes, fills, copies out and gives back without waiting; many blocks live at once. */
static void churn(cudaStream_t stream, cudaMemPool_t pool)
{
	const int n = 3000, blocks = 32;
	std::vector<int> got(n * blocks);
	int *pinned;

	CUDA(cudaMallocHost(&pinned, n * blocks * sizeof(int)));
	for (int i = 0; i < blocks; i++) {
		int *block;
		if (pool)
			CUDA(cudaMallocFromPoolAsync((void **)&block, n * sizeof(int), pool, stream));
		else
			CUDA(cudaMallocAsync((void **)&block, n * sizeof(int), stream));
		fill<<<(n + 255) / 256, 256, 0, stream>>>(block, n, i * 100000);
		CUDA(cudaMemcpyAsync(pinned + i * n, block, n * sizeof(int),
			cudaMemcpyDeviceToHost, stream));
		CUDA(cudaFreeAsync(block, stream));
	}
	LAUNCHED();
	CUDA(cudaStreamSynchronize(stream));
	for (int i = 0; i < blocks * n; i++)
		CHECK_EQ_AT(i, pinned[i], i / n * 100000 + i % n);
	CUDA(cudaFreeHost(pinned));
}

int main()
{
	cudaStream_t stream;
	cudaMemPool_t pool, now;
	void *block;
	unsigned long long amount, high;
	int number;

	if (!device_attribute(cudaDevAttrMemoryPoolsSupported))
		SKIP("the device has no memory pools");
	CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
	churn(stream, NULL);

	/* Taken by cudaMallocAsync, freed by cudaFree; and of no length. */
	CUDA(cudaMallocAsync(&block, 1 << 20, stream));
	CUDA(cudaMemsetAsync(block, 1, 1 << 20, stream));
	CUDA(cudaStreamSynchronize(stream));
	CUDA(cudaFree(block));

	CUDA(cudaDeviceGetDefaultMemPool(&pool, 0));
	CUDA(cudaDeviceGetMemPool(&now, 0));
	CHECK(pool == now);
	amount = 1;
	CUDA(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &amount));
	CHECK_EQ(amount, 0ull);
	amount = 64 << 20;
	CUDA(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &amount));
	amount = 0;
	CUDA(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &amount));
	CHECK_EQ(amount, 64ull << 20);
	number = 0;
	CUDA(cudaMemPoolGetAttribute(pool, cudaMemPoolReuseFollowEventDependencies, &number));
	CHECK_EQ(number, 1);

	cudaMemPoolProps props = {};
	props.allocType = cudaMemAllocationTypePinned;
	props.handleTypes = cudaMemHandleTypeNone;
	props.location.type = cudaMemLocationTypeDevice;
	props.location.id = 0;
	CUDA(cudaMemPoolCreate(&pool, &props));
	churn(stream, pool);
	CUDA(cudaMallocFromPoolAsync(&block, 3 << 20, pool, stream));
	CUDA(cudaStreamSynchronize(stream));
	CUDA(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrUsedMemCurrent, &amount));
	CUDA(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrUsedMemHigh, &high));
	CHECK(amount >= 3 << 20);
	CHECK(high >= amount);
	CUDA(cudaFreeAsync(block, stream));
	CUDA_IS(cudaErrorInvalidValue, cudaFreeAsync(block, stream));
	/* A pool's own device has access. */
	cudaMemAccessDesc access = {props.location, cudaMemAccessFlagsProtNone};
	CUDA_IS(cudaErrorInvalidDevice, cudaMemPoolSetAccess(pool, &access, 1));
	(void)cudaGetLastError();
	CUDA(cudaStreamSynchronize(stream));
	CUDA(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrUsedMemCurrent, &amount));
	CHECK_EQ(amount, 0ull);
	CUDA(cudaMemPoolTrimTo(pool, 0));
	CUDA(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrReservedMemCurrent, &amount));
	CHECK_EQ(amount, 0ull);

	/* Made the device's own pool, it serves cudaMallocAsync. */
	CUDA(cudaDeviceSetMemPool(0, pool));
	CUDA(cudaMallocAsync(&block, 1 << 20, stream));
	CUDA(cudaStreamSynchronize(stream));
	CUDA(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrUsedMemCurrent, &amount));
	CHECK(amount >= 1 << 20);
	CUDA(cudaFreeAsync(block, stream));
	CUDA(cudaStreamSynchronize(stream));
	CUDA(cudaMemPoolDestroy(pool));
	CUDA(cudaStreamDestroy(stream));
	printf("memory in stream order is right\n");
	return 0;
}
