/* SPDX-License-Identifier: Apache-2.0
 *
 * Versions; descriptors of matrices and products. The agent's library says whether it takes
 * one; what was set here is known here.
 */
#include "protocol/generated/cusparse_api.h"
#include "protocol/generated/cusparselt_ops.h"
#include "shim/libraries/cusparselt/cusparselt.h"

/* What is told before a handle was made. */
#define VERSION 801

static int version(void)
{
	uint32_t agents = *cusparselt_front.version;

	return agents ? (int)agents : VERSION;
}

cusparseStatus_t hand_cusparseLtGetVersion(const cusparseLtHandle_t *handle, int *number)
{
	if (!vcuda_library_find(&cusparselt_front, library_named(handle)) || !number)
		return CUSPARSE_STATUS_INVALID_VALUE;
	*number = version();
	return CUSPARSE_STATUS_SUCCESS;
}

cusparseStatus_t hand_cusparseLtGetProperty(libraryPropertyType type, int *value)
{
	int number = version();
	const int parts[] = {number / 1000, number / 100 % 10, number % 100};

	if ((unsigned)type > PATCH_LEVEL || !value)
		return CUSPARSE_STATUS_INVALID_VALUE;
	*value = parts[type];
	return CUSPARSE_STATUS_SUCCESS;
}

/* Statuses are cuSPARSE's. */
const char *hand_cusparseLtGetErrorName(cusparseStatus_t status)
{
	return cusparseGetErrorName(status);
}

const char *hand_cusparseLtGetErrorString(cusparseStatus_t status)
{
	return cusparseGetErrorString(status);
}

uint64_t sparselt_number(void)
{
	static uint64_t last;

	return __atomic_add_fetch(&last, 1, __ATOMIC_RELAXED);
}

uint64_t sparselt_read(const void *data, size_t bytes)
{
	uint64_t value = 0;

	memcpy(&value, data, bytes);
	return value;
}

/* ---- matrices ---- */

static cusparseStatus_t matrix_init(const cusparseLtHandle_t *handle, uint16_t op,
	cusparseLtMatDescriptor_t *to, const struct cusparselt_matrix *content)
{
	struct sparselt_matrix m = {.mark = SPARSELT_MATRIX, .content = *content};
	cusparseStatus_t status;

	if (!to)
		return CUSPARSE_STATUS_INVALID_VALUE;
	status = sparselt_check(handle, op, &m, CUSPARSELT_ITEM_MATRIX);
	if (!status)
		memcpy(to, &m, sizeof(m));
	return status;
}

cusparseStatus_t hand_cusparseLtDenseDescriptorInit(const cusparseLtHandle_t *handle,
	cusparseLtMatDescriptor_t *matDescr, int64_t rows, int64_t cols, int64_t ld,
	uint32_t alignment, cudaDataType valueType, cusparseOrder_t order)
{
	return matrix_init(handle, OP_cusparseLtDenseDescriptorInit, matDescr,
		&(struct cusparselt_matrix){.rows = rows,
			.cols = cols,
			.ld = ld,
			.alignment = alignment,
			.type = (int32_t)valueType,
			.order = order});
}

cusparseStatus_t hand_cusparseLtStructuredDescriptorInit(const cusparseLtHandle_t *handle,
	cusparseLtMatDescriptor_t *matDescr, int64_t rows, int64_t cols, int64_t ld,
	uint32_t alignment, cudaDataType valueType, cusparseOrder_t order,
	cusparseLtSparsity_t sparsity)
{
	if (sparsity < 0 || sparsity == INT32_MAX)
		return CUSPARSE_STATUS_INVALID_VALUE;
	return matrix_init(handle, OP_cusparseLtStructuredDescriptorInit, matDescr,
		&(struct cusparselt_matrix){.rows = rows,
			.cols = cols,
			.ld = ld,
			.alignment = alignment,
			.type = (int32_t)valueType,
			.order = order,
			.sparsity = sparsity + 1});
}

cusparseStatus_t hand_cusparseLtMatDescriptorDestroy(const cusparseLtMatDescriptor_t *matDescr)
{
	return sparselt_matrix_of(matDescr) ? CUSPARSE_STATUS_SUCCESS
					    : CUSPARSE_STATUS_INVALID_VALUE;
}

/* A count of batches has 4 bytes, a stride 8. */
static bool matrix_has(int attribute, size_t bytes)
{
	return (attribute == CUSPARSELT_MAT_NUM_BATCHES && bytes == sizeof(int)) ||
	       (attribute == CUSPARSELT_MAT_BATCH_STRIDE && bytes == sizeof(int64_t));
}

