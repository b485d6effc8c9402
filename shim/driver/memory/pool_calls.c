/* SPDX-License-Identifier: Apache-2.0
 *
 * Pools themselves: made, destroyed, asked and shared.  What they give out: pool.c.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "shim/driver/forms.h"
#include "shim/driver/memory/pool.h"
#include "shim/driver/memory/pool_state.h"
#include "shim/generated/cuda_hand.h"
#include "shim/driver/graph/capture.h"
#include "shim/driver/context/context.h"
#include "shim/engine/engine.h"
#include "shim/engine/handle.h"
#include "shim/driver/memory/host.h"
#include "shim/driver/memory/memory.h"
#include "shim/driver/memory/share.h"
#include "shim/driver/stream/stream.h"

/* What NVIDIA's driver lets a pool grow to at most is not asked for; beyond this no address is.
 */
#define POOL_LARGEST (1ull << 47)

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
		return host_numa(location->id) ? CUDA_ERROR_NOT_SUPPORTED
					       : CUDA_ERROR_INVALID_VALUE;
	default: return CUDA_ERROR_NOT_SUPPORTED;
	}
}

/* Managed memory is shared with no other process and has no most, and what is anywhere on the
 * host has no handle. */
static bool props_contradict(const CUmemPoolProps *props)
{
	if (props->allocType == CU_MEM_ALLOCATION_TYPE_MANAGED)
		return props->handleTypes || props->maxSize;
	return props->location.type == CU_MEM_LOCATION_TYPE_HOST && props->handleTypes;
}

CUresult hand_cuMemPoolCreate(CUmemoryPool *pool, const CUmemPoolProps *poolProps)
{
	struct pool *made;
	CUresult status;

	if (!pool || !poolProps ||
		(int)poolProps->location.type > CU_MEM_LOCATION_TYPE_HOST_NUMA ||
		props_contradict(poolProps))
		return CUDA_ERROR_INVALID_VALUE;
	status = location_check(&poolProps->location, poolProps->allocType);
	if (status)
		return status;
	if (poolProps->handleTypes & ~share_handles)
		return CUDA_ERROR_NOT_SUPPORTED;
	if (poolProps->maxSize > devices.at[poolProps->location.id].open.total_memory &&
		poolProps->maxSize > POOL_LARGEST)
		return CUDA_ERROR_OUT_OF_MEMORY;
	pthread_mutex_lock(&pools.lock);
	made = pool_new(poolProps->location.id);
	pthread_mutex_unlock(&pools.lock);
	if (!made)
		return CUDA_ERROR_OUT_OF_MEMORY;
	made->shareable = poolProps->handleTypes != 0;
	made->most = (poolProps->maxSize + POOL_UNIT - 1) / POOL_UNIT * POOL_UNIT;
	*pool = (CUmemoryPool)(uintptr_t)made->handle;
	return CUDA_SUCCESS;
}

/* ---- shared with other processes ---- */

struct imported {
	const uint8_t *name;
	struct pool *pool;
};

static void imported_matches(void *object, void *argument)
{
	struct imported *wanted = argument;
	struct pool *pool = object;

	if (pool && pool->imported && !memcmp(pool->name, wanted->name, sizeof(pool->name)))
		wanted->pool = pool;
}

