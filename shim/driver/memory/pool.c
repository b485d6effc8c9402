/* SPDX-License-Identifier: Apache-2.0
 *
 * Pools: see pool.h.
 */
#include "shim/driver/forms.h"
#include "shim/driver/memory/pool.h"
#include "shim/driver/memory/pool_state.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "shim/generated/cuda_hand.h"
#include "shim/driver/graph/capture.h"
#include "shim/driver/memory/managed.h"
#include "shim/driver/graph/memory_node.h"
#include "shim/driver/context/context.h"
#include "shim/engine/engine.h"
#include "shim/engine/handle.h"
#include "shim/driver/memory/later.h"
#include "shim/driver/memory/memory.h"
#include "shim/driver/memory/share.h"
#include "shim/driver/stream/stream.h"
#include "shim/engine/lock.h"
#include "shim/engine/thread.h"

/* A kept block may serve a request of half its size or more. */
#define POOL_WASTE 2

struct pools pools = {.lock = PTHREAD_MUTEX_INITIALIZER};
LOCK_RANK(pool, pools.lock, LOCK_POOL);

struct pool *pool_of(CUmemoryPool pool)
{
	return shim_object_of((uint64_t)(uintptr_t)pool, KIND_CUmemoryPool);
}

struct pool *pool_new(int device)
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
	pool->next = pools.all;
	pools.all = pool;
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

static struct pool_piece **bucket_of(CUdeviceptr address)
{
	return &pools.live[((address >> 9) * 0x9E3779B97F4A7C15u >> 54) % POOL_BUCKETS];
}

struct pool_piece **pool_piece_find(CUdeviceptr address)
{
	struct pool_piece **at = bucket_of(address);

	while (*at && (*at)->address != address)
		at = &(*at)->next;
	return *at ? at : NULL;
}

uint64_t pool_reserved(const struct pool *pool)
{
	return pool->units.holds * POOL_UNIT;
}

static void piece_add(struct pool_piece *piece, size_t asked)
{
	struct pool_piece **at = bucket_of(piece->address);
	struct pool *pool = piece->pool;

	piece->next = *at;
	*at = piece;
	piece->asked = asked;
	piece->place = pool_units_take(&pool->units, asked);
	if (pool_reserved(pool) > pool->reserved_high)
		pool->reserved_high = pool_reserved(pool);
	pool->used += asked;
	if (pool->used > pool->used_high)
		pool->used_high = pool->used;
}

/* It is no longer the app's. */
static void piece_gone(struct pool_piece *piece)
{
	piece->pool->used -= piece->asked;
	pool_units_give(&piece->pool->units, piece->place, piece->asked);
	pools.idle = true;
}

/* Takes a kept piece off the list and gives its memory back. */
static void kept_drop(struct pool_piece **at)
{
	struct pool_piece *piece = *at;

	*at = piece->next;
	piece->pool->taken -= piece->bytes;
	memory_free(piece->address);
	free(piece);
}

void pool_trim(struct pool *pool, uint64_t keep)
{
	struct pool_piece **at = &pools.kept;

	while (*at && pool->taken > keep) {
		if ((*at)->pool == pool)
			kept_drop(at);
		else
			at = &(*at)->next;
	}
	pool_units_trim(&pool->units, keep);
}

static void units_trim(void)
{
	for (struct pool *pool = pools.all; pool; pool = pool->next)
		pool_units_trim(&pool->units, pool->threshold);
}

void pool_synced(void)
{
	if (!atomic_load_explicit(&pools.idle, memory_order_relaxed))
		return;
	pthread_mutex_lock(&pools.lock);
	for (struct pool_piece **at = &pools.kept; *at;) {
		struct pool *pool = (*at)->pool;

		if (pool->taken > pool->threshold)
			kept_drop(at);
		else
			at = &(*at)->next;
	}
	units_trim();
	pools.idle = false;
	pthread_mutex_unlock(&pools.lock);
}

