/* SPDX-License-Identifier: Apache-2.0
 *
 * What pools give out, and get back in the order of a stream.
 */
#include <pthread.h>
#include <stdlib.h>

#include "shim/generated/cuda_calls.h"
#include "shim/generated/cuda_hand.h"
#include "shim/driver/context/context.h"
#include "shim/driver/graph/capture.h"
#include "shim/driver/graph/memory_node.h"
#include "shim/driver/memory/later.h"
#include "shim/driver/memory/managed/managed.h"
#include "shim/driver/memory/memory.h"
#include "shim/driver/memory/pools/pool.h"
#include "shim/driver/memory/pools/pool_memory.h"
#include "shim/driver/memory/pools/pool_state.h"
#include "shim/driver/memory/sharing/share.h"
#include "shim/driver/stream/stream.h"
#include "shim/engine/engine.h"
#include "shim/engine/thread.h"

/* A kept block may serve a request of half its size or more. */
#define POOL_WASTE 2

/* May it be given out on that stream?  What comes after it was freed there may use it. */
static bool kept_serves(const struct pool_piece *piece, uint64_t stream)
{
	if (piece->pool->place.kind == POOL_MANAGED && piece->home != context_current()->home)
		return false;
	return (piece->stream == stream && (stream || piece->context == thread_self.number)) ||
	       (piece->pool->place.kind != POOL_DEVICE && pool_memory_idle(piece));
}

/* With the lock held: the best kept piece for the request, taken off the list; NULL: none. */
static struct pool_piece *kept_get(const struct pool *pool, size_t bytes, uint64_t stream)
{
	struct pool_piece **best = NULL, *piece;

	for (struct pool_piece **at = &pools.kept; *at; at = &(*at)->next)
		if ((*at)->pool == pool && (*at)->bytes >= bytes &&
			(*at)->bytes / POOL_WASTE <= bytes &&
			(!best || (*at)->bytes < (*best)->bytes) && kept_serves(*at, stream))
			best = at;
	if (!best)
		return NULL;
	piece = *best;
	*best = piece->next;
	return piece;
}

/* With the lock held. */
static bool pool_full(const struct pool *pool, size_t bytes)
{
	return pool->most && (bytes > pool->most || pool->used > pool->most - bytes);
}

/* Without the lock: memory may have to be waited for. */
static struct pool_piece *piece_new(struct pool *pool, size_t bytes, CUresult *status)
{
	struct pool_piece *piece = calloc(1, sizeof(*piece)), *gone;

	*status = CUDA_ERROR_OUT_OF_MEMORY;
	if (!piece)
		return NULL;
	piece->bytes = bytes;
	piece->pool = pool;
	*status = pool_memory_get(piece);
	if (*status == CUDA_ERROR_OUT_OF_MEMORY) {
		pthread_mutex_lock(&pools.lock);
		gone = pool_trim(pool, 0);
		pthread_mutex_unlock(&pools.lock);
		if (gone) {
			pool_pieces_free(gone);
			*status = pool_memory_get(piece);
		}
	}
	if (*status) {
		free(piece);
		return NULL;
	}
	return piece;
}

/* Without the lock: a piece of its own. */
static CUresult piece_fresh(struct pool *pool, size_t bytes, CUdeviceptr *address)
{
	CUresult status;
	struct pool_piece *piece = piece_new(pool, bytes, &status);

	if (!piece)
		return status;
	pthread_mutex_lock(&pools.lock);
	if (pool_full(pool, bytes)) { /* by now */
		status = CUDA_ERROR_OUT_OF_MEMORY;
	} else {
		pool->taken += bytes;
		if (pools.kept) /* what is kept may be above the threshold now */
			pools.idle = true;
		pool_piece_add(piece, bytes);
		*address = piece->address;
	}
	pthread_mutex_unlock(&pools.lock);
	if (status) {
		piece->next = NULL;
		pool_pieces_free(piece);
	}
	return status;
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

/* A node, whose memory is the graph's, of the pool's kind. */
static CUresult pool_captured(struct pool *pool, struct graph *graph, uint64_t stream,
	size_t bytes, CUdeviceptr *dptr)
{
	const bool managed = pool->place.kind == POOL_MANAGED;

	/* As an H200's driver answers. */
	if (managed && pool->place.location.type == CU_MEM_LOCATION_TYPE_NONE)
		return CUDA_ERROR_INVALID_VALUE;
	if (pool->place.kind == POOL_HOST ||
		(managed && pool->place.location.type != CU_MEM_LOCATION_TYPE_DEVICE))
		return shim_refused(CALL_cuMemAllocFromPoolAsync, "cuMemAllocFromPoolAsync",
			"nodes of graphs allocate no memory that is the host's: allocate it "
			"before the capture");
	return memory_node_capture_alloc(graph, stream,
		managed ? context_current()->device : pool->device, managed, bytes, dptr);
}

static CUresult pool_alloc(struct pool *pool, CUdeviceptr *dptr, size_t bytes, CUstream hStream)
{
	struct graph *graph;
	struct pool_piece *piece;
	uint64_t stream;
	CUresult status = stream_number(hStream, &stream);
	bool full;

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
		return pool_captured(pool, graph, stream, bytes, dptr);
	pthread_mutex_lock(&pools.lock);
	piece = kept_get(pool, bytes, stream);
	if (piece) {
		pool_piece_add(piece, bytes);
		*dptr = piece->address;
	}
	full = pool_full(pool, bytes);
	pthread_mutex_unlock(&pools.lock);
	if (piece)
		return CUDA_SUCCESS;
	return full ? CUDA_ERROR_OUT_OF_MEMORY : piece_fresh(pool, bytes, dptr);
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
	if (managed_find(dptr, &managed) && managed.base == dptr && !managed.pooled)
		return CUDA_ERROR_NOT_SUPPORTED;
	if (graph_memory_free(dptr, stream, &status))
		return status;
	pthread_mutex_lock(&pools.lock);
	at = pool_piece_find(dptr);
	piece = at ? *at : NULL;
	if (!piece && pool_kept_at(dptr))
		status = CUDA_ERROR_INVALID_VALUE;
	if (piece && piece->opens) {
		piece->opens--;
	} else if (piece) {
		*at = piece->next;
		pool_piece_gone(piece);
		piece->stream = stream;
		piece->context = thread_self.number;
		piece->seq = shim_sequence();
		piece->idle = false;
		piece->next = pools.kept;
		pools.kept = piece;
	}
	pthread_mutex_unlock(&pools.lock);
	/* Memory of cuMemAlloc, and of another process's pool, may be freed on a stream too. */
	if (piece || status || share_close_pointer(dptr, &status))
		return status;
	return later_free(dptr, stream, thread_self.number);
}
