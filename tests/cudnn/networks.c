/* SPDX-License-Identifier: Apache-2.0
 *
 * Recurrent networks of every kind: cells, two layers, two directions, projections, biases,
 * sequences of different lengths in each layout, with and without states, clipped cells; and
 * their gradients, against differences of plain loops' result.
 */
#include "tests/cudnn/recur.h"

/* ---- the device ---- */

static cudnnRNNDescriptor_t rnn;

/* Where a vector is, in vectors; -1: nowhere. */
static int place_of(const struct network *n, int t, int s)
{
	int at = s;

	if (n->layout == CUDNN_RNN_DATA_LAYOUT_BATCH_MAJOR_UNPACKED)
		return s * T + t;
	if (n->layout == CUDNN_RNN_DATA_LAYOUT_SEQ_MAJOR_UNPACKED)
		return t * N + s;
	if (t >= n->lengths[s])
		return -1;
	for (int i = 0; i < N; i++)
		at += n->lengths[i] < t ? n->lengths[i] : t;
	return at;
}

static void *rows_new(const struct network *n, const double *values, int wide)
{
	size_t bytes = (size_t)(T * N * wide) * size_of(n->type);
	void *at = device_new(bytes), *host = calloc(1, bytes);

	for (int row = 0; values && row < T * N; row++)
		for (int i = 0; place_of(n, row / N, row % N) >= 0 && i < wide; i++)
			put_at(host, n->type,
				(size_t)(place_of(n, row / N, row % N) * wide + i),
				values[row * wide + i]);
	to_device(at, host, bytes);
	free(host);
	return at;
}

static void near(const struct network *n, double got, double want, const char *what, int i)
{
	if (!(fabs(got - want) <= n->tolerance * (1 + fabs(want))))
		DIE("%s: %s: %d is %g, not %g", n->name, what, i, got, want);
}

/* `fill`: what stands behind a sequence's end, where it is not NULL. */
static void rows_check(const struct network *n, const void *device, const double *want,
	int wide, const double *fill, const char *what)
{
	size_t bytes = (size_t)(T * N * wide) * size_of(n->type);
	void *got = malloc(bytes);

	from_device(got, device, bytes);
	for (int row = 0; row < T * N; row++)
		for (int i = 0; place_of(n, row / N, row % N) >= 0 && i < wide; i++) {
			double value = get_at(got, n->type,
				(size_t)(place_of(n, row / N, row % N) * wide + i));

			if (is_there(n, row))
				near(n, value, want[row * wide + i], what, row * wide + i);
			else if (fill)
				near(n, value, *fill, "the filling", row * wide + i);
		}
	free(got);
}

static void *values_new(const struct network *n, const double *values, int count)
{
	void *at = device_new((size_t)count * size_of(n->type));
	void *host = calloc((size_t)count, size_of(n->type));

	for (int i = 0; values && i < count; i++)
		put_at(host, n->type, (size_t)i, values[i]);
	to_device(at, host, (size_t)count * size_of(n->type));
	free(host);
	return at;
}

static void values_check(const struct network *n, const void *device, const double *want,
	int count, const char *what)
{
	void *got = malloc((size_t)count * size_of(n->type));

	from_device(got, device, (size_t)count * size_of(n->type));
	for (int i = 0; i < count; i++)
		near(n, get_at(got, n->type, (size_t)i), want[i], what, i);
	free(got);
}

static bool has_bias(const struct network *n, int id)
{
	bool recurrent = id >= gates_of(n);

	return id < 2 * gates_of(n) &&
	       (n->bias == CUDNN_RNN_DOUBLE_BIAS ||
		       n->bias == (recurrent ? CUDNN_RNN_SINGLE_REC_BIAS
					     : CUDNN_RNN_SINGLE_INP_BIAS));
}

