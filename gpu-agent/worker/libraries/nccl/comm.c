/* SPDX-License-Identifier: Apache-2.0
 *
 * Communicators: made and ended beside the loop, those of a group together.
 */
#include <stdlib.h>
#include <string.h>

#include "gpu-agent/worker/libraries/nccl/nccl.h"

struct nccl_comm *nccl_comm(struct worker *w, struct request *r, uint64_t handle)
{
	return worker_handle(w, r, handle, KIND_ncclComm);
}

struct nccl_comm *nccl_ready(struct worker *w, struct request *r, uint64_t handle)
{
	struct nccl_comm *comm = nccl_comm(w, r, handle);

	if (comm && (comm->making || !comm->comm)) {
		worker_refuse(r, CUDA_ERROR_INVALID_HANDLE);
		return NULL;
	}
	return comm;
}

static void comm_free(struct nccl_comm *comm)
{
	struct nccl_registration *one;

	while ((one = comm->registrations)) {
		comm->registrations = one->next;
		free(one);
	}
	nccl_windows_free(comm);
	free(comm);
}

void nccl_comm_put(struct nccl_comm *comm)
{
	if (!--comm->users && comm->ended)
		comm_free(comm);
}

void nccl_failed(struct nccl_comm *comm, int status, const char *call)
{
	const char *text =
		comm->library->ncclGetLastError ? comm->library->ncclGetLastError(NULL) : NULL;

	if (!status || status == ncclInProgress)
		return;
	if (!comm->status)
		comm->status = status;
	nccl_note_text(text && *text ? text : call);
	log_info(
		"nccl.failed", "call=%s status=%d text=\"%s\"", call, status, text ? text : "");
}

/* --- making ------------------------------------------------------------------------------- */

struct one {
	struct nccl_comm *comm; /* ours */
	CUcontext context;
	uint32_t form; /* enum nccl_form */
	int32_t nranks, rank;
	uint32_t count;
	void *more; /* ids, or ranks that are left out */
	bool configured;
	ncclConfig_t config;
	char net_name[NCCL_NAME], comm_name[NCCL_NAME];
	struct nccl_comm *parent; /* users of it are counted */
	ncclComm_t of, made;	  /* the library's */
};

struct making {
	struct nccl_job job;
	struct one *ones;
	uint32_t count;
	struct wire_ncclCommInitRank_reply answer;
};

static int make_one(struct nccl_job *job, struct one *o)
{
	const struct nccl_library *l = job->library;
	ncclConfig_t *config = o->configured ? &o->config : NULL;
	const ncclUniqueId *id = o->more;

	switch (o->form) {
	case NCCL_FORM_SPLIT:
		return !l->ncclCommSplit
			       ? nccl_lacks(l, "ncclCommSplit", job->text)
			       : l->ncclCommSplit(o->of, o->nranks, o->rank, &o->made, config);
	case NCCL_FORM_SHRINK:
		return !l->ncclCommShrink ? nccl_lacks(l, "ncclCommShrink", job->text)
					  : l->ncclCommShrink(o->of, o->more, (int)o->count,
						    &o->made, config, o->nranks);
	case NCCL_FORM_GROW:
		return !l->ncclCommGrow
			       ? nccl_lacks(l, "ncclCommGrow", job->text)
			       : l->ncclCommGrow(o->of, o->nranks, o->count ? id : NULL,
					 o->rank, &o->made, config);
	default:
		if (o->count == 1)
			return l->ncclCommInitRankConfig(
				&o->made, o->nranks, *id, o->rank, config);
		return !l->ncclCommInitRankScalable
			       ? nccl_lacks(l, "ncclCommInitRankScalable", job->text)
			       : l->ncclCommInitRankScalable(&o->made, o->nranks, o->rank,
					 (int)o->count, o->more, config);
	}
}

