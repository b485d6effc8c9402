/* SPDX-License-Identifier: Apache-2.0
 *
 * Memory that sessions share, by its random name.
 */
#ifndef VCUDA_GPU_AGENT_FRONT_SHARING_H
#define VCUDA_GPU_AGENT_FRONT_SHARING_H

#include <stdbool.h>

#include "gpu-agent/handoff.h"

struct front;
struct journal_share;
struct pool_worker;
struct session;

/* SHARE (takes *fd, then -1), UNSHARE and WANT of a worker that has a session. */
void sharing_request(
	struct front *front, struct pool_worker *worker, const struct handoff *h, int *fd);
/* A name that another front gave, in its place; takes FD. */
void sharing_adopt(struct front *front, uint32_t index, const struct session *session,
	const struct journal_share *share, int fd);
bool sharing_has(const struct front *front, uint32_t index);
/* The session is over, and with it what it gave. */
void sharing_forget(struct front *front, const struct session *session);

#endif
