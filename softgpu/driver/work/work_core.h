/* SPDX-License-Identifier: Apache-2.0
 *
 * What the driver's files have of work.c. While nobody profiles it costs one load where an
 * operation is queued, and one where it runs.
 */
#ifndef VCUDA_SOFTGPU_DRIVER_WORK_CORE_H
#define VCUDA_SOFTGPU_DRIVER_WORK_CORE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct CUctx_st;
struct op;
struct softgpu_profiler;
struct softgpu_side;
struct softgpu_work;

/* Of an operation. */
struct op_profile {
	/* Says what it is; before it runs, without a lock. NULL: it is nothing to a profiler.
	 */
	void (*tell)(const struct op *op, struct softgpu_work *work);
	uint64_t wanted; /* 0: nothing */
	uint32_t call;
	uint32_t graph, index; /* of the executable graph, and in it */
};

extern _Atomic(const struct softgpu_profiler *) work_profiler;
static inline bool work_on(void)
{
	return atomic_load_explicit(&work_profiler, memory_order_acquire) != NULL;
}
/* Whether somebody ever did. */
extern _Atomic(const struct softgpu_profiler *) work_last;
static inline bool work_ever(void)
{
	return atomic_load_explicit(&work_last, memory_order_acquire) != NULL;
}
/* It is about to be queued; queue_lock held. */
void work_queued(struct op *op);
/* Runs one that is wanted. */
void work_run(struct op *op);
/* What this thread queues until the end is of one call. */
void work_call_begin(void);
void work_call_end(void);
/* What goes into the stream before and behind a graph's launch, for who wants to be told of it
 * as a whole; *BEGIN is NULL else. Each is dropped for itself. In a call; queue_lock held.
 * False: no memory. */
bool work_graph(
	const struct CUctx_st *context, uint32_t graph, struct op **begin, struct op **end);
uint32_t work_graph_number(void);
unsigned work_stream_number(bool legacy); /* queue_lock held */
/* Where memory lies that is no array's, as far as is known; memory_lock is taken. */
void work_side(uint64_t address, struct softgpu_side *side);

#endif
