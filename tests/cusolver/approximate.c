/* SPDX-License-Identifier: Apache-2.0
 *
 * How well each matrix of a batch was met by its approximate singular values: numbers on the
 * host, of more matrices than one answer tells of, at full rank and of fewer values.
 */
#include "tests/cusolver/check.h"

static cusolverDnHandle_t handle;

enum { M = 9, N = 4, MANY = 50 };

static void met(enum type t, int rank, int count)
{
	size_t size = size_of(t), real = size_of(real_of(t));
	int words = 0, *infos = device((size_t)count * sizeof(int));
	char *values = device((size_t)(count * rank) * real);
	char *left = device((size_t)(count * M * rank) * size);
	char *right = device((size_t)(count * N * rank) * size);
	number *a = some(t, M, N * count);
	void *at = put(t, a, M, N * count, M), *work;
	double off[MANY];

	memset(off, 0xff, sizeof(off));
	SOLVER(TYPED(t, gesvdaStridedBatched_bufferSize, handle, CUSOLVER_EIG_MODE_VECTOR, rank,
		M, N, at, M, M * N, (void *)values, rank, (void *)left, M, M * rank,
		(void *)right, N, N * rank, &words, count));
	work = device((size_t)words * size);
	SOLVER(TYPED(t, gesvdaStridedBatched, handle, CUSOLVER_EIG_MODE_VECTOR, rank, M, N, at,
		M, M * N, (void *)values, rank, (void *)left, M, M * rank, (void *)right, N,
		N * rank, work, words, infos, off, count));
	CUDA(cuCtxSynchronize());
	for (int i = 0; i < count; i++) {
		size_t k = (size_t)i;
		number *u = get(t, left + k * M * (size_t)rank * size, M, rank, M);
		number *s = get(real_of(t), values + k * (size_t)rank * real, rank, 1, rank);
		number *v = get(t, right + k * N * (size_t)rank * size, N, rank, N);
		number *back, *one = a + k * M * N;
		double sum, slack;

		for (int j = 0; j < rank; j++)
			for (int row = 0; row < M; row++)
				u[row + j * M] *= s[j];
		back = host(M * N * sizeof(*back));
		for (int col = 0; col < N; col++)
			for (int row = 0; row < M; row++) {
				number value = -one[row + col * M];

				for (int j = 0; j < rank; j++)
					value += u[row + j * M] * conj(v[col + j * N]);
				back[row + col * M] = value;
			}
		sum = norm(back, M * N);
		CHECK(!int_of(&infos[i]), "info %d of %d", int_of(&infos[i]), i);
		/* Of full rank it is but what rounding leaves. */
		slack = 100 * tolerance(t, 4 * (M + N)) * norm(one, M * N);
		CHECK(off[i] >= 0 && fabs(off[i] - sum) <= slack,
			"type %d, rank %d: matrix %d is off by %g, told %g", (int)t, rank, i,
			sum, off[i]);
		CHECK(rank == N || off[i] > 1e-3, "rank %d: matrix %d is off by %g", rank, i,
			off[i]);
		FREE(u, s, v, back);
	}
	FREE(a);
	RELEASE(at, values, left, right, infos, work);
}

int main(void)
{
	device_begin();
	SOLVER(cusolverDnCreate(&handle));
	for (enum type t = S; t <= Z; t++) {
		met(t, N, 1);
		met(t, N, 23);
		met(t, 2, MANY);
	}
	SOLVER(cusolverDnDestroy(handle));
	return 0;
}
