// SPDX-License-Identifier: Apache-2.0
/* Memory of one process on one GPU, opened by another process for another GPU, as all-reduces
 * that are written in kernels do: each rank reads and writes what the other one has. */
#include "check.h"

static const int N = 1 << 16;

__global__ void add(int *to, const int *from)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	to[i] += from[i];
}

static void expect(const int *values, int first, int each)
{
	static int got[N];

	CUDA(cudaMemcpy(got, values, sizeof(got), cudaMemcpyDefault));
	for (int i = 0; i < N; i++)
		CHECK_EQ_AT(i, got[i], first + each * i);
}

static int *numbers(int device)
{
	static int values[N];
	int *made;

	for (int i = 0; i < N; i++)
		values[i] = i;
	CUDA(cudaSetDevice(device));
	CUDA(cudaMalloc(&made, sizeof(values)));
	CUDA(cudaMemcpy(made, values, sizeof(values), cudaMemcpyHostToDevice));
	return made;
}

static cudaIpcMemHandle_t handle_of(const char *text)
{
	cudaIpcMemHandle_t handle;

	for (size_t i = 0; i < sizeof(handle); i++) {
		unsigned byte = 0;

		CHECK(sscanf(text + 2 * i, "%2x", &byte) == 1);
		((unsigned char *)&handle)[i] = (unsigned char)byte;
	}
	return handle;
}

/* On device 1, with what the parent has on device 0. */
static int child(const char *text)
{
	cudaIpcMemHandle_t handle = handle_of(text);
	int *own = numbers(1), *there, *again;
	cudaPointerAttributes what;

	CUDA(cudaIpcOpenMemHandle((void **)&there, handle, cudaIpcMemLazyEnablePeerAccess));
	CUDA(cudaIpcOpenMemHandle((void **)&again, handle, cudaIpcMemLazyEnablePeerAccess));
	CHECK(again == there);
	CUDA(cudaPointerGetAttributes(&what, there));
	CHECK_EQ(what.type, cudaMemoryTypeDevice);
	add<<<N / 256, 256>>>(own, there);
	add<<<N / 256, 256>>>(there, own);
	CUDA(cudaDeviceSynchronize());
	expect(own, 0, 2);
	expect(there, 0, 3);
	/* By copies and fills as well, with this device current. */
	CUDA(cudaMemcpy(own, there, N * sizeof(int), cudaMemcpyDeviceToDevice));
	expect(own, 0, 3);
	CUDA(cudaIpcCloseMemHandle(again));
	add<<<N / 256, 256>>>(there, own);
	CUDA(cudaDeviceSynchronize());
	CUDA(cudaIpcCloseMemHandle(there));
	/* And its own memory is as it was. */
	expect(own, 0, 3);
	CUDA(cudaFree(own));
	return 0;
}

int main(int argc, char **argv)
{
	cudaIpcMemHandle_t handle;
	char text[2 * sizeof(handle) + 1];
	int count, can = 0, *values;

	if (argc > 1)
		return child(argv[1]);
	CUDA(cudaGetDeviceCount(&count));
	if (count > 1)
		CUDA(cudaDeviceCanAccessPeer(&can, 1, 0));
	if (!can)
		SKIP("no two GPUs that reach each other's memory");
	for (int times = 0; times < 2; times++) {
		values = numbers(0);
		CUDA(cudaIpcGetMemHandle(&handle, values));
		for (size_t i = 0; i < sizeof(handle); i++)
			snprintf(text + 2 * i, 3, "%02x", ((unsigned char *)&handle)[i]);
		CHECK_EQ_AT(times, wait_exit(start_self(text)), 0);
		expect(values, 0, 6);
		CUDA(cudaFree(values));
	}
	return 0;
}
