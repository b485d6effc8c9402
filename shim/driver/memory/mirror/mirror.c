/* SPDX-License-Identifier: Apache-2.0
 *
 * See mirror.h.  One lock covers the list of what is active, its shadows, and each look at the
 * memory; an answer of the agent is taken over in the order in which it gave them.  Who changes
 * the list holds another as well, under which he asks the agent: it may answer only once a host
 * function has ended, and around one the memory is looked at.
 */
#include "shim/driver/memory/mirror/mirror.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "common/wait.h"
#include "protocol/generated/vcuda_ops.h"
#include "protocol/generated/vcuda_wire.h"
#include "shim/generated/vcuda_send.h"
#include "protocol/wire/mirror.h"
#include "shim/driver/context/context.h"
#include "shim/driver/memory/free_extents.h"
#include "shim/driver/memory/pinned/host.h"
#include "shim/driver/memory/memory.h"
#include "shim/driver/memory/mirror/mirror_names.h"
#include "shim/driver/memory/mirror/mirror_thread.h"
#include "shim/engine/driver.h"
#include "shim/engine/engine.h"
#include "shim/engine/lock.h"
#include "shim/engine/session.h"
#include "shim/engine/statistics.h"
#include "shim/engine/status.h"

/* An answer that was given before this one is taken over by then, or never will be. */
#define MIRROR_TURN_NS 5000000000ull

static struct {
	pthread_mutex_t changes; /* of the list; before the other one */
	pthread_mutex_t lock;
	struct mirror_view *views; /* by address */
	unsigned *users;	   /* of each: how often it was activated */
	size_t count, room;
	struct free_extents free; /* pages of the window */
	uint64_t window, window_bytes;
	_Atomic uint64_t taken; /* answers taken over */
	unsigned char runs[MIRROR_WRITE_MAX], spare[MIRROR_WRITE_MAX];
	struct mirror_names names; /* in what went to the agent since the last push */
} mirror = {.changes = PTHREAD_MUTEX_INITIALIZER, .lock = PTHREAD_MUTEX_INITIALIZER};
LOCK_RANK(mirror_list, mirror.changes, LOCK_MIRROR_LIST);
LOCK_RANK(mirror, mirror.lock, LOCK_MIRROR);

_Atomic uint32_t mirror_regions;
_Atomic bool mirror_apart;

void mirror_open(void)
{
	/* It would have to be of several agents. */
	if (session_count > 1)
		return;
	mirror.window = devices.info.host_window;
	mirror.window_bytes = devices.info.host_window_bytes;
	if (mirror.window_bytes)
		free_extents_put(&mirror.free, 0, mirror.window_bytes / MIRROR_PAGE);
}

bool mirror_served(void)
{
	return mirror.window_bytes != 0;
}

void *mirror_place(size_t size)
{
	uint64_t page = FREE_EXTENTS_NONE;

	pthread_mutex_lock(&mirror.lock);
	if (mirror.window_bytes)
		page = free_extents_get(&mirror.free, size / MIRROR_PAGE);
	pthread_mutex_unlock(&mirror.lock);
	return page == FREE_EXTENTS_NONE
		       ? NULL
		       : (void *)(uintptr_t)(mirror.window + page * MIRROR_PAGE);
}

void mirror_unplace(void *at, size_t size)
{
	uint64_t from = (uintptr_t)at - mirror.window;

	if (from >= mirror.window_bytes)
		return;
	pthread_mutex_lock(&mirror.lock);
	free_extents_put(&mirror.free, from / MIRROR_PAGE, size / MIRROR_PAGE);
	pthread_mutex_unlock(&mirror.lock);
}

/* ---- what is active ---- */

static CUresult managed_region_map(uint64_t address, uint64_t bytes)
{
	return send_vcudaMirrorMap(address, bytes);
}

static void region_unmap(uint64_t address)
{
	send_vcudaMirrorUnmap(address);
}

/* With the lock held: room for one more. */
static bool region_room(void)
{
	size_t room = mirror.room ? 2 * mirror.room : 16;
	struct mirror_view *views;
	unsigned *users;

	if (mirror.count < mirror.room)
		return true;
	views = realloc(mirror.views, room * sizeof(*views));
	if (views)
		mirror.views = views;
	users = realloc(mirror.users, room * sizeof(*users));
	if (users)
		mirror.users = users;
	if (!views || !users)
		return false;
	mirror.room = room;
	return true;
}

