// SPDX-License-Identifier: Apache-2.0
/* cudaGraphExecUpdate as a training loop uses it: the step is captured anew each time, with other
 * sizes, addresses and kernels, and where its shape has changed it is instantiated anew. */
#include "check.h"

#include <vector>

#define N 4096

__global__ void scale(float *to, const float *from, float by, int n)
{
	int i = (int)(blockIdx.x * blockDim.x + threadIdx.x);

	if (i < n)
		to[i] = from[i] * by;
}

__global__ void shift(float *to, const float *from, float by, int n)
{
	int i = (int)(blockIdx.x * blockDim.x + threadIdx.x);

	if (i < n)
		to[i] = from[i] + by;
}

static void CUDART_CB count(void *at)
{
	++*(int *)at;
}

struct step {
	float *a, *b, *pinned;
	int *steps;
	int n;
	float by;
	bool adds, twice, told;
};

static cudaGraph_t capture(cudaStream_t stream, cudaStream_t side, cudaEvent_t fork,
	cudaEvent_t join, const struct step &s)
{
	cudaGraph_t graph;
	const int blocks = (s.n + 255) / 256;

	CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
	CUDA(cudaMemcpyAsync(s.a, s.pinned, (size_t)s.n * sizeof(float), cudaMemcpyHostToDevice, stream));
	CUDA(cudaEventRecord(fork, stream));
	CUDA(cudaStreamWaitEvent(side, fork, 0));
	CUDA(cudaMemsetAsync(s.b, 0, (size_t)s.n * sizeof(float), side));
	CUDA(cudaEventRecord(join, side));
	CUDA(cudaStreamWaitEvent(stream, join, 0));
	if (s.adds)
		shift<<<blocks, 256, 0, stream>>>(s.b, s.a, s.by, s.n);
	else
		scale<<<blocks, 256, 0, stream>>>(s.b, s.a, s.by, s.n);
	if (s.twice)
		scale<<<blocks, 256, 0, stream>>>(s.b, s.b, 2, s.n);
	if (s.told)
		CUDA(cudaLaunchHostFunc(stream, count, s.steps));
	CUDA(cudaMemcpyAsync(s.pinned + N, s.b, (size_t)s.n * sizeof(float), cudaMemcpyDeviceToHost, stream));
	CUDA(cudaStreamEndCapture(stream, &graph));
	return graph;
}

static bool update(cudaGraphExec_t exec, cudaGraph_t graph, bool fits)
{
	cudaGraphExecUpdateResultInfo info = {};
	cudaError_t status = cudaGraphExecUpdate(exec, graph, &info);

	CHECK((status == cudaSuccess) == fits);
	CHECK((info.result == cudaGraphExecUpdateSuccess) == fits);
	if (!fits) {
		CHECK_EQ((int)status, (int)cudaErrorGraphExecUpdateFailure);
		cudaGetLastError();
	}
	return status == cudaSuccess;
}

static void expect(const struct step &s, float first)
{
	float want = s.adds ? first + s.by : first * s.by;

	if (s.twice)
		want *= 2;
	CHECK_EQ(s.pinned[N], want);
	CHECK_EQ(s.pinned[N + s.n - 1], want);
}

int main()
{
	cudaStream_t stream, side;
	cudaEvent_t fork, join;
	cudaGraphExec_t exec = NULL;
	int steps = 0, made = 0;
	std::vector<step> all;
	float *memory;
	struct step s = {};

	CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
	CUDA(cudaStreamCreateWithFlags(&side, cudaStreamNonBlocking));
	CUDA(cudaEventCreateWithFlags(&fork, cudaEventDisableTiming));
	CUDA(cudaEventCreateWithFlags(&join, cudaEventDisableTiming));
	CUDA(cudaMalloc((void **)&memory, 4 * N * sizeof(float)));
	CUDA(cudaMallocHost((void **)&s.pinned, 2 * N * sizeof(float)));
	s.a = memory, s.b = memory + N, s.steps = &steps, s.n = N, s.by = 3, s.told = true;
	all.push_back(s);
	s.by = 5;
	all.push_back(s); /* another argument */
	s.n = 1000;
	all.push_back(s); /* another size and grid */
	s.a = memory + 2 * N, s.b = memory + 3 * N;
	all.push_back(s); /* elsewhere */
	s.adds = true;
	all.push_back(s); /* another kernel */
	s.twice = true;
	all.push_back(s); /* one node more: does not fit */
	s.by = 1;
	all.push_back(s);
	s.told = false;
	all.push_back(s); /* one less */
	for (size_t i = 0; i < all.size(); i++) {
		const bool fits = i && all[i].twice == all[i - 1].twice && all[i].told == all[i - 1].told;
		cudaGraph_t graph = capture(stream, side, fork, join, all[i]);

		for (int k = 0; k < 2 * N; k++)
			s.pinned[k] = k < N ? (float)(i + 2) : -1;
		if (!exec || !update(exec, graph, fits)) {
			if (exec)
				CUDA(cudaGraphExecDestroy(exec));
			CUDA(cudaGraphInstantiate(&exec, graph, 0));
			made++;
		}
		CUDA(cudaGraphDestroy(graph));
		CUDA(cudaGraphLaunch(exec, stream));
		CUDA(cudaStreamSynchronize(stream));
		expect(all[i], (float)(i + 2));
	}
	CHECK_EQ(made, 3);
	CHECK_EQ(steps, 7);
	CUDA(cudaGraphExecDestroy(exec));
	CUDA(cudaFreeHost(s.pinned));
	CUDA(cudaFree(memory));
	return 0;
}
