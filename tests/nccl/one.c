/* SPDX-License-Identifier: Apache-2.0
 *
 * One device: a communicator of one rank, made in each way, whose collectives are copies; and
 * two ranks on the one device, which NCCL refuses.
 */
#include "tests/nccl/check.h"

enum { COUNT = 5000 };

static float in[COUNT], out[COUNT];
static void *from, *to;

static void fill(void)
{
	for (int i = 0; i < COUNT; i++)
		in[i] = (float)i - 17;
	put(0, from, in, sizeof(in));
	memset(out, 0, sizeof(out));
	put(0, to, out, sizeof(out));
}

static void is_copy(const char *what, void *where)
{
	get(0, out, where, sizeof(out));
	for (int i = 0; i < COUNT; i++)
		if (out[i] != in[i])
			DIE("%s: element %d is %f, not %f", what, i, out[i], in[i]);
}

static void collectives(void)
{
	ncclComm_t comm = sides[0].comm;
	CUstream stream = sides[0].stream;

	fill();
	NCCL(ncclAllReduce(from, to, COUNT, ncclFloat, ncclSum, comm, stream));
	is_copy("AllReduce", to);
	fill();
	NCCL(ncclAllReduce(from, from, COUNT, ncclFloat, ncclAvg, comm, stream));
	is_copy("AllReduce in place", from);
	fill();
	NCCL(ncclBroadcast(from, to, COUNT, ncclFloat, 0, comm, stream));
	is_copy("Broadcast", to);
	fill();
	NCCL(ncclReduce(from, to, COUNT, ncclFloat, ncclMax, 0, comm, stream));
	is_copy("Reduce", to);
	fill();
	NCCL(ncclAllGather(from, to, COUNT, ncclFloat, comm, stream));
	is_copy("AllGather", to);
	fill();
	NCCL(ncclReduceScatter(from, to, COUNT, ncclFloat, ncclSum, comm, stream));
	is_copy("ReduceScatter", to);
	fill();
	NCCL(ncclGroupStart());
	NCCL(ncclSend(from, COUNT, ncclFloat, 0, comm, stream));
	NCCL(ncclRecv(to, COUNT, ncclFloat, 0, comm, stream));
	NCCL(ncclGroupEnd());
	is_copy("Send and Recv", to);
}

static void questions(void)
{
	ncclResult_t error = ncclInternalError;
	int count, rank, device;

	NCCL(ncclCommCount(sides[0].comm, &count));
	NCCL(ncclCommUserRank(sides[0].comm, &rank));
	NCCL(ncclCommCuDevice(sides[0].comm, &device));
	if (count != 1 || rank || device)
		DIE("rank %d of %d on device %d", rank, count, device);
	CUDA(cuStreamSynchronize(sides[0].stream));
	NCCL(ncclCommGetAsyncError(sides[0].comm, &error));
	ANSWERS(error, ncclSuccess);
	NCCL(ncclCommDestroy(sides[0].comm));
}

static void two_on_one_device(void)
{
	int twice[RANKS] = {0, 0};
	ncclComm_t comms[RANKS] = {NULL};
	ncclUniqueId id;

	ANSWERS(ncclCommInitAll(comms, RANKS, twice), ncclInvalidUsage);
	NCCL(ncclGetUniqueId(&id));
	NCCL(ncclGroupStart());
	for (int i = 0; i < RANKS; i++)
		NCCL(ncclCommInitRank(&comms[i], RANKS, id, i));
	ANSWERS(ncclGroupEnd(), ncclInvalidUsage);
	printf("two ranks on one device: %s\n", ncclGetLastError(NULL));
}

int main(void)
{
	ncclUniqueId id;

	devices_begin_with(1);
	from = memory_on(0, sizeof(in));
	to = memory_on(0, sizeof(out));
	NCCL(ncclCommInitAll(&sides[0].comm, 1, NULL));
	collectives();
	questions();
	NCCL(ncclGetUniqueId(&id));
	NCCL(ncclCommInitRank(&sides[0].comm, 1, id, 0));
	collectives();
	questions();
	two_on_one_device();
	puts("one rank copies");
	return 0;
}
