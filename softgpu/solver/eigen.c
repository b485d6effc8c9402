/* SPDX-License-Identifier: Apache-2.0
 *
 * Eigenvalues and vectors of symmetric and Hermitian matrices, and of pairs of them (A x = w B
 * x, and the two other kinds): all of them, or some (the …dx calls), of one matrix or of a
 * batch.  The calls that natively turn by Jacobi's method take the same way here: their
 * parameters say how near and how often, and LAPACK needs neither.
 */
#include "softgpu/solver/eigen.h"
#include "softgpu/solver/jacobi.h"

#include <stdlib.h>
#include <string.h>

LAPACK_REAL(syevd, const char *, const char *, const int *, void *, const int *, void *, void *,
	const int *, int *, const int *, int *, size_t, size_t);
LAPACK_COMPLEX(heevd, const char *, const char *, const int *, void *, const int *, void *,
	void *, const int *, void *, const int *, int *, const int *, int *, size_t, size_t);
LAPACK_REAL(syevx, const char *, const char *, const char *, const int *, void *, const int *,
	const void *, const void *, const int *, const int *, const void *, int *, void *,
	void *, const int *, void *, const int *, int *, int *, int *, size_t, size_t, size_t);
LAPACK_COMPLEX(heevx, const char *, const char *, const char *, const int *, void *,
	const int *, const void *, const void *, const int *, const int *, const void *, int *,
	void *, void *, const int *, void *, const int *, void *, int *, int *, int *, size_t,
	size_t, size_t);
LAPACK22(sygst, hegst, const int *, const char *, const int *, void *, const int *,
	const void *, const int *, int *, size_t);
LAPACK22(symm, hemm, const char *, const char *, const int *, const int *, const void *,
	const void *, const int *, const void *, const int *, const void *, void *, const int *,
	size_t, size_t);
LAPACK4(potrf, const char *, const int *, void *, const int *, int *, size_t);
LAPACK4(trsm, const char *, const char *, const char *, const char *, const int *, const int *,
	const void *, const void *, const int *, void *, const int *, size_t, size_t, size_t,
	size_t);
LAPACK4(trmm, const char *, const char *, const char *, const char *, const int *, const int *,
	const void *, const void *, const int *, void *, const int *, size_t, size_t, size_t,
	size_t);

static bool complex_of(const struct solver_task *t)
{
	return solver_complex(t->type);
}

/* ---- all of them ---- */

/* One matrix, in place; LAPACK tells the sizes of its workspaces first. */
static void syevd_one(struct solver_task *t, void *a, void *w, int *info)
{
	int at = t->type == SOLVER_S || t->type == SOLVER_C ? 0 : 1, ask = -1, size, wholes = 0;
	double query[2] = {0}, real_query = 0;
	void *work, *real;
	int *whole;

	if (complex_of(t))
		lapack_complex_heevd[at](&t->job, &t->uplo, &t->n, a, &t->a.ld, w, query, &ask,
			&real_query, &ask, &wholes, &ask, info, 1, 1);
	else
		lapack_real_syevd[at](&t->job, &t->uplo, &t->n, a, &t->a.ld, w, query, &ask,
			&wholes, &ask, info, 1, 1);
	size = solver_lapack_work(t->type, query);
	ask = complex_of(t) ? solver_lapack_work(t->type, &real_query) : 0;
	work = solver_scratch(t, (uint64_t)size, solver_size(t->type));
	real = solver_scratch(t, (uint64_t)ask, solver_real(t->type));
	whole = solver_scratch(t, (uint64_t)wholes, sizeof(*whole));
	if (work && real && whole) {
		if (complex_of(t))
			lapack_complex_heevd[at](&t->job, &t->uplo, &t->n, a, &t->a.ld, w, work,
				&size, real, &ask, whole, &wholes, info, 1, 1);
		else
			lapack_real_syevd[at](&t->job, &t->uplo, &t->n, a, &t->a.ld, w, work,
				&size, whole, &wholes, info, 1, 1);
	}
	free(whole);
	free(real);
	free(work);
}

/* ---- some of them: those of a range of numbers or of places ---- */

struct some {
	void *work, *real, *vectors, *low, *high;
	int *whole;
	double bounds[2], nought;
};

