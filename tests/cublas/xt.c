/* SPDX-License-Identifier: Apache-2.0
 *
 * cublasXt: products, updates and triangles of matrices on the host in all types, cut into
 * tiles smaller and larger than they are, against plain loops; matrices on the device, results
 * in place, wrong arguments.
 */
#include "tests/cublas/loops.h"

static cublasXtHandle_t xt;
static const size_t sizes[] = {0, 1, 13, 16};
static struct scalar alpha, beta, real_alpha, real_beta;

/* What the call left on the host must be `want`, but for rounding. */
static void same(const struct matrix *m, const void *want, const char *what)
{
	for (size_t i = 0; i < m->count; i++) {
		double complex a = get_at(m->host, m->type, i), b = get_at(want, m->type, i);

		if (!(cabs(a - b) <= tolerance_of(m->type) * (1 + cabs(b))))
			DIE("%s: element %zu is %g%+gi, not %g%+gi", what, i, creal(a),
				cimag(a), creal(b), cimag(b));
	}
}

static void *copy_of(const struct matrix *m)
{
	void *copy = malloc(m->bytes);

	memcpy(copy, m->host, m->bytes);
	return copy;
}

/* ---- products ---- */

typedef int gemm_form(cublasXtHandle_t, int, int, size_t, size_t, size_t, const void *,
	const void *, size_t, const void *, size_t, const void *, void *, size_t);
static gemm_form *const gemm[] = {AS(gemm_form, cublasXtSgemm), AS(gemm_form, cublasXtDgemm),
	AS(gemm_form, cublasXtCgemm), AS(gemm_form, cublasXtZgemm)};

static void product(int t, size_t m, size_t n, size_t k, int ta, int tb, bool on_device)
{
	cudaDataType type = every_type[t];
	struct matrix a = operand(type, ta, (int)m, (int)k),
		      b = operand(type, tb, (int)k, (int)n);
	struct matrix c = operand(type, 0, (int)m, (int)n);
	void *want = copy_of(&c);

	for (int j = 0; j < (int)n; j++)
		for (int i = 0; i < (int)m; i++) {
			size_t at = (size_t)(j * c.ld + i);
			double complex sum = 0;

			for (int l = 0; l < (int)k; l++)
				sum += at_of(&a, ta, i, l) * at_of(&b, tb, l, j);
			put_at(want, type, at,
				alpha.value * sum + beta.value * get_at(c.host, type, at));
		}
	BLAS(gemm[t](xt, ta, tb, m, n, k, alpha.host, on_device ? a.device : a.host,
		(size_t)a.ld, b.host, (size_t)b.ld, beta.host, on_device ? c.device : c.host,
		(size_t)c.ld));
	if (on_device)
		CUDA(cudaMemcpy(c.host, c.device, c.bytes, cudaMemcpyDeviceToHost));
	same(&c, want, "cublasXt gemm");
	free(want);
	matrix_free(&a);
	matrix_free(&b);
	matrix_free(&c);
}

/* ---- updates ---- */

typedef int rk_form(cublasXtHandle_t, int, int, size_t, size_t, const void *, const void *,
	size_t, const void *, void *, size_t);
typedef int r2k_form(cublasXtHandle_t, int, int, size_t, size_t, const void *, const void *,
	size_t, const void *, size_t, const void *, void *, size_t);
static rk_form *const syrk[] = {AS(rk_form, cublasXtSsyrk), AS(rk_form, cublasXtDsyrk),
	AS(rk_form, cublasXtCsyrk), AS(rk_form, cublasXtZsyrk)};
static rk_form *const herk[] = {
	NULL, NULL, AS(rk_form, cublasXtCherk), AS(rk_form, cublasXtZherk)};
static r2k_form *const syr2k[] = {AS(r2k_form, cublasXtSsyr2k), AS(r2k_form, cublasXtDsyr2k),
	AS(r2k_form, cublasXtCsyr2k), AS(r2k_form, cublasXtZsyr2k)};
static r2k_form *const her2k[] = {
	NULL, NULL, AS(r2k_form, cublasXtCher2k), AS(r2k_form, cublasXtZher2k)};
