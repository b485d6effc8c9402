/* SPDX-License-Identifier: Apache-2.0
 *
 * See mirror.h.  One lock covers the list of what is active, its shadows, and each look at the
 * memory; an answer of the agent is taken over in the order in which it gave them.  Who changes
 * the list holds another as well, under which he asks the agent: it may answer only once a host
 * function has ended, and around one the memory is looked at.
 */
#include "shim/driver/memory/mirror/mirror.h"
#include "shim/driver/memory/mirror/mirror_state.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "shim/generated/vcuda_send.h"
#include "shim/driver/context/context.h"
#include "shim/driver/memory/memory.h"
#include "shim/driver/memory/mirror/mirror_thread.h"
#include "shim/engine/driver.h"
#include "shim/engine/engine.h"
#include "shim/engine/lock.h"
#include "shim/engine/session.h"

/* As users: neither its addresses are the program's, nor does it go where nobody uses it. */
#define MIRROR_HIDDEN 0xffffffffu

struct mirror mirror = {
	.changes = PTHREAD_MUTEX_INITIALIZER, .lock = PTHREAD_MUTEX_INITIALIZER};
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
		if (mirror.users[i] != MIRROR_HIDDEN && view_left(&mirror.views[i], address))
			return &mirror.views[i];
	return NULL;
}

static void region_insert(const struct mirror_view *view, unsigned users)
{
	size_t at = 0;

	while (at < mirror.count && mirror.views[at].address < view->address)
		at++;
	memmove(&mirror.views[at + 1], &mirror.views[at], (mirror.count - at) * sizeof(*view));
	memmove(&mirror.users[at + 1], &mirror.users[at],
		(mirror.count - at) * sizeof(*mirror.users));
	mirror.views[at] = *view;
	mirror.users[at] = users;
	mirror.count++;
	atomic_store(&mirror_regions, (uint32_t)mirror.count);
	if (users != MIRROR_HIDDEN && view->address != view_host(view))
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
		region_insert(&view, 0);
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

/* Takes one region that nobody uses out of the list, or a hidden one. False: there is none. */
static bool region_take(struct mirror_view *view, uint64_t hidden)
{
	size_t i = 0;
	bool found;

	pthread_mutex_lock(&mirror.lock);
	while (i < mirror.count &&
		(hidden ? mirror.users[i] != MIRROR_HIDDEN || mirror.views[i].address != hidden
			: mirror.users[i]))
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

	while (region_take(&view, 0)) {
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
		if (mirror.users[i] != MIRROR_HIDDEN && view_host(&mirror.views[i]) > host &&
			view_host(&mirror.views[i]) < end)
			end = view_host(&mirror.views[i]);
	return end;
}

/* Changing: counts one user more, or less, of the regions in [at, end). */
static void regions_use(uint64_t at, uint64_t end, bool more)
{
	pthread_mutex_lock(&mirror.lock);
	for (size_t i = 0; i < mirror.count; i++)
		if (mirror.users[i] != MIRROR_HIDDEN && view_host(&mirror.views[i]) < end &&
			view_end(&mirror.views[i]) > at)
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

CUresult mirror_hidden(void *live, uint64_t address, size_t bytes)
{
	const struct mirror_view view = {.live = live,
		.address = address,
		.bytes = bytes,
		.shadow = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0)};
	bool room;

	if (view.shadow == MAP_FAILED)
		return CUDA_ERROR_OUT_OF_MEMORY;
	pthread_mutex_lock(&mirror.changes);
	pthread_mutex_lock(&mirror.lock);
	room = region_room();
	if (room)
		region_insert(&view, MIRROR_HIDDEN);
	pthread_mutex_unlock(&mirror.lock);
	pthread_mutex_unlock(&mirror.changes);
	if (!room)
		munmap(view.shadow, bytes);
	return room ? mirror_thread_start() : CUDA_ERROR_OUT_OF_MEMORY;
}

void mirror_hidden_gone(uint64_t address)
{
	struct mirror_view view;

	pthread_mutex_lock(&mirror.changes);
	if (region_take(&view, address))
		munmap(view.shadow, view.bytes);
	pthread_mutex_unlock(&mirror.changes);
}

CUresult mirror_alias(uint64_t at, size_t bytes)
{
	CUresult status = CUDA_SUCCESS;

	pthread_mutex_lock(&mirror.lock);
	if (mirror.alias_count == mirror.alias_room) {
		size_t room = mirror.alias_room ? 2 * mirror.alias_room : 16;
		struct alias *aliases = realloc(mirror.aliases, room * sizeof(*aliases));

		if (aliases) {
			mirror.aliases = aliases;
			mirror.alias_room = room;
		} else {
			status = CUDA_ERROR_OUT_OF_MEMORY;
		}
	}
	if (!status)
		mirror.aliases[mirror.alias_count++] = (struct alias){at, bytes};
	pthread_mutex_unlock(&mirror.lock);
	return status;
}

void mirror_alias_gone(uint64_t at)
{
	pthread_mutex_lock(&mirror.lock);
	for (size_t i = 0; i < mirror.alias_count; i++)
		if (mirror.aliases[i].at == at) {
			mirror.aliases[i] = mirror.aliases[--mirror.alias_count];
			break;
		}
	pthread_mutex_unlock(&mirror.lock);
}

/* With the lock held: how much is active from an address on, at least; 0: nothing. */
static uint64_t active_from(uint64_t address)
{
	const struct mirror_view *view = region_at(address);

	for (size_t i = 0; !view && i < mirror.alias_count; i++)
		if (address - mirror.aliases[i].at < mirror.aliases[i].bytes)
			return mirror.aliases[i].at + mirror.aliases[i].bytes - address;
	return view ? view_left(view, address) : 0;
}

bool mirror_inside(uint64_t address, size_t bytes)
{
	uint64_t end, here;

	if (!mirror_any() || __builtin_add_overflow(address, bytes, &end))
		return false;
	pthread_mutex_lock(&mirror.lock);
	do {
		here = active_from(address); /* it may go on in the next */
		address += here;
	} while (here && address < end);
	pthread_mutex_unlock(&mirror.lock);
	return here != 0;
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
