/* SPDX-License-Identifier: Apache-2.0
 *
 * Recurrent networks by the calls that only cuDNN 8 has, with a tensor for each step: an LSTM
 * of two layers against plain loops, and the search for its algorithms.
 */
#include "tests/cudnn/recur.h"

static struct network n = {.name = "LSTM by steps",
	.cell = CUDNN_LSTM,
	.layers = 2,
	.directions = 1,
	.input = 2,
	.hidden = 3,
	.projected = 3,
	.bias = CUDNN_RNN_DOUBLE_BIAS,
	.type = CUDNN_DATA_FLOAT,
	.states = true,
	.tolerance = 2e-3,
	.lengths = {3, 2, 1}};

enum {
	IN = 2,
	HIDDEN = 3,
	LAYERS = 2,
	ROWS = 6 /* of all steps */,
	STATES = LAYERS * N * HIDDEN
};

static cudnnRNNDescriptor_t rnn;
static cudnnTensorDescriptor_t x_desc[T], y_desc[T], state;
static cudnnFilterDescriptor_t w_desc;
static void *x, *y, *dx, *dy, *hx, *cx, *hy, *cy, *dhx, *dcx, *dhy, *dcy, *w, *dw;
static void *workspace, *reserve;
static size_t size, work_size, reserve_size;

static cudnnTensorDescriptor_t tensor_of(int a, int b, int c)
{
	const int dim[] = {a, b, c}, stride[] = {b * c, c, 1};
	cudnnTensorDescriptor_t d;

	DNN(cudnnCreateTensorDescriptor(&d));
	DNN(cudnnSetTensorNdDescriptor(d, CUDNN_DATA_FLOAT, 3, dim, stride));
	return d;
}

/* False: not supported, as by an agent that has cuDNN 9 alone. */
static bool describe(void)
{
	cudnnDropoutDescriptor_t dropout;
	int dim[] = {1, 1, 1}, status;

	DNN(cudnnCreateDropoutDescriptor(&dropout));
	DNN(cudnnSetDropoutDescriptor(dropout, handle, 0, NULL, 0, 0));
	DNN(cudnnCreateRNNDescriptor(&rnn));
	DNN(cudnnSetRNNDescriptor_v6(handle, rnn, HIDDEN, LAYERS, dropout, CUDNN_LINEAR_INPUT,
		CUDNN_UNIDIRECTIONAL, CUDNN_LSTM, CUDNN_RNN_ALGO_STANDARD, CUDNN_DATA_FLOAT));
	for (int t = 0; t < T; t++) {
		x_desc[t] = tensor_of(N - t, IN, 1);
		y_desc[t] = tensor_of(N - t, HIDDEN, 1);
	}
	state = tensor_of(LAYERS, N, HIDDEN);
	status = (int)cudnnGetRNNParamsSize(handle, rnn, x_desc[0], &size, CUDNN_DATA_FLOAT);
	if (not_supported(status))
		return false;
	DNN(status);
	dim[0] = (int)(size / sizeof(float));
	DNN(cudnnCreateFilterDescriptor(&w_desc));
	DNN(cudnnSetFilterNdDescriptor(w_desc, CUDNN_DATA_FLOAT, CUDNN_TENSOR_NCHW, 3, dim));
	DNN(cudnnGetRNNWorkspaceSize(handle, rnn, T, x_desc, &work_size));
	DNN(cudnnGetRNNTrainingReserveSize(handle, rnn, T, x_desc, &reserve_size));
	return true;
}

/* One step after the other, of each as many sequences as there are yet. */
static void pack(const double *from, int wide, float *to)
{
	for (int t = 0; t < T; t++)
		for (int s = 0; s < N - t; s++)
			for (int i = 0; i < wide; i++)
				*to++ = (float)from[(t * N + s) * wide + i];
}

static void *packed(const double *from, int wide)
{
	float host[MOST_VALUES];
	void *at = device_new(sizeof(float) * (size_t)(ROWS * wide));

	pack(from, wide, host);
	to_device(at, host, sizeof(float) * (size_t)(ROWS * wide));
	return at;
}

static void packed_check(const void *device, const double *from, int wide, const char *what)
{
	float host[MOST_VALUES];

	pack(from, wide, host);
	compare(device, host, CUDNN_DATA_FLOAT, (size_t)(ROWS * wide), n.tolerance, what);
}

