/* SPDX-License-Identifier: Apache-2.0
 *
 * Managed memory: see managed.h.  A page is given, pushed and taken under managed.lock;
 * fetching one needs the device, so that is done without it, and begins anew where work came
 * between.
 */
#include "shim/driver/memory/managed.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "protocol/generated/cuda_ops.h"
#include "protocol/generated/vcuda_ops.h"
#include "protocol/generated/vcuda_wire.h"
#include "shim/driver/context.h"
#include "shim/driver/memory/fault.h"
#include "shim/driver/memory/managed_part.h"
#include "shim/driver/memory/memory.h"
#include "shim/driver/memory/pages.h"
#include "shim/driver/order.h"
#include "shim/driver/stream.h"
#include "shim/engine/driver.h"
#include "shim/engine/engine.h"
#include "shim/engine/lock.h"
#include "shim/engine/statistics.h"
#include "shim/engine/thread.h"

bool managed_any;
/* Its numbers are none of memory.c's. */
struct managed managed = {.lock = PTHREAD_MUTEX_INITIALIZER, .last_id = 1ull << 40};
LOCK_RANK(managed, managed.lock, LOCK_MANAGED);

struct region *managed_region(uint64_t address)
{
	size_t low = 0, high = managed.count;

	while (low < high) {
		size_t middle = (low + high) / 2;
		struct region *r = managed.regions[middle];

		if (address - r->base < r->bytes)
			return r;
		if (address < r->base)
			high = middle;
		else
			low = middle + 1;
	}
	return NULL;
}

bool managed_find(CUdeviceptr address, struct managed_range *range)
{
	struct region *r;

	if (!managed_any)
		return false;
	pthread_mutex_lock(&managed.lock);
	r = managed_region(address);
	if (r && address - r->base >= r->asked)
		r = NULL;
	if (r)
		*range = (struct managed_range){
			.base = r->base, .bytes = r->asked, .id = r->id, .context = r->context};
	pthread_mutex_unlock(&managed.lock);
	return r != NULL;
}

/* ---- towards the device ---- */

static CUresult post_pages(const struct region *r, size_t first, size_t n, uint64_t *seq)
{
	const unsigned char *from = managed.way->view(r->base + first * PAGE_BYTES);
	CUresult status = CUDA_SUCCESS;

	stats_copy(STATS_HOST_TO_DEVICE, n * PAGE_BYTES);
	for (size_t at = 0, bytes; !status && at < n * PAGE_BYTES; at += bytes) {
		struct shim_call call;
		struct wire_vcudaCopyIn *body =
			shim_begin(&call, OP_vcudaCopyIn, sizeof(*body));

		bytes = n * PAGE_BYTES - at < FRAME_CHUNK ? n * PAGE_BYTES - at : FRAME_CHUNK;
		call.context = r->context->number;
		body->dst = r->base + first * PAGE_BYTES + at;
		body->pitch = body->width = bytes;
		body->height = body->depth = 1;
		shim_payload_captured(&call, from + at, bytes);
		status = shim_post(&call);
		*seq = call.seq;
	}
	return status;
}

static bool page_zero(const struct region *r, size_t page)
{
	static const unsigned char zeroes[PAGE_BYTES];

	return !memcmp(managed.way->view(r->base + page * PAGE_BYTES), zeroes, PAGE_BYTES);
}

/* Pages of one state that the program may have changed. */
static CUresult push_run(const struct region *r, size_t first, size_t n, uint64_t *seq)
{
	size_t end = first + n;
	bool maybe = r->pages.state[first] == PAGE_MAYBE;
	CUresult status = CUDA_SUCCESS;

	/* Another thread that writes now does so before it is read, or once it has been taken.
	 */
	managed.way->forbid_write(r->base + first * PAGE_BYTES, n * PAGE_BYTES);
	if (!maybe)
		return post_pages(r, first, n, seq);
	while (!status && first < end) {
		for (n = 0; first + n < end && !page_zero(r, first + n); n++)
			;
		if (n)
			status = post_pages(r, first, n, seq);
		first += n + 1;
	}
	return status;
}

