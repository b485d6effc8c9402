/* SPDX-License-Identifier: Apache-2.0
 *
 * Convolutions of the descriptor API: forward, both gradients, the bias's gradient and the
 * fused form; groups, dilation, strides, channels last, two and three dimensions.
 */
#include "tests/cudnn/check.h"

struct shape {
	const char *name;
	int type;
	bool last; /* channels last */
	int spatial;
	int n, c, k, groups;
	int in[3], kernel[3], pad[3], stride[3], dilation[3];
};

static const struct shape shapes[] = {
	{"plain", CUDNN_DATA_FLOAT, false, 2, 2, 3, 4, 1, {8, 7}, {3, 3}, {1, 1}, {1, 1},
		{1, 1}},
	{"strides", CUDNN_DATA_FLOAT, false, 2, 1, 4, 6, 1, {9, 11}, {3, 5}, {1, 2}, {2, 2},
		{1, 1}},
	{"groups", CUDNN_DATA_FLOAT, false, 2, 2, 4, 6, 2, {6, 6}, {3, 3}, {1, 1}, {1, 1},
		{1, 1}},
	{"each channel", CUDNN_DATA_FLOAT, false, 2, 2, 4, 4, 4, {6, 6}, {3, 3}, {1, 1}, {1, 1},
		{1, 1}},
	{"dilation", CUDNN_DATA_FLOAT, false, 2, 1, 2, 3, 1, {10, 10}, {3, 3}, {2, 2}, {1, 1},
		{2, 2}},
	{"one by one", CUDNN_DATA_FLOAT, false, 2, 2, 8, 8, 1, {5, 5}, {1, 1}, {0, 0}, {1, 1},
		{1, 1}},
	{"double", CUDNN_DATA_DOUBLE, false, 2, 2, 3, 2, 1, {6, 5}, {3, 3}, {1, 1}, {1, 1},
		{1, 1}},
	{"half, channels last", CUDNN_DATA_HALF, true, 2, 2, 8, 16, 1, {8, 8}, {3, 3}, {1, 1},
		{1, 1}, {1, 1}},
	{"bfloat, channels last", CUDNN_DATA_BFLOAT16, true, 2, 2, 16, 8, 1, {8, 8}, {3, 3},
		{1, 1}, {2, 2}, {1, 1}},
	{"three dimensions", CUDNN_DATA_FLOAT, false, 3, 1, 2, 4, 1, {5, 6, 7}, {3, 3, 3},
		{1, 1, 1}, {1, 1, 1}, {1, 1, 1}},
};

struct convolution {
	const struct shape *shape;
	struct tensor x, w, y; /* w's descriptor of a tensor is not used */
	cudnnFilterDescriptor_t filter;
	cudnnConvolutionDescriptor_t descriptor;
};

static struct convolution convolution_new(const struct shape *s)
{
	struct convolution c = {.shape = s};
	int count = s->spatial + 2, dim[5];
	int x[5] = {s->n, s->c}, w[5] = {s->k, s->c / s->groups}, y[5] = {s->n, s->k};

	for (int d = 0; d < s->spatial; d++) {
		x[d + 2] = s->in[d];
		w[d + 2] = s->kernel[d];
		y[d + 2] =
			(s->in[d] + 2 * s->pad[d] - (s->kernel[d] - 1) * s->dilation[d] - 1) /
				s->stride[d] +
			1;
	}
	c.x = tensor_new(s->type, s->last, count, x);
	c.w = tensor_new(s->type, s->last, count, w);
	c.y = tensor_new(s->type, s->last, count, y);
	DNN(cudnnCreateFilterDescriptor(&c.filter));
	DNN(cudnnSetFilterNdDescriptor(
		c.filter, s->type, s->last ? CUDNN_TENSOR_NHWC : CUDNN_TENSOR_NCHW, count, w));
	DNN(cudnnCreateConvolutionDescriptor(&c.descriptor));
	DNN(cudnnSetConvolutionNdDescriptor(c.descriptor, s->spatial, s->pad, s->stride,
		s->dilation, CUDNN_CROSS_CORRELATION,
		s->type == CUDNN_DATA_DOUBLE ? CUDNN_DATA_DOUBLE : CUDNN_DATA_FLOAT));
	DNN(cudnnSetConvolutionGroupCount(c.descriptor, s->groups));
	DNN(cudnnSetConvolutionMathType(
		c.descriptor, s->last ? CUDNN_TENSOR_OP_MATH : CUDNN_FMA_MATH));
	DNN(cudnnGetConvolutionNdForwardOutputDim(
		c.descriptor, c.x.descriptor, c.filter, count, dim));
	for (int d = 0; d < count; d++)
		if (dim[d] != y[d])
			DIE("%s: output dimension %d is %d, not %d", s->name, d, dim[d], y[d]);
	return c;
}

