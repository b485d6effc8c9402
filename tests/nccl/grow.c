/* SPDX-License-Identifier: Apache-2.0
 *
 * A communicator that grows: in one process by a group, and between processes, of which half
 * join; the old one goes on beside the new one.
 */
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/nccl/check.h"

enum { COUNT = 3000, MOST = 16 };

/* Each rank's part of the sum says whose it is. */
static void sum(ncclComm_t comm, CUstream stream, const char *what)
{
	float in[COUNT], out[COUNT];
	int ranks, rank;
	CUdeviceptr at;

	NCCL(ncclCommCount(comm, &ranks));
	NCCL(ncclCommUserRank(comm, &rank));
	for (int i = 0; i < COUNT; i++)
		in[i] = (float)(i * (rank + 1));
	CUDA(cuMemAlloc(&at, sizeof(in)));
	CUDA(cuMemcpyHtoDAsync(at, in, sizeof(in), stream));
	NCCL(ncclAllReduce((void *)(uintptr_t)at, (void *)(uintptr_t)at, COUNT, ncclFloat,
		ncclSum, comm, stream));
	CUDA(cuMemcpyDtoHAsync(out, at, sizeof(out), stream));
	CUDA(cuStreamSynchronize(stream));
	CUDA(cuMemFree(at));
	for (int i = 0; i < COUNT; i++)
		if (out[i] != (float)(i * (ranks * (ranks + 1) / 2)))
			DIE("%s: rank %d of %d: element %d is %f", what, rank, ranks, i,
				out[i]);
}

static void is(ncclComm_t comm, int rank, int ranks)
{
	int got, count;

	NCCL(ncclCommUserRank(comm, &got));
	NCCL(ncclCommCount(comm, &count));
	if (got != rank || count != ranks)
		DIE("rank %d of %d, and should be %d of %d", got, count, rank, ranks);
}

/* --- in one process ----------------------------------------------------------------------- */

static void added(ncclComm_t comms[RANKS])
{
	float in[RANKS] = {1.5f, 2.25f}, out[RANKS];
	void *at[RANKS];

	for (int i = 0; i < RANKS; i++) {
		at[i] = memory_on(i, sizeof(float));
		put(i, at[i], &in[i], sizeof(float));
	}
	NCCL(ncclGroupStart());
	for (int i = 0; i < RANKS; i++)
		NCCL(ncclAllReduce(
			at[i], at[i], 1, ncclFloat, ncclSum, comms[i], sides[i].stream));
	NCCL(ncclGroupEnd());
	for (int i = 0; i < RANKS; i++) {
		get(i, &out[i], at[i], sizeof(float));
		if (out[i] != 3.75f)
			DIE("rank %d of the grown one: %f", i, out[i]);
	}
}

static void in_one_process(void)
{
	ncclComm_t old, comms[RANKS];
	ncclUniqueId id;

	use(0);
	NCCL(ncclGetUniqueId(&id));
	NCCL(ncclCommInitRank(&old, 1, id, 0));
	NCCL(ncclCommGetUniqueId(old, &id));
	NCCL(ncclGroupStart());
	NCCL(ncclCommGrow(old, RANKS, &id, -1, &comms[0], NULL));
	use(1);
	NCCL(ncclCommGrow(NULL, RANKS, &id, 1, &comms[1], NULL));
	NCCL(ncclGroupEnd());
	for (int i = 0; i < RANKS; i++)
		is(comms[i], i, RANKS);
	added(comms);
	use(0);
	is(old, 0, 1);
	sum(old, sides[0].stream, "what it grew from");
	NCCL(ncclCommDestroy(old));
	for (int i = 0; i < RANKS; i++) {
		use(i);
		NCCL(ncclCommDestroy(comms[i]));
	}
}

