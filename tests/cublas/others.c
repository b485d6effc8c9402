/* SPDX-License-Identifier: Apache-2.0
 *
 * Vectors, triangles and the rest beside matrix products: results on the host and on the
 * device, every type where the types differ, copies of vectors and matrices.
 */
#include "tests/cublas/check.h"

enum { N = 9 };

static cublasHandle_t handle;

static void near(const char *what, double got, double want)
{
	if (!(fabs(got - want) <= 1e-5 * (1 + fabs(want))))
		DIE("%s is %.9g, not %.9g", what, got, want);
}

static void vectors_single(void)
{
	struct matrix x = matrix_new(CUDA_R_32F, 2, N), y = matrix_new(CUDA_R_32F, 1, N);
	float *hx = x.host, *hy = y.host, alpha = 1.25f, got, *there;
	float dot = 0, sum = 0, square = 0;
	int largest = 0, smallest = 0, index = 0;

	for (int i = 0; i < N; i++) {
		dot += hx[2 * i] * hy[i];
		sum += fabsf(hx[2 * i]);
		square += hx[2 * i] * hx[2 * i];
		if (fabsf(hx[2 * i]) > fabsf(hx[2 * largest]))
			largest = i;
		if (fabsf(hx[2 * i]) < fabsf(hx[2 * smallest]))
			smallest = i;
	}
	BLAS(cublasSdot_v2(handle, N, x.device, 2, y.device, 1, &got));
	near("Sdot", got, dot);
	BLAS(cublasSasum_v2(handle, N, x.device, 2, &got));
	near("Sasum", got, sum);
	BLAS(cublasSnrm2_v2(handle, N, x.device, 2, &got));
	near("Snrm2", got, sqrt(square));
	BLAS(cublasIsamax_v2(handle, N, x.device, 2, &index));
	near("Isamax", index, largest + 1);
	BLAS(cublasIsamin_v2(handle, N, x.device, 2, &index));
	near("Isamin", index, smallest + 1);

	CUDA(cudaMalloc((void **)&there, 64));
	BLAS(cublasSetPointerMode_v2(handle, CUBLAS_POINTER_MODE_DEVICE));
	BLAS(cublasSdot_v2(handle, N, x.device, 2, y.device, 1, there));
	BLAS(cublasSetPointerMode_v2(handle, CUBLAS_POINTER_MODE_HOST));
	CUDA(cudaMemcpy(&got, there, sizeof(got), cudaMemcpyDeviceToHost));
	near("Sdot to the device", got, dot);
	CUDA(cudaFree(there));

	BLAS(cublasSaxpy_v2(handle, N, &alpha, x.device, 2, y.device, 1));
	for (int i = 0; i < N; i++)
		hy[i] += alpha * hx[2 * i];
	matrix_check(&y, "Saxpy");
	BLAS(cublasSscal_v2(handle, N, &alpha, y.device, 1));
	for (int i = 0; i < N; i++)
		hy[i] *= alpha;
	matrix_check(&y, "Sscal");
	BLAS(cublasSswap_v2(handle, N, x.device, 2, y.device, 1));
	for (int i = 0; i < N; i++) {
		float t = hx[2 * i];

		hx[2 * i] = hy[i];
		hy[i] = t;
	}
	matrix_check(&x, "Sswap");
	BLAS(cublasScopy_v2(handle, N, x.device, 2, y.device, 1));
	for (int i = 0; i < N; i++)
		hy[i] = hx[2 * i];
	matrix_check(&y, "Scopy");
	matrix_free(&x);
	matrix_free(&y);
}

static void vectors_complex(void)
{
	struct matrix x = matrix_new(CUDA_C_64F, 1, N), y = matrix_new(CUDA_C_64F, 1, N);
	double complex *hx = x.host, *hy = y.host, dotu = 0, dotc = 0;
	double real = -2, norm = 0;
	cuDoubleComplex got;
	double length;

	for (int i = 0; i < N; i++) {
		dotu += hx[i] * hy[i];
		dotc += conj(hx[i]) * hy[i];
		norm += creal(hx[i] * conj(hx[i]));
	}
	BLAS(cublasZdotu_v2(handle, N, x.device, 1, y.device, 1, &got));
	near("Zdotu real", got.x, creal(dotu));
	near("Zdotu imaginary", got.y, cimag(dotu));
	BLAS(cublasZdotc_v2(handle, N, x.device, 1, y.device, 1, &got));
	near("Zdotc real", got.x, creal(dotc));
	near("Zdotc imaginary", got.y, cimag(dotc));
	BLAS(cublasDznrm2_v2(handle, N, x.device, 1, &length));
	near("Dznrm2", length, sqrt(norm));
	BLAS(cublasZdscal_v2(handle, N, &real, x.device, 1));
	for (int i = 0; i < N; i++)
		hx[i] *= real;
	matrix_check(&x, "Zdscal");
	matrix_free(&x);
	matrix_free(&y);
}

