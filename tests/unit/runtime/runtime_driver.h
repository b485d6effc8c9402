/* SPDX-License-Identifier: Apache-2.0
 *
 * What the counting driver saw.
 */
#ifndef VCUDA_TESTS_RUNTIME_DRIVER_H
#define VCUDA_TESTS_RUNTIME_DRIVER_H

#include <cuda.h>
#include <stdatomic.h>

struct driver_counts {
	_Atomic int loads, unloads, kernels, functions, retains, binds, launches, other;
	_Atomic(CUfunction) launched; /* by the last launch of any thread, and where */
	_Atomic(CUcontext) context;
	_Atomic(const char *) name; /* of the kernel last bound to a context */
	_Atomic(CUfunction) stale;  /* is refused */
};
extern struct driver_counts driver_counts;
extern CUresult driver_load_status; /* what the next cuLibraryLoadData answers */

#endif
