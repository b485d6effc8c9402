/* SPDX-License-Identifier: Apache-2.0
 *
 * User objects: see user_object.h.  A graph's references are a part of it (graph.h), so they go
 * where parts go: into clones, child graphs and executable graphs.
 *
 * CUDA promises no thread for a destructor, and a program may hold a lock of its own while it
 * destroys a graph.  So a thread runs them, which ends when it has had nothing to do for a
 * while.
 */
#include "shim/driver/graph/user_object.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

#include "common/wait.h"
#include "shim/driver/graph/graph.h"
#include "shim/engine/engine.h"
#include "shim/engine/handle.h"
#include "shim/engine/lock.h"
#include "shim/engine/thread.h"
#include "shim/generated/cuda_hand.h"

#define DESTRUCTOR_IDLE_NS 1000000000u

struct user_object {
	struct user_object *next; /* among those whose destructor is due */
	uint64_t handle;
	_Atomic uint64_t refs;
	CUhostFn destroy;
	void *argument;
};

static struct {
	pthread_mutex_t lock;
	pthread_cond_t more;
	struct user_object *first, **last;
	bool running;
} due = {.lock = PTHREAD_MUTEX_INITIALIZER};
LOCK_RANK(user_objects, due.lock, LOCK_DUE);

/* With the lock held. NULL: nothing came for a while. */
static struct user_object *due_pop(void)
{
	struct user_object *object;
	const struct timespec until = wait_deadline(DESTRUCTOR_IDLE_NS);
	int ret = 0;

	while (!due.first && ret != ETIMEDOUT)
		ret = pthread_cond_timedwait(&due.more, &due.lock, &until);
	object = due.first;
	if (object)
		due.first = object->next;
	return object;
}

static void *destructor_thread(void *unused)
{
	struct user_object *object;

	(void)unused;
	thread_runs_program();
	thread_self.in_callback = true; /* a destructor may not call CUDA */
	pthread_mutex_lock(&due.lock);
	while ((object = due_pop())) {
		pthread_mutex_unlock(&due.lock);
		object->destroy(object->argument);
		free(object);
		pthread_mutex_lock(&due.lock);
	}
	due.running = false;
	pthread_mutex_unlock(&due.lock);
	return NULL;
}

/* With the lock held. */
static bool destructor_start(void)
{
	pthread_t thread;

	if (due.running)
		return true;
	wait_cond_init(
		&due.more); /* nobody waits for it: the thread before this one has left */
	due.running = !pthread_create(&thread, NULL, destructor_thread, NULL);
	if (due.running)
		pthread_detach(thread);
	return due.running;
}

void user_object_let(struct user_object *object, unsigned count)
{
	bool started;

	if (atomic_fetch_sub(&object->refs, count) != count)
		return;
	handle_release(object->handle);
	object->next = NULL;
	pthread_mutex_lock(&due.lock);
	if (!due.first)
		due.last = &due.first;
	*due.last = object;
	due.last = &object->next;
	started = destructor_start();
	if (started) {
		pthread_cond_signal(&due.more);
		pthread_mutex_unlock(&due.lock);
		return;
	}
	/* No thread can be had: better here than never. */
	while ((object = due.first)) {
		due.first = object->next;
		pthread_mutex_unlock(&due.lock);
		object->destroy(object->argument);
		free(object);
		pthread_mutex_lock(&due.lock);
	}
	pthread_mutex_unlock(&due.lock);
}

static struct user_object *user_object_find(CUuserObject object, unsigned count)
{
	if (!count || count > INT_MAX)
		return NULL;
	return shim_object_of((uint64_t)(uintptr_t)object, KIND_CUuserObject);
}

