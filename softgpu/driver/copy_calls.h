/* SPDX-License-Identifier: Apache-2.0
 *
 * Copies with the stream as an argument, for the calls and their per-thread forms; and how
 * much copies and fills do at once.
 */
#ifndef VCUDA_SOFTGPU_DRIVER_COPY_CALLS_H
#define VCUDA_SOFTGPU_DRIVER_COPY_CALLS_H

#include "softgpu/driver/softgpu.h"

/* Up to this size a copy or fill takes less time than waking a thread for it. */
#define COPY_LIGHT_BYTES (32 * KIB)
/* How much is done in one hold of the memory lock. */
#define COPY_HOLD_BYTES (4 * MIB)

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
