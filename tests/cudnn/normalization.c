/* SPDX-License-Identifier: Apache-2.0
 *
 * Batch normalization: training, inference and gradients; per activation and spatial; the Ex
 * form as PyTorch calls it, and fused with ReLU.
 */
#include "tests/cudnn/check.h"

#define EPSILON 1e-3
#define FACTOR 0.25 /* of the running statistics */

struct norm {
	int type, mode;
	struct tensor x, y, dy, dx, scale, bias, running_mean, running_variance, mean, inverse;
	struct tensor dscale, dbias;
};

static struct norm norm_new(int type, bool last, int mode)
{
	int wide = type == CUDNN_DATA_DOUBLE ? type : CUDNN_DATA_FLOAT;
	int h = mode == CUDNN_BATCHNORM_PER_ACTIVATION ? 3 : 1;
	int w = mode == CUDNN_BATCHNORM_PER_ACTIVATION ? 5 : 1;
	struct norm n = {.type = type, .mode = mode};
	struct tensor *const images[] = {&n.x, &n.y, &n.dy, &n.dx};
	struct tensor *const parameters[] = {&n.scale, &n.bias, &n.running_mean,
		&n.running_variance, &n.mean, &n.inverse, &n.dscale, &n.dbias};

	for (int i = 0; i < 4; i++)
		*images[i] = TENSOR(type, last, 4, 8, 3, 5);
	for (int i = 0; i < 8; i++)
		*parameters[i] = TENSOR(wide, last, 1, 8, h, w);
	/* A variance is not negative. */
	for (size_t i = 0; i < n.running_variance.elements; i++)
		put_at(n.running_variance.host, wide, i, 0.5 + (double)(i % 4) / 4);
	to_there(&n.running_variance);
	return n;
}

static void norm_free(struct norm *n)
{
	struct tensor *const all[] = {&n->x, &n->y, &n->dy, &n->dx, &n->scale, &n->bias,
		&n->running_mean, &n->running_variance, &n->mean, &n->inverse, &n->dscale,
		&n->dbias};

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		tensor_free(all[i]);
}

/* The parameter that goes with an element. */
static const int *parameter_of(const struct norm *n, const int *at, int *to)
{
	to[0] = 0;
	to[1] = at[1];
	to[2] = n->mode == CUDNN_BATCHNORM_PER_ACTIVATION ? at[2] : 0;
	to[3] = n->mode == CUDNN_BATCHNORM_PER_ACTIVATION ? at[3] : 0;
	return to;
}

static double each_of(const struct norm *n)
{
	return (double)n->x.elements / (double)n->scale.elements;
}

/* Statistics by plain loops, into the hosts of mean and inverse; the variances to the caller.
 */
static double *statistics(struct norm *n)
{
	double *mean = calloc(n->scale.elements, sizeof(*mean));
	double *variance = calloc(n->scale.elements, sizeof(*variance));
	int at[MOST] = {0}, p[MOST];

	do
		mean[offset(&n->scale, parameter_of(n, at, p))] += get(&n->x, at) / each_of(n);
	while (next(&n->x, at));
	do {
		size_t i = offset(&n->scale, parameter_of(n, at, p));

		variance[i] += pow(get(&n->x, at) - mean[i], 2) / each_of(n);
	} while (next(&n->x, at));
	for (size_t i = 0; i < n->scale.elements; i++) {
		put_at(n->mean.host, n->mean.type, i, mean[i]);
		put_at(n->inverse.host, n->mean.type, i, 1 / sqrt(variance[i] + EPSILON));
	}
	free(mean);
	return variance;
}

static double normal(const struct norm *n, const int *at, const int *p)
{
	return (get(&n->x, at) - get(&n->mean, p)) * get(&n->inverse, p);
}

static void expect_forward(struct norm *n, double alpha, double beta)
{
	double *variance = statistics(n), each = each_of(n);
	int at[MOST] = {0}, p[MOST];

	do {
		parameter_of(n, at, p);
		put(&n->y, at,
			alpha * (normal(n, at, p) * get(&n->scale, p) + get(&n->bias, p)) +
				beta * get(&n->y, at));
	} while (next(&n->y, at));
	for (size_t i = 0; i < n->scale.elements; i++) {
		int type = n->scale.type;

		put_at(n->running_mean.host, type, i,
			(1 - FACTOR) * get_at(n->running_mean.host, type, i) +
				FACTOR * get_at(n->mean.host, type, i));
		put_at(n->running_variance.host, type, i,
			(1 - FACTOR) * get_at(n->running_variance.host, type, i) +
				FACTOR * variance[i] * each / (each - 1));
	}
	free(variance);
}

static void check_forward(struct norm *n, const char *what)
{
	char text[96];
	struct tensor *const all[] = {
		&n->y, &n->mean, &n->inverse, &n->running_mean, &n->running_variance};
	const char *const names[] = {
		"result", "mean", "inverse deviation", "running mean", "running variance"};

	for (int i = 0; i < 5; i++) {
		snprintf(text, sizeof(text), "%s: %s", what, names[i]);
		tensor_check(all[i], text);
	}
}

