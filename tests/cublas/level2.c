/* SPDX-License-Identifier: Apache-2.0
 *
 * Level 2 in all types: banded, symmetric, Hermitian and triangular matrices, in full and
 * packed, their updates, and batches of products with vectors, against plain loops.
 */
#include "tests/cublas/forms.h"

static cublasHandle_t handle;
static const int sizes[] = {0, 1, 7, 16};
static const int steps[] = {1, -2};
static struct scalar alpha, beta;

/* ---- what is stored, as the documentation says ---- */

enum layout { FULL, BAND, PACKED };
enum fold { PLAIN, SYMMETRIC, HERMITIAN, TRIANGLE };
struct shape {
	enum layout layout;
	enum fold fold;
	int uplo, diag, n, kl, ku, ld;
};

static struct matrix shape_new(cudaDataType type, const struct shape *s, int rows, int cols)
{
	int n = s->n > 0 ? s->n : 1;
	struct matrix m;

	if (s->layout == PACKED)
		return matrix_new(type, n * (n + 1) / 2, 1);
	(void)rows;
	m = matrix_new(type, s->ld, cols > 0 ? cols : 1);
	return m;
}

static size_t shape_at(const struct shape *s, int i, int j)
{
	if (s->layout == BAND)
		return (size_t)(j * s->ld + s->ku + i - j);
	if (s->layout == FULL)
		return (size_t)(j * s->ld + i);
	return (size_t)(s->uplo == 1 ? i + j * (j + 1) / 2 : i + (2 * s->n - j - 1) * j / 2);
}

static double complex shape_get(const struct shape *s, const struct matrix *m, int i, int j)
{
	bool other = s->fold != PLAIN && (s->uplo == 1 ? i > j : i < j);
	int row = other ? j : i, col = other ? i : j;
	double complex v;

	if (s->fold == TRIANGLE && (other || (i == j && s->diag)))
		return i == j;
	if (s->layout == BAND && (row - col > s->kl || col - row > s->ku))
		return 0;
	v = get_at(m->host, m->type, shape_at(s, row, col));
	if (s->fold == HERMITIAN)
		return i == j ? creal(v) : other ? conj(v) : v;
	return v;
}

static double complex shape_op(
	const struct shape *s, const struct matrix *m, int op, int i, int j)
{
	double complex v = op ? shape_get(s, m, j, i) : shape_get(s, m, i, j);

	return op == 2 ? conj(v) : v;
}

/* ---- y = alpha op(A) x + beta y ---- */

static void multiply(const struct shape *s, const struct matrix *a, int op, int rows, int cols,
	const struct matrix *x, int incx, struct matrix *y, int incy)
{
	for (int i = 0; i < rows; i++) {
		double complex sum = 0;

		for (int j = 0; j < cols; j++)
			sum += shape_op(s, a, op, i, j) * vector_get(x, cols, j, incx);
		vector_put(y, rows, i, incy,
			alpha.value * sum + beta.value * vector_get(y, rows, i, incy));
	}
}

typedef int gbmv_form(cublasHandle_t, int, int, int, int, int, const void *, const void *, int,
	const void *, int, const void *, void *, int);
static gbmv_form *const gbmv[] = FORMS(gbmv_form, gbmv_v2);

static void banded(int t, int m, int n, int op, int incx)
{
	struct shape s = {BAND, PLAIN, .n = n, .kl = 2, .ku = 1, .ld = 5};
	struct matrix a = shape_new(every_type[t], &s, m, n);
	int xn = op ? m : n, yn = op ? n : m;
	struct matrix x = vector_new(every_type[t], xn, incx);
	struct matrix y = vector_new(every_type[t], yn, -incx);

	if (m && n)
		multiply(&s, &a, op, yn, xn, &x, incx, &y, -incx);
	BLAS(gbmv[t](handle, op, m, n, s.kl, s.ku, scalar_of(&alpha, handle), a.device, s.ld,
		x.device, incx, scalar_of(&beta, handle), y.device, -incx));
	matrix_check(&y, "gbmv");
	matrix_free(&a);
	matrix_free(&x);
	matrix_free(&y);
}

