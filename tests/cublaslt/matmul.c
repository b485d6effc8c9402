/* SPDX-License-Identifier: Apache-2.0
 *
 * Products by cublasLtMatmul with what may come behind them: types, transpositions, row order,
 * batches, bias, ReLU and GELU, their auxiliary matrices and gradients, pointer modes, scale
 * factors of 8-bit floats.  Each runs twice with the same content and other addresses.
 */
#include "tests/cublaslt/check.h"

enum { M = 48, N = 32, K = 64, AUX_LD = 128, WORKSPACE = 1 << 20 };

struct product {
	const char *name;
	cudaDataType in, out;
	int compute;
	cudaDataType scale;
	int ta, tb;
	uint32_t epilogue;
	int batch, mode;
	bool row, by_cublas, no_algo;
	bool optional; /* not every library serves it; the software GPU's does */
};

static cublasLtHandle_t lt;
static cublasHandle_t blas;
static void *workspace;
static int skipped;

static double gelu(double x)
{
	return 0.5 * x * (1 + tanh(0.7978845608028654 * (x + 0.044715 * x * x * x)));
}

static double gelu_slope(double x)
{
	double e = 1e-5;

	return (gelu(x + e) - gelu(x - e)) / (2 * e);
}

/* Element (row, column) of member `i`. */
static size_t place(int rows, int cols, bool by_row, int i, int row, int col)
{
	return (size_t)i * (size_t)(rows * cols) +
	       (size_t)(by_row ? row * cols + col : col * rows + row);
}

static double operand(const struct matrix *m, int rows, int cols, bool by_row, int op, int i,
	int row, int col)
{
	return creal(get_at(m->host, m->type,
		op ? place(rows, cols, by_row, i, col, row)
		   : place(rows, cols, by_row, i, row, col)));
}

struct everything {
	struct matrix a, b, c, d, bias, aux, scalars, vector;
	unsigned char *bits; /* the auxiliary matrix of ReLU, on the host */
	void *bits_device;
};

/* What D, bias gradient and auxiliary matrix must be. */
static void expect(const struct product *p, struct everything *e, double alpha, double beta)
{
	int ar = p->ta ? K : M, ac = p->ta ? M : K, br = p->tb ? N : K, bc = p->tb ? K : N;

	for (int i = 0; i < p->batch; i++)
		for (int row = 0; row < M; row++) {
			double sum = 0;

			if (p->mode >= CUBLASLT_POINTER_MODE_DEVICE_VECTOR)
				alpha = creal(
					get_at(e->vector.host, e->vector.type, (size_t)row));
			for (int col = 0; col < N; col++) {
				size_t at = place(M, N, p->row, i, row, col);
				size_t aux = (size_t)col * AUX_LD + (size_t)row;
				double v = 0;

				for (int k = 0; k < K; k++)
					v += operand(&e->a, ar, ac, p->row, p->ta, i, row, k) *
					     operand(&e->b, br, bc, p->row, p->tb, i, k, col);
				v = alpha * v + beta * creal(get_at(e->c.host, p->out, at));
				if (p->epilogue & 4)
					v += creal(get_at(e->bias.host, p->out, (size_t)row));
				if (p->epilogue == CUBLASLT_EPILOGUE_RELU_AUX_BIAS) {
					e->bits[aux / 8] &= (unsigned char)~(1u << aux % 8);
					if (v > 0)
						e->bits[aux / 8] |=
							(unsigned char)(1u << aux % 8);
				}
				if (p->epilogue & 2)
					v = v > 0 ? v : 0;
				if (p->epilogue == CUBLASLT_EPILOGUE_GELU_AUX_BIAS)
					put_at(e->aux.host, p->out, aux, v);
				if (p->epilogue & 32)
					v = gelu(v);
				if (p->epilogue & 8)
					v = e->bits[aux / 8] >> aux % 8 & 1 ? v : 0;
				if (p->epilogue & 64)
					v *= gelu_slope(
						creal(get_at(e->aux.host, p->out, aux)));
				put_at(e->d.host, p->out, at, v);
				sum += v;
			}
			if (p->epilogue & 16)
				put_at(e->bias.host, p->out, (size_t)row, sum);
			if (p->epilogue == CUBLASLT_EPILOGUE_BGRADA) {
				sum = 0;
				for (int k = 0; k < K; k++)
					sum += operand(&e->a, ar, ac, p->row, p->ta, 0, row, k);
				put_at(e->bias.host, p->out, (size_t)row, sum);
			}
		}
	for (int col = 0; p->epilogue == CUBLASLT_EPILOGUE_BGRADB && col < N; col++) {
		double sum = 0;

		for (int k = 0; k < K; k++)
			sum += operand(&e->b, br, bc, p->row, p->tb, 0, k, col);
		put_at(e->bias.host, p->out, (size_t)col, sum);
	}
}

