/* SPDX-License-Identifier: Apache-2.0
 *
 * Pools: see pool.h.
 */
#include "shim/driver/forms.h"
#include "shim/driver/memory/pool.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "shim/generated/cuda_hand.h"
#include "shim/driver/graph/capture.h"
#include "shim/driver/graph/memory_node.h"
#include "shim/driver/context.h"
#include "shim/engine/engine.h"
#include "shim/engine/handle.h"
#include "shim/driver/memory/later.h"
#include "shim/driver/memory/memory.h"
#include "shim/driver/memory/share.h"
#include "shim/driver/peer.h"
#include "shim/driver/stream.h"
#include "shim/engine/lock.h"
#include "shim/engine/thread.h"

struct pool {
	uint64_t handle;
	int device;
	bool is_default;
	bool shareable; /* with other processes (share.c) */
	bool imported;	/* another process's: nothing is allocated from it */
	uint64_t most;	/* bytes that it may have; 0: any number */
	uint64_t threshold;
	uint64_t used, used_high;	  /* bytes that the app has */
	uint64_t reserved, reserved_high; /* and those that are kept for reuse too */
	uint32_t policies[4];		  /* of reuse, by CU_MEMPOOL_ATTR_… - 1 */
	uint64_t peers; /* other devices with access, a bit for each CUdevice */
};

/* A live allocation, or one that was freed and is kept. */
struct piece {
	struct piece *next;
	CUdeviceptr address;
	size_t bytes;
	struct pool *pool;
	uint64_t stream;  /* of kept ones: where it was freed; 0: the legacy one … */
	uint16_t context; /* … of that context */
};

#define POOL_BUCKETS 1024
/* What NVIDIA's driver lets a pool grow to at most is not asked for; beyond this no address is.
 */
#define POOL_LARGEST (1ull << 47)
/* NVIDIA's pools take memory in such units, and are limited by them. */
#define POOL_UNIT (32ull << 20)
/* A kept block may serve a request of half its size or more. */
#define POOL_WASTE 2

static struct {
	pthread_mutex_t lock;
	struct piece *live[POOL_BUCKETS];
	struct piece *kept;
	_Atomic uint64_t kept_bytes; /* read without the lock too */
	struct pool *defaults[OPEN_DEVICES_MOST];
	struct pool *current[OPEN_DEVICES_MOST];
	unsigned reached[OPEN_DEVICES_MOST]
			[OPEN_DEVICES_MOST]; /* pools of the one that let the other */
} pools = {.lock = PTHREAD_MUTEX_INITIALIZER};
LOCK_RANK(pool, pools.lock, LOCK_POOL);

static struct pool *pool_of(CUmemoryPool pool)
{
	return shim_object_of((uint64_t)(uintptr_t)pool, KIND_CUmemoryPool);
}

static struct pool *pool_new(int device)
{
	struct pool *pool = calloc(1, sizeof(*pool));

	if (!pool)
		return NULL;
	pool->device = device;
	for (int i = 0; i < 4; i++)
		pool->policies[i] = 1;
	pool->handle = shim_mint(KIND_CUmemoryPool, pool);
	if (!pool->handle) {
		free(pool);
		return NULL;
	}
	return pool;
}

/* With the lock held. */
struct pool *pool_default(int device)
{
	if (!pools.defaults[device]) {
		pools.defaults[device] = pool_new(device);
		if (pools.defaults[device])
			pools.defaults[device]->is_default = true;
	}
	return pools.defaults[device];
}

struct pool *pool_current(int device)
{
	return pools.current[device] ? pools.current[device] : pool_default(device);
}

static struct piece **bucket_of(CUdeviceptr address)
{
	return &pools.live[((address >> 9) * 0x9E3779B97F4A7C15u >> 54) % POOL_BUCKETS];
}

static struct piece **piece_find(CUdeviceptr address)
{
	struct piece **at = bucket_of(address);

	while (*at && (*at)->address != address)
		at = &(*at)->next;
	return *at ? at : NULL;
}