typedef int full_form(cublasHandle_t, int, int, const void *, const void *, int, const void *,
	int, const void *, void *, int);
typedef int band_form(cublasHandle_t, int, int, int, const void *, const void *, int,
	const void *, int, const void *, void *, int);
typedef int packed_form(cublasHandle_t, int, int, const void *, const void *, const void *, int,
	const void *, void *, int);
static full_form *const symv[] = FORMS(full_form, symv_v2);
static full_form *const hemv[] = {
	NULL, NULL, AS(full_form, cublasChemv_v2), AS(full_form, cublasZhemv_v2)};
static band_form *const sbmv[] = {AS(band_form, cublasSsbmv_v2), AS(band_form, cublasDsbmv_v2),
	AS(band_form, cublasChbmv_v2), AS(band_form, cublasZhbmv_v2)};
static packed_form *const spmv[] = {AS(packed_form, cublasSspmv_v2),
	AS(packed_form, cublasDspmv_v2), AS(packed_form, cublasChpmv_v2),
	AS(packed_form, cublasZhpmv_v2)};

static void folded(int t, enum layout layout, enum fold fold, int n, int uplo, int incx)
{
	struct shape s = {layout, fold, uplo, 0, n, uplo ? 0 : 3, uplo ? 3 : 0,
		layout == BAND ? 5 : n + 1};
	struct matrix a = shape_new(every_type[t], &s, n, n);
	struct matrix x = vector_new(every_type[t], n, incx);
	struct matrix y = vector_new(every_type[t], n, incx);
	const void *by = scalar_of(&alpha, handle), *and = scalar_of(&beta, handle);

	multiply(&s, &a, 0, n, n, &x, incx, &y, incx);
	if (layout == FULL)
		BLAS((fold == SYMMETRIC ? symv : hemv)[t](handle, uplo, n, by, a.device, s.ld,
			x.device, incx, and, y.device, incx));
	else if (layout == BAND)
		BLAS(sbmv[t](handle, uplo, n, 3, by, a.device, s.ld, x.device, incx, and,
			y.device, incx));
	else
		BLAS(spmv[t](
			handle, uplo, n, by, a.device, x.device, incx, and, y.device, incx));
	matrix_check(&y, "symv, hemv, sbmv, hbmv, spmv or hpmv");
	matrix_free(&a);
	matrix_free(&x);
	matrix_free(&y);
}

/* ---- x = op(A) x, and back ---- */

typedef int tr_form(cublasHandle_t, int, int, int, int, const void *, int, void *, int);
typedef int tb_form(cublasHandle_t, int, int, int, int, int, const void *, int, void *, int);
typedef int tp_form(cublasHandle_t, int, int, int, int, const void *, void *, int);
static tr_form *const trmv[] = FORMS(tr_form, trmv_v2), *const trsv[] = FORMS(tr_form, trsv_v2);
static tb_form *const tbmv[] = FORMS(tb_form, tbmv_v2), *const tbsv[] = FORMS(tb_form, tbsv_v2);
static tp_form *const tpmv[] = FORMS(tp_form, tpmv_v2), *const tpsv[] = FORMS(tp_form, tpsv_v2);

static int triangular(int t, bool solve, const struct shape *s, int op, const struct matrix *a,
	const struct matrix *x, int incx)
{
	if (s->layout == FULL)
		return (solve ? trsv : trmv)[t](
			handle, s->uplo, op, s->diag, s->n, a->device, s->ld, x->device, incx);
	if (s->layout == BAND)
		return (solve ? tbsv : tbmv)[t](handle, s->uplo, op, s->diag, s->n,
			s->kl + s->ku, a->device, s->ld, x->device, incx);
	return (solve ? tpsv : tpmv)[t](
		handle, s->uplo, op, s->diag, s->n, a->device, x->device, incx);
}

