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
	uint32_t generation;
	uint32_t next; /* while free: index + 1 of the next free entry, 0 = end */
};

static pthread_mutex_t table_lock = PTHREAD_MUTEX_INITIALIZER;
LOCK_RANK(table, table_lock, LOCK_HANDLES);
static _Atomic(struct handle_entry *) table;
static _Atomic uint32_t table_used; /* entries ever used */
static uint32_t
	free_first; /* first in, first out: a stale handle stays recognisable for long */
static uint32_t free_last;

uint64_t handle_mint(enum handle_kind kind, void *object)
{
	struct handle_entry *entries;
	uint32_t index;
	uint64_t handle = 0;

	pthread_mutex_lock(&table_lock);
	entries = atomic_load(&table);
	if (!entries) {
		entries =
			mmap(NULL, HANDLE_INDEX_MAX * sizeof(*entries), PROT_READ | PROT_WRITE,
				MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
		if (entries == MAP_FAILED)
			goto out;
		atomic_store(&table, entries);
	}
	if (free_first) {
		index = free_first - 1;
		free_first = entries[index].next;
		if (!free_first)
			free_last = 0;
	} else if (atomic_load(&table_used) < HANDLE_INDEX_MAX) {
		index = atomic_fetch_add(&table_used, 1);
	} else {
		goto out;
	}
	if (!++entries[index].generation)
		entries[index].generation = 1;
	handle = handle_make(entries[index].generation, kind, index);
	atomic_store_explicit(&entries[index].object, object, memory_order_relaxed);
	atomic_store_explicit(&entries[index].handle, handle, memory_order_release);
out:
	pthread_mutex_unlock(&table_lock);
	return handle;
}

void *handle_object(uint64_t handle, enum handle_kind kind)
{
	struct handle_entry *entries = atomic_load_explicit(&table, memory_order_acquire);
	uint32_t index = handle_index(handle);

	if (!entries || handle_kind(handle) != kind || index >= HANDLE_INDEX_MAX ||
		index >= atomic_load_explicit(&table_used, memory_order_relaxed))
		return NULL;
	if (atomic_load_explicit(&entries[index].handle, memory_order_acquire) != handle)
		return NULL;
	return atomic_load_explicit(&entries[index].object, memory_order_relaxed);
}

static bool forget(uint64_t handle, bool again)
{
	struct handle_entry *entries;
	uint32_t index = handle_index(handle);
	uint64_t expected = handle;
	bool released = false;

	pthread_mutex_lock(&table_lock);
	entries = atomic_load(&table);
	if (handle && entries && index < atomic_load(&table_used))
		released = atomic_compare_exchange_strong(&entries[index].handle, &expected, 0);
	if (released && again) {
		entries[index].next = 0;
		if (free_last)
			entries[free_last - 1].next = index + 1;
		else
			free_first = index + 1;
		free_last = index + 1;
	}
	pthread_mutex_unlock(&table_lock);
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

	pthread_mutex_lock(&table_lock);
	entries = atomic_load(&table);
	for (uint32_t i = 0; entries && i < atomic_load(&table_used); i++) {
		uint64_t handle = atomic_load(&entries[i].handle);

		if (handle && handle_kind(handle) == kind)
			function(atomic_load(&entries[i].object), argument);
	}
	pthread_mutex_unlock(&table_lock);
}