static void with_a_vector(void)
{
	enum { M = 5 };
	struct matrix a = matrix_new(CUDA_R_64F, M + 1, N), x = matrix_new(CUDA_R_64F, 1, N);
	struct matrix y = matrix_new(CUDA_R_64F, 1, M);
	double *hy = y.host, *hx = x.host, alpha = 2, beta = -1;

	BLAS(cublasDgemv_v2(
		handle, 0, M, N, &alpha, a.device, a.ld, x.device, 1, &beta, y.device, 1));
	for (int i = 0; i < M; i++) {
		double sum = 0;

		for (int j = 0; j < N; j++)
			sum += creal(at_of(&a, 0, i, j)) * hx[j];
		hy[i] = alpha * sum + beta * hy[i];
	}
	matrix_check(&y, "Dgemv");
	BLAS(cublasDger_v2(handle, M, N, &alpha, y.device, 1, x.device, 1, a.device, a.ld));
	for (int j = 0; j < N; j++)
		for (int i = 0; i < M; i++)
			((double *)a.host)[j * a.ld + i] += alpha * hy[i] * hx[j];
	matrix_check(&a, "Dger");
	matrix_free(&a);
	matrix_free(&x);
	matrix_free(&y);
}

/* Solves, then multiplies back: B again. */
static void triangles(void)
{
	enum { M = 6, COLUMNS = 4 };
	struct matrix a = matrix_new(CUDA_R_64F, M, M), b = matrix_new(CUDA_R_64F, M, COLUMNS);
	double alpha = 2, back = 0.5;
	double *places[2], **there;

	for (int i = 0; i < M; i++)
		((double *)a.host)[i * M + i] = 4; /* far from singular */
	CUDA(cudaMemcpy(a.device, a.host, a.bytes, cudaMemcpyHostToDevice));
	for (int uplo = 0; uplo < 2; uplo++)
		for (int op = 0; op < 2; op++) {
			BLAS(cublasDtrsm_v2(handle, 0, uplo, op, 0, M, COLUMNS, &alpha,
				a.device, M, b.device, M));
			BLAS(cublasDtrmm_v2(handle, 0, uplo, op, 0, M, COLUMNS, &back, a.device,
				M, b.device, M, b.device, M));
			matrix_check(&b, "Dtrsm and Dtrmm");
		}
	places[0] = a.device;
	places[1] = b.device;
	CUDA(cudaMalloc((void **)&there, sizeof(places)));
	CUDA(cudaMemcpy(there, places, sizeof(places), cudaMemcpyHostToDevice));
	BLAS(cublasDtrsmBatched(handle, 0, 1, 0, 0, M, COLUMNS, &alpha,
		(const double *const *)there, M, there + 1, M, 1));
	BLAS(cublasDtrmm_v2(
		handle, 0, 1, 0, 0, M, COLUMNS, &back, a.device, M, b.device, M, b.device, M));
	matrix_check(&b, "DtrsmBatched");
	CUDA(cudaFree(there));
	matrix_free(&a);
	matrix_free(&b);
}

static void symmetric(void)
{
	enum { M = 5, K = 3 };
	struct matrix a = matrix_new(CUDA_R_32F, M, K), c = matrix_new(CUDA_R_32F, M, M);
	struct matrix d = matrix_new(CUDA_R_32F, M, K);
	float alpha = 1, beta = 0.5f;
	float *hc = c.host;

	BLAS(cublasSsyrk_v2(handle, 0, 0, M, K, &alpha, a.device, M, &beta, c.device, M));
	for (int j = 0; j < M; j++)
		for (int i = j; i < M; i++) {
			float sum = 0;

			for (int k = 0; k < K; k++)
				sum += (float)creal(at_of(&a, 0, i, k) * at_of(&a, 0, j, k));
			hc[j * M + i] = alpha * sum + beta * hc[j * M + i];
		}
	matrix_check(&c, "Ssyrk");
	BLAS(cublasSsymm_v2(
		handle, 0, 0, M, K, &alpha, c.device, M, a.device, M, &beta, d.device, M));
	for (int j = 0; j < K; j++)
		for (int i = 0; i < M; i++) {
			float sum = 0;

			for (int k = 0; k < M; k++)
				sum += hc[i > k ? k * M + i : i * M + k] *
				       (float)creal(at_of(&a, 0, k, j));
			((float *)d.host)[j * M + i] =
				alpha * sum + beta * ((float *)d.host)[j * M + i];
		}
	matrix_check(&d, "Ssymm");
	matrix_free(&a);
	matrix_free(&c);
	matrix_free(&d);
}

