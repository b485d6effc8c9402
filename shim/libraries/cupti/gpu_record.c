/* SPDX-License-Identifier: Apache-2.0
 *
 * What an agent recorded, in the form of CUPTI's records.
 */
#include "shim/libraries/cupti/cupti.h"

/* By the same names in CUPTI's structs: when and where, of whatever there is a record, … */
#define SPAN_OF(one)                                                                           \
	.start = (one)->r.start, .end = (one)->r.end, .deviceId = (one)->r.device,             \
	.contextId = (one)->r.context, .streamId = (one)->r.stream, .graphId = (one)->r.graph, \
	.correlationId = (one)->correlation
/* … of work … */
#define WORK_OF(one)                                                                           \
	.graphNodeId = (one)->r.node, .channelID = (one)->r.channel,                           \
	.channelType = (int32_t)(one)->r.channel_type
/* … and of copies. */
#define COPY_OF(one)                                                                           \
	.copyKind = (one)->r.copy.kind, .srcKind = (one)->r.copy.source_kind,                  \
	.dstKind = (one)->r.copy.target_kind, .flags = (one)->r.copy.flags,                    \
	.bytes = (one)->r.copy.bytes

static void put_kernel(const struct gpu_record *one)
{
	const struct profile_record *r = &one->r;
	const struct profile_kernel *k = &r->kernel;
	CUpti_ActivityKernel10 out = {
		.kind = r->kind == PROFILE_KERNEL ? CUPTI_ACTIVITY_KIND_KERNEL
						  : CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL,
		.cacheConfig = {.both = k->cache_config},
		.sharedMemoryConfig = k->shared_config,
		.registersPerThread = (uint16_t)k->registers,
		.partitionedGlobalCacheRequested = k->partitioned_requested,
		.partitionedGlobalCacheExecuted = k->partitioned_executed,
		SPAN_OF(one),
		.completed = r->completed,
		.gridX = k->grid[0],
		.gridY = k->grid[1],
		.gridZ = k->grid[2],
		.blockX = k->block[0],
		.blockY = k->block[1],
		.blockZ = k->block[2],
		.staticSharedMemory = k->static_shared,
		.dynamicSharedMemory = k->dynamic_shared,
		.localMemoryPerThread = k->local_thread,
		.localMemoryTotal = (uint32_t)k->local_total,
		.gridId = k->grid_id,
		.name = one->name,
		.launchType = k->launch_type,
		.isSharedMemoryCarveoutRequested = k->carveout_requested,
		.sharedMemoryCarveoutRequested = k->carveout,
		.sharedMemoryExecuted = k->shared_executed,
		WORK_OF(one),
		.clusterX = k->cluster[0],
		.clusterY = k->cluster[1],
		.clusterZ = k->cluster[2],
		.clusterSchedulingPolicy = k->cluster_policy,
		.localMemoryTotal_v2 = k->local_total,
		.maxPotentialClusterSize = k->max_cluster,
		.maxActiveClusters = k->max_active_clusters,
	};

	deliver_record(&out, sizeof(out));
}

static void put_copy(const struct gpu_record *one, const struct recorded *hint)
{
	const struct profile_record *r = &one->r;
	CUpti_ActivityMemcpy6 out = {
		.kind = CUPTI_ACTIVITY_KIND_MEMCPY,
		COPY_OF(one),
		SPAN_OF(one),
		WORK_OF(one),
		.copyCount = r->copy.count ? r->copy.count : 1,
	};

	if (hint) {
		out.srcKind = hint->detail & 15 ? hint->detail & 15 : out.srcKind;
		out.dstKind = hint->detail >> 4 ? hint->detail >> 4 : out.dstKind;
		out.flags = (uint8_t)hint->number;
	}
	deliver_record(&out, sizeof(out));
}

static void put_peer_copy(const struct gpu_record *one)
{
	const struct profile_record *r = &one->r;
	CUpti_ActivityMemcpyPtoP4 out = {
		.kind = CUPTI_ACTIVITY_KIND_MEMCPY2,
		COPY_OF(one),
		SPAN_OF(one),
		.srcDeviceId = r->copy.source_device,
		.srcContextId = r->copy.source_context,
		.dstDeviceId = r->copy.target_device,
		.dstContextId = r->copy.target_context,
		WORK_OF(one),
	};

	deliver_record(&out, sizeof(out));
}

static void put_fill(const struct gpu_record *one, const struct recorded *hint)
{
	const struct profile_record *r = &one->r;
	CUpti_ActivityMemset4 out = {
		.kind = CUPTI_ACTIVITY_KIND_MEMSET,
		.value = r->fill.value,
		.bytes = r->fill.bytes,
		SPAN_OF(one),
		.flags = hint ? hint->number : r->fill.flags,
		.memoryKind = r->fill.memory_kind,
		WORK_OF(one),
	};

	deliver_record(&out, sizeof(out));
}

static void put_graph(const struct gpu_record *one)
{
	CUpti_ActivityGraphTrace2 out = {
		.kind = CUPTI_ACTIVITY_KIND_GRAPH_TRACE,
		SPAN_OF(one),
		.endDeviceId = one->r.device,
		.endContextId = one->r.context,
	};

	deliver_record(&out, sizeof(out));
}

/* The call that it was part of says what the program copied: the agent may have filled memory
 * with one byte instead, or gone by pinned memory of its own. */
void gpu_put(struct gpu_record *one, const struct recorded *hint)
{
	struct profile_record *r = &one->r;

	if (r->kind == PROFILE_FILL && hint && hint->kind == CUPTI_ACTIVITY_KIND_MEMCPY) {
		struct profile_copy copy = {.bytes = r->fill.bytes,
			.kind = CUPTI_ACTIVITY_MEMCPY_KIND_HTOD,
			.target_kind = CUPTI_ACTIVITY_MEMORY_KIND_DEVICE};

		r->copy = copy;
		r->kind = PROFILE_COPY;
	}
	switch (r->kind) {
	case PROFILE_COPY: put_copy(one, hint); break;
	case PROFILE_PEER_COPY: put_peer_copy(one); break;
	case PROFILE_FILL:
		if (activity_was(CUPTI_ACTIVITY_KIND_MEMSET))
			put_fill(one, hint);
		break;
	case PROFILE_GRAPH: put_graph(one); break;
	default: put_kernel(one);
	}
}
