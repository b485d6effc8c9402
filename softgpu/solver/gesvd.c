/* SPDX-License-Identifier: Apache-2.0
 *
 * Singular values and vectors as LAPACK gives them: U and V^H, by 32-bit and 64-bit calls.
 */
#include "softgpu/solver/gesvd.h"

#include <stdlib.h>
#include <string.h>

LAPACK_REAL(gesvd, const char *, const char *, const int *, const int *, void *, const int *,
	void *, void *, const int *, void *, const int *, void *, const int *, int *, size_t,
	size_t);
LAPACK_COMPLEX(gesvd, const char *, const char *, const int *, const int *, void *, const int *,
	void *, void *, const int *, void *, const int *, void *, const int *, void *, int *,
	size_t, size_t);

struct call {
	char jobu, jobvt;
	void *a, *s, *u, *vt;
	int lda, ldu, ldvt;
	void *work, *real;
	int size;
};

static void lapack(struct solver_task *t, struct call *c, int *info)
{
	int at = t->type == SOLVER_S || t->type == SOLVER_C ? 0 : 1;

	if (solver_complex(t->type))
		lapack_complex_gesvd[at](&c->jobu, &c->jobvt, &t->m, &t->n, c->a, &c->lda, c->s,
			c->u, &c->ldu, c->vt, &c->ldvt, c->work, &c->size, c->real, info, 1, 1);
	else
		lapack_real_gesvd[at](&c->jobu, &c->jobvt, &t->m, &t->n, c->a, &c->lda, c->s,
			c->u, &c->ldu, c->vt, &c->ldvt, c->work, &c->size, info, 1, 1);
}

void gesvd_lapack(struct solver_task *t, char jobu, char jobvt, void *a, int lda, void *s,
	void *u, int ldu, void *vt, int ldvt, void *rest, int *info)
{
	int least = t->m < t->n ? t->m : t->n;
	unsigned real_size = solver_real(t->type);
	double query[2] = {0};
	struct call c = {jobu, jobvt, a, s, u, vt, (int)solver_max(lda, 1),
		(int)solver_max(ldu, 1), (int)solver_max(ldvt, 1), query, NULL, -1};

	lapack(t, &c, info);
	c.size = solver_lapack_work(t->type, query);
	c.work = solver_scratch(t, (uint64_t)c.size, solver_size(t->type));
	c.real = solver_scratch(t, 5 * (uint64_t)least, real_size);
	if (c.work && c.real) {
		lapack(t, &c, info);
		if (rest && *info > 0) /* the real functions leave it behind the first number */
			memcpy(rest,
				solver_complex(t->type) ? c.real : (char *)c.work + real_size,
				(size_t)(least - 1) * real_size);
	}
	free(c.real);
	free(c.work);
}

/* ---- the calls ---- */

static void gesvd_run(struct solver_task *t)
{
	gesvd_lapack(t, t->job, t->job2, t->a.at, t->a.ld, t->w, t->c.at, t->c.ld, t->d.at,
		t->d.ld, t->w2, t->info);
}

static bool job_valid(signed char job)
{
	return job == 'A' || job == 'S' || job == 'O' || job == 'N';
}

/* NVIDIA's takes matrices that are at least as high as they are wide. */
static bool shape_valid(int64_t m, int64_t n, int64_t lda)
{
	return solver_shape(m, n, lda) && m >= n && m <= INT_MAX / 128;
}

