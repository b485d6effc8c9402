/* SPDX-License-Identifier: Apache-2.0
 *
 * See driver_front.h.
 */
#include "shim/libraries/common/driver_front.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "protocol/libraries/plain.h"
#include "shim/engine/driver.h"
#include "shim/engine/engine.h"
#include "shim/engine/handle.h"
#include "shim/engine/session.h"
#include "shim/engine/statistics.h"

#define EXPORT __attribute__((visibility("default")))

/* Whether the answer says in its first word that the library refused. */
static bool failed(const struct front_frame *frame, const void *reply)
{
	uint32_t status = 0;

	if (frame->status_first && frame->reply_bytes >= sizeof(status))
		memcpy(&status, reply, sizeof(status));
	return status != 0;
}

/* Whether an answer that begins with struct library_reply is always the same. */
static bool lasting(const void *reply)
{
	struct library_reply first;

	memcpy(&first, reply, sizeof(first));
	return !(first.flags & LIBRARY_PASSING);
}

/* How much of an answer of so many bytes the front gets. */
static size_t reply_get(const struct front_frame *frame, uint32_t bytes)
{
	size_t most = frame->reply_most ? frame->reply_most : frame->reply_bytes;
	size_t take = bytes < most ? bytes : most;

	if (frame->reply_got)
		*frame->reply_got = (uint32_t)take;
	return take;
}

/* The call of the frame; its status says whether there is one. */
static void call_build(struct shim_call *call, const struct front_frame *frame)
{
	bool streams = frame->stream_at != FRONT_NO_STREAM;
	uint64_t stream = 0;
	/* First: frames that order the stream are built where this one is. */
	CUresult status = streams ? stream_number(frame->stream, &stream) : CUDA_SUCCESS;
	unsigned char *body = shim_begin(call, frame->op, frame->body_bytes);

	if (!call->status)
		call->status = status;
	if (call->status)
		return;
	memcpy(body, frame->body, frame->body_bytes);
	if (mirror_apart)
		mirror_addresses(body, frame->body_bytes);
	if (streams)
		memcpy(body + frame->stream_at, &stream, sizeof(stream));
	call->key_from = frame->key_from;
	call->key_to = frame->key_to;
	if (frame->status_first)
		call->lasting = lasting;
}

/* What came for it, REPLY or NULL, is the front's; and it is learned. */
static void call_answered(
	const struct shim_call *call, const struct front_frame *frame, const void *reply)
{
	if (reply && frame->reply)
		memcpy(frame->reply, reply, reply_get(frame, call->reply_bytes));
	if (frame->learned && !call->status && !(reply && failed(frame, reply)))
		shim_learn(call);
}

static CUresult front_send(const struct front_frame *frame)
{
	struct shim_call call;
	const void *reply;

	call_build(&call, frame);
	if (call.status)
		return shim_end(&call);
	if (frame->post)
		return shim_post(&call);
	if (frame->learned && !frame->reply)
		return shim_learned(&call);
	if (frame->learned && shim_known(&call))
		return shim_post(&call);
	reply = frame->cached ? shim_wait_cached(&call, frame->reply_bytes)
			      : shim_wait(&call, frame->reply_bytes);
	call_answered(&call, frame, reply);
	return shim_end(&call);
}

/* Libraries work by the runtime, so a thread that has no context yet gets the runtime's. */
static CUresult front_enter(unsigned call)
{
	CUresult status = shim_enter(call);

	return status || thread_self.current ? status : vcuda_front_context();
}

EXPORT CUresult vcuda_front_send(const struct front_frame *frame)
{
	CUresult status = front_enter(frame->call);
	uint64_t handle = 0;
	bool lent;

	if (status)
		return status;
	/* A call of a handle begins with that. */
	if (session_count > 1 && frame->body_bytes >= sizeof(handle))
		memcpy(&handle, frame->body, sizeof(handle));
	lent = context_home_lend(handle);
	if (session_count > 1 && frame->stream_at != FRONT_NO_STREAM &&
		!stream_here(frame->stream))
		status = CUDA_ERROR_INVALID_HANDLE;
	if (!status)
		status = pinned_before(frame->body, frame->body_bytes);
	if (!status)
		status = front_send(frame);
	if (lent)
		context_home_lent();
	return status;
}

/* ---- several agents at once ---- */

struct front_pending {
	struct shim_call call;
};

