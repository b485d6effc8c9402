/* SPDX-License-Identifier: Apache-2.0
 *
 * The pointwise functions of the backend API, one value at a time.
 */
#include <math.h>

#include "softgpu/dnn/backend.h"

#define SQRT_2 1.4142135623730951
#define SQRT_PI_2 1.2533141373155003 /* sqrt(pi / 2) */

#define MODE(NAME) CUDNN_POINTWISE_##NAME

bool backend_pointwise_backward(int mode)
{
	return mode >= MODE(RELU_BWD) && mode <= MODE(GELU_APPROX_TANH_BWD);
}

int backend_pointwise_inputs(int mode)
{
	switch (mode) {
	case MODE(ADD):
	case MODE(ADD_SQUARE):
	case MODE(DIV):
	case MODE(MAX):
	case MODE(MIN):
	case MODE(MOD):
	case MODE(MUL):
	case MODE(POW):
	case MODE(SUB):
	case MODE(ATAN2):
	case MODE(FLOOR_MOD):
	case MODE(CMP_EQ):
	case MODE(CMP_NEQ):
	case MODE(CMP_GT):
	case MODE(CMP_GE):
	case MODE(CMP_LT):
	case MODE(CMP_LE):
	case MODE(LOGICAL_AND):
	case MODE(LOGICAL_OR): return 2;
	case MODE(BINARY_SELECT): return 3;
	case MODE(ABS):
	case MODE(CEIL):
	case MODE(COS):
	case MODE(EXP):
	case MODE(FLOOR):
	case MODE(LOG):
	case MODE(NEG):
	case MODE(RSQRT):
	case MODE(SIN):
	case MODE(SQRT):
	case MODE(TAN):
	case MODE(ERF):
	case MODE(IDENTITY):
	case MODE(RECIPROCAL):
	case MODE(LOGICAL_NOT):
	case MODE(GEN_INDEX): return 1;
	default:
		if (mode >= MODE(RELU_FWD) && mode <= MODE(GELU_APPROX_TANH_FWD))
			return 1;
		return backend_pointwise_backward(mode) ? 2 : 0;
	}
}

static double sigmoid(double x)
{
	return 1 / (1 + exp(-x));
}

/* The inner function of the tanh form of GELU, and its derivative. */
static double gelu_inner(double x)
{
	return (x + 0.044715 * x * x * x) / SQRT_PI_2;
}

static double gelu_inner_slope(double x)
{
	return (1 + 3 * 0.044715 * x * x) / SQRT_PI_2;
}

static double forward(const struct backend_pointwise *p, double x)
{
	switch (p->mode) {
	case MODE(RELU_FWD):
		if (x < p->lower)
			return p->lower + p->slope * (x - p->lower);
		return x > p->upper ? p->upper : x;
	case MODE(TANH_FWD): return tanh(x);
	case MODE(SIGMOID_FWD): return sigmoid(x);
	case MODE(ELU_FWD): return x < 0 ? p->elu_alpha * expm1(x) : x;
	case MODE(GELU_FWD): return 0.5 * x * (1 + erf(x / SQRT_2));
	case MODE(SOFTPLUS_FWD):
		return (fmax(p->softplus_beta * x, 0) +
			       log1p(exp(-fabs(p->softplus_beta * x)))) /
		       p->softplus_beta;
	case MODE(SWISH_FWD): return x * sigmoid(p->swish_beta * x);
	default: return 0.5 * x * (1 + tanh(gelu_inner(x)));
	}
}

/* The slope at x. */
static double slope(const struct backend_pointwise *p, double x)
{
	double s;

	switch (p->mode) {
	case MODE(RELU_BWD): return x <= p->lower ? p->slope : x >= p->upper ? 0 : 1;
	case MODE(TANH_BWD): return 1 - tanh(x) * tanh(x);
	case MODE(SIGMOID_BWD): return sigmoid(x) * (1 - sigmoid(x));
	case MODE(ELU_BWD): return x < 0 ? p->elu_alpha * exp(x) : 1;
	case MODE(GELU_BWD):
		return 0.5 * (1 + erf(x / SQRT_2)) + x * exp(-x * x / 2) / (2 * SQRT_PI_2);
	case MODE(SOFTPLUS_BWD): return sigmoid(p->softplus_beta * x);
	case MODE(SWISH_BWD):
		s = sigmoid(p->swish_beta * x);
		return s + p->swish_beta * x * s * (1 - s);
	default:
		s = tanh(gelu_inner(x));
		return 0.5 * (1 + s) + 0.5 * x * (1 - s * s) * gelu_inner_slope(x);
	}
}

double backend_pointwise_value(
	const struct backend_pointwise *p, double x, double b, double t, int64_t index)
{
	switch (p->mode) {
	case MODE(ADD): return x + b;
	case MODE(ADD_SQUARE): return x + b * b;
	case MODE(DIV): return x / b;
	case MODE(MAX): return x > b ? x : b;
	case MODE(MIN): return x < b ? x : b;
	case MODE(MOD): return fmod(x, b);
	case MODE(FLOOR_MOD): return x - b * floor(x / b);
	case MODE(MUL): return x * b;
	case MODE(POW): return pow(x, b);
	case MODE(SUB): return x - b;
	case MODE(ATAN2): return atan2(x, b);
	case MODE(CMP_EQ): return x == b;
	case MODE(CMP_NEQ): return x != b;
	case MODE(CMP_GT): return x > b;
	case MODE(CMP_GE): return x >= b;
	case MODE(CMP_LT): return x < b;
	case MODE(CMP_LE): return x <= b;
	case MODE(LOGICAL_AND): return x != 0 && b != 0;
	case MODE(LOGICAL_OR): return x != 0 || b != 0;
	case MODE(LOGICAL_NOT): return x == 0;
	case MODE(BINARY_SELECT): return t != 0 ? x : b;
	case MODE(ABS): return fabs(x);
	case MODE(CEIL): return ceil(x);
	case MODE(COS): return cos(x);
	case MODE(EXP): return exp(x);
	case MODE(FLOOR): return floor(x);
	case MODE(LOG): return log(x);
	case MODE(NEG): return -x;
	case MODE(RSQRT): return 1 / sqrt(x);
	case MODE(SIN): return sin(x);
	case MODE(SQRT): return sqrt(x);
	case MODE(TAN): return tan(x);
	case MODE(ERF): return erf(x);
	case MODE(IDENTITY): return x;
	case MODE(RECIPROCAL): return 1 / x;
	case MODE(GEN_INDEX): return (double)index;
	default:
		/* b is the output's gradient. */
		return backend_pointwise_backward(p->mode) ? b * slope(p, x) : forward(p, x);
	}
}
