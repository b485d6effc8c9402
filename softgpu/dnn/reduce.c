/* SPDX-License-Identifier: Apache-2.0
 *
 * Reductions of packed values over the dimensions that the result has as 1.
 */
#include <math.h>

#include "softgpu/dnn/dnn.h"

bool dnn_reduce_served(int op)
{
	return op >= CUDNN_REDUCE_TENSOR_ADD && op <= CUDNN_REDUCE_TENSOR_MUL_NO_ZEROS;
}

static double joined(int op, double sum, double v)
{
	switch (op) {
	case CUDNN_REDUCE_TENSOR_MUL: return sum * v;
	case CUDNN_REDUCE_TENSOR_MUL_NO_ZEROS: return v != 0 ? sum * v : sum;
	case CUDNN_REDUCE_TENSOR_MIN: return v < sum ? v : sum;
	case CUDNN_REDUCE_TENSOR_MAX: return v > sum ? v : sum;
	case CUDNN_REDUCE_TENSOR_AMAX: return fabs(v) > sum ? fabs(v) : sum;
	case CUDNN_REDUCE_TENSOR_NORM1: return sum + fabs(v);
	case CUDNN_REDUCE_TENSOR_NORM2: return sum + v * v;
	default: return sum + v;
	}
}

static double first_of(int op)
{
	switch (op) {
	case CUDNN_REDUCE_TENSOR_MUL:
	case CUDNN_REDUCE_TENSOR_MUL_NO_ZEROS: return 1;
	case CUDNN_REDUCE_TENSOR_MIN: return INFINITY;
	case CUDNN_REDUCE_TENSOR_MAX: return -INFINITY;
	default: return 0;
	}
}

void dnn_reduce(int op, const struct dnn_tensor *x, const double *from,
	const struct dnn_tensor *y, double *to)
{
	int64_t n = dnn_elements(x), m = dnn_elements(y);

	for (int64_t i = 0; i < m; i++)
		to[i] = first_of(op);
	for (int64_t i = 0; i < n; i++) {
		int64_t rest = i, at = 0, step = 1;

		for (int d = x->count - 1; d >= 0; d--) {
			if (y->dim[d] != 1)
				at += rest % x->dim[d] * step;
			rest /= x->dim[d];
			step *= y->dim[d];
		}
		to[at] = joined(op, to[at], from[i]);
	}
	for (int64_t i = 0; i < m; i++) {
		if (op == CUDNN_REDUCE_TENSOR_AVG)
			to[i] /= (double)(n / m);
		else if (op == CUDNN_REDUCE_TENSOR_NORM2)
			to[i] = sqrt(to[i]);
	}
}
