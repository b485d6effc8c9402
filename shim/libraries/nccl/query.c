/* SPDX-License-Identifier: Apache-2.0
 *
 * What is asked: versions, ids, errors and what a communicator is; reductions of the
 * program's own; registrations.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shim/libraries/nccl/nccl.h"

/* What this front stands for, where there is no agent to ask. */
#define FRONT_VERSION 23203

/* --- errors ------------------------------------------------------------------------------- */

/* The thread's own last one; else the agent knows. A thread has the memory once it had an
 * error: a front that is opened late has little of its own for each. */
static __thread char *last;
static __thread bool last_here;

static bool last_room(void)
{
	if (!last)
		last = calloc(1, NCCL_TEXT);
	return last != NULL;
}

ncclResult_t nccl_fault(ncclResult_t status, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	if (last_room())
		vsnprintf(last, NCCL_TEXT, format, args);
	last_here = true;
	va_end(args);
	return status;
}

ncclResult_t nccl_answered(ncclResult_t status)
{
	if (status && status != ncclInProgress)
		last_here = false;
	return status;
}

STUB_EXPORT const char *ncclGetLastError(ncclComm_t comm)
{
	struct wire_ncclGetLastError body = {.major = VCUDA_ABI};
	struct wire_ncclGetLastError_reply reply = {0};
	const struct nccl_comm *found;
	ncclResult_t gone;
	CUresult status;
	bool entered;

	COUNT(ncclGetLastError);
	if (!last_room())
		return "no memory for the text";
	if (last_here)
		return last;
	/* Natively the communicator is not looked at; here it may say which agent knows. */
	found = vcuda_front_homes() > 1 && comm ? nccl_find(comm) : NULL;
	entered = found && nccl_enter(found->context, &gone);
	status = front_ask(OP_ncclGetLastError, &body, sizeof(body), &reply, sizeof(reply));
	if (entered)
		nccl_leave();
	if (status)
		snprintf(last, NCCL_TEXT, "the agent does not answer");
	else
		memcpy(last, reply.text, NCCL_TEXT);
	last[NCCL_TEXT - 1] = 0;
	return last;
}

STUB_EXPORT const char *ncclGetErrorString(ncclResult_t result)
{
	static const char *const texts[ncclNumResults] = {
		[ncclSuccess] = "no error",
		[ncclUnhandledCudaError] = "a call of CUDA failed",
		[ncclSystemError] = "a call of the system, or of another library, failed",
		[ncclInternalError] = "a fault inside of NCCL",
		[ncclInvalidArgument] = "an invalid argument",
		[ncclInvalidUsage] = "an invalid use",
		[ncclRemoteError] = "another rank's process ended, or the network failed",
		[ncclInProgress] = "NCCL is still at work",
		[ncclTimeout] = "NCCL waited too long",
	};

	COUNT(ncclGetErrorString);
	return (unsigned)result < ncclNumResults ? texts[result] : "unknown result";
}

/* A communicator that is made says how it went; of each a failure that came later. */
STUB_EXPORT ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t *asyncError)
{
	struct nccl_comm *found;
	struct wire_ncclCommGetAsyncError body = {.major = VCUDA_ABI};
	struct wire_ncclCommGetAsyncError_reply reply = {0};
	CUresult status;

	COUNT(ncclCommGetAsyncError);
	found = nccl_find(comm);
	if (!found || !asyncError)
		return found ? nccl_fault(ncclInvalidArgument, "no place for an error")
			     : ncclInvalidArgument;
	body.comm = found->handle;
	status =
		front_ask(OP_ncclCommGetAsyncError, &body, sizeof(body), &reply, sizeof(reply));
	if (status)
		return nccl_answered(front_status(&nccl_front, status));
	if (reply.plain.status)
		return nccl_answered((ncclResult_t)reply.plain.status);
	if (found->making && reply.error != ncclInProgress) {
		found->nranks = reply.nranks;
		found->rank = reply.rank;
		found->making = false;
	}
	*asyncError = nccl_answered(reply.error);
	return ncclSuccess;
}

/* --- versions and ids --------------------------------------------------------------------- */

/* That of the agent's library, once the program has begun to use CUDA: to begin it here would
 * be seen after a fork. */
STUB_EXPORT ncclResult_t ncclGetVersion(int *version)
{
	static _Atomic int known;
	struct wire_ncclGetVersion body = {.major = VCUDA_ABI};
	struct wire_ncclGetVersion_reply reply = {0};
	CUcontext context;

	COUNT(ncclGetVersion);
	if (!version)
		return nccl_fault(ncclInvalidArgument, "no place for a version");
	*version = atomic_load(&known);
	if (*version)
		return ncclSuccess;
	*version = FRONT_VERSION;
	if (cuCtxGetCurrent(&context) ||
		front_ask(OP_ncclGetVersion, &body, sizeof(body), &reply, sizeof(reply)) ||
		reply.plain.status || reply.version <= 0)
		return ncclSuccess;
	atomic_store(&known, reply.version);
	*version = reply.version;
	return ncclSuccess;
}

