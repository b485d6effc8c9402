/* SPDX-License-Identifier: Apache-2.0
 *
 * Eigenvalues and right vectors of any matrix, real ones in both forms of their values.
 */
#include "tests/cusolver/check.h"

static cusolverDnHandle_t handle;
static cusolverDnParams_t params;
static int *info;

/* The values as complex numbers, whichever form they have. */
static number *values_of(enum type t, const void *at, bool apart, int n)
{
	number *w, *to;

	if (!apart)
		return get(real_of(t) == S ? C : Z, at, n, 1, n);
	w = get(t, at, 2 * n, 1, 2 * n);
	to = host((size_t)n * sizeof(*to));
	for (int i = 0; i < n; i++)
		to[i] = CMPLX(creal(w[i]), creal(w[n + i]));
	free(w);
	return to;
}

/* A real matrix's vectors: those of a conjugate pair are the parts of two columns. */
static number *vectors_of(enum type t, const void *at, const number *w, int n)
{
	number *v = get(t, at, n, n, n);

	for (int j = 0; !is_complex(t) && j < n - 1; j++) {
		if (cimag(w[j]) == 0)
			continue;
		for (int i = 0; i < n; i++) {
			double real = creal(v[i + j * n]), part = creal(v[i + (j + 1) * n]);

			v[i + j * n] = CMPLX(real, part);
			v[i + (j + 1) * n] = CMPLX(real, -part);
		}
		j++;
	}
	return v;
}

static void solve(enum type t, int n, bool apart)
{
	cudaDataType type = data_types[t];
	cudaDataType type_w = apart ? type : data_types[real_of(t) == S ? C : Z];
	size_t bytes, on_host;
	number *a = some(t, n, n), *w, *v, *av;
	void *at = put(t, a, n, n, n), *values = device((size_t)n * 16), *work, *rest;
	void *right = device((size_t)n * (size_t)n * size_of(t));

	SOLVER(cusolverDnXgeev_bufferSize(handle, params, CUSOLVER_EIG_MODE_NOVECTOR,
		CUSOLVER_EIG_MODE_VECTOR, n, type, at, n, type_w, values, type, NULL, 1, type,
		right, n, type, &bytes, &on_host));
	work = device(bytes);
	rest = host(on_host);
	SOLVER(cusolverDnXgeev(handle, params, CUSOLVER_EIG_MODE_NOVECTOR,
		CUSOLVER_EIG_MODE_VECTOR, n, type, at, n, type_w, values, type, NULL, 1, type,
		right, n, type, work, bytes, rest, on_host, info));
	CUDA(cuCtxSynchronize());
	CHECK(!int_of(info), "geev: info %d", int_of(info));
	w = values_of(t, values, apart, n);
	v = vectors_of(t, right, w, n);
	av = product('N', a, 'N', v, n, n, n);
	for (int j = 0; j < n; j++) {
		CHECK(fabs(norm(v + j * n, n) - 1) < tolerance(t, n), "a vector of length %g",
			norm(v + j * n, n));
		for (int i = 0; i < n; i++)
			v[i + j * n] *= w[j];
	}
	CLOSE(t, v, av, n * n, 20 * n, "geev");
	RELEASE(at, values, right, work);
	FREE(a, w, v, av, rest);
}

int main(void)
{
	device_begin();
	SOLVER(cusolverDnCreate(&handle));
	SOLVER(cusolverDnCreateParams(&params));
	info = device(sizeof(*info));
	EACH_TYPE(t)
	EACH_SIZE(n)
	{
		if (!n)
			continue;
		solve(t, n, false);
		if (!is_complex(t))
			solve(t, n, true);
	}
	release(info);
	SOLVER(cusolverDnDestroyParams(params));
	SOLVER(cusolverDnDestroy(handle));
	printf("ok\n");
	return 0;
}
