/* SPDX-License-Identifier: Apache-2.0
 *
 * Executing a plan: its name, the names and addresses of its tensors, and the bytes of those
 * that are passed by value. Learned by plan and names, so posted from the second time on.
 */
#include <string.h>

#include "shim/generated/cuda_calls.h"
#include "shim/generated/cudnn_hand.h"
#include "protocol/generated/cudnn_ops.h"
#include "shim/libraries/cudnn/backend.h"

/* A variant pack's attribute as so many elements of that type; NULL where it is not that. */
static const void *pack_of(
	const struct backend *pack, uint32_t name, uint32_t type, uint32_t *count)
{
	const struct backend_attribute *a = backend_find(pack, name);

	*count = 0;
	if (!a || a->type != type)
		return NULL;
	*count = a->count;
	return a->data;
}

cudnnStatus_t hand_cudnnBackendExecute(cudnnHandle_t handle,
	cudnnBackendDescriptor_t executionPlan, cudnnBackendDescriptor_t variantPack)
{
	const struct backend *b = backend_of(executionPlan);
	const struct backend *pack = backend_of(variantPack);
	uint32_t tensors, pointers, workspaces;
	const int64_t *uids;
	const uint64_t *addresses, *workspace;
	struct library_items items;
	struct library_answer reply;

	if (!b || !b->plan || !pack || !pack->finalized ||
		pack->type != CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR)
		return cudnn_fault(CUDNN_STATUS_BAD_PARAM, "no plan, or no variant pack");
	uids = pack_of(pack, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, &tensors);
	addresses = pack_of(
		pack, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, &pointers);
	workspace = pack_of(
		pack, CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, &workspaces);
	if (tensors != pointers || (tensors && (!uids || !addresses)))
		return cudnn_fault(
			CUDNN_STATUS_BAD_PARAM, "other numbers of tensors and pointers");
	for (uint32_t i = 0; i < pack->attributes; i++)
		if (pack->attribute[i].name >= CUDNN_ATTR_VARIANT_PACK_OVERRIDE_UNIQUE_IDS ||
			(pack->attribute[i].name == CUDNN_ATTR_VARIANT_PACK_INTERMEDIATES &&
				pack->attribute[i].count))
			return cudnn_fault(CUDNN_STATUS_NOT_SUPPORTED,
				"variant packs with shapes or intermediates");

	library_begin(&items, &cudnn_front, FRONT_COUNTED, OP_cudnnBackendExecute,
		LIBRARY_LEARNED, handle);
	library_put_long(&items, plan_number(b->plan));
	library_put_device(&items, workspaces ? (const void *)(uintptr_t)workspace[0] : NULL);
	library_put_int(&items, tensors);
	for (uint32_t i = 0; i < tensors; i++) {
		const void *at = (const void *)(uintptr_t)addresses[i];
		uint32_t bytes = at ? plan_value_bytes(b->plan, uids[i]) : 0;

		library_put_long(&items, (uint64_t)uids[i]);
		library_put_int(&items, bytes);
		if (bytes)
			library_put_bytes(&items, at, bytes);
		else
			library_put_address(&items, addresses[i]);
	}
	return library_exchange(&items, &reply, sizeof(reply));
}

/* What the plan said; a pack with other shapes is not served. */
cudnnStatus_t hand_cudnnGetExecutionPlanWorkspaceSize(cudnnHandle_t handle,
	cudnnBackendDescriptor_t executionPlan, cudnnBackendDescriptor_t variantPack,
	size_t *workspaceSizeInBytes)
{
	const struct backend *b = backend_of(executionPlan);

	(void)variantPack;
	if (!cudnn_find(handle) || !b || !b->plan || !workspaceSizeInBytes)
		return cudnn_fault(CUDNN_STATUS_BAD_PARAM, "no handle, or no plan");
	*workspaceSizeInBytes = (size_t)plan_workspace(b->plan);
	return CUDNN_STATUS_SUCCESS;
}