static struct everything everything_new(const struct product *p)
{
	struct everything e = {
		.a = matrix_new(p->in, M, K * p->batch),
		.b = matrix_new(p->in, K, N * p->batch),
		.c = matrix_new(p->out, M, N * p->batch),
		.d = matrix_new(p->out, M, N * p->batch),
		.bias = matrix_new(p->out, M, 1),
		.aux = matrix_new(p->out, AUX_LD, N),
		.scalars = matrix_new(p->scale, 8, 1),
		.vector = matrix_new(p->scale, M, 1),
		.bits = malloc(AUX_LD * N / 8),
	};

	for (int i = 0; i < AUX_LD * N / 8; i++)
		e.bits[i] = (unsigned char)(i * 37);
	CUDA(cudaMalloc(&e.bits_device, AUX_LD * N / 8));
	CUDA(cudaMemcpy(e.bits_device, e.bits, AUX_LD * N / 8, cudaMemcpyHostToDevice));
	return e;
}

static void everything_free(struct everything *e)
{
	struct matrix *all[] = {
		&e->a, &e->b, &e->c, &e->d, &e->bias, &e->aux, &e->scalars, &e->vector};

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		matrix_free(all[i]);
	CUDA(cudaFree(e->bits_device));
	free(e->bits);
}

static void check_bits(const struct everything *e, const char *what)
{
	unsigned char got[AUX_LD * N / 8];

	CUDA(cudaMemcpy(got, e->bits_device, sizeof(got), cudaMemcpyDeviceToHost));
	for (int col = 0; col < N; col++)
		for (int row = 0; row < M; row++) {
			int at = col * AUX_LD + row;

			/* A value that rounds to 0 may go either way. */
			if (fabs(creal(get_at(e->d.host, e->d.type, (size_t)(col * M + row)))) <
				1e-3)
				continue;
			if ((got[at / 8] ^ e->bits[at / 8]) >> at % 8 & 1)
				DIE("%s: bit %d,%d is wrong", what, row, col);
		}
}

static void describe(const struct product *p, struct descs *d, const struct everything *e)
{
	int64_t strides[] = {M * K, K * N, M * N, M * N}, aux_ld = AUX_LD;
	cublasLtMatrixLayout_t layouts[] = {d->a, d->b, d->c, d->d};
	const void *aux = p->epilogue & 10 ? e->bits_device : e->aux.device;
	int32_t order = CUBLASLT_ORDER_ROW;

	for (int i = 0; i < 4; i++) {
		uint64_t cols;
		int64_t ld;

		if (p->batch > 1) {
			SET_LAYOUT(layouts[i], BATCH_COUNT, p->batch);
			SET_LAYOUT(layouts[i], STRIDED_BATCH_OFFSET, strides[i]);
		}
		if (!p->row)
			continue;
		BLAS(cublasLtMatrixLayoutGetAttribute(
			layouts[i], CUBLASLT_MATRIX_LAYOUT_COLS, &cols, sizeof(cols), NULL));
		ld = (int64_t)cols;
		SET_LAYOUT(layouts[i], ORDER, order);
		SET_LAYOUT(layouts[i], LD, ld);
	}
	SET_OP(d, EPILOGUE, p->epilogue);
	SET_OP(d, POINTER_MODE, p->mode);
	if (p->epilogue & (4 | 16 | 256 | 512))
		SET_OP(d, BIAS_POINTER, e->bias.device);
	if (p->epilogue & 128) {
		SET_OP(d, EPILOGUE_AUX_POINTER, aux);
		SET_OP(d, EPILOGUE_AUX_LD, aux_ld);
	}
}

static void run_once(const struct product *p, struct everything *e, struct descs *d,
	const cublasLtMatmulAlgo_t *algo, cudaStream_t stream)
{
	const char *alpha = e->scalars.host, *beta;
	size_t each = cublas_data_bytes(p->scale);
	double a = creal(get_at(e->scalars.host, p->scale, 0));
	double b = creal(get_at(e->scalars.host, p->scale, 4));

	beta = alpha + 4 * each;
	if (p->mode == CUBLASLT_POINTER_MODE_DEVICE) {
		alpha = e->scalars.device;
		beta = alpha + 4 * each;
	} else if (p->mode >= CUBLASLT_POINTER_MODE_DEVICE_VECTOR) {
		alpha = e->vector.device;
	}
	if (p->mode == CUBLASLT_POINTER_MODE_ALPHA_DEVICE_VECTOR_BETA_ZERO)
		b = 0;
	expect(p, e, a, b);
	BLAS(cublasLtMatmul(p->by_cublas ? (cublasLtHandle_t)blas : lt, d->op, alpha,
		e->a.device, d->a, e->b.device, d->b, beta, e->c.device, d->c, e->d.device,
		d->d, p->no_algo ? NULL : algo, workspace, WORKSPACE, stream));
	CUDA(cudaStreamSynchronize(stream));
	/* Hardware has a rough tanh. */
	matrix_within(&e->d,
		p->epilogue & 32 ? fmax(2e-3, tolerance_of(p->out)) : tolerance_of(p->out),
		p->name);
	if (p->epilogue & (16 | 256 | 512))
		matrix_check(&e->bias, p->name);
	if (p->epilogue == CUBLASLT_EPILOGUE_GELU_AUX_BIAS) {
		/* Behind the M rows of each column is what was there. */
		matrix_check(&e->aux, p->name);
	}
	if (p->epilogue == CUBLASLT_EPILOGUE_RELU_AUX_BIAS)
		check_bits(e, p->name);
}

