/* SPDX-License-Identifier: Apache-2.0
 *
 * Multi-head attention as it was before graphs: all steps at once and one by one, with windows,
 * sequences shorter than the longest, projections and biases, against plain loops; the
 * gradients against differences of the loops' result.
 */
#include "tests/cudnn/attention.h"

static cudnnAttnDescriptor_t attention;
static cudnnSeqDataDescriptor_t seq[KINDS];

static int rows_of(const struct network *n, int kind)
{
	return n->batch * (kind == Q || kind == O ? n->steps : n->keys);
}

static int vector_of(const struct network *n, int kind)
{
	return kind == O ? out_of(n) : n->size[kind];
}

/* Where a row, by sequence and step, begins on the device, in elements. */
static size_t place_of(const struct network *n, int kind, int row)
{
	int steps = rows_of(n, kind) / n->batch;
	int place = n->by_batch ? row : row % steps * n->batch + row / steps;

	return (size_t)place * (size_t)vector_of(n, kind);
}

static size_t bytes_of(const struct network *n, int kind)
{
	return (size_t)rows_of(n, kind) * (size_t)vector_of(n, kind) * size_of(n->type);
}

static void *rows_new(const struct network *n, int kind, const double *values)
{
	size_t bytes = bytes_of(n, kind);
	void *at = device_new(bytes), *host = malloc(bytes);

	memset(host, 0, bytes);
	for (int row = 0; values && row < rows_of(n, kind); row++)
		for (int i = 0; i < vector_of(n, kind); i++)
			put_at(host, n->type, place_of(n, kind, row) + (size_t)i,
				values[row * vector_of(n, kind) + i]);
	to_device(at, host, bytes);
	free(host);
	return at;
}

/* Where sequences end is not looked at. */
static void rows_check(const struct network *n, int kind, const void *device,
	const double *want, const char *what)
{
	size_t bytes = bytes_of(n, kind);
	void *got = malloc(bytes);

	from_device(got, device, bytes);
	for (int row = 0; row < rows_of(n, kind); row++)
		for (int i = 0; counts(n, kind, row) && i < vector_of(n, kind); i++) {
			double a = get_at(got, n->type, place_of(n, kind, row) + (size_t)i);
			double b = want[row * vector_of(n, kind) + i];

			if (!(fabs(a - b) <= n->tolerance * (1 + fabs(b))))
				DIE("%s: %s: row %d, %d is %g, not %g", n->name, what, row, i,
					a, b);
		}
	free(got);
}

struct matrix {
	int dim[3], stride[3];
	char *at; /* NULL: there is none */
};

static struct matrix matrix_of(const struct network *n, int kind, size_t size, void *weights)
{
	cudnnTensorDescriptor_t tensor;
	struct matrix m = {0};
	int type, count;
	void *at = NULL;

	if (!n->projected[kind % KINDS] || (kind >= KINDS && !n->biases))
		return m;
	DNN(cudnnCreateTensorDescriptor(&tensor));
	DNN(cudnnGetMultiHeadAttnWeights(handle, attention, kind, size, weights, tensor, &at));
	DNN(cudnnGetTensorNdDescriptor(tensor, 3, (void *)&type, &count, m.dim, m.stride));
	if (!at || count != 3 || type != n->type || m.dim[1] != wide_of(n, kind % KINDS) ||
		m.dim[2] != (kind < KINDS ? in_of(n, kind) : 1))
		DIE("%s: weights %d are %d times %d times %d", n->name, kind, m.dim[0],
			m.dim[1], m.dim[2]);
	DNN(cudnnDestroyTensorDescriptor(tensor));
	m.at = at;
	return m;
}

/* Calls `each` for every weight, with its place on the device. */
static void weights_each(struct network *n, size_t size, void *weights, char *host,
	void (*each)(struct network *n, double *value, void *at))
{
	for (int kind = 0; kind < 2 * KINDS; kind++) {
		struct matrix m = matrix_of(n, kind, size, weights);
		char *at = m.at ? host + (m.at - (char *)weights) : NULL;

		if (kind == KINDS + O && at)
			n->bias_rows = m.dim[0];
		for (int i = 0; at && i < m.dim[0] * m.dim[1] * m.dim[2]; i++) {
			int k = i % m.dim[2], j = i / m.dim[2] % m.dim[1];
			int h = i / m.dim[2] / m.dim[1];

			each(n, &n->w[kind][i],
				at + size_of(n->type) *
						(size_t)(h * m.stride[0] + j * m.stride[1] +
							 k * m.stride[2]));
		}
	}
}

