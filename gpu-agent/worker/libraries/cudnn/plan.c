/* SPDX-License-Identifier: Apache-2.0
 *
 * Execution plans that the app has a name for, and their execution: a variant pack is made of
 * what came, and the plan is run with the handle and stream of the call.  Tensors that the plan
 * takes by value get the bytes that came, and never an address: the library reads them with the
 * CPU.
 */
#include <stdlib.h>
#include <string.h>

#include "gpu-agent/worker/loop/closing.h"
#include "gpu-agent/worker/libraries/cudnn/backend.h"
#include "gpu-agent/worker/worker_state.h"

#define TENSORS_MAX 512
#define VALUES_MAX 64
#define VALUE_BYTES_MAX 4096

struct cudnn_plan {
	struct graph_made *made;
	uint16_t context;
	uint32_t values;
	struct {
		int64_t uid;
		uint32_t bytes;
	} value[VALUES_MAX];
};

/* An attribute's elements if it has that type and at least one; else NULL. */
static const uint32_t *plan_attribute(
	const struct graph_node *n, uint32_t name, uint32_t type, uint32_t *count)
{
	for (const uint32_t *at = n->first; at < n->end;
		at += 2 + cudnn_attribute_words(at[0] >> 16, at[1]))
		if (at[0] == (name | type << 16) && at[1]) {
			*count = at[1];
			return at + 2;
		}
	return NULL;
}

/* Notes a tensor that is passed by value; false where it is too large, or there are too many.
 */
static bool plan_note(struct cudnn_plan *plan, const struct graph_node *n)
{
	uint32_t one, count = 0;
	const uint32_t *by =
		plan_attribute(n, CUDNN_ATTR_TENSOR_IS_BY_VALUE, CUDNN_TYPE_BOOLEAN, &one);
	const uint32_t *uid =
		plan_attribute(n, CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, &one);
	const uint32_t *type =
		plan_attribute(n, CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, &one);
	const uint32_t *dims =
		plan_attribute(n, CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, &count);
	uint64_t bytes;

	if (n->type != CUDNN_BACKEND_TENSOR_DESCRIPTOR || !by || !(*by & 0xff))
		return true;
	if (!uid || !type || !dims || plan->values == VALUES_MAX)
		return false;
	bytes = cudnn_data_bytes(*type);
	for (uint32_t i = 0; i < count; i++) {
		uint64_t size;

		memcpy(&size, dims + 2 * i, sizeof(size));
		if (!size || size > VALUE_BYTES_MAX)
			return false;
		bytes *= size;
		if (!bytes || bytes > VALUE_BYTES_MAX)
			return false;
	}
	memcpy(&plan->value[plan->values].uid, uid, sizeof(plan->value[0].uid));
	plan->value[plan->values++].bytes = (uint32_t)bytes;
	return bytes != 0;
}

cudnnStatus_t plan_name(struct library_frame *f, uint64_t name, const struct graph_tree *tree,
	struct graph_made *made)
{
	struct cudnn_plan *plan;

	if (made->type != CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR)
		return CUDNN_STATUS_BAD_PARAM;
	plan = calloc(1, sizeof(*plan));
	if (!plan)
		return CUDNN_STATUS_ALLOC_FAILED;
	for (uint32_t i = 0; i < tree->nodes; i++)
		if (!plan_note(plan, &tree->node[i])) {
			free(plan);
			return CUDNN_STATUS_NOT_SUPPORTED;
		}
	worker_bind(f->w, f->r, name, KIND_cudnnPlan, plan);
	if (worker_refused(f->r)) {
		free(plan);
		return CUDNN_STATUS_BAD_PARAM;
	}
	plan->made = made;
	plan->context = f->r->header.context;
	cudnn_graph_hold(made);
	return CUDNN_STATUS_SUCCESS;
}

static CUresult plan_close(struct worker *w, void *object)
{
	struct cudnn_plan *plan = object;

	(void)w;
	cudnn_graph_drop(plan->made);
	free(plan);
	return CUDA_SUCCESS;
}

CUresult serve_vcudaCudnnPlanClose(struct worker *w, struct request *r)
{
	const struct wire_vcudaCudnnPlanClose *req = (const void *)r->body;
	struct cudnn_plan *plan = worker_handle(w, r, req->plan, KIND_cudnnPlan);

	if (!plan)
		return r->refused;
	worker_unbind(w, r, req->plan, KIND_cudnnPlan);
	return closing_do(w, plan_close, plan);
}

/* What a tensor takes by value; 0: it has an address. */
static uint32_t plan_value(const struct cudnn_plan *plan, int64_t uid)
{
	for (uint32_t i = 0; i < plan->values; i++)
		if (plan->value[i].uid == uid)
			return plan->value[i].bytes;
	return 0;
}

static cudnnStatus_t plan_execute(struct library_frame *f, const struct cudnn_plan *plan,
	void *workspace, uint32_t count, int64_t *uids, void **addresses)
{
	const struct cudnn_library *l = f->library;
	cudnnBackendDescriptor_t pack = NULL;
	cudnnStatus_t status;

	status = l->cudnnBackendCreateDescriptor(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR, &pack);
	if (!status)
		status = l->cudnnBackendSetAttribute(pack, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS,
			CUDNN_TYPE_INT64, count, uids);
	if (!status)
		status =
			l->cudnnBackendSetAttribute(pack, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS,
				CUDNN_TYPE_VOID_PTR, count, addresses);
	if (!status)
		status = l->cudnnBackendSetAttribute(pack, CUDNN_ATTR_VARIANT_PACK_WORKSPACE,
			CUDNN_TYPE_VOID_PTR, 1, &workspace);
	if (!status)
		status = l->cudnnBackendFinalize(pack);
	if (!status)
		status = l->cudnnBackendExecute(f->handle, plan->made->descriptor, pack);
	if (pack)
		l->cudnnBackendDestroyDescriptor(pack);
	return status;
}

int run_cudnnBackendExecute(struct library_frame *f)
{
	int64_t uids[TENSORS_MAX];
	void *addresses[TENSORS_MAX];
	uint64_t name = library_get_long(f);
	void *workspace = library_get_device(f);
	uint32_t count = library_get_int(f);
	struct cudnn_plan *plan = worker_handle(f->w, f->r, name, KIND_cudnnPlan);

	if (plan &&
		(plan->context != f->r->header.context || plan->made->library != f->library))
		worker_refuse(f->r, CUDA_ERROR_INVALID_VALUE);
	if (worker_refused(f->r))
		return CUDNN_STATUS_BAD_PARAM;
	if (count > TENSORS_MAX)
		library_refuse(f, CUDNN_STATUS_NOT_SUPPORTED);
	for (uint32_t i = 0; !f->stopped && i < count; i++) {
		uint32_t bytes;
		const void *at;
		uint64_t address;

		uids[i] = (int64_t)library_get_long(f);
		bytes = library_get_int(f);
		at = library_get_bytes(f, bytes ? bytes : 8);
		if (!at)
			break;
		memcpy(&address, at, sizeof(address));
		addresses[i] = (void *)(uintptr_t)(bytes ? (uintptr_t)at : address);
		/* By value: as many bytes as the plan says, or no tensor at all. */
		if (bytes != plan_value(plan, uids[i]) && (bytes || address))
			library_refuse(f, CUDNN_STATUS_BAD_PARAM);
	}
	if (library_stop(f, !cudnn_of(f)->cudnnBackendExecute, "cudnnBackendExecute"))
		return f->status;
	return plan_execute(f, plan, workspace, count, uids, addresses);
}
