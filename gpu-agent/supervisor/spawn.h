/* SPDX-License-Identifier: Apache-2.0
 *
 * Starts the front and the workers: the running binary, exec'ed anew, with an environment from
 * an allow-list, only the descriptors it is meant to have, its limits, and a parent whose death
 * ends it.
 */
#ifndef VCUDA_GPU_AGENT_SUPERVISOR_SPAWN_H
#define VCUDA_GPU_AGENT_SUPERVISOR_SPAWN_H

#include <sys/resource.h>
#include <sys/types.h>

#include "common/error.h"
#include "gpu-agent/agent.h"

/* Of the front: sessions that wait, half-open connections, shared memory, with room; of the
 * supervisor: what it keeps for the front. */
#define SPAWN_FILES_MOST 16384

/* How many descriptors this process may have from here on: VALUE, or as many as it is allowed.
 */
rlim_t spawn_limit_files(rlim_t value);

/* A worker; *front_end is the front's end of its handoff pair. The pid, or -errno. */
pid_t spawn_worker(const struct agent_config *config, int *front_end, struct error *error);

/* The probe for libraries; *own_end is the supervisor's end of the pair. The pid, or -errno. */
pid_t spawn_probe(const struct agent_config *config, int *own_end, struct error *error);

/* The store of tensors, and the cache of payloads; the same. */
pid_t spawn_uploads(const struct agent_config *config, int *own_end, struct error *error);
pid_t spawn_store(const struct agent_config *config, int *own_end, struct error *error);

/* The process of the directory of the network at INDEX; the same. */
pid_t spawn_directory(
	const struct agent_config *config, uint32_t index, int *own_end, struct error *error);

/* The front; *own_end is the supervisor's end of the control pair. The pid, or -errno. */
pid_t spawn_front(
	const struct agent_config *config, int http, int *own_end, struct error *error);

#endif
