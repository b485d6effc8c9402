/* SPDX-License-Identifier: Apache-2.0
 *
 * Who is told of the program's calls, and of which one a thread is in: see trace.h.
 */
#include "shim/engine/trace.h"

#include <pthread.h>

#include "shim/engine/engine.h"
#include "shim/engine/lock.h"
#include "shim/engine/thread.h"
#include "shim/generated/cuda_calls.h"

#define EXPORT __attribute__((visibility("default")))

/* The driver front and the runtime fronts of both ABIs. */
#define TRACE_FOLLOWERS 3
_Static_assert(TRACE_FOLLOWED == SHIM_TRACING, "");

const struct trace_recorder *_Atomic vcuda_trace;
_Atomic unsigned char shim_watched;

static struct {
	pthread_mutex_t lock;
	unsigned count;
	_Atomic unsigned char *flags[TRACE_FOLLOWERS];
} followers = {.lock = PTHREAD_MUTEX_INITIALIZER, .count = 1, .flags = {&shim_watched}};
LOCK_RANK(trace, followers.lock, LOCK_TRACE);

static void follow(_Atomic unsigned char *flags)
{
	if (atomic_load(&vcuda_trace))
		atomic_fetch_or(flags, (unsigned char)TRACE_FOLLOWED);
	else
		atomic_fetch_and(flags, (unsigned char)~TRACE_FOLLOWED);
}

EXPORT void vcuda_trace_set(const struct trace_recorder *recorder)
{
	pthread_mutex_lock(&followers.lock);
	atomic_store(&vcuda_trace, recorder);
	for (unsigned i = 0; i < followers.count; i++)
		follow(followers.flags[i]);
	pthread_mutex_unlock(&followers.lock);
}

EXPORT void vcuda_trace_follow(_Atomic unsigned char *flags)
{
	unsigned i = 0;

	pthread_mutex_lock(&followers.lock);
	while (i < followers.count && followers.flags[i] != flags)
		i++;
	if (i < TRACE_FOLLOWERS) {
		followers.flags[i] = flags;
		if (i == followers.count)
			followers.count++;
		follow(flags);
	}
	pthread_mutex_unlock(&followers.lock);
}

bool trace_due(void)
{
	return atomic_load(&vcuda_trace) && !thread_self.traced;
}

CUresult shim_watch_slow(unsigned call)
{
	if (trace_due())
		return SHIM_TELL;
	shim_count_slow(call);
	return CUDA_SUCCESS;
}

const void *trace_caller(unsigned call, const void *from)
{
	return thread_self.traced && thread_self.traced->call == call
		       ? thread_self.traced->caller
		       : from;
}

EXPORT void vcuda_trace_enter(struct trace_call *trace, unsigned call, const void *caller)
{
	*trace = (struct trace_call){.call = call, .params = trace + 1, .caller = caller};
	if (thread_self.traced)
		return;
	if (call != CALL_LAST)
		trace->recorder = atomic_load(&vcuda_trace);
	if (!trace->recorder && call != CALL_LAST)
		return;
	thread_self.traced = trace;
	if (trace->recorder)
		trace->recorder->enter(trace);
}

EXPORT unsigned vcuda_trace_leave(struct trace_call *trace, unsigned status)
{
	if (thread_self.traced != trace)
		return status;
	if (trace->recorder) {
		trace->result = &status;
		trace->recorder->leave(trace);
		trace->result = NULL;
	}
	/* After that: what the recorder itself calls is within the call. */
	thread_self.traced = NULL;
	return status;
}

void trace_sent_slow(unsigned agent, uint64_t seq, uint16_t op)
{
	const struct trace_recorder *recorder = atomic_load(&vcuda_trace);
	const struct trace_call *call = thread_self.traced;

	if (recorder)
		recorder->sent(call && call->recorder ? call : NULL, agent, seq, op);
}
