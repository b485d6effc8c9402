/* SPDX-License-Identifier: Apache-2.0
 *
 * What a profiler beside the driver (softgpu/cupti) needs of it and CUDA has no call for: to be
 * told of each piece of work that the device did.
 *
 * A call that puts work on the device has a number, from 1 on, and all of its work carries it.
 * Contexts are numbered from 1 on; streams as on an H200: the first context's legacy one is 7,
 * its further ones 13 and so on; graphs and executable graphs together from 1 on.
 */
#ifndef VCUDA_SOFTGPU_DRIVER_WORK_H
#define VCUDA_SOFTGPU_DRIVER_WORK_H

#include <cuda.h>
#include <stdbool.h>
#include <stdint.h>

enum softgpu_work_kind {
	SOFTGPU_WORK_KERNEL,
	SOFTGPU_WORK_COPY,
	SOFTGPU_WORK_FILL,
	SOFTGPU_WORK_GRAPH, /* all of a launch */
};
/* Where a side of a copy or a fill lies. */
enum softgpu_place {
	SOFTGPU_PLACE_PAGEABLE,
	SOFTGPU_PLACE_PINNED,
	SOFTGPU_PLACE_DEVICE,
	SOFTGPU_PLACE_ARRAY,
};
struct softgpu_kernel {
	const char *name; /* until the profiler's function returns */
	uint32_t grid[3], block[3];
	uint32_t cluster[3]; /* 0: none */
	uint32_t cluster_policy, cluster_most;
	uint32_t registers, static_shared, dynamic_shared, local; /* bytes; of a thread */
	int carveout; /* percent; -1: none asked for */
	bool cooperative;
};
struct softgpu_side {
	enum softgpu_place place;
	uint32_t device, context; /* of memory that a device has */
};
struct softgpu_work {
	enum softgpu_work_kind kind;
	uint64_t wanted;     /* the profiler's answer at the call */
	uint64_t start, end; /* ns of CLOCK_REALTIME; start < end */
	uint32_t call;
	uint32_t device, context, stream;
	uint32_t graph;	   /* the executable graph's number, or 0 */
	uint64_t node;	   /* graph << 32 | index, or 0 */
	uint64_t bytes;	   /* COPY, FILL */
	bool asynchronous; /* COPY, FILL: the call said so, or it is a graph's */
	uint32_t value;	   /* FILL: of an element */
	struct softgpu_side source, target;
	struct softgpu_kernel kernel;
};

/* Both are called by whatever thread, and may be under the driver's locks: they call nothing of
 * CUDA. */
struct softgpu_profiler {
	/* This thread calls something that puts work on a device. What is wanted of it; 0:
	 * nothing, and it is not told. */
	uint64_t (*called)(uint32_t call, uint32_t context);
	/* It is done; nobody who waits for it has been told yet. */
	void (*ran)(const struct softgpu_work *work);
	/* Of what is wanted: kernels one at a time; graphs as a whole. */
	uint64_t serial, graphs;
};

#pragma GCC visibility push(default)
/* From now on; what was called before is not told, and what was called until then is told when
 * it is done. NULL: nobody. The struct stays for ever. */
void cuSoftgpuProfile(const struct softgpu_profiler *profiler);
/* The numbers by which work names them. NULL is the thread's context; per_thread: a NULL stream
 * is the thread's own. */
CUresult cuSoftgpuProfileContext(CUcontext context, uint32_t *number, uint32_t *device);
CUresult cuSoftgpuProfileStream(
	CUcontext context, CUstream stream, bool per_thread, uint32_t *number);
CUresult cuSoftgpuProfileGraph(CUgraph graph, uint32_t *number);
CUresult cuSoftgpuProfileGraphExec(CUgraphExec exec, uint32_t *number);
#pragma GCC visibility pop

#endif
