/* SPDX-License-Identifier: Apache-2.0
 *
 * What calls of the cuDNN front have beside their items: handles, and descriptors by content.
 */
#include <string.h>

#include "shim/generated/cudnn_hand.h"
#include "shim/libraries/cudnn/cudnn.h"

struct library_handle *cudnn_find(cudnnHandle_t handle)
{
	return vcuda_library_find(&cudnn_front, handle);
}

void cudnn_put_descriptor(struct library_items *items, const void *descriptor, uint32_t kind)
{
	const struct cudnn_descriptor *d;
	void *to;

	if (!descriptor) {
		library_put_int(items, 0);
		return;
	}
	d = cudnn_set_of(descriptor, kind);
	if (!d) {
		library_fault(items, CUDNN_STATUS_BAD_PARAM,
			"a descriptor that was never set, or is of another kind");
		return;
	}
	to = library_put_content(items, kind, d->words);
	if (!to)
		return;
	memcpy(to, d->word, d->words * sizeof(d->word[0]));
	if (kind == CUDNN_KIND_RNN_DATA || kind == CUDNN_KIND_SEQ_DATA)
		library_put_varying_ints(items, d->ints, (uint32_t)d->int_count);
}

int cudnn_program(int status)
{
	return cudnn_app_status(status);
}

void cudnn_element(void *perf)
{
	struct cudnn_perf *found = perf;

	found->status = cudnn_app_status(found->status);
}
