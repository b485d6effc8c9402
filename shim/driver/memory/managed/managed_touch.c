/* SPDX-License-Identifier: Apache-2.0
 *
 * What the program touches: installed, or fetched from the device first.
 */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "protocol/generated/vcuda_ops.h"
#include "protocol/generated/vcuda_wire.h"
#include "shim/driver/context/context.h"
#include "shim/driver/memory/managed/managed.h"
#include "shim/driver/memory/managed/managed_part.h"
#include "shim/driver/stream/stream.h"
#include "shim/engine/engine.h"
#include "shim/engine/handle.h"
#include "shim/engine/session.h"
#include "shim/engine/statistics.h"
#include "shim/engine/status.h"
#include "shim/engine/thread.h"

/* Frames that are asked for at once where the program goes through its memory: as many as there
 * are connections to carry them. */
#define FETCH_FRAMES 4u
/* Zeroed at once, and opened for writing at once: of these the first cost nothing to push. */
#define TOUCH_ZERO 512u
#define TOUCH_WRITE 64u
/* Work that comes between a fetch and its end makes it begin anew, but not for ever: the
 * program may not touch the memory while the device works. */
#define TOUCH_TRIES 4

struct part {
	uint64_t first, end;
};

/* Bytes on their way to the program. */
struct fetch {
	struct context *context;
	uint64_t address;
	size_t bytes;
	struct part *parts; /* of variables: only these are asked for; NULL: all */
	size_t count;
	unsigned attach; /* as of the region */
	uint64_t stream, worked, stream_synced;
	bool in_callback;
	uint64_t bounce;
	bool taken, lost; /* the bounce buffer is to be put, if no answer is missing */
	const void *at;	  /* NULL: they could not be had */
};

CUresult managed_wait(uint16_t context, uint32_t scope, uint64_t handle, uint64_t *seq)
{
	struct shim_call call;
	struct wire_vcudaSync *body = shim_begin(&call, OP_vcudaSync, sizeof(*body));

	call.context = context;
	body->scope = scope;
	body->handle = handle;
	shim_wait(&call, 0);
	if (seq)
		*seq = call.seq;
	return shim_end(&call);
}

/* Contexts whose work up to a frame is not known to be done. */
struct undone {
	uint64_t worked;
	bool primaries; /* they have been looked at */
	uint16_t one;
	size_t count;
};

static void undone_look(void *object, void *argument)
{
	const struct context *context = object;
	struct undone *undone = argument;
	uint64_t worked = atomic_load(&managed.worked_in[context->number]);

	if (context->primary && undone->primaries)
		return;
	if (worked > undone->worked)
		worked = undone->worked;
	if (!atomic_load(&context->live) || atomic_load(&context->synced) >= worked)
		return;
	undone->one = context->number;
	undone->count++;
}

/* All that came before a frame is done: in one context, or (CONTEXT_NONE) in all. */
struct done {
	uint64_t seq;
	uint16_t one;
};

static void done_note(void *object, void *argument)
{
	struct context *context = object;
	const struct done *done = argument;
	uint64_t was = atomic_load(&context->synced);

	if (done->one != CONTEXT_NONE && done->one != context->number)
		return;
	while (was < done->seq &&
		!atomic_compare_exchange_weak(&context->synced, &was, done->seq))
		;
}

/* Of the program's own contexts there is no list but that of all handles, which is long where
 * it has many. */
static void own_contexts_each(void (*look)(void *, void *), void *argument)
{
	if (atomic_load(&managed.created))
		handle_each(KIND_CUcontext, look, argument);
}

/* All contexts' work is done up to frame WORKED: one wait, be it of one or of several. */
static CUresult work_done(uint64_t worked)
{
	struct undone undone = {.worked = worked};
	struct done done = {0};
	CUresult status;

	for (int i = 0; i < devices.count; i++)
		undone_look(&devices.at[i].primary, &undone);
	undone.primaries = true;
	own_contexts_each(undone_look, &undone);
	if (!undone.count)
		return CUDA_SUCCESS;
	done.one = undone.count == 1 ? undone.one : CONTEXT_NONE;
	status = managed_wait(done.one, SYNC_CONTEXT, 0, &done.seq);
	for (int i = 0; !status && i < devices.count; i++)
		done_note(&devices.at[i].primary, &done);
	if (!status)
		own_contexts_each(done_note, &done);
	return status;
}

CUresult managed_sync(void)
{
	return work_done(atomic_load(&managed.worked));
}

/* All work that could have written to F's pages is done: for those of one stream, or of none,
 * what came before they were attached to it, and that stream's own. */
static CUresult fetch_sync(const struct fetch *f)
{
	uint64_t worked = atomic_load(&managed.worked);
	struct region *r;
	CUresult status;

	/* Its stream is idle meanwhile, as CUDA says; work behind it waits for it. */
	if (f->in_callback)
		return CUDA_SUCCESS;
	if (f->attach == CU_MEM_ATTACH_GLOBAL)
		return work_done(worked);
	status = work_done(f->worked);
	if (status || f->attach == CU_MEM_ATTACH_HOST || f->stream_synced >= worked)
		return status;
	status = managed_wait(f->context->number, SYNC_STREAM, f->stream, NULL);
	pthread_mutex_lock(&managed.lock);
	r = managed_region(f->address);
	if (r && !status)
		r->stream_synced = worked;
	pthread_mutex_unlock(&managed.lock);
	return status;
}

