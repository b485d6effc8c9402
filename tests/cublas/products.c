/* SPDX-License-Identifier: Apache-2.0
 *
 * Matrix products: every transposition and type, plain, batched and strided, in host and device
 * pointer mode, on a stream of the program's own.
 */
#include "tests/cublas/check.h"

enum { M = 5, N = 7, K = 6, BATCH = 3 };

static cublasHandle_t handle;
static const cudaDataType types[] = {CUDA_R_32F, CUDA_R_64F, CUDA_C_32F, CUDA_C_64F};
static const char *const names[] = {"S", "D", "C", "Z"};

/* C = alpha op(A) op(B) + beta C, in place in c->host, from element `a_at` … on. */
static void expect(struct matrix *c, const struct matrix *a, const struct matrix *b, int ta,
	int tb, double complex alpha, double complex beta, int member, size_t sa, size_t sb,
	size_t sc)
{
	struct matrix pa = *a, pb = *b;

	pa.host = (char *)a->host + (size_t)member * sa * cublas_data_bytes(a->type);
	pb.host = (char *)b->host + (size_t)member * sb * cublas_data_bytes(b->type);
	for (int j = 0; j < N; j++)
		for (int i = 0; i < M; i++) {
			size_t at = (size_t)member * sc + (size_t)j * (size_t)c->ld + (size_t)i;
			double complex sum = 0;

			for (int k = 0; k < K; k++)
				sum += at_of(&pa, ta, i, k) * at_of(&pb, tb, k, j);
			sum *= alpha;
			if (beta != 0)
				sum += beta * get_at(c->host, c->type, at);
			put_at(c->host, c->type, at, sum);
		}
}

static int gemm(int t, int ta, int tb, const void *alpha, const struct matrix *a,
	const struct matrix *b, const void *beta, const struct matrix *c)
{
	switch (t) {
	case 0:
		return cublasSgemm_v2(handle, ta, tb, M, N, K, alpha, a->device, a->ld,
			b->device, b->ld, beta, c->device, c->ld);
	case 1:
		return cublasDgemm_v2(handle, ta, tb, M, N, K, alpha, a->device, a->ld,
			b->device, b->ld, beta, c->device, c->ld);
	case 2:
		return cublasCgemm_v2(handle, ta, tb, M, N, K, alpha, a->device, a->ld,
			b->device, b->ld, beta, c->device, c->ld);
	default:
		return cublasZgemm_v2_64(handle, ta, tb, M, N, K, alpha, a->device, a->ld,
			b->device, b->ld, beta, c->device, c->ld);
	}
}

static void plain(int t, int ta, int tb, bool on_device)
{
	cudaDataType type = types[t];
	struct matrix a = matrix_new(type, (ta ? K : M) + 1, ta ? M : K);
	struct matrix b = matrix_new(type, (tb ? N : K) + 2, tb ? K : N);
	struct matrix c = matrix_new(type, M + 3, N);
	struct matrix scalars = matrix_new(type, 2, 1);
	size_t each = cublas_data_bytes(type);
	double complex alpha = get_at(scalars.host, type, 0);
	double complex beta = get_at(scalars.host, type, 1);
	char *from = on_device ? scalars.device : scalars.host;
	char what[64];

	BLAS(cublasSetPointerMode_v2(handle, on_device));
	/* Twice: the second is known already. */
	for (int times = 0; times < 2; times++) {
		expect(&c, &a, &b, ta, tb, alpha, beta, 0, 0, 0, 0);
		BLAS(gemm(t, ta, tb, from, &a, &b, from + each, &c));
	}
	snprintf(what, sizeof(what), "%sgemm %d%d %s", names[t], ta, tb,
		on_device ? "device scalars" : "host scalars");
	matrix_check(&c, what);
	BLAS(cublasSetPointerMode_v2(handle, CUBLAS_POINTER_MODE_HOST));
	matrix_free(&a);
	matrix_free(&b);
	matrix_free(&c);
	matrix_free(&scalars);
}

/* beta = 0: what C holds is not read. */
static void not_read(void)
{
	struct matrix a = matrix_new(CUDA_R_32F, M, K), b = matrix_new(CUDA_R_32F, K, N);
	struct matrix c = matrix_new(CUDA_R_32F, M, N);
	float alpha = 1, beta = 0;

	CUDA(cudaMemset(c.device, 0xff, c.bytes)); /* NaN */
	expect(&c, &a, &b, 0, 0, 1, 0, 0, 0, 0, 0);
	BLAS(gemm(0, 0, 0, &alpha, &a, &b, &beta, &c));
	matrix_check(&c, "C of NaN with beta 0");
	matrix_free(&a);
	matrix_free(&b);
	matrix_free(&c);
}

