/* SPDX-License-Identifier: Apache-2.0
 *
 * See beside_call.h.  One semaphore is the loop's, one each call's: whoever gives the place
 * away posts the other's and waits for his own.
 */
#include "gpu-agent/worker/loop/beside_call.h"

#include <errno.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "gpu-agent/worker/loop/beside.h"
#include "gpu-agent/worker/loop/closing.h"
#include "gpu-agent/worker/limits/limits.h"
#include "gpu-agent/worker/reply/reply.h"
#include "gpu-agent/worker/worker_state.h"

#define NAP_NS 50000

struct beside_call {
	struct beside_job job;
	struct worker *w;
	struct beside_call *next;
	serve_function serve;
	struct request r;
	CUresult status;
	sem_t turn;	    /* the loop's place is given to it */
	bool inside;	    /* it is in the loop's place */
	_Atomic bool wants; /* to be */
	uint16_t current; /* its thread's current context, while another is in the loop's place
			   */
	struct worker_stream *streams[BESIDE_STREAMS];
	unsigned stream_count;
	_Alignas(16) unsigned char answer[ANSWER_MAX];
	_Alignas(16) unsigned char body[];
};

/* The other one takes its turn within microseconds, or the process ends with it. */
static void beside_wait(sem_t *turn)
{
	while (sem_wait(turn) && errno == EINTR)
		;
}

static void beside_nap(void)
{
	nanosleep(&(struct timespec){.tv_nsec = NAP_NS}, NULL);
}

/* --- the thread --------------------------------------------------------------------------- */

void beside_leave(const struct request *r)
{
	struct beside_call *call = r->beside;

	if (!call || !call->inside)
		return;
	call->inside = false;
	call->current = call->w->current;
	sem_post(&call->w->beside.turn);
}

void beside_enter(const struct request *r)
{
	struct beside_call *call = r->beside;

	if (!call || call->inside)
		return;
	atomic_store(&call->wants, true);
	beside_awake();
	beside_wait(&call->turn);
	call->inside = true;
}

void beside_others(struct worker *w, const struct request *r)
{
	if (r->beside) {
		beside_leave(r);
		beside_nap();
		beside_enter(r);
	} else {
		beside_pause(w);
	}
}

static void call_run(struct beside_job *job)
{
	struct beside_call *call = (struct beside_call *)job;
	struct worker *w = call->w;

	call->status = call->serve(w, &call->r);
	beside_enter(&call->r);
	/* Work that a look at the stream did not see, as it was not there yet. */
	for (unsigned i = 0; i < call->stream_count; i++)
		limits_work(w, call->streams[i]);
	call->stream_count = 0;
	for (struct beside_call **at = &w->beside.calls; *at; at = &(*at)->next)
		if (*at == call) {
			*at = call->next;
			break;
		}
	beside_leave(&call->r);
}

/* --- the loop ----------------------------------------------------------------------------- */

/* The call's thread goes on in the loop's place, until it leaves it. Each of the two has its
 * own idea of the current context. */
static void call_turn(struct worker *w)
{
	beside_wait(&w->beside.turn);
	w->current = CONTEXT_NONE;
}

bool beside_turns(struct worker *w)
{
	struct beside_call *call = w->beside.calls, *next;
	bool any = false;

	for (; call; call = next) {
		next = call->next;
		if (!atomic_exchange(&call->wants, false))
			continue;
		any = true;
		w->current = call->current;
		sem_post(&call->turn);
		call_turn(w);
	}
	return any;
}

void beside_pause(struct worker *w)
{
	if (!beside_turns(w))
		beside_nap();
}

/* As the loop answers what it served itself. */
static void call_done(struct worker *w, struct beside_job *job)
{
	struct beside_call *call = (struct beside_call *)job;
	struct request *r = &call->r;
	CUresult status = call->status ? call->status : r->refused;

	if (status)
		worker_note(w, status);
	reply_send(w, r->header.tag, status, r->answer, r->answer_bytes);
	sem_destroy(&call->turn);
	free(call);
}

static bool beside_ready(struct worker *w)
{
	if (!w->beside.ready)
		w->beside.ready = !sem_init(&w->beside.turn, 0, 0);
	return w->beside.ready;
}

bool beside_serve(struct worker *w, struct request *r, serve_function serve)
{
	struct beside_call *call;

	if (r->beside || r->header.kind != FRAME_CALL || w->graphs.captures ||
		closing_full(w) || !beside_ready(w))
		return false;
	call = calloc(1, sizeof(*call) + r->header.body);
	if (!call)
		return false;
	call->job =
		(struct beside_job){.run = call_run, .done = call_done, .seq = r->header.seq};
	call->w = w;
	call->serve = serve;
	call->r = *r;
	call->r.beside = call;
	call->r.body = call->body;
	call->r.answer = call->answer;
	call->inside = true;
	call->current = r->header.context;
	memcpy(call->body, r->body, r->header.body);
	memcpy(call->answer, r->answer, r->answer_bytes);
	if (sem_init(&call->turn, 0, 0)) {
		free(call);
		return false;
	}
	call->next = w->beside.calls;
	w->beside.calls = call;
	if (!beside_start(w, &call->job, r->header.context)) {
		w->beside.calls = call->next;
		sem_destroy(&call->turn);
		free(call);
		return false;
	}
	call_turn(w);
	r->later = true;
	return true;
}

bool beside_any(const struct worker *w)
{
	return w->beside.calls;
}

bool beside_outside(const struct worker *w)
{
	for (struct beside_call *call = w->beside.calls; call; call = call->next)
		if (!atomic_load(&call->wants))
			return true;
	return false;
}

uint64_t beside_first(const struct worker *w, const struct request *r)
{
	uint64_t first = r->header.seq;

	for (const struct beside_call *call = w->beside.calls; call; call = call->next)
		if (call->r.header.seq < first)
			first = call->r.header.seq;
	return first;
}

bool beside_uses(struct beside_call *call, struct worker_stream *stream)
{
	for (unsigned i = 0; i < call->stream_count; i++)
		if (call->streams[i] == stream)
			return true;
	if (call->stream_count == BESIDE_STREAMS)
		return false;
	call->streams[call->stream_count++] = stream;
	return true;
}

void beside_unused(struct worker *w, const struct worker_stream *stream)
{
	struct beside_call *call = w->beside.calls;

	while (call) {
		unsigned i = 0;

		while (i < call->stream_count && call->streams[i] != stream)
			i++;
		if (i == call->stream_count) {
			call = call->next;
			continue;
		}
		beside_pause(w);
		call = w->beside.calls;
	}
}

void beside_drain(struct worker *w)
{
	while (beside_any(w))
		beside_pause(w);
}
