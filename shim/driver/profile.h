/* SPDX-License-Identifier: Apache-2.0
 *
 * What the agents record of the GPU while the process is profiled (protocol/wire/profile.h),
 * asked for by CUPTI's front, which is a library of its own: exported under our names.
 */
#ifndef VCUDA_SHIM_DRIVER_PROFILE_H
#define VCUDA_SHIM_DRIVER_PROFILE_H

#include <cuda.h>
#include <stdint.h>

#include "protocol/wire/profile.h"

/* EACH: a record of the process' agent AGENT, its times turned into CLOCK_REALTIME of this
 * machine; `name`, NUL-terminated, is the caller's until it returns. */
typedef void profile_each(
	void *user, unsigned agent, const struct profile_record *record, const char *name);

/* From now on every agent of the process records these kinds (1u << enum profile_kind); 0:
 * none. Before cuInit it is kept until there is a session. CUDA_ERROR_NOT_FOUND: an agent has
 * no CUPTI; …_NOT_SUPPORTED: it is of a release that does not know this. The others record. */
CUresult vcuda_profile_enable(uint32_t kinds);
/* What was recorded so far, of all agents, whatever the status is: also that of an enabling
 * before cuInit. FLAG is cuptiActivityFlushAll's. *dropped, if not
 * NULL: records that the agents had no room for, so far. */
CUresult vcuda_profile_flush(uint32_t flag, profile_each *each, void *user, uint64_t *dropped);
/* The number by which records name a context, or a stream, graph … of it. */
CUresult vcuda_profile_id(
	enum profile_id what, CUcontext context, const void *handle, uint64_t *id);

/* The process has its sessions now. */
void profile_ready(void);

#endif