/* Gradients of what `dy` on the host says, by plain loops. */
static void expect_backward(struct norm *n)
{
	double each = each_of(n);
	int at[MOST] = {0}, p[MOST];

	memset(n->dscale.host, 0, n->dscale.bytes);
	memset(n->dbias.host, 0, n->dbias.bytes);
	do {
		parameter_of(n, at, p);
		put(&n->dscale, p, get(&n->dscale, p) + get(&n->dy, at) * normal(n, at, p));
		put(&n->dbias, p, get(&n->dbias, p) + get(&n->dy, at));
	} while (next(&n->x, at));
	do {
		parameter_of(n, at, p);
		put(&n->dx, at,
			get(&n->scale, p) * get(&n->inverse, p) *
				(get(&n->dy, at) - get(&n->dbias, p) / each -
					normal(n, at, p) * get(&n->dscale, p) / each));
	} while (next(&n->x, at));
}

static void check_backward(struct norm *n, const char *what)
{
	char text[96];

	snprintf(text, sizeof(text), "%s: gradient", what);
	tensor_check(&n->dx, text);
	snprintf(text, sizeof(text), "%s: gradient of the scale", what);
	tensor_check(&n->dscale, text);
	snprintf(text, sizeof(text), "%s: gradient of the bias", what);
	tensor_check(&n->dbias, text);
}

static void plain(int type, int mode, const char *what)
{
	struct norm n = norm_new(type, false, mode);
	struct tensor derived;

	/* The shape of the parameters, as the library derives it. */
	derived = n.scale;
	DNN(cudnnCreateTensorDescriptor(&derived.descriptor));
	DNN(cudnnDeriveBNTensorDescriptor(derived.descriptor, n.x.descriptor, mode));
	DNN(cudnnBatchNormalizationForwardTraining(handle, mode, SCALAR(type, 0.5),
		SCALAR(type, 1), n.x.descriptor, n.x.device, n.y.descriptor, n.y.device,
		derived.descriptor, n.scale.device, n.bias.device, FACTOR,
		n.running_mean.device, n.running_variance.device, EPSILON, n.mean.device,
		n.inverse.device));
	expect_forward(&n, 0.5, 1);
	check_forward(&n, what);
	DNN(cudnnBatchNormalizationBackward(handle, mode, SCALAR(type, 1), SCALAR(type, 0),
		SCALAR(type, 1), SCALAR(type, 0), n.x.descriptor, n.x.device, n.dy.descriptor,
		n.dy.device, n.dx.descriptor, n.dx.device, derived.descriptor, n.scale.device,
		n.dscale.device, n.dbias.device, EPSILON, n.mean.device, n.inverse.device));
	expect_backward(&n);
	check_backward(&n, what);
	/* Without the saved statistics they are computed again. */
	CUDA(cuMemsetD8((CUdeviceptr)(uintptr_t)n.dx.device, 0xff, n.dx.bytes));
	DNN(cudnnBatchNormalizationBackward(handle, mode, SCALAR(type, 1), SCALAR(type, 0),
		SCALAR(type, 1), SCALAR(type, 0), n.x.descriptor, n.x.device, n.dy.descriptor,
		n.dy.device, n.dx.descriptor, n.dx.device, derived.descriptor, n.scale.device,
		n.dscale.device, n.dbias.device, EPSILON, NULL, NULL));
	check_backward(&n, what);
	DNN(cudnnDestroyTensorDescriptor(derived.descriptor));
	norm_free(&n);
}

static void inference(int type, int mode)
{
	struct norm n = norm_new(type, false, mode);
	int at[MOST] = {0}, p[MOST];

	DNN(cudnnBatchNormalizationForwardInference(handle, mode, SCALAR(type, 1),
		SCALAR(type, 0), n.x.descriptor, n.x.device, n.y.descriptor, n.y.device,
		n.scale.descriptor, n.scale.device, n.bias.device, n.running_mean.device,
		n.running_variance.device, EPSILON));
	do {
		parameter_of(&n, at, p);
		put(&n.y, at,
			get(&n.scale, p) * (get(&n.x, at) - get(&n.running_mean, p)) /
					sqrt(get(&n.running_variance, p) + EPSILON) +
				get(&n.bias, p));
	} while (next(&n.y, at));
	tensor_check(&n.y, "inference");
	norm_free(&n);
}