static void weight_put(struct network *n, double *value, void *at)
{
	*value = some_number();
	put_at(at, n->type, 0, *value);
}

static void weight_check(struct network *n, double *value, void *at)
{
	double want = difference(n, value) + (n->add ? 0.5 : 0);
	double got = get_at(at, n->type, 0);

	if (!(fabs(got - want) <= n->tolerance * (1 + fabs(want))))
		DIE("%s: gradient of a weight is %g, not %g", n->name, got, want);
}

static cudnnSeqDataDescriptor_t seq_of(const struct network *n, int kind)
{
	static const cudnnSeqDataAxis_t by_step[] = {CUDNN_SEQDATA_TIME_DIM,
		CUDNN_SEQDATA_BATCH_DIM, CUDNN_SEQDATA_BEAM_DIM, CUDNN_SEQDATA_VECT_DIM};
	static const cudnnSeqDataAxis_t by_batch[] = {CUDNN_SEQDATA_BATCH_DIM,
		CUDNN_SEQDATA_BEAM_DIM, CUDNN_SEQDATA_TIME_DIM, CUDNN_SEQDATA_VECT_DIM};
	const cudnnSeqDataAxis_t *axes = n->by_batch ? by_batch : by_step;
	int dim[CUDNN_SEQDATA_DIM_COUNT], got[CUDNN_SEQDATA_DIM_COUNT], count, type;
	cudnnSeqDataAxis_t order[CUDNN_SEQDATA_DIM_COUNT];
	int lengths[MOST_SEQUENCES];
	cudnnSeqDataDescriptor_t d;
	size_t sequences;

	dim[CUDNN_SEQDATA_TIME_DIM] = rows_of(n, kind) / n->batch;
	dim[CUDNN_SEQDATA_BATCH_DIM] = n->batch;
	dim[CUDNN_SEQDATA_BEAM_DIM] = 1;
	dim[CUDNN_SEQDATA_VECT_DIM] = vector_of(n, kind);
	DNN(cudnnCreateSeqDataDescriptor(&d));
	DNN(cudnnSetSeqDataDescriptor(d, n->type, CUDNN_SEQDATA_DIM_COUNT, dim, axes,
		(size_t)n->batch, n->lengths[kind == K || kind == V], NULL));
	DNN(cudnnGetSeqDataDescriptor(d, (void *)&type, &count, CUDNN_SEQDATA_DIM_COUNT, got,
		order, &sequences, MOST_SEQUENCES, lengths, NULL));
	if (type != n->type || count != CUDNN_SEQDATA_DIM_COUNT ||
		memcmp(got, dim, sizeof(dim)) || memcmp(order, axes, sizeof(order)) ||
		sequences != (size_t)n->batch ||
		lengths[0] != n->lengths[kind == K || kind == V][0])
		DIE("%s: a sequence descriptor says something else", n->name);
	return d;
}

static void describe(const struct network *n)
{
	int heads, longest;
	double scaler;

	DNN(cudnnCreateAttnDescriptor(&attention));
	DNN(cudnnSetAttnDescriptor(attention,
		n->biases ? CUDNN_ATTN_ENABLE_PROJ_BIASES : CUDNN_ATTN_DISABLE_PROJ_BIASES,
		n->heads, 0.5, n->type, n->type, CUDNN_DEFAULT_MATH, NULL, NULL, n->size[Q],
		n->size[K], n->size[V], n->projected[Q], n->projected[K], n->projected[V],
		n->projected[O], n->steps, n->keys, n->batch, 1));
	DNN(cudnnGetAttnDescriptor(attention, NULL, &heads, &scaler, NULL, NULL, NULL, NULL,
		NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, &longest, NULL, NULL, NULL));
	if (heads != n->heads || scaler != 0.5 || longest != n->steps)
		DIE("%s: the descriptor says %d heads, %g, %d steps", n->name, heads, scaler,
			longest);
	for (int kind = 0; kind < KINDS; kind++)
		seq[kind] = seq_of(n, kind);
}

