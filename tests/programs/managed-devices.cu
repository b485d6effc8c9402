// SPDX-License-Identifier: Apache-2.0
/* Managed memory on several GPUs: kernels of each reach it without anybody's enabling access, in
 * small and large pieces, from a pool, and as a __managed__ variable, by name and by address; the host sees
 * what each of them wrote, and each of them what the host and the others wrote; a touch, and
 * cudaFree, wait for all of them. Where the GPUs do not reach each other, the launch is refused
 * and what the own GPU does goes on. Other memory stays closed. */
#include "check.h"
#include "driver.h"

__global__ void add(int *data, int n, int value)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < n)
		data[i] += value;
}

/* After so long that a host that does not wait reads first. */
__global__ void add_late(int *data, int n, int value)
{
	long long until = clock64() + 100000000;

	while (clock64() < until)
		;
	for (int i = 0; i < n; i++)
		data[i] += value;
}

#ifndef __clang__
__managed__ int variable = 5;
__device__ int own = 7;
#endif

static void add_on(int device, int *data, int n, int value)
{
	CUDA(cudaSetDevice(device));
	add<<<(n + 255) / 256, 256>>>(data, n, value);
	LAUNCHED();
}

/* What a program that waits for each sees. */
static void turns(int *data, int n)
{
	for (int i = 0; i < n; i++)
		data[i] = i;
	for (int round = 0; round < 3; round++)
		for (int device = 1; device >= 0; device--) {
			add_on(device, data, n, 10);
			CUDA(cudaDeviceSynchronize());
			CHECK_EQ(data[0], 1000 * (2 * round + 1 - device) + 10 * (2 * round + 2 - device));
			for (int i = 1; i < n; i++)
				CHECK_EQ_AT(i, data[i], i + 10 * (2 * round + 2 - device));
			data[0] += 1000;
		}
}

/* Both work in the order of an event, and the host waits for the last of them alone. */
static void after_each_other(int *data, int n)
{
	cudaEvent_t done;

	memset(data, 0, n * sizeof(*data));
	add_on(1, data, n, 1);
	CUDA(cudaEventCreate(&done));
	CUDA(cudaEventRecord(done, 0));
	CUDA(cudaSetDevice(0));
	CUDA(cudaStreamWaitEvent(0, done, 0));
	add_on(0, data, n, 1);
	CUDA(cudaDeviceSynchronize());
	for (int i = 0; i < n; i++)
		CHECK_EQ_AT(i, data[i], 2);
	CUDA(cudaEventDestroy(done));
}

/* A touch waits for work of the other device too, and of another context, and so does cudaFree. (A
 * device with concurrent access lets the host read meanwhile.) */
static void touched_meanwhile(void)
{
	int *data, *other;
	CUcontext context;
	ENTRY(cuCtxDestroy);
#if CUDA_VERSION >= 13000
	ENTRY(cuCtxCreate);
#else
	auto p_cuCtxCreate = driver_entry<decltype(&cuCtxCreate)>("cuCtxCreate", 3020);
#endif

	if (device_attribute(cudaDevAttrConcurrentManagedAccess))
		return;
	CUDA(cudaSetDevice(0));
	CUDA(cudaMallocManaged(&data, 4096));
	CUDA(cudaMallocManaged(&other, 4096));
	data[0] = 3;
	CUDA(cudaSetDevice(1));
	add_late<<<1, 1>>>(data, 1, 4);
	LAUNCHED();
	CUDA(cudaSetDevice(0));
	CHECK_EQ(data[0], 7);
#if CUDA_VERSION >= 13000
	DRIVER(p_cuCtxCreate(&context, NULL, 0, 0));
#else
	DRIVER(p_cuCtxCreate(&context, 0, 0));
#endif
	add_late<<<1, 1>>>(data, 1, 4);
	LAUNCHED();
	CHECK_EQ(data[0], 11);
	DRIVER(p_cuCtxDestroy(context));
	data[0] = 1;
	CUDA(cudaSetDevice(1));
	add_late<<<1, 1>>>(data, 1024, 1);
	LAUNCHED();
	CUDA(cudaSetDevice(0));
	CUDA(cudaFree(data));
	for (int i = 0; i < 1024; i++)
		other[i] = 0;
	CUDA(cudaMallocManaged(&data, 4096)); /* where it was, perhaps */
	for (int i = 0; i < 1024; i++)
		CHECK_EQ_AT(i, data[i], 0);
	CUDA(cudaSetDevice(1));
	CUDA(cudaDeviceSynchronize());
	for (int i = 0; i < 1024; i++)
		CHECK_EQ_AT(i, data[i], 0);
	CUDA(cudaFree(data));
	CUDA(cudaFree(other));
}

/* Fills, attributes, prefetches; access that is enabled and disabled changes nothing. */
static void others(int *data, int n)
{
	struct cudaPointerAttributes attributes;

	CUDA(cudaSetDevice(1));
	CUDA(cudaMemset(data, 0, n * sizeof(*data)));
	CUDA(cudaPointerGetAttributes(&attributes, data));
	CHECK(attributes.devicePointer == data);
	CUDA(cudaDeviceEnablePeerAccess(0, 0));
	add_on(1, data, n, 1);
	CUDA(cudaDeviceDisablePeerAccess(0));
	add_on(1, data, n, 1);
	CUDA(cudaDeviceSynchronize());
	for (int i = 0; i < n; i++)
		CHECK_EQ_AT(i, data[i], 2);
}