EXPORT struct front_pending *vcuda_front_begin(
	const struct front_frame *frame, CUresult *status)
{
	struct front_pending *pending = NULL;

	*status = front_enter(frame->call);
	if (!*status)
		*status = pinned_before(frame->body, frame->body_bytes);
	if (!*status && !(pending = malloc(sizeof(*pending))))
		*status = CUDA_ERROR_OUT_OF_MEMORY;
	if (*status)
		return NULL;
	call_build(&pending->call, frame);
	if (!shim_send(&pending->call)) {
		statistics_event(STATISTICS_ROUND_TRIPS);
		return pending;
	}
	*status = shim_end(&pending->call);
	free(pending);
	return NULL;
}

EXPORT bool vcuda_front_wait(struct front_pending *pending, uint64_t ns)
{
	return shim_wait_for(&pending->call, ns);
}

EXPORT CUresult vcuda_front_end(struct front_pending *pending, const struct front_frame *frame)
{
	struct shim_call call = pending->call;
	const void *reply = shim_wait_sent(&call, frame->reply_bytes);

	free(pending);
	/* Other calls have had the scratch meanwhile; what was learned is in the key. */
	call.body = (unsigned char *)(uintptr_t)frame->body;
	call_answered(&call, frame, reply);
	return shim_end(&call);
}

EXPORT void vcuda_front_abandon(struct front_pending *pending)
{
	free(pending);
}

EXPORT bool vcuda_front_known(const struct front_frame *frame)
{
	struct shim_call call;

	call_build(&call, frame);
	return !call.status && shim_known(&call);
}

EXPORT unsigned vcuda_front_home(CUcontext context)
{
	const struct context *found =
		session_count > 1 ? handle_object((uint64_t)(uintptr_t)context, KIND_CUcontext)
				  : NULL;

	return found ? context_session(found)->index : 0;
}

EXPORT unsigned vcuda_front_homes(void)
{
	return session_count;
}

EXPORT bool vcuda_front_posts(void)
{
	return shim_perf & PERF_POST;
}

EXPORT bool vcuda_front_keeps(void)
{
	return shim_perf & PERF_CACHE;
}

static _Atomic(front_matrix_read *) matrix_read;

EXPORT void vcuda_front_matrix_by(front_matrix_read *read)
{
	atomic_store(&matrix_read, read);
}

EXPORT bool vcuda_front_matrix(const void *descriptor, int32_t content[4])
{
	front_matrix_read *read = atomic_load(&matrix_read);

	return read && read(descriptor, content);
}

EXPORT CUresult vcuda_front_context(void)
{
	CUcontext context = NULL;
	CUresult status = cuInit(0);
	int device = status ? -1 : context_wanted();

	if (device < 0)
		return status;
	status = cuDevicePrimaryCtxRetain(&context, device);
	return status ? status : cuCtxSetCurrent(context);
}

EXPORT CUresult vcuda_front_stream(CUstream stream, uint64_t *number)
{
	return session_count > 1 && !stream_here(stream) ? CUDA_ERROR_INVALID_HANDLE
							 : stream_number(stream, number);
}

EXPORT uint64_t vcuda_front_mint(uint32_t kind, void *object)
{
	return shim_mint((enum handle_kind)kind, object);
}

EXPORT void *vcuda_front_object(uint64_t handle, uint32_t kind)
{
	return handle_object(handle, (enum handle_kind)kind);
}

EXPORT bool vcuda_front_release(uint64_t handle)
{
	return handle_release(handle);
}

EXPORT CUresult vcuda_front_refused(unsigned call, const char *name, const char *reason)
{
	shim_count(call);
	return shim_refused(call, name, reason);
}

EXPORT void vcuda_front_missing(const char *call, const char *library, int *logged)
{
	int saved = errno;

	if (!__atomic_exchange_n(logged, 1, __ATOMIC_RELAXED))
		dprintf(STDERR_FILENO,
			"vcuda: %s failed: the agent has no usable %s (its log and "
			"/readyz?verbose say more)\n",
			call, library);
	errno = saved;
}

EXPORT void vcuda_front_older(const char *call, int *logged)
{
	int saved = errno;

	if (!__atomic_exchange_n(logged, 1, __ATOMIC_RELAXED))
		dprintf(STDERR_FILENO,
			"vcuda: %s failed: the agent is older than this client and does not "
			"know the call; update it\n",
			call);
	errno = saved;
}

EXPORT bool vcuda_front_log_file(const char *path)
{
	int saved = errno;
	int fd = path ? open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0666) : -1;

	if (fd >= 0)
		close(fd);
	errno = saved;
	return fd >= 0;
}

EXPORT void vcuda_front_debug(const char *text)
{
	session_debug("%s", text);
}