static void syevx_call(struct solver_task *t, struct some *s, void *w, int *found, int *failed)
{
	int at = t->type == SOLVER_S || t->type == SOLVER_C ? 0 : 1;
	int size = 40 * t->n + 40, ld = t->n ? t->n : 1;
	char range = t->job2;

	if (complex_of(t))
		lapack_complex_heevx[at](&t->job, &range, &t->uplo, &t->n, t->a.at, &t->a.ld,
			s->low, s->high, &t->first, &t->last, &s->nought, found, w, s->vectors,
			&ld, s->work, &size, s->real, s->whole, failed, t->info, 1, 1, 1);
	else
		lapack_real_syevx[at](&t->job, &range, &t->uplo, &t->n, t->a.at, &t->a.ld,
			s->low, s->high, &t->first, &t->last, &s->nought, found, w, s->vectors,
			&ld, s->work, &size, s->whole, failed, t->info, 1, 1, 1);
}

/* The bounds as the type has them. */
static void some_bounds(const struct solver_task *t, struct some *s)
{
	float narrow[2] = {(float)t->low, (float)t->high};

	if (solver_real(t->type) == 4) {
		memcpy(&s->bounds[0], &narrow[0], sizeof(narrow[0]));
		memcpy(&s->bounds[1], &narrow[1], sizeof(narrow[1]));
	} else {
		s->bounds[0] = t->low;
		s->bounds[1] = t->high;
	}
	s->low = &s->bounds[0];
	s->high = &s->bounds[1];
}

/* The vectors that were found become A's first columns. */
static void syevx_one(struct solver_task *t)
{
	unsigned size = solver_size(t->type);
	uint64_t n = (uint64_t)t->n;
	struct some s = {0};
	int found = 0, *failed = solver_scratch(t, n, sizeof(*failed));
	char *w = solver_scratch(t, n, solver_real(t->type));

	some_bounds(t, &s);
	s.vectors = solver_scratch(t, n * n, size);
	s.work = solver_scratch(t, 40 * n + 40, size);
	s.real = solver_scratch(t, 7 * n, solver_real(t->type));
	s.whole = solver_scratch(t, 5 * n, sizeof(*s.whole));
	if (failed && w && s.vectors && s.work && s.real && s.whole) {
		syevx_call(t, &s, w, &found, failed);
		memcpy(t->w, w, (size_t)found * solver_real(t->type));
		for (int j = 0; t->job == 'V' && j < found; j++)
			memcpy(solver_at(t, t->a.at, (int64_t)j * t->a.ld),
				solver_at(t, s.vectors, (int64_t)j * t->n), n * size);
	}
	t->result = found;
	free(s.whole);
	free(s.real);
	free(s.work);
	free(s.vectors);
	free(w);
	free(failed);
}

static const void *one_of(const struct solver_task *t)
{
	static const double one[] = {1, 0};
	static const float one_single[] = {1, 0};

	return solver_real(t->type) == 4 ? (const void *)one_single : one;
}

/* All of them, with the vectors, for they tell what is left. */
static void turned(struct solver_task *t)
{
	static const double nought[2];
	uint64_t n = (uint64_t)t->n;
	unsigned size = solver_size(t->type);
	void *before = solver_scratch(t, n * n, size), *av = solver_scratch(t, n * n, size);
	int ld = t->n ? t->n : 1;

	if (before && av) {
		for (int64_t j = 0; j < t->n; j++)
			memcpy(solver_at(t, before, j * t->n),
				solver_at(t, t->a.at, j * t->a.ld), n * size);
		t->job = 'V';
		syevd_one(t, t->a.at, t->w, t->info);
		lapack_symm[t->type]("L", &t->uplo, &t->n, &t->n, one_of(t), before, &ld,
			t->a.at, &t->a.ld, nought, av, &ld, 1, 1);
		solver_jacobi_left(t, t->n, t->n, av, t->a.at, t->a.ld, t->w);
	}
	free(av);
	free(before);
}

static void standard(struct solver_task *t)
{
	if (t->jacobi && t->batch == 1) {
		turned(t);
		t->result = t->n;
	} else if (t->job2 == 'A') {
		syevd_one(t, t->a.at, t->w, t->info);
		t->result = t->n;
	} else {
		syevx_one(t);
	}
}

/* ---- pairs: B's factor makes of each kind a matrix of its own ---- */

/* B's factor is L, or U = L^H. Vectors of the first two kinds are solutions with L^H, those of
 * the third products with L. */
static void vectors_back(struct solver_task *t)
{
	bool lower = t->uplo == 'L', product = t->kind == 3;
	const char *op = lower == product ? "N" : "C";

	(product ? lapack_trmm : lapack_trsm)[t->type]("L", &t->uplo, op, "N", &t->n,
		&t->result, one_of(t), t->b.at, &t->b.ld, t->a.at, &t->a.ld, 1, 1, 1, 1);
}

