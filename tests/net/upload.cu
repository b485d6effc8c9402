/* SPDX-License-Identifier: Apache-2.0
 *
 * upload MIB ROUNDS: bytes at random to the device and back, compared; how long the way there
 * took; then ROUNDS of launch and synchronize. Behind a first copy, which opens the stripes.
 */
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#define MUST(call)                                                                             \
	do {                                                                                   \
		cudaError_t error = call;                                                      \
		if (error) {                                                                   \
			fprintf(stderr, "%s: %s\n", #call, cudaGetErrorString(error));         \
			exit(1);                                                               \
		}                                                                              \
	} while (0)

__global__ void nothing(unsigned *word)
{
	*word += 1;
}

static double now()
{
	return std::chrono::duration<double>(
		std::chrono::steady_clock::now().time_since_epoch())
		.count();
}

int main(int argc, char **argv)
{
	size_t bytes = argc > 1 ? strtoull(argv[1], NULL, 0) << 20 : 64 << 20;
	int rounds = argc > 2 ? atoi(argv[2]) : 100;
	std::vector<unsigned> words(bytes / 4), again(bytes / 4);
	std::vector<double> lasted;
	unsigned *device, seed = 1;
	double began, there, back;

	for (unsigned &word : words)
		word = seed = seed * 1664525 + 1013904223;
	MUST(cudaMalloc(&device, bytes));
	MUST(cudaMemcpy(device, words.data(), std::min(bytes, (size_t)12 << 20),
		cudaMemcpyHostToDevice));
	MUST(cudaDeviceSynchronize());
	began = now();
	MUST(cudaMemcpy(device, words.data(), bytes, cudaMemcpyHostToDevice));
	MUST(cudaDeviceSynchronize());
	there = now() - began;
	began = now();
	MUST(cudaMemcpy(again.data(), device, bytes, cudaMemcpyDeviceToHost));
	back = now() - began;
	if (words != again) {
		fprintf(stderr, "the bytes came back wrong\n");
		return 1;
	}
	nothing<<<1, 1>>>(device); /* the first one brings its module */
	MUST(cudaDeviceSynchronize());
	for (int i = 0; i < rounds; i++) {
		began = now();
		nothing<<<1, 1>>>(device);
		MUST(cudaDeviceSynchronize());
		lasted.push_back(now() - began);
	}
	std::sort(lasted.begin(), lasted.end());
	printf("{\"there\": %.0f, \"back\": %.0f, \"half\": %.6f, \"p99\": %.6f}\n",
		(double)bytes / there, (double)bytes / back, lasted[rounds / 2],
		lasted[rounds * 99 / 100]);
	return 0;
}
