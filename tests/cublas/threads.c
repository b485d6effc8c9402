/* SPDX-License-Identifier: Apache-2.0
 *
 * A handle that one thread made, used by threads that have made no call before: they work in
 * the runtime's context, as every thread of the runtime does.
 */
#include <pthread.h>

#include "tests/cublas/check.h"

enum { N = 64, THREADS = 4 };

static struct worker {
	pthread_t thread;
	cublasHandle_t handle;
	cudaStream_t stream;
	double *a, *x, *y;
} workers[THREADS];

static void *work(void *context)
{
	struct worker *w = context;
	double one = 1, zero = 0;

	BLAS(cublasSetStream_v2(w->handle, w->stream));
	BLAS(cublasDgemv_v2(w->handle, 0, N, N, &one, w->a, N, w->x, 1, &zero, w->y, 1));
	BLAS(cublasDestroy_v2(w->handle));
	return NULL;
}

static void begin_worker(struct worker *w, int number)
{
	double a[N * N], x[N];

	for (int i = 0; i < N * N; i++)
		a[i] = (i * 7 + number) % 11;
	for (int i = 0; i < N; i++)
		x[i] = i % 5 - number;
	CUDA(cudaMalloc((void **)&w->a, sizeof(a)));
	CUDA(cudaMalloc((void **)&w->x, sizeof(x)));
	CUDA(cudaMalloc((void **)&w->y, sizeof(x)));
	CUDA(cudaMemcpy(w->a, a, sizeof(a), cudaMemcpyHostToDevice));
	CUDA(cudaMemcpy(w->x, x, sizeof(x), cudaMemcpyHostToDevice));
	BLAS(cublasCreate_v2(&w->handle));
	CUDA(cudaStreamCreate(&w->stream));
	if (pthread_create(&w->thread, NULL, work, w))
		DIE("no thread");
}

static void check(const struct worker *w, int number)
{
	double y[N];

	if (pthread_join(w->thread, NULL))
		DIE("the thread is lost");
	CUDA(cudaDeviceSynchronize());
	CUDA(cudaMemcpy(y, w->y, sizeof(y), cudaMemcpyDeviceToHost));
	for (int i = 0; i < N; i++) {
		double want = 0;

		for (int j = 0; j < N; j++)
			want += (double)(((i + j * N) * 7 + number) % 11) * (j % 5 - number);
		if (y[i] != want)
			DIE("thread %d: y[%d] is %g, not %g", number, i, y[i], want);
	}
}

int main(void)
{
	for (int i = 0; i < THREADS; i++)
		begin_worker(&workers[i], i);
	for (int i = 0; i < THREADS; i++)
		check(&workers[i], i);
	return 0;
}
