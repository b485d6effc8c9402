/* SPDX-License-Identifier: Apache-2.0
 *
 * What the driver tells, as CUPTI's records.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "softgpu/cupti/activity.h"
#include "softgpu/driver/work/work.h"

/* Of what each SM has; there is no part of it that the driver would set aside. */
#define SHARED_PER_SM (164u << 10)
#define PARTITIONED_CACHE_NOT_SUPPORTED 1

/* ---- names, which live as long as the process ---- */

#define NAME_BUCKETS 1024u

struct name {
	struct name *next;
	char text[];
};
static struct name *names[NAME_BUCKETS];
static pthread_mutex_t names_lock = PTHREAD_MUTEX_INITIALIZER;

static const char *name_keep(const char *text)
{
	size_t bytes = strlen(text) + 1;
	uint32_t hash = 2166136261u;
	struct name **at, *name;

	for (size_t i = 0; i + 1 < bytes; i++)
		hash = (hash ^ (unsigned char)text[i]) * 16777619u;
	pthread_mutex_lock(&names_lock);
	at = &names[hash % NAME_BUCKETS];
	for (name = *at; name && strcmp(name->text, text); name = name->next)
		;
	if (!name && (name = malloc(sizeof(*name) + bytes))) {
		memcpy(name->text, text, bytes);
		name->next = *at;
		*at = name;
	}
	pthread_mutex_unlock(&names_lock);
	return name ? name->text : NULL;
}

/* ---- each kind ---- */

static bool wants(const struct softgpu_work *work, unsigned kind)
{
	return work->wanted & kind_bit(kind);
}

/* Each stream has one, with its number. */
static uint32_t channel_of(const struct softgpu_work *work)
{
	return work->stream;
}

