/* SPDX-License-Identifier: Apache-2.0
 *
 * What the files of /metrics share (metrics*.c): each prints its lines to OUT.
 */
#ifndef VCUDA_GPU_AGENT_FRONT_HTTP_METRICS_CORE_H
#define VCUDA_GPU_AGENT_FRONT_HTTP_METRICS_CORE_H

#include <stdint.h>
#include <stdio.h>

#include "gpu-agent/front/http/viewer.h"

struct front;

/* What is before the values of a metric. */
void metrics_head(FILE *out, const char *name, const char *type, const char *help);
/* A metric with one value. */
void metrics_one(
	FILE *out, const char *name, const char *type, const char *help, uint64_t value);

/* metrics_devices.c */

/* Which GPU a value is of: labels without braces. */
void metrics_gpu_labels(FILE *out, const struct front *front, uint32_t gpu);
void metrics_memory(FILE *out, const struct front *front);
/* What is not known, or is not said any more, is left out. */
void metrics_meters(FILE *out, const struct front *front);

/* metrics_pods.c: of the sessions that the viewer sees. */
void metrics_pods(FILE *out, const struct front *front, const struct viewer *viewer);

#endif
