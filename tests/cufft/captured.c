/* SPDX-License-Identifier: Apache-2.0
 *
 * cuFFT in a stream that captures: nothing is transformed until the graph is launched, and then
 * as often as it is. A transform and its inverse give what was there, times how many.
 */
#include "tests/cufft/check.h"

#define N 64

static void captured(cudaStream_t stream)
{
	struct numbers data = numbers_new(2 * N, false);
	struct numbers before = numbers_new(2 * N, false);
	cudaGraphExec_t exec;
	cufftHandle plan;
	cudaGraph_t graph;
	size_t nodes = 0;

	FFT(cufftPlan1d(&plan, N, CUFFT_C2C, 1));
	FFT(cufftSetStream(plan, stream));
	numbers_fill(&data);
	numbers_fill(&before);
	numbers_send(&data);
	/* What a plan does only once is not for a graph. */
	FFT(cufftExecC2C(plan, before.device, before.device, CUFFT_FORWARD));
	FFT(cufftExecC2C(plan, before.device, before.device, CUFFT_INVERSE));
	CUDA(cudaStreamSynchronize(stream));

	CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
	FFT(cufftExecC2C(plan, data.device, data.device, CUFFT_FORWARD));
	FFT(cufftExecC2C(plan, data.device, data.device, CUFFT_INVERSE));
	CUDA(cudaStreamEndCapture(stream, &graph));
	CUDA(cudaGraphGetNodes(graph, NULL, &nodes));
	if (!nodes)
		DIE("the graph is empty");
	CUDA(cudaGraphInstantiateWithFlags(&exec, graph, 0));
	for (int times = 0; times < 3; times++) {
		double scale = pow(N, times);

		numbers_fetch(&data);
		for (size_t i = 0; i < N; i++)
			near("repeated", i, complex_at(&data, i) / scale,
				complex_at(&before, i), N, false);
		CUDA(cudaGraphLaunch(exec, stream));
		CUDA(cudaStreamSynchronize(stream));
	}
	CUDA(cudaGraphExecDestroy(exec));
	CUDA(cudaGraphDestroy(graph));
	FFT(cufftDestroy(plan));
	numbers_free(&data);
	numbers_free(&before);
}

int main(void)
{
	cudaStream_t stream;

	CUDA(cudaStreamCreate(&stream));
	captured(stream);
	CUDA(cudaStreamDestroy(stream));
	puts("ok");
	return 0;
}
