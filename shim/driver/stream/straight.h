/* SPDX-License-Identifier: Apache-2.0
 *
 * The way of nearly all work to its stream, in line: one agent, no capture, no managed memory,
 * and a stream of the current context that has nothing to wait for first.  Who is told that it
 * is another case goes the long way (stream.c), which knows all of them.
 */
#ifndef VCUDA_SHIM_DRIVER_STREAM_STRAIGHT_H
#define VCUDA_SHIM_DRIVER_STREAM_STRAIGHT_H

#include "shim/driver/graph/capture.h"
#include "shim/driver/stream/order.h"
#include "shim/driver/stream/stream.h"
#include "shim/engine/driver.h"
#include "shim/engine/handle.h"

/* The stream behind HANDLE where it is that case, and what crosses for it; NULL: it may be
 * another one. */
static inline struct stream *stream_straight(CUstream handle, uint64_t *number)
{
	struct context *context = thread_self.plain;
	struct stream *stream;

	if (!context || !atomic_load_explicit(&context->live, memory_order_relaxed) ||
		capture_any() || managed_any)
		return NULL;
	if (!handle || handle == CU_STREAM_LEGACY) {
		stream = context->legacy;
		*number = 0;
	} else {
		*number = (uint64_t)(uintptr_t)handle;
		stream = handle_object(*number, KIND_CUstream);
		if (!stream || stream->context != context)
			return NULL;
	}
	return atomic_load_explicit(&context->session->order.loose, memory_order_relaxed) <=
			       atomic_load_explicit(&stream->joined, memory_order_relaxed)
		       ? stream
		       : NULL;
}

#endif
