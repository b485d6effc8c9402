/* SPDX-License-Identifier: Apache-2.0
 *
 * Recurrent networks: an LSTM and a GRU of one layer, forward and back, against plain loops;
 * the gradients against differences of the loops' result.
 */
#include "tests/cudnn/check.h"

enum { T = 3, N = 2, IN = 4, HIDDEN = 5, MOST_GATES = 8 };

struct network {
	int mode, gates; /* matrices: half of them read x, half h */
	double w[MOST_GATES][HIDDEN][HIDDEN], b[MOST_GATES][HIDDEN];
	double x[T][N][IN], h[N][HIDDEN], c[N][HIDDEN];
	double y[T][N][HIDDEN], hy[N][HIDDEN], cy[N][HIDDEN];
};

static double sigmoid(double x)
{
	return 1 / (1 + exp(-x));
}

/* What gate I's two matrices make of x, and of h. */
static double from_x(const struct network *n, int gate, int t, int batch, int unit)
{
	double sum = n->b[gate][unit];

	for (int i = 0; i < IN; i++)
		sum += n->w[gate][unit][i] * n->x[t][batch][i];
	return sum;
}

static double from_h(
	const struct network *n, int gate, const double h[N][HIDDEN], int batch, int unit)
{
	double sum = n->b[gate][unit];

	for (int i = 0; i < HIDDEN; i++)
		sum += n->w[gate][unit][i] * h[batch][i];
	return sum;
}

/* One step of one unit: the new h; c is changed in place. */
static double step(const struct network *n, int t, int batch, int unit,
	const double h[N][HIDDEN], double *c)
{
	double gate[4] = {0}, x;
	int half = n->gates / 2;

	for (int g = 0; g < half; g++) {
		gate[g] = from_x(n, g, t, batch, unit);
		if (n->mode == CUDNN_LSTM || g < 2)
			gate[g] += from_h(n, g + half, h, batch, unit);
	}
	if (n->mode == CUDNN_LSTM) {
		/* Input, forget, new memory, output. */
		*c = sigmoid(gate[1]) * *c + sigmoid(gate[0]) * tanh(gate[2]);
		return sigmoid(gate[3]) * tanh(*c);
	}
	/* Reset, update, new memory. */
	x = tanh(gate[2] + sigmoid(gate[0]) * from_h(n, 5, h, batch, unit));
	return (1 - sigmoid(gate[1])) * x + sigmoid(gate[1]) * h[batch][unit];
}

static void forward(struct network *n)
{
	double h[N][HIDDEN], c[N][HIDDEN];

	memcpy(h, n->h, sizeof(h));
	memcpy(c, n->c, sizeof(c));
	for (int t = 0; t < T; t++) {
		for (int batch = 0; batch < N; batch++)
			for (int unit = 0; unit < HIDDEN; unit++)
				n->y[t][batch][unit] = step(n, t, batch, unit,
					(const double(*)[HIDDEN])h, &c[batch][unit]);
		memcpy(h, n->y[t], sizeof(h));
	}
	memcpy(n->hy, h, sizeof(h));
	memcpy(n->cy, c, sizeof(c));
}

/* The sum that is differentiated: every y with its own factor. */
static double total(struct network *n, const double *dy)
{
	const double *y = &n->y[0][0][0];
	double sum = 0;

	forward(n);
	for (int i = 0; i < T * N * HIDDEN; i++)
		sum += y[i] * dy[i];
	return sum;
}

static double difference(struct network *n, const double *dy, double *of)
{
	double more, less, at = *of;

	*of = at + 1e-5;
	more = total(n, dy);
	*of = at - 1e-5;
	less = total(n, dy);
	*of = at;
	return (more - less) / 2e-5;
}

/* Where the weight space has a gate's matrix and bias; false: this cuDNN has no such calls. */
static void weights_at(cudnnRNNDescriptor_t rnn, size_t size, void *space, int gate,
	char **matrix, char **bias)
{
	cudnnTensorDescriptor_t m, b;
	int type, count, dim[3], stride[3];
	void *m_at = NULL, *b_at = NULL;

	DNN(cudnnCreateTensorDescriptor(&m));
	DNN(cudnnCreateTensorDescriptor(&b));
	DNN(cudnnGetRNNWeightParams(handle, rnn, 0, size, space, gate, m, &m_at, b, &b_at));
	DNN(cudnnGetTensorNdDescriptor(m, 3, (void *)&type, &count, dim, stride));
	if (!m_at || !b_at || count != 3 || dim[1] != HIDDEN)
		DIE("gate %d has a matrix of %d dimensions, %d rows", gate, count, dim[1]);
	*matrix = m_at;
	*bias = b_at;
	DNN(cudnnDestroyTensorDescriptor(m));
	DNN(cudnnDestroyTensorDescriptor(b));
}

static int columns(const struct network *n, int gate)
{
	return gate < n->gates / 2 ? IN : HIDDEN;
}

