/* SPDX-License-Identifier: Apache-2.0
 *
 * Recurrent networks as cuDNN 8 still had them: a tensor descriptor for each step, whose first
 * size says how many sequences there are yet. They are those of today, packed.
 */
#include <string.h>

#include "softgpu/dnn/rnn.h"

/* ---- descriptors ---- */

/* What a vector of the input has is known when data comes. */
DNN_CALL(cudnnSetRNNDescriptor_v6, struct dnn_handle *handle, struct dnn_rnn *rnn, int hidden,
	int layers, const struct dnn_dropout *dropout, int input, int directions, int cell,
	int algo, int type)
{
	int bias = rnn && rnn->layers ? rnn->bias : RNN_BOTH_BIASES;

	if (!handle)
		return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
	return cudnnSetRNNDescriptor_v8(rnn, algo, cell, bias, directions, input, type, type, 0,
		hidden, hidden, hidden, layers, dropout, 0);
}

DNN_CALL(cudnnSetRNNMatrixMathType, struct dnn_rnn *rnn, int math)
{
	if (!rnn)
		return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
	return math >= 0 && math < CUDNN_MATH_COUNT ? CUDNN_STATUS_SUCCESS
						    : CUDNN_STATUS_BAD_PARAM;
}

DNN_CALL(cudnnSetRNNBiasMode, struct dnn_rnn *rnn, int bias)
{
	if (!rnn)
		return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
	if (bias < RNN_NO_BIAS || bias > RNN_RECURRENT_BIAS)
		return CUDNN_STATUS_BAD_PARAM;
	rnn->bias = bias;
	return CUDNN_STATUS_SUCCESS;
}

/* ---- data of steps ---- */

/* The network with the input that it has here. */
static struct dnn_rnn network(const struct dnn_rnn *rnn, const struct dnn_tensor *x)
{
	struct dnn_rnn n = *rnn;

	n.input = x->count >= 2 ? (int)x->dim[1] : 0;
	n.type = x->type;
	return n;
}

/* The steps as data of today; its lengths are the caller's to free. */
static int steps_data(
	int steps, const struct dnn_tensor *const *each, struct dnn_rnn_data *data)
{
	int64_t batch, before;

	if (!each || !each[0])
		return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
	before = batch = each[0]->dim[0];
	if (steps < 1 || !dnn_tensor_right(each[0]) || each[0]->count != 3 ||
		batch > INT32_MAX || each[0]->dim[1] > INT32_MAX)
		return CUDNN_STATUS_BAD_PARAM;
	*data = (struct dnn_rnn_data){.type = each[0]->type,
		.layout = 1,
		.longest = steps,
		.batch = (int)batch,
		.vector = (int)each[0]->dim[1],
		.lengths = calloc((size_t)batch, sizeof(int))};
	if (!data->lengths)
		return CUDNN_STATUS_ALLOC_FAILED;
	for (int t = 0; t < steps; t++) {
		if (!each[t] || each[t]->count != 3 || each[t]->dim[0] < 1 ||
			each[t]->dim[0] > before || each[t]->dim[1] != each[0]->dim[1] ||
			each[t]->type != each[0]->type) {
			free(data->lengths);
			return CUDNN_STATUS_BAD_PARAM;
		}
		before = each[t]->dim[0];
		for (int64_t s = 0; s < before; s++)
			data->lengths[s] = t + 1;
	}
	return CUDNN_STATUS_SUCCESS;
}

static int sizes(struct dnn_handle *handle, const struct dnn_rnn *rnn, int steps,
	const struct dnn_tensor *const *x, size_t *workspace, size_t *reserve)
{
	struct dnn_rnn_data data;
	struct dnn_rnn n;
	int status;

	if (!rnn)
		return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
	status = steps_data(steps, x, &data);
	if (status)
		return status;
	n = network(rnn, x[0]);
	status = cudnnGetRNNTempSpaceSizes(handle, &n, 1, &data, workspace, reserve);
	free(data.lengths);
	return status;
}

DNN_CALL(cudnnGetRNNWorkspaceSize, struct dnn_handle *handle, const struct dnn_rnn *rnn,
	int steps, const struct dnn_tensor *const *x, size_t *size)
{
	return size ? sizes(handle, rnn, steps, x, size, NULL)
		    : CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
}

