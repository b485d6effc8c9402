/* SPDX-License-Identifier: Apache-2.0
 *
 * Factorisations in batches, in all types, by what they must fulfil: P A = L U, A times its
 * inverse, A X = B, Q R = A, least squares at right angles to A.
 */
#include "tests/cublas/forms.h"

enum { MEMBERS = 3 };

static cublasHandle_t handle;

/* A batch: MEMBERS matrices of a matrix of so many times the columns, and where each lies. */
struct batch {
	struct matrix all;
	int rows, cols;
	void **places; /* on the device */
};

static struct batch batch_new(cudaDataType type, int rows, int cols)
{
	struct batch b = {matrix_new(type, rows, cols * MEMBERS), rows, cols, NULL};
	char *places[MEMBERS];

	for (int i = 0; i < MEMBERS; i++)
		places[i] = (char *)b.all.device + b.all.bytes / MEMBERS * (size_t)i;
	CUDA(cudaMalloc((void **)&b.places, sizeof(places)));
	CUDA(cudaMemcpy(b.places, places, sizeof(places), cudaMemcpyHostToDevice));
	return b;
}

static void batch_free(struct batch *b)
{
	matrix_free(&b->all);
	CUDA(cudaFree(b->places));
}

/* Far from singular, and yet to be pivoted. */
static void batch_solid(struct batch *b)
{
	int n = b->cols;

	for (int k = 0; k < MEMBERS; k++)
		for (int j = 0; j < n; j++) {
			size_t at = (size_t)((k * n + j) * b->rows + (j + 1) % n);

			put_at(b->all.host, b->all.type, at,
				get_at(b->all.host, b->all.type, at) + n);
		}
	matrix_send(&b->all);
}

static double complex batch_get(const struct batch *b, const void *host, int k, int i, int j)
{
	return get_at(host, b->all.type, (size_t)((k * b->cols + j) * b->rows + i));
}

/* What the device has now. */
static void *batch_fetch(const struct batch *b)
{
	void *got = malloc(b->all.bytes);

	CUDA(cudaMemcpy(got, b->all.device, b->all.bytes, cudaMemcpyDeviceToHost));
	return got;
}

static void near(const char *what, double complex got, double complex want, cudaDataType type)
{
	if (!(cabs(got - want) <= 20 * tolerance_of(type) * (1 + cabs(want))))
		DIE("%s is %g%+gi, not %g%+gi", what, creal(got), cimag(got), creal(want),
			cimag(want));
}

static void no_info(const int *device)
{
	int info[MEMBERS];

	CUDA(cudaMemcpy(info, device, sizeof(info), cudaMemcpyDeviceToHost));
	for (int i = 0; i < MEMBERS; i++)
		if (info[i])
			DIE("info of member %d is %d", i, info[i]);
}

typedef int getrf_form(cublasHandle_t, int, void *, int, int *, int *, int);
typedef int getri_form(
	cublasHandle_t, int, const void *, int, const int *, void *, int, int *, int);
typedef int getrs_form(
	cublasHandle_t, int, int, int, const void *, int, const int *, void *, int, int *, int);
typedef int matinv_form(cublasHandle_t, int, const void *, int, void *, int, int *, int);
typedef int geqrf_form(cublasHandle_t, int, int, void *, int, void *, int *, int);
typedef int gels_form(
	cublasHandle_t, int, int, int, int, void *, int, void *, int, int *, int *, int);
static getrf_form *const getrf[] = FORMS(getrf_form, getrfBatched);
static getri_form *const getri[] = FORMS(getri_form, getriBatched);
static getrs_form *const getrs[] = FORMS(getrs_form, getrsBatched);
static matinv_form *const matinv[] = FORMS(matinv_form, matinvBatched);
static geqrf_form *const geqrf[] = FORMS(geqrf_form, geqrfBatched);
static gels_form *const gels[] = FORMS(gels_form, gelsBatched);

/* op(A) X = B, of what A and B were. */
static void solves(const struct batch *a, const struct batch *b, const void *x, int op)
{
	int n = a->rows;

	for (int k = 0; k < MEMBERS; k++)
		for (int j = 0; j < b->cols; j++)
			for (int i = 0; i < n; i++) {
				double complex sum = 0;

				for (int l = 0; l < n; l++) {
					double complex v =
						op ? batch_get(a, a->all.host, k, l, i)
						   : batch_get(a, a->all.host, k, i, l);

					sum += (op == 2 ? conj(v) : v) *
					       batch_get(b, x, k, l, j);
				}
				near("A X", sum, batch_get(b, b->all.host, k, i, j),
					a->all.type);
			}
}

