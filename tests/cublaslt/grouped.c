/* SPDX-License-Identifier: Apache-2.0
 *
 * What cuBLAS 13.2 and up have more: products in groups, each of a shape of its own that lies
 * on the device; scalars for each product of a batch; results that are the same in every batch;
 * and algorithms for a stream of a part of the device. A program that was built before has
 * shorter descriptors.
 */
#include <cuda.h>
#include <dlfcn.h>

#include "tests/cublaslt/check.h"

#if CUBLASLT_ABI == 12

int main(void)
{
	if (dlvsym(RTLD_DEFAULT, "cublasLtGroupedMatrixLayoutCreate", "libcublasLt.so.12"))
		DIE("cuBLAS 12 has grouped layouts");
	puts("not in this library");
	return 0;
}

#else

enum { GROUPS = 3, SHORT_WORDS = 8 };

static cublasLtHandle_t lt;

static void *on_device(const void *from, size_t bytes)
{
	void *to;

	CUDA(cudaMalloc(&to, bytes));
	CUDA(cudaMemcpy(to, from, bytes, cudaMemcpyHostToDevice));
	return to;
}

/* One operand of all products: the matrices, their addresses, and their shapes. */
struct operand {
	struct matrix matrix[GROUPS];
	int64_t rows[GROUPS], cols[GROUPS];
	void *at, *shape[3]; /* on the device */
	cublasLtMatrixLayoutOpaque_t own;
	cublasLtMatrixLayout_t layout;
};

static void operand_set(struct operand *o, const int *rows, const int *cols, bool wide)
{
	int32_t narrow[3][GROUPS];
	int64_t large[3][GROUPS];
	void *at[GROUPS];

	for (int i = 0; i < GROUPS; i++) {
		o->matrix[i] = matrix_new(CUDA_R_32F, rows[i], cols[i]);
		at[i] = o->matrix[i].device;
		o->rows[i] = large[0][i] = large[2][i] = narrow[0][i] = narrow[2][i] = rows[i];
		o->cols[i] = large[1][i] = narrow[1][i] = cols[i];
	}
	o->at = on_device(at, sizeof(at));
	for (int i = 0; i < 3; i++)
		o->shape[i] = wide ? on_device(large[i], sizeof(large[i]))
				   : on_device(narrow[i], sizeof(narrow[i]));
}

static void operand_layout(struct operand *o, bool wide)
{
	const int32_t width = CUBLASLT_INTEGER_WIDTH_64;

	if (!wide) {
		BLAS(cublasLtGroupedMatrixLayoutCreate(
			&o->layout, CUDA_R_32F, GROUPS, o->shape[0], o->shape[1], o->shape[2]));
		return;
	}
	BLAS(cublasLtGroupedMatrixLayoutInit_internal(&o->own, sizeof(o->own), CUDA_R_32F,
		GROUPS, o->shape[0], o->shape[1], o->shape[2]));
	o->layout = &o->own;
	BLAS(cublasLtMatrixLayoutSetAttribute(o->layout,
		CUBLASLT_GROUPED_MATRIX_LAYOUT_ROWS_COLS_ARRAY_INTEGER_WIDTH, &width,
		sizeof(width)));
	BLAS(cublasLtMatrixLayoutSetAttribute(o->layout,
		CUBLASLT_GROUPED_MATRIX_LAYOUT_LD_ARRAY_INTEGER_WIDTH, &width, sizeof(width)));
}

static void operand_free(struct operand *o)
{
	for (int i = 0; i < GROUPS; i++)
		matrix_free(&o->matrix[i]);
	CUDA(cudaFree(o->at));
	for (int i = 0; i < 3; i++)
		CUDA(cudaFree(o->shape[i]));
	if (o->layout != &o->own)
		BLAS(cublasLtMatrixLayoutDestroy(o->layout));
}