CUresult hand_cuUserObjectCreate(CUuserObject *object_out, void *ptr, CUhostFn destroy,
	unsigned int initialRefcount, unsigned int flags)
{
	struct user_object *object;

	if (!object_out || !destroy || !initialRefcount ||
		flags != CU_USER_OBJECT_NO_DESTRUCTOR_SYNC)
		return CUDA_ERROR_INVALID_VALUE;
	object = calloc(1, sizeof(*object));
	if (!object)
		return CUDA_ERROR_OUT_OF_MEMORY;
	atomic_init(&object->refs, initialRefcount);
	object->destroy = destroy;
	object->argument = ptr;
	object->handle = shim_mint(KIND_CUuserObject, object);
	if (!object->handle) {
		free(object);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	*object_out = (CUuserObject)(uintptr_t)object->handle;
	return CUDA_SUCCESS;
}

CUresult hand_cuUserObjectRetain(CUuserObject object, unsigned int count)
{
	struct user_object *found = user_object_find(object, count);

	if (!found)
		return CUDA_ERROR_INVALID_VALUE;
	atomic_fetch_add(&found->refs, count);
	return CUDA_SUCCESS;
}

CUresult hand_cuUserObjectRelease(CUuserObject object, unsigned int count)
{
	struct user_object *found = user_object_find(object, count);

	if (!found || atomic_load(&found->refs) < count)
		return CUDA_ERROR_INVALID_VALUE;
	user_object_let(found, count);
	return CUDA_SUCCESS;
}

/* ---- a graph's references ---- */

/* A part with COUNT references that the caller has taken. */
static bool graph_hold(struct graph *graph, struct user_object *object, unsigned count)
{
	struct part *part = part_new(PART_USER);

	if (!part)
		return false;
	part->user = object;
	part->number = count;
	/* It belongs to no node. */
	if (parts_add(&graph->parts, part, 0, 0))
		return true;
	free(part);
	return false;
}

CUresult hand_cuGraphRetainUserObject(
	CUgraph graph, CUuserObject object, unsigned int count, unsigned int flags)
{
	struct user_object *found = user_object_find(object, count);
	struct graph *to = graph_find(graph);

	if (!found || !to || flags & ~(unsigned)CU_GRAPH_USER_OBJECT_MOVE)
		return CUDA_ERROR_INVALID_VALUE;
	if (!graph_hold(to, found, count))
		return CUDA_ERROR_OUT_OF_MEMORY;
	if (!(flags & CU_GRAPH_USER_OBJECT_MOVE))
		atomic_fetch_add(&found->refs, count);
	return CUDA_SUCCESS;
}

/* Up to COUNT of the graph's references, from one of its parts; how many. The part may be an
 * executable graph's too, so what is left of it becomes a part of its own. */
static unsigned graph_unhold(struct graph *graph, size_t at, unsigned count)
{
	struct part *part = graph->parts.places[at].part;
	uint32_t inside = graph->parts.places[at].inside;
	unsigned left, had = (unsigned)part->number;

	if (count >= had) {
		parts_remove(&graph->parts, at);
		return had;
	}
	left = had - count;
	atomic_fetch_add(&part->user->refs, left);
	if (!graph_hold(graph, part->user, left)) {
		user_object_let(part->user, left);
		return 0;
	}
	graph->parts.places[graph->parts.count - 1].inside = inside;
	parts_remove(&graph->parts, at);
	return count;
}

/* Which references a name for a graph has: its own, or as a graph inside of the node INSIDE of
 * HOLDER those that came with it. */
struct holder {
	struct graph *graph;
	uint32_t inside; /* GRAPH_NO_NODE: all */
};

static bool holds(const struct holder *h, size_t at, const struct user_object *object)
{
	const struct part_place *place = &h->graph->parts.places[at];

	return place->part->user == object &&
	       (h->inside == GRAPH_NO_NODE || place->inside == h->inside);
}

static uint64_t held(const struct holder *h, const struct user_object *object)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < h->graph->parts.count; i++)
		if (holds(h, i, object))
			sum += h->graph->parts.places[i].part->number;
	return sum;
}

/* The graph that has the parts of what is inside of it; the graph itself where it is nobody's
 * child. */
static struct holder holder_outside(struct graph *graph)
{
	struct holder h = {graph, GRAPH_NO_NODE};

	while (h.graph->parent && !h.graph->body) {
		h.inside = h.graph->parent_node;
		h.graph = h.graph->parent;
	}
	return h;
}

CUresult hand_cuGraphReleaseUserObject(CUgraph graph, CUuserObject object, unsigned int count)
{
	struct user_object *found = user_object_find(object, count);
	struct graph *from = graph_find(graph);
	struct holder h = {from, GRAPH_NO_NODE};
	uint64_t sum;

	if (!found || !from)
		return CUDA_ERROR_INVALID_VALUE;
	sum = held(&h, found);
	if (!sum) {
		h = holder_outside(from);
		sum = held(&h, found);
	}
	/* Of one that the graph does not hold at all nothing is released, and natively that is
	 * no error. */
	if (sum && sum < count)
		return CUDA_ERROR_INVALID_VALUE;
	for (size_t i = 0; sum && i < h.graph->parts.count && count;) {
		unsigned gone = holds(&h, i, found) ? graph_unhold(h.graph, i, count) : 0;

		count -= gone;
		i += !gone;
	}
	return sum && count ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
}