/* A times INVERSE is one. */
static void inverts(const struct batch *a, const struct batch *inverse)
{
	void *got = batch_fetch(inverse);

	for (int k = 0; k < MEMBERS; k++)
		for (int j = 0; j < a->rows; j++)
			for (int i = 0; i < a->rows; i++) {
				double complex sum = 0;

				for (int l = 0; l < a->rows; l++)
					sum += batch_get(a, a->all.host, k, i, l) *
					       batch_get(inverse, got, k, l, j);
				near("A times its inverse", sum, i == j, a->all.type);
			}
	free(got);
}

static void lu(int t, int n, bool pivoted)
{
	cudaDataType type = every_type[t];
	struct batch a = batch_new(type, n, n), inverse = batch_new(type, n, n);
	struct batch b = batch_new(type, n, 2);
	int *pivots, *infos, info = 1;
	void *x;

	CUDA(cudaMalloc((void **)&pivots, sizeof(int) * (size_t)(n * MEMBERS)));
	CUDA(cudaMalloc((void **)&infos, sizeof(int) * MEMBERS));
	batch_solid(&a);
	for (int k = 0; !pivoted && k < MEMBERS; k++)
		for (int i = 0; i < n; i++)
			put_at(a.all.host, type, (size_t)((k * n + i) * n + i), 4 * n);
	matrix_send(&a.all);
	BLAS(getrf[t](handle, n, a.places, n, pivoted ? pivots : NULL, infos, MEMBERS));
	no_info(infos);
	BLAS(getri[t](handle, n, a.places, n, pivoted ? pivots : NULL, inverse.places, n, infos,
		MEMBERS));
	no_info(infos);
	inverts(&a, &inverse);
	for (int op = 0; op < (is_complex(type) ? 3 : 2); op++) {
		matrix_send(&b.all);
		BLAS(getrs[t](handle, op, n, 2, a.places, n, pivoted ? pivots : NULL, b.places,
			n, &info, MEMBERS));
		if (info)
			DIE("info of getrs is %d", info);
		x = batch_fetch(&b);
		solves(&a, &b, x, op);
		free(x);
	}
	matrix_send(&a.all);
	if (n <= 32) {
		BLAS(matinv[t](handle, n, a.places, n, inverse.places, n, infos, MEMBERS));
		no_info(infos);
		inverts(&a, &inverse);
	}
	CUDA(cudaFree(pivots));
	CUDA(cudaFree(infos));
	batch_free(&a);
	batch_free(&inverse);
	batch_free(&b);
}

/* R'R = A'A, whatever the signs. */
static void qr(int t, int m, int n)
{
	cudaDataType type = every_type[t];
	struct batch a = batch_new(type, m, n), tau = batch_new(type, m < n ? m : n, 1);
	int info = 1;
	void *got;

	BLAS(geqrf[t](handle, m, n, a.places, m, tau.places, &info, MEMBERS));
	if (info)
		DIE("info of geqrf is %d", info);
	got = batch_fetch(&a);
	for (int k = 0; k < MEMBERS; k++)
		for (int j = 0; j < n; j++)
			for (int i = 0; i < n; i++) {
				double complex ours = 0, theirs = 0;

				for (int l = 0; l < m; l++) {
					ours += conj(batch_get(&a, a.all.host, k, l, i)) *
						batch_get(&a, a.all.host, k, l, j);
					if (l <= i && l <= j)
						theirs += conj(batch_get(&a, got, k, l, i)) *
							  batch_get(&a, got, k, l, j);
				}
				near("R'R", theirs, ours, type);
			}
	free(got);
	batch_free(&a);
	batch_free(&tau);
}

/* What is left, B - A X, is at right angles to A. */
static void least_squares(int t, int m, int n)
{
	cudaDataType type = every_type[t];
	struct batch a = batch_new(type, m, n), b = batch_new(type, m, 2);
	int info = 1, *infos;
	void *x;

	CUDA(cudaMalloc((void **)&infos, sizeof(int) * MEMBERS));
	for (int k = 0; k < MEMBERS; k++)
		for (int i = 0; i < n; i++)
			put_at(a.all.host, type, (size_t)((k * n + i) * m + i), 2 * n);
	matrix_send(&a.all);
	BLAS(gels[t](handle, 0, m, n, 2, a.places, m, b.places, m, &info, infos, MEMBERS));
	if (info)
		DIE("info of gels is %d", info);
	no_info(infos);
	x = batch_fetch(&b);
	for (int k = 0; k < MEMBERS; k++)
		for (int j = 0; j < 2; j++)
			for (int i = 0; i < n; i++) {
				double complex sum = 0;

				for (int l = 0; l < m; l++) {
					double complex left =
						batch_get(&b, b.all.host, k, l, j);

					for (int p = 0; p < n; p++)
						left -= batch_get(&a, a.all.host, k, l, p) *
							batch_get(&b, x, k, p, j);
					sum += conj(batch_get(&a, a.all.host, k, l, i)) * left;
				}
				near("A'(B - A X)", sum / (2 * n), 0, type);
			}
	free(x);
	CUDA(cudaFree(infos));
	batch_free(&a);
	batch_free(&b);
}

