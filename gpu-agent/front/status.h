/* SPDX-License-Identifier: Apache-2.0
 *
 * The agent's state as JSON, for programs and for the page.
 */
#ifndef VCUDA_GPU_AGENT_FRONT_STATUS_H
#define VCUDA_GPU_AGENT_FRONT_STATUS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct front;

/* What sessions use of a device, by their workers' word. */
uint64_t status_used(const struct front *front, uint32_t device);
/* As nvidia-smi writes it. */
void status_uuid(FILE *out, const uint8_t uuid[16]);
void status_uuid_text(char *out, size_t n, const uint8_t uuid[16]);
char *status_gpus(const struct front *front);
char *status_sessions(const struct front *front);
char *status_ready(const struct front *front, bool verbose, bool *ready);
char *status_agent(const struct front *front); /* conditions.c */

#endif
