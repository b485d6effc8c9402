/* SPDX-License-Identifier: Apache-2.0
 *
 * Communicators: the calls that have them made (comm_make.c), and their end.
 */
#include <stdlib.h>
#include <string.h>

#include "shim/libraries/nccl/nccl.h"

struct nccl_comm *nccl_find(ncclComm_t comm)
{
	struct nccl_comm *found =
		comm ? vcuda_front_object((uint64_t)(uintptr_t)comm, KIND_ncclComm) : NULL;

	if (!found)
		nccl_fault(ncclInvalidArgument, "the communicator is none, or is no more");
	return found;
}

void nccl_comm_drop(struct nccl_comm *comm)
{
	if (comm->handle)
		vcuda_front_release(comm->handle);
	nccl_windows_drop(comm);
	free(comm);
}

/* In the current context, or that of PARENT. NULL: *STATUS says why. */
static struct nccl_comm *comm_new(const struct nccl_comm *parent, ncclResult_t *status)
{
	struct nccl_comm *comm = calloc(1, sizeof(*comm));
	CUresult ret = CUDA_SUCCESS;
	CUdevice device = 0;

	*status = comm ? ncclSuccess : nccl_fault(ncclSystemError, "no memory");
	if (!comm)
		return NULL;
	if (parent) {
		comm->context = parent->context;
		comm->device = parent->device;
		ret = cuCtxPushCurrent(parent->context); /* the name's agent is the parent's */
	} else {
		ret = vcuda_front_context();
		if (!ret)
			ret = cuCtxGetCurrent(&comm->context);
		if (!ret)
			ret = cuCtxGetDevice(&device);
		comm->device = (int)device;
	}
	comm->handle = ret ? 0 : vcuda_front_mint(KIND_ncclComm, comm);
	if (parent && !ret)
		nccl_leave();
	if (comm->handle)
		return comm;
	*status = nccl_fault(ret ? front_status(&nccl_front, ret) : ncclSystemError,
		ret ? "there is no context" : "too many handles");
	free(comm);
	return NULL;
}

/* --- configurations ----------------------------------------------------------------------- */

static bool text_put(char to[NCCL_NAME], const char *text)
{
	size_t length = text ? strlen(text) : 0;

	if (length >= NCCL_NAME)
		return false;
	memcpy(to, text ? text : "", length);
	return true;
}

static ncclResult_t config_put(struct nccl_making *m, const ncclConfig_t *config)
{
	struct wire_ncclCommInitRank *body = m->body;
	size_t bytes;

	if (!config)
		return ncclSuccess;
	if (config->magic != NCCL_API_MAGIC || config->size < offsetof(ncclConfig_t, netName))
		return nccl_fault(ncclInvalidArgument,
			"the configuration was not made by NCCL_CONFIG_INITIALIZER");
	/* A newer program's are hints that this front does not know. */
	bytes = config->size < sizeof(*config) ? config->size : sizeof(*config);
	memcpy(&body->config, config, bytes);
	body->config.size = bytes;
	body->configured = true;
	m->nonblocking = config->blocking == 0;
	if ((bytes > offsetof(ncclConfig_t, netName) &&
		    !text_put(body->net_name, body->config.netName)) ||
		(bytes > offsetof(ncclConfig_t, commName) &&
			!text_put(body->comm_name, body->config.commName)))
		return nccl_fault(ncclInvalidArgument,
			"a text of the configuration has %d characters or more", NCCL_NAME);
	body->config.netName = body->config.commName = NULL;
	return ncclSuccess;
}

/* A communicator that is to be made, with what travels behind its struct. */
static ncclResult_t making_begin(struct nccl_making *m, enum nccl_form form, ncclComm_t *to,
	const struct nccl_comm *parent, const ncclConfig_t *config, const void *more,
	size_t more_bytes, uint32_t count)
{
	ncclResult_t status;

	if (!to)
		return nccl_fault(ncclInvalidArgument, "no place for a communicator");
	*m = (struct nccl_making){.to = to, .bytes = sizeof(*m->body) + more_bytes};
	m->comm = comm_new(parent, &status);
	if (!m->comm)
		return status;
	m->body = calloc(1, m->bytes);
	if (!m->body) {
		nccl_comm_drop(m->comm);
		return nccl_fault(ncclSystemError, "no memory");
	}
	*m->body = (struct wire_ncclCommInitRank){
		.major = VCUDA_ABI,
		.form = form,
		.comm = m->comm->handle,
		.parent = parent ? parent->handle : 0,
		.count = count,
	};
	if (more_bytes)
		memcpy(m->body + 1, more, more_bytes);
	status = config_put(m, config);
	if (status)
		nccl_unmake(m, 1);
	return status;
}