static void array_each(struct network *n, int type, const int *dim, double *values, char *host,
	void (*each)(struct network *n, double *value, void *at))
{
	for (int i = 0; i < dim[0] * dim[1] * dim[2]; i++)
		each(n, &values[i], host + (size_t)i * size_of(type));
}

/* Calls `each` for every weight and bias, with its place in the copy on the host. */
static void weights_each(struct network *n, size_t size, char *device, char *host,
	void (*each)(struct network *n, double *value, void *at))
{
	cudnnTensorDescriptor_t m, b;
	int gates = gates_of(n), ids = 2 * gates + (n->projected < n->hidden);

	DNN(cudnnCreateTensorDescriptor(&m));
	DNN(cudnnCreateTensorDescriptor(&b));
	for (int layer = 0; layer < n->layers * n->directions; layer++)
		for (int id = 0; id < ids; id++) {
			int type, count, dim[3], stride[3];
			bool projection = id == 2 * gates;
			int rows = projection ? n->projected : n->hidden;
			int columns = projection    ? n->hidden
				      : id >= gates ? n->projected
						    : in_of(n, layer / n->directions);
			bool skipped_one = n->skip && id < gates && layer < n->directions;
			void *m_at = NULL, *b_at = NULL;

			DNN(cudnnGetRNNWeightParams(
				handle, rnn, layer, size, device, id, m, &m_at, b, &b_at));
			if (!!m_at == skipped_one || !!b_at != has_bias(n, id))
				DIE("%s: layer %d, %d: a matrix %d, a bias %d", n->name, layer,
					id, !!m_at, !!b_at);
			if (m_at) {
				DNN(cudnnGetTensorNdDescriptor(
					m, 3, (void *)&type, &count, dim, stride));
				if (count != 3 || dim[1] != rows || dim[2] != columns)
					DIE("%s: layer %d, %d: a matrix of %d times %d",
						n->name, layer, id, dim[1], dim[2]);
				array_each(n, type, dim, n->w[layer][id],
					host + ((char *)m_at - device), each);
			}
			if (b_at) {
				DNN(cudnnGetTensorNdDescriptor(
					b, 3, (void *)&type, &count, dim, stride));
				array_each(n, type, dim, n->b[layer][id],
					host + ((char *)b_at - device), each);
			}
		}
	DNN(cudnnDestroyTensorDescriptor(m));
	DNN(cudnnDestroyTensorDescriptor(b));
}

static void weight_put(struct network *n, double *value, void *at)
{
	*value = some_number() / 2 + 1 / 64.0; /* no sum is 0, where relu has no slope */
	put_at(at, n->type, 0, *value);
}

static void weight_check(struct network *n, double *value, void *at)
{
	near(n, get_at(at, n->type, 0), difference(n, value), "gradient of a weight", 0);
}

static cudnnRNNDataDescriptor_t data_of(const struct network *n, int vector)
{
	cudnnRNNDataDescriptor_t d;
	double wide = -3;
	float fill = -3;

	DNN(cudnnCreateRNNDataDescriptor(&d));
	DNN(cudnnSetRNNDataDescriptor(d, n->type, n->layout, T, N, vector, n->lengths,
		n->type == CUDNN_DATA_DOUBLE ? (void *)&wide : &fill));
	return d;
}

static cudnnTensorDescriptor_t state_of(const struct network *n, int wide)
{
	const int dim[] = {n->layers * n->directions, N, wide}, stride[] = {N * wide, wide, 1};
	cudnnTensorDescriptor_t d;

	DNN(cudnnCreateTensorDescriptor(&d));
	DNN(cudnnSetTensorNdDescriptor(d, n->type, 3, dim, stride));
	return d;
}

static void fill(struct network *n)
{
	double *const arrays[] = {n->x, n->dy, n->hx, n->cx, n->dhy, n->dcy};

	for (int i = 0; i < 6; i++)
		for (int j = 0; j < MOST_VALUES; j++)
			arrays[i][j] = i < 2 || n->states ? some_number() : 0;
}

