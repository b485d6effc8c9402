/* SPDX-License-Identifier: Apache-2.0
 *
 * A factorization and a solution in a graph, which runs again on other numbers.
 */
#include "tests/cusolver/check.h"

enum { N = 24 };

int main(void)
{
	cusolverDnHandle_t handle;
	CUstream stream;
	CUgraph graph;
	CUgraphExec exec;
	int words;
	void *at, *right, *work, *info;

	device_begin();
	CUDA(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	SOLVER(cusolverDnCreate(&handle));
	SOLVER(cusolverDnSetStream(handle, (cudaStream_t)stream));
	at = device(N * N * sizeof(number));
	right = device(N * sizeof(number));
	info = device(sizeof(int));
	SOLVER(cusolverDnZpotrf_bufferSize(handle, CUBLAS_FILL_MODE_LOWER, N, at, N, &words));
	work = device((size_t)words * sizeof(number));
	CUDA(cuCtxSynchronize());

	CUDA(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
	SOLVER(cusolverDnZpotrf(handle, CUBLAS_FILL_MODE_LOWER, N, at, N, work, words, info));
	SOLVER(cusolverDnZpotrs(handle, CUBLAS_FILL_MODE_LOWER, N, 1, at, N, right, N, info));
	CUDA(cuStreamEndCapture(stream, &graph));
	CUDA(cuGraphInstantiate(&exec, graph, 0));

	for (int run = 0; run < 3; run++) {
		number *a = hermitian(Z, N, false, N + 1), *x = some(Z, N, 1), *got;
		number *b = product('N', a, 'N', x, N, 1, N);

		CUDA(cuMemcpyHtoD((CUdeviceptr)(uintptr_t)at, a, N * N * sizeof(*a)));
		CUDA(cuMemcpyHtoD((CUdeviceptr)(uintptr_t)right, b, N * sizeof(*b)));
		CUDA(cuGraphLaunch(exec, stream));
		CUDA(cuStreamSynchronize(stream));
		got = get(Z, right, N, 1, N);
		CLOSE(Z, got, x, N, N, "a graph's run");
		FREE(a, x, b, got);
	}
	CUDA(cuGraphExecDestroy(exec));
	CUDA(cuGraphDestroy(graph));
	SOLVER(cusolverDnDestroy(handle));
	RELEASE(at, right, work, info);
	CUDA(cuStreamDestroy(stream));
	printf("ok\n");
	return 0;
}
