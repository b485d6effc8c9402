/* SPDX-License-Identifier: Apache-2.0
 *
 * Streams and events as the shim knows them: enough to answer a query without asking.
 */
#ifndef VCUDA_SHIM_DRIVER_STREAM_STREAM_H
#define VCUDA_SHIM_DRIVER_STREAM_STREAM_H

#include <cuda.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "shim/driver/context/context.h"
#include "shim/engine/driver.h"

/* A counter that the agent will set when something is done. */
struct watch {
	_Atomic uint32_t counter; /* 0: none yet */
	_Atomic uint64_t value;	  /* what it will be set to; 0: not armed */
	_Atomic uint64_t seq;	  /* frames up to here are covered */
};

struct stream {
	uint64_t handle;
	struct context *context;
	uint64_t context_id;
	uint64_t id;
	unsigned flags;
	int priority;
	_Atomic uint64_t synced;    /* frames up to here are known to be done in this stream */
	_Atomic uint64_t joined;    /* order.c: it waits for such copies up to this frame */
	_Atomic uint64_t functions; /* function_order.c: it is behind those up to this one */
	uint64_t capture;	    /* capture.c: the one that it is part of; 0: none */
	uint64_t line;		    /* while it captures: see struct part_place (graph.h) */
	struct watch watch;
};

/* Whether another process has an event, too (shim/driver/memory/sharing/ipc_event.c). */
enum event_shared {
	EVENT_ALONE,
	EVENT_DRAINED, /* takes it for done: what it is recorded for is waited for before */
	EVENT_SHARED,  /* each side's recordings are both's */
};

struct event {
	uint64_t handle;
	struct context *context;
	unsigned flags;
	_Atomic uint64_t recorded;  /* number of the frame that recorded it last; 0: never */
	_Atomic uint64_t stream;    /* where: handle, 0 = legacy */
	_Atomic uint64_t done;	    /* the recording known to be done */
	_Atomic uint64_t functions; /* function_order.c: what it was recorded behind */
	_Atomic uint64_t capture;   /* it was recorded in that one last; 0: in none */
	_Atomic int shared;	    /* enum event_shared */
	int shared_on;		    /* of one that is: the device that the agent has it by */
	_Atomic bool graphed;	    /* a graph's launch recorded it last */
	struct watch watch;
};

/* *AT becomes VALUE unless it is more. */
static inline void stream_raise(_Atomic uint64_t *at, uint64_t value)
{
	uint64_t now = atomic_load(at);

	while (now < value && !atomic_compare_exchange_weak(at, &now, value))
		;
}

/* Whether what was sent up to frame SEQ is known to be done in that stream (0: the legacy one)
 * of the context of that number. What a context has waited for says nothing of another one's.
 */
bool stream_reached(uint64_t stream, uint16_t context, uint64_t seq);

/* NULL: no event. */
struct event *event_of(CUevent hEvent);
/* Only streams of its own context record an event; a green one's may be the primary's. */
bool event_goes_with(const struct event *event, uint64_t stream);
/* Whether an attribute of a launch may name it. */
CUresult event_of_launch(CUevent hEvent, int flags);
/* Waits for what the event stands for: nothing, where a capture recorded it. */
CUresult event_done(struct event *event);
/* For all that the context has; all that it gets waits for it. */
CUresult event_record_context(struct context *context, CUevent hEvent);
CUresult event_await_context(struct context *context, CUevent hEvent);

/* --- shim/driver/memory/sharing/ipc_event.c --- */
/* The agent knows what it stands for, this process does not: the last recording is whoever's.
 * Graphs and captures record for this process alone. */
static inline bool ipc_event_is(struct event *event)
{
	return atomic_load(&event->shared) == EVENT_SHARED && !atomic_load(&event->graphed);
}
/* Calls: what another process is told afterwards, by a pipe, holds. */
CUresult ipc_event_record(struct event *event, CUstream hStream);
/* The same behind all that the context has; *SEQ: its frame. */
CUresult ipc_event_record_context(
	struct event *event, const struct context *context, uint64_t *seq);
CUresult ipc_event_await(struct event *event, CUstream hStream);
CUresult ipc_event_query(struct event *event);

/* The context is gone: its streams and events are stale. */
void stream_reset(struct context *context);

/* As stream_number() (shim/engine/driver.h), for kernels: INVALID_HANDLE where the stream is
 * another device's than the current one. */
CUresult stream_launched(CUstream stream, uint64_t *number);
/* By number; whether it is that device's. */
bool stream_of_device(uint64_t number, int device);
/* As stream_number() (shim/engine/driver.h), for what waits for the stream. */
CUresult stream_waited(CUstream stream, uint64_t *number);
/* The same for questions: nothing is going to be put on it. */
CUresult stream_plain(CUstream stream, uint64_t *number);
/* For a stub whose thread has no current context, or whose process has several agents: where a
 * stream of the app's own is another agent's, or none is current, its context becomes it, until
 * stream_lent(), and *LENT true. INVALID_HANDLE: FIRST, the call's first handle, is not that
 * agent's. */
CUresult stream_lend(CUstream stream, uint64_t first, bool *lent);
/* Which of two that is: none serves where one is the current context's. */
static inline CUstream stream_serving(CUstream one, CUstream two)
{
	return (uintptr_t)two > (uintptr_t)CU_STREAM_PER_THREAD ? one : two;
}
void stream_lent(void);
/* The priority that cuStreamGetPriority tells; out of range is clamped, as CUDA does. */
void stream_prioritise(uint64_t number, int priority);
/* By number; 0: the current context's legacy stream. NULL: none. */
struct stream *stream_find(uint64_t number);
/* The context's own stream whose copies overtake what waits behind a host function. */
CUresult stream_ahead(struct context *context, CUstream *stream);
/* Work up to frame SEQ is known to be done in that stream (0 = legacy of the current context).
 */
void stream_synced(uint64_t number, uint64_t seq);

/* For context.c: the legacy stream of a context, which has no handle. NULL: no memory. */
struct stream *stream_legacy(struct context *context);

/* Asks, or knows: SUCCESS, NOT_READY or an error. KNOWN: the frame whose end decides. A watch
 * that was armed for something else must be disarmed first (value = 0). */
CUresult sync_watch_query(struct watch *watch, uint32_t scope, uint64_t handle, uint64_t known);

/* vcudaSync; *seq (may be NULL) is its number. */
CUresult sync_wait(uint32_t scope, uint64_t handle, uint64_t *seq);
/* Without PERF_ASYNC: waits for the kernel that was launched there. One that is captured does
 * not run. */
CUresult sync_launched(uint64_t stream);

#endif
