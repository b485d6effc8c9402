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

/* An LSTM as PyTorch trains it: the same sequences, described and asked for every time. */
static void lstm(void)
{
	static void *there, *weights, *work, *reserve, *space, *state;
	const int length = 6, dim[] = {1, 1, 6}, stride[] = {6, 6, 1};
	cudnnRNNDescriptor_t rnn;
	cudnnDropoutDescriptor_t dropout;
	cudnnRNNDataDescriptor_t data;
	cudnnTensorDescriptor_t states;
	size_t bytes, work_bytes, reserve_bytes;

	DNN(cudnnCreateDropoutDescriptor(&dropout));
	DNN(cudnnSetDropoutDescriptor(dropout, handle, 0, NULL, 0, 0));
	DNN(cudnnCreateRNNDescriptor(&rnn));
	DNN(cudnnSetRNNDescriptor_v8(rnn, CUDNN_RNN_ALGO_STANDARD, CUDNN_LSTM,
		CUDNN_RNN_DOUBLE_BIAS, CUDNN_UNIDIRECTIONAL, CUDNN_LINEAR_INPUT,
		CUDNN_DATA_FLOAT, CUDNN_DATA_FLOAT, CUDNN_DEFAULT_MATH, 6, 6, 6, 1, dropout,
		CUDNN_RNN_PADDED_IO_ENABLED));
	DNN(cudnnCreateRNNDataDescriptor(&data));
	DNN(cudnnSetRNNDataDescriptor(data, CUDNN_DATA_FLOAT,
		CUDNN_RNN_DATA_LAYOUT_SEQ_MAJOR_UNPACKED, length, 1, 6, &length, NULL));
	DNN(cudnnCreateTensorDescriptor(&states));
	DNN(cudnnSetTensorNdDescriptor(states, CUDNN_DATA_FLOAT, 3, dim, stride));
	DNN(cudnnGetRNNWeightSpaceSize(handle, rnn, &bytes));
	DNN(cudnnGetRNNTempSpaceSizes(
		handle, rnn, CUDNN_FWD_MODE_TRAINING, data, &work_bytes, &reserve_bytes));
	if (!there) {
		there = device_new(sizeof(length));
		to_device(there, &length, sizeof(length));
		weights = device_new(2 * bytes);
		CUDA(cuMemsetD8((CUdeviceptr)(uintptr_t)weights, 0, 2 * bytes));
		work = device_new(work_bytes);
		reserve = device_new(reserve_bytes);
		space = device_new(4 * sizeof(float) * 36);
		state = device_new(sizeof(float) * 6);
	}
	DNN(cudnnRNNForward(handle, rnn, CUDNN_FWD_MODE_TRAINING, there, data, x.device, data,
		space, states, NULL, state, states, NULL, state, bytes, weights, work_bytes,
		work, reserve_bytes, reserve));
	DNN(cudnnRNNBackwardData_v8(handle, rnn, there, data, space, y.device, data,
		(char *)space + 256, states, NULL, NULL, NULL, states, NULL, NULL, NULL, bytes,
		weights, work_bytes, work, reserve_bytes, reserve));
	DNN(cudnnRNNBackwardWeights_v8(handle, rnn, CUDNN_WGRAD_MODE_ADD, there, data, x.device,
		states, NULL, data, space, bytes, (char *)weights + bytes, work_bytes, work,
		reserve_bytes, reserve));
	DNN(cudnnDestroyTensorDescriptor(states));
	DNN(cudnnDestroyRNNDataDescriptor(data));
	DNN(cudnnDestroyRNNDescriptor(rnn));
	DNN(cudnnDestroyDropoutDescriptor(dropout));
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
		fprintf(stderr,
			"usage: steady descriptors|softmax|lstm|execute|plan|shape COUNT\n");
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
		} else if (!strcmp(argv[1], "lstm")) {
			lstm();
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
