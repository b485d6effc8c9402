/* SPDX-License-Identifier: Apache-2.0
 *
 * The calls of causal convolutions, which take a stream and no handle.
 */
#include "softgpu/dnn/causal.h"

#define SILU 1
#define NWH true
/* Filters of the Fourier forms, and of the long one. */
#define MEDIUM_LEAST 128
#define MEDIUM_MOST 16384
#define LONG_LEAST 4096
#define LONG_MOST (1 << 24)
#define MOST ((int64_t)1 << 36)

static int shape_status(int batch, int dim, int steps, int taps, int type)
{
	int64_t n;

	if (batch < 1 || dim < 1 || steps < 1 || taps < 1)
		return CUDNN_STATUS_BAD_PARAM;
	if (type != CUDNN_DATA_FLOAT && type != CUDNN_DATA_DOUBLE && type != CUDNN_DATA_HALF &&
		type != CUDNN_DATA_BFLOAT16)
		return CUDNN_STATUS_NOT_SUPPORTED_DATA_TYPE;
	if (__builtin_mul_overflow(
		    (int64_t)batch * dim, (int64_t)(steps > taps ? steps : taps), &n) ||
		n > MOST)
		return CUDNN_STATUS_NOT_SUPPORTED_SHAPE;
	return CUDNN_STATUS_SUCCESS;
}

static bool power_of_two(int n, int least, int most)
{
	return n >= least && n <= most && !(n & (n - 1));
}

static bool plain_taps(int n)
{
	return (n >= 2 && n <= 8) || power_of_two(n, 16, 256);
}

static bool gradient_type(int type, int dtype)
{
	return dtype == (type == CUDNN_DATA_DOUBLE ? CUDNN_DATA_DOUBLE : CUDNN_DATA_FLOAT);
}

static int submit(CUstream stream, const struct causal_job *what)
{
	struct dnn_handle *handle = dnn_handle_of(stream);
	struct causal_job *j;
	struct dnn_job begins;
	int status = CUDNN_STATUS_ALLOC_FAILED;

	if (!handle)
		return status;
	j = dnn_job_new(handle, causal_run, sizeof(*j), &status);
	if (j) {
		begins = j->job;
		*j = *what;
		j->job = begins;
		status = dnn_submit(&j->job);
	}
	dnn_handle_drop(handle);
	return status;
}

static int plain_forward(CUstream stream, const void *x, const void *w, const void *bias,
	void *y, int batch, int dim, int steps, int taps, int type, int activation, bool nwh)
{
	int status = shape_status(batch, dim, steps, taps, type);

	if (!x || !w || !bias || !y)
		return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
	if (status)
		return status;
	if (activation < 0 || activation > SILU)
		return CUDNN_STATUS_BAD_PARAM;
	if (!plain_taps(taps))
		return CUDNN_STATUS_NOT_SUPPORTED;
	return submit(stream, &(struct causal_job){.kind = FORWARD,
				      .s = {batch, dim, steps, taps, false},
				      .nwh = nwh,
				      .silu = activation == SILU,
				      .type = type,
				      .x = x,
				      .w = w,
				      .bias = bias,
				      .to = y});
}

static int plain_back(CUstream stream, const void *x, const void *w, const void *bias,
	const void *dy, void *dx, void *dw, void *dbias, int batch, int dim, int steps,
	int taps, int type, int dtype, int activation, bool nwh)
{
	int status = shape_status(batch, dim, steps, taps, type);

	if (!x || !w || !bias || !dy || !dx || !dw || !dbias)
		return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
	if (status)
		return status;
	if (activation < 0 || activation > SILU || !gradient_type(type, dtype))
		return CUDNN_STATUS_BAD_PARAM;
	if (!plain_taps(taps))
		return CUDNN_STATUS_NOT_SUPPORTED;
	return submit(stream, &(struct causal_job){.kind = BACK,
				      .s = {batch, dim, steps, taps, false},
				      .nwh = nwh,
				      .silu = activation == SILU,
				      .add = true,
				      .type = type,
				      .dtype = dtype,
				      .x = x,
				      .w = w,
				      .bias = bias,
				      .dy = dy,
				      .dx = dx,
				      .dw = dw,
				      .dbias = dbias});
}

