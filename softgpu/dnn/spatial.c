/* SPDX-License-Identifier: Apache-2.0
 *
 * Spatial transformers in two dimensions: the grid that an affine matrix makes, and the
 * bilinear sampler. Coordinates run from -1, the centre of the first pixel, to 1, that of the
 * last.
 */
#include <math.h>

#include "softgpu/dnn/dnn.h"

struct dnn_spatial {
	int type, count;
	int64_t dim[4]; /* of the output: N, C, H, W */
};

struct spatial_job {
	struct dnn_job job;
	struct dnn_spatial spatial;
	struct dnn_tensor x, y, dx;
	const void *x_at, *grid_at, *dy_at;
	void *to, *dgrid_at;
	double alpha, beta, grid_alpha, grid_beta;
};

DNN_CALL(cudnnCreateSpatialTransformerDescriptor, struct dnn_spatial **spatial)
{
	if (!spatial)
		return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
	*spatial = calloc(1, sizeof(**spatial));
	return *spatial ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_ALLOC_FAILED;
}

DNN_CALL(cudnnDestroySpatialTransformerDescriptor, struct dnn_spatial *spatial)
{
	free(spatial);
	return CUDNN_STATUS_SUCCESS;
}

DNN_CALL(cudnnSetSpatialTransformerNdDescriptor, struct dnn_spatial *spatial, int sampler,
	int type, int count, const int *dim)
{
	struct dnn_spatial s = {.type = type, .count = count};

	if (!spatial || !dim)
		return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
	if (sampler)
		return CUDNN_STATUS_BAD_PARAM;
	if (count != 4 || (type != CUDNN_DATA_FLOAT && type != CUDNN_DATA_DOUBLE &&
				  type != CUDNN_DATA_HALF))
		return CUDNN_STATUS_NOT_SUPPORTED;
	for (int d = 0; d < count; d++) {
		if (dim[d] < 1)
			return CUDNN_STATUS_BAD_PARAM;
		s.dim[d] = dim[d];
	}
	*spatial = s;
	return CUDNN_STATUS_SUCCESS;
}

/* ---- the grid ---- */

static struct dnn_tensor packed(int type, int64_t n, int64_t a, int64_t b, int64_t c)
{
	struct dnn_tensor t = {.type = type, .count = 4, .dim = {n, a, b, c}};

	dnn_packed(&t, false);
	return t;
}

static struct dnn_tensor grid_of(const struct dnn_spatial *s)
{
	return packed(s->type, s->dim[0], s->dim[2], s->dim[3], 2);
}

static struct dnn_tensor theta_of(const struct dnn_spatial *s)
{
	return packed(s->type, s->dim[0], 1, 2, 3);
}

static double coordinate(int64_t i, int64_t size)
{
	return size > 1 ? 2 * (double)i / (double)(size - 1) - 1 : 0;
}

static void grid_run(struct dnn_job *job)
{
	struct spatial_job *j = (void *)job;
	const int64_t *dim = j->spatial.dim;
	struct dnn_tensor grid = grid_of(&j->spatial), theta = theta_of(&j->spatial);
	bool back = j->dy_at;
	cleanup_values double *t = back ? dnn_values_new(job, dnn_elements(&theta))
					: dnn_load(job, &theta, j->x_at);
	cleanup_values double *g = back ? dnn_load(job, &grid, j->dy_at)
					: dnn_values_new(job, dnn_elements(&grid));

	if (!t || !g)
		return;
	for (int64_t n = 0; n < dim[0]; n++)
		for (int64_t p = 0; p < dim[2] * dim[3]; p++) {
			double at[] = {coordinate(p % dim[3], dim[3]),
				coordinate(p / dim[3], dim[2]), 1};
			double *to = &g[(n * dim[2] * dim[3] + p) * 2];

			for (int i = 0; i < 6; i++) {
				if (back)
					t[n * 6 + i] += to[i / 3] * at[i % 3];
				else
					to[i / 3] += t[n * 6 + i] * at[i % 3];
			}
		}
	dnn_store(job, back ? &theta : &grid, j->to, back ? t : g, 1, 0);
}

