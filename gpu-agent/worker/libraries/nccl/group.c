/* SPDX-License-Identifier: Apache-2.0
 *
 * Groups of operations. One that somebody waits for is the first of its kind: NCCL may connect
 * ranks in it, so it runs beside the loop. Those behind it are issued by the loop.
 */
#include <stdlib.h>
#include <string.h>

#include "gpu-agent/worker/libraries/nccl/nccl.h"
#include "gpu-agent/worker/limits/limits.h"

struct work {
	struct nccl_comm *comm;
	ncclComm_t of;
	struct nccl_key key;
	const void *send;
	void *receive;
	size_t count;
	CUstream stream;
	int op;
	uint64_t at; /* in the window, of a put; how many waits of the same call follow */
	ncclWindow_t window; /* that is put into, or was made */
};

struct grouping {
	struct nccl_job job;
	CUcontext context;
	struct work *works;
	uint32_t count;
	bool foretold;
	struct wire_ncclGroupEnd_reply answer;
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

/* A wait for signals of several ranks, which is one call. */
static int wait_do(const struct nccl_library *l, const struct work *k, char text[NCCL_TEXT])
{
	int count = (int)k->at + 1, status;
	ncclWaitSignalDesc_t *waits;

	if (!l->ncclWaitSignal)
		return nccl_lacks(l, "ncclWaitSignal", text);
	waits = malloc((size_t)count * sizeof(*waits));
	if (!waits)
		return ncclSystemError;
	for (int i = 0; i < count; i++)
		waits[i] = (ncclWaitSignalDesc_t){.opCnt = (int)k[i].count,
			.peer = k[i].key.peer,
			.sigIdx = k[i].op,
			.ctx = k[i].key.context};
	status = l->ncclWaitSignal(count, waits, k->of, k->stream);
	free(waits);
	return status;
}

/* Windows, and what is done with them; K is followed by what else belongs to its call. */
static int signal_do(const struct nccl_library *l, struct work *k, char text[NCCL_TEXT])
{
	const struct nccl_key *key = &k->key;

	switch (key->function) {
	case NCCL_PUT_SIGNAL:
		return !l->ncclPutSignal ? nccl_lacks(l, "ncclPutSignal", text)
					 : l->ncclPutSignal(k->send, k->count, key->type,
						   key->peer, k->window, k->at, k->op,
						   key->context, 0, k->of, k->stream);
	case NCCL_ONLY_SIGNAL:
		return !l->ncclSignal ? nccl_lacks(l, "ncclSignal", text)
				      : l->ncclSignal(key->peer, k->op, key->context, 0, k->of,
						k->stream);
	case NCCL_WAIT_SIGNAL: return wait_do(l, k, text);
	case NCCL_SUSPEND:
		return !l->ncclCommSuspend ? nccl_lacks(l, "ncclCommSuspend", text)
					   : l->ncclCommSuspend(k->of, k->op);
	case NCCL_RESUME:
		return !l->ncclCommResume ? nccl_lacks(l, "ncclCommResume", text)
					  : l->ncclCommResume(k->of);
	default:
		return !l->ncclCommWindowRegister
			       ? nccl_lacks(l, "ncclCommWindowRegister", text)
			       : l->ncclCommWindowRegister(k->of, (void *)(uintptr_t)k->send,
					 k->count, &k->window, k->op);
	}
}

static int work_do(const struct nccl_library *l, struct work *k, char text[NCCL_TEXT])
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
	case NCCL_RECEIVE:
		return l->ncclRecv(
			k->receive, k->count, key->type, key->peer, k->of, k->stream);
	default: return signal_do(l, k, text);
	}
}

/* How many of them are one call. */
static uint32_t call_of(const struct work *k)
{
	return k->key.function == NCCL_WAIT_SIGNAL ? (uint32_t)k->at + 1 : 1;
}

/* INFO: they are foretold, and not done; else NULL. */
static int works_do(const struct nccl_library *l, struct work *works, uint32_t count,
	ncclSimInfo_t *info, char text[NCCL_TEXT])
{
	int status = ncclSuccess, ended;

	if (info && !l->ncclGroupSimulateEnd)
		return nccl_lacks(l, "ncclGroupSimulateEnd", text);
	if (count == call_of(works) && !info)
		return work_do(l, works, text);
	status = l->ncclGroupStart();
	if (status)
		return status;
	for (uint32_t i = 0; i < count && !status; i += call_of(&works[i]))
		status = work_do(l, &works[i], text);
	ended = info ? l->ncclGroupSimulateEnd(info) : l->ncclGroupEnd();
	return status ? status : ended;
}

static void grouping_work(struct nccl_job *job)
{
	struct grouping *g = (struct grouping *)job;
	ncclSimInfo_t info = {.size = sizeof(info),
		.magic = NCCL_SIM_MAGIC,
		.version = 22200, /* since when it has these members */
		.estimatedTime = -1};

	job->cuda->cuCtxSetCurrent(g->context);
	job->status = works_do(
		job->library, g->works, g->count, g->foretold ? &info : NULL, job->text);
	g->answer.estimate = info.estimatedTime;
}

/* Windows that the library made are the session's; it may make none, and that is no error. */
static uint64_t windows_put(const struct nccl_job *job, struct work *works, uint32_t count)
{
	uint64_t made = 0;
	uint32_t n = 0;

	for (uint32_t i = 0; i < count; i++) {
		struct work *k = &works[i];

		if (k->key.function != NCCL_WINDOW)
			continue;
		if (k->window && !k->comm->ended && !job->status && !job->late &&
			nccl_window_put(k->comm, k->key.window, k->window))
			made |= 1ull << n;
		n++;
	}
	return made;
}

