/* SPDX-License-Identifier: Apache-2.0
 *
 * The memory of pools: see pool_memory.h.
 */
#include "shim/driver/memory/pools/pool_memory.h"

#include <pthread.h>

#include "shim/driver/context/context.h"
#include "shim/driver/memory/pinned/host.h"
#include "shim/driver/memory/managed/managed.h"
#include "shim/driver/memory/memory.h"
#include "shim/driver/memory/pools/pool_file.h"
#include "shim/driver/memory/pools/pool_state.h"
#include "shim/driver/stream/stream.h"

CUresult pool_memory_get(struct pool_piece *piece)
{
	const struct pool *pool = piece->pool;

	switch (pool->place.kind) {
	case POOL_HOST:
		return pool->file ? pool_file_get(piece)
				  : host_pool_alloc(piece->bytes, &piece->address, &piece->id);
	case POOL_MANAGED:
		piece->home = context_current()->home;
		return managed_pool_alloc(
			piece->home, piece->bytes, &piece->address, &piece->id);
	default: return memory_alloc(pool->device, piece->bytes, true, &piece->address);
	}
}

CUresult pool_memory_put(const struct pool_piece *piece, bool wait)
{
	switch (piece->pool->place.kind) {
	case POOL_HOST:
		host_pool_free(piece->address, piece->id, wait);
		if (piece->pool->file) {
			pthread_mutex_lock(&pools.lock);
			pool_file_put(piece);
			pthread_mutex_unlock(&pools.lock);
		}
		return CUDA_SUCCESS;
	case POOL_MANAGED: return managed_pool_free(piece->address, piece->id, wait);
	default: return memory_free(piece->address);
	}
}

void pool_memory_gone(const struct pool_piece *piece)
{
	if (piece->pool->file)
		pool_file_put(piece);
}

bool pool_memory_lives(const struct pool_piece *piece)
{
	struct managed_range managed;
	struct memory_range range;
	struct host_range host;

	switch (piece->pool->place.kind) {
	case POOL_HOST:
		return host_find((void *)(uintptr_t)piece->address, &host) &&
		       host.id == piece->id;
	case POOL_MANAGED:
		return managed_find(piece->address, &managed) && managed.id == piece->id;
	default: return memory_find(piece->address, &range);
	}
}

bool pool_memory_idle(const struct pool_piece *piece)
{
	return piece->pool->place.kind == POOL_DEVICE || piece->idle ||
	       stream_reached(piece->stream, piece->context, piece->seq);
}
