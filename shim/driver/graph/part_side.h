/* SPDX-License-Identifier: Apache-2.0
 *
 * Where a graph's copy with the app reads and writes.
 */
#ifndef VCUDA_SHIM_DRIVER_GRAPH_PART_SIDE_H
#define VCUDA_SHIM_DRIVER_GRAPH_PART_SIDE_H

#include "shim/driver/graph/graph.h"

/* Either side of a copy as cuMemcpy3D has it; places are in the app's memory or the device's.
 */
struct part_side {
	bool host;
	uint64_t at;
	size_t pitch, slice;
	const struct array *array;
};

/* The stand-in. */
struct part_side part_side_packed(const struct part *part);
/* The device's side, and the app's; WITHIN: of the app's memory where it goes, and comes from.
 */
struct part_side part_side_device(const struct part_copy *c);
struct part_side part_side_within(const struct part_copy *c);
struct part_side part_side_host(const struct part_copy *c);
/* Behind its last byte. */
uint64_t part_side_end(const struct part_side *s, const struct part_copy *c);
bool part_sides_meet(const struct part_side *a, const struct part_copy *ac,
	const struct part_side *b, const struct part_copy *bc);
/* In stream order; arrays and memory in any pairing. */
CUresult part_sides_copy(const struct part_side *dst, const struct part_side *src,
	const struct part_copy *c, CUstream stream);

#endif
