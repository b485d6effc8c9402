/* SPDX-License-Identifier: Apache-2.0
 *
 * Products in groups, each with a shape, scalars and a size of its own: of floats, doubles and
 * by compute type, with numbers of either width, and more groups than one frame takes.
 */
#include "tests/cublas/check.h"

enum { GROUPS = 3, MANY = 700 };

static cublasHandle_t handle;
static const int ta[] = {0, 1, 0}, tb[] = {0, 0, 1}, m[] = {8, 16, 8}, n[] = {16, 8, 24},
		 k[] = {8, 16, 24}, size[] = {2, 1, 3};

struct groups {
	cudaDataType type;
	struct matrix a[8], b[8], c[8];
	int products;
	void **places; /* on the device: A, B, C of each product */
	int lda[GROUPS], ldb[GROUPS], ldc[GROUPS];
};

static struct groups groups_new(cudaDataType type)
{
	struct groups g = {.type = type};
	void *places[3 * 8];
	int at = 0;

	for (int i = 0; i < GROUPS; i++)
		g.products += size[i];
	for (int i = 0; i < GROUPS; i++) {
		g.lda[i] = ta[i] ? k[i] : m[i];
		g.ldb[i] = tb[i] ? n[i] : k[i];
		g.ldc[i] = m[i];
		for (int j = 0; j < size[i]; j++, at++) {
			g.a[at] = matrix_new(type, g.lda[i], ta[i] ? m[i] : k[i]);
			g.b[at] = matrix_new(type, g.ldb[i], tb[i] ? k[i] : n[i]);
			g.c[at] = matrix_new(type, g.ldc[i], n[i]);
			places[at] = g.a[at].device;
			places[g.products + at] = g.b[at].device;
			places[2 * g.products + at] = g.c[at].device;
		}
	}
	CUDA(cudaMalloc((void **)&g.places, sizeof(places)));
	CUDA(cudaMemcpy(g.places, places, sizeof(places), cudaMemcpyHostToDevice));
	return g;
}

static void groups_check(
	struct groups *g, const double *alpha, const double *beta, const char *what)
{
	int at = 0;

	for (int i = 0; i < GROUPS; i++)
		for (int j = 0; j < size[i]; j++, at++) {
			for (int col = 0; col < n[i]; col++)
				for (int row = 0; row < m[i]; row++) {
					size_t e = (size_t)(col * m[i] + row);
					double complex sum = 0;

					for (int l = 0; l < k[i]; l++)
						sum += at_of(&g->a[at], ta[i], row, l) *
						       at_of(&g->b[at], tb[i], l, col);
					put_at(g->c[at].host, g->type, e,
						alpha[i] * sum + beta[i] * get_at(g->c[at].host,
										   g->type, e));
				}
			matrix_check(&g->c[at], what);
		}
}

static void groups_free(struct groups *g)
{
	for (int i = 0; i < g->products; i++) {
		matrix_free(&g->a[i]);
		matrix_free(&g->b[i]);
		matrix_free(&g->c[i]);
	}
	CUDA(cudaFree(g->places));
}

static void singles(void)
{
	struct groups g = groups_new(CUDA_R_32F);
	const float alpha[] = {1, 2, -0.5f}, beta[] = {0, 1, 0.5f};
	const double a[] = {1, 2, -0.5}, b[] = {0, 1, 0.5};
	int64_t wide[7][GROUPS];

	BLAS(cublasSgemmGroupedBatched(handle, ta, tb, m, n, k, alpha,
		(const float *const *)g.places, g.lda,
		(const float *const *)(g.places + g.products), g.ldb, beta,
		(float *const *)(g.places + 2 * g.products), g.ldc, GROUPS, size));
	groups_check(&g, a, b, "SgemmGroupedBatched");
	for (int i = 0; i < GROUPS; i++) {
		const int all[] = {m[i], n[i], k[i], g.lda[i], g.ldb[i], g.ldc[i], size[i]};

		for (int j = 0; j < 7; j++)
			wide[j][i] = all[j];
	}
	BLAS(cublasSgemmGroupedBatched_64(handle, ta, tb, wide[0], wide[1], wide[2], alpha,
		(const float *const *)g.places, wide[3],
		(const float *const *)(g.places + g.products), wide[4], beta,
		(float *const *)(g.places + 2 * g.products), wide[5], GROUPS, wide[6]));
	groups_check(&g, a, b, "SgemmGroupedBatched_64");
	groups_free(&g);
}