static void *states(const double *from)
{
	float host[STATES] = {0};
	void *at = device_new(sizeof(host));

	for (int i = 0; from && i < STATES; i++)
		host[i] = (float)from[i];
	to_device(at, host, sizeof(host));
	return at;
}

static void states_check(const void *device, const double *from, const char *what)
{
	float host[STATES];

	for (int i = 0; i < STATES; i++)
		host[i] = (float)from[i];
	compare(device, host, CUDNN_DATA_FLOAT, STATES, n.tolerance, what);
}

/* Puts weights, or checks that they are the loops' gradients. */
static void weights(char *device, bool check)
{
	cudnnFilterDescriptor_t place;

	DNN(cudnnCreateFilterDescriptor(&place));
	for (int layer = 0; layer < LAYERS; layer++)
		for (int i = 0; i < 16; i++) {
			double *values = i < 8 ? n.w[layer][i] : n.b[layer][i - 8];
			int type, format, count, dim[3];
			float host[MOST_MATRIX];
			void *at;

			if (i < 8)
				DNN(cudnnGetRNNLinLayerMatrixParams(handle, rnn, layer,
					x_desc[0], w_desc, device, i, place, &at));
			else
				DNN(cudnnGetRNNLinLayerBiasParams(handle, rnn, layer, x_desc[0],
					w_desc, device, i - 8, place, &at));
			DNN(cudnnGetFilterNdDescriptor(
				place, 3, (void *)&type, (void *)&format, &count, dim));
			count = dim[0] * dim[1] * dim[2];
			if (count !=
				(i >= 8 ? HIDDEN : HIDDEN * (layer || i >= 4 ? HIDDEN : IN)))
				DIE("layer %d, %d has %d weights", layer, i, count);
			for (int j = 0; j < count; j++) {
				if (!check)
					values[j] = some_number() / 2;
				host[j] =
					(float)(check ? difference(&n, &values[j]) : values[j]);
			}
			if (check)
				compare(at, host, CUDNN_DATA_FLOAT, (size_t)count, n.tolerance,
					"gradient of weights");
			else
				to_device(at, host, sizeof(float) * (size_t)count);
		}
	DNN(cudnnDestroyFilterDescriptor(place));
}

static void prepare(void)
{
	double *const arrays[] = {n.x, n.dy, n.hx, n.cx, n.dhy, n.dcy};

	for (int i = 0; i < 6; i++)
		for (int j = 0; j < MOST_VALUES; j++)
			arrays[i][j] = some_number();
	w = device_new(size);
	dw = device_new(size);
	workspace = device_new(work_size);
	reserve = device_new(reserve_size);
	weights(w, false);
	x = packed(n.x, IN);
	dx = packed(n.x, IN);
	y = packed(n.y, HIDDEN);
	dy = packed(n.dy, HIDDEN);
	hx = states(n.hx);
	cx = states(n.cx);
	dhy = states(n.dhy);
	dcy = states(n.dcy);
	hy = states(NULL);
	cy = states(NULL);
	dhx = states(NULL);
	dcx = states(NULL);
}

static void results_check(const char *what)
{
	packed_check(y, n.y, HIDDEN, what);
	states_check(hy, n.hy, "the last h");
	states_check(cy, n.cy, "the last c");
}

static void gradients_check(void)
{
	double want[MOST_VALUES];

	for (int i = 0; i < T * N * IN; i++)
		want[i] = difference(&n, &n.x[i]);
	packed_check(dx, want, IN, "gradient of x");
	for (int i = 0; i < STATES; i++)
		want[i] = difference(&n, &n.hx[i]);
	states_check(dhx, want, "gradient of h");
	for (int i = 0; i < STATES; i++)
		want[i] = difference(&n, &n.cx[i]);
	states_check(dcx, want, "gradient of c");
	weights(dw, true);
}