static void run(const struct product *p, cudaStream_t stream)
{
	cublasLtMatmulHeuristicResult_t best;
	struct everything first = everything_new(p), second = everything_new(p);
	struct descs d = descs_new(p->compute, p->scale, p->in, p->out, p->ta, p->tb, M, N, K);
	int status;

	describe(p, &d, &first);
	status = descs_algo(lt, &d, &best);
	if (status == CUBLAS_STATUS_NOT_SUPPORTED && p->optional) {
		printf("skip: %s, which this library does not serve\n", p->name);
		skipped++;
	} else {
		BLAS(status);
		run_once(p, &first, &d, &best.algo, stream);
		describe(p, &d, &second);
		run_once(p, &second, &d, &best.algo, stream);
	}
	descs_free(&d);
	everything_free(&first);
	everything_free(&second);
}

#define FLOATS(IN, OUT, COMPUTE) .in = IN, .out = OUT, .compute = COMPUTE, .scale = CUDA_R_32F
#define HALF FLOATS(CUDA_R_16F, CUDA_R_16F, F32)
#define SINGLE FLOATS(CUDA_R_32F, CUDA_R_32F, F32)
static const struct product products[] = {
	{"f32", SINGLE, .epilogue = 1, .batch = 1},
	{"f32, A transposed", SINGLE, .ta = 1, .epilogue = 1, .batch = 1},
	{"f32, B transposed", SINGLE, .tb = 1, .epilogue = 1, .batch = 1},
	{"f32, both transposed", SINGLE, .ta = 1, .tb = 1, .epilogue = 1, .batch = 1},
	{"f32 by a cuBLAS handle", SINGLE, .epilogue = 4, .batch = 1, .by_cublas = true},
	{"f32, library's choice", SINGLE, .epilogue = 4, .batch = 1, .no_algo = true},
	{"f32, rows", SINGLE, .epilogue = 1, .batch = 1, .row = true},
	{"f32, batch", SINGLE, .epilogue = 1, .batch = 3},
	{"f32, bias", SINGLE, .ta = 1, .epilogue = 4, .batch = 1},
	{"f32, ReLU, bias", SINGLE, .ta = 1, .epilogue = 6, .batch = 1},
	{"f32, GELU, bias", SINGLE, .ta = 1, .epilogue = 36, .batch = 1},
	{"f32, device scalars", SINGLE, .epilogue = 1, .batch = 1, .mode = 1},
	{"f32, alpha vector, beta 0", SINGLE, .epilogue = 1, .batch = 1, .mode = 3,
		.optional = true},
	{"f32, alpha vector", SINGLE, .epilogue = 1, .batch = 1, .mode = 4, .optional = true},
	{"f64", .in = CUDA_R_64F, .out = CUDA_R_64F, .compute = F64, .scale = CUDA_R_64F,
		.epilogue = 1, .batch = 1},
	{"f16", HALF, .epilogue = 1, .batch = 1},
	{"f16, bias", HALF, .ta = 1, .epilogue = 4, .batch = 1},
	{"f16, ReLU", HALF, .ta = 1, .epilogue = 2, .batch = 1},
	{"f16, ReLU, bias, mask", HALF, .ta = 1, .epilogue = 134, .batch = 1},
	{"f16, GELU, bias, input", HALF, .ta = 1, .epilogue = 164, .batch = 1},
	{"f16, ReLU gradient, bias gradient", HALF, .epilogue = 152, .batch = 1,
		.optional = true},
	{"f16, GELU gradient, bias gradient", HALF, .epilogue = 208, .batch = 1,
		.optional = true},
	{"f16, bias gradient of A", HALF, .epilogue = 256, .batch = 1, .optional = true},
	{"f16, bias gradient of B", HALF, .epilogue = 512, .batch = 1, .optional = true},
	{"f16 to f32", FLOATS(CUDA_R_16F, CUDA_R_32F, F32), .epilogue = 1, .batch = 1},
	{"bf16", FLOATS(CUDA_R_16BF, CUDA_R_16BF, F32), .epilogue = 1, .batch = 1},
	{"bf16, bias", FLOATS(CUDA_R_16BF, CUDA_R_16BF, F32), .ta = 1, .epilogue = 4,
		.batch = 1},
	{"bf16, GELU, bias", FLOATS(CUDA_R_16BF, CUDA_R_16BF, F32), .ta = 1, .epilogue = 36,
		.batch = 1},
	{"i8", .in = CUDA_R_8I, .out = CUDA_R_32I, .compute = I32, .scale = CUDA_R_32I, .ta = 1,
		.epilogue = 1, .batch = 1},
};

