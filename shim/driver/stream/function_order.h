/* SPDX-License-Identifier: Apache-2.0
 *
 * The host functions that are outstanding, and which of them the work of a stream may come
 * behind: by its own functions, by events that it waits for, and by graphs. The legacy stream
 * orders no functions, as natively: a stream counts as idle while a function is all that it
 * waits for. Functions are known by their numbers, from 1 on. What a program orders by memory
 * that kernels and the host share, or that a stream waits for, is not followed: then any
 * function may be before any work.
 */
#ifndef VCUDA_SHIM_DRIVER_STREAM_FUNCTION_ORDER_H
#define VCUDA_SHIM_DRIVER_STREAM_FUNCTION_ORDER_H

#include <stdbool.h>
#include <stdint.h>

#include "shim/driver/stream/stream.h"

/* One that has not run to its end. */
struct function_issued {
	uint64_t number;
	struct function_issued *older, *newer;
};

/* Before it is sent; NULL: a launch of a graph's host node. */
void function_begun(struct function_issued *function);
/* It has run, or was not sent. */
void function_ended(struct function_issued *function);

/* Is there one that has not run to its end? */
bool function_outstanding(void);
/* Is there such a one among the first NUMBER? */
bool function_outstanding_to(uint64_t number);
/* How many there were so far: the last one's number. */
uint64_t function_issued(void);

/* The last one that may be before what the stream gets next, as may all of lower numbers. */
uint64_t function_order_last(uint64_t stream);
/* The stream has got function NUMBER. */
void function_order_issued(uint64_t stream, uint64_t number);
void function_order_recorded(struct event *event, uint64_t stream);
/* Of all that its context has. */
void function_order_recorded_context(struct event *event);
void function_order_awaited(uint64_t stream, const struct event *event);
void function_order_awaited_context(const struct event *event);
/* A copy that CUDA calls synchronous was posted on the stream: the program takes it, and so the
 * functions before it, to be done. */
void function_order_copied(uint64_t stream);
/* The program orders work in a way that is not followed. */
void function_order_unknown(void);

#endif
