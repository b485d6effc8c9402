/* SPDX-License-Identifier: Apache-2.0
 *
 * Activations and softmax, forward and back, and the calls on whole tensors.
 */
#include "tests/cudnn/check.h"

/* ---- activations ---- */

#define COEF 0.75
#define BETA 1.5 /* of swish */

static double activated(int mode, double x)
{
	switch (mode) {
	case CUDNN_ACTIVATION_SIGMOID: return 1 / (1 + exp(-x));
	case CUDNN_ACTIVATION_RELU: return x > 0 ? x : 0;
	case CUDNN_ACTIVATION_TANH: return tanh(x);
	case CUDNN_ACTIVATION_CLIPPED_RELU: return x < 0 ? 0 : x > COEF ? COEF : x;
	case CUDNN_ACTIVATION_ELU: return x > 0 ? x : COEF * (exp(x) - 1);
	default: return x / (1 + exp(-BETA * x));
	}
}

/* Away from the corners, where a slope is nobody's. */
static double slope(int mode, double x)
{
	return (activated(mode, x + 1e-6) - activated(mode, x - 1e-6)) / 2e-6;
}

static void activation(int mode, int type)
{
	struct tensor x = TENSOR(type, false, 2, 3, 4, 5), y = TENSOR(type, false, 2, 3, 4, 5);
	struct tensor dx = TENSOR(type, false, 2, 3, 4, 5),
		      dy = TENSOR(type, false, 2, 3, 4, 5);
	cudnnActivationDescriptor_t of;
	char what[64];

	for (size_t i = 0; i < x.elements; i++)
		put_at(x.host, type, i, get_at(x.host, type, i) * 2 + 0.0625);
	to_there(&x);
	DNN(cudnnCreateActivationDescriptor(&of));
	DNN(cudnnSetActivationDescriptor(of, mode, CUDNN_PROPAGATE_NAN, COEF));
	if (mode == CUDNN_ACTIVATION_SWISH)
		DNN(cudnnSetActivationDescriptorSwishBeta(of, BETA));
	DNN(cudnnActivationForward(handle, of, SCALAR(type, 1), x.descriptor, x.device,
		SCALAR(type, 0), y.descriptor, y.device));
	for (size_t i = 0; i < x.elements; i++)
		put_at(y.host, type, i, activated(mode, get_at(x.host, type, i)));
	snprintf(what, sizeof(what), "activation %d", mode);
	tensor_check(&y, what);
	DNN(cudnnActivationBackward(handle, of, SCALAR(type, 2), y.descriptor, y.device,
		dy.descriptor, dy.device, x.descriptor, x.device, SCALAR(type, 0),
		dx.descriptor, dx.device));
	for (size_t i = 0; i < x.elements; i++)
		put_at(dx.host, type, i,
			2 * get_at(dy.host, type, i) * slope(mode, get_at(x.host, type, i)));
	snprintf(what, sizeof(what), "gradient of activation %d", mode);
	compare(dx.device, dx.host, type, dx.elements, 1e-4, what);
	DNN(cudnnDestroyActivationDescriptor(of));
	tensor_free(&x);
	tensor_free(&y);
	tensor_free(&dx);
	tensor_free(&dy);
}

/* ---- softmax ---- */

/* The sum over an element's softmax of exp(x), of dy * y, or of dy. */
static double over(const struct tensor *x, const struct tensor *dy, const int *at, bool channel,
	bool product)
{
	int i[MOST] = {0};
	double sum = 0;

	do {
		if (i[0] != at[0] || (channel && (i[2] != at[2] || i[3] != at[3])))
			continue;
		if (!dy)
			sum += exp(get(x, i));
		else
			sum += get(dy, i) * (product ? get(x, i) : 1);
	} while (next(x, i));
	return sum;
}