static void kernel_ran(const struct softgpu_work *work)
{
	static _Atomic int64_t grids;
	const struct softgpu_kernel *k = &work->kernel;
	bool concurrent = wants(work, CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
	CUpti_ActivityKernel10 record = {
		.kind = concurrent ? CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL
				   : CUPTI_ACTIVITY_KIND_KERNEL,
		.registersPerThread = (uint16_t)k->registers,
		.partitionedGlobalCacheRequested = PARTITIONED_CACHE_NOT_SUPPORTED,
		.partitionedGlobalCacheExecuted = PARTITIONED_CACHE_NOT_SUPPORTED,
		.start = work->start,
		.end = work->end,
		.completed = concurrent ? work->end : 0,
		.deviceId = work->device,
		.contextId = work->context,
		.streamId = work->stream,
		.gridX = (int32_t)k->grid[0],
		.gridY = (int32_t)k->grid[1],
		.gridZ = (int32_t)k->grid[2],
		.blockX = (int32_t)k->block[0],
		.blockY = (int32_t)k->block[1],
		.blockZ = (int32_t)k->block[2],
		.staticSharedMemory = (int32_t)k->static_shared,
		.dynamicSharedMemory = (int32_t)k->dynamic_shared,
		.localMemoryPerThread = k->local,
		.correlationId = work->call,
		.gridId = atomic_fetch_add(&grids, 1) + 1,
		.name = name_keep(k->name),
		.launchType = k->cooperative
				      ? CUPTI_ACTIVITY_LAUNCH_TYPE_COOPERATIVE_SINGLE_DEVICE
				      : CUPTI_ACTIVITY_LAUNCH_TYPE_REGULAR,
		.isSharedMemoryCarveoutRequested = k->carveout >= 0,
		.sharedMemoryCarveoutRequested = k->carveout >= 0 ? (uint8_t)k->carveout : 0,
		.sharedMemoryExecuted = SHARED_PER_SM,
		.graphNodeId = work->node,
		.graphId = work->graph,
		.channelID = channel_of(work),
		.channelType = CUPTI_CHANNEL_TYPE_COMPUTE,
		.clusterX = k->cluster[0],
		.clusterY = k->cluster[1],
		.clusterZ = k->cluster[2],
		.clusterSchedulingPolicy = k->cluster_policy,
		.maxPotentialClusterSize = k->cluster_most,
	};

	if (concurrent || wants(work, CUPTI_ACTIVITY_KIND_KERNEL))
		backlog_add((const CUpti_Activity *)&record);
}

static uint8_t memory_kind(const struct softgpu_side *side)
{
	switch (side->place) {
	case SOFTGPU_PLACE_PAGEABLE: return CUPTI_ACTIVITY_MEMORY_KIND_PAGEABLE;
	case SOFTGPU_PLACE_PINNED: return CUPTI_ACTIVITY_MEMORY_KIND_PINNED;
	case SOFTGPU_PLACE_ARRAY: return CUPTI_ACTIVITY_MEMORY_KIND_ARRAY;
	default: return CUPTI_ACTIVITY_MEMORY_KIND_DEVICE;
	}
}

static bool on_device(const struct softgpu_side *side)
{
	return side->place == SOFTGPU_PLACE_DEVICE || side->place == SOFTGPU_PLACE_ARRAY;
}

static uint8_t copy_kind(const struct softgpu_side *from, const struct softgpu_side *to)
{
	enum { HOST, DEVICE, ARRAY };
	static const uint8_t kinds[3][3] = {
		[HOST] = {CUPTI_ACTIVITY_MEMCPY_KIND_HTOH, CUPTI_ACTIVITY_MEMCPY_KIND_HTOD,
			CUPTI_ACTIVITY_MEMCPY_KIND_HTOA},
		[DEVICE] = {CUPTI_ACTIVITY_MEMCPY_KIND_DTOH, CUPTI_ACTIVITY_MEMCPY_KIND_DTOD,
			CUPTI_ACTIVITY_MEMCPY_KIND_DTOA},
		[ARRAY] = {CUPTI_ACTIVITY_MEMCPY_KIND_ATOH, CUPTI_ACTIVITY_MEMCPY_KIND_ATOD,
			CUPTI_ACTIVITY_MEMCPY_KIND_ATOA},
	};
	int at[2];

	for (int i = 0; i < 2; i++) {
		const struct softgpu_side *side = i ? to : from;

		at[i] = side->place == SOFTGPU_PLACE_ARRAY ? ARRAY
			: on_device(side)		   ? DEVICE
							   : HOST;
	}
	return kinds[at[0]][at[1]];
}

static void peer_copy_ran(const struct softgpu_work *work)
{
	CUpti_ActivityMemcpyPtoP4 record = {
		.kind = CUPTI_ACTIVITY_KIND_MEMCPY2,
		.copyKind = CUPTI_ACTIVITY_MEMCPY_KIND_PTOP,
		.srcKind = memory_kind(&work->source),
		.dstKind = memory_kind(&work->target),
		.flags = work->asynchronous ? CUPTI_ACTIVITY_FLAG_MEMCPY_ASYNC : 0,
		.bytes = work->bytes,
		.start = work->start,
		.end = work->end,
		.deviceId = work->device,
		.contextId = work->context,
		.streamId = work->stream,
		.srcDeviceId = work->source.device,
		.srcContextId = work->source.context,
		.dstDeviceId = work->target.device,
		.dstContextId = work->target.context,
		.correlationId = work->call,
		.graphNodeId = work->node,
		.graphId = work->graph,
		.channelID = channel_of(work),
		.channelType = CUPTI_CHANNEL_TYPE_ASYNC_MEMCPY,
	};

	if (wants(work, CUPTI_ACTIVITY_KIND_MEMCPY2))
		backlog_add((const CUpti_Activity *)&record);
}

static void copy_ran(const struct softgpu_work *work)
{
	const struct softgpu_side *from = &work->source, *to = &work->target;
	CUpti_ActivityMemcpy6 record = {
		.kind = CUPTI_ACTIVITY_KIND_MEMCPY,
		.copyKind = copy_kind(from, to),
		.srcKind = memory_kind(from),
		.dstKind = memory_kind(to),
		.flags = work->asynchronous ? CUPTI_ACTIVITY_FLAG_MEMCPY_ASYNC : 0,
		.bytes = work->bytes,
		.start = work->start,
		.end = work->end,
		.deviceId = work->device,
		.contextId = work->context,
		.streamId = work->stream,
		.correlationId = work->call,
		.graphNodeId = work->node,
		.graphId = work->graph,
		.channelID = channel_of(work),
		.channelType = on_device(from) && !on_device(to)
				       ? CUPTI_CHANNEL_TYPE_ASYNC_MEMCPY
				       : CUPTI_CHANNEL_TYPE_COMPUTE,
		.copyCount = 1,
	};

	if (on_device(from) && on_device(to) && from->device != to->device)
		peer_copy_ran(work);
	else if (wants(work, CUPTI_ACTIVITY_KIND_MEMCPY))
		backlog_add((const CUpti_Activity *)&record);
}

static void fill_ran(const struct softgpu_work *work)
{
	CUpti_ActivityMemset4 record = {
		.kind = CUPTI_ACTIVITY_KIND_MEMSET,
		.value = work->value,
		.bytes = work->bytes,
		.start = work->start,
		.end = work->end,
		.deviceId = work->device,
		.contextId = work->context,
		.streamId = work->stream,
		.correlationId = work->call,
		.flags = work->asynchronous ? CUPTI_ACTIVITY_FLAG_MEMSET_ASYNC : 0,
		.memoryKind = memory_kind(&work->target),
		.graphNodeId = work->node,
		.graphId = work->graph,
		.channelID = channel_of(work),
		.channelType = CUPTI_CHANNEL_TYPE_COMPUTE,
	};

	if (wants(work, CUPTI_ACTIVITY_KIND_MEMSET))
		backlog_add((const CUpti_Activity *)&record);
}

static void graph_ran(const struct softgpu_work *work)
{
	CUpti_ActivityGraphTrace2 record = {
		.kind = CUPTI_ACTIVITY_KIND_GRAPH_TRACE,
		.correlationId = work->call,
		.start = work->start,
		.end = work->end,
		.deviceId = work->device,
		.graphId = work->graph,
		.contextId = work->context,
		.streamId = work->stream,
		.endDeviceId = work->device,
		.endContextId = work->context,
	};

	backlog_add((const CUpti_Activity *)&record);
}

/* ---- what the driver calls ---- */

static uint64_t called(uint32_t call, uint32_t context)
{
	uint64_t kinds = kinds_wanted(context);

	/* As on an H200: what stands before the record of a call needs these to be enabled,
	 * though here they are not made. */
	if (kinds & kind_bit(CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION) &&
		kinds & kind_bit(CUPTI_ACTIVITY_KIND_DRIVER))
		external_records(call);
	return kinds;
}

static void ran(const struct softgpu_work *work)
{
	/* Who is told of graphs as a whole is not told of what is in them. */
	if (work->kind != SOFTGPU_WORK_GRAPH && work->graph &&
		wants(work, CUPTI_ACTIVITY_KIND_GRAPH_TRACE))
		return;
	switch (work->kind) {
	case SOFTGPU_WORK_KERNEL: kernel_ran(work); break;
	case SOFTGPU_WORK_COPY: copy_ran(work); break;
	case SOFTGPU_WORK_FILL: fill_ran(work); break;
	case SOFTGPU_WORK_GRAPH: graph_ran(work); break;
	}
}

const struct softgpu_profiler records_profiler = {
	.called = called,
	.ran = ran,
	.serial = 1ull << CUPTI_ACTIVITY_KIND_KERNEL,
	.graphs = 1ull << CUPTI_ACTIVITY_KIND_GRAPH_TRACE,
};