cusparseStatus_t hand_cusparseLtMatDescSetAttribute(const cusparseLtHandle_t *handle,
	cusparseLtMatDescriptor_t *matmulDescr, cusparseLtMatDescAttribute_t matAttribute,
	const void *data, size_t dataSize)
{
	struct sparselt_matrix *m = sparselt_matrix_of(matmulDescr);
	uint64_t value;

	if (!vcuda_library_find(&cusparselt_front, library_named(handle)) || !m || !data ||
		!matrix_has(matAttribute, dataSize))
		return CUSPARSE_STATUS_INVALID_VALUE;
	value = sparselt_read(data, dataSize);
	if (matAttribute == CUSPARSELT_MAT_NUM_BATCHES ? (int)value <= 0 : (int64_t)value < 0)
		return CUSPARSE_STATUS_INVALID_VALUE;
	m->content.value[matAttribute] = value;
	m->content.set |= 1u << matAttribute;
	return CUSPARSE_STATUS_SUCCESS;
}

cusparseStatus_t hand_cusparseLtMatDescGetAttribute(const cusparseLtHandle_t *handle,
	const cusparseLtMatDescriptor_t *matmulDescr, cusparseLtMatDescAttribute_t matAttribute,
	void *data, size_t dataSize)
{
	const struct sparselt_matrix *m = sparselt_matrix_of(matmulDescr);

	if (!m || !matrix_has(matAttribute, dataSize) || !data)
		return CUSPARSE_STATUS_INVALID_VALUE;
	if (!(m->content.set & 1u << matAttribute))
		return sparselt_ask(handle, OP_cusparseLtMatDescGetAttribute, m,
			CUSPARSELT_ITEM_MATRIX, matAttribute, data, dataSize);
	memcpy(data, &m->content.value[matAttribute], dataSize);
	return CUSPARSE_STATUS_SUCCESS;
}

/* ---- products ---- */

cusparseStatus_t hand_cusparseLtMatmulDescriptorInit(const cusparseLtHandle_t *handle,
	cusparseLtMatmulDescriptor_t *matmulDescr, cusparseOperation_t opA,
	cusparseOperation_t opB, const cusparseLtMatDescriptor_t *matA,
	const cusparseLtMatDescriptor_t *matB, const cusparseLtMatDescriptor_t *matC,
	const cusparseLtMatDescriptor_t *matD, cusparseComputeType computeType)
{
	const cusparseLtMatDescriptor_t *from[CUSPARSELT_MATRICES] = {matA, matB, matC, matD};
	struct sparselt_product p = {
		.mark = SPARSELT_PRODUCT,
		.number = sparselt_number(),
		.content = {.op_a = opA, .op_b = opB, .compute = computeType},
	};
	cusparseStatus_t status;

	if (!matmulDescr)
		return CUSPARSE_STATUS_INVALID_VALUE;
	for (int i = 0; i < CUSPARSELT_MATRICES; i++) {
		const struct sparselt_matrix *m = sparselt_matrix_of(from[i]);

		if (!m)
			return CUSPARSE_STATUS_INVALID_VALUE;
		p.content.matrix[i] = m->content;
	}
	status = sparselt_check(
		handle, OP_cusparseLtMatmulDescriptorInit, &p, CUSPARSELT_ITEM_PRODUCT);
	if (!status)
		memcpy(matmulDescr, &p, sizeof(p));
	return status;
}

cusparseStatus_t hand_cusparseLtMatmulDescSetAttribute(const cusparseLtHandle_t *handle,
	cusparseLtMatmulDescriptor_t *matmulDescr,
	cusparseLtMatmulDescAttribute_t matmulAttribute, const void *data, size_t dataSize)
{
	struct sparselt_product *p = sparselt_product_of(matmulDescr);

	if (!vcuda_library_find(&cusparselt_front, library_named(handle)) || !p || !data ||
		!dataSize || dataSize != cusparselt_product_bytes(matmulAttribute))
		return CUSPARSE_STATUS_INVALID_VALUE;
	p->content.value[matmulAttribute] = sparselt_read(data, dataSize);
	p->content.set |= 1u << matmulAttribute;
	return CUSPARSE_STATUS_SUCCESS;
}

cusparseStatus_t hand_cusparseLtMatmulDescGetAttribute(const cusparseLtHandle_t *handle,
	const cusparseLtMatmulDescriptor_t *matmulDescr,
	cusparseLtMatmulDescAttribute_t matmulAttribute, void *data, size_t dataSize)
{
	const struct sparselt_product *p = sparselt_product_of(matmulDescr);

	if (!p || !data || !dataSize || dataSize != cusparselt_product_bytes(matmulAttribute))
		return CUSPARSE_STATUS_INVALID_VALUE;
	if (!(p->content.set & 1u << matmulAttribute))
		return sparselt_ask(handle, OP_cusparseLtMatmulDescGetAttribute, p,
			CUSPARSELT_ITEM_PRODUCT, matmulAttribute, data, dataSize);
	memcpy(data, &p->content.value[matmulAttribute], dataSize);
	return CUSPARSE_STATUS_SUCCESS;
}