static void piece_add(struct piece *piece)
{
	struct piece **at = bucket_of(piece->address);

	piece->next = *at;
	*at = piece;
	piece->pool->used += piece->bytes;
	if (piece->pool->used > piece->pool->used_high)
		piece->pool->used_high = piece->pool->used;
}

/* Takes a kept piece off the list and gives its memory back. */
static void kept_drop(struct piece **at)
{
	struct piece *piece = *at;

	*at = piece->next;
	piece->pool->reserved -= piece->bytes;
	pools.kept_bytes -= piece->bytes;
	memory_free(piece->address);
	free(piece);
}

/* Gives kept pieces of the pool back until it holds at most `keep` bytes. */
static void pool_trim(struct pool *pool, uint64_t keep)
{
	struct piece **at = &pools.kept;

	while (*at && pool->reserved > keep) {
		if ((*at)->pool == pool)
			kept_drop(at);
		else
			at = &(*at)->next;
	}
}

void pool_synced(void)
{
	if (!atomic_load_explicit(&pools.kept_bytes, memory_order_relaxed))
		return;
	pthread_mutex_lock(&pools.lock);
	for (struct piece **at = &pools.kept; *at;) {
		struct pool *pool = (*at)->pool;

		if (pool->reserved > pool->threshold)
			kept_drop(at);
		else
			at = &(*at)->next;
	}
	pthread_mutex_unlock(&pools.lock);
}

void pool_stream_gone(uint64_t stream)
{
	later_synced(stream, 0);
	pthread_mutex_lock(&pools.lock);
	for (struct piece **at = &pools.kept; *at;) {
		if ((*at)->stream == stream)
			kept_drop(at);
		else
			at = &(*at)->next;
	}
	pthread_mutex_unlock(&pools.lock);
}

void pool_context_gone(uint16_t context)
{
	later_context(context);
	pthread_mutex_lock(&pools.lock);
	for (struct piece **at = &pools.kept; *at;) {
		if (!(*at)->stream && (*at)->context == context)
			kept_drop(at);
		else
			at = &(*at)->next;
	}
	pthread_mutex_unlock(&pools.lock);
}

bool pool_forget(CUdeviceptr address)
{
	struct piece **at, *piece;

	pthread_mutex_lock(&pools.lock);
	at = piece_find(address);
	piece = at ? *at : NULL;
	if (piece) {
		*at = piece->next;
		piece->pool->used -= piece->bytes;
		piece->pool->reserved -= piece->bytes;
	}
	pthread_mutex_unlock(&pools.lock);
	free(piece);
	return piece != NULL;
}

void pool_reset(int device)
{
	struct memory_range range;

	pthread_mutex_lock(&pools.lock);
	for (unsigned i = 0; i <= POOL_BUCKETS; i++) {
		struct piece **at = i < POOL_BUCKETS ? &pools.live[i] : &pools.kept;

		while (*at) {
			struct piece *piece = *at;

			if (piece->pool->device != device ||
				memory_find(piece->address, &range)) {
				at = &piece->next;
				continue;
			}
			*at = piece->next;
			if (i == POOL_BUCKETS)
				pools.kept_bytes -= piece->bytes;
			piece->pool->reserved -= piece->bytes;
			if (i < POOL_BUCKETS)
				piece->pool->used -= piece->bytes;
			free(piece);
		}
	}
	pthread_mutex_unlock(&pools.lock);
}

/* With the lock held: the best kept piece for the request, taken off the list; NULL: none. */
static struct piece *kept_get(const struct pool *pool, size_t bytes, uint64_t stream)
{
	struct piece **best = NULL, *piece;

	for (struct piece **at = &pools.kept; *at; at = &(*at)->next)
		if ((*at)->pool == pool && (*at)->stream == stream &&
			(stream || (*at)->context == thread_self.number) &&
			(*at)->bytes >= bytes && (*at)->bytes / POOL_WASTE <= bytes &&
			(!best || (*at)->bytes < (*best)->bytes))
			best = at;
	if (!best)
		return NULL;
	piece = *best;
	*best = piece->next;
	pools.kept_bytes -= piece->bytes;
	return piece;
}

static struct piece *piece_new(struct pool *pool, size_t bytes, CUresult *status)
{
	struct piece *piece = calloc(1, sizeof(*piece));

