/* SPDX-License-Identifier: Apache-2.0
 *
 * Devices that reach each other's memory.
 */
#ifndef VCUDA_GPU_AGENT_WORKER_DRIVER_MEMORY_PEER_H
#define VCUDA_GPU_AGENT_WORKER_DRIVER_MEMORY_PEER_H

#include "gpu-agent/worker/worker_state.h"

/* What device number I of the session can do with number J's memory. */
void peer_describe(const struct worker *w, uint32_t i, uint32_t j, struct open_peer *peer);
/* A copy between those two places becomes a node of a graph, or is one of an array. The driver
 * copies what it placed itself through whatever there is, and what is mapped in windows only
 * where the copying device reaches both: so the two devices are given access to each other's,
 * until the session ends. Places outside of the windows have it anyway. */
CUresult peer_captures(struct worker *w, uint64_t one, uint64_t other);
/* The context ends, or is reset: it reaches nothing any more, and nobody reaches it. */
void peer_forget(struct worker *w, uint16_t context);

#endif
