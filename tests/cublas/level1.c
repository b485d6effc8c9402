/* SPDX-License-Identifier: Apache-2.0
 *
 * Level 1 in all types, with steps of either sign: sums, extremes, rotations that are given and
 * made, and the forms where each vector says its type, in both pointer modes, against plain
 * loops.
 */
#include "tests/cublas/forms.h"

static cublasHandle_t handle;
static const int sizes[] = {0, 1, 7, 27, 64};

static void near(const char *what, double complex got, double complex want, cudaDataType type)
{
	if (!(cabs(got - want) <= tolerance_of(type) * (1 + cabs(want))))
		DIE("%s is %g%+gi, not %g%+gi", what, creal(got), cimag(got), creal(want),
			cimag(want));
}

static void mode(int which)
{
	BLAS(cublasSetPointerMode_v2(handle, which));
}

/* ---- reductions: to the host and to the device ---- */

struct result {
	_Alignas(16) char host[48];
	void *device;
};

static struct result result_new(void)
{
	struct result r = {{0}, NULL};

	CUDA(cudaMalloc(&r.device, sizeof(r.host)));
	return r;
}

static void *result_of(struct result *r, int which)
{
	return which ? r->device : r->host;
}

static void result_fetch(struct result *r, int which)
{
	if (which)
		CUDA(cudaMemcpy(r->host, r->device, sizeof(r->host), cudaMemcpyDeviceToHost));
}

typedef int reduce_form(cublasHandle_t, int, const void *, int, void *);
typedef int dot_form(cublasHandle_t, int, const void *, int, const void *, int, void *);
#define REDUCE(S, D, C, Z)                                                                     \
	{AS(reduce_form, S), AS(reduce_form, D), AS(reduce_form, C), AS(reduce_form, Z)}
static reduce_form *const nrm2[] =
	REDUCE(cublasSnrm2_v2, cublasDnrm2_v2, cublasScnrm2_v2, cublasDznrm2_v2);
static reduce_form *const asum[] =
	REDUCE(cublasSasum_v2, cublasDasum_v2, cublasScasum_v2, cublasDzasum_v2);
static reduce_form *const amax[] =
	REDUCE(cublasIsamax_v2, cublasIdamax_v2, cublasIcamax_v2, cublasIzamax_v2);
static reduce_form *const amin[] =
	REDUCE(cublasIsamin_v2, cublasIdamin_v2, cublasIcamin_v2, cublasIzamin_v2);
static dot_form *const dotu[] = {AS(dot_form, cublasSdot_v2), AS(dot_form, cublasDdot_v2),
	AS(dot_form, cublasCdotu_v2), AS(dot_form, cublasZdotu_v2)};
static dot_form *const dotc[] = {AS(dot_form, cublasSdot_v2), AS(dot_form, cublasDdot_v2),
	AS(dot_form, cublasCdotc_v2), AS(dot_form, cublasZdotc_v2)};