void pool_stream_gone(uint64_t stream)
{
	later_synced(stream, 0);
	pthread_mutex_lock(&pools.lock);
	for (struct pool_piece **at = &pools.kept; *at;) {
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
	for (struct pool_piece **at = &pools.kept; *at;) {
		if (!(*at)->stream && (*at)->context == context)
			kept_drop(at);
		else
			at = &(*at)->next;
	}
	units_trim(); /* nothing of it runs any more */
	pthread_mutex_unlock(&pools.lock);
}

bool pool_forget(CUdeviceptr address)
{
	struct pool_piece **at, *piece;

	pthread_mutex_lock(&pools.lock);
	at = pool_piece_find(address);
	piece = at ? *at : NULL;
	if (piece) {
		*at = piece->next;
		piece_gone(piece);
		piece->pool->taken -= piece->bytes;
	}
	pthread_mutex_unlock(&pools.lock);
	free(piece);
	return piece != NULL;
}

CUmemoryPool pool_holding(CUdeviceptr base)
{
	struct pool_piece *piece;
	uint64_t handle;

	pthread_mutex_lock(&pools.lock);
	piece = *pool_piece_find(base);
	handle = piece ? piece->pool->handle : 0;
	pthread_mutex_unlock(&pools.lock);
	return (CUmemoryPool)(uintptr_t)handle;
}

void pool_reset(int device)
{
	struct memory_range range;

	pthread_mutex_lock(&pools.lock);
	for (unsigned i = 0; i <= POOL_BUCKETS; i++) {
		struct pool_piece **at = i < POOL_BUCKETS ? &pools.live[i] : &pools.kept;

		while (*at) {
			struct pool_piece *piece = *at;

			if (piece->pool->device != device ||
				memory_find(piece->address, &range)) {
				at = &piece->next;
				continue;
			}
			*at = piece->next;
			piece->pool->taken -= piece->bytes;
			if (i < POOL_BUCKETS)
				piece_gone(piece);
			free(piece);
		}
	}
	for (struct pool *pool = pools.all; pool; pool = pool->next)
		if (pool->device == device)
			pool_units_trim(&pool->units, 0);
	pthread_mutex_unlock(&pools.lock);
}

/* With the lock held: the best kept piece for the request, taken off the list; NULL: none. */
static struct pool_piece *kept_get(const struct pool *pool, size_t bytes, uint64_t stream)
{
	struct pool_piece **best = NULL, *piece;

	for (struct pool_piece **at = &pools.kept; *at; at = &(*at)->next)
		if ((*at)->pool == pool && (*at)->stream == stream &&
			(stream || (*at)->context == thread_self.number) &&
			(*at)->bytes >= bytes && (*at)->bytes / POOL_WASTE <= bytes &&
			(!best || (*at)->bytes < (*best)->bytes))
			best = at;
	if (!best)
		return NULL;
	piece = *best;
	*best = piece->next;
	return piece;
}

static struct pool_piece *piece_new(struct pool *pool, size_t bytes, CUresult *status)
{
	struct pool_piece *piece = calloc(1, sizeof(*piece));

	*status = CUDA_ERROR_OUT_OF_MEMORY;
	if (!piece)
		return NULL;
	if (pool->most && (bytes > pool->most || pool->used > pool->most - bytes)) {
		free(piece);
		return NULL;
	}
	*status = memory_alloc(pool->device, bytes, true, &piece->address);
	if (*status == CUDA_ERROR_OUT_OF_MEMORY && pool->taken > pool->used) {
		pool_trim(pool, 0);
		*status = memory_alloc(pool->device, bytes, true, &piece->address);
	}
	if (*status) {
		free(piece);
		return NULL;
	}
	piece->bytes = bytes;
	piece->pool = pool;
	pool->taken += bytes;
	if (pools.kept) /* what is kept may be above the threshold now */
		pools.idle = true;
	return piece;
}

/* What a capture says to an allocation; it tells no address then, as natively. */
static CUresult alloc_captured(CUdeviceptr *dptr, CUstream stream)
{
	CUresult status;

	if (dptr)
		*dptr = 0;
	if (!context_current())
		return context_missing();
	if (!capture_any())
		return CUDA_SUCCESS;
	status = capture_node(stream);
	return status ? status : capture_elsewhere(stream);
}

static CUresult pool_alloc(struct pool *pool, CUdeviceptr *dptr, size_t bytes, CUstream hStream)
{
	struct graph *graph;
	struct pool_piece *piece;
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
		piece_add(piece, bytes);
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
	struct managed_range managed;
	struct pool_piece **at, *piece;
	struct graph *graph;
	uint64_t stream;
	CUresult status = stream_number(hStream, &stream);

	if (status || !dptr)
		return status;
	graph = capture_graph(stream);
	if (graph)
		return memory_node_capture_free(graph, stream, dptr);
	if (managed_find(dptr, &managed) && managed.base == dptr)
		return CUDA_ERROR_NOT_SUPPORTED;
	if (graph_memory_free(dptr, stream, &status))
		return status;
	pthread_mutex_lock(&pools.lock);
	at = pool_piece_find(dptr);
	piece = at ? *at : NULL;
	for (const struct pool_piece *kept = pools.kept; !piece && !status && kept;
		kept = kept->next)
		if (kept->address == dptr)
			status = CUDA_ERROR_INVALID_VALUE; /* freed before */
	if (piece) {
		*at = piece->next;
		piece_gone(piece);
		piece->stream = stream;
		piece->context = thread_self.number;
		piece->next = pools.kept;
		pools.kept = piece;
	}
	pthread_mutex_unlock(&pools.lock);
	/* Memory of cuMemAlloc, and of another process's pool, may be freed on a stream too. */
	if (piece || status || share_close_pointer(dptr, &status))
		return status;
	return later_free(dptr, stream, thread_self.number);
}
