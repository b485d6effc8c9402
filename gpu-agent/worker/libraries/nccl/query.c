/* SPDX-License-Identifier: Apache-2.0
 *
 * Versions, ids, registrations, and reductions of the program's own.
 */
#include <stdlib.h>
#include <string.h>

#include "gpu-agent/worker/libraries/nccl/nccl.h"

CUresult serve_ncclGetVersion(struct worker *w, struct request *r)
{
	const struct wire_ncclGetVersion *req = (const void *)r->body;
	struct wire_ncclGetVersion_reply *answer = (void *)r->answer;
	const struct nccl_library *l = nccl_open(w, r, req->major);

	if (!l)
		return r->refused;
	answer->plain.status =
		(uint32_t)(l->ncclGetVersion ? l->ncclGetVersion(&answer->version)
					     : ncclInvalidUsage);
	return CUDA_SUCCESS;
}

/* The first call of NCCL's looks for networks, which takes a while. */
struct identifying {
	struct nccl_job job;
	struct wire_ncclGetUniqueId_reply answer;
};

static void identifying_work(struct nccl_job *job)
{
	struct identifying *i = (struct identifying *)job;

	job->status = job->library->ncclGetUniqueId(&i->answer.id);
}

static const void *identifying_after(struct worker *w, struct nccl_job *job, uint32_t *bytes)
{
	struct identifying *i = (struct identifying *)job;

	(void)w;
	i->answer.plain.status = (uint32_t)job->status;
	*bytes = sizeof(i->answer);
	return &i->answer;
}

CUresult serve_ncclGetUniqueId(struct worker *w, struct request *r)
{
	const struct wire_ncclGetUniqueId *req = (const void *)r->body;
	const struct nccl_library *l = nccl_open(w, r, req->major);
	struct identifying *i = l ? calloc(1, sizeof(*i)) : NULL;

	if (!i)
		return l ? CUDA_ERROR_OUT_OF_MEMORY : r->refused;
	i->job.library = l;
	i->job.call = "ncclGetUniqueId";
	i->job.work = identifying_work;
	i->job.after = identifying_after;
	return nccl_start(w, r, &i->job);
}

/* It may tell other ranks. */
struct calling {
	struct nccl_job job;
	struct nccl_comm *comm;
	ncclComm_t of;
	struct wire_ncclCommGetUniqueId_reply answer;
};

static void calling_work(struct nccl_job *job)
{
	struct calling *c = (struct calling *)job;

	job->status = job->library->ncclCommGetUniqueId
			      ? job->library->ncclCommGetUniqueId(c->of, &c->answer.id)
			      : nccl_lacks(job->library, job->call, job->text);
}

static const void *calling_after(struct worker *w, struct nccl_job *job, uint32_t *bytes)
{
	struct calling *c = (struct calling *)job;

	(void)w;
	nccl_comm_put(c->comm);
	c->answer.plain.status = (uint32_t)job->status;
	*bytes = sizeof(c->answer);
	return &c->answer;
}

CUresult serve_ncclCommGetUniqueId(struct worker *w, struct request *r)
{
	const struct wire_ncclCommGetUniqueId *req = (const void *)r->body;
	struct nccl_comm *comm = nccl_ready(w, r, req->comm);
	struct calling *c = comm ? calloc(1, sizeof(*c)) : NULL;

	if (!c)
		return comm ? CUDA_ERROR_OUT_OF_MEMORY : r->refused;
	c->job.library = comm->library;
	c->job.call = "ncclCommGetUniqueId";
	c->job.work = calling_work;
	c->job.after = calling_after;
	c->comm = comm;
	c->of = comm->comm;
	comm->users++;
	return nccl_start(w, r, &c->job);
}

CUresult serve_ncclCommMemStats(struct worker *w, struct request *r)
{
	const struct wire_ncclCommMemStats *req = (const void *)r->body;
	struct wire_ncclCommMemStats_reply *answer = (void *)r->answer;
	struct nccl_comm *comm = nccl_ready(w, r, req->comm);
	const struct nccl_library *l = comm ? comm->library : NULL;
	char text[NCCL_TEXT] = "ncclCommMemStats";
	int status;

	if (!l)
		return r->refused;
	status = l->ncclCommMemStats
			 ? l->ncclCommMemStats(comm->comm, req->stat, &answer->value)
			 : nccl_lacks(l, "ncclCommMemStats", text);
	answer->plain.status = (uint32_t)status;
	if (status)
		nccl_note_text(text);
	return CUDA_SUCCESS;
}

