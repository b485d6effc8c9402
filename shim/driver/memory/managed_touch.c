/* SPDX-License-Identifier: Apache-2.0
 *
 * What the program touches: given, or fetched from the device first.
 */
#include <stddef.h>

#include "protocol/generated/vcuda_ops.h"
#include "protocol/generated/vcuda_wire.h"
#include "shim/driver/context.h"
#include "shim/driver/memory/managed.h"
#include "shim/driver/memory/managed_part.h"
#include "shim/driver/stream.h"
#include "shim/engine/engine.h"
#include "shim/engine/statistics.h"
#include "shim/engine/status.h"
#include "shim/engine/thread.h"

/* Pages fetched at once: a frame's worth. */
#define TOUCH_FETCH (FRAME_CHUNK / PAGE_BYTES)
/* Zeroed at once, and opened for writing at once: of these the first cost nothing to push. */
#define TOUCH_ZERO 512u
#define TOUCH_WRITE 64u
/* Work that comes between a fetch and its end makes it begin anew, but not for ever: the
 * program may not touch the memory while the device works. */
#define TOUCH_TRIES 4

/* Bytes on their way to the program. */
struct fetch {
	struct shim_call call;
	uint64_t bounce;
	size_t bytes;
	bool taken;	/* the bounce buffer is to be put */
	const void *at; /* NULL: they could not be had */
};

/* All work that could have written is done. */
static CUresult fetch_sync(struct context *context)
{
	uint64_t worked = atomic_load(&managed.worked), seq;
	CUresult status;

	if (atomic_load(&context->synced) >= worked)
		return CUDA_SUCCESS;
	status = sync_wait(SYNC_CONTEXT, 0, &seq);
	if (!status)
		atomic_store(&context->synced, seq);
	return status;
}

static CUresult fetch_wait(struct fetch *f, struct context *context, uint64_t address)
{
	struct wire_vcudaCopyOut *body;
	uint64_t stream;
	CUstream ahead;
	CUresult status = fetch_sync(context);

	if (!status)
		status = stream_ahead(context, &ahead);
	if (!status)
		status = stream_plain(ahead, &stream);
	if (!status)
		status = shim_bounce_get(f->bytes, &f->bounce);
	if (status)
		return status;
	body = shim_begin(&f->call, OP_vcudaCopyOut, sizeof(*body));
	body->destination.offset = f->bounce;
	body->src = address;
	body->pitch = body->width = f->bytes;
	body->height = body->depth = 1;
	body->stream = stream;
	shim_wait(&f->call, 0);
	/* Without an answer the bytes may still come: that place is never used again. */
	f->taken = f->call.slot != NULL;
	if (!f->call.status && f->call.landed != f->bytes)
		f->call.status = status_of(CAUSE_VIOLATION);
	if (!f->call.status)
		f->at = shim_segment(f->bounce);
	stats_copy(STATS_DEVICE_TO_HOST, f->bytes);
	return shim_end(&f->call);
}

/* The session may be lost, or the device have failed: every call says so, and the program,
 * which no call can tell here, goes on with zeroes. */
static void fetch_begin(
	struct fetch *f, struct context *context, uint64_t address, size_t bytes)
{
	*f = (struct fetch){.bytes = bytes};
	thread_set(context);
	(void)fetch_wait(f, context, address);
	thread_set(NULL);
}

static void fetch_end(const struct fetch *f)
{
	if (f->taken)
		shim_bounce_put(f->bounce, f->bytes);
}

/* With the lock held: gives N pages that only the device had.  The first is what was touched:
 * the others may only be read until they are written to. */
static void give_fetched(struct region *r, size_t first, size_t n, const void *from, bool write)
{
	uint64_t at = r->base + first * PAGE_BYTES;

	if (write) {
		managed.way->give(at, from, PAGE_BYTES, true);
		pages_set(&r->pages, first, 1, PAGE_DIRTY);
		at += PAGE_BYTES;
		from = from ? (const char *)from + PAGE_BYTES : NULL;
		first++;
		n--;
	}
	if (n) {
		managed.way->give(at, from, n * PAGE_BYTES, false);
		pages_set(&r->pages, first, n, PAGE_CLEAN);
	}
}

/* With the lock held: a page that is there, or needs no fetch. False: it has to be fetched. */
static bool give_now(struct region *r, size_t page, bool write)
{
	uint64_t at = r->base + page * PAGE_BYTES;
	size_t n;

	switch ((enum page_state)r->pages.state[page]) {
	case PAGE_ZERO:
		n = pages_ahead(&r->pages, page, TOUCH_ZERO);
		managed.way->give(at, NULL, n * PAGE_BYTES, true);
		pages_set(&r->pages, page, n, PAGE_MAYBE);
		return true;
	case PAGE_CLEAN:
		if (!write)
			return true;
		n = pages_ahead(&r->pages, page, TOUCH_WRITE);
		managed.way->let_write(at, n * PAGE_BYTES);
		pages_set(&r->pages, page, n, PAGE_DIRTY);
		return true;
	case PAGE_MAYBE:
	case PAGE_DIRTY: return true;
	case PAGE_ABSENT: return false;
	}
	return false;
}

/* With the lock held, which it gives up meanwhile: fetches from PAGE on, and gives what it got
 * if nothing came between. */
static void touch_fetch(struct region *r, size_t page, bool write, bool last)
{
	uint64_t address = r->base + page * PAGE_BYTES, epoch = atomic_load(&managed.epoch);
	size_t n = pages_ahead(&r->pages, page, TOUCH_FETCH);
	struct context *context = r->context;
	uint64_t id = r->id;
	struct fetch f;

	pthread_mutex_unlock(&managed.lock);
	fetch_begin(&f, context, address, n * PAGE_BYTES);
	pthread_mutex_lock(&managed.lock);
	r = managed_region(address);
	if (r && r->id == id && (last || atomic_load(&managed.epoch) == epoch)) {
		give_fetched(r, page, pages_run(&r->pages, page, n), f.at, write);
		atomic_store(&managed.touched, true);
	}
	fetch_end(&f);
}

void managed_touch(const struct fault *fault)
{
	uint64_t at = fault->address & ~(uint64_t)(PAGE_BYTES - 1);
	struct region *r;

	pthread_mutex_lock(&managed.lock);
	thread_self.in_managed = true;
	for (int n = 1; (r = managed_region(at)); n++) {
		size_t page = (at - r->base) / PAGE_BYTES;

		if (give_now(r, page, fault->write))
			break;
		touch_fetch(r, page, fault->write, n >= TOUCH_TRIES);
	}
	if (r)
		atomic_store(&managed.touched, true);
	thread_self.in_managed = false;
	pthread_mutex_unlock(&managed.lock);
	managed.way->wake(at, PAGE_BYTES);
}
