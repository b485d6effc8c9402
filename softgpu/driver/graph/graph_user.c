/* SPDX-License-Identifier: Apache-2.0
 *
 * User objects: memory of the program's that a graph and everything made of it keep alive.
 */
#include <stdlib.h>

#include "softgpu/driver/graph/graph.h"

struct CUuserObject_st {
	void *pointer;
	CUhostFn destroy;
	unsigned refs;
};

static void object_let(struct CUuserObject_st *object, unsigned count)
{
	object->refs -= count < object->refs ? count : object->refs;
	if (object->refs)
		return;
	object_remove(object);
	object->destroy(object->pointer); /* it may not call CUDA */
	free(object);
}

CUresult graph_objects_copy(const struct user_object_ref *from, size_t count,
	struct user_object_ref **to, size_t *to_count)
{
	struct user_object_ref *list;

	if (!count)
		return CUDA_SUCCESS;
	list = realloc(*to, (*to_count + count) * sizeof(*list));
	if (!list)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*to = list;
	for (size_t i = 0; i < count; i++) {
		list[*to_count + i] = from[i];
		from[i].object->refs += from[i].count;
	}
	*to_count += count;
	return CUDA_SUCCESS;
}

void graph_objects_drop(struct user_object_ref *objects, size_t count)
{
	for (size_t i = 0; i < count; i++)
		object_let(objects[i].object, objects[i].count);
	free(objects);
}

CUresult cuUserObjectCreate(CUuserObject *object_out, void *ptr, CUhostFn destroy,
	unsigned int initialRefcount, unsigned int flags)
{
	struct CUuserObject_st *object;

	if (!device_initialised())
		return CUDA_ERROR_NOT_INITIALIZED;
	if (!object_out || !destroy || !initialRefcount ||
		flags != CU_USER_OBJECT_NO_DESTRUCTOR_SYNC)
		return CUDA_ERROR_INVALID_VALUE;
	object = calloc(1, sizeof(*object));
	if (!object || !object_add(object, OBJECT_USER)) {
		free(object);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	object->pointer = ptr;
	object->destroy = destroy;
	object->refs = initialRefcount;
	*object_out = object;
	return CUDA_SUCCESS;
}

CUresult cuUserObjectRetain(CUuserObject object, unsigned int count)
{
	CUresult ret = CUDA_ERROR_INVALID_VALUE;

	pthread_mutex_lock(&queue_lock);
	if (count && object_is(object, OBJECT_USER)) {
		object->refs += count;
		ret = CUDA_SUCCESS;
	}
	pthread_mutex_unlock(&queue_lock);
	return ret;
}

CUresult cuUserObjectRelease(CUuserObject object, unsigned int count)
{
	CUresult ret = CUDA_ERROR_INVALID_VALUE;

	pthread_mutex_lock(&queue_lock);
	if (count && object_is(object, OBJECT_USER) && count <= object->refs) {
		object_let(object, count);
		ret = CUDA_SUCCESS;
	}
	pthread_mutex_unlock(&queue_lock);
	return ret;
}

CUresult cuGraphRetainUserObject(
	CUgraph graph, CUuserObject object, unsigned int count, unsigned int flags)
{
	struct user_object_ref *list;
	CUresult ret = CUDA_ERROR_INVALID_VALUE;

	pthread_mutex_lock(&queue_lock);
	if (count && !(flags & ~(unsigned)CU_GRAPH_USER_OBJECT_MOVE) &&
		object_is(graph, OBJECT_GRAPH) && object_is(object, OBJECT_USER)) {
		list = realloc(graph->objects, (graph->object_count + 1) * sizeof(*list));
		ret = list ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
		if (list) {
			graph->objects = list;
			list[graph->object_count++] = (struct user_object_ref){object, count};
			if (!(flags & CU_GRAPH_USER_OBJECT_MOVE))
				object->refs += count;
		}
	}
	pthread_mutex_unlock(&queue_lock);
	return ret;
}

CUresult cuGraphReleaseUserObject(CUgraph graph, CUuserObject object, unsigned int count)
{
	CUresult ret = CUDA_ERROR_INVALID_VALUE;

	pthread_mutex_lock(&queue_lock);
	if (count && object_is(graph, OBJECT_GRAPH) && object_is(object, OBJECT_USER))
		for (size_t i = 0; i < graph->object_count; i++) {
			struct user_object_ref *ref = &graph->objects[i];

			if (ref->object != object || ref->count < count)
				continue;
			ref->count -= count;
			if (!ref->count)
				*ref = graph->objects[--graph->object_count];
			object_let(object, count);
			ret = CUDA_SUCCESS;
			break;
		}
	pthread_mutex_unlock(&queue_lock);
	return ret;
}
