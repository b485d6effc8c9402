/* SPDX-License-Identifier: Apache-2.0
 *
 * Memory of cuMemAlloc that was freed on a stream (cuMemFreeAsync).  As natively it may be used
 * until the program has waited for the stream: small chunks stay in their slab that long, a few
 * of them.  What is larger goes back at once.
 */
#ifndef VCUDA_SHIM_DRIVER_MEMORY_LATER_H
#define VCUDA_SHIM_DRIVER_MEMORY_LATER_H

#include <cuda.h>
#include <stdbool.h>
#include <stdint.h>

/* Frees it when STREAM (a number; 0: the legacy one of that context) has been waited for.
 * SUCCESS for what was freed so before; else memory_free()'s statuses. Any thread. */
CUresult later_free(CUdeviceptr address, uint64_t stream, uint16_t context);
/* The stream has been waited for, or goes. */
void later_synced(uint64_t stream, uint16_t context);
/* All of that context's. */
void later_context(uint16_t context);
/* All: there is no other memory. False: there was none to give back. */
bool later_all(void);

#endif
