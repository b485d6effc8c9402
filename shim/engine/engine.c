/* SPDX-License-Identifier: Apache-2.0
 *
 * Calls: built in the thread's scratch, copied into the ring under the ring's lock, awaited in
 * a slot.  See engine.h.  Trouble never makes a branch in a stub: call->status holds the first
 * one, and every function here that follows does nothing.
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
#include "shim/engine/session.h"
#include "shim/engine/statistics.h"
#include "shim/engine/status.h"
#include "shim/engine/thread.h"

/* A sleeper looks at the state of the session that often: what bounds how long a sidecar's
 * death goes unnoticed (0.5 s is promised). */
#define ENGINE_LOOK_NS 50000000u

unsigned shim_perf = ~0u;
bool shim_counting;

/* A thread that finds no memory for its own scratch writes here; its call fails. */
static unsigned char scratch_shared[THREAD_SCRATCH];

static struct {
	_Atomic uint64_t taken[CHANNEL_SLOTS / 64];
	_Atomic uint32_t given; /* futex word: bumped when a slot is given while some wait */
	_Atomic uint32_t wanted;
} slots;

CUresult shim_enter(unsigned call)
{
	uint64_t error;

	shim_count(call);
	if (__builtin_expect(
		    atomic_load_explicit(&session.phase, memory_order_acquire) != SESSION_READY,
		    0)) {
		uint32_t phase = atomic_load(&session.phase);

		if (phase == SESSION_NONE || phase == SESSION_JOINED)
			return CUDA_ERROR_NOT_INITIALIZED;
		return session_status();
	}
	if (__builtin_expect(thread_self.in_callback, 0))
		return CUDA_ERROR_NOT_PERMITTED;
	if (__builtin_expect(atomic_load_explicit(&session.page->state, memory_order_relaxed) ==
				     CHANNEL_LOST,
		    0)) {
		session_check();
		return session_status();
	}
	error = atomic_load_explicit(&session.counters[COUNTER_ERROR], memory_order_relaxed);
	if (__builtin_expect(error != 0, 0)) {
		/* The app may learn of it here first, and wait for nothing more. */
		output_fetch();
		return status_wire((uint32_t)error);
	}
	return CUDA_SUCCESS;
}

