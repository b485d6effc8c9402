/* SPDX-License-Identifier: Apache-2.0
 *
 * Products of vectors that are captured with their results on the host, in a graph that runs
 * thrice.
 */
#include "tests/cusparse/check.h"

#define N CUSPARSE_OPERATION_NON_TRANSPOSE
#define SIZE 4

/* Results reach the host when the graph runs, each time, also after the handle is gone. */
static void to_the_host(cudaDataType t)
{
	static const number numbers[] = {1, 2, 3, 4}, others[] = {2, 2, -1, 1};
	static const int32_t places[] = {3, 0};
	number first = 1 * 4 + 2 * 1, second = 1 * 1 + 2 * 2, got;
	cusparseSpVecDescr_t x;
	cusparseDnVecDescr_t y;
	void *indices = device(sizeof(places)), *values = put(t, numbers, 2);
	void *dense = put(t, numbers, SIZE), *other = put(t, others, SIZE), *work;
	char result[2][16];
	size_t bytes = 0;
	CUgraphExec exec;
	CUstream stream;
	CUgraph graph;

	CUDA(cuMemcpyHtoD((CUdeviceptr)(uintptr_t)indices, places, sizeof(places)));
	SPARSE(cusparseCreateSpVec(
		&x, SIZE, 2, indices, values, CUSPARSE_INDEX_32I, CUSPARSE_INDEX_BASE_ZERO, t));
	SPARSE(cusparseCreateDnVec(&y, SIZE, dense, t));
	SPARSE(cusparseSpVV_bufferSize(handle, N, x, y, result[0], t, &bytes));
	work = device(bytes);
	CUDA(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	SPARSE(cusparseSetStream(handle, (cudaStream_t)stream));
	memset(result, 0x55, sizeof(result));
	CUDA(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
	for (int i = 0; i < 2; i++)
		SPARSE(cusparseSpVV(handle, N, x, y, result[i], t, work));
	CUDA(cuStreamEndCapture(stream, &graph));
	for (int i = 0; i < 2; i++)
		for (int j = 0; j < 16; j++)
			CHECK(result[i][j] == 0x55, "the capture itself wrote a result");
	CUDA(cuGraphInstantiate(&exec, graph, 0));
	SPARSE(cusparseDestroy(handle));
	for (int run = 0; run < 3; run++) {
		memset(result, 0, sizeof(result));
		CUDA(cuGraphLaunch(exec, stream));
		CUDA(cuStreamSynchronize(stream));
		for (int i = 0; i < 2; i++) {
			got = number_in(t, result[i], 0);
			near(t, &got, run ? &second : &first, 1, "a result on the host");
		}
		CUDA(cuMemcpyDtoD((CUdeviceptr)(uintptr_t)dense, (CUdeviceptr)(uintptr_t)other,
			SIZE * size_of(t)));
	}
	CUDA(cuGraphExecDestroy(exec));
	CUDA(cuGraphDestroy(graph));
	CUDA(cuStreamDestroy(stream));
	SPARSE(cusparseDestroySpVec(x));
	SPARSE(cusparseDestroyDnVec(y));
	release(indices);
	release(values);
	release(dense);
	release(other);
	release(work);
	SPARSE(cusparseCreate(&handle));
}

int main(void)
{
	begin();
	to_the_host(CUDA_R_32F);
	to_the_host(CUDA_C_64F);
	SPARSE(cusparseDestroy(handle));
	return 0;
}
