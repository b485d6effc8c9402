/* SPDX-License-Identifier: Apache-2.0
 *
 * What every stub of a front stands on: begin a call, put its bytes, post it or wait for it.
 * A dead or missing session never makes a branch here: shim_begin writes to a scratch buffer,
 * and the failure comes out of shim_post, shim_wait or shim_end, sticky.
 *
 * One command ring a process, total order: a frame is built in the thread's own scratch and
 * copied into the ring under a short lock.  A thread that waits holds no lock.
 */
#ifndef VCUDA_SHIM_ENGINE_ENGINE_H
#define VCUDA_SHIM_ENGINE_ENGINE_H

#include <cuda.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "protocol/wire/channel.h"
#include "protocol/wire/frame.h"
#include "protocol/wire/handle.h"
#include "protocol/wire/open.h"

/* Every lock of the shim, in the order in which a thread takes them: under a lock only those
 * further down (lock.h says how that is checked; tools/locks.py, that this list is true). */
enum lock_rank {
	LOCK_CUPTI,	       /* libraries/cupti/deliver.c: one thread hands records out */
	LOCK_CUPTI_SUBSCRIBER, /* libraries/cupti/callback.c */
	LOCK_REGISTER,	       /* runtime/register.c: the table of what programs registered */
	LOCK_BINARY,	       /* of one registered binary: one thread loads it */
	LOCK_PRIMARY,	       /* runtime/runtime.c: one thread retains the primary context */
	LOCK_PLAN,	       /* libraries/cudnn/plan.c: the plans that are kept */
	LOCK_OWN,	       /* libraries/cudnn/own.c: handles of the front's own */
	LOCK_LEGACY,	       /* libraries/cublas/legacy.c: the handles of cublasInit */
	LOCK_PARAM,	       /* libraries/nccl/param.c: what is known of the agent's NCCL */
	LOCK_WINDOW,	       /* libraries/nccl/window.c: a communicator's windows */
	LOCK_INIT,	   /* driver/device/init.c: one thread attaches and opens the session */
	LOCK_PROFILE,	   /* driver/profile.c: who profiles, what is read of agents */
	LOCK_CAPTURE,	   /* driver/graph/capture.c: the captures */
	LOCK_LIBRARY,	   /* of one library: its kernels and globals */
	LOCK_MODULE,	   /* of one module: its functions and globals */
	LOCK_AHEAD,	   /* driver/stream/stream.c: one thread makes a context's stream */
	LOCK_CONTEXT,	   /* driver/context/context.c: the contexts */
	LOCK_PEER,	   /* driver/device/peer.c: which contexts have access to which */
	LOCK_ARRAY,	   /* driver/array/array.c: names of levels */
	LOCK_ARRAY_MAP,	   /* driver/array/array_map.c: which memory arrays hold */
	LOCK_TEXTURE,	   /* driver/array/texture.c: textures and surfaces */
	LOCK_REFERENCE,	   /* driver/array/reference.c: references to them */
	LOCK_POOL,	   /* driver/memory/pools/pool.c */
	LOCK_LATER,	   /* driver/memory/later.c: what was freed on a stream */
	LOCK_TENSOR,	   /* driver/tensor/tensor.c: questions to the store */
	LOCK_IPC,	   /* driver/memory/sharing/ipc.c: memory of other processes */
	LOCK_VMM,	   /* driver/memory/virtual/vmm.c: handles and mappings */
	LOCK_MANAGED,	   /* driver/memory/managed/managed.c: managed memory */
	LOCK_MEMORY,	   /* driver/memory/heap.c: windows, allocations */
	LOCK_HOST,	   /* driver/memory/pinned/host.c: pinned memory */
	LOCK_MIRROR_LIST,  /* driver/memory/mirror/mirror.c: who changes what is active */
	LOCK_MIRROR,	   /* driver/memory/mirror/mirror.c: memory that kernels reach */
	LOCK_TEND,	   /* driver/memory/mirror/mirror_thread.c: it is started once */
	LOCK_OUTPUT,	   /* driver/launch/output.c: what kernels print */
	LOCK_CALLBACK,	   /* driver/stream/host_function.c: host functions */
	LOCK_FUNCTIONS,	   /* driver/stream/function_order.c: those that are outstanding */
	LOCK_GRAPH_MEMORY, /* driver/graph/memory_node.c: memory that graphs own */
	LOCK_GRAPH_USAGE,  /* driver/graph/graph_usage.c: how much of it there is */
	LOCK_DUE,	   /* driver/graph/user_object.c: destructors that are due */
	LOCK_FAULT,	   /* driver/memory/pages/page_fault.c: touches of managed memory */
	LOCK_DIRECT,	   /* driver/copy/direct.c: the order of what two agents do */
	LOCK_ORDER,	   /* driver/stream/order.c: which streams wait for which */
	LOCK_CUPTI_NUMBERS, /* libraries/cupti/numbers.c: what records name things by */
	LOCK_CUPTI_TIMES,   /* libraries/cupti/recorded.c: the program's clock */
	LOCK_CUPTI_FRAMES,  /* libraries/cupti/frames.c: which went by which call */
	LOCK_CUPTI_STORE,   /* libraries/cupti/recorded.c: what was recorded */
	LOCK_CUPTI_OWN,	    /* libraries/cupti/deliver.c: the front's own thread */
	LOCK_COMPLETION,    /* engine/completion.c: counters that are given out */
	LOCK_BOUNCE,	    /* engine/bounce.c: where answers' payloads arrive */
	LOCK_CACHE,	    /* engine/cache.c: answers that are remembered */
	LOCK_HANDLES,	    /* engine/handle.c */
	LOCK_SETTINGS,	    /* driver/context/coredump.c */
	LOCK_LOGS,	    /* driver/logs.c */
	LOCK_TRACE,	    /* engine/trace.c: who follows whether there is a recorder */
	LOCK_SOCKET,	    /* engine/session.h: one request of the sidecar at a time */
	LOCK_RING,	    /* engine/ring.c: one thread posts; no pthread mutex */
	LOCK_RANKS,
};

