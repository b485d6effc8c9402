/* SPDX-License-Identifier: Apache-2.0
 *
 * A user for each worker, of the range `worker_users`, where the agent is root.  A worker has
 * one session, so no two sessions that run at once are one user, and what the kernel keeps by
 * user (signals, /proc, files) is apart also where Landlock and seccomp are not.  One that was
 * given back is given out again as late as can be.
 */
#ifndef VCUDA_GPU_AGENT_SUPERVISOR_USERS_H
#define VCUDA_GPU_AGENT_SUPERVISOR_USERS_H

#include "common/error.h"
#include "gpu-agent/agent.h"

struct supervisor;

/* -1 is nobody's, and what is beyond 31 bits is odd to many. */
#define USERS_MOST 0x7fffffffull

/* "FIRST-LAST" of the configuration; 0 or -EINVAL. */
int users_set(struct agent_config *config, const char *value);
/* Whether this process can have them: 0, or -errno with *error. */
int users_check(const struct agent_config *config, struct error *error);
/* One that no worker has; 0: all are taken, or none are configured. */
uint32_t users_pick(struct supervisor *s);

#endif
