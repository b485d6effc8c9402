/* SPDX-License-Identifier: Apache-2.0
 *
 * Devices that reach each other's memory.
 */
#ifndef VCUDA_GPU_AGENT_WORKER_DRIVER_PEER_H
#define VCUDA_GPU_AGENT_WORKER_DRIVER_PEER_H

#include "gpu-agent/worker/worker_state.h"

/* What device number I of the session can do with number J's memory. */
void peer_describe(const struct worker *w, uint32_t i, uint32_t j, struct open_peer *peer);
/* The context ends, or is reset: it reaches nothing any more, and nobody reaches it. */
void peer_forget(struct worker *w, uint16_t context);

#endif