static void reductions(int t, int n, int incx, int which)
{
	cudaDataType type = every_type[t];
	struct matrix x = vector_new(type, n, incx), y = vector_new(type, n, -incx);
	double complex plain = 0, turned = 0;
	double sum = 0, square = 0, most = -1, least = 1e9;
	int at_most = 0, at_least = 0, index;
	struct result r = result_new();

	for (int i = 0; i < n; i++) {
		double complex a = vector_get(&x, n, i, incx), b = vector_get(&y, n, i, -incx);
		double size = fabs(creal(a)) + fabs(cimag(a));

		plain += a * b;
		turned += conj(a) * b;
		sum += size;
		square += creal(a * conj(a));
		at_most = size > most ? i + 1 : at_most;
		most = fmax(most, size);
		at_least = size < least ? i + 1 : at_least;
		least = fmin(least, size);
	}
	BLAS(dotu[t](handle, n, x.device, incx, y.device, -incx, result_of(&r, which)));
	result_fetch(&r, which);
	near("dotu", get_at(r.host, type, 0), plain, type);
	BLAS(dotc[t](handle, n, x.device, incx, y.device, -incx, result_of(&r, which)));
	result_fetch(&r, which);
	near("dotc", get_at(r.host, type, 0), turned, type);
	if (incx > 0) {
		BLAS(nrm2[t](handle, n, x.device, incx, result_of(&r, which)));
		result_fetch(&r, which);
		near("nrm2", get_at(r.host, real_of(type), 0), sqrt(square), type);
		BLAS(asum[t](handle, n, x.device, incx, result_of(&r, which)));
		result_fetch(&r, which);
		near("asum", get_at(r.host, real_of(type), 0), sum, type);
		BLAS(amax[t](handle, n, x.device, incx, result_of(&r, which)));
		result_fetch(&r, which);
		memcpy(&index, r.host, sizeof(index));
		near("amax", index, at_most, type);
		BLAS(amin[t](handle, n, x.device, incx, result_of(&r, which)));
		result_fetch(&r, which);
		memcpy(&index, r.host, sizeof(index));
		near("amin", index, at_least, type);
	}
	CUDA(cudaFree(r.device));
	matrix_free(&x);
	matrix_free(&y);
}

/* ---- rotations ---- */

typedef int rot_form(cublasHandle_t, int, void *, int, void *, int, const void *, const void *);
typedef int rotm_form(cublasHandle_t, int, void *, int, void *, int, const void *);
static const struct rotation {
	cudaDataType type, c, s;
	rot_form *rot;
} rotations[] = {
	{CUDA_R_32F, CUDA_R_32F, CUDA_R_32F, AS(rot_form, cublasSrot_v2)},
	{CUDA_R_64F, CUDA_R_64F, CUDA_R_64F, AS(rot_form, cublasDrot_v2)},
	{CUDA_C_32F, CUDA_R_32F, CUDA_C_32F, AS(rot_form, cublasCrot_v2)},
	{CUDA_C_64F, CUDA_R_64F, CUDA_C_64F, AS(rot_form, cublasZrot_v2)},
	{CUDA_C_32F, CUDA_R_32F, CUDA_R_32F, AS(rot_form, cublasCsrot_v2)},
	{CUDA_C_64F, CUDA_R_64F, CUDA_R_64F, AS(rot_form, cublasZdrot_v2)},
};

/* EX: by RotEx, which has c and s of one type. */
static void rotate(const struct rotation *how, bool ex, int n, int incx)
{
	cudaDataType type = how->type;
	struct matrix x = vector_new(type, n, incx), y = vector_new(type, n, 1);
	struct scalar c = scalar_new(ex ? how->s : how->c, 0.75);
	struct scalar s = scalar_new(how->s, 0.5 + 0.25 * I);

	for (int i = 0; i < n; i++) {
		double complex a = vector_get(&x, n, i, incx), b = vector_get(&y, n, i, 1);

		vector_put(&x, n, i, incx, c.value * a + s.value * b);
		vector_put(&y, n, i, 1, c.value * b - conj(s.value) * a);
	}
	if (ex)
		BLAS(cublasRotEx(handle, n, x.device, type, incx, y.device, type, 1,
			scalar_of(&c, handle), scalar_of(&s, handle), how->s, type));
	else
		BLAS(how->rot(handle, n, x.device, incx, y.device, 1, scalar_of(&c, handle),
			scalar_of(&s, handle)));
	matrix_check(&x, "x of a rotation");
	matrix_check(&y, "y of a rotation");
	scalar_free(&c);
	scalar_free(&s);
	matrix_free(&x);
	matrix_free(&y);
}

