/* SPDX-License-Identifier: Apache-2.0
 *
 * Descriptors: made, made in the program's own memory and copied like any other, set and read;
 * what is none is refused.  Transforms between layouts, and what needs no descriptor.
 */
#include <dlfcn.h>
#include <stdlib.h>
#include <unistd.h>

#include "tests/cublaslt/check.h"

static cublasLtHandle_t handle;

static void layouts(void)
{
	cublasLtMatrixLayoutOpaque_t own, copy;
	cublasLtMatrixLayout_t made;
	uint64_t rows = 0, more = 77;
	int32_t order = -1, batch = 0;
	size_t written = 0;
	uint32_t type = 99;

	BLAS(cublasLtMatrixLayoutInit_internal(&own, sizeof(own), CUDA_R_16F, 5, 6, 8));
	BLAS(cublasLtMatrixLayoutSetAttribute(
		&own, CUBLASLT_MATRIX_LAYOUT_ROWS, &more, sizeof(more)));
	copy = own;
	memset(&own, 0, sizeof(own));
	BLAS(cublasLtMatrixLayoutGetAttribute(
		&copy, CUBLASLT_MATRIX_LAYOUT_ROWS, &rows, sizeof(rows), &written));
	if (rows != 77 || written != sizeof(rows))
		DIE("77 rows are %llu in %zu bytes", (unsigned long long)rows, written);
	BLAS(cublasLtMatrixLayoutGetAttribute(
		&copy, CUBLASLT_MATRIX_LAYOUT_TYPE, &type, sizeof(type), NULL));
	BLAS(cublasLtMatrixLayoutGetAttribute(
		&copy, CUBLASLT_MATRIX_LAYOUT_ORDER, &order, sizeof(order), NULL));
	BLAS(cublasLtMatrixLayoutGetAttribute(
		&copy, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &batch, sizeof(batch), NULL));
	if (type != CUDA_R_16F || order != CUBLASLT_ORDER_COL || batch != 1)
		DIE("type %u, order %d, batch %d", type, order, batch);
	BLAS(cublasLtMatrixLayoutGetAttribute(
		&copy, CUBLASLT_MATRIX_LAYOUT_LD, NULL, 0, &written));
	if (written != 8)
		DIE("a leading dimension has %zu bytes", written);
	BLAS_IS(cublasLtMatrixLayoutSetAttribute(&copy, CUBLASLT_MATRIX_LAYOUT_ROWS, &more, 4),
		CUBLAS_STATUS_INVALID_VALUE);
	BLAS_IS(cublasLtMatrixLayoutSetAttribute(
			&copy, CUBLASLT_MATRIX_LAYOUT_ROWS, NULL, sizeof(more)),
		CUBLAS_STATUS_INVALID_VALUE);
	BLAS_IS(cublasLtMatrixLayoutSetAttribute(&copy, 1234, &more, sizeof(more)),
		CUBLAS_STATUS_INVALID_VALUE);
	BLAS_IS(cublasLtMatrixLayoutInit_internal(&own, 8, CUDA_R_16F, 5, 6, 8),
		CUBLAS_STATUS_ALLOC_FAILED);
	BLAS(cublasLtMatrixLayoutCreate(&made, CUDA_R_32F, 1, 2, 3));
	BLAS(cublasLtMatrixLayoutDestroy(made));
}

