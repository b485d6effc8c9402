/* SPDX-License-Identifier: Apache-2.0
 *
 * What is wrong is refused, in NVIDIA's words where its documentation has them; attributes are
 * what they were set to, and before that their defaults; versions agree.
 */
#include "tests/cusparselt/check.h"

#define INVALID CUSPARSE_STATUS_INVALID_VALUE
#define REFUSED(CALL) CHECK((CALL) != CUSPARSE_STATUS_SUCCESS, "taken: " #CALL)

static cusparseLtMatDescriptor_t a, b;

static void versions(void)
{
	int version = 0, part[3];

	SPARSE(cusparseLtGetVersion(&lt, &version));
	for (int i = 0; i < 3; i++)
		SPARSE(cusparseLtGetProperty((libraryPropertyType)i, &part[i]));
	CHECK(version == part[0] * 1000 + part[1] * 100 + part[2], "version %d, %d.%d.%d",
		version, part[0], part[1], part[2]);
	REFUSED(cusparseLtGetVersion(&lt, NULL));
	REFUSED(cusparseLtGetProperty(MAJOR_VERSION, NULL));
	CHECK(!strcmp(cusparseLtGetErrorName(INVALID), "CUSPARSE_STATUS_INVALID_VALUE"),
		"the name is %s", cusparseLtGetErrorName(INVALID));
	CHECK(*cusparseLtGetErrorString(INVALID), "a status without a text");
}

static void matrices(void)
{
	cusparseLtMatDescriptor_t m;
	int batches = 0, three = 3;
	int64_t stride = -1, far = 1024;

	SPARSE_IS(cusparseLtInit(NULL), INVALID);
	SPARSE_IS(cusparseLtDenseDescriptorInit(NULL, &m, 32, 32, 32, 16, CUDA_R_16F, ROW),
		INVALID);
	SPARSE_IS(cusparseLtDenseDescriptorInit(&lt, NULL, 32, 32, 32, 16, CUDA_R_16F, ROW),
		INVALID);
	REFUSED(cusparseLtDenseDescriptorInit(&lt, &m, 0, 32, 32, 16, CUDA_R_16F, ROW));
	REFUSED(cusparseLtDenseDescriptorInit(&lt, &m, 32, 32, 16, 16, CUDA_R_16F, ROW));
	REFUSED(cusparseLtDenseDescriptorInit(&lt, &m, 32, 32, 32, 16, CUDA_C_64F, ROW));
	SPARSE(cusparseLtDenseDescriptorInit(&lt, &m, 32, 32, 32, 16, CUDA_R_16F, ROW));
	SPARSE(cusparseLtMatDescGetAttribute(
		&lt, &m, CUSPARSELT_MAT_NUM_BATCHES, &batches, sizeof(batches)));
	CHECK(batches == 1, "%d batches", batches);
	SPARSE(cusparseLtMatDescSetAttribute(
		&lt, &m, CUSPARSELT_MAT_NUM_BATCHES, &three, sizeof(three)));
	SPARSE(cusparseLtMatDescSetAttribute(
		&lt, &m, CUSPARSELT_MAT_BATCH_STRIDE, &far, sizeof(far)));
	SPARSE(cusparseLtMatDescGetAttribute(
		&lt, &m, CUSPARSELT_MAT_NUM_BATCHES, &batches, sizeof(batches)));
	SPARSE(cusparseLtMatDescGetAttribute(
		&lt, &m, CUSPARSELT_MAT_BATCH_STRIDE, &stride, sizeof(stride)));
	CHECK(batches == 3 && stride == 1024, "%d batches, a stride of %ld", batches,
		(long)stride);
	REFUSED(cusparseLtMatDescSetAttribute(&lt, &m, CUSPARSELT_MAT_NUM_BATCHES, &three, 1));
	REFUSED(cusparseLtMatDescSetAttribute(
		&lt, &m, CUSPARSELT_MAT_NUM_BATCHES, NULL, sizeof(three)));
	SPARSE(cusparseLtMatDescriptorDestroy(&m));
}

