/* SPDX-License-Identifier: Apache-2.0
 *
 * The agent's state as JSON, for programs and for the page.
 */
#ifndef VCUDA_GPU_AGENT_FRONT_HTTP_STATE_H
#define VCUDA_GPU_AGENT_FRONT_HTTP_STATE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct front;
struct tenant;
struct viewer;

/* What sessions use of a device, by their workers' word; those of one tenant alone unless it is
 * NULL. */
uint64_t state_used(const struct front *front, uint32_t device, const struct tenant *tenant);
/* As nvidia-smi writes it. */
void state_uuid(FILE *out, const uint8_t uuid[16]);
void state_uuid_text(char *out, size_t n, const uint8_t uuid[16]);
/* Pages as VIEWER sees them: a tenant finds itself in an agent that serves nobody else. Text to
 * be freed by the caller; NULL without memory. */
char *state_gpus(const struct front *front, const struct viewer *viewer);
char *state_sessions(const struct front *front, const struct viewer *viewer);
char *state_ready(const struct front *front, bool verbose, bool *ready);
char *state_agent(const struct front *front, const struct viewer *viewer); /* conditions.c */

#endif
