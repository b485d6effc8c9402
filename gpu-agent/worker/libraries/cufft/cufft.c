/* SPDX-License-Identifier: Apache-2.0
 *
 * The frames of cuFFT: what prepares a plan, gives it a number, runs and ends it.
 */
#include "gpu-agent/worker/loop/beside_call.h"
#include "gpu-agent/worker/libraries/cufft/plan.h"
#include "gpu-agent/worker/warm.h"
#include "gpu-agent/worker/worker_state.h"

/* The program's plans by number; NULL: there is none of it. */
static struct cufft_plan *named[CUFFT_PLANS + 1];

void cufft_warm(const struct worker *w, uint32_t major)
{
	plain_warm(w, &cufft_plain, major);
}

void cufft_forget(uint16_t context)
{
	for (int i = 0; i <= CUFFT_PLANS; i++)
		if (named[i] && named[i]->context == context)
			named[i] = NULL;
	cufft_plans_forget(context);
	cufft_callbacks_forget(context);
}

static bool whole_valid(const struct cufft_whole *c)
{
	const struct cufft_content *p = &c->plain;

	return p->form < CUFFT_FORM_LAST && p->rank >= 1 && p->rank <= CUFFT_RANK &&
	       p->embeds < 4 && p->properties < 1u << CUFFT_PROPERTIES &&
	       c->extra.policy <= CUFFT_POLICIES && c->extra.limited <= 1;
}

/* The library for a content; NULL: r->refused or the answer says why. */
static const struct cufft_library *whole_library(
	struct worker *w, struct request *r, const struct cufft_whole *c)
{
	if (whole_valid(c))
		return plain_open(w, r, &cufft_plain, c->plain.major);
	worker_refuse(r, CUDA_ERROR_INVALID_VALUE);
	return NULL;
}

/* False: the content names a set that is not there. */
static bool callbacks_hold(const struct request *r, const struct cufft_whole *c,
	struct cufft_callbacks **callbacks)
{
	uint32_t set = c->extra.callbacks;

	*callbacks = set ? cufft_callbacks_get(r->header.context, set) : NULL;
	return *callbacks || !set;
}

static int size_get(const struct request *r, const struct cufft_library *l,
	const struct cufft_whole *c, bool estimate, size_t *bytes)
{
	struct cufft_callbacks *callbacks;
	int status;

	if (!callbacks_hold(r, c, &callbacks))
		return CUFFT_INVALID_VALUE;
	beside_leave(r);
	status = cufft_size(l, c, callbacks, estimate, bytes);
	beside_enter(r);
	cufft_callbacks_put(callbacks);
	return status;
}

static struct cufft_plan *plan_get(struct worker *w, const struct request *r,
	const struct cufft_library *l, const struct cufft_whole *c, int *status)
{
	struct cufft_plan *plan = cufft_plan_find(r->header.context, c);
	struct cufft_callbacks *callbacks;

	*status = CUFFT_SUCCESS;
	if (plan)
		return plan;
	if (!callbacks_hold(r, c, &callbacks)) {
		*status = CUFFT_INVALID_VALUE;
		return NULL;
	}
	beside_leave(r);
	plan = cufft_plan_make(l, c, callbacks, status);
	beside_enter(r);
	cufft_callbacks_put(callbacks);
	return plan ? cufft_plan_keep(w, r->header.context, plan) : NULL;
}

/* What is asked of a content; where a plan is made for the answer, its limit too. */
static CUresult whole_ask(struct worker *w, struct request *r, const struct cufft_whole *c,
	uint32_t what, serve_function serve, uint64_t *bytes, uint64_t *limit)
{
	const struct cufft_library *l = whole_library(w, r, c);
	bool plan = what == CUFFT_WHAT_PLAN;
	const struct cufft_plan *made;
	size_t size = 0;
	int status;

	if (!l)
		return r->refused;
	if (what >= CUFFT_WHAT_LAST)
		return CUDA_ERROR_INVALID_VALUE;
	if (!(plan && cufft_plan_find(r->header.context, c)) && beside_serve(w, r, serve))
		return CUDA_SUCCESS;
	if (plan) {
		made = plan_get(w, r, l, c, &status);
		size = made ? made->bytes : 0;
		*limit = made ? made->limit : 0;
	} else {
		status = size_get(r, l, c, what == CUFFT_WHAT_ESTIMATE, &size);
	}
	*bytes = size;
	return plain_status(r, &cufft_plain, status);
}

static CUresult whole_name(
	struct worker *w, struct request *r, const struct cufft_whole *c, int32_t number)
{
	const struct cufft_library *l = whole_library(w, r, c);
	struct cufft_plan *plan;
	int status;

	if (!l)
		return r->refused;
	if (number < 1 || number > CUFFT_PLANS || named[number])
		return CUDA_ERROR_INVALID_VALUE;
	plan = plan_get(w, r, l, c, &status);
	if (plan) {
		plan->names++;
		named[number] = plan;
	}
	return plain_status(r, &cufft_plain, status);
}

CUresult serve_cufftXtGetSizeMany(struct worker *w, struct request *r)
{
	const struct wire_cufftXtGetSizeMany *body = (const void *)r->body;
	struct wire_cufftXtGetSizeMany_reply *answer = (void *)r->answer;
	uint64_t limit;

	return whole_ask(w, r, &(struct cufft_whole){.plain = body->content}, body->what,
		serve_cufftXtGetSizeMany, &answer->bytes, &limit);
}

CUresult serve_cufftXtMakePlanMany(struct worker *w, struct request *r)
{
	const struct wire_cufftXtMakePlanMany *body = (const void *)r->body;

	return whole_name(w, r, &(struct cufft_whole){.plain = body->content}, body->plan);
}