static void triangles(int t, enum layout layout, int n, int uplo, int op, int diag, int incx)
{
	struct shape s = {layout, TRIANGLE, uplo, diag, n, uplo ? 0 : 3, uplo ? 3 : 0,
		layout == BAND ? 5 : n + 1};
	struct matrix a = shape_new(every_type[t], &s, n, n);
	struct matrix x = vector_new(every_type[t], n, incx);
	double complex product[16];

	/* A diagonal far from 0 and small elements beside it: both ways are exact enough. */
	for (size_t i = 0; i < a.count; i++)
		put_at(a.host, a.type, i, get_at(a.host, a.type, i) / 16);
	for (int i = 0; i < n; i++)
		put_at(a.host, a.type, shape_at(&s, i, i), 1.5 + is_complex(a.type) * 0.5 * I);
	matrix_send(&a);
	for (int i = 0; i < n; i++) {
		product[i] = 0;
		for (int j = 0; j < n; j++)
			product[i] += shape_op(&s, &a, op, i, j) * vector_get(&x, n, j, incx);
	}
	BLAS(triangular(t, false, &s, op, &a, &x, incx));
	for (int i = 0; i < n; i++) {
		double complex was = vector_get(&x, n, i, incx);

		vector_put(&x, n, i, incx, product[i]);
		product[i] = was;
	}
	matrix_check(&x, "trmv, tbmv or tpmv");
	BLAS(triangular(t, true, &s, op, &a, &x, incx));
	for (int i = 0; i < n; i++)
		vector_put(&x, n, i, incx, product[i]);
	matrix_check(&x, "trsv, tbsv or tpsv");
	matrix_free(&a);
	matrix_free(&x);
}

/* ---- updates ---- */

typedef int r1_form(cublasHandle_t, int, int, const void *, const void *, int, void *, int);
typedef int r1p_form(cublasHandle_t, int, int, const void *, const void *, int, void *);
typedef int r2_form(cublasHandle_t, int, int, const void *, const void *, int, const void *,
	int, void *, int);
typedef int r2p_form(
	cublasHandle_t, int, int, const void *, const void *, int, const void *, int, void *);
static r1_form *const syr[] = FORMS(r1_form, syr_v2);
static r1_form *const her[] = {
	NULL, NULL, AS(r1_form, cublasCher_v2), AS(r1_form, cublasZher_v2)};
static r1p_form *const spr[] = {AS(r1p_form, cublasSspr_v2), AS(r1p_form, cublasDspr_v2),
	AS(r1p_form, cublasChpr_v2), AS(r1p_form, cublasZhpr_v2)};
static r2_form *const syr2[] = FORMS(r2_form, syr2_v2);
static r2_form *const her2[] = {
	NULL, NULL, AS(r2_form, cublasCher2_v2), AS(r2_form, cublasZher2_v2)};
static r2p_form *const spr2[] = {AS(r2p_form, cublasSspr2_v2), AS(r2p_form, cublasDspr2_v2),
	AS(r2p_form, cublasChpr2_v2), AS(r2p_form, cublasZhpr2_v2)};

