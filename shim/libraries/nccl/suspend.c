/* SPDX-License-Identifier: Apache-2.0
 *
 * Memory of NCCL's own: how much there is, and that it is given back for a while. All ranks do
 * that together, so it is an operation of a group that is awaited.
 */
#include "shim/libraries/nccl/nccl.h"

static ncclResult_t suspend(ncclComm_t comm, unsigned function, int flags)
{
	const struct nccl_comm *found = nccl_find(comm);
	struct nccl_operation o;

	if (!found)
		return nccl_group_fault(ncclInvalidArgument);
	if (found->making)
		return nccl_group_fault(
			nccl_fault(ncclInvalidUsage, "the communicator is not made yet"));
	if (flags < 0)
		return nccl_group_fault(nccl_fault(
			ncclInvalidArgument, "there are no flags %#x", (unsigned)flags));
	o = (struct nccl_operation){
		.key = {.comm = found->handle, .function = (uint8_t)function, .op = flags},
		.context = found->context,
	};
	return nccl_note(&o, 1);
}

STUB_EXPORT ncclResult_t ncclCommSuspend(ncclComm_t comm, int flags)
{
	COUNT(ncclCommSuspend);
	return suspend(comm, NCCL_SUSPEND, flags);
}

STUB_EXPORT ncclResult_t ncclCommResume(ncclComm_t comm)
{
	COUNT(ncclCommResume);
	return suspend(comm, NCCL_RESUME, 0);
}

STUB_EXPORT ncclResult_t ncclCommMemStats(
	ncclComm_t comm, ncclCommMemStat_t stat, uint64_t *value)
{
	struct wire_ncclCommMemStats body = {.major = VCUDA_ABI, .stat = stat};
	struct wire_ncclCommMemStats_reply reply = {0};
	const struct nccl_comm *found;
	ncclResult_t status;

	COUNT(ncclCommMemStats);
	found = nccl_find(comm);
	if (!found)
		return ncclInvalidArgument;
	if (!value)
		return nccl_fault(ncclInvalidArgument, "no place for an answer");
	body.comm = found->handle;
	status = nccl_ask_at(found->context, OP_ncclCommMemStats, &body, sizeof(body), &reply,
		sizeof(reply), "ncclCommMemStats");
	if (!status)
		*value = reply.value;
	return status;
}

SECOND(ncclCommSuspend)
SECOND(ncclCommResume)
SECOND(ncclCommMemStats)