	*status = CUDA_ERROR_OUT_OF_MEMORY;
	if (!piece)
		return NULL;
	if (pool->most && (bytes > pool->most || pool->used > pool->most - bytes)) {
		free(piece);
		return NULL;
	}
	*status = memory_alloc(pool->device, bytes, true, &piece->address);
	if (*status == CUDA_ERROR_OUT_OF_MEMORY && pool->reserved > pool->used) {
		pool_trim(pool, pool->used);
		*status = memory_alloc(pool->device, bytes, true, &piece->address);
	}
	if (*status) {
		free(piece);
		return NULL;
	}
	piece->bytes = bytes;
	piece->pool = pool;
	pool->reserved += bytes;
	if (pool->reserved > pool->reserved_high)
		pool->reserved_high = pool->reserved;
	return piece;
}

/* What a capture says to an allocation; it tells no address then, as natively. */
static CUresult alloc_captured(CUdeviceptr *dptr, CUstream stream)
{
	CUresult status;

	if (dptr)
		*dptr = 0;
	if (!capture_any())
		return CUDA_SUCCESS;
	status = capture_node(stream);
	return status ? status : capture_elsewhere(stream);
}

static CUresult pool_alloc(struct pool *pool, CUdeviceptr *dptr, size_t bytes, CUstream hStream)
{
	struct graph *graph;
	struct piece *piece;
	uint64_t stream;
	CUresult status = stream_number(hStream, &stream);

	if (!dptr)
		return CUDA_ERROR_INVALID_VALUE;
	*dptr = 0;
	if (status)
		return status;
	if (pool->imported)
		return CUDA_ERROR_INVALID_VALUE;
	if (!bytes)
		return CUDA_SUCCESS;
	graph = capture_graph(stream);
	if (graph)
		return memory_node_capture_alloc(graph, stream, pool->device, bytes, dptr);
	pthread_mutex_lock(&pools.lock);
	piece = kept_get(pool, bytes, stream);
	if (!piece)
		piece = piece_new(pool, bytes, &status);
	if (piece) {
		piece_add(piece);
		*dptr = piece->address;
	}
	pthread_mutex_unlock(&pools.lock);
	return status;
}

