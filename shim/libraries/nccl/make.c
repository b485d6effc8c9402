/* SPDX-License-Identifier: Apache-2.0
 *
 * The frames that make communicators: one for each rank of this process.
 */
#include <stdlib.h>

#include "shim/libraries/nccl/nccl.h"

void nccl_unmake(struct nccl_making *m, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		*m[i].to = NULL;
		nccl_comm_drop(m[i].comm);
		free(m[i].body);
	}
}

/* Posts one of a group, or the last where nobody waits for it. */
static ncclResult_t making_post(const struct nccl_making *m)
{
	CUcontext popped;
	CUresult status = cuCtxPushCurrent(m->comm->context);

	if (status)
		return front_status(&nccl_front, status);
	status = front_post(OP_ncclCommInitRank, m->body, m->bytes);
	cuCtxPopCurrent(&popped);
	return front_status(&nccl_front, status);
}

static ncclResult_t making_ask(
	const struct nccl_making *m, struct wire_ncclCommInitRank_reply *reply)
{
	CUcontext popped;
	CUresult status = cuCtxPushCurrent(m->comm->context);
	int answer;

	if (status)
		return front_status(&nccl_front, status);
	answer = vcuda_library_ask(&nccl_front, OP_ncclCommInitRank, m->body, m->bytes, reply,
		sizeof(*reply), "ncclCommInitRank");
	cuCtxPopCurrent(&popped);
	return answer;
}

/* What the agent says of each of them becomes the program's. */
static void making_made(struct nccl_making *m, uint32_t count, bool asked,
	const struct wire_ncclCommInitRank_reply *reply)
{
	for (uint32_t i = 0; i < count; i++) {
		struct nccl_comm *comm = m[i].comm;

		free(m[i].body);
		if (asked && reply->made[i].rank < 0) { /* no color: it has none */
			*m[i].to = NULL;
			nccl_comm_drop(comm);
			continue;
		}
		if (asked) {
			comm->nranks = reply->made[i].nranks;
			comm->rank = reply->made[i].rank;
		}
		comm->making = !asked;
		*m[i].to = (ncclComm_t)(uintptr_t)comm->handle;
	}
}

ncclResult_t nccl_make(struct nccl_making *m, uint32_t count)
{
	struct wire_ncclCommInitRank_reply reply = {0};
	uint32_t number = count > 1 ? nccl_group_number() : 0;
	bool asked = !m[count - 1].nonblocking;
	ncclResult_t status = ncclSuccess;

	for (uint32_t i = 0; i < count && !status; i++) {
		m[i].body->more = i + 1 < count;
		m[i].body->group = number;
		if (i + 1 < count || !asked)
			status = making_post(&m[i]);
		else
			status = making_ask(&m[i], &reply);
	}
	if (status) {
		nccl_unmake(m, count);
		return nccl_answered(status);
	}
	making_made(m, count, asked, &reply);
	return asked ? ncclSuccess : ncclInProgress;
}