static uint64_t view_host(const struct mirror_view *view)
{
	return (uintptr_t)view->live;
}

static uint64_t view_end(const struct mirror_view *view)
{
	return view_host(view) + view->bytes;
}

/* Bytes from an address, the program's or the agent's, to the region's end; 0: not in it. */
static uint64_t view_left(const struct mirror_view *view, uint64_t address)
{
	uint64_t from = address - view_host(view);

	if (from >= view->bytes)
		from = address - view->address;
	return from < view->bytes ? view->bytes - from : 0;
}

/* With either lock held: the region around such an address; NULL: none. */
static struct mirror_view *region_at(uint64_t address)
{
	for (size_t i = 0; i < mirror.count; i++)
		if (view_left(&mirror.views[i], address))
			return &mirror.views[i];
	return NULL;
}

static void region_insert(const struct mirror_view *view)
{
	size_t at = 0;

	while (at < mirror.count && mirror.views[at].address < view->address)
		at++;
	memmove(&mirror.views[at + 1], &mirror.views[at], (mirror.count - at) * sizeof(*view));
	memmove(&mirror.users[at + 1], &mirror.users[at],
		(mirror.count - at) * sizeof(*mirror.users));
	mirror.views[at] = *view;
	mirror.users[at] = 0;
	mirror.count++;
	atomic_store(&mirror_regions, (uint32_t)mirror.count);
	if (view->address != view_host(view))
		atomic_store(&mirror_apart, true);
}

static uint64_t pages_get(uint64_t bytes)
{
	uint64_t page;

	pthread_mutex_lock(&mirror.lock);
	page = free_extents_get(&mirror.free, bytes / MIRROR_PAGE);
	pthread_mutex_unlock(&mirror.lock);
	return page;
}

/* Those of a view that does not lie where the program has it. */
static void pages_put(const struct mirror_view *view)
{
	if (view->address == view_host(view))
		return;
	pthread_mutex_lock(&mirror.lock);
	free_extents_put(&mirror.free, (view->address - mirror.window) / MIRROR_PAGE,
		view->bytes / MIRROR_PAGE);
	pthread_mutex_unlock(&mirror.lock);
}

/* Changing: where the agent puts it. Where it has something else at the address, APART allows
 * another, in the window. */
static CUresult region_place(struct mirror_view *view, bool apart)
{
	CUresult status = managed_region_map(view->address, view->bytes);
	uint64_t page;

	if (status != CUDA_ERROR_MAP_FAILED || !apart)
		return status;
	page = pages_get(view->bytes);
	if (page == FREE_EXTENTS_NONE)
		return status;
	view->address = mirror.window + page * MIRROR_PAGE;
	status = managed_region_map(view->address, view->bytes);
	if (status)
		pages_put(view);
	return status;
}

/* Changing: pages that are not active become so. */
static CUresult region_add(uint64_t host, uint64_t bytes, bool apart)
{
	struct mirror_view view = {
		.live = (void *)(uintptr_t)host, .address = host, .bytes = bytes};
	CUresult status;
	bool room;

	pthread_mutex_lock(&mirror.lock);
	room = region_room();
	pthread_mutex_unlock(&mirror.lock);
	if (!room)
		return CUDA_ERROR_OUT_OF_MEMORY;
	view.shadow = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (view.shadow == MAP_FAILED)
		return CUDA_ERROR_OUT_OF_MEMORY;
	status = region_place(&view, apart);
	if (!status) {
		pthread_mutex_lock(&mirror.lock);
		region_insert(&view);
		pthread_mutex_unlock(&mirror.lock);
		return CUDA_SUCCESS;
	}
	munmap(view.shadow, bytes);
	session_debug("%llu bytes of host memory at 0x%llx for kernels: error %d%s",
		(unsigned long long)bytes, (unsigned long long)host, (int)status,
		status == CUDA_ERROR_MAP_FAILED
			? ", the agent has something else at that address"
			: "");
	return status;
}

