/* SPDX-License-Identifier: Apache-2.0
 *
 * Level 3 in all types: updates of rank k and 2k, symmetric and Hermitian products, triangles
 * from either side, complex products by three multiplications, packed triangles, against plain
 * loops.
 */
#include "tests/cublas/loops.h"

static cublasHandle_t handle;
static const int sizes[] = {0, 1, 7, 16};
static struct scalar alpha, beta, real_alpha, real_beta;

/* ---- updates ---- */

typedef int rk_form(cublasHandle_t, int, int, int, int, const void *, const void *, int,
	const void *, void *, int);
typedef int r2k_form(cublasHandle_t, int, int, int, int, const void *, const void *, int,
	const void *, int, const void *, void *, int);
static rk_form *const syrk[] = FORMS(rk_form, syrk_v2);
static rk_form *const herk[] = {
	NULL, NULL, AS(rk_form, cublasCherk_v2), AS(rk_form, cublasZherk_v2)};
static r2k_form *const syr2k[] = FORMS(r2k_form, syr2k_v2);
static r2k_form *const her2k[] = {
	NULL, NULL, AS(r2k_form, cublasCher2k_v2), AS(r2k_form, cublasZher2k_v2)};
static r2k_form *const syrkx[] = FORMS(r2k_form, syrkx);
static r2k_form *const herkx[] = {
	NULL, NULL, AS(r2k_form, cublasCherkx), AS(r2k_form, cublasZherkx)};

static void update(int t, enum update what, bool hermitian, int n, int k, int uplo, int op)
{
	cudaDataType type = every_type[t];
	struct matrix a = operand(type, op, n, k), b = operand(type, op, n, k);
	struct matrix c = matrix_new(type, n + 2, n > 0 ? n : 1);
	const struct scalar *by = hermitian && what == ONE ? &real_alpha : &alpha;
	const struct scalar *and = hermitian ? &real_beta : &beta;
	const void *factor = scalar_of(by, handle), *keep = scalar_of(and, handle);

	/* As herkx wants it: the product is Hermitian, as far as it is looked at. */
	if (hermitian && what == OTHER) {
		memcpy(b.host, a.host, a.bytes);
		matrix_send(&b);
	}
	/* alpha of herkx is complex: what is left of the diagonal is not told. */
	loop_update(c.host, &c, &a, &b, what, hermitian, n, k, uplo, op, by->value, and->value);
	if (what == ONE)
		BLAS((hermitian ? herk : syrk)[t](
			handle, uplo, op, n, k, factor, a.device, a.ld, keep, c.device, c.ld));
	else if (what == TWO)
		BLAS((hermitian ? her2k : syr2k)[t](handle, uplo, op, n, k, factor, a.device,
			a.ld, b.device, b.ld, keep, c.device, c.ld));
	else
		BLAS((hermitian ? herkx : syrkx)[t](handle, uplo, op, n, k, factor, a.device,
			a.ld, b.device, b.ld, keep, c.device, c.ld));
	matrix_check(&c, "syrk, herk, syr2k, her2k, syrkx or herkx");
	matrix_free(&a);
	matrix_free(&b);
	matrix_free(&c);
}

static void updates(int t, int n, int k, int uplo)
{
	bool complex_type = is_complex(every_type[t]);

	for (int what = ONE; what <= OTHER; what++)
		for (int op = 0; op < 2; op++)
			update(t, (enum update)what, false, n, k, uplo, op);
	for (int op = 0; complex_type && op < 3; op += 2) {
		update(t, ONE, true, n, k, uplo, op);
		update(t, TWO, true, n, k, uplo, op);
	}
}

/* alpha is real as it must be for a Hermitian result. */
static void products_that_are_hermitian(int t, int n, int k)
{
	struct scalar was = alpha;

	alpha = scalar_new(every_type[t], 1.25);
	for (int uplo = 0; uplo < 2; uplo++)
		for (int op = 0; op < 3; op += 2)
			update(t, OTHER, true, n, k, uplo, op);
	scalar_free(&alpha);
	alpha = was;
}

/* ---- products with one half ---- */

typedef int mm_form(cublasHandle_t, int, int, int, int, const void *, const void *, int,
	const void *, int, const void *, void *, int);
static mm_form *const symm[] = FORMS(mm_form, symm_v2);
static mm_form *const hemm[] = {
	NULL, NULL, AS(mm_form, cublasChemm_v2), AS(mm_form, cublasZhemm_v2)};

static void mirrored(int t, bool hermitian, int m, int n, int side, int uplo)
{
	cudaDataType type = every_type[t];
	int order = side ? n : m;
	struct matrix a = matrix_new(type, order + 1, order > 0 ? order : 1);
	struct matrix b = operand(type, 0, m, n), c = operand(type, 0, m, n);

	loop_mirrored(c.host, &c, &a, &b, hermitian, m, n, side, uplo, alpha.value, beta.value);
	BLAS((hermitian ? hemm : symm)[t](handle, side, uplo, m, n, scalar_of(&alpha, handle),
		a.device, a.ld, b.device, b.ld, scalar_of(&beta, handle), c.device, c.ld));
	matrix_check(&c, "symm or hemm");
	matrix_free(&a);
	matrix_free(&b);
	matrix_free(&c);
}

