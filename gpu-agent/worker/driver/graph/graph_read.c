/* SPDX-License-Identifier: Apache-2.0
 *
 * What a node holds, as the program set it: the way back from the driver's structs to those of
 * protocol/wire/graph.h.
 */
#include <string.h>

#include "gpu-agent/worker/driver/array/array.h"
#include "gpu-agent/worker/driver/graph/graph.h"
#include "gpu-agent/worker/driver/module/module.h"

#define NODE_BYTES (48u << 10) /* a kernel has up to 32 KiB of parameters */

static uint64_t node_name(struct worker *w, enum handle_kind kind, const void *object)
{
	for (uint32_t i = 0; object && i < w->name_count; i++)
		if (w->names[i].object == object && w->names[i].kind == kind)
			return handle_make(w->names[i].generation, kind, i);
	return 0;
}

/* The block of parameters that a launch's EXTRA names, and its bytes. */
static const void *kernel_block(void **extra, size_t *bytes)
{
	const void *block = "";

	*bytes = 0;
	for (; *extra != CU_LAUNCH_PARAM_END; extra += 2) {
		if (*extra == CU_LAUNCH_PARAM_BUFFER_POINTER)
			block = extra[1];
		else if (*extra == CU_LAUNCH_PARAM_BUFFER_SIZE)
			*bytes = *(const size_t *)extra[1];
		else
			break;
	}
	return block;
}

/* The driver tells a function, or (of a library) a kernel that has one. */
static CUfunction kernel_function(struct worker *w, const CUDA_KERNEL_NODE_PARAMS *params)
{
	CUfunction function = params->func;

	if (!function && params->kern && w->cuda.cuKernelGetFunction &&
		w->cuda.cuKernelGetFunction(&function, params->kern))
		function = NULL;
	return function;
}

/* The parameter block, gathered from the driver's pointers. */
static CUresult node_kernel(
	struct worker *w, CUgraphNode node, unsigned char *to, uint32_t room, uint32_t *bytes)
{
	CUDA_KERNEL_NODE_PARAMS params = {0};
	struct graph_kernel k = {0};
	size_t offset, size;
	CUfunction function;
	CUresult status = w->cuda.cuGraphKernelNodeGetParams_v2(node, &params);

	if (status)
		return status;
	function = kernel_function(w, &params);
	k.function = node_name(w, KIND_CUfunction, function);
	k.grid[0] = params.gridDimX;
	k.grid[1] = params.gridDimY;
	k.grid[2] = params.gridDimZ;
	k.block[0] = params.blockDimX;
	k.block[1] = params.blockDimY;
	k.block[2] = params.blockDimZ;
	k.shared = params.sharedMemBytes;
	/* As the node got them: one block here (params_kernel, launch.c), from others pointers.
	 */
	if (params.extra) {
		const void *block = kernel_block(params.extra, &size);

		if (size > room - sizeof(k))
			return CUDA_ERROR_NOT_SUPPORTED;
		memcpy(to + sizeof(k), block, size);
		k.param_bytes = (uint32_t)size;
	}
	for (size_t i = 0; params.kernelParams && k.function && w->cuda.cuFuncGetParamInfo &&
			   !w->cuda.cuFuncGetParamInfo(function, i, &offset, &size);
		i++) {
		if (offset + size > room - sizeof(k))
			return CUDA_ERROR_NOT_SUPPORTED;
		memcpy(to + sizeof(k) + offset, params.kernelParams[i], size);
		if (offset + size > k.param_bytes)
			k.param_bytes = (uint32_t)(offset + size);
	}
	memcpy(to, &k, sizeof(k));
	*bytes = (uint32_t)sizeof(k) + k.param_bytes;
	return CUDA_SUCCESS;
}

/* It is of a module of the program's that was unloaded, and goes with its graphs. */
static bool function_kept(struct worker *w, CUfunction function)
{
	const struct graph_module *kept = w->graphs.modules;
	CUmodule module;

	if (!kept || !w->cuda.cuFuncGetModule || w->cuda.cuFuncGetModule(&module, function))
		return false;
	while (kept && (kept->module != module || !kept->unloaded))
		kept = kept->next;
	return kept;
}