static ncclResult_t make_rank(ncclComm_t *to, int nranks, const ncclUniqueId *ids, int count,
	int rank, const ncclConfig_t *config)
{
	struct nccl_making m;
	ncclResult_t status;

	if (nranks < 1 || nranks > NCCL_RANKS || rank < 0 || rank >= nranks)
		return nccl_fault(
			ncclInvalidArgument, "there is no rank %d of %d", rank, nranks);
	if (!ids || count < 1 || (unsigned)count > NCCL_IDS)
		return nccl_fault(ncclInvalidArgument, "%d unique ids; there may be 1 to %u",
			count, NCCL_IDS);
	status = making_begin(&m, NCCL_FORM_RANK, to, NULL, config, ids,
		(size_t)count * sizeof(*ids), (uint32_t)count);
	if (status)
		return status;
	m.body->nranks = m.comm->nranks = nranks;
	m.body->rank = m.comm->rank = rank;
	return nccl_note_making(&m);
}

STUB_EXPORT ncclResult_t ncclCommInitRank(
	ncclComm_t *comm, int nranks, ncclUniqueId commId, int rank)
{
	COUNT(ncclCommInitRank);
	return make_rank(comm, nranks, &commId, 1, rank, NULL);
}

STUB_EXPORT ncclResult_t ncclCommInitRankConfig(
	ncclComm_t *comm, int nranks, ncclUniqueId commId, int rank, ncclConfig_t *config)
{
	COUNT(ncclCommInitRankConfig);
	return make_rank(comm, nranks, &commId, 1, rank, config);
}

STUB_EXPORT ncclResult_t ncclCommInitRankScalable(ncclComm_t *newcomm, int nranks, int myrank,
	int nId, ncclUniqueId *commIds, ncclConfig_t *config)
{
	COUNT(ncclCommInitRankScalable);
	return make_rank(newcomm, nranks, commIds, nId, myrank, config);
}

/* One rank for each device, in one group. */
static ncclResult_t make_all(
	ncclComm_t *comm, int ndev, const int *devlist, const ncclUniqueId *id)
{
	ncclResult_t status = ncclSuccess, ended;

	ncclGroupStart();
	for (int i = 0; i < ndev && !status; i++) {
		CUcontext context, popped;
		CUresult ret = cuDevicePrimaryCtxRetain(&context, devlist ? devlist[i] : i);

		if (!ret)
			ret = cuCtxPushCurrent(context);
		if (ret) {
			status = nccl_fault(ncclUnhandledCudaError, "there is no device %d",
				devlist ? devlist[i] : i);
			break;
		}
		status = make_rank(&comm[i], ndev, id, 1, i, NULL);
		cuCtxPopCurrent(&popped);
	}
	if (status)
		nccl_group_fault(status);
	ended = ncclGroupEnd();
	return status ? status : ended;
}

STUB_EXPORT ncclResult_t ncclCommInitAll(ncclComm_t *comm, int ndev, const int *devlist)
{
	ncclUniqueId id;
	ncclResult_t status;

	COUNT(ncclCommInitAll);
	if (!comm || ndev < 1 || (unsigned)ndev > NCCL_MAKINGS)
		return nccl_fault(ncclInvalidArgument, "%d devices; there may be 1 to %u", ndev,
			NCCL_MAKINGS);
	for (int i = 0; devlist && i < ndev; i++)
		for (int k = 0; k < i; k++)
			if (devlist[i] == devlist[k])
				return nccl_fault(ncclInvalidUsage,
					"the list of devices has device %d twice", devlist[i]);
	status = ncclGetUniqueId(&id);
	return status ? status : make_all(comm, ndev, devlist, &id);
}

STUB_EXPORT ncclResult_t ncclCommSplit(
	ncclComm_t comm, int color, int key, ncclComm_t *newcomm, ncclConfig_t *config)
{
	const struct nccl_comm *parent;
	struct nccl_making m;
	ncclResult_t status;

	COUNT(ncclCommSplit);
	parent = nccl_find(comm);
	if (!parent)
		return ncclInvalidArgument;
	if (color < NCCL_SPLIT_NOCOLOR)
		return nccl_fault(ncclInvalidArgument, "there is no color %d", color);
	status = making_begin(&m, NCCL_FORM_SPLIT, newcomm, parent, config, NULL, 0, 0);
	if (status)
		return status;
	m.nonblocking &= color != NCCL_SPLIT_NOCOLOR; /* what nobody has cannot be asked */
	m.body->nranks = color;
	m.body->rank = key;
	return nccl_note_making(&m);
}

STUB_EXPORT ncclResult_t ncclCommShrink(ncclComm_t comm, int *excludeRanksList,
	int excludeRanksCount, ncclComm_t *newcomm, ncclConfig_t *config, int shrinkFlags)
{
	const struct nccl_comm *parent;
	struct nccl_making m;
	ncclResult_t status;

	COUNT(ncclCommShrink);
	parent = nccl_find(comm);
	if (!parent)
		return ncclInvalidArgument;
	if (!excludeRanksList || excludeRanksCount < 1 ||
		(unsigned)excludeRanksCount > NCCL_EXCLUDED)
		return nccl_fault(
			ncclInvalidArgument, "%d ranks to leave out", excludeRanksCount);
	status = making_begin(&m, NCCL_FORM_SHRINK, newcomm, parent, config, excludeRanksList,
		(size_t)excludeRanksCount * sizeof(*excludeRanksList),
		(uint32_t)excludeRanksCount);
	if (status)
		return status;
	m.body->nranks = shrinkFlags;
	return nccl_note_making(&m);
}

