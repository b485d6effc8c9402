/* SPDX-License-Identifier: Apache-2.0
 *
 * Causal convolutions in one dimension, each channel with a filter of its own: plain, with a
 * gate between two, and those that NVIDIA's library computes by Fourier transforms, whose
 * filters lie the other way round.
 */
#ifndef VCUDA_SOFTGPU_DNN_CAUSAL_H
#define VCUDA_SOFTGPU_DNN_CAUSAL_H

#include "softgpu/dnn/dnn.h"

struct causal_shape {
	int64_t batch, dim, steps, taps;
	bool forwards; /* the filter's first number is for the same step */
};

enum causal_kind { FORWARD, BACK, LONG_FORWARD, LONG_BACK, GATED_FORWARD, GATED_BACK };

struct causal_job {
	struct dnn_job job;
	enum causal_kind kind;
	struct causal_shape s;
	int64_t mixer; /* taps of the second convolution */
	bool nwh, silu, add;
	int type, dtype;
	const void *x, *w, *w2, *bias, *dy, *y;
	void *to, *dx, *dw, *dw2, *dbias;
	double *reserve; /* x, then w */
};

/* The job's work. */
void causal_run(struct dnn_job *job);
/* Doubles that the long form keeps from forward to back. */
int64_t causal_long_doubles(const struct causal_shape *shape);

#endif
