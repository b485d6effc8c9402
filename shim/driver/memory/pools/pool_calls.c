/* SPDX-License-Identifier: Apache-2.0
 *
 * Pools themselves: made, destroyed, asked and shared.  What they give out: pool.c.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "shim/driver/forms.h"
#include "shim/driver/memory/pools/pool.h"
#include "shim/driver/memory/pools/pool_file.h"
#include "shim/driver/memory/pools/pool_state.h"
#include "shim/generated/cuda_hand.h"
#include "shim/driver/graph/capture.h"
#include "shim/driver/context/context.h"
#include "shim/engine/engine.h"
#include "shim/engine/handle.h"
#include "shim/driver/memory/pinned/host.h"
#include "shim/driver/memory/managed/managed.h"
#include "shim/driver/memory/memory.h"
#include "shim/driver/memory/sharing/share.h"
#include "shim/driver/stream/stream.h"

/* What NVIDIA's driver lets a pool grow to at most is not asked for; beyond this no address is.
 */
#define POOL_LARGEST (1ull << 47)

/* A location of no type is where managed memory has no preference. */
static bool location_is(const CUmemLocation *location, bool managed)
{
	switch ((int)location->type) {
	case CU_MEM_LOCATION_TYPE_INVALID: return managed;
	case CU_MEM_LOCATION_TYPE_DEVICE: return device_of(location->id);
	case CU_MEM_LOCATION_TYPE_HOST: return true;
	case CU_MEM_LOCATION_TYPE_HOST_NUMA: return host_numa(location->id);
	default: return false;
	}
}

/* INVALID_VALUE: there can be no such pool; NOT_SUPPORTED: not served. */
static CUresult place_of(
	const CUmemLocation *location, CUmemAllocationType type, struct pool_place *place)
{
	const bool managed = type == CU_MEM_ALLOCATION_TYPE_MANAGED;

	if (location && (int)location->type > CU_MEM_LOCATION_TYPE_HOST_NUMA)
		return CUDA_ERROR_NOT_SUPPORTED;
	if (!location || (!managed && type != CU_MEM_ALLOCATION_TYPE_PINNED) ||
		!location_is(location, managed))
		return CUDA_ERROR_INVALID_VALUE;
	if (managed && !managed_way_known())
		return CUDA_ERROR_NOT_SUPPORTED;
	*place = (struct pool_place){.kind = managed ? POOL_MANAGED
					     : location->type == CU_MEM_LOCATION_TYPE_DEVICE
						     ? POOL_DEVICE
						     : POOL_HOST,
		.location = *location};
	if (location->type == CU_MEM_LOCATION_TYPE_INVALID ||
		location->type == CU_MEM_LOCATION_TYPE_HOST)
		place->location.id = 0;
	return CUDA_SUCCESS;
}

/* Managed memory is shared with no other process and has no most, and what is anywhere on the
 * host has no handle. */
static bool props_contradict(const CUmemPoolProps *props)
{
	if (props->allocType == CU_MEM_ALLOCATION_TYPE_MANAGED)
		return props->handleTypes || props->maxSize;
	return props->location.type == CU_MEM_LOCATION_TYPE_HOST && props->handleTypes;
}

/* Whether it may grow to so much. */
static bool most_allowed(uint64_t most, const struct pool_place *place)
{
	return most <= POOL_LARGEST ||
	       (place->kind == POOL_DEVICE &&
		       most <= devices.at[place->location.id].open.total_memory);
}

