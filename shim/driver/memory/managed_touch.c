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
	struct context *context;
	uint64_t address;
	size_t bytes;
	unsigned attach; /* as of the region */
	uint64_t stream, worked, stream_synced;
	uint64_t bounce;
	bool taken;	/* the bounce buffer is to be put */
	const void *at; /* NULL: they could not be had */
};

/* Done up to frame WORKED. */
static CUresult context_done(struct context *context, uint64_t worked)
{
	struct context *before = thread_self.current;
	CUresult status;
	uint64_t seq;

	if (atomic_load(&context->synced) >= worked)
		return CUDA_SUCCESS;
	thread_set(context);
	status = sync_wait(SYNC_CONTEXT, 0, &seq);
	thread_set(before);
	if (!status)
		atomic_store(&context->synced, seq);
	return status;
}

CUresult managed_sync(struct context *context)
{
	return context_done(context, atomic_load(&managed.worked));
}

/* All work that could have written to F's pages is done: for those of one stream, or of none,
 * what came before they were attached to it, and that stream's own. */
static CUresult fetch_sync(const struct fetch *f)
{
	uint64_t worked = atomic_load(&managed.worked);
	struct region *r;
	CUresult status;

	if (f->attach == CU_MEM_ATTACH_GLOBAL)
		return context_done(f->context, worked);
	status = context_done(f->context, f->worked);
	if (status || f->attach == CU_MEM_ATTACH_HOST || f->stream_synced >= worked)
		return status;
	status = sync_wait(SYNC_STREAM, f->stream, NULL);
	pthread_mutex_lock(&managed.lock);
	r = managed_region(f->address);
	if (r && !status)
		r->stream_synced = worked;
	pthread_mutex_unlock(&managed.lock);
	return status;
}

static CUresult fetch_wait(struct fetch *f)
{
	struct wire_vcudaCopyOut *body;
	uint64_t stream;
	CUstream ahead;
	CUresult status = fetch_sync(f);

	if (!status)
		status = stream_ahead(f->context, &ahead);
	if (!status)
		status = stream_plain(ahead, &stream);
	if (!status)
		status = shim_bounce_get(f->bytes, &f->bounce);
	if (status)
		return status;
	body = shim_begin(&f->call, OP_vcudaCopyOut, sizeof(*body));
	body->destination.offset = f->bounce;
	body->src = f->address;
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
static void fetch_begin(struct fetch *f)
{
	thread_set(f->context);
	(void)fetch_wait(f);
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
	struct fetch f = {.context = r->context,
		.address = address,
		.bytes = n * PAGE_BYTES,
		.attach = r->attach,
		.stream = r->stream,
		.worked = r->worked,
		.stream_synced = r->stream_synced};
	uint64_t id = r->id;

	pthread_mutex_unlock(&managed.lock);
	fetch_begin(&f);
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