static void strided(void)
{
	struct matrix a = matrix_new(CUDA_R_64F, M, K * BATCH + 1);
	struct matrix b = matrix_new(CUDA_R_64F, K, N * BATCH);
	struct matrix c = matrix_new(CUDA_R_64F, M, N * BATCH);
	double alpha = 2, beta = -1;

	for (int i = 0; i < BATCH; i++)
		expect(&c, &a, &b, 0, 0, alpha, beta, i, M * K + 1, K * N, M * N);
	BLAS(cublasDgemmStridedBatched(handle, 0, 0, M, N, K, &alpha, a.device, M, M * K + 1,
		b.device, K, K * N, &beta, c.device, M, M * N, BATCH));
	matrix_check(&c, "DgemmStridedBatched");
	matrix_free(&a);
	matrix_free(&b);
	matrix_free(&c);
}

static void batched(void)
{
	struct matrix a = matrix_new(CUDA_R_32F, M, K * BATCH);
	struct matrix b = matrix_new(CUDA_R_32F, K, N * BATCH);
	struct matrix c = matrix_new(CUDA_R_32F, M, N * BATCH);
	float *places[3 * BATCH], **there;
	float alpha = 1.5f, beta = 0.5f;

	for (int i = 0; i < BATCH; i++) {
		places[i] = (float *)a.device + i * M * K;
		places[BATCH + i] = (float *)b.device + i * K * N;
		places[2 * BATCH + i] = (float *)c.device + i * M * N;
		expect(&c, &a, &b, 0, 0, alpha, beta, i, M * K, K * N, M * N);
	}
	CUDA(cudaMalloc((void **)&there, sizeof(places)));
	CUDA(cudaMemcpy(there, places, sizeof(places), cudaMemcpyHostToDevice));
	BLAS(cublasSgemmBatched(handle, 0, 0, M, N, K, &alpha, (const float *const *)there, M,
		(const float *const *)(there + BATCH), K, &beta, there + 2 * BATCH, M, BATCH));
	matrix_check(&c, "SgemmBatched");
	CUDA(cudaFree(there));
	matrix_free(&a);
	matrix_free(&b);
	matrix_free(&c);
}

/* GemmEx and its strided form: the scalars' type follows from the compute type. */
static void extended(cudaDataType in, cudaDataType out, int compute)
{
	/* Leading dimensions are multiples of 4: 8-bit integers ask for it. */
	struct matrix a = matrix_new(in, 8, M), b = matrix_new(in, 8, N);
	struct matrix c = matrix_new(out, 8, N);
	cudaDataType scalar = compute == CUBLAS_COMPUTE_32I   ? CUDA_R_32I
			      : compute == CUBLAS_COMPUTE_16F ? CUDA_R_16F
			      : compute == CUBLAS_COMPUTE_64F ? CUDA_R_64F
			      : in == CUDA_C_32F	      ? CUDA_C_32F
							      : CUDA_R_32F;
	_Alignas(16) unsigned char alpha[16], beta[16];
	char what[64];

	put_at(alpha, scalar, 0, 2);
	put_at(beta, scalar, 0, 1);
	snprintf(what, sizeof(what), "GemmEx types %d %d compute %d", (int)in, (int)out,
		compute);
	expect(&c, &a, &b, 1, 0, 2, 1, 0, 0, 0, 0);
	BLAS(cublasGemmEx(handle, 1, 0, M, N, K, alpha, a.device, in, 8, b.device, in, 8, beta,
		c.device, out, 8, compute, -1));
	matrix_check(&c, what);
	expect(&c, &a, &b, 1, 0, 2, 1, 0, 0, 0, 0);
	BLAS(cublasGemmStridedBatchedEx(handle, 1, 0, M, N, K, alpha, a.device, in, 8, 8 * M,
		b.device, in, 8, 8 * N, beta, c.device, out, 8, 8 * N, 1, compute, -1));
	matrix_check(&c, what);
	matrix_free(&a);
	matrix_free(&b);
	matrix_free(&c);
}