static int grid(struct dnn_handle *handle, const struct dnn_spatial *spatial, const void *from,
	void *to, bool back)
{
	struct spatial_job *j;
	int status;

	if (!spatial || !from || !to)
		return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
	if (!spatial->count)
		return CUDNN_STATUS_BAD_PARAM;
	j = dnn_job_new(handle, grid_run, sizeof(*j), &status);
	if (!j)
		return status;
	j->spatial = *spatial;
	*(back ? &j->dy_at : &j->x_at) = from;
	j->to = to;
	return dnn_submit(&j->job);
}

DNN_CALL(cudnnSpatialTfGridGeneratorForward, struct dnn_handle *handle,
	const struct dnn_spatial *spatial, const void *theta, void *to)
{
	return grid(handle, spatial, theta, to, false);
}

DNN_CALL(cudnnSpatialTfGridGeneratorBackward, struct dnn_handle *handle,
	const struct dnn_spatial *spatial, const void *dgrid, void *dtheta)
{
	return grid(handle, spatial, dgrid, dtheta, true);
}

/* ---- the sampler ---- */

/* Where one output reads: a pixel's corner, and how far it is into it. */
struct spot {
	int64_t x, y;
	double fx, fy;
};

static struct spot spot_of(const struct spatial_job *j, const double *at)
{
	double x = (at[0] + 1) * 0.5 * (double)(j->x.dim[3] - 1);
	double y = (at[1] + 1) * 0.5 * (double)(j->x.dim[2] - 1);
	struct spot s;

	/* What is not near the image, NaN too, is outside of it. */
	if (!(fabs(x) < 0x1p40 && fabs(y) < 0x1p40))
		return (struct spot){.x = -2, .y = -2};
	s.x = (int64_t)floor(x);
	s.y = (int64_t)floor(y);
	s.fx = x - floor(x);
	s.fy = y - floor(y);
	return s;
}

static double weight(const struct spot *s, int corner)
{
	return (corner & 1 ? s->fx : 1 - s->fx) * (corner & 2 ? s->fy : 1 - s->fy);
}

/* The pixel of a corner; -1: outside. */
static int64_t corner_of(const struct spatial_job *j, const struct spot *s, int corner)
{
	int64_t x = s->x + (corner & 1), y = s->y + (corner >> 1);

	if (x < 0 || y < 0 || x >= j->x.dim[3] || y >= j->x.dim[2])
		return -1;
	return y * j->x.dim[3] + x;
}

static void sampler_run(struct dnn_job *job)
{
	struct spatial_job *j = (void *)job;
	struct dnn_tensor grid_tensor = grid_of(&j->spatial);
	int64_t outs = j->y.dim[2] * j->y.dim[3], pixels = j->x.dim[2] * j->x.dim[3];
	int64_t channels = j->x.dim[1];
	bool back = j->dy_at;
	cleanup_values double *x = dnn_load(job, &j->x, j->x_at);
	cleanup_values double *g = dnn_load(job, &grid_tensor, j->grid_at);
	cleanup_values double *y = back ? dnn_load(job, &j->y, j->dy_at)
					: dnn_values_new(job, dnn_elements(&j->y));
	cleanup_values double *dx = back ? dnn_values_new(job, dnn_elements(&j->x)) : NULL;
	cleanup_values double *dg =
		back ? dnn_values_new(job, dnn_elements(&grid_tensor)) : NULL;

	if (job->handle->failed)
		return;
	for (int64_t i = 0; i < j->y.dim[0] * outs; i++) {
		struct spot s = spot_of(j, &g[i * 2]);

		for (int64_t c = 0; c < channels; c++)
			for (int k = 0; k < 4; k++) {
				int64_t at = corner_of(j, &s, k);
				int64_t image = (i / outs * channels + c) * pixels + at;
				double *to = &y[(i / outs * channels + c) * outs + i % outs];

				if (at < 0)
					continue;
				if (!back) {
					*to += weight(&s, k) * x[image];
					continue;
				}
				dx[image] += weight(&s, k) * *to;
				dg[i * 2] += *to * x[image] * (k & 1 ? 1 : -1) *
					     (k & 2 ? s.fy : 1 - s.fy) * 0.5 *
					     (double)(j->x.dim[3] - 1);
				dg[i * 2 + 1] += *to * x[image] * (k & 2 ? 1 : -1) *
						 (k & 1 ? s.fx : 1 - s.fx) * 0.5 *
						 (double)(j->x.dim[2] - 1);
			}
	}
	if (!back) {
		dnn_store(job, &j->y, j->to, y, j->alpha, j->beta);
		return;
	}
	dnn_store(job, &j->dx, j->to, dx, j->alpha, j->beta);
	dnn_store(job, &grid_tensor, j->dgrid_at, dg, j->grid_alpha, j->grid_beta);
}