DNN_CALL(cudnnCausalConv1dForward, CUstream stream, const void *x, const void *w,
	const void *bias, void *y, int batch, int dim, int steps, int taps, int type,
	int activation)
{
	return plain_forward(
		stream, x, w, bias, y, batch, dim, steps, taps, type, activation, !NWH);
}

DNN_CALL(cudnnCausalConv1dNwhForward, CUstream stream, const void *x, const void *w,
	const void *bias, void *y, int batch, int dim, int steps, int taps, int type,
	int activation)
{
	return plain_forward(
		stream, x, w, bias, y, batch, dim, steps, taps, type, activation, NWH);
}

DNN_CALL(cudnnCausalConv1dBackward, CUstream stream, const void *x, const void *w,
	const void *bias, const void *dy, void *dx, void *dw, void *dbias, int batch, int dim,
	int steps, int taps, int type, int dtype, int activation)
{
	return plain_back(stream, x, w, bias, dy, dx, dw, dbias, batch, dim, steps, taps, type,
		dtype, activation, !NWH);
}

DNN_CALL(cudnnCausalConv1dNwhBackward, CUstream stream, const void *x, const void *w,
	const void *bias, const void *dy, void *dx, void *dw, void *dbias, int batch, int dim,
	int steps, int taps, int type, int dtype, int activation)
{
	return plain_back(stream, x, w, bias, dy, dx, dw, dbias, batch, dim, steps, taps, type,
		dtype, activation, NWH);
}

DNN_CALL(cudnnB2BCausalConv1dForward, CUstream stream, const void *x, const void *w,
	const void *mixer, const void *bias, void *y, void *gated, int batch, int dim,
	int steps, int taps, int mixer_taps, int type)
{
	int status = shape_status(batch, dim, steps, taps, type);

	if (!x || !w || !mixer || !bias || !y || !gated)
		return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
	if (!status)
		status = shape_status(batch, dim, steps, mixer_taps, type);
	if (status)
		return status;
	return submit(stream, &(struct causal_job){.kind = GATED_FORWARD,
				      .s = {batch, dim, steps, taps, false},
				      .mixer = mixer_taps,
				      .type = type,
				      .x = x,
				      .w = w,
				      .w2 = mixer,
				      .bias = bias,
				      .to = y,
				      .dx = gated});
}

DNN_CALL(cudnnB2BCausalConv1dBackward, CUstream stream, const void *x, const void *w,
	const void *mixer, const void *bias, const void *y, const void *dy, void *dx, void *dw,
	void *dmixer, void *dbias, int batch, int dim, int steps, int taps, int mixer_taps,
	int type, int dtype)
{
	int status = shape_status(batch, dim, steps, taps, type);

	if (!x || !w || !mixer || !bias || !y || !dy || !dx || !dw || !dmixer || !dbias)
		return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
	if (!status)
		status = shape_status(batch, dim, steps, mixer_taps, type);
	if (status)
		return status;
	if (!gradient_type(type, dtype))
		return CUDNN_STATUS_BAD_PARAM;
	return submit(stream, &(struct causal_job){.kind = GATED_BACK,
				      .s = {batch, dim, steps, taps, false},
				      .mixer = mixer_taps,
				      .type = type,
				      .dtype = dtype,
				      .x = x,
				      .w = w,
				      .w2 = mixer,
				      .bias = bias,
				      .y = y,
				      .dy = dy,
				      .dx = dx,
				      .dw = dw,
				      .dw2 = dmixer,
				      .dbias = dbias});
}

static int medium_status(int batch, int dim, int steps, int taps, int type)
{
	int status = shape_status(batch, dim, steps, taps, type);

	if (!status && (!power_of_two(taps, MEDIUM_LEAST, MEDIUM_MOST) || steps % taps))
		status = CUDNN_STATUS_NOT_SUPPORTED;
	return status;
}

