/* SPDX-License-Identifier: Apache-2.0
 *
 * Managed memory: see managed.h.  A page is installed, pushed and evicted under managed.lock;
 * fetching one needs the device, so that is done without it, and begins anew where work came
 * between.
 */
#include "shim/driver/memory/pinned/host.h"
#include "shim/driver/memory/managed/managed.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "protocol/generated/cuda_ops.h"
#include "protocol/generated/vcuda_ops.h"
#include "protocol/generated/vcuda_wire.h"
#include "shim/driver/context/context.h"
#include "shim/driver/graph/capture.h"
#include "shim/driver/memory/pages/page_fault.h"
#include "shim/driver/memory/managed/managed_part.h"
#include "shim/driver/memory/memory.h"
#include "shim/driver/memory/pages/pages.h"
#include "shim/driver/stream/order.h"
#include "shim/driver/stream/stream.h"
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

bool managed_near(uint64_t address)
{
	return address >= atomic_load(&managed.low) && address < atomic_load(&managed.high);
}

/* Touches a page as the system call is going to. */
static void reach_page(uint64_t at, bool write)
{
	if (write)
		/* A compiler makes a load of an atomic or with 0. */
		__asm__ volatile("lock orb $0, %0"
			: "+m"(*(unsigned char *)(uintptr_t)at)
			:
			: "cc");
	else
		(void)*(const volatile unsigned char *)(uintptr_t)at;
}

void managed_reach(uintptr_t from, size_t n, bool write)
{
	uint64_t at = from, end = at + n;

	if (at >= atomic_load(&managed.high) || end <= atomic_load(&managed.low) || end < at)
		return;
	while (at < end) {
		struct managed_range range;
		uint64_t behind = (at & ~(uint64_t)(PAGE_BYTES - 1)) + PAGE_BYTES;

		if (managed_find(at, &range))
			reach_page(at, write);
		at = behind;
	}
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
		*range = (struct managed_range){.base = r->base,
			.bytes = r->asked,
			.id = r->id,
			.variable = r->pieces != NULL,
			.pooled = r->pooled,
			.context = r->context};
	pthread_mutex_unlock(&managed.lock);
	return r != NULL;
}

bool managed_gap(CUdeviceptr address)
{
	struct managed_range found;
	struct memory_range range;

	return managed_any && memory_find(address, &range) && range.managed &&
	       !managed_find(address, &found);
}

/* ---- towards the device ---- */

/* Posts on a stream; the last frame in seq. */
struct posted {
	uint64_t stream, seq;
};

/* The program's bytes [first, end) of a region. */
static CUresult post_bytes(
	const struct region *r, uint64_t first, uint64_t end, struct posted *posted)
{
	CUresult status = CUDA_SUCCESS;

	statistics_copy(STATISTICS_HOST_TO_DEVICE, end - first);
	host_carried(r->view + (first - r->base), end - first, first, end - first);
	for (uint64_t bytes; !status && first < end; first += bytes) {
		struct shim_call call;
		struct wire_vcudaCopyIn *body =
			shim_begin(&call, OP_vcudaCopyIn, sizeof(*body));

		bytes = end - first < FRAME_CHUNK ? end - first : FRAME_CHUNK;
		call.context = r->context->number;
		body->dst = first;
		body->pitch = body->width = bytes;
		body->height = body->depth = 1;
		body->stream = posted->stream;
		shim_payload_captured(&call, r->view + (first - r->base), bytes);
		status = shim_post(&call);
		posted->seq = call.seq;
	}
	return status;
}

static CUresult post_pages(const struct region *r, size_t page, size_t n, struct posted *posted)
{
	uint64_t first = r->base + page * PAGE_BYTES, end = first + n * PAGE_BYTES;
	CUresult status = CUDA_SUCCESS;

	if (!r->pieces)
		return post_bytes(r, first, end, posted);
	for (const struct piece *p = r->pieces; p && !status; p = p->next) {
		uint64_t from = p->first > first ? p->first : first;
		uint64_t to = p->end < end ? p->end : end;

		if (from < to)
			status = post_bytes(r, from, to, posted);
	}
	return status;
}

static bool page_zero(const struct region *r, size_t page)
{
	static const unsigned char zeroes[PAGE_BYTES];

	return !memcmp(r->view + page * PAGE_BYTES, zeroes, PAGE_BYTES);
}

/* Pages of one state that the program may have changed. */
static CUresult push_run(const struct region *r, size_t first, size_t n, struct posted *posted)
{
	size_t end = first + n;
	bool maybe = r->pages.state[first] == PAGE_MAYBE;
	CUresult status = CUDA_SUCCESS;

	/* Another thread that writes now does so before it is read, or once it has been
	 * evicted.
	 */
	managed.way->forbid_write(r->base + first * PAGE_BYTES, n * PAGE_BYTES);
	if (!maybe)
		return post_pages(r, first, n, posted);
	while (!status && first < end) {
		for (n = 0; first + n < end && !page_zero(r, first + n); n++)
			;
		if (n)
			status = post_pages(r, first, n, posted);
		first += n + 1;
	}
	return status;
}

