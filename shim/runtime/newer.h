/* SPDX-License-Identifier: Apache-2.0
 *
 * Types of cuda_runtime_api.h that are newer than the one that we compile with, and functions
 * of the driver that are newer than its header.
 */
#ifndef VCUDA_RUNTIME_NEWER_H
#define VCUDA_RUNTIME_NEWER_H

#include <cuda.h>
#include <cuda_runtime_api.h>

CUresult cuFuncGetParamCount(CUfunction func, size_t *paramCount);
CUresult cuLaunchHostFunc_v2(
	CUstream hStream, CUhostFn fn, void *userData, unsigned int syncMode);
CUresult cuStreamGetDevResource(
	CUstream hStream, CUdevResource *resource, CUdevResourceType type);

#if CUDART_VERSION < 13010
enum cudaDevResourceType { cudaDevResourceTypeInvalid, cudaDevResourceTypeSm };
typedef CUdevResource cudaDevResource; /* the same bytes */
typedef CUdevResourceDesc cudaDevResourceDesc_t;
typedef struct cudaExecutionContext_st *cudaExecutionContext_t;
#endif

#endif
