/* SPDX-License-Identifier: Apache-2.0
 *
 * Pooling: maximum and both averages, two and three dimensions, forward and back.
 */
#include "tests/cudnn/check.h"

struct shape {
	const char *name;
	int type;
	bool last;
	int count; /* spatial dimensions */
	int in[3], size[3], pad[3], stride[3];
};

static const struct shape shapes[] = {
	{"windows apart", CUDNN_DATA_FLOAT, false, 2, {8, 6}, {2, 2}, {0, 0}, {2, 2}},
	{"windows that overlap", CUDNN_DATA_FLOAT, false, 2, {7, 9}, {3, 3}, {1, 1}, {2, 2}},
	{"double", CUDNN_DATA_DOUBLE, false, 2, {6, 6}, {3, 2}, {1, 0}, {1, 2}},
	{"half, channels last", CUDNN_DATA_HALF, true, 2, {8, 8}, {3, 3}, {1, 1}, {2, 2}},
	{"three dimensions", CUDNN_DATA_FLOAT, false, 3, {4, 6, 6}, {2, 2, 3}, {0, 0, 1},
		{2, 2, 2}},
};

/* Numbers that are all different in a channel, so that a maximum is one element's. */
static void different(struct tensor *x)
{
	int at[MOST] = {0};
	size_t i = 0;

	do
		put(x, at, (double)((i++ * 37) % 128) / 16 - 4);
	while (next(x, at));
	to_there(x);
}

/* One window: its value, and its part of dx where that is given. */
static double window(const struct shape *s, int mode, const struct tensor *x, const int *out,
	double dy, double *dx)
{
	int x_at[MOST] = {out[0], out[1]}, tap[MOST] = {0};
	struct tensor taps = {.count = s->count};
	double sum = 0, most = -INFINITY;
	size_t best = 0, inside = 0, all = 1;

	for (int d = 0; d < s->count; d++) {
		taps.dim[d] = s->size[d];
		all *= (size_t)s->size[d];
	}
	/* Twice: the average's divisor is known after the first. */
	for (int times = 0; times < 2; times++)
		do {
			bool in = true;
			double each = mode == CUDNN_POOLING_AVERAGE_COUNT_INCLUDE_PADDING
					      ? (double)all
					      : (double)inside;

			for (int d = 0; d < s->count; d++) {
				x_at[d + 2] = out[d + 2] * s->stride[d] - s->pad[d] + tap[d];
				in &= x_at[d + 2] >= 0 && x_at[d + 2] < s->in[d];
			}
			if (!in)
				continue;
			if (times) {
				if (dx && mode != CUDNN_POOLING_MAX)
					dx[offset(x, x_at)] += dy / each;
				continue;
			}
			inside++;
			sum += get(x, x_at);
			if (get(x, x_at) > most) {
				most = get(x, x_at);
				best = offset(x, x_at);
			}
		} while (next(&taps, tap));
	if (mode == CUDNN_POOLING_MAX) {
		if (dx)
			dx[best] += dy;
		return most;
	}
	return sum / (mode == CUDNN_POOLING_AVERAGE_COUNT_INCLUDE_PADDING ? (double)all
									  : (double)inside);
}

static void pooling(const struct shape *s, int mode)
{
	int in[MOST] = {2, 8}, out[MOST], at[MOST] = {0};
	struct tensor x, y, dy, dx;
	cudnnPoolingDescriptor_t pool;
	char what[96];
	double *sums;

	for (int d = 0; d < s->count; d++)
		in[d + 2] = s->in[d];
	x = tensor_new(s->type, s->last, s->count + 2, in);
	dx = tensor_new(s->type, s->last, s->count + 2, in);
	different(&x);
	DNN(cudnnCreatePoolingDescriptor(&pool));
	DNN(cudnnSetPoolingNdDescriptor(
		pool, mode, CUDNN_NOT_PROPAGATE_NAN, s->count, s->size, s->pad, s->stride));
	DNN(cudnnGetPoolingNdForwardOutputDim(pool, x.descriptor, s->count + 2, out));
	for (int d = 0; d < s->count; d++)
		if (out[d + 2] != (in[d + 2] + 2 * s->pad[d] - s->size[d]) / s->stride[d] + 1)
			DIE("%s: output dimension %d is %d", s->name, d, out[d + 2]);
	y = tensor_new(s->type, s->last, s->count + 2, out);
	dy = tensor_new(s->type, s->last, s->count + 2, out);
	DNN(cudnnPoolingForward(handle, pool, SCALAR(s->type, 1), x.descriptor, x.device,
		SCALAR(s->type, 0), y.descriptor, y.device));
	DNN(cudnnPoolingBackward(handle, pool, SCALAR(s->type, 1), y.descriptor, y.device,
		dy.descriptor, dy.device, x.descriptor, x.device, SCALAR(s->type, 0),
		dx.descriptor, dx.device));
	sums = calloc(dx.elements, sizeof(*sums));
	do
		put(&y, at, window(s, mode, &x, at, get(&dy, at), sums));
	while (next(&y, at));
	for (size_t i = 0; i < dx.elements; i++)
		put_at(dx.host, dx.type, i, sums[i]);
	snprintf(what, sizeof(what), "%s, mode %d", s->name, mode);
	tensor_check(&y, what);
	snprintf(what, sizeof(what), "%s, mode %d, gradient", s->name, mode);
	tensor_check(&dx, what);
	free(sums);
	DNN(cudnnDestroyPoolingDescriptor(pool));
	tensor_free(&x);
	tensor_free(&y);
	tensor_free(&dx);
	tensor_free(&dy);
}

int main(void)
{
	begin();
	for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
		pooling(&shapes[i], CUDNN_POOLING_MAX);
		pooling(&shapes[i], CUDNN_POOLING_AVERAGE_COUNT_INCLUDE_PADDING);
		pooling(&shapes[i], CUDNN_POOLING_AVERAGE_COUNT_EXCLUDE_PADDING);
	}
	return end();
}
