/* SPDX-License-Identifier: Apache-2.0
 *
 * What is left of a context that went: names of graphs, which can be destroyed and do nothing
 * else, and whose memory is not freed once more when it is somebody else's; nothing of pools,
 * but for pinned memory of theirs, which goes with the primary context alone.
 */
#include <cuda.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BYTES 4096
#define PIECES 300 /* more than one post's frees */

static void must(CUresult status, CUresult want, const char *what)
{
	if (status == want)
		return;
	printf("%s: %d, not %d\n", what, (int)status, (int)want);
	exit(1);
}
#define MUST(call) must(call, CUDA_SUCCESS, #call)

struct graphs {
	CUgraph graph;
	CUgraphExec exec;
	unsigned char from[BYTES];
};

/* A copy of pageable memory, which has a stand-in on the device. */
static void graphs_make(struct graphs *g)
{
	CUdeviceptr to;
	CUstream stream;
	CUevent event;

	MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	MUST(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
	MUST(cuMemAlloc(&to, BYTES));
	MUST(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
	MUST(cuMemcpyHtoDAsync(to, g->from, BYTES, stream));
	MUST(cuStreamEndCapture(stream, &g->graph));
	MUST(cuGraphInstantiate(&g->exec, g->graph, 0));
	MUST(cuGraphLaunch(g->exec, stream));
	MUST(cuEventRecord(event, stream));
	MUST(cuStreamSynchronize(stream));
	MUST(cuEventQuery(event));
}

static void pool_use(void)
{
	CUdeviceptr piece;

	MUST(cuMemAllocAsync(&piece, BYTES, NULL));
	MUST(cuMemFreeAsync(piece, NULL));
	must(cuMemFree(piece), CUDA_ERROR_INVALID_VALUE, "a piece is freed twice");
}

static void pool_check(void)
{
	CUmemoryPool pool;
	cuuint64_t bytes = 1;

	MUST(cuDeviceGetDefaultMemPool(&pool, 0));
	MUST(cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, &bytes));
	must(bytes ? CUDA_ERROR_UNKNOWN : CUDA_SUCCESS, CUDA_SUCCESS, "a pool keeps pieces");
}

static CUmemoryPool place_pool(int type, CUmemAllocationType kind)
{
	CUmemLocation location = {.type = type};
	CUmemoryPool pool;

	MUST(cuMemGetDefaultMemPool(&pool, &location, kind));
	return pool;
}

static cuuint64_t pool_used(CUmemoryPool pool)
{
	cuuint64_t bytes;

	MUST(cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &bytes));
	return bytes;
}

static unsigned char *place_use(CUmemoryPool pool)
{
	CUdeviceptr live, kept;

	MUST(cuMemAllocFromPoolAsync(&kept, BYTES, pool, NULL));
	MUST(cuMemAllocFromPoolAsync(&live, BYTES, pool, NULL));
	MUST(cuMemsetD8Async(live, 5, BYTES, NULL));
	MUST(cuMemFreeAsync(kept, NULL));
	return (unsigned char *)(uintptr_t)live;
}

/* Of pools that are not a device's; with a context of its own, and with the primary one. */
static void places_use(CUcontext own, CUcontext primary)
{
	CUmemoryPool host =
		place_pool(CU_MEM_LOCATION_TYPE_HOST, CU_MEM_ALLOCATION_TYPE_PINNED);
	CUmemoryPool managed =
		place_pool(CU_MEM_LOCATION_TYPE_DEVICE, CU_MEM_ALLOCATION_TYPE_MANAGED);
	const CUmemAccessDesc access = {.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE},
		.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
	unsigned char *live;

	MUST(cuMemPoolSetAccess(host, &access, 1));
	live = place_use(host);
	place_use(managed);
	MUST(cuCtxSynchronize());
	MUST(cuCtxDestroy(own));
	MUST(cuCtxSetCurrent(primary));
	must(pool_used(managed), 0, "managed memory of a pool stays");
	must(pool_used(host), BYTES, "pinned memory of a pool goes");
	must(live[BYTES - 1], 5, "a byte of a pool's pinned memory");
	live[0] = 6;
	place_use(host);
	place_use(managed);
	must(pool_used(managed), BYTES, "managed memory of a pool");
	MUST(cuDevicePrimaryCtxReset(0));
	must(pool_used(managed), 0, "managed memory of a pool stays");
	must(pool_used(host), 0, "pinned memory of a pool stays");
}

static void pieces_make(CUdeviceptr *pieces, unsigned char value)
{
	for (int i = 0; i < PIECES; i++) {
		MUST(cuMemAlloc(&pieces[i], BYTES));
		MUST(cuMemsetD8(pieces[i], value, BYTES));
	}
}

static void pieces_check(const CUdeviceptr *pieces, unsigned char value)
{
	unsigned char got[BYTES];

	for (int i = 0; i < PIECES; i++) {
		MUST(cuMemcpyDtoH(got, pieces[i], BYTES));
		for (int k = 0; k < BYTES; k++)
			must(got[k] == value ? CUDA_SUCCESS : CUDA_ERROR_UNKNOWN, CUDA_SUCCESS,
				"somebody else's memory");
		MUST(cuMemFree(pieces[i]));
	}
}

/* Another context is current. */
static void graphs_end(struct graphs *g)
{
	static CUdeviceptr first[PIECES], second[PIECES];
	CUgraph clone;

	MUST(cuCtxSynchronize());
	pieces_make(first, 1);
	must(cuGraphLaunch(g->exec, NULL), CUDA_ERROR_INVALID_VALUE, "launch");
	must(cuGraphClone(&clone, g->graph), CUDA_ERROR_INVALID_VALUE, "clone");
	MUST(cuGraphExecDestroy(g->exec));
	MUST(cuGraphDestroy(g->graph));
	MUST(cuCtxSynchronize());
	pieces_make(second, 2);
	pieces_check(first, 1);
	pieces_check(second, 2);
	MUST(cuCtxSynchronize());
}

static CUcontext create(void)
{
	CUcontext context;

#if CUDA_VERSION >= 13000
	MUST(cuCtxCreate(&context, NULL, 0, 0));
#else
	MUST(cuCtxCreate(&context, 0, 0));
#endif
	return context;
}

int main(void)
{
	static struct graphs g;
	CUcontext primary, own;

	MUST(cuInit(0));
	MUST(cuDevicePrimaryCtxRetain(&primary, 0));
	for (int round = 0; round < 20; round++) {
		own = create();
		graphs_make(&g);
		pool_use();
		MUST(cuCtxDestroy(own));
		MUST(cuCtxSetCurrent(primary));
		pool_check();
		graphs_end(&g);

		graphs_make(&g);
		MUST(cuDevicePrimaryCtxReset(0));
		MUST(cuDevicePrimaryCtxRelease(0));
		MUST(cuDevicePrimaryCtxRetain(&primary, 0));
		MUST(cuCtxSetCurrent(primary));
		graphs_end(&g);

		places_use(create(), primary);
		MUST(cuDevicePrimaryCtxRelease(0));
		MUST(cuDevicePrimaryCtxRetain(&primary, 0));
		MUST(cuCtxSetCurrent(primary));
	}
	printf("what is gone is gone\n");
	return 0;
}