/* H as each flag says: all given, ones on the diagonal, ones beside it, none. */
static void rotate_modified(int t, int flag, int n, int which)
{
	cudaDataType type = every_type[t];
	struct matrix x = vector_new(type, n, 2), y = vector_new(type, n, -1);
	struct matrix param = matrix_new(type, 5, 1);
	double h[4] = {0.5, -0.25, 1.5, 2}; /* h11 h21 h12 h22 */

	put_at(param.host, type, 0, flag);
	for (int i = 0; i < 4; i++)
		put_at(param.host, type, (size_t)i + 1, h[i]);
	matrix_send(&param);
	if (flag == 0)
		h[0] = h[3] = 1;
	if (flag == 1) {
		h[1] = -1;
		h[2] = 1;
	}
	if (flag == -2) {
		h[0] = h[3] = 1;
		h[1] = h[2] = 0;
	}
	for (int i = 0; i < n; i++) {
		double complex a = vector_get(&x, n, i, 2), b = vector_get(&y, n, i, -1);

		vector_put(&x, n, i, 2, h[0] * a + h[2] * b);
		vector_put(&y, n, i, -1, h[1] * a + h[3] * b);
	}
	BLAS((t ? AS(rotm_form, cublasDrotm_v2) : AS(rotm_form, cublasSrotm_v2))(
		handle, n, x.device, 2, y.device, -1, which ? param.device : param.host));
	matrix_check(&x, "x of rotm");
	matrix_check(&y, "y of rotm");
	matrix_free(&x);
	matrix_free(&y);
	matrix_free(&param);
}

typedef int rotg_form(cublasHandle_t, void *, void *, void *, void *);
static rotg_form *const rotg[] = FORMS(rotg_form, rotg_v2);

/* What it makes turns (a, b) to (r, 0), and keeps lengths. */
static void make(int t, double complex a, double complex b, int which)
{
	cudaDataType type = every_type[t];
	struct matrix ab = matrix_new(type, 2, 1), s = matrix_new(type, 1, 1);
	struct matrix c = matrix_new(real_of(type), 1, 1);
	size_t each = cublas_data_bytes(type);
	char *at = which ? ab.device : ab.host;
	double complex r, cosine, sine;

	put_at(ab.host, type, 0, a);
	put_at(ab.host, type, 1, b);
	a = get_at(ab.host, type, 0);
	b = get_at(ab.host, type, 1);
	matrix_send(&ab);
	BLAS(rotg[t](
		handle, at, at + each, which ? c.device : c.host, which ? s.device : s.host));
	if (which) {
		CUDA(cudaMemcpy(ab.host, ab.device, ab.bytes, cudaMemcpyDeviceToHost));
		CUDA(cudaMemcpy(c.host, c.device, c.bytes, cudaMemcpyDeviceToHost));
		CUDA(cudaMemcpy(s.host, s.device, s.bytes, cudaMemcpyDeviceToHost));
	}
	r = get_at(ab.host, type, 0);
	cosine = get_at(c.host, c.type, 0);
	sine = get_at(s.host, type, 0);
	near("c a + s b", cosine * a + sine * b, r, type);
	near("c b - conj(s) a", cosine * b - conj(sine) * a, 0, type);
	near("c c + s conj(s)", cosine * cosine + sine * conj(sine), 1, type);
	matrix_free(&ab);
	matrix_free(&c);
	matrix_free(&s);
}

typedef int rotmg_form(cublasHandle_t, void *, void *, void *, const void *, void *);

