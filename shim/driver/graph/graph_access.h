/* SPDX-License-Identifier: Apache-2.0
 *
 * The devices that the node of a graph's memory names, which reach it.
 */
#ifndef VCUDA_SHIM_DRIVER_GRAPH_GRAPH_ACCESS_H
#define VCUDA_SHIM_DRIVER_GRAPH_GRAPH_ACCESS_H

#include <cuda.h>
#include <stddef.h>

struct graph_access {
	CUmemAccessDesc *list; /* as the app said */
	size_t count;
	size_t reached; /* so many from the first on have what they say */
};

/* For memory of DEVICE. Where it fails, what was given goes with graph_access_end. */
CUresult graph_access_begin(
	struct graph_access *access, int device, const CUmemAccessDesc *list, size_t count);
void graph_access_end(struct graph_access *access, int device);

#endif
