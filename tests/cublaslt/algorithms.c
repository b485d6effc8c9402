/* SPDX-License-Identifier: Apache-2.0
 *
 * Algorithms: found, made by number, configured, checked and run; their lists; searches that
 * are limited to one.
 */
#include "tests/cublaslt/check.h"

enum { M = 32, N = 16, K = 64, MANY = 200, TILES = 1024 };

static cublasLtHandle_t handle;
static struct descs d;
static struct matrix a, b, c, out;

static void product(const cublasLtMatmulAlgo_t *algo, const char *what)
{
	float alpha = 2, beta = -1;
	void *workspace;

	for (int col = 0; col < N; col++)
		for (int row = 0; row < M; row++) {
			size_t at = (size_t)(col * M + row);
			double sum = 0;

			for (int k = 0; k < K; k++)
				sum += creal(at_of(&a, 1, row, k) * at_of(&b, 0, k, col));
			put_at(out.host, out.type, at,
				alpha * sum + beta * creal(get_at(c.host, c.type, at)));
		}
	CUDA(cudaMemset(out.device, 0, out.bytes));
	CUDA(cudaMalloc(&workspace, 1 << 20));
	BLAS(cublasLtMatmul(handle, d.op, &alpha, a.device, d.a, b.device, d.b, &beta, c.device,
		d.c, out.device, d.d, algo, workspace, 1 << 20, NULL));
	matrix_check(&out, what);
	CUDA(cudaFree(workspace));
}

static void several(void)
{
	cublasLtMatmulHeuristicResult_t results[MANY];
	int count = -1;

	memset(results, 0xff, sizeof(results));
	BLAS(cublasLtMatmulAlgoGetHeuristic(
		handle, d.op, d.a, d.b, d.c, d.d, d.pref, MANY, results, &count));
	if (count < 1 || count > MANY)
		DIE("the heuristic gave %d algorithms", count);
	for (int i = 0; i < count && i < 4; i++) {
		if (results[i].state)
			DIE("algorithm %d is in state %d", i, results[i].state);
		product(&results[i].algo, "an algorithm of several");
	}
	BLAS_IS(cublasLtMatmulAlgoGetHeuristic(
			handle, d.op, d.a, d.b, d.c, d.d, d.pref, 0, results, &count),
		CUBLAS_STATUS_INVALID_VALUE);
}

/* The first number that can be made into an algorithm which the check takes. */
static void by_number(void)
{
	int ids[MANY], count = -1, number = -1, splits = 0, one = 1;
	cublasLtMatmulHeuristicResult_t checked = {.state = -1};
	cublasLtMatmulAlgo_t algo;
	uint32_t tile = 0;
	size_t written;

	BLAS(cublasLtMatmulAlgoGetIds(handle, F32, CUDA_R_32F, CUDA_R_32F, CUDA_R_32F,
		CUDA_R_32F, CUDA_R_32F, MANY, ids, &count));
	if (count < 1 || count > MANY)
		DIE("there are %d algorithms", count);
	BLAS(cublasLtMatmulAlgoInit(handle, F32, CUDA_R_32F, CUDA_R_32F, CUDA_R_32F, CUDA_R_32F,
		CUDA_R_32F, ids[0], &algo));
	BLAS(cublasLtMatmulAlgoConfigGetAttribute(
		&algo, CUBLASLT_ALGO_CONFIG_ID, &number, sizeof(number), &written));
	if (number != ids[0] || written != sizeof(number))
		DIE("algorithm %d says that it is %d, in %zu bytes", ids[0], number, written);
	BLAS(cublasLtMatmulAlgoConfigSetAttribute(
		&algo, CUBLASLT_ALGO_CONFIG_SPLITK_NUM, &one, sizeof(one)));
	BLAS(cublasLtMatmulAlgoConfigGetAttribute(
		&algo, CUBLASLT_ALGO_CONFIG_SPLITK_NUM, &splits, sizeof(splits), NULL));
	if (splits != 1)
		DIE("one split is %d", splits);
	BLAS(cublasLtMatmulAlgoConfigGetAttribute(
		&algo, CUBLASLT_ALGO_CONFIG_TILE_ID, &tile, sizeof(tile), NULL));
	REFUSED(cublasLtMatmulAlgoConfigSetAttribute(
		&algo, CUBLASLT_ALGO_CONFIG_TILE_ID, &tile, 1));
	REFUSED(cublasLtMatmulAlgoInit(handle, F32, CUDA_R_32F, CUDA_R_32F, CUDA_R_32F,
		CUDA_R_32F, CUDA_R_32F, -5, &algo));
	/* What the heuristic takes, the check takes. */
	BLAS(descs_algo(handle, &d, &checked));
	algo = checked.algo;
	memset(&checked, -1, sizeof(checked));
	BLAS(cublasLtMatmulAlgoCheck(handle, d.op, d.a, d.b, d.c, d.d, &algo, &checked));
	if (checked.state || memcmp(&checked.algo, &algo, sizeof(algo)))
		DIE("the check leaves state %d", checked.state);
	product(&algo, "a checked algorithm");
}

