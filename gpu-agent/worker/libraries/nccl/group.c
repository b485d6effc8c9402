/* SPDX-License-Identifier: Apache-2.0
 *
 * Groups of operations. One that somebody waits for is the first of its kind: NCCL may connect
 * ranks in it, so it runs beside the loop. Those behind it are issued by the loop.
 */
#include <stdlib.h>
#include <string.h>

#include "gpu-agent/worker/libraries/nccl/nccl.h"
#include "gpu-agent/worker/limits.h"

struct work {
	struct nccl_comm *comm;
	ncclComm_t of;
	struct nccl_key key;
	const void *send;
	void *receive;
	size_t count;
	CUstream stream;
	int op;
};

struct grouping {
	struct nccl_job job;
	CUcontext context;
	struct work *works;
	uint32_t count;
	struct library_reply answer;
};

/* As NCCL before 2.28 has it: by sends and receives, in a group. */
static int exchange(const struct nccl_library *l, const struct work *k)
{
	size_t step = k->count * nccl_type_bytes(k->key.type);
	bool gathers = k->key.function == NCCL_GATHER,
	     scatters = k->key.function == NCCL_SCATTER;
	int ranks = k->comm->nranks, peer = k->key.peer, status = l->ncclGroupStart(), ended;
	const char *send = k->send;
	char *receive = k->receive;

	for (int i = 0; i < ranks && !status; i++) {
		if ((gathers && i == peer) || (scatters && k->comm->rank == peer) ||
			(!gathers && !scatters))
			status = l->ncclSend(send + (gathers ? 0 : (size_t)i * step), k->count,
				k->key.type, i, k->of, k->stream);
		if (!status && ((scatters && i == peer) || (gathers && k->comm->rank == peer) ||
				       (!gathers && !scatters)))
			status = l->ncclRecv(receive + (scatters ? 0 : (size_t)i * step),
				k->count, k->key.type, i, k->of, k->stream);
	}
	ended = l->ncclGroupEnd();
	return status ? status : ended;
}

static int work_do(const struct nccl_library *l, const struct work *k)
{
	const struct nccl_key *key = &k->key;

	switch (key->function) {
	case NCCL_ALL_REDUCE:
		return l->ncclAllReduce(
			k->send, k->receive, k->count, key->type, k->op, k->of, k->stream);
	case NCCL_BROADCAST:
		return l->ncclBroadcast(
			k->send, k->receive, k->count, key->type, key->peer, k->of, k->stream);
	case NCCL_REDUCE:
		return l->ncclReduce(k->send, k->receive, k->count, key->type, k->op, key->peer,
			k->of, k->stream);
	case NCCL_ALL_GATHER:
		return l->ncclAllGather(
			k->send, k->receive, k->count, key->type, k->of, k->stream);
	case NCCL_REDUCE_SCATTER:
		return l->ncclReduceScatter(
			k->send, k->receive, k->count, key->type, k->op, k->of, k->stream);
	case NCCL_ALL_TO_ALL:
		return l->ncclAlltoAll ? l->ncclAlltoAll(k->send, k->receive, k->count,
						 key->type, k->of, k->stream)
				       : exchange(l, k);
	case NCCL_GATHER:
		return l->ncclGather ? l->ncclGather(k->send, k->receive, k->count, key->type,
					       key->peer, k->of, k->stream)
				     : exchange(l, k);
	case NCCL_SCATTER:
		return l->ncclScatter ? l->ncclScatter(k->send, k->receive, k->count, key->type,
						key->peer, k->of, k->stream)
				      : exchange(l, k);
	case NCCL_SEND:
		return l->ncclSend(k->send, k->count, key->type, key->peer, k->of, k->stream);
	default:
		return l->ncclRecv(
			k->receive, k->count, key->type, key->peer, k->of, k->stream);
	}
}

static int works_do(const struct nccl_library *l, const struct work *works, uint32_t count)
{
	int status = ncclSuccess, ended;

	if (count == 1)
		return work_do(l, works);
	status = l->ncclGroupStart();
	if (status)
		return status;
	for (uint32_t i = 0; i < count && !status; i++)
		status = work_do(l, &works[i]);
	ended = l->ncclGroupEnd();
	return status ? status : ended;
}

static void grouping_work(struct nccl_job *job)
{
	struct grouping *g = (struct grouping *)job;

	job->cuda->cuCtxSetCurrent(g->context);
	job->status = works_do(job->library, g->works, g->count);
}

static const void *grouping_after(struct worker *w, struct nccl_job *job, uint32_t *bytes)
{
	struct grouping *g = (struct grouping *)job;

	(void)w;
	for (uint32_t i = 0; i < g->count; i++)
		nccl_comm_put(g->works[i].comm);
	free(g->works);
	g->answer.status = (uint32_t)job->status;
	*bytes = sizeof(g->answer);
	return &g->answer;
}

