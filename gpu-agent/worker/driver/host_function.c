/* SPDX-License-Identifier: Apache-2.0
 *
 * Host functions run in the app.  The driver's callback thread hands the ticket to the loop and
 * waits, so the stream waits, until the app has run the function and says so.
 */
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "gpu-agent/worker/loop/closing.h"
#include "gpu-agent/worker/driver.h"
#include "gpu-agent/worker/driver/graph/graph.h"
#include "gpu-agent/worker/loop/fence.h"
#include "gpu-agent/worker/handle.h"
#include "gpu-agent/worker/loop/issued.h"
#include "gpu-agent/worker/reply/reply.h"

struct host_func {
	struct worker *w;
	uint64_t ticket;
	bool upcall_sent;
	bool done;
	struct host_func *next;
};

/* The process's one: a node's argument is its ticket, so it has no room for it. */
static struct worker *callback_worker;

int host_function_open(struct worker *w)
{
	struct callbacks *c = &w->callbacks;

	callback_worker = w;
	pthread_mutex_init(&c->lock, NULL);
	pthread_cond_init(&c->done, NULL);
	c->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	return c->wake < 0 ? -1 : 0;
}

/* On a thread of the driver's, until the app has run it. */
static void callback_wait(struct host_func *f)
{
	struct host_func **at;
	struct callbacks *c = &f->w->callbacks;
	uint64_t one = 1;

	pthread_mutex_lock(&c->lock);
	for (at = &c->waiting; *at; at = &(*at)->next)
		;
	*at = f;
	/* Full: the loop is awake anyway; failed: its next turn sees the word. */
	atomic_store(&c->more, true);
	(void)!write(c->wake, &one, sizeof(one));
	while (!f->done && !c->over)
		pthread_cond_wait(&c->done, &c->lock);
	for (at = &c->waiting; *at != f; at = &(*at)->next)
		;
	*at = f->next;
	pthread_mutex_unlock(&c->lock);
}

static void CUDA_CB callback_run(void *argument)
{
	callback_wait(argument);
	free(argument);
}

/* A host node: it runs as often as its graph does, and more than once at a time where several
 * executable graphs have it, so that what waits lives here on the stack. */
void CUDA_CB host_function_run_node(void *ticket)
{
	struct host_func f = {.w = callback_worker, .ticket = (uint64_t)(uintptr_t)ticket};

	callback_wait(&f);
}

CUresult serve_vcudaHostFunc(struct worker *w, struct request *r)
{
	const struct wire_vcudaHostFunc *req = (const void *)r->body;
	struct worker_stream *object = worker_stream_object(w, r, req->stream);
	struct host_func *f;
	struct pending *look;
	CUresult status;

	if (worker_refused(r))
		return r->refused;
	if (capture_of(w, object))
		return w->cuda.cuLaunchHostFunc(
			object->stream, host_function_run_node, (void *)(uintptr_t)req->ticket);
	f = calloc(1, sizeof(*f));
	if (!f)
		return CUDA_ERROR_OUT_OF_MEMORY;
	f->w = w;
	f->ticket = req->ticket;
	status = w->cuda.cuLaunchHostFunc(object->stream, callback_run, f);
	if (status) {
		free(f);
		return status;
	}
	w->callbacks.outstanding++;
	/* Behind a fault it never runs: that has to be noticed even while frames are held. */
	look = fence_new(w, PENDING_LOOK, object->context);
	if (look && !fence_stream(w, look, object))
		fence_push(w, look);
	else if (look)
		fence_free(w, look);
	return CUDA_SUCCESS;
}

static void callback_done(struct worker *w, uint64_t ticket)
{
	struct callbacks *c = &w->callbacks;
	struct host_func *f;
	bool last = false;

	pthread_mutex_lock(&c->lock);
	for (f = c->waiting; f && f->ticket != ticket; f = f->next)
		;
	if (f && !f->done) {
		f->done = true;
		if (w->callbacks.outstanding && !--w->callbacks.outstanding) {
			uint64_t none;

			last = true;
			/* Nobody looks at it any more: it must not keep the loop awake. */
			(void)!read(c->wake, &none, sizeof(none));
		}
		pthread_cond_broadcast(&c->done);
	}
	pthread_mutex_unlock(&c->lock);
	if (last)
		issued_over(w);
}

CUresult serve_vcudaHostFuncDone(struct worker *w, struct request *r)
{
	const struct wire_vcudaHostFuncDone *req = (const void *)r->body;

	callback_done(w, req->ticket);
	closing_poll(w);
	return CUDA_SUCCESS;
}

bool host_function_poll(struct worker *w)
{
	struct callbacks *c = &w->callbacks;
	uint64_t count;
	bool sent = false, room;

	if (w->callbacks.outstanding) {
		(void)!read(c->wake, &count, sizeof(count));
		c->behind |= atomic_exchange(&c->more, false);
	}
	if (!c->behind)
		return false;
	pthread_mutex_lock(&c->lock);
	/* Copies that came before it in stream order are in the app's memory before it runs. */
	room = fence_flush_copies(w);
	for (struct host_func *f = c->waiting; f && room; f = f->next) {
		room = reply_room(w);
		if (f->upcall_sent || !room)
			continue;
		reply_upcall(w, UPCALL_HOST_FUNC, f->ticket);
		f->upcall_sent = sent = true;
	}
	c->behind = !room;
	pthread_mutex_unlock(&c->lock);
	return sent;
}

void host_function_over(struct worker *w)
{
	pthread_mutex_lock(&w->callbacks.lock);
	w->callbacks.over = true;
	pthread_cond_broadcast(&w->callbacks.done);
	pthread_mutex_unlock(&w->callbacks.lock);
}