static void products(void)
{
	cusparseLtMatmulDescriptor_t p;
	cusparseLtMatDescriptor_t other;
	int relu = 1, yes = 1;
	float bound = 0, six = 6;

	SPARSE(cusparseLtDenseDescriptorInit(&lt, &other, 64, 64, 64, 16, CUDA_R_16F, ROW));
	REFUSED(cusparseLtMatmulDescriptorInit(
		&lt, &p, N, N, &a, &other, &b, &b, CUSPARSE_COMPUTE_32F));
	SPARSE_IS(cusparseLtMatmulDescriptorInit(
			  &lt, NULL, N, N, &a, &b, &b, &b, CUSPARSE_COMPUTE_32F),
		INVALID);
	SPARSE_IS(cusparseLtMatmulDescriptorInit(
			  &lt, &p, N, N, NULL, &b, &b, &b, CUSPARSE_COMPUTE_32F),
		INVALID);
	SPARSE(cusparseLtMatmulDescriptorInit(
		&lt, &p, N, N, &a, &b, &b, &b, CUSPARSE_COMPUTE_32F));
	SPARSE(cusparseLtMatmulDescGetAttribute(
		&lt, &p, CUSPARSELT_MATMUL_ACTIVATION_RELU, &relu, sizeof(relu)));
	CHECK(!relu, "relu is %d", relu);
	SPARSE(cusparseLtMatmulDescSetAttribute(
		&lt, &p, CUSPARSELT_MATMUL_ACTIVATION_RELU, &yes, sizeof(yes)));
	SPARSE(cusparseLtMatmulDescSetAttribute(
		&lt, &p, CUSPARSELT_MATMUL_ACTIVATION_RELU_UPPERBOUND, &six, sizeof(six)));
	SPARSE(cusparseLtMatmulDescGetAttribute(
		&lt, &p, CUSPARSELT_MATMUL_ACTIVATION_RELU_UPPERBOUND, &bound, sizeof(bound)));
	CHECK(bound == 6, "the bound is %g", (double)bound);
	REFUSED(cusparseLtMatmulDescSetAttribute(
		&lt, &p, CUSPARSELT_MATMUL_ACTIVATION_RELU, &yes, 1));
	SPARSE(cusparseLtMatDescriptorDestroy(&other));
}

static void algorithms(void)
{
	cusparseLtMatmulDescriptor_t p;
	cusparseLtMatmulAlgSelection_t algorithm;
	cusparseLtMatmulPlan_t plan;
	float one = 1;
	int most = 0;

	SPARSE(cusparseLtMatmulDescriptorInit(
		&lt, &p, N, N, &a, &b, &b, &b, CUSPARSE_COMPUTE_32F));
	SPARSE(cusparseLtMatmulAlgSelectionInit(
		&lt, &algorithm, &p, CUSPARSELT_MATMUL_ALG_DEFAULT));
	SPARSE(cusparseLtMatmulAlgGetAttribute(
		&lt, &algorithm, CUSPARSELT_MATMUL_ALG_CONFIG_MAX_ID, &most, sizeof(most)));
	CHECK(most >= 1, "%d algorithms", most);
	REFUSED(cusparseLtMatmulAlgSetAttribute(
		&lt, &algorithm, CUSPARSELT_MATMUL_ALG_CONFIG_ID, &most, sizeof(most)));
	REFUSED(cusparseLtMatmulAlgSetAttribute(
		&lt, &algorithm, CUSPARSELT_MATMUL_ALG_CONFIG_MAX_ID, &most, sizeof(most)));
	SPARSE_IS(cusparseLtMatmulPlanInit(&lt, NULL, &p, &algorithm), INVALID);
	SPARSE_IS(cusparseLtMatmulPlanInit(&lt, &plan, NULL, &algorithm), INVALID);
	SPARSE(cusparseLtMatmulPlanInit(&lt, &plan, &p, &algorithm));
	REFUSED(cusparseLtMatmulGetWorkspace(&lt, &plan, NULL));
	REFUSED(cusparseLtMatmul(
		&lt, &plan, &one, NULL, NULL, &one, NULL, NULL, NULL, NULL, 0));
	SPARSE(cusparseLtMatmulPlanDestroy(&plan));
}

int main(void)
{
	device_begin();
	SPARSE(cusparseLtInit(&lt));
	SPARSE(cusparseLtStructuredDescriptorInit(
		&lt, &a, 32, 32, 32, 16, CUDA_R_16F, ROW, CUSPARSELT_SPARSITY_50_PERCENT));
	SPARSE(cusparseLtDenseDescriptorInit(&lt, &b, 32, 32, 32, 16, CUDA_R_16F, ROW));
	versions();
	matrices();
	products();
	algorithms();
	SPARSE(cusparseLtMatDescriptorDestroy(&a));
	SPARSE(cusparseLtMatDescriptorDestroy(&b));
	SPARSE(cusparseLtDestroy(&lt));
	return 0;
}
