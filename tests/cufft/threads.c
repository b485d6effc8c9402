/* SPDX-License-Identifier: Apache-2.0
 *
 * Plans that several threads make at the same time, alike and not, and more of them than
 * anybody keeps: each transform is right, in the stream of its own thread.
 */
#include <pthread.h>

#include "tests/cufft/check.h"

#define THREADS 6
#define ROUNDS 20
#define LARGEST (2 + ROUNDS * 3)

static void impulse(cufftHandle plan, cudaStream_t stream, struct numbers *data, int n)
{
	memset(data->host, 0, data->bytes);
	real_put(data, 0, 1);
	CUDA(cudaMemcpyAsync(
		data->device, data->host, data->bytes, cudaMemcpyHostToDevice, stream));
	FFT(cufftExecC2C(plan, data->device, data->device, CUFFT_FORWARD));
	CUDA(cudaMemcpyAsync(
		data->host, data->device, data->bytes, cudaMemcpyDeviceToHost, stream));
	CUDA(cudaStreamSynchronize(stream));
	for (size_t i = 0; i < (size_t)n; i++)
		near("of an impulse", i, complex_at(data, i), 1, (size_t)n, false);
}

static void *thread_main(void *argument)
{
	int number = (int)(intptr_t)argument;
	struct numbers data = numbers_new(2 * LARGEST, false);
	cudaStream_t stream;

	CUDA(cudaStreamCreate(&stream));
	for (int round = 0; round < ROUNDS; round++) {
		int n = 2 + round * 3 + number % 3; /* two threads have the same */
		cufftHandle plan;

		FFT(cufftPlan1d(&plan, n, CUFFT_C2C, 1));
		FFT(cufftSetStream(plan, stream));
		impulse(plan, stream, &data, n);
		impulse(plan, stream, &data, n);
		FFT(cufftDestroy(plan));
	}
	CUDA(cudaStreamDestroy(stream));
	numbers_free(&data);
	return NULL;
}

int main(void)
{
	pthread_t threads[THREADS];

	for (int i = 0; i < THREADS; i++)
		if (pthread_create(&threads[i], NULL, thread_main, (void *)(intptr_t)i))
			DIE("no thread");
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	puts("ok");
	return 0;
}
