/* SPDX-License-Identifier: Apache-2.0
 *
 * Green contexts and the resources that they are made of.  A green context stands in the table
 * of contexts under the number that the shim chose, as the context that it converts to.
 */
#include <stdlib.h>
#include <string.h>

#include "gpu-agent/worker/driver.h"
#include "gpu-agent/worker/limits/extra.h"
#include "gpu-agent/worker/worker_state.h"

static CUresult resource_of(struct worker *w, uint64_t name, CUdevResource *resource)
{
	if (!name || name > w->greens.resource_count)
		return CUDA_ERROR_INVALID_HANDLE;
	*resource = w->greens.resources[name - 1];
	return CUDA_SUCCESS;
}

/* Room for one more of COUNT elements of SIZE bytes. */
static bool grow(void **list, uint32_t count, size_t size)
{
	void *more;

	if (count == GREEN_NAMES)
		return false;
	if (count & (count - 1)) /* it grows at each power of two */
		return true;
	more = realloc(*list, (count ? 2 * (size_t)count : 1) * size);
	if (!more)
		return false;
	*list = more;
	return true;
}

/* Keeps the resource under a name; what was asked before has its name already. */
static CUresult resource_keep(
	struct worker *w, const CUdevResource *resource, struct green_resource *answer)
{
	struct greens *g = &w->greens;
	uint32_t i;

	for (i = 0; i < g->resource_count; i++)
		if (!memcmp(&g->resources[i], resource, sizeof(*resource)))
			break;
	if (i == g->resource_count) {
		if (!grow((void **)&g->resources, i, sizeof(*resource)))
			return CUDA_ERROR_OUT_OF_MEMORY;
		g->resources[g->resource_count++] = *resource;
	}
	*answer = (struct green_resource){.name = i + 1,
		.sm_count = resource->sm.smCount,
		.sm_least = resource->sm.minSmPartitionSize,
		.sm_alignment = resource->sm.smCoscheduledAlignment};
	return CUDA_SUCCESS;
}

CUresult serve_vcudaGreenResource(struct worker *w, struct request *r)
{
	const struct wire_vcudaGreenResource *req = (const void *)r->body;
	struct wire_vcudaGreenResource_reply *answer = (void *)r->answer;
	const CUdevResourceType type = CU_DEV_RESOURCE_TYPE_SM;
	CUdevResource resource;
	CUresult status;

	memset(&resource, 0, sizeof(resource));
	if (req->device < 0 || (uint32_t)req->device >= w->device_count)
		return CUDA_ERROR_INVALID_DEVICE;
	if (req->number >= CONTEXT_MAX || (req->number && !w->contexts[req->number]))
		return CUDA_ERROR_INVALID_CONTEXT;
	if (!w->cuda.cuDeviceGetDevResource || !w->cuda.cuCtxGetDevResource ||
		!w->cuda.cuGreenCtxGetDevResource)
		return worker_lacks(w, "cuDeviceGetDevResource");
	if (!req->number)
		status = w->cuda.cuDeviceGetDevResource(
			w->devices[req->device].device, &resource, type);
	else if (w->greens.contexts[req->number])
		status = w->cuda.cuGreenCtxGetDevResource(
			w->greens.contexts[req->number], &resource, type);
	else
		status = w->cuda.cuCtxGetDevResource(w->contexts[req->number], &resource, type);
	return status ? status : resource_keep(w, &resource, &answer->resource);
}

CUresult serve_vcudaGreenSplit(struct worker *w, struct request *r)
{
	const struct wire_vcudaGreenSplit *req = (const void *)r->body;
	struct wire_vcudaGreenSplit_reply *answer = (void *)r->answer;
	CUdevResource input, rest, parts[GREEN_PARTS];
	struct green_resource *list;
	unsigned made = req->groups;
	CUresult status = resource_of(w, req->input, &input);

	if (status)
		return status;
	if (made > GREEN_PARTS)
		return CUDA_ERROR_INVALID_VALUE;
	if (!w->cuda.cuDevSmResourceSplitByCount)
		return worker_lacks(w, "cuDevSmResourceSplitByCount");
	memset(&rest, 0, sizeof(rest));
	memset(parts, 0, sizeof(parts));
	status = w->cuda.cuDevSmResourceSplitByCount(made ? parts : NULL, &made, &input,
		made ? &rest : NULL, req->flags, req->least);
	if (status)
		return status;
	answer->made = made;
	if (!req->groups)
		return CUDA_SUCCESS; /* only how many there would be */
	if (made > req->groups)
		return CUDA_ERROR_UNKNOWN;
	list = worker_out(r, &answer->parts, made * sizeof(*list));
	for (unsigned i = 0; !worker_refused(r) && i < made; i++) {
		status = resource_keep(w, &parts[i], &list[i]);
		if (status)
			return status;
	}
	if (rest.type == CU_DEV_RESOURCE_TYPE_SM)
		status = resource_keep(w, &rest, &answer->rest);
	return status ? status : r->refused;
}

CUresult serve_vcudaGreenDescriptor(struct worker *w, struct request *r)
{
	const struct wire_vcudaGreenDescriptor *req = (const void *)r->body;
	struct wire_vcudaGreenDescriptor_reply *answer = (void *)r->answer;
	const uint64_t *names =
		worker_in(r, &req->resources, (uint64_t)req->count * sizeof(*names));
	CUdevResource resources[GREEN_PARTS];
	struct greens *g = &w->greens;
	CUdevResourceDesc descriptor;
	CUresult status = r->refused;

	if (!status && (!req->count || req->count > GREEN_PARTS))
		status = CUDA_ERROR_INVALID_VALUE;
	for (uint32_t i = 0; !status && i < req->count; i++)
		status = resource_of(w, names[i], &resources[i]);
	if (status)
		return status;
	if (!w->cuda.cuDevResourceGenerateDesc)
		return worker_lacks(w, "cuDevResourceGenerateDesc");
	if (!grow((void **)&g->descriptors, g->descriptor_count, sizeof(descriptor)))
		return CUDA_ERROR_OUT_OF_MEMORY;
	status = w->cuda.cuDevResourceGenerateDesc(&descriptor, resources, req->count);
	if (status)
		return status;
	g->descriptors[g->descriptor_count++] = descriptor;
	answer->descriptor = g->descriptor_count;
	return CUDA_SUCCESS;
}

CUresult serve_vcudaGreenCreate(struct worker *w, struct request *r)
{
	const struct wire_vcudaGreenCreate *req = (const void *)r->body;
	CUgreenCtx green;
	CUcontext context;
	CUresult status;

	status = context_new_check(w, req->device, req->number);
	if (status)
		return status;
	if (!req->descriptor || req->descriptor > w->greens.descriptor_count)
		return CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION;
	if (!w->cuda.cuGreenCtxCreate || !w->cuda.cuCtxFromGreenCtx ||
		!w->cuda.cuGreenCtxDestroy)
		return worker_lacks(w, "cuGreenCtxCreate");
	status = w->cuda.cuGreenCtxCreate(&green, w->greens.descriptors[req->descriptor - 1],
		w->devices[req->device].device, req->flags);
	if (status)
		return status;
	status = w->cuda.cuCtxFromGreenCtx(&context, green);
	if (status) {
		w->cuda.cuGreenCtxDestroy(green);
		return status;
	}
	extra_green(w, (uint16_t)req->number, (uint32_t)req->device);
	w->greens.contexts[req->number] = green;
	w->contexts[req->number] = context;
	context_stream_init(w, (uint16_t)req->number);
	return CUDA_SUCCESS;
}
