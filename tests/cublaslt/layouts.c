/* SPDX-License-Identifier: Apache-2.0
 *
 * Products of matrices that lie otherwise: batches by addresses on the device, complex numbers
 * beside each other and in planes, 8-bit integers in tiles, and 8-bit floats with scale factors
 * for their rows and blocks.
 */
#include "tests/cublaslt/check.h"

enum { WORKSPACE = 1 << 20, C16F = 6, E4M3 = 28, BATCH_MODE = 8, PLANE_OFFSET = 7 };

static cublasLtHandle_t lt;
static void *workspace;
static int skipped;

/* Runs it, or says that this library does not serve it: false. */
static bool product(const struct descs *d, const void *alpha, const void *a, const void *b,
	const void *beta, const void *c, void *out, const char *what)
{
	cublasLtMatmulHeuristicResult_t best;
	int status = descs_algo(lt, d, &best);

	if (status == CUBLAS_STATUS_NOT_SUPPORTED) {
		printf("skip: %s, which this library does not serve\n", what);
		skipped++;
		return false;
	}
	BLAS(status);
	BLAS(cublasLtMatmul(lt, d->op, alpha, a, d->a, b, d->b, beta, c, d->c, out, d->d,
		&best.algo, workspace, WORKSPACE, NULL));
	CUDA(cudaStreamSynchronize(NULL));
	return true;
}

static void *sent(const void *host, size_t bytes)
{
	void *device;

	CUDA(cudaMalloc(&device, bytes));
	CUDA(cudaMemcpy(device, host, bytes, cudaMemcpyHostToDevice));
	return device;
}

/* ---- batches by addresses ---- */

static void addresses(void)
{
	enum { M = 24, N = 16, K = 32, BATCH = 3 };
	struct descs d = descs_new(F32, CUDA_R_32F, CUDA_R_16F, CUDA_R_16F, 1, 0, M, N, K);
	cublasLtMatrixLayout_t layouts[] = {d.a, d.b, d.c, d.d};
	struct matrix a[BATCH], b[BATCH], c[BATCH], out[BATCH];
	const void *at[4][BATCH];
	void *lists[4];
	float alpha = 2, beta = -1;
	int32_t batch = BATCH;
	uint32_t mode = 1;

	for (int i = 0; i < 4; i++) {
		SET_LAYOUT(layouts[i], BATCH_COUNT, batch);
		BLAS(cublasLtMatrixLayoutSetAttribute(
			layouts[i], BATCH_MODE, &mode, sizeof(mode)));
	}
	for (int i = 0; i < BATCH; i++) {
		at[0][i] = (a[i] = matrix_new(CUDA_R_16F, K, M)).device;
		/* Members have no order in memory, and may be the same. */
		b[i] = i ? b[0] : matrix_new(CUDA_R_16F, K, N);
		at[1][i] = b[i].device;
		at[2][i] = (c[i] = matrix_new(CUDA_R_16F, M, N)).device;
		at[3][BATCH - 1 - i] =
			(out[BATCH - 1 - i] = matrix_new(CUDA_R_16F, M, N)).device;
	}
	for (int i = 0; i < 4; i++)
		lists[i] = sent(at[i], sizeof(at[i]));
	if (product(&d, &alpha, lists[0], lists[1], &beta, lists[2], lists[3],
		    "batches by addresses"))
		for (int i = 0; i < BATCH; i++) {
			for (int col = 0; col < N; col++)
				for (int row = 0; row < M; row++) {
					size_t place = (size_t)(col * M + row);
					double sum = 0;

					for (int k = 0; k < K; k++)
						sum += creal(at_of(&a[i], 1, row, k) *
							     at_of(&b[i], 0, k, col));
					put_at(out[i].host, CUDA_R_16F, place,
						alpha * sum +
							beta * creal(get_at(c[i].host,
								       CUDA_R_16F, place)));
				}
			matrix_check(&out[i], "batches by addresses");
		}
	matrix_free(&b[0]);
	for (int i = 0; i < BATCH; i++) {
		matrix_free(&a[i]);
		matrix_free(&c[i]);
		matrix_free(&out[i]);
	}
	for (int i = 0; i < 4; i++)
		CUDA(cudaFree(lists[i]));
	descs_free(&d);
}

/* ---- complex numbers ---- */

