/* SPDX-License-Identifier: Apache-2.0
 *
 * Collectives, ncclSend and ncclRecv: their arguments are checked here, so that a call which
 * cannot be is refused at once.
 */
#include "shim/libraries/nccl/nccl.h"

/* What a function looks at. */
enum { WITH_OP = 1, WITH_PEER = 2 };

struct called {
	enum nccl_function function;
	const char *name;
	unsigned with;
	const void *send;
	void *receive;
	size_t count;
	ncclDataType_t type;
	ncclRedOp_t op;
	int peer; /* or root */
	ncclComm_t comm;
	CUstream stream;
};

/* Which of the buffers this rank uses. */
static bool sends(const struct called *c, int rank)
{
	switch (c->function) {
	case NCCL_BROADCAST:
	case NCCL_SCATTER: return rank == c->peer;
	case NCCL_RECEIVE: return false;
	default: return true;
	}
}

static bool receives(const struct called *c, int rank)
{
	switch (c->function) {
	case NCCL_REDUCE:
	case NCCL_GATHER: return rank == c->peer;
	case NCCL_SEND: return false;
	default: return true;
	}
}

static ncclResult_t called_check(const struct called *c, const struct nccl_comm *comm)
{
	uint64_t bytes;

	if (comm->making)
		return nccl_fault(
			ncclInvalidUsage, "%s: the communicator is not made yet", c->name);
	if (!nccl_type_bytes(c->type))
		return nccl_fault(
			ncclInvalidArgument, "%s: there is no type %d", c->name, c->type);
	if (c->with & WITH_OP && !nccl_has_reduction(comm, c->op))
		return nccl_fault(
			ncclInvalidArgument, "%s: there is no operation %d", c->name, c->op);
	if (c->with & WITH_PEER && (c->peer < 0 || c->peer >= comm->nranks))
		return nccl_fault(ncclInvalidArgument, "%s: there is no rank %d of %d", c->name,
			c->peer, comm->nranks);
	if (__builtin_mul_overflow(c->count, nccl_type_bytes(c->type), &bytes) ||
		__builtin_mul_overflow(bytes, (uint64_t)comm->nranks, &bytes) ||
		bytes > INT64_MAX)
		return nccl_fault(ncclInvalidArgument,
			"%s: a count of %zu is beyond any memory", c->name, c->count);
	if (c->count && ((sends(c, comm->rank) && !c->send) ||
				(receives(c, comm->rank) && !c->receive)))
		return nccl_fault(ncclInvalidArgument, "%s: a buffer is NULL", c->name);
	return ncclSuccess;
}

static ncclResult_t called_do(const struct called *c)
{
	const struct nccl_comm *comm = nccl_find(c->comm);
	ncclResult_t status = comm ? called_check(c, comm) : ncclInvalidArgument;
	struct nccl_operation o;

	if (status)
		return nccl_group_fault(status);
	o = (struct nccl_operation){
		.key =
			{
				.comm = comm->handle,
				.function = (uint8_t)c->function,
				.type = (uint8_t)c->type,
				.magnitude =
					nccl_magnitude(c->count * nccl_type_bytes(c->type)),
				.op = c->op,
				.peer = c->peer,
			},
		.rest =
			{
				.send = (uint64_t)(uintptr_t)c->send,
				.receive = (uint64_t)(uintptr_t)c->receive,
				.count = c->count,
			},
		.stream = c->stream,
		.context = comm->context,
	};
	return nccl_note(&o, 1);
}

/* What one collective may be told beside: how NCCL is to do it. The agent's NCCL decides that;
 * an event that is recorded when the launch is complete is recorded behind the operation. */
static ncclResult_t called_with(const struct called *c, const ncclCollConfig_t *config)
{
	ncclResult_t status;

	if (!config)
		return called_do(c);
	if (config->magic != NCCL_API_MAGIC || config->size < sizeof(*config))
		return nccl_group_fault(nccl_fault(ncclInvalidArgument,
			"%s: the configuration was not made by NCCL_COLLCONFIG_INITIALIZER",
			c->name));
	if (config->forceAlgSelection && config->algSelection && *config->algSelection)
		return nccl_group_fault(nccl_fault(
			ncclInvalidUsage, "%s: an algorithm cannot be forced", c->name));
	if (config->launchCompletionEvent && nccl_in_group())
		return nccl_group_fault(nccl_fault(ncclInvalidUsage,
			"%s: an event of its launch is not served in a group", c->name));
	status = called_do(c);
	if (!status && config->launchCompletionEvent &&
		cuEventRecord((CUevent)config->launchCompletionEvent, c->stream))
		return nccl_fault(
			ncclUnhandledCudaError, "%s: the event of its launch", c->name);
	return status;
}

