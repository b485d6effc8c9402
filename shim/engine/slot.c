/* SPDX-License-Identifier: Apache-2.0
 *
 * Calls that are awaited: each has a slot of the segment, where its answer comes.
 */
#include "shim/engine/slot.h"

#include "common/wait.h"
#include "shim/engine/engine.h"
#include "shim/engine/session.h"
#include "shim/engine/statistics.h"
#include "shim/engine/status.h"

static int slot_get(struct session *here)
{
	for (unsigned word = 0; word < CHANNEL_SLOTS / 64; word++) {
		uint64_t taken = atomic_load(&here->tags.taken[word]);

		while (~taken) {
			uint64_t bit = ~taken & (taken + 1);

			if (atomic_compare_exchange_weak(
				    &here->tags.taken[word], &taken, taken | bit))
				return (int)(word * 64) + __builtin_ctzll(bit);
		}
	}
	return -1;
}

static void slot_put(struct channel_slot *slot)
{
	struct session *here = session_here();
	unsigned number = (unsigned)(slot - here->slots);

	atomic_fetch_and(&here->tags.taken[number / 64], ~(1ull << number % 64));
	if (atomic_load(&here->tags.wanted)) {
		atomic_fetch_add(&here->tags.given, 1);
		wait_wake(&here->tags.given);
	}
}

static int slot_wait(CUresult *status)
{
	struct session *here = session_here();
	int number = slot_get(here);

	if (number >= 0)
		return number;
	statistics_event(STATISTICS_STALLS);
	atomic_fetch_add(&here->tags.wanted, 1);
	for (;;) {
		uint32_t given = atomic_load(&here->tags.given);

		number = slot_get(here);
		if (number >= 0)
			break;
		wait_sleep(&here->tags.given, given, ENGINE_LOOK_NS);
		if (session_check()) {
			*status = session_status();
			break;
		}
	}
	atomic_fetch_sub(&here->tags.wanted, 1);
	return number;
}

static CUresult send_in_slot(struct shim_call *call, int number)
{
	struct session *here = session_here();
	struct channel_slot *slot = &here->slots[number];

	atomic_store_explicit(&slot->sleeping, 0, memory_order_relaxed);
	/* Nobody's slot, before it looks like one that waits (docs/RESUME.md). */
	atomic_store_explicit(&here->page->calls[number], 0, memory_order_relaxed);
	slot->status = slot->deferred = slot->body = slot->payload = 0;
	atomic_store_explicit(&slot->answered, 0, memory_order_release);
	call->status = engine_send(call, FRAME_CALL, (uint16_t)number);
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
	number = slot_get(session_here());
	if (number < 0)
		return false;
	send_in_slot(call, number);
	return true;
}

/* Waits for the slot's answer. False: the session is lost, and the answer will never come. */
static bool slot_answered(struct channel_slot *slot)
{
	const uint64_t spin_ns = session_here()->spin_ns;
	uint64_t start = spin_ns ? wait_now() : 0;

	while (spin_ns) {
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

bool shim_wait_for(struct shim_call *call, uint64_t ns)
{
	struct channel_slot *slot = call->slot;
	const uint64_t spin_ns = session_here()->spin_ns;
	uint64_t start = wait_now();

	if (!slot || session_check())
		return true;
	while (spin_ns && wait_now() - start < spin_ns && wait_now() - start < ns) {
		if (atomic_load_explicit(&slot->answered, memory_order_acquire))
			return true;
		wait_relax();
	}
	if (wait_now() - start < ns) {
		atomic_store(&slot->sleeping, 1);
		atomic_thread_fence(memory_order_seq_cst);
		if (!atomic_load_explicit(&slot->answered, memory_order_acquire))
			wait_sleep(&slot->answered, 0, ns);
		atomic_store(&slot->sleeping, 0);
	}
	return atomic_load_explicit(&slot->answered, memory_order_acquire);
}

const void *shim_wait_sent(struct shim_call *call, size_t reply_bytes)
{
	struct channel_slot *slot = call->slot;
	uint64_t counted = statistics_start();
	bool answered;

	if (call->status)
		return NULL;
	answered = slot_answered(slot);
	statistics_time(STATISTICS_ANSWER_NS, counted);
	if (!answered) {
		call->status = session_status();
		/* The slot is never used again: the sidecar may still write to it. */
		call->slot = NULL;
		return NULL;
	}
	call->status = status_wire(slot->status);
	call->received = slot->payload;
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
		statistics_event(STATISTICS_ROUND_TRIPS);
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
		statistics_event(STATISTICS_ERRORS);
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
	call->status = engine_send(call, FRAME_POST, 0);
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
