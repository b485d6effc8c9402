/* SPDX-License-Identifier: Apache-2.0
 *
 * The ready file: JSON for scripts that start an agent, {"pid", "address", "ports": {"send",
 * "recv", "control"}, "ready", "text"}.  It appears, whole, when the first worker got ready or
 * failed to; "ready" and "text" say which, and are kept up to date.
 */
#ifndef VCUDA_GPU_AGENT_SUPERVISOR_READY_H
#define VCUDA_GPU_AGENT_SUPERVISOR_READY_H

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stdint.h>

#include "gpu-agent/agent.h"

/* All do nothing where no ready file is configured. A failure is logged, and ready_tick tries
 * again each second; it returns when it is to be called, or UINT64_MAX. The supervisor's thread
 * only. */
void ready_write(const struct agent_config *config, bool ready, const char *text);
uint64_t ready_tick(const struct agent_config *config, uint64_t now);
/* A new object with "pid", "address" and "ports": where scripts and people find the agent. */
cJSON *ready_place(const struct agent_config *config);
void ready_remove(const struct agent_config *config);

#endif