/* The optimisations that VCUDA_PERF=no_… switches off; VCUDA_STRICT=1 clears PERF_POST. */
enum shim_perf {
	PERF_POST = 1 << 0,	     /* no_post: posts are awaited */
	PERF_CACHE = 1 << 1,	     /* no_cache: cached calls ask each time */
	PERF_LEARN = 1 << 2,	     /* no_learn: learned calls are awaited each time */
	PERF_BATCH = 1 << 3,	     /* no_batch: the doorbell rings for every frame */
	PERF_SLAB = 1 << 4,	     /* no_slab: every allocation is mapped on its own */
	PERF_PUSH = 1 << 5,	     /* no_push: queries always ask */
	PERF_ZEROCOPY = 1 << 6,	     /* no_zerocopy: pinned memory is captured like pageable */
	PERF_MODULE_CACHE = 1 << 7,  /* no_module_cache: module bytes always travel */
	PERF_USERFAULTFD = 1 << 8,   /* no_userfaultfd: managed memory is watched by SIGSEGV */
	PERF_DIRECT = 1 << 9,	     /* no_direct: nothing goes from agent to agent */
	PERF_ZSTD = 1 << 10,	     /* no_zstd: payloads travel as they are */
	PERF_UPLOAD_CACHE = 1 << 11, /* no_upload_cache: and all of them do */
	PERF_ASYNC = 1 << 12,	     /* CUDA_LAUNCH_BLOCKING=1: a launch waits for its kernel */
};
extern unsigned shim_perf;

/* What every call looks at; none, as almost always: nobody counts or records calls. */
#define SHIM_COUNTING 1u   /* VCUDA_STATS is set */
#define SHIM_TRACING 0x80u /* TRACE_FOLLOWED (trace.h) */
extern _Atomic unsigned char shim_watched __attribute__((visibility("hidden")));

void shim_count_slow(unsigned call);
static inline void shim_count(unsigned call)
{
	if (__builtin_expect(atomic_load_explicit(&shim_watched, memory_order_relaxed), 0))
		shim_count_slow(call);
}

/* The same of a call that is told where somebody records. SHIM_TELL, which is no status: it is
 * to be, before it is counted. */
#define SHIM_TELL ((CUresult)0x7fffffff)
CUresult shim_watch_slow(unsigned call);
static inline CUresult shim_watch(unsigned call)
{
	return __builtin_expect(atomic_load_explicit(&shim_watched, memory_order_relaxed), 0)
		       ? shim_watch_slow(call)
		       : CUDA_SUCCESS;
}

/* That the process has not forked since cuInit, that cuInit was called, and the session is
 * alive. CUDA_SUCCESS or what to return. */
