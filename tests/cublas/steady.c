/* SPDX-License-Identifier: Apache-2.0
 *
 *	steady THING COUNT
 *
 * Does a thing COUNT times, for counting round trips (run.py).
 */
#include "tests/cublas/check.h"

int main(int argc, char **argv)
{
	int count = argc == 3 ? atoi(argv[2]) : 0;
	struct matrix a = matrix_new(CUDA_R_32F, 8, 8);
	float one = 1, zero = 0, result, *there, product[64];
	cublasHandle_t handle;
	cublasXtHandle_t xt;
	cudaStream_t stream;
	int device = 0;

	if (argc != 3)
		DIE("usage: steady THING COUNT");
	BLAS(cublasCreate_v2(&handle));
	BLAS(cublasInit());
	BLAS(cublasXtCreate(&xt));
	BLAS(cublasXtDeviceSelect(xt, 1, &device));
	CUDA(cudaStreamCreate(&stream));
	CUDA(cudaMalloc((void **)&there, 64));
	for (int i = 0; i < count; i++) {
		if (!strcmp(argv[1], "gemm")) {
			one = (float)i; /* another scalar is no other call */
			BLAS(cublasSgemm_v2(handle, 0, 0, 8, 8, 8, &one, a.device, 8, a.device,
				8, &zero, a.device, 8));
		} else if (!strcmp(argv[1], "gemm_ex")) {
			BLAS(cublasGemmEx(handle, 0, 0, 8, 8, 8, &one, a.device, CUDA_R_32F, 8,
				a.device, CUDA_R_32F, 8, &zero, a.device, CUDA_R_32F, 8, 68,
				-1));
		} else if (!strcmp(argv[1], "state")) {
			BLAS(cublasSetStream_v2(handle, i % 2 ? stream : NULL));
			BLAS(cublasSetMathMode(handle, i % 2 ? 3 : 0));
			BLAS(cublasSetWorkspace_v2(handle, there, 64));
			BLAS(cublasSscal_v2(handle, 8, &one, a.device, 1));
		} else if (!strcmp(argv[1], "dot_device")) {
			BLAS(cublasSetPointerMode_v2(handle, CUBLAS_POINTER_MODE_DEVICE));
			BLAS(cublasSdot_v2(handle, 8, a.device, 1, a.device, 1, there));
		} else if (!strcmp(argv[1], "rank")) {
			BLAS(cublasSsyr2k_v2(handle, 0, 0, 8, 8, &one, a.device, 8, a.device, 8,
				&zero, a.device, 8));
			BLAS(cublasSspr_v2(handle, 0, 3, &zero, a.device, 1, a.device));
			BLAS(cublasSrot_v2(handle, 8, a.device, 1, a.device, 1, &one, &zero));
		} else if (!strcmp(argv[1], "legacy")) {
			cublasSgemm('N', 'N', 8, 8, 8, one, a.device, 8, a.device, 8, zero,
				a.device, 8);
			BLAS(cublasGetError());
		} else if (!strcmp(argv[1], "xt")) {
			BLAS(cublasXtSgemm(xt, 0, 0, 8, 8, 8, &one, a.host, 8, a.host, 8, &zero,
				product, 8));
		} else if (!strcmp(argv[1], "dot_host")) {
			BLAS(cublasSdot_v2(handle, 8, a.device, 1, a.device, 1, &result));
		} else {
			DIE("no thing '%s'", argv[1]);
		}
	}
	CUDA(cudaDeviceSynchronize());
	BLAS(cublasXtDestroy(xt));
	BLAS(cublasShutdown());
	BLAS(cublasDestroy_v2(handle));
	return 0;
}
