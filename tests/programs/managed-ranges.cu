// SPDX-License-Identifier: Apache-2.0
/* Managed memory: prefetching, advice and what ranges say of it, attachment, pointers, many small
 * allocations, and calls that are wrong. */
#include <thread>

#include "check.h"

#if CUDART_VERSION >= 13000
static cudaMemLocation at(int device)
{
	cudaMemLocation location = {};

	location.type = device == cudaCpuDeviceId ? cudaMemLocationTypeHost
						  : cudaMemLocationTypeDevice;
	location.id = device == cudaCpuDeviceId ? 0 : device;
	return location;
}
#define PREFETCH(p, n, device) cudaMemPrefetchAsync(p, n, at(device), 0, 0)
#else
#define at(device) device
#define PREFETCH(p, n, device) cudaMemPrefetchAsync(p, n, device, 0)
#endif

__global__ void add(int *data, int n, int value)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < n)
		data[i] += value;
}

static int attribute(cudaMemRangeAttribute which, const void *p, size_t bytes)
{
	int value = 12345;

	CUDA(cudaMemRangeGetAttribute(&value, sizeof(value), which, p, bytes));
	return value;
}

/* A batch's place keeps the number that it was named with. */
static void batched(int *data, size_t bytes)
{
#if CUDART_VERSION >= 13000
	cudaMemLocation host = at(cudaCpuDeviceId);
	cudaStream_t stream;
	void *where = data;
	size_t first = 0;

	CUDA(cudaStreamCreate(&stream));
	CUDA(cudaMemPrefetchBatchAsync(&where, &bytes, 1, &host, &first, 1, 0, stream));
	CUDA(cudaStreamSynchronize(stream));
	CUDA(cudaStreamDestroy(stream));
	CHECK_EQ(attribute(cudaMemRangeAttributeLastPrefetchLocationId, data, bytes), 0);
#else
	(void)data;
	(void)bytes;
#endif
}

static void prefetching(int *data, int n)
{
	size_t bytes = n * sizeof(int);

	CHECK_EQ(attribute(cudaMemRangeAttributeLastPrefetchLocation, data, bytes),
		cudaInvalidDeviceId);
	for (int i = 0; i < n; i++)
		data[i] = i;
	CUDA(PREFETCH(data, bytes, 0));
	add<<<(n + 255) / 256, 256>>>(data, n, 1);
	CUDA(PREFETCH(data, bytes, cudaCpuDeviceId));
	CUDA(cudaDeviceSynchronize());
	for (int i = 0; i < n; i++)
		CHECK_EQ_AT(i, data[i], i + 1);
	CHECK_EQ(attribute(cudaMemRangeAttributeLastPrefetchLocation, data, bytes),
		cudaCpuDeviceId);
	/* The host has no number of its own, whichever it was named with by one call. */
	CHECK_EQ(attribute(cudaMemRangeAttributeLastPrefetchLocationId, data, bytes),
		cudaCpuDeviceId);
	batched(data, bytes);
	CUDA(PREFETCH(data, bytes / 2, 0));
	CUDA(cudaDeviceSynchronize());
	CHECK_EQ(attribute(cudaMemRangeAttributeLastPrefetchLocation, data, 1), 0);
	CHECK_EQ(attribute(cudaMemRangeAttributeLastPrefetchLocation, data, bytes),
		cudaInvalidDeviceId);
	CHECK_EQ(data[3], 4);
}

