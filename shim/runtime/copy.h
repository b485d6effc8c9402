/* SPDX-License-Identifier: Apache-2.0
 *
 * Copies as the driver describes them, for graphs too.
 */
#ifndef VCUDA_SHIM_RUNTIME_COPY_H
#define VCUDA_SHIM_RUNTIME_COPY_H

#include "shim/runtime/runtime.h"

/* Where the two ends of a kind lie. */
CUmemorytype copy_source_type(enum cudaMemcpyKind kind);
CUmemorytype copy_target_type(enum cudaMemcpyKind kind);
/* Whether rows of EXTENT from AT on fit into END's pitch; in elements where it goes to or from
 * an array. */
bool copy_row_fits(const struct cudaPitchedPtr *end, const struct cudaPos *at,
	const struct cudaExtent *extent);
/* One end of a copy, as the driver describes it. */
void copy_from_end(CUDA_MEMCPY3D *copy, CUmemorytype type, const struct cudaPitchedPtr *end,
	const struct cudaPos *at);
void copy_to_end(CUDA_MEMCPY3D *copy, CUmemorytype type, const struct cudaPitchedPtr *end,
	const struct cudaPos *at);
/* A descriptor of the runtime's as the driver's. Depth 0: there is nothing to copy. */
cudaError_t copy_parms(CUDA_MEMCPY3D *copy, const struct cudaMemcpy3DParms *p);
/* COUNT bytes in a row. */
cudaError_t copy_row(CUDA_MEMCPY3D *copy, void *dst, const void *src, size_t count,
	enum cudaMemcpyKind kind);
/* The address of COUNT bytes at OFFSET of a variable, for a copy that may neither stay on the
 * host nor go the way AWAY. */
cudaError_t copy_symbol(const void *symbol, size_t offset, size_t count,
	enum cudaMemcpyKind kind, enum cudaMemcpyKind away, void **address);

/* What a capture says to work on STREAM, which natively comes before what is wrong with most
 * arguments; cudaSuccess where nothing captures. Invalidates a capture as the work would. */
cudaError_t copy_captured(cudaStream_t stream);

#endif
