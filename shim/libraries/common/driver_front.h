/* SPDX-License-Identifier: Apache-2.0
 *
 * What the fronts of libraries (shim/libraries/cublas/ …) ask of the driver front, which has
 * the session: one frame, sent by what was learned or awaited.  They are libraries of their
 * own, so these are exported, under names that no library of NVIDIA's has.
 */
#ifndef VCUDA_SHIM_LIBRARIES_COMMON_DRIVER_FRONT_H
#define VCUDA_SHIM_LIBRARIES_COMMON_DRIVER_FRONT_H

#include <cuda.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FRONT_NO_STREAM UINT32_MAX
#define FRONT_COUNTED UINT32_MAX /* front_frame.call: its stub has counted it */

struct front_frame {
	unsigned call; /* CALL_… of shim/generated/cuda_calls.h */
	uint16_t op;
	bool post;	   /* never awaited */
	bool learned;	   /* posted once the same key has succeeded; else awaited */
	bool cached;	   /* answered from what the same key was answered before */
	bool status_first; /* the reply begins with struct library_reply: a call is learned
			    * where its status is 0, an answer kept where it is not passing */
	uint32_t key_from; /* the key: body[key_from, key_to) */
	uint32_t key_to;   /* 0: the whole body */
	const void *body;  /* the fixed struct, at most FRAME_BODY_MAX */
	uint32_t body_bytes;
	uint32_t stream_at;  /* where in the body `stream` goes as the worker knows it */
	CUstream stream;     /* as the app gave it; FRONT_NO_STREAM: none */
	void *reply;	     /* filled in where it was awaited and succeeded; or NULL */
	size_t reply_bytes;  /* a shorter answer is a protocol violation */
	size_t reply_most;   /* what `reply` has room for, where answers differ in length */
	uint32_t *reply_got; /* then: how long it was, at most reply_most; or NULL */
};

/* Sends it; the call's status, or the session's. */
CUresult vcuda_front_send(const struct front_frame *frame);

/* A frame that is under way: several agents are asked at once so. */
struct front_pending;

/* Sends it, in the current context, to be awaited. NULL: *status says why it was not. */
struct front_pending *vcuda_front_begin(const struct front_frame *frame, CUresult *status);
/* In the same context: waits so long at most. True: vcuda_front_end does not wait. */
bool vcuda_front_wait(struct front_pending *pending, uint64_t ns);
/* In the same context: waits, fills in the reply, and learns as vcuda_front_send does; the
 * frame and its body are as they were at the beginning. Frees PENDING. */
CUresult vcuda_front_end(struct front_pending *pending, const struct front_frame *frame);
/* Nobody waits for the answer any more. Frees PENDING; its place for answers is lost. */
void vcuda_front_abandon(struct front_pending *pending);
/* Whether the frame, of the current context, would be posted now as one that was learned. */
bool vcuda_front_known(const struct front_frame *frame);
/* Which of the process' agents has the context; 0 where it has one. */
unsigned vcuda_front_home(CUcontext context);
/* Whether what is posted is not awaited; VCUDA_PERF=no_post awaits it. */
bool vcuda_front_posts(void);
/* How many agents the process has. */
unsigned vcuda_front_homes(void);
/* Whether answers are kept; VCUDA_PERF=no_cache asks each time. */
bool vcuda_front_keeps(void);

/* One that its stub has counted, with a body and an answer of fixed sizes and no more: awaited.
 */
static inline CUresult front_ask(
	uint16_t op, const void *body, size_t body_bytes, void *reply, size_t reply_bytes)
{
	return vcuda_front_send(&(struct front_frame){
		.call = FRONT_COUNTED,
		.op = op,
		.body = body,
		.body_bytes = (uint32_t)body_bytes,
		.stream_at = FRONT_NO_STREAM,
		.reply = reply,
		.reply_bytes = reply_bytes,
	});
}

/* The same without an answer: posted. */
static inline CUresult front_post(uint16_t op, const void *body, size_t body_bytes)
{
	return vcuda_front_send(&(struct front_frame){
		.call = FRONT_COUNTED,
		.op = op,
		.post = true,
		.body = body,
		.body_bytes = (uint32_t)body_bytes,
		.stream_at = FRONT_NO_STREAM,
	});
}

/* The context that is current, made the first device's primary one where there is none. */
CUresult vcuda_front_context(void);

/* A cusparseMatDescr_t is cuSPARSE's, and cuSOLVER's calls take it: their fronts may lie in
 * libraries that do not know each other. READ gives type, fill mode, kind of diagonal and index
 * base, or false: it is none. */
typedef bool front_matrix_read(const void *descriptor, int32_t content[4]);
void vcuda_front_matrix_by(front_matrix_read *read);
/* False also where nobody has made one. */
bool vcuda_front_matrix(const void *descriptor, int32_t content[4]);

/* What crosses for a stream in a frame that has several, before work on it; in its context. */
CUresult vcuda_front_stream(CUstream stream, uint64_t *number);

uint64_t vcuda_front_mint(uint32_t kind, void *object); /* 0: none left */
void *vcuda_front_object(uint64_t handle, uint32_t kind);
bool vcuda_front_release(uint64_t handle);

CUresult vcuda_front_refused(unsigned call, const char *name, const char *reason);
/* CALL failed since the agent has no LIBRARY ("libcublas.so.12"): told on stderr, once where
 * SAID, the caller's, is 0 at first. A status alone would not say what to do. */
void vcuda_front_missing(const char *call, const char *library, int *logged);
/* CALL failed since the agent is of a release that does not know its frame: told likewise. */
void vcuda_front_older(const char *call, int *logged);
/* Makes the file that a program names for a library's log, and leaves it empty: the library
 * that would write to it runs on the agent.  False: there cannot be such a file. */
bool vcuda_front_log_file(const char *path);
/* A line for VCUDA_DEBUG. */
void vcuda_front_debug(const char *text);
void vcuda_count(unsigned call);

#endif
