/* SPDX-License-Identifier: Apache-2.0
 *
 * The device runtime's copies and fills: boxes of bytes in device memory, moved in the order of
 * what the grid launched.
 */
#include <stdlib.h>

#include "softgpu/ptx/internal.h"

enum {
	COPY_DEVICE_TO_DEVICE = 3,
	COPY_DEFAULT = 4,
};

/* struct cudaPitchedPtr, cudaExtent and cudaMemcpy3DParms. */
struct pitched {
	uint64_t at, pitch, width, height;
};
struct triple {
	uint64_t x, y, z;
};
struct copy_box {
	uint64_t from_array;
	struct triple from_position;
	struct pitched from;
	uint64_t to_array;
	struct triple to_position;
	struct pitched to;
	struct triple extent;
	uint32_t kind, reserved;
};

static bool denied(const struct ptx_warp *w, uint64_t address, uint64_t size)
{
	const uint64_t step = UINT64_C(1) << PTX_DENIED_SHIFT;

	for (uint64_t at = address; at < address + size; at = (at / step + 1) * step)
		if (ptx_denied(w, at))
			return true;
	return false;
}

static const unsigned char *reached(struct ptx_warp *w, uint64_t address, uint64_t size)
{
	const struct ptx_window *window = &ptx_device_window;

	if (address - window->base < window->span &&
		window->span - (address - window->base) >= size && !denied(w, address, size))
		return (const unsigned char *)(uintptr_t)address;
	if (!ptx_outside(address, size))
		ptx_fault(w, NULL, PTX_ILLEGAL_ADDRESS, "a copy at the illegal address 0x%llx",
			(unsigned long long)address);
	return (const unsigned char *)(uintptr_t)address;
}

static void move_row(struct ptx_warp *w, const struct ptx_child *child, uint64_t y, uint64_t z)
{
	unsigned char *to = (unsigned char *)(uintptr_t)reached(
		w, child->to + z * child->to_slice + y * child->to_pitch, child->width);

	if (child->fill)
		memset(to, child->value, child->width);
	else
		memmove(to,
			reached(w, child->from + z * child->from_slice + y * child->from_pitch,
				child->width),
			child->width);
}

void ptx_child_move(const struct ptx_child *child)
{
	struct ptx_warp *w = ptx_current->warp;

	if (!child->width || !child->height)
		return;
	for (uint64_t z = 0; z < child->slices; z++)
		for (uint64_t y = 0; y < child->height; y++)
			move_row(w, child, y, z);
}

/* Rows that overlap, or slices, are refused. */
static bool pitches_fit(const struct ptx_child *move, uint64_t pitch, uint64_t slice)
{
	return (move->height <= 1 || pitch >= move->width) &&
	       (move->slices <= 1 || !pitch || slice / pitch >= move->height);
}

static int submit_move(struct ptx_run_state *run, const struct ptx_child *move, uint64_t stream)
{
	struct ptx_child *child = malloc(sizeof(*child));

	if (!child)
		return PTX_CUDA_MEMORY_ALLOCATION;
	*child = *move;
	return ptx_child_submit(run, child, stream);
}

static int copy(
	struct ptx_warp *w, const struct ptx_child *move, uint64_t kind, uint64_t stream)
{
	if (kind != COPY_DEVICE_TO_DEVICE && kind != COPY_DEFAULT)
		return PTX_CUDA_INVALID_COPY_DIRECTION;
	if (!pitches_fit(move, move->to_pitch, move->to_slice) ||
		!pitches_fit(move, move->from_pitch, move->from_slice))
		return PTX_CUDA_INVALID_VALUE;
	return submit_move(w->block->run, move, stream);
}

static uint64_t box_start(const struct pitched *memory, const struct triple *position)
{
	return memory->at + (position->z * memory->height + position->y) * memory->pitch +
	       position->x;
}

/* Kernels have no arrays. */
static int copy_box(struct ptx_warp *w, const struct ptx_ins *i, unsigned lane, uint64_t params,
	uint64_t stream)
{
	struct copy_box box;
	struct ptx_child move;

	if (!params)
		return PTX_CUDA_INVALID_VALUE;
	/* Word by word: so the struct is aligned. */
	for (size_t k = 0; k < sizeof(box); k += sizeof(uint64_t))
		memcpy((char *)&box + k, ptx_generic(w, i, lane, params + k, sizeof(uint64_t)),
			sizeof(uint64_t));
	if (box.from_array || box.to_array)
		return PTX_CUDA_INVALID_VALUE;
	move = (struct ptx_child){.to = box_start(&box.to, &box.to_position),
		.to_pitch = box.to.pitch,
		.to_slice = box.to.pitch * box.to.height,
		.from = box_start(&box.from, &box.from_position),
		.from_pitch = box.from.pitch,
		.from_slice = box.from.pitch * box.from.height,
		.width = box.extent.x,
		.height = box.extent.y,
		.slices = box.extent.z};
	return copy(w, &move, box.kind, stream);
}

static int fill_box(struct ptx_warp *w, const struct ptx_call *call, unsigned lane)
{
	const void *memory = ptx_argument_at(w, call, lane, 0, sizeof(struct pitched));
	const void *size = ptx_argument_at(w, call, lane, 2, sizeof(struct triple));
	struct pitched to;
	struct triple extent;
	struct ptx_child move;

	if (!memory || !size)
		return PTX_CUDA_INVALID_VALUE;
	memcpy(&to, memory, sizeof(to));
	memcpy(&extent, size, sizeof(extent));
	move = (struct ptx_child){.fill = true,
		.value = (unsigned char)ptx_argument(w, call, lane, 1),
		.to = to.at,
		.to_pitch = to.pitch,
		.to_slice = to.pitch * to.height,
		.width = extent.x,
		.height = extent.y,
		.slices = extent.z};
	if (!pitches_fit(&move, move.to_pitch, move.to_slice))
		return PTX_CUDA_INVALID_VALUE;
	return submit_move(w->block->run, &move, ptx_argument(w, call, lane, 3));
}

int ptx_runtime_move(struct ptx_warp *w, const struct ptx_ins *i, unsigned lane,
	enum ptx_builtin what, const struct ptx_call *call)
{
#define ARG(n) ptx_argument(w, call, lane, n)
	struct ptx_child move = {.to = ARG(0), .height = 1, .slices = 1};

	switch (what) {
	case PTX_RUNTIME_COPY:
		move.from = ARG(1);
		move.width = ARG(2);
		return copy(w, &move, ARG(3), ARG(4));
	case PTX_RUNTIME_COPY_2D:
		move.to_pitch = ARG(1);
		move.from = ARG(2);
		move.from_pitch = ARG(3);
		move.width = ARG(4);
		move.height = ARG(5);
		return copy(w, &move, ARG(6), ARG(7));
	case PTX_RUNTIME_COPY_3D: return copy_box(w, i, lane, ARG(0), ARG(1));
	case PTX_RUNTIME_FILL:
		move.fill = true;
		move.value = (unsigned char)ARG(1);
		move.width = ARG(2);
		return submit_move(w->block->run, &move, ARG(3));
	case PTX_RUNTIME_FILL_2D:
		move.fill = true;
		move.to_pitch = ARG(1);
		move.value = (unsigned char)ARG(2);
		move.width = ARG(3);
		move.height = ARG(4);
		return submit_move(w->block->run, &move, ARG(5));
	default: return fill_box(w, call, lane);
	}
#undef ARG
}
