/* SPDX-License-Identifier: Apache-2.0
 *
 * Two ranks of one process add floats: made by one group, by threads, and by ncclCommInitAll.
 */
#include <pthread.h>

#include "tests/nccl/check.h"

enum { COUNT = 1000 };

static ncclUniqueId id;

static void *thread_run(void *argument)
{
	int rank = (int)(intptr_t)argument;

	use(rank);
	NCCL(ncclCommInitRank(&sides[rank].comm, RANKS, id, rank));
	return NULL;
}

static void by_threads(void)
{
	pthread_t threads[RANKS];

	NCCL(ncclGetUniqueId(&id));
	for (int i = 0; i < RANKS; i++)
		if (pthread_create(&threads[i], NULL, thread_run, (void *)(intptr_t)i))
			DIE("no thread");
	for (int i = 0; i < RANKS; i++)
		pthread_join(threads[i], NULL);
}

static void by_group(void)
{
	NCCL(ncclGetUniqueId(&id));
	NCCL(ncclGroupStart());
	for (int i = 0; i < RANKS; i++) {
		use(i);
		NCCL(ncclCommInitRank(&sides[i].comm, RANKS, id, i));
	}
	NCCL(ncclGroupEnd());
}

static void add(void)
{
	float in[COUNT], out[COUNT];
	void *from[RANKS], *to[RANKS];
	int count, rank, device;

	for (int i = 0; i < RANKS; i++) {
		for (int k = 0; k < COUNT; k++)
			in[k] = (float)(k + i * 1000);
		from[i] = memory_on(i, sizeof(in));
		to[i] = memory_on(i, sizeof(out));
		put(i, from[i], in, sizeof(in));
		NCCL(ncclCommCount(sides[i].comm, &count));
		NCCL(ncclCommUserRank(sides[i].comm, &rank));
		NCCL(ncclCommCuDevice(sides[i].comm, &device));
		if (count != RANKS || rank != i || device != i)
			DIE("rank %d: %d of %d on device %d", i, rank, count, device);
		CUDA(cuStreamSynchronize(sides[i].stream));
	}
	NCCL(ncclGroupStart());
	for (int i = 0; i < RANKS; i++)
		NCCL(ncclAllReduce(from[i], to[i], COUNT, ncclFloat, ncclSum, sides[i].comm,
			sides[i].stream));
	NCCL(ncclGroupEnd());
	for (int i = 0; i < RANKS; i++) {
		get(i, out, to[i], sizeof(out));
		for (int k = 0; k < COUNT; k++)
			if (out[k] != (float)(2 * k + 1000))
				DIE("rank %d: element %d is %f", i, k, out[k]);
	}
	ranks_wait();
	ranks_end();
}

int main(void)
{
	int version;
	ncclComm_t comms[RANKS];

	devices_begin();
	by_group();
	add();
	by_threads();
	add();
	NCCL(ncclCommInitAll(comms, RANKS, NULL));
	for (int i = 0; i < RANKS; i++)
		sides[i].comm = comms[i];
	add();
	NCCL(ncclGetVersion(&version));
	printf("three communicators added, NCCL %d\n", version);
	return 0;
}
