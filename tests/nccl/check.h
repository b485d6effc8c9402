/* SPDX-License-Identifier: Apache-2.0
 *
 * What the NCCL programs share: two devices, a communicator and a stream on each, memory.
 */
#ifndef TESTS_NCCL_CHECK_H
#define TESTS_NCCL_CHECK_H

#include <cuda.h>
#include <nccl.h>
#include <string.h>

#include "tests/check.h"

#define NCCL(CALL)                                                                             \
	do {                                                                                   \
		ncclResult_t answer_ = (CALL);                                                 \
		if (answer_ != ncclSuccess)                                                    \
			DIE("%s gave %d (%s)", #CALL, (int)answer_, ncclGetLastError(NULL));   \
	} while (0)

enum { RANKS = 2 };

struct side {
	CUcontext context;
	CUstream stream;
	ncclComm_t comm;
};
static struct side sides[RANKS];

static inline void use(int rank)
{
	CUDA(cuCtxSetCurrent(sides[rank].context));
}

/* Contexts and streams of the first `wanted` devices, RANKS at most. */
static inline void devices_begin_with(int wanted)
{
	int count;

	CUDA(cuInit(0));
	CUDA(cuDeviceGetCount(&count));
	if (count < wanted) {
		printf("skip: %d devices\n", count);
		exit(77);
	}
	for (int i = 0; i < wanted; i++) {
		CUDA(cuDevicePrimaryCtxRetain(&sides[i].context, i));
		use(i);
		CUDA(cuStreamCreate(&sides[i].stream, CU_STREAM_NON_BLOCKING));
	}
}

/* Of two devices. */
static inline void devices_begin(void)
{
	devices_begin_with(RANKS);
}

/* And a communicator of the two. */
static inline void ranks_begin(void)
{
	ncclComm_t comms[RANKS];

	devices_begin();
	NCCL(ncclCommInitAll(comms, RANKS, NULL));
	for (int i = 0; i < RANKS; i++)
		sides[i].comm = comms[i];
}

static inline void ranks_end(void)
{
	for (int i = 0; i < RANKS; i++) {
		use(i);
		CUDA(cuStreamSynchronize(sides[i].stream));
		NCCL(ncclCommDestroy(sides[i].comm));
	}
}

/* Waits for both streams, and there is no asynchronous error. */
static inline void ranks_wait(void)
{
	for (int i = 0; i < RANKS; i++) {
		ncclResult_t error = ncclInternalError;

		use(i);
		CUDA(cuStreamSynchronize(sides[i].stream));
		NCCL(ncclCommGetAsyncError(sides[i].comm, &error));
		if (error)
			DIE("rank %d: asynchronous error %d (%s)", i, (int)error,
				ncclGetLastError(sides[i].comm));
	}
}

static inline void *memory_on(int rank, size_t bytes)
{
	CUdeviceptr at;

	use(rank);
	CUDA(cuMemAlloc(&at, bytes ? bytes : 1));
	return (void *)(uintptr_t)at;
}

/* In the rank's stream. */
static inline void put(int rank, const void *to, const void *from, size_t bytes)
{
	use(rank);
	CUDA(cuMemcpyHtoDAsync((CUdeviceptr)(uintptr_t)to, from, bytes, sides[rank].stream));
}
static inline void get(int rank, void *to, const void *from, size_t bytes)
{
	use(rank);
	CUDA(cuMemcpyDtoHAsync(to, (CUdeviceptr)(uintptr_t)from, bytes, sides[rank].stream));
	CUDA(cuStreamSynchronize(sides[rank].stream));
}

#endif
