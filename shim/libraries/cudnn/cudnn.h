/* SPDX-License-Identifier: Apache-2.0
 *
 * The cuDNN front, once for each major: a library that stands on the driver front
 * (shim/libraries/common/driver_front.h). Descriptors are content, kept here; they travel with
 * the calls that use them (protocol/libraries/cudnn_body.h). A call is learned by them and all
 * that it passes by value, and posted from then on; sizes are asked once for each content.
 *
 * Generated stubs (shim/generated/cudnn_stubs.c) begin a call, put its items and send it
 * (shim/libraries/common/items.h). The graph API is in backend.h.
 *
 * Statuses are cuDNN 9's in here; cudnn_app_status makes them the app's.
 */
#ifndef VCUDA_SHIM_LIBRARIES_CUDNN_CUDNN_H
#define VCUDA_SHIM_LIBRARIES_CUDNN_CUDNN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "protocol/libraries/cudnn.h"
#include "protocol/libraries/cudnn_body.h"
#include "shim/libraries/common/items.h"

/* VCUDA_ABI: 8 or 9, whichever this front stands for. */

/* What every cudnn…Descriptor_t of the descriptor API points to. */
struct cudnn_descriptor {
	uint32_t magic;
	uint16_t kind;	/* enum cudnn_kind */
	uint16_t words; /* 0: not set yet */
	uint32_t word[CUDNN_DESCRIPTOR_WORDS];
	int32_t *ints; /* sequence lengths; ours */
	uint32_t int_count;
	struct cudnn_descriptor *other; /* what the app gave as its dropout descriptor */
	struct cudnn_descriptor *post;	/* and, attention, as the second one */
};

/* Kinds that never travel. */
enum {
	CUDNN_KIND_ALGORITHM = CUDNN_KIND_LAST, /* its number */
	CUDNN_KIND_PERFORMANCE, /* status, time, memory (2); `other`: algorithm */
	CUDNN_KIND_PERSISTENT,	/* a plan: its minibatch */
};

/* Puts one of that kind, or NULL. One that was never set is a fault. */
void cudnn_put_descriptor(struct library_items *items, const void *descriptor, uint32_t kind);

/* NULL: not a handle of this front. */
struct library_handle *cudnn_find(cudnnHandle_t handle);

/* The front's own for the thread's context, which gets one where it has none yet: for calls
 * without a handle. NULL: it cannot be made. */
cudnnHandle_t cudnn_own(void);

/* NULL: no descriptor of that kind. */
struct cudnn_descriptor *cudnn_descriptor_of(const void *descriptor, uint32_t kind);
/* The same, but it must have been set. */
const struct cudnn_descriptor *cudnn_set_of(const void *descriptor, uint32_t kind);
cudnnStatus_t cudnn_descriptor_new(void **descriptor, uint32_t kind);
cudnnStatus_t cudnn_descriptor_free(void *descriptor, uint32_t kind);

/* Bytes of alpha and beta of a call: a double's where its tensors are double, else a float's.
 * The descriptor is a tensor's, a filter's or an op tensor's. */
uint32_t cudnn_scale_bytes(const void *descriptor);
/* Bytes of one element. */
uint32_t cudnn_value_bytes(cudnnTensorDescriptor_t descriptor);
/* What a dropout descriptor, or NULL, holds now: later changes of it need the network that uses
 * it set again. *has: 0 where there is none. */
cudnnStatus_t cudnn_dropout_copy(
	cudnnDropoutDescriptor_t dropout, uint32_t *has, struct cudnn_dropout_words *words);
/* Attention: how many time steps the queries have. */
uint32_t cudnn_seq_steps(cudnnSeqDataDescriptor_t queries);
/* Where weights lie, as gpu-agent/worker/libraries/cudnn/hand.c answers it: 1 + the distance
 * from the start, or 0; then the number of words of the descriptor and the words. Sets
 * `descriptor` and *address, each of which may be NULL. */
void cudnn_place(const uint64_t *distance, const uint64_t *words, const void *start,
	void *descriptor, uint32_t kind, void **address);
/* CTC: how many sequences there are, and labels in them all. */
uint32_t cudnn_batch(cudnnTensorDescriptor_t probabilities);
uint32_t cudnn_label_count(cudnnTensorDescriptor_t probabilities, const int *lengths);

/* What the driver front and the session say, as a status of cuDNN. */
cudnnStatus_t cudnn_status(CUresult status);
/* Keeps the text of a status that the front made, or of a CUresult where TEXT is NULL. */
void cudnn_explain(int status, const char *text);
/* The same of a status in an answer: of a fault inside of the library. */
void cudnn_answered(int status);
/* A status as the app numbers it; and the one in a result of a search. */
int cudnn_program(int status);
void cudnn_element(void *perf);
cudnnStatus_t cudnn_refused(unsigned call, const char *name, const char *reason);
void cudnn_count(unsigned call);
/* Of a handle that is made, ended or set: as the app numbers it, its text kept. */
int cudnn_says(int status);
/* Keeps `text` for cudnnGetLastErrorString; returns `status`. */
cudnnStatus_t cudnn_fault(cudnnStatus_t status, const char *text);

static inline cudnnStatus_t cudnn_app_status(cudnnStatus_t status)
{
	return VCUDA_ABI == 8 ? cudnn_status_to_8(status) : status;
}

#endif