/* D = A B, by groups. */
static void grouped(bool wide, const int *m, const int *n, const int *k)
{
	static const char *const what[] = {"the first group", "the second", "the third"};
	struct operand a = {.layout = NULL}, b = a, d = a;
	const uint32_t average[] = {8, 9, 10};
	const float one = 1, zero = 0;
	cublasLtMatmulHeuristicResult_t best;
	cublasLtMatmulPreference_t pref;
	cublasLtMatmulDesc_t op;
	int32_t mode = -1, count = 0;

	operand_set(&a, m, k, wide);
	operand_set(&b, k, n, wide);
	operand_set(&d, m, n, wide);
	operand_layout(&a, wide);
	operand_layout(&b, wide);
	operand_layout(&d, wide);
	BLAS(cublasLtMatrixLayoutGetAttribute(
		a.layout, CUBLASLT_MATRIX_LAYOUT_BATCH_MODE, &mode, sizeof(mode), NULL));
	BLAS(cublasLtMatrixLayoutGetAttribute(
		a.layout, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &count, sizeof(count), NULL));
	if (mode != CUBLASLT_BATCH_MODE_GROUPED || count != GROUPS)
		DIE("mode %d of %d groups", mode, count);
	BLAS(cublasLtMatmulPreferenceCreate(&pref));
	for (int i = 0; i < 3; i++)
		BLAS(cublasLtMatmulPreferenceSetAttribute(pref,
			CUBLASLT_MATMUL_PREF_GROUPED_AVERAGE_REDUCTION_DIM + i, &average[i],
			sizeof(average[i])));
	BLAS(cublasLtMatmulDescCreate(&op, F32, CUDA_R_32F));
	BLAS(cublasLtMatmulAlgoGetHeuristic(
		lt, op, a.layout, b.layout, d.layout, d.layout, pref, 1, &best, &count));
	if (count != 1)
		DIE("no algorithm for groups");
	BLAS(cublasLtMatmulAlgoCheck(
		lt, op, a.layout, b.layout, d.layout, d.layout, &best.algo, &best));
	for (int again = 0; again < 3; again++)
		BLAS(cublasLtMatmul(lt, op, &one, a.at, a.layout, b.at, b.layout, &zero, d.at,
			d.layout, d.at, d.layout, &best.algo, NULL, 0, NULL));
	for (int g = 0; g < GROUPS; g++) {
		for (int i = 0; i < m[g]; i++)
			for (int j = 0; j < n[g]; j++) {
				double sum = 0;

				for (int l = 0; l < k[g]; l++)
					sum += creal(at_of(&a.matrix[g], 0, i, l) *
						     at_of(&b.matrix[g], 0, l, j));
				put_at(d.matrix[g].host, CUDA_R_32F, (size_t)(j * m[g] + i),
					sum);
			}
		matrix_check(&d.matrix[g], what[g]);
	}
	BLAS(cublasLtMatmulDescDestroy(op));
	BLAS(cublasLtMatmulPreferenceDestroy(pref));
	operand_free(&a);
	operand_free(&b);
	operand_free(&d);
}

/* D = alpha[i] A B + beta[i] C for each product of a batch, whatever the batch's size. */
static void scalars_of_a_batch(void)
{
	enum { N = 8, BATCH = 3, STEP = 2 };
	const float alphas[BATCH * STEP] = {1, 9, -2, 9, 3},
				   betas[BATCH * STEP] = {0, 9, 1, 9, 2};
	const int64_t stride = N * N, step = STEP;
	const int32_t batch = BATCH;
	const uint32_t align = 4;
	int32_t mode = CUBLASLT_POINTER_MODE_DEVICE;
	uint32_t flags = 0;
	void *alpha = on_device(alphas, sizeof(alphas)),
	     *beta = on_device(betas, sizeof(betas));
	struct descs d = descs_new(F32, CUDA_R_32F, CUDA_R_32F, CUDA_R_32F, 0, 0, N, N, N);
	struct matrix a = matrix_new(CUDA_R_32F, N, N * BATCH),
		      b = matrix_new(CUDA_R_32F, N, N * BATCH),
		      c = matrix_new(CUDA_R_32F, N, N * BATCH);
	cublasLtMatrixLayout_t layouts[] = {d.a, d.b, d.c, d.d};

	for (int i = 0; i < 4; i++) {
		SET_LAYOUT(layouts[i], BATCH_COUNT, batch);
		SET_LAYOUT(layouts[i], STRIDED_BATCH_OFFSET, stride);
	}
	BLAS(cublasLtMatmulDescGetAttribute(d.op, CUBLASLT_MATMUL_DESC_BATCH_INVARIANCE_FLAGS,
		&flags, sizeof(flags), NULL));
	if (flags != CUBLASLT_BATCH_INVARIANCE_UNSET)
		DIE("the flags are %#x at first", flags);
	SET_OP(&d, BATCH_INVARIANCE_FLAGS, align);
	SET_OP(&d, ALPHA_BATCH_STRIDE, step);
	SET_OP(&d, BETA_BATCH_STRIDE, step);
	BLAS_IS(cublasLtMatmul(lt, d.op, alphas, a.device, d.a, b.device, d.b, betas, c.device,
			d.c, c.device, d.d, NULL, NULL, 0, NULL),
		CUBLAS_STATUS_NOT_SUPPORTED);
	SET_OP(&d, POINTER_MODE, mode);
	BLAS(cublasLtMatmul(lt, d.op, alpha, a.device, d.a, b.device, d.b, beta, c.device, d.c,
		c.device, d.d, NULL, NULL, 0, NULL));
	for (int g = 0; g < BATCH; g++)
		for (int i = 0; i < N; i++)
			for (int j = 0; j < N; j++) {
				size_t at = (size_t)((g * N + j) * N + i);
				double sum = 0;

				for (int l = 0; l < N; l++)
					sum += creal(at_of(&a, 0, i, g * N + l) *
						     at_of(&b, 0, l, g * N + j));
				put_at(c.host, CUDA_R_32F, at,
					alphas[g * STEP] * sum +
						betas[g * STEP] *
							get_at(c.host, CUDA_R_32F, at));
			}
	matrix_check(&c, "scalars of a batch");
	descs_free(&d);
	matrix_free(&a);
	matrix_free(&b);
	matrix_free(&c);
	CUDA(cudaFree(alpha));
	CUDA(cudaFree(beta));
}

