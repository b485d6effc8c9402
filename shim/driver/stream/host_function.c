/* SPDX-License-Identifier: Apache-2.0
 *
 * Host functions: the worker stops the stream and sends a ticket; a thread of ours, started
 * with the first host function, runs the function and says that it is done.
 */
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "common/wait.h"
#include "shim/generated/cuda_hand.h"
#include "protocol/generated/vcuda_ops.h"
#include "protocol/generated/vcuda_wire.h"
#include "shim/generated/vcuda_send.h"
#include "shim/driver/stream/host_function.h"
#include "shim/driver/graph/capture.h"
#include "shim/driver/context/context.h"
#include "shim/driver/stream/function_order.h"
#include "shim/driver/memory/managed/managed.h"
#include "shim/engine/engine.h"
#include "shim/engine/handle.h"
#include "shim/driver/graph/graph.h"
#include "shim/driver/memory/mirror/mirror.h"
#include "shim/engine/session.h"
#include "shim/engine/thread.h"
#include "shim/engine/lock.h"

#define CALLBACK_BUCKETS 256
#define CALLBACK_LOOK_NS 50000000u
#define DONE_TRIES 1000
#define DONE_PAUSE_MS 5

struct callback {
	struct callback *next;
	uint64_t ticket;
	struct function_issued issued; /* of a function that is no node */
	CUhostFn function;	       /* one of the two */
	CUstreamCallback on_stream;
	CUstream stream;
	void *argument;
	/* Of a graph's host node: it stays until no graph has it and all launches have run. */
	bool node;
	bool dropped;
	uint64_t launches;
	struct node_launch *first, **last; /* those that need the app's memory, in order */
};

/* A launch of a graph with a host node and copies: what lies before the node must be in the
 * app's memory when it runs, and what lies behind it is read once it has run. */
struct node_launch {
	struct node_launch *next;
	struct context *context;
	struct parts parts;
	size_t at; /* the node's own place */
	struct part_runs *runs;
};

static struct {
	pthread_mutex_t lock;
	struct callback *waiting[CALLBACK_BUCKETS];
	uint64_t last_ticket;
	bool running[CHANNEL_AGENTS]; /* a thread for each session */
	_Atomic uint32_t thread;      /* its gettid() */
} callbacks = {.lock = PTHREAD_MUTEX_INITIALIZER};
LOCK_RANK(callback, callbacks.lock, LOCK_CALLBACK);

uint32_t host_function_thread_id(void)
{
	return atomic_load(&callbacks.thread);
}

/* With the lock held. */
static struct callback **callback_at(uint64_t ticket)
{
	struct callback **at = &callbacks.waiting[ticket % CALLBACK_BUCKETS];

	while (*at && (*at)->ticket != ticket)
		at = &(*at)->next;
	return at;
}

/* A node's stays where it is. */
static struct callback *callback_pop(uint64_t ticket)
{
	struct callback **at, *found;

	pthread_mutex_lock(&callbacks.lock);
	at = callback_at(ticket);
	found = *at;
	if (found && !found->node)
		*at = found->next;
	pthread_mutex_unlock(&callbacks.lock);
	return found;
}

static void node_launch_free(struct node_launch *launch)
{
	if (launch) {
		parts_free(&launch->parts);
		part_runs_put(launch->runs);
	}
	free(launch);
}

/* With the lock held: the node's function, unlinked, if nothing needs it any more. */
static struct callback *callback_node_unlink(struct callback **at)
{
	struct callback *callback = *at;

	if (!callback->dropped || callback->launches)
		return NULL;
	*at = callback->next;
	return callback;
}

/* Without the lock: memory of its launches goes, and memory has locks of its own. */
static void callback_node_free(struct callback *callback)
{
	while (callback && callback->first) {
		struct node_launch *launch = callback->first;

		callback->first = launch->next;
		node_launch_free(launch);
	}
	free(callback);
}

