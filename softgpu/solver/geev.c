/* SPDX-License-Identifier: Apache-2.0
 *
 * Eigenvalues and vectors of any square matrix. Those of a real one come as two arrays of real
 * numbers, one behind the other, or as complex numbers; its vectors are real, the two of a
 * conjugate pair side by side as real and imaginary part.
 */
#include <stdlib.h>

#include "softgpu/solver/solver.h"

LAPACK_REAL(geev, const char *, const char *, const int *, void *, const int *, void *, void *,
	void *, const int *, void *, const int *, void *, const int *, int *, size_t, size_t);
LAPACK_COMPLEX(geev, const char *, const char *, const int *, void *, const int *, void *,
	void *, const int *, void *, const int *, void *, const int *, void *, int *, size_t,
	size_t);

static void lapack(
	struct solver_task *t, void *first, void *second, void *work, const int *size)
{
	int at = t->type == SOLVER_S || t->type == SOLVER_C ? 0 : 1;

	if (solver_complex(t->type))
		lapack_complex_geev[at](&t->job, &t->job2, &t->n, t->a.at, &t->a.ld, first,
			t->b.at, &t->b.ld, t->c.at, &t->c.ld, work, size, second, t->info, 1,
			1);
	else
		lapack_real_geev[at](&t->job, &t->job2, &t->n, t->a.at, &t->a.ld, first, second,
			t->b.at, &t->b.ld, t->c.at, &t->c.ld, work, size, t->info, 1, 1);
}

/* `flag`: a real matrix's values are wanted as complex numbers. */
static void geev_run(struct solver_task *t)
{
	unsigned size = solver_size(t->type), real = solver_real(t->type);
	bool apart = t->flag;
	double query[2] = {0};
	int words = -1;
	char *parts = solver_scratch(t, 2 * (uint64_t)t->n, real);
	void *first = apart ? parts : t->w, *work, *second;

	second = apart			   ? parts + (size_t)t->n * real
		 : solver_complex(t->type) ? parts
					   : (char *)t->w + (size_t)t->n * real;
	lapack(t, first, second, query, &words);
	words = solver_lapack_work(t->type, query);
	work = solver_scratch(t, (uint64_t)words, size);
	if (parts && work) {
		lapack(t, first, second, work, &words);
		for (int i = 0; apart && i < t->n; i++) {
			solver_set_number(t, t->w, 2 * i, solver_number(t, first, i));
			solver_set_number(t, t->w, 2 * i + 1, solver_number(t, second, i));
		}
	}
	free(work);
	free(parts);
}

struct geev {
	int left, right;
	int64_t n;
	int type, type_w, type_left, type_right, compute;
	int64_t lda, ldvl, ldvr;
};

static bool valid(const struct geev *c)
{
	enum solver_type t = solver_type_of(c->type), w = solver_type_of(c->type_w);

	if (t == SOLVER_NO_TYPE || w == SOLVER_NO_TYPE || c->compute != c->type ||
		c->type_left != c->type || c->type_right != c->type)
		return false;
	if (solver_real(w) != solver_real(t) || (solver_complex(t) && !solver_complex(w)))
		return false;
	return solver_vectors(c->left) && solver_vectors(c->right) &&
	       solver_shape(c->n, c->n, c->lda) && c->n <= INT_MAX / 128 &&
	       (c->left ? solver_shape(c->n, c->n, c->ldvl) : c->ldvl >= 1) &&
	       (c->right ? solver_shape(c->n, c->n, c->ldvr) : c->ldvr >= 1);
}

#define HEAD struct solver_handle *h, SOLVER_PARAMS, int left, int right, int64_t n
#define NAMES                                                                                  \
	(&(struct geev){left, right, n, type, type_w, type_left, type_right, compute, lda,     \
		ldvl, ldvr})
CALL(cusolverDnXgeev_bufferSize, HEAD, int type, const void *a, int64_t lda, int type_w,
	const void *w, int type_left, const void *vl, int64_t ldvl, int type_right,
	const void *vr, int64_t ldvr, int compute, size_t *device, size_t *host)
{
	(void)a;
	(void)w;
	(void)vl;
	(void)vr;
	return solver_tell_bytes(
		h, valid(NAMES), solver_need(n, n), solver_type_of(type), device, host);
}

CALL(cusolverDnXgeev, HEAD, int type, void *a, int64_t lda, int type_w, void *w, int type_left,
	void *vl, int64_t ldvl, int type_right, void *vr, int64_t ldvr, int compute, void *work,
	size_t bytes, void *host, size_t host_bytes, int *info)
{
	int status;
	struct solver_task *t = solver_new(h, geev_run, solver_type_of(type), &status);

	(void)host;
	(void)host_bytes;
	if (!t)
		return status;
	if (!valid(NAMES) || bytes < (uint64_t)solver_need(n, n) * solver_size(t->type)) {
		solver_drop(t);
		return SOLVER_INVALID_VALUE;
	}
	t->n = (int)n;
	t->job = solver_vectors(left);
	t->job2 = solver_vectors(right);
	t->flag = type_w != type;
	t->a = solver_matrix(t, a, n, n, lda);
	t->b = solver_matrix(t, vl, left ? n : 0, n, solver_min(ldvl, INT_MAX));
	t->c = solver_matrix(t, vr, right ? n : 0, n, solver_min(ldvr, INT_MAX));
	t->w = w;
	solver_uses(t, w, 2 * (uint64_t)n, solver_real(t->type));
	t->info = info;
	solver_uses(t, info, 1, sizeof(*info));
	solver_work(t, work, bytes);
	return solver_submit(t);
}
