/* SPDX-License-Identifier: Apache-2.0
 *
 * See plan.h.
 */
#include "gpu-agent/worker/libraries/cufft/plan.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "gpu-agent/worker/loop/closing.h"
#include "gpu-agent/worker/worker_state.h"

#define SPARE 32 /* plans that no number stands for: what a program makes again */

static struct cufft_plan *plans;
static uint64_t clock_ticks;

/* The lists, as the library takes them: of int or of long long. */
struct lists {
	long long n[CUFFT_RANK], in[CUFFT_RANK], out[CUFFT_RANK];
	int small_n[CUFFT_RANK], small_in[CUFFT_RANK], small_out[CUFFT_RANK];
};

static void lists_copy(struct lists *l, const struct cufft_content *c)
{
	for (int i = 0; i < CUFFT_RANK; i++) {
		l->n[i] = c->n[i];
		l->in[i] = c->in_embed[i];
		l->out[i] = c->out_embed[i];
		l->small_n[i] = (int)c->n[i];
		l->small_in[i] = (int)c->in_embed[i];
		l->small_out[i] = (int)c->out_embed[i];
	}
}

#define EMBED(LIST, BIT) (c->embeds & (BIT) ? (LIST) : NULL)
#define LAYOUT(N, IN, OUT, TYPE)                                                               \
	c->rank, N, EMBED(IN, 1u), (TYPE)c->in_stride, (TYPE)c->in_dist, EMBED(OUT, 2u),       \
		(TYPE)c->out_stride, (TYPE)c->out_dist, c->in_type, (TYPE)c->batch, bytes
#define CALL(NAME, ...) (l->NAME ? l->NAME(__VA_ARGS__) : CUFFT_NOT_SUPPORTED)
#define N1 (int)c->n[0], c->in_type, (int)c->batch, bytes
#define N2 (int)c->n[0], (int)c->n[1], c->in_type, bytes
#define N3 (int)c->n[0], (int)c->n[1], (int)c->n[2], c->in_type, bytes
#define MANY LAYOUT(s.small_n, s.small_in, s.small_out, int)
#define MANY64 LAYOUT(s.n, s.in, s.out, long long)
#define XT                                                                                     \
	c->rank, s.n, EMBED(s.in, 1u), c->in_stride, c->in_dist, (cudaDataType)c->in_type,     \
		EMBED(s.out, 2u), c->out_stride, c->out_dist, (cudaDataType)c->out_type,       \
		c->batch, bytes, (cudaDataType)c->run_type

static int plan_make(const struct cufft_library *l, cufftHandle plan,
	const struct cufft_content *c, size_t *bytes)
{
	struct lists s;

	lists_copy(&s, c);
	switch (c->form) {
	case CUFFT_FORM_1D: return CALL(cufftMakePlan1d, plan, N1);
	case CUFFT_FORM_2D: return CALL(cufftMakePlan2d, plan, N2);
	case CUFFT_FORM_3D: return CALL(cufftMakePlan3d, plan, N3);
	case CUFFT_FORM_MANY: return CALL(cufftMakePlanMany, plan, MANY);
	case CUFFT_FORM_MANY64: return CALL(cufftMakePlanMany64, plan, MANY64);
	default: return CALL(cufftXtMakePlanMany, plan, XT);
	}
}

static int plan_size(const struct cufft_library *l, cufftHandle plan,
	const struct cufft_content *c, size_t *bytes)
{
	struct lists s;

	lists_copy(&s, c);
	switch (c->form) {
	case CUFFT_FORM_1D: return CALL(cufftGetSize1d, plan, N1);
	case CUFFT_FORM_2D: return CALL(cufftGetSize2d, plan, N2);
	case CUFFT_FORM_3D: return CALL(cufftGetSize3d, plan, N3);
	case CUFFT_FORM_MANY: return CALL(cufftGetSizeMany, plan, MANY);
	case CUFFT_FORM_MANY64: return CALL(cufftGetSizeMany64, plan, MANY64);
	default: return CALL(cufftXtGetSizeMany, plan, XT);
	}
}

static int plan_estimate(
	const struct cufft_library *l, const struct cufft_content *c, size_t *bytes)
{
	struct lists s;

	lists_copy(&s, c);
	switch (c->form) {
	case CUFFT_FORM_1D: return CALL(cufftEstimate1d, N1);
	case CUFFT_FORM_2D: return CALL(cufftEstimate2d, N2);
	case CUFFT_FORM_3D: return CALL(cufftEstimate3d, N3);
	default: return CALL(cufftEstimateMany, MANY);
	}
}

