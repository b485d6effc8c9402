/* SPDX-License-Identifier: Apache-2.0
 *
 * Copies on memory of other agents than the stream's.  What is one agent's it does itself; what
 * is two agents' goes through this process, piece by piece.  The thread waits for either, so
 * that each stream finds its order as it is.
 */
#include <stdlib.h>

#include "shim/driver/array.h"
#include "shim/driver/context.h"
#include "shim/driver/copy.h"
#include "shim/driver/direct.h"
#include "shim/driver/graph/capture.h"
#include "shim/driver/memory/memory.h"
#include "shim/driver/stream.h"
#include "shim/engine/driver.h"
#include "shim/engine/statistics.h"
#include "shim/engine/thread.h"
#include "shim/generated/cuda_hand.h"

/* Bytes that lie in the process at once. */
#define PIECE (8u << 20)

/* In which context a side is; NULL: the app's memory. */
static struct context *side_home(enum side side, const struct array *array, uint64_t address)
{
	int device;

	if (array)
		return array->context;
	return side == SIDE_DEVICE && memory_in_window(address, &device)
		       ? &devices.at[device].primary
		       : NULL;
}

static struct context *source_home(const struct shape *s)
{
	return side_home(s->src_side, s->src_array, s->src);
}

static struct context *target_home(const struct shape *s)
{
	return side_home(s->dst_side, s->dst_array, s->dst);
}

bool copy_elsewhere(const struct shape *s)
{
	const struct context *src = source_home(s), *dst = target_home(s);

	return (src && src->session != session_here()) ||
	       (dst && dst->session != session_here());
}

/* One side of a piece, with the process: done when it returns. */
static CUresult move(struct shape *piece, struct context *home)
{
	bool in = piece->dst_side != SIDE_HOST;
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

static struct shape cut_source(const struct shape *s, const struct cut *cut)
{
	struct shape piece = *s;

	piece.dst_side = SIDE_HOST;
	piece.dst_array = NULL;
	piece.dst = (uintptr_t)cut->bytes;
	piece.dst_pitch = cut->n;
	piece.dst_slice = cut->n * cut->rows;
	piece.src += cut->x;
	if (s->src_array) {
		piece.src_pitch += cut->y;
		piece.src_slice += cut->z;
	} else {
		piece.src += cut->y * s->src_pitch + cut->z * s->src_slice;
	}
	piece.width = cut->n;
	piece.height = cut->rows;
	piece.depth = 1;
	return piece;
}

static struct shape cut_target(const struct shape *s, const struct cut *cut)
{
	struct shape piece = *s;

	piece.src_side = SIDE_HOST;
	piece.src_array = NULL;
	piece.src = (uintptr_t)cut->bytes;
	piece.src_pitch = cut->n;
	piece.src_slice = cut->n * cut->rows;
	piece.dst += cut->x;
	if (s->dst_array) {
		piece.dst_pitch += cut->y;
		piece.dst_slice += cut->z;
	} else {
		piece.dst += cut->y * s->dst_pitch + cut->z * s->dst_slice;
	}
	piece.width = cut->n;
	piece.height = cut->rows;
	piece.depth = 1;
	return piece;
}

static CUresult relay(const struct shape *s, const struct cut *cut)
{
	struct shape piece = cut_source(s, cut);
	CUresult status = move(&piece, source_home(s));

	if (status)
		return status;
	piece = cut_target(s, cut);
	return move(&piece, target_home(s));
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
	stats_copy(STATS_DEVICE_TO_DEVICE, s->width * s->height * s->depth);
	while (!status && cut_next(s, &cut))
		status = relay(s, &cut);
	free(cut.bytes);
	return status;
}

CUresult copy_agents(struct shape *s, uint64_t stream, bool async)
{
	struct context *src = source_home(s), *dst = target_home(s);
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
