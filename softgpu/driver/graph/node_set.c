/* SPDX-License-Identifier: Apache-2.0
 *
 * Sets of nodes, each with the data of the edge that leads from it.
 */
#include <stdlib.h>

#include "softgpu/driver/graph/graph.h"

static bool node_set_grow(struct node_set *set)
{
	size_t room = set->room ? 2 * set->room : 2;
	struct CUgraphNode_st **item = realloc(set->item, room * sizeof(*item));
	CUgraphEdgeData *data;

	if (!item)
		return false;
	set->item = item;
	data = realloc(set->data, room * sizeof(*data));
	if (!data)
		return false;
	set->data = data;
	set->room = room;
	return true;
}

bool node_set_add_edge(
	struct node_set *set, struct CUgraphNode_st *node, const CUgraphEdgeData *data)
{
	for (size_t i = 0; i < set->count; i++)
		if (set->item[i] == node)
			return true;
	if (set->count == set->room && !node_set_grow(set))
		return false;
	set->item[set->count] = node;
	set->data[set->count++] = data ? *data : (CUgraphEdgeData){0};
	return true;
}

bool node_set_add(struct node_set *set, struct CUgraphNode_st *node)
{
	return node_set_add_edge(set, node, NULL);
}

bool node_set_copy(struct node_set *to, const struct node_set *from)
{
	to->count = 0;
	for (size_t i = 0; i < from->count; i++)
		if (!node_set_add_edge(to, from->item[i], &from->data[i]))
			return false;
	return true;
}

void node_set_free(struct node_set *set)
{
	free(set->item);
	free(set->data);
	*set = (struct node_set){0};
}

void node_set_remove(struct node_set *set, const struct CUgraphNode_st *node)
{
	for (size_t i = 0; i < set->count; i++)
		if (set->item[i] == node) {
			set->item[i] = set->item[--set->count];
			set->data[i] = set->data[set->count];
			return;
		}
}