static void put_weights(struct network *n, cudnnRNNDescriptor_t rnn, size_t size, void *space)
{
	for (int g = 0; g < n->gates; g++) {
		float w[HIDDEN * HIDDEN], b[HIDDEN];
		int wide = columns(n, g);
		char *matrix, *bias;

		for (int i = 0; i < HIDDEN; i++) {
			b[i] = (float)(n->b[g][i] = some_number());
			for (int j = 0; j < wide; j++)
				w[i * wide + j] = (float)(n->w[g][i][j] = some_number());
		}
		weights_at(rnn, size, space, g, &matrix, &bias);
		to_device(matrix, w, sizeof(float) * HIDDEN * (size_t)wide);
		to_device(bias, b, sizeof(b));
	}
}

static void check_weights(
	struct network *n, const double *dy, cudnnRNNDescriptor_t rnn, size_t size, void *space)
{
	for (int g = 0; g < n->gates; g++) {
		float w[HIDDEN * HIDDEN], b[HIDDEN];
		int wide = columns(n, g);
		char *matrix, *bias;

		for (int i = 0; i < HIDDEN; i++) {
			b[i] = (float)difference(n, dy, &n->b[g][i]);
			for (int j = 0; j < wide; j++)
				w[i * wide + j] = (float)difference(n, dy, &n->w[g][i][j]);
		}
		weights_at(rnn, size, space, g, &matrix, &bias);
		compare(matrix, w, CUDNN_DATA_FLOAT, (size_t)(HIDDEN * wide), 1e-3,
			"gradient of a gate's matrix");
		compare(bias, b, CUDNN_DATA_FLOAT, HIDDEN, 1e-3, "gradient of a gate's bias");
	}
}

/* The host's numbers of a tensor as doubles. */
static void take(double *to, const struct tensor *from)
{
	for (size_t i = 0; i < from->elements; i++)
		to[i] = get_at(from->host, from->type, i);
}

static cudnnRNNDataDescriptor_t data_of(int vector)
{
	const int lengths[N] = {T, T};
	cudnnRNNDataDescriptor_t d;
	float fill = 0;

	DNN(cudnnCreateRNNDataDescriptor(&d));
	DNN(cudnnSetRNNDataDescriptor(d, CUDNN_DATA_FLOAT,
		CUDNN_RNN_DATA_LAYOUT_SEQ_MAJOR_UNPACKED, T, N, vector, lengths, &fill));
	return d;
}

