/* SPDX-License-Identifier: Apache-2.0
 *
 * Local response normalization: odd and even numbers of channels, forward, and back against
 * differences of the forward sums.
 */
#include "tests/cudnn/check.h"

struct shape {
	const char *name;
	int type;
	bool last;
	int channels;
	unsigned n;
	double alpha, beta, k;
};

static const struct shape shapes[] = {
	{"five of eight", CUDNN_DATA_FLOAT, false, 8, 5, 1e-1, 0.75, 2},
	{"four of seven", CUDNN_DATA_FLOAT, false, 7, 4, 2, 0.5, 1},
	{"double", CUDNN_DATA_DOUBLE, false, 6, 3, 1, 0.75, 1},
	{"half, channels last", CUDNN_DATA_HALF, true, 8, 5, 1e-1, 0.75, 1},
	{"more than there are", CUDNN_DATA_FLOAT, false, 3, 11, 1, 0.75, 1},
};

static double forward(const struct shape *s, const struct tensor *x, const int *at)
{
	int behind = ((int)s->n - 1) / 2, other[MOST];
	double sum = 0;

	memcpy(other, at, sizeof(other));
	for (int c = at[1] - behind; c < at[1] - behind + (int)s->n; c++) {
		other[1] = c;
		if (c >= 0 && c < s->channels)
			sum += get(x, other) * get(x, other);
	}
	return get(x, at) / pow(s->k + s->alpha / s->n * sum, s->beta);
}

/* The gradient of an element, in a copy of x in double: what the channels at its place change
 * by. */
static double slope(
	const struct shape *s, struct tensor *wide, const struct tensor *dy, int *at)
{
	const double step = 1e-5;
	double was = get(wide, at), sum = 0;
	int other[MOST];

	memcpy(other, at, sizeof(other));
	for (other[1] = 0; other[1] < s->channels; other[1]++) {
		double more, less;

		put(wide, at, was + step);
		more = forward(s, wide, other);
		put(wide, at, was - step);
		less = forward(s, wide, other);
		put(wide, at, was);
		sum += (more - less) / (2 * step) * get(dy, other);
	}
	return sum;
}

static void response(const struct shape *s)
{
	const int dim[] = {2, s->channels, 3, 2};
	struct tensor x = tensor_new(s->type, s->last, 4, dim);
	struct tensor y = tensor_new(s->type, s->last, 4, dim);
	struct tensor dy = tensor_new(s->type, s->last, 4, dim);
	struct tensor dx = tensor_new(s->type, s->last, 4, dim);
	struct tensor wide = tensor_new(CUDNN_DATA_DOUBLE, false, 4, dim);
	cudnnLRNDescriptor_t descriptor;
	int at[MOST] = {0};
	char what[100];

	DNN(cudnnCreateLRNDescriptor(&descriptor));
	DNN(cudnnSetLRNDescriptor(descriptor, s->n, s->alpha, s->beta, s->k));
	DNN(cudnnLRNCrossChannelForward(handle, descriptor, CUDNN_LRN_CROSS_CHANNEL_DIM1,
		SCALAR(s->type, 1), x.descriptor, x.device, SCALAR(s->type, 0), y.descriptor,
		y.device));
	DNN(cudnnLRNCrossChannelBackward(handle, descriptor, CUDNN_LRN_CROSS_CHANNEL_DIM1,
		SCALAR(s->type, 1), y.descriptor, y.device, dy.descriptor, dy.device,
		x.descriptor, x.device, SCALAR(s->type, 0), dx.descriptor, dx.device));
	do
		put(&wide, at, get(&x, at));
	while (next(&x, at));
	do {
		put(&y, at, forward(s, &wide, at));
		put(&dx, at, slope(s, &wide, &dy, at));
	} while (next(&x, at));
	snprintf(what, sizeof(what), "%s", s->name);
	tensor_check(&y, what);
	/* Differences are not exact in the last digits of a double. */
	if (s->type != CUDNN_DATA_DOUBLE) {
		snprintf(what, sizeof(what), "%s, gradient", s->name);
		tensor_check(&dx, what);
	}
	DNN(cudnnDestroyLRNDescriptor(descriptor));
	tensor_free(&x);
	tensor_free(&y);
	tensor_free(&dy);
	tensor_free(&dx);
	tensor_free(&wide);
}

int main(void)
{
	begin();
	for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++)
		response(&shapes[i]);
	return end();
}
