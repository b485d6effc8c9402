/* SPDX-License-Identifier: Apache-2.0
 *
 * Two ranks of one process, each of which may be at an agent of its own: what is made of a
 * communicator while another context is current, communicators that nobody waits for, a group
 * of more operations than a frame holds, and, with `wait`, a rank that goes.
 */
#include <stdbool.h>
#include <unistd.h>

#include "tests/nccl/check.h"

enum { COUNT = 64, MANY = 3000 };

static void *from[RANKS], *to[RANKS];

static void fill(void)
{
	float in[COUNT];

	for (int i = 0; i < RANKS; i++) {
		for (int k = 0; k < COUNT; k++)
			in[k] = (float)(k + 1 + i);
		put(i, from[i], in, sizeof(in));
		CUDA(cuStreamSynchronize(sides[i].stream));
	}
}

static void is_sum(const char *what)
{
	float out[COUNT];

	for (int i = 0; i < RANKS; i++) {
		get(i, out, to[i], sizeof(out));
		for (int k = 0; k < COUNT; k++)
			if (out[k] != (float)(2 * k + 3))
				DIE("%s: rank %d: element %d is %f", what, i, k, out[k]);
	}
}

/* A nonblocking one is ready, or its operations are issued. */
static void made(ncclComm_t comm)
{
	ncclResult_t state = ncclInProgress;

	for (int tries = 0; state == ncclInProgress && tries < 20000; tries++) {
		NCCL(ncclCommGetAsyncError(comm, &state));
		usleep(500);
	}
	if (state)
		DIE("a nonblocking communicator is %d", (int)state);
}

static void reduce(ncclComm_t comms[RANKS], const char *what)
{
	ncclResult_t status;

	NCCL(ncclGroupStart());
	for (int i = 0; i < RANKS; i++)
		NCCL(ncclAllReduce(
			from[i], to[i], COUNT, ncclFloat, ncclSum, comms[i], sides[i].stream));
	status = ncclGroupEnd();
	if (status && status != ncclInProgress)
		DIE("%s: the group gave %d (%s)", what, (int)status, ncclGetLastError(NULL));
	for (int i = 0; i < RANKS; i++)
		made(comms[i]);
	is_sum(what);
}

/* With one rank's context current for both; and a rank that is in none. */
static void split(void)
{
	ncclComm_t halves[RANKS], one[RANKS];
	int number;

	use(0);
	NCCL(ncclGroupStart());
	for (int i = 0; i < RANKS; i++)
		NCCL(ncclCommSplit(sides[i].comm, 7, -i, &halves[i], NULL));
	NCCL(ncclGroupEnd());
	for (int i = 0; i < RANKS; i++) {
		NCCL(ncclCommUserRank(halves[i], &number)); /* by key: the other way round */
		if (number != !i)
			DIE("rank %d of the split is %d", i, number);
	}
	reduce(halves, "split");
	NCCL(ncclGroupStart());
	for (int i = 0; i < RANKS; i++)
		NCCL(ncclCommSplit(
			sides[i].comm, i ? NCCL_SPLIT_NOCOLOR : 1, 0, &one[i], NULL));
	NCCL(ncclGroupEnd());
	if (!one[0] || one[1])
		DIE("a split has %p and %p", (void *)one[0], (void *)one[1]);
	for (int i = 0; i < RANKS; i++)
		NCCL(ncclCommDestroy(halves[i]));
	NCCL(ncclCommDestroy(one[0]));
}

static void nonblocking(void)
{
	ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
	ncclComm_t comms[RANKS];
	ncclResult_t status;
	ncclUniqueId id;

	config.blocking = 0;
	NCCL(ncclGetUniqueId(&id));
	NCCL(ncclGroupStart());
	for (int i = 0; i < RANKS; i++) {
		use(i);
		ncclCommInitRankConfig(&comms[i], RANKS, id, i, &config);
	}
	status = ncclGroupEnd();
	if (status && status != ncclInProgress)
		DIE("a nonblocking group gave %d (%s)", (int)status, ncclGetLastError(NULL));
	for (int i = 0; i < RANKS; i++)
		made(comms[i]);
	reduce(comms, "nonblocking");
	for (int i = 0; i < RANKS; i++)
		NCCL(ncclCommDestroy(comms[i]));
}

/* Each element goes on its own, there and back: several frames for each rank. */
static void many(void)
{
	const float *in;
	float *out;

	NCCL(ncclGroupStart());
	for (int n = 0; n < MANY; n++)
		for (int i = 0; i < RANKS; i++) {
			in = (const float *)from[i] + n % COUNT;
			out = (float *)to[i] + n % COUNT;
			NCCL(ncclAllReduce(in, out, 1, ncclFloat, ncclSum, sides[i].comm,
				sides[i].stream));
		}
	NCCL(ncclGroupEnd());
	is_sum("many");
}

/* Rank 1's agent goes: rank 0 hears of it, and does not wait for ever. */
static void wait_for_the_end(void)
{
	ncclResult_t state = ncclSuccess, status = ncclSuccess;

	printf("ready\n");
	fflush(stdout);
	for (int tries = 0; !state && !status && tries < 4000; tries++) {
		use(0);
		status = ncclAllReduce(from[0], to[0], COUNT, ncclFloat, ncclSum, sides[0].comm,
			sides[0].stream);
		if (!status)
			status = ncclCommGetAsyncError(sides[0].comm, &state);
		usleep(5000);
		if (tries >
			20) /* natively a stream that waits for a rank that is gone waits on */
			continue;
		use(1);
		ncclAllReduce(from[1], to[1], COUNT, ncclFloat, ncclSum, sides[1].comm,
			sides[1].stream);
	}
	if (!state && !status)
		DIE("rank 0 heard of nothing");
	printf("the other rank is an error\n");
	NCCL(ncclCommAbort(sides[0].comm));
	exit(0);
}

int main(int argc, char **argv)
{
	ranks_begin();
	for (int i = 0; i < RANKS; i++) {
		from[i] = memory_on(i, COUNT * sizeof(float));
		to[i] = memory_on(i, COUNT * sizeof(float));
	}
	fill();
	if (argc > 1 && !strcmp(argv[1], "wait")) {
		ncclComm_t comms[RANKS] = {sides[0].comm, sides[1].comm};

		reduce(comms, "before");
		wait_for_the_end();
	}
	split();
	nonblocking();
	many();
	ranks_wait();
	ranks_end();
	printf("ranks that are apart did the same\n");
	return 0;
}
