/* SPDX-License-Identifier: Apache-2.0
 *
 * Calls: built in the thread's scratch, copied into the ring under the ring's lock; slot.c
 * waits for their answers.  See engine.h.  Trouble never makes a branch in a stub: call->status
 * holds the first one, and every function here that follows does nothing.
 */
#include "shim/engine/engine.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/wait.h"
#include "shim/generated/cuda_calls.h"
#include "shim/engine/driver.h"
#include "shim/engine/handle.h"
#include "shim/engine/reserve.h"
#include "shim/engine/session.h"
#include "shim/engine/slot.h"
#include "shim/engine/statistics.h"
#include "shim/engine/status.h"
#include "shim/engine/thread.h"
#include "shim/engine/trace.h"

unsigned shim_perf = ~0u;

/* A thread that finds no memory for its own scratch writes here; its call fails. */
static unsigned char scratch_shared[THREAD_SCRATCH];

/* Behind a fault nothing is kept. */
static bool few_kept(void *session)
{
	struct session *of = session;

	return !atomic_load_explicit(&of->counters[COUNTER_KEPT], memory_order_relaxed) ||
	       atomic_load_explicit(&of->counters[COUNTER_ERROR], memory_order_relaxed);
}

CUresult shim_ready(void)
{
	struct session *here = session_here();
	uint64_t error;

	handle_recycle();
	if (__builtin_expect(
		    atomic_load_explicit(&here->phase, memory_order_acquire) != SESSION_READY,
		    0)) {
		uint32_t phase = atomic_load(&here->phase);

		if (phase == SESSION_NONE || phase == SESSION_JOINED)
			return CUDA_ERROR_NOT_INITIALIZED;
		return session_status();
	}
	if (__builtin_expect(thread_self.in_callback, 0))
		return CUDA_ERROR_NOT_PERMITTED;
	if (__builtin_expect(atomic_load_explicit(&here->page->state, memory_order_relaxed) ==
				     CHANNEL_LOST,
		    0)) {
		session_check();
		return session_status();
	}
	error = atomic_load_explicit(&here->counters[COUNTER_ERROR], memory_order_relaxed);
	if (__builtin_expect(error != 0, 0)) {
		/* The app may learn of it here first, and wait for nothing more. */
		output_fetch();
		return status_wire((uint32_t)error);
	}
	if (__builtin_expect(!few_kept(here), 0))
		return shim_wait_until(few_kept, here);
	return CUDA_SUCCESS;
}

CUresult shim_enter_within(unsigned call)
{
	CUresult status = shim_watch(call);
	struct session *here;
	uint64_t error;

	if (__builtin_expect(status || !thread_self.in_function, 1))
		return status ? status : shim_ready();
	here = session_here();
	if (atomic_load_explicit(&here->phase, memory_order_acquire) != SESSION_READY ||
		atomic_load_explicit(&here->page->state, memory_order_relaxed) ==
			CHANNEL_LOST) {
		session_check();
		return session_status();
	}
	error = atomic_load_explicit(&here->counters[COUNTER_ERROR], memory_order_relaxed);
	return error ? status_wire((uint32_t)error) : CUDA_SUCCESS;
}

CUresult shim_enter_lasting(unsigned call)
{
	uint32_t phase = atomic_load_explicit(&session_here()->phase, memory_order_acquire);
	CUresult status = shim_watch(call);

	if (__builtin_expect(status, 0))
		return status;
	handle_recycle();
	if (__builtin_expect(phase != SESSION_READY && phase != SESSION_LOST, 0))
		return phase == SESSION_NONE || phase == SESSION_JOINED
			       ? CUDA_ERROR_NOT_INITIALIZED
			       : session_status();
	return __builtin_expect(thread_self.in_callback, 0) ? CUDA_ERROR_NOT_PERMITTED
							    : CUDA_SUCCESS;
}

CUresult shim_enter_current(unsigned call)
{
	CUresult status = shim_enter_ready(call);

	return status ? status : context_missing();
}

CUresult shim_refused(unsigned call, const char *name, const char *reason)
{
	static _Atomic bool logged_once[CALL_LAST];

	if (call < CALL_LAST && !atomic_exchange(&logged_once[call], true))
		session_debug("%s: %s", name, reason);
	logs_add(name, reason);
	return CUDA_ERROR_NOT_SUPPORTED;
}

/* ---- building ---- */

void *shim_begin(struct shim_call *call, uint16_t op, size_t body_bytes)
{
	unsigned char *scratch = thread_scratch();

	*call = (struct shim_call){
		.op = op, .context = thread_self.number, .status = session_status()};
	if (!scratch || body_bytes > FRAME_BODY_MAX) {
		call->status = CUDA_ERROR_OUT_OF_MEMORY;
		scratch = scratch_shared;
	}
	call->body = scratch;
	call->body_bytes = (uint32_t)body_bytes;
	memset(scratch, 0, body_bytes);
	return scratch;
}

