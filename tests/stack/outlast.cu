// SPDX-License-Identifier: Apache-2.0
/* What programs do while their sidecar is killed and another one takes its place (test_resume_sidecar.py):
 * the first word says what.  Each says "started" and goes on until stdin is closed or the work is done;
 * each answer is checked, each launch and host function counted, and any error ends it with 1. */
#include <cuda_runtime.h>

#include <atomic>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

#include "tests/say.h"
#include "tests/stack/turns.h"

static void must_at(int line, const char *what, bool right, int got)
{
	if (right)
		return;
	say("line %d: %s gave %d", line, what, got);
	_exit(1);
}
#define MUST(call)                                                                             \
	do {                                                                                   \
		cudaError_t got_ = (call);                                                     \
		must_at(__LINE__, #call, !got_, got_);                                         \
	} while (0)
#define RIGHT(condition) must_at(__LINE__, #condition, condition, 0)

__global__ void add_one(unsigned long long *count)
{
	atomicAdd(count, 1);
}

__global__ void fill(uint32_t *data, uint32_t n, uint32_t value)
{
	uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < n)
		data[i] = value + i;
}

__global__ void linger(unsigned long long ns)
{
	unsigned long long begin, time;

	asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(begin));
	do
		asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(time));
	while (time - begin < ns);
}

static void host_function(void *argument)
{
	++*(std::atomic<uint64_t> *)argument;
}