typedef int trmm_form(cublasHandle_t, int, int, int, int, int, int, const void *, const void *,
	int, const void *, int, void *, int);
typedef int trsm_form(cublasHandle_t, int, int, int, int, int, int, const void *, const void *,
	int, void *, int);
static trmm_form *const trmm[] = FORMS(trmm_form, trmm_v2);
static trsm_form *const trsm[] = FORMS(trsm_form, trsm_v2);

/* C = alpha op(A) B or alpha B op(A); then B is had back from it. */
static void triangle(int t, int m, int n, int side, int uplo, int op, int diag)
{
	cudaDataType type = every_type[t];
	int order = side ? n : m;
	struct matrix a = matrix_new(type, order + 1, order > 0 ? order : 1);
	struct matrix b = operand(type, 0, m, n), c = operand(type, 0, m, n);
	struct scalar back = scalar_new(type, 1 / alpha.value);

	triangle_solid(&a, order);
	matrix_send(&a);
	loop_triangle(c.host, &c, &a, &b, m, n, side, uplo, op, diag, alpha.value);
	BLAS(trmm[t](handle, side, uplo, op, diag, m, n, scalar_of(&alpha, handle), a.device,
		a.ld, b.device, b.ld, c.device, c.ld));
	matrix_check(&c, "trmm");
	BLAS(trsm[t](handle, side, uplo, op, diag, m, n, scalar_of(&back, handle), a.device,
		a.ld, c.device, c.ld));
	for (int j = 0; j < n; j++)
		for (int i = 0; i < m; i++)
			put_at(c.host, type, (size_t)(j * c.ld + i), at_of(&b, 0, i, j));
	matrix_check(&c, "trsm");
	scalar_free(&back);
	matrix_free(&a);
	matrix_free(&b);
	matrix_free(&c);
}

/* ---- complex products in further forms ---- */

static void three_multiplications(int n)
{
	struct matrix a = matrix_new(CUDA_C_32F, n, n), b = matrix_new(CUDA_C_32F, n, n);
	struct matrix c = matrix_new(CUDA_C_32F, n, n);
	cuComplex one = {1, 0}, zero = {0, 0};
	float real = 1, none = 0;

	for (int j = 0; j < n; j++)
		for (int i = 0; i < n; i++) {
			double complex sum = 0;

			for (int l = 0; l < n; l++)
				sum += at_of(&a, 0, i, l) * at_of(&b, 2, l, j);
			put_at(c.host, c.type, (size_t)(j * n + i), sum);
		}
	BLAS(cublasCgemm3m(
		handle, 0, 2, n, n, n, &one, a.device, n, b.device, n, &zero, c.device, n));
	matrix_check(&c, "Cgemm3m");
	CUDA(cudaMemset(c.device, 0, c.bytes));
	BLAS(cublasCgemmEx(handle, 0, 2, n, n, n, &one, a.device, CUDA_C_32F, n, b.device,
		CUDA_C_32F, n, &zero, c.device, CUDA_C_32F, n));
	matrix_check(&c, "CgemmEx");
	CUDA(cudaMemset(c.device, 0, c.bytes));
	BLAS(cublasCgemm3mEx(handle, 0, 2, n, n, n, &one, a.device, CUDA_C_32F, n, b.device,
		CUDA_C_32F, n, &zero, c.device, CUDA_C_32F, n));
	matrix_check(&c, "Cgemm3mEx");
	CUDA(cudaMemset(c.device, 0, c.bytes));
	BLAS(cublasCgemm3mStridedBatched(handle, 0, 2, n, n, n, &one, a.device, n, 0, b.device,
		n, 0, &zero, c.device, n, 0, 1));
	matrix_check(&c, "Cgemm3mStridedBatched");
	/* The rest of C stays: both halves of the same product. */
	for (int j = 0; j < n; j++)
		for (int i = 0; i < n; i++) {
			double complex sum = 0;

			for (int l = 0; l < n; l++)
				sum += at_of(&a, 0, i, l) * conj(at_of(&a, 0, j, l));
			put_at(c.host, c.type, (size_t)(j * n + i), i == j ? creal(sum) : sum);
		}
	for (int form = 0; form < 2; form++) {
		CUDA(cudaMemset(c.device, 0, c.bytes));
		for (int uplo = 0; uplo < 2; uplo++)
			BLAS((form ? cublasCherk3mEx : cublasCherkEx)(handle, uplo, 0, n, n,
				&real, a.device, CUDA_C_32F, n, &none, c.device, CUDA_C_32F,
				n));
		matrix_check(&c, form ? "Cherk3mEx" : "CherkEx");
	}
	matrix_free(&a);
	matrix_free(&b);
	matrix_free(&c);
}

/* ---- packed triangles ---- */

