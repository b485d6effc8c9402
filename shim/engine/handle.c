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

struct handle_entry {
	_Atomic uint64_t handle; /* 0: free */
	_Atomic(void *) object;
	_Atomic(struct context *) home;
	uint32_t generation;
	uint32_t next; /* while free, or released: index + 1 of the next one, 0 = end */
};

static struct {
	pthread_mutex_t lock;
	_Atomic(struct handle_entry *) entries;
	_Atomic uint32_t used; /* entries ever used */
	/* First in, first out: a stale handle stays recognisable for long. */
	uint32_t free_first, free_last;
} table = {.lock = PTHREAD_MUTEX_INITIALIZER};
LOCK_RANK(handles, table.lock, LOCK_HANDLES);

_Thread_local struct handle_released handle_released;

void handle_recycle_slow(void)
{
	struct handle_entry *entries;

	pthread_mutex_lock(&table.lock);
	entries = atomic_load(&table.entries);
	if (table.free_last)
		entries[table.free_last - 1].next = handle_released.first;
	else
		table.free_first = handle_released.first;
	table.free_last = handle_released.last;
	pthread_mutex_unlock(&table.lock);
	handle_released = (struct handle_released){0};
}

uint64_t handle_mint(enum handle_kind kind, void *object)
{
	struct handle_entry *entries;
	uint32_t index;
	uint64_t handle = 0;

	pthread_mutex_lock(&table.lock);
	entries = atomic_load(&table.entries);
	if (!entries) {
		entries =
			mmap(NULL, HANDLE_INDEX_MAX * sizeof(*entries), PROT_READ | PROT_WRITE,
				MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
		if (entries == MAP_FAILED)
			goto out;
		atomic_store(&table.entries, entries);
	}
	if (table.free_first) {
		index = table.free_first - 1;
		table.free_first = entries[index].next;
		if (!table.free_first)
			table.free_last = 0;
	} else if (atomic_load(&table.used) < HANDLE_INDEX_MAX) {
		index = atomic_fetch_add(&table.used, 1);
	} else {
		goto out;
	}
	if (!++entries[index].generation)
		entries[index].generation = 1;
	handle = handle_make(entries[index].generation, kind, index);
	atomic_store_explicit(&entries[index].object, object, memory_order_relaxed);
	atomic_store_explicit(&entries[index].home, NULL, memory_order_relaxed);
	atomic_store_explicit(&entries[index].handle, handle, memory_order_release);
out:
	pthread_mutex_unlock(&table.lock);
	return handle;
}

static struct handle_entry *entry_of(uint64_t handle)
{
	struct handle_entry *entries =
		atomic_load_explicit(&table.entries, memory_order_acquire);
	uint32_t index = handle_index(handle);

	if (!entries || !handle || index >= HANDLE_INDEX_MAX ||
		index >= atomic_load_explicit(&table.used, memory_order_relaxed) ||
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

void *handle_object(uint64_t handle, enum handle_kind kind)
{
	struct handle_entry *entry = handle_kind(handle) == kind ? entry_of(handle) : NULL;

	return entry ? atomic_load_explicit(&entry->object, memory_order_relaxed) : NULL;
}

static bool forget(uint64_t handle, bool again)
{
	struct handle_entry *entries;
	uint32_t index = handle_index(handle);
	uint64_t expected = handle;
	bool released = false;

	pthread_mutex_lock(&table.lock);
	entries = atomic_load(&table.entries);
	if (handle && entries && index < atomic_load(&table.used))
		released = atomic_compare_exchange_strong(&entries[index].handle, &expected, 0);
	if (released && again) {
		entries[index].next = 0;
		if (handle_released.last)
			entries[handle_released.last - 1].next = index + 1;
		else
			handle_released.first = index + 1;
		handle_released.last = index + 1;
	}
	pthread_mutex_unlock(&table.lock);
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

	pthread_mutex_lock(&table.lock);
	entries = atomic_load(&table.entries);
	for (uint32_t i = 0; entries && i < atomic_load(&table.used); i++) {
		uint64_t handle = atomic_load(&entries[i].handle);

		if (handle && handle_kind(handle) == kind)
			function(atomic_load(&entries[i].object), argument);
	}
	pthread_mutex_unlock(&table.lock);
}
