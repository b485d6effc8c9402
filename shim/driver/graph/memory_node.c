/* SPDX-License-Identifier: Apache-2.0
 *
 * Memory that graphs own: see memory_node.h.
 */
#include "shim/driver/graph/memory_node.h"

#include <pthread.h>
#include <stdlib.h>

#include "shim/generated/vcuda_send.h"
#include "shim/driver/context/context.h"
#include "shim/driver/graph/graph_access.h"
#include "shim/driver/graph/graph_node.h"
#include "shim/driver/graph/graph_place.h"
#include "shim/driver/graph/graph_usage.h"
#include "shim/driver/memory/memory.h"
#include "shim/engine/engine.h"
#include "shim/engine/lock.h"
#include "shim/generated/cuda_hand.h"

struct graph_memory {
	struct graph_memory *next;
	struct graph_place place;
	size_t most;   /* of its pool, as the app said */
	uint32_t refs; /* parts */
	uint64_t pass; /* of launches: the one that found where it is allocated */
	bool allocated;
	struct graph_use *use;
	bool lost; /* in a reset of its device */
	struct graph_access access;
};

#define MEMORY_BUCKETS 256u

static struct {
	pthread_mutex_t lock;
	struct graph_memory *buckets[MEMORY_BUCKETS];
	uint64_t pass;
	_Atomic uint32_t count; /* 0, as almost always: no free need ask */
} memories = {.lock = PTHREAD_MUTEX_INITIALIZER};
LOCK_RANK(graph_memory, memories.lock, LOCK_GRAPH_MEMORY);

/* ---- with the lock held ---- */

static struct graph_memory **memory_bucket(CUdeviceptr address)
{
	return &memories.buckets[(address >> 9 ^ address >> 21) % MEMORY_BUCKETS];
}

static struct graph_memory *memory_at(CUdeviceptr address)
{
	struct graph_memory *m = *memory_bucket(address);

	while (m && (m->place.address != address || m->lost))
		m = m->next;
	return m;
}

/* STREAM: behind what it is not allocated any more. */
static void memory_allocated(struct graph_memory *m, bool allocated, uint64_t stream)
{
	if (m->allocated == allocated)
		return;
	m->allocated = allocated;
	if (allocated)
		graph_use_lives(m->use);
	else
		graph_use_ends(m->use, stream);
}

/* True: nobody needs it any more, and the caller frees it. */
static bool memory_over(struct graph_memory *m)
{
	struct graph_memory **at = memory_bucket(m->place.address);

	if (m->refs || m->allocated)
		return false;
	while (*at != m)
		at = &(*at)->next;
	*at = m->next;
	atomic_fetch_sub(&memories.count, 1);
	return true;
}

static void memory_end(struct graph_memory *m)
{
	graph_use_put(m->use);
	graph_access_end(&m->access, m->place.device);
	if (!m->lost)
		graph_place_put(&m->place);
	free(m);
}

/* ---- parts ---- */

void graph_memory_let(struct graph_memory *m)
{
	bool over;

	pthread_mutex_lock(&memories.lock);
	m->refs--;
	over = memory_over(m);
	pthread_mutex_unlock(&memories.lock);
	if (over)
		memory_end(m);
}

static struct part *memory_part(enum part_kind kind, struct graph_memory *m)
{
	struct part *part = part_new(kind);

	if (!part)
		return NULL;
	part->held = m;
	m->refs++;
	return part;
}

