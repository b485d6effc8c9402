/* SPDX-License-Identifier: Apache-2.0
 *
 * Networks of people who share GPUs, as the front sees them: each is a tenant by its name, with
 * tokens, GPUs and hours of its own.  Which there are comes from the supervisor and changes
 * while sessions run; what the front knows of each goes back to it, at most once a second.
 */
#ifndef VCUDA_GPU_AGENT_FRONT_NETWORKS_H
#define VCUDA_GPU_AGENT_FRONT_NETWORKS_H

#include <stdbool.h>
#include <stdint.h>

#include "gpu-agent/agent.h"

struct front;
struct tenant;

/* The configuration's networks are the front's from here on. */
void networks_take(struct front *front, const struct agent_config *config);
/* Whose the token is; NULL: no network's. Takes the same time for each token. */
const struct agent_network *networks_of_token(
	const struct front *front, const char token[AGENT_TOKEN_MAX + 1]);
/* NULL: there is none of that name. */
const struct agent_network *networks_named(const struct front *front, const char *name);
uint32_t networks_count(const struct front *front);
/* One after another; NULL behind the last. */
const struct agent_network *networks_at(const struct front *front, uint32_t index);

/* Whether a session of the tenant may begin now; 0, or a CUresult with text. */
uint32_t networks_may(const struct front *front, const struct tenant *tenant, char text[192]);

/* Hours begin and end, sessions of what is left are stopped, the supervisor is told; the next
 * time to look. */
uint64_t networks_tick(struct front *front, uint64_t now);
void networks_close(struct front *front);

#endif
