/* SPDX-License-Identifier: Apache-2.0
 *
 * Events that processes share.  The agent keeps what such an event stands for where the workers
 * of both sides see it (gpu-agent/worker/driver/ipc/ipc_event.c), under a name that the handle
 * recorded: neither side knows by itself what the other recorded, so each use is a call.
 *
 * Where the agent cannot (an older one, a device without stream memory operations, too many of
 * them) the handle has no name, and the event is done in the other process at all times: it is
 * given away once it is done, and recording it first waits for what the stream has to do
 * (EVENT_DRAINED), so that whoever learns of the recording finds that work done.
 */
#include <string.h>

#include "shim/generated/cuda_hand.h"
#include "protocol/generated/vcuda_ops.h"
#include "protocol/generated/vcuda_wire.h"
#include "shim/driver/context/context.h"
#include "shim/driver/graph/capture.h"
#include "shim/driver/memory/mirror/mirror.h"
#include "shim/driver/memory/sharing/share.h"
#include "shim/driver/stream/function_order.h"
#include "shim/driver/stream/stream.h"
#include "shim/engine/engine.h"
#include "shim/engine/status.h"
#include "shim/generated/vcuda_send.h"

static const char event_magic[8] = "vcudaEVT";

struct event_handle {
	char magic[8];
	uint64_t giver;	 /* share_process() */
	uint32_t number; /* of the event, under the name */
	uint32_t named;	 /* 0: it has none, and is always done */
	uint8_t name[16];
	uint8_t uuid[16]; /* the device's; zeroes of an older giver: the opener's */
	uint8_t unused[8];
};
_Static_assert(sizeof(struct event_handle) == sizeof(CUipcEventHandle), "");

static CUresult call_share(struct event *event, struct event_handle *handle)
{
	struct session_visit visit = device_visit(event->context->device);
	const struct wire_vcudaEventShare_reply *reply;
	struct wire_vcudaEventShare *body;
	struct shim_call call;
	const void *name;
	CUresult status;
	size_t n = 0;

	body = shim_begin(&call, OP_vcudaEventShare, sizeof(*body));
	body->event = event->handle;
	body->device = device_wire(event->context->device);
	body->recorded = atomic_load(&event->recorded) && !atomic_load(&event->capture);
	reply = shim_wait(&call, sizeof(*reply));
	name = reply ? shim_run(&call, &reply->name, &n) : NULL;
	if (name && n == sizeof(handle->name)) {
		memcpy(handle->name, name, sizeof(handle->name));
		handle->number = reply->number;
		handle->named = 1;
	} else if (reply) {
		call.status = status_of(CAUSE_VIOLATION);
	}
	status = shim_end(&call);
	session_leave(visit);
	return status;
}

static CUresult event_share(struct event *event, struct event_handle *handle)
{
	CUresult status = CUDA_ERROR_NOT_SUPPORTED;

	share_lock();
	if (atomic_load(&event->shared) != EVENT_DRAINED)
		status = call_share(event, handle);
	if (!status && atomic_load(&event->shared) != EVENT_SHARED) {
		event->shared_on = event->context->device;
		atomic_store(&event->shared, EVENT_SHARED);
	}
	if (!status)
		memcpy(handle->uuid, devices.at[event->shared_on].open.uuid,
			sizeof(handle->uuid));
	else if (status == CUDA_ERROR_NOT_SUPPORTED || status == CUDA_ERROR_OUT_OF_MEMORY)
		atomic_store(&event->shared, EVENT_DRAINED);
	share_unlock();
	return atomic_load(&event->shared) == EVENT_DRAINED ? event_done(event) : status;
}

CUresult hand_cuIpcGetEventHandle(CUipcEventHandle *pHandle, CUevent hEvent)
{
	struct event_handle handle = {.unused = {0}};
	struct event *event = event_of(hEvent);
	CUresult status;

	if (!pHandle || !hEvent)
		return CUDA_ERROR_INVALID_VALUE;
	status = context_missing();
	if (!status && (!event || !(event->flags & CU_EVENT_INTERPROCESS)))
		status = CUDA_ERROR_INVALID_HANDLE;
	if (!status)
		status = event_share(event, &handle);
	if (status)
		return status;
	memcpy(handle.magic, event_magic, sizeof(event_magic));
	handle.giver = share_process();
	memcpy(pHandle, &handle, sizeof(handle));
	return CUDA_SUCCESS;
}

