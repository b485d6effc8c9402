/* SPDX-License-Identifier: Apache-2.0
 *
 * Values in memory that streams and graphs' nodes wait for and write.
 */
#ifndef VCUDA_SHIM_DRIVER_STREAM_MEMOP_H
#define VCUDA_SHIM_DRIVER_STREAM_MEMOP_H

#include <cuda.h>
#include <stdbool.h>
#include <stddef.h>

/* What is wrong with N of them, INVALID_VALUE; pinned memory that they name becomes the agent's
 * too, and its errors are answered as well. */
CUresult memop_check(const CUstreamBatchMemOpParams *ops, size_t n);
/* The same of a node's, which may be anywhere until it is launched. */
CUresult memop_check_node(const CUstreamBatchMemOpParams *ops, size_t n);
/* Whether it is in memory in which values can be waited for and written. */
bool memop_reached(const CUstreamBatchMemOpParams *op);
/* A stream has waited for a value in pinned memory, of which the program ends the wait: what
 * copies behind it read, it may write until then. */
bool memop_gates(void);

#endif
