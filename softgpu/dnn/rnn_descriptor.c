/* SPDX-License-Identifier: Apache-2.0
 *
 * RNN and RNN data descriptors, and where a network's weights lie: matrices of all layers one
 * after the other, then biases.
 */
#include <string.h>

#include "softgpu/dnn/rnn.h"

/* More than any network has: keeps sums of products in 64 bits. */
#define MOST_UNITS 65536
#define MOST_LAYERS 1024

/* ---- networks ---- */

DNN_CALL(cudnnCreateRNNDescriptor, struct dnn_rnn **rnn)
{
	if (!rnn)
		return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
	*rnn = calloc(1, sizeof(**rnn));
	return *rnn ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_ALLOC_FAILED;
}

DNN_CALL(cudnnDestroyRNNDescriptor, struct dnn_rnn *rnn)
{
	free(rnn);
	return CUDNN_STATUS_SUCCESS;
}

DNN_CALL(cudnnSetRNNDescriptor_v8, struct dnn_rnn *rnn, int algo, int cell, int bias,
	int directions, int input, int type, int precision, int math, int32_t input_size,
	int32_t hidden, int32_t projected, int32_t layers, const struct dnn_dropout *dropout,
	uint32_t flags)
{
	(void)precision;
	(void)math;
	(void)flags; /* padding travels with the data's layout */
	if (!rnn)
		return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
	if (algo < 0 || algo > 3 || cell < RNN_RELU || cell > RNN_GRU || bias < RNN_NO_BIAS ||
		bias > RNN_RECURRENT_BIAS || directions < 0 || directions > 1 || input < 0 ||
		input > 1 || input_size < 1 || hidden < 1 || projected < 0 ||
		projected > hidden || layers < 1)
		return CUDNN_STATUS_BAD_PARAM;
	if (type != CUDNN_DATA_FLOAT && type != CUDNN_DATA_DOUBLE && type != CUDNN_DATA_HALF)
		return CUDNN_STATUS_NOT_SUPPORTED_DATA_TYPE;
	if (!projected)
		projected = hidden;
	if ((projected < hidden && cell != RNN_LSTM) || (input && input_size != hidden))
		return CUDNN_STATUS_BAD_PARAM;
	if (input_size > MOST_UNITS || hidden > MOST_UNITS || layers > MOST_LAYERS)
		return CUDNN_STATUS_NOT_SUPPORTED;
	*rnn = (struct dnn_rnn){.cell = cell,
		.bias = bias,
		.skip = input,
		.type = type,
		.directions = 1 + directions,
		.input = input_size,
		.hidden = hidden,
		.projected = projected,
		.layers = layers,
		.dropout = dropout};
	return CUDNN_STATUS_SUCCESS;
}

DNN_CALL(cudnnRNNSetClip_v8, struct dnn_rnn *rnn, int mode, int nan, double low, double high)
{
	if (!rnn)
		return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
	if (mode < 0 || mode > 1 || nan < 0 || nan > 1 || !(low <= high))
		return CUDNN_STATUS_BAD_PARAM;
	rnn->clips = mode == 1;
	rnn->low = low;
	rnn->high = high;
	return CUDNN_STATUS_SUCCESS;
}

DNN_CALL(cudnnRNNSetClip_v9, struct dnn_rnn *rnn, int mode, double low, double high)
{
	return cudnnRNNSetClip_v8(rnn, mode, 0, low, high);
}

/* There is nothing to build. */
DNN_CALL(cudnnBuildRNNDynamic, struct dnn_handle *handle, const struct dnn_rnn *rnn, int batch)
{
	if (!handle || !rnn)
		return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
	return rnn->layers && batch > 0 ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_BAD_PARAM;
}

/* ---- weights ---- */

static bool has_bias(const struct dnn_rnn *of, bool recurrent)
{
	return of->bias == RNN_BOTH_BIASES ||
	       of->bias == (recurrent ? RNN_RECURRENT_BIAS : RNN_INPUT_BIAS);
}

int dnn_rnn_gates(const struct dnn_rnn *of)
{
	return of->cell == RNN_LSTM ? 4 : of->cell == RNN_GRU ? 3 : 1;
}

/* A layer's matrices from *at on; *at is moved behind them. */
static void matrices(const struct dnn_rnn *of, int layer, struct dnn_rnn_layer *to, int64_t *at)
{
	int64_t n = of->hidden;

	to->in = layer ? (int64_t)of->directions * of->projected : of->input;
	for (int g = 0; g < dnn_rnn_gates(of); g++) {
		to->w[g] = layer || !of->skip ? *at : -1;
		*at += to->w[g] < 0 ? 0 : n * to->in;
	}
	for (int g = 0; g < dnn_rnn_gates(of); g++) {
		to->r[g] = *at;
		*at += n * of->projected;
	}
	to->project = of->projected < of->hidden ? *at : -1;
	*at += to->project < 0 ? 0 : n * of->projected;
}

static void biases(const struct dnn_rnn *of, struct dnn_rnn_layer *to, int64_t *at)
{
	for (int recurrent = 0; recurrent < 2; recurrent++)
		for (int g = 0; g < dnn_rnn_gates(of); g++) {
			bool has = has_bias(of, recurrent);

			(recurrent ? to->rb : to->wb)[g] = has ? *at : -1;
			*at += has ? of->hidden : 0;
		}
}