/* A column of nothing: info says which pivot is 0. */
static void singular(void)
{
	struct batch a = batch_new(CUDA_R_64F, 3, 3);
	int *pivots, *infos, got[MEMBERS], info = 0;

	CUDA(cudaMalloc((void **)&pivots, sizeof(int) * 3 * MEMBERS));
	CUDA(cudaMalloc((void **)&infos, sizeof(got)));
	batch_solid(&a);
	for (int i = 0; i < 3; i++)
		((double *)a.all.host)[9 + 6 + i] = 0; /* the last column of member 1 */
	matrix_send(&a.all);
	BLAS(cublasDgetrfBatched(
		handle, 3, (double *const *)a.places, 3, pivots, infos, MEMBERS));
	CUDA(cudaMemcpy(got, infos, sizeof(got), cudaMemcpyDeviceToHost));
	if (got[0] || got[1] != 3 || got[2])
		DIE("info is %d %d %d, not 0 3 0", got[0], got[1], got[2]);
	BLAS_IS(cublasDgetrfBatched(
			handle, -1, (double *const *)a.places, 3, pivots, infos, MEMBERS),
		CUBLAS_STATUS_INVALID_VALUE);
	BLAS_IS(cublasDgetrfBatched(
			NULL, 3, (double *const *)a.places, 3, pivots, infos, MEMBERS),
		CUBLAS_STATUS_NOT_INITIALIZED);
	BLAS_IS(cublasDgetrsBatched(handle, 0, -1, 1, (const double *const *)a.places, 3,
			pivots, (double *const *)a.places, 3, &info, MEMBERS),
		CUBLAS_STATUS_INVALID_VALUE);
	CUDA(cudaFree(pivots));
	CUDA(cudaFree(infos));
	batch_free(&a);
}

/* The host's info of a call that is refused: the place of what is wrong, negative. */
static void refused(void)
{
	struct batch a = batch_new(CUDA_R_64F, 3, 3), b = batch_new(CUDA_R_64F, 3, 3);
	double *const *at = (double *const *)a.places, *const *tau = (double *const *)b.places;
	int *pivots, *infos, info[3] = {1, 1, 1};

	CUDA(cudaMalloc((void **)&pivots, sizeof(int) * 3 * MEMBERS));
	CUDA(cudaMalloc((void **)&infos, sizeof(int) * MEMBERS));
	BLAS_IS(cublasDgetrsBatched(handle, 0, -1, 1, (const double *const *)at, 3, pivots, tau,
			3, &info[0], MEMBERS),
		CUBLAS_STATUS_INVALID_VALUE);
	BLAS_IS(cublasDgeqrfBatched(handle, 3, -1, at, 3, tau, &info[1], MEMBERS),
		CUBLAS_STATUS_INVALID_VALUE);
	BLAS_IS(cublasDgelsBatched(
			handle, 0, 3, 3, -1, at, 3, tau, 3, &info[2], infos, MEMBERS),
		CUBLAS_STATUS_INVALID_VALUE);
	for (int i = 0; i < 3; i++)
		if (info[i] >= 0)
			DIE("info of refused call %d is %d", i, info[i]);
	CUDA(cudaFree(pivots));
	CUDA(cudaFree(infos));
	batch_free(&a);
	batch_free(&b);
}

int main(void)
{
	static const int sizes[] = {1, 2, 7, 16, 32};

	BLAS(cublasCreate_v2(&handle));
	for (int t = 0; t < COUNT(every_type); t++) {
		for (int s = 0; s < COUNT(sizes); s++) {
			lu(t, sizes[s], true);
			lu(t, sizes[s], false);
			qr(t, sizes[s] + 2, sizes[s]);
		}
		qr(t, 7, 7);
		least_squares(t, 11, 5);
		least_squares(t, 5, 5);
	}
	singular();
	refused();
	BLAS(cublasDestroy_v2(handle));
	puts("factors: right");
	return 0;
}