/* One step after the other, without gradients. */
static void by_steps(struct network *n, void *const *x, void *residual, void *const *lengths,
	size_t size, void *weights)
{
	size_t weight_size, work_size;
	void *workspace, *out = rows_new(n, O, NULL);

	DNN(cudnnGetMultiHeadAttnBuffers(handle, attention, &weight_size, &work_size, NULL));
	if (weight_size != size)
		DIE("%s: weights of %zu bytes, or %zu", n->name, weight_size, size);
	workspace = device_new(work_size);
	for (int step = 0; step < n->steps; step++)
		DNN(cudnnMultiHeadAttnForward(handle, attention, step, n->low, n->high,
			lengths[0], lengths[1], seq[Q], x[Q], residual, seq[K], x[K], seq[V],
			x[V], seq[O], out, size, weights, work_size, workspace, 0, NULL));
	rows_check(n, O, out, n->out, "result by steps");
	device_free(workspace);
	device_free(out);
}

static void back(struct network *n, void *const *x, void *const *lengths, size_t size,
	void *weights, size_t work_size, void *workspace, size_t reserve_size, void *reserve)
{
	static const char *const names[] = {
		"gradient of the queries", "of the keys", "of the values"};
	void *dout = rows_new(n, O, n->slope), *d[3], *dweights = device_new(size);
	char *host = malloc(size);
	int status;

	for (int kind = Q; kind <= V; kind++)
		d[kind] = rows_new(n, kind, NULL);
	for (size_t i = 0; i < size / size_of(n->type); i++)
		put_at(host, n->type, i, 0.5);
	to_device(dweights, host, size);
	status = (int)cudnnMultiHeadAttnBackwardData(handle, attention, n->low, n->high,
		lengths[0], lengths[1], seq[O], dout, seq[Q], d[Q], x[Q], seq[K], d[K], x[K],
		seq[V], d[V], x[V], size, weights, work_size, workspace, reserve_size, reserve);
	if (n->biases && not_supported(status)) {
		skipped("gradients with biases");
		return;
	}
	DNN(status);
	for (int kind = Q; kind <= V; kind++) {
		double want[MOST_VALUES];

		for (int i = 0; i < rows_of(n, kind) * n->size[kind]; i++)
			want[i] = difference(n, &n->x[kind][i]);
		rows_check(n, kind, d[kind], want, names[kind]);
	}
	if (size) {
		DNN(cudnnMultiHeadAttnBackwardWeights(handle, attention,
			n->add ? CUDNN_WGRAD_MODE_ADD : CUDNN_WGRAD_MODE_SET, seq[Q], x[Q],
			seq[K], x[K], seq[V], x[V], seq[O], dout, size, weights, dweights,
			work_size, workspace, reserve_size, reserve));
		from_device(host, dweights, size);
		weights_each(n, size, dweights, host, weight_check);
	}
	for (int kind = Q; kind <= V; kind++)
		device_free(d[kind]);
	device_free(dout);
	device_free(dweights);
	free(host);
}

static void fill(struct network *n)
{
	for (int kind = Q; kind <= V; kind++)
		for (int i = 0; i < rows_of(n, kind) * n->size[kind]; i++)
			n->x[kind][i] = some_number();
	for (int i = 0; i < rows_of(n, O) * out_of(n); i++) {
		n->slope[i] = some_number();
		n->more[i] = some_number();
	}
	/* What a sequence does not have has no slope. */
	for (int row = 0; row < rows_of(n, O); row++)
		for (int i = 0; !counts(n, O, row) && i < out_of(n); i++)
			n->slope[row * out_of(n) + i] = 0;
}

