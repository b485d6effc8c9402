/* SPDX-License-Identifier: Apache-2.0
 *
 * What the engine asks of the driver front above it (shim/driver/), which implements these: the
 * engine includes nothing of that room.
 */
#ifndef VCUDA_SHIM_ENGINE_DRIVER_H
#define VCUDA_SHIM_ENGINE_DRIVER_H

#include <cuda.h>
#include <stdbool.h>
#include <stdint.h>

#include "shim/engine/session.h"

struct context;
struct function;

/* Prints what kernels have printed since the last time, on the app's stdout and stderr; two
 * loads where nothing has come. Call it after each answer that tells of finished work or of a
 * fault. Takes its own lock; makes calls. */
void output_fetch(void);

/* A line for the driver's error log (cuLogs…): NAME was refused. Takes its own lock, and calls
 * the app's listeners without it. */
void logs_add(const char *name, const char *reason);

/* What crosses for a stream of the app's, before work on it. INVALID_CONTEXT, INVALID_HANDLE,
 * or what a capture says. */
CUresult stream_number(CUstream stream, uint64_t *number);
/* A stream is of the agent to which the thread's calls go, or no stream of the app's own. */
bool stream_here(CUstream stream);
/* Is there managed memory, or was there? Then managed_sent is told of each frame that was sent:
 * work makes what the program has of that memory old. */
extern bool managed_any;
void managed_sent(uint16_t op, uint16_t context, uint64_t seq);

/* A thread's own stream, at the thread's end. */
void stream_end(uint64_t number);

/* The function behind what the app calls a function: a CUfunction or a CUkernel, whose module
 * is loaded into the current context where it is not yet. */
CUresult function_find(CUfunction function, struct function **out);
/* The same without using it, as what only asks about it does (cuFuncIsLoaded). */
CUresult function_peek(CUfunction function, struct function **out);
/* What crosses for it. */
uint64_t function_handle(const struct function *function);

/* Before a frame whose body may name pinned memory, or managed memory: that becomes the agent's
 * too, and what the app has written there goes first. */
CUresult pinned_before(const void *body, size_t bytes);
/* Of what the agent has a mirror: how many regions. Where there are some, mirror_posted is told
 * of each frame that was sent; a frame is sent under some of the shim's locks, so it takes
 * none. */
extern _Atomic uint32_t mirror_regions;
void mirror_posted(uint16_t op);
/* Whether some of it has another address there; each word that is an address in such memory
 * becomes that one. */
extern _Atomic bool mirror_apart;
void mirror_addresses(void *words, size_t bytes);

/* The device whose primary context a thread is to get that works by the runtime: the first
 * where it has none, its own where that was reset, which leaves it current; -1: neither. */
int context_wanted(void);

/* CUDA_SUCCESS: the thread has a current context. INVALID_CONTEXT: it has none;
 * CONTEXT_IS_DESTROYED: it has one that is no more. */
CUresult context_missing(void);
/* Makes the context current that a handle was made in, where that is another agent's; until
 * context_home_lent(). False: there is nothing to lend. context_home_lend() costs a load where
 * there is one agent. */
bool context_home_lend_slow(uint64_t handle);
void context_home_lent(void);
static inline bool context_home_lend(uint64_t handle)
{
	return handle && __builtin_expect(!thread_self.plain, 0) &&
	       context_home_lend_slow(handle);
}

/* The context's number, which the process gives it: session_context() is the agent's. */
uint16_t context_number(const struct context *context);
/* The program's CUcontext. */
uint64_t context_told(const struct context *context);
/* The session of its device's agent. */
struct session *context_session(const struct context *context);

/* Everything that was posted is on its way, and the sessions are over. Once. */
void driver_end(void);

#endif