static void frame_begin(
	struct shim_call *call, const struct fetch *f, uint64_t first, uint64_t bytes)
{
	struct wire_vcudaCopyOut *body = shim_begin(call, OP_vcudaCopyOut, sizeof(*body));

	call->context = f->context->number;
	body->destination.offset = f->bounce + (first - f->address);
	body->src = first;
	body->pitch = body->width = bytes;
	body->height = body->depth = 1;
	body->stream = f->context->ahead; /* overtakes what a host function holds */
}

static CUresult frame_end(struct shim_call *call, struct fetch *f, uint64_t bytes)
{
	shim_wait_sent(call, 0);
	/* Without an answer the bytes may still come: that place is never used again. */
	f->lost |= !call->slot;
	if (!call->status && call->received != bytes)
		call->status = status_of(CAUSE_VIOLATION);
	return shim_end(call);
}

static uint64_t frame_bytes(uint64_t first, uint64_t end)
{
	return end - first < FRAME_CHUNK ? end - first : FRAME_CHUNK;
}

/* One part of it into the bounce buffer: a round trip, as all is asked for at once, unless
 * other threads have the slots. */
static CUresult fetch_part(struct fetch *f, uint64_t first, uint64_t end)
{
	struct shim_call calls[FETCH_FRAMES];
	CUresult status = CUDA_SUCCESS;

	statistics_copy(STATISTICS_DEVICE_TO_HOST, end - first);
	while (first < end) {
		uint64_t at = first;
		unsigned count = 0;

		for (; at < end && count < FETCH_FRAMES; count++) {
			frame_begin(&calls[count], f, at, frame_bytes(at, end));
			if (count && !shim_try_send(&calls[count]))
				break;
			if (!count)
				shim_send(&calls[count]);
			at += frame_bytes(at, end);
		}
		statistics_event(STATISTICS_ROUND_TRIPS);
		for (unsigned i = 0; i < count; i++) {
			CUresult ended = frame_end(&calls[i], f, frame_bytes(first, end));

			first += frame_bytes(first, end);
			if (ended && !status)
				status = ended;
		}
	}
	return status;
}

/* Room for all of it, or else for a frame's worth: who has the rest may wait for us, since what
 * it copies to is managed memory, too. */
static CUresult fetch_room(struct fetch *f)
{
	if (f->bytes > FRAME_CHUNK) {
		if (shim_bounce_try(f->bytes, &f->bounce))
			return CUDA_SUCCESS;
		f->bytes = FRAME_CHUNK;
	}
	return shim_bounce_get(f->bytes, &f->bounce);
}

static CUresult fetch_wait(struct fetch *f)
{
	CUresult status = fetch_sync(f);

	if (!status)
		status = fetch_room(f);
	if (status)
		return status;
	f->taken = true;
	if (!f->parts)
		status = fetch_part(f, f->address, f->address + f->bytes);
	else
		memset(shim_segment(f->bounce), 0, f->bytes);
	for (size_t i = 0; f->parts && i < f->count && !status; i++) {
		const struct part *part = &f->parts[i];
		uint64_t end = f->address + f->bytes;

		if (part->first < end)
			status = fetch_part(f, part->first, part->end < end ? part->end : end);
	}
	if (!status)
		f->at = shim_segment(f->bounce);
	return status;
}

/* The session may be lost, or the device have failed: every call says so, and the program,
 * which no call can tell here, goes on with zeroes. */
static void fetch_begin(struct fetch *f)
{
	(void)fetch_wait(f);
}

static void fetch_end(const struct fetch *f)
{
	free(f->parts);
	if (f->taken && !f->lost)
		shim_bounce_put(f->bounce, f->bytes);
}

/* With the lock held: installs N pages from FIRST on. False: the kernel will not have it. */
static bool install(
	struct region *r, size_t first, size_t n, const void *from, enum page_state state)
{
	if (!n)
		return true;
	if (!managed.way->install(r->base + first * PAGE_BYTES, r->view + first * PAGE_BYTES,
		    from, n * PAGE_BYTES, state != PAGE_CLEAN))
		return false;
	pages_set(&r->pages, first, n, state);
	return true;
}

/* With the lock held: installs N pages that only the device had.  The first is what was
 * touched: the others may only be read until they are written to. */
static bool install_fetched(
	struct region *r, size_t first, size_t n, const void *from, bool write)
{
	const void *rest = from ? (const char *)from + PAGE_BYTES : NULL;

	if (!write)
		return install(r, first, n, from, PAGE_CLEAN);
	return install(r, first, 1, from, PAGE_DIRTY) &&
	       install(r, first + 1, n - 1, rest, PAGE_CLEAN);
}

static bool let_write(struct region *r, size_t first, size_t n)
{
	if (!managed.way->let_write(r->base + first * PAGE_BYTES, n * PAGE_BYTES))
		return false;
	pages_set(&r->pages, first, n, PAGE_DIRTY);
	return true;
}

