/* SPDX-License-Identifier: Apache-2.0
 *
 * What the agent listens on, for clients and for HTTP: opened once, kept by the supervisor, and
 * handed to each front.
 */
#ifndef VCUDA_GPU_AGENT_LISTENING_H
#define VCUDA_GPU_AGENT_LISTENING_H

#include "gpu-agent/agent.h"

/* TLS where it is configured: no plain connection from then on. 0, or -errno with *error. */
int listening_secure(const struct agent_config *config, struct error *error);
/* Whether listening_open could be tried: for --check-config, which opens nothing. 0, or -errno
 * with *error naming the key. */
int listening_check(const struct agent_config *config, struct error *error);
/* Fills in config->listening and config->bound; *HTTP: the control port's socket. 0, or -errno
 * with *error. */
int listening_open(struct agent_config *config, int *http, struct error *error);
void listening_close(struct agent_config *config, int http);

#endif
