/* SPDX-License-Identifier: Apache-2.0
 *
 * The functions under NVIDIA's names, and groups: a thread's calls are kept until the group's
 * end, and then done for each communicator together.
 */
#include <stdlib.h>
#include <string.h>

#include "softgpu/nccl/nccl.h"

#define VERSION 23203

/* An exported function of that name and parameters, declared and begun. */
#define FUNCTION(NAME, ...)                                                                    \
	NCCL_EXPORT ncclResult_t NAME(__VA_ARGS__);                                            \
	NCCL_EXPORT ncclResult_t NAME(__VA_ARGS__)

struct issued {
	struct ncclComm *comm;
	struct softnccl_operation operation;
};

static _Thread_local struct {
	unsigned depth;
	ncclResult_t status;
	struct issued *issued;
	int count;
	struct softnccl_making *makings;
	int making_count;
} group;

ncclResult_t softnccl_keep(ncclResult_t status)
{
	if (status && group.depth && !group.status)
		group.status = status;
	return status;
}

/* --- groups ------------------------------------------------------------------------------- */

FUNCTION(ncclGroupStart, void)
{
	group.depth++;
	return ncclSuccess;
}

/* Those of one communicator after the other, in the order of their first. */
static ncclResult_t issue(struct issued *issued, int count)
{
	struct softnccl_operation *one = malloc((size_t)count * sizeof(*one));
	ncclResult_t status = one ? ncclSuccess : softnccl_fail(ncclSystemError, "no memory");

	for (int i = 0; i < count && !status; i++) {
		struct ncclComm *comm = issued[i].comm;
		int n = 0;

		if (!comm)
			continue;
		for (int k = i; k < count; k++)
			if (issued[k].comm == comm) {
				one[n++] = issued[k].operation;
				issued[k].comm = NULL;
			}
		status = softnccl_submit(comm, one, n);
	}
	free(one);
	return status;
}

/* Of the group, which is no more. */
static void group_free(void)
{
	for (int i = 0; i < group.making_count; i++)
		free(group.makings[i].excluded);
	free(group.makings);
	free(group.issued);
	memset(&group, 0, sizeof(group));
}

FUNCTION(ncclGroupEnd, void)
{
	ncclResult_t status;

	if (!group.depth)
		return softnccl_fail(ncclInvalidUsage, "ncclGroupEnd without ncclGroupStart");
	if (--group.depth)
		return ncclSuccess;
	status = group.status;
	if (!status && group.making_count)
		status = softnccl_make(group.makings, group.making_count);
	if (!status && group.count)
		status = issue(group.issued, group.count);
	group_free();
	return status;
}

typedef struct {
	size_t size;
	unsigned magic, version;
	float microseconds;
} ncclSimInfo_t;
#define SIM_MAGIC 0x74685283

/* As if each operation took a while and then went at 1 GB/s; nothing is done. */
FUNCTION(ncclGroupSimulateEnd, ncclSimInfo_t *info)
{
	ncclResult_t status;
	float all = 0;

	if (!info || !group.depth)
		return ncclGroupEnd();
	if (--group.depth)
		return ncclSuccess;
	status = group.status;
	if (!status && (info->magic != SIM_MAGIC || group.making_count))
		status = softnccl_fail(ncclInvalidArgument, "no place for an estimate");
	for (int i = 0; i < group.count; i++)
		all += 10 + (float)(group.issued[i].operation.count *
				    softnccl_size(group.issued[i].operation.type)) /
				    1000;
	if (!status)
		info->microseconds = all;
	group_free();
	return status;
}

/* --- making communicators ----------------------------------------------------------------- */

ncclResult_t softnccl_make_later(struct softnccl_making *m)
{
	struct softnccl_making *more;
	ncclResult_t status;

	if ((!m->to && !m->window_to && !m->pauses) || cuCtxGetCurrent(&m->context) ||
		(!m->parent && !m->context))
		return softnccl_keep(softnccl_fail(
			ncclInvalidArgument, "no communicator, or no current context"));
	if (m->parent)
		m->context = m->parent->context;
	if (m->to)
		*m->to = NULL;
	if (!group.depth) {
		status = softnccl_make(m, 1);
		free(m->excluded);
		return status;
	}
	more = realloc(group.makings, (size_t)(group.making_count + 1) * sizeof(*more));
	if (!more)
		return softnccl_keep(softnccl_fail(ncclSystemError, "no memory"));
	group.makings = more;
	more[group.making_count++] = *m;
	return ncclSuccess;
}