static void advice(int *data, size_t bytes)
{
	int list[3] = {7, 7, 7};

	CHECK_EQ(attribute(cudaMemRangeAttributeReadMostly, data, bytes), 0);
	CUDA(cudaMemAdvise(data, bytes, cudaMemAdviseSetReadMostly, at(0)));
	CHECK_EQ(attribute(cudaMemRangeAttributeReadMostly, data, bytes), 1);
	CUDA(cudaMemAdvise(data, bytes, cudaMemAdviseUnsetReadMostly, at(0)));
	CHECK_EQ(attribute(cudaMemRangeAttributeReadMostly, data, bytes), 0);
	CUDA(cudaMemAdvise(data, bytes, cudaMemAdviseSetPreferredLocation, at(cudaCpuDeviceId)));
	CHECK_EQ(attribute(cudaMemRangeAttributePreferredLocation, data, bytes),
		cudaCpuDeviceId);
#if CUDART_VERSION >= 13000
	CUDA(cudaMemAdvise(data, bytes, cudaMemAdviseSetPreferredLocation,
		{cudaMemLocationTypeHostNumaCurrent, 0}));
	CHECK_EQ(attribute(cudaMemRangeAttributePreferredLocationType, data, bytes),
		(int)cudaMemLocationTypeHost);
#endif
	CUDA(cudaMemAdvise(data, bytes, cudaMemAdviseSetPreferredLocation, at(0)));
	CHECK_EQ(attribute(cudaMemRangeAttributePreferredLocation, data, bytes), 0);
	CUDA(cudaMemAdvise(data, bytes, cudaMemAdviseUnsetPreferredLocation, at(0)));
	CHECK_EQ(attribute(cudaMemRangeAttributePreferredLocation, data, bytes),
		cudaInvalidDeviceId);
	CUDA(cudaMemAdvise(data, bytes, cudaMemAdviseSetAccessedBy, at(0)));
	CUDA(cudaMemRangeGetAttribute(
		list, sizeof(list), cudaMemRangeAttributeAccessedBy, data, bytes));
	CHECK_EQ(list[0], 0);
	CHECK_EQ(list[1], cudaInvalidDeviceId);
	CHECK_EQ(list[2], cudaInvalidDeviceId);
	CUDA(cudaMemAdvise(data, bytes, cudaMemAdviseUnsetAccessedBy, at(0)));
	CHECK_EQ(attribute(cudaMemRangeAttributeAccessedBy, data, bytes), cudaInvalidDeviceId);
}

static void pointers(int *data)
{
	struct cudaPointerAttributes attributes;

	CUDA(cudaPointerGetAttributes(&attributes, data + 5));
	CHECK_EQ(attributes.type, cudaMemoryTypeManaged);
	CHECK_EQ(attributes.device, 0);
	CHECK(attributes.devicePointer == data + 5);
	CHECK(attributes.hostPointer == data + 5);
}

/* What is attached to one stream is the program's once that stream is done. */
static void attachment(int n)
{
	cudaStream_t stream, other;
	int *mine, *its;

	CUDA(cudaStreamCreate(&stream));
	CUDA(cudaStreamCreate(&other));
	CUDA(cudaMallocManaged(&mine, n * sizeof(int), cudaMemAttachHost));
	CUDA(cudaMallocManaged(&its, n * sizeof(int)));
	CUDA(cudaStreamAttachMemAsync(stream, its, 0, cudaMemAttachSingle));
	CUDA(cudaStreamSynchronize(stream));
	for (int round = 0; round < 3; round++) {
		for (int i = 0; i < n; i++)
			its[i] = i;
		add<<<(n + 255) / 256, 256, 0, stream>>>(its, n, round);
		for (int i = 0; i < n; i++)
			mine[i] = 2 * i;
		CUDA(cudaStreamSynchronize(stream));
		for (int i = 0; i < n; i++)
			CHECK_EQ_AT(i, its[i] + mine[i], 3 * i + round);
	}
	CUDA(cudaStreamAttachMemAsync(other, mine, 0, cudaMemAttachGlobal));
	add<<<(n + 255) / 256, 256, 0, other>>>(mine, n, 1);
	CUDA(cudaDeviceSynchronize());
	CHECK_EQ(mine[n - 1], 2 * (n - 1) + 1);
	CUDA_IS(cudaErrorInvalidValue,
		cudaStreamAttachMemAsync(0, its, 0, cudaMemAttachSingle));
	(void)cudaGetLastError();
	CUDA(cudaFree(mine));
	CUDA(cudaFree(its));
	CUDA(cudaStreamDestroy(stream));
	CUDA(cudaStreamDestroy(other));
}

