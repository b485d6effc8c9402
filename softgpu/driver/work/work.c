/* SPDX-License-Identifier: Apache-2.0
 *
 * The profiler's side of the queue: whose call an operation is, and when it ran.
 */
#include "softgpu/driver/work/work.h"

#include <stdlib.h>
#include <time.h>

#include "softgpu/driver/graph/graph.h"
#include "softgpu/driver/softgpu.h"

_Atomic(const struct softgpu_profiler *) work_profiler;

/* Who is told of what was called before the profiler went. */
_Atomic(const struct softgpu_profiler *) work_last;
static atomic_uint calls, graphs;
/* Held by a kernel that is to run alone. */
static pthread_mutex_t alone = PTHREAD_MUTEX_INITIALIZER;

/* The call that this thread is in, where it queues several operations. */
static __thread struct {
	bool open;
	uint32_t number; /* 0: it has queued nothing yet */
	uint64_t wanted;
} call;

static uint64_t wall_ns(void)
{
	struct timespec time;

	clock_gettime(CLOCK_REALTIME, &time);
	return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

static const struct softgpu_profiler *profiler(void)
{
	return atomic_load_explicit(&work_profiler, memory_order_acquire);
}

/* ---- calls ---- */

static uint32_t call_number(const struct CUctx_st *context, uint64_t *wanted)
{
	const struct softgpu_profiler *p = profiler();
	uint32_t number;

	*wanted = 0;
	if (!p)
		return 0;
	number = atomic_fetch_add(&calls, 1) + 1;
	*wanted = p->called(number, (uint32_t)context->id);
	return number;
}

void work_call_begin(void)
{
	call.open = true;
	call.number = 0;
	call.wanted = 0;
}

void work_call_end(void)
{
	call.open = false;
}

void work_queued(struct op *op)
{
	if (!call.open) {
		if (op->profile.tell)
			op->profile.call = call_number(op->context, &op->profile.wanted);
		return;
	}
	if (!call.number)
		call.number = call_number(op->context, &call.wanted);
	op->profile.call = call.number;
	op->profile.wanted = call.wanted;
}

/* ---- work ---- */

static void work_of(const struct op *op, struct softgpu_work *work)
{
	*work = (struct softgpu_work){.wanted = op->profile.wanted,
		.call = op->profile.call,
		.device = (uint32_t)op->context->device->ordinal,
		.context = (uint32_t)op->context->id,
		.stream = op->stream->number,
		.graph = op->profile.graph,
		.node = op->profile.graph
				? (uint64_t)op->profile.graph << 32 | op->profile.index
				: 0};
}

static void work_done(struct softgpu_work *work)
{
	work->end = wall_ns();
	if (work->end <= work->start) /* the clock is coarse, or was set */
		work->end = work->start + 1;
	atomic_load(&work_last)->ran(work);
}

void work_run(struct op *op)
{
	struct softgpu_work work;
	bool serial;

	if (!op->profile.tell) {
		op->run(op);
		return;
	}
	work_of(op, &work);
	op->profile.tell(op, &work);
	serial = work.kind == SOFTGPU_WORK_KERNEL &&
		 work.wanted & atomic_load(&work_last)->serial;
	if (serial)
		pthread_mutex_lock(&alone);
	work.start = wall_ns();
	op->run(op);
	work_done(&work);
	if (serial)
		pthread_mutex_unlock(&alone);
}

/* ---- graphs ---- */

/* Two operations that share what the first one notes. */
struct graph_ops {
	struct op begin, end;
	uint64_t start;
	unsigned refs; /* under queue_lock */
};

static void ops_put(struct graph_ops *ops)
{
	if (!--ops->refs)
		free(ops);
}

static void begin_run(struct op *op)
{
	((struct graph_ops *)((char *)op - offsetof(struct graph_ops, begin)))->start =
		wall_ns();
}

static void begin_drop(struct op *op)
{
	ops_put((struct graph_ops *)((char *)op - offsetof(struct graph_ops, begin)));
}

static void end_run(struct op *op)
{
	struct softgpu_work work;

	work_of(op, &work);
	work.kind = SOFTGPU_WORK_GRAPH;
	work.start =
		((struct graph_ops *)((char *)op - offsetof(struct graph_ops, end)))->start;
	work_done(&work);
}

static void end_drop(struct op *op)
{
	ops_put((struct graph_ops *)((char *)op - offsetof(struct graph_ops, end)));
}

bool work_graph(
	const struct CUctx_st *context, uint32_t graph, struct op **begin, struct op **end)
{
	const struct softgpu_profiler *p = profiler();
	struct graph_ops *ops;

	*begin = *end = NULL;
	if (!p || !call.open)
		return true;
	if (!call.number)
		call.number = call_number(context, &call.wanted);
	if (!(call.wanted & p->graphs))
		return true;
	ops = calloc(1, sizeof(*ops));
	if (!ops)
		return false;
	ops->refs = 2;
	ops->begin.kind = ops->end.kind = OP_MARK;
	ops->begin.run = begin_run;
	ops->begin.drop = begin_drop;
	ops->end.run = end_run;
	ops->end.drop = end_drop;
	ops->end.profile.graph = graph;
	*begin = &ops->begin;
	*end = &ops->end;
	return true;
}

/* ---- numbers ---- */

uint32_t work_graph_number(void)
{
	return atomic_fetch_add(&graphs, 1) + 1;
}

/* As on an H200, where each context begins with seven streams, of which the second is the
 * legacy one. */
unsigned work_stream_number(bool legacy)
{
	static unsigned next = 6;
	unsigned number = legacy ? next + 1 : next;

	next += legacy ? 7 : 1;
	return number;
}

void work_side(uint64_t address, struct softgpu_side *side)
{
	const struct range *range;

	*side = (struct softgpu_side){.place = SOFTGPU_PLACE_PAGEABLE};
	pthread_rwlock_rdlock(&memory_lock);
	if (!memory_in_window(address)) {
		if (ranges_find(&memory_registered, address))
			side->place = SOFTGPU_PLACE_PINNED;
	} else if ((range = ranges_find(&memory_mappings, address))) {
		const struct mapping *mapping = range->owner;

		side->place =
			mapping->physical->device ? SOFTGPU_PLACE_DEVICE : SOFTGPU_PLACE_PINNED;
		if (mapping->physical->device)
			side->device = (uint32_t)mapping->physical->device->ordinal;
	} else if ((range = ranges_find(&memory_blocks, address))) {
		const struct block *block = range->owner;

		side->place =
			block->kind == BLOCK_HOST ? SOFTGPU_PLACE_PINNED : SOFTGPU_PLACE_DEVICE;
		if (block->device)
			side->device = (uint32_t)block->device->ordinal;
		if (block->context)
			side->context = (uint32_t)block->context->id;
	}
	pthread_rwlock_unlock(&memory_lock);
}

/* ---- what the profiler calls ---- */

void cuSoftgpuProfile(const struct softgpu_profiler *wanted)
{
	if (wanted)
		atomic_store(&work_last, wanted);
	atomic_store_explicit(&work_profiler, wanted, memory_order_release);
}

CUresult cuSoftgpuProfileContext(CUcontext handle, uint32_t *number, uint32_t *device)
{
	struct CUctx_st *context = handle;
	CUresult ret = CUDA_SUCCESS;

	if (!handle)
		ret = context_current_any(&context);
	else if (!object_is(handle, OBJECT_CONTEXT))
		ret = CUDA_ERROR_INVALID_CONTEXT;
	if (ret)
		return ret;
	*number = (uint32_t)context->id;
	*device = (uint32_t)context->device->ordinal;
	return CUDA_SUCCESS;
}

CUresult cuSoftgpuProfileStream(
	CUcontext context, CUstream handle, bool per_thread, uint32_t *number)
{
	struct CUstream_st *stream;
	CUcontext before;
	CUresult ret = context ? cuCtxPushCurrent_v2(context) : CUDA_SUCCESS;

	if (ret)
		return ret;
	ret = soft_stream_find(per_thread ? stream_ptsz(handle) : handle, &stream);
	if (!ret) {
		*number = stream->number;
		stream_done(stream);
	}
	if (context)
		cuCtxPopCurrent_v2(&before);
	return ret;
}

CUresult cuSoftgpuProfileGraph(CUgraph graph, uint32_t *number)
{
	CUresult ret = CUDA_ERROR_INVALID_VALUE;

	pthread_mutex_lock(&queue_lock);
	if (object_is(graph, OBJECT_GRAPH)) {
		*number = graph->number;
		ret = CUDA_SUCCESS;
	}
	pthread_mutex_unlock(&queue_lock);
	return ret;
}

CUresult cuSoftgpuProfileGraphExec(CUgraphExec exec, uint32_t *number)
{
	CUresult ret = CUDA_ERROR_INVALID_VALUE;

	pthread_mutex_lock(&queue_lock);
	if (object_is(exec, OBJECT_EXEC)) {
		*number = exec->number;
		ret = CUDA_SUCCESS;
	}
	pthread_mutex_unlock(&queue_lock);
	return ret;
}
