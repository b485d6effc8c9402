/* SPDX-License-Identifier: Apache-2.0
 *
 * Disjoint address ranges in order, each with an owner.
 */
#ifndef VCUDA_SOFTGPU_DRIVER_MEMORY_RANGES_H
#define VCUDA_SOFTGPU_DRIVER_MEMORY_RANGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct range {
	uint64_t start;
	uint64_t size;
	void *owner;
};
struct ranges {
	struct range *item;
	size_t count;
	size_t room;
};
bool ranges_insert(struct ranges *ranges, uint64_t start, uint64_t size, void *owner);
void ranges_remove(struct ranges *ranges, uint64_t start);
/* The range that holds ADDRESS, or NULL.  Valid until the next change. */
struct range *ranges_find(const struct ranges *ranges, uint64_t address);
/* The first range that ends beyond ADDRESS: where a walk upwards begins; count if none. */
size_t ranges_at(const struct ranges *ranges, uint64_t address);
bool ranges_free(const struct ranges *ranges, uint64_t start, uint64_t size);
/* The lowest gap of SIZE in [low, high), aligned; 0 where there is none. */
uint64_t ranges_gap(const struct ranges *ranges, uint64_t size, uint64_t align, uint64_t low,
	uint64_t high);

#endif
