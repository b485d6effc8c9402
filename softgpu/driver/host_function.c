/* SPDX-License-Identifier: Apache-2.0
 *
 * Functions of the program's that a stream runs on the host.
 */
#include "softgpu/driver/softgpu.h"

#include <stdlib.h>

#include "softgpu/driver/graph/graph.h"

struct host_op {
	struct op op;
	CUhostFn function;
	CUstreamCallback callback;
	CUstream handle;
	void *data;
};

static void host_run(struct op *base)
{
	struct host_op *op = (struct host_op *)base;

	if (op->function)
		op->function(op->data);
	else
		op->callback(op->handle, context_fault_of(base->context), op->data);
}

static void host_drop(struct op *op)
{
	free(op);
}

static CUresult host_submit(
	CUstream handle, CUhostFn function, CUstreamCallback callback, void *data)
{
	struct CUstream_st *stream;
	struct host_op *op;
	CUresult ret = stream_use(handle, &stream);

	if (ret)
		return ret;
	if (callback) { /* a graph has no place for what it is told */
		pthread_mutex_lock(&queue_lock);
		ret = soft_capture_refuse(stream);
		pthread_mutex_unlock(&queue_lock);
		if (ret) {
			stream_done(stream);
			return ret;
		}
	}
	op = calloc(1, sizeof(*op));
	if (op) {
		op->op.kind = OP_HOST;
		op->op.run = host_run;
		op->op.drop = host_drop;
		op->op.bytes = sizeof(*op);
		op->op.node = CU_GRAPH_NODE_TYPE_HOST;
		op->op.always = callback != NULL; /* a callback is told of the error */
		op->function = function;
		op->callback = callback;
		op->handle = handle;
		op->data = data;
	}
	if (!op || !queue_submit(stream, &op->op, false))
		ret = CUDA_ERROR_OUT_OF_MEMORY;
	stream_done(stream);
	return ret;
}

CUresult host_op_new(const CUDA_HOST_NODE_PARAMS *params, struct op **out)
{
	struct host_op *op;

	if (!params || !params->fn)
		return CUDA_ERROR_INVALID_VALUE;
	op = calloc(1, sizeof(*op));
	if (!op)
		return CUDA_ERROR_OUT_OF_MEMORY;
	op->op.kind = OP_HOST;
	op->op.run = host_run;
	op->op.drop = host_drop;
	op->op.bytes = sizeof(*op);
	op->op.node = CU_GRAPH_NODE_TYPE_HOST;
	op->function = params->fn;
	op->data = params->userData;
	*out = &op->op;
	return CUDA_SUCCESS;
}

void host_op_read(const struct op *op, CUDA_HOST_NODE_PARAMS *params)
{
	params->fn = ((const struct host_op *)op)->function;
	params->userData = ((const struct host_op *)op)->data;
}

CUresult cuLaunchHostFunc(CUstream hStream, CUhostFn fn, void *userData)
{
	if (!fn)
		return CUDA_ERROR_INVALID_VALUE;
	return host_submit(hStream, fn, NULL, userData);
}

CUresult cuStreamAddCallback(
	CUstream hStream, CUstreamCallback callback, void *userData, unsigned int flags)
{
	if (!callback || flags)
		return CUDA_ERROR_INVALID_VALUE;
	return host_submit(hStream, NULL, callback, userData);
}