CUresult hand_cuMemAllocAsync(CUdeviceptr *dptr, size_t bytesize, CUstream hStream)
{
	struct context *context = context_current();
	CUresult status = alloc_captured(dptr, hStream);
	struct pool *pool;

	if (status)
		return status;
	if (!context)
		return CUDA_ERROR_INVALID_CONTEXT;
	pthread_mutex_lock(&pools.lock);
	pool = pool_current(context->device);
	pthread_mutex_unlock(&pools.lock);
	return pool ? pool_alloc(pool, dptr, bytesize, hStream) : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult hand_cuMemAllocFromPoolAsync(
	CUdeviceptr *dptr, size_t bytesize, CUmemoryPool pool, CUstream hStream)
{
	struct pool *from = pool_of(pool);
	CUresult status = alloc_captured(dptr, hStream);

	if (status)
		return status;
	return from ? pool_alloc(from, dptr, bytesize, hStream) : CUDA_ERROR_INVALID_VALUE;
}

CUresult hand_cuMemFreeAsync(CUdeviceptr dptr, CUstream hStream)
{
	struct piece **at, *piece;
	struct graph *graph;
	uint64_t stream;
	CUresult status = stream_number(hStream, &stream);

	if (status || !dptr)
		return status;
	graph = capture_graph(stream);
	if (graph)
		return memory_node_capture_free(graph, stream, dptr);
	if (graph_memory_free(dptr, &status))
		return status;
	pthread_mutex_lock(&pools.lock);
	at = piece_find(dptr);
	piece = at ? *at : NULL;
	if (piece) {
		*at = piece->next;
		piece->pool->used -= piece->bytes;
		piece->stream = stream;
		piece->context = thread_self.number;
		piece->next = pools.kept;
		pools.kept = piece;
		pools.kept_bytes += piece->bytes;
	}
	pthread_mutex_unlock(&pools.lock);
	/* Memory of cuMemAlloc, and of another process's pool, may be freed on a stream too. */
	if (piece || share_close_pointer(dptr, &status))
		return status;
	return later_free(dptr, stream, thread_self.number);
}

/* ---- pools themselves ---- */

/* INVALID_VALUE: there can be no such pool; NOT_SUPPORTED: not served. A location of no type is
 * where managed memory has no preference. */
static CUresult location_check(const CUmemLocation *location, CUmemAllocationType type)
{
	const bool managed = type == CU_MEM_ALLOCATION_TYPE_MANAGED;

	if (location && (int)location->type > CU_MEM_LOCATION_TYPE_HOST_NUMA)
		return CUDA_ERROR_NOT_SUPPORTED;
	if (!location || (!managed && type != CU_MEM_ALLOCATION_TYPE_PINNED))
		return CUDA_ERROR_INVALID_VALUE;
	switch ((int)location->type) {
	case CU_MEM_LOCATION_TYPE_INVALID:
		return managed ? CUDA_ERROR_NOT_SUPPORTED : CUDA_ERROR_INVALID_VALUE;
	case CU_MEM_LOCATION_TYPE_DEVICE:
		if (!device_of(location->id))
			return CUDA_ERROR_INVALID_VALUE;
		return managed ? CUDA_ERROR_NOT_SUPPORTED : CUDA_SUCCESS;
	case CU_MEM_LOCATION_TYPE_HOST_NUMA:
		return location->id < 0 ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_NOT_SUPPORTED;
	default: return CUDA_ERROR_NOT_SUPPORTED;
	}
}

CUresult hand_cuMemPoolCreate(CUmemoryPool *pool, const CUmemPoolProps *poolProps)
{
	struct pool *made;
	CUresult status;

	if (!pool || !poolProps ||
		(int)poolProps->location.type > CU_MEM_LOCATION_TYPE_HOST_NUMA)
		return CUDA_ERROR_INVALID_VALUE;
	status = location_check(&poolProps->location, poolProps->allocType);
	if (status)
		return status;
	if (poolProps->handleTypes & ~(unsigned)CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
		return CUDA_ERROR_NOT_SUPPORTED;
	if (poolProps->maxSize > devices.at[poolProps->location.id].open.total_memory &&
		poolProps->maxSize > POOL_LARGEST)
		return CUDA_ERROR_OUT_OF_MEMORY;
	made = pool_new(poolProps->location.id);
	if (!made)
		return CUDA_ERROR_OUT_OF_MEMORY;
	made->shareable = poolProps->handleTypes != 0;
	made->most = (poolProps->maxSize + POOL_UNIT - 1) / POOL_UNIT * POOL_UNIT;
	*pool = (CUmemoryPool)(uintptr_t)made->handle;
	return CUDA_SUCCESS;
}

/* ---- shared with other processes ---- */

CUresult pool_import(int device, CUmemoryPool *pool)
{
	struct pool *made = pool_new(device);

	if (!made)
		return CUDA_ERROR_OUT_OF_MEMORY;
	made->imported = true;
	*pool = (CUmemoryPool)(uintptr_t)made->handle;
	return CUDA_SUCCESS;
}

bool pool_sharing(CUmemoryPool pool, int *device, bool *shareable, bool *imported)
{
	const struct pool *of = pool_of(pool);

	if (!of)
		return false;
	*device = of->device;
	*shareable = of->shareable;
	*imported = of->imported;
	return true;
}

bool pool_shares(CUdeviceptr address)
{
	struct piece **at;
	bool shares;

	pthread_mutex_lock(&pools.lock);
	at = piece_find(address);
	shares = at && (*at)->pool->shareable;
	pthread_mutex_unlock(&pools.lock);
	return shares;
}

/* Its live allocations stay until they are freed, so the object stays too; the name goes. */
CUresult hand_cuMemPoolDestroy(CUmemoryPool pool)
{
	struct pool *gone = pool_of(pool);

	if (!gone || gone->is_default || !handle_release(gone->handle))
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&pools.lock);
	pool_trim(gone, gone->used);
	gone->threshold = 0;
	if (pools.current[gone->device] == gone)
		pools.current[gone->device] = NULL;
	pthread_mutex_unlock(&pools.lock);
	return CUDA_SUCCESS;
}

CUresult hand_cuMemPoolTrimTo(CUmemoryPool pool, size_t minBytesToKeep)
{
	struct pool *trimmed = pool_of(pool);

	if (!trimmed)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&pools.lock);
	pool_trim(trimmed, minBytesToKeep);
	pthread_mutex_unlock(&pools.lock);
	return CUDA_SUCCESS;
}