/* A list that is longer than one answer of the agent. */
static void lists(void)
{
	cublasLtMatmulHeuristicResult_t best;
	uint32_t tiles[TILES], again[TILES], epilogues = 0;
	size_t need = 0, written = 0;

	BLAS(descs_algo(handle, &d, &best));
	BLAS(cublasLtMatmulAlgoCapGetAttribute(
		&best.algo, CUBLASLT_ALGO_CAP_TILE_IDS, NULL, 0, &need));
	if (need % sizeof(tiles[0]) || need > sizeof(tiles))
		DIE("the list of tiles has %zu bytes", need);
	memset(tiles, 0xff, sizeof(tiles));
	BLAS(cublasLtMatmulAlgoCapGetAttribute(
		&best.algo, CUBLASLT_ALGO_CAP_TILE_IDS, tiles, sizeof(tiles), &written));
	if (written != need)
		DIE("%zu bytes of tiles, not %zu", written, need);
	for (size_t i = 0; i < sizeof(tiles) / sizeof(tiles[0]); i++)
		if ((tiles[i] == UINT32_MAX) != (i >= need / sizeof(tiles[0])))
			DIE("tile %zu of %zu bytes is %u", i, need, tiles[i]);
	if (need) {
		BLAS(cublasLtMatmulAlgoCapGetAttribute(
			&best.algo, CUBLASLT_ALGO_CAP_TILE_IDS, again, need, NULL));
		if (memcmp(tiles, again, need))
			DIE("the second list is another");
	}
	BLAS(cublasLtMatmulAlgoCapGetAttribute(&best.algo, CUBLASLT_ALGO_CAP_EPILOGUE_MASK,
		&epilogues, sizeof(epilogues), NULL));
	if (!(epilogues & CUBLASLT_EPILOGUE_BIAS))
		DIE("the epilogues are %#x", epilogues);
	BLAS_IS(cublasLtMatmulAlgoCapGetAttribute(
			&best.algo, CUBLASLT_ALGO_CAP_EPILOGUE_MASK, NULL, 0, NULL),
		CUBLAS_STATUS_INVALID_VALUE);
}

/* Every capability is told, for a search through all that an algorithm can be configured to. */
static void capabilities(void)
{
	static const struct {
		int attribute;			   /* CUBLASLT_ALGO_CAP_… */
		uint32_t bytes;			   /* 0: a list of numbers */
	} all[] = {{0, 4}, {1, 4}, {2, 4}, {3, 4}, /* splits, reductions, swizzling, batches */
		{7, 4}, {13, 0},		   /* custom options, stages */
		{15, 8},			   /* numerics */
		{16, 4}, {17, 4}, {18, 4}, {19, 4}};
	cublasLtMatmulHeuristicResult_t best;

	BLAS(descs_algo(handle, &d, &best));
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		size_t written = SIZE_MAX, need = 0;
		uint32_t value[TILES];

		BLAS(cublasLtMatmulAlgoCapGetAttribute(
			&best.algo, all[i].attribute, NULL, 0, &need));
		if (all[i].bytes ? need != all[i].bytes
				 : need % sizeof(value[0]) || need > sizeof(value))
			DIE("capability %d has %zu bytes", all[i].attribute, need);
		if (need)
			BLAS(cublasLtMatmulAlgoCapGetAttribute(
				&best.algo, all[i].attribute, value, need, &written));
		if (need && written != need)
			DIE("capability %d has %zu bytes, not %zu", all[i].attribute, written,
				need);
	}
}

/* A program may bring the number of an algorithm with it. */
static void preset(void)
{
	int found = 0, number = -1;
	cublasLtMatmulAlgo_t algo;

	for (int id = 1; id < 64; id++) {
		if (cublasLtMatmulAlgoInit(handle, F32, CUDA_R_32F, CUDA_R_32F, CUDA_R_32F,
			    CUDA_R_32F, CUDA_R_32F, id, &algo))
			continue;
		BLAS(cublasLtMatmulAlgoConfigGetAttribute(
			&algo, CUBLASLT_ALGO_CONFIG_ID, &number, sizeof(number), NULL));
		if (number != id)
			DIE("algorithm %d says that it is %d", id, number);
		found++;
	}
	if (!found)
		DIE("no algorithm has a number from 1 to 63");
}

static void limited(void)
{
	uint32_t mode = CUBLASLT_SEARCH_LIMITED_BY_ALGO_ID, best_fit = 0;
	cublasLtMatmulHeuristicResult_t best;
	int status;

	BLAS(descs_algo(handle, &d, &best));
	BLAS(cublasLtMatmulPreferenceSetAttribute(
		d.pref, CUBLASLT_MATMUL_PREF_SEARCH_MODE, &mode, sizeof(mode)));
	status = descs_algo(handle, &d, &best);
	if (!status)
		product(&best.algo, "an algorithm of a limited search");
	else if (status != CUBLAS_STATUS_NOT_SUPPORTED)
		DIE("the limited search gave %d", status);
	BLAS(cublasLtMatmulPreferenceSetAttribute(
		d.pref, CUBLASLT_MATMUL_PREF_SEARCH_MODE, &best_fit, sizeof(best_fit)));
}

static void capacity(void)
{
	size_t before = 0, now = 0;

	BLAS(cublasLtHeuristicsCacheGetCapacity(&before));
	BLAS(cublasLtHeuristicsCacheSetCapacity(before + 100));
	BLAS(cublasLtHeuristicsCacheGetCapacity(&now));
	if (now < before + 100) /* NVIDIA's is rounded up */
		DIE("a capacity of %zu is %zu", before + 100, now);
}

int main(void)
{
	BLAS(cublasLtCreate(&handle));
	d = descs_new(F32, CUDA_R_32F, CUDA_R_32F, CUDA_R_32F, 1, 0, M, N, K);
	a = matrix_new(CUDA_R_32F, K, M);
	b = matrix_new(CUDA_R_32F, K, N);
	c = matrix_new(CUDA_R_32F, M, N);
	out = matrix_new(CUDA_R_32F, M, N);
	several();
	by_number();
	lists();
	capabilities();
	preset();
	limited();
	capacity();
	descs_free(&d);
	BLAS(cublasLtDestroy(handle));
	puts("algorithms: right");
	return 0;
}
