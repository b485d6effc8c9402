/* SPDX-License-Identifier: Apache-2.0
 *
 * The interface of before CUDA 4 (cublas.h): without a handle, with letters, scalars and
 * results by value. Each function gives what its successor with a handle gives; errors are
 * asked for afterwards.
 */
#include "tests/cublas/forms.h"

enum { N = 7, K = 3, LD = 8 };

static cublasHandle_t handle;
static struct matrix a, b, c, x, y;

static void all_new(cudaDataType type)
{
	a = matrix_new(type, LD, N);
	b = matrix_new(type, LD, N);
	c = matrix_new(type, LD, N);
	x = matrix_new(type, 2, N);
	y = matrix_new(type, 1, N);
	for (int i = 0; i < N; i++)
		put_at(a.host, type, (size_t)(i * LD + i), 4);
	matrix_send(&a);
}

static void all_free(void)
{
	matrix_free(&a);
	matrix_free(&b);
	matrix_free(&c);
	matrix_free(&x);
	matrix_free(&y);
}

/* What M is after the first call becomes what is wanted after the second, which begins where
 * the first began. */
static void keep(struct matrix *m, void **was)
{
	*was = m->host;
	m->host = malloc(m->bytes);
	CUDA(cudaMemcpy(m->host, m->device, m->bytes, cudaMemcpyDeviceToHost));
	CUDA(cudaMemcpy(m->device, *was, m->bytes, cudaMemcpyHostToDevice));
}

static void again(struct matrix *m, void *was, const char *what)
{
	matrix_check(m, what);
	free(m->host);
	m->host = was;
	matrix_send(m);
}