static r2k_form *const syrkx[] = {AS(r2k_form, cublasXtSsyrkx), AS(r2k_form, cublasXtDsyrkx),
	AS(r2k_form, cublasXtCsyrkx), AS(r2k_form, cublasXtZsyrkx)};
static r2k_form *const herkx[] = {
	NULL, NULL, AS(r2k_form, cublasXtCherkx), AS(r2k_form, cublasXtZherkx)};

static void update(
	int t, enum update what, bool hermitian, size_t n, size_t k, int uplo, int op)
{
	cudaDataType type = every_type[t];
	struct matrix a = operand(type, op, (int)n, (int)k),
		      b = operand(type, op, (int)n, (int)k);
	struct matrix c = operand(type, 0, (int)n, (int)n);
	const struct scalar *by = hermitian && what == ONE ? &real_alpha : &alpha;
	const struct scalar *and = hermitian ? &real_beta : &beta;
	void *want = copy_of(&c);

	loop_update(want, &c, &a, &b, what, hermitian, (int)n, (int)k, uplo, op,
		by->value, and->value);
	if (what == ONE)
		BLAS((hermitian ? herk : syrk)[t](xt, uplo, op, n, k, by->host, a.host,
			(size_t)a.ld, and->host, c.host, (size_t)c.ld));
	else
		BLAS((what == TWO   ? hermitian ? her2k : syr2k
			: hermitian ? herkx
				    : syrkx)[t](xt, uplo, op, n, k, by->host, a.host,
			(size_t)a.ld, b.host, (size_t)b.ld, and->host, c.host, (size_t)c.ld));
	same(&c, want, "cublasXt syrk, herk, syr2k, her2k or syrkx");
	free(want);
	matrix_free(&a);
	matrix_free(&b);
	matrix_free(&c);
}

/* A D (A)': Hermitian, as herkx wants it, with B = A D of a real diagonal D. */
static void hermitian_product(int t, size_t n, size_t k)
{
	cudaDataType type = every_type[t];
	struct matrix a = operand(type, 0, (int)n, (int)k),
		      b = operand(type, 0, (int)n, (int)k);
	struct matrix c = operand(type, 0, (int)n, (int)n);
	struct scalar one = scalar_new(type, 1);
	void *want = copy_of(&c);

	for (int l = 0; l < (int)k; l++)
		for (int i = 0; i < (int)n; i++)
			put_at(b.host, type, (size_t)(l * b.ld + i),
				at_of(&a, 0, i, l) * (l + 1));
	for (int j = 0; j < (int)n; j++)
		for (int i = j; i < (int)n; i++) {
			size_t at = (size_t)(j * c.ld + i);
			double complex sum = real_beta.value * get_at(c.host, type, at);

			for (int l = 0; l < (int)k; l++)
				sum += at_of(&a, 0, i, l) * conj(at_of(&b, 0, j, l));
			put_at(want, type, at, i == j ? creal(sum) : sum);
		}
	BLAS(herkx[t](xt, 0, 0, n, k, one.host, a.host, (size_t)a.ld, b.host, (size_t)b.ld,
		real_beta.host, c.host, (size_t)c.ld));
	same(&c, want, "cublasXt herkx");
	free(want);
	scalar_free(&one);
	matrix_free(&a);
	matrix_free(&b);
	matrix_free(&c);
}

/* ---- one half for the other ---- */

typedef int mm_form(cublasXtHandle_t, int, int, size_t, size_t, const void *, const void *,
	size_t, const void *, size_t, const void *, void *, size_t);
typedef int pm_form(cublasXtHandle_t, int, int, size_t, size_t, const void *, const void *,
	const void *, size_t, const void *, void *, size_t);
static mm_form *const symm[] = {AS(mm_form, cublasXtSsymm), AS(mm_form, cublasXtDsymm),
	AS(mm_form, cublasXtCsymm), AS(mm_form, cublasXtZsymm)};
static mm_form *const hemm[] = {
	NULL, NULL, AS(mm_form, cublasXtChemm), AS(mm_form, cublasXtZhemm)};