DNN_CALL(cudnnGetRNNTrainingReserveSize, struct dnn_handle *handle, const struct dnn_rnn *rnn,
	int steps, const struct dnn_tensor *const *x, size_t *size)
{
	return size ? sizes(handle, rnn, steps, x, NULL, size)
		    : CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
}

/* ---- weights ---- */

DNN_CALL(cudnnGetRNNParamsSize, struct dnn_handle *handle, const struct dnn_rnn *rnn,
	const struct dnn_tensor *x, size_t *size, int type)
{
	struct dnn_rnn n;

	if (!rnn || !x)
		return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
	n = network(rnn, x);
	n.type = type;
	return n.input < 1 ? CUDNN_STATUS_BAD_PARAM
			   : cudnnGetRNNWeightSpaceSize(handle, &n, size);
}

static int weight_place(struct dnn_handle *handle, const struct dnn_rnn *rnn, int layer,
	const struct dnn_tensor *x, const struct dnn_filter *w, const void *weights, int id,
	bool bias, struct dnn_filter *place, void **address)
{
	struct dnn_tensor tensor[2] = {{0}};
	void *at[2] = {NULL, NULL};
	struct dnn_tensor all;
	struct dnn_rnn n;
	int status;

	if (!rnn || !x || !w || !place || !address)
		return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
	all = dnn_filter_tensor(w);
	n = network(rnn, x);
	if (n.input < 1 || !all.count)
		return CUDNN_STATUS_BAD_PARAM;
	status = cudnnGetRNNWeightParams(handle, &n, layer, dnn_bytes(&all), weights, id,
		&tensor[0], &at[0], &tensor[1], &at[1]);
	*address = at[bias];
	if (!status && at[bias])
		*place = (struct dnn_filter){n.type, CUDNN_TENSOR_NCHW, 3,
			{1, (int)tensor[bias].dim[1], (int)tensor[bias].dim[2]}};
	return status;
}

DNN_CALL(cudnnGetRNNLinLayerMatrixParams, struct dnn_handle *handle, const struct dnn_rnn *rnn,
	int layer, const struct dnn_tensor *x, const struct dnn_filter *w, const void *weights,
	int id, struct dnn_filter *place, void **address)
{
	return weight_place(handle, rnn, layer, x, w, weights, id, false, place, address);
}

DNN_CALL(cudnnGetRNNLinLayerBiasParams, struct dnn_handle *handle, const struct dnn_rnn *rnn,
	int layer, const struct dnn_tensor *x, const struct dnn_filter *w, const void *weights,
	int id, struct dnn_filter *place, void **address)
{
	return weight_place(handle, rnn, layer, x, w, weights, id, true, place, address);
}

/* ---- the calls ---- */

/* The data of a call: x and y. */
struct both {
	struct dnn_rnn_data x, y;
	struct dnn_rnn of;
	size_t weights;
};

static int both_of(const struct dnn_rnn *rnn, int steps, const struct dnn_tensor *const *x,
	const struct dnn_tensor *const *y, const struct dnn_filter *w, struct both *b)
{
	struct dnn_tensor all;
	int status;

	if (!rnn || !w)
		return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
	all = dnn_filter_tensor(w);
	if (!rnn->layers || !all.count)
		return CUDNN_STATUS_BAD_PARAM;
	b->weights = dnn_bytes(&all);
	status = steps_data(steps, x, &b->x);
	if (status)
		return status;
	status = steps_data(steps, y, &b->y);
	if (status)
		free(b->x.lengths);
	else
		b->of = network(rnn, x[0]);
	return status;
}

static int both_end(struct both *b, int status)
{
	free(b->x.lengths);
	free(b->y.lengths);
	return status;
}

static int forward(struct dnn_handle *handle, const struct dnn_rnn *rnn, int steps,
	const struct dnn_tensor *const *xd, const void *x, const struct dnn_tensor *hd,
	const void *hx, const struct dnn_tensor *cd, const void *cx,
	const struct dnn_filter *wd, const void *w, const struct dnn_tensor *const *yd, void *y,
	const struct dnn_tensor *hyd, void *hy, const struct dnn_tensor *cyd, void *cy,
	size_t bytes, void *reserve)
{
	struct both b;
	int status = both_of(rnn, steps, xd, yd, wd, &b);

	if (status)
		return status;
	return both_end(&b, cudnnRNNForward(handle, &b.of, reserve != NULL, NULL, &b.x, x, &b.y,
				    y, hd ? hd : hyd, hx, hy, cd ? cd : cyd, cx, cy, b.weights,
				    w, 0, NULL, bytes, reserve));
}