/* With workspace and reserve, forward and back; with ReLU, and with an added tensor. */
static void extended(int type, bool last, int mode, int ops, const char *what)
{
	struct norm n = norm_new(type, last, mode);
	struct tensor z = TENSOR(type, last, 4, 8, 3, 5), dz = TENSOR(type, last, 4, 8, 3, 5);
	bool added = ops == CUDNN_BATCHNORM_OPS_BN_ADD_ACTIVATION;
	cudnnTensorDescriptor_t zd = added ? z.descriptor : NULL;
	cudnnTensorDescriptor_t yd = ops ? n.y.descriptor : NULL;
	cudnnActivationDescriptor_t relu = NULL;
	size_t forward, backward, reserve;
	void *workspace, *kept;
	int at[MOST] = {0}, status;

	if (ops) {
		DNN(cudnnCreateActivationDescriptor(&relu));
		DNN(cudnnSetActivationDescriptor(
			relu, CUDNN_ACTIVATION_RELU, CUDNN_PROPAGATE_NAN, 0));
	}
	status = (int)cudnnGetBatchNormalizationForwardTrainingExWorkspaceSize(handle, mode,
		ops, n.x.descriptor, zd, n.y.descriptor, n.scale.descriptor, relu, &forward);
	if (ops && not_supported(status)) {
		skipped(what);
		goto out;
	}
	DNN(status);
	DNN(cudnnGetBatchNormalizationBackwardExWorkspaceSize(handle, mode, ops, n.x.descriptor,
		yd, n.dy.descriptor, added ? dz.descriptor : NULL, n.dx.descriptor,
		n.scale.descriptor, relu, &backward));
	DNN(cudnnGetBatchNormalizationTrainingExReserveSpaceSize(
		handle, mode, ops, relu, n.x.descriptor, &reserve));
	workspace = device_new(forward > backward ? forward : backward);
	kept = device_new(reserve);
	DNN(cudnnBatchNormalizationForwardTrainingEx(handle, mode, ops, SCALAR(type, 1),
		SCALAR(type, 0), n.x.descriptor, n.x.device, zd, added ? z.device : NULL,
		n.y.descriptor, n.y.device, n.scale.descriptor, n.scale.device, n.bias.device,
		FACTOR, n.running_mean.device, n.running_variance.device, EPSILON,
		n.mean.device, n.inverse.device, relu, workspace, forward, kept, reserve));
	expect_forward(&n, 1, 0);
	do {
		double y = get(&n.y, at) + (added ? get(&z, at) : 0);

		if (ops)
			put(&n.y, at, y > 0 ? y : 0);
	} while (next(&n.y, at));
	check_forward(&n, what);
	DNN(cudnnBatchNormalizationBackwardEx(handle, mode, ops, SCALAR(type, 1),
		SCALAR(type, 0), SCALAR(type, 1), SCALAR(type, 0), n.x.descriptor, n.x.device,
		yd, ops ? n.y.device : NULL, n.dy.descriptor, n.dy.device,
		added ? dz.descriptor : NULL, added ? dz.device : NULL, n.dx.descriptor,
		n.dx.device, n.scale.descriptor, n.scale.device, n.bias.device, n.dscale.device,
		n.dbias.device, EPSILON, n.mean.device, n.inverse.device, relu, workspace,
		backward, kept, reserve));
	do
		if (ops && get(&n.y, at) <= 0)
			put(&n.dy, at, 0);
	while (next(&n.dy, at));
	expect_backward(&n);
	check_backward(&n, what);
	if (added) {
		memcpy(dz.host, n.dy.host, dz.bytes);
		tensor_check(&dz, "gradient of what was added");
	}
	device_free(workspace);
	device_free(kept);
out:
	if (relu)
		DNN(cudnnDestroyActivationDescriptor(relu));
	tensor_free(&z);
	tensor_free(&dz);
	norm_free(&n);
}

int main(void)
{
	begin();
	plain(CUDNN_DATA_FLOAT, CUDNN_BATCHNORM_SPATIAL, "spatial");
	plain(CUDNN_DATA_FLOAT, CUDNN_BATCHNORM_PER_ACTIVATION, "per activation");
	plain(CUDNN_DATA_DOUBLE, CUDNN_BATCHNORM_SPATIAL, "double");
	inference(CUDNN_DATA_FLOAT, CUDNN_BATCHNORM_SPATIAL);
	inference(CUDNN_DATA_FLOAT, CUDNN_BATCHNORM_PER_ACTIVATION);
	inference(CUDNN_DATA_HALF, CUDNN_BATCHNORM_SPATIAL);
	extended(
		CUDNN_DATA_FLOAT, false, CUDNN_BATCHNORM_SPATIAL, CUDNN_BATCHNORM_OPS_BN, "Ex");
	extended(CUDNN_DATA_HALF, true, CUDNN_BATCHNORM_SPATIAL_PERSISTENT,
		CUDNN_BATCHNORM_OPS_BN, "Ex, persistent, halves, channels last");
	extended(CUDNN_DATA_HALF, true, CUDNN_BATCHNORM_SPATIAL_PERSISTENT,
		CUDNN_BATCHNORM_OPS_BN_ACTIVATION, "Ex with ReLU");
	extended(CUDNN_DATA_HALF, true, CUDNN_BATCHNORM_SPATIAL_PERSISTENT,
		CUDNN_BATCHNORM_OPS_BN_ADD_ACTIVATION, "Ex with a sum and ReLU");
	return end();
}