/* False: not supported. */
static bool network(int mode, const char *name)
{
	static struct network n;
	const int32_t lengths[N] = {T, T};
	cudnnRNNDescriptor_t rnn;
	cudnnDropoutDescriptor_t dropout;
	cudnnRNNDataDescriptor_t xd, yd;
	struct tensor x, y, dx, dy, h, c, hy, cy, dh, dc;
	void *workspace, *reserve, *weights, *dweights, *there, *states;
	size_t size, work_size, reserve_size, states_size, work_only, reserve_only;
	double slopes[T * N * HIDDEN];
	int status = (int)cudnnCreateRNNDescriptor(&rnn);
	bool lstm = mode == CUDNN_LSTM;

	if (not_supported(status))
		return false;
	DNN(status);
	n = (struct network){.mode = mode, .gates = lstm ? 8 : 6};
	DNN(cudnnDropoutGetStatesSize(handle, &states_size));
	states = device_new(states_size);
	DNN(cudnnCreateDropoutDescriptor(&dropout));
	DNN(cudnnSetDropoutDescriptor(dropout, handle, 0, states, states_size, 1));
	DNN(cudnnSetRNNDescriptor_v8(rnn, CUDNN_RNN_ALGO_STANDARD, mode, CUDNN_RNN_DOUBLE_BIAS,
		CUDNN_UNIDIRECTIONAL, CUDNN_LINEAR_INPUT, CUDNN_DATA_FLOAT, CUDNN_DATA_FLOAT,
		CUDNN_FMA_MATH, IN, HIDDEN, HIDDEN, 1, dropout, CUDNN_RNN_PADDED_IO_ENABLED));
	xd = data_of(IN);
	yd = data_of(HIDDEN);
	/* As PyTorch asks, before it goes back: of one size alone. */
	status = (int)cudnnGetRNNTempSpaceSizes(
		handle, rnn, CUDNN_FWD_MODE_TRAINING, xd, &work_only, NULL);
	if (not_supported(status))
		return false;
	DNN(status);
	DNN(cudnnGetRNNTempSpaceSizes(
		handle, rnn, CUDNN_FWD_MODE_TRAINING, xd, NULL, &reserve_only));
	DNN(cudnnGetRNNWeightSpaceSize(handle, rnn, &size));
	DNN(cudnnGetRNNTempSpaceSizes(
		handle, rnn, CUDNN_FWD_MODE_TRAINING, xd, &work_size, &reserve_size));
	if (work_only != work_size || reserve_only != reserve_size)
		DIE("a size asked for alone is another");
	weights = device_new(size);
	dweights = device_new(size);
	workspace = device_new(work_size);
	reserve = device_new(reserve_size);
	there = device_new(sizeof(lengths));
	to_device(there, lengths, sizeof(lengths));
	CUDA(cuMemsetD8((CUdeviceptr)(uintptr_t)dweights, 0, size));
	put_weights(&n, rnn, size, weights);

	x = TENSOR(CUDNN_DATA_FLOAT, false, T, N, IN);
	dx = TENSOR(CUDNN_DATA_FLOAT, false, T, N, IN);
	y = TENSOR(CUDNN_DATA_FLOAT, false, T, N, HIDDEN);
	dy = TENSOR(CUDNN_DATA_FLOAT, false, T, N, HIDDEN);
	/* As PyTorch 2.15 describes them. */
	h = TENSOR(CUDNN_DATA_FLOAT, false, 1, N, HIDDEN, 1, 1);
	c = TENSOR(CUDNN_DATA_FLOAT, false, 1, N, HIDDEN);
	hy = TENSOR(CUDNN_DATA_FLOAT, false, 1, N, HIDDEN);
	cy = TENSOR(CUDNN_DATA_FLOAT, false, 1, N, HIDDEN);
	dh = TENSOR(CUDNN_DATA_FLOAT, false, 1, N, HIDDEN);
	dc = TENSOR(CUDNN_DATA_FLOAT, false, 1, N, HIDDEN);
	take(&n.x[0][0][0], &x);
	take(&n.h[0][0], &h);
	take(&n.c[0][0], &c);
	take(slopes, &dy);

	DNN(cudnnRNNForward(handle, rnn, CUDNN_FWD_MODE_TRAINING, there, xd, x.device, yd,
		y.device, h.descriptor, h.device, hy.device, c.descriptor,
		lstm ? c.device : NULL, lstm ? cy.device : NULL, size, weights, work_size,
		workspace, reserve_size, reserve));
	forward(&n);
	for (size_t i = 0; i < y.elements; i++)
		put_at(y.host, y.type, i, (&n.y[0][0][0])[i]);
	for (size_t i = 0; i < hy.elements; i++) {
		put_at(hy.host, hy.type, i, (&n.hy[0][0])[i]);
		put_at(cy.host, cy.type, i, (&n.cy[0][0])[i]);
	}
	tensor_check(&y, name);
	tensor_check(&hy, "the last h");
	if (lstm)
		tensor_check(&cy, "the last c");

	DNN(cudnnRNNBackwardData_v8(handle, rnn, there, yd, y.device, dy.device, xd, dx.device,
		h.descriptor, h.device, NULL, dh.device, c.descriptor, lstm ? c.device : NULL,
		NULL, lstm ? dc.device : NULL, size, weights, work_size, workspace,
		reserve_size, reserve));
	DNN(cudnnRNNBackwardWeights_v8(handle, rnn, CUDNN_WGRAD_MODE_ADD, there, xd, x.device,
		h.descriptor, h.device, yd, y.device, size, dweights, work_size, workspace,
		reserve_size, reserve));
	for (size_t i = 0; i < dx.elements; i++)
		put_at(dx.host, dx.type, i, difference(&n, slopes, &(&n.x[0][0][0])[i]));
	for (size_t i = 0; i < dh.elements; i++) {
		put_at(dh.host, dh.type, i, difference(&n, slopes, &(&n.h[0][0])[i]));
		put_at(dc.host, dc.type, i, difference(&n, slopes, &(&n.c[0][0])[i]));
	}
	compare(dx.device, dx.host, dx.type, dx.elements, 1e-3, "gradient of x");
	compare(dh.device, dh.host, dh.type, dh.elements, 1e-3, "gradient of h");
	if (lstm)
		compare(dc.device, dc.host, dc.type, dc.elements, 1e-3, "gradient of c");
	check_weights(&n, slopes, rnn, size, dweights);

	DNN(cudnnDestroyRNNDataDescriptor(xd));
	DNN(cudnnDestroyRNNDataDescriptor(yd));
	DNN(cudnnDestroyRNNDescriptor(rnn));
	DNN(cudnnDestroyDropoutDescriptor(dropout));
	for (void **p = (void *[]){weights, dweights, workspace, reserve, there, states, NULL};
		*p; p++)
		device_free(*p);
	for (struct tensor **t =
			(struct tensor *[]){&x, &y, &dx, &dy, &h, &c, &hy, &cy, &dh, &dc, NULL};
		*t; t++)
		tensor_free(*t);
	return true;
}

int main(void)
{
	begin();
	if (!network(CUDNN_LSTM, "an LSTM"))
		skipped("LSTM");
	if (!network(CUDNN_GRU, "a GRU"))
		skipped("GRU");
	return end();
}
