/* SPDX-License-Identifier: Apache-2.0
 *
 * Handles, descriptors, algorithms and plans; the library's version.
 */
#include <limits.h>
#include <string.h>

#include "softgpu/sparselt/sparselt.h"

#define LT_MAJOR 0
#define LT_MINOR 8
#define LT_PATCH 1

/* No program's array has these by chance. */
#define HANDLE_MARK 0x68616e646c654c54
#define MATRIX_MARK 0x6d61747269784c54
#define MATMUL_MARK 0x6d61746d756c4c54
#define ALGORITHM_MARK 0x616c676f724c5431
#define PLAN_MARK 0x706c616e4c543031

bool lt_is_handle(const struct lt_handle *h)
{
	return h && h->mark == HANDLE_MARK;
}
bool lt_is_matrix(const struct lt_matrix *m)
{
	return m && m->mark == MATRIX_MARK;
}
bool lt_is_matmul(const struct lt_matmul *m)
{
	return m && m->mark == MATMUL_MARK;
}
bool lt_is_plan(const struct lt_matmul *m)
{
	return m && m->mark == PLAN_MARK;
}
static bool is_algorithm(const struct lt_algorithm *a)
{
	return a && a->mark == ALGORITHM_MARK;
}

/* ---- the library ---- */

CALL(cusparseLtInit, struct lt_handle *handle)
{
	CUcontext context;

	if (!handle)
		return SPARSE_INVALID_VALUE;
	if (cuCtxGetCurrent(&context) || !context)
		return SPARSE_NOT_INITIALIZED;
	handle->mark = HANDLE_MARK;
	return SPARSE_SUCCESS;
}

CALL(cusparseLtDestroy, const struct lt_handle *handle)
{
	if (!lt_is_handle(handle))
		return SPARSE_INVALID_VALUE;
	((struct lt_handle *)(uintptr_t)handle)->mark = 0;
	return SPARSE_SUCCESS;
}

CALL(cusparseLtGetVersion, const struct lt_handle *handle, int *version)
{
	if (!lt_is_handle(handle) || !version)
		return SPARSE_INVALID_VALUE;
	*version = LT_MAJOR * 1000 + LT_MINOR * 100 + LT_PATCH;
	return SPARSE_SUCCESS;
}

CALL(cusparseLtGetProperty, int type, int *value)
{
	static const int parts[] = {LT_MAJOR, LT_MINOR, LT_PATCH};

	if (type < 0 || type > 2 || !value)
		return SPARSE_INVALID_VALUE;
	*value = parts[type];
	return SPARSE_SUCCESS;
}

SPARSE_EXPORT const char *cusparseLtGetErrorName(int status);
SPARSE_EXPORT const char *cusparseLtGetErrorName(int status)
{
	return sparse_status_name(status);
}

SPARSE_EXPORT const char *cusparseLtGetErrorString(int status);
SPARSE_EXPORT const char *cusparseLtGetErrorString(int status)
{
	return sparse_status_text(status);
}

/* ---- matrices ---- */

/* Sizes are multiples of 16 bytes for dense numbers and of 32 for those that are left out. */
static int matrix_init(const struct lt_handle *h, struct lt_matrix *m, int64_t rows,
	int64_t cols, int64_t ld, uint32_t alignment, int type, int order, bool structured)
{
	int64_t unit;

	if (!lt_is_handle(h) || !m || rows <= 0 || cols <= 0 || alignment % 16 || !alignment ||
		(order != SPARSE_ORDER_COL && order != SPARSE_ORDER_ROW) ||
		ld < (order == SPARSE_ORDER_ROW ? cols : rows) || rows > INT_MAX ||
		cols > INT_MAX || ld > INT_MAX ||
		ld * (order == SPARSE_ORDER_ROW ? rows : cols) > LT_MOST_NUMBERS)
		return SPARSE_INVALID_VALUE;
	if (type != SPARSE_R_16F && type != SPARSE_R_16BF && type != SPARSE_R_8I &&
		type != SPARSE_R_32F && type != SPARSE_R_32I)
		return SPARSE_NOT_SUPPORTED;
	unit = (structured ? 32 : 16) / (int64_t)sparse_size(type);
	if (rows % unit || cols % unit || ld % unit)
		return SPARSE_NOT_SUPPORTED;
	*m = (struct lt_matrix){
		.mark = MATRIX_MARK,
		.rows = rows,
		.cols = cols,
		.ld = ld,
		.type = type,
		.order = order,
		.structured = structured,
		.batches = 1,
	};
	return SPARSE_SUCCESS;
}

CALL(cusparseLtDenseDescriptorInit, const struct lt_handle *h, struct lt_matrix *m,
	int64_t rows, int64_t cols, int64_t ld, uint32_t alignment, int type, int order)
{
	return matrix_init(h, m, rows, cols, ld, alignment, type, order, false);
}

CALL(cusparseLtStructuredDescriptorInit, const struct lt_handle *h, struct lt_matrix *m,
	int64_t rows, int64_t cols, int64_t ld, uint32_t alignment, int type, int order,
	int sparsity)
{
	if (sparsity)
		return SPARSE_NOT_SUPPORTED;
	return matrix_init(h, m, rows, cols, ld, alignment, type, order, true);
}

