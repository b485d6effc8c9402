/* SPDX-License-Identifier: Apache-2.0
 *
 * Types of cuda.h that are newer than the one that we compile with, and those of CUDA 3.1,
 * which it declares only with the functions of that version.
 */
#ifndef VCUDA_SHIM_ENGINE_NEWER_H
#define VCUDA_SHIM_ENGINE_NEWER_H

#include <cuda.h>

#if CUDA_VERSION < 13020
typedef struct CUcoredumpCallbackEntry_st *CUcoredumpCallbackHandle;
typedef void(CUDA_CB *CUcoredumpStatusCallback)(void *userData, int pid, CUdevice dev);
#endif

typedef unsigned int CUdeviceptr_v1;
typedef struct CUDA_ARRAY_DESCRIPTOR_v1_st CUDA_ARRAY_DESCRIPTOR_v1;
typedef struct CUDA_ARRAY3D_DESCRIPTOR_v1_st CUDA_ARRAY3D_DESCRIPTOR_v1;

#endif
