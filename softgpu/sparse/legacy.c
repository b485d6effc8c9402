/* SPDX-License-Identifier: Apache-2.0
 *
 * Descriptors and information of the functions of one type each, and what those share.
 */
#include <limits.h>
#include <stdlib.h>

#include "softgpu/sparse/legacy.h"

CALL(cusparseCreateMatDescr, struct legacy_descr **descr)
{
	if (!descr)
		return SPARSE_INVALID_VALUE;
	*descr = calloc(1, sizeof(**descr));
	return *descr ? SPARSE_SUCCESS : SPARSE_ALLOC_FAILED;
}

CALL(cusparseDestroyMatDescr, struct legacy_descr *descr)
{
	free(descr);
	return SPARSE_SUCCESS;
}

#define FIELD(NAME, MEMBER, MOST)                                                              \
	CALL(cusparseSetMat##NAME, struct legacy_descr *descr, int value)                      \
	{                                                                                      \
		if (!descr || value < 0 || value > (MOST))                                     \
			return SPARSE_INVALID_VALUE;                                           \
		descr->MEMBER = value;                                                         \
		return SPARSE_SUCCESS;                                                         \
	}                                                                                      \
	CALL(cusparseGetMat##NAME, const struct legacy_descr *descr)                           \
	{                                                                                      \
		return descr ? descr->MEMBER : 0;                                              \
	}
FIELD(Type, type, 3)
FIELD(FillMode, fill, 1)
FIELD(DiagType, diag, 1)
FIELD(IndexBase, base, 1)

/* ---- information ---- */

static void state_fini(struct sparse_state *state)
{
	free(((struct legacy_state *)state)->order);
}

static int info_new(struct legacy_info **info)
{
	struct legacy_info *i;

	if (!info)
		return SPARSE_INVALID_VALUE;
	i = calloc(1, sizeof(*i));
	if (i)
		i->state = sparse_state_new(sizeof(*i->state), state_fini);
	if (!i || !i->state) {
		free(i);
		return SPARSE_ALLOC_FAILED;
	}
	i->state->zero = -1;
	*info = i;
	return SPARSE_SUCCESS;
}

static int info_free(struct legacy_info *info)
{
	if (info)
		sparse_state_drop(&info->state->base);
	free(info);
	return SPARSE_SUCCESS;
}

#define INFO(NAME)                                                                             \
	CALL(cusparseCreate##NAME, struct legacy_info **info)                                  \
	{                                                                                      \
		return info_new(info);                                                         \
	}                                                                                      \
	CALL(cusparseDestroy##NAME, struct legacy_info *info)                                  \
	{                                                                                      \
		return info_free(info);                                                        \
	}
INFO(Csric02Info)
INFO(Bsric02Info)
INFO(Csrilu02Info)
INFO(Bsrilu02Info)
INFO(Bsrsv2Info)
INFO(Bsrsm2Info)
INFO(Csru2csrInfo)
INFO(ColorInfo)
INFO(PruneInfo)

/* ---- where a zero was ---- */

struct zero {
	struct legacy_count position;
};

static void zero_run(struct sparse_task *task, void *arguments)
{
	struct zero *zero = arguments;

	legacy_count(task, &zero->position, legacy_state(task)->zero);
}

static int zero_pivot(struct sparse_handle *h, const struct legacy_info *info, int *position)
{
	struct zero zero = {0};
	int status;

	if (!h)
		return SPARSE_NO_HANDLE;
	if (!info || !position)
		return SPARSE_INVALID_VALUE;
	if (h->pointer_mode)
		zero.position.device = position;
	/* It waits for the stream, wherever the position goes. */
	status = sparse_finish(h, zero_run, &zero, sizeof(zero), &info->state->base);
	if (status)
		return status;
	if (!h->pointer_mode)
		*position = zero.position.value;
	return info->state->zero >= 0 ? SPARSE_ZERO_PIVOT : SPARSE_SUCCESS;
}

#define ZERO_PIVOT(NAME)                                                                       \
	CALL(cusparseX##NAME##_zeroPivot, struct sparse_handle *h, struct legacy_info *info,   \
		int *position)                                                                 \
	{                                                                                      \
		return zero_pivot(h, info, position);                                          \
	}
ZERO_PIVOT(bsrsv2)
ZERO_PIVOT(bsrsm2)
ZERO_PIVOT(csrilu02)
ZERO_PIVOT(csric02)
ZERO_PIVOT(bsrilu02)
ZERO_PIVOT(bsric02)

/* ---- what calls share ---- */

#define ANY(POINTER) ((void *)(uintptr_t)(POINTER))

struct sparse_matrix legacy_csr(const struct legacy_descr *descr, int type, int64_t rows,
	int64_t cols, int64_t nnz, const void *values, const int *offsets, const int *indices)
{
	return (struct sparse_matrix){
		.format = SPARSE_CSR,
		.rows = rows,
		.cols = cols,
		.nnz = nnz,
		.offsets = ANY(offsets),
		.indices = ANY(indices),
		.values = ANY(values),
		.offset_type = SPARSE_INDEX_32I,
		.index_type = SPARSE_INDEX_32I,
		.base = descr->base,
		.type = type,
		.batches = 1,
		.fill = descr->fill,
		.diag = descr->diag,
	};
}

struct sparse_matrix legacy_bsr(const struct legacy_descr *descr, int type, int dir,
	int64_t rows, int64_t cols, int64_t nnz, const void *values, const int *offsets,
	const int *indices, int row_block, int col_block)
{
	struct sparse_matrix m = legacy_csr(
		descr, type, rows * row_block, cols * col_block, nnz, values, offsets, indices);

	m.format = SPARSE_BSR;
	m.row_block = row_block;
	m.col_block = col_block;
	m.order = dir ? SPARSE_ORDER_COL : SPARSE_ORDER_ROW;
	return m;
}

int legacy_check(const struct sparse_handle *h, bool sizes, const struct legacy_descr *descr)
{
	if (!h)
		return SPARSE_NO_HANDLE;
	return sizes && descr ? SPARSE_SUCCESS : SPARSE_INVALID_VALUE;
}

bool legacy_block(int rows, int cols)
{
	return rows > 0 && cols > 0 && (int64_t)rows * cols <= INT_MAX;
}

int legacy_tell(int status, int *size)
{
	if (status || !size)
		return status ? status : SPARSE_INVALID_VALUE;
	*size = SPARSE_WORKSPACE;
	return SPARSE_SUCCESS;
}

int legacy_tell_bytes(int status, size_t *size)
{
	if (status || !size)
		return status ? status : SPARSE_INVALID_VALUE;
	*size = SPARSE_WORKSPACE;
	return SPARSE_SUCCESS;
}

void legacy_count(struct sparse_task *task, struct legacy_count *count, int64_t value)
{
	int *to = count->device;

	count->value = value > INT_MAX ? INT_MAX : (int)value;
	if (to && sparse_area(task, to, 0, 1, sizeof(*to)))
		*to = count->value;
}

int legacy_submit_count(struct sparse_handle *h, sparse_run *run, void *arguments, size_t size,
	struct legacy_count *count, int *where, struct sparse_state *state)
{
	int status;

	if (h->pointer_mode) {
		count->device = where;
		return sparse_submit(h, run, arguments, size, state);
	}
	status = sparse_finish(h, run, arguments, size, state);
	if (!status)
		*where = count->value;
	return status;
}

int64_t legacy_nnz(struct sparse_task *task, const int *offsets, int64_t lines)
{
	const int *at = sparse_area(task, offsets, 0, lines + 1, sizeof(*at));
	int64_t nnz = at ? (int64_t)at[lines] - at[0] : -1;

	if (nnz < 0)
		sparse_fail(task);
	return nnz;
}