STUB_EXPORT ncclResult_t ncclGetUniqueId(ncclUniqueId *uniqueId)
{
	struct wire_ncclGetUniqueId body = {.major = VCUDA_ABI};
	struct wire_ncclGetUniqueId_reply reply = {0};
	ncclResult_t status;

	COUNT(ncclGetUniqueId);
	if (!uniqueId)
		return nccl_fault(ncclInvalidArgument, "no place for an id");
	status = vcuda_library_ask(&nccl_front, OP_ncclGetUniqueId, &body, sizeof(body), &reply,
		sizeof(reply), "ncclGetUniqueId");
	if (!status)
		*uniqueId = reply.id;
	return nccl_answered(status);
}

STUB_EXPORT ncclResult_t ncclCommGetUniqueId(ncclComm_t comm, ncclUniqueId *uniqueId)
{
	struct wire_ncclCommGetUniqueId body = {.major = VCUDA_ABI};
	struct wire_ncclCommGetUniqueId_reply reply = {0};
	const struct nccl_comm *found;
	ncclResult_t status;

	COUNT(ncclCommGetUniqueId);
	found = nccl_find(comm);
	if (!found)
		return ncclInvalidArgument;
	if (!uniqueId)
		return nccl_fault(ncclInvalidArgument, "no place for an id");
	body.comm = found->handle;
	status = nccl_ask_at(found->context, OP_ncclCommGetUniqueId, &body, sizeof(body),
		&reply, sizeof(reply), "ncclCommGetUniqueId");
	if (!status)
		*uniqueId = reply.id;
	return status;
}

/* --- communicators ------------------------------------------------------------------------ */

static ncclResult_t comm_tell(ncclComm_t comm, int *to, int (*what)(const struct nccl_comm *c))
{
	const struct nccl_comm *found = nccl_find(comm);

	if (!found)
		return ncclInvalidArgument;
	if (!to)
		return nccl_fault(ncclInvalidArgument, "no place for an answer");
	if (found->making)
		return nccl_fault(ncclInvalidUsage, "the communicator is not made yet");
	*to = what(found);
	return ncclSuccess;
}

static int count_of(const struct nccl_comm *comm)
{
	return comm->nranks;
}

static int rank_of(const struct nccl_comm *comm)
{
	return comm->rank;
}

static int device_of(const struct nccl_comm *comm)
{
	return comm->device;
}

STUB_EXPORT ncclResult_t ncclCommCount(const ncclComm_t comm, int *count)
{
	COUNT(ncclCommCount);
	return comm_tell(comm, count, count_of);
}

STUB_EXPORT ncclResult_t ncclCommUserRank(const ncclComm_t comm, int *rank)
{
	COUNT(ncclCommUserRank);
	return comm_tell(comm, rank, rank_of);
}

STUB_EXPORT ncclResult_t ncclCommCuDevice(const ncclComm_t comm, int *device)
{
	COUNT(ncclCommCuDevice);
	return comm_tell(comm, device, device_of);
}

/* --- registrations ------------------------------------------------------------------------ */

STUB_EXPORT ncclResult_t ncclCommRegister(
	const ncclComm_t comm, void *buff, size_t size, void **handle)
{
	struct nccl_comm *found;
	struct wire_ncclCommRegister body = {
		.major = VCUDA_ABI, .address = (uint64_t)(uintptr_t)buff, .bytes = size};

	COUNT(ncclCommRegister);
	found = nccl_find(comm);
	if (!found)
		return ncclInvalidArgument;
	if (!buff || !size || !handle)
		return nccl_fault(ncclInvalidArgument, "no memory, or no place for its handle");
	body.comm = found->handle;
	do
		body.number = atomic_fetch_add(&found->next, 1) + 1;
	while (!body.number);
	*handle = (void *)(uintptr_t)body.number;
	return nccl_answered(front_status(
		&nccl_front, front_post(OP_ncclCommRegister, &body, sizeof(body))));
}

STUB_EXPORT ncclResult_t ncclCommDeregister(const ncclComm_t comm, void *handle)
{
	const struct nccl_comm *found;
	struct wire_ncclCommDeregister body = {.major = VCUDA_ABI};

	COUNT(ncclCommDeregister);
	found = nccl_find(comm);
	if (!found)
		return ncclInvalidArgument;
	if (!handle || (uintptr_t)handle > UINT32_MAX)
		return nccl_fault(ncclInvalidArgument, "no handle of ncclCommRegister's");
	body.comm = found->handle;
	body.number = (uint32_t)(uintptr_t)handle;
	return nccl_answered(front_status(
		&nccl_front, front_post(OP_ncclCommDeregister, &body, sizeof(body))));
}

