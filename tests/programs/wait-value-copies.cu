// SPDX-License-Identifier: Apache-2.0
/* Copies from pinned memory behind a wait for a value in pinned memory (cuStreamWaitValue32 and
 * cuStreamBatchMemOp) read what the program writes until it ends the wait. */
#include "driver.h"

#include <unistd.h>

#include <vector>

enum { N = 1 << 16, PAUSE_US = 50000 };

static cudaStream_t stream;
static int *pinned, *device;
static volatile int *flag;

/* The copy is queued, and has had the time to be taken, before the program writes. */
static void write_then_go(int value)
{
	usleep(PAUSE_US);
	for (int i = 0; i < N; i++)
		pinned[i] = value + i;
	__sync_synchronize();
	*flag = value;
	CUDA(cudaStreamSynchronize(stream));
}

static void check(int value)
{
	std::vector<int> got(N);

	CUDA(cudaMemcpy(got.data(), device, N * sizeof(int), cudaMemcpyDeviceToHost));
	for (int i = 0; i < N; i++)
		CHECK_EQ_AT(i, got[i], value + i);
}

int main(void)
{
	ENTRY(cuStreamWaitValue32);
	ENTRY(cuStreamBatchMemOp);
	CUstreamBatchMemOpParams wait = {};
	size_t pitch = 256 * sizeof(int);
	int *flags;

	CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
	CUDA(cudaHostAlloc(&pinned, N * sizeof(int), cudaHostAllocDefault));
	CUDA(cudaHostAlloc(&flags, 4096, cudaHostAllocDefault));
	CUDA(cudaMalloc(&device, N * sizeof(int)));
	memset(pinned, 0, N * sizeof(int));
	flag = flags;
	*flag = 0;

	DRIVER(p_cuStreamWaitValue32(
		stream, (CUdeviceptr)flags, 1000, CU_STREAM_WAIT_VALUE_EQ));
	CUDA(cudaMemcpyAsync(device, pinned, N * sizeof(int), cudaMemcpyHostToDevice, stream));
	write_then_go(1000);
	check(1000);

	wait.waitValue.operation = CU_STREAM_MEM_OP_WAIT_VALUE_32;
	wait.waitValue.address = (CUdeviceptr)flags;
	wait.waitValue.value = 2000;
	DRIVER(p_cuStreamBatchMemOp(stream, 1, &wait, 0));
	CUDA(cudaMemcpy2DAsync(device, pitch, pinned, pitch, pitch, N / 256, cudaMemcpyDefault,
		stream));
	write_then_go(2000);
	check(2000);

	CUDA(cudaFree(device));
	CUDA(cudaFreeHost(pinned));
	CUDA(cudaFreeHost(flags));
	CUDA(cudaStreamDestroy(stream));
	return 0;
}