static void products(void)
{
	cublasLtMatmulDescOpaque_t own;
	cublasLtMatmulDesc_t made;
	int32_t compute = 0, scale = 0, fill = 0, bias_type = 0;
	uint32_t epilogue = 0;
	void *bias = &own, *got = &own;
	int8_t fast = 1, is_fast = 0;

	BLAS(cublasLtMatmulDescInit_internal(&own, sizeof(own), F32, CUDA_R_32F));
#define GET(NAME, VALUE)                                                                       \
	BLAS(cublasLtMatmulDescGetAttribute(                                                   \
		&own, CUBLASLT_MATMUL_DESC_##NAME, &(VALUE), sizeof(VALUE), NULL))
	GET(COMPUTE_TYPE, compute);
	GET(SCALE_TYPE, scale);
	GET(FILL_MODE, fill);
	GET(EPILOGUE, epilogue);
	GET(BIAS_DATA_TYPE, bias_type);
	GET(BIAS_POINTER, got);
	if (compute != F32 || scale != CUDA_R_32F || fill != 2 || epilogue != 1 ||
		bias_type != -1 || got)
		DIE("a new product has %d %d %d %u %d %p", compute, scale, fill, epilogue,
			bias_type, got);
	BLAS(cublasLtMatmulDescSetAttribute(
		&own, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &bias, sizeof(bias)));
	BLAS(cublasLtMatmulDescSetAttribute(
		&own, CUBLASLT_MATMUL_DESC_FAST_ACCUM, &fast, sizeof(fast)));
	GET(BIAS_POINTER, got);
	GET(FAST_ACCUM, is_fast);
#undef GET
	if (got != bias || is_fast != 1)
		DIE("the bias is at %p, not %p", got, bias);
	BLAS_IS(cublasLtMatmulDescInit_internal(&own, 16, F32, CUDA_R_32F),
		CUBLAS_STATUS_ALLOC_FAILED);
	BLAS(cublasLtMatmulDescCreate(&made, F64, CUDA_R_64F));
	BLAS(cublasLtMatmulDescDestroy(made));
}

static void preferences(void)
{
	cublasLtMatmulPreferenceOpaque_t own;
	uint64_t workspace = 123, got = 0, impl = 0;
	uint32_t alignment = 0;

	BLAS(cublasLtMatmulPreferenceInit_internal(&own, sizeof(own)));
	BLAS(cublasLtMatmulPreferenceSetAttribute(
		&own, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &workspace, sizeof(workspace)));
	BLAS(cublasLtMatmulPreferenceGetAttribute(
		&own, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &got, sizeof(got), NULL));
	BLAS(cublasLtMatmulPreferenceGetAttribute(&own,
		CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, &alignment, sizeof(alignment),
		NULL));
	BLAS(cublasLtMatmulPreferenceGetAttribute(
		&own, CUBLASLT_MATMUL_PREF_IMPL_MASK, &impl, sizeof(impl), NULL));
	if (got != 123 || alignment != 256 || impl != UINT64_MAX)
		DIE("preferences are %llu, %u, %llx", (unsigned long long)got, alignment,
			(unsigned long long)impl);
}

/* Rows of A, transposed, plus twice B, as columns. */
static void transforms(void)
{
	enum { ROWS = 6, COLS = 5 };
	struct matrix a = matrix_new(CUDA_R_32F, ROWS, COLS);
	struct matrix b = matrix_new(CUDA_R_32F, ROWS, COLS);
	struct matrix c = matrix_new(CUDA_R_32F, ROWS, COLS);
	cublasLtMatrixTransformDescOpaque_t desc;
	cublasLtMatrixLayout_t la, lb, lc;
	int32_t order = CUBLASLT_ORDER_ROW, transpose = 1, got = 0;
	float alpha = 1, beta = 2;

	BLAS(cublasLtMatrixTransformDescInit_internal(&desc, sizeof(desc), CUDA_R_32F));
	BLAS(cublasLtMatrixTransformDescSetAttribute(
		&desc, CUBLASLT_MATRIX_TRANSFORM_DESC_TRANSA, &transpose, sizeof(transpose)));
	BLAS(cublasLtMatrixTransformDescGetAttribute(
		&desc, CUBLASLT_MATRIX_TRANSFORM_DESC_TRANSA, &got, sizeof(got), NULL));
	if (got != 1)
		DIE("the transposition is %d", got);
	/* A is COLS by ROWS, row after row: its memory is that of ROWS by COLS in columns. */
	BLAS(cublasLtMatrixLayoutCreate(&la, CUDA_R_32F, COLS, ROWS, ROWS));
	SET_LAYOUT(la, ORDER, order);
	BLAS(cublasLtMatrixLayoutCreate(&lb, CUDA_R_32F, ROWS, COLS, ROWS));
	BLAS(cublasLtMatrixLayoutCreate(&lc, CUDA_R_32F, ROWS, COLS, ROWS));
	for (size_t i = 0; i < a.count; i++)
		put_at(c.host, c.type, i,
			get_at(a.host, a.type, i) + 2 * get_at(b.host, b.type, i));
	BLAS(cublasLtMatrixTransform(
		handle, &desc, &alpha, a.device, la, &beta, b.device, lb, c.device, lc, NULL));
	matrix_check(&c, "a transform");
	for (size_t i = 0; i < a.count; i++)
		put_at(c.host, c.type, i, get_at(a.host, a.type, i));
	BLAS(cublasLtMatrixTransform(
		handle, &desc, &alpha, a.device, la, &beta, NULL, NULL, c.device, lc, NULL));
	matrix_check(&c, "a transform of one matrix");
	BLAS(cublasLtMatrixLayoutDestroy(la));
	BLAS(cublasLtMatrixLayoutDestroy(lb));
	BLAS(cublasLtMatrixLayoutDestroy(lc));
	matrix_free(&a);
	matrix_free(&b);
	matrix_free(&c);
}

/* How doubles may be made of smaller numbers: new in 13. Whether the library does it is its own
 * affair; the numbers are right, and it says how many bits it took, -1 for none. */
#if CUBLASLT_ABI >= 13
static void emulation(void)
{
	enum { SIZE = 16 };
	struct descs d =
		descs_new(F64, CUDA_R_64F, CUDA_R_64F, CUDA_R_64F, 0, 0, SIZE, SIZE, SIZE);
	struct matrix a = matrix_new(CUDA_R_64F, SIZE, SIZE),
		      b = matrix_new(CUDA_R_64F, SIZE, SIZE);
	struct matrix c = matrix_new(CUDA_R_64F, SIZE, SIZE);
	int32_t bits = 40, got = 0, special = 0, *count, counted = 0;
	double one = 1, zero = 0;
	cublasLtEmulationDesc_t how, named = NULL;
	cublasStatus_t status;

	BLAS(cublasLtEmulationDescCreate(&how));
	BLAS(cublasLtEmulationDescSetAttribute(how,
		CUBLASLT_EMULATION_DESC_FIXEDPOINT_MAX_MANTISSA_BIT_COUNT, &bits,
		sizeof(bits)));
	BLAS(cublasLtEmulationDescGetAttribute(how,
		CUBLASLT_EMULATION_DESC_FIXEDPOINT_MAX_MANTISSA_BIT_COUNT, &got, sizeof(got),
		NULL));
	BLAS(cublasLtEmulationDescGetAttribute(how,
		CUBLASLT_EMULATION_DESC_SPECIAL_VALUES_SUPPORT, &special, sizeof(special),
		NULL));
	if (got != 40 || special != 0xffff)
		DIE("%d bits, special values %#x", got, special);
	CUDA(cudaMalloc((void **)&count, sizeof(*count)));
	CUDA(cudaMemset(count, 0x55, sizeof(*count)));
	BLAS(cublasLtEmulationDescSetAttribute(how,
		CUBLASLT_EMULATION_DESC_FIXEDPOINT_MANTISSA_BIT_COUNT_POINTER, &count,
		sizeof(count)));
	SET_OP(&d, EMULATION_DESCRIPTOR, how);
	BLAS(cublasLtMatmulDescGetAttribute(
		d.op, CUBLASLT_MATMUL_DESC_EMULATION_DESCRIPTOR, &named, sizeof(named), NULL));
	if (named != how)
		DIE("the product's emulation is at %p, not %p", (void *)named, (void *)how);
	for (int col = 0; col < SIZE; col++)
		for (int row = 0; row < SIZE; row++) {
			double sum = 0;

			for (int k = 0; k < SIZE; k++)
				sum += creal(at_of(&a, 0, row, k) * at_of(&b, 0, k, col));
			put_at(c.host, c.type, (size_t)(col * SIZE + row), sum);
		}
	status = cublasLtMatmul(handle, d.op, &one, a.device, d.a, b.device, d.b, &zero,
		c.device, d.c, c.device, d.d, NULL, NULL, 0, NULL);
	if (status == CUBLAS_STATUS_NOT_SUPPORTED || status == CUBLAS_STATUS_INVALID_VALUE) {
		puts("skip: a product that may be emulated, which this library does not do "
		     "here");
	} else {
		BLAS(status);
		matrix_check(&c, "a product that may be emulated");
		CUDA(cudaMemcpy(&counted, count, sizeof(counted), cudaMemcpyDeviceToHost));
		if (counted == 0x55555555)
			puts("skip: how many bits an emulation took, which this library does "
			     "not say");
	}
	BLAS(cublasLtEmulationDescDestroy(how));
	CUDA(cudaFree(count));
	matrix_free(&a);
	matrix_free(&b);
	matrix_free(&c);
	descs_free(&d);
}
#endif

static void refusals(void)
{
	struct descs d = descs_new(F32, CUDA_R_32F, CUDA_R_32F, CUDA_R_32F, 0, 0, 4, 4, 4);
	struct matrix m = matrix_new(CUDA_R_32F, 4, 4);
	float one = 1, zero = 0;
	cublasLtMatmulHeuristicResult_t best;
	uint64_t rows = 9;

	/* NVIDIA's own library crashes on some of these. */
	if (dlsym(RTLD_DEFAULT, "vcuda_stats_begin")) {
		REFUSED(cublasLtMatmul(NULL, d.op, &one, m.device, d.a, m.device, d.b, &zero,
			m.device, d.c, m.device, d.d, NULL, NULL, 0, NULL));
		REFUSED(cublasLtMatmul(handle, NULL, &one, m.device, d.a, m.device, d.b, &zero,
			m.device, d.c, m.device, d.d, NULL, NULL, 0, NULL));
		REFUSED(cublasLtMatmul(handle, d.op, NULL, m.device, d.a, m.device, d.b, &zero,
			m.device, d.c, m.device, d.d, NULL, NULL, 0, NULL));
	}
	/* Sizes that do not go together, and the program goes on. */
	SET_LAYOUT(d.a, ROWS, rows);
	if (!descs_algo(handle, &d, &best))
		DIE("there is an algorithm for 9 rows in place of 4");
	CUDA(cudaDeviceSynchronize());
	matrix_free(&m);
	descs_free(&d);
}

/* The file is there, as a program that reads it later expects; what the agent's library would
 * write to it is not. */
static void log_file(void)
{
	char path[] = "/tmp/vcuda-cublaslt-log-XXXXXX";
	int fd = mkstemp(path);

	if (fd < 0 || close(fd) || unlink(path))
		DIE("no name for a log in /tmp");
	BLAS(cublasLtLoggerOpenFile(path));
	if (unlink(path))
		DIE("the log's file was not made");
	BLAS_IS(cublasLtLoggerOpenFile("/nowhere/at/all"), CUBLAS_STATUS_INVALID_VALUE);
	BLAS_IS(cublasLtLoggerOpenFile(NULL), CUBLAS_STATUS_INVALID_VALUE);
}

static void without_a_descriptor(void)
{
	int major = 0;

	BLAS(cublasLtGetProperty(MAJOR_VERSION, &major));
	if (major < 12 || major > 13 || cublasLtGetVersion() < 120000 ||
		cublasLtGetCudartVersion() < 12000)
		DIE("the version is %zu of CUDA %zu, major %d", cublasLtGetVersion(),
			cublasLtGetCudartVersion(), major);
	if (strcmp(cublasLtGetStatusName(CUBLAS_STATUS_NOT_SUPPORTED),
		    "CUBLAS_STATUS_NOT_SUPPORTED"))
		DIE("NOT_SUPPORTED is %s", cublasLtGetStatusName(CUBLAS_STATUS_NOT_SUPPORTED));
	if (!strlen(cublasLtGetStatusString(CUBLAS_STATUS_SUCCESS)))
		DIE("success has no text");
	BLAS(cublasLtLoggerSetLevel(0));
	BLAS_IS(cublasLtLoggerSetLevel(99), CUBLAS_STATUS_INVALID_VALUE);
	BLAS(cublasLtLoggerSetMask(0));
	log_file();
	BLAS(cublasLtLoggerForceDisable());
}

int main(void)
{
	BLAS(cublasLtCreate(&handle));
	layouts();
	products();
	preferences();
	transforms();
#if CUBLASLT_ABI >= 13
	emulation();
#endif
	refusals();
	without_a_descriptor();
	BLAS(cublasLtDestroy(handle));
	puts("descriptors: right");
	return 0;
}
