/* SPDX-License-Identifier: Apache-2.0
 *
 * NCCL's own memory is counted, given back and taken again, and the communicator adds as
 * before; how long a group takes is foretold, and then nothing of it is done.
 */
#include "tests/nccl/check.h"

enum { COUNT = 4096 };

static void *at[RANKS];

static void fill(void)
{
	float in[COUNT];

	for (int i = 0; i < RANKS; i++) {
		for (int k = 0; k < COUNT; k++)
			in[k] = (float)(k + 10 * i);
		put(i, at[i], in, sizeof(in));
		CUDA(cuStreamSynchronize(sides[i].stream));
	}
}

static void add(void)
{
	NCCL(ncclGroupStart());
	for (int i = 0; i < RANKS; i++)
		NCCL(ncclAllReduce(at[i], at[i], COUNT, ncclFloat, ncclSum, sides[i].comm,
			sides[i].stream));
}

/* As filled, or the sum of that. */
static void is_added(int added)
{
	float out[COUNT];

	for (int i = 0; i < RANKS; i++) {
		get(i, out, at[i], sizeof(out));
		for (int k = 0; k < COUNT; k++)
			if (out[k] != (float)(added ? 2 * k + 10 : k + 10 * i))
				DIE("rank %d: element %d is %f, added %d", i, k, out[k], added);
	}
}

static void foretell(void)
{
	ncclSimInfo_t info = NCCL_SIM_INFO_INITIALIZER;

	fill();
	add();
	NCCL(ncclGroupSimulateEnd(&info));
	if (!(info.estimatedTime > 0))
		DIE("a group takes %f us", info.estimatedTime);
	is_added(0);
	add();
	NCCL(ncclGroupSimulateEnd(NULL)); /* that is its end */
	is_added(1);
	ANSWERS(ncclGroupSimulateEnd(&info), ncclInvalidUsage);
	info.magic = 0;
	add();
	ANSWERS(ncclGroupSimulateEnd(&info), ncclInvalidArgument);
	is_added(1);
}

/* All ranks together. */
static ncclResult_t all(int suspend)
{
	NCCL(ncclGroupStart());
	for (int i = 0; i < RANKS; i++)
		NCCL(suspend ? ncclCommSuspend(sides[i].comm, NCCL_SUSPEND_MEM)
			     : ncclCommResume(sides[i].comm));
	return ncclGroupEnd();
}

static void suspended(uint64_t wanted)
{
	uint64_t is = 7;

	for (int i = 0; i < RANKS; i++) {
		NCCL(ncclCommMemStats(sides[i].comm, ncclStatGpuMemSuspended, &is));
		if (is != wanted)
			DIE("rank %d: suspended is %llu", i, (unsigned long long)is);
	}
}

static void suspend(void)
{
	uint64_t parts[3];

	fill();
	suspended(0);
	NCCL(ncclCommMemStats(sides[0].comm, ncclStatGpuMemSuspend, &parts[0]));
	NCCL(ncclCommMemStats(sides[0].comm, ncclStatGpuMemPersist, &parts[1]));
	NCCL(ncclCommMemStats(sides[0].comm, ncclStatGpuMemTotal, &parts[2]));
	if (parts[0] + parts[1] != parts[2])
		DIE("%llu and %llu are not %llu", (unsigned long long)parts[0],
			(unsigned long long)parts[1], (unsigned long long)parts[2]);
	ANSWERS(ncclCommMemStats(sides[0].comm, (ncclCommMemStat_t)99, &parts[0]),
		ncclInvalidArgument);
	ANSWERS(ncclCommMemStats(sides[0].comm, ncclStatGpuMemTotal, NULL),
		ncclInvalidArgument);
	ANSWERS(ncclCommMemStats(NULL, ncclStatGpuMemTotal, &parts[0]), ncclInvalidArgument);
	ANSWERS(ncclCommSuspend(NULL, NCCL_SUSPEND_MEM), ncclInvalidArgument);
	NCCL(all(1));
	suspended(1);
	NCCL(all(0));
	suspended(0);
	add();
	NCCL(ncclGroupEnd());
	is_added(1);
}

int main(void)
{
	ranks_begin();
	for (int i = 0; i < RANKS; i++)
		at[i] = memory_on(i, COUNT * sizeof(float));
	fill();
	add();
	NCCL(ncclGroupEnd());
	is_added(1);
	foretell();
	suspend();
	ranks_wait();
	ranks_end();
	printf("foretold, suspended and resumed\n");
	return 0;
}
