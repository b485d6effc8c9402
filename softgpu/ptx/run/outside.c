/* SPDX-License-Identifier: Apache-2.0
 *
 * Memory outside of the window that kernels may reach: a short sorted list, which only accesses
 * that miss the window look at.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "softgpu/ptx/internal.h"
#include "softgpu/ptx/ptx.h"

static struct {
	pthread_rwlock_t lock;
	struct ptx_window *at; /* by address */
	size_t count, room;
} list = {.lock = PTHREAD_RWLOCK_INITIALIZER};

/* The number of ranges that begin at or below the address. */
static size_t below(uint64_t address)
{
	size_t low = 0, high = list.count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (list.at[middle].base <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

bool ptx_outside_add(uint64_t base, uint64_t span)
{
	bool added = true;
	size_t at;

	pthread_rwlock_wrlock(&list.lock);
	if (list.count == list.room) {
		size_t room = list.room ? 2 * list.room : 16;
		struct ptx_window *grown = realloc(list.at, room * sizeof(*grown));

		added = grown != NULL;
		if (added) {
			list.at = grown;
			list.room = room;
		}
	}
	if (added) {
		at = below(base);
		memmove(&list.at[at + 1], &list.at[at], (list.count - at) * sizeof(*list.at));
		list.at[at] = (struct ptx_window){.base = base, .span = span};
		list.count++;
	}
	pthread_rwlock_unlock(&list.lock);
	return added;
}

void ptx_outside_remove(uint64_t base)
{
	size_t at;

	pthread_rwlock_wrlock(&list.lock);
	at = below(base);
	if (at && list.at[at - 1].base == base) {
		list.count--;
		memmove(&list.at[at - 1], &list.at[at],
			(list.count - (at - 1)) * sizeof(*list.at));
	}
	pthread_rwlock_unlock(&list.lock);
}

bool ptx_outside(uint64_t address, size_t size)
{
	bool inside = false;
	size_t at;

	pthread_rwlock_rdlock(&list.lock);
	at = below(address);
	if (at) {
		const struct ptx_window *range = &list.at[at - 1];
		uint64_t from = address - range->base;

		inside = from < range->span && size <= range->span - from;
	}
	pthread_rwlock_unlock(&list.lock);
	return inside;
}
