/* SPDX-License-Identifier: Apache-2.0
 *
 * Buffers that CUPTI fills and gives back on threads of its own, or within its flush on the
 * loop's, and what the records in them say.  The store's mutex is held for no call of CUPTI's,
 * which has locks of its own around these callbacks.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "gpu-agent/worker/libraries/cupti/profile.h"

#define BUFFER_BYTES (1u << 20)
/* That CUPTI has at once; without one it drops records, and says how many. */
#define BUFFERS_MAX 64

/* cuptiGetVersion's answer from which on copies are counted (CUDA 12.8: CUpti_ActivityMemcpy6).
 * All else that is read is in the records of 12.1 already, at the same place. */
#define VERSION_COPY_COUNT 26

static struct {
	const struct cupti_library *library;
	uint32_t version;
	uint32_t devices[PROFILE_DEVICES];
	_Atomic uint32_t buffers;
	pthread_mutex_t lock;
	struct profile_store store;
} buffers = {.lock = PTHREAD_MUTEX_INITIALIZER};

struct profile_store *profile_store_get(void)
{
	pthread_mutex_lock(&buffers.lock);
	return &buffers.store;
}

void profile_store_put(void)
{
	pthread_mutex_unlock(&buffers.lock);
}

/* --- what records say --------------------------------------------------------------------- */

/* When and where, which CUPTI's structs say by the same names: of whatever there is a record …
 */
#define SPAN_OF(from)                                                                          \
	.start = (from)->start, .end = (from)->end, .device = (from)->deviceId,                \
	.context = (from)->contextId, .stream = (from)->streamId, .graph = (from)->graphId,    \
	.launch = (from)->correlationId
/* … and of work. */
#define WORK_OF(from)                                                                          \
	SPAN_OF(from), .node = (from)->graphNodeId, .channel = (from)->channelID,              \
		.channel_type = (uint32_t)(from)->channelType

static void convert_kernel(const CUpti_ActivityKernel10 *from, struct profile_record *into)
{
	*into = (struct profile_record){.kind = from->kind == CUPTI_ACTIVITY_KIND_KERNEL
							? PROFILE_KERNEL
							: PROFILE_CONCURRENT_KERNEL,
		.completed = from->completed,
		WORK_OF(from),
		.kernel = {
			.grid = {from->gridX, from->gridY, from->gridZ},
			.block = {from->blockX, from->blockY, from->blockZ},
			.cluster = {from->clusterX, from->clusterY, from->clusterZ},
			.static_shared = from->staticSharedMemory,
			.dynamic_shared = from->dynamicSharedMemory,
			.shared_executed = from->sharedMemoryExecuted,
			.local_thread = from->localMemoryPerThread,
			.registers = from->registersPerThread,
			.local_total = from->localMemoryTotal_v2,
			.grid_id = from->gridId,
			.cluster_policy = from->clusterSchedulingPolicy,
			.max_cluster = from->maxPotentialClusterSize,
			.max_active_clusters = from->maxActiveClusters,
			.cache_config = from->cacheConfig.both,
			.shared_config = from->sharedMemoryConfig,
			.launch_type = from->launchType,
			.carveout_requested = from->isSharedMemoryCarveoutRequested,
			.carveout = from->sharedMemoryCarveoutRequested,
			.partitioned_requested = (uint8_t)from->partitionedGlobalCacheRequested,
			.partitioned_executed = (uint8_t)from->partitionedGlobalCacheExecuted,
		}};
}

static void convert_copy(
	const CUpti_ActivityMemcpy6 *from, uint32_t version, struct profile_record *into)
{
	*into = (struct profile_record){.kind = PROFILE_COPY,
		WORK_OF(from),
		.copy = {
			.bytes = from->bytes,
			.count = version >= VERSION_COPY_COUNT ? from->copyCount : 0,
			.kind = from->copyKind,
			.source_kind = from->srcKind,
			.target_kind = from->dstKind,
			.flags = from->flags,
		}};
}

static void convert_peer_copy(
	const CUpti_ActivityMemcpyPtoP4 *from, struct profile_record *into)
{
	*into = (struct profile_record){.kind = PROFILE_PEER_COPY,
		WORK_OF(from),
		.copy = {
			.bytes = from->bytes,
			.source_device = from->srcDeviceId,
			.source_context = from->srcContextId,
			.target_device = from->dstDeviceId,
			.target_context = from->dstContextId,
			.kind = from->copyKind,
			.source_kind = from->srcKind,
			.target_kind = from->dstKind,
			.flags = from->flags,
		}};
}

