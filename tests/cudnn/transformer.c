/* SPDX-License-Identifier: Apache-2.0
 *
 * Spatial transformers: the grid of an affine matrix and bilinear sampling, forward and back.
 */
#include "tests/cudnn/check.h"

enum { N = 2, C = 3, IN_H = 5, IN_W = 7, H = 4, W = 6 };

/* Where a coordinate of the grid lies among the pixels. */
static double place(double at, int size)
{
	return (at + 1) * 0.5 * (size - 1);
}

/* Pixel (y, x) of channel c as the sampler weighs it from (gy, gx). */
static double weight(double gx, double gy, int x, int y)
{
	double dx = 1 - fabs(gx - x), dy = 1 - fabs(gy - y);

	return dx > 0 && dy > 0 ? dx * dy : 0;
}

static double sampled(const struct tensor *x, int n, int c, double gx, double gy)
{
	double sum = 0;

	for (int h = 0; h < IN_H; h++)
		for (int w = 0; w < IN_W; w++)
			sum += weight(gx, gy, w, h) * GET(x, n, c, h, w);
	return sum;
}

int main(void)
{
	const int dims[] = {N, C, H, W};
	struct tensor x, y, dx, dy, grid, dgrid, theta, dtheta;
	cudnnSpatialTransformerDescriptor_t of;
	float one = 1, zero = 0;
	double *sums;
	int at[MOST] = {0};

	begin();
	x = TENSOR(CUDNN_DATA_FLOAT, false, N, C, IN_H, IN_W);
	dx = TENSOR(CUDNN_DATA_FLOAT, false, N, C, IN_H, IN_W);
	y = TENSOR(CUDNN_DATA_FLOAT, false, N, C, H, W);
	dy = TENSOR(CUDNN_DATA_FLOAT, false, N, C, H, W);
	grid = TENSOR(CUDNN_DATA_FLOAT, false, N, H, W, 2);
	dgrid = TENSOR(CUDNN_DATA_FLOAT, false, N, H, W, 2);
	theta = TENSOR(CUDNN_DATA_FLOAT, false, N, 2, 3, 1);
	dtheta = TENSOR(CUDNN_DATA_FLOAT, false, N, 2, 3, 1);
	DNN(cudnnCreateSpatialTransformerDescriptor(&of));
	DNN(cudnnSetSpatialTransformerNdDescriptor(
		of, CUDNN_SAMPLER_BILINEAR, CUDNN_DATA_FLOAT, 4, dims));

	DNN(cudnnSpatialTfGridGeneratorForward(handle, of, theta.device, grid.device));
	do {
		double to[] = {2.0 * at[2] / (W - 1) - 1, 2.0 * at[1] / (H - 1) - 1, 1};
		double sum = 0;

		for (int i = 0; i < 3; i++)
			sum += GET(&theta, at[0], at[3], i, 0) * to[i];
		put(&grid, at, sum);
	} while (next(&grid, at));
	tensor_check(&grid, "the grid");

	/* A grid that is off the pixels, where the sampler has slopes, and partly outside. */
	do
		put(&grid, at, (double)((at[1] * 5 + at[2] * 3 + at[3]) % 11) / 5.03 - 1.1);
	while (next(&grid, at));
	to_there(&grid);
	DNN(cudnnSpatialTfSamplerForward(handle, of, &one, x.descriptor, x.device, grid.device,
		&zero, y.descriptor, y.device));
	do
		put(&y, at,
			sampled(&x, at[0], at[1],
				place(GET(&grid, at[0], at[2], at[3], 0), IN_W),
				place(GET(&grid, at[0], at[2], at[3], 1), IN_H)));
	while (next(&y, at));
	tensor_check(&y, "samples");

	DNN(cudnnSpatialTfSamplerBackward(handle, of, &one, x.descriptor, x.device, &zero,
		dx.descriptor, dx.device, &one, dy.descriptor, dy.device, grid.device, &zero,
		dgrid.device));
	sums = calloc(dx.elements, sizeof(*sums));
	memset(dgrid.host, 0, dgrid.bytes);
	do {
		double gx = place(GET(&grid, at[0], at[2], at[3], 0), IN_W);
		double gy = place(GET(&grid, at[0], at[2], at[3], 1), IN_H);
		double *to;

		for (int h = 0; h < IN_H; h++)
			for (int w = 0; w < IN_W; w++) {
				to = &sums[offset(&dx, (int[]){at[0], at[1], h, w})];
				*to += weight(gx, gy, w, h) * get(&dy, at);
			}
		for (int i = 0; i < 2; i++) {
			double step = 1e-6, ex = i ? 0 : step, ey = i ? step : 0;
			double slope = (sampled(&x, at[0], at[1], gx + ex, gy + ey) -
					       sampled(&x, at[0], at[1], gx - ex, gy - ey)) /
				       (2 * step);

			PUT(&dgrid,
				GET(&dgrid, at[0], at[2], at[3], i) +
					get(&dy, at) * slope * 0.5 * (i ? IN_H - 1 : IN_W - 1),
				at[0], at[2], at[3], i);
		}
	} while (next(&dy, at));
	for (size_t i = 0; i < dx.elements; i++)
		put_at(dx.host, dx.type, i, sums[i]);
	free(sums);
	tensor_check(&dx, "gradient of the image");
	compare(dgrid.device, dgrid.host, dgrid.type, dgrid.elements, 1e-3,
		"gradient of the grid");

	DNN(cudnnSpatialTfGridGeneratorBackward(handle, of, dgrid.device, dtheta.device));
	memset(dtheta.host, 0, dtheta.bytes);
	do {
		double to[] = {2.0 * at[2] / (W - 1) - 1, 2.0 * at[1] / (H - 1) - 1, 1};

		for (int i = 0; i < 3; i++)
			PUT(&dtheta, GET(&dtheta, at[0], at[3], i, 0) + get(&dgrid, at) * to[i],
				at[0], at[3], i, 0);
	} while (next(&dgrid, at));
	compare(dtheta.device, dtheta.host, dtheta.type, dtheta.elements, 1e-3,
		"gradient of the matrix");

	DNN(cudnnDestroySpatialTransformerDescriptor(of));
	for (struct tensor **t = (struct tensor *[]){&x, &y, &dx, &dy, &grid, &dgrid, &theta,
		     &dtheta, NULL};
		*t; t++)
		tensor_free(*t);
	return end();
}
