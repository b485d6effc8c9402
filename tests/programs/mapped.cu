// SPDX-License-Identifier: Apache-2.0
/* Host memory that kernels read and write: allocated with and without the flag, registered, of
 * odd sizes, in part, by several streams, by kernels, copies and fills in turn. */
#include "driver.h"

#include <sys/mman.h>

__global__ void add(int *data, int n, int by)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < n)
		data[i] += by;
}

__global__ void bytes(unsigned char *data, int n)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < n && i % 3 == 0)
		data[i] = (unsigned char)i;
}

__global__ void count(unsigned *counter)
{
	atomicAdd_system(counter, 1);
}

struct two {
	int *a, *b;
};

__global__ void through_struct(two p, int n)
{
	int i = threadIdx.x;

	if (i < n)
		p.b[i] = p.a[i] * 2;
}

static void alternate(int *host, int *device, int n, cudaStream_t stream)
{
	for (int i = 0; i < n; i++)
		host[i] = i;
	for (int round = 1; round <= 3; round++) {
		add<<<(n + 127) / 128, 128, 0, stream>>>(device, n, 5);
		LAUNCHED();
		CUDA(cudaStreamSynchronize(stream));
		for (int i = 0; i < n; i++)
			CHECK_EQ_AT(i, host[i], i + round * 5 + (round - 1));
		for (int i = 0; i < n; i++)
			host[i]++;
	}
}

/* The host writes some bytes, a kernel those beside them: neither loses the other's. */
static void side_by_side()
{
	const int n = 5000;
	unsigned char *host;

	CUDA(cudaHostAlloc(&host, n, cudaHostAllocMapped));
	memset(host, 0, n);
	bytes<<<(n + 255) / 256, 256>>>(host, n);
	LAUNCHED();
	for (int i = 0; i < n; i++)
		if (i % 3 == 1)
			host[i] = (unsigned char)(i + 7);
	CUDA(cudaDeviceSynchronize());
	for (int i = 0; i < n; i++)
		CHECK_EQ_AT(i, host[i],
			i % 3 == 0 ? i & 255 : i % 3 == 1 ? (i + 7) & 255 : 0);
	CUDA(cudaFreeHost(host));
}

static void with_copies(int *host, int n, cudaStream_t stream)
{
	int *device, back[16];

	CUDA(cudaMalloc(&device, n * sizeof(int)));
	for (int i = 0; i < n; i++)
		host[i] = 3 * i;
	/* In stream order: a kernel, a copy out of the memory, one into it, a kernel. */
	add<<<(n + 127) / 128, 128, 0, stream>>>(host, n, 1);
	CUDA(cudaMemcpyAsync(device, host, n * sizeof(int), cudaMemcpyDefault, stream));
	add<<<(n + 127) / 128, 128, 0, stream>>>(device, n, 1);
	CUDA(cudaMemcpyAsync(host, device, n * sizeof(int), cudaMemcpyDefault, stream));
	add<<<(n + 127) / 128, 128, 0, stream>>>(host, n, 1);
	LAUNCHED();
	CUDA(cudaStreamSynchronize(stream));
	for (int i = 0; i < n; i++)
		CHECK_EQ_AT(i, host[i], 3 * i + 3);
	/* The kernel is waited for by the copy behind it. */
	add<<<(n + 127) / 128, 128>>>(host, n, 1);
	CUDA(cudaMemcpy(back, device + 32, sizeof(back), cudaMemcpyDeviceToHost));
	for (int i = 0; i < 16; i++) {
		CHECK_EQ_AT(i, back[i], 3 * (i + 32) + 2);
		CHECK_EQ_AT(i, host[i], 3 * i + 4);
	}
	CUDA(cudaMemsetAsync(host, 0x11, 64, stream));
	CUDA(cudaStreamSynchronize(stream));
	CHECK_EQ(host[15], 0x11111111);
	CHECK_EQ(host[16], 3 * 16 + 4);
	/* Of host memory a fill is waited for. */
	CUDA(cudaMemset(host + 16, 0x22, 64));
	CHECK_EQ(host[31], 0x22222222);
	CUDA(cudaFree(device));
}

static void streams_and_events(int *host, int n)
{
	cudaStream_t streams[3];
	cudaEvent_t done[3];

	for (int i = 0; i < n; i++)
		host[i] = 0;
	for (int s = 0; s < 3; s++) {
		CUDA(cudaStreamCreateWithFlags(&streams[s], cudaStreamNonBlocking));
		CUDA(cudaEventCreate(&done[s]));
		add<<<1, n / 3, 0, streams[s]>>>(host + s * (n / 3), n / 3, s + 1);
		CUDA(cudaEventRecord(done[s], streams[s]));
	}
	CUDA(cudaEventSynchronize(done[0]));
	CHECK_EQ(host[0], 1);
	while (cudaEventQuery(done[1]) == cudaErrorNotReady)
		;
	CHECK_EQ(host[n / 3], 2);
	while (cudaStreamQuery(streams[2]) == cudaErrorNotReady)
		;
	CHECK_EQ(host[n / 3 * 2], 3);
	(void)cudaGetLastError(); /* "not ready", where a query was early */
	for (int s = 0; s < 3; s++) {
		CUDA(cudaStreamDestroy(streams[s]));
		CUDA(cudaEventDestroy(done[s]));
	}
}