static const void *grouping_after(struct worker *w, struct nccl_job *job, uint32_t *bytes)
{
	struct grouping *g = (struct grouping *)job;

	(void)w;
	g->answer.windows = windows_put(job, g->works, g->count);
	for (uint32_t i = 0; i < g->count; i++)
		nccl_comm_put(g->works[i].comm);
	free(g->works);
	g->answer.plain.status = (uint32_t)job->status;
	*bytes = sizeof(g->answer);
	return &g->answer;
}

static CUresult beside(
	struct worker *w, struct request *r, struct work *works, uint32_t count, bool foretold)
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
	g->foretold = foretold;
	for (uint32_t i = 0; i < count; i++)
		works[i].comm->users++;
	return nccl_start(w, r, &g->job);
}

static CUresult at_once(struct worker *w, struct work *works, uint32_t count)
{
	CUresult status = worker_use(w, works->comm->context);
	char text[NCCL_TEXT];
	int answer;

	if (!status) {
		answer = works_do(works->comm->library, works, count, NULL, text);
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
						  : &w->streams.legacy[comm->context];

	if (stream)
		limits_work(w, stream);
	return stream ? stream->stream : NULL;
}

/* Whether the operation, the signal, or the window with its flags can be. */
static bool key_right(const struct nccl_comm *comm, const struct nccl_key *key)
{
	uint32_t number = (uint32_t)key->op - ncclNumOps;

	if (key->function >= NCCL_FUNCTIONS || !nccl_type_bytes(key->type) || key->op < 0 ||
		key->peer < 0 || key->peer >= comm->nranks)
		return false;
	switch (key->function) {
	case NCCL_PUT_SIGNAL: return nccl_window_of(comm, key->window);
	case NCCL_WINDOW: return key->window && !nccl_window_of(comm, key->window);
	case NCCL_ONLY_SIGNAL:
	case NCCL_WAIT_SIGNAL:
	case NCCL_SUSPEND:
	case NCCL_RESUME: return true;
	default:
		return key->op < ncclNumOps ||
		       (number < NCCL_REDUCTIONS && comm->reduces[number]);
	}
}

/* Whether there could be so much of it. */
static bool count_right(
	const struct nccl_comm *comm, const struct nccl_key *key, const struct nccl_rest *rest)
{
	uint64_t bytes;

	if (key->function == NCCL_WAIT_SIGNAL)
		return rest->count && rest->count <= INT32_MAX &&
		       rest->receive < NCCL_OPERATIONS;
	return !__builtin_mul_overflow(rest->count, nccl_type_bytes(key->type), &bytes) &&
	       !__builtin_mul_overflow(bytes, (uint64_t)comm->nranks, &bytes) &&
	       bytes <= INT64_MAX;
}

static bool work_get(struct worker *w, struct request *r, const struct nccl_key *key,
	const struct nccl_rest *rest, struct work *k)
{
	struct nccl_comm *comm = nccl_ready(w, r, key->comm);
	bool window = key->function == NCCL_WINDOW, asks = nccl_asks(key->function);

	if (!comm)
		return false;
	if (!key_right(comm, key) || !count_right(comm, key, rest)) {
		worker_refuse(r, CUDA_ERROR_INVALID_VALUE);
		return false;
	}
	*k = (struct work){
		.comm = comm,
		.of = comm->comm,
		.key = *key,
		.send = window ? (void *)(uintptr_t)worker_range(w, r, rest->send, rest->count)
			       : (const void *)(uintptr_t)rest->send,
		.receive = (void *)(uintptr_t)rest->receive,
		.count = rest->count,
		.stream = asks ? NULL : work_stream(w, r, comm, rest->stream),
		.op = key->op,
		.at = rest->receive,
		.window = key->function == NCCL_PUT_SIGNAL ? nccl_window_of(comm, key->window)
							   : NULL,
	};
	if (key->function < NCCL_PUT_SIGNAL && key->op >= ncclNumOps)
		k->op = comm->reductions[key->op - ncclNumOps];
	return !worker_refused(r);
}

/* Whether calls of several waits are whole and of one communicator, and what is to be awaited
 * is. */
static bool works_right(const struct work *works, uint32_t count, bool awaited, bool foretold)
{
	uint32_t windows = 0, n;

	for (uint32_t i = 0; i < count; i += n) {
		n = call_of(&works[i]);
		if (n > count - i || (foretold && !awaited) ||
			(nccl_asks(works[i].key.function) && (!awaited || foretold)))
			return false;
		for (uint32_t k = 1; k < n; k++)
			if (works[i + k].key.function != NCCL_WAIT_SIGNAL ||
				works[i + k].comm != works[i].comm ||
				works[i + k].stream != works[i].stream)
				return false;
		windows += works[i].key.function == NCCL_WINDOW;
	}
	return windows <= NCCL_WINDOWS;
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

/* A communicator or a window may have been ended between two of the group's frames. */
static bool works_still(
	struct worker *w, struct request *r, const struct work *works, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		const struct nccl_key *key = &works[i].key;
		const struct nccl_comm *comm = nccl_ready(w, r, key->comm);

		if (!comm || (key->function == NCCL_PUT_SIGNAL &&
				     !nccl_window_of(comm, key->window)))
			return false;
	}
	return !worker_refused(r);
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
	if (!status && !works_right(works, count, r->header.kind == FRAME_CALL, body->simulate))
		status = CUDA_ERROR_INVALID_VALUE;
	if (status) {
		free(works);
		return status;
	}
	if (body->group && !works_still(w, r, works, count)) {
		free(works);
		return r->refused ? r->refused : CUDA_ERROR_INVALID_HANDLE;
	}
	return r->header.kind == FRAME_CALL ? beside(w, r, works, count, body->simulate)
					    : at_once(w, works, count);
}