CUresult hand_cuMemPoolSetAttribute(CUmemoryPool pool, CUmemPool_attribute attr, void *value)
{
	struct pool *p = pool_of(pool);
	CUresult status = CUDA_SUCCESS;

	if (!p || !value)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&pools.lock);
	switch (attr) {
	case CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES:
	case CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC:
	case CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES:
		p->policies[attr - 1] = *(const int *)value != 0;
		break;
	case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD:
		p->threshold = *(const cuuint64_t *)value;
		break;
	case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
		if (*(const cuuint64_t *)value)
			status = CUDA_ERROR_INVALID_VALUE;
		else
			p->reserved_high = p->reserved;
		break;
	case CU_MEMPOOL_ATTR_USED_MEM_HIGH:
		if (*(const cuuint64_t *)value)
			status = CUDA_ERROR_INVALID_VALUE;
		else
			p->used_high = p->used;
		break;
	default: status = CUDA_ERROR_INVALID_VALUE;
	}
	pthread_mutex_unlock(&pools.lock);
	return status;
}

CUresult hand_cuMemPoolGetAttribute(CUmemoryPool pool, CUmemPool_attribute attr, void *value)
{
	struct pool *p = pool_of(pool);
	CUresult status = CUDA_SUCCESS;

	if (!p || !value)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&pools.lock);
	switch (attr) {
	case CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES:
	case CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC:
	case CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES:
		*(int *)value = (int)p->policies[attr - 1];
		break;
	case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD: *(cuuint64_t *)value = p->threshold; break;
	case CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT: *(cuuint64_t *)value = p->reserved; break;
	case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH: *(cuuint64_t *)value = p->reserved_high; break;
	case CU_MEMPOOL_ATTR_USED_MEM_CURRENT: *(cuuint64_t *)value = p->used; break;
	case CU_MEMPOOL_ATTR_USED_MEM_HIGH: *(cuuint64_t *)value = p->used_high; break;
	default: status = CUDA_ERROR_INVALID_VALUE;
	}
	pthread_mutex_unlock(&pools.lock);
	return status;
}

static CUresult access_check(const struct pool *p, const CUmemLocation *location, int flags)
{
	bool own = location->id == p->device;

	if (!device_of(location->id))
		return CUDA_ERROR_INVALID_DEVICE;
	/* Its own device always has it. */
	if (own)
		return flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE ? CUDA_SUCCESS
								   : CUDA_ERROR_INVALID_VALUE;
	if (flags == CU_MEM_ACCESS_FLAGS_PROT_NONE)
		return CUDA_SUCCESS;
	return flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE && peer_can(location->id, p->device)
		       ? CUDA_SUCCESS
		       : CUDA_ERROR_NOT_SUPPORTED;
}

/* With the lock held.  The worker opens all that the device's pools hold to a device that has
 * access to one of them: pieces of several lie in one granule. */
static CUresult access_set(struct pool *p, int by, bool in)
{
	unsigned *count = &pools.reached[p->device][by];
	uint64_t bit = 1ull << by;
	CUresult status = CUDA_SUCCESS;

	if (by == p->device || !!(p->peers & bit) == in)
		return CUDA_SUCCESS;
	if (*count == (in ? 0 : 1))
		status = peer_pool(p->device, by, in);
	if (status)
		return status;
	*count += in ? 1 : -1u;
	p->peers ^= bit;
	return CUDA_SUCCESS;
}