/* At once, whatever lies between: so the program's mapping is in fewer pieces behind it. */
static bool pages_evict(struct region *r, size_t first, size_t n)
{
	if (!managed.way->evict(
		    r->base + first * PAGE_BYTES, r->view + first * PAGE_BYTES, n * PAGE_BYTES))
		return false;
	pages_set(&r->pages, first, n, PAGE_ABSENT);
	return true;
}

/* Posts what is new of these pages. */
static CUresult push_new(struct region *r, size_t first, size_t n, struct posted *posted)
{
	CUresult status = CUDA_SUCCESS;

	for (size_t at = first, run; !status && at < first + n; at += run) {
		run = pages_run(&r->pages, at, first + n - at);
		if (page_new(r->pages.state[at]))
			status = push_run(r, at, run, posted);
	}
	return status;
}

/* What was posted is done before work that comes later. */
static CUresult posted_drain(const struct region *r, const struct posted *posted, enum push how)
{
	if (!posted->seq)
		return CUDA_SUCCESS;
	return how == PUSH_AT_ONCE
		       ? managed_wait(r->context->number, SYNC_STREAM, posted->stream, NULL)
		       : order_copied(r->context, 0, posted->seq);
}

CUresult managed_push_pages(struct region *r, size_t first, size_t n, enum push how)
{
	struct posted posted = {.stream = how == PUSH_AT_ONCE ? r->context->ahead : 0};
	bool was = thread_self.in_managed;
	CUresult status = CUDA_SUCCESS;

	if (!r->pages.present && !r->pages.zero)
		return CUDA_SUCCESS;
	thread_self.in_managed = true;
	if (r->pages.present)
		status = push_new(r, first, n, &posted);
	if (!status)
		status = posted_drain(r, &posted, how);
	thread_self.in_managed = was;
	if (status)
		return status;
	/* The device may write to what nobody has touched yet, too. */
	if (!r->pages.present)
		pages_set(&r->pages, first, n, PAGE_ABSENT);
	else if (!pages_evict(r, first, n))
		/* All of a region can always be evicted. */
		return n < r->pages.count ? managed_push_pages(r, 0, r->pages.count, how)
					  : CUDA_ERROR_OPERATING_SYSTEM;
	return CUDA_SUCCESS;
}

static CUresult push_all(uint64_t stream, bool any_stream, enum push how)
{
	CUresult status = CUDA_SUCCESS;
	bool left = false;

	atomic_fetch_add(&managed.epoch, 1);
	if (!atomic_load(&managed.touched))
		return CUDA_SUCCESS;
	pthread_mutex_lock(&managed.lock);
	for (size_t i = 0; i < managed.count && !status; i++) {
		struct region *r = managed.regions[i];

		if (any_stream || region_reached(r, stream))
			status = managed_push_pages(r, 0, r->pages.count, how);
		left |= r->pages.present || r->pages.zero;
	}
	atomic_store(&managed.touched, left || status);
	pthread_mutex_unlock(&managed.lock);
	return status;
}

CUresult managed_push(uint64_t stream)
{
	/* The legacy stream must not be used while one that waits for it captures. */
	return push_all(stream, false, capture_any() ? PUSH_AT_ONCE : PUSH_BEFORE_WORK);
}

void managed_push_callback(void)
{
	if (managed_any)
		push_all(0, true, PUSH_AT_ONCE);
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
	case OP_vcudaArrayCopy:
	case OP_vcudaDirectReceive:
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

void managed_evict_clean(struct region *r)
{
	for (size_t at = 0, run; at < r->pages.count && r->pages.present; at += run) {
		run = pages_run(&r->pages, at, r->pages.count - at);
		if (r->pages.state[at] == PAGE_CLEAN && !pages_evict(r, at, run))
			managed_push_pages(r, 0, r->pages.count, PUSH_BEFORE_WORK);
	}
}

void managed_sent(uint16_t op, uint16_t context, uint64_t seq)
{
	if (!op_works(op))
		return;
	raise_to(&managed.worked, seq);
	raise_to(&managed.worked_in[context], seq);
	if (context > CONTEXT_CREATED && !atomic_load(&managed.created))
		atomic_store(&managed.created, true);
	atomic_fetch_add(&managed.epoch, 1);
	if (thread_self.in_managed || !atomic_load(&managed.touched))
		return;
	pthread_mutex_lock(&managed.lock);
	for (size_t i = 0; i < managed.count; i++)
		if (managed.regions[i]->attach == CU_MEM_ATTACH_GLOBAL)
			managed_evict_clean(managed.regions[i]);
	pthread_mutex_unlock(&managed.lock);
}