/* A new event becomes that one. */
static CUresult event_join(CUevent hEvent, const struct event_handle *handle)
{
	static const uint8_t older[sizeof(handle->uuid)];
	struct event *event = event_of(hEvent);
	struct session_visit visit;
	int device = event->context->device;
	CUresult status;

	if (!handle->named) {
		/* One that was never recorded is done. */
		atomic_store(&event->shared, EVENT_DRAINED);
		return CUDA_SUCCESS;
	}
	/* Natively a thread in a context of one GPU opens those of another. */
	if (memcmp(handle->uuid, older, sizeof(older)))
		device = device_named(handle->uuid, device);
	if (device < 0 || devices.at[device].session != event->context->session)
		return CUDA_ERROR_MAP_FAILED;
	visit = device_visit(device);
	share_lock();
	status = send_vcudaEventJoin(
		event->handle, device_wire(device), handle->name, handle->number);
	share_unlock();
	session_leave(visit);
	event->shared_on = device;
	atomic_store(&event->shared, EVENT_SHARED);
	/* Nobody has it here: another user's, another GPU's, or one that is gone. */
	return status == CUDA_ERROR_INVALID_VALUE ? CUDA_ERROR_MAP_FAILED : status;
}

CUresult hand_cuIpcOpenEventHandle(CUevent *phEvent, CUipcEventHandle handle)
{
	struct event_handle given;
	CUresult status;
	CUevent event;

	memcpy(&given, &handle, sizeof(given));
	if (!phEvent)
		return CUDA_ERROR_INVALID_VALUE;
	if (memcmp(given.magic, event_magic, sizeof(event_magic)))
		return CUDA_ERROR_MAP_FAILED;
	/* A process does not open what it gave itself. */
	if (given.giver == share_process())
		return CUDA_ERROR_INVALID_CONTEXT;
	status = hand_cuEventCreate(&event, CU_EVENT_DISABLE_TIMING | CU_EVENT_INTERPROCESS);
	if (status)
		return status;
	status = event_join(event, &given);
	if (status)
		(void)hand_cuEventDestroy_v2(event);
	else
		*phEvent = event;
	return status;
}

/* ---- their use ---- */

CUresult ipc_event_record(struct event *event, CUstream hStream)
{
	struct wire_vcudaEventRecord *body;
	struct shim_call call;
	uint64_t stream;
	CUresult status;

	body = shim_begin(&call, OP_vcudaEventRecord, sizeof(*body));
	body->event = event->handle;
	stream = body->stream = shim_stream(&call, hStream);
	if (!call.status && !event_goes_with(event, stream))
		call.status = CUDA_ERROR_INVALID_HANDLE;
	if (!call.status)
		(void)capture_record(event, stream, false);
	shim_wait(&call, 0);
	status = shim_end(&call);
	if (!status) {
		atomic_store(&event->stream, stream);
		atomic_store(&event->graphed, false);
		atomic_store(&event->recorded, call.seq);
	}
	return status;
}

CUresult ipc_event_record_context(
	struct event *event, const struct context *context, uint64_t *seq)
{
	struct shim_call call;
	struct wire_vcudaEventRecordContext *body =
		shim_begin(&call, OP_vcudaEventRecordContext, sizeof(*body));

	call.context = context->number;
	body->event = event->handle;
	shim_wait(&call, 0);
	*seq = call.seq;
	return shim_end(&call);
}

CUresult ipc_event_await(struct event *event, CUstream hStream)
{
	struct wire_vcudaEventAwait *body;
	struct shim_call call;

	body = shim_begin(&call, OP_vcudaEventAwait, sizeof(*body));
	body->event = event->handle;
	body->stream = shim_stream(&call, hStream);
	function_order_awaited(body->stream, event);
	shim_wait(&call, 0);
	return shim_end(&call);
}

CUresult ipc_event_query(struct event *event)
{
	struct wire_vcudaQuery *body;
	struct shim_call call;
	CUresult status;

	body = shim_begin(&call, OP_vcudaQuery, sizeof(*body));
	body->scope = SYNC_SHARED;
	body->handle = event->handle;
	shim_wait(&call, 0);
	status = shim_end(&call);
	return status ? status : mirror_after();
}
