/* SPDX-License-Identifier: Apache-2.0
 *
 * What is refused, and how: at the call, at the group's end, and as an asynchronous error.
 */
#include <unistd.h>

#include "tests/nccl/check.h"

static void *memory[RANKS];

static void arguments(void)
{
	ncclComm_t comm = sides[0].comm, none = NULL;
	CUstream stream = sides[0].stream;
	void *m = memory[0];
	ncclUniqueId id;
	int number;

	ANSWERS(ncclAllReduce(m, m, 1, ncclFloat, ncclSum, none, stream), ncclInvalidArgument);
	ANSWERS(ncclAllReduce(NULL, m, 1, ncclFloat, ncclSum, comm, stream),
		ncclInvalidArgument);
	ANSWERS(ncclAllReduce(m, m, 1, ncclNumTypes, ncclSum, comm, stream),
		ncclInvalidArgument);
	ANSWERS(ncclAllReduce(m, m, 1, ncclFloat, ncclNumOps, comm, stream),
		ncclInvalidArgument);
	ANSWERS(ncclAllReduce(m, m, SIZE_MAX / 2, ncclFloat, ncclSum, comm, stream),
		ncclInvalidArgument);
	ANSWERS(ncclBroadcast(m, m, 1, ncclFloat, RANKS, comm, stream), ncclInvalidArgument);
	ANSWERS(ncclSend(m, 1, ncclFloat, -1, comm, stream), ncclInvalidArgument);
	ANSWERS(ncclGetUniqueId(NULL), ncclInvalidArgument);
	NCCL(ncclGetUniqueId(&id));
	ANSWERS(ncclCommInitRank(&none, 2, id, 2), ncclInvalidArgument);
	ANSWERS(ncclCommInitRank(&none, 0, id, 0), ncclInvalidArgument);
	ANSWERS(ncclCommInitRank(NULL, 1, id, 0), ncclInvalidArgument);
	memset(&id, 1, sizeof(id));
	ANSWERS(ncclCommInitRank(&none, 1, id, 0), ncclInvalidArgument);
	if (none || !strstr(ncclGetLastError(NULL), "id"))
		DIE("an id of nobody's: %s", ncclGetLastError(NULL));
	ANSWERS(ncclCommCount(NULL, &number), ncclInvalidArgument);
	ANSWERS(ncclCommCount(comm, NULL), ncclInvalidArgument);
	ANSWERS(ncclRedOpDestroy(ncclSum, comm), ncclInvalidArgument);
	ANSWERS(ncclCommDestroy(NULL), ncclSuccess);
	ANSWERS(ncclGroupEnd(), ncclInvalidUsage);
	ANSWERS(ncclAllReduce(NULL, NULL, 0, ncclFloat, ncclSum, comm, stream), ncclSuccess);
	ANSWERS(ncclAllReduce(
			NULL, NULL, 0, ncclFloat, ncclSum, sides[1].comm, sides[1].stream),
		ncclSuccess);
}

/* Nothing of a group with a fault is done, nested or not. */
static void groups(void)
{
	NCCL(ncclGroupStart());
	NCCL(ncclGroupStart());
	NCCL(ncclSend(memory[0], 1, ncclFloat, 1, sides[0].comm, sides[0].stream));
	ANSWERS(ncclSend(memory[0], 1, ncclFloat, 9, sides[0].comm, sides[0].stream),
		ncclInvalidArgument);
	NCCL(ncclGroupEnd());
	ANSWERS(ncclGroupEnd(), ncclInvalidArgument);
	NCCL(ncclGroupStart());
	NCCL(ncclGroupEnd());
}

static void devices(void)
{
	ncclComm_t comms[RANKS];
	int twice[RANKS] = {0, 0}, far[1] = {RANKS + 7};
	ncclUniqueId id;

	ANSWERS(ncclCommInitAll(comms, RANKS, twice), ncclInvalidUsage);
	ANSWERS(ncclCommInitAll(comms, 1, far), ncclUnhandledCudaError);
	NCCL(ncclGetUniqueId(&id));
	use(0);
	NCCL(ncclGroupStart());
	for (int i = 0; i < RANKS; i++)
		NCCL(ncclCommInitRank(&comms[i], RANKS, id, i));
	ANSWERS(ncclGroupEnd(), ncclInvalidUsage);
	if (!strstr(ncclGetLastError(NULL), "Duplicate GPU") || comms[0] || comms[1])
		DIE("one device twice: %s", ncclGetLastError(NULL));
}

