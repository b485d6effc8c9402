/* SPDX-License-Identifier: Apache-2.0
 *
 * Copies with arrays.  Those with the app's memory go in rows like all others (copy.c); here
 * are those that stay on the device, and CUDA's one-dimensional forms.
 */
#include "shim/generated/vcuda_send.h"
#include "shim/driver/array/array.h"
#include "shim/driver/context/context.h"
#include "shim/engine/driver.h"
#include "shim/driver/forms.h"
#include "shim/engine/engine.h"
#include "shim/engine/statistics.h"

static bool array_ok(const struct shape *s, const struct copy_place *place)
{
	return !place->array || array_holds(&place->array->level, place->at, place->pitch,
					place->slice, s->width, s->height, s->depth);
}

bool copy_arrays_ok(const struct shape *s)
{
	return array_ok(s, &s->src) && array_ok(s, &s->dst);
}

struct graph_copy copy_inside(const struct shape *s)
{
	return (struct graph_copy){.dst = s->dst.at,
		.dst_pitch = s->dst.pitch,
		.dst_slice = s->dst.slice,
		.src = s->src.at,
		.src_pitch = s->src.pitch,
		.src_slice = s->src.slice,
		.width = s->width,
		.height = s->height,
		.depth = s->depth,
		.dst_array = s->dst.array ? s->dst.array->handle : 0,
		.src_array = s->src.array ? s->src.array->handle : 0};
}

CUresult copy_array_inside(const struct shape *s, uint64_t stream)
{
	struct graph_copy copy = copy_inside(s);

	statistics_copy(STATISTICS_DEVICE_TO_DEVICE, s->width * s->height * s->depth);
	return send_vcudaArrayCopy(&copy, stream);
}

/* ---- bytes in a row ---- */

/* What goes past the first row does not fit: a row of a plane does not go on in the next. */
static bool end_holds(const struct copy_end *end, size_t n)
{
	size_t row = end->array ? end->array->level.row : 0;

	return !end->array || !n || (end->at <= row && n <= row - end->at);
}

static struct copy_place place_of(const struct copy_end *end, size_t n)
{
	return (struct copy_place){.side = end->side,
		.array = end->array,
		.at = end->at,
		.pitch = end->array ? 0 : n,
		.slice = end->array ? 0 : n};
}

CUresult copy_array_flat(
	struct copy_end dst, struct copy_end src, size_t n, CUstream stream, bool async)
{
	struct shape s = {.src = place_of(&src, n),
		.dst = place_of(&dst, n),
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
