/* SPDX-License-Identifier: Apache-2.0
 *
 * Events that processes share: how they come to be so.  Such an event is one of the driver's
 * here, as any, and one of a board (ipc_board.h), which says what stands for its last
 * recording, whoever made it.  What streams do with it: ipc_event_stream.c.
 */
#include <stdlib.h>
#include <string.h>

#include "gpu-agent/worker/direct/direct.h"
#include "gpu-agent/worker/driver.h"
#include "gpu-agent/worker/driver/ipc/ipc.h"
#include "gpu-agent/worker/driver/ipc/ipc_board.h"
#include "gpu-agent/worker/driver/ipc/ipc_event.h"
#include "gpu-agent/worker/loop/beside_call.h"
#include "gpu-agent/worker/reply/reply.h"
#include "gpu-agent/worker/worker_state.h"

/* Boards of a session: its own, each of which is one of the names that it may have, and those
 * of others. */
#define BOARDS_OWN_MOST 8u
#define BOARDS_MOST 264u

static struct ipc_events *events_get(struct worker *w)
{
	if (!w->events)
		w->events = calloc(1, sizeof(*w->events));
	return w->events;
}

struct name *ipc_event_named(struct worker *w, struct request *r, uint64_t handle)
{
	struct name *name = handles_find(w, handle, KIND_CUevent);

	if (!name)
		worker_refuse(r, CUDA_ERROR_INVALID_HANDLE);
	return name;
}