#define SAME(M, LEGACY, CALL)                                                                  \
	do {                                                                                   \
		void *was;                                                                     \
		BLAS(CALL);                                                                    \
		keep(&(M), &was);                                                              \
		LEGACY;                                                                        \
		BLAS(cublasGetError());                                                        \
		again(&(M), was, #LEGACY);                                                     \
	} while (0)
#define NEAR(GOT, WANT)                                                                        \
	do {                                                                                   \
		double got_ = (GOT), want_ = (WANT);                                           \
		BLAS(cublasGetError());                                                        \
		if (!(fabs(got_ - want_) <= 1e-5 * (1 + fabs(want_))))                         \
			DIE("%s is %g, not %g", #GOT, got_, want_);                            \
	} while (0)

/* What every type has: T its letter, NUMBER its C type; ONE, TWO: scalars. */
#define EVERY(T, NUMBER, ONE, TWO)                                                             \
	NUMBER one = ONE, two = TWO;                                                           \
	const NUMBER *pa = a.device, *pb = b.device;                                           \
	NUMBER *pc = c.device, *px = x.device, *py = y.device;                                 \
	SAME(y, cublas##T##axpy(N, two, px, 2, py, 1),                                         \
		cublas##T##axpy_v2(handle, N, &two, px, 2, py, 1));                            \
	SAME(y, cublas##T##copy(N, px, 2, py, -1),                                             \
		cublas##T##copy_v2(handle, N, px, 2, py, -1));                                 \
	/* x is changed too: back before the second. */                                        \
	SAME(y, (matrix_send(&x), cublas##T##swap(N, px, 1, py, 1)),                           \
		cublas##T##swap_v2(handle, N, px, 1, py, 1));                                  \
	matrix_send(&x);                                                                       \
	SAME(x, cublas##T##scal(N, two, px, 2), cublas##T##scal_v2(handle, N, &two, px, 2));   \
	SAME(y, cublas##T##gemv('t', N, N, two, pa, LD, px, 2, one, py, 1),                    \
		cublas##T##gemv_v2(handle, 1, N, N, &two, pa, LD, px, 2, &one, py, 1));        \
	SAME(y, cublas##T##gbmv('N', N, N, 1, 2, two, pa, LD, px, 2, one, py, 1),              \
		cublas##T##gbmv_v2(handle, 0, N, N, 1, 2, &two, pa, LD, px, 2, &one, py, 1));  \
	SAME(x, cublas##T##trmv('L', 'C', 'U', N, pa, LD, px, 2),                              \
		cublas##T##trmv_v2(handle, 0, 2, 1, N, pa, LD, px, 2));                        \
	SAME(x, cublas##T##trsv('u', 'n', 'n', N, pa, LD, px, 2),                              \
		cublas##T##trsv_v2(handle, 1, 0, 0, N, pa, LD, px, 2));                        \
	SAME(x, cublas##T##tbmv('U', 'N', 'N', N, 2, pa, LD, px, 2),                           \
		cublas##T##tbmv_v2(handle, 1, 0, 0, N, 2, pa, LD, px, 2));                     \
	SAME(x, cublas##T##tpmv('U', 'T', 'N', N, pa, px, 2),                                  \
		cublas##T##tpmv_v2(handle, 1, 1, 0, N, pa, px, 2));                            \
	SAME(c, cublas##T##gemm('N', 'C', N, N, K, two, pa, LD, pb, LD, one, pc, LD),          \
		cublas##T##gemm_v2(                                                            \
			handle, 0, 2, N, N, K, &two, pa, LD, pb, LD, &one, pc, LD));           \
	SAME(c, cublas##T##syrk('L', 'T', N, K, two, pa, LD, one, pc, LD),                     \
		cublas##T##syrk_v2(handle, 0, 1, N, K, &two, pa, LD, &one, pc, LD));           \
	SAME(c, cublas##T##syr2k('U', 'N', N, K, two, pa, LD, pb, LD, one, pc, LD),            \
		cublas##T##syr2k_v2(handle, 1, 0, N, K, &two, pa, LD, pb, LD, &one, pc, LD));  \
	SAME(c, cublas##T##symm('R', 'U', N, N, two, pa, LD, pb, LD, one, pc, LD),             \
		cublas##T##symm_v2(handle, 1, 1, N, N, &two, pa, LD, pb, LD, &one, pc, LD));   \
	SAME(c, cublas##T##trmm('L', 'U', 'N', 'U', N, N, two, pa, LD, pc, LD),                \
		cublas##T##trmm_v2(handle, 0, 1, 0, 1, N, N, &two, pa, LD, pc, LD, pc, LD));   \
	SAME(c, cublas##T##trsm('R', 'L', 'T', 'N', N, N, two, pa, LD, pc, LD),                \
		cublas##T##trsm_v2(handle, 1, 0, 1, 0, N, N, &two, pa, LD, pc, LD))

static void singles(void)
{
	float got, ra = 3, rb = 4, cosine, sine;
	int index;

	all_new(CUDA_R_32F);
	{
		EVERY(S, float, 1, -2.5f);
		BLAS(cublasSdot_v2(handle, N, px, 2, py, 1, &got));
		NEAR(cublasSdot(N, px, 2, py, 1), got);
		BLAS(cublasSnrm2_v2(handle, N, px, 2, &got));
		NEAR(cublasSnrm2(N, px, 2), got);
		BLAS(cublasSasum_v2(handle, N, px, 2, &got));
		NEAR(cublasSasum(N, px, 2), got);
		BLAS(cublasIsamax_v2(handle, N, px, 2, &index));
		NEAR(cublasIsamax(N, px, 2), index);
		BLAS(cublasIsamin_v2(handle, N, px, 2, &index));
		NEAR(cublasIsamin(N, px, 2), index);
		SAME(y, (matrix_send(&x), cublasSrot(N, px, 2, py, 1, 0.6f, 0.8f)),
			cublasSrot_v2(handle, N, px, 2, py, 1, &(float){0.6f}, &(float){0.8f}));
		matrix_send(&x);
		SAME(y, cublasSsymv('L', N, two, pa, LD, px, 2, one, py, 1),
			cublasSsymv_v2(handle, 0, N, &two, pa, LD, px, 2, &one, py, 1));
		SAME(y, cublasSspmv('U', N, two, pa, px, 2, one, py, 1),
			cublasSspmv_v2(handle, 1, N, &two, pa, px, 2, &one, py, 1));
		SAME(c, cublasSger(N, N, two, px, 2, py, 1, pc, LD),
			cublasSger_v2(handle, N, N, &two, px, 2, py, 1, pc, LD));
		SAME(c, cublasSsyr2('U', N, two, px, 2, py, 1, pc, LD),
			cublasSsyr2_v2(handle, 1, N, &two, px, 2, py, 1, pc, LD));
	}
	cublasSrotg(&ra, &rb, &cosine, &sine);
	NEAR(cosine * 3 + sine * 4, ra);
	all_free();
}

static void doubles(void)
{
	double got;
	int index;

	all_new(CUDA_R_64F);
	EVERY(D, double, 1, -2.5);
	BLAS(cublasDdot_v2(handle, N, px, 2, py, 1, &got));
	NEAR(cublasDdot(N, px, 2, py, 1), got);
	BLAS(cublasDnrm2_v2(handle, N, px, 2, &got));
	NEAR(cublasDnrm2(N, px, 2), got);
	BLAS(cublasIdamax_v2(handle, N, px, 2, &index));
	NEAR(cublasIdamax(N, px, 2), index);
	SAME(y, cublasDsbmv('L', N, 2, two, pa, LD, px, 2, one, py, 1),
		cublasDsbmv_v2(handle, 0, N, 2, &two, pa, LD, px, 2, &one, py, 1));
	SAME(c, cublasDspr2('L', N, two, px, 2, py, 1, pc),
		cublasDspr2_v2(handle, 0, N, &two, px, 2, py, 1, pc));
	all_free();
}

static void complexes(void)
{
	cuComplex got, told;
	float length;

	all_new(CUDA_C_32F);
	EVERY(C, cuComplex, ((cuComplex){1, 0}), ((cuComplex){-2.5f, 1}));
	BLAS(cublasCdotc_v2(handle, N, px, 2, py, 1, &got));
	told = cublasCdotc(N, px, 2, py, 1);
	NEAR(told.x, got.x);
	NEAR(told.y, got.y);
	BLAS(cublasCdotu_v2(handle, N, px, 2, py, 1, &got));
	told = cublasCdotu(N, px, 2, py, 1);
	NEAR(told.y, got.y);
	BLAS(cublasScnrm2_v2(handle, N, px, 2, &length));
	NEAR(cublasScnrm2(N, px, 2), length);
	SAME(c, cublasCgerc(N, N, two, px, 2, py, 1, pc, LD),
		cublasCgerc_v2(handle, N, N, &two, px, 2, py, 1, pc, LD));
	SAME(y, cublasChbmv('U', N, 2, two, pa, LD, px, 2, one, py, 1),
		cublasChbmv_v2(handle, 1, N, 2, &two, pa, LD, px, 2, &one, py, 1));
	all_free();
}

static void complex_doubles(void)
{
	cuDoubleComplex got, told;
	double real = 0.5;

	all_new(CUDA_C_64F);
	EVERY(Z, cuDoubleComplex, ((cuDoubleComplex){1, 0}), ((cuDoubleComplex){-2.5, 1}));
	BLAS(cublasZdotc_v2(handle, N, px, 2, py, 1, &got));
	told = cublasZdotc(N, px, 2, py, 1);
	NEAR(told.x, got.x);
	NEAR(told.y, got.y);
	SAME(c, cublasZherk('L', 'N', N, K, 0.5, pa, LD, 0.5, pc, LD),
		cublasZherk_v2(handle, 0, 0, N, K, &real, pa, LD, &real, pc, LD));
	SAME(c, cublasZher2k('L', 'C', N, K, two, pa, LD, pb, LD, 0.5, pc, LD),
		cublasZher2k_v2(handle, 0, 2, N, K, &two, pa, LD, pb, LD, &real, pc, LD));
	SAME(c, cublasZhemm('L', 'L', N, N, two, pa, LD, pb, LD, one, pc, LD),
		cublasZhemm_v2(handle, 0, 0, N, N, &two, pa, LD, pb, LD, &one, pc, LD));
	SAME(c, cublasZhpr('L', N, 0.5, px, 2, pc),
		cublasZhpr_v2(handle, 0, N, &real, px, 2, pc));
	SAME(y, (matrix_send(&x), cublasZdrot(N, px, 2, py, 1, 0.5, 0.5)),
		cublasZdrot_v2(handle, N, px, 2, py, 1, &real, &real));
	all_free();
}

int main(void)
{
	float values[] = {1, 2, 3};
	cudaStream_t stream;
	float *memory;
	int version = 0;

	/* In a context: what follows is of this one. */
	CUDA(cudaFree(NULL));
	BLAS(cublasInit());
	BLAS(cublasInit());
	BLAS(cublasGetVersion(&version));
	if (version < 120000)
		DIE("version %d", version);
	BLAS(cublasAlloc(3, sizeof(*values), (void **)&memory));
	BLAS(cublasSetVector(3, sizeof(*values), values, 1, memory, 1));
	NEAR(cublasSasum(3, memory, 1), 6);
	CUDA(cudaStreamCreate(&stream));
	BLAS(cublasSetKernelStream(stream));
	cublasSscal(3, 2, memory, 1);
	NEAR(cublasSasum(3, memory, 1), 12);
	BLAS(cublasSetKernelStream(NULL));
	BLAS(cublasFree(memory));
	BLAS_IS(cublasAlloc(0, 4, (void **)&memory), CUBLAS_STATUS_INVALID_VALUE);

	BLAS(cublasCreate_v2(&handle));
	singles();
	doubles();
	complexes();
	complex_doubles();

	/* Told once. */
	cublasSgemm('N', 'N', -1, 1, 1, 1, NULL, 1, NULL, 1, 0, NULL, 1);
	BLAS_IS(cublasGetError(), CUBLAS_STATUS_INVALID_VALUE);
	BLAS(cublasGetError());
	BLAS(cublasDestroy_v2(handle));
	BLAS(cublasShutdown());
	puts("legacy: right");
	return 0;
}
