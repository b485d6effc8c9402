/* SPDX-License-Identifier: Apache-2.0
 *
 * The worker: one process, one session, one loop.  It takes frames in order, issues them to the
 * driver (NVIDIA's or the software GPU, opened by configuration), polls the GPU for what is
 * awaited, and answers.  It never blocks in the driver while frames can arrive.
 *
 * Generated serve functions (gpu-agent/generated/cuda_serve.c) and the hand-written ones stand
 * on this header: worker_in, worker_handle … mark the request as refused on the first
 * violation, sticky, so that no sibling can forget a check.
 */
#ifndef VCUDA_GPU_AGENT_WORKER_WORKER_H
#define VCUDA_GPU_AGENT_WORKER_WORKER_H

#include <cuda.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "protocol/wire/frame.h"
#include "protocol/wire/handle.h"
#include "gpu-agent/generated/cuda_driver.h" /* struct cuda_driver: one pointer a served function */

struct worker;

/* One frame being served. Lives on the loop's stack, or beside it. */
struct request {
	struct frame_header header;
	const unsigned char *body;    /* header.body bytes, private memory, 16-byte aligned */
	const unsigned char *payload; /* header.length - header.body bytes in pinned staging */
	uint32_t payload_bytes;
	uint32_t fill; /* not 0: all of the payload is byte FILL - 1, which it does not hold yet
			*/
	unsigned char *answer;	    /* zeroed, ANSWER_MAX bytes: reply struct, then runs */
	uint32_t answer_bytes;	    /* so far: starts at the op's reply size */
	CUresult refused;	    /* first violation found: what the call answers */
	bool later;		    /* the serve function queued the answer itself */
	struct beside_call *beside; /* its thread (beside_call.h); NULL: the loop serves it */
};

#define ANSWER_MAX 2016 /* CHANNEL_SLOT_BODY */

typedef CUresult (*serve_function)(struct worker *w, struct request *r);

struct serve_entry {
	uint16_t op;
	uint16_t body_bytes; /* size of the fixed struct; a shorter body is refused before the
				call */
	uint16_t reply_bytes;
	uint16_t flags; /* SERVE_… */
	serve_function serve;
	const char *name;
};
#define SERVE_PAYLOAD 1u    /* may carry a payload; others must not */
#define SERVE_POST 2u	    /* may come as FRAME_POST */
#define SERVE_CALL 4u	    /* may come as FRAME_CALL */
#define SERVE_NO_CONTEXT 8u /* needs no current context */
#define SERVE_SLOW 16u	    /* may last: what is ready is answered before it */
#define SERVE_WAITS 32u	    /* waits inside for what was issued before (stash.c) */
#define SERVE_FIRST 64u	    /* the two above only as FRAME_CALL */
#define SERVE_ASIDE 128u    /* no CUDA call of the app's: carries off no error of a post */
#define SERVE_IDLES 256u    /* makes what the driver may wait for an idle GPU with */
#define SERVE_HOLDS 512u    /* has a stream wait for another agent or process */
#define SERVE_COPIED 1024u  /* its payload is copied to the device, and nothing looks at it */
#define SERVE_STAGES 2048u  /* serve_stages() has to be asked */
#define SERVE_OVERTAKING 4096u /* serve_overtaking(), likewise */
#define SERVE_LIBRARY (SERVE_CALL | SERVE_SLOW | SERVE_WAITS | SERVE_FIRST)

/* By op; NULL where nobody serves it. */
const struct serve_entry *serve_find(uint16_t op);
static inline bool serve_marked(uint16_t op, uint16_t mark)
{
	const struct serve_entry *entry = serve_find(op);

	return entry && entry->flags & mark;
}
/* Of the body of a frame, `bytes` long, as its description says. How many bytes of staging its
 * answer takes at most; more than worker_payload_most is refused when it is served. */
uint64_t serve_stages(uint16_t op, const void *frame, uint32_t bytes);
#define SERVE_NO_STAGING UINT64_MAX
/* The stream by which it overtakes what is kept, where that stream runs ahead; 0: it does not;
 * SERVE_OVERTAKES: it always does. */
uint64_t serve_overtaking(uint16_t op, const void *frame, uint32_t bytes);
#define SERVE_OVERTAKES UINT64_MAX

/* --- for serve functions ------------------------------------------------------------------ */

/* The bytes of a run: exactly `need` of them. Refuses and returns a pointer to zeros where the
 * run has another length or lies outside the body. */
const void *worker_in(struct request *r, const struct wire_run *run, uint64_t need);
/* A NUL-terminated string. */
const char *worker_string(struct request *r, const struct wire_run *run);
/* Room for `n` bytes of answer behind the reply struct, named in *run (in the reply struct). */
void *worker_out(struct request *r, struct wire_run *run, uint64_t n);

/* The driver's object for a handle; refuses 0, another kind and a stale generation. */
void *worker_handle(
	struct worker *w, struct request *r, uint64_t handle, enum handle_kind kind);
/* A stream parameter: 0 = the legacy stream of the current context. */
CUstream worker_stream(struct worker *w, struct request *r, uint64_t handle);
/* Binds the minted handle to the driver's object; refuses one that is in use. */
void worker_bind(struct worker *w, struct request *r, uint64_t handle, enum handle_kind kind,
	void *object);
void worker_unbind(struct worker *w, struct request *r, uint64_t handle, enum handle_kind kind);
/* Device memory [address, +bytes) that the session owns; refuses anything else before the
 * driver sees it. */
CUdeviceptr worker_range(struct worker *w, struct request *r, uint64_t address, uint64_t bytes);

static inline bool worker_refused(const struct request *r)
{
	return r->refused != CUDA_SUCCESS;
}
static inline void worker_refuse(struct request *r, CUresult status)
{
	if (!r->refused)
		r->refused = status;
}

/* The driver's functions; a pointer is NULL where the library lacks it (worker_lacks answers).
 */
const struct cuda_driver *worker_driver(const struct worker *w);
CUresult worker_lacks(struct worker *w, const char *name);

#endif
