/* SPDX-License-Identifier: Apache-2.0
 *
 * From a host address (of a kernel's stub or a variable's shadow) to what was registered for
 * it. Open addressing; lookups take no lock and may run while another thread registers.  A key
 * may be there more than once (the same template in two libraries): the first found wins, and
 * the other takes over when that one is removed.
 */
#ifndef VCUDA_SHIM_RUNTIME_TABLE_H
#define VCUDA_SHIM_RUNTIME_TABLE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct table_slot {
	_Atomic(const void *) key; /* NULL: never used; TABLE_GONE: removed */
	_Atomic(void *) value;
};

struct table_space {
	struct table_space *older; /* outgrown; kept, since a reader may still be in it */
	size_t mask;
	size_t used; /* slots whose key is not NULL, the removed ones included */
	unsigned shift;
	struct table_slot slots[];
};

struct table {
	_Atomic(struct table_space *) space;
};

/* Addresses are aligned: the low bits carry nothing, the product's high bits mix the rest. */
static inline size_t table_hash(const void *key, unsigned shift)
{
	return (size_t)(((uintptr_t)key * 0x9E3779B97F4A7C15u) >> shift);
}

/* The value for KEY, or NULL. Any thread, no lock. */
static inline void *table_find(const struct table *table, const void *key)
{
	const struct table_space *space =
		atomic_load_explicit(&table->space, memory_order_acquire);
	size_t at;

	if (!space || !key)
		return NULL;
	for (at = table_hash(key, space->shift);; at++) {
		const struct table_slot *slot = &space->slots[at & space->mask];
		const void *found = atomic_load_explicit(&slot->key, memory_order_acquire);

		if (__builtin_expect(found == key, 1))
			return atomic_load_explicit(&slot->value, memory_order_relaxed);
		if (!found)
			return NULL;
	}
}

/* The first value for which FITS(value, argument) is true, or NULL. Any thread, no lock; it
 * looks at all of them. */
void *table_search(
	const struct table *table, bool (*fits)(void *value, void *argument), void *argument);
/* Adds KEY. False: no memory. The caller holds the lock that guards all changes. */
bool table_add(struct table *table, const void *key, void *value);
/* Removes the one entry with this key and this value. Same lock. */
void table_remove(struct table *table, const void *key, const void *value);
/* Frees everything; nobody may look any more (tests). */
void table_free(struct table *table);

#endif