static void convolution_free(struct convolution *c)
{
	tensor_free(&c->x);
	tensor_free(&c->w);
	tensor_free(&c->y);
	DNN(cudnnDestroyFilterDescriptor(c->filter));
	DNN(cudnnDestroyConvolutionDescriptor(c->descriptor));
}

/* Calls `each` for every product x[..] * w[..] that is part of y[..]. */
static void products(struct convolution *c,
	void (*each)(struct convolution *, size_t x, size_t w, size_t y, void *sums),
	void *sums)
{
	const struct shape *s = c->shape;
	int y[5] = {0}, tap[5] = {0}, x[5];
	struct tensor taps = c->w;

	taps.dim[0] = 1; /* the tap's channel and place; the output channel is y's */
	do
		do {
			bool inside = true;

			x[0] = y[0];
			x[1] = y[1] / (s->k / s->groups) * (s->c / s->groups) + tap[1];
			for (int d = 0; d < s->spatial; d++) {
				x[d + 2] = y[d + 2] * s->stride[d] - s->pad[d] +
					   tap[d + 2] * s->dilation[d];
				inside &= x[d + 2] >= 0 && x[d + 2] < s->in[d];
			}
			tap[0] = y[1];
			if (inside)
				each(c, offset(&c->x, x), offset(&c->w, tap), offset(&c->y, y),
					sums);
			tap[0] = 0;
		} while (next(&taps, tap));
	while (next(&c->y, y));
}

static double *sums_of(const struct tensor *t)
{
	return calloc(t->elements, sizeof(double));
}

static void check_sums(struct tensor *t, double *sums, double alpha, double beta,
	const char *what, const char *name)
{
	char text[96];

	for (size_t i = 0; i < t->elements; i++)
		put_at(t->host, t->type, i,
			alpha * sums[i] + beta * get_at(t->host, t->type, i));
	snprintf(text, sizeof(text), "%s: %s", name, what);
	tensor_check(t, text);
	free(sums);
}

static void add_y(struct convolution *c, size_t x, size_t w, size_t y, void *sums)
{
	((double *)sums)[y] +=
		get_at(c->x.host, c->x.type, x) * get_at(c->w.host, c->w.type, w);
}

static void add_x(struct convolution *c, size_t x, size_t w, size_t y, void *sums)
{
	((double *)sums)[x] +=
		get_at(c->y.host, c->y.type, y) * get_at(c->w.host, c->w.type, w);
}

static void add_w(struct convolution *c, size_t x, size_t w, size_t y, void *sums)
{
	((double *)sums)[w] +=
		get_at(c->x.host, c->x.type, x) * get_at(c->y.host, c->y.type, y);
}

static void forward(const struct shape *s)
{
	struct convolution c = convolution_new(s);
	double *sums = sums_of(&c.y);
	cudnnConvolutionFwdAlgoPerf_t perf;
	size_t size;
	void *workspace;
	int found;

	DNN(cudnnGetConvolutionForwardAlgorithm_v7(handle, c.x.descriptor, c.filter,
		c.descriptor, c.y.descriptor, 1, &found, &perf));
	if (found != 1)
		DIE("%s: %d algorithms for the forward convolution", s->name, found);
	DNN(perf.status);
	DNN(cudnnGetConvolutionForwardWorkspaceSize(handle, c.x.descriptor, c.filter,
		c.descriptor, c.y.descriptor, perf.algo, &size));
	workspace = device_new(size);
	DNN(cudnnConvolutionForward(handle, SCALAR(s->type, 0.5), c.x.descriptor, c.x.device,
		c.filter, c.w.device, c.descriptor, perf.algo, workspace, size,
		SCALAR(s->type, 2), c.y.descriptor, c.y.device));
	products(&c, add_y, sums);
	check_sums(&c.y, sums, 0.5, 2, "forward", s->name);
	device_free(workspace);
	convolution_free(&c);
}

