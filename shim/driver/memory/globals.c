/* SPDX-License-Identifier: Apache-2.0
 *
 * See globals.h: for each agent a list sorted by address, searched by halves.
 */
#include "shim/driver/memory/globals.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "protocol/wire/channel.h"

static struct {
	struct globals {
		struct global *list; /* by address */
		size_t count, room;
	} of[CHANNEL_AGENTS];
	_Atomic bool some; /* what globals_any says, without the lock */
} all;

/* The index of the last global at or below the address; -1: none. */
static long globals_below(const struct globals *globals, uint64_t address)
{
	size_t low = 0, high = globals->count;

	while (low < high) {
		size_t middle = (low + high) / 2;

		if (globals->list[middle].address <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return (long)low - 1;
}

static const struct global *globals_at(const struct globals *globals, uint64_t address)
{
	long below = globals_below(globals, address);

	return below >= 0 && address - globals->list[below].address < globals->list[below].bytes
		       ? &globals->list[below]
		       : NULL;
}

const struct global *globals_find(uint64_t address, unsigned agent)
{
	const struct global *found = globals_at(&all.of[agent], address);

	for (unsigned i = 0; !found && i < CHANNEL_AGENTS; i++)
		found = globals_at(&all.of[i], address);
	return found;
}

void globals_put(const struct global *global, unsigned agent)
{
	struct globals *globals = &all.of[agent];
	long below = globals_below(globals, global->address);

	if (below >= 0 && globals->list[below].address == global->address) {
		globals->list[below].bytes = global->bytes;
		globals->list[below].device = global->device;
		return;
	}
	if (globals->count == globals->room) {
		size_t room = globals->room ? 2 * globals->room : 64;
		struct global *list = realloc(globals->list, room * sizeof(*list));

		if (!list)
			return;
		globals->list = list;
		globals->room = room;
	}
	below++;
	memmove(&globals->list[below + 1], &globals->list[below],
		(globals->count - (size_t)below) * sizeof(*globals->list));
	globals->list[below] = *global;
	globals->count++;
	atomic_store_explicit(&all.some, true, memory_order_relaxed);
}

bool globals_any(void)
{
	return atomic_load_explicit(&all.some, memory_order_relaxed);
}
