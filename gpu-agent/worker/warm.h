/* SPDX-License-Identifier: Apache-2.0
 *
 * What a worker does while it waits for its session: it opens the libraries that the sessions
 * before it used (config->warm_libraries).  The front asks for that, and for none after a
 * worker that did not get ready.
 */
#ifndef VCUDA_GPU_AGENT_WORKER_WARM_H
#define VCUDA_GPU_AGENT_WORKER_WARM_H

#include "gpu-agent/worker/worker_state.h"

void warm_libraries(struct worker *w);

/* The parts, each of the major that a program asks for. */
void cublas_warm(const struct worker *w, uint32_t major);
void cublaslt_warm(const struct worker *w, uint32_t major);

#endif
