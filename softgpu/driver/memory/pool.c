/* SPDX-License-Identifier: Apache-2.0
 *
 * Memory pools and stream-ordered allocation.  The address is known at the call, so allocating
 * is immediate; freeing is an operation of the stream.  Nothing is kept back for the next
 * allocation (its pages would have to be zeroed anyway): reserved is always what is used.
 */
#include "softgpu/driver/softgpu.h"

#include <stdlib.h>
#include <string.h>

#include "softgpu/driver/graph/graph.h"
#include "softgpu/driver/peer.h"

/* Under memory_lock. */
struct CUmemPoolHandle_st {
	struct device *device;
	bool is_default, closed;
	size_t used, used_high, max_size;
	cuuint64_t threshold;
	int follow, opportunistic, internal;
	uint64_t reached_by; /* other devices that have access, a bit for each */
};

static void pool_reap(struct CUmemPoolHandle_st *pool)
{
	if (!pool->closed || pool->used)
		return;
	for (unsigned i = 0; i < settings.devices; i++)
		if (pool->reached_by >> i & 1)
			peer_let(pool->device, &soft_devices[i], false);
	free(pool);
}

void pool_took(struct CUmemPoolHandle_st *pool, size_t size)
{
	pool->used += size;
	if (pool->used > pool->used_high)
		pool->used_high = pool->used;
}

void pool_gave(struct CUmemPoolHandle_st *pool, size_t size)
{
	pool->used -= size;
	pool_reap(pool);
}

static struct CUmemPoolHandle_st *pool_new(struct device *device, bool is_default)
{
	struct CUmemPoolHandle_st *pool = calloc(1, sizeof(*pool));

	if (!pool)
		return NULL;
	pool->device = device;
	pool->is_default = is_default;
	pool->follow = pool->opportunistic = pool->internal = 1;
	if (!object_add(pool, OBJECT_POOL)) {
		free(pool);
		return NULL;
	}
	return pool;
}

struct CUmemPoolHandle_st *soft_pool_default(struct device *device)
{
	return pool_new(device, true);
}