static ncclResult_t config_check(const ncclConfig_t *config)
{
	return !config || config->magic == NCCL_MAGIC
		       ? ncclSuccess
		       : softnccl_keep(softnccl_fail(ncclInvalidArgument,
				 "the configuration is none of NCCL_CONFIG_INITIALIZER's"));
}

FUNCTION(ncclGetUniqueId, ncclUniqueId *id)
{
	return softnccl_call(id);
}

FUNCTION(ncclCommInitRankConfig, ncclComm_t *comm, int ranks, ncclUniqueId id, int rank,
	ncclConfig_t *config)
{
	struct softnccl_making m = {.to = comm, .id = id, .rank = rank, .ranks = ranks};
	ncclResult_t status = config_check(config);

	return status ? status : softnccl_make_later(&m);
}

FUNCTION(ncclCommInitRank, ncclComm_t *comm, int ranks, ncclUniqueId id, int rank)
{
	return ncclCommInitRankConfig(comm, ranks, id, rank, NULL);
}

/* All meet at the first. */
FUNCTION(ncclCommInitRankScalable, ncclComm_t *comm, int ranks, int rank, int count,
	ncclUniqueId *ids, ncclConfig_t *config)
{
	if (!ids || count < 1)
		return softnccl_keep(softnccl_fail(ncclInvalidArgument, "no id"));
	return ncclCommInitRankConfig(comm, ranks, ids[0], rank, config);
}

FUNCTION(ncclCommSplit, ncclComm_t comm, int color, int key, ncclComm_t *to,
	ncclConfig_t *config)
{
	struct softnccl_making m = {.to = to, .parent = comm, .color = color, .key = key};
	ncclResult_t status = config_check(config);

	if (!status && (!softnccl_is_comm(comm) || color < -1))
		status = softnccl_keep(softnccl_fail(
			ncclInvalidArgument, "no communicator, or no color %d", color));
	return status ? status : softnccl_make_later(&m);
}

FUNCTION(ncclCommShrink, ncclComm_t comm, int *excluded, int count, ncclComm_t *to,
	ncclConfig_t *config, int flags)
{
	struct softnccl_making m = {.to = to, .parent = comm, .shrinks = true};
	ncclResult_t status = config_check(config);

	if (!status && (!softnccl_is_comm(comm) || !excluded || count < 1 || flags & ~1))
		status = softnccl_keep(softnccl_fail(ncclInvalidArgument,
			"no communicator, nobody to leave out, or no flags %#x",
			(unsigned)flags));
	if (status)
		return status;
	m.key = comm->rank;
	m.excluded_count = count;
	m.excluded = malloc((size_t)count * sizeof(*excluded));
	if (!m.excluded)
		return softnccl_keep(softnccl_fail(ncclSystemError, "no memory"));
	memcpy(m.excluded, excluded, (size_t)count * sizeof(*excluded));
	return softnccl_make_later(&m);
}

FUNCTION(ncclCommGetUniqueId, ncclComm_t comm, ncclUniqueId *id)
{
	ncclResult_t status;

	if (!softnccl_is_comm(comm) || !id)
		return softnccl_fail(ncclInvalidArgument, "no communicator, or no id");
	if (atomic_exchange(&comm->called, true))
		return softnccl_fail(
			ncclInvalidUsage, "the communicator did not grow by its last id yet");
	status = softnccl_call(id);
	if (status)
		comm->called = false;
	return status;
}

FUNCTION(ncclCommGrow, ncclComm_t comm, int ranks, const ncclUniqueId *id, int rank,
	ncclComm_t *to, ncclConfig_t *config)
{
	struct softnccl_making m = {.to = to,
		.parent = comm,
		.rank = comm ? 0 : rank,
		.ranks = ranks,
		.grows = true,
		.called = id != NULL};
	ncclResult_t status = config_check(config);

	if (!status && comm && !softnccl_is_comm(comm))
		status = softnccl_keep(softnccl_fail(ncclInvalidArgument, "no communicator"));
	if (!status && (ranks <= (comm ? comm->ranks : 0) || (comm ? rank != -1 : !id)))
		status = softnccl_keep(softnccl_fail(ncclInvalidArgument,
			"it does not grow to %d ranks, or no id for rank %d", ranks, rank));
	if (id)
		m.id = *id;
	return status ? status : softnccl_make_later(&m);
}

/* --- what is asked ------------------------------------------------------------------------ */

