/* SPDX-License-Identifier: Apache-2.0
 *
 * Copies with arrays.  Those with the app's memory go in rows like all others (copy.c); here
 * are those that stay on the device, and CUDA's one-dimensional forms, which may begin in the
 * middle of a row and end in that of another.
 */
#include "protocol/generated/vcuda_ops.h"
#include "protocol/generated/vcuda_wire.h"
#include "shim/driver/array.h"
#include "shim/driver/context.h"
#include "shim/driver/forms.h"
#include "shim/engine/engine.h"
#include "shim/engine/statistics.h"

bool copy_arrays_ok(const struct shape *s)
{
	return (!s->src_array || array_holds(&s->src_array->level, s->src, s->src_pitch,
					 s->src_slice, s->width, s->height, s->depth)) &&
	       (!s->dst_array || array_holds(&s->dst_array->level, s->dst, s->dst_pitch,
					 s->dst_slice, s->width, s->height, s->depth));
}

struct graph_copy copy_inside(const struct shape *s)
{
	return (struct graph_copy){.dst = s->dst,
		.dst_pitch = s->dst_pitch,
		.dst_slice = s->dst_slice,
		.src = s->src,
		.src_pitch = s->src_pitch,
		.src_slice = s->src_slice,
		.width = s->width,
		.height = s->height,
		.depth = s->depth,
		.dst_array = s->dst_array ? s->dst_array->handle : 0,
		.src_array = s->src_array ? s->src_array->handle : 0};
}

CUresult copy_array_inside(const struct shape *s, uint64_t stream)
{
	struct graph_copy copy = copy_inside(s);
	struct shim_call call;
	struct wire_vcudaArrayCopy *body;

	body = shim_begin(&call, OP_vcudaArrayCopy, sizeof(*body));
	shim_put(&call, &body->copy, &copy, sizeof(copy));
	body->stream = stream;
	stats_copy(STATS_DEVICE_TO_DEVICE, s->width * s->height * s->depth);
	return shim_post(&call);
}

/* ---- bytes in a row ---- */

/* How many of N bytes from there on lie in one row. */
static size_t end_rest(const struct copy_end *end, size_t n)
{
	size_t rest = end->array ? end->array->level.row - end->at % end->array->level.row : n;

	return n < rest ? n : rest;
}

/* Rows of so many bytes follow each other there. */
static bool end_rows(const struct copy_end *end, size_t width)
{
	return !end->array || end->array->level.row == width;
}

/* The N bytes at an end, which end_run() allows, as one side of a copy. */
static void end_side(const struct copy_end *end, size_t n, size_t width, enum side *side,
	uint64_t *at, size_t *pitch, size_t *slice, const struct array **array)
{
	*side = end->side;
	*array = end->array;
	*at = end->array ? end->at % end->array->level.row : end->at;
	*pitch = end->array ? end->at / end->array->level.row : width;
	*slice = end->array ? 0 : n;
}

CUresult copy_array_flat(
	struct copy_end dst, struct copy_end src, size_t n, CUstream stream, bool async)
{
	const struct array *arrays[2] = {dst.array, src.array};
	CUresult status = CUDA_SUCCESS;

	for (int i = 0; i < 2; i++) {
		const struct copy_end *end = i ? &src : &dst;

		if (end->side != SIDE_ARRAY)
			continue;
		if (!arrays[i])
			return CUDA_ERROR_INVALID_HANDLE;
		if (end->at > arrays[i]->level.row * arrays[i]->level.rows ||
			n > arrays[i]->level.row * arrays[i]->level.rows - end->at)
			return CUDA_ERROR_INVALID_VALUE;
	}
	while (n && !status) {
		size_t run = end_rest(&dst, n), other = end_rest(&src, n);
		struct shape s = {.width = run < other ? run : other, .height = 1, .depth = 1};

		if (end_rows(&dst, s.width) && end_rows(&src, s.width))
			s.height = n / s.width;
		run = s.width * s.height;
		end_side(&src, run, s.width, &s.src_side, &s.src, &s.src_pitch, &s.src_slice,
			&s.src_array);
		end_side(&dst, run, s.width, &s.dst_side, &s.dst, &s.dst_pitch, &s.dst_slice,
			&s.dst_array);
		status = copy_shape(&s, stream, async);
		dst.at += run;
		src.at += run;
		n -= run;
	}
	return status;
}