#ifndef __clang__
__global__ void add_by_name(int value)
{
	variable += value;
	own += value;
}
#endif

/* The variable is one, on all of them; what is not managed each has for itself. */
static void by_name(void)
{
#ifndef __clang__
	int copied;

	for (int device = 1; device >= 0; device--) {
		CUDA(cudaSetDevice(device));
		add_by_name<<<1, 1>>>(10);
		LAUNCHED();
		CUDA(cudaDeviceSynchronize());
		CHECK_EQ(variable, 5 + 11 * (2 - device) - 1);
		variable++;
		CUDA(cudaMemcpyFromSymbol(&copied, own, sizeof(own)));
		CHECK_EQ(copied, 7 + 10);
		CUDA(cudaMemcpyFromSymbol(&copied, variable, sizeof(variable)));
		CHECK_EQ(copied, 5 + 11 * (2 - device));
	}
	variable = 5;
#endif
}

static void by_address(void)
{
#ifndef __clang__
	add_on(1, &variable, 1, 10);
	CUDA(cudaDeviceSynchronize());
	CHECK_EQ(variable, 15);
	variable++;
	add_on(0, &variable, 1, 100);
	CUDA(cudaDeviceSynchronize());
	CHECK_EQ(variable, 116);
#endif
}

static void pooled(void)
{
#if CUDART_VERSION >= 13000
	cudaMemPoolProps props = {};
	cudaStream_t stream;
	cudaMemPool_t pool;
	cudaError_t status;
	int *data;

	CUDA(cudaSetDevice(0));
	props.allocType = cudaMemAllocationTypeManaged;
	props.location.type = cudaMemLocationTypeDevice;
	status = cudaMemPoolCreate(&pool, &props);
	if (status == cudaErrorNotSupported) {
		(void)cudaGetLastError();
		return;
	}
	CUDA(status);
	CUDA(cudaStreamCreate(&stream));
	CUDA(cudaMallocFromPoolAsync(&data, 4096 * sizeof(*data), pool, stream));
	CUDA(cudaStreamSynchronize(stream));
	turns(data, 4096);
	CUDA(cudaFreeAsync(data, stream));
	CUDA(cudaStreamSynchronize(stream));
	CUDA(cudaStreamDestroy(stream));
	CUDA(cudaMemPoolDestroy(pool));
#endif
}

/* Of GPUs that do not reach each other. Natively the memory is the host's then. */
static int refused(void)
{
	int *data, *own;
	cudaError_t status;

	CUDA(cudaSetDevice(0));
	CUDA(cudaMallocManaged(&data, 4096));
	data[0] = 3;
	CUDA(cudaSetDevice(1));
	add<<<1, 32>>>(data, 1, 1);
	status = cudaGetLastError();
	CUDA(cudaDeviceSynchronize());
	if (status) {
		CUDA_IS(cudaErrorNotSupported, status);
		data[0]++;
	}
	CUDA(cudaMallocManaged(&own, 4096));
	own[0] = 1;
	add_on(1, own, 1, 1);
	add_on(0, data, 1, 1);
	CUDA(cudaDeviceSynchronize());
	CHECK_EQ(data[0], 5);
	CUDA(cudaSetDevice(1));
	CUDA(cudaDeviceSynchronize());
	CHECK_EQ(own[0], 2);
	return 0;
}

/* Plain memory of the device of which managed memory is another's too. */
static int closed(void)
{
	int *managed, *plain;

	CUDA(cudaSetDevice(0));
	CUDA(cudaMallocManaged(&managed, 4096));
	CUDA(cudaMalloc(&plain, 4096));
	add_on(1, managed, 1, 1);
	CUDA(cudaDeviceSynchronize());
	CHECK_EQ(managed[0], 1);
	add<<<1, 1>>>(plain, 1, 1);
	CUDA_IS(cudaErrorIllegalAddress, cudaDeviceSynchronize());
	return 0;
}

int main(int argc, char **argv)
{
	int count, can = 0, *small, *large;

	CUDA(cudaGetDeviceCount(&count));
	if (count < 2 || !device_attribute(cudaDevAttrManagedMemory))
		SKIP("no two GPUs, or no managed memory");
	CUDA(cudaDeviceCanAccessPeer(&can, 1, 0));
	if (!can)
		return refused();
	if (argc > 1)
		return closed();
	CUDA(cudaSetDevice(0));
	CUDA(cudaMallocManaged(&small, 3000 * sizeof(*small)));
	CUDA(cudaMallocManaged(&large, 1000000 * sizeof(*large)));
	turns(small, 3000);
	turns(large, 1000000);
	after_each_other(small, 3000);
	after_each_other(large, 1000000);
	touched_meanwhile();
	others(small, 3000);
	others(large, 1000000);
	by_name();
	by_address();
	pooled();
	CHECK_EQ(wait_exit(start_self("closed")), 0);
	CUDA(cudaFree(small));
	CUDA(cudaFree(large));
	return 0;
}