int64_t dnn_rnn_layer(
	const struct dnn_rnn *of, int layer, int direction, struct dnn_rnn_layer *found)
{
	struct dnn_rnn_layer one;
	int64_t at = 0;

	for (int pass = 0; pass < 2; pass++)
		for (int i = 0; i < of->layers * of->directions; i++) {
			if (pass)
				biases(of, &one, &at);
			else
				matrices(of, i / of->directions, &one, &at);
			if (!found || i != layer * of->directions + direction)
				continue;
			if (pass) {
				memcpy(found->wb, one.wb, sizeof(one.wb));
				memcpy(found->rb, one.rb, sizeof(one.rb));
			} else {
				*found = one;
			}
		}
	return at;
}

DNN_CALL(cudnnGetRNNWeightSpaceSize, struct dnn_handle *handle, const struct dnn_rnn *rnn,
	size_t *size)
{
	if (!handle || !rnn || !size)
		return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
	if (!rnn->layers)
		return CUDNN_STATUS_BAD_PARAM;
	*size = (size_t)dnn_rnn_layer(rnn, 0, 0, NULL) * dnn_size(rnn->type);
	return CUDNN_STATUS_SUCCESS;
}

/* An array of weights as a tensor of one matrix; nowhere: its address is NULL. */
static void weight_place(const struct dnn_rnn *rnn, const void *weights, int64_t at,
	int64_t rows, int64_t columns, struct dnn_tensor *tensor, void **address)
{
	*address = NULL;
	if (at < 0)
		return;
	*tensor = (struct dnn_tensor){.type = rnn->type, .count = 3, .dim = {1, rows, columns}};
	dnn_packed(tensor, false);
	*address = (char *)(uintptr_t)weights + at * dnn_size(rnn->type);
}

DNN_CALL(cudnnGetRNNWeightParams, struct dnn_handle *handle, const struct dnn_rnn *rnn,
	int32_t layer, size_t bytes, const void *weights, int32_t id, struct dnn_tensor *matrix,
	void **matrix_at, struct dnn_tensor *bias, void **bias_at)
{
	struct dnn_rnn_layer l;
	int gates, g;

	if (!handle || !rnn || !matrix || !matrix_at || !bias || !bias_at)
		return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
	if (!rnn->layers || layer < 0 || layer >= rnn->layers * rnn->directions)
		return CUDNN_STATUS_BAD_PARAM;
	if (bytes < (size_t)dnn_rnn_layer(
			    rnn, layer / rnn->directions, layer % rnn->directions, &l) *
			    dnn_size(rnn->type))
		return CUDNN_STATUS_BAD_PARAM_SIZE_INSUFFICIENT;
	gates = dnn_rnn_gates(rnn);
	if (id < 0 || id > 2 * gates || (id == 2 * gates && rnn->cell != RNN_LSTM))
		return CUDNN_STATUS_BAD_PARAM;
	*bias_at = NULL;
	if (id == 2 * gates) {
		weight_place(rnn, weights, l.project, rnn->projected, rnn->hidden, matrix,
			matrix_at);
		return CUDNN_STATUS_SUCCESS;
	}
	g = id % gates;
	weight_place(rnn, weights, id < gates ? l.w[g] : l.r[g], rnn->hidden,
		id < gates ? l.in : rnn->projected, matrix, matrix_at);
	weight_place(
		rnn, weights, id < gates ? l.wb[g] : l.rb[g], rnn->hidden, 1, bias, bias_at);
	return CUDNN_STATUS_SUCCESS;
}

/* ---- data ---- */

DNN_CALL(cudnnCreateRNNDataDescriptor, struct dnn_rnn_data **data)
{
	if (!data)
		return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
	*data = calloc(1, sizeof(**data));
	return *data ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_ALLOC_FAILED;
}

DNN_CALL(cudnnDestroyRNNDataDescriptor, struct dnn_rnn_data *data)
{
	if (data)
		free(data->lengths);
	free(data);
	return CUDNN_STATUS_SUCCESS;
}

DNN_CALL(cudnnSetRNNDataDescriptor, struct dnn_rnn_data *data, int type, int layout,
	int longest, int batch, int vector, const int *lengths, const void *fill)
{
	int *copy;

	if (!data || !lengths)
		return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
	if (type != CUDNN_DATA_FLOAT && type != CUDNN_DATA_DOUBLE && type != CUDNN_DATA_HALF)
		return CUDNN_STATUS_NOT_SUPPORTED_DATA_TYPE;
	if (layout < 0 || layout > 2 || longest < 1 || batch < 1 || vector < 1)
		return CUDNN_STATUS_BAD_PARAM;
	for (int i = 0; i < batch; i++)
		if (lengths[i] < 0 || lengths[i] > longest ||
			(layout == 1 && i && lengths[i] > lengths[i - 1])) /* packed */
			return CUDNN_STATUS_BAD_PARAM;
	copy = malloc(sizeof(*copy) * (size_t)batch);
	if (!copy)
		return CUDNN_STATUS_ALLOC_FAILED;
	memcpy(copy, lengths, sizeof(*copy) * (size_t)batch);
	free(data->lengths);
	*data = (struct dnn_rnn_data){.type = type,
		.layout = layout,
		.longest = longest,
		.batch = batch,
		.vector = vector,
		.fills = fill,
		.fill = fill ? dnn_get(fill, type, 0) : 0,
		.lengths = copy};
	return CUDNN_STATUS_SUCCESS;
}