void shim_put(struct shim_call *call, struct wire_run *run, const void *bytes, size_t n)
{
	size_t at = ((size_t)call->body_bytes + 7) & ~(size_t)7;

	if (call->status)
		return;
	if (n > FRAME_BODY_MAX || at > FRAME_BODY_MAX - n) {
		call->status = CUDA_ERROR_NOT_SUPPORTED;
		return;
	}
	memset(call->body + call->body_bytes, 0, at - call->body_bytes);
	if (n)
		memcpy(call->body + at, bytes, n);
	run->offset = (uint32_t)at;
	run->length = (uint32_t)n;
	call->body_bytes = (uint32_t)(at + n);
}

void shim_put_string(struct shim_call *call, struct wire_run *run, const char *text)
{
	shim_put(call, run, text, strlen(text) + 1);
}

void shim_payload(struct shim_call *call, const void *bytes, size_t n)
{
	if (n && shim_perf & PERF_ZEROCOPY && !call->captured &&
		n <= session_here()->ring.lent_most && shim_pinned(bytes, n, &call->bulk))
		return;
	if (n > FRAME_PAYLOAD_MAX || n > session_here()->ring.arena_size / 2) {
		if (!call->status)
			call->status = CUDA_ERROR_INVALID_VALUE;
		return;
	}
	call->bulk = (struct frame_bulk){.length = (uint32_t)n};
	call->payload = bytes;
}

void shim_payload_captured(struct shim_call *call, const void *bytes, size_t n)
{
	call->captured = true;
	shim_payload(call, bytes, n);
}

void shim_payload_rows(
	struct shim_call *call, const void *bytes, size_t pitch, size_t width, size_t rows)
{
	shim_payload_captured(call, bytes, width * rows);
	call->row_bytes = (uint32_t)width;
	call->row_pitch = pitch;
}

/* ---- sending ---- */

static void doorbell_ring(struct session *here)
{
	uint32_t idle = 1;
	uint64_t one = 1;

	if (shim_perf & PERF_BATCH &&
		!atomic_compare_exchange_strong(&here->page->idle, &idle, 0))
		return;
	while (write(here->doorbell, &one, sizeof(one)) < 0 && errno == EINTR)
		;
}

static inline void doorbell(struct session *here)
{
	/* Published before this; the sidecar says IDLE and looks again. One of us sees the
	 * other. */
	atomic_thread_fence(memory_order_seq_cst);
	if (__builtin_expect(atomic_load_explicit(&here->page->idle, memory_order_relaxed) ||
				     !(shim_perf & PERF_BATCH),
		    0))
		doorbell_ring(here);
}

/* A frame was published. */
static inline void sent(struct session *here, uint16_t op, uint16_t context, uint64_t seq)
{
	doorbell(here);
	if (__builtin_expect(managed_any, 0))
		managed_sent(op, context, seq);
	if (__builtin_expect(
		    atomic_load_explicit(&mirror_regions, memory_order_relaxed) != 0, 0))
		mirror_posted(op);
	trace_sent(here->index, seq, op);
}

CUresult shim_wait_until(bool (*done)(void *argument), void *argument)
{
	struct session *here = session_here();
	struct channel_page *page = here->page;
	uint64_t start = wait_now(), counted = statistics_start();
	CUresult status = CUDA_SUCCESS;

	statistics_event(STATISTICS_STALLS);
	while (!done(argument)) {
		uint32_t progress;

		if (here->spin_ns && wait_now() - start < here->spin_ns) {
			for (int i = 0; i < 32; i++)
				wait_relax();
			continue;
		}
		progress = atomic_load(&page->progress);
		atomic_fetch_add(&page->want_progress, 1);
		atomic_thread_fence(memory_order_seq_cst);
		if (!done(argument) && atomic_load(&page->state) != CHANNEL_LOST)
			wait_sleep(&page->progress, progress, ENGINE_LOOK_NS);
		atomic_fetch_sub(&page->want_progress, 1);
		if (done(argument))
			break;
		if (session_check()) {
			status = session_status();
			break;
		}
	}
	statistics_time(STATISTICS_STALL_NS, counted);
	return status;
}

static bool head_moved(void *argument)
{
	return ring_risen(&session_here()->page->head, *(uint64_t *)argument);
}

static bool captured_moved(void *argument)
{
	return ring_risen(ring_arena_released(&session_here()->ring), *(uint64_t *)argument);
}

static bool head_reached(void *argument)
{
	const uint64_t *position = argument;

	return (int64_t)(atomic_load(&session_here()->page->head) - *position) >= 0;
}

CUresult shim_few_named(uint32_t bytes)
{
	struct session *here = session_here();
	uint64_t marked = 0;
	bool many;

	ring_lock(&here->ring);
	here->named.bytes += bytes;
	many = here->named.bytes > SHIM_NAMED_MOST / 2;
	if (many) {
		marked = here->named.marked;
		here->named.marked = here->ring.tail;
		here->named.bytes = bytes;
	}
	ring_unlock(&here->ring);
	return many ? shim_wait_until(head_reached, &marked) : CUDA_SUCCESS;
}