static CUresult alloc_part(
	int device, bool managed, uint64_t graph, size_t bytes, struct part **out)
{
	struct graph_memory *m = calloc(1, sizeof(*m));
	CUresult status;

	if (!m)
		return CUDA_ERROR_OUT_OF_MEMORY;
	m->use = graph_use_get(device, graph);
	if (!m->use) {
		free(m);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	status = graph_place_get(&m->place, device, managed, bytes);
	if (status) {
		graph_use_put(m->use);
		free(m);
		return status;
	}
	*out = memory_part(PART_ALLOC, m);
	if (!*out) {
		memory_end(m);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	pthread_mutex_lock(&memories.lock);
	m->next = *memory_bucket(m->place.address);
	*memory_bucket(m->place.address) = m;
	atomic_fetch_add(&memories.count, 1);
	pthread_mutex_unlock(&memories.lock);
	return CUDA_SUCCESS;
}

static unsigned parts_of(
	const struct parts *parts, enum part_kind kind, const struct graph_memory *m)
{
	unsigned n = 0;

	for (size_t i = 0; i < parts->count; i++)
		n += parts->places[i].part->kind == kind && parts->places[i].part->held == m;
	return n;
}

/* Another graph's is freed once, its own as often as it is allocated. */
static bool parts_free_it(const struct parts *parts, const struct graph_memory *m)
{
	const unsigned allocated = parts_of(parts, PART_ALLOC, m);

	return parts_of(parts, PART_FREE, m) >= (allocated ? allocated : 1);
}

/* With the lock held: such memory that GRAPH has freed by then, whose address a node that the
 * app adds behind the nodes AFTER gets, as natively; NULL: none. Known where one node was added
 * behind the other. */
static struct graph_memory *memory_again(const struct graph *graph, const uint32_t *after,
	size_t n, int device, const CUDA_MEM_ALLOC_NODE_PARAMS *alloc)
{
	const struct parts *parts = &graph->parts;
	const bool goes_on = graph_line_goes_on(graph, after, n);

	for (size_t i = 0; goes_on && i < parts->count; i++) {
		struct graph_memory *m = parts->places[i].part->held;

		if (parts->places[i].part->kind == PART_FREE &&
			parts->places[i].line == graph->line && m->place.device == device &&
			m->place.bytes == alloc->bytesize &&
			m->most == alloc->poolProps.maxSize && !m->lost &&
			!m->place.managed == !graph_place_managed(alloc) && !m->access.count &&
			!alloc->accessDescCount &&
			parts_of(parts, PART_ALLOC, m) == parts_of(parts, PART_FREE, m))
			return m;
	}
	return NULL;
}

/* *out NULL: there is none. */
static CUresult again_part(CUgraph hGraph, const CUgraphNode *dependencies, size_t n,
	int device, const CUDA_MEM_ALLOC_NODE_PARAMS *alloc, struct part **out)
{
	const struct graph *graph = graph_find(hGraph);
	struct graph_memory *m = NULL;
	uint32_t *after = NULL;

	*out = NULL;
	if (!graph || graph_numbers(graph, dependencies, n, &after))
		return CUDA_SUCCESS; /* it is told by who adds the node */
	pthread_mutex_lock(&memories.lock);
	m = memory_again(graph, after, n, device, alloc);
	*out = m ? memory_part(PART_ALLOC, m) : NULL;
	pthread_mutex_unlock(&memories.lock);
	free(after);
	return m && !*out ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
}

/* INVALID_VALUE: it is no graph's memory, or this graph frees it already. */
static CUresult free_part(const struct graph *graph, CUdeviceptr address, struct part **out)
{
	struct graph_memory *m;
	CUresult status = CUDA_SUCCESS;

	*out = NULL;
	pthread_mutex_lock(&memories.lock);
	m = memory_at(address);
	if (!m || parts_free_it(&graph->parts, m))
		status = CUDA_ERROR_INVALID_VALUE;
	else
		*out = memory_part(PART_FREE, m);
	pthread_mutex_unlock(&memories.lock);
	return status || *out ? status : CUDA_ERROR_OUT_OF_MEMORY;
}

bool graph_memory_free(CUdeviceptr address, uint64_t stream, CUresult *status)
{
	struct graph_memory *m;
	bool over = false;

	if (!atomic_load(&memories.count))
		return false;
	pthread_mutex_lock(&memories.lock);
	m = memory_at(address);
	if (m) {
		*status = m->allocated ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
		memory_allocated(m, false, stream);
		over = memory_over(m);
	}
	pthread_mutex_unlock(&memories.lock);
	if (over)
		memory_end(m);
	return m != NULL;
}

void graph_memory_reset(const struct context *context, bool last)
{
	struct graph_memory *next, *over = NULL;

	pthread_mutex_lock(&memories.lock);
	for (unsigned i = 0; i < MEMORY_BUCKETS; i++)
		for (struct graph_memory *m = memories.buckets[i]; m; m = next) {
			next = m->next;
			if (m->place.device != context->device ||
				(!last && m->place.context != context->number))
				continue;
			m->lost = true;
			memory_allocated(m, false, GRAPH_USE_ANY);
			if (memory_over(m)) {
				m->next = over;
				over = m;
			}
		}
	pthread_mutex_unlock(&memories.lock);
	if (last)
		graph_usage_reset(context->device);
	for (; over; over = next) {
		next = over->next;
		memory_end(over);
	}
}

/* ---- launches ---- */

/* What these parts allocate they may free as well: it need not be allocated before. */
static bool launch_allowed(const struct parts *parts, bool auto_free)
{
	memories.pass++;
	for (size_t i = 0; i < parts->count; i++) {
		const struct part *part = parts->places[i].part;

		if (part->kind == PART_ALLOC) {
			if (part->held->allocated && !auto_free)
				return false;
			part->held->pass = memories.pass;
		}
		if (part->kind == PART_FREE && !part->held->allocated &&
			part->held->pass != memories.pass)
			return false;
	}
	return true;
}

/* With the lock held: what is allocated at once at most, and in the end. */
static void launch_do(const struct parts *parts, uint64_t stream)
{
	for (size_t i = 0; i < parts->count; i++) {
		const struct part *part = parts->places[i].part;
		struct graph_memory *m = part->held;

		if (part->kind == PART_ALLOC)
			graph_use_alloc(m->use, memories.pass, m->place.bytes);
		else if (part->kind == PART_FREE && m->pass == memories.pass)
			graph_use_free(m->use, memories.pass, m->place.bytes);
		if (part->kind == PART_ALLOC || part->kind == PART_FREE)
			memory_allocated(m, part->kind == PART_ALLOC, stream);
	}
	for (size_t i = 0; i < parts->count; i++)
		if (parts->places[i].part->kind == PART_ALLOC)
			graph_use_launched(
				parts->places[i].part->held->use, memories.pass, stream);
}

CUresult memory_nodes_launch(const struct parts *parts, bool auto_free, uint64_t stream)
{
	bool allowed;

	if (!atomic_load(&memories.count))
		return CUDA_SUCCESS;
	pthread_mutex_lock(&memories.lock);
	allowed = launch_allowed(parts, auto_free);
	if (allowed)
		launch_do(parts, stream);
	pthread_mutex_unlock(&memories.lock);
	return allowed ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* ---- captured ---- */

static CUresult memory_node_capture(
	struct graph *graph, uint64_t stream, uint32_t type, struct part *part)
{
	uint32_t number = graph->count;
	CUresult status;

	status = send_vcudaCaptureEmpty(stream, graph->handle, number);
	if (!status && !parts_add(&graph->parts, part, graph->handle, number))
		status = CUDA_ERROR_OUT_OF_MEMORY;
	if (status) {
		part_put(part);
		return status;
	}
	graph_added(graph, type);
	graph->has_memory = true;
	return CUDA_SUCCESS;
}

CUresult memory_node_capture_alloc(struct graph *graph, uint64_t stream, int device,
	bool managed, size_t bytes, CUdeviceptr *address)
{
	struct part *part;
	CUresult status = alloc_part(device, managed, graph->handle, bytes, &part);

	if (status)
		return status;
	*address = part->held->place.address;
	return memory_node_capture(graph, stream, CU_GRAPH_NODE_TYPE_MEM_ALLOC, part);
}

CUresult memory_node_capture_free(struct graph *graph, uint64_t stream, CUdeviceptr address)
{
	struct part *part;
	CUresult status = free_part(graph, address, &part);

	return status ? status
		      : memory_node_capture(graph, stream, CU_GRAPH_NODE_TYPE_MEM_FREE, part);
}

/* ---- nodes ---- */

static CUresult node_params_alloc(struct node_params *p, CUgraph hGraph,
	const CUgraphNode *dependencies, size_t n, const CUDA_MEM_ALLOC_NODE_PARAMS *alloc)
{
	struct device *device;
	CUresult status;

	if (!alloc || !alloc->bytesize ||
		(alloc->poolProps.allocType != CU_MEM_ALLOCATION_TYPE_PINNED &&
			!graph_place_managed(alloc)) ||
		alloc->poolProps.location.type > CU_MEM_LOCATION_TYPE_HOST_NUMA ||
		(alloc->accessDescCount && !alloc->accessDescs))
		return CUDA_ERROR_INVALID_VALUE;
	/* An H200's driver has nodes of no other place. */
	if (alloc->poolProps.location.type != CU_MEM_LOCATION_TYPE_DEVICE)
		return CUDA_ERROR_NOT_SUPPORTED;
	device = device_of(alloc->poolProps.location.id);
	if (!device)
		return CUDA_ERROR_INVALID_VALUE;
	if (alloc->poolProps.handleTypes != CU_MEM_HANDLE_TYPE_NONE)
		return CUDA_ERROR_NOT_SUPPORTED;
	p->type = CU_GRAPH_NODE_TYPE_MEM_ALLOC;
	status = again_part(
		hGraph, dependencies, n, (int)(device - devices.at), alloc, &p->part);
	if (status || p->part)
		return status;
	status = alloc_part((int)(device - devices.at), graph_place_managed(alloc),
		(uint64_t)(uintptr_t)hGraph, alloc->bytesize, &p->part);
	if (status)
		return status;
	p->part->held->most = alloc->poolProps.maxSize;
	/* Devices reach what is managed. Where this fails, the part goes with its node's
	 * description. */
	return graph_place_managed(alloc)
		       ? CUDA_SUCCESS
		       : graph_access_begin(&p->part->held->access, (int)(device - devices.at),
				 alloc->accessDescs, alloc->accessDescCount);
}

CUresult node_params_free_memory(
	struct node_params *p, const struct graph *graph, CUdeviceptr address)
{
	p->type = CU_GRAPH_NODE_TYPE_MEM_FREE;
	return graph ? free_part(graph, address, &p->part) : CUDA_ERROR_INVALID_VALUE;
}

CUresult node_add_alloc(CUgraphNode *phGraphNode, CUgraph hGraph,
	const CUgraphNode *dependencies, const CUgraphEdgeData *data, size_t n,
	CUDA_MEM_ALLOC_NODE_PARAMS *alloc)
{
	struct node_params p = {0};
	CUresult status = node_params_alloc(&p, hGraph, dependencies, n, alloc);
	CUdeviceptr address = status ? 0 : p.part->held->place.address;

	status = node_add(phGraphNode, hGraph, dependencies, data, n, &p, status);
	if (!status)
		alloc->dptr = address;
	return status;
}

CUresult hand_cuGraphAddMemAllocNode(CUgraphNode *phGraphNode, CUgraph hGraph,
	const CUgraphNode *dependencies, size_t numDependencies,
	CUDA_MEM_ALLOC_NODE_PARAMS *nodeParams)
{
	return node_add_alloc(
		phGraphNode, hGraph, dependencies, NULL, numDependencies, nodeParams);
}

CUresult hand_cuGraphAddMemFreeNode(CUgraphNode *phGraphNode, CUgraph hGraph,
	const CUgraphNode *dependencies, size_t numDependencies, CUdeviceptr dptr)
{
	struct graph *graph = graph_find(hGraph);
	struct node_params p = {0};
	CUresult status = node_params_free_memory(&p, graph, dptr);

	/* NVIDIA's driver takes the graph to have such a node even where the address is wrong.
	 */
	if (status && graph && phGraphNode && dptr &&
		graph_has_nodes(graph, dependencies, numDependencies))
		graph->has_memory = true;
	return node_add(phGraphNode, hGraph, dependencies, NULL, numDependencies, &p, status);
}

static const struct graph_memory *memory_of_node(CUgraphNode hNode, enum part_kind kind)
{
	struct graph_node *node = graph_node_find(hNode);

	for (size_t i = 0; node && i < node->graph->parts.count; i++) {
		const struct part_place *place = &node->graph->parts.places[i];

		if (place->graph == node->graph->handle && place->node == node->number &&
			place->part->kind == kind)
			return place->part->held;
	}
	return NULL;
}

CUresult hand_cuGraphMemAllocNodeGetParams(
	CUgraphNode hNode, CUDA_MEM_ALLOC_NODE_PARAMS *params_out)
{
	static const CUmemAccessDesc none;
	const struct graph_memory *m = memory_of_node(hNode, PART_ALLOC);

	if (!m || !params_out)
		return CUDA_ERROR_INVALID_VALUE;
	*params_out = (CUDA_MEM_ALLOC_NODE_PARAMS){
		.poolProps = {.allocType = m->place.managed ? CU_MEM_ALLOCATION_TYPE_MANAGED
							    : CU_MEM_ALLOCATION_TYPE_PINNED,
			.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE,
				.id = m->place.device},
			.maxSize = m->most},
		.accessDescs =
			m->access.list ? m->access.list : &none, /* there is a list, of none */
		.accessDescCount = m->access.count,
		.bytesize = m->place.bytes,
		.dptr = m->place.address};
	return CUDA_SUCCESS;
}

CUresult hand_cuGraphMemFreeNodeGetParams(CUgraphNode hNode, CUdeviceptr *dptr_out)
{
	const struct graph_memory *m = memory_of_node(hNode, PART_FREE);

	if (!m || !dptr_out)
		return CUDA_ERROR_INVALID_VALUE;
	*dptr_out = m->place.address;
	return CUDA_SUCCESS;
}