static void own(void)
{
	enum { M = 4, COLUMNS = 5 };
	struct matrix a = matrix_new(CUDA_C_32F, COLUMNS, M);
	struct matrix b = matrix_new(CUDA_C_32F, M, COLUMNS);
	struct matrix c = matrix_new(CUDA_C_32F, M, COLUMNS);
	struct matrix x = matrix_new(CUDA_C_32F, 1, COLUMNS);
	cuComplex alpha = {1, 2}, beta = {0.5f, 0};

	BLAS(cublasCgeam(handle, 2, 0, M, COLUMNS, &alpha, a.device, COLUMNS, &beta, b.device,
		M, c.device, M));
	for (int j = 0; j < COLUMNS; j++)
		for (int i = 0; i < M; i++)
			put_at(c.host, c.type, (size_t)(j * M + i),
				(1 + 2 * I) * at_of(&a, 2, i, j) + 0.5 * at_of(&b, 0, i, j));
	matrix_check(&c, "Cgeam");
	BLAS(cublasCdgmm(handle, 1, M, COLUMNS, b.device, M, x.device, 1, c.device, M));
	for (int j = 0; j < COLUMNS; j++)
		for (int i = 0; i < M; i++)
			put_at(c.host, c.type, (size_t)(j * M + i),
				at_of(&b, 0, i, j) * get_at(x.host, x.type, (size_t)j));
	matrix_check(&c, "Cdgmm");
	matrix_free(&a);
	matrix_free(&b);
	matrix_free(&c);
	matrix_free(&x);
}

static void copies(void)
{
	struct matrix m = matrix_new(CUDA_R_32F, 6, 4);
	float part[4 * 3], column[4];

	BLAS(cublasGetMatrix(3, 4, sizeof(float), m.device, 6, part, 3));
	for (int j = 0; j < 4; j++)
		for (int i = 0; i < 3; i++)
			near("GetMatrix", part[j * 3 + i], creal(at_of(&m, 0, i, j)));
	BLAS(cublasGetVector(4, sizeof(float), m.device, 6, column, 1));
	for (int j = 0; j < 4; j++)
		near("GetVector", column[j], creal(at_of(&m, 0, 0, j)));
	for (int j = 0; j < 4; j++)
		((float *)m.host)[j * 6 + 1] = column[j];
	BLAS(cublasSetVector(4, sizeof(float), column, 1, (float *)m.device + 1, 6));
	matrix_check(&m, "SetVector");
	for (int j = 0; j < 4; j++)
		for (int i = 0; i < 3; i++)
			((float *)m.host)[j * 6 + 3 + i] = part[j * 3 + i];
	BLAS(cublasSetMatrix(3, 4, sizeof(float), part, 3, (float *)m.device + 3, 6));
	matrix_check(&m, "SetMatrix");
	BLAS_IS(cublasSetMatrix(3, 4, 0, part, 3, m.device, 6), CUBLAS_STATUS_INVALID_VALUE);
	matrix_free(&m);
}

/* How floats are emulated: a setting like another, and products go on as before. */
static void emulation(void)
{
	int strategy = -1;

	BLAS(cublasGetEmulationStrategy(handle, &strategy));
	if (strategy)
		DIE("the strategy is %d at first", strategy);
	BLAS(cublasSetEmulationStrategy(handle, 1));
	BLAS(cublasGetEmulationStrategy(handle, &strategy));
	if (strategy != 1)
		DIE("strategy 1 is %d", strategy);
	BLAS_IS(cublasSetEmulationStrategy(NULL, 1), CUBLAS_STATUS_NOT_INITIALIZED);
#if CUBLAS_ABI >= 13
	{
		cudaEmulationSpecialValuesSupport special = 0;
		int bits = 0, offset = 0;

		BLAS(cublasGetEmulationSpecialValuesSupport(handle, &special));
		if (special != 0xffff)
			DIE("special values are %#x at first", (unsigned)special);
		BLAS(cublasSetFixedPointEmulationMaxMantissaBitCount(handle, 40));
		BLAS(cublasGetFixedPointEmulationMaxMantissaBitCount(handle, &bits));
		BLAS(cublasSetFixedPointEmulationMantissaBitOffset(handle, -3));
		BLAS(cublasGetFixedPointEmulationMantissaBitOffset(handle, &offset));
		if (bits != 40 || offset != -3)
			DIE("40 bits are %d, offset -3 is %d", bits, offset);
	}
#endif
	with_a_vector();
	BLAS(cublasSetEmulationStrategy(handle, 0));
}

int main(void)
{
	BLAS(cublasCreate_v2(&handle));
	vectors_single();
	vectors_complex();
	with_a_vector();
	triangles();
	symmetric();
	own();
	copies();
	emulation();
	BLAS(cublasDestroy_v2(handle));
	puts("others: right");
	return 0;
}
