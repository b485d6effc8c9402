/* SPDX-License-Identifier: Apache-2.0
 *
 * What the shim keeps for each thread of the app: the current context and its stack, the
 * scratch in which frames are built, the thread's own stream of each context.  Small and
 * initial-exec, so that reaching it is one load; the rest is allocated on first use and freed
 * with the thread.
 */
#ifndef VCUDA_SHIM_ENGINE_THREAD_H
#define VCUDA_SHIM_ENGINE_THREAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define THREAD_STACK 64	  /* pushed contexts */
#define THREAD_STREAMS 16 /* contexts in which a thread can have its own default stream */

struct context;
struct session;
struct trace_call;

struct thread_rest;

struct thread {
	struct context *current; /* NULL: none */
	/* `current` where there is one agent: then no call has to look whose its handles are.
	 */
	struct context *plain;
	uint64_t handle; /* of `current`, the program's CUcontext; 0: none (vcuda_current) */
	struct session *session; /* of `current`, else the first: session_here() */
	uint16_t number;	 /* of `current` */
	uint16_t wire;		 /* the same as its agent calls it, for frame_header.context */
	bool in_callback; /* runs a host function or a destructor: CUDA calls are refused */
	bool in_function; /* the former: but for those that shim_enter_within() begins */
	bool in_managed;  /* moves pages of managed memory: holds its lock */
	unsigned char *scratch;		 /* THREAD_SCRATCH bytes; thread_scratch() */
	const struct trace_call *traced; /* that it is in (trace.h); NULL: none */
	struct thread_rest *rest;
};

/* FRAME_BODY_MAX for the body, then room for the answer of a cached call. */
#define THREAD_SCRATCH (64u * 1024)
#define THREAD_ANSWER (62u * 1024) /* where that room begins */

extern _Thread_local struct thread thread_self __attribute__((tls_model("initial-exec")));

/* The scratch; NULL where there is no memory. */
unsigned char *thread_scratch(void);

/* Begins a thread of ours that runs functions of the program. It keeps the signal mask of the
 * thread that started it, so that a runtime which stops its threads by signals (a garbage
 * collector, a profiler) reaches this one, too, once such a function has told it of the
 * thread. Only SIGSEGV is never blocked, as the function may touch managed memory. */
void thread_runs_program(void);

/* A thread ends: thread_gone() has thread_rest_end() called for what it kept, by itself or by a
 * thread that may wait (thread_gone.c). */
void thread_gone(struct thread_rest *rest);
void thread_rest_end(struct thread_rest *rest);
struct thread_rest **thread_rest_next(struct thread_rest *rest);

/* Pushes and pops the thread's context stack. False: full, or empty. */
bool thread_push(struct context *context);
bool thread_pop(struct context **context);
/* CONTEXT is current to this thread, or on its stack. */
bool thread_has(const struct context *context);
void thread_set(struct context *context);
/* Drops a context that is being destroyed from this thread's stack. */
void thread_forget(const struct context *context);

/* The thread's own default stream in the context of that number and generation of its own; 0:
 * none yet. */
uint64_t thread_stream(uint16_t number, uint64_t context_id);
bool thread_stream_keep(uint16_t number, uint64_t context_id, uint64_t stream);

#endif
