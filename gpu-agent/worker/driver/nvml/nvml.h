/* SPDX-License-Identifier: Apache-2.0
 *
 * The node's NVML, as the files that ask it have it (nvml.c opens it).
 */
#ifndef VCUDA_GPU_AGENT_WORKER_DRIVER_NVML_NVML_H
#define VCUDA_GPU_AGENT_WORKER_DRIVER_NVML_NVML_H

#include <nvml.h>
#include <stdint.h>

struct worker;

/* NVML's handle for the session's device; NULL: it is not known there, or there is no NVML. */
nvmlDevice_t nvml_device(struct worker *w, uint32_t index);
/* A function of it, after nvml_device() gave a handle; NULL: it has none of that name. */
void *nvml_function(const char *name);

#endif
