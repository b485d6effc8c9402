/* SPDX-License-Identifier: Apache-2.0
 *
 * The supervisor's children: front, probe, workers and store.
 */
#ifndef VCUDA_GPU_AGENT_SUPERVISOR_CHILDREN_H
#define VCUDA_GPU_AGENT_SUPERVISOR_CHILDREN_H

#include <stdbool.h>
#include <stdint.h>

#include "gpu-agent/supervisor/supervisor.h"

/* Where there is none. One that cannot be started is tried again later. */
void children_start_front(struct supervisor *s);
/* Without it nothing is missing but a few lines of /readyz?verbose. */
void children_start_probe(struct supervisor *s);
/* What the probe found, which each front gets. */
void children_hear_probe(struct supervisor *s);
/* What the front asks: workers, their sessions, their ends, what is kept for the next one. */
void children_hear_front(struct supervisor *s);
/* After SIGCHLD: of each that ended what follows from it. */
void children_reap(struct supervisor *s);

#endif
