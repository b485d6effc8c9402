/* SPDX-License-Identifier: Apache-2.0
 *
 * Causal convolutions of cuDNN 9, which take a stream and no handle, against plain loops: in
 * both layouts, with an activation, gated, and the forms that are Fourier transforms; and their
 * gradients, against differences where there are few numbers.
 */
#include "tests/cudnn/check.h"

enum { BATCH = 2, DIM = 2, STEPS = 5, TAPS = 3, MIXER = 2, VALUES = BATCH * DIM * STEPS };

static CUstream stream;

static void fill(double *values, int count)
{
	for (int i = 0; i < count; i++)
		values[i] = some_number();
}

/* The first numbers of `values` on the device, in double. */
static void *there(const double *values, int count)
{
	void *at = device_new(sizeof(*values) * (size_t)count);

	to_device(at, values, sizeof(*values) * (size_t)count);
	return at;
}

static void check(const void *device, const double *want, int count, const char *what)
{
	CUDA(cuStreamSynchronize(stream));
	compare(device, want, CUDNN_DATA_DOUBLE, (size_t)count, 1e-6, what);
}

/* One signal through one filter, whose last number is for the same step. */
static double convolved(const double *x, const double *w, int taps, int t)
{
	double sum = 0;

	for (int j = 0; j < taps && j <= t; j++)
		sum += x[t - j] * w[taps - 1 - j];
	return sum;
}

static double silu(double x)
{
	return x / (1 + exp(-x));
}

/* ---- plain ---- */

struct plain {
	double x[VALUES], w[DIM * TAPS], bias[DIM], y[VALUES], dy[VALUES];
};

static double plain_total(struct plain *p)
{
	double sum = 0;

	for (int i = 0; i < VALUES; i++) {
		int row = i / STEPS, channel = row % DIM;

		p->y[i] = silu(
			p->bias[channel] +
			convolved(p->x + row * STEPS, p->w + channel * TAPS, TAPS, i % STEPS));
		sum += p->y[i] * p->dy[i];
	}
	return sum;
}

/* Differences of a sum by each of `count` numbers. */
static void slopes(double (*total)(void *of), void *of, double *values, int count, double *to)
{
	for (int i = 0; i < count; i++) {
		double at = values[i], more;

		values[i] = at + 1e-5;
		more = total(of);
		values[i] = at - 1e-5;
		to[i] = (more - total(of)) / 2e-5;
		values[i] = at;
	}
}

/* The other layout: rows of `wide` numbers become columns. */
static void *turned(const double *values, int blocks, int rows, int wide, bool turn)
{
	double other[VALUES];

	for (int i = 0; i < blocks * rows * wide; i++) {
		int block = i / (rows * wide), row = i / wide % rows, column = i % wide;

		other[turn ? block * rows * wide + column * rows + row : i] = values[i];
	}
	return there(other, blocks * rows * wide);
}

static void turned_check(
	void *device, double *want, int blocks, int rows, int wide, bool turn, const char *what)
{
	double other[VALUES], got[VALUES];
	size_t bytes = sizeof(double) * (size_t)(blocks * rows * wide);

	CUDA(cuStreamSynchronize(stream));
	from_device(got, device, bytes);
	for (int i = 0; i < blocks * rows * wide; i++) {
		int block = i / (rows * wide), row = i / wide % rows, column = i % wide;

		other[i] = got[turn ? block * rows * wide + column * rows + row : i];
	}
	to_device(device, other, bytes);
	check(device, want, blocks * rows * wide, what);
	device_free(device);
}

