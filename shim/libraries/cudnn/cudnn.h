/* SPDX-License-Identifier: Apache-2.0
 *
 * The cuDNN front, once for each major: a library that stands on the driver front
 * (shim/libraries/common/front.h). Descriptors are content, kept here; they travel with the
 * calls that use them (protocol/libraries/cudnn_body.h). A call is learned by them and all that
 * it passes by value, and posted from then on; sizes are asked once for each content.
 *
 * Generated stubs (shim/generated/cudnn_stubs.c) begin a call, put its items and send it;
 * the first fault is kept in the call, so a stub has no branches for errors. The graph API is
 * in backend.h.
 *
 * Statuses are cuDNN 9's in here; cudnn_told makes them the app's.
 */
#ifndef VCUDA_SHIM_LIBRARIES_CUDNN_CUDNN_H
#define VCUDA_SHIM_LIBRARIES_CUDNN_CUDNN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "protocol/libraries/cudnn.h"
#include "protocol/libraries/cudnn_body.h"
#include "shim/libraries/common/plain.h"

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
};

enum cudnn_verb { CUDNN_CACHED, CUDNN_LEARNED, CUDNN_CALL };

/* A call under construction, on the caller's stack. */
struct cudnn_call {
	struct library_handle *handle;
	unsigned call;
	uint16_t op;
	enum cudnn_verb verb;
	cudnnStatus_t status; /* the first fault */
	uint32_t pointers;    /* so far */
	uint32_t outs;
	uint32_t key_words;
	uint32_t plain_bytes;
	struct {
		void *to;
		size_t bytes;
	} out[CUDNN_OUTS];
	struct cudnn_perf *perf;
	uint32_t perfs;
	uint32_t key[CUDNN_KEY_WORDS]; /* [0]: which pointers are there, [1]: their low bits */
	/* The body: its head, the plain part; the key part is appended when it is sent. */
	_Alignas(8) unsigned char body[sizeof(struct cudnn_body) + CUDNN_PLAIN_MAX +
				       4 * CUDNN_KEY_WORDS + 8];
};

void cudnn_begin(struct cudnn_call *call, unsigned number, uint16_t op, cudnnHandle_t handle,
	enum cudnn_verb verb);
void cudnn_put_int(struct cudnn_call *call, uint32_t value);
void cudnn_put_long(struct cudnn_call *call, uint64_t value);
void cudnn_put_float(struct cudnn_call *call, float value);
void cudnn_put_double(struct cudnn_call *call, double value);
/* A device address, or NULL. */
void cudnn_put_device(struct cudnn_call *call, const void *address);
/* `bytes` <= 8 from the host; or NULL. */
void cudnn_put_scalar(struct cudnn_call *call, const void *value, uint32_t bytes);
/* The same without noting whether it is NULL: in arrays. */
void cudnn_put_address(struct cudnn_call *call, uint64_t address);
/* `bytes` > 0 from the host, padded to 8, in the plain part. */
void cudnn_put_plain(struct cudnn_call *call, const void *from, uint32_t bytes);
/* Host ints; or NULL. */
void cudnn_put_ints(struct cudnn_call *call, const int *values, uint32_t count);
/* A cudnn…Descriptor_t of that kind, or NULL. One that was never set is a fault. */
void cudnn_put_descriptor(struct cudnn_call *call, const void *descriptor, uint32_t kind);
void cudnn_put_each(
	struct cudnn_call *call, const void *descriptors, int64_t count, uint32_t kind);
/* `bytes` of a number that comes back go to `to`, in order. */
void cudnn_out(struct cudnn_call *call, void *to, size_t bytes);
/* The same; nowhere, where `to` is NULL. */
void cudnn_out_maybe(struct cudnn_call *call, void *to, size_t bytes);
void cudnn_out_perf(struct cudnn_call *call, struct cudnn_perf *to, int64_t count);
/* The app's status. */
cudnnStatus_t cudnn_send(struct cudnn_call *call);
/* For hand-written calls: our status, and the whole reply. */
cudnnStatus_t cudnn_exchange(struct cudnn_call *call, void *reply, size_t reply_bytes);

/* NULL: not a handle of this front. */
struct library_handle *cudnn_find(cudnnHandle_t handle);

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
/* CTC: how many sequences there are, and labels in them all. */
uint32_t cudnn_batch(cudnnTensorDescriptor_t probabilities);
uint32_t cudnn_label_count(cudnnTensorDescriptor_t probabilities, const int *lengths);

/* What the driver front and the session say, as a status of cuDNN. */
cudnnStatus_t cudnn_status(CUresult status);
/* The status in an answer; the text of a fault inside of the library is kept. */
cudnnStatus_t cudnn_answered(int status);
cudnnStatus_t cudnn_refused(unsigned call, const char *name, const char *reason);
void cudnn_count(unsigned call);
/* Of a handle that is made, ended or set: as the app numbers it, its text kept. */
int cudnn_says(int status);
/* Keeps `text` for cudnnGetLastErrorString; returns `status`. */
cudnnStatus_t cudnn_fault(cudnnStatus_t status, const char *text);

static inline cudnnStatus_t cudnn_told(cudnnStatus_t status)
{
	return VCUDA_ABI == 8 ? cudnn_status_to_8(status) : status;
}

#endif
