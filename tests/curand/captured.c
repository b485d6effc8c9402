/* SPDX-License-Identifier: Apache-2.0
 *
 * cuRAND in a stream that captures: nothing is made until the graph is launched, and then the
 * numbers are those that the same seed gives without a graph.
 */
#include "tests/curand/check.h"

#define N 4096

static unsigned expected[N], got[N];

static curandGenerator_t make(curandRngType_t type, cudaStream_t stream)
{
	curandGenerator_t generator;

	RAND(curandCreateGenerator(&generator, type));
	RAND(curandSetPseudoRandomGeneratorSeed(generator, 20261122));
	RAND(curandSetStream(generator, stream));
	RAND(curandGenerateSeeds(generator));
	return generator;
}

static void fetch(unsigned *to, const unsigned *device, cudaStream_t stream)
{
	CUDA(cudaStreamSynchronize(stream));
	CUDA(cudaMemcpy(to, device, sizeof(got), cudaMemcpyDeviceToHost));
}

static void captured(curandRngType_t type, cudaStream_t stream, unsigned *device)
{
	curandGenerator_t plain = make(type, stream), generator = make(type, stream);
	cudaGraphExec_t exec;
	cudaGraph_t graph;
	size_t nodes = 0;

	RAND(curandGenerate(plain, device, N));
	fetch(expected, device, stream);
	CUDA(cudaMemset(device, 0, sizeof(got)));
	CUDA(cudaStreamSynchronize(stream));

	CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
	RAND(curandGenerate(generator, device, N));
	CUDA(cudaStreamEndCapture(stream, &graph));
	CUDA(cudaGraphGetNodes(graph, NULL, &nodes));
	if (!nodes)
		DIE("generator %d: the graph is empty", (int)type);
	fetch(got, device, stream);
	for (int i = 0; i < N; i++)
		if (got[i])
			DIE("generator %d: number %d was made in the capture", (int)type, i);

	CUDA(cudaGraphInstantiateWithFlags(&exec, graph, 0));
	CUDA(cudaGraphLaunch(exec, stream));
	fetch(got, device, stream);
	for (int i = 0; i < N; i++)
		if (got[i] != expected[i])
			DIE("generator %d: number %d is %u, not %u", (int)type, i, got[i],
				expected[i]);
	CUDA(cudaGraphExecDestroy(exec));
	CUDA(cudaGraphDestroy(graph));
	RAND(curandDestroyGenerator(plain));
	RAND(curandDestroyGenerator(generator));
}

int main(void)
{
	cudaStream_t stream;
	unsigned *device;

	CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
	CUDA(cudaMalloc((void **)&device, sizeof(got)));
	captured(CURAND_RNG_PSEUDO_XORWOW, stream, device);
	captured(CURAND_RNG_PSEUDO_PHILOX4_32_10, stream, device);
	CUDA(cudaFree(device));
	CUDA(cudaStreamDestroy(stream));
	return 0;
}
