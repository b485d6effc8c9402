/* SPDX-License-Identifier: Apache-2.0
 *
 * Copies with arrays.  Those with the app's memory go in rows like all others (copy.c); here
 * are those that stay on the device, and CUDA's one-dimensional forms.
 */
#include "shim/generated/vcuda_send.h"
#include "shim/driver/array.h"
#include "shim/driver/context.h"
#include "shim/engine/driver.h"
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

	stats_copy(STATS_DEVICE_TO_DEVICE, s->width * s->height * s->depth);
	return send_vcudaArrayCopy(&copy, stream);
}

/* ---- bytes in a row ---- */

/* What goes past the first row does not fit: a row of a plane does not go on in the next. */
static bool end_holds(const struct copy_end *end, size_t n)
{
	size_t row = end->array ? end->array->level.row : 0;

	return !end->array || !n || (end->at <= row && n <= row - end->at);
}

CUresult copy_array_flat(
	struct copy_end dst, struct copy_end src, size_t n, CUstream stream, bool async)
{
	struct shape s = {.src_side = src.side,
		.src = src.at,
		.src_pitch = src.array ? 0 : n,
		.src_slice = src.array ? 0 : n,
		.src_array = src.array,
		.dst_side = dst.side,
		.dst = dst.at,
		.dst_pitch = dst.array ? 0 : n,
		.dst_slice = dst.array ? 0 : n,
		.dst_array = dst.array,
		.width = n,
		.height = 1,
		.depth = 1};
	CUresult status = context_missing();

	if (status)
		return status;
	if ((src.side == SIDE_ARRAY && !src.array) || (dst.side == SIDE_ARRAY && !dst.array) ||
		!end_holds(&src, n) || !end_holds(&dst, n))
		return n ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
	return copy_shape(&s, stream, async);
}