CALL(cusparseLtMatDescriptorDestroy, const struct lt_matrix *m)
{
	return lt_is_matrix(m) ? SPARSE_SUCCESS : SPARSE_INVALID_VALUE;
}

/* An attribute goes out or comes in, where the size is its own. */
static int attribute(void *field, size_t size, void *data, size_t data_size, bool set)
{
	if (!field || !data || data_size != size)
		return SPARSE_INVALID_VALUE;
	if (set)
		memcpy(field, data, size);
	else
		memcpy(data, field, size);
	return SPARSE_SUCCESS;
}

static int matrix_attribute(const struct lt_handle *h, struct lt_matrix *m, int name,
	void *data, size_t size, bool set)
{
	int64_t stride;
	int batches;

	if (!lt_is_handle(h) || !lt_is_matrix(m))
		return SPARSE_INVALID_VALUE;
	if (name == 1 && data && size == sizeof(stride)) {
		memcpy(&stride, data, sizeof(stride));
		if (set && (stride < 0 || stride > LT_MOST_NUMBERS))
			return SPARSE_INVALID_VALUE;
		return attribute(&m->stride, sizeof(m->stride), data, size, set);
	}
	if (name != 0 || !data || size != sizeof(batches))
		return SPARSE_INVALID_VALUE;
	memcpy(&batches, data, sizeof(batches));
	if (set && (batches <= 0 || batches > LT_MOST_BATCHES))
		return SPARSE_INVALID_VALUE;
	return attribute(&m->batches, sizeof(m->batches), data, size, set);
}

CALL(cusparseLtMatDescSetAttribute, const struct lt_handle *h, struct lt_matrix *m, int name,
	const void *data, size_t size)
{
	return matrix_attribute(h, m, name, (void *)(uintptr_t)data, size, true);
}

CALL(cusparseLtMatDescGetAttribute, const struct lt_handle *h, const struct lt_matrix *m,
	int name, void *data, size_t size)
{
	return matrix_attribute(h, (struct lt_matrix *)(uintptr_t)m, name, data, size, false);
}

/* ---- products ---- */

static bool types_ok(int a, int b, int c, int d, int compute)
{
	if (a != b)
		return false;
	switch (a) {
	case SPARSE_R_16F:
		return c == a && d == a &&
		       (compute == LT_COMPUTE_32F || compute == LT_COMPUTE_16F);
	case SPARSE_R_16BF: return c == a && d == a && compute == LT_COMPUTE_32F;
	case SPARSE_R_32F: return c == a && d == a && compute == LT_COMPUTE_32F;
	case SPARSE_R_8I:
		return compute == LT_COMPUTE_32I && c == d &&
		       (c == SPARSE_R_8I || c == SPARSE_R_16F || c == SPARSE_R_16BF ||
			       c == SPARSE_R_32I);
	default: return false;
	}
}

CALL(cusparseLtMatmulDescriptorInit, const struct lt_handle *h, struct lt_matmul *m, int op_a,
	int op_b, const struct lt_matrix *a, const struct lt_matrix *b,
	const struct lt_matrix *c, const struct lt_matrix *d, int compute)
{
	if (!lt_is_handle(h) || !m || !lt_is_matrix(a) || !lt_is_matrix(b) ||
		!lt_is_matrix(c) || !lt_is_matrix(d) ||
		(op_a != SPARSE_OP_N && op_a != SPARSE_OP_T) ||
		(op_b != SPARSE_OP_N && op_b != SPARSE_OP_T))
		return SPARSE_INVALID_VALUE;
	if (a->structured == b->structured || c->structured || d->structured ||
		sparse_op_rows(op_a, a->rows, a->cols) != d->rows ||
		sparse_op_rows(op_a, a->cols, a->rows) !=
			sparse_op_rows(op_b, b->rows, b->cols) ||
		sparse_op_rows(op_b, b->cols, b->rows) != d->cols || c->rows != d->rows ||
		c->cols != d->cols)
		return SPARSE_INVALID_VALUE;
	if (!types_ok(a->type, b->type, c->type, d->type, compute))
		return SPARSE_NOT_SUPPORTED;
	*m = (struct lt_matmul){
		.mark = MATMUL_MARK,
		.a = *a,
		.b = *b,
		.c = *c,
		.d = *d,
		.op_a = op_a,
		.op_b = op_b,
		.compute = compute,
		.upper_bound = __builtin_inff(),
		.gelu_scaling = 1,
	};
	return SPARSE_SUCCESS;
}