/* What it makes turns (sqrt(d1) x1, sqrt(d2) y1) to something with nothing below. */
static void make_modified(int t, int which)
{
	cudaDataType type = every_type[t];
	struct matrix given = matrix_new(type, 9, 1); /* d1 d2 x1 y1 param */
	size_t each = cublas_data_bytes(type);
	char *at = which ? given.device : given.host;
	double was[4] = {2, 0.5, 1.5, 1}, h[4], flag;

	for (size_t i = 0; i < 4; i++)
		put_at(given.host, type, i, was[i]);
	matrix_send(&given);
	BLAS((t ? AS(rotmg_form, cublasDrotmg_v2) : AS(rotmg_form, cublasSrotmg_v2))(
		handle, at, at + each, at + 2 * each, at + 3 * each, at + 4 * each));
	if (which)
		CUDA(cudaMemcpy(given.host, given.device, given.bytes, cudaMemcpyDeviceToHost));
	flag = creal(get_at(given.host, type, 4));
	for (size_t i = 0; i < 4; i++)
		h[i] = creal(get_at(given.host, type, 5 + i));
	if (flag == 0)
		h[0] = h[3] = 1;
	if (flag == 1) {
		h[1] = -1;
		h[2] = 1;
	}
	near("rotmg's x1", creal(get_at(given.host, type, 2)), h[0] * was[2] + h[2] * was[3],
		type);
	near("rotmg's zero", h[1] * was[2] + h[3] * was[3], 0, type);
	near("rotmg's length",
		creal(get_at(given.host, type, 0)) * pow(creal(get_at(given.host, type, 2)), 2),
		was[0] * was[2] * was[2] + was[1] * was[3] * was[3], type);
	matrix_free(&given);
}

/* ---- each vector says its type ---- */

static void extended(cudaDataType type, int n, int which)
{
	bool narrow = type == CUDA_R_16F || type == CUDA_R_16BF;
	cudaDataType wide = narrow ? CUDA_R_32F : type;
	struct matrix x = vector_new(type, n, 1), y = vector_new(type, n, 2);
	struct scalar by = scalar_new(wide, 1.5);
	struct result r = result_new();
	double complex dot = 0;
	double square = 0;

	for (int i = 0; i < n; i++) {
		double complex v = by.value * vector_get(&x, n, i, 1);

		vector_put(&y, n, i, 2, v + vector_get(&y, n, i, 2));
	}
	BLAS(cublasAxpyEx(handle, n, scalar_of(&by, handle), wide, x.device, type, 1, y.device,
		type, 2, wide));
	matrix_check(&y, "AxpyEx");
	for (int i = 0; i < n; i++)
		vector_put(&x, n, i, 1, by.value * vector_get(&x, n, i, 1));
	BLAS(cublasScalEx(handle, n, scalar_of(&by, handle), wide, x.device, type, 1, wide));
	matrix_check(&x, "ScalEx");
	for (int i = 0; i < n; i++) {
		dot += vector_get(&x, n, i, 1) * vector_get(&y, n, i, 2);
		square += pow(cabs(vector_get(&x, n, i, 1)), 2);
	}
	BLAS(cublasDotEx(handle, n, x.device, type, 1, y.device, type, 2, result_of(&r, which),
		type, wide));
	result_fetch(&r, which);
	/* Sums of 16-bit floats differ by how they are ordered. */
	if (!(cabs(get_at(r.host, type, 0) - dot) <= 4 * tolerance_of(type) * (4 + square)))
		DIE("DotEx is %g, not %g", creal(get_at(r.host, type, 0)), creal(dot));
	BLAS(cublasNrm2Ex(handle, n, x.device, type, 1, result_of(&r, which), real_of(type),
		real_of(wide)));
	result_fetch(&r, which);
	near("Nrm2Ex", get_at(r.host, real_of(type), 0), sqrt(square), type);
	CUDA(cudaFree(r.device));
	scalar_free(&by);
	matrix_free(&x);
	matrix_free(&y);
}

static void moved(cudaDataType type, int n)
{
	struct matrix x = vector_new(type, n, -1), y = vector_new(type, n, 2);
	struct matrix z = vector_new(type, n, 1);

	for (int i = 0; i < n; i++)
		vector_put(&z, n, i, 1, vector_get(&x, n, i, -1));
	BLAS(cublasCopyEx(handle, n, x.device, type, -1, z.device, type, 1));
	matrix_check(&z, "CopyEx");
	for (int i = 0; i < n; i++) {
		double complex a = vector_get(&x, n, i, -1);

		vector_put(&x, n, i, -1, vector_get(&y, n, i, 2));
		vector_put(&y, n, i, 2, a);
	}
	BLAS(cublasSwapEx(handle, n, x.device, type, -1, y.device, type, 2));
	matrix_check(&x, "x of SwapEx");
	matrix_check(&y, "y of SwapEx");
	matrix_free(&x);
	matrix_free(&y);
	matrix_free(&z);
}