CUresult serve_ncclCommRegister(struct worker *w, struct request *r)
{
	const struct wire_ncclCommRegister *req = (const void *)r->body;
	struct nccl_comm *comm = nccl_ready(w, r, req->comm);
	void *memory = (void *)(uintptr_t)worker_range(w, r, req->address, req->bytes);
	struct nccl_registration *one;

	if (worker_refused(r) || !req->number)
		return r->refused ? r->refused : CUDA_ERROR_INVALID_VALUE;
	/* An older NCCL registers nothing: it works all the same. */
	one = comm->library->ncclCommRegister ? calloc(1, sizeof(*one)) : NULL;
	if (!one)
		return CUDA_SUCCESS;
	one->number = req->number;
	if (comm->library->ncclCommRegister(comm->comm, memory, req->bytes, &one->handle)) {
		free(one);
		return CUDA_SUCCESS;
	}
	one->next = comm->registrations;
	comm->registrations = one;
	return CUDA_SUCCESS;
}

CUresult serve_ncclCommDeregister(struct worker *w, struct request *r)
{
	const struct wire_ncclCommDeregister *req = (const void *)r->body;
	struct nccl_comm *comm = nccl_ready(w, r, req->comm);
	struct nccl_registration **at, *one;

	if (!comm)
		return r->refused;
	for (at = &comm->registrations; *at && (*at)->number != req->number; at = &(*at)->next)
		;
	one = *at;
	if (!one)
		return CUDA_SUCCESS;
	*at = one->next;
	if (comm->library->ncclCommDeregister)
		nccl_failed(comm, comm->library->ncclCommDeregister(comm->comm, one->handle),
			"ncclCommDeregister");
	free(one);
	return CUDA_SUCCESS;
}

CUresult serve_ncclRedOpCreatePreMulSum(struct worker *w, struct request *r)
{
	const struct wire_ncclRedOpCreatePreMulSum *req = (const void *)r->body;
	struct nccl_comm *comm = nccl_ready(w, r, req->comm);
	uint64_t immediate = req->scalar;
	uint32_t bytes = nccl_type_bytes(req->type);
	void *scalar = &immediate;
	int status;

	if (!bytes || req->number >= NCCL_REDUCTIONS ||
		(req->residence != ncclScalarDevice &&
			req->residence != ncclScalarHostImmediate))
		worker_refuse(r, CUDA_ERROR_INVALID_VALUE);
	if (req->residence == ncclScalarDevice)
		scalar = (void *)(uintptr_t)worker_range(w, r, req->scalar, bytes);
	if (worker_refused(r) || comm->reduces[req->number])
		return r->refused ? r->refused : CUDA_ERROR_INVALID_VALUE;
	status = comm->library->ncclRedOpCreatePreMulSum
			 ? comm->library->ncclRedOpCreatePreMulSum(
				   &comm->reductions[req->number], scalar, req->type,
				   req->residence, comm->comm)
			 : ncclInvalidUsage;
	comm->reduces[req->number] = !status;
	nccl_failed(comm, status, "ncclRedOpCreatePreMulSum");
	return CUDA_SUCCESS;
}

CUresult serve_ncclRedOpDestroy(struct worker *w, struct request *r)
{
	const struct wire_ncclRedOpDestroy *req = (const void *)r->body;
	struct nccl_comm *comm = nccl_ready(w, r, req->comm);

	if (!comm || req->number >= NCCL_REDUCTIONS || !comm->reduces[req->number])
		return comm ? CUDA_ERROR_INVALID_VALUE : r->refused;
	comm->reduces[req->number] = false;
	if (comm->library->ncclRedOpDestroy)
		nccl_failed(comm,
			comm->library->ncclRedOpDestroy(
				comm->reductions[req->number], comm->comm),
			"ncclRedOpDestroy");
	return CUDA_SUCCESS;
}