/* What NCCL does not take, and that nothing comes of it. */
static void arguments(void)
{
	ncclComm_t old, comm = (ncclComm_t)&old;
	ncclUniqueId id;

	use(0);
	ANSWERS(ncclCommGetUniqueId(NULL, &id), ncclInvalidArgument);
	NCCL(ncclGetUniqueId(&id));
	NCCL(ncclCommInitRank(&old, 1, id, 0));
	ANSWERS(ncclCommGetUniqueId(old, NULL), ncclInvalidArgument);
	ANSWERS(ncclCommGrow(old, 2, &id, -1, NULL, NULL), ncclInvalidArgument);
	ANSWERS(ncclCommGrow(old, 1, &id, -1, &comm, NULL), ncclInvalidArgument);
	ANSWERS(ncclCommGrow(old, 0, &id, -1, &comm, NULL), ncclInvalidArgument);
	ANSWERS(ncclCommGrow(old, 2, &id, 0, &comm, NULL), ncclInvalidArgument);
	ANSWERS(ncclCommGrow(NULL, 2, NULL, 1, &comm, NULL), ncclInvalidArgument);
	ANSWERS(ncclCommGrow(NULL, 2, &id, -1, &comm, NULL), ncclInvalidArgument);
	ANSWERS(ncclCommGrow(NULL, 2, &id, 2, &comm, NULL), ncclInvalidArgument);
	if (comm)
		DIE("a growth that was refused left a communicator");
	NCCL(ncclCommDestroy(old));
}

/* --- between processes -------------------------------------------------------------------- */

/* One rank: of the OLD ones, or that joins. Ids travel by the descriptors 3 and 4. */
static int run(int rank, int old, int ranks)
{
	ncclComm_t comm = NULL, grown;
	ncclUniqueId id;
	CUcontext context;
	CUstream stream;

	alarm(50);
	CUDA(cuInit(0));
	CUDA(cuDevicePrimaryCtxRetain(&context, rank));
	CUDA(cuCtxSetCurrent(context));
	CUDA(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	if (read(rank < old ? 3 : 5, &id, sizeof(id)) != sizeof(id))
		DIE("rank %d has no id", rank);
	if (rank < old) {
		NCCL(ncclCommInitRank(&comm, old, id, rank));
		sum(comm, stream, "before");
	}
	if (rank == old - 1) { /* who calls is any rank of the old ones */
		NCCL(ncclCommGetUniqueId(comm, &id));
		for (int i = old; i < ranks; i++)
			if (write(6, &id, sizeof(id)) != sizeof(id))
				DIE("no pipe");
	}
	NCCL(ncclCommGrow(
		comm, ranks, rank >= old - 1 ? &id : NULL, comm ? -1 : rank, &grown, NULL));
	is(grown, rank, ranks);
	sum(grown, stream, "grown");
	if (comm)
		sum(comm, stream, "the old one, after");
	NCCL(ncclCommDestroy(grown));
	if (comm)
		NCCL(ncclCommDestroy(comm));
	return 0;
}

static void pipe_at(int read_at, int write_at)
{
	int ends[2];

	if (pipe(ends) || dup2(ends[0], read_at + 20) < 0 || dup2(ends[1], write_at + 20) < 0)
		DIE("no pipe");
	close(ends[0]);
	close(ends[1]);
}

static pid_t child(int rank, int old, int ranks)
{
	char numbers[3][12];
	pid_t pid;

	snprintf(numbers[0], sizeof(numbers[0]), "%d", rank);
	snprintf(numbers[1], sizeof(numbers[1]), "%d", old);
	snprintf(numbers[2], sizeof(numbers[2]), "%d", ranks);
	pid = fork();
	if (pid)
		return pid;
	for (int i = 3; i < 7; i++)
		dup2(i + 20, i);
	execl("/proc/self/exe", "grow", numbers[0], numbers[1], numbers[2], (char *)NULL);
	_exit(126);
}

static void between_processes(int ranks)
{
	int old = ranks / 2, status;
	pid_t pids[MOST];
	ncclUniqueId id;

	pipe_at(3, 4);
	pipe_at(5, 6);
	NCCL(ncclGetUniqueId(&id));
	for (int i = 0; i < old; i++)
		if (write(24, &id, sizeof(id)) != sizeof(id))
			DIE("no pipe");
	for (int i = 0; i < ranks; i++)
		pids[i] = child(i, old, ranks);
	for (int i = 0; i < ranks; i++)
		if (waitpid(pids[i], &status, 0) != pids[i] || status)
			DIE("rank %d ended with %#x", i, status);
}

int main(int argc, char **argv)
{
	int count;

	if (argc == 4)
		return run(atoi(argv[1]), atoi(argv[2]), atoi(argv[3]));
	alarm(55);
	devices_begin();
	arguments();
	in_one_process();
	CUDA(cuDeviceGetCount(&count));
	between_processes(count < MOST ? count : MOST);
	printf("grew, in one process and to %d processes\n", count < MOST ? count : MOST);
	return 0;
}