/* A nonblocking one is made in the background. */
static void nonblocking(void)
{
	ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
	ncclResult_t state = ncclInProgress, made;
	ncclUniqueId id;
	ncclComm_t comm;
	int number;

	config.blocking = 0;
	NCCL(ncclGetUniqueId(&id));
	use(0);
	made = ncclCommInitRankConfig(&comm, 1, id, 0, &config);
	if (made && made != ncclInProgress)
		DIE("a nonblocking communicator: %d", (int)made);
	for (int i = 0; i < 300 && state == ncclInProgress; i++) {
		NCCL(ncclCommGetAsyncError(comm, &state));
		usleep(20000);
	}
	ANSWERS(state, ncclSuccess);
	NCCL(ncclCommCount(comm, &number));
	ANSWERS(number, 1);
	NCCL(ncclCommDestroy(comm));
	config.magic = 0;
	ANSWERS(ncclCommInitRankConfig(&comm, 1, id, 0, &config), ncclInvalidArgument);
}

/* Counts that do not fit each other are the communicator's error; what is behind it in the
 * stream goes on, and it can be aborted. */
static void counts(void)
{
	ncclResult_t error = ncclSuccess;

	NCCL(ncclGroupStart());
	NCCL(ncclSend(memory[0], 4, ncclFloat, 1, sides[0].comm, sides[0].stream));
	NCCL(ncclRecv(memory[1], 8, ncclFloat, 0, sides[1].comm, sides[1].stream));
	NCCL(ncclGroupEnd());
	for (int i = 0; i < 300 && !error; i++) {
		NCCL(ncclCommGetAsyncError(sides[1].comm, &error));
		usleep(20000);
	}
	ANSWERS(error, ncclInvalidUsage);
	for (int i = 0; i < RANKS; i++) {
		NCCL(ncclCommAbort(sides[i].comm));
		use(i);
		CUDA(cuStreamSynchronize(sides[i].stream));
	}
}

/* What NVIDIA's does not look at: a rank and a signal that do not exist, and a put beyond the
 * window, which is an error of the communicator that it arrives at. */
static void beyond(void)
{
	ncclWindow_t windows[RANKS];
	ncclWaitSignalDesc_t far = {.opCnt = 1, .peer = RANKS};
	ncclComm_t comms[RANKS];
	ncclResult_t error = ncclSuccess;
	void *at[RANKS];

	NCCL(ncclCommInitAll(comms, RANKS, NULL));
	NCCL(ncclGroupStart());
	for (int i = 0; i < RANKS; i++) {
		use(i);
		NCCL(ncclMemAlloc(&at[i], 4096));
		NCCL(ncclCommWindowRegister(
			comms[i], at[i], 4096, &windows[i], NCCL_WIN_COLL_SYMMETRIC));
	}
	NCCL(ncclGroupEnd());
	ANSWERS(ncclPutSignal(at[0], 1, ncclInt8, RANKS, windows[0], 0, 0, 0, 0, comms[0],
			sides[0].stream),
		ncclInvalidArgument);
	ANSWERS(ncclPutSignal(at[0], 1, ncclInt8, 1, windows[1], 0, 0, 0, 0, comms[0],
			sides[0].stream),
		ncclInvalidArgument);
	ANSWERS(ncclPutSignal(memory[0], 1, ncclInt8, 1, windows[0], 0, 0, 0, 0, comms[0],
			sides[0].stream),
		ncclInvalidArgument);
	ANSWERS(ncclSignal(1, 1, 0, 0, comms[0], sides[0].stream), ncclInvalidArgument);
	ANSWERS(ncclSignal(1, 0, 999, 0, comms[0], sides[0].stream), ncclInvalidArgument);
	ANSWERS(ncclWaitSignal(1, &far, comms[0], sides[0].stream), ncclInvalidArgument);
	ANSWERS(ncclCommWindowDeregister(comms[0], windows[1]), ncclInvalidArgument);
	NCCL(ncclPutSignal(
		at[0], 64, ncclInt8, 1, windows[0], 4090, 0, 0, 0, comms[0], sides[0].stream));
	for (int i = 0; i < 300 && !error; i++) {
		NCCL(ncclCommGetAsyncError(comms[1], &error));
		usleep(20000);
	}
	ANSWERS(error, ncclInvalidUsage);
	for (int i = 0; i < RANKS; i++) {
		NCCL(ncclCommAbort(comms[i]));
		NCCL(ncclMemFree(at[i]));
	}
}

int main(void)
{
	ranks_begin();
	for (int i = 0; i < RANKS; i++)
		memory[i] = memory_on(i, 4096);
	arguments();
	groups();
	devices();
	nonblocking();
	ranks_wait();
	beyond();
	counts();
	puts("refused as they should be");
	return 0;
}