#define CALLED(FUNCTION, NAME, ...)                                                            \
	((struct called){.function = NCCL_##FUNCTION,                                          \
		.name = #NAME,                                                                 \
		.count = count,                                                                \
		.type = datatype,                                                              \
		.comm = comm,                                                                  \
		.stream = stream,                                                              \
		__VA_ARGS__})
#define BOTH .send = sendbuff, .receive = recvbuff
#define REDUCED .op = op, .with = WITH_OP
#define ROOTED .peer = root, .with = WITH_PEER

/* NAME and NAMEConfig; PARAMETERS end before the communicator. */
#define COLLECTIVE(FUNCTION, NAME, PARAMETERS, ...)                                            \
	STUB_EXPORT ncclResult_t NAME(PARAMETERS, ncclComm_t comm, cudaStream_t stream)        \
	{                                                                                      \
		COUNT(NAME);                                                                   \
		return called_do(&CALLED(FUNCTION, NAME, __VA_ARGS__));                        \
	}                                                                                      \
	STUB_EXPORT ncclResult_t NAME##Config(PARAMETERS, ncclComm_t comm,                     \
		cudaStream_t stream, const ncclCollConfig_t *config)                           \
	{                                                                                      \
		COUNT(NAME##Config);                                                           \
		return called_with(&CALLED(FUNCTION, NAME##Config, __VA_ARGS__), config);      \
	}                                                                                      \
	SECOND(NAME)                                                                           \
	SECOND(NAME##Config)
#define BUFFERS const void *sendbuff, void *recvbuff, size_t count, ncclDataType_t datatype
#define WITH(...) __VA_ARGS__

COLLECTIVE(ALL_REDUCE, ncclAllReduce, WITH(BUFFERS, ncclRedOp_t op), BOTH, REDUCED)
COLLECTIVE(BROADCAST, ncclBroadcast, WITH(BUFFERS, int root), BOTH, ROOTED)
COLLECTIVE(REDUCE, ncclReduce, WITH(BUFFERS, ncclRedOp_t op, int root), BOTH, .op = op,
	.peer = root, .with = WITH_OP | WITH_PEER)
COLLECTIVE(ALL_GATHER, ncclAllGather, WITH(BUFFERS), BOTH)
COLLECTIVE(REDUCE_SCATTER, ncclReduceScatter, WITH(BUFFERS, ncclRedOp_t op), BOTH, REDUCED)
COLLECTIVE(ALL_TO_ALL, ncclAlltoAll, WITH(BUFFERS), BOTH)
COLLECTIVE(GATHER, ncclGather, WITH(BUFFERS, int root), BOTH, ROOTED)
COLLECTIVE(SCATTER, ncclScatter, WITH(BUFFERS, int root), BOTH, ROOTED)

STUB_EXPORT ncclResult_t ncclBcast(void *buff, size_t count, ncclDataType_t datatype, int root,
	ncclComm_t comm, cudaStream_t stream)
{
	COUNT(ncclBcast);
	return called_do(&CALLED(BROADCAST, ncclBcast, .send = buff, .receive = buff, ROOTED));
}

STUB_EXPORT ncclResult_t ncclSend(const void *sendbuff, size_t count, ncclDataType_t datatype,
	int peer, ncclComm_t comm, cudaStream_t stream)
{
	COUNT(ncclSend);
	return called_do(
		&CALLED(SEND, ncclSend, .send = sendbuff, .peer = peer, .with = WITH_PEER));
}

STUB_EXPORT ncclResult_t ncclRecv(void *recvbuff, size_t count, ncclDataType_t datatype,
	int peer, ncclComm_t comm, cudaStream_t stream)
{
	COUNT(ncclRecv);
	return called_do(&CALLED(
		RECEIVE, ncclRecv, .receive = recvbuff, .peer = peer, .with = WITH_PEER));
}

SECOND(ncclBcast)
SECOND(ncclSend)
SECOND(ncclRecv)
