/* SPDX-License-Identifier: Apache-2.0
 *
 * cuDNN on the worker: what the serve functions of cudnn.api
 * (gpu-agent/generated/cudnn_serve.c) stand on.  A call is a sequence of items
 * (protocol/libraries/cudnn_body.h), taken in the order of the function's parameters; the first
 * that violates the protocol stops it, and no sibling can forget a check.
 *
 * cudnn.c has the library and its handles, frame.c the taking, descriptors.c real
 * descriptors by content, graph.c the graph API.
 */
#ifndef VCUDA_GPU_AGENT_WORKER_LIBRARIES_CUDNN_CUDNN_H
#define VCUDA_GPU_AGENT_WORKER_LIBRARIES_CUDNN_CUDNN_H

#include "gpu-agent/worker/libraries/common/plain.h"
#include "gpu-agent/worker/worker.h"
#include "protocol/libraries/cudnn.h"
#include "protocol/libraries/cudnn_body.h"
#include "gpu-agent/generated/cudnn_library.h"

/* A call that is being served, on the loop's stack. */
struct cudnn_frame {
	struct worker *w;
	struct request *r;
	const struct cudnn_library *library;
	cudnnHandle_t handle;
	cudnnStatus_t status; /* why it was stopped, as in cuDNN 9 */
	bool stopped;
	const unsigned char *plain, *plain_end;
	const uint32_t *key, *key_end;
	uint32_t present; /* bit i: the i-th pointer is not NULL */
	uint32_t pointers;
	uint32_t outs;
	struct cudnn_reply *reply;
	uint32_t perfs;
};

/* The library's handle with the stream that came along; refuses what is not one of the
 * session's in this context. */
struct plain_served *cudnn_use(
	struct worker *w, struct request *r, uint64_t handle, uint64_t stream);
/* A status of a library (struct cudnn_library) as 9 numbers them. */
int cudnn_nine(const void *library, int status);
/* One of the 4000s: it failed inside (no memory, say) and may succeed another time, so it is no
 * answer to keep. */
static inline bool cudnn_internal(cudnnStatus_t status)
{
	return status / 1000 == 4;
}
/* It becomes the answer, passing where it is internal; of a post the CUresult. */
CUresult cudnn_answer(struct request *r, cudnnStatus_t status);

/* In a worker that has no session yet: makes the library ready for the context, which is
 * current (warm.c). */
void cudnn_warm_context(const struct cudnn_library *library, CUcontext context);
/* One of those that were made then, or a new one; the library's status. */
cudnnStatus_t cudnn_handle_new(
	const struct cudnn_library *library, CUcontext context, cudnnHandle_t *handle);
/* They go. */
void cudnn_warm_forget(void);

/* Serves every opcode of cudnn.api. */
CUresult cudnn_serve(struct worker *w, struct request *r);

uint32_t cudnn_take_int(struct cudnn_frame *f);
uint64_t cudnn_take_long(struct cudnn_frame *f);
float cudnn_take_float(struct cudnn_frame *f);
double cudnn_take_double(struct cudnn_frame *f);
void *cudnn_take_device(struct cudnn_frame *f);
/* Eight bytes in the frame. */
void *cudnn_take_scalar(struct cudnn_frame *f);
/* Host ints of the plain part, or of the key part; *count of them. */
const int *cudnn_take_ints(struct cudnn_frame *f, bool key, uint32_t *count);
void *cudnn_take_descriptor(struct cudnn_frame *f, enum cudnn_kind kind);
/* An array of `count`, valid until the call ends. */
void *const *cudnn_take_each(struct cudnn_frame *f, int64_t count, enum cudnn_kind kind);
void *cudnn_take_out(struct cudnn_frame *f);
struct cudnn_perf *cudnn_take_perf(struct cudnn_frame *f, int64_t count);
/* The next words of the key, unchecked but for their number; NULL where there are fewer. */
const uint32_t *cudnn_take_words(struct cudnn_frame *f, uint32_t count);
/* `bytes` of the plain part, rounded up to 8. */
const void *cudnn_take_plain(struct cudnn_frame *f, uint32_t bytes);
/* Ends the call: the first of these is what it answers. */
void cudnn_refuse(struct cudnn_frame *f, cudnnStatus_t status);
/* Whether to stop before the library is called; `lacks`: it has no function `name`. */
bool cudnn_stop(struct cudnn_frame *f, bool lacks, const char *name);

/* --- descriptors by content (descriptors.c) ------------------------------------------
 */

/* What came for one: its words, and its ints where the kind has some. */
struct cudnn_content {
	enum cudnn_kind kind;
	uint32_t words;
	const uint32_t *word;
	uint32_t ints;
	const int *sequence;
};
/* The library's descriptor, made where it is new; NULL and the frame refused where it is no
 * good. It lasts until the frame is served. */
void *cudnn_descriptor(struct cudnn_frame *f, const struct cudnn_content *content);
void cudnn_descriptors_forget(uint16_t context);
/* The words of a tensor or filter of the library's; how many, 0 where it cannot be read. */
uint32_t cudnn_words_of_tensor(const struct cudnn_library *l, cudnnTensorDescriptor_t tensor,
	uint32_t *words, uint32_t room);
uint32_t cudnn_words_of_filter(const struct cudnn_library *l, cudnnFilterDescriptor_t filter,
	uint32_t *words, uint32_t room);

#endif