static void backward_data(const struct shape *s)
{
	struct convolution c = convolution_new(s);
	double *sums = sums_of(&c.x);
	cudnnConvolutionBwdDataAlgoPerf_t perf;
	size_t size;
	void *workspace;
	int found;

	DNN(cudnnGetConvolutionBackwardDataAlgorithm_v7(handle, c.filter, c.y.descriptor,
		c.descriptor, c.x.descriptor, 1, &found, &perf));
	if (found != 1)
		DIE("%s: %d algorithms for the gradient of the data", s->name, found);
	DNN(perf.status);
	DNN(cudnnGetConvolutionBackwardDataWorkspaceSize(handle, c.filter, c.y.descriptor,
		c.descriptor, c.x.descriptor, perf.algo, &size));
	workspace = device_new(size);
	DNN(cudnnConvolutionBackwardData(handle, SCALAR(s->type, 1), c.filter, c.w.device,
		c.y.descriptor, c.y.device, c.descriptor, perf.algo, workspace, size,
		SCALAR(s->type, 0), c.x.descriptor, c.x.device));
	products(&c, add_x, sums);
	check_sums(&c.x, sums, 1, 0, "gradient of the data", s->name);
	device_free(workspace);
	convolution_free(&c);
}

static void backward_filter(const struct shape *s)
{
	struct convolution c = convolution_new(s);
	double *sums = sums_of(&c.w);
	cudnnConvolutionBwdFilterAlgoPerf_t perf;
	size_t size;
	void *workspace;
	int found;

	DNN(cudnnGetConvolutionBackwardFilterAlgorithm_v7(handle, c.x.descriptor,
		c.y.descriptor, c.descriptor, c.filter, 1, &found, &perf));
	if (found != 1)
		DIE("%s: %d algorithms for the gradient of the filter", s->name, found);
	DNN(perf.status);
	DNN(cudnnGetConvolutionBackwardFilterWorkspaceSize(handle, c.x.descriptor,
		c.y.descriptor, c.descriptor, c.filter, perf.algo, &size));
	workspace = device_new(size);
	DNN(cudnnConvolutionBackwardFilter(handle, SCALAR(s->type, 1), c.x.descriptor,
		c.x.device, c.y.descriptor, c.y.device, c.descriptor, perf.algo, workspace,
		size, SCALAR(s->type, 0), c.filter, c.w.device));
	products(&c, add_w, sums);
	check_sums(&c.w, sums, 1, 0, "gradient of the filter", s->name);
	device_free(workspace);
	convolution_free(&c);
}

static void backward_bias(int type)
{
	struct tensor dy = TENSOR(type, false, 2, 3, 4, 5),
		      db = TENSOR(type, false, 1, 3, 1, 1);
	double *sums = sums_of(&db);
	int at[MOST] = {0};

	DNN(cudnnConvolutionBackwardBias(handle, SCALAR(type, 2), dy.descriptor, dy.device,
		SCALAR(type, 1), db.descriptor, db.device));
	do
		sums[at[1]] += get(&dy, at);
	while (next(&dy, at));
	check_sums(&db, sums, 2, 1, "gradient of the bias", "bias");
	tensor_free(&dy);
	tensor_free(&db);
}

