/* SPDX-License-Identifier: Apache-2.0
 *
 * cuDNN on the worker: what the serve functions of cudnn.api
 * (gpu-agent/generated/cudnn_serve.c) stand on beside the items of common/items.h.
 *
 * cudnn.c has the library and its handles, descriptor.c real descriptors by content, backend.c
 * the graph API.
 */
#ifndef VCUDA_GPU_AGENT_WORKER_LIBRARIES_CUDNN_CUDNN_H
#define VCUDA_GPU_AGENT_WORKER_LIBRARIES_CUDNN_CUDNN_H

#include "gpu-agent/worker/libraries/common/items.h"
#include "gpu-agent/worker/worker.h"
#include "protocol/libraries/cudnn.h"
#include "protocol/libraries/cudnn_body.h"
#include "gpu-agent/generated/cudnn_library.h"

/* The functions that a frame's library has. */
static inline const struct cudnn_library *cudnn_of(const struct library_frame *f)
{
	return f->library;
}

/* A status of a library (struct cudnn_library) as 9 numbers them. */
int cudnn_nine(const void *library, int status);
/* The one of its kind that has a CUresult. */
int cudnn_kind_of(int status);
/* A result of a search: its status numbered as in 9. */
void cudnn_element_numbered(const void *library, void *perf);
/* It becomes the answer, passing where it is internal; of a post the CUresult. */
CUresult cudnn_answer(struct request *r, cudnnStatus_t status);

/* In a worker that has no session yet: makes the library ready for the context, which is
 * current (warm.c). */
void cudnn_warm_context(const struct cudnn_library *library, CUcontext context);
/* One of those that were made then, or a new one; the library's status. The request's thread
 * may leave the loop's place (beside_call.h). */
cudnnStatus_t cudnn_handle_new(const struct request *r, const struct cudnn_library *library,
	CUcontext context, cudnnHandle_t *handle);
/* They go. */
void cudnn_warm_forget(void);

/* --- descriptors by content (descriptor.c) ------------------------------------------
 */

/* What came for one: its words, and its ints where the kind has some. */
struct cudnn_content {
	uint32_t kind;
	uint32_t words;
	const uint32_t *word;
	uint32_t ints;
	const int *sequence;
};
/* The library's descriptor of that kind, made where it is new; NULL where that came, or the
 * frame is refused because it is no good. It lasts until the frame is served. */
void *cudnn_get_descriptor(struct library_frame *f, uint32_t kind);
/* Restores a dropout descriptor, whose states are there already, from its words. */
cudnnStatus_t cudnn_set_dropout(struct library_frame *f, void *d, const uint32_t *word);
/* Attention's (attention.c). `dropouts`: of the scores and of the result; made here, the
 * caller's in any case. */
cudnnStatus_t cudnn_set_seq_data(
	const struct cudnn_library *l, void *d, const struct cudnn_content *c);
cudnnStatus_t cudnn_set_attention(
	struct library_frame *f, void *d, const struct cudnn_content *c, void **dropouts);
/* Makes the library's descriptor and sets it; what is made is the caller's in any case. */
cudnnStatus_t cudnn_make(
	struct library_frame *f, const struct cudnn_content *c, void **made, void **dropouts);
void cudnn_destroy(const struct cudnn_library *l, enum cudnn_kind kind, void *descriptor);
/* A plan of fused operations (fused.c), with all that it is made of. */
cudnnStatus_t cudnn_set_fused(
	struct library_frame *f, const struct cudnn_content *c, void **made);
void cudnn_fused_free(const struct cudnn_library *l, void *made);
void cudnn_descriptors_forget(uint16_t context);
/* 1 + how far an address is from the start; 0 where there is none. */
uint64_t cudnn_distance(const void *address, const void *start);
/* The words of a tensor or filter of the library's; how many, 0 where it cannot be read. */
uint32_t cudnn_words_of_tensor(const struct cudnn_library *l, cudnnTensorDescriptor_t tensor,
	uint32_t *words, uint32_t room);
uint32_t cudnn_words_of_filter(const struct cudnn_library *l, cudnnFilterDescriptor_t filter,
	uint32_t *words, uint32_t room);

#endif
