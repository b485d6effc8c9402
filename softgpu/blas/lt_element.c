/* SPDX-License-Identifier: Apache-2.0
 *
 * Elements and layouts of cuBLASLt's matrices on the software GPU.
 */
#include "softgpu/blas/lt.h"

/* Rows of a tile, and where an element lies in it. Tiles have 32 columns and stand below each
 * other, in strips that are ld apart. */
static uint64_t tile_rows(const struct lt_layout *l)
{
	return l->order == LT_COL32 ? 1 : l->order == LT_COL4_4R2_8C ? 8 : 32;
}

static uint64_t tile_at(const struct lt_layout *l, uint64_t row, uint64_t col)
{
	switch (l->order) {
	case LT_COL4_4R2_8C: /* 4 columns of 4 rows that are even, then of 4 that are odd */
		return row % 2 * 128 + col / 8 * 32 + col / 4 % 2 * 16 + row / 2 * 4 + col % 4;
	case LT_COL32_2R_4R4: return ((row % 8 / 2 * 4 + row / 8) * 2 + row % 2) * 32 + col;
	default: return row * 32 + col;
	}
}

uint64_t lt_at(const struct lt_layout *l, uint64_t row, uint64_t col)
{
	uint64_t ld = (uint64_t)l->ld, rows;

	if (l->order == LT_COL)
		return col * ld + row;
	if (l->order == LT_ROW)
		return row * ld + col;
	rows = tile_rows(l);
	return col / 32 * ld + row / rows * rows * 32 + tile_at(l, row % rows, col % 32);
}

/* Elements of one column, row or strip, and how many of these there are. */
static bool strips(const struct lt_layout *l, uint64_t *inner, uint64_t *outer)
{
	uint64_t rows;

	*inner = l->order == LT_COL ? l->rows : l->cols;
	*outer = l->order == LT_COL ? l->cols : l->rows;
	if (l->order <= LT_ROW)
		return true;
	rows = tile_rows(l);
	*outer = l->cols / 32 + !!(l->cols % 32);
	return !__builtin_mul_overflow(l->rows / rows + !!(l->rows % rows), rows * 32, inner);
}

uint64_t lt_extent(const struct lt_layout *l)
{
	uint64_t inner, outer, elements;

	if (!l->rows || !l->cols)
		return 0;
	if (!strips(l, &inner, &outer) || l->ld < 0 || (uint64_t)l->ld < inner ||
		__builtin_mul_overflow(outer - 1, (uint64_t)l->ld, &elements) ||
		__builtin_add_overflow(elements, inner, &elements))
		return UINT64_MAX;
	return elements;
}

void *lt_begin(struct blas_task *task, const void *base, const struct lt_layout *l, int i,
	uint64_t size)
{
	const uint64_t *array = base;

	if (l->batch_mode == LT_STRIDED)
		return (void *)((uintptr_t)base +
				(uint64_t)l->batch_stride * (uint64_t)(unsigned)i * size);
	if (blas_reaches(&array[i], sizeof(*array), sizeof(*array)))
		return (void *)(uintptr_t)array[i];
	task->handle->failed = true;
	return NULL;
}

void *lt_member(struct blas_task *task, const void *base, const struct lt_layout *l, int i)
{
	uint64_t size = lt_size(l->type), bytes;
	void *at = lt_begin(task, base, l, i, size);

	if (!__builtin_mul_overflow(lt_extent(l), size, &bytes) &&
		blas_reaches(at, bytes, (uint32_t)size))
		return at;
	task->handle->failed = true;
	return NULL;
}
