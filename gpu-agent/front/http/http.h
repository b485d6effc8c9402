/* SPDX-License-Identifier: Apache-2.0
 *
 * The control port: HTTP for probes, Prometheus and people.
 */
#ifndef VCUDA_GPU_AGENT_FRONT_HTTP_HTTP_H
#define VCUDA_GPU_AGENT_FRONT_HTTP_HTTP_H

#include <stdint.h>

#include "common/error.h"

struct front;

int http_open(struct front *front, int listener, struct error *error);
void http_close(struct front *front);
uint64_t http_tick(struct front *front);

#endif