/* --- reductions of the program's own ------------------------------------------------------ */

static bool reduction_take(struct nccl_comm *comm, uint32_t *number)
{
	for (uint32_t i = 0; i < NCCL_REDUCTIONS / 64; i++) {
		uint64_t used = atomic_load(&comm->reductions[i]);

		while (~used) {
			uint64_t bit = ~used & (used + 1);

			if (!atomic_compare_exchange_weak(
				    &comm->reductions[i], &used, used | bit))
				continue;
			*number = i * 64 + (uint32_t)__builtin_ctzll(bit);
			return true;
		}
	}
	return false;
}

STUB_EXPORT ncclResult_t ncclRedOpCreatePreMulSum(ncclRedOp_t *op, void *scalar,
	ncclDataType_t datatype, ncclScalarResidence_t residence, ncclComm_t comm)
{
	struct nccl_comm *found;
	struct wire_ncclRedOpCreatePreMulSum body = {
		.major = VCUDA_ABI, .type = datatype, .residence = residence};

	COUNT(ncclRedOpCreatePreMulSum);
	found = nccl_find(comm);
	if (!found)
		return ncclInvalidArgument;
	if (!op || !scalar || !nccl_type_bytes(datatype) ||
		(residence != ncclScalarDevice && residence != ncclScalarHostImmediate))
		return nccl_fault(ncclInvalidArgument,
			"no operation or scalar, or no type %d or residence %d", datatype,
			residence);
	if (!reduction_take(found, &body.number))
		return nccl_fault(ncclInvalidUsage,
			"a communicator has more than %d operations", NCCL_REDUCTIONS);
	body.comm = found->handle;
	if (residence == ncclScalarDevice)
		body.scalar = (uint64_t)(uintptr_t)scalar;
	else
		memcpy(&body.scalar, scalar, nccl_type_bytes(datatype));
	*op = (ncclRedOp_t)(ncclNumOps + body.number);
	return nccl_answered(front_status(
		&nccl_front, front_post(OP_ncclRedOpCreatePreMulSum, &body, sizeof(body))));
}

bool nccl_has_reduction(const struct nccl_comm *comm, ncclRedOp_t op)
{
	uint32_t number = (uint32_t)op - ncclNumOps;

	if (op >= 0 && op < ncclNumOps)
		return true;
	return op >= 0 && number < NCCL_REDUCTIONS &&
	       ((atomic_load(&comm->reductions[number / 64]) &
			~atomic_load(&comm->destroyed[number / 64])) >>
			       number % 64 &
		       1);
}

/* Its number is free when the agent was told, so that no other operation gets it before. */
ncclResult_t nccl_reduction_end(ncclComm_t comm, uint32_t number)
{
	struct nccl_comm *found = nccl_find(comm);
	struct wire_ncclRedOpDestroy body = {.major = VCUDA_ABI, .number = number};
	uint64_t others = ~((uint64_t)1 << number % 64);
	ncclResult_t status;

	if (!found)
		return ncclInvalidArgument;
	if (!nccl_enter(found->context, &status))
		return status;
	body.comm = found->handle;
	status = nccl_answered(front_status(
		&nccl_front, front_post(OP_ncclRedOpDestroy, &body, sizeof(body))));
	nccl_leave();
	atomic_fetch_and(&found->destroyed[number / 64], others);
	atomic_fetch_and(&found->reductions[number / 64], others);
	return status;
}

STUB_EXPORT ncclResult_t ncclRedOpDestroy(ncclRedOp_t op, ncclComm_t comm)
{
	struct nccl_comm *found;
	uint32_t number = (uint32_t)op - ncclNumOps;

	COUNT(ncclRedOpDestroy);
	found = nccl_find(comm);
	if (!found)
		return ncclInvalidArgument;
	if (op < ncclNumOps || !nccl_has_reduction(found, op))
		return nccl_fault(ncclInvalidArgument,
			"there is no operation %d that could be destroyed", op);
	atomic_fetch_or(&found->destroyed[number / 64], (uint64_t)1 << number % 64);
	return nccl_note_destroyed(comm, number);
}

SECOND(ncclGetLastError)
SECOND(ncclGetErrorString)
SECOND(ncclCommGetAsyncError)
SECOND(ncclGetVersion)
SECOND(ncclGetUniqueId)
SECOND(ncclCommGetUniqueId)
SECOND(ncclCommCount)
SECOND(ncclCommUserRank)
SECOND(ncclCommCuDevice)
SECOND(ncclCommRegister)
SECOND(ncclCommDeregister)
SECOND(ncclRedOpCreatePreMulSum)
SECOND(ncclRedOpDestroy)
