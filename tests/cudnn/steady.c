/* SPDX-License-Identifier: Apache-2.0
 *
 * One thing, over and over, for who counts round trips: steady THING COUNT.
 */
#include "tests/cudnn/graph.h"

static struct tensor x, w, y;
static cudnnFilterDescriptor_t filter;
static cudnnConvolutionDescriptor_t convolution;
static void *workspace;
static size_t size;

static void describe(void)
{
	DNN(cudnnCreateFilterDescriptor(&filter));
	DNN(cudnnSetFilter4dDescriptor(
		filter, CUDNN_DATA_FLOAT, CUDNN_TENSOR_NCHW, 8, 8, 3, 3));
	DNN(cudnnCreateConvolutionDescriptor(&convolution));
	DNN(cudnnSetConvolution2dDescriptor(
		convolution, 1, 1, 1, 1, 1, 1, CUDNN_CROSS_CORRELATION, CUDNN_DATA_FLOAT));
}

/* A convolution as PyTorch's descriptor path makes it: everything is described every time. */
static void descriptors(void)
{
	cudnnTensorDescriptor_t from, to;
	cudnnConvolutionFwdAlgoPerf_t perf;
	float one = 1, zero = 0;
	int found;

	DNN(cudnnCreateTensorDescriptor(&from));
	DNN(cudnnSetTensorNdDescriptor(from, x.type, x.count, x.dim, x.stride));
	DNN(cudnnCreateTensorDescriptor(&to));
	DNN(cudnnSetTensorNdDescriptor(to, y.type, y.count, y.dim, y.stride));
	describe();
	DNN(cudnnGetConvolutionForwardAlgorithm_v7(
		handle, from, filter, convolution, to, 1, &found, &perf));
	DNN(cudnnGetConvolutionForwardWorkspaceSize(
		handle, from, filter, convolution, to, perf.algo, &size));
	if (!workspace)
		workspace = device_new(size);
	DNN(cudnnConvolutionForward(handle, &one, from, x.device, filter, w.device, convolution,
		perf.algo, workspace, size, &zero, to, y.device));
	DNN(cudnnDestroyTensorDescriptor(from));
	DNN(cudnnDestroyTensorDescriptor(to));
	DNN(cudnnDestroyFilterDescriptor(filter));
	DNN(cudnnDestroyConvolutionDescriptor(convolution));
}

static void softmax(void)
{
	float one = 1, zero = 0;

	DNN(cudnnSoftmaxForward(handle, CUDNN_SOFTMAX_ACCURATE, CUDNN_SOFTMAX_MODE_CHANNEL,
		&one, x.descriptor, x.device, &zero, x.descriptor, y.device));
}

/* The operation graph of one convolution, and the plan of it. */
static struct plan planned_convolution(void)
{
	const int64_t pads[] = {1, 1}, ones[] = {1, 1};
	cudnnBackendDescriptor_t c = create(CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
	cudnnBackendDescriptor_t op =
		create(CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR);
	cudnnBackendDescriptor_t xd = tensor_of(&x, 'x', REAL), wd = tensor_of(&w, 'w', REAL);
	cudnnBackendDescriptor_t yd = tensor_of(&y, 'y', REAL);
	struct plan plan;

	set_number(c, CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, CUDNN_DATA_FLOAT);
	set_number(c, CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE,
		CUDNN_CROSS_CORRELATION);
	set_integer(c, CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, 2);
	set(c, CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, CUDNN_TYPE_INT64, 2, pads);
	set(c, CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, CUDNN_TYPE_INT64, 2, pads);
	set(c, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, CUDNN_TYPE_INT64, 2, ones);
	set(c, CUDNN_ATTR_CONVOLUTION_DILATIONS, CUDNN_TYPE_INT64, 2, ones);
	finalize(c);
	set_nested(op, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC, c);
	set_nested(op, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X, xd);
	set_nested(op, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W, wd);
	set_nested(op, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y, yd);
	set_real(op, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA, 1, CUDNN_DATA_FLOAT);
	set_real(op, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA, 0, CUDNN_DATA_FLOAT);
	finalize(op);
	if (!plan_new(&plan, CUDNN_HEUR_MODE_INSTANT, 1, &op))
		DIE("no plan");
	destroy(op);
	destroy(c);
	destroy(xd);
	destroy(wd);
	destroy(yd);
	return plan;
}

static void run_plan(struct plan *plan)
{
	const int64_t ids[] = {'x', 'w', 'y'};
	void *const places[] = {x.device, w.device, y.device};

	execute(plan, 3, ids, places);
}

/* A shape that was never met before. */
static void shape(int i)
{
	struct tensor *const tensors[] = {&x, &y};
	struct plan plan;

	for (int t = 0; t < 2; t++) {
		tensor_free(tensors[t]);
		*tensors[t] = TENSOR(CUDNN_DATA_FLOAT, false, 1, 8, 6, 7 + i);
	}
	plan = planned_convolution();
	run_plan(&plan);
	plan_free(&plan);
}

int main(int argc, char **argv)
{
	int count = argc == 3 ? atoi(argv[2]) : 0;
	struct plan plan;

	if (count < 1) {
		fprintf(stderr, "usage: steady descriptors|softmax|execute|plan|shape COUNT\n");
		return 2;
	}
	begin();
	x = TENSOR(CUDNN_DATA_FLOAT, false, 1, 8, 6, 6);
	w = TENSOR(CUDNN_DATA_FLOAT, false, 8, 8, 3, 3);
	y = TENSOR(CUDNN_DATA_FLOAT, false, 1, 8, 6, 6);
	plan = planned_convolution();
	for (int i = 0; i < count; i++) {
		if (!strcmp(argv[1], "descriptors")) {
			descriptors();
		} else if (!strcmp(argv[1], "softmax")) {
			softmax();
		} else if (!strcmp(argv[1], "execute")) {
			run_plan(&plan);
		} else if (!strcmp(argv[1], "plan")) {
			/* Described and planned again every time. */
			plan_free(&plan);
			plan = planned_convolution();
			run_plan(&plan);
		} else if (!strcmp(argv[1], "shape")) {
			shape(i);
		} else {
			DIE("no thing '%s'", argv[1]);
		}
	}
	plan_free(&plan);
	tensor_free(&x);
	tensor_free(&w);
	tensor_free(&y);
	return end();
}