static void train(void)
{
	forward(&n);
	DNN(cudnnRNNForwardInference(handle, rnn, T, x_desc, x, state, hx, state, cx, w_desc, w,
		y_desc, y, state, hy, state, cy, workspace, work_size));
	results_check("inference");
	CUDA(cuMemsetD8((CUdeviceptr)(uintptr_t)y, 0, sizeof(float) * ROWS * HIDDEN));
	DNN(cudnnRNNForwardTraining(handle, rnn, T, x_desc, x, state, hx, state, cx, w_desc, w,
		y_desc, y, state, hy, state, cy, workspace, work_size, reserve, reserve_size));
	results_check("result");
	DNN(cudnnRNNBackwardData(handle, rnn, T, y_desc, y, y_desc, dy, state, dhy, state, dcy,
		w_desc, w, state, hx, state, cx, x_desc, dx, state, dhx, state, dcx, workspace,
		work_size, reserve, reserve_size));
	CUDA(cuMemsetD8((CUdeviceptr)(uintptr_t)dw, 0, size));
	DNN(cudnnRNNBackwardWeights(handle, rnn, T, x_desc, x, state, hx, y_desc, y, workspace,
		work_size, w_desc, dw, reserve, reserve_size));
	gradients_check();
}

/* What a search found: those that went first, the fastest of them in front. */
static void found_check(cudnnAlgorithmPerformance_t *found, int count, const char *what)
{
	cudnnAlgorithmDescriptor_t descriptor;
	cudnnAlgorithm_t algorithm;
	float before = 0, time;
	cudnnStatus_t status;
	size_t memory;

	if (count < 1)
		DIE("%s: nothing found", what);
	for (int i = 0; i < count; i++) {
		DNN(cudnnGetAlgorithmPerformance(
			found[i], &descriptor, &status, &time, &memory));
		DNN(cudnnGetAlgorithmDescriptor(descriptor, &algorithm));
		if (!i && status)
			DIE("%s: no algorithm does it: %d", what, (int)status);
		if (algorithm.algo < 0 || algorithm.algo >= CUDNN_RNN_ALGO_COUNT ||
			(!status && time < before))
			DIE("%s: algorithm %d takes %g ms", what, algorithm.algo, (double)time);
		before = status ? before : time;
	}
	/* The first will do. */
	DNN(cudnnGetAlgorithmPerformance(found[0], &descriptor, NULL, NULL, NULL));
	DNN(cudnnSetRNNAlgorithmDescriptor(handle, rnn, descriptor));
}

static void search(void)
{
	cudnnAlgorithmPerformance_t found[CUDNN_RNN_ALGO_COUNT];
	int most, count;

	DNN(cudnnGetRNNForwardInferenceAlgorithmMaxCount(handle, rnn, &most));
	if (most < 1 || most > CUDNN_RNN_ALGO_COUNT)
		DIE("at most %d algorithms", most);
	DNN(cudnnCreateAlgorithmPerformance(found, most));
	DNN(cudnnFindRNNForwardInferenceAlgorithmEx(handle, rnn, T, x_desc, x, state, hx, state,
		cx, w_desc, w, y_desc, y, state, hy, state, cy, 1, most, &count, found,
		workspace, work_size));
	found_check(found, count, "inference");
	DNN(cudnnGetRNNForwardTrainingAlgorithmMaxCount(handle, rnn, &most));
	DNN(cudnnFindRNNForwardTrainingAlgorithmEx(handle, rnn, T, x_desc, x, state, hx, state,
		cx, w_desc, w, y_desc, y, state, hy, state, cy, 1, most, &count, found,
		workspace, work_size, reserve, reserve_size));
	found_check(found, count, "training");
	DNN(cudnnGetRNNBackwardDataAlgorithmMaxCount(handle, rnn, &most));
	DNN(cudnnFindRNNBackwardDataAlgorithmEx(handle, rnn, T, y_desc, y, y_desc, dy, state,
		dhy, state, dcy, w_desc, w, state, hx, state, cx, x_desc, dx, state, dhx, state,
		dcx, 1, most, &count, found, workspace, work_size, reserve, reserve_size));
	found_check(found, count, "back");
	DNN(cudnnGetRNNBackwardWeightsAlgorithmMaxCount(handle, rnn, &most));
	DNN(cudnnFindRNNBackwardWeightsAlgorithmEx(handle, rnn, T, x_desc, x, state, hx, y_desc,
		y, 1, most, &count, found, workspace, work_size, w_desc, dw, reserve,
		reserve_size));
	found_check(found, count, "weights");
	DNN(cudnnDestroyAlgorithmPerformance(found, most));
}

int main(void)
{
	begin();
	if (!describe()) {
		skipped("networks by the calls of cuDNN 8");
		return end();
	}
	prepare();
	train();
	search();
	train();
	return end();
}