/* What NCCL says of the arguments; NULL: nothing. */
static const char *grow_fault(const struct nccl_comm *parent, int nranks, int rank, bool id)
{
	if (nranks < 1 || nranks > NCCL_RANKS || (parent && nranks <= parent->nranks))
		return "a communicator that grows has more ranks than before";
	if (parent)
		return rank == -1 ? NULL
				  : "a rank that it has keeps its number, which is -1 here";
	if (!id)
		return "a rank that joins needs the id of ncclCommGetUniqueId";
	return rank >= 0 && rank < nranks ? NULL : "a rank that joins has a number of its own";
}

STUB_EXPORT ncclResult_t ncclCommGrow(ncclComm_t comm, int nRanks, const ncclUniqueId *uniqueId,
	int rank, ncclComm_t *newcomm, ncclConfig_t *config)
{
	const struct nccl_comm *parent = NULL;
	struct nccl_making m;
	ncclResult_t status;
	const char *fault;

	COUNT(ncclCommGrow);
	if (!newcomm)
		return nccl_fault(ncclInvalidArgument, "no place for a communicator");
	*newcomm = NULL;
	if (comm) {
		parent = nccl_find(comm);
		if (!parent)
			return ncclInvalidArgument;
	}
	fault = grow_fault(parent, nRanks, rank, uniqueId);
	if (fault)
		return nccl_fault(
			ncclInvalidArgument, "rank %d of %d: %s", rank, nRanks, fault);
	status = making_begin(&m, NCCL_FORM_GROW, newcomm, parent, config, uniqueId,
		uniqueId ? sizeof(*uniqueId) : 0, uniqueId != NULL);
	if (status)
		return status;
	m.body->nranks = m.comm->nranks = nRanks;
	m.body->rank = rank;
	m.comm->rank = parent ? parent->rank : rank;
	return nccl_note_making(&m);
}

/* --- their end ---------------------------------------------------------------------------- */

static ncclResult_t comm_end(const struct nccl_comm *comm, enum nccl_end end)
{
	struct wire_ncclCommDestroy body = {
		.comm = comm->handle, .major = VCUDA_ABI, .end = end};
	struct wire_ncclCommDestroy_reply reply = {0};
	ncclResult_t gone;
	CUresult status;

	if (vcuda_front_homes() == 1) {
		status = front_ask(
			OP_ncclCommDestroy, &body, sizeof(body), &reply, sizeof(reply));
		return nccl_answered(status ? front_status(&nccl_front, status)
					    : (ncclResult_t)reply.plain.status);
	}
	/* Ranks at other agents end by calls of their own, which this one must not wait for. */
	if (!nccl_enter(comm->context, &gone))
		return gone;
	status = front_post(OP_ncclCommDestroy, &body, sizeof(body));
	nccl_leave();
	return nccl_answered(front_status(&nccl_front, status));
}

/* The name is no more, whatever the agent answers. */
static ncclResult_t comm_leave(ncclComm_t comm, enum nccl_end end)
{
	struct nccl_comm *found = comm ? nccl_find(comm) : NULL;
	ncclResult_t status;

	if (!found)
		return comm ? ncclInvalidArgument : ncclSuccess;
	if (!vcuda_front_release(found->handle))
		return ncclInvalidArgument; /* another thread was first */
	status = comm_end(found, end);
	nccl_windows_drop(found);
	free(found);
	return status;
}

STUB_EXPORT ncclResult_t ncclCommDestroy(ncclComm_t comm)
{
	COUNT(ncclCommDestroy);
	return comm_leave(comm, NCCL_END_DESTROY);
}

STUB_EXPORT ncclResult_t ncclCommAbort(ncclComm_t comm)
{
	COUNT(ncclCommAbort);
	return comm_leave(comm, NCCL_END_ABORT);
}

STUB_EXPORT ncclResult_t ncclCommFinalize(ncclComm_t comm)
{
	const struct nccl_comm *found;

	COUNT(ncclCommFinalize);
	found = nccl_find(comm);
	return found ? comm_end(found, NCCL_END_FINALIZE) : ncclInvalidArgument;
}

STUB_EXPORT ncclResult_t ncclCommRevoke(ncclComm_t comm, int revokeFlags)
{
	const struct nccl_comm *found;

	COUNT(ncclCommRevoke);
	found = nccl_find(comm);
	if (!found)
		return ncclInvalidArgument;
	if (revokeFlags != NCCL_REVOKE_DEFAULT)
		return nccl_fault(ncclInvalidArgument, "there are no flags %#x", revokeFlags);
	return comm_end(found, NCCL_END_REVOKE);
}

SECOND(ncclCommInitRank)
SECOND(ncclCommInitRankConfig)
SECOND(ncclCommInitRankScalable)
SECOND(ncclCommInitAll)
SECOND(ncclCommSplit)
SECOND(ncclCommShrink)
SECOND(ncclCommGrow)
SECOND(ncclCommDestroy)
SECOND(ncclCommAbort)
SECOND(ncclCommFinalize)
SECOND(ncclCommRevoke)