static void attend(struct network *n)
{
	void *x[3], *lengths[2], *out, *weights, *workspace, *reserve, *residual = NULL;
	size_t size, work_size, reserve_size;
	char *host;
	int status;

	describe(n);
	fill(n);
	status = (int)cudnnGetMultiHeadAttnBuffers(
		handle, attention, &size, &work_size, &reserve_size);
	if (not_supported(status)) {
		skipped(n->name);
		return;
	}
	DNN(status);
	weights = device_new(size);
	workspace = device_new(work_size);
	reserve = device_new(reserve_size);
	host = calloc(1, size + 1);
	weights_each(n, size, weights, host, weight_put);
	to_device(weights, host, size);
	for (int kind = Q; kind <= V; kind++)
		x[kind] = rows_new(n, kind, n->x[kind]);
	out = rows_new(n, O, NULL);
	if (n->residual)
		residual = rows_new(n, O, n->more);
	for (int i = 0; i < 2; i++) {
		lengths[i] = device_new(sizeof(n->lengths[i]));
		to_device(lengths[i], n->lengths[i], sizeof(n->lengths[i]));
	}
	DNN(cudnnMultiHeadAttnForward(handle, attention, -1, n->low, n->high, lengths[0],
		lengths[1], seq[Q], x[Q], residual, seq[K], x[K], seq[V], x[V], seq[O], out,
		size, weights, work_size, workspace, reserve_size, reserve));
	forward(n);
	rows_check(n, O, out, n->out, "result");
	back(n, x, lengths, size, weights, work_size, workspace, reserve_size, reserve);
	forward(n);
	by_steps(n, x, residual, lengths, size, weights);

	for (int kind = 0; kind < KINDS; kind++)
		DNN(cudnnDestroySeqDataDescriptor(seq[kind]));
	DNN(cudnnDestroyAttnDescriptor(attention));
	for (void **p = (void *[]){x[Q], x[K], x[V], lengths[0], lengths[1], out, weights,
		     workspace, reserve, NULL};
		*p; p++)
		device_free(*p);
	if (residual)
		device_free(residual);
	free(host);
}

/* What is no good gets the status that cuDNN documents. */
static void refused(void)
{
	const cudnnSeqDataAxis_t axes[] = {CUDNN_SEQDATA_TIME_DIM, CUDNN_SEQDATA_BATCH_DIM,
		CUDNN_SEQDATA_VECT_DIM, CUDNN_SEQDATA_BEAM_DIM};
	const int dim[] = {2, 1, 1, 4}, length = 2;
	cudnnSeqDataDescriptor_t d;

	DNN(cudnnCreateSeqDataDescriptor(&d));
	/* The vector's elements must be together. */
	if (!cudnnSetSeqDataDescriptor(
		    d, CUDNN_DATA_FLOAT, CUDNN_SEQDATA_DIM_COUNT, dim, axes, 1, &length, NULL))
		DIE("an axis order that cuDNN does not have was taken");
	DNN(cudnnDestroySeqDataDescriptor(d));
}

int main(void)
{
	static struct network cases[] = {
		{.name = "projections, causal",
			.type = CUDNN_DATA_DOUBLE,
			.heads = 2,
			.size = {4, 4, 4},
			.projected = {3, 3, 2, 5},
			.steps = 3,
			.keys = 4,
			.batch = 2,
			.add = true,
			.tolerance = 1e-6,
			.low = {0, 0, 1},
			.high = {2, 3, 4},
			.lengths = {{3, 2}, {4, 3}}},
		{.name = "no projection",
			.type = CUDNN_DATA_FLOAT,
			.heads = 1,
			.size = {4, 4, 4},
			.steps = 2,
			.keys = 3,
			.batch = 2,
			.residual = true,
			.by_batch = true,
			.tolerance = 5e-3,
			.high = {3, 3},
			.lengths = {{2, 2}, {3, 3}}},
		{.name = "biases",
			.type = CUDNN_DATA_DOUBLE,
			.heads = 2,
			.size = {3, 5, 2},
			.projected = {4, 4, 3, 2},
			.steps = 2,
			.keys = 3,
			.batch = 1,
			.biases = true,
			.tolerance = 1e-6,
			.high = {3, 3},
			.lengths = {{2}, {3}}},
		{.name = "one step, one key",
			.type = CUDNN_DATA_FLOAT,
			.heads = 3,
			.size = {2, 4, 4},
			.projected = {4, 4, 4, 8},
			.steps = 1,
			.keys = 1,
			.batch = 1,
			.tolerance = 5e-3,
			.high = {1},
			.lengths = {{1}, {1}}},
	};

	begin();
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		attend(&cases[i]);
	refused();
	return end();
}