/* Without the lock: waits until the sidecar has released something since HEAD. */
static CUresult wait_for_room(uint64_t head)
{
	return shim_wait_until(head_moved, &head);
}

/* With the lock, where there is no room. */
__attribute__((noinline)) static struct frame_header *frame_begin_later(
	struct session *here, uint32_t *body, bool bulk, CUresult *status)
{
	for (;;) {
		struct frame_header *header;
		const uint64_t head = here->ring.head;

		ring_unlock(&here->ring);
		*status = wait_for_room(head);
		if (*status)
			return NULL;
		ring_lock(&here->ring);
		header = ring_begin(&here->ring, body, bulk);
		if (header)
			return header;
	}
}

/* Takes the ring's lock and begins a frame, waiting for room. On failure the lock is free. */
static inline struct frame_header *frame_begin(
	struct session *here, uint32_t *body, bool bulk, CUresult *status)
{
	struct frame_header *header;

	ring_lock(&here->ring);
	header = ring_begin(&here->ring, body, bulk);
	return __builtin_expect(header != NULL, 1)
		       ? header
		       : frame_begin_later(here, body, bulk, status);
}

static void gather(unsigned char *at, const struct shim_call *call)
{
	const unsigned char *from = call->payload;

	if (!call->row_bytes) {
		memcpy(at, from, call->bulk.length);
		return;
	}
	for (uint32_t done = 0; done < call->bulk.length; done += call->row_bytes) {
		memcpy(at + done, from, call->row_bytes);
		from += call->row_pitch;
	}
}

/* Copies the payload into the arena and names it in call->bulk. */
static CUresult capture(struct shim_call *call, uint32_t *block)
{
	struct session *here = session_here();

	for (;;) {
		CUresult status;
		uint64_t captured;
		void *at;

		ring_lock(&here->ring);
		at = ring_arena(&here->ring, call->bulk.length, &call->bulk.offset, block);
		captured = here->ring.captured;
		ring_unlock(&here->ring);
		if (at) {
			gather(at, call);
			return CUDA_SUCCESS;
		}
		status = reserve_more() ? CUDA_SUCCESS
					: shim_wait_until(captured_moved, &captured);
		if (status)
			return status;
	}
}

CUresult engine_send(struct shim_call *call, uint8_t kind, uint16_t tag)
{
	struct session *here = session_here();
	struct frame_header *header;
	unsigned char *at;
	uint32_t body = call->body_bytes, block = 0;
	bool bulk = call->bulk.length != 0, captured = bulk && call->payload;
	CUresult status = CUDA_SUCCESS;

	if (captured)
		status = capture(call, &block);
	if (status)
		return status;
	header = frame_begin(here, &body, bulk, &status);
	if (!header) {
		if (captured) {
			ring_lock(&here->ring);
			ring_arena_abandon(&here->ring, block);
			ring_unlock(&here->ring);
		}
		return status;
	}
	header->kind = kind;
	header->op = call->op;
	header->tag = tag;
	header->context = session_context(here, call->context);
	header->length = body + call->bulk.length;
	at = (unsigned char *)(header + 1);
	if (bulk) {
		memcpy(at, &call->bulk, sizeof(call->bulk));
		at += sizeof(call->bulk);
	}
	memcpy(at, call->body, call->body_bytes);
	call->seq = header->seq;
	if (kind == FRAME_CALL)
		atomic_store_explicit(&here->page->calls[tag], call->seq, memory_order_relaxed);
	if (captured)
		ring_arena_named(&here->ring, block);
	ring_publish(&here->ring);
	ring_unlock(&here->ring);
	sent(here, call->op, call->context, call->seq);
	return CUDA_SUCCESS;
}

uint64_t shim_sequence(void)
{
	struct session *here = session_here();
	uint64_t seq;

	ring_lock(&here->ring);
	seq = here->ring.seq;
	ring_unlock(&here->ring);
	return seq;
}

void *shim_post_begin(uint16_t op, uint32_t body_bytes, CUresult *status)
{
	uint32_t body = body_bytes;
	struct frame_header *header = frame_begin(session_here(), &body, false, status);

	if (__builtin_expect(!header, 0))
		return NULL;
	header->kind = FRAME_POST;
	header->op = op;
	header->context = thread_self.wire;
	return header + 1;
}

void *shim_post_begin_bulk(
	uint16_t op, uint32_t body_bytes, const struct frame_bulk *bulk, CUresult *status)
{
	uint32_t body = body_bytes;
	struct frame_header *header = frame_begin(session_here(), &body, true, status);

	if (__builtin_expect(!header, 0))
		return NULL;
	header->kind = FRAME_POST;
	header->op = op;
	header->context = thread_self.wire;
	header->length = body + bulk->length;
	memcpy(header + 1, bulk, sizeof(*bulk));
	return (unsigned char *)(header + 1) + sizeof(*bulk);
}

uint64_t shim_post_end(uint16_t op)
{
	struct session *here = session_here();
	const uint64_t seq = here->ring.seq;

	ring_publish(&here->ring);
	ring_unlock(&here->ring);
	sent(here, op, thread_self.number, seq);
	return seq;
}