static void softmax(int algorithm, int mode, int type)
{
	struct tensor x = TENSOR(type, false, 2, 5, 2, 3), y = TENSOR(type, false, 2, 5, 2, 3);
	struct tensor dx = TENSOR(type, false, 2, 5, 2, 3),
		      dy = TENSOR(type, false, 2, 5, 2, 3);
	bool logarithm = algorithm == CUDNN_SOFTMAX_LOG;
	bool channel = mode == CUDNN_SOFTMAX_MODE_CHANNEL;
	char what[64];
	int at[MOST] = {0};

	DNN(cudnnSoftmaxForward(handle, algorithm, mode, SCALAR(type, 1), x.descriptor,
		x.device, SCALAR(type, 0), y.descriptor, y.device));
	do {
		double sum = over(&x, NULL, at, channel, false);

		put(&y, at, logarithm ? get(&x, at) - log(sum) : exp(get(&x, at)) / sum);
	} while (next(&y, at));
	snprintf(what, sizeof(what), "softmax %d, mode %d", algorithm, mode);
	tensor_check(&y, what);
	DNN(cudnnSoftmaxBackward(handle, algorithm, mode, SCALAR(type, 1), y.descriptor,
		y.device, dy.descriptor, dy.device, SCALAR(type, 0), dx.descriptor, dx.device));
	do {
		double sum = over(&y, &dy, at, channel, !logarithm);

		put(&dx, at,
			logarithm ? get(&dy, at) - exp(get(&y, at)) * sum
				  : get(&y, at) * (get(&dy, at) - sum));
	} while (next(&y, at));
	snprintf(what, sizeof(what), "gradient of softmax %d, mode %d", algorithm, mode);
	tensor_check(&dx, what);
	tensor_free(&x);
	tensor_free(&y);
	tensor_free(&dx);
	tensor_free(&dy);
}

/* ---- whole tensors ---- */

static void add(void)
{
	struct tensor a = TENSOR(CUDNN_DATA_FLOAT, false, 1, 3, 1, 1);
	struct tensor c = TENSOR(CUDNN_DATA_FLOAT, false, 2, 3, 4, 5);
	float three = 3, half = 0.5f;
	int at[MOST] = {0};

	DNN(cudnnAddTensor(
		handle, &three, a.descriptor, a.device, &half, c.descriptor, c.device));
	do
		put(&c, at, 3 * GET(&a, 0, at[1], 0, 0) + 0.5 * get(&c, at));
	while (next(&c, at));
	tensor_check(&c, "a sum");
	DNN(cudnnScaleTensor(handle, c.descriptor, c.device, &three));
	do
		put(&c, at, 3 * get(&c, at));
	while (next(&c, at));
	tensor_check(&c, "a multiple");
	DNN(cudnnSetTensor(handle, c.descriptor, c.device, &half));
	do
		put(&c, at, 0.5);
	while (next(&c, at));
	tensor_check(&c, "one value everywhere");
	tensor_free(&a);
	tensor_free(&c);
}

static void combine(int op)
{
	struct tensor a = TENSOR(CUDNN_DATA_FLOAT, false, 2, 3, 4, 5);
	struct tensor b = TENSOR(CUDNN_DATA_FLOAT, false, 1, 3, 1, 1);
	struct tensor c = TENSOR(CUDNN_DATA_FLOAT, false, 2, 3, 4, 5);
	cudnnOpTensorDescriptor_t of;
	float two = 2, three = 3, one = 1;
	char what[64];
	int at[MOST] = {0};

	if (op == CUDNN_OP_TENSOR_SQRT) {
		for (size_t i = 0; i < a.elements; i++)
			put_at(a.host, a.type, i, fabs(get_at(a.host, a.type, i)));
		to_there(&a);
	}
	DNN(cudnnCreateOpTensorDescriptor(&of));
	DNN(cudnnSetOpTensorDescriptor(of, op, CUDNN_DATA_FLOAT, CUDNN_PROPAGATE_NAN));
	DNN(cudnnOpTensor(handle, of, &two, a.descriptor, a.device, &three, b.descriptor,
		b.device, &one, c.descriptor, c.device));
	do {
		double x = 2 * get(&a, at), y = 3 * GET(&b, 0, at[1], 0, 0);

		put(&c, at,
			get(&c, at) + (op == CUDNN_OP_TENSOR_ADD	   ? x + y
					      : op == CUDNN_OP_TENSOR_MUL  ? x * y
					      : op == CUDNN_OP_TENSOR_MIN  ? fmin(x, y)
					      : op == CUDNN_OP_TENSOR_MAX  ? fmax(x, y)
					      : op == CUDNN_OP_TENSOR_SQRT ? sqrt(x)
									   : 1 - x));
	} while (next(&c, at));
	snprintf(what, sizeof(what), "combination %d", op);
	tensor_check(&c, what);
	DNN(cudnnDestroyOpTensorDescriptor(of));
	tensor_free(&a);
	tensor_free(&b);
	tensor_free(&c);
}