static void beside(cudaDataType type, int compute, int ta, int tb, const char *what)
{
	enum { M = 24, N = 16, K = 32 };
	struct descs d = descs_new(compute, type, type, type, ta, tb, M, N, K);
	struct matrix a = matrix_new(type, ta ? K : M, ta ? M : K);
	struct matrix b = matrix_new(type, tb ? N : K, tb ? K : N);
	struct matrix c = matrix_new(type, M, N), out = matrix_new(type, M, N);
	double complex alpha = 2 - I, beta = 0.5 * I;
	double complex scalars[2];

	put_at(scalars, type, 0, alpha);
	put_at(scalars, type, 1, beta);
	for (int col = 0; col < N; col++)
		for (int row = 0; row < M; row++) {
			size_t place = (size_t)(col * M + row);
			double complex sum = 0;

			for (int k = 0; k < K; k++)
				sum += at_of(&a, ta, row, k) * at_of(&b, tb, k, col);
			put_at(out.host, type, place,
				alpha * sum + beta * get_at(c.host, type, place));
		}
	if (product(&d, scalars, a.device, b.device, (char *)scalars + cublas_data_bytes(type),
		    c.device, out.device, what))
		matrix_check(&out, what);
	matrix_free(&a);
	matrix_free(&b);
	matrix_free(&c);
	matrix_free(&out);
	descs_free(&d);
}

/* Real parts, and the imaginary ones in memory of their own before or behind them. */
struct planes {
	struct matrix part[2];
};

static struct planes planes_new(cublasLtMatrixLayout_t layout, int rows, int cols, bool before)
{
	struct planes p = {
		{matrix_new(CUDA_R_16F, rows, cols), matrix_new(CUDA_R_16F, rows, cols)}};
	char *both;
	int64_t offset = before ? -(int64_t)p.part[0].bytes : (int64_t)p.part[0].bytes;

	CUDA(cudaMalloc((void **)&both, 2 * p.part[0].bytes));
	for (int i = 0; i < 2; i++) {
		CUDA(cudaFree(p.part[i].device));
		p.part[i].device = both + (i == before ? 0 : p.part[0].bytes);
		CUDA(cudaMemcpy(p.part[i].device, p.part[i].host, p.part[i].bytes,
			cudaMemcpyHostToDevice));
	}
	BLAS(cublasLtMatrixLayoutSetAttribute(layout, PLANE_OFFSET, &offset, sizeof(offset)));
	return p;
}

static double complex plane_at(const struct planes *p, int op, int row, int col)
{
	return at_of(&p->part[0], op ? 1 : 0, row, col) +
	       (op == 2 ? -1 : 1) * at_of(&p->part[1], op ? 1 : 0, row, col) * I;
}

static void in_planes(void)
{
	enum { M = 32, N = 16, K = 24 };
	struct descs d = descs_new(
		F32, CUDA_C_32F, (cudaDataType)C16F, (cudaDataType)C16F, 0, 2, M, N, K);
	struct planes a = planes_new(d.a, M, K, true), b = planes_new(d.b, N, K, false);
	struct planes c = planes_new(d.c, M, N, true), out = planes_new(d.d, M, N, false);
	float complex alpha = 1 + 2 * I, beta = -1;

	if (product(&d, &alpha, a.part[0].device, b.part[0].device, &beta, c.part[0].device,
		    out.part[0].device, "complex numbers in planes")) {
		for (int col = 0; col < N; col++)
			for (int row = 0; row < M; row++) {
				double complex sum = 0;
				size_t place = (size_t)(col * M + row);

				for (int k = 0; k < K; k++)
					sum += plane_at(&a, 0, row, k) *
					       plane_at(&b, 2, k, col);
				sum = alpha * sum + beta * plane_at(&c, 0, row, col);
				put_at(out.part[0].host, CUDA_R_16F, place, creal(sum));
				put_at(out.part[1].host, CUDA_R_16F, place, cimag(sum));
			}
		matrix_check(&out.part[0], "the real plane");
		matrix_check(&out.part[1], "the imaginary plane");
	}
	descs_free(&d);
}

/* ---- tiles ---- */

enum { COL32 = 2, COL4_4R2_8C = 3, COL32_2R_4R4 = 4 };
enum { TM = 40, TN = 48, TK = 72 }; /* no multiples of all tiles */

static int up(int n, int step)
{
	return (n + step - 1) / step * step;
}

/* Where element (row, col) lies, as cublasLt.h describes the orders. */
static size_t tile_place(int order, int ld, int row, int col)
{
	size_t strip = (size_t)(col / 32) * (size_t)ld;
	int r = row % 32, at = 0;

	if (order == COL32)
		return strip + (size_t)(row * 32 + col % 32);
	if (order == COL32_2R_4R4)
		return strip + (size_t)(row / 32 * 1024) +
		       (size_t)((((r % 8) / 2 * 4 + r / 8) * 2 + r % 2) * 32 + col % 32);
	/* Inner tiles of 4 columns within 4 even rows, then 4 odd ones. */
	for (int odd = 0; odd < 2; odd++)
		for (int inner = 0; inner < 32; inner += 4)
			for (int i = 0; i < 4; i++)
				for (int j = 0; j < 4; j++, at++)
					if (row % 8 == 2 * i + odd && col % 32 == inner + j)
						return strip + (size_t)(row / 8 * 256 + at);
	DIE("nowhere");
}

