/* SPDX-License-Identifier: Apache-2.0
 *
 * A product with a bias that is captured into a graph and run by it, over inputs that change;
 * by cuBLASLt and by cuBLAS.
 */
#include "tests/cublaslt/check.h"

enum { M = 16, N = 8, K = 32, TIMES = 3 };

static struct matrix a, b, bias, out, plain;

static void new_inputs(int times)
{
	for (size_t i = 0; i < b.count; i++)
		put_at(b.host, b.type, i,
			(double)((int)(i * 7 + (size_t)times * 3) % 11 - 5) / 4);
	CUDA(cudaMemcpy(b.device, b.host, b.bytes, cudaMemcpyHostToDevice));
	for (int col = 0; col < N; col++)
		for (int row = 0; row < M; row++) {
			size_t at = (size_t)(col * M + row);
			double sum = 0;

			for (int k = 0; k < K; k++)
				sum += creal(at_of(&a, 1, row, k) * at_of(&b, 0, k, col));
			put_at(plain.host, plain.type, at, sum);
			put_at(out.host, out.type, at,
				sum + creal(get_at(bias.host, bias.type, (size_t)row)));
		}
}

int main(void)
{
	struct descs d = descs_new(F32, CUDA_R_32F, CUDA_R_32F, CUDA_R_32F, 1, 0, M, N, K);
	uint32_t epilogue = CUBLASLT_EPILOGUE_BIAS;
	cublasLtMatmulHeuristicResult_t best;
	float one = 1, zero = 0;
	cudaGraphExec_t exec;
	cudaStream_t stream;
	cublasHandle_t blas;
	cudaGraph_t graph;
	void *workspace;

	a = matrix_new(CUDA_R_32F, K, M);
	b = matrix_new(CUDA_R_32F, K, N);
	bias = matrix_new(CUDA_R_32F, M, 1);
	out = matrix_new(CUDA_R_32F, M, N);
	plain = matrix_new(CUDA_R_32F, M, N);
	CUDA(cudaMalloc(&workspace, 1 << 20));
	CUDA(cudaStreamCreate(&stream));
	BLAS(cublasCreate_v2(&blas));
	BLAS(cublasSetStream_v2(blas, stream));
	SET_OP(&d, EPILOGUE, epilogue);
	SET_OP(&d, BIAS_POINTER, bias.device);
	BLAS(descs_algo((cublasLtHandle_t)blas, &d, &best));

	/* Once before, as programs do, once into the graph. */
	for (int captured = 0; captured < 2; captured++) {
		if (captured)
			CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
		BLAS(cublasLtMatmul((cublasLtHandle_t)blas, d.op, &one, a.device, d.a, b.device,
			d.b, &zero, out.device, d.c, out.device, d.d, &best.algo, workspace,
			1 << 20, stream));
		BLAS(cublasSgemm_v2(blas, 1, 0, M, N, K, &one, a.device, K, b.device, K, &zero,
			plain.device, M));
		if (captured)
			CUDA(cudaStreamEndCapture(stream, &graph));
		else
			CUDA(cudaStreamSynchronize(stream));
	}
	CUDA(cudaGraphInstantiateWithFlags(&exec, graph, 0));
	for (int i = 0; i < TIMES; i++) {
		new_inputs(i);
		CUDA(cudaMemset(out.device, 0xff, out.bytes));
		CUDA(cudaMemset(plain.device, 0xff, plain.bytes));
		CUDA(cudaGraphLaunch(exec, stream));
		CUDA(cudaStreamSynchronize(stream));
		matrix_check(&out, "cublasLtMatmul in a graph");
		matrix_check(&plain, "cublasSgemm in a graph");
	}
	CUDA(cudaGraphExecDestroy(exec));
	CUDA(cudaGraphDestroy(graph));
	BLAS(cublasDestroy_v2(blas));
	descs_free(&d);
	puts("capture: right");
	return 0;
}
