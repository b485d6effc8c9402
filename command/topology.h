/* SPDX-License-Identifier: Apache-2.0
 *
 * The matrix of vcuda smi topo.
 */
#ifndef VCUDA_COMMAND_TOPOLOGY_H
#define VCUDA_COMMAND_TOPOLOGY_H

#include <nvml.h>

/* Prints what COUNT devices of the front LIBRARY (nvmlInit was called) are to each other: the
 * way between them, or (ACCESS: an nvmlGpuP2PCapsIndex_t, not -1) whether they can. 0, or -1: a
 * device does not answer. */
int topology_print(void *library, unsigned count, int access);

#endif