/* Launches, none idempotent; answers of some bytes; host functions; waits.  All counted. */
static void tally_one(std::atomic<bool> &over, uint64_t *launches)
{
	uint64_t functions = 0;
	unsigned long long *device, got;
	std::atomic<uint64_t> ran{0};
	cudaStream_t stream;

	MUST(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
	MUST(cudaMalloc(&device, sizeof(*device)));
	MUST(cudaMemsetAsync(device, 0, sizeof(*device), stream));
	while (!over) {
		add_one<<<1, 1, 0, stream>>>(device);
		MUST(cudaGetLastError());
		++*launches;
		if (*launches % 7 == 0) {
			MUST(cudaLaunchHostFunc(stream, host_function, &ran));
			functions++;
		}
		if (*launches % 5)
			continue;
		MUST(cudaMemcpyAsync(&got, device, sizeof(got), cudaMemcpyDeviceToHost, stream));
		MUST(cudaStreamSynchronize(stream));
		RIGHT(got == *launches && ran == functions);
	}
	MUST(cudaStreamSynchronize(stream));
	RIGHT(ran == functions);
	MUST(cudaMemcpy(&got, device, sizeof(got), cudaMemcpyDeviceToHost));
	must_at(__LINE__, "each launch once", got == *launches, (int)got);
}

static int tally(unsigned count)
{
	std::vector<std::thread> threads;
	std::vector<uint64_t> launches(count);
	std::atomic<bool> over{false};
	uint64_t all = 0;

	MUST(cudaFree(0));
	for (unsigned i = 0; i < count; i++)
		threads.emplace_back([&, i] { tally_one(over, &launches[i]); });
	say("started");
	while (!stdin_closed())
		usleep(1000);
	over = true;
	for (unsigned i = 0; i < count; i++) {
		threads[i].join();
		all += launches[i];
	}
	say("%llu launches right", (unsigned long long)all);
	return 0;
}

/* BYTES there and back, again and again, through pageable memory. */
static int copies(size_t bytes)
{
	std::vector<uint32_t> there(bytes / 4), back(bytes / 4);
	uint32_t round = 0;
	void *device;

	MUST(cudaMalloc(&device, bytes));
	say("started");
	do {
		round++;
		for (size_t i = 0; i < there.size(); i += 61)
			there[i] = (uint32_t)i ^ round;
		say("there");
		MUST(cudaMemcpy(device, there.data(), bytes, cudaMemcpyHostToDevice));
		say("back");
		MUST(cudaMemcpy(back.data(), device, bytes, cudaMemcpyDeviceToHost));
		RIGHT(there == back);
	} while (!stdin_closed());
	say("%u copies right", round);
	return 0;
}

/* Pinned memory of several sizes, which comes and goes, and copies between it. */
static int pins()
{
	const size_t sizes[] = {4096, 100000, 600000, 3 << 20};
	uint32_t *kept[4], *device, round = 0;

	for (int i = 0; i < 4; i++)
		MUST(cudaHostAlloc(&kept[i], sizes[i], 0));
	MUST(cudaMalloc(&device, sizes[3]));
	say("started");
	do {
		uint32_t *other, which = ++round % 4, n = (uint32_t)sizes[which] / 4;

		MUST(cudaHostAlloc(&other, sizes[which], 0));
		for (uint32_t i = 0; i < n; i += 17)
			kept[which][i] = i + round;
		MUST(cudaMemcpyAsync(device, kept[which], n * 4, cudaMemcpyHostToDevice, 0));
		MUST(cudaMemcpyAsync(other, device, n * 4, cudaMemcpyDeviceToHost, 0));
		MUST(cudaStreamSynchronize(0));
		for (uint32_t i = 0; i < n; i += 17)
			RIGHT(other[i] == i + round);
		MUST(cudaFreeHost(other));
	} while (!stdin_closed());
	say("%u rounds right", round);
	return 0;
}

/* A kernel of MS milliseconds, waited for: by a synchronisation, or by asking (ASKS). */
static int waits(unsigned ms, bool asks)
{
	cudaEvent_t event;

	MUST(cudaEventCreate(&event));
	linger<<<1, 1>>>(ms * 1000000ull);
	MUST(cudaGetLastError());
	MUST(cudaEventRecord(event, 0));
	say("started");
	if (asks) {
		cudaError_t error;

		while ((error = cudaEventQuery(event)) == cudaErrorNotReady)
			usleep(100);
		MUST(error);
	}
	MUST(cudaDeviceSynchronize());
	say("waited");
	return 0;
}

static void round_right(uint32_t value)
{
	const uint32_t n = 4096;
	std::vector<uint32_t> host(n);
	uint32_t *device;

	MUST(cudaMalloc(&device, n * 4));
	fill<<<n / 128, 128>>>(device, n, value);
	MUST(cudaMemcpy(host.data(), device, n * 4, cudaMemcpyDeviceToHost));
	for (uint32_t i = 0; i < n; i++)
		RIGHT(host[i] == value + i);
	MUST(cudaFree(device));
}

/* Makes no call until stdin is closed. */
static int rests()
{
	round_right(1);
	say("started");
	while (!stdin_closed())
		usleep(10000);
	round_right(2);
	say("rested");
	return 0;
}

/* Children come and go, which have no session, and close what they do not know. */
static int forks()
{
	uint32_t round = 0;

	round_right(0);
	say("started");
	do {
		pid_t child = fork();
		int status;

		if (!child) {
			void *memory;
			cudaError_t error = cudaMalloc(&memory, 4096);

			usleep(20000);
			_exit(error == cudaErrorInitializationError ? 0 : 1);
		}
		round_right(++round);
		RIGHT(waitpid(child, &status, 0) == child && !status);
	} while (!stdin_closed());
	say("%u forks right", round);
	return 0;
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";
	size_t number = argc > 2 ? strtoull(argv[2], NULL, 0) : 1;

	if (!strcmp(what, "tally"))
		return tally((unsigned)number);
	if (!strcmp(what, "copies"))
		return copies(number);
	if (!strcmp(what, "pins"))
		return pins();
	if (!strcmp(what, "waits") || !strcmp(what, "asks"))
		return waits((unsigned)number, !strcmp(what, "asks"));
	if (!strcmp(what, "rests"))
		return rests();
	if (!strcmp(what, "forks"))
		return forks();
	fprintf(stderr, "outlast: no such thing to do: '%s'\n", what);
	return 2;
}