static CUresult beside(struct worker *w, struct request *r, struct work *works, uint32_t count)
{
	struct grouping *g = calloc(1, sizeof(*g));

	if (!g) {
		free(works);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	g->job.library = works->comm->library;
	g->job.call = "ncclGroupEnd";
	g->job.work = grouping_work;
	g->job.after = grouping_after;
	g->context = w->contexts[works->comm->context];
	g->works = works;
	g->count = count;
	for (uint32_t i = 0; i < count; i++)
		works[i].comm->users++;
	return nccl_start(w, r, &g->job);
}

static CUresult at_once(struct worker *w, struct work *works, uint32_t count)
{
	CUresult status = worker_use(w, works->comm->context);
	int answer;

	if (!status) {
		answer = works_do(works->comm->library, works, count);
		for (uint32_t i = 0; i < count && answer; i++)
			nccl_failed(works[i].comm, answer, "ncclGroupEnd");
	}
	free(works);
	return status;
}

/* The stream, which has more to do. */
static CUstream work_stream(
	struct worker *w, struct request *r, const struct nccl_comm *comm, uint64_t handle)
{
	struct worker_stream *stream = handle > 1 ? worker_handle(w, r, handle, KIND_CUstream)
						  : &w->legacy[comm->context];

	if (stream)
		limits_work(w, stream);
	return stream ? stream->stream : NULL;
}

static bool work_get(struct worker *w, struct request *r, const struct nccl_key *key,
	const struct nccl_rest *rest, struct work *k)
{
	struct nccl_comm *comm = nccl_ready(w, r, key->comm);
	uint32_t number = (uint32_t)key->op - ncclNumOps;
	uint64_t bytes;

	if (!comm)
		return false;
	if (key->function >= NCCL_FUNCTIONS || !nccl_type_bytes(key->type) || key->op < 0 ||
		(key->op >= ncclNumOps &&
			(number >= NCCL_REDUCTIONS || !comm->reduces[number])) ||
		key->peer < 0 || key->peer >= comm->nranks ||
		__builtin_mul_overflow(rest->count, nccl_type_bytes(key->type), &bytes) ||
		__builtin_mul_overflow(bytes, (uint64_t)comm->nranks, &bytes) ||
		bytes > INT64_MAX) {
		worker_refuse(r, CUDA_ERROR_INVALID_VALUE);
		return false;
	}
	*k = (struct work){
		.comm = comm,
		.of = comm->comm,
		.key = *key,
		.send = (const void *)(uintptr_t)rest->send,
		.receive = (void *)(uintptr_t)rest->receive,
		.count = rest->count,
		.stream = work_stream(w, r, comm, rest->stream),
		.op = key->op < ncclNumOps ? key->op : comm->reductions[number],
	};
	return !worker_refused(r);
}

/* Appends the frame's operations. */
static CUresult works_get(struct worker *w, struct request *r, struct nccl_parts *parts)
{
	const struct wire_ncclGroupEnd *body = (const void *)r->body;
	const struct nccl_key *keys = (const void *)(body + 1);
	const struct nccl_rest *rests = (const void *)(keys + body->count);
	struct work *works;

	if (!body->count ||
		r->header.body !=
			sizeof(*body) + body->count * (sizeof(*keys) + sizeof(*rests)) ||
		body->count > NCCL_OPERATIONS - parts->count)
		return CUDA_ERROR_INVALID_VALUE;
	works = realloc(parts->list, (parts->count + body->count) * sizeof(*works));
	if (!works)
		return CUDA_ERROR_OUT_OF_MEMORY;
	parts->list = works;
	for (uint32_t i = 0; i < body->count; i++)
		if (!work_get(w, r, &keys[i], &rests[i], &works[parts->count + i]))
			return r->refused;
	parts->count += body->count;
	return CUDA_SUCCESS;
}

CUresult serve_ncclGroupEnd(struct worker *w, struct request *r)
{
	const struct wire_ncclGroupEnd *body = (const void *)r->body;
	struct nccl_parts alone = {0}, *parts = &alone;
	struct work *works;
	uint32_t count;
	CUresult status;

	if (body->group)
		parts = nccl_parts(body->group, false);
	if (!parts || (body->more && !body->group))
		return CUDA_ERROR_INVALID_VALUE;
	status = works_get(w, r, parts);
	if (!status && body->more)
		return CUDA_SUCCESS;
	works = parts->list;
	count = parts->count;
	if (parts != &alone)
		nccl_parts_end(parts);
	if (status) {
		free(works);
		return status;
	}
	/* A communicator may have been ended between two of the group's frames. */
	for (uint32_t i = 0; i < count; i++)
		if (body->group &&
			(!nccl_ready(w, r, works[i].key.comm) || worker_refused(r))) {
			free(works);
			return r->refused;
		}
	return r->header.kind == FRAME_CALL ? beside(w, r, works, count)
					    : at_once(w, works, count);
}