/* What a network is described with and works on. */
struct setting {
	cudnnDropoutDescriptor_t dropout;
	cudnnRNNDataDescriptor_t xd, yd;
	cudnnTensorDescriptor_t hd, cd;
	void *lengths, *weights, *dweights, *workspace, *reserve;
	void *x, *y, *dx, *dy, *hx, *cx, *hy, *cy, *dhx, *dcx, *dhy, *dcy;
	size_t size, work_size, reserve_size;
};

/* False: not supported. */
static bool describe(struct network *n, struct setting *s)
{
	int status;

	DNN(cudnnCreateDropoutDescriptor(&s->dropout));
	DNN(cudnnSetDropoutDescriptor(s->dropout, handle, 0, NULL, 0, 0));
	DNN(cudnnCreateRNNDescriptor(&rnn));
	DNN(cudnnSetRNNDescriptor_v8(rnn, CUDNN_RNN_ALGO_STANDARD, n->cell, n->bias,
		n->directions == 2 ? CUDNN_BIDIRECTIONAL : CUDNN_UNIDIRECTIONAL,
		n->skip ? CUDNN_SKIP_INPUT : CUDNN_LINEAR_INPUT, n->type, n->type,
		CUDNN_FMA_MATH, n->input, n->hidden, n->projected, n->layers, s->dropout,
		n->layout == CUDNN_RNN_DATA_LAYOUT_SEQ_MAJOR_PACKED
			? CUDNN_RNN_PADDED_IO_DISABLED
			: CUDNN_RNN_PADDED_IO_ENABLED));
	if (n->clip > 0)
		DNN(cudnnRNNSetClip_v8(rnn, CUDNN_RNN_CLIP_MINMAX, CUDNN_NOT_PROPAGATE_NAN,
			-n->clip, n->clip));
	s->xd = data_of(n, n->input);
	s->yd = data_of(n, n->directions * n->projected);
	s->hd = state_of(n, n->projected);
	s->cd = state_of(n, n->hidden);
	status = (int)cudnnGetRNNTempSpaceSizes(
		handle, rnn, CUDNN_FWD_MODE_TRAINING, s->xd, &s->work_size, &s->reserve_size);
	if (not_supported(status))
		return false;
	DNN(status);
	DNN(cudnnGetRNNWeightSpaceSize(handle, rnn, &s->size));
	return true;
}

static void prepare(struct network *n, struct setting *s)
{
	int states = n->layers * n->directions * N, wide = n->directions * n->projected;
	char *host = calloc(1, s->size);

	s->weights = device_new(s->size);
	s->dweights = device_new(s->size);
	s->workspace = device_new(s->work_size);
	s->reserve = device_new(s->reserve_size);
	s->lengths = device_new(sizeof(n->lengths));
	to_device(s->lengths, n->lengths, sizeof(n->lengths));
	weights_each(n, s->size, s->weights, host, weight_put);
	to_device(s->weights, host, s->size);
	CUDA(cuMemsetD8((CUdeviceptr)(uintptr_t)s->dweights, 0, s->size));
	free(host);
	s->x = rows_new(n, n->x, n->input);
	s->dx = rows_new(n, NULL, n->input);
	s->y = rows_new(n, NULL, wide);
	s->dy = rows_new(n, n->dy, wide);
	s->hx = values_new(n, n->hx, states * n->projected);
	s->hy = values_new(n, NULL, states * n->projected);
	s->dhy = values_new(n, n->dhy, states * n->projected);
	s->dhx = values_new(n, NULL, states * n->projected);
	s->cx = values_new(n, n->cx, states * n->hidden);
	s->cy = values_new(n, NULL, states * n->hidden);
	s->dcy = values_new(n, n->dcy, states * n->hidden);
	s->dcx = values_new(n, NULL, states * n->hidden);
}