/* 8-bit floats with a factor for each operand, in device memory. */
static void small_floats(cudaStream_t stream)
{
	static const uint8_t codes[] = {0x30, 0x38, 0x3c, 0x40, 0xb8, 0xb0, 0x00, 0x28};
	static const double values[] = {0.5, 1, 1.5, 2, -1, -0.5, 0, 0.25};
	struct descs d =
		descs_new(F32, CUDA_R_32F, (cudaDataType)28, CUDA_R_16BF, 1, 0, M, N, K);
	struct matrix out = matrix_new(CUDA_R_16BF, M, N), bias = matrix_new(CUDA_R_16BF, M, 1);
	struct matrix factors = matrix_new(CUDA_R_32F, 2, 1);
	float alpha = 0.5f, beta = 0, *fa = factors.device, *fb = fa + 1;
	cublasLtMatmulHeuristicResult_t best;
	uint32_t epilogue = CUBLASLT_EPILOGUE_BIAS;
	uint8_t a[M * K], b[N * K];
	int8_t fast = 1;
	void *da, *db;
	int status;

	((float *)factors.host)[0] = 0.25f;
	((float *)factors.host)[1] = 2;
	CUDA(cudaMemcpy(fa, factors.host, factors.bytes, cudaMemcpyHostToDevice));
	for (int i = 0; i < M * K; i++)
		a[i] = codes[i * 5 % 7 + i / 64 % 2];
	for (int i = 0; i < N * K; i++)
		b[i] = codes[i * 3 % 7 + i / 32 % 2];
	for (int row = 0; row < M; row++)
		for (int col = 0; col < N; col++) {
			double sum = 0;

			for (int k = 0; k < K; k++) {
				int i = row * K + k, j = col * K + k;

				sum += values[i * 5 % 7 + i / 64 % 2] *
				       values[j * 3 % 7 + j / 32 % 2];
			}
			put_at(out.host, CUDA_R_16BF, (size_t)(col * M + row),
				alpha * 0.25 * 2 * sum +
					creal(get_at(bias.host, CUDA_R_16BF, (size_t)row)));
		}
	CUDA(cudaMalloc(&da, sizeof(a)));
	CUDA(cudaMalloc(&db, sizeof(b)));
	CUDA(cudaMemcpy(da, a, sizeof(a), cudaMemcpyHostToDevice));
	CUDA(cudaMemcpy(db, b, sizeof(b), cudaMemcpyHostToDevice));
	SET_OP(&d, A_SCALE_POINTER, fa);
	SET_OP(&d, B_SCALE_POINTER, fb);
	SET_OP(&d, FAST_ACCUM, fast);
	SET_OP(&d, EPILOGUE, epilogue);
	SET_OP(&d, BIAS_POINTER, bias.device);
	status = descs_algo(lt, &d, &best);
	if (!status)
		status = cublasLtMatmul(lt, d.op, &alpha, da, d.a, db, d.b, &beta, out.device,
			d.c, out.device, d.d, &best.algo, workspace, WORKSPACE, stream);
	if (status == CUBLAS_STATUS_NOT_SUPPORTED) {
		puts("skip: 8-bit floats, which this library does not serve");
		skipped++;
	} else {
		BLAS(status);
		CUDA(cudaStreamSynchronize(stream));
		matrix_check(&out, "8-bit floats");
	}
	descs_free(&d);
	matrix_free(&out);
	matrix_free(&bias);
	matrix_free(&factors);
	CUDA(cudaFree(da));
	CUDA(cudaFree(db));
}

int main(void)
{
	cudaStream_t stream;

	BLAS(cublasLtCreate(&lt));
	BLAS(cublasCreate_v2(&blas));
	CUDA(cudaStreamCreate(&stream));
	CUDA(cudaMalloc(&workspace, WORKSPACE));
	for (size_t i = 0; i < sizeof(products) / sizeof(products[0]); i++)
		run(&products[i], i % 2 ? stream : NULL);
	small_floats(stream);
	CUDA(cudaFree(workspace));
	BLAS(cublasDestroy_v2(blas));
	BLAS(cublasLtDestroy(lt));
	printf("matmul: right, %d not served\n", skipped);
	return 0;
}
