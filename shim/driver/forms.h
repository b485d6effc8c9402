/* SPDX-License-Identifier: Apache-2.0
 *
 * What the stubs of shim/generated/ may name: functions that many of the driver's functions are
 * a form of, as their as() in cuda.api says.
 */
#ifndef VCUDA_SHIM_FORMS_H
#define VCUDA_SHIM_FORMS_H

#include <cuda.h>
#include <stdbool.h>

#include "protocol/generated/cuda_ops.h"
#include "shim/driver/array/array.h"
#include "shim/driver/copy/copy.h"
#include "shim/driver/memory/pools/pool.h"
#include "shim/generated/cuda_hand.h"

struct graph;

CUresult context_create(CUcontext *pctx, unsigned flags, CUdevice dev);
/* As before CUDA 3.2 and 4.0: a context of 32-bit addresses, which nobody gets beside another
 * one, and contexts that only one thread may have. */
CUresult context_create_first(CUcontext *pctx, unsigned flags, CUdevice dev);
CUresult context_destroy_first(CUcontext ctx);
CUresult context_push_first(CUcontext ctx);
CUresult context_pop_first(CUcontext *pctx);
CUresult primary_flags_first(CUdevice dev, unsigned flags);
CUresult primary_reset_first(CUdevice dev);
CUresult proc_first(const char *symbol, void **pfn, int cudaVersion, cuuint64_t flags);

/* N bytes; `async`: the app does not wait for memory that is not pinned. */
CUresult copy_flat(enum side dst_side, uint64_t dst, enum side src_side, uint64_t src, size_t n,
	CUstream stream, bool async);
CUresult copy_2d(const CUDA_MEMCPY2D *p, CUstream stream, bool async);
CUresult copy_3d(const CUDA_MEMCPY3D *p, CUstream stream, bool async);
CUresult copy_3d_peer(const CUDA_MEMCPY3D_PEER *p, CUstream stream, bool async);

/* Of core dumps; a handle is stale once it was unregistered. */
CUresult coredump_register(CUcoredumpStatusCallback callback, void *userData,
	CUcoredumpCallbackHandle *callbackOut);
CUresult coredump_unregister(CUcoredumpCallbackHandle callback);

/* COUNT copies; attributes k (of N) are those of the copies from indices[k] on. FAILED, which
 * may be NULL: which copy was refused, SIZE_MAX: none, or all of them. */
CUresult copy_batch(const CUdeviceptr *dsts, const CUdeviceptr *srcs, const size_t *sizes,
	size_t count, const CUmemcpyAttributes *attrs, const size_t *indices, size_t n,
	size_t *failed, CUstream stream);
CUresult copy_batch_3d(size_t count, const CUDA_MEMCPY3D_BATCH_OP *ops, size_t *failed,
	unsigned long long flags, CUstream stream);
CUresult copy_with_attributes(CUdeviceptr dst, CUdeviceptr src, size_t n,
	const CUmemcpyAttributes *attr, CUstream stream);
/* One end of a copy of bytes in a row: an address, or an offset in an array's first row. */
struct copy_end {
	enum side side;
	uint64_t at;
	const struct array *array;
};
static inline struct copy_end array_end(CUarray array, size_t offset)
{
	return (struct copy_end){
		SIDE_ARRAY, offset, array_find((uint64_t)(uintptr_t)array, false)};
}
static inline struct copy_end device_end(CUdeviceptr at)
{
	return (struct copy_end){SIDE_DEVICE, at, NULL};
}
static inline struct copy_end host_end(const void *at)
{
	return (struct copy_end){SIDE_HOST, copy_address(at), NULL};
}
/* N bytes between two ends, one of them in an array. */
CUresult copy_array_flat(
	struct copy_end dst, struct copy_end src, size_t n, CUstream stream, bool async);

/* HEIGHT rows of WIDTH elements, PITCH bytes apart. */
CUresult fill_memory(CUdeviceptr dst, size_t pitch, unsigned value, unsigned element,
	size_t width, size_t height, CUstream stream);
/* The forms that CUDA calls synchronous: they are where it is the program's own memory. */
CUresult fill_memory_awaited(CUdeviceptr dst, size_t pitch, unsigned value, unsigned element,
	size_t width, size_t height, CUstream stream);

/* WHICH: pool_default or pool_current. */
CUresult pool_tell(CUmemoryPool *out, CUdevice dev, struct pool *(*which)(int device));

/* The first versions of the stream memory operations: NVIDIA's driver serves none any more. */
CUresult memop_old(CUstream stream);

CUresult event_record(CUevent hEvent, CUstream hStream, unsigned int flags, uint16_t op);

/* Into EXISTING where there is one, behind COUNT of its nodes; DATA: what the edges from them
 * say, NULL: no more than before and behind. */
CUresult capture_begin(CUstream hStream, CUstreamCaptureMode mode, struct graph *existing,
	const uint32_t *after, const CUgraphEdgeData *data, size_t count);

/* The nodes at the other end of a node's edges. LOSSLESS: there is room for edge data. */
CUresult graph_node_neighbours(CUgraphNode hNode, bool before, CUgraphNode *nodes,
	CUgraphEdgeData *data, bool lossless, size_t *count);
CUresult graph_edges_change(CUgraph hGraph, bool remove, const CUgraphNode *from,
	const CUgraphNode *to, const CUgraphEdgeData *data, size_t count);
/* The event of a node that records one or waits for one (TYPE). EXEC: in that executable graph.
 */
CUresult graph_event_get(CUgraphNode hNode, uint32_t type, CUevent *event);
CUresult graph_event_set(
	CUgraphNode hNode, const CUgraphExec *exec, uint32_t type, CUevent event);

#endif
