/* SPDX-License-Identifier: Apache-2.0
 *
 * The mirror of the program's memory that kernels reach (protocol/wire/mirror.h): memory at the
 * same address, registered with the driver, so that a kernel finds it where the program has it.
 * What the program writes comes as runs; what kernels write is looked for at synchronisations,
 * and, while the program has a wait parked here, at each turn of the loop.
 */
#include <stdlib.h>
#include <sys/mman.h>

#include "common/log.h"
#include "gpu-agent/worker/loop/beside_call.h"
#include "gpu-agent/worker/direct/direct.h"
#include "gpu-agent/worker/driver.h"
#include "gpu-agent/worker/driver/memory/vmm_host.h"
#include "gpu-agent/worker/loop/fence.h"
#include "gpu-agent/worker/limits/quotas.h"
#include "gpu-agent/worker/reply/reply.h"
#include "gpu-agent/worker/staging/staging.h"
#include "gpu-agent/worker/worker_state.h"

/* Where the window is wanted: above the devices' windows, below where Linux loads programs. */
#define MIRROR_BASE 0x480000000000ull
#define MIRROR_WINDOW (1ull << 40)
#define MIRROR_LEAST (1ull << 33)
#define MIRROR_END (1ull << 47)	  /* of the addresses that a process can have … */
#define MIRROR_BEGIN (1ull << 16) /* … and where they begin */
#define MIRROR_REGIONS 4096
/* Mirror and shadow together may be half of what a session may have of the machine. */
#define MIRROR_SHARE 4
/* A wait is answered after that, whatever happened. */
#define MIRROR_WAIT_NS 100000000ull
/* How often a parked wait looks at the memory, and for whether anything runs. A look may take a
 * fifth of the loop's time. */
#define MIRROR_LOOK_NS 5000u
#define MIRROR_IDLE_NS 200000u
#define MIRROR_PART 4
/* Of each view, what kernels of many blocks read again and again is small: arrays of pointers.
 */
#define MIRROR_YIELD (64u << 10)
#define CACHE_LINE 64

static void *mirror_pointer(uint64_t address)
{
	return (void *)(uintptr_t)address;
}

