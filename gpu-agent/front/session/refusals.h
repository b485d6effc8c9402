/* SPDX-License-Identifier: Apache-2.0
 *
 * The system calls that workers are refused (sandbox_calls.c).  The kernel holds the calling
 * thread until the front has answered: EPERM, counted, and named in the log once for each
 * session; or, while the driver starts, that a call goes on which only a warm worker is
 * refused.
 *
 * A worker that makes such calls all the time costs the front REFUSALS_MOST looks in
 * REFUSALS_NS, and its threads wait for the next.
 */
#ifndef VCUDA_GPU_AGENT_FRONT_REFUSALS_H
#define VCUDA_GPU_AGENT_FRONT_REFUSALS_H

#include <stdint.h>

#define REFUSALS_MOST 64
#define REFUSALS_NS 100000000ull

struct front;
struct pool_worker;

/* What a worker that is starting brought, or the front before had kept; *FD is -1 where it was
 * taken. */
void refusals_begin(struct front *front, struct pool_worker *worker, int *fd);
/* It begins a session: the next front is to have it too. */
void refusals_keep(struct front *front, const struct pool_worker *worker);
void refusals_end(struct front *front, struct pool_worker *worker);
/* Looks again at those that had their share; when the next is due. */
uint64_t refusals_tick(struct front *front, uint64_t now);

#endif