/* In the host's mode, at a device's address. */
static void result_on_device(void)
{
	struct matrix x = vector_new(CUDA_C_64F, 27, 1);
	struct result r = result_new();
	cuDoubleComplex dot, *dot_there = (void *)r.host;
	int most;

	BLAS(cublasZdotc_v2(handle, 27, x.device, 1, x.device, 1, &dot));
	BLAS(cublasZdotc_v2(handle, 27, x.device, 1, x.device, 1, r.device));
	result_fetch(&r, 1);
	near("a product at a device's address", dot_there->x + I * dot_there->y,
		dot.x + I * dot.y, CUDA_C_64F);
	BLAS(cublasIzamax_v2(handle, 27, x.device, 1, &most));
	BLAS(cublasIzamax_v2(handle, 27, x.device, 1, r.device));
	result_fetch(&r, 1);
	near("an index at a device's address", *(int *)r.host, most, CUDA_R_32F);
	CUDA(cudaFree(r.device));
	matrix_free(&x);
}

static void wrong(void)
{
	struct matrix x = vector_new(CUDA_R_32F, 4, 1);
	const float c = 1;
	float got = 1;

	BLAS_IS(cublasSrot_v2(NULL, 4, x.device, 1, x.device, 1, &c, &c),
		CUBLAS_STATUS_NOT_INITIALIZED);
	BLAS_IS(cublasSnrm2_v2(handle, 4, x.device, 1, NULL), CUBLAS_STATUS_INVALID_VALUE);
	/* Fewer than one number, or no step: the result is 0. */
	BLAS(cublasSnrm2_v2(handle, -1, x.device, 1, &got));
	near("the length of none", got, 0, CUDA_R_32F);
	got = 1;
	BLAS(cublasSasum_v2(handle, 4, x.device, 0, &got));
	near("the sum without a step", got, 0, CUDA_R_32F);
	matrix_free(&x);
}

int main(void)
{
	static const cudaDataType extended_types[] = {
		CUDA_R_16F, CUDA_R_16BF, CUDA_R_32F, CUDA_R_64F, CUDA_C_32F, CUDA_C_64F};

	BLAS(cublasCreate_v2(&handle));
	for (int which = 0; which < 2; which++) {
		mode(which);
		for (int s = 0; s < COUNT(sizes); s++) {
			for (int t = 0; t < COUNT(every_type); t++) {
				reductions(t, sizes[s], 1, which);
				reductions(t, sizes[s], -3, which);
			}
			for (int i = 0; i < COUNT(rotations); i++) {
				rotate(&rotations[i], false, sizes[s], 1);
				rotate(&rotations[i], false, sizes[s], -2);
				rotate(&rotations[i], true, sizes[s], 2);
			}
			for (int flag = -2; flag < 2; flag++)
				for (int t = 0; t < 2; t++)
					rotate_modified(t, flag, sizes[s], which);
			for (int i = 0; i < COUNT(extended_types); i++)
				if (sizes[s])
					extended(extended_types[i], sizes[s], which);
		}
		for (int t = 0; t < COUNT(every_type); t++) {
			make(t, 3 - 1 * I, 4 + 2 * I, which);
			make(t, -4, 3, which);
			make(t, 0, 2 + 1 * I, which);
		}
		make_modified(0, which);
		make_modified(1, which);
	}
	mode(CUBLAS_POINTER_MODE_HOST);
	for (int t = 0; t < COUNT(every_type); t++)
		moved(every_type[t], 7);
	result_on_device();
	wrong();
	BLAS(cublasDestroy_v2(handle));
	puts("level1: right");
	return 0;
}
