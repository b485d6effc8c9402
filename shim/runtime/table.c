/* SPDX-License-Identifier: Apache-2.0
 *
 * Changes of the table of registered addresses (table.h): one writer at a time, readers at any
 * time.  A slot is filled value first, key last.
 */
#include "shim/runtime/table.h"

#include <stdlib.h>

#define TABLE_FIRST 256 /* slots: a small program's kernels fit without growing */

static const char gone;
#define TABLE_GONE ((const void *)&gone)

static struct table_space *space_new(size_t slots)
{
	struct table_space *space;

	space = calloc(1, sizeof(*space) + slots * sizeof(space->slots[0]));
	if (!space)
		return NULL;
	space->mask = slots - 1;
	space->shift = 64 - (unsigned)__builtin_ctzl(slots);
	return space;
}

static void space_put(struct table_space *space, const void *key, void *value)
{
	size_t at = table_hash(key, space->shift);

	/* Removed slots are not used again: a reader that has just matched the key of one could
	 * otherwise be handed the value of another key. */
	while (atomic_load_explicit(&space->slots[at & space->mask].key, memory_order_relaxed))
		at++;
	atomic_store_explicit(
		&space->slots[at & space->mask].value, value, memory_order_relaxed);
	atomic_store_explicit(&space->slots[at & space->mask].key, key, memory_order_release);
	space->used++;
}

/* A new space without the removed ones, twice as large if that leaves it half full. */
static struct table_space *space_grow(struct table_space *old)
{
	struct table_space *space;
	size_t live = 0, slots;

	for (size_t i = 0; old && i <= old->mask; i++) {
		const void *key = atomic_load(&old->slots[i].key);

		live += key && key != TABLE_GONE;
	}
	for (slots = TABLE_FIRST; live * 4 >= slots; slots *= 2)
		;
	space = space_new(slots);
	if (!space)
		return NULL;
	for (size_t i = 0; old && i <= old->mask; i++) {
		const void *key = atomic_load(&old->slots[i].key);

		if (key && key != TABLE_GONE)
			space_put(space, key, atomic_load(&old->slots[i].value));
	}
	space->older = old;
	return space;
}

bool table_add(struct table *table, const void *key, void *value)
{
	struct table_space *space = atomic_load(&table->space);

	if (!key)
		return false;
	if (!space || (space->used + 1) * 2 > space->mask + 1) {
		space = space_grow(space);
		if (!space)
			return false;
		atomic_store_explicit(&table->space, space, memory_order_release);
	}
	space_put(space, key, value);
	return true;
}

void table_remove(struct table *table, const void *key, const void *value)
{
	struct table_space *space = atomic_load(&table->space);

	if (!space || !key)
		return;
	for (size_t at = table_hash(key, space->shift);; at++) {
		struct table_slot *slot = &space->slots[at & space->mask];
		const void *found = atomic_load(&slot->key);

		if (!found)
			return;
		if (found == key && atomic_load(&slot->value) == value) {
			atomic_store(&slot->key, TABLE_GONE);
			return;
		}
	}
}

void table_free(struct table *table)
{
	struct table_space *space = atomic_exchange(&table->space, NULL), *older;

	for (; space; space = older) {
		older = space->older;
		free(space);
	}
}

void *table_search(
	const struct table *table, bool (*fits)(void *value, void *argument), void *argument)
{
	const struct table_space *space =
		atomic_load_explicit(&table->space, memory_order_acquire);

	for (size_t at = 0; space && at <= space->mask; at++) {
		const struct table_slot *slot = &space->slots[at];
		void *value = NULL;

		if (atomic_load_explicit(&slot->key, memory_order_acquire))
			value = atomic_load_explicit(&slot->value, memory_order_relaxed);
		if (value && fits(value, argument))
			return value;
	}
	return NULL;
}