static CUresult node_function(struct worker *w, CUgraphNode node, CUfunction *function)
{
	CUDA_KERNEL_NODE_PARAMS params = {0};
	CUresult status = w->cuda.cuGraphKernelNodeGetParams_v2(node, &params);

	if (status)
		return status;
	*function = kernel_function(w, &params);
	return *function && !function_kept(w, *function) ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

CUresult serve_vcudaGraphFunction(struct worker *w, struct request *r)
{
	enum { TEXT = 1600 };
	const struct wire_vcudaGraphFunction *req = (const void *)r->body;
	struct wire_vcudaGraphFunction_reply *answer = (void *)r->answer;
	CUgraphNode node = graph_node(r, graph_of(w, r, req->graph), req->node);
	const char *text = NULL;
	CUfunction function;
	char *told;
	CUresult status;
	size_t n;

	if (worker_refused(r))
		return r->refused;
	status = node_function(w, node, &function);
	if (status)
		return status;
	worker_bind(w, r, req->function, KIND_CUfunction, function);
	if (worker_refused(r))
		return r->refused;
	module_function_info(w, function, &answer->info, NULL);
	if (!w->cuda.cuFuncGetName || w->cuda.cuFuncGetName(&text, function) || !text)
		text = "";
	n = strnlen(text, TEXT - 1);
	told = worker_out(r, &answer->text, n + 1);
	memcpy(told, text, n);
	told[n] = 0;
	return r->refused;
}

static CUresult node_copy(struct worker *w, CUgraphNode node, struct graph_copy *c)
{
	CUDA_MEMCPY3D copy;
	CUresult status = w->cuda.cuGraphMemcpyNodeGetParams(node, &copy);

	if (status)
		return status;
	*c = (struct graph_copy){
		.dst = copy.dstDevice + copy.dstXInBytes + copy.dstY * copy.dstPitch +
		       copy.dstZ * copy.dstPitch * copy.dstHeight,
		.dst_pitch = copy.dstPitch,
		.dst_slice = copy.dstPitch * copy.dstHeight,
		.src = copy.srcDevice + copy.srcXInBytes + copy.srcY * copy.srcPitch +
		       copy.srcZ * copy.srcPitch * copy.srcHeight,
		.src_pitch = copy.srcPitch,
		.src_slice = copy.srcPitch * copy.srcHeight,
		.width = copy.WidthInBytes,
		.height = copy.Height,
		.depth = copy.Depth,
	};
	if (copy.srcMemoryType == CU_MEMORYTYPE_ARRAY) {
		c->src_array = array_name(w, copy.srcArray);
		c->src = copy.srcXInBytes;
		c->src_pitch = copy.srcY;
		c->src_slice = copy.srcZ;
	}
	if (copy.dstMemoryType == CU_MEMORYTYPE_ARRAY) {
		c->dst_array = array_name(w, copy.dstArray);
		c->dst = copy.dstXInBytes;
		c->dst_pitch = copy.dstY;
		c->dst_slice = copy.dstZ;
	}
	return CUDA_SUCCESS;
}

static CUresult node_fill(struct worker *w, CUgraphNode node, struct graph_fill *f)
{
	CUDA_MEMSET_NODE_PARAMS fill;
	CUresult status = w->cuda.cuGraphMemsetNodeGetParams(node, &fill);

	if (!status)
		*f = (struct graph_fill){.dst = fill.dst,
			.pitch = fill.pitch,
			.value = fill.value,
			.element = fill.elementSize,
			.width = fill.width,
			.height = fill.height};
	return status;
}

static CUresult node_batch(
	struct worker *w, CUgraphNode node, unsigned char *to, uint32_t room, uint32_t *bytes)
{
	CUDA_BATCH_MEM_OP_NODE_PARAMS params = {0};
	struct graph_batch batch;
	size_t size;
	CUresult status;

	if (!w->cuda.cuGraphBatchMemOpNodeGetParams)
		return worker_lacks(w, "cuGraphBatchMemOpNodeGetParams");
	status = w->cuda.cuGraphBatchMemOpNodeGetParams(node, &params);
	if (status)
		return status;
	size = params.count * sizeof(*params.paramArray);
	if (size > room - sizeof(batch))
		return CUDA_ERROR_NOT_SUPPORTED;
	batch = (struct graph_batch){.count = params.count, .flags = params.flags};
	memcpy(to, &batch, sizeof(batch));
	if (size)
		memcpy(to + sizeof(batch), params.paramArray, size);
	*bytes = (uint32_t)(sizeof(batch) + size);
	return CUDA_SUCCESS;
}

static CUresult node_read(struct worker *w, CUgraphNode node, CUgraphNodeType type,
	unsigned char *to, uint32_t room, uint32_t *bytes)
{
	struct graph_number *number = (void *)to;
	CUDA_HOST_NODE_PARAMS host;
	CUevent event = NULL;
	CUresult status;

	*bytes = sizeof(*number);
	switch ((int)type) {
	case CU_GRAPH_NODE_TYPE_KERNEL: return node_kernel(w, node, to, room, bytes);
	case CU_GRAPH_NODE_TYPE_MEMCPY:
		*bytes = sizeof(struct graph_copy);
		return node_copy(w, node, (void *)to);
	case CU_GRAPH_NODE_TYPE_MEMSET:
		*bytes = sizeof(struct graph_fill);
		return node_fill(w, node, (void *)to);
	case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP: return node_batch(w, node, to, room, bytes);
	case CU_GRAPH_NODE_TYPE_HOST:
		status = w->cuda.cuGraphHostNodeGetParams(node, &host);
		/* A library's own host node is none of the app's. */
		number->number = !status && host.fn == host_function_run_node
					 ? (uint64_t)(uintptr_t)host.userData
					 : 0;
		return status;
	case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
		status = w->cuda.cuGraphEventWaitNodeGetEvent(node, &event);
		number->number = node_name(w, KIND_CUevent, event);
		return status;
	case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
		status = w->cuda.cuGraphEventRecordNodeGetEvent(node, &event);
		number->number = node_name(w, KIND_CUevent, event);
		return status;
	default: *bytes = 0; return CUDA_SUCCESS;
	}
}

CUresult serve_vcudaGraphGet(struct worker *w, struct request *r)
{
	const struct wire_vcudaGraphGet *req = (const void *)r->body;
	struct wire_vcudaGraphGet_reply *answer = (void *)r->answer;
	CUgraphNode node = graph_node(r, graph_of(w, r, req->graph), req->node);
	_Alignas(8) unsigned char bytes[NODE_BYTES] = {0};
	CUgraphNodeType type;
	CUresult status;
	uint32_t n;

	if (worker_refused(r))
		return r->refused;
	status = w->cuda.cuGraphNodeGetType(node, &type);
	if (!status)
		status = node_read(w, node, type, bytes, sizeof(bytes), &answer->total);
	if (status)
		return status;
	answer->type = (uint32_t)type;
	if (req->first >= answer->total)
		return CUDA_SUCCESS;
	n = answer->total - req->first;
	answer->bytes = n < GRAPH_LIST_BYTES ? n : GRAPH_LIST_BYTES;
	memcpy(worker_out(r, &answer->params, answer->bytes), bytes + req->first,
		answer->bytes);
	return r->refused;
}