CUresult shim_enter_lasting(unsigned call)
{
	uint32_t phase = atomic_load_explicit(&session.phase, memory_order_acquire);

	shim_count(call);
	if (__builtin_expect(phase != SESSION_READY && phase != SESSION_LOST, 0))
		return phase == SESSION_NONE || phase == SESSION_JOINED
			       ? CUDA_ERROR_NOT_INITIALIZED
			       : session_status();
	return __builtin_expect(thread_self.in_callback, 0) ? CUDA_ERROR_NOT_PERMITTED
							    : CUDA_SUCCESS;
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
	if (n > FRAME_PAYLOAD_MAX || n > session.ring.arena_size / 2) {
		if (!call->status)
			call->status = CUDA_ERROR_INVALID_VALUE;
		return;
	}
	if (n && shim_perf & PERF_ZEROCOPY && !call->captured &&
		shim_pinned(bytes, n, &call->bulk))
		return;
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

static void doorbell(void)
{
	struct channel_page *page = session.page;
	uint32_t idle = 1;
	uint64_t one = 1;

	/* Published before this; the sidecar says IDLE and looks again. One of us sees the
	 * other. */
	atomic_thread_fence(memory_order_seq_cst);
	if (shim_perf & PERF_BATCH) {
		if (!atomic_load_explicit(&page->idle, memory_order_relaxed) ||
			!atomic_compare_exchange_strong(&page->idle, &idle, 0))
			return;
	}
	while (write(session.doorbell, &one, sizeof(one)) < 0 && errno == EINTR)
		;
}

CUresult shim_wait_until(bool (*done)(void *argument), void *argument)
{
	struct channel_page *page = session.page;
	uint64_t start = wait_now(), counted = stats_start();
	CUresult status = CUDA_SUCCESS;

	stats_event(STATS_STALLS);
	while (!done(argument)) {
		uint32_t progress;

		if (session.spin_ns && wait_now() - start < session.spin_ns) {
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
	stats_time(STATS_STALL_NS, counted);
	return status;
}

static bool head_moved(void *argument)
{
	return atomic_load_explicit(&session.page->head, memory_order_acquire) !=
	       *(uint64_t *)argument;
}

/* Without the lock: waits until the sidecar has released something since HEAD. */
static CUresult wait_for_room(uint64_t head)
{
	return shim_wait_until(head_moved, &head);
}

/* Takes the ring's lock and begins a frame, waiting for room. On failure the lock is free. */
static struct frame_header *frame_begin(uint32_t *body, bool bulk, CUresult *status)
{
	for (;;) {
		struct frame_header *header;
		uint64_t head;

		ring_lock(&session.ring);
		header = ring_begin(&session.ring, body, bulk);
		if (header)
			return header;
		head = session.ring.head;
		ring_unlock(&session.ring);
		*status = wait_for_room(head);
		if (*status)
			return NULL;
	}
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
	for (;;) {
		CUresult status;
		uint64_t head;
		void *at;

		ring_lock(&session.ring);
		at = ring_arena(&session.ring, call->bulk.length, &call->bulk.offset, block);
		head = session.ring.head;
		ring_unlock(&session.ring);
		if (at) {
			gather(at, call);
			return CUDA_SUCCESS;
		}
		status = wait_for_room(head);
		if (status)
			return status;
	}
}

/* Puts the call into the ring. */
static CUresult frame_send(struct shim_call *call, uint8_t kind, uint16_t tag)
{
	struct frame_header *header;
	unsigned char *at;
	uint32_t body = call->body_bytes;
	bool bulk = call->bulk.length != 0;
	bool captured = bulk && call->payload;
	uint32_t block = 0;
	CUresult status = CUDA_SUCCESS;

	if (captured)
		status = capture(call, &block);
	if (status)
		return status;
	header = frame_begin(&body, bulk, &status);
	if (!header) {
		if (captured) {
			ring_lock(&session.ring);
			ring_arena_abandon(&session.ring, block);
			ring_unlock(&session.ring);
		}
		return status;
	}
	header->kind = kind;
	header->op = call->op;
	header->tag = tag;
	header->context = call->context;
	header->length = body + call->bulk.length;
	at = (unsigned char *)(header + 1);
	if (bulk) {
		memcpy(at, &call->bulk, sizeof(call->bulk));
		at += sizeof(call->bulk);
	}
	memcpy(at, call->body, call->body_bytes);
	call->seq = header->seq;
	if (captured)
		ring_arena_named(&session.ring, block);
	ring_publish(&session.ring);
	ring_unlock(&session.ring);
	doorbell();
	if (__builtin_expect(managed_any, 0))
		managed_sent(call->op, call->seq);
	return CUDA_SUCCESS;
}

uint64_t shim_sequence(void)
{
	uint64_t seq;

	ring_lock(&session.ring);
	seq = session.ring.seq;
	ring_unlock(&session.ring);
	return seq;
}

void *shim_post_begin(uint16_t op, uint32_t body_bytes, CUresult *status)
{
	uint32_t body = body_bytes;
	struct frame_header *header = frame_begin(&body, false, status);

	if (!header)
		return NULL;
	header->kind = FRAME_POST;
	header->op = op;
	header->context = thread_self.number;
	return header + 1;
}

void shim_post_end(uint16_t op)
{
	uint64_t seq = session.ring.seq;

	ring_publish(&session.ring);
	ring_unlock(&session.ring);
	doorbell();
	if (__builtin_expect(managed_any, 0))
		managed_sent(op, seq);
}

/* ---- slots ---- */

static int slot_get(void)
{
	for (unsigned word = 0; word < CHANNEL_SLOTS / 64; word++) {
		uint64_t taken = atomic_load(&slots.taken[word]);

		while (~taken) {
			uint64_t bit = ~taken & (taken + 1);

			if (atomic_compare_exchange_weak(
				    &slots.taken[word], &taken, taken | bit))
				return (int)(word * 64) + __builtin_ctzll(bit);
		}
	}
	return -1;
}

static void slot_put(struct channel_slot *slot)
{
	unsigned number = (unsigned)(slot - session.slots);

	atomic_fetch_and(&slots.taken[number / 64], ~(1ull << number % 64));
	if (atomic_load(&slots.wanted)) {
		atomic_fetch_add(&slots.given, 1);
		wait_wake(&slots.given);
	}
}

static int slot_wait(CUresult *status)
{
	int number = slot_get();

	if (number >= 0)
		return number;
	stats_event(STATS_STALLS);
	atomic_fetch_add(&slots.wanted, 1);
	for (;;) {
		uint32_t given = atomic_load(&slots.given);

		number = slot_get();
		if (number >= 0)
			break;
		wait_sleep(&slots.given, given, ENGINE_LOOK_NS);
		if (session_check()) {
			*status = session_status();
			break;
		}
	}
	atomic_fetch_sub(&slots.wanted, 1);
	return number;
}

static CUresult send_in_slot(struct shim_call *call, int number)
{
	struct channel_slot *slot = &session.slots[number];

	atomic_store_explicit(&slot->sleeping, 0, memory_order_relaxed);
	slot->status = slot->deferred = slot->body = slot->payload = 0;
	atomic_store_explicit(&slot->answered, 0, memory_order_release);
	call->status = frame_send(call, FRAME_CALL, (uint16_t)number);
	if (call->status)
		slot_put(slot);
	else
		call->slot = slot;
	return call->status;
}

CUresult shim_send(struct shim_call *call)
{
	int number;

	if (call->status)
		return call->status;
	number = slot_wait(&call->status);
	return number < 0 ? call->status : send_in_slot(call, number);
}

bool shim_try_send(struct shim_call *call)
{
	int number;

	if (call->status)
		return true;
	number = slot_get();
	if (number < 0)
		return false;
	send_in_slot(call, number);
	return true;
}

/* Waits for the slot's answer. False: the session is lost, and the answer will never come. */
static bool slot_answered(struct channel_slot *slot)
{
	uint64_t start = session.spin_ns ? wait_now() : 0;

	while (session.spin_ns) {
		for (int i = 0; i < 64; i++) {
			if (atomic_load_explicit(&slot->answered, memory_order_acquire))
				return true;
			wait_relax();
		}
		if (wait_now() - start > WAIT_CALL_NS)
			break;
	}
	for (;;) {
		atomic_store(&slot->sleeping, 1);
		atomic_thread_fence(memory_order_seq_cst);
		if (!atomic_load_explicit(&slot->answered, memory_order_acquire))
			wait_sleep(&slot->answered, 0, ENGINE_LOOK_NS);
		atomic_store(&slot->sleeping, 0);
		if (atomic_load_explicit(&slot->answered, memory_order_acquire))
			return true;
		if (session_check())
			return atomic_load_explicit(&slot->answered, memory_order_acquire);
	}
}

const void *shim_wait_sent(struct shim_call *call, size_t reply_bytes)
{
	struct channel_slot *slot = call->slot;
	uint64_t counted = stats_start();
	bool answered;

	if (call->status)
		return NULL;
	answered = slot_answered(slot);
	stats_time(STATS_ANSWER_NS, counted);
	if (!answered) {
		call->status = session_status();
		/* The slot is never used again: the sidecar may still write to it. */
		call->slot = NULL;
		return NULL;
	}
	call->status = status_wire(slot->status);
	call->landed = slot->payload;
	call->reply_bytes = slot->body;
	call->reply = slot->data;
	if (call->status && call->status != CUDA_ERROR_NOT_READY) {
		session_check(); /* where this is the end, it says why */
		return NULL;
	}
	if (slot->body > CHANNEL_SLOT_BODY || slot->body < reply_bytes) {
		call->status = status_of(CAUSE_VIOLATION);
		return NULL;
	}
	return slot->data;
}

const void *shim_wait(struct shim_call *call, size_t reply_bytes)
{
	shim_send(call);
	if (call->slot)
		stats_event(STATS_ROUND_TRIPS);
	return shim_wait_sent(call, reply_bytes);
}

CUresult shim_end(struct shim_call *call)
{
	if (call->slot) {
		if (!call->status)
			call->status = status_wire(call->slot->deferred);
		slot_put(call->slot);
		call->slot = NULL;
	}
	call->reply = NULL;
	if (call->status && call->status != CUDA_ERROR_NOT_READY)
		stats_event(STATS_ERRORS);
	return call->status;
}

CUresult shim_post(struct shim_call *call)
{
	if (call->status)
		return call->status;
	if (!(shim_perf & PERF_POST)) {
		shim_wait(call, 0);
		return shim_end(call);
	}
	call->status = frame_send(call, FRAME_POST, 0);
	return call->status;
}

const void *shim_run(const struct shim_call *call, const struct wire_run *run, size_t *n)
{
	*n = 0;
	if (!call->reply || run->offset > call->reply_bytes ||
		run->length > call->reply_bytes - run->offset)
		return NULL;
	*n = run->length;
	return call->reply + run->offset;
}

/* ---- handles ---- */

uint64_t shim_mint(enum handle_kind kind, void *object)
{
	return handle_mint(kind, object);
}

void *shim_object_of(uint64_t handle, enum handle_kind kind)
{
	return handle_object(handle, kind);
}

void shim_unmint(uint64_t handle)
{
	handle_release(handle);
}

uint64_t shim_handle(struct shim_call *call, const void *handle, enum handle_kind kind)
{
	uint64_t number = (uint64_t)(uintptr_t)handle;

	if (number && !handle_object(number, kind) && !call->status)
		call->status = CUDA_ERROR_INVALID_HANDLE;
	return number;
}

/* Looking a parameter up may need calls of its own (a thread's stream is created and ordered, a
 * kernel's module loaded), which are built in the same scratch: what CALL has so far is put
 * aside meanwhile. */
struct aside {
	unsigned char small[512];
	unsigned char *bytes;
};

static bool aside_put(struct aside *aside, struct shim_call *call)
{
	aside->bytes = call->body_bytes <= sizeof(aside->small) ? aside->small
								: malloc(call->body_bytes);
	if (!aside->bytes) {
		if (!call->status)
			call->status = CUDA_ERROR_OUT_OF_MEMORY;
		return false;
	}
	memcpy(aside->bytes, call->body, call->body_bytes);
	return true;
}

static void aside_back(struct aside *aside, struct shim_call *call)
{
	memcpy(call->body, aside->bytes, call->body_bytes);
	if (aside->bytes != aside->small)
		free(aside->bytes);
}

uint64_t shim_function(struct shim_call *call, CUfunction function)
{
	struct function *found = handle_object((uint64_t)(uintptr_t)function, KIND_CUfunction);
	struct aside aside;
	CUresult status;

	if (found)
		return function_handle(found);
	if (!aside_put(&aside, call))
		return 0;
	status = function_find(function, &found);
	aside_back(&aside, call);
	if (status && !call->status)
		call->status = status;
	return found ? function_handle(found) : 0;
}

uint64_t shim_stream(struct shim_call *call, CUstream stream)
{
	bool may_send = (stream && stream != CU_STREAM_LEGACY) || managed_any;
	struct aside aside;
	uint64_t number = 0;
	CUresult status;

	if (may_send && !aside_put(&aside, call))
		return 0;
	status = stream_number(stream, &number);
	if (may_send)
		aside_back(&aside, call);
	if (status && !call->status)
		call->status = status;
	return number;
}
