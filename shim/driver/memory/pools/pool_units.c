/* SPDX-License-Identifier: Apache-2.0
 *
 * The units of pools: see pool_units.h.
 */
#include "shim/driver/memory/pools/pool_units.h"

#include <stdlib.h>
#include <string.h>

#define GRANULE 512
#define UNIT_GRANULES (POOL_UNIT / GRANULE)
/* As many as there are addresses. */
#define PLACES ((1ull << 47) / GRANULE)

static uint64_t granules(size_t bytes)
{
	return (bytes + GRANULE - 1) / GRANULE;
}

static bool room_for(struct pool_units *units, size_t count)
{
	size_t room = units->room ? units->room : 16;
	uint32_t *lying;
	bool *held;

	while (room < count)
		room *= 2;
	if (room == units->room)
		return true;
	lying = realloc(units->lying, room * sizeof(*lying));
	if (lying)
		units->lying = lying;
	held = realloc(units->held, room * sizeof(*held));
	if (held)
		units->held = held;
	if (!lying || !held)
		return false;
	memset(lying + units->room, 0, (room - units->room) * sizeof(*lying));
	memset(held + units->room, 0, (room - units->room) * sizeof(*held));
	units->room = room;
	return true;
}

uint64_t pool_units_alloc(struct pool_units *units, size_t bytes)
{
	const uint64_t count = granules(bytes);
	uint64_t place;

	if (!units->room && !free_extents_put(&units->free, 0, PLACES))
		return FREE_EXTENTS_NONE;
	if (!room_for(units, 1))
		return FREE_EXTENTS_NONE;
	place = free_extents_get(&units->free, count);
	if (place == FREE_EXTENTS_NONE)
		return place;
	if (!room_for(units, (place + count - 1) / UNIT_GRANULES + 1)) {
		free_extents_put(&units->free, place, count);
		return FREE_EXTENTS_NONE;
	}
	for (uint64_t i = place / UNIT_GRANULES; i <= (place + count - 1) / UNIT_GRANULES;
		i++) {
		if (!units->held[i])
			units->holds++;
		else if (!units->lying[i])
			units->idle--;
		units->held[i] = true;
		units->lying[i]++;
	}
	return place;
}

void pool_units_free(struct pool_units *units, uint64_t place, size_t bytes)
{
	const uint64_t count = granules(bytes);

	if (place == FREE_EXTENTS_NONE)
		return;
	for (uint64_t i = place / UNIT_GRANULES; i <= (place + count - 1) / UNIT_GRANULES; i++)
		if (!--units->lying[i])
			units->idle++;
	free_extents_put(&units->free, place, count);
}

void pool_units_trim(struct pool_units *units, uint64_t keep)
{
	const uint64_t least = keep / POOL_UNIT + (keep % POOL_UNIT != 0);

	for (size_t i = units->room; i-- && units->idle && units->holds > least;) {
		if (!units->held[i] || units->lying[i])
			continue;
		units->held[i] = false;
		units->holds--;
		units->idle--;
	}
}
