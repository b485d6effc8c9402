/* SPDX-License-Identifier: Apache-2.0
 *
 * One thing, over and over, for who counts round trips: steady THING COUNT.
 */
#include "tests/cusparselt/check.h"

enum { SIZE = 32 };

static const float one = 1, none;
static void *compressed, *dense, *out, *work;

struct product {
	cusparseLtMatDescriptor_t a, b, c;
	cusparseLtMatmulDescriptor_t descriptor;
	cusparseLtMatmulAlgSelection_t algorithm;
	cusparseLtMatmulPlan_t plan;
};
static struct product kept;

/* Everything as PyTorch makes it for each product: with a bias at another address each time. */
static void make(struct product *p, void *bias)
{
	size_t bytes;

	SPARSE(cusparseLtStructuredDescriptorInit(&lt, &p->a, SIZE, SIZE, SIZE, 16, CUDA_R_16F,
		ROW, CUSPARSELT_SPARSITY_50_PERCENT));
	SPARSE(cusparseLtDenseDescriptorInit(
		&lt, &p->b, SIZE, SIZE, SIZE, 16, CUDA_R_16F, ROW));
	SPARSE(cusparseLtDenseDescriptorInit(
		&lt, &p->c, SIZE, SIZE, SIZE, 16, CUDA_R_16F, ROW));
	SPARSE(cusparseLtMatmulDescriptorInit(
		&lt, &p->descriptor, N, N, &p->a, &p->b, &p->c, &p->c, CUSPARSE_COMPUTE_32F));
	SPARSE(cusparseLtMatmulDescSetAttribute(
		&lt, &p->descriptor, CUSPARSELT_MATMUL_BIAS_POINTER, &bias, sizeof(bias)));
	SPARSE(cusparseLtMatmulAlgSelectionInit(
		&lt, &p->algorithm, &p->descriptor, CUSPARSELT_MATMUL_ALG_DEFAULT));
	SPARSE(cusparseLtMatmulPlanInit(&lt, &p->plan, &p->descriptor, &p->algorithm));
	SPARSE(cusparseLtMatmulGetWorkspace(&lt, &p->plan, &bytes));
}

static void end(struct product *p)
{
	SPARSE(cusparseLtMatmulPlanDestroy(&p->plan));
	SPARSE(cusparseLtMatDescriptorDestroy(&p->a));
	SPARSE(cusparseLtMatDescriptorDestroy(&p->b));
	SPARSE(cusparseLtMatDescriptorDestroy(&p->c));
}

static void multiply(const struct product *p)
{
	SPARSE(cusparseLtMatmul(
		&lt, &p->plan, &one, compressed, dense, &none, out, out, work, NULL, 0));
}

static void linear(void)
{
	static int turn;
	struct product p;

	make(&p, (char *)dense + 256 * (turn++ % 4));
	multiply(&p);
	end(&p);
}

static void plan(void)
{
	multiply(&kept);
}

/* It measures, so it is waited for. */
static void search(void)
{
	SPARSE(cusparseLtMatmulSearch(
		&lt, &kept.plan, &one, compressed, dense, &none, out, out, work, NULL, 0));
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*run)(void);
	} things[] = {{"linear", linear}, {"plan", plan}, {"search", search}};
	size_t bytes, buffer;

	if (argc != 3)
		DIE("usage: steady THING COUNT");
	device_begin();
	SPARSE(cusparseLtInit(&lt));
	dense = device(SIZE * SIZE * 2);
	out = device(SIZE * SIZE * 2);
	work = device(4 << 20);
	CUDA(cuMemsetD8((CUdeviceptr)(uintptr_t)dense, 0, SIZE * SIZE * 2));
	make(&kept, dense);
	SPARSE(cusparseLtSpMMACompressedSize(&lt, &kept.plan, &bytes, &buffer));
	compressed = device(bytes);
	SPARSE(cusparseLtSpMMACompress(&lt, &kept.plan, dense, compressed, work, NULL));
	for (size_t i = 0; i < sizeof(things) / sizeof(things[0]); i++)
		for (int n = 0; !strcmp(argv[1], things[i].name) && n < atoi(argv[2]); n++)
			things[i].run();
	CUDA(cuCtxSynchronize());
	end(&kept);
	SPARSE(cusparseLtDestroy(&lt));
	return 0;
}
