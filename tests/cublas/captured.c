/* SPDX-License-Identifier: Apache-2.0
 *
 * cuBLAS calls in a stream that captures: they run when the graph is launched, with what the
 * matrices hold then and the scalars of the capture; a host result cannot be captured.
 */
#include "tests/cublas/check.h"

enum { N = 8, ROUNDS = 5 };

static void give(float *device, float first)
{
	float host[N * N];

	for (int i = 0; i < N * N; i++)
		host[i] = first + (float)(i % 5);
	CUDA(cudaMemcpy(device, host, sizeof(host), cudaMemcpyHostToDevice));
}

/* C = alpha A A. */
static void expect(const float *device, const float *a, float alpha)
{
	float in[N * N], out[N * N];

	CUDA(cudaMemcpy(in, a, sizeof(in), cudaMemcpyDeviceToHost));
	CUDA(cudaMemcpy(out, device, sizeof(out), cudaMemcpyDeviceToHost));
	for (int i = 0; i < N; i++)
		for (int j = 0; j < N; j++) {
			float want = 0;

			for (int k = 0; k < N; k++)
				want += in[i + k * N] * in[k + j * N];
			want *= alpha;
			if (fabsf(out[i + j * N] - want) > 1e-3f * fabsf(want))
				DIE("C[%d,%d] is %g, not %g", i, j, (double)out[i + j * N],
					(double)want);
		}
}

int main(void)
{
	float alpha = 2, beta = 0, *a, *c, result;
	cublasHandle_t handle;
	cudaStream_t stream;
	cudaGraphExec_t exec;
	cudaGraph_t graph;

	BLAS(cublasCreate_v2(&handle));
	CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
	CUDA(cudaMalloc((void **)&a, N * N * sizeof(float)));
	CUDA(cudaMalloc((void **)&c, N * N * sizeof(float)));
	CUDA(cudaMemset(c, 0, N * N * sizeof(float)));
	BLAS(cublasSetStream_v2(handle, stream));
	give(a, 1);

	CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
	BLAS(cublasSgemm_v2(handle, 0, 0, N, N, N, &alpha, a, N, a, N, &beta, c, N));
	CUDA(cudaStreamEndCapture(stream, &graph));
	alpha = 7; /* taken at the call */
	expect(c, a, 0);
	CUDA(cudaGraphInstantiateWithFlags(&exec, graph, 0));
	for (int round = 0; round < ROUNDS; round++) {
		give(a, (float)round);
		CUDA(cudaGraphLaunch(exec, stream));
		CUDA(cudaStreamSynchronize(stream));
		expect(c, a, 2);
	}
	CUDA(cudaGraphDestroy(graph));
	CUDA(cudaGraphLaunch(exec, stream));
	CUDA(cudaGraphExecDestroy(exec));
	CUDA(cudaStreamSynchronize(stream));
	expect(c, a, 2);

	CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
	if (cublasSdot_v2(handle, N, a, 1, a, 1, &result) == CUBLAS_STATUS_SUCCESS)
		DIE("a result for the host was captured");
	if (!cudaStreamEndCapture(stream, &graph))
		DIE("the capture with a result for the host gave a graph");
	(void)cudaGetLastError();
	BLAS(cublasSdot_v2(handle, N, a, 1, a, 1, &result));
	CUDA(cudaDeviceSynchronize());
	BLAS(cublasDestroy_v2(handle));
	return 0;
}