static bool plain(bool nwh)
{
	__typeof__(cudnnCausalConv1dForward) *const forward =
		nwh ? cudnnCausalConv1dNwhForward : cudnnCausalConv1dForward;
	__typeof__(cudnnCausalConv1dBackward) *const back =
		nwh ? cudnnCausalConv1dNwhBackward : cudnnCausalConv1dBackward;
	static struct plain p;
	double want[VALUES], zeros[VALUES] = {0};
	void *x, *w, *bias, *y, *dy, *dx, *dw, *db;
	int status;

	fill(p.x, VALUES);
	fill(p.w, DIM * TAPS);
	fill(p.bias, DIM);
	fill(p.dy, VALUES);
	x = turned(p.x, BATCH, DIM, STEPS, nwh);
	dy = turned(p.dy, BATCH, DIM, STEPS, nwh);
	w = turned(p.w, 1, DIM, TAPS, nwh);
	bias = there(p.bias, DIM);
	y = there(zeros, VALUES);
	status = (int)forward(stream, x, w, bias, y, BATCH, DIM, STEPS, TAPS, CUDNN_DATA_DOUBLE,
		CUDNN_CAUSAL_CONV1D_ACTIVATION_SILU);
	if (not_supported(status))
		return false;
	DNN(status);
	plain_total(&p);
	turned_check(y, p.y, BATCH, DIM, STEPS, nwh, "a causal convolution");
	dx = there(zeros, VALUES);
	dw = there(zeros, DIM * TAPS);
	db = there(zeros, DIM);
	DNN(back(stream, x, w, bias, dy, dx, dw, db, BATCH, DIM, STEPS, TAPS, CUDNN_DATA_DOUBLE,
		CUDNN_DATA_DOUBLE, CUDNN_CAUSAL_CONV1D_ACTIVATION_SILU));
	slopes((double (*)(void *))plain_total, &p, p.x, VALUES, want);
	turned_check(dx, want, BATCH, DIM, STEPS, nwh, "its gradient");
	slopes((double (*)(void *))plain_total, &p, p.w, DIM * TAPS, want);
	turned_check(dw, want, 1, DIM, TAPS, nwh, "the filter's gradient");
	slopes((double (*)(void *))plain_total, &p, p.bias, DIM, want);
	check(db, want, DIM, "the bias's gradient");
	for (void **at = (void *[]){x, w, bias, dy, db, NULL}; *at; at++)
		device_free(*at);
	return true;
}

/* ---- gated ---- */

struct gated {
	double x[3 * VALUES], w[DIM * 3 * TAPS], mixer[DIM * MIXER], bias[DIM];
	double y[VALUES], out[VALUES], dy[VALUES];
};

static double gated_total(struct gated *g)
{
	double sum = 0;

	for (int row = 0; row < BATCH * DIM; row++) {
		int channel = row % DIM;
		double p[3][STEPS], z[STEPS];

		for (int i = 0; i < 3; i++)
			for (int t = 0; t < STEPS; t++)
				p[i][t] = convolved(g->x + (row * 3 + i) * STEPS,
					g->w + (channel * 3 + i) * TAPS, TAPS, t);
		for (int t = 0; t < STEPS; t++)
			z[t] = p[1][t] * p[2][t];
		for (int t = 0; t < STEPS; t++) {
			int i = row * STEPS + t;

			g->y[i] = convolved(z, g->mixer + channel * MIXER, MIXER, t) +
				  g->bias[channel] * z[t];
			g->out[i] = g->y[i] * p[0][t];
			sum += g->out[i] * g->dy[i];
		}
	}
	return sum;
}

static bool gated(void)
{
	static struct gated g;
	double want[3 * VALUES], zeros[3 * VALUES] = {0};
	void *x, *w, *mixer, *bias, *y, *out, *dy, *dx, *dw, *dmixer, *db;
	int status;

	fill(g.x, 3 * VALUES);
	fill(g.w, DIM * 3 * TAPS);
	fill(g.mixer, DIM * MIXER);
	fill(g.bias, DIM);
	fill(g.dy, VALUES);
	x = there(g.x, 3 * VALUES);
	w = there(g.w, DIM * 3 * TAPS);
	mixer = there(g.mixer, DIM * MIXER);
	bias = there(g.bias, DIM);
	dy = there(g.dy, VALUES);
	y = there(zeros, VALUES);
	out = there(zeros, VALUES);
	dx = there(zeros, 3 * VALUES);
	dw = there(zeros, DIM * 3 * TAPS);
	dmixer = there(zeros, DIM * MIXER);
	db = there(zeros, DIM);
	status = (int)cudnnB2BCausalConv1dForward(stream, x, w, mixer, bias, y, out, BATCH, DIM,
		STEPS, TAPS, MIXER, CUDNN_DATA_DOUBLE);
	if (not_supported(status))
		return false;
	DNN(status);
	gated_total(&g);
	check(y, g.y, VALUES, "what the second convolution gives");
	check(out, g.out, VALUES, "the gated result");
	DNN(cudnnB2BCausalConv1dBackward(stream, x, w, mixer, bias, y, dy, dx, dw, dmixer, db,
		BATCH, DIM, STEPS, TAPS, MIXER, CUDNN_DATA_DOUBLE, CUDNN_DATA_DOUBLE));
	slopes((double (*)(void *))gated_total, &g, g.x, 3 * VALUES, want);
	check(dx, want, 3 * VALUES, "gradient of the gated form");
	slopes((double (*)(void *))gated_total, &g, g.w, DIM * 3 * TAPS, want);
	check(dw, want, DIM * 3 * TAPS, "of its filters");
	slopes((double (*)(void *))gated_total, &g, g.mixer, DIM * MIXER, want);
	check(dmixer, want, DIM * MIXER, "of its second filter");
	slopes((double (*)(void *))gated_total, &g, g.bias, DIM, want);
	check(db, want, DIM, "of what skips it");
	for (void **at = (void *[]){x, w, mixer, bias, dy, y, out, dx, dw, dmixer, db, NULL};
		*at; at++)
		device_free(*at);
	return true;
}