static void making_work(struct nccl_job *job)
{
	struct making *m = (struct making *)job;
	const struct nccl_library *l = job->library;
	int ended;

	if (m->count > 1)
		job->status = l->ncclGroupStart();
	for (uint32_t i = 0; i < m->count && !job->status; i++) {
		if (job->cuda->cuCtxSetCurrent(m->ones[i].context))
			job->status = ncclUnhandledCudaError;
		else
			job->status = make_one(job, &m->ones[i]);
	}
	if (job->status && !job->text[0])
		nccl_explain(job);
	if (m->count > 1) {
		ended = l->ncclGroupEnd();
		if (!job->status)
			job->status = ended;
	}
	for (uint32_t i = 0; i < m->count && !job->status; i++) {
		struct nccl_made *made = &m->answer.made[i];

		if (!m->ones[i].made)
			made->rank = -1;
		else if (l->ncclCommCount(m->ones[i].made, &made->nranks) ||
			 l->ncclCommUserRank(m->ones[i].made, &made->rank))
			job->status = ncclInternalError;
	}
}

static void ones_free(struct one *ones, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		free(ones[i].more);
	free(ones);
}

/* The program has no name for it any more: who waited drops that of what was not made. */
static void comm_unname(struct worker *w, struct nccl_comm *comm)
{
	struct name *name = handles_find(w, comm->handle, KIND_ncclComm);

	if (name && name->object == comm)
		handles_forget(w, name);
	comm->ended = true;
}

static const void *making_after(struct worker *w, struct nccl_job *job, uint32_t *bytes)
{
	struct making *m = (struct making *)job;

	m->answer.plain.status = (uint32_t)job->status;
	*bytes = sizeof(m->answer);
	for (uint32_t i = 0; i < m->count; i++) {
		struct one *o = &m->ones[i];
		struct nccl_comm *comm = o->comm;

		comm->making = false;
		comm->status = job->status;
		comm->comm = o->made;
		comm->nranks = m->answer.made[i].nranks;
		comm->rank = m->answer.made[i].rank;
		if (job->late || (job->awaited && (job->status || !o->made)))
			comm_unname(w, comm);
		/* Nobody has it. */
		if (o->made && (job->status || comm->ended)) {
			job->library->ncclCommAbort(o->made);
			comm->comm = NULL;
		}
		if (o->parent)
			nccl_comm_put(o->parent);
		nccl_comm_put(comm);
	}
	ones_free(m->ones, m->count);
	return &m->answer;
}

/* What lies behind the struct, by the form. */
static const struct behind {
	uint32_t least, most, each;
} behind[NCCL_FORM_LAST] = {
	[NCCL_FORM_RANK] = {1, NCCL_IDS, sizeof(ncclUniqueId)},
	[NCCL_FORM_SHRINK] = {1, NCCL_EXCLUDED, sizeof(int32_t)},
	[NCCL_FORM_GROW] = {0, 1, sizeof(ncclUniqueId)},
};

/* Whether there may be such a rank; one that a communicator has keeps its own when it grows. */
static bool ranks_right(const struct wire_ncclCommInitRank *body)
{
	if (body->form != NCCL_FORM_RANK && body->form != NCCL_FORM_GROW)
		return true;
	if (body->nranks < 1 || body->nranks > NCCL_RANKS)
		return false;
	if (body->form == NCCL_FORM_GROW && body->parent)
		return body->rank == -1;
	return body->rank >= 0 && body->rank < body->nranks && body->count;
}