CUresult hand_cuMemPoolCreate(CUmemoryPool *pool, const CUmemPoolProps *poolProps)
{
	struct pool_place place;
	struct pool *made;
	CUresult status;

	if (!pool || !poolProps ||
		(int)poolProps->location.type > CU_MEM_LOCATION_TYPE_HOST_NUMA ||
		props_contradict(poolProps))
		return CUDA_ERROR_INVALID_VALUE;
	status = place_of(&poolProps->location, poolProps->allocType, &place);
	if (status)
		return status;
	if (poolProps->handleTypes & ~share_handles)
		return CUDA_ERROR_NOT_SUPPORTED;
	if (!most_allowed(poolProps->maxSize, &place))
		return CUDA_ERROR_OUT_OF_MEMORY;
	pthread_mutex_lock(&pools.lock);
	made = pool_new(&place);
	pthread_mutex_unlock(&pools.lock);
	if (!made)
		return CUDA_ERROR_OUT_OF_MEMORY;
	if (poolProps->handleTypes && place.kind == POOL_HOST && !pool_file_make(made)) {
		hand_cuMemPoolDestroy((CUmemoryPool)(uintptr_t)made->handle);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
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
CUresult pool_import(const struct pool_place *place, const uint8_t name[16], CUmemoryPool *pool)
{
	static const uint8_t none[16];
	struct imported wanted = {.name = name};

	pthread_mutex_lock(&pools.lock);
	if (memcmp(name, none, sizeof(none)) != 0)
		handle_each(KIND_CUmemoryPool, imported_matches, &wanted);
	if (!wanted.pool) {
		wanted.pool = pool_new(place);
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
	struct pool *gone = pool_of(pool), *of;
	struct pool_piece *kept;

	if (!gone || gone->is_default)
		return CUDA_ERROR_INVALID_VALUE;
	if (!import_ends(gone))
		return CUDA_SUCCESS;
	if (!handle_release(gone->handle))
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&pools.lock);
	kept = pool_trim(gone, 0);
	gone->threshold = 0;
	pools.idle = true;
	of = gone->imported ? NULL : pool_default_at(&gone->place);
	if (of && of->current == gone)
		of->current = NULL;
	pool_file_leave(gone);
	pthread_mutex_unlock(&pools.lock);
	pool_pieces_free(kept);
	return CUDA_SUCCESS;
}

CUresult hand_cuMemPoolTrimTo(CUmemoryPool pool, size_t minBytesToKeep)
{
	struct pool *trimmed = pool_of(pool);
	struct pool_piece *gone;

	if (!trimmed || trimmed->imported)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&pools.lock);
	gone = pool_trim(trimmed, minBytesToKeep);
	pthread_mutex_unlock(&pools.lock);
	pool_pieces_free(gone);
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

/* It is the one to be used where it lies from now on. */
static CUresult current_set(struct pool *set)
{
	struct pool *of;

	pthread_mutex_lock(&pools.lock);
	of = pool_default_at(&set->place);
	if (of)
		of->current = set;
	pthread_mutex_unlock(&pools.lock);
	return of ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

/* One of managed memory that prefers the device as well: it is the current one of that kind
 * then. */
CUresult hand_cuDeviceSetMemPool(CUdevice dev, CUmemoryPool pool)
{
	struct pool *set = pool_of(pool);

	if (!device_of(dev) || !set || set->device != dev || set->imported)
		return CUDA_ERROR_INVALID_VALUE;
	return current_set(set);
}

/* WHICH: pool_default_at or pool_current_at. */
static CUresult place_tell(CUmemoryPool *out, const CUmemLocation *location,
	CUmemAllocationType type, struct pool *(*which)(const struct pool_place *place))
{
	struct pool_place place;
	struct pool *pool;
	CUresult status = out ? place_of(location, type, &place) : CUDA_ERROR_INVALID_VALUE;

	if (status)
		return status;
	pthread_mutex_lock(&pools.lock);
	pool = which(&place);
	pthread_mutex_unlock(&pools.lock);
	if (!pool)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*out = (CUmemoryPool)(uintptr_t)pool->handle;
	return CUDA_SUCCESS;
}

CUresult hand_cuMemGetDefaultMemPool(
	CUmemoryPool *pool_out, CUmemLocation *location, CUmemAllocationType type)
{
	return place_tell(pool_out, location, type, pool_default_at);
}

CUresult hand_cuMemGetMemPool(
	CUmemoryPool *pool, CUmemLocation *location, CUmemAllocationType type)
{
	return place_tell(pool, location, type, pool_current_at);
}

CUresult hand_cuMemSetMemPool(
	CUmemLocation *location, CUmemAllocationType type, CUmemoryPool pool)
{
	struct pool *set = pool_of(pool);
	struct pool_place place;
	CUresult status = set ? place_of(location, type, &place) : CUDA_ERROR_INVALID_VALUE;

	if (status)
		return status;
	if (set->imported || !pool_place_is(&set->place, &place))
		return CUDA_ERROR_INVALID_VALUE;
	return current_set(set);
}