/* Registered memory at an address that a driver may have in use for itself in its process. */
static void elsewhere(int n, cudaStream_t stream)
{
	size_t size = 1 << 20;
	void *at = mmap((void *)0x380000000000, size, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int *host = (int *)at + 100, *device;

	CHECK(at != MAP_FAILED);
	CUDA(cudaHostRegister(at, size, cudaHostRegisterMapped));
	CUDA(cudaHostGetDevicePointer(&device, host, 0));
	alternate(host, device, n, stream);
	alternate(host, host, n, stream);
	with_copies(host, n, stream);
	for (int i = 0; i < n; i++)
		host[i] = i;
	CUDA(cudaMemcpy(device + n, device, n * sizeof(int), cudaMemcpyDefault));
	for (int i = 0; i < n; i++)
		CHECK_EQ_AT(i, host[n + i], i);
	CUDA(cudaHostUnregister(at));
	munmap(at, size);
}

static void registers_not(void *at, size_t size)
{
	CUDA_IS(cudaErrorInvalidValue, cudaHostRegister(at, size, cudaHostRegisterDefault));
	CUDA_IS(cudaErrorInvalidValue, cudaHostRegister(at, size, cudaHostRegisterMapped));
	CUDA_IS(cudaErrorInvalidValue, cudaGetLastError());
	CUDA_IS(cudaErrorHostMemoryNotRegistered, cudaHostUnregister(at));
	(void)cudaGetLastError();
}

/* Memory that is not there, in part too, or not to be written, is not registered; nothing else
 * is disturbed. */
static void unusable()
{
	size_t size = 65536;
	char *at = (char *)mmap(
		NULL, 3 * size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int read_only;

	CHECK(at != MAP_FAILED);
	CHECK(mprotect(at, size, PROT_NONE) == 0);
	registers_not(at, size);
	CHECK(munmap(at + 2 * size, size) == 0);
	registers_not(at + 2 * size, size);
	registers_not(at + size + 100, size);
	registers_not((void *)0x1000, 1);
	CHECK(mprotect(at + size, size, PROT_READ) == 0);
	registers_not(at + size, size);
	CUDA(cudaDeviceGetAttribute(
		&read_only, cudaDevAttrHostRegisterReadOnlySupported, 0));
	if (read_only) {
		CUDA(cudaHostRegister(at + size, size, cudaHostRegisterReadOnly));
		CUDA(cudaHostUnregister(at + size));
	}
	munmap(at, 2 * size);
	side_by_side();
}

/* A stream writes values to it and waits for values in it. */
static void values_by_stream(int *device, cudaStream_t stream)
{
	ENTRY(cuStreamWriteValue32);
	ENTRY(cuStreamWriteValue64);
	ENTRY(cuStreamWaitValue32);
	const CUdeviceptr at = (CUdeviceptr)device;

	device[0] = device[1] = device[4] = 1;
	CUDA(cudaDeviceSynchronize());
	DRIVER(p_cuStreamWriteValue32(stream, at, 17, 0));
	DRIVER(p_cuStreamWaitValue32(stream, at, 17, CU_STREAM_WAIT_VALUE_EQ));
	DRIVER(p_cuStreamWriteValue64(stream, at + 8, 0x100000002, 0));
	CHECK_EQ(p_cuStreamWriteValue32(stream, at + 1, 5, 0), CUDA_ERROR_INVALID_VALUE);
	CUDA(cudaStreamSynchronize(stream));
	CHECK_EQ(device[0], 17);
	CHECK_EQ(device[1], 1);
	CHECK_EQ(device[2], 2);
	CHECK_EQ(device[3], 1);
	CHECK_EQ(device[4], 1);
}

int main()
{
	const int n = 3000;
	cudaDeviceProp properties;
	cudaPointerAttributes attributes;
	cudaStream_t stream;
	unsigned *counter;
	int *host, *device, *plain;

	CUDA(cudaGetDeviceProperties(&properties, 0));
	if (!properties.canMapHostMemory)
		SKIP("the device maps no host memory");
	CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
	CUDA(cudaHostAlloc(&host, n * sizeof(int), cudaHostAllocMapped));
	CUDA(cudaHostGetDevicePointer(&device, host, 0));
	CUDA(cudaPointerGetAttributes(&attributes, host));
	CHECK_EQ(attributes.type, cudaMemoryTypeHost);
	CHECK(attributes.devicePointer == device && attributes.hostPointer == host);
	alternate(host, device, n, stream);

	/* With unified addressing all pinned memory can be reached, at its own address. */
	CUDA(cudaMallocHost(&plain, n * sizeof(int)));
	alternate(plain, plain, n, stream);
	for (int i = 0; i < n; i++)
		host[i] = i;
	through_struct<<<1, 128>>>(two{host, plain + 7}, 128);
	CUDA(cudaDeviceSynchronize());
	for (int i = 0; i < 128; i++)
		CHECK_EQ_AT(i, plain[i + 7], 2 * i);
	with_copies(plain, n, stream);
	streams_and_events(plain, 300);
	side_by_side();
	values_by_stream(device, stream);
	values_by_stream(plain, stream);

	char *raw = (char *)malloc(100000);
	CUDA(cudaHostRegister(raw + 16, n * sizeof(int), cudaHostRegisterMapped));
	CUDA(cudaHostGetDevicePointer(&device, raw + 16, 0));
	alternate((int *)(raw + 16), device, n, stream);
	CUDA(cudaHostUnregister(raw + 16));
	free(raw);

	elsewhere(n, stream);
	unusable();

	CUDA(cudaHostAlloc(&counter, sizeof(*counter), cudaHostAllocMapped));
	*counter = 5;
	count<<<10, 64>>>(counter);
	CUDA(cudaDeviceSynchronize());
	CHECK_EQ(*counter, 645u);
	CUDA(cudaFreeHost(counter));
	CUDA(cudaFreeHost(host));
	CUDA(cudaFreeHost(plain));
	CUDA_IS(cudaErrorInvalidValue, cudaHostGetDevicePointer(&device, host, 0));
	printf("mapped memory is right\n");
	return 0;
}
