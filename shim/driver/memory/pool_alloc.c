/* SPDX-License-Identifier: Apache-2.0
 *
 * What pools give out, and get back in the order of a stream.
 */
#include <pthread.h>
#include <stdlib.h>

#include "shim/generated/cuda_hand.h"
#include "shim/driver/context/context.h"
#include "shim/driver/graph/capture.h"
#include "shim/driver/graph/memory_node.h"
#include "shim/driver/memory/later.h"
#include "shim/driver/memory/managed.h"
#include "shim/driver/memory/memory.h"
#include "shim/driver/memory/pool.h"
#include "shim/driver/memory/pool_state.h"
#include "shim/driver/memory/share.h"
#include "shim/driver/stream/stream.h"
#include "shim/engine/engine.h"
#include "shim/engine/thread.h"

/* A kept block may serve a request of half its size or more. */
#define POOL_WASTE 2

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
		pool_piece_add(piece, bytes);
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
		pool_piece_gone(piece);
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