CUresult serve_cufftXtSetWorkAreaPolicy(struct worker *w, struct request *r)
{
	const struct wire_cufftXtSetWorkAreaPolicy *body = (const void *)r->body;
	struct wire_cufftXtSetWorkAreaPolicy_reply *answer = (void *)r->answer;
	struct cufft_whole c = {body->content, body->extra};

	if (body->plan)
		return whole_name(w, r, &c, body->plan);
	return whole_ask(w, r, &c, body->what, serve_cufftXtSetWorkAreaPolicy, &answer->bytes,
		&answer->limit);
}

CUresult serve_cufftDestroy(struct worker *w, struct request *r)
{
	const struct wire_cufftDestroy *body = (const void *)r->body;

	cufft_callbacks_end(r->header.context, body->callbacks);
	/* Its context, and it, may be gone already. */
	if (!body->plan)
		return CUDA_SUCCESS;
	if (body->plan < 1 || body->plan > CUFFT_PLANS)
		return CUDA_ERROR_INVALID_VALUE;
	if (named[body->plan]) {
		named[body->plan]->names--;
		named[body->plan] = NULL;
		cufft_plans_trim(w);
	}
	return CUDA_SUCCESS;
}

static int plan_set(struct cufft_plan *p, CUstream stream, CUdeviceptr area)
{
	int status = CUFFT_SUCCESS;

	if (!p->stream_set || p->stream != stream) {
		status = p->library->cufftSetStream(p->handle, (cudaStream_t)stream);
		p->stream_set = !status;
		p->stream = stream;
	}
	if (!status && area && area != p->area) {
		status = p->library->cufftSetWorkArea(p->handle, (void *)(uintptr_t)area);
		p->area = status ? 0 : area;
	}
	return status;
}

#define EXEC_COMPLEX(LETTERS)                                                                  \
	case CUFFT_##LETTERS:                                                                  \
		return l->cufftExec##LETTERS                                                   \
			       ? l->cufftExec##LETTERS(p->handle, in, out, body->direction)    \
			       : CUFFT_NOT_SUPPORTED
#define EXEC_REAL(LETTERS)                                                                     \
	case CUFFT_##LETTERS:                                                                  \
		return l->cufftExec##LETTERS ? l->cufftExec##LETTERS(p->handle, in, out)       \
					     : CUFFT_NOT_SUPPORTED
static int plan_exec(const struct cufft_plan *p, const struct wire_cufftXtExec *body)
{
	const struct cufft_library *l = p->library;
	void *in = (void *)(uintptr_t)body->input, *out = (void *)(uintptr_t)body->output;

	switch (body->type) {
		EXEC_COMPLEX(C2C);
		EXEC_COMPLEX(Z2Z);
		EXEC_REAL(R2C);
		EXEC_REAL(C2R);
		EXEC_REAL(D2Z);
		EXEC_REAL(Z2D);
	default:
		return l->cufftXtExec ? l->cufftXtExec(p->handle, in, out, body->direction)
				      : CUFFT_NOT_SUPPORTED;
	}
}

CUresult serve_cufftXtExec(struct worker *w, struct request *r)
{
	const struct wire_cufftXtExec *body = (const void *)r->body;
	CUstream stream = worker_stream(w, r, body->stream);
	struct cufft_plan *p =
		body->plan >= 1 && body->plan <= CUFFT_PLANS ? named[body->plan] : NULL;
	int status;

	if (worker_refused(r))
		return r->refused;
	if (!p || p->context != r->header.context)
		return plain_status(r, &cufft_plain, CUFFT_INVALID_PLAN);
	if (p->bytes)
		worker_range(w, r, body->area, p->bytes);
	if (worker_refused(r))
		return r->refused;
	status = plan_set(p, stream, p->bytes ? body->area : 0);
	return plain_status(r, &cufft_plain, status ? status : plan_exec(p, body));
}

CUresult serve_cufftXtSetJITCallback(struct worker *w, struct request *r)
{
	const struct wire_cufftXtSetJITCallback *body = (const void *)r->body;

	(void)w;
	return plain_status(r, &cufft_plain,
		cufft_callbacks_add(
			r->header.context, body, body + 1, r->header.body - sizeof(*body)));
}

CUresult serve_cufftXtSetCallbackSharedSize(struct worker *w, struct request *r)
{
	const struct wire_cufftXtSetCallbackSharedSize *body = (const void *)r->body;
	struct cufft_plan *p =
		body->plan >= 1 && body->plan <= CUFFT_PLANS ? named[body->plan] : NULL;

	if (!p || p->context != r->header.context || !p->content.extra.callbacks)
		return plain_status(r, &cufft_plain, CUFFT_INVALID_PLAN);
	if (!p->library->cufftXtSetCallbackSharedSize)
		return plain_without(w, r, &cufft_plain, "cufftXtSetCallbackSharedSize");
	return plain_status(r, &cufft_plain,
		p->library->cufftXtSetCallbackSharedSize(
			p->handle, (int)body->type, body->bytes));
}

CUresult serve_cufftGetVersion(struct worker *w, struct request *r)
{
	const struct wire_cufftGetVersion *req = (const void *)r->body;
	struct wire_cufftGetVersion_reply *answer = (void *)r->answer;
	const struct cufft_library *l = plain_open(w, r, &cufft_plain, req->major);

	if (!l)
		return r->refused;
	if (!l->cufftGetVersion)
		return worker_lacks(w, "cufftGetVersion");
	answer->plain.status = (uint32_t)l->cufftGetVersion(&answer->version);
	return CUDA_SUCCESS;
}