FUNCTION(ncclGetVersion, int *version)
{
	if (!version)
		return softnccl_fail(ncclInvalidArgument, "no place for a version");
	*version = VERSION;
	return ncclSuccess;
}

FUNCTION(ncclCommGetAsyncError, ncclComm_t comm, ncclResult_t *error)
{
	if (!softnccl_is_comm(comm) || !error)
		return softnccl_fail(ncclInvalidArgument, "no communicator");
	*error = (ncclResult_t)comm->error;
	return ncclSuccess;
}

FUNCTION(ncclCommCount, ncclComm_t comm, int *count)
{
	if (!softnccl_is_comm(comm) || !count)
		return softnccl_fail(ncclInvalidArgument, "no communicator");
	*count = comm->ranks;
	return ncclSuccess;
}

FUNCTION(ncclCommUserRank, ncclComm_t comm, int *rank)
{
	if (!softnccl_is_comm(comm) || !rank)
		return softnccl_fail(ncclInvalidArgument, "no communicator");
	*rank = comm->rank;
	return ncclSuccess;
}

FUNCTION(ncclCommCuDevice, ncclComm_t comm, int *device)
{
	if (!softnccl_is_comm(comm) || !device)
		return softnccl_fail(ncclInvalidArgument, "no communicator");
	*device = comm->table[comm->rank].ordinal;
	return ncclSuccess;
}

/* Memory needs no registration here: the handle says that it was asked for. */
FUNCTION(ncclCommRegister, ncclComm_t comm, void *memory, size_t bytes, void **handle)
{
	if (!softnccl_is_comm(comm) || !memory || !bytes || !handle)
		return softnccl_fail(ncclInvalidArgument, "no communicator, or no memory");
	*handle = malloc(1);
	return *handle ? ncclSuccess : ncclSystemError;
}

FUNCTION(ncclCommDeregister, ncclComm_t comm, void *handle)
{
	if (!softnccl_is_comm(comm) || !handle)
		return softnccl_fail(ncclInvalidArgument, "no communicator, or no handle");
	free(handle);
	return ncclSuccess;
}

/* --- reductions of the program's own ------------------------------------------------------ */

FUNCTION(ncclRedOpCreatePreMulSum, int *op, void *scalar, int type, int residence,
	ncclComm_t comm)
{
	int at = 0;

	if (!softnccl_is_comm(comm) || !op || !scalar || !softnccl_size(type) ||
		residence < 0 || residence > 1)
		return softnccl_fail(
			ncclInvalidArgument, "no communicator, operation or scalar");
	while (at < NCCL_REDUCTIONS && comm->reductions[at].used)
		at++;
	if (at == NCCL_REDUCTIONS)
		return softnccl_fail(ncclInvalidUsage, "too many operations");
	comm->reductions[at] = (struct softnccl_reduction){
		.used = true, .on_device = !residence, .type = type};
	if (residence)
		memcpy(&comm->reductions[at].scalar, scalar, softnccl_size(type));
	else
		comm->reductions[at].scalar = (uint64_t)(uintptr_t)scalar;
	*op = NCCL_OPS + at;
	return ncclSuccess;
}

FUNCTION(ncclRedOpDestroy, int op, ncclComm_t comm)
{
	int at = op - NCCL_OPS;

	if (!softnccl_is_comm(comm) || at < 0 || at >= NCCL_REDUCTIONS ||
		!comm->reductions[at].used)
		return softnccl_fail(ncclInvalidArgument, "there is no operation %d", op);
	comm->reductions[at].used = false;
	return ncclSuccess;
}

/* --- operations --------------------------------------------------------------------------- */

static bool reduces(enum softnccl_what what)
{
	return what == NCCL_ALL_REDUCE || what == NCCL_REDUCE || what == NCCL_REDUCE_SCATTER;
}

static ncclResult_t check(struct ncclComm *comm, struct softnccl_operation *o)
{
	int at = o->op - NCCL_OPS;

	if (!softnccl_is_comm(comm))
		return softnccl_fail(ncclInvalidArgument, "it is no communicator");
	if (comm->suspended)
		return softnccl_fail(ncclInvalidUsage, "the communicator is suspended");
	if (!softnccl_size(o->type))
		return softnccl_fail(ncclInvalidArgument, "there is no type %d", o->type);
	if (o->peer < 0 || o->peer >= comm->ranks)
		return softnccl_fail(
			ncclInvalidArgument, "there is no rank %d of %d", o->peer, comm->ranks);
	if (!reduces(o->what) || (o->op >= 0 && o->op < NCCL_OPS))
		return ncclSuccess;
	if (at < 0 || at >= NCCL_REDUCTIONS || !comm->reductions[at].used)
		return softnccl_fail(ncclInvalidArgument, "there is no operation %d", o->op);
	if (comm->reductions[at].type != o->type)
		return softnccl_fail(ncclInvalidArgument, "operation %d is for type %d, not %d",
			o->op, comm->reductions[at].type, o->type);
	o->own = comm->reductions[at];
	return ncclSuccess;
}