CUresult hand_cuMemPoolSetAccess(CUmemoryPool pool, const CUmemAccessDesc *map, size_t count)
{
	struct pool *p = pool_of(pool);
	CUresult status = CUDA_SUCCESS;

	if (!p || (count && !map))
		return CUDA_ERROR_INVALID_VALUE;
	for (size_t i = 0; i < count; i++) {
		if (map[i].location.type != CU_MEM_LOCATION_TYPE_DEVICE ||
			map[i].flags == CU_MEM_ACCESS_FLAGS_PROT_READ)
			return CUDA_ERROR_NOT_SUPPORTED;
		if (!device_of(map[i].location.id))
			return CUDA_ERROR_INVALID_DEVICE;
	}
	for (size_t i = 0; !status && i < count; i++)
		status = access_check(p, &map[i].location, (int)map[i].flags);
	pthread_mutex_lock(&pools.lock);
	for (size_t i = 0; !status && i < count; i++)
		status = access_set(p, map[i].location.id, map[i].flags != 0);
	pthread_mutex_unlock(&pools.lock);
	return status;
}

CUresult hand_cuMemPoolGetAccess(
	CUmemAccess_flags *flags, CUmemoryPool memPool, CUmemLocation *location)
{
	struct pool *p = pool_of(memPool);

	if (!p || !flags || !location)
		return CUDA_ERROR_INVALID_VALUE;
	if (location->type == CU_MEM_LOCATION_TYPE_HOST) {
		*flags = CU_MEM_ACCESS_FLAGS_PROT_NONE; /* pools are of devices here */
		return CUDA_SUCCESS;
	}
	if (location->type != CU_MEM_LOCATION_TYPE_DEVICE || !device_of(location->id))
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&pools.lock);
	*flags = location->id == p->device || p->peers >> location->id & 1
			 ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE
			 : CU_MEM_ACCESS_FLAGS_PROT_NONE;
	pthread_mutex_unlock(&pools.lock);
	return CUDA_SUCCESS;
}

CUresult pool_tell(CUmemoryPool *out, CUdevice dev, struct pool *(*which)(int device))
{
	struct pool *pool;

	if (!out)
		return CUDA_ERROR_INVALID_VALUE;
	/* NVIDIA's driver has two numbers for one mistake. */
	if (!device_of(dev))
		return which == pool_default ? CUDA_ERROR_INVALID_DEVICE
					     : CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&pools.lock);
	pool = which(dev);
	pthread_mutex_unlock(&pools.lock);
	if (!pool)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*out = (CUmemoryPool)(uintptr_t)pool->handle;
	return CUDA_SUCCESS;
}

CUresult hand_cuDeviceSetMemPool(CUdevice dev, CUmemoryPool pool)
{
	struct pool *set = pool_of(pool);

	if (!device_of(dev) || !set || set->device != dev || set->imported)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&pools.lock);
	pools.current[dev] = set;
	pthread_mutex_unlock(&pools.lock);
	return CUDA_SUCCESS;
}

CUresult hand_cuMemGetDefaultMemPool(
	CUmemoryPool *pool_out, CUmemLocation *location, CUmemAllocationType type)
{
	CUresult status = pool_out ? location_check(location, type) : CUDA_ERROR_INVALID_VALUE;

	return status ? status : hand_cuDeviceGetDefaultMemPool(pool_out, location->id);
}

CUresult hand_cuMemGetMemPool(
	CUmemoryPool *pool, CUmemLocation *location, CUmemAllocationType type)
{
	CUresult status = pool ? location_check(location, type) : CUDA_ERROR_INVALID_VALUE;

	return status ? status : hand_cuDeviceGetMemPool(pool, location->id);
}

CUresult hand_cuMemSetMemPool(
	CUmemLocation *location, CUmemAllocationType type, CUmemoryPool pool)
{
	CUresult status =
		pool_of(pool) ? location_check(location, type) : CUDA_ERROR_INVALID_VALUE;

	if (status == CUDA_ERROR_NOT_SUPPORTED &&
		(int)location->type > CU_MEM_LOCATION_TYPE_HOST_NUMA)
		return status;
	/* There is no pool that would fit what is not served. */
	if (status)
		return CUDA_ERROR_INVALID_VALUE;
	return hand_cuDeviceSetMemPool(location->id, pool);
}
