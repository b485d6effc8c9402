// SPDX-License-Identifier: Apache-2.0
/* Pinned memory: made pinned or registered later, used by copies that nobody waits for until the
 * end, freed and made again many times. */
#include "check.h"

__global__ void increment(int *data, int n)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < n)
		data[i]++;
}

static void round_trips(int *host, int n, cudaStream_t stream)
{
	int *device;

	CUDA(cudaMalloc(&device, n * sizeof(int)));
	for (int i = 0; i < n; i++)
		host[i] = i;
	for (int round = 0; round < 10; round++) {
		CUDA(cudaMemcpyAsync(
			device, host, n * sizeof(int), cudaMemcpyHostToDevice, stream));
		increment<<<(n + 255) / 256, 256, 0, stream>>>(device, n);
		CUDA(cudaMemcpyAsync(
			host, device, n * sizeof(int), cudaMemcpyDeviceToHost, stream));
	}
	LAUNCHED();
	CUDA(cudaStreamSynchronize(stream));
	for (int i = 0; i < n; i++)
		CHECK_EQ_AT(i, host[i], i + 10);
	CUDA(cudaFree(device));
}

/* A copy that names registered memory stays in that, wherever in it it begins. */
static void described(char *raw)
{
	cudaMemcpy3DParms box = {};
	char *device;

	CUDA(cudaMalloc(&device, 4096));
	CUDA(cudaHostRegister(raw, 64, cudaHostRegisterDefault));
	box.srcPtr = make_cudaPitchedPtr(raw, 64, 64, 4);
	box.srcPos = make_cudaPos(0, 1, 0);
	box.dstPtr = make_cudaPitchedPtr(device, 64, 64, 4);
	box.extent = make_cudaExtent(16, 2, 1);
	box.kind = cudaMemcpyHostToDevice;
	CUDA_IS(cudaErrorInvalidValue, cudaMemcpy3D(&box));
	(void)cudaGetLastError();
	box.srcPtr.ptr = raw + 64;
	CUDA(cudaMemcpy3D(&box));
	CUDA(cudaHostUnregister(raw));
	CUDA(cudaFree(device));
}

int main()
{
	const int n = 30000;
	cudaStream_t stream;
	int *host;
	unsigned flags = 99;

	CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
	CUDA(cudaMallocHost(&host, n * sizeof(int)));
	round_trips(host, n, stream);
	CUDA(cudaFreeHost(host));
	CUDA(cudaHostAlloc(&host, n * sizeof(int), cudaHostAllocPortable | cudaHostAllocWriteCombined));
	round_trips(host, n, stream);
	CUDA(cudaHostGetFlags(&flags, host));
	CHECK(flags & cudaHostAllocPortable);
	CUDA_IS(cudaErrorInvalidValue, cudaHostRegister(host, 64, cudaHostRegisterDefault));
	CUDA(cudaFreeHost(host));
	CUDA_IS(cudaErrorInvalidValue, cudaFreeHost(host));
	(void)cudaGetLastError();

	/* Memory of our own, registered: whole pages, and not. */
	char *raw = (char *)aligned_alloc(4096, (size_t)1 << 20);
	CUDA(cudaHostRegister(raw, 1 << 20, cudaHostRegisterDefault));
	CUDA_IS(cudaErrorHostMemoryAlreadyRegistered,
		cudaHostRegister(raw, 1 << 20, cudaHostRegisterDefault));
	(void)cudaGetLastError();
	round_trips((int *)raw, n, stream);
	CUDA(cudaHostUnregister(raw));
	CUDA_IS(cudaErrorHostMemoryNotRegistered, cudaHostUnregister(raw));
	(void)cudaGetLastError();
	round_trips((int *)raw, n, stream);
	CUDA(cudaHostRegister(raw + 100, n * sizeof(int) + 8, cudaHostRegisterPortable));
	round_trips((int *)(raw + 100), n, stream);
	/* Elsewhere in it than where it begins it is no address of a registration. */
	CUDA_IS(cudaErrorInvalidValue, cudaHostUnregister(raw + 104));
	/* A page whose first byte is registered to be written is not read only too; it does not matter
	 * what is behind. */
	CUDA(cudaHostRegister(raw + 90, 10, cudaHostRegisterReadOnly));
	CUDA(cudaHostUnregister(raw + 90));
	CUDA(cudaHostUnregister(raw + 100));
	CUDA(cudaHostRegister(raw, 3, cudaHostRegisterDefault));
	CUDA_IS(cudaErrorInvalidValue, cudaHostRegister(raw + 3, 16, cudaHostRegisterReadOnly));
	(void)cudaGetLastError();
	CUDA(cudaHostUnregister(raw));
	described(raw);
	free(raw);

	for (int i = 0; i < 100; i++) {
		size_t size = (size_t)(i % 7 + 1) * 1000 * sizeof(int);
		int *device, *second;
		CUDA(cudaMallocHost(&host, size));
		CUDA(cudaMallocHost(&second, size));
		CUDA(cudaMalloc(&device, size));
		memset(host, i, size);
		CUDA(cudaMemcpyAsync(device, host, size, cudaMemcpyHostToDevice, stream));
		CUDA(cudaMemcpyAsync(second, device, size, cudaMemcpyDeviceToHost, stream));
		CUDA(cudaStreamSynchronize(stream));
		CHECK(!memcmp(host, second, size));
		CUDA(cudaFree(device));
		CUDA(cudaFreeHost(host));
		CUDA(cudaFreeHost(second));
	}
	CUDA(cudaStreamDestroy(stream));
	printf("pinned memory is right\n");
	return 0;
}
