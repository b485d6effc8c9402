/* SPDX-License-Identifier: Apache-2.0
 *
 * Windows: by the program's numbers, of each communicator. They are made in groups (group.c).
 */
#include <stdlib.h>

#include "gpu-agent/worker/libraries/nccl/nccl.h"

ncclWindow_t nccl_window_of(const struct nccl_comm *comm, uint32_t number)
{
	const struct nccl_window *one = comm->windows;

	while (one && one->number != number)
		one = one->next;
	return one ? one->window : NULL;
}

bool nccl_window_put(struct nccl_comm *comm, uint32_t number, ncclWindow_t window)
{
	struct nccl_window *one = calloc(1, sizeof(*one));

	if (!one)
		return false;
	*one = (struct nccl_window){.number = number, .window = window, .next = comm->windows};
	comm->windows = one;
	return true;
}

void nccl_windows_free(struct nccl_comm *comm)
{
	struct nccl_window *one;

	while ((one = comm->windows)) {
		comm->windows = one->next;
		free(one);
	}
}

/* NCCL may wait for the device in it. */
struct closing {
	struct nccl_job job;
	struct nccl_comm *comm;
	ncclComm_t of;
	ncclWindow_t window;
	CUcontext context;
	struct wire_ncclCommWindowDeregister_reply answer;
};

static void closing_work(struct nccl_job *job)
{
	struct closing *c = (struct closing *)job;
	const struct nccl_library *l = job->library;

	job->cuda->cuCtxSetCurrent(c->context);
	job->status = l->ncclCommWindowDeregister
			      ? l->ncclCommWindowDeregister(c->of, c->window)
			      : nccl_lacks(l, job->call, job->text);
}

static const void *closing_after(struct worker *w, struct nccl_job *job, uint32_t *bytes)
{
	struct closing *c = (struct closing *)job;

	(void)w;
	nccl_comm_put(c->comm);
	c->answer.plain.status = (uint32_t)job->status;
	*bytes = sizeof(c->answer);
	return &c->answer;
}

CUresult serve_ncclCommWindowDeregister(struct worker *w, struct request *r)
{
	const struct wire_ncclCommWindowDeregister *req = (const void *)r->body;
	struct nccl_comm *comm = nccl_ready(w, r, req->comm);
	struct nccl_window **at, *one;
	struct closing *c;

	if (!comm)
		return r->refused;
	for (at = &comm->windows; *at && (*at)->number != req->number; at = &(*at)->next)
		;
	one = *at;
	c = one ? calloc(1, sizeof(*c)) : NULL;
	if (!c)
		return one ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_ERROR_INVALID_VALUE;
	*at = one->next;
	c->job.library = comm->library;
	c->job.call = "ncclCommWindowDeregister";
	c->job.work = closing_work;
	c->job.after = closing_after;
	c->comm = comm;
	c->of = comm->comm;
	c->window = one->window;
	c->context = w->contexts[comm->context];
	free(one);
	comm->users++;
	return nccl_start(w, r, &c->job);
}