CUresult shim_ready(void);
/* Starts a call: counts it, and shim_ready(). `call` is CALL_… of shim/generated/cuda_calls.h.
 */
static inline CUresult shim_enter(unsigned call)
{
	shim_count(call);
	return shim_ready();
}
/* The others start what is told: SHIM_TELL too. */
static inline CUresult shim_enter_ready(unsigned call)
{
	CUresult status = shim_watch(call);

	return status ? status : shim_ready();
}
/* The same for what the process itself knows: neither a fault on the device nor a lost session
 * keeps it from answering. Natively such calls succeed then, and programs that clean up after
 * an error rely on it. */
CUresult shim_enter_lasting(unsigned call);
/* As shim_enter_ready, for what is the current context's: without one the arguments are not
 * looked at. */
CUresult shim_enter_current(unsigned call);
/* As shim_enter_ready, for what is answered within a host function, too. There it waits for
 * nothing, as the function's end may be what everything waits for. */
CUresult shim_enter_within(unsigned call);
/* As shim_enter_ready, for what may come before cuInit: nothing that it is given can be there
 * then.
 */
static inline CUresult shim_enter_looking(unsigned call)
{
	CUresult status = shim_enter_ready(call);

	return status == CUDA_ERROR_NOT_INITIALIZED ? CUDA_SUCCESS : status;
}

/* A call under construction. Lives on the caller's stack. */
struct shim_call {
	uint16_t op;
	uint16_t context; /* filled in from the thread's current context */
	uint32_t body_bytes;
	unsigned char *body;	/* thread-local scratch of FRAME_BODY_MAX */
	struct frame_bulk bulk; /* length 0: no payload */
	const void
		*payload; /* pageable bytes to capture at post, bulk.length of them; or NULL */
	CUresult status;
	uint32_t row_bytes; /* not 0: the payload is gathered from rows of so many bytes … */
	size_t row_pitch;   /* … that lie so far apart */
	bool captured; /* `payload` must be copied before the call returns, pinned or not */
	struct channel_slot *slot;  /* while waiting */
	const unsigned char *reply; /* the answer's body, until shim_end */
	uint32_t reply_bytes;
	uint32_t received;	   /* bytes of payload that came with the answer */
	uint64_t seq;		   /* the frame's number, once sent */
	uint32_t key_from, key_to; /* cached and learned by body[from, to); to 0: all of it */
	bool (*lasting)(const void *reply); /* whether a cached answer is kept; NULL: it is */
};

/* Starts a call whose body is BODY_BYTES long; returns it zeroed. Never NULL. */
void *shim_begin(struct shim_call *call, uint16_t op, size_t body_bytes);

/* Appends N bytes behind the body and names them in *run (which lies in the body). */
void shim_put(struct shim_call *call, struct wire_run *run, const void *bytes, size_t n);
void shim_put_string(struct shim_call *call, struct wire_run *run, const char *text);

/* Adds a payload: pageable memory is copied into the arena when the call is posted (waiting for
 * room); pinned memory (shim/driver/memory/pinned/host.c knows it) is named where it lies. n <=
 * FRAME_PAYLOAD_MAX.
 */
void shim_payload(struct shim_call *call, const void *bytes, size_t n);
/* The same, but pinned memory is copied too: for calls after which the app may change it. */
void shim_payload_captured(struct shim_call *call, const void *bytes, size_t n);
/* ROWS rows of WIDTH bytes, PITCH bytes apart, packed. */
void shim_payload_rows(
	struct shim_call *call, const void *bytes, size_t pitch, size_t width, size_t rows);

/* Sends, does not wait. Success is assumed; with PERF_POST off it is awaited like a call. */
CUresult shim_post(struct shim_call *call);

/* A post written straight into the ring, for the hottest calls: the body (BODY_BYTES, not
 * zeroed), or NULL with *status. Between the two the ring is locked: fill in and return. Only
 * with PERF_POST on. The second answers the frame's number. */
void *shim_post_begin(uint16_t op, uint32_t body_bytes, CUresult *status);
/* The same, with a payload in pinned memory. */
void *shim_post_begin_bulk(
	uint16_t op, uint32_t body_bytes, const struct frame_bulk *bulk, CUresult *status);
uint64_t shim_post_end(uint16_t op);

/* Sends and waits. The reply struct (at least REPLY_BYTES, checked) lies in the slot until
 * shim_end; NULL where the call failed (call->status says why). */