/* In both modes: inference has no reserve space. */
static void forward_there(struct network *n, struct setting *s, cudnnForwardMode_t mode)
{
	int states = n->layers * n->directions * N, wide = n->directions * n->projected;
	bool training = mode == CUDNN_FWD_MODE_TRAINING, lstm = n->cell == CUDNN_LSTM;
	double filling = -3;
	size_t work_size;
	void *workspace;

	DNN(cudnnGetRNNTempSpaceSizes(handle, rnn, mode, s->xd, &work_size, NULL));
	workspace = device_new(work_size);
	DNN(cudnnRNNForward(handle, rnn, mode, s->lengths, s->xd, s->x, s->yd, s->y, s->hd,
		n->states ? s->hx : NULL, s->hy, s->cd, n->states && lstm ? s->cx : NULL,
		lstm ? s->cy : NULL, s->size, s->weights, work_size, workspace,
		training ? s->reserve_size : 0, training ? s->reserve : NULL));
	rows_check(n, s->y, n->y, wide, &filling, training ? "result" : "inference");
	values_check(n, s->hy, n->hy, states * n->projected, "the last h");
	if (lstm)
		values_check(n, s->cy, n->cy, states * n->hidden, "the last c");
	device_free(workspace);
}

static void back_there(struct network *n, struct setting *s)
{
	int states = n->layers * n->directions * N;
	bool lstm = n->cell == CUDNN_LSTM, cells = n->states && lstm;
	double want[MOST_VALUES];
	char *host = malloc(s->size);

	DNN(cudnnRNNBackwardData_v8(handle, rnn, s->lengths, s->yd, s->y, s->dy, s->xd, s->dx,
		s->hd, n->states ? s->hx : NULL, n->states ? s->dhy : NULL, s->dhx, s->cd,
		cells ? s->cx : NULL, cells ? s->dcy : NULL, lstm ? s->dcx : NULL, s->size,
		s->weights, s->work_size, s->workspace, s->reserve_size, s->reserve));
	DNN(cudnnRNNBackwardWeights_v8(handle, rnn, CUDNN_WGRAD_MODE_ADD, s->lengths, s->xd,
		s->x, s->hd, n->states ? s->hx : NULL, s->yd, s->y, s->size, s->dweights,
		s->work_size, s->workspace, s->reserve_size, s->reserve));
	for (int i = 0; i < T * N * n->input; i++)
		want[i] = difference(n, &n->x[i]);
	rows_check(n, s->dx, want, n->input, NULL, "gradient of x");
	for (int i = 0; i < states * n->projected; i++)
		want[i] = difference(n, &n->hx[i]);
	values_check(n, s->dhx, want, states * n->projected, "gradient of h");
	for (int i = 0; lstm && i < states * n->hidden; i++)
		want[i] = difference(n, &n->cx[i]);
	if (lstm)
		values_check(n, s->dcx, want, states * n->hidden, "gradient of c");
	from_device(host, s->dweights, s->size);
	weights_each(n, s->size, s->dweights, host, weight_check);
	free(host);
}

static void run(struct network *n)
{
	struct setting s;

	if (!describe(n, &s)) {
		skipped(n->name);
		return;
	}
	fill(n);
	prepare(n, &s);
	forward(n);
	forward_there(n, &s, CUDNN_FWD_MODE_INFERENCE);
	forward_there(n, &s, CUDNN_FWD_MODE_TRAINING);
	if (!n->clip) /* what a clipped cell's gradient is, cuDNN does not say */
		back_there(n, &s);
	DNN(cudnnDestroyRNNDataDescriptor(s.xd));
	DNN(cudnnDestroyRNNDataDescriptor(s.yd));
	DNN(cudnnDestroyTensorDescriptor(s.hd));
	DNN(cudnnDestroyTensorDescriptor(s.cd));
	DNN(cudnnDestroyRNNDescriptor(rnn));
	DNN(cudnnDestroyDropoutDescriptor(s.dropout));
	for (void **p = (void *[]){s.lengths, s.weights, s.dweights, s.workspace, s.reserve,
		     s.x, s.y, s.dx, s.dy, s.hx, s.cx, s.hy, s.cy, s.dhx, s.dcx, s.dhy, s.dcy,
		     NULL};
		*p; p++)
		device_free(*p);
}

