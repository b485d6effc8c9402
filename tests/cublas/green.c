/* SPDX-License-Identifier: Apache-2.0
 *
 * Green contexts: a handle of the primary context with a stream of a part, as PyTorch's
 * GreenContext.Stream() has it; with a part's context current; and a handle that was made
 * there, in the primary context.
 */
#include <cuda.h>
#include <dlfcn.h>

#include "tests/cublas/check.h"

enum { N = 32 };

#define DRIVER(NAME) __typeof__(NAME) *p_##NAME = dlsym(driver, #NAME)

static void product(cublasHandle_t handle, cudaStream_t stream, const char *what)
{
	struct matrix a = matrix_new(CUDA_R_64F, N, N), b = matrix_new(CUDA_R_64F, N, N),
		      c = matrix_new(CUDA_R_64F, N, N);
	const double one = 1, zero = 0;

	BLAS(cublasSetStream_v2(handle, stream));
	for (int i = 0; i < 3; i++)
		BLAS(cublasDgemm_v2(handle, 0, 0, N, N, N, &one, a.device, N, b.device, N,
			&zero, c.device, N));
	for (int i = 0; i < N; i++)
		for (int j = 0; j < N; j++) {
			double sum = 0;

			for (int k = 0; k < N; k++)
				sum += creal(at_of(&a, 0, i, k) * at_of(&b, 0, k, j));
			put_at(c.host, c.type, (size_t)j * N + (size_t)i, sum);
		}
	CUDA(cudaStreamSynchronize(stream));
	matrix_check(&c, what);
	matrix_free(&a);
	matrix_free(&b);
	matrix_free(&c);
}

int main(void)
{
	void *driver = dlopen("libcuda.so.1", RTLD_NOW);
	CUdevResource whole;
	CUdevResourceDesc description;
	CUgreenCtx green;
	CUcontext primary, part;
	CUstream stream;
	cublasHandle_t handle, of_part;

	if (!driver)
		DIE("no libcuda.so.1");
	DRIVER(cuCtxGetCurrent);
	DRIVER(cuCtxSetCurrent);
	DRIVER(cuCtxFromGreenCtx);
	DRIVER(cuDevResourceGenerateDesc);
	DRIVER(cuDeviceGetDevResource);
	DRIVER(cuGreenCtxCreate);
	DRIVER(cuGreenCtxDestroy);
	DRIVER(cuGreenCtxStreamCreate);
	DRIVER(cuStreamDestroy);
	if (!p_cuGreenCtxStreamCreate) {
		TELL("a driver without streams of green contexts");
		return 0;
	}
	CUDA(cudaFree(NULL));
	CUDA(p_cuCtxGetCurrent(&primary));
	CUDA(p_cuDeviceGetDevResource(0, &whole, CU_DEV_RESOURCE_TYPE_SM));
	CUDA(p_cuDevResourceGenerateDesc(&description, &whole, 1));
	CUDA(p_cuGreenCtxCreate(&green, description, 0, CU_GREEN_CTX_DEFAULT_STREAM));
	CUDA(p_cuGreenCtxStreamCreate(&stream, green, CU_STREAM_NON_BLOCKING, 0));
	CUDA(p_cuCtxFromGreenCtx(&part, green));
	BLAS(cublasCreate_v2(&handle));
	product(handle, stream, "a stream of a part");
	product(handle, NULL, "the primary context after it");

	CUDA(p_cuCtxSetCurrent(part));
	product(handle, stream, "the same with the part's context current");
	product(handle, NULL, "the part's default stream");
	BLAS(cublasCreate_v2(&of_part));
	product(of_part, stream, "a handle of the part");
	CUDA(p_cuCtxSetCurrent(primary));
	product(of_part, NULL, "a handle of the part in the primary context");
	product(of_part, stream, "a handle of the part with its stream");

	BLAS(cublasDestroy_v2(of_part));
	BLAS(cublasDestroy_v2(handle));
	CUDA(p_cuStreamDestroy((CUstream)stream));
	CUDA(p_cuGreenCtxDestroy(green));
	puts("products by green contexts");
	return 0;
}
