/* SPDX-License-Identifier: Apache-2.0
 *
 * Memory that sessions share, by its random name.
 */
#ifndef VCUDA_GPU_AGENT_FRONT_SHARING_H
#define VCUDA_GPU_AGENT_FRONT_SHARING_H

#include "gpu-agent/handoff.h"

struct front;
struct pool_worker;
struct session;

/* SHARE (takes *fd, then -1), UNSHARE and WANT of a worker that has a session. */
void sharing_request(
	struct front *front, struct pool_worker *worker, const struct handoff *h, int *fd);
/* The session is over, and with it what it gave. */
void sharing_forget(struct front *front, const struct session *session);

#endif