static pm_form *const spmm[] = {AS(pm_form, cublasXtSspmm), AS(pm_form, cublasXtDspmm),
	AS(pm_form, cublasXtCspmm), AS(pm_form, cublasXtZspmm)};

enum half { SYMMETRIC, HERMITIAN, PACKED };

static void mirrored(int t, enum half what, size_t m, size_t n, int side, int uplo)
{
	cudaDataType type = every_type[t];
	int order = (int)(side ? n : m);
	struct matrix a = operand(type, 0, order, order);
	struct matrix b = operand(type, 0, (int)m, (int)n),
		      c = operand(type, 0, (int)m, (int)n);
	void *want = copy_of(&c), *packed = malloc(a.bytes);
	size_t place = 0;

	for (int j = 0; j < order; j++)
		for (int i = uplo ? 0 : j; i < (uplo ? j + 1 : order); i++)
			put_at(packed, type, place++, at_of(&a, 0, i, j));
	loop_mirrored(want, &c, &a, &b, what == HERMITIAN, (int)m, (int)n, side, uplo,
		alpha.value, beta.value);
	if (what == PACKED)
		BLAS(spmm[t](xt, side, uplo, m, n, alpha.host, packed, b.host, (size_t)b.ld,
			beta.host, c.host, (size_t)c.ld));
	else
		BLAS((what == HERMITIAN ? hemm : symm)[t](xt, side, uplo, m, n, alpha.host,
			a.host, (size_t)a.ld, b.host, (size_t)b.ld, beta.host, c.host,
			(size_t)c.ld));
	same(&c, want, "cublasXt symm, hemm or spmm");
	free(want);
	free(packed);
	matrix_free(&a);
	matrix_free(&b);
	matrix_free(&c);
}

/* ---- triangles ---- */

typedef int trmm_form(cublasXtHandle_t, int, int, int, int, size_t, size_t, const void *,
	const void *, size_t, const void *, size_t, void *, size_t);
typedef int trsm_form(cublasXtHandle_t, int, int, int, int, size_t, size_t, const void *,
	const void *, size_t, void *, size_t);
static trmm_form *const trmm[] = {AS(trmm_form, cublasXtStrmm), AS(trmm_form, cublasXtDtrmm),
	AS(trmm_form, cublasXtCtrmm), AS(trmm_form, cublasXtZtrmm)};
static trsm_form *const trsm[] = {AS(trsm_form, cublasXtStrsm), AS(trsm_form, cublasXtDtrsm),
	AS(trsm_form, cublasXtCtrsm), AS(trsm_form, cublasXtZtrsm)};

/* A product apart, and in the place of B; then B is had back from it. */
static void triangle(int t, size_t m, size_t n, int side, int uplo, int op, int diag)
{
	cudaDataType type = every_type[t];
	int order = (int)(side ? n : m);
	struct matrix a = operand(type, 0, order, order);
	struct matrix b = operand(type, 0, (int)m, (int)n),
		      c = operand(type, 0, (int)m, (int)n);
	struct scalar back = scalar_new(type, 1 / alpha.value);
	void *want = copy_of(&c), *was = copy_of(&b);

	triangle_solid(&a, order);
	loop_triangle(want, &c, &a, &b, (int)m, (int)n, side, uplo, op, diag, alpha.value);
	BLAS(trmm[t](xt, side, uplo, op, diag, m, n, alpha.host, a.host, (size_t)a.ld, b.host,
		(size_t)b.ld, c.host, (size_t)c.ld));
	same(&c, want, "cublasXt trmm");
	same(&b, was, "B of cublasXt trmm");
	BLAS(trsm[t](xt, side, uplo, op, diag, m, n, back.host, a.host, (size_t)a.ld, c.host,
		(size_t)c.ld));
	for (int j = 0; j < (int)n; j++)
		for (int i = 0; i < (int)m; i++)
			put_at(want, type, (size_t)(j * c.ld + i), at_of(&b, 0, i, j));
	same(&c, want, "cublasXt trsm");
	free(want);
	free(was);
	scalar_free(&back);
	matrix_free(&a);
	matrix_free(&b);
	matrix_free(&c);
}

