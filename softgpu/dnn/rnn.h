/* SPDX-License-Identifier: Apache-2.0
 *
 * Recurrent networks: descriptors and where weights lie (rnn_descriptor.c), the calls (rnn.c),
 * and what is computed (recur.c, recur_back.c).
 */
#ifndef VCUDA_SOFTGPU_DNN_RNN_H
#define VCUDA_SOFTGPU_DNN_RNN_H

#include <math.h>

#include "softgpu/dnn/dnn.h"

enum { RNN_RELU, RNN_TANH, RNN_LSTM, RNN_GRU };
enum { RNN_NO_BIAS, RNN_INPUT_BIAS, RNN_BOTH_BIASES, RNN_RECURRENT_BIAS };
#define RNN_GATES 4

/* An RNN descriptor. */
struct dnn_rnn {
	int cell, bias, skip, type;
	int directions, input, hidden, projected,
		layers; /* projected: hidden where it is not */
	bool clips;
	double low, high;
	const struct dnn_dropout *dropout; /* the program's; NULL: none */
};

/* An LSTM's cell: that of the step before as well as the new one. */
static inline double dnn_rnn_clipped(const struct dnn_rnn *of, double cell)
{
	return of->clips ? fmin(fmax(cell, of->low), of->high) : cell;
}

/* An RNN data descriptor. */
struct dnn_rnn_data {
	int type, layout, longest, batch, vector;
	bool fills;
	double fill;
	int *lengths; /* its own */
};

/* One layer of one direction; where in all weights; -1: it has no such. */
struct dnn_rnn_layer {
	int64_t in; /* elements of a vector that it reads */
	int64_t w[RNN_GATES], r[RNN_GATES], wb[RNN_GATES], rb[RNN_GATES], project;
};

/* The network in numbers: layers, and where in the memory of a call its parts are, in doubles.
 * Of each layer what it reads, [step][sequence][in], and of each of its directions a record for
 * each step and sequence, [step][sequence]. */
struct dnn_recur {
	const struct dnn_rnn *of;
	int64_t steps, batch;
	int gates;
	const int *lengths;
	const double *weights;
	double *memory;
	uint8_t *kept; /* by dropout, of each layer but the first; NULL: all */
};

/* A record: gates after their function; the cell; the output before its projection or, GRU,
 * what the reset gate is multiplied with; the output. Then gradients before the gates'
 * functions, for what is made of the input and of the last output; and of the output. */
struct dnn_rnn_record {
	double *gate, *cell, *inner, *out, *d_input, *d_last, *d_out;
};

int dnn_rnn_gates(const struct dnn_rnn *of);
/* The layer; elements that all weights have, where LAYER is NULL. */
int64_t dnn_rnn_layer(
	const struct dnn_rnn *of, int layer, int direction, struct dnn_rnn_layer *found);
/* Doubles of memory; -1: too many. */
int64_t dnn_recur_memory(const struct dnn_rnn *of, int64_t steps, int64_t batch);
/* Bytes of `kept`. */
int64_t dnn_recur_kept(const struct dnn_rnn *of, int64_t steps, int64_t batch);

double *dnn_recur_input(const struct dnn_recur *r, int layer);
struct dnn_rnn_record dnn_recur_record(
	const struct dnn_recur *r, int layer, int direction, int64_t step, int64_t sequence);
/* Which step a direction comes to as its AT-th, and the one before that; -1: none. */
int64_t dnn_recur_step(const struct dnn_recur *r, int direction, int64_t sequence, int64_t at);

/* Values are by step, sequence and element; states by layer and direction, sequence, element;
 * NULL: zeros, or not wanted. */
void dnn_recur(struct dnn_recur *r, const double *hx, const double *cx, double *y, double *hy,
	double *cy);
/* dx, and gradients in the records. */
void dnn_recur_back(struct dnn_recur *r, const double *hx, const double *cx, const double *dy,
	const double *dhy, const double *dcy, double *dx, double *dhx, double *dcx);
/* Adds up the weights' gradients from the records. */
void dnn_recur_weights(struct dnn_recur *r, const double *hx, double *dw);

/* The calls of today, which those of cuDNN 8 are made of. */
int cudnnSetRNNDescriptor_v8(struct dnn_rnn *rnn, int algo, int cell, int bias, int directions,
	int input, int type, int precision, int math, int32_t input_size, int32_t hidden,
	int32_t projected, int32_t layers, const struct dnn_dropout *dropout, uint32_t flags);
int cudnnGetRNNTempSpaceSizes(struct dnn_handle *handle, const struct dnn_rnn *rnn, int mode,
	const struct dnn_rnn_data *x, size_t *workspace, size_t *reserve);
int cudnnGetRNNWeightSpaceSize(
	struct dnn_handle *handle, const struct dnn_rnn *rnn, size_t *size);
int cudnnGetRNNWeightParams(struct dnn_handle *handle, const struct dnn_rnn *rnn, int32_t layer,
	size_t bytes, const void *weights, int32_t id, struct dnn_tensor *matrix,
	void **matrix_at, struct dnn_tensor *bias, void **bias_at);
int cudnnRNNForward(struct dnn_handle *handle, const struct dnn_rnn *of, int mode,
	const int32_t *lengths, const struct dnn_rnn_data *x, const void *x_at,
	const struct dnn_rnn_data *y, void *y_at, const struct dnn_tensor *h, const void *hx,
	void *hy, const struct dnn_tensor *c, const void *cx, void *cy, size_t weight_bytes,
	const void *weights, size_t workspace_bytes, void *workspace, size_t reserve_bytes,
	void *reserve);
int cudnnRNNBackwardData_v8(struct dnn_handle *handle, const struct dnn_rnn *of,
	const int32_t *lengths, const struct dnn_rnn_data *y, const void *y_at, const void *dy,
	const struct dnn_rnn_data *x, void *dx, const struct dnn_tensor *h, const void *hx,
	const void *dhy, void *dhx, const struct dnn_tensor *c, const void *cx, const void *dcy,
	void *dcx, size_t weight_bytes, const void *weights, size_t workspace_bytes,
	void *workspace, size_t reserve_bytes, void *reserve);
int cudnnRNNBackwardWeights_v8(struct dnn_handle *handle, const struct dnn_rnn *of, int add,
	const int32_t *lengths, const struct dnn_rnn_data *x, const void *x_at,
	const struct dnn_tensor *h, const void *hx, const struct dnn_rnn_data *y,
	const void *y_at, size_t weight_bytes, void *dweights, size_t workspace_bytes,
	void *workspace, size_t reserve_bytes, void *reserve);

#endif
