/* SPDX-License-Identifier: Apache-2.0
 *
 * Types of cuda.h that are newer than the one that we compile with.
 */
#ifndef VCUDA_SHIM_ENGINE_NEWER_H
#define VCUDA_SHIM_ENGINE_NEWER_H

#include <cuda.h>

#if CUDA_VERSION < 13020
typedef struct CUcoredumpCallbackEntry_st *CUcoredumpCallbackHandle;
typedef void(CUDA_CB *CUcoredumpStatusCallback)(void *userData, int pid, CUdevice dev);
#endif

#endif