static cublasLtMatrixLayout_t tiled(cudaDataType type, int rows, int cols, int order, int *ld)
{
	cublasLtMatrixLayout_t layout;
	int32_t value = order;

	*ld = 32 * (order == COL32 ? rows : up(rows, order == COL4_4R2_8C ? 8 : 32));
	BLAS(cublasLtMatrixLayoutCreate(&layout, type, (uint64_t)rows, (uint64_t)cols, *ld));
	SET_LAYOUT(layout, ORDER, value);
	return layout;
}

/* M, rows by cols, into tiles, or op of it; NULL: this library does not serve it. */
static int8_t *to_tiles(const struct matrix *m, cublasLtMatrixLayout_t from, int op, int rows,
	int cols, int order, cublasLtMatrixLayout_t *layout)
{
	cublasLtMatrixTransformDesc_t desc;
	float one = 1, zero = 0;
	int8_t *device, *got;
	size_t bytes;
	int ld, status;

	*layout = tiled(CUDA_R_8I, rows, cols, order, &ld);
	bytes = (size_t)(up(cols, 32) / 32 * ld);
	got = malloc(bytes);
	CUDA(cudaMalloc((void **)&device, bytes));
	BLAS(cublasLtMatrixTransformDescCreate(&desc, CUDA_R_32F));
	BLAS(cublasLtMatrixTransformDescSetAttribute(
		desc, CUBLASLT_MATRIX_TRANSFORM_DESC_TRANSA, &op, sizeof(op)));
	status = cublasLtMatrixTransform(
		lt, desc, &one, m->device, from, &zero, NULL, NULL, device, *layout, NULL);
	if (status == CUBLAS_STATUS_NOT_SUPPORTED)
		return NULL;
	BLAS(status);
	CUDA(cudaMemcpy(got, device, bytes, cudaMemcpyDeviceToHost));
	for (int row = 0; row < rows; row++)
		for (int col = 0; col < cols; col++)
			if (got[tile_place(order, ld, row, col)] !=
				(int)creal(at_of(m, op, row, col)))
				DIE("order %d: element %d,%d is %d", order, row, col,
					got[tile_place(order, ld, row, col)]);
	BLAS(cublasLtMatrixTransformDescDestroy(desc));
	free(got);
	return device;
}

static void tiles(int order)
{
	struct matrix a = matrix_new(CUDA_R_8I, TM, TK), b = matrix_new(CUDA_R_8I, TK, TN);
	struct matrix out = matrix_new(CUDA_R_32I, TM, TN);
	struct descs d = descs_new(I32, CUDA_R_32I, CUDA_R_8I, CUDA_R_32I, 0, 0, TM, TN, TK);
	cublasLtMatrixLayout_t plain_a = d.a, plain_b = d.b, plain_out = d.d;
	cublasLtMatrixTransformDesc_t desc;
	int32_t one = 1, zero = 0, turned = 1;
	float whole = 1, none = 0;
	int8_t *tiles_a = to_tiles(&a, plain_a, 0, TM, TK, COL32, &d.a);
	int8_t *tiles_b = to_tiles(&b, plain_b, 1, TN, TK, order, &d.b);
	void *tiles_out;
	int ld;

	BLAS(cublasLtMatrixLayoutDestroy(d.c));
	d.c = tiled(CUDA_R_32I, TM, TN, COL32, &ld);
	d.d = tiled(CUDA_R_32I, TM, TN, COL32, &ld);
	CUDA(cudaMalloc(&tiles_out, (size_t)(up(TN, 32) / 32 * ld) * 4));
	SET_OP(&d, TRANSB, turned);
	if (!tiles_a || !tiles_b) {
		printf("skip: order %d, which this library does not serve\n", order);
		skipped++;
	} else if (product(&d, &one, tiles_a, tiles_b, &zero, tiles_out, tiles_out,
			   "8-bit integers in tiles")) {
		for (int col = 0; col < TN; col++)
			for (int row = 0; row < TM; row++) {
				double sum = 0;

				for (int k = 0; k < TK; k++)
					sum += creal(
						at_of(&a, 0, row, k) * at_of(&b, 0, k, col));
				put_at(out.host, CUDA_R_32I, (size_t)(col * TM + row), sum);
			}
		BLAS(cublasLtMatrixTransformDescCreate(&desc, CUDA_R_32F));
		BLAS(cublasLtMatrixTransform(lt, desc, &whole, tiles_out, d.d, &none, NULL,
			NULL, out.device, plain_out, NULL));
		matrix_check(&out, "8-bit integers in tiles");
		BLAS(cublasLtMatrixTransformDescDestroy(desc));
	}
	BLAS(cublasLtMatrixLayoutDestroy(plain_a));
	BLAS(cublasLtMatrixLayoutDestroy(plain_b));
	BLAS(cublasLtMatrixLayoutDestroy(plain_out));
	descs_free(&d);
	matrix_free(&a);
	matrix_free(&b);
	matrix_free(&out);
	CUDA(cudaFree(tiles_a));
	CUDA(cudaFree(tiles_b));
	CUDA(cudaFree(tiles_out));
}