DNN_CALL(cudnnRNNForwardInference, struct dnn_handle *handle, const struct dnn_rnn *rnn,
	int steps, const struct dnn_tensor *const *xd, const void *x,
	const struct dnn_tensor *hd, const void *hx, const struct dnn_tensor *cd,
	const void *cx, const struct dnn_filter *wd, const void *w,
	const struct dnn_tensor *const *yd, void *y, const struct dnn_tensor *hyd, void *hy,
	const struct dnn_tensor *cyd, void *cy, void *workspace, size_t workspace_bytes)
{
	(void)workspace;
	(void)workspace_bytes;
	return forward(handle, rnn, steps, xd, x, hd, hx, cd, cx, wd, w, yd, y, hyd, hy, cyd,
		cy, 0, NULL);
}

DNN_CALL(cudnnRNNForwardTraining, struct dnn_handle *handle, const struct dnn_rnn *rnn,
	int steps, const struct dnn_tensor *const *xd, const void *x,
	const struct dnn_tensor *hd, const void *hx, const struct dnn_tensor *cd,
	const void *cx, const struct dnn_filter *wd, const void *w,
	const struct dnn_tensor *const *yd, void *y, const struct dnn_tensor *hyd, void *hy,
	const struct dnn_tensor *cyd, void *cy, void *workspace, size_t workspace_bytes,
	void *reserve, size_t bytes)
{
	(void)workspace;
	(void)workspace_bytes;
	if (!reserve)
		return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
	return forward(handle, rnn, steps, xd, x, hd, hx, cd, cx, wd, w, yd, y, hyd, hy, cyd,
		cy, bytes, reserve);
}

DNN_CALL(cudnnRNNBackwardData, struct dnn_handle *handle, const struct dnn_rnn *rnn, int steps,
	const struct dnn_tensor *const *yd, const void *y, const struct dnn_tensor *const *dyd,
	const void *dy, const struct dnn_tensor *dhyd, const void *dhy,
	const struct dnn_tensor *dcyd, const void *dcy, const struct dnn_filter *wd,
	const void *w, const struct dnn_tensor *hd, const void *hx, const struct dnn_tensor *cd,
	const void *cx, const struct dnn_tensor *const *dxd, void *dx,
	const struct dnn_tensor *dhxd, void *dhx, const struct dnn_tensor *dcxd, void *dcx,
	void *workspace, size_t workspace_bytes, void *reserve, size_t bytes)
{
	const struct dnn_tensor *h = hd ? hd : dhxd ? dhxd : dhyd;
	const struct dnn_tensor *c = cd ? cd : dcxd ? dcxd : dcyd;
	struct both b;
	int status = both_of(rnn, steps, dxd, yd, wd, &b);

	(void)workspace;
	(void)workspace_bytes;
	(void)dyd; /* as y */
	if (status)
		return status;
	return both_end(
		&b, cudnnRNNBackwardData_v8(handle, &b.of, NULL, &b.y, y, dy, &b.x, dx, h, hx,
			    dhy, dhx, c, cx, dcy, dcx, b.weights, w, 0, NULL, bytes, reserve));
}

DNN_CALL(cudnnRNNBackwardWeights, struct dnn_handle *handle, const struct dnn_rnn *rnn,
	int steps, const struct dnn_tensor *const *xd, const void *x,
	const struct dnn_tensor *hd, const void *hx, const struct dnn_tensor *const *yd,
	const void *y, const void *workspace, size_t workspace_bytes,
	const struct dnn_filter *dwd, void *dw, void *reserve, size_t bytes)
{
	struct both b;
	int status = both_of(rnn, steps, xd, yd, dwd, &b);

	(void)workspace;
	(void)workspace_bytes;
	if (status)
		return status;
	return both_end(&b, cudnnRNNBackwardWeights_v8(handle, &b.of, 0, NULL, &b.x, x, hd, hx,
				    &b.y, y, b.weights, dw, 0, NULL, bytes, reserve));
}