static void update(
	int t, enum layout layout, enum fold fold, int n, int uplo, int incx, bool two)
{
	struct shape s = {layout, fold, uplo, 0, n, 0, 0, n + 1};
	struct matrix a = shape_new(every_type[t], &s, n, n);
	struct matrix x = vector_new(every_type[t], n, incx);
	struct matrix y = vector_new(every_type[t], n, 1);
	bool hermitian = fold == HERMITIAN;
	struct scalar real = scalar_new(real_of(a.type), creal(alpha.value));
	const struct scalar *by = hermitian && !two ? &real : &alpha;
	const void *factor = scalar_of(by, handle);

	for (int j = 0; j < n; j++)
		for (int i = uplo ? 0 : j; i < (uplo ? j + 1 : n); i++) {
			double complex xi = vector_get(&x, n, i, incx);
			double complex xj = vector_get(&x, n, j, incx);
			double complex yi = vector_get(&y, n, i, 1);
			double complex yj = vector_get(&y, n, j, 1);
			double complex v = get_at(a.host, a.type, shape_at(&s, i, j));

			if (!two)
				v += by->value * xi * (hermitian ? conj(xj) : xj);
			else if (hermitian)
				v += by->value * xi * conj(yj) +
				     conj(by->value) * yi * conj(xj);
			else
				v += by->value * (xi * yj + yi * xj);
			if (hermitian && i == j)
				v = creal(v);
			put_at(a.host, a.type, shape_at(&s, i, j), v);
		}
	if (two && layout == FULL)
		BLAS((hermitian ? her2 : syr2)[t](
			handle, uplo, n, factor, x.device, incx, y.device, 1, a.device, s.ld));
	else if (two)
		BLAS(spr2[t](handle, uplo, n, factor, x.device, incx, y.device, 1, a.device));
	else if (layout == FULL)
		BLAS((hermitian ? her : syr)[t](
			handle, uplo, n, factor, x.device, incx, a.device, s.ld));
	else
		BLAS(spr[t](handle, uplo, n, factor, x.device, incx, a.device));
	matrix_check(&a, "syr, her, spr, hpr or their forms with two vectors");
	scalar_free(&real);
	matrix_free(&a);
	matrix_free(&x);
	matrix_free(&y);
}

typedef int ger_form(cublasHandle_t, int, int, const void *, const void *, int, const void *,
	int, void *, int);
static ger_form *const geru[] = {AS(ger_form, cublasSger_v2), AS(ger_form, cublasDger_v2),
	AS(ger_form, cublasCgeru_v2), AS(ger_form, cublasZgeru_v2)};
static ger_form *const gerc[] = {AS(ger_form, cublasSger_v2), AS(ger_form, cublasDger_v2),
	AS(ger_form, cublasCgerc_v2), AS(ger_form, cublasZgerc_v2)};

static void outer(int t, int m, int n, int incx, bool conjugate)
{
	struct matrix a = matrix_new(every_type[t], m + 2, n > 0 ? n : 1);
	struct matrix x = vector_new(every_type[t], m, incx);
	struct matrix y = vector_new(every_type[t], n, -incx);

	for (int j = 0; j < n; j++)
		for (int i = 0; i < m; i++) {
			double complex b = vector_get(&y, n, j, -incx);
			size_t at = (size_t)(j * a.ld + i);

			put_at(a.host, a.type, at,
				get_at(a.host, a.type, at) +
					alpha.value * vector_get(&x, m, i, incx) *
						(conjugate ? conj(b) : b));
		}
	BLAS((conjugate ? gerc : geru)[t](handle, m, n, scalar_of(&alpha, handle), x.device,
		incx, y.device, -incx, a.device, a.ld));
	matrix_check(&a, "ger, geru or gerc");
	matrix_free(&a);
	matrix_free(&x);
	matrix_free(&y);
}

/* ---- batches ---- */

typedef int batch_form(cublasHandle_t, int, int, int, const void *, const void *, int,
	const void *, int, const void *, void *, int, int);
typedef int strided_form(cublasHandle_t, int, int, int, const void *, const void *, int,
	long long, const void *, int, long long, const void *, void *, int, long long, int);
