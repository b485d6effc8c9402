/* SPDX-License-Identifier: Apache-2.0
 *
 * Copies that CUDA calls synchronous are posts here, so work on a stream that does not wait for
 * the copy's own stream could overtake them.  A program that copied and then launched on a
 * non-blocking stream, or on another device that reaches that memory, relies on their being
 * done: such a stream is made to wait for the copy, on the device, when it is next used.
 * Another process of which the program knows that it has the memory cannot be made to: where
 * memory is shared, these copies are awaited.
 */
#ifndef VCUDA_SHIM_DRIVER_STREAM_ORDER_H
#define VCUDA_SHIM_DRIVER_STREAM_ORDER_H

#include <stdint.h>

#include "shim/driver/stream/stream.h"
#include "shim/engine/session.h"

/* Frame SEQ was a synchronous copy to the device, or one of another device's memory, on that
 * stream of the context, not awaited. */
CUresult order_copied(struct context *context, uint64_t stream, uint64_t seq);
/* What STREAM of the current context gets next is behind what the legacy stream of another
 * context of its session has so far. */
CUresult order_after(struct context *other, uint64_t stream);
/* The session's memory, or some of it, is another process's, too, from now on: what was copied
 * is there when this returns, and when each later copy does. */
CUresult order_share(struct session *session);
static inline bool order_shared(const struct session *session)
{
	return atomic_load_explicit(&session->order.shared, memory_order_relaxed);
}
/* For work of SESSION that is on no stream: true where it has to come behind such copies, with
 * the stream that has them, of context number *CONTEXT where it is 0. */
bool order_loose(struct session *session, uint64_t *stream, uint16_t *context);
/* Before work on STREAM: waits, on the device, for such copies of any context of its session.
 */
CUresult order_join_slow(struct stream *stream);
static inline CUresult order_join(struct stream *stream)
{
	if (atomic_load_explicit(
		    &stream->context->session->order.loose, memory_order_relaxed) <=
		atomic_load_explicit(&stream->joined, memory_order_relaxed))
		return CUDA_SUCCESS;
	return order_join_slow(stream);
}
/* STREAM of the current context's session is about to capture: nothing of this is left to do on
 * it, or on a legacy one. */
CUresult order_drain(uint64_t stream);
/* The stream is about to be destroyed. */
void order_stream_gone(struct stream *stream);

/* The context is about to be destroyed, which waits for its work. */
void order_context_gone(struct context *context);

#endif