/* An older vcuda gave its pools no name. */
CUresult pool_import(int device, const uint8_t name[16], CUmemoryPool *pool)
{
	static const uint8_t none[16];
	struct imported wanted = {.name = name};

	pthread_mutex_lock(&pools.lock);
	if (memcmp(name, none, sizeof(none)) != 0)
		handle_each(KIND_CUmemoryPool, imported_matches, &wanted);
	if (!wanted.pool) {
		wanted.pool = pool_new(device);
		if (wanted.pool) {
			wanted.pool->imported = true;
			memcpy(wanted.pool->name, name, sizeof(wanted.pool->name));
		}
	}
	if (wanted.pool) {
		wanted.pool->imports++;
		*pool = (CUmemoryPool)(uintptr_t)wanted.pool->handle;
	}
	pthread_mutex_unlock(&pools.lock);
	return wanted.pool ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

/* False: it is another import's still. */
static bool import_ends(struct pool *pool)
{
	bool last;

	pthread_mutex_lock(&pools.lock);
	last = !pool->imports || !--pool->imports;
	pthread_mutex_unlock(&pools.lock);
	return last;
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

void pool_imported_name(CUmemoryPool pool, uint8_t name[16])
{
	const struct pool *of = pool_of(pool);

	memset(name, 0, sizeof(of->name));
	if (of)
		memcpy(name, of->name, sizeof(of->name));
}

void pool_shared(CUmemoryPool pool)
{
	struct pool *of = pool_of(pool);

	pthread_mutex_lock(&pools.lock);
	if (of)
		of->shared = true;
	pthread_mutex_unlock(&pools.lock);
}

bool pool_shares(CUdeviceptr address, CUmemoryPool *pool)
{
	struct pool_piece **at;
	bool shares;

	pthread_mutex_lock(&pools.lock);
	at = pool_piece_find(address);
	shares = at && (*at)->pool->shared;
	if (shares)
		*pool = (CUmemoryPool)(uintptr_t)(*at)->pool->handle;
	pthread_mutex_unlock(&pools.lock);
	return shares;
}

/* Its live allocations stay until they are freed, so the object stays too; the name goes. */
CUresult hand_cuMemPoolDestroy(CUmemoryPool pool)
{
	struct pool *gone = pool_of(pool);

	if (!gone || gone->is_default)
		return CUDA_ERROR_INVALID_VALUE;
	if (!import_ends(gone))
		return CUDA_SUCCESS;
	if (!handle_release(gone->handle))
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&pools.lock);
	pool_trim(gone, 0);
	gone->threshold = 0;
	if (pools.current[gone->device] == gone)
		pools.current[gone->device] = NULL;
	pthread_mutex_unlock(&pools.lock);
	return CUDA_SUCCESS;
}

CUresult hand_cuMemPoolTrimTo(CUmemoryPool pool, size_t minBytesToKeep)
{
	struct pool *trimmed = pool_of(pool);

	if (!trimmed || trimmed->imported)
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

	if (!p || !value || p->imported)
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
		pools.idle = true;
		break;
	case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
		if (*(const cuuint64_t *)value)
			status = CUDA_ERROR_INVALID_VALUE;
		else
			p->reserved_high = pool_reserved(p);
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

	if (!p || !value || p->imported)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&pools.lock);
	switch (attr) {
	case CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES:
	case CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC:
	case CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES:
		*(int *)value = (int)p->policies[attr - 1];
		break;
	case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD: *(cuuint64_t *)value = p->threshold; break;
	case CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT:
		*(cuuint64_t *)value = pool_reserved(p);
		break;
	case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH: *(cuuint64_t *)value = p->reserved_high; break;
	case CU_MEMPOOL_ATTR_USED_MEM_CURRENT: *(cuuint64_t *)value = p->used; break;
	case CU_MEMPOOL_ATTR_USED_MEM_HIGH: *(cuuint64_t *)value = p->used_high; break;
	default: status = CUDA_ERROR_INVALID_VALUE;
	}
	pthread_mutex_unlock(&pools.lock);
	return status;
}

CUresult pool_tell(CUmemoryPool *out, CUdevice dev, struct pool *(*which)(int device))
{
	struct pool *pool;

	/* NVIDIA's driver has two numbers for one mistake. */
	if (!device_of(dev))
		return which == pool_default ? CUDA_ERROR_INVALID_DEVICE
					     : CUDA_ERROR_INVALID_VALUE;
	if (!out)
		return CUDA_ERROR_INVALID_VALUE;
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