typedef int unpack_form(cublasHandle_t, int, int, const void *, void *, int);
typedef int pack_form(cublasHandle_t, int, int, const void *, int, void *);
static unpack_form *const tpttr[] = FORMS(unpack_form, tpttr);
static pack_form *const trttp[] = FORMS(pack_form, trttp);

static void packed(int t, int n, int uplo)
{
	cudaDataType type = every_type[t];
	struct matrix ap = matrix_new(type, n * (n + 1) / 2, 1), a = matrix_new(type, n + 1, n);
	struct matrix again = matrix_new(type, n * (n + 1) / 2, 1);
	size_t at = 0;

	for (int j = 0; j < n; j++)
		for (int i = uplo ? 0 : j; i < (uplo ? j + 1 : n); i++)
			put_at(a.host, type, (size_t)(j * a.ld + i),
				get_at(ap.host, type, at++));
	BLAS(tpttr[t](handle, uplo, n, ap.device, a.device, a.ld));
	matrix_check(&a, "tpttr");
	memcpy(again.host, ap.host, ap.bytes);
	BLAS(trttp[t](handle, uplo, n, a.device, a.ld, again.device));
	matrix_check(&again, "trttp");
	matrix_free(&ap);
	matrix_free(&a);
	matrix_free(&again);
}

static void wrong(void)
{
	struct matrix a = matrix_new(CUDA_C_32F, 4, 4);
	const cuComplex one = {1, 0};
	const float real = 1;

	BLAS_IS(cublasChemm_v2(
			NULL, 0, 0, 4, 4, &one, a.device, 4, a.device, 4, &one, a.device, 4),
		CUBLAS_STATUS_NOT_INITIALIZED);
	BLAS_IS(cublasChemm_v2(
			handle, 0, 0, -1, 4, &one, a.device, 4, a.device, 4, &one, a.device, 4),
		CUBLAS_STATUS_INVALID_VALUE);
	BLAS_IS(cublasCherk_v2(handle, 0, 0, 4, 4, &real, a.device, 3, &real, a.device, 4),
		CUBLAS_STATUS_INVALID_VALUE);
	BLAS_IS(cublasCsyr2k_v2(
			handle, 0, 0, 4, -1, &one, a.device, 4, a.device, 4, &one, a.device, 4),
		CUBLAS_STATUS_INVALID_VALUE);
	BLAS_IS(cublasCsymm_v2(
			handle, 0, 0, 4, 4, &one, a.device, 4, a.device, 3, &one, a.device, 4),
		CUBLAS_STATUS_INVALID_VALUE);
	BLAS_IS(cublasCsyrk_v2(handle, 0, 0, 4, 4, &one, a.device, 3, &one, a.device, 4),
		CUBLAS_STATUS_INVALID_VALUE);
	BLAS_IS(cublasCtrsm_v2(handle, 0, 0, 0, 0, 4, -1, &one, a.device, 4, a.device, 4),
		CUBLAS_STATUS_INVALID_VALUE);
	BLAS_IS(cublasCgeam(
			handle, 0, 0, 4, 4, &one, a.device, 3, &one, a.device, 4, a.device, 4),
		CUBLAS_STATUS_INVALID_VALUE);
	BLAS_IS(cublasCdgmm(handle, 0, 4, 4, a.device, 3, a.device, 1, a.device, 4),
		CUBLAS_STATUS_INVALID_VALUE);
	matrix_free(&a);
}

static void at_size(int t, int n)
{
	for (int uplo = 0; uplo < 2; uplo++) {
		updates(t, n, n ? n + 2 : 3, uplo);
		updates(t, 5, n, uplo);
		for (int side = 0; side < 2; side++) {
			mirrored(t, false, n, 5, side, uplo);
			if (is_complex(every_type[t]))
				mirrored(t, true, 5, n, side, uplo);
			for (int op = 0; op < 3; op++)
				for (int diag = 0; diag < 2; diag++)
					triangle(t, n, 5, side, uplo, op, diag);
		}
		if (n)
			packed(t, n, uplo);
	}
	if (is_complex(every_type[t]))
		products_that_are_hermitian(t, 5, n);
}

int main(void)
{
	BLAS(cublasCreate_v2(&handle));
	for (int t = 0; t < COUNT(every_type); t++) {
		alpha = scalar_new(every_type[t], 1.25 - 0.5 * I);
		beta = scalar_new(every_type[t], -0.5 + 0.25 * I);
		real_alpha = scalar_new(real_of(every_type[t]), 0.75);
		real_beta = scalar_new(real_of(every_type[t]), -0.5);
		for (int mode = 0; mode < 2; mode++) {
			BLAS(cublasSetPointerMode_v2(handle, mode));
			for (int s = mode; s < COUNT(sizes); s++)
				at_size(t, sizes[s]);
		}
		BLAS(cublasSetPointerMode_v2(handle, CUBLAS_POINTER_MODE_HOST));
		scalar_free(&alpha);
		scalar_free(&beta);
		scalar_free(&real_alpha);
		scalar_free(&real_beta);
	}
	three_multiplications(16);
	wrong();
	BLAS(cublasDestroy_v2(handle));
	puts("level3: right");
	return 0;
}
