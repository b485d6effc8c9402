/* SPDX-License-Identifier: Apache-2.0
 *
 * Dropout descriptors: a probability and where the generators' states lie, which is the app's
 * own device memory. Setting one fills the states on the GPU; restoring one does not.
 */
#include <string.h>

#include "shim/libraries/cudnn/forms.h"
#include "shim/generated/cuda_calls.h"
#include "shim/generated/cudnn_hand.h"
#include "protocol/generated/cudnn_ops.h"
#include "shim/libraries/cudnn/cudnn.h"

cudnnStatus_t cudnn_dropout_keep(cudnnDropoutDescriptor_t dropoutDesc, cudnnHandle_t handle,
	float dropout, const void *states, size_t bytes, unsigned long long seed)
{
	struct cudnn_descriptor *d = cudnn_descriptor_of(dropoutDesc, CUDNN_KIND_DROPOUT);
	struct cudnn_dropout_words words;
	uint64_t address = (uint64_t)(uintptr_t)states;
	uint64_t size = bytes;
	uint64_t start = seed;

	if (!d || !cudnn_find(handle) || !(dropout >= 0 && dropout <= 1))
		return cudnn_fault(CUDNN_STATUS_BAD_PARAM,
			"no dropout descriptor or handle, or a probability out of range");
	memcpy(&words.dropout, &dropout, sizeof(dropout));
	memcpy(words.states, &address, sizeof(address));
	memcpy(words.bytes, &size, sizeof(size));
	memcpy(words.seed, &start, sizeof(start));
	memcpy(d->word, &words, sizeof(words));
	d->words = sizeof(words) / 4;
	return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnn_dropout_copy(
	cudnnDropoutDescriptor_t dropout, uint32_t *has, struct cudnn_dropout_words *words)
{
	const struct cudnn_descriptor *from = cudnn_descriptor_of(dropout, CUDNN_KIND_DROPOUT);

	if (dropout && !from)
		return cudnn_fault(CUDNN_STATUS_BAD_PARAM, "no dropout descriptor");
	memset(words, 0, sizeof(*words));
	*has = from && from->words;
	if (*has)
		memcpy(words, from->word, sizeof(*words));
	return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t hand_cudnnSetDropoutDescriptor(cudnnDropoutDescriptor_t dropoutDesc,
	cudnnHandle_t handle, float dropout, void *states, size_t stateSizeInBytes,
	unsigned long long seed)
{
	struct library_items items;
	struct library_answer reply;
	cudnnStatus_t status = cudnn_dropout_keep(
		dropoutDesc, handle, dropout, states, stateSizeInBytes, seed);

	if (status || !states)
		return status;
	library_begin(&items, &cudnn_front, FRONT_COUNTED, OP_cudnnSetDropoutDescriptor,
		LIBRARY_LEARNED, handle);
	library_put_descriptor(&items, dropoutDesc, CUDNN_KIND_DROPOUT);
	status = library_exchange(&items, &reply, sizeof(reply));
	if (status) /* not set, then */
		cudnn_descriptor_of(dropoutDesc, CUDNN_KIND_DROPOUT)->words = 0;
	return status;
}

cudnnStatus_t hand_cudnnGetDropoutDescriptor(cudnnDropoutDescriptor_t dropoutDesc,
	cudnnHandle_t handle, float *dropout, void **states, unsigned long long *seed)
{
	const struct cudnn_descriptor *d = cudnn_set_of(dropoutDesc, CUDNN_KIND_DROPOUT);
	struct cudnn_dropout_words words;
	uint64_t address;

	if (!d || !cudnn_find(handle))
		return cudnn_fault(
			CUDNN_STATUS_BAD_PARAM, "no dropout descriptor that was set");
	memcpy(&words, d->word, sizeof(words));
	memcpy(&address, words.states, sizeof(address));
	if (dropout)
		memcpy(dropout, &words.dropout, sizeof(*dropout));
	if (states)
		*states = (void *)(uintptr_t)address;
	if (seed)
		memcpy(seed, words.seed, sizeof(*seed));
	return CUDNN_STATUS_SUCCESS;
}

/* At most a byte an element: the library keeps a bit for each. There is no handle to ask with.
 */
cudnnStatus_t hand_cudnnDropoutGetReserveSpaceSize(
	cudnnTensorDescriptor_t xdesc, size_t *sizeInBytes)
{
	const struct cudnn_descriptor *x = cudnn_set_of(xdesc, CUDNN_KIND_TENSOR);

	if (!x || !sizeInBytes)
		return cudnn_fault(CUDNN_STATUS_BAD_PARAM, "no tensor that was set");
	*sizeInBytes = 1;
	for (uint32_t i = 0; i < x->word[2]; i++)
		*sizeInBytes *= x->word[3 + i];
	*sizeInBytes = (*sizeInBytes + 15) & ~(size_t)15;
	return CUDNN_STATUS_SUCCESS;
}
