/* SPDX-License-Identifier: Apache-2.0
 *
 * Copies: one description for every shape, and the calls with the stream as an argument, for
 * them and their per-thread forms; and how much copies and fills do at once.
 */
#ifndef VCUDA_SOFTGPU_DRIVER_COPY_CALLS_H
#define VCUDA_SOFTGPU_DRIVER_COPY_CALLS_H

#include "softgpu/driver/softgpu.h"
#include "softgpu/ptx/texture.h"

/* Up to this size a copy or fill takes less time than waking a thread for it. */
#define COPY_LIGHT_BYTES (32 * KIB)
/* How much is done in one hold of the memory lock. */
#define COPY_HOLD_BYTES (4 * MIB)

enum copy_side { COPY_HOST, COPY_DEVICE };
/* A side in an array whose memory may be missing: its addresses count as those of one in rows,
 * of `row` bytes. */
struct copy_sparse {
	struct ptx_tiles tiles;
	uint64_t base;
	size_t row, rows; /* of a slice; 0: it is in none */
};
struct copy {
	uint64_t src, dst;
	enum copy_side src_side, dst_side;
	size_t src_pitch, dst_pitch;			/* bytes between rows */
	size_t src_height, dst_height;			/* rows between slices */
	size_t width, height, depth;			/* bytes, rows, slices */
	const struct CUarray_st *src_array, *dst_array; /* that the side is in, or NULL */
	struct copy_sparse src_sparse, dst_sparse;
};
/* Queues a copy.  SYNC: returns when it is done, as the calls without Async do. */
CUresult copy_submit(const struct copy *copy, CUstream stream, bool sync);
CUresult copy_linear(uint64_t dst, enum copy_side dst_side, uint64_t src,
	enum copy_side src_side, size_t size, CUstream stream, bool sync);
/* The side that an address of the unified space is on. */
enum copy_side soft_copy_side_of(uint64_t address);

CUresult copy_htod(CUdeviceptr dst, const void *src, size_t size, CUstream stream, bool sync);
CUresult copy_dtoh(void *dst, CUdeviceptr src, size_t size, CUstream stream, bool sync);
CUresult copy_dtod(CUdeviceptr dst, CUdeviceptr src, size_t size, CUstream stream, bool sync);
CUresult copy_unified(
	CUdeviceptr dst, CUdeviceptr src, size_t size, CUstream stream, bool sync);
CUresult soft_copy_2d(const CUDA_MEMCPY2D *p, CUstream stream, bool sync);
/* What a descriptor says, as one description of every shape. */
CUresult copy_read_3d(const CUDA_MEMCPY3D *p, struct copy *copy);
CUresult soft_copy_3d(const CUDA_MEMCPY3D *p, CUstream stream, bool sync);
CUresult copy_3d_peer_sync(const CUDA_MEMCPY3D_PEER *p, CUstream stream);
CUresult copy_peer(CUdeviceptr dst, CUcontext dst_context, CUdeviceptr src,
	CUcontext src_context, size_t size, CUstream stream);
/* Fills never wait, as on a GPU.  PITCH 0: one row.  SYNC: of a call without Async. */
CUresult fill_submit(uint64_t dst, size_t pitch, unsigned value, unsigned element, size_t width,
	size_t height, CUstream stream, bool sync);

#endif