static int matmul_attribute(const struct lt_handle *h, struct lt_matmul *m, int name,
	void *data, size_t size, bool set)
{
	if (!lt_is_handle(h) || !lt_is_matmul(m))
		return SPARSE_INVALID_VALUE;
	switch (name) {
	case 0: return attribute(&m->relu, sizeof(m->relu), data, size, set);
	case 1: return attribute(&m->upper_bound, sizeof(m->upper_bound), data, size, set);
	case 2: return attribute(&m->threshold, sizeof(m->threshold), data, size, set);
	case 3: return attribute(&m->gelu, sizeof(m->gelu), data, size, set);
	case 4: return attribute(&m->gelu_scaling, sizeof(m->gelu_scaling), data, size, set);
	case 5: return attribute(&m->alpha_vector, sizeof(m->alpha_vector), data, size, set);
	case 6: return attribute(&m->beta_vector, sizeof(m->beta_vector), data, size, set);
	case 7: return attribute(&m->bias_stride, sizeof(m->bias_stride), data, size, set);
	case 8: return attribute(&m->bias, sizeof(m->bias), data, size, set);
	case 9: return attribute(&m->sparse, sizeof(m->sparse), data, size, set);
	default: return SPARSE_NOT_SUPPORTED; /* scales of narrower numbers */
	}
}

CALL(cusparseLtMatmulDescSetAttribute, const struct lt_handle *h, struct lt_matmul *m, int name,
	const void *data, size_t size)
{
	return matmul_attribute(h, m, name, (void *)(uintptr_t)data, size, true);
}

CALL(cusparseLtMatmulDescGetAttribute, const struct lt_handle *h, const struct lt_matmul *m,
	int name, void *data, size_t size)
{
	return matmul_attribute(h, (struct lt_matmul *)(uintptr_t)m, name, data, size, false);
}

/* ---- algorithms: there is one ---- */

CALL(cusparseLtMatmulAlgSelectionInit, const struct lt_handle *h, struct lt_algorithm *a,
	const struct lt_matmul *m, int algorithm)
{
	if (!lt_is_handle(h) || !a || !lt_is_matmul(m) || algorithm)
		return SPARSE_INVALID_VALUE;
	*a = (struct lt_algorithm){
		.mark = ALGORITHM_MARK,
		.iterations = 5,
		.split_k = 1,
	};
	return SPARSE_SUCCESS;
}

CALL(cusparseLtMatmulAlgSelectionDestroy, const struct lt_algorithm *a)
{
	return is_algorithm(a) ? SPARSE_SUCCESS : SPARSE_INVALID_VALUE;
}

static int algorithm_attribute(const struct lt_handle *h, struct lt_algorithm *a, int name,
	void *data, size_t size, bool set)
{
	int most = 1, value;

	if (!lt_is_handle(h) || !is_algorithm(a) || !data || size != sizeof(value))
		return SPARSE_INVALID_VALUE;
	memcpy(&value, data, sizeof(value));
	switch (name) {
	case 0:
		if (set && (value < 0 || value >= most))
			return SPARSE_INVALID_VALUE;
		return attribute(&a->id, sizeof(a->id), data, size, set);
	case 1:
		return set ? SPARSE_INVALID_VALUE
			   : attribute(&most, sizeof(most), data, size, false);
	case 2:
		if (set && value <= 0)
			return SPARSE_INVALID_VALUE;
		return attribute(&a->iterations, sizeof(a->iterations), data, size, set);
	case 3: return attribute(&a->split_k, sizeof(a->split_k), data, size, set);
	case 4: return attribute(&a->split_k_mode, sizeof(a->split_k_mode), data, size, set);
	case 5:
		return attribute(
			&a->split_k_buffers, sizeof(a->split_k_buffers), data, size, set);
	default: return SPARSE_INVALID_VALUE;
	}
}

CALL(cusparseLtMatmulAlgSetAttribute, const struct lt_handle *h, struct lt_algorithm *a,
	int name, const void *data, size_t size)
{
	return algorithm_attribute(h, a, name, (void *)(uintptr_t)data, size, true);
}

CALL(cusparseLtMatmulAlgGetAttribute, const struct lt_handle *h, const struct lt_algorithm *a,
	int name, void *data, size_t size)
{
	return algorithm_attribute(
		h, (struct lt_algorithm *)(uintptr_t)a, name, data, size, false);
}

/* ---- plans: a product's description as it was then ---- */

CALL(cusparseLtMatmulPlanInit, const struct lt_handle *h, struct lt_matmul *plan,
	const struct lt_matmul *m, const struct lt_algorithm *a)
{
	if (!lt_is_handle(h) || !plan || !lt_is_matmul(m) || !is_algorithm(a))
		return SPARSE_INVALID_VALUE;
	*plan = *m;
	plan->mark = PLAN_MARK;
	return SPARSE_SUCCESS;
}

CALL(cusparseLtMatmulPlanDestroy, const struct lt_matmul *plan)
{
	return lt_is_plan(plan) ? SPARSE_SUCCESS : SPARSE_INVALID_VALUE;
}

CALL(cusparseLtMatmulGetWorkspace, const struct lt_handle *h, const struct lt_matmul *plan,
	size_t *size)
{
	if (!lt_is_handle(h) || !lt_is_plan(plan) || !size)
		return SPARSE_INVALID_VALUE;
	*size = SPARSE_WORKSPACE;
	return SPARSE_SUCCESS;
}