/* Takes one region that nobody uses out of the list. False: there is none. */
static bool region_take(struct mirror_view *view)
{
	size_t i = 0;
	bool found;

	pthread_mutex_lock(&mirror.lock);
	while (i < mirror.count && mirror.users[i])
		i++;
	found = i < mirror.count;
	if (found) {
		*view = mirror.views[i];
		mirror.count--;
		memmove(&mirror.views[i], &mirror.views[i + 1],
			(mirror.count - i) * sizeof(*mirror.views));
		memmove(&mirror.users[i], &mirror.users[i + 1],
			(mirror.count - i) * sizeof(*mirror.users));
		atomic_store(&mirror_regions, (uint32_t)mirror.count);
	}
	pthread_mutex_unlock(&mirror.lock);
	return found;
}

/* Changing: those of the regions that nobody uses go. */
static void regions_tidy(void)
{
	struct mirror_view view;

	while (region_take(&view)) {
		region_unmap(view.address);
		pages_put(&view);
		munmap(view.shadow, view.bytes);
	}
}

static uint64_t page_floor(uint64_t address)
{
	return address & ~(uint64_t)(MIRROR_PAGE - 1);
}

/* Changing: where the next region begins behind an address, END at the most. */
static uint64_t region_next(uint64_t host, uint64_t end)
{
	for (size_t i = 0; i < mirror.count; i++)
		if (view_host(&mirror.views[i]) > host && view_host(&mirror.views[i]) < end)
			end = view_host(&mirror.views[i]);
	return end;
}

/* Changing: counts one user more, or less, of the regions in [at, end). */
static void regions_use(uint64_t at, uint64_t end, bool more)
{
	pthread_mutex_lock(&mirror.lock);
	for (size_t i = 0; i < mirror.count; i++)
		if (view_host(&mirror.views[i]) < end && view_end(&mirror.views[i]) > at)
			mirror.users[i] += more ? 1 : mirror.users[i] ? -1u : 0;
	pthread_mutex_unlock(&mirror.lock);
}

CUresult mirror_activate(const void *host, size_t bytes)
{
	uint64_t at = page_floor((uintptr_t)host);
	uint64_t end = page_floor((uintptr_t)host + bytes + MIRROR_PAGE - 1);
	CUresult status = CUDA_SUCCESS;

	if (!mirror_served())
		return CUDA_ERROR_NOT_SUPPORTED;
	if (!mirror_usable(at, end, true))
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&mirror.changes);
	/* Regions that another piece made may begin or end within its pages. Nobody else
	 * changes the list meanwhile, so that it can be looked at. */
	for (uint64_t from = at, to; from < end && !status; from = to) {
		struct mirror_view *there = region_at(from);

		to = there ? view_end(there) : region_next(from, end);
		if (!there)
			status = region_add(from, to - from, from == at && to == end);
	}
	if (status)
		regions_tidy();
	else
		regions_use(at, end, true);
	pthread_mutex_unlock(&mirror.changes);
	return status ? status : mirror_thread_start();
}

void mirror_deactivate(const void *host, size_t bytes)
{
	pthread_mutex_lock(&mirror.changes);
	regions_use(page_floor((uintptr_t)host), (uintptr_t)host + bytes, false);
	regions_tidy();
	pthread_mutex_unlock(&mirror.changes);
}

bool mirror_inside(uint64_t address, size_t bytes)
{
	const struct mirror_view *view;
	uint64_t end;

	if (!mirror_any() || __builtin_add_overflow(address, bytes, &end))
		return false;
	pthread_mutex_lock(&mirror.lock);
	do {
		view = region_at(address); /* it may go on in the next */
		address = view ? address + view_left(view, address) : end;
	} while (address < end);
	pthread_mutex_unlock(&mirror.lock);
	return view != NULL;
}

bool mirror_reaches(uint64_t address, size_t bytes)
{
	return memory_inside(address, bytes) || mirror_inside(address, bytes);
}

uint64_t mirror_address(uint64_t host)
{
	const struct mirror_view *view;

	if (!atomic_load(&mirror_apart))
		return host;
	pthread_mutex_lock(&mirror.lock);
	view = region_at(host);
	if (view)
		host = view->address + view->bytes - view_left(view, host);
	pthread_mutex_unlock(&mirror.lock);
	return host;
}