/* What was built with an older header has less room: nothing behind it is touched. */
static void short_descriptors(void)
{
	uint64_t layout[SHORT_WORDS + 1], pref[SHORT_WORDS + 1], rows = 7;
	void *array = &rows;
	uint32_t average = 5;

	layout[SHORT_WORDS] = pref[SHORT_WORDS] = 0x1234;
	BLAS(cublasLtMatrixLayoutInit_internal(
		(void *)layout, SHORT_WORDS * 8, CUDA_R_32F, 5, 6, 8));
	BLAS(cublasLtMatrixLayoutSetAttribute(
		(void *)layout, CUBLASLT_MATRIX_LAYOUT_ROWS, &rows, sizeof(rows)));
	BLAS(cublasLtMatrixLayoutGetAttribute((void *)layout,
		CUBLASLT_GROUPED_MATRIX_LAYOUT_ROWS_ARRAY, &array, sizeof(array), NULL));
	BLAS(cublasLtMatmulPreferenceInit_internal((void *)pref, SHORT_WORDS * 8));
	BLAS(cublasLtMatmulPreferenceGetAttribute((void *)pref,
		CUBLASLT_MATMUL_PREF_GROUPED_DESC_D_AVERAGE_ROWS, &average, sizeof(average),
		NULL));
	if (array || average)
		DIE("an array at %p, an average of %u", array, average);
	if (layout[SHORT_WORDS] != 0x1234 || pref[SHORT_WORDS] != 0x1234)
		DIE("a descriptor is longer than its memory");
	BLAS_IS(cublasLtGroupedMatrixLayoutInit_internal(
			(void *)layout, SHORT_WORDS * 8, CUDA_R_32F, 1, &rows, &rows, &rows),
		CUBLAS_STATUS_ALLOC_FAILED);
}

#define DRIVER(NAME) __typeof__(NAME) *p_##NAME = dlsym(driver, #NAME)

static void stream_of_a_part(void)
{
	struct descs d = descs_new(F32, CUDA_R_32F, CUDA_R_32F, CUDA_R_32F, 0, 0, 16, 16, 16);
	void *driver = dlopen("libcuda.so.1", RTLD_NOW);
	cublasLtMatmulHeuristicResult_t best = {.workspaceSize = 0};
	CUdevResourceDesc description;
	CUdevResource whole;
	CUgreenCtx green;
	CUstream streams[2];

	if (!driver)
		DIE("no libcuda.so.1");
	DRIVER(cuDevResourceGenerateDesc);
	DRIVER(cuDeviceGetDevResource);
	DRIVER(cuGreenCtxCreate);
	DRIVER(cuGreenCtxDestroy);
	DRIVER(cuGreenCtxStreamCreate);
	CUDA(p_cuDeviceGetDevResource(0, &whole, CU_DEV_RESOURCE_TYPE_SM));
	CUDA(p_cuDevResourceGenerateDesc(&description, &whole, 1));
	CUDA(p_cuGreenCtxCreate(&green, description, 0, CU_GREEN_CTX_DEFAULT_STREAM));
	CUDA(p_cuGreenCtxStreamCreate(&streams[0], green, CU_STREAM_NON_BLOCKING, 0));
	CUDA(cudaStreamCreate(&streams[1]));
	for (int i = 0; i < 2; i++) {
		int count = 0;

		BLAS(cublasLtMatmulAlgoGetHeuristicForStream(
			lt, d.op, d.a, d.b, d.c, d.d, d.pref, 1, &best, &count, streams[i]));
		if (count != 1)
			DIE("no algorithm for a stream");
		BLAS(cublasLtMatmulAlgoCheckForStream(
			lt, d.op, d.a, d.b, d.c, d.d, &best.algo, &best, streams[i]));
		BLAS_IS(best.state, CUBLAS_STATUS_SUCCESS);
		CUDA(cudaStreamDestroy(streams[i]));
	}
	BLAS_IS(cublasLtMatmulAlgoGetHeuristicForStream(
			NULL, d.op, d.a, d.b, d.c, d.d, d.pref, 1, &best, &(int){0}, NULL),
		CUBLAS_STATUS_NOT_INITIALIZED);
	CUDA(p_cuGreenCtxDestroy(green));
	descs_free(&d);
}

int main(void)
{
	const int m[] = {4, 17, 8}, n[] = {5, 3, 16}, k[] = {6, 9, 1};

	BLAS(cublasLtCreate(&lt));
	grouped(false, m, n, k);
	grouped(true, n, k, m);
	grouped(false, k, m, n);
	scalars_of_a_batch();
	short_descriptors();
	stream_of_a_part();
	BLAS(cublasLtDestroy(lt));
	puts("groups: right");
	return 0;
}

#endif
