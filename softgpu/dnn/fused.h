/* SPDX-License-Identifier: Apache-2.0
 *
 * Fused operations: the packs with the descriptors (constants) and with the pointers and
 * scalars (variants), by label, that a plan is made of and executed with.
 */
#ifndef VCUDA_SOFTGPU_DNN_FUSED_H
#define VCUDA_SOFTGPU_DNN_FUSED_H

#include "softgpu/dnn/dnn.h"

/* cudnnFusedOps_t; those behind are not served. */
enum { CONV_STATS, WGRAD, FINALIZE_TRAINING, FINALIZE_INFERENCE, SERVED, OPS = 7 };

/* cudnnFusedOpsConstParamLabel_t, as far as it is looked at. */
enum {
	X = 0,
	BN_MODE = 2,
	EQ = 3,
	ACTIVATION = 6,
	CONVOLUTION = 7,
	W = 8,
	DW = 10,
	Y = 12,
	DY = 14,
	STATS = 16,
	BN = 19,
	CONSTANTS = 39,
};

/* cudnnFusedOpsVariantParamLabel_t. */
enum {
	P_X,
	P_EQSCALE,
	P_EQBIAS,
	P_W,
	P_DW,
	P_Y,
	P_DY,
	P_SUM,
	P_SQUARES,
	P_WORKSPACE,
	P_SCALE,
	P_BIAS,
	P_MEAN,
	P_INVSTD,
	P_RUNNING_MEAN,
	P_RUNNING_VAR,
	POINTERS = 24,
	S_SIZE = 100,
	S_COUNT,
	S_FACTOR,
	S_EPSILON,
};

struct fused_constants {
	int ops;
	bool has[CONSTANTS];
	int number[CONSTANTS]; /* a placeholder: 0 where there is no such pointer */
	struct dnn_tensor tensor[CONSTANTS];
	struct dnn_filter filter[CONSTANTS];
	struct dnn_activation activation;
	struct dnn_convolution convolution;
};

struct fused_variants {
	int ops;
	void *pointer[POINTERS];
	size_t size;
	int64_t count;
	double factor, epsilon;
};

/* A pack or a plan, which begin with the operation. A status. */
int fused_new(int **at, size_t size, int ops);

#endif