/* y = relu(conv(x) + z / 2 + bias) */
static void fused(const struct shape *s, int activation_mode)
{
	struct convolution c = convolution_new(s);
	struct tensor bias = TENSOR(s->type, s->last, 1, s->k, 1, 1);
	struct tensor z = tensor_new(s->type, s->last, c.y.count, c.y.dim);
	double *sums = sums_of(&c.y);
	cudnnActivationDescriptor_t activation;
	int algo = CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM, at[MOST] = {0};
	void *workspace;
	size_t size;

	DNN(cudnnCreateActivationDescriptor(&activation));
	DNN(cudnnSetActivationDescriptor(
		activation, activation_mode, CUDNN_NOT_PROPAGATE_NAN, 0));
	DNN(cudnnGetConvolutionForwardWorkspaceSize(
		handle, c.x.descriptor, c.filter, c.descriptor, c.y.descriptor, algo, &size));
	workspace = device_new(size);
	DNN(cudnnConvolutionBiasActivationForward(handle, SCALAR(s->type, 1), c.x.descriptor,
		c.x.device, c.filter, c.w.device, c.descriptor, algo, workspace, size,
		SCALAR(s->type, 0.5), z.descriptor, z.device, bias.descriptor, bias.device,
		activation, c.y.descriptor, c.y.device));
	products(&c, add_y, sums);
	do {
		size_t i = offset(&c.y, at);

		sums[i] +=
			0.5 * get_at(z.host, z.type, i) + get_at(bias.host, bias.type, at[1]);
		if (activation_mode == CUDNN_ACTIVATION_RELU && sums[i] < 0)
			sums[i] = 0;
	} while (next(&c.y, at));
	check_sums(&c.y, sums, 1, 0, "bias and activation", s->name);
	DNN(cudnnDestroyActivationDescriptor(activation));
	device_free(workspace);
	tensor_free(&bias);
	tensor_free(&z);
	convolution_free(&c);
}

/* The search runs the convolution and names an algorithm that then works. */
static void search(const struct shape *s)
{
	struct convolution c = convolution_new(s);
	double *sums = sums_of(&c.y);
	cudnnConvolutionFwdAlgoPerf_t perf[4];
	size_t size = 4 << 20;
	void *workspace = device_new(size);
	int found;

	DNN(cudnnFindConvolutionForwardAlgorithmEx(handle, c.x.descriptor, c.x.device, c.filter,
		c.w.device, c.descriptor, c.y.descriptor, c.y.device, 4, &found, perf,
		workspace, size));
	if (found < 1 || perf[0].time < 0)
		DIE("%s: %d algorithms found, the first in %g ms", s->name, found,
			(double)perf[0].time);
	DNN(perf[0].status);
	DNN(cudnnSetConvolutionMathType(c.descriptor, perf[0].mathType));
	DNN(cudnnConvolutionForward(handle, SCALAR(s->type, 1), c.x.descriptor, c.x.device,
		c.filter, c.w.device, c.descriptor, perf[0].algo, workspace, size,
		SCALAR(s->type, 0), c.y.descriptor, c.y.device));
	products(&c, add_y, sums);
	check_sums(&c.y, sums, 1, 0, "forward, as found", s->name);
	device_free(workspace);
	convolution_free(&c);
}

/* What makes no sense is BAD_PARAM at once, and harms nothing. */
static void refused(void)
{
	struct convolution c = convolution_new(&shapes[0]);
	struct tensor wrong = TENSOR(CUDNN_DATA_FLOAT, false, 2, 4, 3, 3);
	size_t size;

	if (cudnnGetConvolutionForwardWorkspaceSize(handle, c.x.descriptor, c.filter,
		    c.descriptor, wrong.descriptor, 1, &size) == CUDNN_STATUS_SUCCESS)
		DIE("a workspace for an output of the wrong shape");
	if (cudnnSetTensor4dDescriptor(wrong.descriptor, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, 1,
		    -1, 1, 1) != CUDNN_STATUS_BAD_PARAM)
		DIE("a negative dimension was not BAD_PARAM");
	tensor_free(&wrong);
	convolution_free(&c);
	forward(&shapes[0]);
}

int main(void)
{
	begin();
	/* Twice: the second time everything is known. */
	for (int times = 0; times < 2; times++)
		for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
			forward(&shapes[i]);
			backward_data(&shapes[i]);
			backward_filter(&shapes[i]);
		}
	backward_bias(CUDNN_DATA_FLOAT);
	backward_bias(CUDNN_DATA_DOUBLE);
	fused(&shapes[0], CUDNN_ACTIVATION_RELU);
	fused(&shapes[0], CUDNN_ACTIVATION_IDENTITY);
	fused(&shapes[7], CUDNN_ACTIVATION_RELU);
	search(&shapes[0]);
	refused();
	return end();
}
