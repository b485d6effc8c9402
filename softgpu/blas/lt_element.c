/* SPDX-License-Identifier: Apache-2.0
 *
 * Elements and layouts of cuBLASLt's matrices on the software GPU.
 */
#include "softgpu/blas/lt.h"

uint64_t lt_at(const struct lt_layout *l, uint64_t row, uint64_t col)
{
	return l->order == LT_COL ? col * (uint64_t)l->ld + row : row * (uint64_t)l->ld + col;
}

uint64_t lt_extent(const struct lt_layout *l)
{
	uint64_t inner = l->order == LT_COL ? l->rows : l->cols;
	uint64_t outer = l->order == LT_COL ? l->cols : l->rows;
	uint64_t elements;

	if (!inner || !outer)
		return 0;
	if (l->ld < 0 || (uint64_t)l->ld < inner ||
		__builtin_mul_overflow(outer - 1, (uint64_t)l->ld, &elements) ||
		__builtin_add_overflow(elements, inner, &elements))
		return UINT64_MAX;
	return elements;
}

void *lt_member(struct blas_task *task, const void *base, const struct lt_layout *l, int i)
{
	uint64_t size = lt_size(l->type), bytes;
	uintptr_t at =
		(uintptr_t)base + (uint64_t)l->batch_stride * (uint64_t)(unsigned)i * size;

	if (!__builtin_mul_overflow(lt_extent(l), size, &bytes) &&
		blas_reaches((const void *)at, bytes, (uint32_t)size))
		return (void *)at;
	task->handle->failed = true;
	return NULL;
}