/* ---- towards the agent ---- */

CUresult mirror_send(bool *changed, struct mirror_names *names)
{
	struct mirror_runs runs = {.to = mirror.runs, .room = sizeof(mirror.runs)};
	struct mirror_cursor cursor = {0, 0};
	CUresult status = CUDA_SUCCESS;

	*changed = false;
	pthread_mutex_lock(&mirror.lock);
	do {
		mirror_gather_stable(&runs, mirror.spare, mirror.views, mirror.count, &cursor);
		if (!runs.used)
			continue;
		*changed = true;
		if (host_idle())
			mirror_names_note(&mirror.names, &runs);
		mirror_sent(&runs, mirror.views, mirror.count);
		status = send_vcudaMirrorWrite(runs.used, runs.to);
		statistics_mirrored(STATISTICS_MIRROR_OUT, runs.used);
	} while (runs.full && !status);
	if (names) {
		*names = mirror.names;
		mirror.names.count = 0;
	}
	pthread_mutex_unlock(&mirror.lock);
	return status;
}

CUresult mirror_push(void)
{
	struct mirror_names names;
	CUresult status;
	bool changed;

	/* What the program has written there may lead to memory that is not active yet, and
	 * that to more, as a list does. */
	do
		status = mirror_send(&changed, &names);
	while (!status && mirror_names_reach(&names));
	return status;
}

/* ---- from the agent ---- */

static bool answer_in_turn(void *argument)
{
	return atomic_load(&mirror.taken) + 1 >= *(const uint64_t *)argument;
}

/* Waits until all answers before it are taken over. */
static bool answer_turn(uint64_t number)
{
	uint64_t until = wait_now() + MIRROR_TURN_NS;

	while (!answer_in_turn(&number)) {
		if (wait_now() > until || session_check())
			return false;
		nanosleep(&(struct timespec){.tv_nsec = 1000}, NULL);
	}
	return true;
}

CUresult mirror_take_over(const void *bytes, size_t n, struct mirror_answer *answer)
{
	bool fits;

	if (n < sizeof(*answer))
		return status_of(CAUSE_VIOLATION);
	memcpy(answer, bytes, sizeof(*answer));
	if (answer->bytes != n - sizeof(*answer) || !answer_turn(answer->number))
		return status_of(CAUSE_VIOLATION);
	pthread_mutex_lock(&mirror.lock);
	/* A region may have gone meanwhile: its runs are for nobody. */
	fits = mirror_store_runs((const unsigned char *)bytes + sizeof(*answer), answer->bytes,
		mirror.views, mirror.count, true);
	if (answer->number > atomic_load(&mirror.taken))
		atomic_store(&mirror.taken, answer->number);
	pthread_mutex_unlock(&mirror.lock);
	if (fits)
		statistics_mirrored(STATISTICS_MIRROR_IN, answer->bytes);
	return CUDA_SUCCESS;
}

CUresult mirror_fetch(uint32_t scope, uint64_t handle, uint64_t *seq)
{
	struct mirror_answer answer = {.more = 1};
	size_t room = MIRROR_FETCH_MAX;
	CUresult status = CUDA_SUCCESS;

	while (answer.more && !status) {
		struct wire_vcudaMirrorFetch *body;
		struct shim_call call;
		uint64_t bounce;
		bool answered;

		status = shim_bounce_get(room, &bounce);
		if (status)
			return status;
		body = shim_begin(&call, OP_vcudaMirrorFetch, sizeof(*body));
		body->scope = scope;
		body->handle = handle;
		body->capacity = room;
		body->destination.offset = bounce;
		shim_wait(&call, 0);
		if (seq && scope != SYNC_NONE)
			*seq = call.seq;
		answered = call.slot != NULL;
		if (answered && !call.status)
			call.status = call.received > room
					      ? status_of(CAUSE_VIOLATION)
					      : mirror_take_over(shim_segment(bounce),
							call.received, &answer);
		status = shim_end(&call);
		/* Without an answer the bytes may still come. */
		if (answered)
			shim_bounce_put(bounce, room);
		room = MIRROR_BULK_MAX;
		scope = SYNC_NONE;
	}
	return status;
}
