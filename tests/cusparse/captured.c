/* SPDX-License-Identifier: Apache-2.0
 *
 * A product captured in a graph that runs thrice, with a kernel's worth of copies before and
 * behind it: y = A y, again and again.
 */
#include "tests/cusparse/check.h"

#define N CUSPARSE_OPERATION_NON_TRANSPOSE
#define SIZE 4

int main(void)
{
	/* A turns y by one place and doubles it. */
	number a[SIZE * SIZE] = {0, 2, 0, 0, 0, 0, 2, 0, 0, 0, 0, 2, 2, 0, 0, 0};
	number y[SIZE] = {1, 2, 3, 4}, want[SIZE] = {32, 8, 16, 24};
	struct matrix m;
	void *x, *to, *work;
	cusparseDnVecDescr_t in, out;
	CUstream stream;
	CUgraph graph;
	CUgraphExec exec;
	float one = 1, none = 0;
	size_t bytes = 0;

	begin();
	m = sparse_of(CUSPARSE_FORMAT_CSR, CUDA_R_32F, a, SIZE, SIZE, CUSPARSE_INDEX_32I,
		CUSPARSE_INDEX_BASE_ZERO);
	x = put(CUDA_R_32F, y, SIZE);
	to = device(SIZE * sizeof(float));
	SPARSE(cusparseCreateDnVec(&in, SIZE, x, CUDA_R_32F));
	SPARSE(cusparseCreateDnVec(&out, SIZE, to, CUDA_R_32F));
	SPARSE(cusparseSpMV_bufferSize(handle, N, &one, m.descr, in, &none, out, CUDA_R_32F,
		CUSPARSE_SPMV_CSR_ALG2, &bytes));
	work = device(bytes);
	CUDA(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	SPARSE(cusparseSetStream(handle, (cudaStream_t)stream));
	CUDA(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
	SPARSE(cusparseSpMV(handle, N, &one, m.descr, in, &none, out, CUDA_R_32F,
		CUSPARSE_SPMV_CSR_ALG2, work));
	CUDA(cuMemcpyDtoDAsync((CUdeviceptr)(uintptr_t)x, (CUdeviceptr)(uintptr_t)to,
		SIZE * sizeof(float), stream));
	CUDA(cuStreamEndCapture(stream, &graph));
	CUDA(cuGraphInstantiate(&exec, graph, 0));
	for (int i = 0; i < 3; i++)
		CUDA(cuGraphLaunch(exec, stream));
	CUDA(cuStreamSynchronize(stream));
	same(CUDA_R_32F, x, want, SIZE, "three products of a graph");
	CUDA(cuGraphExecDestroy(exec));
	CUDA(cuGraphDestroy(graph));
	SPARSE(cusparseSetStream(handle, NULL));
	CUDA(cuStreamDestroy(stream));
	SPARSE(cusparseDestroyDnVec(in));
	SPARSE(cusparseDestroyDnVec(out));
	matrix_free(&m);
	release(x);
	release(to);
	release(work);
	SPARSE(cusparseDestroy(handle));
	return 0;
}