static struct spatial_job *sampler_new(struct dnn_handle *handle,
	const struct dnn_spatial *spatial, const void *alpha, const struct dnn_tensor *x,
	const void *x_at, const void *grid_at, const void *beta, const struct dnn_tensor *y,
	void *to, int *status)
{
	struct spatial_job *j;

	*status = CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
	if (!spatial || !alpha || !x || !x_at || !grid_at || !beta || !y || !to)
		return NULL;
	*status = CUDNN_STATUS_BAD_PARAM;
	if (spatial->count != 4 || !dnn_tensor_right(x) || !dnn_tensor_right(y) ||
		x->count != 4 || y->count != 4 || x->dim[0] != y->dim[0] ||
		x->dim[1] != y->dim[1] || y->dim[0] != spatial->dim[0] ||
		y->dim[2] != spatial->dim[2] || y->dim[3] != spatial->dim[3])
		return NULL;
	j = dnn_job_new(handle, sampler_run, sizeof(*j), status);
	if (!j)
		return NULL;
	j->spatial = *spatial;
	j->x = *x;
	j->y = *y;
	j->x_at = x_at;
	j->grid_at = grid_at;
	j->to = to;
	j->alpha = dnn_scalar(alpha, x->type);
	j->beta = dnn_scalar(beta, x->type);
	return j;
}

DNN_CALL(cudnnSpatialTfSamplerForward, struct dnn_handle *handle,
	const struct dnn_spatial *spatial, const void *alpha, const struct dnn_tensor *x,
	const void *x_at, const void *grid_at, const void *beta, const struct dnn_tensor *y,
	void *y_at)
{
	int status;
	struct spatial_job *j =
		sampler_new(handle, spatial, alpha, x, x_at, grid_at, beta, y, y_at, &status);

	return j ? dnn_submit(&j->job) : status;
}

DNN_CALL(cudnnSpatialTfSamplerBackward, struct dnn_handle *handle,
	const struct dnn_spatial *spatial, const void *alpha, const struct dnn_tensor *x,
	const void *x_at, const void *beta, const struct dnn_tensor *dx, void *dx_at,
	const void *grid_alpha, const struct dnn_tensor *dy, const void *dy_at,
	const void *grid_at, const void *grid_beta, void *dgrid_at)
{
	struct spatial_job *j;
	int status;

	if (!dx || !dy_at || !grid_alpha || !grid_beta || !dgrid_at)
		return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
	if (!x || !dnn_same_shape(x, dx))
		return CUDNN_STATUS_BAD_PARAM;
	j = sampler_new(handle, spatial, alpha, x, x_at, grid_at, beta, dy, dx_at, &status);
	if (!j)
		return status;
	j->dx = *dx;
	j->dy_at = dy_at;
	j->dgrid_at = dgrid_at;
	j->grid_alpha = dnn_scalar(grid_alpha, x->type);
	j->grid_beta = dnn_scalar(grid_beta, x->type);
	return dnn_submit(&j->job);
}
