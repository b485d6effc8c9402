/* SPDX-License-Identifier: Apache-2.0
 *
 * The frames of cuFFT: what prepares a plan, gives it a number, runs and ends it.
 */
#include "gpu-agent/worker/beside_call.h"
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
}

static bool content_valid(const struct cufft_content *c)
{
	return c->form < CUFFT_FORM_LAST && c->rank >= 1 && c->rank <= CUFFT_RANK &&
	       c->embeds < 4 && c->properties < 1u << CUFFT_PROPERTIES;
}

/* The library for a content; NULL: r->refused or the answer says why. */
static const struct cufft_library *content_library(
	struct worker *w, struct request *r, const struct cufft_content *c)
{
	if (content_valid(c))
		return plain_open(w, r, &cufft_plain, c->major);
	worker_refuse(r, CUDA_ERROR_INVALID_VALUE);
	return NULL;
}

static struct cufft_plan *plan_get(struct worker *w, const struct request *r,
	const struct cufft_library *l, const struct cufft_content *c, int *status)
{
	struct cufft_plan *plan = cufft_plan_find(r->header.context, c);

	*status = CUFFT_SUCCESS;
	if (plan)
		return plan;
	beside_leave(r);
	plan = cufft_plan_make(l, c, status);
	beside_enter(r);
	return plan ? cufft_plan_keep(w, r->header.context, plan) : NULL;
}

CUresult serve_cufftXtGetSizeMany(struct worker *w, struct request *r)
{
	const struct wire_cufftXtGetSizeMany *body = (const void *)r->body;
	struct wire_cufftXtGetSizeMany_reply *answer = (void *)r->answer;
	const struct cufft_library *l = content_library(w, r, &body->content);
	bool plan = body->what == CUFFT_WHAT_PLAN;
	const struct cufft_plan *made;
	size_t bytes = 0;
	int status;

	if (!l)
		return r->refused;
	if (body->what >= CUFFT_WHAT_LAST)
		return CUDA_ERROR_INVALID_VALUE;
	if (!(plan && cufft_plan_find(r->header.context, &body->content)) &&
		beside_serve(w, r, serve_cufftXtGetSizeMany))
		return CUDA_SUCCESS;
	if (plan) {
		made = plan_get(w, r, l, &body->content, &status);
		bytes = made ? made->bytes : 0;
	} else {
		beside_leave(r);
		status = cufft_size(
			l, &body->content, body->what == CUFFT_WHAT_ESTIMATE, &bytes);
		beside_enter(r);
	}
	answer->bytes = bytes;
	return plain_status(r, &cufft_plain, status);
}

CUresult serve_cufftXtMakePlanMany(struct worker *w, struct request *r)
{
	const struct wire_cufftXtMakePlanMany *body = (const void *)r->body;
	const struct cufft_library *l = content_library(w, r, &body->content);
	struct cufft_plan *plan;
	int status;

	if (!l)
		return r->refused;
	if (body->plan < 1 || body->plan > CUFFT_PLANS || named[body->plan])
		return CUDA_ERROR_INVALID_VALUE;
	plan = plan_get(w, r, l, &body->content, &status);
	if (plan) {
		plan->names++;
		named[body->plan] = plan;
	}
	return plain_status(r, &cufft_plain, status);
}

CUresult serve_cufftDestroy(struct worker *w, struct request *r)
{
	const struct wire_cufftDestroy *body = (const void *)r->body;

	/* Its context, and it, may be gone already. */
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