void worker_mirror_open(struct worker *w)
{
	struct worker_mirror *m = &w->mirror;
	void *at = MAP_FAILED;

	m->tag = -1;
	for (uint64_t bytes = MIRROR_WINDOW; at == MAP_FAILED && bytes >= MIRROR_LEAST;
		bytes /= 2) {
		at = mmap(mirror_pointer(MIRROR_BASE), bytes, PROT_NONE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
		m->window_bytes = bytes;
	}
	m->spare = malloc(MIRROR_BULK_MAX);
	if (at == MAP_FAILED || !m->spare) {
		m->window_bytes = 0;
		log_warn("worker.mirror", "error=\"no addresses for host memory\"");
	}
	m->window = at == MAP_FAILED ? 0 : (uintptr_t)at;
}

bool mirror_owns(const struct worker *w, uint64_t address, uint64_t bytes)
{
	const struct worker_mirror *m = &w->mirror;
	const struct mirror_view *view;

	/* It may go on in the next: memory that was registered in parts. */
	while ((view = mirror_find(m->views, m->count, address, 1))) {
		uint64_t here = view->address + view->bytes - address;

		if (bytes <= here)
			return true;
		address += here;
		bytes -= here;
	}
	return false;
}

uint64_t mirror_part(const struct worker *w, uint64_t address, uint64_t bytes)
{
	const struct worker_mirror *m = &w->mirror;
	const struct mirror_view *view = mirror_find(m->views, m->count, address, 1);
	uint64_t here = view ? view->address + view->bytes - address : bytes;

	return here < bytes ? here : bytes;
}

/* ---- regions ---- */

static bool mirror_in_window(const struct worker_mirror *m, uint64_t address)
{
	return address - m->window < m->window_bytes;
}

/* The place in the list for [address, + bytes); false: something of it is there already. */
static bool mirror_place(
	const struct worker_mirror *m, uint64_t address, uint64_t bytes, size_t *place)
{
	size_t at = 0;

	while (at < m->count && m->views[at].address < address)
		at++;
	*place = at;
	return (at == m->count || address + bytes <= m->views[at].address) &&
	       (!at || m->views[at - 1].address + m->views[at - 1].bytes <= address);
}

CUresult mirror_room_for(const struct worker *w, uint64_t bytes)
{
	const struct worker_mirror *m = &w->mirror;
	uint64_t limit = w->config->host_memory / MIRROR_SHARE;

	return m->count == MIRROR_REGIONS ||
			       (limit && (bytes > limit || m->bytes > limit - bytes))
		       ? CUDA_ERROR_OUT_OF_MEMORY
		       : CUDA_SUCCESS;
}

static CUresult mirror_check(
	const struct worker *w, uint64_t address, uint64_t bytes, size_t *place)
{
	const struct worker_mirror *m = &w->mirror;

	if (!m->window_bytes)
		return CUDA_ERROR_NOT_SUPPORTED;
	if (!bytes || address % MIRROR_PAGE || bytes % MIRROR_PAGE || address < MIRROR_BEGIN ||
		address >= MIRROR_END || bytes > MIRROR_END - address ||
		mirror_in_window(m, address) != mirror_in_window(m, address + bytes - 1) ||
		!mirror_place(m, address, bytes, place))
		return CUDA_ERROR_INVALID_VALUE;
	return mirror_room_for(w, bytes);
}

/* Memory of ours exactly there: over nothing but our own reservation. */
static bool mirror_back(const struct worker_mirror *m, uint64_t address, uint64_t bytes)
{
	int fixed = mirror_in_window(m, address) ? MAP_FIXED : MAP_FIXED_NOREPLACE;
	void *at = mmap(mirror_pointer(address), bytes, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | fixed, -1, 0);

	if (at != MAP_FAILED && at != mirror_pointer(address)) {
		munmap(at, bytes); /* a kernel that does not know NOREPLACE */
		return false;
	}
	return at != MAP_FAILED;
}

static void mirror_unback(const struct worker_mirror *m, uint64_t address, uint64_t bytes)
{
	if (mirror_in_window(m, address))
		mmap(mirror_pointer(address), bytes, PROT_NONE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
	else
		munmap(mirror_pointer(address), bytes);
}

static CUresult mirror_register(struct worker *w, uint64_t address, uint64_t bytes)
{
	CUdeviceptr device;
	CUresult status;

	if (!w->cuda.cuMemHostRegister_v2 || !w->cuda.cuMemHostUnregister ||
		!w->cuda.cuMemHostGetDevicePointer_v2)
		return worker_lacks(w, "cuMemHostRegister");
	/* Every context's, and it stays as long as the one that never goes. */
	status = worker_use(w, CONTEXT_PRIMARY(0));
	if (status)
		return status;
	status = w->cuda.cuMemHostRegister_v2(mirror_pointer(address), bytes,
		CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP);
	if (status)
		return status;
	status = w->cuda.cuMemHostGetDevicePointer_v2(&device, mirror_pointer(address), 0);
	if (!status && device != address)
		status = CUDA_ERROR_NOT_SUPPORTED;
	if (status)
		w->cuda.cuMemHostUnregister(mirror_pointer(address));
	return status;
}

static bool mirror_room(struct worker_mirror *m)
{
	size_t room = m->room ? 2 * m->room : 16;
	struct mirror_view *views;

	if (m->count < m->room)
		return true;
	views = realloc(m->views, room * sizeof(*views));
	if (!views)
		return false;
	m->views = views;
	m->room = room;
	return true;
}

/* Charges VIEW, which goes to PLACE, and makes its shadow. */
static CUresult view_begin(struct worker *w, struct mirror_view *view, size_t *place)
{
	CUresult status = mirror_check(w, view->address, view->bytes, place);

	if (status)
		return status;
	if (!mirror_room(&w->mirror) || !quotas_charge(w, QUOTA_PINNED, view->bytes))
		return CUDA_ERROR_OUT_OF_MEMORY;
	view->live = mirror_pointer(view->address);
	view->shadow = mmap(NULL, view->bytes, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (view->shadow != MAP_FAILED)
		return CUDA_SUCCESS;
	quotas_uncharge(w, QUOTA_PINNED, view->bytes);
	return CUDA_ERROR_OUT_OF_MEMORY;
}

static void view_end(struct worker *w, const struct mirror_view *view)
{
	munmap(view->shadow, view->bytes);
	quotas_uncharge(w, QUOTA_PINNED, view->bytes);
}

static void view_put(struct worker_mirror *m, const struct mirror_view *view, size_t place)
{
	memmove(&m->views[place + 1], &m->views[place], (m->count - place) * sizeof(*view));
	m->views[place] = *view;
	m->count++;
	m->bytes += view->bytes;
}

/* False: there is none at ADDRESS. */
static bool view_take(struct worker_mirror *m, uint64_t address, struct mirror_view *view)
{
	size_t at = 0;

	while (at < m->count && m->views[at].address != address)
		at++;
	if (at == m->count)
		return false;
	*view = m->views[at];
	m->count--;
	memmove(&m->views[at], &m->views[at + 1], (m->count - at) * sizeof(*view));
	m->bytes -= view->bytes;
	m->cursor = (struct mirror_cursor){0, 0};
	return true;
}

CUresult mirror_adopt(struct worker *w, uint64_t address, uint64_t bytes)
{
	struct mirror_view view = {.address = address, .bytes = bytes};
	size_t place;
	CUresult status = view_begin(w, &view, &place);

	if (!status)
		view_put(&w->mirror, &view, place);
	return status;
}

void mirror_leave(struct worker *w, uint64_t address)
{
	struct mirror_view view;

	if (view_take(&w->mirror, address, &view))
		view_end(w, &view);
}

CUresult serve_vcudaMirrorMap(struct worker *w, struct request *r)
{
	const struct wire_vcudaMirrorMap *req = (const void *)r->body;
	struct worker_mirror *m = &w->mirror;
	struct mirror_view view = {.address = req->address, .bytes = req->bytes};
	size_t place;
	CUresult status = view_begin(w, &view, &place);

	if (status)
		return status;
	status =
		mirror_back(m, req->address, req->bytes) ? CUDA_SUCCESS : CUDA_ERROR_MAP_FAILED;
	if (!status) {
		status = mirror_register(w, req->address, req->bytes);
		if (status)
			mirror_unback(m, req->address, req->bytes);
	}
	if (status)
		view_end(w, &view);
	else
		view_put(m, &view, place);
	return status;
}

CUresult serve_vcudaMirrorUnmap(struct worker *w, struct request *r)
{
	const struct wire_vcudaMirrorUnmap *req = (const void *)r->body;
	struct mirror_view view;

	/* The worker's own ends with its memory. */
	if (vmm_host_at(w, req->address) || !view_take(&w->mirror, req->address, &view))
		return CUDA_ERROR_INVALID_VALUE;
	worker_use(w, CONTEXT_PRIMARY(0));
	w->cuda.cuMemHostUnregister(view.live);
	mirror_unback(&w->mirror, view.address, view.bytes);
	view_end(w, &view);
	return CUDA_SUCCESS;
}

/* ---- what travels ---- */

CUresult serve_vcudaMirrorWrite(struct worker *w, struct request *r)
{
	const struct wire_vcudaMirrorWrite *req = (const void *)r->body;
	const void *runs = worker_in(r, &req->runs, req->bytes);

	if (worker_refused(r))
		return r->refused;
	return mirror_store_runs(runs, req->bytes, w->mirror.views, w->mirror.count, false)
		       ? CUDA_SUCCESS
		       : CUDA_ERROR_INVALID_VALUE;
}

/* Whether nothing that the worker was given is running, or waits to. */
static bool mirror_idle(struct worker *w)
{
	bool idle = !w->kept.stash.used && !w->callbacks.outstanding && !beside_outside(w) &&
		    !direct_busy(w);

	for (struct worker_stream *s = w->streams.list; s && idle; s = s->next) {
		uint64_t work = s->work;

		if (work == s->clean || capture_of(w, s) || worker_use(w, s->context))
			continue;
		idle = w->cuda.cuStreamQuery(s->stream) != CUDA_ERROR_NOT_READY;
		if (idle)
			s->clean = work;
	}
	return idle;
}

/* Fills in an answer of at most CAPACITY bytes; how long it is. */
static uint32_t mirror_fill(
	struct worker *w, unsigned char *bytes, uint64_t capacity, bool idle)
{
	struct worker_mirror *m = &w->mirror;
	struct mirror_answer *answer = (void *)bytes;
	struct mirror_runs runs = {
		.to = bytes + sizeof(*answer), .room = (uint32_t)(capacity - sizeof(*answer))};

	if (!m->unwritten) {
		mirror_gather_stable(&runs, m->spare, m->views, m->count, &m->cursor);
		mirror_sent(&runs, m->views, m->count);
		m->unwritten = idle && !runs.full;
	}
	*answer = (struct mirror_answer){.number = ++m->answers,
		.bytes = runs.used,
		.more = runs.full,
		.idle = idle && !runs.full};
	return (uint32_t)sizeof(*answer) + runs.used;
}

static bool mirror_capacity_ok(uint64_t capacity)
{
	return capacity >= MIRROR_FETCH_MAX && capacity <= MIRROR_BULK_MAX;
}

void mirror_finish(struct worker *w, struct pending *p)
{
	uint32_t n =
		mirror_fill(w, p->bytes, p->length, !w->mirror.unwritten && mirror_idle(w));

	reply_payload(
		w, FRAME_REPLY, p->tag, CUDA_SUCCESS, &p->destination, p->bytes, n, p->range);
}

CUresult serve_vcudaMirrorFetch(struct worker *w, struct request *r)
{
	const struct wire_vcudaMirrorFetch *req = (const void *)r->body;
	struct pending *p;
	CUresult status;

	if (!mirror_capacity_ok(req->capacity))
		return CUDA_ERROR_INVALID_VALUE;
	p = fence_new(w, PENDING_MIRROR, r->header.context);
	if (!p)
		return CUDA_ERROR_OUT_OF_MEMORY;
	/* The loop has made sure that there is room (loop_call). */
	p->range = staging_alloc(w, &w->out, (uint32_t)req->capacity, &p->bytes);
	status = p->range ? CUDA_ERROR_NOT_READY : CUDA_ERROR_OUT_OF_MEMORY;
	p->destination = req->destination;
	p->length = (uint32_t)req->capacity;
	p->tag = r->header.tag;
	if (!status || status == CUDA_ERROR_NOT_READY)
		status = sync_await(w, r, p, req->scope, req->handle);
	if (status == CUDA_SUCCESS) {
		mirror_finish(w, p);
		r->later = true;
	} else if (status == CUDA_ERROR_NOT_READY) {
		fence_push(w, p);
		r->later = true;
		return CUDA_SUCCESS;
	} else if (p->range) {
		staging_done(p->range);
	}
	fence_free(w, p);
	return status;
}

CUresult serve_vcudaMirrorWait(struct worker *w, struct request *r)
{
	const struct wire_vcudaMirrorWait *req = (const void *)r->body;
	struct worker_mirror *m = &w->mirror;

	if (m->tag >= 0 || !m->window_bytes)
		return CUDA_ERROR_NOT_PERMITTED; /* the shim parks one at a time */
	m->tag = r->header.tag;
	m->destination = req->destination;
	m->parked_at = wait_now();
	m->asked_at = m->looked_at = 0;
	r->later = true;
	return CUDA_SUCCESS;
}

/* Behind a look its lines lie clean in the caches of this core, and there the GPU finds them
 * anew for each block that reads them: a kernel of MAGMA's took 104 us instead of 43 on an
 * H200 (bench/pinned_reads.cu). Lines that were written go to the cache of all cores when they
 * are read, or when they are told to. Nothing is written here: what a kernel writes at the same
 * time stays. */
static void mirror_yield(const struct mirror_view *view)
{
#if defined(__x86_64__)
	size_t bytes = view->bytes < MIRROR_YIELD ? view->bytes : MIRROR_YIELD;

	/* A processor that does not know CLDEMOTE does nothing there. */
	for (size_t i = 0; i < bytes; i += CACHE_LINE)
		__asm__ volatile("lock orq $0, %0\n\tcldemote %0"
			: "+m"(*(uint64_t *)(view->live + i))
			:
			: "cc");
#else
	(void)view;
#endif
}

static bool mirror_differs(const struct worker_mirror *m)
{
	bool differs = false;

	for (size_t v = 0; v < m->count && !differs; v++) {
		const struct mirror_view *view = &m->views[v];

		differs = memcmp(view->live, view->shadow, view->bytes) != 0;
		mirror_yield(view);
	}
	return differs;
}

bool mirror_poll(struct worker *w)
{
	struct worker_mirror *m = &w->mirror;
	uint64_t now = m->tag >= 0 ? wait_now() : 0;
	struct staging_range *range;
	CUresult deferred = w->deferred;
	unsigned char *bytes;
	bool idle = false;

	if (m->tag < 0 || now - m->looked_at < MIRROR_LOOK_NS + MIRROR_PART * m->look_ns ||
		!reply_room(w))
		return false;
	if (now - m->asked_at >= MIRROR_IDLE_NS) {
		m->asked_at = now;
		idle = mirror_idle(w); /* before the look: what ran has been written */
	}
	now = wait_now();
	if ((m->unwritten || !mirror_differs(m)) && !idle &&
		now - m->parked_at < MIRROR_WAIT_NS) {
		m->looked_at = wait_now();
		m->look_ns = m->looked_at - now;
		return false;
	}
	range = staging_alloc(w, &w->out, MIRROR_FETCH_MAX, &bytes);
	if (!range)
		return false;
	/* An error of a post is for a call of the program's. */
	w->deferred = CUDA_SUCCESS;
	reply_payload(w, FRAME_REPLY, (uint16_t)m->tag, CUDA_SUCCESS, &m->destination, bytes,
		mirror_fill(w, bytes, MIRROR_FETCH_MAX, idle), range);
	w->deferred = deferred;
	m->tag = -1;
	return true;
}