const void *shim_wait(struct shim_call *call, size_t reply_bytes);

/* Sends without waiting; shim_wait_sent() waits for it later (pipelined copies). */
CUresult shim_send(struct shim_call *call);
/* The same, but never waits for a slot: false where none is free (nothing was sent). */
bool shim_try_send(struct shim_call *call);
const void *shim_wait_sent(struct shim_call *call, size_t reply_bytes);

/* Waits for the answer of what shim_send sent, so long at most. True: it is there, or will
 * never come; shim_wait_sent does not wait then. */
bool shim_wait_for(struct shim_call *call, uint64_t ns);

/* Releases the slot; the call's CUresult, or the deferred error of an earlier post. */
CUresult shim_end(struct shim_call *call);

/* As shim_wait, but the answer is kept under the key (op, context, body bytes). */
const void *shim_wait_cached(struct shim_call *call, size_t reply_bytes);
/* Forgets the cached answers of an op (a setter calls this). */
void shim_forget(uint16_t op);

/* As shim_post once the same key has succeeded; awaited before that. */
CUresult shim_learned(struct shim_call *call);
/* Its halves, for learned calls that bring something back when they are awaited. */
bool shim_known(const struct shim_call *call);
void shim_learn(const struct shim_call *call);

/* The bytes of a run in a reply; NULL where it does not lie in the reply. */
const void *shim_run(const struct shim_call *call, const struct wire_run *run, size_t *n);

/* A not-served entry: logs the name once (VCUDA_DEBUG), returns CUDA_ERROR_NOT_SUPPORTED. */
CUresult shim_refused(unsigned call, const char *name, const char *reason);

/* Waits until DONE(argument) is true, looking again whenever the sidecar reports progress. A
 * session that is lost ends it. */
CUresult shim_wait_until(bool (*done)(void *argument), void *argument);

/* Before a frame that names BYTES of pinned memory, where the agent may have to keep them:
 * waits until it has taken all but SHIM_NAMED_MOST bytes of those that were asked for here.
 * What is captured needs no such wait, as the arena has an end. */
#define SHIM_NAMED_MOST (16u << 20)
CUresult shim_few_named(uint32_t bytes);

/* The number of the last frame sent; what was posted before has a number <= it. */
uint64_t shim_sequence(void);

/* Handles: the app's CUstream, CUevent … are these numbers. */
uint64_t shim_mint(enum handle_kind kind, void *object);      /* 0: none left */
void *shim_object_of(uint64_t handle, enum handle_kind kind); /* NULL: wrong kind or stale */
void shim_unmint(uint64_t handle);
/* For generated code: what goes into the body for a handle parameter. Sets call->status where
 * the handle is not one of ours. NULL is passed as 0. */
uint64_t shim_handle(struct shim_call *call, const void *handle, enum handle_kind kind);
/* A device parameter: a CUdevice that is visible, as the worker calls it. */
int shim_device(struct shim_call *call, CUdevice device);
/* A stream parameter: NULL and CU_STREAM_LEGACY -> 0, CU_STREAM_PER_THREAD -> the thread's own
 * stream (minted on first use), else a checked handle. */
uint64_t shim_stream(struct shim_call *call, CUstream stream);
/* A device parameter of work that the agent will do: it may be pinned memory (driver.h). */
uint64_t shim_address(struct shim_call *call, uint64_t address);
/* A function parameter: a checked CUfunction, or a CUkernel cast to one (CUDA allows that),
 * which becomes its function in the current context. */
uint64_t shim_function(struct shim_call *call, CUfunction function);

/* Where the n bytes at HOST lie for the sidecar: true and *bulk filled in if they are pinned
 * memory of this process (shim/driver/memory/pinned/host.c). */
bool shim_pinned(const void *host, size_t n, struct frame_bulk *bulk);

/* The reply region for bulk answers: [*offset, + n) of segment 0, waits for room. */
CUresult shim_bounce_get(size_t n, uint64_t *offset);
bool shim_bounce_try(size_t n, uint64_t *offset); /* the same; false instead of waiting */
void shim_bounce_put(uint64_t offset, size_t n);
/* Ends a call that asked for N bytes at that place of the bounce buffer, which is given back:
 * they are copied to TO. */
CUresult shim_bounce_read(struct shim_call *call, uint64_t offset, size_t n, void *to);
void *shim_segment(uint64_t offset); /* where it is mapped */

#endif