static int gesvd(struct solver_handle *h, enum solver_type type, signed char jobu,
	signed char jobvt, int64_t m, int64_t n, void *a, int64_t lda, void *s, void *u,
	int64_t ldu, void *vt, int64_t ldvt, void *work, uint64_t bytes, void *rest, int *info)
{
	int status;
	struct solver_task *t = solver_new(h, gesvd_run, type, &status);
	int64_t ucols = jobu == 'A' ? m : jobu == 'S' ? n : 0;
	int64_t rows = jobvt == 'A' || jobvt == 'S' ? n : 0;

	if (!t)
		return status;
	if (!job_valid(jobu) || !job_valid(jobvt) || (jobu == 'O' && jobvt == 'O') ||
		!shape_valid(m, n, lda) || !solver_shape(ucols ? m : 0, ucols, ldu) ||
		!solver_shape(rows, n, ldvt) ||
		bytes < (uint64_t)solver_need(m, n) * solver_size(type)) {
		solver_drop(t);
		return SOLVER_INVALID_VALUE;
	}
	t->job = (char)jobu;
	t->job2 = (char)jobvt;
	t->m = (int)m;
	t->n = (int)n;
	t->a = solver_matrix(t, a, m, n, lda);
	t->c = solver_matrix(t, u, m, ucols, ldu);
	t->d = solver_matrix(t, vt, rows, n, ldvt);
	t->w = s;
	solver_uses(t, s, (uint64_t)n, solver_real(type));
	t->w2 = rest;
	if (rest && n > 1)
		solver_uses(t, rest, (uint64_t)n - 1, solver_real(type));
	t->info = info;
	solver_uses(t, info, 1, sizeof(*info));
	solver_work(t, work, bytes);
	return solver_submit(t);
}

#define GESVD(P)                                                                               \
	CALL(cusolverDn##P##gesvd_bufferSize, struct solver_handle *h, int m, int n,           \
		int *lwork)                                                                    \
	{                                                                                      \
		return solver_tell(h, shape_valid(m, n, INT_MAX), solver_need(m, n), lwork);   \
	}                                                                                      \
	CALL(cusolverDn##P##gesvd, struct solver_handle *h, signed char jobu,                  \
		signed char jobvt, int m, int n, void *a, int lda, void *s, void *u, int ldu,  \
		void *vt, int ldvt, void *work, int lwork, void *rest, int *info)              \
	{                                                                                      \
		return gesvd(h, SOLVER_##P, jobu, jobvt, m, n, a, lda, s, u, ldu, vt, ldvt,    \
			work, (uint64_t)solver_max(lwork, 0) * solver_size(SOLVER_##P), rest,  \
			info);                                                                 \
	}
EACH_TYPE(GESVD)

static bool types(int type, int type_s, int type_u, int type_vt, int compute)
{
	enum solver_type t = solver_type_of(type);

	return t != SOLVER_NO_TYPE && solver_type_of(type_s) == solver_real_type(t) &&
	       type_u == type && type_vt == type && compute == type;
}

CALL(cusolverDnXgesvd_bufferSize, struct solver_handle *h, SOLVER_PARAMS, signed char jobu,
	signed char jobvt, int64_t m, int64_t n, int type, const void *a, int64_t lda,
	int type_s, const void *s, int type_u, const void *u, int64_t ldu, int type_vt,
	const void *vt, int64_t ldvt, int compute, size_t *device, size_t *host)
{
	(void)a;
	(void)s;
	(void)u;
	(void)ldu;
	(void)vt;
	(void)ldvt;
	return solver_tell_bytes(h,
		types(type, type_s, type_u, type_vt, compute) && job_valid(jobu) &&
			job_valid(jobvt) && shape_valid(m, n, lda),
		solver_need(m, n), solver_type_of(type), device, host);
}

CALL(cusolverDnXgesvd, struct solver_handle *h, SOLVER_PARAMS, signed char jobu,
	signed char jobvt, int64_t m, int64_t n, int type, void *a, int64_t lda, int type_s,
	void *s, int type_u, void *u, int64_t ldu, int type_vt, void *vt, int64_t ldvt,
	int compute, void *work, size_t bytes, void *host, size_t host_bytes, int *info)
{
	(void)host;
	(void)host_bytes;
	if (h && !types(type, type_s, type_u, type_vt, compute))
		return SOLVER_INVALID_VALUE;
	return gesvd(h, solver_type_of(type), jobu, jobvt, m, n, a, lda, s, u, ldu, vt, ldvt,
		work, bytes, NULL, info);
}
