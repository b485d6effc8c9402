/* SPDX-License-Identifier: Apache-2.0
 *
 * The shim's handles: {generation, kind, index} and the object behind each.  Looking one up
 * takes no lock; minting and releasing do.
 */
#ifndef VCUDA_SHIM_ENGINE_HANDLE_H
#define VCUDA_SHIM_ENGINE_HANDLE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "protocol/wire/handle.h"

struct context;

struct handle_entry {
	_Atomic uint64_t handle; /* 0: free */
	_Atomic(void *) object;
	_Atomic(struct context *) home;
	uint32_t generation;
	uint32_t next; /* while free, or released: index + 1 of the next one, 0 = end */
};

enum handle_class { HANDLE_PLAIN, HANDLE_ALIGNED, HANDLE_CLASSES };

/* handle.c's; here for handle_object(). */
extern struct handle_table {
	pthread_mutex_t lock;
	_Atomic(struct handle_entry *) entries; /* HANDLE_INDEX_MAX, zeros where unused */
	_Atomic uint32_t used;			/* entries ever used, or free */
	/* First in, first out: a stale handle stays recognisable for long. */
	struct {
		uint32_t first, last;
	} free[HANDLE_CLASSES];
} handle_table;

/* 0: HANDLE_INDEX_MAX are live, or there is no memory for the table. */
uint64_t handle_mint(enum handle_kind kind, void *object);
/* The context that was current when it was made; NULL: none, or nobody has said, as of what
 * belongs to no context. Of a handle that is not one of ours: NULL. */
void handle_home_set(uint64_t handle, struct context *home);
struct context *handle_home(uint64_t handle);
/* NULL: not one of ours, another kind, or released. In line: nearly every call looks up some.
 */
static inline void *handle_object(uint64_t handle, enum handle_kind kind)
{
	struct handle_entry *entries =
		atomic_load_explicit(&handle_table.entries, memory_order_acquire);
	const uint32_t index = handle_index(handle);

	if (handle_kind(handle) != kind || index >= HANDLE_INDEX_MAX || !entries || !handle ||
		atomic_load_explicit(&entries[index].handle, memory_order_acquire) != handle)
		return NULL;
	return atomic_load_explicit(&entries[index].object, memory_order_relaxed);
}
/* Forgets the handle; false where it was stale already (then nobody may free the object). Its
 * index is given out again once this thread begins another call (handle_recycle()): a new
 * handle at the same index, of another thread or of what this call does on its way, must not
 * reach the agent before the frame that ends this one, which stands in the ring by then. */
bool handle_release(uint64_t handle);
/* What this thread has released may be given out again; a thread calls it where a call begins,
 * and before it ends. */
struct handle_released {
	uint32_t first, last; /* index + 1, linked as the table's own; 0: none */
};
extern _Thread_local struct handle_released handle_released
	__attribute__((tls_model("initial-exec")));
void handle_recycle_slow(void);
static inline void handle_recycle(void)
{
	if (__builtin_expect(handle_released.first != 0, 0))
		handle_recycle_slow();
}
/* The same, but its index is never given out again: the worker still knows the name (functions
 * of a module that was unloaded). */
bool handle_retire(uint64_t handle);
/* Calls FUNCTION(object, argument) for every live handle of KIND, with the table's lock held:
 * it may not mint or release. */
void handle_each(
	enum handle_kind kind, void (*function)(void *object, void *argument), void *argument);

#endif