enum touch { TOUCH_DONE, TOUCH_FETCH_IT, TOUCH_REFUSED };

/* With the lock held: a page that is there, or needs no fetch. */
static enum touch touch_now(struct region *r, size_t page, bool write)
{
	bool done = true;

	switch ((enum page_state)r->pages.state[page]) {
	case PAGE_ZERO:
		done = install(
			r, page, pages_ahead(&r->pages, page, TOUCH_ZERO), NULL, PAGE_MAYBE);
		break;
	case PAGE_CLEAN:
		if (write)
			done = let_write(r, page, pages_ahead(&r->pages, page, TOUCH_WRITE));
		break;
	case PAGE_MAYBE:
	case PAGE_DIRTY: break;
	case PAGE_ABSENT: return TOUCH_FETCH_IT;
	}
	return done ? TOUCH_DONE : TOUCH_REFUSED;
}

/* With the lock held. False: no memory. */
static bool fetch_choose(struct fetch *f, const struct region *r)
{
	size_t count = 0;

	for (const struct piece *p = r->pieces; p; p = p->next)
		count++;
	if (!count)
		return true;
	f->parts = malloc(count * sizeof(*f->parts));
	for (const struct piece *p = r->pieces; p && f->parts; p = p->next) {
		struct part part = {p->first > f->address ? p->first : f->address,
			p->end < f->address + f->bytes ? p->end : f->address + f->bytes};

		if (part.first < part.end)
			f->parts[f->count++] = part;
	}
	return f->parts != NULL;
}

/* The most pages fetched at once: half of the bounce buffer is others'. */
static size_t fetch_most(void)
{
	size_t frames = session_here()->ring.bounce_size / FRAME_CHUNK / 2;

	return (frames < 1		       ? 1
		       : frames < FETCH_FRAMES ? frames
					       : FETCH_FRAMES) *
	       (FRAME_CHUNK / PAGE_BYTES);
}

/* With the lock held, which it gives up meanwhile: fetches from PAGE on, and installs what it
 * got if nothing came between. False: the kernel will not have it. */
static bool touch_fetch(struct region *r, size_t page, const struct fault *fault, bool last)
{
	uint64_t epoch = atomic_load(&managed.epoch), id = r->id;
	size_t n = pages_ahead(&r->pages, page, fetch_most());
	struct fetch f = {.context = r->context,
		.address = r->base + page * PAGE_BYTES,
		.bytes = n * PAGE_BYTES,
		.attach = r->attach,
		.stream = r->stream,
		.worked = r->worked,
		.stream_synced = r->stream_synced,
		.in_callback = fault->in_callback};
	bool good = true;

	if (!fetch_choose(&f, r))
		return false;
	pthread_mutex_unlock(&managed.lock);
	fetch_begin(&f);
	pthread_mutex_lock(&managed.lock);
	/* Told before the look: managed_sent does these in the other order. */
	atomic_store(&managed.touched, true);
	r = managed_region(f.address);
	if (r && r->id == id && r->pages.state[page] == PAGE_ABSENT &&
		(last || atomic_load(&managed.epoch) == epoch))
		good = install_fetched(r, page,
			pages_run(&r->pages, page, f.bytes / PAGE_BYTES), f.at, fault->write);
	fetch_end(&f);
	return good;
}

/* With the lock held. */
static bool touch(const struct fault *fault)
{
	bool crowded = false;
	struct region *r;

	for (int n = 1; (r = managed_region(fault->address)); n++) {
		size_t page = (fault->address - r->base) / PAGE_BYTES;
		enum touch now = touch_now(r, page, fault->write);

		if (now == TOUCH_DONE) {
			atomic_store(&managed.touched, true);
			return true;
		}
		if (now == TOUCH_FETCH_IT && touch_fetch(r, page, fault, n >= TOUCH_TRIES))
			continue;
		/* The program's mapping is in too many pieces: of this region the device gets
		 * all, and it begins anew. */
		if (crowded || managed_push_pages(r, 0, r->pages.count, PUSH_AT_ONCE))
			return false;
		crowded = true;
	}
	return false;
}

bool managed_touch_now(const struct fault *fault)
{
	enum touch now = TOUCH_REFUSED;
	struct region *r;

	if (pthread_mutex_trylock(&managed.lock))
		return false;
	r = managed_region(fault->address);
	if (r)
		now = touch_now(r, (fault->address - r->base) / PAGE_BYTES, fault->write);
	if (now == TOUCH_DONE)
		atomic_store(&managed.touched, true);
	pthread_mutex_unlock(&managed.lock);
	if (now == TOUCH_DONE)
		managed.way->done(fault, true);
	return now == TOUCH_DONE;
}

void managed_touch(const struct fault *fault)
{
	bool managed_memory;

	pthread_mutex_lock(&managed.lock);
	thread_self.in_managed = true;
	managed_memory = touch(fault);
	thread_self.in_managed = false;
	pthread_mutex_unlock(&managed.lock);
	managed.way->done(fault, managed_memory);
}
