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

/* Natively a stream is an address, and programs use the bits that are zero in those: PyTorch
 * takes an odd one for a stream of its own. So streams get indexes that are aligned as
 * addresses of the heap are, and what is no stream gets others, while there are both. */
#define HANDLE_ALIGNMENT 16u
enum handle_class { HANDLE_PLAIN, HANDLE_ALIGNED, HANDLE_CLASSES };

static struct {
	pthread_mutex_t lock;
	_Atomic(struct handle_entry *) entries;
	_Atomic uint32_t used; /* entries ever used, or free */
	/* First in, first out: a stale handle stays recognisable for long. */
	struct {
		uint32_t first, last;
	} free[HANDLE_CLASSES];
} table = {.lock = PTHREAD_MUTEX_INITIALIZER};
LOCK_RANK(handles, table.lock, LOCK_HANDLES);

_Thread_local struct handle_released handle_released;

/* With the lock. */
static void put_free(uint32_t index)
{
	struct handle_entry *entries = atomic_load(&table.entries);
	enum handle_class of = index % HANDLE_ALIGNMENT ? HANDLE_PLAIN : HANDLE_ALIGNED;

	entries[index].next = 0;
	if (table.free[of].last)
		entries[table.free[of].last - 1].next = index + 1;
	else
		table.free[of].first = index + 1;
	table.free[of].last = index + 1;
}

/* The one that is free for longest; false: none is. With the lock. */
static bool take_free(enum handle_class of, uint32_t *index)
{
	struct handle_entry *entries = atomic_load(&table.entries);

	if (!table.free[of].first)
		return false;
	*index = table.free[of].first - 1;
	table.free[of].first = entries[*index].next;
	if (!table.free[of].first)
		table.free[of].last = 0;
	return true;
}

/* The other class serves where all is used. With the lock. */
static bool take(enum handle_class of, uint32_t *index)
{
	uint32_t used;

	while (!take_free(of, index)) {
		used = atomic_load(&table.used);
		if (used == HANDLE_INDEX_MAX)
			return take_free(
				of == HANDLE_PLAIN ? HANDLE_ALIGNED : HANDLE_PLAIN, index);
		put_free(used);
		atomic_store(&table.used, used + 1);
	}
	return true;
}

void handle_recycle_slow(void)
{
	struct handle_entry *entries;
	uint32_t at = handle_released.first, next;

	pthread_mutex_lock(&table.lock);
	entries = atomic_load(&table.entries);
	for (; at; at = next) {
		next = entries[at - 1].next;
		put_free(at - 1);
	}
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
	if (!take(kind == KIND_CUstream ? HANDLE_ALIGNED : HANDLE_PLAIN, &index))
		goto out;
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
