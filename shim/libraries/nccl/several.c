/* SPDX-License-Identifier: Apache-2.0
 *
 * Ranks of this process at several agents: what one call or group has at each of them is under
 * way at once, since none of them is done before all others have begun.
 */
#include "shim/libraries/nccl/nccl.h"

#define SLICE_NS 20000000u /* one is waited for while the others are looked at */
/* What the others get once one has failed: they may wait for its ranks. */
#define AFTER_SLICES 250

bool nccl_enter(CUcontext context, ncclResult_t *status)
{
	CUresult ret = cuCtxPushCurrent(context);

	*status = ret ? nccl_fault(front_status(&nccl_front, ret),
				"the communicator's context is gone")
		      : ncclSuccess;
	return !ret;
}

void nccl_leave(void)
{
	CUcontext popped;

	cuCtxPopCurrent(&popped);
}

ncclResult_t nccl_ask_at(CUcontext context, uint16_t op, const void *body, size_t body_bytes,
	void *reply, size_t reply_bytes, const char *name)
{
	ncclResult_t status;

	if (!nccl_enter(context, &status))
		return status;
	status = vcuda_library_ask(&nccl_front, op, body, body_bytes, reply, reply_bytes, name);
	nccl_leave();
	return nccl_answered(status);
}

/* The agent's own text, since ncclGetLastError will ask the one that is current then. */
static ncclResult_t failed_at(ncclResult_t status, CUcontext context)
{
	struct wire_ncclGetLastError body = {.major = VCUDA_ABI};
	struct wire_ncclGetLastError_reply reply = {0};

	if (front_ask(OP_ncclGetLastError, &body, sizeof(body), &reply, sizeof(reply)))
		return nccl_fault(
			status, "agent %u does not answer any more", vcuda_front_home(context));
	reply.text[NCCL_TEXT - 1] = 0;
	return nccl_fault(status, "agent %u: %s", vcuda_front_home(context), reply.text);
}

static void ask_begin(struct nccl_ask *a)
{
	CUresult status;

	memset(a->frame.reply, 0, a->frame.reply_bytes);
	if (!nccl_enter(a->context, &a->status))
		return;
	a->pending = vcuda_front_begin(&a->frame, &status);
	if (!a->pending)
		a->status = nccl_fault(front_status(&nccl_front, status),
			"agent %u cannot be asked", vcuda_front_home(a->context));
	nccl_leave();
}

static void ask_end(struct nccl_ask *a)
{
	struct library_reply first;
	CUresult status = vcuda_front_end(a->pending, &a->frame);

	a->pending = NULL;
	memcpy(&first, a->frame.reply, sizeof(first));
	a->status = status ? front_status(&nccl_front, status) : (ncclResult_t)first.status;
	if (a->status)
		failed_at(a->status, a->context);
}

/* Waits a while; whether it is over. */
static bool ask_wait(struct nccl_ask *a)
{
	ncclResult_t gone;

	if (!a->pending)
		return true;
	if (!nccl_enter(a->context, &gone)) {
		vcuda_front_abandon(a->pending);
		a->pending = NULL;
		a->abandoned = true;
		a->status = gone;
		return true;
	}
	if (vcuda_front_wait(a->pending, SLICE_NS))
		ask_end(a);
	nccl_leave();
	return !a->pending;
}

static void asks_abandon(struct nccl_ask *asks, unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		if (asks[i].pending) {
			vcuda_front_abandon(asks[i].pending);
			asks[i].pending = NULL;
			asks[i].abandoned = true;
			asks[i].status = ncclRemoteError;
		}
}

ncclResult_t nccl_ask_all(struct nccl_ask *asks, unsigned count)
{
	ncclResult_t status = ncclSuccess;
	unsigned after = 0;
	bool over = false;

	/* All, even behind a failure: an agent that has had the rest of a group gets its end.
	 */
	for (unsigned i = 0; i < count; i++) {
		ask_begin(&asks[i]);
		if (!status)
			status = asks[i].status;
	}
	while (!over) {
		over = true;
		for (unsigned i = 0; i < count; i++) {
			over &= ask_wait(&asks[i]);
			if (!status)
				status = asks[i].status;
		}
		if (status && ++after > AFTER_SLICES) {
			asks_abandon(asks, count);
			over = true;
		}
	}
	return status;
}

/* Ranks of different NCCLs do not understand each other, and one that waits for ranks at an
 * agent without NCCL waits long. */
ncclResult_t nccl_agree(const CUcontext *contexts, unsigned count)
{
	int32_t version = 0;

	for (unsigned i = 0; i < count; i++) {
		struct wire_ncclGetVersion body = {.major = VCUDA_ABI};
		struct wire_ncclGetVersion_reply reply = {0};
		ncclResult_t status;

		if (!nccl_enter(contexts[i], &status))
			return status;
		status = vcuda_library_ask(&nccl_front, OP_ncclGetVersion, &body, sizeof(body),
			&reply, sizeof(reply), "ncclCommInitRank");
		if (status)
			failed_at(status, contexts[i]);
		nccl_leave();
		if (status)
			return status;
		if (version && version != reply.version)
			return nccl_fault(ncclInvalidUsage,
				"agents have different versions of NCCL: %u has %d, another %d",
				vcuda_front_home(contexts[i]), reply.version, version);
		version = reply.version;
	}
	return ncclSuccess;
}