static const struct batch {
	cudaDataType in, out, scalar;
	batch_form *batched;
	strided_form *strided;
} batches[] = {
#define BATCH(L, IN, OUT, SCALAR)                                                              \
	{IN, OUT, SCALAR, AS(batch_form, cublas##L##gemvBatched),                              \
		AS(strided_form, cublas##L##gemvStridedBatched)}
	BATCH(S, CUDA_R_32F, CUDA_R_32F, CUDA_R_32F),
	BATCH(D, CUDA_R_64F, CUDA_R_64F, CUDA_R_64F),
	BATCH(C, CUDA_C_32F, CUDA_C_32F, CUDA_C_32F),
	BATCH(Z, CUDA_C_64F, CUDA_C_64F, CUDA_C_64F),
	BATCH(HSH, CUDA_R_16F, CUDA_R_16F, CUDA_R_32F),
	BATCH(HSS, CUDA_R_16F, CUDA_R_32F, CUDA_R_32F),
	BATCH(TST, CUDA_R_16BF, CUDA_R_16BF, CUDA_R_32F),
	BATCH(TSS, CUDA_R_16BF, CUDA_R_32F, CUDA_R_32F),
};

static void in_batches(const struct batch *b, int op, bool strided)
{
	enum { M = 7, N = 5, MEMBERS = 3 };
	int xn = op ? M : N, yn = op ? N : M;
	struct matrix a = matrix_new(b->in, M, N * MEMBERS);
	struct matrix x = matrix_new(b->in, xn, MEMBERS);
	struct matrix y = matrix_new(b->out, yn, MEMBERS);
	struct scalar by = scalar_new(b->scalar, 1.5 - 0.5 * I);
	struct scalar and = scalar_new(b->scalar, -0.25);
	char *places[3][MEMBERS], **there;
	double tolerance = fmax(tolerance_of(b->out), tolerance_of(b->scalar));

	for (int k = 0; k < MEMBERS; k++) {
		struct matrix part = a;

		part.host = (char *)a.host + a.bytes / MEMBERS * (size_t)k;
		places[0][k] = (char *)a.device + a.bytes / MEMBERS * (size_t)k;
		places[1][k] = (char *)x.device + x.bytes / MEMBERS * (size_t)k;
		places[2][k] = (char *)y.device + y.bytes / MEMBERS * (size_t)k;
		for (int i = 0; i < yn; i++) {
			size_t at = (size_t)(k * yn + i);
			double complex sum = 0;

			for (int j = 0; j < xn; j++)
				sum += at_of(&part, op, i, j) *
				       get_at(x.host, x.type, (size_t)(k * xn + j));
			put_at(y.host, y.type, at,
				by.value * sum + and.value * get_at(y.host, y.type, at));
		}
	}
	CUDA(cudaMalloc((void **)&there, sizeof(places)));
	CUDA(cudaMemcpy(there, places, sizeof(places), cudaMemcpyHostToDevice));
	if (strided)
		BLAS(b->strided(handle, op, M, N, by.host, a.device, M, M * N, x.device, 1, xn,
			and.host, y.device, 1, yn, MEMBERS));
	else
		BLAS(b->batched(handle, op, M, N, by.host, there, M, there + MEMBERS, 1,
			and.host, there + 2 * MEMBERS, 1, MEMBERS));
	matrix_within(&y, tolerance, "gemvBatched or gemvStridedBatched");
	CUDA(cudaFree(there));
	scalar_free(&by);
	scalar_free(&and);
	matrix_free(&a);
	matrix_free(&x);
	matrix_free(&y);
}

/* No scalar that is NULL: NVIDIA's library reads it (H200, 2026-11-23). */
static void wrong(void)
{
	struct matrix a = matrix_new(CUDA_R_32F, 4, 4), x = matrix_new(CUDA_R_32F, 1, 4);
	const float one = 1;

	BLAS_IS(cublasSsymv_v2(NULL, 0, 4, &one, a.device, 4, x.device, 1, &one, x.device, 1),
		CUBLAS_STATUS_NOT_INITIALIZED);
	BLAS_IS(cublasSsymv_v2(
			handle, 0, -1, &one, a.device, 4, x.device, 1, &one, x.device, 1),
		CUBLAS_STATUS_INVALID_VALUE);
	BLAS_IS(cublasSsymv_v2(handle, 0, 4, &one, a.device, 4, x.device, 0, &one, x.device, 1),
		CUBLAS_STATUS_INVALID_VALUE);
	BLAS_IS(cublasSsymv_v2(handle, 0, 4, &one, a.device, 3, x.device, 1, &one, x.device, 1),
		CUBLAS_STATUS_INVALID_VALUE);
	BLAS_IS(cublasSgemv_v2(
			NULL, 0, 4, 4, &one, a.device, 4, x.device, 1, &one, x.device, 1),
		CUBLAS_STATUS_NOT_INITIALIZED);
	/* An increment of x that is 0 is refused by the manual, and taken by cuBLAS 13.0. */
	BLAS_IS(cublasSgemv_v2(
			handle, 0, 4, 4, &one, a.device, 4, x.device, 1, &one, x.device, 0),
		CUBLAS_STATUS_INVALID_VALUE);
	BLAS_IS(cublasSgemv_v2(
			handle, 0, 4, 4, &one, a.device, 3, x.device, 1, &one, x.device, 1),
		CUBLAS_STATUS_INVALID_VALUE);
	BLAS_IS(cublasSgemv_v2(
			handle, 0, 4, -4, &one, a.device, 4, x.device, 1, &one, x.device, 1),
		CUBLAS_STATUS_INVALID_VALUE);
	BLAS_IS(cublasSger_v2(handle, 4, 4, &one, x.device, 0, x.device, 1, a.device, 4),
		CUBLAS_STATUS_INVALID_VALUE);
	BLAS_IS(cublasSger_v2(handle, 4, 4, &one, x.device, 1, x.device, 0, a.device, 4),
		CUBLAS_STATUS_INVALID_VALUE);
	BLAS_IS(cublasSger_v2(handle, 4, 4, &one, x.device, 1, x.device, 1, a.device, 3),
		CUBLAS_STATUS_INVALID_VALUE);
	BLAS_IS(cublasStbmv_v2(handle, 0, 0, 0, 4, -1, a.device, 4, x.device, 1),
		CUBLAS_STATUS_INVALID_VALUE);
	BLAS_IS(cublasStpsv_v2(handle, 0, 0, 0, 4, a.device, x.device, 0),
		CUBLAS_STATUS_INVALID_VALUE);
	matrix_free(&a);
	matrix_free(&x);
}

static void at_size(int t, int n, int uplo, int incx)
{
	bool complex_type = is_complex(every_type[t]);
	enum fold mirrored = complex_type ? HERMITIAN : SYMMETRIC;

	folded(t, FULL, SYMMETRIC, n, uplo, incx);
	if (complex_type)
		folded(t, FULL, HERMITIAN, n, uplo, incx);
	folded(t, BAND, mirrored, n, uplo, incx);
	folded(t, PACKED, mirrored, n, uplo, incx);
	for (int two = 0; two < 2; two++) {
		update(t, FULL, SYMMETRIC, n, uplo, incx, two);
		if (complex_type)
			update(t, FULL, HERMITIAN, n, uplo, incx, two);
		update(t, PACKED, mirrored, n, uplo, incx, two);
	}
	for (int op = 0; op < 3; op++)
		for (int diag = 0; diag < 2; diag++)
			for (int layout = FULL; layout <= PACKED; layout++)
				triangles(t, (enum layout)layout, n, uplo, op, diag, incx);
}

int main(void)
{
	BLAS(cublasCreate_v2(&handle));
	for (int t = 0; t < COUNT(every_type); t++) {
		alpha = scalar_new(every_type[t], 1.25 - 0.5 * I);
		beta = scalar_new(every_type[t], -0.5 + 0.25 * I);
		for (int s = 0; s < COUNT(sizes) * COUNT(steps); s++) {
			int n = sizes[s / COUNT(steps)], incx = steps[s % COUNT(steps)];

			/* Each mode with every other size. */
			BLAS(cublasSetPointerMode_v2(handle, s % 2 ^ s / 2 % 2));
			for (int uplo = 0; uplo < 2; uplo++)
				at_size(t, n, uplo, incx);
			for (int op = 0; op < 3; op++)
				banded(t, n, n ? n + 2 : 3, op, incx);
			outer(t, n, 5, incx, false);
			outer(t, 5, n, incx, true);
		}
		BLAS(cublasSetPointerMode_v2(handle, CUBLAS_POINTER_MODE_HOST));
		scalar_free(&alpha);
		scalar_free(&beta);
	}
	for (int i = 0; i < COUNT(batches); i++)
		for (int op = 0; op < 3; op++) {
			in_batches(&batches[i], op, false);
			in_batches(&batches[i], op, true);
		}
	wrong();
	BLAS(cublasDestroy_v2(handle));
	puts("level2: right");
	return 0;
}
