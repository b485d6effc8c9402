/* SPDX-License-Identifier: Apache-2.0 */
#include "shim/driver/graph/graph_shape.h"

#include <cuda.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "shim/driver/graph/graph.h"

/* Never changed once it is made; graphs and executable graphs share it. */
struct graph_shape {
	_Atomic uint32_t refs;
	uint32_t count, edge_count;
	uint32_t *types;
	struct graph_edge *edges;
};

static bool shape_known(const struct graph *g)
{
	if (!g->captured || !g->edges_known || g->types_known != g->count || g->capturing ||
		g->pruned || g->parts.count || g->children || g->has_memory ||
		g->has_conditional)
		return false;
	for (uint32_t i = 0; i < g->count; i++)
		if (g->types[i] != CU_GRAPH_NODE_TYPE_KERNEL &&
			g->types[i] != CU_GRAPH_NODE_TYPE_MEMSET &&
			g->types[i] != CU_GRAPH_NODE_TYPE_EMPTY)
			return false;
	return true;
}

static void shape_put(struct graph_shape *shape)
{
	if (!shape || atomic_fetch_sub(&shape->refs, 1) > 1)
		return;
	free(shape->types);
	free(shape->edges);
	free(shape);
}

static void *copy_of(const void *from, size_t bytes)
{
	void *to = malloc(bytes + 1);

	if (to && bytes)
		memcpy(to, from, bytes);
	return to;
}

/* NULL: not known, or no memory. */
static struct graph_shape *shape_of(const struct graph *g)
{
	struct graph_shape *shape = shape_known(g) ? calloc(1, sizeof(*shape)) : NULL;

	if (!shape)
		return NULL;
	shape->refs = 1;
	shape->count = g->count;
	shape->edge_count = g->edge_count;
	shape->types = copy_of(g->types, g->count * sizeof(*g->types));
	shape->edges = copy_of(g->edges, g->edge_count * sizeof(*g->edges));
	if (shape->types && shape->edges)
		return shape;
	shape_put(shape);
	return NULL;
}

static struct shape_place *shapes_at(const struct graph_shapes *shapes, uint32_t node)
{
	for (size_t i = 0; i < shapes->count; i++)
		if (shapes->places[i].node == node)
			return &shapes->places[i];
	return NULL;
}

/* Takes over the reference. */
static void shapes_add(struct graph_shapes *shapes, uint32_t node, struct graph_shape *shape)
{
	struct shape_place *place = shapes_at(shapes, node);

	if (!place && shapes->count == shapes->room) {
		size_t room = shapes->room ? 2 * shapes->room : 8;
		struct shape_place *places = realloc(shapes->places, room * sizeof(*places));

		if (!places) {
			shape_put(shape);
			return;
		}
		shapes->places = places;
		shapes->room = room;
	}
	if (!place) {
		place = &shapes->places[shapes->count++];
		*place = (struct shape_place){.node = node};
	}
	shape_put(place->shape);
	place->shape = shape;
}

void shapes_put(struct graph_shapes *shapes, uint32_t node, const struct graph *child)
{
	struct graph_shape *shape = shape_of(child);

	if (shape)
		shapes_add(shapes, node, shape);
}

void shapes_drop(struct graph_shapes *shapes, uint32_t node)
{
	struct shape_place *place = shapes_at(shapes, node);

	if (!place)
		return;
	shape_put(place->shape);
	*place = shapes->places[--shapes->count];
}

/* The graph inside that node where the program has a name for it, by which it may have been
 * changed. */
static const struct graph *named_child(const struct graph *graph, uint32_t node)
{
	for (const struct graph *child = graph->children; child; child = child->sibling)
		if (child->parent_node == node)
			return child;
	return NULL;
}

void shapes_take(struct graph_shapes *to, const struct graph *graph)
{
	for (size_t i = 0; i < graph->shapes.count; i++) {
		const struct shape_place *place = &graph->shapes.places[i];

		if (named_child(graph, place->node))
			continue;
		atomic_fetch_add(&place->shape->refs, 1);
		shapes_add(to, place->node, place->shape);
	}
	/* A graph that was moved there is known as it is now. */
	for (const struct graph *child = graph->children; child; child = child->sibling)
		shapes_put(to, child->parent_node, child);
}

bool shapes_same(const struct graph_shapes *shapes, uint32_t node, const struct graph *child)
{
	const struct shape_place *place = shapes_at(shapes, node);
	const struct graph_shape *shape = place ? place->shape : NULL;

	return shape && shape_known(child) && shape->count == child->count &&
	       shape->edge_count == child->edge_count &&
	       !memcmp(shape->types, child->types, shape->count * sizeof(*shape->types)) &&
	       !memcmp(shape->edges, child->edges, shape->edge_count * sizeof(*shape->edges));
}

void shapes_free(struct graph_shapes *shapes)
{
	for (size_t i = 0; i < shapes->count; i++)
		shape_put(shapes->places[i].shape);
	free(shapes->places);
	*shapes = (struct graph_shapes){0};
}
