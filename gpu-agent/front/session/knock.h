/* SPDX-License-Identifier: Apache-2.0
 *
 * Datagrams by which clients of light:// ask for their session's UDP socket (transport/light).
 */
#ifndef VCUDA_GPU_AGENT_FRONT_KNOCK_H
#define VCUDA_GPU_AGENT_FRONT_KNOCK_H

#include <stdint.h>

#include "gpu-agent/front/events.h"

/* For events_watch. */
void knocks_ready(struct watch *watch, uint32_t mask);

#endif