static void every(int t, size_t m, size_t n, size_t k)
{
	bool complex_type = is_complex(every_type[t]);

	for (int op = 0; op < 9; op++)
		product(t, m, n, k, op / 3, op % 3, false);
	for (int uplo = 0; uplo < 2; uplo++) {
		for (int what = ONE; what <= OTHER; what++)
			for (int op = 0; op < 2; op++)
				update(t, (enum update)what, false, m, k, uplo, op);
		for (int op = 0; complex_type && op < 3; op += 2) {
			update(t, ONE, true, m, k, uplo, op);
			update(t, TWO, true, m, k, uplo, op);
		}
		for (int side = 0; side < 2; side++) {
			mirrored(t, SYMMETRIC, m, n, side, uplo);
			mirrored(t, PACKED, m, n, side, uplo);
			if (complex_type)
				mirrored(t, HERMITIAN, m, n, side, uplo);
			for (int op = 0; op < 3; op++)
				triangle(t, m, n, side, uplo, op, op % 2);
		}
	}
	if (complex_type)
		hermitian_product(t, m, k);
}

static void settings(void)
{
	cublasXtPinnedMemMode_t mode = -1;
	int number = 0;

	BLAS(cublasXtSetBlockDim(xt, 64));
	BLAS(cublasXtGetBlockDim(xt, &number));
	if (number != 64)
		DIE("the tile is %d, not 64", number);
	BLAS_IS(cublasXtSetBlockDim(xt, 0), CUBLAS_STATUS_INVALID_VALUE);
	BLAS(cublasXtSetPinningMemMode(xt, CUBLASXT_PINNING_ENABLED));
	BLAS(cublasXtGetPinningMemMode(xt, &mode));
	if (mode != CUBLASXT_PINNING_ENABLED)
		DIE("the pinning mode is %d", mode);
	BLAS(cublasXtSetPinningMemMode(xt, CUBLASXT_PINNING_DISABLED));
}

static void wrong(void)
{
	float one = 1, memory[16] = {0};

	BLAS_IS(cublasXtSgemm(NULL, 0, 0, 4, 4, 4, &one, memory, 4, memory, 4, &one, memory, 4),
		CUBLAS_STATUS_NOT_INITIALIZED);
	BLAS_IS(cublasXtSgemm(xt, 0, 0, 4, 4, 4, &one, memory, 3, memory, 4, &one, memory, 4),
		CUBLAS_STATUS_INVALID_VALUE);
	BLAS_IS(cublasXtSsyrk(xt, 0, 0, 4, 4, &one, memory, 4, &one, memory, 3),
		CUBLAS_STATUS_INVALID_VALUE);
}

int main(void)
{
	static const int tiles[] = {5, 16};
	int device = 0, current = -1;

	BLAS(cublasXtCreate(&xt));
	BLAS(cublasXtDeviceSelect(xt, 1, &device));
	settings();
	for (int d = 0; d < COUNT(tiles); d++) {
		BLAS(cublasXtSetBlockDim(xt, tiles[d]));
		for (int t = 0; t < COUNT(every_type); t++) {
			alpha = scalar_new(every_type[t], 1.25 - 0.5 * I);
			beta = scalar_new(every_type[t], -0.5 + 0.25 * I);
			real_alpha = scalar_new(real_of(every_type[t]), 0.75);
			real_beta = scalar_new(real_of(every_type[t]), -0.5);
			/* All sizes in the wide types; in tiles larger than the matrices there
			 * is nothing to order. */
			bool few = d || t % 2 == 0;

			for (int s = few ? 2 : 0; s < (few ? 3 : COUNT(sizes)); s++) {
				size_t k = sizes[COUNT(sizes) - 1 - s];

				every(t, sizes[s], 8, k ? k : 1);
				product(t, 7, sizes[s], 9, 0, 1, true);
			}
			scalar_free(&alpha);
			scalar_free(&beta);
			scalar_free(&real_alpha);
			scalar_free(&real_beta);
		}
	}
	wrong();
	CUDA(cudaGetDevice(&current));
	if (current)
		DIE("the device is %d afterwards", current);
	BLAS(cublasXtDestroy(xt));
	puts("xt: right");
	return 0;
}