DNN_CALL(cudnnFFTCausalConv1dForward, CUstream stream, const void *x, const void *w, void *y,
	int batch, int dim, int steps, int taps, int type)
{
	int status = medium_status(batch, dim, steps, taps, type);

	if (!x || !w || !y)
		return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
	if (status)
		return status;
	return submit(stream, &(struct causal_job){.kind = FORWARD,
				      .s = {batch, dim, steps, taps, true},
				      .type = type,
				      .x = x,
				      .w = w,
				      .to = y});
}

DNN_CALL(cudnnFFTCausalConv1dBackward, CUstream stream, const void *x, const void *w,
	const void *dy, void *dx, void *dw, int batch, int dim, int steps, int taps, int type)
{
	int status = medium_status(batch, dim, steps, taps, type);

	if (!x || !w || !dy || !dx || !dw)
		return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
	if (status)
		return status;
	return submit(stream, &(struct causal_job){.kind = BACK,
				      .s = {batch, dim, steps, taps, true},
				      .type = type,
				      .dtype = type,
				      .x = x,
				      .w = w,
				      .dy = dy,
				      .dx = dx,
				      .dw = dw});
}

DNN_CALL(cudnnLongFFTCausalConv1dGetBufferSizes, int batch, int dim, int steps, int taps,
	int type, size_t *workspace, size_t *reserve)
{
	int status = shape_status(batch, dim, steps, taps, type);

	if (!workspace || !reserve)
		return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
	if (status)
		return status;
	if (taps != steps || !power_of_two(taps, LONG_LEAST, LONG_MOST))
		return CUDNN_STATUS_NOT_SUPPORTED;
	*workspace = 0;
	*reserve = (size_t)causal_long_doubles(
			   &(struct causal_shape){batch, dim, steps, taps, true}) *
		   8;
	return CUDNN_STATUS_SUCCESS;
}

/* The sizes of the long form, and whether there is room. */
static int long_status(
	int batch, int dim, int steps, int taps, int type, const void *reserve, size_t bytes)
{
	size_t workspace, least = 0;
	int status = cudnnLongFFTCausalConv1dGetBufferSizes(
		batch, dim, steps, taps, type, &workspace, &least);

	if (!status && !reserve)
		return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
	return !status && bytes < least ? CUDNN_STATUS_BAD_PARAM_SIZE_INSUFFICIENT : status;
}

DNN_CALL(cudnnLongFFTCausalConv1dForward, CUstream stream, const void *x, const void *w,
	void *y, int batch, int dim, int steps, int taps, int type, void *workspace,
	size_t workspace_bytes, void *reserve, size_t reserve_bytes)
{
	int status = long_status(batch, dim, steps, taps, type, reserve, reserve_bytes);

	(void)workspace;
	(void)workspace_bytes;
	if (!x || !w || !y)
		return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
	if (status)
		return status;
	return submit(stream, &(struct causal_job){.kind = LONG_FORWARD,
				      .s = {batch, dim, steps, taps, true},
				      .type = type,
				      .x = x,
				      .w = w,
				      .to = y,
				      .reserve = reserve});
}

DNN_CALL(cudnnLongFFTCausalConv1dBackward, CUstream stream, const void *dy, void *dx, void *dw,
	int batch, int dim, int steps, int taps, int type, void *workspace,
	size_t workspace_bytes, void *reserve, size_t reserve_bytes)
{
	int status = long_status(batch, dim, steps, taps, type, reserve, reserve_bytes);

	(void)workspace;
	(void)workspace_bytes;
	if (!dy || !dx || !dw)
		return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
	if (status)
		return status;
	return submit(stream, &(struct causal_job){.kind = LONG_BACK,
				      .s = {batch, dim, steps, taps, true},
				      .type = type,
				      .dy = dy,
				      .dx = dx,
				      .dw = dw,
				      .reserve = reserve});
}
