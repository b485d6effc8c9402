/* SPDX-License-Identifier: Apache-2.0
 *
 * NCCL's own memory, of which there is none here: its size, and that all ranks give it back.
 */
#include "softgpu/nccl/nccl.h"

/* Of memory there is none; that is told, and whether it is given back. */
NCCL_EXPORT ncclResult_t ncclCommMemStats(ncclComm_t comm, int what, uint64_t *value);
NCCL_EXPORT ncclResult_t ncclCommMemStats(ncclComm_t comm, int what, uint64_t *value)
{
	enum { SUSPENDED = 1, STATS = 4 };

	if (!softnccl_is_comm(comm) || !value || what < 0 || what >= STATS)
		return softnccl_fail(ncclInvalidArgument,
			"no communicator, or nothing is counted as %d", what);
	*value = what == SUSPENDED ? comm->suspended : 0;
	return ncclSuccess;
}

static ncclResult_t pause_later(ncclComm_t comm, bool suspended)
{
	struct softnccl_making m = {.parent = comm, .pauses = true, .suspended = suspended};

	return softnccl_is_comm(comm)
		       ? softnccl_make_later(&m)
		       : softnccl_keep(softnccl_fail(ncclInvalidArgument, "no communicator"));
}

NCCL_EXPORT ncclResult_t ncclCommSuspend(ncclComm_t comm, int flags);
NCCL_EXPORT ncclResult_t ncclCommSuspend(ncclComm_t comm, int flags)
{
	enum { MEMORY = 1 };

	return flags & MEMORY ? pause_later(comm, true) : ncclSuccess;
}

NCCL_EXPORT ncclResult_t ncclCommResume(ncclComm_t comm);
NCCL_EXPORT ncclResult_t ncclCommResume(ncclComm_t comm)
{
	return pause_later(comm, false);
}
