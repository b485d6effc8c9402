/* SPDX-License-Identifier: Apache-2.0
 *
 * What an agent's NCCL is too old for answers that it is an invalid use and is named; the
 * communicator goes on. Prints what is missing.
 */
#include <stdbool.h>

#include "tests/nccl/check.h"

enum { COUNT = 512 };

static int missing;

/* Whether the library has it; its absence is an answer like any other. */
static bool has(const char *name, ncclResult_t status)
{
	char text[64];

	if (!status)
		return true;
	snprintf(text, sizeof(text), "has no %s", name);
	if (status != ncclInvalidUsage || !strstr(ncclGetLastError(NULL), text))
		DIE("%s gave %d (%s)", name, (int)status, ncclGetLastError(NULL));
	printf("missing: %s\n", name);
	missing++;
	return false;
}

static void still_adds(void)
{
	float in[COUNT], out[COUNT];
	void *at[RANKS];

	for (int i = 0; i < RANKS; i++) {
		for (int k = 0; k < COUNT; k++)
			in[k] = (float)(k + i);
		at[i] = memory_on(i, sizeof(in));
		put(i, at[i], in, sizeof(in));
		CUDA(cuStreamSynchronize(sides[i].stream));
	}
	NCCL(ncclGroupStart());
	for (int i = 0; i < RANKS; i++)
		NCCL(ncclAllReduce(at[i], at[i], COUNT, ncclFloat, ncclSum, sides[i].comm,
			sides[i].stream));
	NCCL(ncclGroupEnd());
	for (int i = 0; i < RANKS; i++) {
		get(i, out, at[i], sizeof(out));
		for (int k = 0; k < COUNT; k++)
			if (out[k] != (float)(2 * k + 1))
				DIE("rank %d: element %d is %f", i, k, out[k]);
		CUDA(cuMemFree((CUdeviceptr)(uintptr_t)at[i]));
	}
	ranks_wait();
}

static void growth(void)
{
	ncclComm_t grown[RANKS] = {NULL}, old;
	ncclUniqueId id;
	bool called;

	use(0);
	NCCL(ncclGetUniqueId(&id));
	NCCL(ncclCommInitRank(&old, 1, id, 0));
	called = has("ncclCommGetUniqueId", ncclCommGetUniqueId(old, &id));
	NCCL(ncclGroupStart());
	NCCL(ncclCommGrow(old, RANKS, &id, -1, &grown[0], NULL));
	use(1);
	NCCL(ncclCommGrow(NULL, RANKS, &id, 1, &grown[1], NULL));
	if (has("ncclCommGrow", ncclGroupEnd()) != called || called != (grown[0] != NULL))
		DIE("a communicator that grows has %s", called ? "an id" : "no id");
	for (int i = 0; i < RANKS; i++)
		if (grown[i])
			NCCL(ncclCommDestroy(grown[i]));
	NCCL(ncclCommDestroy(old));
}

static ncclResult_t window(void *at[RANKS], ncclWindow_t windows[RANKS])
{
	NCCL(ncclGroupStart());
	for (int i = 0; i < RANKS; i++)
		NCCL(ncclCommWindowRegister(
			sides[i].comm, at[i], 4096, &windows[i], NCCL_WIN_COLL_SYMMETRIC));
	return ncclGroupEnd();
}

static void one_sided(void)
{
	ncclWaitSignalDesc_t wait = {.opCnt = 2};
	ncclWindow_t windows[RANKS] = {NULL};
	void *at[RANKS];
	bool puts = false;

	for (int i = 0; i < RANKS; i++) {
		use(i);
		NCCL(ncclMemAlloc(&at[i], 4096));
	}
	has("ncclCommWindowRegister", window(at, windows));
	if (windows[0]) {
		NCCL(ncclGroupStart());
		for (int i = 0; i < RANKS; i++)
			NCCL(ncclPutSignal(at[i], 64, ncclInt8, !i, windows[i], 64, 0, 0, 0,
				sides[i].comm, sides[i].stream));
		puts = has("ncclPutSignal", ncclGroupEnd());
	}
	NCCL(ncclGroupStart());
	for (int i = 0; i < RANKS; i++)
		NCCL(ncclSignal(!i, 0, 0, 0, sides[i].comm, sides[i].stream));
	has("ncclSignal", ncclGroupEnd());
	wait.opCnt = 1 + puts;
	NCCL(ncclGroupStart());
	for (int i = 0; i < RANKS; i++) {
		wait.peer = !i;
		NCCL(ncclWaitSignal(1, &wait, sides[i].comm, sides[i].stream));
	}
	has("ncclWaitSignal", ncclGroupEnd());
	for (int i = 0; i < RANKS; i++) {
		use(i);
		CUDA(cuStreamSynchronize(sides[i].stream));
		NCCL(ncclCommWindowDeregister(sides[i].comm, windows[i]));
		NCCL(ncclMemFree(at[i]));
	}
}

static void memory(void)
{
	ncclSimInfo_t info = NCCL_SIM_INFO_INITIALIZER;
	ncclParamHandle_t param;
	const char **keys;
	int count;
	void *at[RANKS];
	uint64_t bytes;

	has("ncclParamBind", ncclParamBind(&param, "NCCL_DEBUG"));
	has("ncclParamGetAllParameterKeys", ncclParamGetAllParameterKeys(&keys, &count));
	has("ncclCommMemStats", ncclCommMemStats(sides[0].comm, ncclStatGpuMemTotal, &bytes));
	NCCL(ncclGroupStart());
	for (int i = 0; i < RANKS; i++)
		NCCL(ncclCommSuspend(sides[i].comm, NCCL_SUSPEND_MEM));
	has("ncclCommSuspend", ncclGroupEnd());
	NCCL(ncclGroupStart());
	for (int i = 0; i < RANKS; i++)
		NCCL(ncclCommResume(sides[i].comm));
	has("ncclCommResume", ncclGroupEnd());
	for (int i = 0; i < RANKS; i++)
		at[i] = memory_on(i, 4);
	NCCL(ncclGroupStart());
	for (int i = 0; i < RANKS; i++)
		NCCL(ncclAllReduce(
			at[i], at[i], 1, ncclFloat, ncclSum, sides[i].comm, sides[i].stream));
	has("ncclGroupSimulateEnd", ncclGroupSimulateEnd(&info));
}

int main(void)
{
	ranks_begin();
	growth();
	still_adds();
	one_sided();
	still_adds();
	memory();
	still_adds();
	ranks_end();
	printf("%d missing\n", missing);
	return 0;
}
