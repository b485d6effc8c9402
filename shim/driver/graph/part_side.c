/* SPDX-License-Identifier: Apache-2.0
 *
 * The sides of a part's copy: see part_side.h.
 */
#include "shim/driver/graph/part_side.h"

#include "shim/driver/copy/copy.h"

struct part_side part_side_packed(const struct part *part)
{
	const struct part_copy *c = &part->copy;

	return (struct part_side){
		.at = part->memory, .pitch = c->width, .slice = c->width * c->height};
}

struct part_side part_side_device(const struct part_copy *c)
{
	return (struct part_side){.at = c->device,
		.pitch = c->device_pitch,
		.slice = c->device_slice,
		.array = c->device_array};
}

/* Of a copy within the app's memory: where it goes. */
struct part_side part_side_within(const struct part_copy *c)
{
	struct part_side side = part_side_device(c);

	side.host = true;
	return side;
}

struct part_side part_side_host(const struct part_copy *c)
{
	return (struct part_side){
		.host = true, .at = c->host, .pitch = c->host_pitch, .slice = c->host_slice};
}

uint64_t part_side_end(const struct part_side *s, const struct part_copy *c)
{
	return s->at + (c->depth - 1) * s->slice + (c->height - 1) * s->pitch + c->width;
}

bool part_sides_meet(const struct part_side *a, const struct part_copy *ac,
	const struct part_side *b, const struct part_copy *bc)
{
	return a->at < part_side_end(b, bc) && b->at < part_side_end(a, ac);
}

static struct copy_place place_of(const struct part_side *side)
{
	return (struct copy_place){.side = side->host	 ? SIDE_HOST
					   : side->array ? SIDE_ARRAY
							 : SIDE_DEVICE,
		.array = side->array,
		.at = side->at,
		.pitch = side->pitch,
		.slice = side->slice};
}

CUresult part_sides_copy(const struct part_side *dst, const struct part_side *src,
	const struct part_copy *c, CUstream stream)
{
	struct shape s = {
		.src = place_of(src),
		.dst = place_of(dst),
		.width = c->width,
		.height = c->height,
		.depth = c->depth,
	};

	return copy_shape(&s, stream, true);
}
