// SPDX-License-Identifier: Apache-2.0
/*
 * CUDA_LAUNCH_BLOCKING=1: a kernel is done when its launch returns, in whatever stream; a captured
 * one is not waited for; a fault is told by the launch that made it.  The variable is read at the
 * process's start, so the program sets it and begins again.
 */
#include "check.h"

__global__ void late(volatile int *to, int turns, int value)
{
	for (int i = 0; i < turns; i++)
		*to = i;
	*to = value;
}

static void launches_wait(int *data, cudaStream_t stream)
{
	for (int i = 0; i < 5; i++) {
		late<<<1, 1, 0, stream>>>(data, 100000, i);
		CUDA(cudaGetLastError());
		CUDA(cudaStreamQuery(stream));
	}
}

static void captured_ones_do_not(int *data, cudaStream_t stream)
{
	cudaGraph_t graph;
	cudaGraphExec_t exec;
	int got;

	CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
	late<<<1, 1, 0, stream>>>(data, 10, 77);
	CUDA(cudaGetLastError());
	CUDA(cudaStreamEndCapture(stream, &graph));
	CUDA(cudaGraphInstantiate(&exec, graph, 0));
	CUDA(cudaGraphLaunch(exec, stream));
	CUDA(cudaStreamSynchronize(stream));
	CUDA(cudaMemcpy(&got, data, sizeof(got), cudaMemcpyDefault));
	CHECK_EQ(got, 77);
	CUDA(cudaGraphExecDestroy(exec));
	CUDA(cudaGraphDestroy(graph));
}

int main(int argc, char **argv)
{
	cudaStream_t blocking, other;
	int *data;

	(void)argc;
	if (!getenv("CUDA_LAUNCH_BLOCKING")) {
		setenv("CUDA_LAUNCH_BLOCKING", "1", 1);
		execv("/proc/self/exe", argv);
		return 1;
	}
	CUDA(cudaMalloc(&data, sizeof(*data)));
	CUDA(cudaStreamCreate(&blocking));
	CUDA(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
	launches_wait(data, NULL);
	launches_wait(data, blocking);
	launches_wait(data, other);
	captured_ones_do_not(data, other);
	late<<<1, 1, 0, other>>>((int *)16, 1, 1);
	CUDA_IS(cudaErrorIllegalAddress, cudaGetLastError());
	return 0;
}
