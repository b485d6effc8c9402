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
/* A context is going, and with it what the libraries keep for it. It is current. */
void warm_forget(uint16_t context);

/* FAMILY_warm of each library, for the major that a program asks for; the first device's
 * primary context is current. And FAMILY_forget of each. */
#define LIBRARY_ROW(id, family, ...)                                                           \
	void family##_warm(const struct worker *w, uint32_t major);                            \
	void family##_forget(uint16_t context);
#include "gpu-agent/generated/libraries.inc"
#undef LIBRARY_ROW

#endif