/* A plan of the library's without a work area, as the content's properties say. */
static int plan_create(const struct cufft_library *l, const struct cufft_whole *c,
	struct cufft_callbacks *callbacks, cufftHandle *plan)
{
	int status = l->cufftCreate(plan);

	if (status)
		return status;
	status = l->cufftSetAutoAllocation(*plan, 0);
	for (int i = 0; !status && i < CUFFT_PROPERTIES; i++)
		if (c->plain.properties & 1u << i)
			status = CALL(
				cufftSetPlanPropertyInt64, *plan, i + 1, c->plain.property[i]);
	if (!status)
		status = cufft_callbacks_set(l, *plan, callbacks);
	if (status)
		l->cufftDestroy(*plan);
	return status;
}

/* What is told of the work area once the library has made the plan. */
static int plan_limit(struct cufft_plan *p)
{
	const struct cufft_extra *extra = &p->content.extra;
	const struct cufft_library *l = p->library;
	int status;

	if (!extra->policy)
		return CUFFT_SUCCESS;
	p->limit = extra->limit;
	status = CALL(cufftXtSetWorkAreaPolicy, p->handle, (int)extra->policy - 1,
		extra->limited ? &p->limit : NULL);
	return status ? status : CALL(cufftGetSize, p->handle, &p->bytes);
}

int cufft_size(const struct cufft_library *l, const struct cufft_whole *c,
	struct cufft_callbacks *callbacks, bool estimate, size_t *bytes)
{
	cufftHandle plan;
	int status;

	if (estimate)
		return plan_estimate(l, &c->plain, bytes);
	status = plan_create(l, c, callbacks, &plan);
	if (status)
		return status;
	status = plan_size(l, plan, &c->plain, bytes);
	l->cufftDestroy(plan);
	return status;
}

struct cufft_plan *cufft_plan_find(uint16_t context, const struct cufft_whole *c)
{
	struct cufft_plan *p = plans;

	while (p && (p->context != context || memcmp(&p->content, c, sizeof(*c))))
		p = p->next;
	if (p)
		p->used = ++clock_ticks;
	return p;
}

struct cufft_plan *cufft_plan_make(const struct cufft_library *l, const struct cufft_whole *c,
	struct cufft_callbacks *callbacks, int *status)
{
	struct cufft_plan *p = calloc(1, sizeof(*p));

	*status = p ? plan_create(l, c, callbacks, &p->handle) : CUFFT_ALLOC_FAILED;
	if (*status) {
		free(p);
		return NULL;
	}
	p->library = l;
	p->content = *c;
	*status = plan_make(l, p->handle, &c->plain, &p->bytes);
	if (!*status)
		*status = plan_limit(p);
	if (!*status)
		return p;
	cufft_plan_drop(p);
	return NULL;
}

void cufft_plan_drop(struct cufft_plan *made)
{
	made->library->cufftDestroy(made->handle);
	free(made);
}

struct cufft_plan *cufft_plan_keep(struct worker *w, uint16_t context, struct cufft_plan *made)
{
	struct cufft_plan *other = cufft_plan_find(context, &made->content);

	/* Two threads may have asked for it. */
	if (other) {
		cufft_plan_drop(made);
		return other;
	}
	made->context = context;
	made->used = ++clock_ticks;
	made->next = plans;
	plans = made;
	cufft_plans_trim(w);
	return made;
}

static CUresult plan_end(struct worker *w, void *object)
{
	struct cufft_plan *p = object;
	CUresult status = worker_use(w, p->context);

	if (!status)
		status = library_result(
			&cufft_plain.statuses, p->library->cufftDestroy(p->handle));
	free(p);
	return status;
}

void cufft_plans_trim(struct worker *w)
{
	struct cufft_plan **oldest = NULL, *p;
	unsigned spare = 0;

	for (struct cufft_plan **at = &plans; *at; at = &(*at)->next) {
		if ((*at)->names)
			continue;
		spare++;
		if (!oldest || (*at)->used < (*oldest)->used)
			oldest = at;
	}
	if (spare <= SPARE)
		return;
	p = *oldest;
	*oldest = p->next;
	closing_do(w, plan_end, p);
}

void cufft_plans_forget(uint16_t context)
{
	struct cufft_plan **at = &plans;

	while (*at) {
		struct cufft_plan *p = *at;

		if (p->context != context) {
			at = &p->next;
			continue;
		}
		*at = p->next;
		cufft_plan_drop(p);
	}
}