static void doubles(void)
{
	struct groups g = groups_new(CUDA_R_64F);
	const double alpha[] = {1, 2, -0.5}, beta[] = {0, 1, 0.5};

	BLAS(cublasDgemmGroupedBatched(handle, ta, tb, m, n, k, alpha,
		(const double *const *)g.places, g.lda,
		(const double *const *)(g.places + g.products), g.ldb, beta,
		(double *const *)(g.places + 2 * g.products), g.ldc, GROUPS, size));
	groups_check(&g, alpha, beta, "DgemmGroupedBatched");
	groups_free(&g);
}

static void extended(cudaDataType type, const char *what)
{
	struct groups g = groups_new(type);
	const float alpha[] = {1, 2, -0.5f}, beta[] = {0, 1, 0.5f};
	const double a[] = {1, 2, -0.5}, b[] = {0, 1, 0.5};

	BLAS(cublasGemmGroupedBatchedEx(handle, ta, tb, m, n, k, alpha,
		(const void *const *)g.places, type, g.lda,
		(const void *const *)(g.places + g.products), type, g.ldb, beta,
		(void *const *)(g.places + 2 * g.products), type, g.ldc, GROUPS, size, 68));
	groups_check(&g, a, b, what);
	groups_free(&g);
}

/* One product each, of 2 by 2, each with an alpha of its own. */
static void many(void)
{
	struct matrix a = matrix_new(CUDA_R_32F, 2, 2 * MANY), b = matrix_new(CUDA_R_32F, 2, 2);
	struct matrix c = matrix_new(CUDA_R_32F, 2, 2 * MANY);
	static int op[MANY], two[MANY], one[MANY];
	static float alpha[MANY], beta[MANY];
	static void *places[3 * MANY];
	void **there;

	for (int i = 0; i < MANY; i++) {
		two[i] = 2;
		one[i] = 1;
		alpha[i] = (float)(i % 5);
		places[i] = (float *)a.device + 4 * i;
		places[MANY + i] = b.device;
		places[2 * MANY + i] = (float *)c.device + 4 * i;
		for (int col = 0; col < 2; col++)
			for (int row = 0; row < 2; row++) {
				double complex sum = 0;

				for (int l = 0; l < 2; l++)
					sum += get_at(a.host, a.type,
						       (size_t)(4 * i + 2 * l + row)) *
					       at_of(&b, 0, l, col);
				put_at(c.host, c.type, (size_t)(4 * i + 2 * col + row),
					alpha[i] * sum);
			}
	}
	CUDA(cudaMalloc((void **)&there, sizeof(places)));
	CUDA(cudaMemcpy(there, places, sizeof(places), cudaMemcpyHostToDevice));
	BLAS(cublasSgemmGroupedBatched(handle, op, op, two, two, two, alpha,
		(const float *const *)there, two, (const float *const *)(there + MANY), two,
		beta, (float *const *)(there + 2 * MANY), two, MANY, one));
	matrix_check(&c, "many groups");
	CUDA(cudaFree(there));
	matrix_free(&a);
	matrix_free(&b);
	matrix_free(&c);
}

int main(void)
{
	BLAS(cublasCreate_v2(&handle));
	singles();
	doubles();
	extended(CUDA_R_32F, "GemmGroupedBatchedEx of f32");
	extended(CUDA_R_16F, "GemmGroupedBatchedEx of f16");
	extended(CUDA_R_16BF, "GemmGroupedBatchedEx of bf16");
	many();
	BLAS(cublasDestroy_v2(handle));
	puts("grouped: right");
	return 0;
}
