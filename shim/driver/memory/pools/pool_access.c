/* SPDX-License-Identifier: Apache-2.0
 *
 * Who has access to the memory of pools.
 */
#include <pthread.h>

#include "shim/driver/memory/pools/pool.h"
#include "shim/driver/memory/pools/pool_state.h"
#include "shim/generated/cuda_hand.h"
#include "shim/driver/context/context.h"
#include "shim/driver/device/peer.h"

static CUresult access_check(int device, const CUmemLocation *location, int flags)
{
	bool own = location->id == device;

	if (!device_of(location->id))
		return CUDA_ERROR_INVALID_DEVICE;
	/* Its own device always has it. */
	if (flags == CU_MEM_ACCESS_FLAGS_PROT_NONE)
		return own ? CUDA_ERROR_INVALID_DEVICE : CUDA_SUCCESS;
	if (own)
		return flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE ? CUDA_SUCCESS
								   : CUDA_ERROR_INVALID_VALUE;
	return flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE && peer_can(location->id, device)
		       ? CUDA_SUCCESS
		       : CUDA_ERROR_NOT_SUPPORTED;
}

/* Of pinned memory: kernels reach it whatever is said here, so that it is only remembered. */
static CUresult host_access_check(int flags)
{
	return flags == CU_MEM_ACCESS_FLAGS_PROT_NONE ||
			       flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE
		       ? CUDA_SUCCESS
		       : CUDA_ERROR_NOT_SUPPORTED;
}

/* With the lock held.  The worker opens all that the device's pools and graphs hold to a device
 * that has access to one of them: pieces of several lie in one granule. */
static CUresult reach(int device, int by, bool in)
{
	unsigned *count = &pools.reached[device][by];
	CUresult status = CUDA_SUCCESS;

	if (*count == (in ? 0 : 1))
		status = peer_pool(device, by, in);
	if (!status)
		*count += in ? 1 : -1u;
	return status;
}

static CUresult access_set(struct pool *p, int by, bool in)
{
	uint64_t bit = 1ull << by;
	CUresult status;

	if (by == p->device || !!(p->peers & bit) == in)
		return CUDA_SUCCESS;
	status = p->place.kind == POOL_DEVICE ? reach(p->device, by, in) : CUDA_SUCCESS;
	if (!status)
		p->peers ^= bit;
	return status;
}

CUresult pool_access_check(int device, const CUmemAccessDesc *access)
{
	if (access->location.type != CU_MEM_LOCATION_TYPE_DEVICE)
		return CUDA_ERROR_NOT_SUPPORTED;
	return access_check(device, &access->location, (int)access->flags);
}

CUresult pool_reach(int device, int by, bool in)
{
	CUresult status;

	pthread_mutex_lock(&pools.lock);
	status = reach(device, by, in);
	pthread_mutex_unlock(&pools.lock);
	return status;
}

bool pool_lets(CUdeviceptr base, int device)
{
	struct pool_piece **at;
	bool lets;

	pthread_mutex_lock(&pools.lock);
	at = pool_piece_find(base);
	lets = !at || (*at)->pool->peers >> device & 1;
	pthread_mutex_unlock(&pools.lock);
	return lets;
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
		/* Host and devices share managed memory anyway. */
		if (p->place.kind == POOL_MANAGED)
			return CUDA_ERROR_INVALID_VALUE;
	}
	for (size_t i = 0; !status && i < count; i++)
		status = p->place.kind == POOL_HOST
				 ? host_access_check((int)map[i].flags)
				 : access_check(p->device, &map[i].location, (int)map[i].flags);
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
	if (location->type == CU_MEM_LOCATION_TYPE_HOST ||
		location->type == CU_MEM_LOCATION_TYPE_HOST_NUMA) {
		*flags = p->place.kind == POOL_HOST ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE
						    : CU_MEM_ACCESS_FLAGS_PROT_NONE;
		return CUDA_SUCCESS;
	}
	if (location->type != CU_MEM_LOCATION_TYPE_DEVICE || !device_of(location->id))
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&pools.lock);
	*flags = (p->place.kind == POOL_DEVICE && location->id == p->device) ||
				 p->peers >> location->id & 1
			 ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE
			 : CU_MEM_ACCESS_FLAGS_PROT_NONE;
	pthread_mutex_unlock(&pools.lock);
	return CUDA_SUCCESS;
}
