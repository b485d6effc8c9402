/* SPDX-License-Identifier: Apache-2.0
 *
 * See globals.h: a list sorted by address, searched by halves.
 */
#include "shim/driver/memory/globals.h"

#include <stdlib.h>
#include <string.h>

static struct global *globals; /* by address */
static size_t global_count, global_room;

/* The index of the last global at or below the address; -1: none. */
static long globals_below(uint64_t address)
{
	size_t low = 0, high = global_count;

	while (low < high) {
		size_t middle = (low + high) / 2;

		if (globals[middle].address <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return (long)low - 1;
}

const struct global *globals_find(uint64_t address)
{
	long below = globals_below(address);

	return below >= 0 && address - globals[below].address < globals[below].bytes
		       ? &globals[below]
		       : NULL;
}

void globals_put(const struct global *global)
{
	long below = globals_below(global->address);

	if (below >= 0 && globals[below].address == global->address) {
		globals[below].bytes = global->bytes;
		globals[below].device = global->device;
		return;
	}
	if (global_count == global_room) {
		size_t room = global_room ? 2 * global_room : 64;
		struct global *list = realloc(globals, room * sizeof(*list));

		if (!list)
			return;
		globals = list;
		global_room = room;
	}
	below++;
	memmove(&globals[below + 1], &globals[below],
		(global_count - (size_t)below) * sizeof(*globals));
	globals[below] = *global;
	global_count++;
}

bool globals_any(void)
{
	return global_count;
}
