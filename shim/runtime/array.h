/* SPDX-License-Identifier: Apache-2.0
 *
 * Arrays under the runtime's names: handles are the driver's, formats differ.
 */
#ifndef VCUDA_SHIM_RUNTIME_ARRAY_H
#define VCUDA_SHIM_RUNTIME_ARRAY_H

#include "shim/runtime/runtime.h"

/* A channel format as the driver has it; cudaErrorInvalidChannelDescriptor: there is none. */
cudaError_t array_format(
	const struct cudaChannelFormatDesc *desc, CUarray_format *format, unsigned *channels);
/* And back. */
struct cudaChannelFormatDesc array_channels(CUarray_format format, unsigned channels);
/* Bytes of an element; 0: of a format that has none (planar, compressed). */
size_t array_element_bytes(CUarray_format format, unsigned channels);
static inline CUarray array_driver(cudaArray_const_t array)
{
	return (CUarray)(uintptr_t)array;
}
/* array_copy.c: cudaMemcpy3D's description where one side is an array, or both. */
cudaError_t array_parms(CUDA_MEMCPY3D *copy, const struct cudaMemcpy3DParms *p);
/* And back: where a side of COPY is an array, P gets its name and counts elements. */
cudaError_t array_parms_back(struct cudaMemcpy3DParms *p, const CUDA_MEMCPY3D *copy);

#endif