/* ---- by Fourier transforms ---- */

/* One signal of `steps`, a filter of `taps`, the first number for the same step. */
static bool transformed(int steps, int taps)
{
	bool whole = steps == taps; /* the long form */
	double *x = calloc((size_t)steps, 8), *w = calloc((size_t)taps, 8);
	double *y = calloc((size_t)steps, 8), *dx = calloc((size_t)steps, 8);
	double *dw = calloc((size_t)taps, 8), *dy = calloc((size_t)steps, 8);
	void *at[8] = {NULL}, *workspace = NULL, *reserve = NULL;
	size_t work_size = 0, reserve_size = 0;
	int status;

	fill(x, steps);
	fill(w, taps);
	fill(dy, steps);
	for (int t = 0; t < steps; t++)
		for (int j = 0; j < taps && j <= t; j++) {
			y[t] += x[t - j] * w[j];
			dx[t - j] += dy[t] * w[j];
			dw[j] += dy[t] * x[t - j];
		}
	at[0] = there(x, steps);
	at[1] = there(w, taps);
	at[2] = there(dy, steps);
	at[3] = device_new(8 * (size_t)steps);
	at[4] = device_new(8 * (size_t)steps);
	at[5] = device_new(8 * (size_t)taps);
	if (whole) {
		status = (int)cudnnLongFFTCausalConv1dGetBufferSizes(
			1, 1, steps, taps, CUDNN_DATA_DOUBLE, &work_size, &reserve_size);
		if (not_supported(status))
			return false;
		DNN(status);
		workspace = device_new(work_size);
		reserve = device_new(reserve_size);
		status = (int)cudnnLongFFTCausalConv1dForward(stream, at[0], at[1], at[3], 1, 1,
			steps, taps, CUDNN_DATA_DOUBLE, workspace, work_size, reserve,
			reserve_size);
	} else {
		status = (int)cudnnFFTCausalConv1dForward(
			stream, at[0], at[1], at[3], 1, 1, steps, taps, CUDNN_DATA_DOUBLE);
	}
	if (not_supported(status))
		return false;
	DNN(status);
	check(at[3], y, steps, "a convolution by transforms");
	if (whole)
		DNN(cudnnLongFFTCausalConv1dBackward(stream, at[2], at[4], at[5], 1, 1, steps,
			taps, CUDNN_DATA_DOUBLE, workspace, work_size, reserve, reserve_size));
	else
		DNN(cudnnFFTCausalConv1dBackward(stream, at[0], at[1], at[2], at[4], at[5], 1,
			1, steps, taps, CUDNN_DATA_DOUBLE));
	check(at[4], dx, steps, "its gradient");
	check(at[5], dw, taps, "the filter's gradient");
	for (int i = 0; i < 6; i++)
		device_free(at[i]);
	if (whole) {
		device_free(workspace);
		device_free(reserve);
	}
	for (double **p = (double *[]){x, w, y, dx, dw, dy, NULL}; *p; p++)
		free(*p);
	return true;
}

int main(void)
{
	begin();
	CUDA(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	/* Of 9.22 and 9.26. */
	if (!plain(false) || !plain(true))
		skipped("causal convolutions");
	if (!gated())
		skipped("gated causal convolutions");
	if (!transformed(256, 128) || !transformed(4096, 4096))
		skipped("causal convolutions by transforms");
	CUDA(cuStreamDestroy(stream));
	return end();
}
