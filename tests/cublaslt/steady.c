/* SPDX-License-Identifier: Apache-2.0
 *
 *	steady THING COUNT
 *
 * Does a thing COUNT times, for counting round trips (run.py), and says how long each took, the
 * first ten aside.
 */
#include <time.h>

#include "tests/cublaslt/check.h"

enum { SIZE = 16 };

/* As PyTorch's addmm does it: descriptors made, the heuristic asked, the product run, all of it
 * for each call, with a bias that lies elsewhere each time. */
static void linear(cublasLtHandle_t handle, const struct matrix *m, int i)
{
	struct descs d =
		descs_new(F32, CUDA_R_32F, CUDA_R_32F, CUDA_R_32F, 1, 0, SIZE, SIZE, SIZE);
	uint32_t epilogue = CUBLASLT_EPILOGUE_BIAS;
	void *bias = (char *)m->device + 256 * (i % 3);
	float one = (float)i, zero = 0; /* another scalar is no other call */
	cublasLtMatmulHeuristicResult_t best;

	SET_OP(&d, EPILOGUE, epilogue);
	SET_OP(&d, BIAS_POINTER, bias);
	BLAS(descs_algo(handle, &d, &best));
	BLAS(cublasLtMatmul(handle, d.op, &one, m->device, d.a, m->device, d.b, &zero,
		m->device, d.c, m->device, d.d, &best.algo, NULL, 0, NULL));
	descs_free(&d);
}

/* A product that the library refuses: the refusal is remembered too. */
static void refused(cublasLtHandle_t handle)
{
	struct descs d =
		descs_new(F64, CUDA_R_64F, CUDA_R_8I, CUDA_R_64F, 0, 0, SIZE, SIZE, SIZE);
	cublasLtMatmulHeuristicResult_t best;

	if (!descs_algo(handle, &d, &best))
		DIE("the library multiplies 8-bit integers in f64");
	descs_free(&d);
}

static void transform(cublasLtHandle_t handle, const struct matrix *m)
{
	cublasLtMatrixTransformDesc_t desc;
	cublasLtMatrixLayout_t layout;
	float one = 1, zero = 0;

	BLAS(cublasLtMatrixTransformDescCreate(&desc, CUDA_R_32F));
	BLAS(cublasLtMatrixLayoutCreate(&layout, CUDA_R_32F, SIZE, SIZE, SIZE));
	BLAS(cublasLtMatrixTransform(handle, desc, &one, m->device, layout, &zero, NULL, NULL,
		(char *)m->device + SIZE * SIZE * sizeof(float), layout, NULL));
	BLAS(cublasLtMatrixLayoutDestroy(layout));
	BLAS(cublasLtMatrixTransformDescDestroy(desc));
}

static double now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

int main(int argc, char **argv)
{
	int count = argc == 3 ? atoi(argv[2]) : 0;
	struct matrix m = matrix_new(CUDA_R_32F, SIZE, 3 * SIZE);
	cublasLtHandle_t handle;
	double start = 0;

	if (argc != 3)
		DIE("usage: steady THING COUNT");
	BLAS(cublasLtCreate(&handle));
	for (int i = 0; i < count; i++) {
		if (i == 10) {
			CUDA(cudaDeviceSynchronize());
			start = now_us();
		}
		if (!strcmp(argv[1], "linear"))
			linear(handle, &m, i);
		else if (!strcmp(argv[1], "refused"))
			refused(handle);
		else if (!strcmp(argv[1], "transform"))
			transform(handle, &m);
		else
			DIE("no thing '%s'", argv[1]);
	}
	CUDA(cudaDeviceSynchronize());
	if (count > 10)
		printf("%s: %.2f us each\n", argv[1], (now_us() - start) / (count - 10));
	BLAS(cublasLtDestroy(handle));
	return 0;
}