static void sygv_one(struct solver_task *t)
{
	int info;

	lapack_potrf[t->type](&t->uplo, &t->n, t->b.at, &t->b.ld, &info, 1);
	if (info) {
		*t->info = t->n + info; /* B's leading part is not definite */
		return;
	}
	lapack_sygst[t->type](
		&t->kind, &t->uplo, &t->n, t->a.at, &t->a.ld, t->b.at, &t->b.ld, &info, 1);
	standard(t);
	if (t->job == 'V' && !*t->info)
		vectors_back(t);
}

/* ---- as tasks ---- */

void eigen_run(struct solver_task *t)
{
	void *a = t->a.at, *b = t->b.at, *w = t->w;
	int *info = t->info;

	for (int i = 0; i < t->batch && !t->handle->failed; i++) {
		t->a.at = solver_at(t, a, i * t->a.stride);
		t->b.at = b ? solver_at(t, b, i * t->b.stride) : NULL;
		t->w = (char *)w + (uint64_t)i * (uint64_t)t->c.stride * solver_real(t->type);
		t->info = &info[i];
		if (b)
			sygv_one(t);
		else
			standard(t);
	}
	t->a.at = a; /* a graph's next run begins anew */
	t->b.at = b;
	t->w = w;
	t->info = info;
}

static char range_of(int range)
{
	return range == 1001 ? 'A' : range == 1002 ? 'I' : range == 1003 ? 'V' : 0;
}

bool eigen_valid(const struct eigen *e)
{
	char range = range_of(e->range);

	if (!solver_vectors(e->jobz) || !solver_uplo(e->uplo) || !range ||
		!solver_shape(e->n, e->n, e->lda) || e->batch < 0 || e->batch > INT_MAX ||
		e->n > INT_MAX / 128)
		return false;
	if (range == 'V' && !(e->high > e->low))
		return false;
	if (range == 'I' && e->n && (e->first < 1 || e->last < e->first || e->last > e->n))
		return false;
	return !e->itype ||
	       (e->itype >= 1 && e->itype <= 3 && solver_shape(e->n, e->n, e->ldb));
}

int64_t eigen_need(const struct eigen *e)
{
	return solver_need(e->n, e->n);
}

struct solver_task *eigen_task(struct solver_handle *h, const struct eigen *e, int *status)
{
	struct solver_task *t = solver_new(h, eigen_run, e->type, status);
	uint64_t count = (uint64_t)e->batch;

	if (!t)
		return NULL;
	if (!eigen_valid(e) || e->bytes < (uint64_t)eigen_need(e) * solver_size(e->type)) {
		solver_drop(t);
		*status = SOLVER_INVALID_VALUE;
		return NULL;
	}
	t->kind = e->itype;
	t->job = solver_vectors(e->jobz);
	t->job2 = range_of(e->range);
	t->uplo = solver_uplo(e->uplo);
	t->n = (int)e->n;
	t->low = e->low;
	t->high = e->high;
	t->first = (int)e->first;
	t->last = (int)e->last;
	t->batch = (int)e->batch;
	t->a = solver_matrices(t, e->a, e->n, e->n, e->lda, e->stride_a, e->batch);
	if (e->itype)
		t->b = solver_matrices(t, e->b, e->n, e->n, e->ldb, e->stride_b, e->batch);
	t->w = e->w;
	t->c.stride = e->stride_w;
	if (count && e->stride_w >= 0)
		solver_uses(t, e->w, (uint64_t)e->stride_w * (count - 1) + (uint64_t)e->n,
			solver_real(e->type));
	t->info = e->info;
	solver_uses(t, e->info, count, sizeof(*e->info));
	solver_work(t, e->work, e->bytes);
	return t;
}

int eigen_all(struct solver_handle *h, const struct eigen *e)
{
	int status;
	struct solver_task *t = eigen_task(h, e, &status);

	return t ? solver_submit(t) : status;
}

int eigen_some(struct solver_handle *h, const struct eigen *e, int64_t *found)
{
	int status;
	struct solver_task *t;

	if (h && !found)
		return SOLVER_INVALID_VALUE;
	t = eigen_task(h, e, &status);
	if (!t)
		return status;
	status = solver_finish(t);
	if (!status) {
		*found = t->result;
		solver_drop(t);
	}
	return status;
}
