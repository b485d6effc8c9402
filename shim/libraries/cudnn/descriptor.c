/* SPDX-License-Identifier: Apache-2.0
 *
 * What all descriptors of the descriptor API have in common: making, finding and freeing them.
 */
#include <stdlib.h>

#include "shim/generated/cudnn_hand.h"
#include "shim/libraries/cudnn/cudnn.h"

#define MAGIC 0x6e6e4463u

cudnnStatus_t cudnn_descriptor_new(void **descriptor, uint32_t kind)
{
	struct cudnn_descriptor *d;

	if (!descriptor)
		return cudnn_fault(CUDNN_STATUS_BAD_PARAM, "nowhere to put the descriptor");
	d = calloc(1, sizeof(*d));
	if (!d)
		return CUDNN_STATUS_ALLOC_FAILED;
	d->magic = MAGIC;
	d->kind = (uint16_t)kind;
	*descriptor = d;
	return CUDNN_STATUS_SUCCESS;
}

struct cudnn_descriptor *cudnn_descriptor_of(const void *descriptor, uint32_t kind)
{
	struct cudnn_descriptor *d = (struct cudnn_descriptor *)(uintptr_t)descriptor;

	return d && d->magic == MAGIC && d->kind == kind ? d : NULL;
}

const struct cudnn_descriptor *cudnn_set_of(const void *descriptor, uint32_t kind)
{
	const struct cudnn_descriptor *d = cudnn_descriptor_of(descriptor, kind);

	return d && d->words ? d : NULL;
}

cudnnStatus_t cudnn_descriptor_free(void *descriptor, uint32_t kind)
{
	struct cudnn_descriptor *d = cudnn_descriptor_of(descriptor, kind);

	if (!descriptor)
		return CUDNN_STATUS_SUCCESS;
	if (!d)
		return cudnn_fault(CUDNN_STATUS_BAD_PARAM, "no descriptor of this kind");
	d->magic = 0;
	free(d->ints);
	free(d);
	return CUDNN_STATUS_SUCCESS;
}

/* Where the type stands in the words. */
static uint32_t type_of(const void *descriptor)
{
	const struct cudnn_descriptor *d = descriptor;

	if (!d || d->magic != MAGIC || !d->words)
		return UINT32_MAX;
	switch (d->kind) {
	case CUDNN_KIND_TENSOR:
	case CUDNN_KIND_FILTER: return d->word[0];
	case CUDNN_KIND_OP_TENSOR: return d->word[1];
	default: return UINT32_MAX;
	}
}

uint32_t cudnn_scale_bytes(const void *descriptor)
{
	return type_of(descriptor) == CUDNN_DATA_DOUBLE ? 8 : 4;
}

uint32_t cudnn_value_bytes(cudnnTensorDescriptor_t descriptor)
{
	return cudnn_data_bytes(type_of(descriptor));
}

uint32_t cudnn_batch(cudnnTensorDescriptor_t probabilities)
{
	const struct cudnn_descriptor *d = cudnn_set_of(probabilities, CUDNN_KIND_TENSOR);

	return d && d->word[2] >= 3 ? d->word[4] : 0; /* time, batch, alphabet */
}

uint32_t cudnn_label_count(cudnnTensorDescriptor_t probabilities, const int *lengths)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; lengths && i < cudnn_batch(probabilities); i++)
		sum += lengths[i] > 0 ? (uint32_t)lengths[i] : 0;
	return sum < LIBRARY_VARYING_MAX ? (uint32_t)sum : LIBRARY_VARYING_MAX;
}
