/* SPDX-License-Identifier: Apache-2.0
 *
 * See free_extents.h.
 */
#include "shim/driver/memory/free_extents.h"

#include <stdlib.h>
#include <string.h>

bool free_extents_put(struct free_extents *h, uint64_t first, uint64_t count)
{
	size_t at = 0;

	while (at < h->count && h->list[at].first < first)
		at++;
	if (at && h->list[at - 1].first + h->list[at - 1].count == first) {
		h->list[at - 1].count += count;
		if (at < h->count && first + count == h->list[at].first) {
			h->list[at - 1].count += h->list[at].count;
			memmove(&h->list[at], &h->list[at + 1],
				(--h->count - at) * sizeof(*h->list));
		}
		return true;
	}
	if (at < h->count && first + count == h->list[at].first) {
		h->list[at].first = first;
		h->list[at].count += count;
		return true;
	}
	if (h->count == h->room) {
		size_t room = h->room ? 2 * h->room : 64;
		struct free_extent *list = realloc(h->list, room * sizeof(*list));

		if (!list)
			return false; /* these addresses are never used again */
		h->list = list;
		h->room = room;
	}
	memmove(&h->list[at + 1], &h->list[at], (h->count - at) * sizeof(*h->list));
	h->list[at] = (struct free_extent){first, count};
	h->count++;
	return true;
}

static void free_extent_cut(struct free_extents *h, size_t at, uint64_t first, uint64_t count)
{
	struct free_extent old = h->list[at];

	memmove(&h->list[at], &h->list[at + 1], (--h->count - at) * sizeof(*h->list));
	if (first > old.first)
		free_extents_put(h, old.first, first - old.first);
	if (first + count < old.first + old.count)
		free_extents_put(h, first + count, old.first + old.count - first - count);
}

uint64_t free_extents_get(struct free_extents *h, uint64_t count)
{
	for (size_t i = 0; i < h->count; i++) {
		uint64_t first = h->list[i].first;

		if (h->list[i].count < count)
			continue;
		free_extent_cut(h, i, first, count);
		return first;
	}
	return FREE_EXTENTS_NONE;
}

uint64_t free_extents_find(const struct free_extents *h, uint64_t count, uint64_t wanted,
	uint64_t base, uint64_t alignment)
{
	uint64_t found = FREE_EXTENTS_NONE;

	for (size_t i = 0; i < h->count; i++) {
		const struct free_extent *e = &h->list[i];
		uint64_t first =
			(base + e->first + alignment - 1) / alignment * alignment - base;

		if (wanted - e->first < e->count && e->count - (wanted - e->first) >= count &&
			!((base + wanted) % alignment))
			return wanted;
		if (found == FREE_EXTENTS_NONE && first - e->first < e->count &&
			e->count - (first - e->first) >= count)
			found = first;
	}
	return found;
}

bool free_extents_get_at(struct free_extents *h, uint64_t first, uint64_t count)
{
	for (size_t i = 0; i < h->count; i++) {
		if (first < h->list[i].first || first - h->list[i].first >= h->list[i].count)
			continue;
		if (h->list[i].count - (first - h->list[i].first) < count)
			return false;
		free_extent_cut(h, i, first, count);
		return true;
	}
	return false;
}
