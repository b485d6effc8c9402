/* SPDX-License-Identifier: Apache-2.0
 *
 * Whether the front's loop turns, for who may end the agent: a Unix socket of this user alone,
 * on which every connection is answered at once and closed.  Nothing that comes over the
 * network can keep it busy, so a probe that asks it (`gpu-agent --healthy`) fails only where a
 * restart helps.
 */
#ifndef VCUDA_GPU_AGENT_FRONT_HEALTH_H
#define VCUDA_GPU_AGENT_FRONT_HEALTH_H

#include "gpu-agent/front/front.h"

/* Without config->health_socket, or where it cannot be made (that is logged), there is none. */
void health_open(struct front *front);
void health_close(struct front *front);

/* `gpu-agent --healthy`: asks the agent of that configuration. 0, or -errno with *error. */
int health_ask(const struct agent_config *config, struct error *error);

#endif
