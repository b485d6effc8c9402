/* SPDX-License-Identifier: Apache-2.0
 *
 * Streams as queues of operations.  Every operation has a number in its stream, and `completed`
 * says how far the stream is: an event is a (stream, number) pair, a dependency too, so waiting
 * for either is one comparison.  A stream that cannot go on hangs itself into the list of
 * waiters of the one stream it waits for next, and nothing polls.
 *
 * A few threads run what is ready: executors (started as needed, gone after a second without
 * work), one for host functions (they may block, and must not hold up kernels), and one that
 * looks at memory while a stream waits for a value there.  A thread that waits for a stream
 * runs the stream's work itself if nobody else has begun it.
 */
#include "softgpu/driver/softgpu.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <time.h>

#include "softgpu/driver/graph/graph.h"
#include "softgpu/driver/queue_core.h"

/* More streams than this with kernels at once take turns.  Kernels that wait for one another
 * need a thread each. */
#define EXECUTORS_MAX 16
#define IDLE_NS 1000000000u
/* A stream gives its thread back after so many operations if others are ready. */
#define BATCH 16
/* How often watched memory is looked at: from often to seldom while nothing changes. */
#define WATCH_MIN_NS 20000u
#define WATCH_MAX_NS 1000000u
#define WATCH_BATCH 64

pthread_mutex_t queue_lock = PTHREAD_MUTEX_INITIALIZER;

/* All of these under queue_lock. */
struct list {
	struct CUstream_st *first;
	unsigned count;
	pthread_cond_t more;
	unsigned threads, idle;
};
static struct list work, host, watch;
static struct CUstream_st *woken;
static unsigned long long next_id = 1;

/* ---- lists ---- */

/* In order of priority (a lower number goes first), first come first served within one. */
static void list_push(struct list *list, struct CUstream_st *stream)
{
	struct CUstream_st **at = &list->first;

	while (*at && (*at)->priority <= stream->priority)
		at = &(*at)->ready;
	stream->ready = *at;
	*at = stream;
	list->count++;
}

static struct CUstream_st *list_pop(struct list *list)
{
	struct CUstream_st *stream = list->first;

	if (stream) {
		list->first = stream->ready;
		list->count--;
	}
	return stream;
}

static void list_remove(struct list *list, struct CUstream_st *stream)
{
	struct CUstream_st **at = &list->first;

	while (*at && *at != stream)
		at = &(*at)->ready;
	if (*at) {
		*at = stream->ready;
		list->count--;
	}
}

void queue_cond_begin(pthread_cond_t *cond)
{
	pthread_condattr_t attributes;

	pthread_condattr_init(&attributes);
	pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	pthread_cond_init(cond, &attributes);
	pthread_condattr_destroy(&attributes);
}

__attribute__((constructor)) static void lists_begin(void)
{
	queue_cond_begin(&work.more);
	queue_cond_begin(&host.more);
	queue_cond_begin(&watch.more);
}

void queue_wait_until(pthread_cond_t *cond, uint64_t until)
{
	struct timespec time = {
		.tv_sec = (time_t)(until / 1000000000), .tv_nsec = (long)(until % 1000000000)};

	pthread_cond_timedwait(cond, &queue_lock, &time);
}

static void *executor_main(void *list);
static void *watcher_main(void *unused);

