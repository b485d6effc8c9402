/* SPDX-License-Identifier: Apache-2.0
 *
 * What is closed while a host function is outstanding.
 */
#ifndef VCUDA_GPU_AGENT_WORKER_LOOP_CLOSING_H
#define VCUDA_GPU_AGENT_WORKER_LOOP_CLOSING_H

#include <cuda.h>
#include <stdbool.h>

struct worker;

/* From here on no further call is served beside the loop, where calls that overlap would keep
 * all of these open without end. */
#define CLOSINGS_MOST 256

/* Closes the object, at once or when no host function is outstanding and no call is served
 * beside the loop; its name must be gone. Errors of those that had to wait are deferred. */
CUresult closing_do(
	struct worker *w, CUresult (*close)(struct worker *w, void *object), void *object);
void closing_poll(struct worker *w);
/* Whether a call in which the driver waits for the whole context has to wait itself. */
bool closing_waits(const struct worker *w);
/* Whether there are so many. */
bool closing_full(const struct worker *w);

#endif
