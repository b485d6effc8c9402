/* SPDX-License-Identifier: Apache-2.0
 *
 * Small calls to be counted, not timed: instructions KIND N makes N calls of that kind between two
 * SIGWINCHs, which nobody notices but who traces it (bench/instructions.py).  It waits for a line
 * before each: the tracer may have to look at the worker first.
 */
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <cuda_runtime.h>

#define CHECK(call)                                                                                \
	do {                                                                                       \
		cudaError_t e = (call);                                                            \
		if (e != cudaSuccess) {                                                            \
			fprintf(stderr, "instructions: %s: %s\n", #call, cudaGetErrorString(e));   \
			exit(1);                                                                   \
		}                                                                                  \
	} while (0)

__global__ void empty(float *p, int a, int b)
{
	if (a == b)
		*p = 1;
}

/* False: nobody is there any more. */
static bool told(const char *what)
{
	char line[16];

	puts(what);
	fflush(stdout);
	return fgets(line, sizeof(line), stdin);
}

template <class F> static void times(int n, F call)
{
	for (int i = 0; i < n; i++)
		call();
	CHECK(cudaDeviceSynchronize());
}

/* What is first is done before; what comes only at times (a queue that is full) is in N calls. */
template <class F> static int counted(int n, F call)
{
	times(40, call);
	if (!told("ready"))
		return 1;
	raise(SIGWINCH);
	for (int i = 0; i < n; i++)
		call();
	raise(SIGWINCH);
	CHECK(cudaDeviceSynchronize());
	return told("done") ? 0 : 1;
}

int main(int argc, char **argv)
{
	const size_t big = 8 << 20, small = 4096;
	float *p;
	char *device, *pinned;
	cudaStream_t stream;
	cudaEvent_t event;

	if (argc != 3)
		return 2;
	const char *kind = argv[1];
	const int n = atoi(argv[2]);
	CHECK(cudaMalloc(&p, 4096));
	CHECK(cudaMalloc(&device, big));
	CHECK(cudaMallocHost(&pinned, big));
	for (size_t i = 0; i < big; i++)
		pinned[i] = (char)(i * 2654435761u >> 13);
	CHECK(cudaStreamCreate(&stream));
	CHECK(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
	if (!strcmp(kind, "launch"))
		return counted(n, [&] { empty<<<1, 32>>>(p, 0, -1); });
	if (!strcmp(kind, "record"))
		return counted(n, [&] { CHECK(cudaEventRecord(event, stream)); });
	if (!strcmp(kind, "memory"))
		return counted(n, [&] {
			void *q;
			CHECK(cudaMalloc(&q, big));
			CHECK(cudaFree(q));
		});
	if (!strcmp(kind, "in"))
		return counted(n, [&] { CHECK(cudaMemcpyAsync(device, pinned, small, cudaMemcpyHostToDevice, stream)); });
	if (!strcmp(kind, "out"))
		return counted(n, [&] { CHECK(cudaMemcpyAsync(pinned, device, small, cudaMemcpyDeviceToHost, stream)); });
	return 2;
}
