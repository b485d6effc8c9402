// SPDX-License-Identifier: Apache-2.0
/* What a program that loads weights does: copies of random bytes to the device, each buffer used for
 * something else as soon as the call returned; then all of them are read back and compared.
 *
 *     uploads SEED MIB HOST [PAUSES]    HOST: pageable, tensors (odd sizes), whole or pinned
 *
 * whole and pinned (asynchronous): all is made before, and `seconds` says how long the copies took.
 * PAUSES: a line of the standard input is awaited before each half.
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

/* Bytes that no two places of one seed have in common. */
static void make(uint64_t seed, uint64_t at, unsigned char *to, size_t n)
{
	uint64_t state = (seed + 1) * 0x9e3779b97f4a7c15ull + at;

	for (size_t i = 0; i < n; i += 8) {
		state ^= state << 13;
		state ^= state >> 7;
		state ^= state << 17;

		uint64_t word = state * 0x2545f4914f6cdd1dull;

		memcpy(to + i, &word, n - i < 8 ? n - i : 8);
	}
}

static double now()
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void wait_for_line()
{
	char byte = 0;

	say("waiting");
	while (byte != '\n' && read(0, &byte, 1) == 1)
		;
}

int main(int argc, char **argv)
{
	if (argc < 4) {
		fprintf(stderr, "uploads SEED MIB pageable|tensors|whole|pinned [pauses]\n");
		return 2;
	}
	const uint64_t seed = strtoull(argv[1], NULL, 0);
	const size_t bytes = strtoull(argv[2], NULL, 0) << 20;
	const bool pinned = !strcmp(argv[3], "pinned"), odd = !strcmp(argv[3], "tensors");
	const bool before = pinned || !strcmp(argv[3], "whole");
	const size_t most = odd ? 2359296 : 4u << 20; /* a matrix of 768 x 768 floats */
	unsigned char *device, *host;
	std::vector<unsigned char> pageable(before && !pinned ? bytes : most), back(most), again(most);
	double begin;

	MUST(cudaMalloc(&device, bytes));
	host = pageable.data();
	if (pinned)
		MUST(cudaMallocHost((void **)&host, bytes));
	auto step = [&](size_t at) {
		size_t n = odd && at % 5 ? 768 * 3 : most;

		return n < bytes - at ? n : bytes - at;
	};
	for (size_t at = 0, n; before && at < bytes; at += n) {
		n = step(at);
		make(seed, at, host + at, n);
	}
	if (before) {
		/* The software GPU's memory has its pages from the first touch on, a GPU's ever. */
		MUST(cudaMemset(device, 0, bytes));
		MUST(cudaDeviceSynchronize());
	}
	begin = now();
	for (size_t at = 0, n, half = bytes / 2; at < bytes; at += n) {
		unsigned char *from = before ? host + at : host;

		n = step(at);
		if (argc > 4 && (!at || (at < half && at + n >= half)))
			wait_for_line();
		if (!before)
			make(seed, at, from, n);
		if (pinned)
			MUST(cudaMemcpyAsync(device + at, from, n, cudaMemcpyHostToDevice, 0));
		else
			MUST(cudaMemcpy(device + at, from, n, cudaMemcpyHostToDevice));
		if (!pinned)
			memset(from, 0xa5, n);
	}
	MUST(cudaDeviceSynchronize());
	say("seconds %.6f", now() - begin);
	for (size_t at = 0, n; at < bytes; at += n) {
		n = step(at);
		MUST(cudaMemcpy(back.data(), device + at, n, cudaMemcpyDeviceToHost));
		make(seed, at, again.data(), n);
		if (memcmp(back.data(), again.data(), n)) {
			say("wrong: what came back from %zu is not what went", at);
			return 1;
		}
	}
	say("right");
	return 0;
}
