/* SPDX-License-Identifier: Apache-2.0
 *
 * Disjoint address ranges in a sorted array: finding is a binary search, and a program's few
 * thousand allocations are moved faster than a tree would be walked.
 */
#include "softgpu/driver/softgpu.h"

#include <stdlib.h>
#include <string.h>

size_t ranges_at(const struct ranges *ranges, uint64_t address)
{
	size_t low = 0, high = ranges->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		const struct range *range = &ranges->item[middle];

		if (range->start + range->size <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

struct range *ranges_find(const struct ranges *ranges, uint64_t address)
{
	size_t at = ranges_at(ranges, address);

	if (at == ranges->count || ranges->item[at].start > address)
		return NULL;
	return &ranges->item[at];
}

bool ranges_free(const struct ranges *ranges, uint64_t start, uint64_t size)
{
	size_t at = ranges_at(ranges, start);

	return at == ranges->count || ranges->item[at].start >= start + size;
}

bool ranges_insert(struct ranges *ranges, uint64_t start, uint64_t size, void *owner)
{
	size_t at = ranges_at(ranges, start);

	if (ranges->count == ranges->room) {
		size_t room = ranges->room ? 2 * ranges->room : 64;
		struct range *item = realloc(ranges->item, room * sizeof(*item));

		if (!item)
			return false;
		ranges->item = item;
		ranges->room = room;
	}
	memmove(&ranges->item[at + 1], &ranges->item[at],
		(ranges->count - at) * sizeof(*ranges->item));
	ranges->item[at] = (struct range){start, size, owner};
	ranges->count++;
	return true;
}

void ranges_remove(struct ranges *ranges, uint64_t start)
{
	size_t at = ranges_at(ranges, start);

	if (at == ranges->count || ranges->item[at].start != start)
		return;
	ranges->count--;
	memmove(&ranges->item[at], &ranges->item[at + 1],
		(ranges->count - at) * sizeof(*ranges->item));
}

uint64_t ranges_gap(
	const struct ranges *ranges, uint64_t size, uint64_t align, uint64_t low, uint64_t high)
{
	uint64_t start = (low + align - 1) & ~(align - 1);

	for (size_t at = ranges_at(ranges, start); at < ranges->count; at++) {
		const struct range *range = &ranges->item[at];

		if (range->start > start && range->start - start >= size)
			break;
		start = (range->start + range->size + align - 1) & ~(align - 1);
	}
	return start >= low && start < high && size <= high - start ? start : 0;
}