ncclResult_t softnccl_operate(struct ncclComm *comm, struct softnccl_operation o)
{
	ncclResult_t status = check(comm, &o);
	struct issued *more;

	if (status)
		return softnccl_keep(status);
	if (!group.depth)
		return softnccl_submit(comm, &o, 1);
	more = realloc(group.issued, (size_t)(group.count + 1) * sizeof(*more));
	if (!more)
		return softnccl_keep(softnccl_fail(ncclSystemError, "no memory"));
	group.issued = more;
	more[group.count++] = (struct issued){.comm = comm, .operation = o};
	return ncclSuccess;
}

FUNCTION(ncclAllReduce, const void *send, void *receive, size_t count, int type, int op,
	ncclComm_t comm, CUstream stream)
{
	return softnccl_operate(comm, (struct softnccl_operation){NCCL_ALL_REDUCE, send,
					      receive, count, type, op, 0, stream, {0}, 0, 0});
}

FUNCTION(ncclBroadcast, const void *send, void *receive, size_t count, int type, int root,
	ncclComm_t comm, CUstream stream)
{
	return softnccl_operate(comm, (struct softnccl_operation){NCCL_BROADCAST, send, receive,
					      count, type, 0, root, stream, {0}, 0, 0});
}

FUNCTION(ncclBcast, void *buffer, size_t count, int type, int root, ncclComm_t comm,
	CUstream stream)
{
	return ncclBroadcast(buffer, buffer, count, type, root, comm, stream);
}

FUNCTION(ncclReduce, const void *send, void *receive, size_t count, int type, int op, int root,
	ncclComm_t comm, CUstream stream)
{
	return softnccl_operate(comm, (struct softnccl_operation){NCCL_REDUCE, send, receive,
					      count, type, op, root, stream, {0}, 0, 0});
}

FUNCTION(ncclAllGather, const void *send, void *receive, size_t count, int type,
	ncclComm_t comm, CUstream stream)
{
	return softnccl_operate(comm, (struct softnccl_operation){NCCL_ALL_GATHER, send,
					      receive, count, type, 0, 0, stream, {0}, 0, 0});
}

FUNCTION(ncclReduceScatter, const void *send, void *receive, size_t count, int type, int op,
	ncclComm_t comm, CUstream stream)
{
	return softnccl_operate(comm, (struct softnccl_operation){NCCL_REDUCE_SCATTER, send,
					      receive, count, type, op, 0, stream, {0}, 0, 0});
}

FUNCTION(ncclAlltoAll, const void *send, void *receive, size_t count, int type, ncclComm_t comm,
	CUstream stream)
{
	return softnccl_operate(comm, (struct softnccl_operation){NCCL_ALL_TO_ALL, send,
					      receive, count, type, 0, 0, stream, {0}, 0, 0});
}

FUNCTION(ncclGather, const void *send, void *receive, size_t count, int type, int root,
	ncclComm_t comm, CUstream stream)
{
	return softnccl_operate(comm, (struct softnccl_operation){NCCL_GATHER, send, receive,
					      count, type, 0, root, stream, {0}, 0, 0});
}

FUNCTION(ncclScatter, const void *send, void *receive, size_t count, int type, int root,
	ncclComm_t comm, CUstream stream)
{
	return softnccl_operate(comm, (struct softnccl_operation){NCCL_SCATTER, send, receive,
					      count, type, 0, root, stream, {0}, 0, 0});
}

FUNCTION(ncclSend, const void *send, size_t count, int type, int peer, ncclComm_t comm,
	CUstream stream)
{
	return softnccl_operate(comm, (struct softnccl_operation){NCCL_SEND, send, NULL, count,
					      type, 0, peer, stream, {0}, 0, 0});
}

FUNCTION(ncclRecv, void *receive, size_t count, int type, int peer, ncclComm_t comm,
	CUstream stream)
{
	return softnccl_operate(comm, (struct softnccl_operation){NCCL_RECEIVE, NULL, receive,
					      count, type, 0, peer, stream, {0}, 0, 0});
}
