/* SPDX-License-Identifier: Apache-2.0
 *
 * Copies on memory of other agents than the stream's.  What is one agent's it does itself; what
 * is two agents' goes through this process, piece by piece.  The thread waits for either, so
 * that each stream finds its order as it is.
 */
#include <stdlib.h>

#include "shim/driver/array/array.h"
#include "shim/driver/context/context.h"
#include "shim/driver/copy/copy.h"
#include "shim/driver/copy/direct.h"
#include "shim/driver/graph/capture.h"
#include "shim/driver/memory/memory.h"
#include "shim/driver/stream/stream.h"
#include "shim/engine/driver.h"
#include "shim/engine/statistics.h"
#include "shim/engine/thread.h"
#include "shim/generated/cuda_hand.h"

/* Bytes that lie in the process at once. */
#define PIECE (8u << 20)

/* In which context a side is; NULL: the app's memory. */
static struct context *home_of(const struct copy_place *place)
{
	int device;

	if (place->array)
		return place->array->context;
	return place->side == SIDE_DEVICE && memory_in_window(place->at, &device)
		       ? &devices.at[device].primary
		       : NULL;
}

bool copy_elsewhere(const struct shape *s)
{
	const struct context *src = home_of(&s->src), *dst = home_of(&s->dst);

	return (src && src->session != session_here()) ||
	       (dst && dst->session != session_here());
}

/* One side of a piece, with the process: done when it returns. */
static CUresult move(struct shape *piece, struct context *home)
{
	bool in = piece->dst.side != SIDE_HOST;
	struct context *popped;
	CUresult status;

	if (!atomic_load(&home->live))
		return CUDA_ERROR_INVALID_CONTEXT;
	if (!thread_push(home))
		return CUDA_ERROR_OUT_OF_MEMORY;
	status = copy_shape(piece, CU_STREAM_LEGACY, false);
	if (!status && in)
		status = hand_cuStreamSynchronize(CU_STREAM_LEGACY);
	thread_pop(&popped);
	return status;
}

/* ROWS rows from Y on in slice Z, N bytes of each from X on; the app's side is BYTES, packed.
 */
struct cut {
	size_t x, y, z, n, rows;
	void *bytes;
};

/* The piece's place on one side. */
static struct copy_place cut_place(const struct copy_place *side, const struct cut *cut)
{
	struct copy_place place = *side;

	place.at += cut->x;
	if (place.array) {
		place.pitch += cut->y;
		place.slice += cut->z;
	} else {
		place.at += cut->y * place.pitch + cut->z * place.slice;
	}
	return place;
}

static CUresult relay(const struct shape *s, const struct cut *cut)
{
	const struct copy_place here = {.side = SIDE_HOST,
		.at = (uintptr_t)cut->bytes,
		.pitch = cut->n,
		.slice = cut->n * cut->rows};
	struct shape out = {cut_place(&s->src, cut), here, cut->n, cut->rows, 1};
	struct shape in = {here, cut_place(&s->dst, cut), cut->n, cut->rows, 1};
	CUresult status = move(&out, home_of(&s->src));

	return status ? status : move(&in, home_of(&s->dst));
}

/* The next piece: whole rows where one fits, else a part of one. False: that was the last. */
static bool cut_next(const struct shape *s, struct cut *cut)
{
	cut->x += cut->n;
	if (cut->x >= s->width) {
		cut->x = 0;
		cut->y += cut->rows;
	}
	if (cut->y >= s->height) {
		cut->y = 0;
		cut->z++;
	}
	cut->n = s->width - cut->x < PIECE ? s->width - cut->x : PIECE;
	cut->rows = s->width < PIECE ? PIECE / s->width : 1;
	if (cut->rows > s->height - cut->y)
		cut->rows = s->height - cut->y;
	return cut->z < s->depth;
}

static CUresult copy_relayed(const struct shape *s, uint64_t stream)
{
	CUresult status = sync_wait(SYNC_STREAM, stream, NULL);
	struct cut cut = {.bytes = status ? NULL : malloc(PIECE)};

	if (!cut.bytes)
		return status ? status : CUDA_ERROR_OUT_OF_MEMORY;
	statistics_copy(STATISTICS_DEVICE_TO_DEVICE, s->width * s->height * s->depth);
	while (!status && cut_next(s, &cut))
		status = relay(s, &cut);
	free(cut.bytes);
	return status;
}

CUresult copy_agents(struct shape *s, uint64_t stream, bool async)
{
	struct context *src = home_of(&s->src), *dst = home_of(&s->dst);
	CUresult status = CUDA_SUCCESS;

	if (capture_graph(stream)) {
		logs_add("cuMemcpy", "a capture does not span several agents");
		(void)capture_refuse(stream);
		return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
	}
	if (src && dst && src->session != dst->session)
		return direct_copy(s, src, dst, stream, async, &status)
			       ? status
			       : copy_relayed(s, stream);
	return copy_by_owner(s, dst ? dst : src, stream);
}