/* What the frame says, checked. False: refused. */
static bool one_get(struct worker *w, struct request *r, const struct nccl_library *l,
	const struct wire_ncclCommInitRank *body, struct one *o)
{
	const struct behind *b = &behind[body->form < NCCL_FORM_LAST ? body->form : 0];
	size_t each = b->each;

	*o = (struct one){.form = body->form,
		.nranks = body->nranks,
		.rank = body->rank,
		.count = body->count,
		.configured = body->configured,
		.config = body->config};
	if (body->form >= NCCL_FORM_LAST || body->count > b->most || body->count < b->least ||
		r->header.body != sizeof(*body) + body->count * each ||
		r->header.context >= CONTEXT_MAX || !w->contexts[r->header.context] ||
		!ranks_right(body) || body->net_name[NCCL_NAME - 1] ||
		body->comm_name[NCCL_NAME - 1] ||
		(body->configured && (body->config.size > sizeof(o->config) ||
					     body->config.magic != NCCL_API_MAGIC)))
		return false;
	if (body->form != NCCL_FORM_RANK && (body->form != NCCL_FORM_GROW || body->parent)) {
		o->parent = nccl_ready(w, r, body->parent);
		o->of = o->parent ? o->parent->comm : NULL;
	}
	o->context = w->contexts[r->header.context];
	memcpy(o->net_name, body->net_name, NCCL_NAME);
	memcpy(o->comm_name, body->comm_name, NCCL_NAME);
	o->more = malloc(body->count * each + 1);
	o->comm = calloc(1, sizeof(*o->comm));
	if (!o->more || !o->comm || worker_refused(r))
		return false;
	memcpy(o->more, body + 1, body->count * each);
	*o->comm = (struct nccl_comm){.library = l,
		.handle = body->comm,
		.context = r->header.context,
		.making = true,
		.users = 1};
	worker_bind(w, r, body->comm, KIND_ncclComm, o->comm);
	return !worker_refused(r);
}

/* The one at its place, where its configuration's texts have addresses. */
static void one_init(struct one *o)
{
	o->config.netName = o->net_name[0] ? o->net_name : NULL;
	o->config.commName = o->comm_name[0] ? o->comm_name : NULL;
	o->config.blocking = 1; /* nobody but its job's thread waits */
	if (o->parent)
		o->parent->users++;
}

/* A frame of the group was refused: of the others nothing becomes. */
static CUresult making_refuse(
	struct worker *w, struct request *r, struct nccl_parts *parts, CUresult status)
{
	struct one *ones = parts->list;

	for (uint32_t i = 0; i < parts->count; i++) {
		comm_unname(w, ones[i].comm);
		nccl_comm_put(ones[i].comm);
	}
	ones_free(ones, parts->count);
	nccl_parts_end(parts);
	return r->refused ? r->refused : status;
}

static CUresult making_start(struct worker *w, struct request *r, const struct nccl_library *l,
	struct one *ones, uint32_t count)
{
	struct making *m = calloc(1, sizeof(*m));

	if (!m)
		return making_refuse(w, r, &(struct nccl_parts){.list = ones, .count = count},
			CUDA_ERROR_OUT_OF_MEMORY);
	m->job.library = l;
	m->job.call = "ncclCommInitRank";
	m->job.work = making_work;
	m->job.after = making_after;
	m->ones = ones;
	m->count = count;
	for (uint32_t i = 0; i < count; i++)
		one_init(&ones[i]);
	return nccl_start(w, r, &m->job);
}

CUresult serve_ncclCommInitRank(struct worker *w, struct request *r)
{
	const struct wire_ncclCommInitRank *body = (const void *)r->body;
	const struct nccl_library *l = nccl_open(w, r, body->major);
	struct nccl_parts alone = {0}, *parts = &alone;
	struct one one, *list;
	uint32_t count;

	if (!l)
		return r->refused;
	if (body->group)
		parts = nccl_parts(body->group, true);
	if (!parts || parts->count == NCCL_MAKINGS || (body->more && !body->group))
		return CUDA_ERROR_INVALID_VALUE;
	list = realloc(parts->list, (parts->count + 1) * sizeof(*list));
	if (!list)
		return making_refuse(w, r, parts, CUDA_ERROR_OUT_OF_MEMORY);
	parts->list = list;
	if (!one_get(w, r, l, body, &one)) {
		free(one.more);
		free(one.comm); /* it got no name */
		return making_refuse(w, r, parts, CUDA_ERROR_INVALID_VALUE);
	}
	list[parts->count++] = one;
	if (body->more)
		return CUDA_SUCCESS;
	count = parts->count;
	nccl_parts_end(parts);
	return making_start(w, r, l, list, count);
}