/* From one layout and type to the same in another layout. */
static void transform(void)
{
	struct tensor x = TENSOR(CUDNN_DATA_FLOAT, false, 2, 3, 4, 5);
	struct tensor y = TENSOR(CUDNN_DATA_FLOAT, true, 2, 3, 4, 5);
	float one = 1, zero = 0;
	int at[MOST] = {0};

	DNN(cudnnTransformTensor(
		handle, &one, x.descriptor, x.device, &zero, y.descriptor, y.device));
	do
		put(&y, at, get(&x, at));
	while (next(&y, at));
	tensor_check(&y, "channels last");
	tensor_free(&x);
	tensor_free(&y);
}

static void reduce(int op)
{
	struct tensor a = TENSOR(CUDNN_DATA_FLOAT, false, 2, 3, 4, 5);
	struct tensor c = TENSOR(CUDNN_DATA_FLOAT, false, 1, 3, 1, 1);
	cudnnReduceTensorDescriptor_t of;
	float one = 1, zero = 0;
	size_t size;
	void *workspace;
	char what[64];

	DNN(cudnnCreateReduceTensorDescriptor(&of));
	DNN(cudnnSetReduceTensorDescriptor(of, op, CUDNN_DATA_FLOAT, CUDNN_PROPAGATE_NAN,
		CUDNN_REDUCE_TENSOR_NO_INDICES, CUDNN_32BIT_INDICES));
	DNN(cudnnGetReductionWorkspaceSize(handle, of, a.descriptor, c.descriptor, &size));
	workspace = device_new(size);
	DNN(cudnnReduceTensor(handle, of, NULL, 0, workspace, size, &one, a.descriptor,
		a.device, &zero, c.descriptor, c.device));
	for (int k = 0; k < 3; k++) {
		double sum = 0, most = -INFINITY, square = 0;
		int at[MOST] = {0};

		do {
			double v = get(&a, at);

			if (at[1] != k)
				continue;
			sum += v;
			square += v * v;
			most = v > most ? v : most;
		} while (next(&a, at));
		PUT(&c,
			op == CUDNN_REDUCE_TENSOR_ADD	? sum
			: op == CUDNN_REDUCE_TENSOR_MAX ? most
			: op == CUDNN_REDUCE_TENSOR_AVG ? sum / 40
							: sqrt(square),
			0, k, 0, 0);
	}
	snprintf(what, sizeof(what), "reduction %d", op);
	tensor_check(&c, what);
	DNN(cudnnDestroyReduceTensorDescriptor(of));
	device_free(workspace);
	tensor_free(&a);
	tensor_free(&c);
}

int main(void)
{
	begin();
	for (int mode = CUDNN_ACTIVATION_SIGMOID; mode <= CUDNN_ACTIVATION_SWISH; mode++)
		if (mode != CUDNN_ACTIVATION_IDENTITY)
			activation(mode, CUDNN_DATA_FLOAT);
	activation(CUDNN_ACTIVATION_TANH, CUDNN_DATA_DOUBLE);
	for (int algorithm = CUDNN_SOFTMAX_FAST; algorithm <= CUDNN_SOFTMAX_LOG; algorithm++) {
		softmax(algorithm, CUDNN_SOFTMAX_MODE_INSTANCE, CUDNN_DATA_FLOAT);
		softmax(algorithm, CUDNN_SOFTMAX_MODE_CHANNEL, CUDNN_DATA_FLOAT);
	}
	softmax(CUDNN_SOFTMAX_ACCURATE, CUDNN_SOFTMAX_MODE_CHANNEL, CUDNN_DATA_DOUBLE);
	add();
	for (int op = CUDNN_OP_TENSOR_ADD; op <= CUDNN_OP_TENSOR_NOT; op++)
		combine(op);
	transform();
	reduce(CUDNN_REDUCE_TENSOR_ADD);
	reduce(CUDNN_REDUCE_TENSOR_MAX);
	reduce(CUDNN_REDUCE_TENSOR_AVG);
	reduce(CUDNN_REDUCE_TENSOR_NORM2);
	return end();
}
