/* SPDX-License-Identifier: Apache-2.0
 *
 * What the GPUs are doing, by NVIDIA's NVML where the machine has it: the probe's process goes
 * on as the meter and says it every few seconds.  The front never opens a library of NVIDIA's,
 * and a worker knows its own session only.
 */
#ifndef VCUDA_GPU_AGENT_PROBE_METER_H
#define VCUDA_GPU_AGENT_PROBE_METER_H

#include "gpu-agent/agent.h"

/* Returns where there is no NVML, or nobody listens on fd any more. */
void meter_run(const struct agent_config *config, int fd);

#endif
