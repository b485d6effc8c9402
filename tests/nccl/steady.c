/* SPDX-License-Identifier: Apache-2.0
 *
 * One thing, over and over, for who counts round trips: steady THING COUNT.
 */
#include "tests/nccl/check.h"

enum { COUNT = 256 };

static void *from[RANKS], *to[RANKS];
static ncclWindow_t windows[RANKS];

static void all_reduce(void)
{
	NCCL(ncclGroupStart());
	for (int i = 0; i < RANKS; i++)
		NCCL(ncclAllReduce(from[i], to[i], COUNT, ncclFloat, ncclSum, sides[i].comm,
			sides[i].stream));
	NCCL(ncclGroupEnd());
}

/* Without a group: what is issued waits for nobody. */
static void alone(void)
{
	for (int i = 0; i < RANKS; i++)
		NCCL(ncclBroadcast(
			from[i], to[i], COUNT, ncclInt8, 0, sides[i].comm, sides[i].stream));
}

static void exchange(void)
{
	NCCL(ncclGroupStart());
	for (int i = 0; i < RANKS; i++) {
		NCCL(ncclSend(from[i], COUNT, ncclInt8, !i, sides[i].comm, sides[i].stream));
		NCCL(ncclRecv(to[i], COUNT, ncclInt8, !i, sides[i].comm, sides[i].stream));
	}
	NCCL(ncclGroupEnd());
}

static void scale(void)
{
	float half = 0.5f;

	NCCL(ncclGroupStart());
	for (int i = 0; i < RANKS; i++) {
		ncclRedOp_t op;

		NCCL(ncclRedOpCreatePreMulSum(
			&op, &half, ncclFloat, ncclScalarHostImmediate, sides[i].comm));
		NCCL(ncclReduce(from[i], to[i], COUNT, ncclFloat, ncclSum, 0, sides[i].comm,
			sides[i].stream));
		NCCL(ncclRedOpDestroy(op, sides[i].comm));
	}
	NCCL(ncclGroupEnd());
}

/* Into each other's window, and a wait for it. */
static void put_signal(void)
{
	ncclWaitSignalDesc_t from_other = {.opCnt = 1};

	NCCL(ncclGroupStart());
	for (int i = 0; i < RANKS; i++)
		NCCL(ncclPutSignal(from[i], COUNT, ncclInt8, !i, windows[i], COUNT, 0, 0, 0,
			sides[i].comm, sides[i].stream));
	NCCL(ncclGroupEnd());
	NCCL(ncclGroupStart());
	for (int i = 0; i < RANKS; i++) {
		from_other.peer = !i;
		NCCL(ncclWaitSignal(1, &from_other, sides[i].comm, sides[i].stream));
	}
	NCCL(ncclGroupEnd());
}

static void windows_begin(void)
{
	NCCL(ncclGroupStart());
	for (int i = 0; i < RANKS; i++) {
		use(i);
		NCCL(ncclMemAlloc(&from[i], COUNT * sizeof(float)));
		NCCL(ncclCommWindowRegister(sides[i].comm, from[i], COUNT * sizeof(float),
			&windows[i], NCCL_WIN_COLL_SYMMETRIC));
	}
	NCCL(ncclGroupEnd());
}

static void what(void)
{
	int number;

	NCCL(ncclCommCount(sides[0].comm, &number));
	NCCL(ncclCommUserRank(sides[0].comm, &number));
	NCCL(ncclCommCuDevice(sides[0].comm, &number));
	NCCL(ncclGetVersion(&number));
}

static void error(void)
{
	ncclResult_t error;

	NCCL(ncclCommGetAsyncError(sides[1].comm, &error));
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*run)(void);
	} things[] = {{"all_reduce", all_reduce}, {"alone", alone}, {"exchange", exchange},
		{"scale", scale}, {"what", what}, {"error", error}, {"put_signal", put_signal}};

	if (argc != 3)
		DIE("usage: steady THING COUNT");
	ranks_begin();
	for (int i = 0; i < RANKS; i++) {
		from[i] = memory_on(i, COUNT * sizeof(float));
		to[i] = memory_on(i, COUNT * sizeof(float));
		CUDA(cuMemsetD8((CUdeviceptr)(uintptr_t)from[i], 0, COUNT * sizeof(float)));
	}
	if (!strcmp(argv[1], "put_signal"))
		windows_begin();
	for (size_t i = 0; i < sizeof(things) / sizeof(things[0]); i++)
		for (int n = 0; !strcmp(argv[1], things[i].name) && n < atoi(argv[2]); n++)
			things[i].run();
	ranks_wait();
	ranks_end();
	return 0;
}
