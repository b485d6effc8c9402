// SPDX-License-Identifier: Apache-2.0
/*
 * Driver calls for programs that link the runtime only: each entry point is asked for by name
 * with cudaGetDriverEntryPointByVersion, as frameworks do.
 *
 *	ENTRY(cuModuleLoadData);		declares p_cuModuleLoadData
 *	DRIVER(p_cuModuleLoadData(&module, image));
 */
#pragma once

#include "check.h"

#include <cuda.h>

template <typename F> inline F driver_entry(const char *name, unsigned version = CUDA_VERSION)
{
	cudaDriverEntryPointQueryResult found = cudaDriverEntryPointSymbolNotFound;
	void *entry = NULL;
	cudaError_t status = cudaGetDriverEntryPointByVersion(
		name, &entry, version, cudaEnableDefault, &found);

	if (status != cudaSuccess || found != cudaDriverEntryPointSuccess || !entry)
		fail_at(__FILE__, __LINE__, "no entry point %s: %s, query result %d", name,
			cudaGetErrorName(status), (int)found);
	return (F)entry;
}

/* #name is cuda.h's plain name; decltype sees the version that cuda.h maps it to. */
#define ENTRY(name) auto p_##name = driver_entry<decltype(&name)>(#name)

#define DRIVER_IS(want, call)                                                                  \
	do {                                                                                   \
		CUresult got_ = (call);                                                        \
		if (got_ != (want))                                                            \
			FAIL("%s gave %d, not %d", #call, (int)got_, (int)(want));             \
	} while (0)
#define DRIVER(call) DRIVER_IS(CUDA_SUCCESS, call)