/* ---- scale factors ---- */

enum { SM = 160, SN = 48, SK = 272, OUTER = 3, ALONG_K = 4, BLOCKS = 5 };

/* The factor of an operand at k and row or column `i` of so many, among `factors`. */
static float factor_at(int mode, const float *factors, int k, int i, int count)
{
	int blocks = up(SK, 128) / 128;

	switch (mode) {
	case OUTER: return factors[i];
	case ALONG_K: return factors[k / 128 * count + i];
	default: return factors[i / 128 * up(blocks, 4) + k / 128];
	}
}

static void factors(int mode_a, int mode_b, const char *what)
{
	static const uint8_t codes[] = {0x30, 0x38, 0x3c, 0x40, 0xb8, 0xb0, 0x00};
	static const double values[] = {0.5, 1, 1.5, 2, -1, -0.5, 0};
	static uint8_t a[SM * SK], b[SN * SK];
	static float fa[SM * 4], fb[SN * 4];
	struct descs d =
		descs_new(F32, CUDA_R_32F, (cudaDataType)E4M3, CUDA_R_16BF, 1, 0, SM, SN, SK);
	struct matrix out = matrix_new(CUDA_R_16BF, SM, SN);
	void *da, *db, *dfa, *dfb;
	float alpha = 0.5f, beta = 0;

	for (int i = 0; i < SM * SK; i++)
		a[i] = codes[i * 5 % 7];
	for (int i = 0; i < SN * SK; i++)
		b[i] = codes[i * 3 % 7];
	for (int i = 0; i < SM * 4; i++)
		fa[i] = 0.25f * (float)(1 + i % 5);
	for (int i = 0; i < SN * 4; i++)
		fb[i] = 0.5f * (float)(1 + i % 3);
	da = sent(a, sizeof(a));
	db = sent(b, sizeof(b));
	dfa = sent(fa, sizeof(fa));
	dfb = sent(fb, sizeof(fb));
	SET_OP(&d, A_SCALE_POINTER, dfa);
	SET_OP(&d, B_SCALE_POINTER, dfb);
	SET_OP(&d, A_SCALE_MODE, mode_a);
	SET_OP(&d, B_SCALE_MODE, mode_b);
	if (product(&d, &alpha, da, db, &beta, out.device, out.device, what)) {
		for (int col = 0; col < SN; col++)
			for (int row = 0; row < SM; row++) {
				double sum = 0;

				for (int k = 0; k < SK; k++)
					sum += values[(row * SK + k) * 5 % 7] *
					       factor_at(mode_a, fa, k, row, SM) *
					       values[(col * SK + k) * 3 % 7] *
					       factor_at(mode_b, fb, k, col, SN);
				put_at(out.host, CUDA_R_16BF, (size_t)(col * SM + row),
					alpha * sum);
			}
		matrix_check(&out, what);
	}
	CUDA(cudaFree(da));
	CUDA(cudaFree(db));
	CUDA(cudaFree(dfa));
	CUDA(cudaFree(dfb));
	matrix_free(&out);
	descs_free(&d);
}

int main(void)
{
	BLAS(cublasLtCreate(&lt));
	CUDA(cudaMalloc(&workspace, WORKSPACE));
	addresses();
	beside(CUDA_C_32F, F32, 0, 0, "complex numbers of 32 bits");
	beside(CUDA_C_64F, F64, 2, 1, "complex numbers of 64 bits");
	in_planes();
	tiles(COL4_4R2_8C);
	tiles(COL32_2R_4R4);
	factors(OUTER, OUTER, "factors of rows");
	factors(ALONG_K, ALONG_K, "factors along k");
	factors(ALONG_K, BLOCKS, "factors along k and of blocks");
	factors(BLOCKS, ALONG_K, "factors of blocks and along k");
	CUDA(cudaFree(workspace));
	BLAS(cublasLtDestroy(lt));
	printf("layouts: right, %d not served\n", skipped);
	return 0;
}
