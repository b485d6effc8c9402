/* SPDX-License-Identifier: Apache-2.0
 *
 * cuDNN's calls in a stream that captures: a plan of the graph API and a call of the descriptor
 * API run when the CUDA graph is launched, with what the tensors hold then, as often as it is.
 */
#include "tests/cudnn/graph.h"

static struct tensor x, w, y, z;

static struct plan plan_of(void)
{
	cudnnBackendDescriptor_t conv = convolution_of(CUDNN_DATA_FLOAT, 1, 1);
	cudnnBackendDescriptor_t xd = tensor_of(&x, 1, REAL), wd = tensor_of(&w, 2, REAL);
	cudnnBackendDescriptor_t yd = tensor_of(&y, 3, REAL);
	cudnnBackendDescriptor_t op =
		create(CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR);
	struct plan plan;

	set_nested(op, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC, conv);
	set_nested(op, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X, xd);
	set_nested(op, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W, wd);
	set_nested(op, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y, yd);
	set_real(op, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA, 1, CUDNN_DATA_FLOAT);
	set_real(op, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA, 0, CUDNN_DATA_FLOAT);
	finalize(op);
	if (!plan_new(&plan, CUDNN_HEUR_MODE_INSTANT, 1, &op))
		DIE("no plan");
	destroy(op);
	destroy(conv);
	destroy(xd);
	destroy(wd);
	destroy(yd);
	return plan;
}

/* z = softmax(x * w), in the handle's stream. */
static void both(struct plan *plan)
{
	const int64_t ids[] = {1, 2, 3};
	void *const places[] = {x.device, w.device, y.device};

	execute(plan, 3, ids, places);
	DNN(cudnnSoftmaxForward(handle, CUDNN_SOFTMAX_ACCURATE, CUDNN_SOFTMAX_MODE_CHANNEL,
		SCALAR(CUDNN_DATA_FLOAT, 1), y.descriptor, y.device,
		SCALAR(CUDNN_DATA_FLOAT, 0), z.descriptor, z.device));
}

int main(void)
{
	CUstream stream;
	CUgraph graph;
	CUgraphExec exec;
	struct plan plan;

	begin();
	x = TENSOR(CUDNN_DATA_FLOAT, false, 2, 8, 6, 6);
	w = TENSOR(CUDNN_DATA_FLOAT, false, 8, 8, 3, 3);
	y = TENSOR(CUDNN_DATA_FLOAT, false, 2, 8, 6, 6);
	z = TENSOR(CUDNN_DATA_FLOAT, false, 2, 8, 6, 6);
	CUDA(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	DNN(cudnnSetStream(handle, stream));
	plan = plan_of();
	both(&plan); /* what is made on first use is made */
	CUDA(cuStreamSynchronize(stream));

	CUDA(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
	both(&plan);
	CUDA(cuStreamEndCapture(stream, &graph));
	CUDA(cuGraphInstantiate(&exec, graph, 0));
	for (int round = 0; round < 3; round++) {
		for (size_t i = 0; i < x.elements; i++)
			put_at(x.host, x.type, i, some_number());
		to_device(x.device, x.host, x.bytes);
		both(&plan);
		CUDA(cuStreamSynchronize(stream));
		from_device(z.host, z.device, z.bytes);
		CUDA(cuMemsetD8((CUdeviceptr)(uintptr_t)z.device, 0, z.bytes));
		CUDA(cuMemsetD8((CUdeviceptr)(uintptr_t)y.device, 0, y.bytes));
		CUDA(cuCtxSynchronize());
		CUDA(cuGraphLaunch(exec, stream));
		CUDA(cuStreamSynchronize(stream));
		tensor_check(&z, "a launch of what was captured");
	}
	CUDA(cuGraphExecDestroy(exec));
	CUDA(cuGraphDestroy(graph));
	DNN(cudnnSetStream(handle, NULL));
	CUDA(cuStreamDestroy(stream));
	plan_free(&plan);
	tensor_free(&x);
	tensor_free(&w);
	tensor_free(&y);
	tensor_free(&z);
	return end();
}