CUresult managed_push_pages(struct region *r, size_t first, size_t n)
{
	size_t end = first + n;
	CUresult status = CUDA_SUCCESS;
	uint64_t seq = 0;

	thread_self.in_managed = true;
	for (size_t at = first, run; !status && at < end && r->pages.present; at += run) {
		enum page_state state = r->pages.state[at];

		run = pages_run(&r->pages, at, end - at);
		if (page_new(state))
			status = push_run(r, at, run, &seq);
		if (page_present(state) && !status) {
			managed.way->take(r->base + at * PAGE_BYTES, run * PAGE_BYTES);
			pages_set(&r->pages, at, run, PAGE_ABSENT);
		}
	}
	/* The device may write to what nobody has touched yet. */
	if (!status && r->pages.zero)
		pages_set(&r->pages, first, n, PAGE_ABSENT);
	if (!status && seq)
		status = order_copied(r->context, 0, seq);
	thread_self.in_managed = false;
	return status;
}

CUresult managed_push(uint64_t stream)
{
	CUresult status = CUDA_SUCCESS;
	bool left = false;

	atomic_fetch_add(&managed.epoch, 1);
	if (!atomic_load(&managed.touched))
		return CUDA_SUCCESS;
	pthread_mutex_lock(&managed.lock);
	for (size_t i = 0; i < managed.count && !status; i++) {
		struct region *r = managed.regions[i];

		if ((r->pages.present || r->pages.zero) && region_reached(r, stream))
			status = managed_push_pages(r, 0, r->pages.count);
		left |= r->pages.present || r->pages.zero;
	}
	atomic_store(&managed.touched, left || status);
	pthread_mutex_unlock(&managed.lock);
	return status;
}

void managed_stream_gone(uint64_t stream)
{
	pthread_mutex_lock(&managed.lock);
	for (size_t i = 0; i < managed.count; i++) {
		struct region *r = managed.regions[i];

		if (r->attach != CU_MEM_ATTACH_SINGLE || r->stream != stream)
			continue;
		r->attach = CU_MEM_ATTACH_GLOBAL;
		atomic_store(&managed.touched, true);
	}
	pthread_mutex_unlock(&managed.lock);
}

/* ---- what the device may have changed ---- */

/* Does the frame begin work that could touch managed memory? */
static bool op_works(uint16_t op)
{
	switch (op) {
	case OP_vcudaLaunch:
	case OP_vcudaCopyIn:
	case OP_vcudaCopy:
	case OP_vcudaFill:
	case OP_vcudaHostFunc: return true;
	case OP_cuEventRecord:
	case OP_cuEventRecordWithFlags:
	case OP_cuStreamWaitEvent: return false;
	default: return op > 255; /* CUDA's own and the libraries': not asked in detail */
	}
}

static void raise_to(_Atomic uint64_t *at, uint64_t value)
{
	uint64_t now = atomic_load(at);

	while (now < value && !atomic_compare_exchange_weak(at, &now, value))
		;
}

/* Copies that the program got between managed_push and the work itself (the call read its own
 * arguments there) are older than what the work makes. */
static void take_clean(struct region *r)
{
	for (size_t at = 0, run; at < r->pages.count && r->pages.present; at += run) {
		run = pages_run(&r->pages, at, r->pages.count - at);
		if (r->pages.state[at] != PAGE_CLEAN)
			continue;
		managed.way->take(r->base + at * PAGE_BYTES, run * PAGE_BYTES);
		pages_set(&r->pages, at, run, PAGE_ABSENT);
	}
}

void managed_sent(uint16_t op, uint64_t seq)
{
	if (!op_works(op))
		return;
	raise_to(&managed.worked, seq);
	atomic_fetch_add(&managed.epoch, 1);
	if (thread_self.in_managed || !atomic_load(&managed.touched))
		return;
	pthread_mutex_lock(&managed.lock);
	for (size_t i = 0; i < managed.count; i++)
		if (managed.regions[i]->attach == CU_MEM_ATTACH_GLOBAL)
			take_clean(managed.regions[i]);
	pthread_mutex_unlock(&managed.lock);
}
