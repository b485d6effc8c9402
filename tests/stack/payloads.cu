// SPDX-License-Identifier: Apache-2.0
/* Copies payloads of a kind, up and down, and compares: what they shrink to is the wire's.
 *
 *     payloads KIND MIB UPS DOWNS    after a warm-up; says how long the copies took
 *     payloads shapes 0 0 0          rows, slices and arrays of one byte, and what is around them
 *
 * KIND: zeros, bf16 (weights), f32, tokens (64-bit), text, random.
 */
#include <cuda_runtime.h>

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <vector>

#include "tests/say.h"
#include "tests/stack/must.h"

static double now()
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static uint64_t state = 88172645463325252ull;

static uint64_t number()
{
	state ^= state << 13;
	state ^= state >> 7;
	return state ^= state << 17;
}

/* About normal: the sum of four. */
static uint32_t weight()
{
	uint64_t n = number();
	float f = 0;
	uint32_t bits;

	for (int i = 0; i < 4; i++)
		f += (float)(n >> 16 * i & 0xffff) / 65536 - 0.5f;
	f *= 0.02f;
	memcpy(&bits, &f, sizeof(bits));
	return bits;
}

static bool make(const char *kind, unsigned char *to, size_t n)
{
	if (!strcmp(kind, "zeros"))
		memset(to, 0, n);
	else if (!strcmp(kind, "bf16"))
		for (size_t i = 0; i < n / 2; i++)
			((uint16_t *)to)[i] = (uint16_t)(weight() >> 16);
	else if (!strcmp(kind, "f32"))
		for (size_t i = 0; i < n / 4; i++)
			((uint32_t *)to)[i] = weight();
	else if (!strcmp(kind, "tokens"))
		for (size_t i = 0; i < n / 8; i++)
			((uint64_t *)to)[i] = number() % 50257;
	else if (!strcmp(kind, "random"))
		for (size_t i = 0; i < n / 8; i++)
			((uint64_t *)to)[i] = number() * 0x2545f4914f6cdd1dull;
	else if (!strcmp(kind, "text"))
		for (size_t i = 0; i < n; i += 8)
			memcpy(to + i, &"kernel  stream  device  copy    "[number() % 4 * 8], 8);
	else
		return false;
	return true;
}

static int copies(const char *kind, size_t bytes, int ups, int downs)
{
	std::vector<unsigned char> host(bytes), back(bytes, 0x5a);
	unsigned char *device;
	double begin;

	if (!make(kind, host.data(), bytes))
		return 2;
	MUST(cudaMalloc(&device, bytes));
	MUST(cudaMemcpy(device, host.data(), bytes, cudaMemcpyHostToDevice));
	MUST(cudaDeviceSynchronize());
	if (downs)
		MUST(cudaMemcpy(back.data(), device, bytes, cudaMemcpyDeviceToHost));
	say("warm");
	for (int way = 0; way < 2; way++) {
		int n = way ? downs : ups;

		begin = now();
		for (int i = 0; i < n; i++)
			MUST(way ? cudaMemcpy(back.data(), device, bytes, cudaMemcpyDeviceToHost)
				 : cudaMemcpy(device, host.data(), bytes, cudaMemcpyHostToDevice));
		MUST(cudaDeviceSynchronize());
		say("%s %.6f", way ? "down" : "up", now() - begin);
	}
	MUST(cudaMemcpy(back.data(), device, bytes, cudaMemcpyDeviceToHost));
	if (memcmp(back.data(), host.data(), bytes)) {
		say("wrong: what came back is not what went");
		return 1;
	}
	say("right");
	return 0;
}

/* A box of one byte in memory of another one: the box has it, and nothing else does. */
static int box(unsigned char *device, size_t pitch, size_t width, size_t height, unsigned char byte)
{
	std::vector<unsigned char> host(width * height, byte), back(pitch * (height + 2));

	MUST(cudaMemset(device, 0x11, back.size()));
	MUST(cudaMemcpy2D(device + pitch, pitch, host.data(), width, width, height,
		cudaMemcpyHostToDevice));
	MUST(cudaMemcpy(back.data(), device, back.size(), cudaMemcpyDeviceToHost));
	for (size_t i = 0; i < back.size(); i++) {
		size_t row = i / pitch, at = i % pitch;
		bool in = row >= 1 && row <= height && at < width;

		if (back[i] != (in ? byte : 0x11)) {
			say("wrong: byte %zu of row %zu is %u", at, row, back[i]);
			return 1;
		}
	}
	return 0;
}

static int shapes()
{
	unsigned char *device;
	std::vector<unsigned char> back(1024 * 1024), host(1024 * 1024, 9);
	cudaChannelFormatDesc format = cudaCreateChannelDesc<unsigned char>();
	cudaArray_t array;

	if (copies("random", 32 << 20, 1, 0)) /* the stripes are open */
		return 1;
	MUST(cudaMalloc(&device, 32 << 20));
	for (int byte : {0, 7, 255})
		if (box(device, 4096, 4096, 4096, (unsigned char)byte) ||
			box(device, 4096, 4000, 2048, (unsigned char)byte) ||
			box(device, 8192, 1000, 1999, (unsigned char)byte) ||
			box(device, 1 << 20, (1 << 20) - 1, 16, (unsigned char)byte))
			return 1;
	MUST(cudaMallocArray(&array, &format, 1024, 1024));
	MUST(cudaMemcpy2DToArray(array, 0, 0, host.data(), 1024, 1024, 1024, cudaMemcpyHostToDevice));
	MUST(cudaMemcpy2DFromArray(back.data(), 1024, array, 0, 0, 1024, 1024, cudaMemcpyDeviceToHost));
	if (memcmp(back.data(), host.data(), back.size())) {
		say("wrong: the array");
		return 1;
	}
	say("shapes right");
	return 0;
}

int main(int argc, char **argv)
{
	if (argc != 5) {
		fprintf(stderr, "payloads KIND MIB UPS DOWNS\n");
		return 2;
	}
	if (!strcmp(argv[1], "shapes"))
		return shapes();
	return copies(argv[1], strtoull(argv[2], NULL, 0) << 20, atoi(argv[3]), atoi(argv[4]));
}
