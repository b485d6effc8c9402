/* SPDX-License-Identifier: Apache-2.0
 *
 * What queue_wait.c, where the calls wait, has of queue.c, which owns the lists and the
 * threads.
 */
#ifndef VCUDA_SOFTGPU_DRIVER_QUEUE_CORE_H
#define VCUDA_SOFTGPU_DRIVER_QUEUE_CORE_H

#include "softgpu/driver/softgpu.h"

/* queue_submit's answer where the operation became a node of a graph. */
#define QUEUE_CAPTURED UINT64_MAX

/* Its waits are timed by the monotonic clock (pthread_cond_clockwait wants glibc 2.30). */
void queue_cond_begin(pthread_cond_t *cond);
/* With the lock held: until it is signalled, or UNTIL, in ns as softgpu_now_ns(). */
void queue_wait_until(pthread_cond_t *cond, uint64_t until);
/* With the lock held: runs a stream that is READY, and whose work no thread has begun, until
 * SEQ is done or its turn is over. */
void queue_help(struct CUstream_st *stream, uint64_t seq);
/* With the lock held: OP, which comes next, is of a stream that keeps its place among others.
 */
void queue_order_locked(struct CUstream_st *stream, const struct op *op);

#endif
