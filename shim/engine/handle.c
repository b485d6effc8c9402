/* SPDX-License-Identifier: Apache-2.0
 *
 * The table of handles: see handle.h.  The memory is reserved for the largest table at once and
 * touched only as far as it is used, so entries never move and readers need no lock.
 */
#include "shim/engine/handle.h"
#include "shim/engine/lock.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <sys/mman.h>

/* Natively a stream is an address, and programs use the bits that are zero in those: PyTorch
 * takes an odd one for a stream of its own. So streams get indexes that are aligned as
 * addresses of the heap are, and what is no stream gets others, while there are both. */
#define HANDLE_ALIGNMENT 16u
struct handle_table handle_table = {.lock = PTHREAD_MUTEX_INITIALIZER};
LOCK_RANK(handles, handle_table.lock, LOCK_HANDLES);

_Thread_local struct handle_released handle_released;

/* With the lock. */
static void put_free(uint32_t index)
{
	struct handle_entry *entries = atomic_load(&handle_table.entries);
	enum handle_class of = index % HANDLE_ALIGNMENT ? HANDLE_PLAIN : HANDLE_ALIGNED;

	entries[index].next = 0;
	if (handle_table.free[of].last)
		entries[handle_table.free[of].last - 1].next = index + 1;
	else
		handle_table.free[of].first = index + 1;
	handle_table.free[of].last = index + 1;
}

/* The one that is free for longest; false: none is. With the lock. */
static bool take_free(enum handle_class of, uint32_t *index)
{
	struct handle_entry *entries = atomic_load(&handle_table.entries);

	if (!handle_table.free[of].first)
		return false;
	*index = handle_table.free[of].first - 1;
	handle_table.free[of].first = entries[*index].next;
	if (!handle_table.free[of].first)
		handle_table.free[of].last = 0;
	return true;
}

/* The other class serves where all is used. With the lock. */
static bool take(enum handle_class of, uint32_t *index)
{
	uint32_t used;

	while (!take_free(of, index)) {
		used = atomic_load(&handle_table.used);
		if (used == HANDLE_INDEX_MAX)
			return take_free(
				of == HANDLE_PLAIN ? HANDLE_ALIGNED : HANDLE_PLAIN, index);
		put_free(used);
		atomic_store(&handle_table.used, used + 1);
	}
	return true;
}

void handle_recycle_slow(void)
{
	struct handle_entry *entries;
	uint32_t at = handle_released.first, next;

	pthread_mutex_lock(&handle_table.lock);
	entries = atomic_load(&handle_table.entries);
	for (; at; at = next) {
		next = entries[at - 1].next;
		put_free(at - 1);
	}
	pthread_mutex_unlock(&handle_table.lock);
	handle_released = (struct handle_released){0};
}

uint64_t handle_mint(enum handle_kind kind, void *object)
{
	struct handle_entry *entries;
	uint32_t index;
	uint64_t handle = 0;

	pthread_mutex_lock(&handle_table.lock);
	entries = atomic_load(&handle_table.entries);
	if (!entries) {
		entries =
			mmap(NULL, HANDLE_INDEX_MAX * sizeof(*entries), PROT_READ | PROT_WRITE,
				MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
		if (entries == MAP_FAILED)
			goto out;
		atomic_store(&handle_table.entries, entries);
	}
	if (!take(kind == KIND_CUstream ? HANDLE_ALIGNED : HANDLE_PLAIN, &index))
		goto out;
	if (!++entries[index].generation)
		entries[index].generation = 1;
	handle = handle_make(entries[index].generation, kind, index);
	atomic_store_explicit(&entries[index].object, object, memory_order_relaxed);
	atomic_store_explicit(&entries[index].home, NULL, memory_order_relaxed);
	atomic_store_explicit(&entries[index].handle, handle, memory_order_release);
out:
	pthread_mutex_unlock(&handle_table.lock);
	return handle;
}

static struct handle_entry *entry_of(uint64_t handle)
{
	struct handle_entry *entries =
		atomic_load_explicit(&handle_table.entries, memory_order_acquire);
	uint32_t index = handle_index(handle);

	if (!entries || !handle || index >= HANDLE_INDEX_MAX ||
		index >= atomic_load_explicit(&handle_table.used, memory_order_relaxed) ||
		atomic_load_explicit(&entries[index].handle, memory_order_acquire) != handle)
		return NULL;
	return &entries[index];
}

void handle_home_set(uint64_t handle, struct context *home)
{
	struct handle_entry *entry = entry_of(handle);

	if (entry)
		atomic_store_explicit(&entry->home, home, memory_order_relaxed);
}

struct context *handle_home(uint64_t handle)
{
	struct handle_entry *entry = entry_of(handle);

	return entry ? atomic_load_explicit(&entry->home, memory_order_relaxed) : NULL;
}

static bool forget(uint64_t handle, bool again)
{
	struct handle_entry *entries;
	uint32_t index = handle_index(handle);
	uint64_t expected = handle;
	bool released = false;

	pthread_mutex_lock(&handle_table.lock);
	entries = atomic_load(&handle_table.entries);
	if (handle && entries && index < atomic_load(&handle_table.used))
		released = atomic_compare_exchange_strong(&entries[index].handle, &expected, 0);
	if (released && again) {
		entries[index].next = 0;
		if (handle_released.last)
			entries[handle_released.last - 1].next = index + 1;
		else
			handle_released.first = index + 1;
		handle_released.last = index + 1;
	}
	pthread_mutex_unlock(&handle_table.lock);
	return released;
}

bool handle_release(uint64_t handle)
{
	return forget(handle, true);
}

bool handle_retire(uint64_t handle)
{
	return forget(handle, false);
}

void handle_each(
	enum handle_kind kind, void (*function)(void *object, void *argument), void *argument)
{
	struct handle_entry *entries;

	pthread_mutex_lock(&handle_table.lock);
	entries = atomic_load(&handle_table.entries);
	for (uint32_t i = 0; entries && i < atomic_load(&handle_table.used); i++) {
		uint64_t handle = atomic_load(&entries[i].handle);

		if (handle && handle_kind(handle) == kind)
			function(atomic_load(&entries[i].object), argument);
	}
	pthread_mutex_unlock(&handle_table.lock);
}