/* In order with copies on a stream that waits for nobody. */
static void on_a_stream(void)
{
	struct matrix a = matrix_new(CUDA_R_32F, M, K), b = matrix_new(CUDA_R_32F, K, N);
	struct matrix c = matrix_new(CUDA_R_32F, M, N);
	float alpha = 1, beta = 1;
	float *back;
	cudaStream_t stream;

	CUDA(cudaMallocHost((void **)&back, c.bytes));
	CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
	BLAS(cublasSetStream_v2(handle, stream));
	CUDA(cudaMemsetAsync(c.device, 0, c.bytes, stream));
	memset(c.host, 0, c.bytes);
	for (int i = 0; i < 20; i++) {
		BLAS(gemm(0, 0, 0, &alpha, &a, &b, &beta, &c));
		expect(&c, &a, &b, 0, 0, 1, 1, 0, 0, 0, 0);
	}
	CUDA(cudaMemcpyAsync(back, c.device, c.bytes, cudaMemcpyDeviceToHost, stream));
	CUDA(cudaStreamSynchronize(stream));
	for (size_t i = 0; i < c.count; i++)
		if (fabs(back[i] - creal(get_at(c.host, c.type, i))) > 1e-3)
			DIE("on a stream: element %zu is %g", i, back[i]);
	BLAS(cublasSetStream_v2(handle, NULL));
	CUDA(cudaStreamDestroy(stream));
	CUDA(cudaFreeHost(back));
	matrix_free(&a);
	matrix_free(&b);
	matrix_free(&c);
}

static void refusals(void)
{
	struct matrix a = matrix_new(CUDA_R_32F, 8, 8);
	float one = 1;
	cublasHandle_t other;

	BLAS_IS(cublasSgemm_v2(handle, 0, 0, -1, 2, 2, &one, a.device, 8, a.device, 8, &one,
			a.device, 8),
		CUBLAS_STATUS_INVALID_VALUE);
	BLAS_IS(cublasSgemm_v2(handle, 0, 0, 4, 4, 4, &one, a.device, 2, a.device, 8, &one,
			a.device, 8),
		CUBLAS_STATUS_INVALID_VALUE);
	BLAS(cublasCreate_v2(&other));
	BLAS(cublasDestroy_v2(other));
	BLAS_IS(cublasSetStream_v2(NULL, NULL), CUBLAS_STATUS_NOT_INITIALIZED);
	matrix_free(&a);
}

int main(void)
{
	int mode, version = 0, without = 0;

	/* JAX asks without a handle, and before anything else. */
	BLAS(cublasGetVersion_v2(NULL, &without));
	if (without < 120000)
		DIE("version %d without a handle", without);
	BLAS_IS(cublasGetVersion_v2(NULL, NULL), CUBLAS_STATUS_INVALID_VALUE);
	BLAS(cublasCreate_v2(&handle));
	BLAS(cublasGetVersion_v2(handle, &version));
	if (version < 120000)
		DIE("version %d", version);
	BLAS(cublasGetVersion_v2(NULL, &without));
	if (without != version)
		DIE("version %d without a handle, %d with one", without, version);
	BLAS(cublasGetPointerMode_v2(handle, &mode));
	if (mode != CUBLAS_POINTER_MODE_HOST)
		DIE("pointer mode is %d at first", mode);
	for (int t = 0; t < 4; t++)
		for (int ta = 0; ta < 3; ta++)
			for (int tb = 0; tb < 3; tb++)
				plain(t, ta, tb, false);
	for (int t = 0; t < 4; t++)
		plain(t, 0, 1, true);
	not_read();
	strided();
	batched();
	extended(CUDA_R_32F, CUDA_R_32F, 68);
	extended(CUDA_R_64F, CUDA_R_64F, CUBLAS_COMPUTE_64F);
	extended(CUDA_C_32F, CUDA_C_32F, 68);
	extended(CUDA_R_16F, CUDA_R_16F, 68);
	extended(CUDA_R_16F, CUDA_R_16F, CUBLAS_COMPUTE_16F);
	extended(CUDA_R_16F, CUDA_R_32F, 68);
	extended(CUDA_R_16BF, CUDA_R_16BF, 68);
	extended(CUDA_R_8I, CUDA_R_32I, CUBLAS_COMPUTE_32I);
	on_a_stream();
	refusals();
	BLAS(cublasDestroy_v2(handle));
	puts("products: right");
	return 0;
}
