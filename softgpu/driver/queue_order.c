/* SPDX-License-Identifier: Apache-2.0
 *
 * The NULL stream beside non-blocking streams, which do not wait for it, nor it for them.
 *
 * CUDA leaves their order open. Programs depend on one all the same, mostly without knowing it:
 * operators in the NULL stream beside a framework that has a non-blocking one, and memory that
 * goes from one to the other. On a GPU, which is done with a kernel before the host comes with
 * the next thing, they are right; here a kernel takes tens of times as long. So work of
 * either begins behind what the other was given before, while that gets on.
 *
 * Work that waits in the device for what comes after it is legal, too: what stands still for
 * PATIENCE_NS holds nobody any more.
 */
#include "softgpu/driver/softgpu.h"

#include <stdlib.h>

#include "softgpu/driver/queue_core.h"

#define PATIENCE_NS 50000000u

struct ahead {
	struct CUstream_st *stream; /* referenced */
	uint64_t seq;
	uint64_t completed, since; /* how far it was, and when that was first seen */
};
struct order_op {
	struct op op;
	size_t count;
	struct ahead ahead[];
};

static bool order_poll(struct op *base);

/* A stream that waits for a value in memory has nothing to do; one that stood still with the
 * operation at its head was waited for already. */
static bool holds(struct ahead *ahead, uint64_t now)
{
	struct CUstream_st *stream = ahead->stream;

	if (stream->completed >= ahead->seq || stream->overdue == stream->completed + 1)
		return false;
	if (stream->state == STREAM_WATCH && stream->first->poll != order_poll)
		return false;
	if (!ahead->since || ahead->completed != stream->completed) {
		ahead->completed = stream->completed;
		ahead->since = now;
	}
	if (now - ahead->since < PATIENCE_NS)
		return true;
	stream->overdue = stream->completed + 1;
	return false;
}

static bool order_poll(struct op *base)
{
	struct order_op *op = (struct order_op *)base;
	uint64_t now = softgpu_now_ns();
	bool done;

	pthread_mutex_lock(&queue_lock);
	while (op->count && !holds(&op->ahead[op->count - 1], now))
		queue_unref(op->ahead[--op->count].stream);
	for (size_t i = 0; i + 1 < op->count; i++)
		holds(&op->ahead[i], now); /* its time runs, too */
	done = !op->count;
	pthread_mutex_unlock(&queue_lock);
	return done;
}

static void order_drop(struct op *base)
{
	struct order_op *op = (struct order_op *)base;

	while (op->count)
		queue_unref(op->ahead[--op->count].stream);
	free(op);
}

/* What the other side was given since the last time, if any of it is left. */
static void order_behind(struct order_op *op, struct CUstream_st *other, uint64_t *told)
{
	if (!other->first || other->submitted <= *told)
		return;
	*told = other->submitted;
	queue_ref(other);
	op->ahead[op->count++] = (struct ahead){.stream = other, .seq = other->submitted};
}

void queue_order_locked(struct CUstream_st *stream, const struct op *op)
{
	struct CUstream_st *legacy = stream->context->legacy;
	struct order_op *order;
	size_t most = 0;

	if (op->kind != OP_WORK && op->kind != OP_HOST)
		return;
	if (stream->flags & CU_STREAM_NON_BLOCKING)
		most = legacy && legacy->first && legacy->submitted > stream->behind_legacy;
	else if (stream->legacy)
		for (struct CUstream_st *s = stream->context->streams; s; s = s->next)
			most += s->flags & CU_STREAM_NON_BLOCKING && s->first &&
				s->submitted > s->legacy_behind;
	/* Without memory the order is open. */
	order = most ? calloc(1, sizeof(*order) + most * sizeof(*order->ahead)) : NULL;
	if (!order)
		return;
	order->op.kind = OP_WATCH;
	order->op.poll = order_poll;
	order->op.drop = order_drop;
	if (!stream->legacy)
		order_behind(order, legacy, &stream->behind_legacy);
	else
		for (struct CUstream_st *s = stream->context->streams; s; s = s->next)
			if (s->flags & CU_STREAM_NON_BLOCKING)
				order_behind(order, s, &s->legacy_behind);
	queue_submit_locked(stream, &order->op, false);
}