/* --- their end ---------------------------------------------------------------------------- */

struct ending {
	struct nccl_job job;
	struct nccl_comm *comm;
	ncclComm_t of;
	CUcontext context;
	uint32_t end; /* enum nccl_end */
	struct wire_ncclCommDestroy_reply answer;
};

static void ending_work(struct nccl_job *job)
{
	struct ending *e = (struct ending *)job;
	const struct nccl_library *l = job->library;

	job->cuda->cuCtxSetCurrent(e->context);
	switch (e->end) {
	case NCCL_END_FINALIZE:
		job->status =
			l->ncclCommFinalize ? l->ncclCommFinalize(e->of) : ncclInvalidUsage;
		break;
	case NCCL_END_REVOKE:
		job->status = l->ncclCommRevoke ? l->ncclCommRevoke(e->of, NCCL_REVOKE_DEFAULT)
						: ncclInvalidUsage;
		break;
	case NCCL_END_ABORT: job->status = l->ncclCommAbort(e->of); break;
	default: job->status = l->ncclCommDestroy(e->of); break;
	}
}

static const void *ending_after(struct worker *w, struct nccl_job *job, uint32_t *bytes)
{
	struct ending *e = (struct ending *)job;

	(void)w;
	e->answer.plain.status = (uint32_t)job->status;
	*bytes = sizeof(e->answer);
	nccl_comm_put(e->comm);
	return &e->answer;
}

CUresult serve_ncclCommDestroy(struct worker *w, struct request *r)
{
	const struct wire_ncclCommDestroy *body = (const void *)r->body;
	struct nccl_comm *comm = nccl_comm(w, r, body->comm);
	bool leaves = body->end == NCCL_END_DESTROY || body->end == NCCL_END_ABORT;
	struct ending *e;

	if (!comm)
		return r->refused;
	if (body->end >= NCCL_END_LAST)
		return CUDA_ERROR_INVALID_VALUE;
	if (leaves) {
		worker_unbind(w, r, body->comm, KIND_ncclComm);
		comm->ended = true;
	}
	/* One that is being made is aborted once it is; of one that failed there is nothing. */
	if (comm->making || !comm->comm) {
		if (leaves && !comm->users)
			comm_free(comm);
		return leaves ? CUDA_SUCCESS : plain_status(r, &nccl_plain, ncclInvalidUsage);
	}
	e = calloc(1, sizeof(*e));
	if (!e)
		return CUDA_ERROR_OUT_OF_MEMORY;
	e->job.library = comm->library;
	e->job.call = "ncclCommDestroy";
	e->job.work = ending_work;
	e->job.after = ending_after;
	e->comm = comm;
	e->of = comm->comm;
	e->context = w->contexts[comm->context];
	e->end = body->end;
	comm->users++;
	if (leaves)
		comm->comm = NULL;
	return nccl_start(w, r, &e->job);
}

CUresult serve_ncclCommGetAsyncError(struct worker *w, struct request *r)
{
	const struct wire_ncclCommGetAsyncError *body = (const void *)r->body;
	struct wire_ncclCommGetAsyncError_reply *answer = (void *)r->answer;
	struct nccl_comm *comm = nccl_comm(w, r, body->comm);

	if (!comm)
		return r->refused;
	answer->nranks = comm->nranks;
	answer->rank = comm->rank;
	answer->error = comm->making ? ncclInProgress : comm->status;
	if (!answer->error && comm->comm)
		answer->plain.status = (uint32_t)comm->library->ncclCommGetAsyncError(
			comm->comm, &answer->error);
	if (answer->error && answer->error != ncclInProgress && !comm->status)
		nccl_failed(comm, answer->error, "ncclCommGetAsyncError");
	return CUDA_SUCCESS;
}