/* Allocations of every size do not meet. */
static void many()
{
	const int count = 600;
	int *data[count];

	for (int turn = 0; turn < 2; turn++) {
		for (int i = 0; i < count; i++) {
			CUDA(cudaMallocManaged(&data[i], 4 + 100 * i));
			data[i][25 * i] = -i;
			data[i][0] = i;
		}
		for (int i = 0; i < count; i += 50)
			add<<<1, 1>>>(data[i], 1, 1000);
		CUDA(cudaDeviceSynchronize());
		for (int i = 0; i < count; i++)
			CHECK_EQ_AT(i, data[i][0], i % 50 ? i : i + 1000);
		for (int i = 1; i < count; i++)
			CHECK_EQ_AT(i, data[i][25 * i], -i);
		for (int i = 0; i < count; i++)
			CUDA(cudaFree(data[i]));
	}
}

/* Nothing is copied from or to behind its end, where the program may have no page. */
static void ends()
{
	unsigned char *data, *plain, host[16];

	CUDA(cudaMallocManaged(&data, 65536));
	CUDA(cudaMalloc(&plain, 1 << 20));
	CUDA_IS(cudaErrorInvalidValue,
		cudaMemcpyAsync(plain, data, 65537, cudaMemcpyDefault, 0));
	CUDA_IS(cudaErrorInvalidValue, cudaMemcpy(data + 1, plain, 65536, cudaMemcpyDefault));
	CUDA_IS(cudaErrorInvalidValue,
		cudaMemcpy(host, data + 65530, 16, cudaMemcpyDefault));
	(void)cudaGetLastError();
	CUDA(cudaMemcpy(plain, data, 65536, cudaMemcpyDefault));
	CUDA(cudaFree(plain));
	CUDA(cudaFree(data));
	/* Nor is a range told that does, though the program has the page's rest. */
	CUDA(cudaMallocManaged(&data, 100));
	CHECK_EQ(attribute(cudaMemRangeAttributeReadMostly, data, 100), 0);
	CUDA_IS(cudaErrorInvalidValue,
		cudaMemRangeGetAttribute(
			host, sizeof(int), cudaMemRangeAttributeReadMostly, data, 101));
	CUDA_IS(cudaErrorNotSupported, cudaFreeAsync(data, 0));
	(void)cudaGetLastError();
	CUDA(cudaFree(data));
}

/* A question makes no context current. */
static void alone(int *data)
{
	cudaError_t error = cudaSuccess;

	std::thread([&] {
		int value;

		error = cudaMemRangeGetAttribute(&value, sizeof(value),
			cudaMemRangeAttributeReadMostly, data, sizeof(int));
	}).join();
	CHECK_EQ((int)error, (int)cudaErrorDeviceUninitialized);
}

/* A capture that allows it goes on when managed memory is allocated, which begins as zeroes. */
static void captured()
{
	cudaStream_t stream;
	cudaGraph_t graph;
	cudaGraphExec_t exec;
	int *data;

	CUDA(cudaStreamCreate(&stream));
	CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
	CUDA(cudaMallocManaged(&data, 4096));
	add<<<4, 256, 0, stream>>>(data, 1024, 3);
	CUDA(cudaStreamEndCapture(stream, &graph));
	CUDA(cudaGraphInstantiate(&exec, graph, 0));
	CUDA(cudaGraphLaunch(exec, stream));
	CUDA(cudaStreamSynchronize(stream));
	CHECK_EQ(data[1023], 3);
	CUDA(cudaGraphExecDestroy(exec));
	CUDA(cudaGraphDestroy(graph));
	CUDA(cudaFree(data));
	CUDA(cudaStreamDestroy(stream));
}

int main()
{
	const int n = 50000;
	int *data, *plain, value;

	if (!device_attribute(cudaDevAttrManagedMemory))
		SKIP("no managed memory");
	CUDA(cudaMallocManaged(&data, n * sizeof(int)));
	prefetching(data, n);
	advice(data, n * sizeof(int));
	pointers(data);
	alone(data);
	CUDA(cudaMalloc(&plain, 4096));
	CUDA_IS(cudaErrorInvalidValue, cudaMemRangeGetAttribute(&value, sizeof(value),
					       cudaMemRangeAttributeReadMostly, plain, 4096));
	CUDA_IS(cudaErrorInvalidValue, cudaMemRangeGetAttribute(&value, 3,
					       cudaMemRangeAttributeReadMostly, data, 4096));
	(void)cudaGetLastError();
	CUDA(cudaFree(plain));
	CUDA(cudaFree(data));
	attachment(n);
	ends();
	captured();
	many();
	return 0;
}