static CUresult device_of(CUdevice dev, struct device **device)
{
	if (!device_initialised())
		return CUDA_ERROR_NOT_INITIALIZED;
	*device = device_get(dev);
	return *device ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

static CUresult pool_check(CUmemoryPool pool)
{
	if (!device_initialised())
		return CUDA_ERROR_NOT_INITIALIZED;
	return object_is(pool, OBJECT_POOL) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuDeviceGetDefaultMemPool(CUmemoryPool *pool_out, CUdevice dev)
{
	struct device *device;
	CUresult ret = device_of(dev, &device);

	if (ret)
		return ret;
	if (!pool_out)
		return CUDA_ERROR_INVALID_VALUE;
	*pool_out = device->default_pool;
	return CUDA_SUCCESS;
}

CUresult cuDeviceGetMemPool(CUmemoryPool *pool, CUdevice dev)
{
	struct device *device;
	CUresult ret = device_of(dev, &device);

	if (ret)
		return ret;
	if (!pool)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_rwlock_rdlock(&memory_lock);
	*pool = device->current_pool;
	pthread_rwlock_unlock(&memory_lock);
	return CUDA_SUCCESS;
}

CUresult cuDeviceSetMemPool(CUdevice dev, CUmemoryPool pool)
{
	struct device *device;
	CUresult ret = device_of(dev, &device);

	if (!ret)
		ret = pool_check(pool);
	if (ret)
		return ret;
	if (pool->device != device)
		return CUDA_ERROR_INVALID_DEVICE;
	pthread_rwlock_wrlock(&memory_lock);
	device->current_pool = pool;
	pthread_rwlock_unlock(&memory_lock);
	return CUDA_SUCCESS;
}

/* The 13.0 forms name a location instead of a device. */
static CUresult location_device(const CUmemLocation *location, CUmemAllocationType type)
{
	if (!location || type != CU_MEM_ALLOCATION_TYPE_PINNED)
		return CUDA_ERROR_INVALID_VALUE;
	return location->type == CU_MEM_LOCATION_TYPE_DEVICE ? CUDA_SUCCESS
							     : CUDA_ERROR_NOT_SUPPORTED;
}

CUresult cuMemGetDefaultMemPool(
	CUmemoryPool *pool_out, CUmemLocation *location, CUmemAllocationType type)
{
	CUresult ret = location_device(location, type);

	return ret ? ret : cuDeviceGetDefaultMemPool(pool_out, location->id);
}

CUresult cuMemGetMemPool(CUmemoryPool *pool, CUmemLocation *location, CUmemAllocationType type)
{
	CUresult ret = location_device(location, type);

	return ret ? ret : cuDeviceGetMemPool(pool, location->id);
}

CUresult cuMemSetMemPool(CUmemLocation *location, CUmemAllocationType type, CUmemoryPool pool)
{
	CUresult ret = location_device(location, type);

	return ret ? ret : cuDeviceSetMemPool(location->id, pool);
}

CUresult cuMemPoolCreate(CUmemoryPool *pool, const CUmemPoolProps *poolProps)
{
	struct CUmemPoolHandle_st *made;
	struct device *device;
	CUresult ret;

	if (!pool || !poolProps || poolProps->allocType != CU_MEM_ALLOCATION_TYPE_PINNED)
		return CUDA_ERROR_INVALID_VALUE;
	if (poolProps->location.type != CU_MEM_LOCATION_TYPE_DEVICE ||
		poolProps->handleTypes != CU_MEM_HANDLE_TYPE_NONE)
		return CUDA_ERROR_NOT_SUPPORTED;
	ret = device_of(poolProps->location.id, &device);
	if (ret)
		return ret;
	made = pool_new(device, false);
	if (!made)
		return CUDA_ERROR_OUT_OF_MEMORY;
	made->max_size = poolProps->maxSize;
	*pool = made;
	return CUDA_SUCCESS;
}

/* Memory from it stays valid; the pool goes with the last of it. */
CUresult cuMemPoolDestroy(CUmemoryPool pool)
{
	CUresult ret = pool_check(pool);

	if (ret)
		return ret;
	if (pool->is_default)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_rwlock_wrlock(&memory_lock);
	object_remove(pool);
	if (pool->device->current_pool == pool)
		pool->device->current_pool = pool->device->default_pool;
	pool->closed = true;
	pool_reap(pool);
	pthread_rwlock_unlock(&memory_lock);
	return CUDA_SUCCESS;
}

CUresult cuMemPoolTrimTo(CUmemoryPool pool, size_t minBytesToKeep)
{
	(void)minBytesToKeep;
	return pool_check(pool);
}

static CUresult attribute(
	struct CUmemPoolHandle_st *pool, CUmemPool_attribute attr, void *value, bool set)
{
	int *flag = NULL;

	switch (attr) {
	case CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES: flag = &pool->follow; break;
	case CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC: flag = &pool->opportunistic; break;
	case CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES: flag = &pool->internal; break;
	default: break;
	}
	if (flag && set)
		*flag = *(const int *)value;
	else if (flag)
		*(int *)value = *flag;
	else if (attr == CU_MEMPOOL_ATTR_RELEASE_THRESHOLD && set)
		pool->threshold = *(const cuuint64_t *)value;
	else if (attr == CU_MEMPOOL_ATTR_RELEASE_THRESHOLD)
		*(cuuint64_t *)value = pool->threshold;
	else if ((attr == CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT ||
			 attr == CU_MEMPOOL_ATTR_USED_MEM_CURRENT) &&
		 !set)
		*(cuuint64_t *)value = pool->used;
	else if ((attr == CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH ||
			 attr == CU_MEMPOOL_ATTR_USED_MEM_HIGH) &&
		 !set)
		*(cuuint64_t *)value = pool->used_high;
	else if ((attr == CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH ||
			 attr == CU_MEMPOOL_ATTR_USED_MEM_HIGH) &&
		 *(const cuuint64_t *)value == 0)
		pool->used_high = pool->used;
	else
		return CUDA_ERROR_INVALID_VALUE;
	return CUDA_SUCCESS;
}

CUresult cuMemPoolGetAttribute(CUmemoryPool pool, CUmemPool_attribute attr, void *value)
{
	CUresult ret = pool_check(pool);

	if (ret)
		return ret;
	if (!value)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_rwlock_wrlock(&memory_lock);
	ret = attribute(pool, attr, value, false);
	pthread_rwlock_unlock(&memory_lock);
	return ret;
}

CUresult cuMemPoolSetAttribute(CUmemoryPool pool, CUmemPool_attribute attr, void *value)
{
	CUresult ret = pool_check(pool);

	if (ret)
		return ret;
	if (!value)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_rwlock_wrlock(&memory_lock);
	ret = attribute(pool, attr, value, true);
	pthread_rwlock_unlock(&memory_lock);
	return ret;
}

/* Whoever reaches one pool of a device reaches all that the device allocates (peer.c). */
static void pool_let(struct CUmemPoolHandle_st *pool, unsigned device, bool in)
{
	if ((pool->reached_by >> device & 1) == in)
		return;
	pool->reached_by ^= 1ull << device;
	peer_let(pool->device, &soft_devices[device], in);
}

CUresult cuMemPoolSetAccess(CUmemoryPool pool, const CUmemAccessDesc *map, size_t count)
{
	CUresult ret = pool_check(pool);

	if (ret)
		return ret;
	if (!map && count)
		return CUDA_ERROR_INVALID_VALUE;
	for (size_t i = 0; i < count; i++) {
		if (map[i].location.type != CU_MEM_LOCATION_TYPE_DEVICE)
			return CUDA_ERROR_INVALID_VALUE;
		if (!device_get(map[i].location.id))
			return CUDA_ERROR_INVALID_DEVICE;
		if (map[i].location.id == pool->device->ordinal &&
			map[i].flags != CU_MEM_ACCESS_FLAGS_PROT_READWRITE)
			return CUDA_ERROR_INVALID_DEVICE;
	}
	pthread_rwlock_wrlock(&memory_lock);
	for (size_t i = 0; i < count; i++)
		if (map[i].location.id != pool->device->ordinal)
			pool_let(pool, (unsigned)map[i].location.id, map[i].flags != 0);
	pthread_rwlock_unlock(&memory_lock);
	return CUDA_SUCCESS;
}

CUresult cuMemPoolGetAccess(
	CUmemAccess_flags *flags, CUmemoryPool memPool, CUmemLocation *location)
{
	CUresult ret = pool_check(memPool);

	if (ret)
		return ret;
	if (!flags || !location || location->type != CU_MEM_LOCATION_TYPE_DEVICE)
		return CUDA_ERROR_INVALID_VALUE;
	if (!device_get(location->id))
		return CUDA_ERROR_INVALID_DEVICE;
	pthread_rwlock_rdlock(&memory_lock);
	*flags = location->id == memPool->device->ordinal ||
				 memPool->reached_by >> location->id & 1
			 ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE
			 : CU_MEM_ACCESS_FLAGS_PROT_NONE;
	pthread_rwlock_unlock(&memory_lock);
	return CUDA_SUCCESS;
}

/* ---- stream-ordered allocation ---- */

/* Graphs that own memory are not served. */
static CUresult pool_uncaptured(struct CUstream_st *stream)
{
	CUresult ret;

	pthread_mutex_lock(&queue_lock);
	ret = soft_capture_refuse(stream);
	pthread_mutex_unlock(&queue_lock);
	return ret;
}

static CUresult allocate(CUdeviceptr *dptr, size_t size, struct CUmemPoolHandle_st *pool,
	struct CUstream_st *stream)
{
	bool full = false;
	uint64_t address;
	CUresult ret;

	if (!dptr)
		return CUDA_ERROR_INVALID_VALUE;
	if (size == 0) {
		*dptr = 0;
		return CUDA_SUCCESS;
	}
	ret = pool_uncaptured(stream);
	if (ret)
		return ret;
	if (pool->max_size) {
		pthread_rwlock_rdlock(&memory_lock);
		full = size > pool->max_size || pool->used > pool->max_size - size;
		pthread_rwlock_unlock(&memory_lock);
	}
	ret = full ? CUDA_ERROR_OUT_OF_MEMORY
		   : memory_allocate(stream->context, pool->device, size, PAGE, BLOCK_DEVICE,
			     pool, &address);
	if (ret == CUDA_ERROR_OUT_OF_MEMORY && !full) {
		/* Frees that are queued may make room. */
		queue_drain(stream->context, 0);
		ret = context_fault_of(stream->context);
		if (!ret)
			ret = memory_allocate(stream->context, pool->device, size, PAGE,
				BLOCK_DEVICE, pool, &address);
	}
	if (!ret)
		*dptr = address;
	return ret;
}

CUresult cuMemAllocFromPoolAsync(
	CUdeviceptr *dptr, size_t bytesize, CUmemoryPool pool, CUstream hStream)
{
	struct CUstream_st *stream;
	CUresult ret = stream_use(hStream, &stream);

	if (ret)
		return ret;
	ret = pool_check(pool);
	if (!ret)
		ret = allocate(dptr, bytesize, pool, stream);
	stream_done(stream);
	return ret;
}

CUresult cuMemAllocAsync(CUdeviceptr *dptr, size_t bytesize, CUstream hStream)
{
	struct CUmemPoolHandle_st *pool;
	struct CUstream_st *stream;
	CUresult ret = stream_use(hStream, &stream);

	if (ret)
		return ret;
	pthread_rwlock_rdlock(&memory_lock);
	pool = stream->context->device->current_pool;
	pthread_rwlock_unlock(&memory_lock);
	ret = allocate(dptr, bytesize, pool, stream);
	stream_done(stream);
	return ret;
}

struct free_op {
	struct op op;
	uint64_t address;
};

static void free_run(struct op *base)
{
	memory_release(((struct free_op *)base)->address, BLOCK_DEVICE);
}

static void free_drop(struct op *op)
{
	free(op);
}

/* From the call on the address is not valid for anything new. */
static bool mark_freeing(uint64_t address, bool freeing)
{
	struct range *range;
	struct block *block;
	bool marked;

	pthread_rwlock_wrlock(&memory_lock);
	range = ranges_find(&memory_blocks, address);
	block = range ? range->owner : NULL;
	marked = block && block->kind == BLOCK_DEVICE && block->start == address &&
		 block->freeing != freeing;
	if (marked)
		block->freeing = freeing;
	pthread_rwlock_unlock(&memory_lock);
	return marked;
}

CUresult cuMemFreeAsync(CUdeviceptr dptr, CUstream hStream)
{
	struct CUstream_st *stream;
	struct free_op *op;
	CUresult ret = stream_use(hStream, &stream);

	if (ret)
		return ret;
	if (dptr)
		ret = pool_uncaptured(stream);
	if (!dptr || ret) {
		stream_done(stream);
		return ret;
	}
	op = calloc(1, sizeof(*op));
	if (op && !mark_freeing(dptr, true)) {
		ret = CUDA_ERROR_INVALID_VALUE;
		free(op);
	} else if (op) {
		op->op.kind = OP_WORK;
		op->op.run = free_run;
		op->op.drop = free_drop;
		op->address = dptr;
		if (!queue_submit(stream, &op->op, false)) {
			mark_freeing(dptr, false);
			ret = CUDA_ERROR_OUT_OF_MEMORY;
		}
	} else {
		ret = CUDA_ERROR_OUT_OF_MEMORY;
	}
	stream_done(stream);
	return ret;
}