/* *OUT: NULL where the graph has no copies with the app. */
static CUresult node_launch_new(
	const struct parts *parts, size_t at, struct part_runs *runs, struct node_launch **out)
{
	struct node_launch *launch;
	bool copies = false;
	CUstream ahead;
	CUresult status;

	*out = NULL;
	for (size_t i = 0; i < parts->count; i++)
		copies |= parts->places[i].part->kind == PART_IN ||
			  parts->places[i].part->kind == PART_OUT ||
			  parts->places[i].part->kind == PART_WITHIN;
	if (!copies)
		return CUDA_SUCCESS;
	status = stream_ahead(context_current(), &ahead); /* made now, while nothing holds */
	launch = status ? NULL : calloc(1, sizeof(*launch));
	if (!launch)
		return status ? status : CUDA_ERROR_OUT_OF_MEMORY;
	launch->context = context_current();
	launch->at = at;
	launch->runs = runs;
	atomic_fetch_add(&runs->refs, 1);
	if (!parts_copy(&launch->parts, parts)) {
		node_launch_free(launch);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	*out = launch;
	return CUDA_SUCCESS;
}

CUresult host_function_node_launched(
	uint64_t ticket, const struct parts *parts, size_t place, struct part_runs *runs)
{
	struct node_launch *launch;
	struct callback **at, *callback;
	CUresult status = node_launch_new(parts, place, runs, &launch);

	if (status)
		return status;
	pthread_mutex_lock(&callbacks.lock);
	at = callback_at(ticket);
	callback = *at;
	if (callback) {
		callback->launches++;
		function_begun(NULL);
	}
	if (callback && launch) {
		*callback->last = launch;
		callback->last = &launch->next;
	}
	pthread_mutex_unlock(&callbacks.lock);
	if (!callback)
		node_launch_free(launch);
	return CUDA_SUCCESS;
}

static struct node_launch *node_launch_pop(struct callback *callback)
{
	struct node_launch *launch;

	pthread_mutex_lock(&callbacks.lock);
	launch = callback->first;
	if (launch) {
		callback->first = launch->next;
		if (!callback->first)
			callback->last = &callback->first;
	}
	pthread_mutex_unlock(&callbacks.lock);
	return launch;
}

/* The app's memory as a host node finds it, and as the graph finds it behind the node. */
static void node_launch_copy(const struct node_launch *launch, enum part_kind kind)
{
	CUstream ahead;

	thread_set(launch->context);
	if (!stream_ahead(launch->context, &ahead)) {
		parts_move(&launch->parts, kind, launch->at, launch->runs, ahead);
		hand_cuStreamSynchronize(ahead);
	}
	thread_set(NULL);
	thread_self.session = launch->context->session;
}

void host_function_node_drop(uint64_t ticket)
{
	struct callback **at, *ended = NULL;

	pthread_mutex_lock(&callbacks.lock);
	at = callback_at(ticket);
	if (*at) {
		(*at)->dropped = true;
		ended = callback_node_unlink(at);
	}
	pthread_mutex_unlock(&callbacks.lock);
	callback_node_free(ended);
}

/* One launch of it has run. */
static void callback_node_ran(uint64_t ticket)
{
	struct callback **at, *ended = NULL;

	pthread_mutex_lock(&callbacks.lock);
	at = callback_at(ticket);
	if (*at && (*at)->launches) {
		(*at)->launches--;
		ended = callback_node_unlink(at);
	}
	pthread_mutex_unlock(&callbacks.lock);
	callback_node_free(ended);
}

/* The stream waits for this word: without memory for it there is no stream any more. */
static void callback_done(uint64_t ticket)
{
	for (int i = 0; send_vcudaHostFuncDone(ticket) == CUDA_ERROR_OUT_OF_MEMORY; i++) {
		if (i == DONE_TRIES) {
			session_mark_lost(CUDA_ERROR_OUT_OF_MEMORY,
				"no memory to tell that a host function has run");
			return;
		}
		poll(NULL, 0, DONE_PAUSE_MS);
	}
}

static void callback_run(uint64_t ticket)
{
	struct callback *callback = callback_pop(ticket);
	struct node_launch *launch = NULL;

	if (callback) {
		launch = callback->node ? node_launch_pop(callback) : NULL;
		if (launch) {
			node_launch_copy(launch, PART_OUT);
			launch->runs->begun[launch->at] = true;
		}
		mirror_after();
		thread_self.in_callback = thread_self.in_function = true;
		if (callback->on_stream)
			callback->on_stream(callback->stream, CUDA_SUCCESS, callback->argument);
		else
			callback->function(callback->argument);
		thread_self.in_callback = thread_self.in_function = false;
		managed_push_callback();
		mirror_before();
		if (launch)
			node_launch_copy(launch, PART_IN);
		node_launch_free(launch);
		function_ended(callback->node ? NULL : &callback->issued);
		if (callback->node)
			callback_node_ran(ticket);
		else
			free(callback);
	}
	callback_done(ticket);
	handle_recycle(); /* this thread begins no calls */
}

static void *callback_thread(void *of)
{
	struct session *here = of;
	struct channel_page *page = here->page;
	uint64_t head = atomic_load(&page->upcall_head);

	thread_runs_program();
	thread_self.session = here;
	atomic_store(&callbacks.thread, (uint32_t)syscall(SYS_gettid));
	while (atomic_load(&here->phase) == SESSION_READY) {
		uint32_t progress = atomic_load(&page->progress);

		while (atomic_load_explicit(&page->upcall_tail, memory_order_acquire) != head) {
			struct channel_upcall upcall = here->upcalls[head % CHANNEL_UPCALLS];

			atomic_store(&page->upcall_head, ++head);
			if (upcall.what == UPCALL_HOST_FUNC)
				callback_run(upcall.value);
		}
		atomic_fetch_add(&page->want_progress, 1);
		atomic_thread_fence(memory_order_seq_cst);
		if (atomic_load(&page->upcall_tail) == head)
			wait_sleep(&page->progress, progress, CALLBACK_LOOK_NS);
		atomic_fetch_sub(&page->want_progress, 1);
		session_check();
	}
	return NULL;
}

/* With the lock held. */
static CUresult callback_start(void)
{
	struct session *here = session_here();
	pthread_t thread;
	int ret;

	if (callbacks.running[here->index])
		return CUDA_SUCCESS;
	ret = pthread_create(&thread, NULL, callback_thread, here);
	if (ret)
		return CUDA_ERROR_OPERATING_SYSTEM;
	pthread_detach(thread);
	callbacks.running[here->index] = true;
	return CUDA_SUCCESS;
}

/* Gives it a ticket; frees it where that fails. */
static CUresult callback_keep(struct callback *callback)
{
	uint64_t ticket;
	CUresult status;

	pthread_mutex_lock(&callbacks.lock);
	status = callback_start();
	ticket = ++callbacks.last_ticket;
	if (!status) {
		callback->ticket = ticket;
		callback->next = callbacks.waiting[ticket % CALLBACK_BUCKETS];
		callbacks.waiting[ticket % CALLBACK_BUCKETS] = callback;
		if (!callback->node)
			function_begun(&callback->issued);
	}
	pthread_mutex_unlock(&callbacks.lock);
	if (status)
		free(callback);
	return status;
}

CUresult host_function_node_new(CUhostFn function, void *argument, struct part **out)
{
	struct callback *callback = calloc(1, sizeof(*callback));
	struct part *part = part_new(PART_HOST);
	CUresult status;

	if (!callback || !part) {
		free(callback);
		free(part);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	callback->function = function;
	callback->argument = argument;
	callback->node = true;
	callback->last = &callback->first;
	status = callback_keep(callback);
	if (status) {
		free(part);
		return status;
	}
	part->number = callback->ticket;
	*out = part;
	return CUDA_SUCCESS;
}

bool host_function_node_read(uint64_t ticket, CUhostFn *function, void **argument)
{
	struct callback **at;
	bool found;

	pthread_mutex_lock(&callbacks.lock);
	at = callback_at(ticket);
	found = *at != NULL;
	if (found) {
		*function = (*at)->function;
		*argument = (*at)->argument;
	}
	pthread_mutex_unlock(&callbacks.lock);
	return found;
}

static CUresult callback_add(struct callback *callback, CUstream stream)
{
	struct shim_call call;
	struct wire_vcudaHostFunc *body;
	uint64_t ticket;
	CUresult status = callback_keep(callback);

	if (status)
		return status;
	ticket = callback->ticket;
	body = shim_begin(&call, OP_vcudaHostFunc, sizeof(*body));
	body->stream = shim_stream(&call, stream);
	body->ticket = ticket;
	function_order_issued(body->stream, callback->issued.number);
	status = shim_post(&call);
	if (status) {
		callback = callback_pop(ticket);
		if (callback)
			function_ended(&callback->issued);
		free(callback);
	}
	return status;
}

/* The stream captures: the worker makes a node of it. */
static CUresult callback_captured(
	struct graph *graph, uint64_t stream, CUhostFn fn, void *argument)
{
	struct part *part;
	CUresult status = host_function_node_new(fn, argument, &part);

	if (status)
		return status;
	status = send_vcudaHostFunc(stream, part->number);
	if (!status && parts_add_captured(&graph->parts, part, graph, stream))
		return CUDA_SUCCESS;
	part_put(part);
	return status ? status : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult hand_cuLaunchHostFunc(CUstream hStream, CUhostFn fn, void *userData)
{
	struct callback *callback;
	struct graph *graph;
	uint64_t stream;
	CUresult status;

	if (!fn)
		return CUDA_ERROR_INVALID_VALUE;
	status = capture_node(hStream) ?: stream_number(hStream, &stream);
	if (status)
		return status;
	graph = capture_graph(stream);
	if (graph)
		return callback_captured(graph, stream, fn, userData);
	callback = calloc(1, sizeof(*callback));
	if (!callback)
		return CUDA_ERROR_OUT_OF_MEMORY;
	callback->function = fn;
	callback->argument = userData;
	return callback_add(callback, hStream);
}

/* How NVIDIA's thread waits for the next one; ours sleeps. */
CUresult hand_cuLaunchHostFunc_v2(
	CUstream hStream, CUhostFn fn, void *userData, unsigned int syncMode)
{
	if (syncMode > 1) /* CU_HOST_TASK_BLOCKING, CU_HOST_TASK_SPINWAIT */
		return CUDA_ERROR_INVALID_VALUE;
	return hand_cuLaunchHostFunc(hStream, fn, userData);
}

CUresult hand_cuStreamAddCallback(
	CUstream hStream, CUstreamCallback callback, void *userData, unsigned int flags)
{
	struct callback *added;
	uint64_t number;
	CUresult status;

	if (!callback || flags)
		return CUDA_ERROR_INVALID_VALUE;
	status = capture_never(hStream) ?: stream_number(hStream, &number);
	if (status)
		return status;
	added = calloc(1, sizeof(*added));
	if (!added)
		return CUDA_ERROR_OUT_OF_MEMORY;
	added->on_stream = callback;
	added->stream = hStream;
	added->argument = userData;
	return callback_add(added, hStream);
}