#define DOUBLE .type = CUDNN_DATA_DOUBLE, .tolerance = 1e-6
#define FLOAT .type = CUDNN_DATA_FLOAT, .tolerance = 2e-3
#define EQUAL {T, T, T}

int main(void)
{
	static struct network networks[] = {
		{.name = "tanh, two layers, two directions",
			.cell = CUDNN_RNN_TANH,
			.layers = 2,
			.directions = 2,
			.input = 3,
			.hidden = 4,
			.projected = 4,
			.bias = CUDNN_RNN_DOUBLE_BIAS,
			.lengths = {3, 2, 1},
			.states = true,
			DOUBLE},
		{.name = "relu, one bias, packed",
			.cell = CUDNN_RNN_RELU,
			.layers = 2,
			.directions = 1,
			.input = 2,
			.hidden = 3,
			.projected = 3,
			.bias = CUDNN_RNN_SINGLE_INP_BIAS,
			.layout = CUDNN_RNN_DATA_LAYOUT_SEQ_MAJOR_PACKED,
			.lengths = {3, 2, 1},
			.states = true,
			DOUBLE},
		{.name = "LSTM, two directions, packed, no states",
			.cell = CUDNN_LSTM,
			.layers = 2,
			.directions = 2,
			.input = 2,
			.hidden = 3,
			.projected = 3,
			.bias = CUDNN_RNN_DOUBLE_BIAS,
			.layout = CUDNN_RNN_DATA_LAYOUT_SEQ_MAJOR_PACKED,
			.lengths = {3, 3, 1},
			FLOAT},
		{.name = "LSTM, projected",
			.cell = CUDNN_LSTM,
			.layers = 2,
			.directions = 1,
			.input = 3,
			.hidden = 4,
			.projected = 2,
			.bias = CUDNN_RNN_DOUBLE_BIAS,
			.lengths = EQUAL,
			.states = true,
			FLOAT},
		{.name = "LSTM, clipped, by sequence",
			.cell = CUDNN_LSTM,
			.layers = 1,
			.directions = 1,
			.input = 2,
			.hidden = 4,
			.projected = 4,
			.bias = CUDNN_RNN_NO_BIAS,
			.clip = 0.25,
			.layout = CUDNN_RNN_DATA_LAYOUT_BATCH_MAJOR_UNPACKED,
			.lengths = {1, 3, 2},
			.states = true,
			DOUBLE},
		{.name = "GRU, two directions",
			.cell = CUDNN_GRU,
			.layers = 2,
			.directions = 2,
			.input = 4,
			.hidden = 3,
			.projected = 3,
			.bias = CUDNN_RNN_DOUBLE_BIAS,
			.lengths = {3, 1, 2},
			.states = true,
			DOUBLE},
		{.name = "GRU, recurrent bias",
			.cell = CUDNN_GRU,
			.layers = 1,
			.directions = 1,
			.input = 1,
			.hidden = 1,
			.projected = 1,
			.bias = CUDNN_RNN_SINGLE_REC_BIAS,
			.lengths = EQUAL,
			.states = true,
			FLOAT},
		{.name = "tanh, input handed on",
			.cell = CUDNN_RNN_TANH,
			.layers = 1,
			.directions = 1,
			.input = 3,
			.hidden = 3,
			.projected = 3,
			.bias = CUDNN_RNN_NO_BIAS,
			.skip = true,
			.lengths = EQUAL,
			.states = true,
			DOUBLE},
	};

	begin();
	for (size_t i = 0; i < sizeof(networks) / sizeof(networks[0]); i++)
		run(&networks[i]);
	return end();
}
