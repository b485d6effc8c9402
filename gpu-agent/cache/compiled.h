/* SPDX-License-Identifier: Apache-2.0
 *
 * The driver's cache of compiled kernels.  cuDNN writes a kernel for each kind of attention as
 * PTX; compiling that takes the driver 0.4 s, and its cache 0.01 s.  The driver's one folder
 * for all would be a write across tenants, so each worker has one of its own, which no other
 * process that runs a tenant's code can reach (sandbox.h).  When a session begins, the
 * supervisor copies there what earlier sessions of the same tenant left, and takes over what
 * this one leaves.
 *
 * In CACHE_DIR.compiled:
 * - agent-XXXXXX/lock is held by that agent; without it the folder is waste,
 * - agent-XXXXXX/PID is a worker's,
 * - kept/DIGEST is a tenant's, by its name.
 *
 * Nothing of what a worker leaves is believed: plain files only are copied, so many bytes at
 * most, and only a tenant's own driver reads them again.
 */
#ifndef VCUDA_GPU_AGENT_CACHE_COMPILED_H
#define VCUDA_GPU_AGENT_CACHE_COMPILED_H

#include <sys/types.h>

#include "gpu-agent/agent.h"

/* What a session may have; the driver drops the oldest beyond it. */
#define COMPILED_BYTES (64ull << 20)
/* A folder beyond these was not the driver's doing, and is not kept. */
#define COMPILED_BYTES_MAX (2 * COMPILED_BYTES)
#define COMPILED_FILES_MAX 4096
/* Tenants whose kernels are kept: those that were here last. */
#define COMPILED_TENANTS 64

/* --- the supervisor --- */

/* Makes the agent's folder and removes those of agents that are gone; fills in
 * config->compiled. Where it cannot, there is no cache. */
void compiled_open(struct agent_config *config);
void compiled_close(const struct agent_config *config);
/* The folder's lock, -1: none; and the other way round: config->compiled is that folder, of the
 * process that this one was before it was exec'ed. */
int compiled_lock(void);
void compiled_take(int lock);

/* The worker begins a session of that tenant. */
void compiled_begin(const struct agent_config *config, pid_t worker, const char *tenant);
/* The worker is gone; `tenant` is "" where it had no session. */
void compiled_end(const struct agent_config *config, pid_t worker, const char *tenant);

/* --- the worker --- */

/* Before the sandbox, and before it is another user: makes its folder and tells the driver. */
void compiled_enter(const struct agent_config *config);
/* Its folder, for the sandbox; false: none. */
bool compiled_folder(const struct agent_config *config, char path[AGENT_PATH + 32]);
/* Before its session's first call that may compile: until what it gets is there, or a moment
 * has passed. */
void compiled_wait(const struct agent_config *config);
/* Others could reach the folder: there is no cache after all. */
void compiled_leave(void);

#endif
