/* SPDX-License-Identifier: Apache-2.0
 *
 * Waiting for streams: who waits runs the stream's work itself where nobody else has begun it.
 */
#include <stdlib.h>

#include "softgpu/driver/queue_core.h"

/* Waits for SEQ; HELP: runs the stream itself where it can; false after the deadline. */
static bool wait_for(struct CUstream_st *stream, uint64_t seq, bool help, uint64_t deadline)
{
	queue_ref(stream);
	while (stream->completed < seq) {
		pthread_cond_t cond;
		struct waiter waiter = {.seq = seq, .cond = &cond};

		if (help && stream->state == STREAM_READY && stream->first->kind == OP_WORK) {
			queue_help(stream, seq);
			continue;
		}
		queue_cond_begin(&cond);
		waiter.next = stream->waiters;
		stream->waiters = &waiter;
		while (!waiter.done && (!deadline || softgpu_now_ns() < deadline))
			if (deadline)
				queue_wait_until(&cond, deadline);
			else
				pthread_cond_wait(&cond, &queue_lock);
		pthread_cond_destroy(&cond);
		if (!waiter.done) {
			struct waiter **at = &stream->waiters;

			while (*at != &waiter)
				at = &(*at)->next;
			*at = waiter.next;
			queue_unref(stream);
			return false;
		}
	}
	queue_unref(stream);
	return true;
}

void queue_wait_locked(struct CUstream_st *stream, uint64_t seq)
{
	wait_for(stream, seq, true, 0);
}

bool queue_idle_locked(const struct CUctx_st *context)
{
	for (struct CUstream_st *s = context->streams; s; s = s->next)
		if (s->first)
			return false;
	return true;
}

/* Streams are waited for one after another; one that was waited for may have new work, which is
 * not asked for, so each is remembered by the number it had at the beginning. */
bool queue_drain(struct CUctx_st *context, uint64_t deadline_ns)
{
	uint64_t deadline = deadline_ns ? softgpu_now_ns() + deadline_ns : 0;
	struct op_dep *targets = NULL;
	size_t count = 0, room = 0;
	bool done = true;

	pthread_mutex_lock(&queue_lock);
	for (struct CUstream_st *s = context->streams; s; s = s->next)
		room += s->first != NULL;
	if (room)
		targets = calloc(room, sizeof(*targets));
	for (struct CUstream_st *s = context->streams; s && targets; s = s->next)
		if (s->first) {
			queue_ref(s);
			targets[count++] = (struct op_dep){s, s->submitted};
		}
	for (size_t i = 0; i < count; i++) {
		if (done)
			done = wait_for(targets[i].stream, targets[i].seq, !deadline, deadline);
		queue_unref(targets[i].stream);
	}
	/* No memory for the list: wait until nothing at all is left. */
	while (room && !targets && !queue_idle_locked(context)) {
		struct CUstream_st *s = context->streams;

		while (!s->first)
			s = s->next;
		if (!wait_for(s, s->submitted, !deadline, deadline)) {
			done = false;
			break;
		}
	}
	pthread_mutex_unlock(&queue_lock);
	free(targets);
	return done;
}

CUresult queue_run(struct CUstream_st *stream, struct op *op)
{
	uint64_t seq;

	pthread_mutex_lock(&queue_lock);
	seq = queue_submit_locked(stream, op, true);
	if (seq && seq != QUEUE_CAPTURED)
		wait_for(stream, seq, true, 0);
	pthread_mutex_unlock(&queue_lock);
	return seq ? context_fault_of(stream->context) : CUDA_ERROR_OUT_OF_MEMORY;
}
