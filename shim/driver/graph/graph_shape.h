/* SPDX-License-Identifier: Apache-2.0
 *
 * What a child graph's node has inside: types and edges, where those are all that NVIDIA's
 * driver asks when an executable graph is to have another child there.  It refuses one of
 * another shape; one of the same is taken, so that nobody need wait for the answer.  Known of
 * captured graphs that have kernels, fills and empty nodes and nothing else.
 */
#ifndef VCUDA_SHIM_DRIVER_GRAPH_GRAPH_SHAPE_H
#define VCUDA_SHIM_DRIVER_GRAPH_GRAPH_SHAPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct graph;
struct graph_shape;

/* By the number of the node. */
struct graph_shapes {
	struct shape_place {
		uint32_t node;
		struct graph_shape *shape;
	} *places;
	size_t count, room;
};

/* Node NODE has CHILD inside, or a clone. Nothing, where its shape is not known or there is no
 * memory. */
void shapes_put(struct graph_shapes *shapes, uint32_t node, const struct graph *child);
void shapes_drop(struct graph_shapes *shapes, uint32_t node);
/* Those of GRAPH as they are now, for an executable graph that is made of it. */
void shapes_take(struct graph_shapes *to, const struct graph *graph);
/* Is it known to have a child of CHILD's shape? */
bool shapes_same(const struct graph_shapes *shapes, uint32_t node, const struct graph *child);
void shapes_free(struct graph_shapes *shapes);

#endif