/* What streams and boards need. */
static CUresult events_can(struct worker *w, uint32_t device)
{
	int can = 0;

	if (!w->cuda.cuStreamWaitValue64_v2 || !w->cuda.cuStreamWriteValue64_v2 ||
		!w->cuda.cuMemHostRegister_v2 || !w->cuda.cuMemHostUnregister ||
		!w->cuda.cuMemHostGetDevicePointer ||
		w->cuda.cuDeviceGetAttribute(&can,
			CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS,
			w->devices[device].device) ||
		!can)
		return CUDA_ERROR_NOT_SUPPORTED;
	return events_get(w) ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

/* ---- boards ---- */

static void board_link(struct ipc_events *events, struct board *b)
{
	b->next = events->boards;
	events->boards = b;
	events->count++;
	events->own += b->ours;
}

/* Whether the driver waits for nothing where it would wait for an idle GPU. */
static bool boards_idle(struct worker *w)
{
	if (direct_busy(w) || w->callbacks.outstanding || beside_any(w))
		return false;
	for (struct worker_stream *s = w->streams.list; s; s = s->next)
		if (s->work != s->clean &&
			(capture_of(w, s) || worker_use(w, s->context) ||
				w->cuda.cuStreamQuery(s->stream) == CUDA_ERROR_NOT_READY))
			return false;
	return true;
}

/* Room for one more: one of another session's goes that nothing uses, which the driver forgets
 * on an idle GPU. */
static bool boards_room(struct worker *w)
{
	struct ipc_events *events = w->events;

	if (events->count < BOARDS_MOST)
		return true;
	if (!boards_idle(w))
		return false;
	for (struct board **at = &events->boards, *b; (b = *at); at = &b->next)
		if (!b->ours && !b->uses) {
			*at = b->next;
			events->count--;
			board_close(w, b);
			return true;
		}
	return false;
}

/* ---- sharing ---- */

/* The name's event becomes that one of the board, which it has already. */
static CUresult event_bind(struct name *name, struct board *b, uint32_t number)
{
	struct ipc_event *e = calloc(1, sizeof(*e));

	if (!e) {
		board_event_put(b, number);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	*e = (struct ipc_event){.board = b, .number = number, .event = name->object};
	name->shared = e;
	return CUDA_SUCCESS;
}

/* Gives an event of this session a place on one of its boards. */
static CUresult share_on(
	struct worker *w, struct name *name, struct board *b, bool recorded, uint32_t *number)
{
	CUresult status;

	if (!board_event_new(b, number))
		return CUDA_ERROR_OUT_OF_MEMORY;
	status = event_bind(name, b, *number);
	if (!status && recorded) {
		status = worker_use(w, name->context);
		if (!status)
			status = ipc_event_begin(w, name->shared);
		if (status) {
			ipc_event_gone(name->shared);
			name->shared = NULL;
		}
	}
	return status;
}

CUresult serve_vcudaEventShare(struct worker *w, struct request *r)
{
	const struct wire_vcudaEventShare *req = (const void *)r->body;
	struct wire_vcudaEventShare_reply *answer = (void *)r->answer;
	struct name *name = ipc_event_named(w, r, req->event);
	struct ipc_wait wait = {.tag = -1, .event = req->event, .recorded = req->recorded};
	static struct handoff ask;
	struct board *b;
	CUresult status;

	if (worker_refused(r))
		return r->refused;
	if (req->device < 0 || (uint32_t)req->device >= w->device_count)
		return CUDA_ERROR_INVALID_DEVICE;
	wait.device = (uint32_t)req->device;
	status = events_can(w, wait.device);
	if (status)
		return status;
	if (name->shared) {
		b = name->shared->board;
		answer->number = name->shared->number;
		memcpy(worker_out(r, &answer->name, 16), b->name, 16);
		return CUDA_SUCCESS;
	}
	for (b = w->events->boards; b; b = b->next)
		if (b->ours && b->device == wait.device &&
			!share_on(w, name, b, req->recorded, &answer->number)) {
			memcpy(worker_out(r, &answer->name, 16), b->name, 16);
			return CUDA_SUCCESS;
		}
	status = ipc_idle(w);
	if (status)
		return status;
	if (w->events->own >= BOARDS_OWN_MOST || !boards_room(w))
		return CUDA_ERROR_OUT_OF_MEMORY;
	status = board_new(w, wait.device, &b);
	if (status)
		return status;
	ask = (struct handoff){
		.what = HANDOFF_SHARE, .device = wait.device, .bytes = BOARD_BYTES};
	w->ipc = wait;
	w->events->fresh = b;
	status = ipc_ask(w, r, &ask, b->fd);
	if (status) {
		b->fd = -1; /* it is closed */
		board_close(w, b);
		w->events->fresh = NULL;
	}
	return status;
}

/* The front's word on it; the board keeps its descriptor. */
static CUresult shared(struct worker *w, const struct handoff *h, uint32_t *number)
{
	struct board *b = w->events->fresh;
	struct name *name = handles_find(w, w->ipc.event, KIND_CUevent);
	CUresult status = (CUresult)h->status;

	w->events->fresh = NULL;
	if (!status) {
		memcpy(b->name, h->session, sizeof(b->name));
		status = board_join(b);
		if (status)
			ipc_unname(w, b->name);
	}
	if (status) {
		board_close(w, b);
		return status;
	}
	board_link(w->events, b);
	/* It may be gone, or shared, since it was asked. */
	if (!name || name->shared)
		return CUDA_ERROR_INVALID_HANDLE;
	return share_on(w, name, b, w->ipc.recorded, number);
}

static CUresult join_on(struct name *name, struct board *b, uint32_t number)
{
	return board_event_get(b, number) ? event_bind(name, b, number)
					  : CUDA_ERROR_INVALID_VALUE;
}

CUresult serve_vcudaEventJoin(struct worker *w, struct request *r)
{
	const struct wire_vcudaEventJoin *req = (const void *)r->body;
	const uint8_t *board = worker_in(r, &req->name, 16);
	struct name *name = ipc_event_named(w, r, req->event);
	static struct handoff ask;
	CUresult status;

	if (worker_refused(r))
		return r->refused;
	if (req->device < 0 || (uint32_t)req->device >= w->device_count)
		return CUDA_ERROR_INVALID_DEVICE;
	if (name->shared)
		return CUDA_ERROR_INVALID_VALUE;
	status = events_can(w, (uint32_t)req->device);
	if (status)
		return status;
	for (struct board *b = w->events->boards; b; b = b->next)
		if (b->device == (uint32_t)req->device && !memcmp(b->name, board, 16))
			return join_on(name, b, req->number);
	status = ipc_idle(w);
	if (status)
		return status;
	if (!boards_room(w))
		return CUDA_ERROR_OUT_OF_MEMORY;
	ask = (struct handoff){.what = HANDOFF_WANT, .device = (uint32_t)req->device};
	memcpy(ask.session, board, 16);
	w->ipc = (struct ipc_wait){.tag = -1,
		.import = true,
		.device = (uint32_t)req->device,
		.event = req->event,
		.number = req->number};
	memcpy(w->ipc.name, board, 16);
	return ipc_ask(w, r, &ask, -1);
}

/* The front's word on it; takes *FD where the board is used. */
static CUresult joined(struct worker *w, const struct handoff *h, int *fd)
{
	struct name *name = handles_find(w, w->ipc.event, KIND_CUevent);
	struct board *b;
	CUresult status;

	if (h->status || *fd < 0)
		return h->status ? (CUresult)h->status : CUDA_ERROR_INVALID_VALUE;
	if (!name || name->shared)
		return CUDA_ERROR_INVALID_HANDLE;
	status = board_open(w, w->ipc.device, fd, &b);
	if (status)
		return status;
	memcpy(b->name, w->ipc.name, sizeof(b->name));
	board_link(w->events, b);
	return join_on(name, b, w->ipc.number);
}

void ipc_event_answer(struct worker *w, const struct handoff *h, int *fd)
{
	struct {
		struct wire_vcudaEventShare_reply fixed;
		uint8_t name[16];
	} answer = {.fixed.name = {sizeof(answer.fixed), sizeof(answer.name)}};
	CUresult status;

	if (w->ipc.import) {
		status = joined(w, h, fd);
		reply_send(w, (uint16_t)w->ipc.tag, status, NULL, 0);
		return;
	}
	*fd = -1; /* the board's, or closed with it */
	status = shared(w, h, &answer.fixed.number);
	memcpy(answer.name, h->session, sizeof(answer.name));
	reply_send(w, (uint16_t)w->ipc.tag, status, &answer, sizeof(answer));
}

void ipc_event_gone(struct ipc_event *e)
{
	board_event_put(e->board, e->number);
	free(e);
}