/* Signals that a handler of the program's belongs to must not land here; faults must. */
static bool start_thread(void *(*body)(void *), void *arg)
{
	sigset_t all, old;
	pthread_attr_t attr;
	pthread_t thread;
	bool started;

	sigfillset(&all);
	sigdelset(&all, SIGSEGV);
	sigdelset(&all, SIGBUS);
	sigdelset(&all, SIGFPE);
	sigdelset(&all, SIGILL);
	pthread_attr_init(&attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	started = pthread_create(&thread, &attr, body, arg) == 0;
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	pthread_attr_destroy(&attr);
	return started;
}

/* Somebody for what is in the list.  Where no thread can be had, whoever waits runs it. */
static void list_serve(struct list *list, unsigned threads_max)
{
	if (list->count > list->idle && list->threads < threads_max &&
		start_thread(list == &watch ? watcher_main : executor_main, list))
		list->threads++;
	else
		pthread_cond_signal(&list->more);
}

/* ---- streams ---- */

struct CUstream_st *queue_stream_new(
	struct CUctx_st *context, unsigned flags, int priority, bool legacy)
{
	struct CUstream_st *stream = calloc(1, sizeof(*stream));

	if (!stream)
		return NULL;
	stream->context = context;
	stream->refs = 1;
	stream->flags = flags;
	stream->priority = priority;
	stream->legacy = legacy;
	stream->last = &stream->first;
	stream->policy.syncPolicy = (CUsynchronizationPolicy)-1; /* none was set */
	stream->domain_map.memSyncDomainMap.remote = 1;
	stream->wait.stream = stream;
	context_ref(context);
	pthread_mutex_lock(&queue_lock);
	stream->id = next_id++;
	stream->number = work_stream_number(legacy);
	stream->next = context->streams;
	context->streams = stream;
	event_gate_locked(stream);
	pthread_mutex_unlock(&queue_lock);
	return stream;
}

void queue_ref(struct CUstream_st *stream)
{
	stream->refs++;
}

void queue_unref(struct CUstream_st *stream)
{
	if (--stream->refs)
		return;
	node_set_free(&stream->tail);
	context_unref(stream->context);
	free(stream);
}

static void stream_unlink(struct CUstream_st *stream)
{
	struct CUstream_st **at = &stream->context->streams;

	while (*at && *at != stream)
		at = &(*at)->next;
	if (*at)
		*at = stream->next;
}

void queue_stream_close(struct CUstream_st *stream)
{
	object_remove(stream);
	pthread_mutex_lock(&queue_lock);
	if (!stream->doomed) {
		stream->doomed = true;
		soft_capture_stream_gone(stream);
		if (!stream->first)
			stream_unlink(stream);
		queue_unref(stream);
	}
	pthread_mutex_unlock(&queue_lock);
}

/* ---- progress; all under queue_lock ---- */

static void op_complete(struct op *op)
{
	struct CUstream_st *stream = op->stream;
	struct waiter **at = &stream->waiters;

	stream->first = op->next;
	if (!stream->first)
		stream->last = &stream->first;
	stream->completed = op->seq;
	while (*at) {
		struct waiter *waiter = *at;

		if (waiter->seq > stream->completed) {
			at = &waiter->next;
			continue;
		}
		*at = waiter->next;
		if (waiter->stream) {
			waiter->stream->ready = woken;
			woken = waiter->stream;
		} else {
			waiter->done = true;
			pthread_cond_signal(waiter->cond);
		}
	}
	if (op->deps != op->fixed)
		free(op->deps);
	op->drop(op);
}

/* Goes on to the stream's next operation that a thread must run; does the marks on the way.
 * NULL: the stream waits for another, or is empty (and may be gone). */
static struct op *stream_look(struct CUstream_st *stream)
{
	struct op *op;

	while ((op = stream->first)) {
		for (; op->dep_done < op->dep_count; op->dep_done++) {
			struct op_dep *dep = &op->deps[op->dep_done];

			if (dep->stream->completed < dep->seq) {
				stream->wait.seq = dep->seq;
				stream->wait.next = dep->stream->waiters;
				dep->stream->waiters = &stream->wait;
				stream->state = STREAM_BLOCKED;
				return NULL;
			}
			queue_unref(dep->stream);
		}
		if (op->kind != OP_MARK)
			return op;
		if (op->run)
			op->run(op);
		op_complete(op);
	}
	stream->state = STREAM_IDLE;
	if (stream->doomed)
		stream_unlink(stream);
	queue_unref(stream); /* taken with the first operation */
	return NULL;
}

static void stream_place(struct CUstream_st *stream, struct op *op, bool quiet)
{
	struct list *list = op->kind == OP_HOST ? &host : op->kind == OP_WATCH ? &watch : &work;

	stream->state = op->kind == OP_WATCH ? STREAM_WATCH : STREAM_READY;
	list_push(list, stream);
	if (!quiet || list != &work)
		list_serve(list, list == &work ? EXECUTORS_MAX : 1);
}

static void stream_advance(struct CUstream_st *stream, bool quiet)
{
	struct op *op = stream_look(stream);

	if (op)
		stream_place(stream, op, quiet);
}

/* Streams that were woken go on; a loop, since a chain of them may be long. */
static void advance_woken(void)
{
	while (woken) {
		struct CUstream_st *stream = woken;

		woken = stream->ready;
		stream_advance(stream, false);
	}
}

/* Runs a stream that the caller took out of its list, until SEQ is done or its turn is over. */
static void stream_run(struct CUstream_st *stream, uint64_t seq)
{
	struct op *op = stream->first;
	enum op_kind kind = op->kind;

	for (unsigned n = 0;; n++) {
		bool skip = context_fault_of(op->context) && !op->always;

		stream->state = STREAM_RUNNING;
		pthread_mutex_unlock(&queue_lock);
		if (!skip && op->run)
			(op->profile.wanted ? work_run : op->run)(op);
		pthread_mutex_lock(&queue_lock);
		queue_ref(stream);
		op_complete(op);
		op = stream_look(stream);
		advance_woken();
		if (!op) {
			queue_unref(stream);
			return;
		}
		queue_unref(stream);
		if (op->kind != kind || stream->completed >= seq || (n >= BATCH && work.count))
			break;
	}
	stream_place(stream, op, false);
}

void queue_help(struct CUstream_st *stream, uint64_t seq)
{
	list_remove(&work, stream);
	stream_run(stream, seq);
}

/* ---- threads ---- */

/* An executor, or the thread of the host functions. */
static void *executor_main(void *arg)
{
	struct list *list = arg;

	pthread_mutex_lock(&queue_lock);
	for (;;) {
		struct CUstream_st *stream = list_pop(list);

		if (stream) {
			stream_run(stream, UINT64_MAX);
			continue;
		}
		list->idle++;
		queue_wait_until(&list->more, softgpu_now_ns() + IDLE_NS);
		list->idle--;
		if (!list->count)
			break;
	}
	list->threads--;
	pthread_mutex_unlock(&queue_lock);
	return NULL;
}

/* Looks at what watched streams wait for, with growing pauses. */
static void *watcher_main(void *unused)
{
	uint64_t pause = WATCH_MIN_NS;

	(void)unused;
	pthread_mutex_lock(&queue_lock);
	while (watch.count) {
		struct CUstream_st *streams[WATCH_BATCH];
		unsigned count = 0, done = 0;

		while (count < WATCH_BATCH && watch.first)
			streams[count++] = list_pop(&watch);
		pthread_mutex_unlock(&queue_lock);
		for (unsigned i = 0; i < count; i++) {
			struct op *op = streams[i]->first;

			if (context_fault_of(op->context) || op->poll(op)) {
				pthread_mutex_lock(&queue_lock);
				op_complete(op);
				stream_advance(streams[i], false);
				advance_woken();
				pthread_mutex_unlock(&queue_lock);
				streams[i] = NULL;
				done++;
			}
		}
		pthread_mutex_lock(&queue_lock);
		for (unsigned i = 0; i < count; i++)
			if (streams[i])
				list_push(&watch, streams[i]);
		if (done) {
			pause = WATCH_MIN_NS;
		} else {
			queue_wait_until(&watch.more, softgpu_now_ns() + pause);
			pause = pause * 2 < WATCH_MAX_NS ? pause * 2 : WATCH_MAX_NS;
		}
	}
	watch.threads--;
	pthread_mutex_unlock(&queue_lock);
	return NULL;
}

/* ---- what the calls use ---- */

bool queue_depend(struct op *op, struct CUstream_st *other, uint64_t seq)
{
	if (!op->deps) {
		op->deps = op->fixed;
		op->dep_room = sizeof(op->fixed) / sizeof(*op->fixed);
	}
	if (other->completed >= seq)
		return true;
	if (op->dep_count == op->dep_room) {
		struct op_dep *deps = malloc(2 * op->dep_room * sizeof(*deps));

		if (!deps)
			return false;
		for (size_t i = 0; i < op->dep_count; i++)
			deps[i] = op->deps[i];
		if (op->deps != op->fixed)
			free(op->deps);
		op->deps = deps;
		op->dep_room *= 2;
	}
	queue_ref(other);
	op->deps[op->dep_count++] = (struct op_dep){other, seq};
	return true;
}

/* The NULL stream waits for every blocking stream, and those for it. */
static bool depend_on_legacy_rules(struct CUstream_st *stream, struct op *op)
{
	struct CUstream_st *legacy = stream->context->legacy;

	if (stream->flags & CU_STREAM_NON_BLOCKING)
		return true;
	if (!stream->legacy)
		return queue_depend(op, legacy, legacy->submitted);
	for (struct CUstream_st *s = stream->context->streams; s; s = s->next)
		if (s != stream && !(s->flags & CU_STREAM_NON_BLOCKING) &&
			!queue_depend(op, s, s->submitted))
			return false;
	return true;
}

uint64_t queue_submit_locked(struct CUstream_st *stream, struct op *op, bool quiet)
{
	op->stream = stream;
	op->context = stream->context;
	op->next = NULL;
	if (stream->capture)
		return capture_op(stream, op) ? QUEUE_CAPTURED : 0;
	queue_order_locked(stream, op);
	if (!depend_on_legacy_rules(stream, op)) {
		for (size_t i = 0; i < op->dep_count; i++)
			queue_unref(op->deps[i].stream);
		if (op->deps != op->fixed)
			free(op->deps);
		op->drop(op);
		return 0;
	}
	if (work_on())
		work_queued(op);
	op->seq = ++stream->submitted;
	*stream->last = op;
	stream->last = &op->next;
	if (stream->first == op) {
		uint64_t seq = op->seq;

		if (stream->state == STREAM_IDLE) {
			queue_ref(stream);
			stream_advance(stream, quiet);
			advance_woken();
		}
		return seq;
	}
	return op->seq;
}

/* Light work on a stream with nothing before it is done at once by whoever brings it. */
uint64_t queue_submit(struct CUstream_st *stream, struct op *op, bool quiet)
{
	bool light = op->light;
	uint64_t seq;

	pthread_mutex_lock(&queue_lock);
	seq = queue_submit_locked(stream, op, quiet || light);
	if (seq && seq != QUEUE_CAPTURED && light && stream->state == STREAM_READY &&
		stream->first->seq == seq)
		queue_help(stream, seq);
	pthread_mutex_unlock(&queue_lock);
	return seq;
}