static void convert_fill(const CUpti_ActivityMemset4 *from, struct profile_record *into)
{
	*into = (struct profile_record){.kind = PROFILE_FILL,
		WORK_OF(from),
		.fill = {
			.bytes = from->bytes,
			.value = from->value,
			.flags = from->flags,
			.memory_kind = from->memoryKind,
		}};
}

static void convert_graph(const CUpti_ActivityGraphTrace2 *from, struct profile_record *into)
{
	*into = (struct profile_record){
		.kind = PROFILE_GRAPH,
		SPAN_OF(from),
	};
}

bool profile_convert(const CUpti_Activity *record, uint32_t version,
	struct profile_record *into, const char **name)
{
	*name = NULL;
	switch (record->kind) {
	case CUPTI_ACTIVITY_KIND_KERNEL:
	case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL:
		convert_kernel((const void *)record, into);
		*name = ((const CUpti_ActivityKernel10 *)record)->name;
		return true;
	case CUPTI_ACTIVITY_KIND_MEMCPY:
		convert_copy((const void *)record, version, into);
		return true;
	case CUPTI_ACTIVITY_KIND_MEMCPY2:
		convert_peer_copy((const void *)record, into);
		return true;
	case CUPTI_ACTIVITY_KIND_MEMSET: convert_fill((const void *)record, into); return true;
	case CUPTI_ACTIVITY_KIND_GRAPH_TRACE:
		convert_graph((const void *)record, into);
		return true;
	default: return false;
	}
}

/* --- CUPTI's threads ---------------------------------------------------------------------- */

static uint32_t device_of(uint32_t number)
{
	return number < PROFILE_DEVICES ? buffers.devices[number] : number;
}

static void record_take(const CUpti_Activity *record)
{
	const CUpti_ActivityExternalCorrelation *call = (const void *)record;
	struct profile_record converted;
	const char *name;

	if (record->kind == CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION) {
		if (call->externalKind != CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM2)
			return;
		profile_store_call(profile_store_get(), call->correlationId, call->externalId);
		profile_store_put();
		return;
	}
	if (!profile_convert(record, buffers.version, &converted, &name))
		return;
	converted.device = device_of(converted.device);
	if (converted.kind == PROFILE_PEER_COPY) {
		converted.copy.source_device = device_of(converted.copy.source_device);
		converted.copy.target_device = device_of(converted.copy.target_device);
	}
	profile_store_take(profile_store_get(), &converted, name);
	profile_store_put();
}

static void buffer_requested(uint8_t **buffer, size_t *size, size_t *records)
{
	void *bytes = NULL;

	*size = *records = 0; /* as many as it has room for */
	if (atomic_fetch_add(&buffers.buffers, 1) < BUFFERS_MAX)
		bytes = aligned_alloc(8, BUFFER_BYTES);
	if (bytes)
		*size = BUFFER_BYTES;
	else
		atomic_fetch_sub(&buffers.buffers, 1);
	*buffer = bytes;
}

static void buffer_completed(
	CUcontext context, uint32_t stream, uint8_t *buffer, size_t size, size_t valid)
{
	const struct cupti_library *l = buffers.library;
	CUpti_Activity *record = NULL;
	size_t dropped = 0;

	(void)size;
	while (buffer && valid && !l->cuptiActivityGetNextRecord(buffer, valid, &record))
		record_take(record);
	if (buffer) {
		free(buffer);
		atomic_fetch_sub(&buffers.buffers, 1);
	}
	if (!l->cuptiActivityGetNumDroppedRecords ||
		l->cuptiActivityGetNumDroppedRecords(context, stream, &dropped))
		dropped = 0;
	profile_store_get()->dropped += dropped;
	profile_store_join(&buffers.store);
	profile_store_put();
}

CUptiResult profile_buffers_open(const struct cupti_library *library, uint32_t version)
{
	buffers.library = library;
	buffers.version = version;
	return library->cuptiActivityRegisterCallbacks(buffer_requested, buffer_completed);
}

void profile_buffers_device(uint32_t number, uint32_t device)
{
	if (number < PROFILE_DEVICES)
		buffers.devices[number] = device;
}
