// SPDX-License-Identifier: Apache-2.0
/* The program that the tests of the whole stack run, watch and kill: the first word says what
 * it does.  It prints a line for each thing that happens, with CLOCK_MONOTONIC where time
 * matters. Unlike tests/programs it goes on after an error: how errors come is what is tested.
 */
#include <cuda_runtime.h>

#include <algorithm>
#include <atomic>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <thread>
#include <time.h>
#include <unistd.h>
#include <vector>

#include "tests/say.h"
#include "tests/stack/turns.h"

#undef NDEBUG
#include <assert.h>

static double now()
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void must_at(int line, const char *what, cudaError_t got)
{
	if (got == cudaSuccess)
		return;
	say("line %d: %s gave %d (%s)", line, what, got, cudaGetErrorName(got));
	_exit(1);
}
#define MUST(call) must_at(__LINE__, #call, call)

__global__ void scramble(uint32_t *data, uint32_t n, uint32_t round)
{
	uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < n)
		data[i] = data[i] * 2654435761u + round;
}

__global__ void spin(volatile int *flag)
{
	while (!*flag)
		;
}

__global__ void linger(unsigned long long ns)
{
	unsigned long long begin, time;

	asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(begin));
	do
		asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(time));
	while (time - begin < ns);
}

__global__ void touch(int *where)
{
	*where = 1;
}

__global__ void claim(int *where)
{
	assert(*where == 12345);
}

/* One round of copies and a launch, checked; false and a line where a number is wrong. */
static bool round_is_right(uint32_t *device, std::vector<uint32_t> &host, uint32_t round)
{
	uint32_t n = (uint32_t)host.size();

	for (uint32_t i = 0; i < n; i++)
		host[i] = i ^ round;
	MUST(cudaMemcpy(device, host.data(), n * 4, cudaMemcpyHostToDevice));
	scramble<<<(n + 127) / 128, 128>>>(device, n, round);
	MUST(cudaGetLastError());
	memset(host.data(), 0, n * 4);
	MUST(cudaMemcpy(host.data(), device, n * 4, cudaMemcpyDeviceToHost));
	for (uint32_t i = 0; i < n; i++)
		if (host[i] != (i ^ round) * 2654435761u + round) {
			say("wrong: round %u, word %u is %u", round, i, host[i]);
			return false;
		}
	return true;
}

/* sum ROUNDS KIB: that many rounds.  bystander: until stdin is closed. */
static int sum(uint32_t rounds, size_t bytes)
{
	std::vector<uint32_t> host(bytes / 4);
	uint32_t *device, round = 0;

	MUST(cudaMalloc(&device, bytes));
	while (round < rounds) {
		if (!round_is_right(device, host, ++round))
			return 1;
		if (round == 1)
			say("started");
		if (rounds == UINT32_MAX && turns_over())
			break;
	}
	MUST(cudaFree(device));
	say("%u rounds right", round);
	return 0;
}

/* Launches without end and waits for none of it, until stdin is closed. */
static int hog(uint32_t words)
{
	uint32_t *device, launches = 0;

	MUST(cudaMalloc(&device, words * 4ull));
	say("started");
	while (launches % 16 || !stdin_closed()) {
		scramble<<<(words + 127) / 128, 128>>>(device, words, launches++);
		MUST(cudaGetLastError());
	}
	say("%u launches", launches);
	return 0;
}

/* ROUNDS launches, each waited for; how long they lasted, the middle one and the slowest but 1 %. */
static int pace(uint32_t rounds, uint32_t words)
{
	std::vector<double> lasted;
	uint32_t *device;

	MUST(cudaMalloc(&device, words * 4ull));
	for (uint32_t i = 0; i < rounds; i++) {
		double begin = now();

		scramble<<<(words + 127) / 128, 128>>>(device, words, i);
		MUST(cudaDeviceSynchronize());
		lasted.push_back(now() - begin);
	}
	std::sort(lasted.begin(), lasted.end());
	say("half in %.6f, all but one in a hundred in %.6f", lasted[rounds / 2],
		lasted[rounds * 99 / 100]);
	return 0;
}

/* Holds memory until stdin is closed. */
static int hold(size_t bytes)
{
	void *device;

	MUST(cudaMalloc(&device, bytes));
	MUST(cudaMemset(device, 1, bytes));
	MUST(cudaDeviceSynchronize());
	say("holding");
	while (!stdin_closed(1000))
		;
	return 0;
}

/* When stdin is closed: a copy of BYTES, for which it wants more shared memory, then pinned memory. */
static int copy_and_pin(size_t bytes)
{
	std::vector<char> host(bytes, 1);
	void *device, *pinned;

	MUST(cudaMalloc(&device, bytes));
	MUST(cudaDeviceSynchronize());
	say("ready");
	while (!stdin_closed(1000))
		;
	MUST(cudaMemcpy(device, host.data(), bytes, cudaMemcpyHostToDevice));
	MUST(cudaHostAlloc(&pinned, bytes, 0));
	memset(pinned, 2, bytes);
	MUST(cudaMemcpy(pinned, device, bytes, cudaMemcpyDeviceToHost));
	if (memcmp(host.data(), pinned, bytes))
		return 1;
	MUST(cudaFreeHost(pinned));
	return 0;
}

/* ROUNDS times a launch and 64 KiB there and back, then holds its session until stdin ends. */
static int load(uint32_t rounds)
{
	const uint32_t n = 1 << 14;
	uint32_t *device, *host = (uint32_t *)calloc(n, sizeof(*host));

	MUST(cudaMalloc(&device, n * sizeof(*device)));
	for (uint32_t i = 0; i < rounds; i++) {
		MUST(cudaMemcpy(device, host, n * sizeof(*device), cudaMemcpyHostToDevice));
		scramble<<<1, 64>>>(device, 64, i);
		MUST(cudaMemcpy(host, device, n * sizeof(*device), cudaMemcpyDeviceToHost));
		MUST(cudaDeviceSynchronize());
	}
	say("loaded");
	while (!stdin_closed(1000))
		;
	free(host);
	return 0;
}

/* Gives memory away: prints its handle, then holds it until stdin ends, and looks what is there. */
static int give(size_t bytes)
{
	char text[2 * sizeof(cudaIpcMemHandle_t) + 1];
	cudaIpcMemHandle_t handle;
	unsigned char byte;
	void *device;

	MUST(cudaMalloc(&device, bytes));
	MUST(cudaMemset(device, 1, bytes));
	MUST(cudaIpcGetMemHandle(&handle, device));
	for (size_t i = 0; i < sizeof(handle); i++)
		snprintf(text + 2 * i, 3, "%02x", ((unsigned char *)&handle)[i]);
	say("handle %s", text);
	while (!stdin_closed(1000))
		;
	MUST(cudaMemcpy(&byte, device, 1, cudaMemcpyDeviceToHost));
	say("there is %d", byte);
	MUST(cudaFree(device));
	return 0;
}

/* Opens what another one gave: says the error, or what is there, and writes 7. Keeps it until stdin
 * ends. */
static int take(const char *text)
{
	cudaIpcMemHandle_t handle;
	unsigned char byte = 0;
	cudaError_t error;
	unsigned digit;
	void *device;

	for (size_t i = 0; i < sizeof(handle); i++) {
		if (sscanf(text + 2 * i, "%2x", &digit) != 1)
			return 2;
		((unsigned char *)&handle)[i] = (unsigned char)digit;
	}
	error = cudaIpcOpenMemHandle(&device, handle, cudaIpcMemLazyEnablePeerAccess);
	if (!error)
		MUST(cudaMemcpy(&byte, device, 1, cudaMemcpyDeviceToHost));
	say("taken %d byte %d", (int)error, byte);
	if (error)
		return 0;
	MUST(cudaMemset(device, 7, 1));
	MUST(cudaDeviceSynchronize());
	say("written");
	while (!stdin_closed(1000))
		;
	MUST(cudaMemcpy(&byte, device, 1, cudaMemcpyDeviceToHost));
	say("still %d", byte);
	MUST(cudaIpcCloseMemHandle(device));
	return 0;
}

/* Copies of BYTES until one fails. */
static int copy(size_t bytes)
{
	char *host = (char *)malloc(bytes);
	cudaError_t error = cudaSuccess;
	void *device;

	memset(host, 7, bytes);
	MUST(cudaMalloc(&device, bytes));
	MUST(cudaDeviceSynchronize());
	say("copying");
	while (!error)
		error = cudaMemcpy(device, host, bytes, cudaMemcpyHostToDevice);
	say("error %d at %.6f", error, now());
	return 0;
}

/* What a program may call next: a sticky error is what each of them gives, and at once. */
static int calls_after(cudaError_t want)
{
	cudaStream_t stream = NULL;
	cudaEvent_t event = NULL;
	int *device = NULL, value = 0, bad = 0;
	double worst = 0;

	for (int i = 0; i < 9; i++) {
		static const char *const names[] = {"malloc", "memcpy to", "memcpy from",
			"memset", "stream create", "stream synchronize", "event create",
			"launch", "device synchronize"};
		double began = now();
		cudaError_t got = cudaSuccess;

		switch (i) {
		case 0: got = cudaMalloc(&device, 1 << 20); break;
		case 1:
			got = cudaMemcpy((void *)0x1000, &value, 4, cudaMemcpyHostToDevice);
			break;
		case 2:
			got = cudaMemcpy(&value, (void *)0x1000, 4, cudaMemcpyDeviceToHost);
			break;
		case 3: got = cudaMemset((void *)0x1000, 0, 4); break;
		case 4: got = cudaStreamCreate(&stream); break;
		case 5: got = cudaStreamSynchronize(0); break;
		case 6: got = cudaEventCreate(&event); break;
		case 7:
			scramble<<<1, 1>>>(NULL, 0, 0);
			got = cudaGetLastError();
			break;
		default: got = cudaDeviceSynchronize(); break;
		}
		if (now() - began > worst)
			worst = now() - began;
		if (got != want) {
			say("not sticky: %s gave %d", names[i], got);
			bad++;
		}
	}
	say("afterwards %d wrong, slowest %.6f", bad, worst);
	return bad != 0;
}

/* A kernel without end, awaited. */
static int wait_forever()
{
	cudaError_t error;
	int *flag;

	MUST(cudaMalloc(&flag, 64 << 20));
	MUST(cudaMemset(flag, 0, 64 << 20));
	MUST(cudaDeviceSynchronize());
	spin<<<1, 32>>>(flag);
	error = cudaGetLastError();
	say("launched %d", error);
	error = cudaStreamSynchronize(0);
	say("error %d at %.6f", error, now());
	return calls_after(error);
}

/* A kernel that takes its time, and behind it more copies than fit anywhere on the way. */
static int linger_and_copy(size_t seconds)
{
	std::vector<uint32_t> host(8 << 18);
	uint32_t *device, value;

	MUST(cudaMalloc(&device, host.size() * 4));
	linger<<<1, 1>>>(seconds * 1000000000ull);
	MUST(cudaGetLastError());
	for (uint32_t i = 1; i <= 32; i++) {
		host[5] = i;
		MUST(cudaMemcpyAsync(
			device, host.data(), host.size() * 4, cudaMemcpyHostToDevice));
	}
	MUST(cudaMemcpy(&value, device + 5, 4, cudaMemcpyDeviceToHost));
	if (value != 32) {
		say("wrong: %u", value);
		return 1;
	}
	say("lingered");
	return 0;
}

/* Launches without end, none awaited. */
static int launch_forever()
{
	cudaError_t error = cudaSuccess;
	uint32_t *data;
	unsigned n = 0;

	MUST(cudaMalloc(&data, 1 << 20));
	MUST(cudaMemset(data, 0, 1 << 20));
	MUST(cudaDeviceSynchronize());
	while (!error) {
		scramble<<<1024, 256>>>(data, 1 << 18, n);
		error = cudaGetLastError();
		if (n++ == 20)
			say("launching");
	}
	say("error %d at %.6f", error, now());
	return calls_after(error);
}

/* Short waiting calls until one fails. */
static int calls()
{
	cudaError_t error = cudaSuccess;
	int *device, value = 0;
	unsigned n = 0;

	MUST(cudaMalloc(&device, 4));
	MUST(cudaMemset(device, 0, 4));
	while (!error) {
		error = cudaMemcpy(&value, device, 4, cudaMemcpyDeviceToHost);
		if (!error)
			error = cudaStreamSynchronize(0);
		if (n++ == 10)
			say("calling");
	}
	say("error %d at %.6f", error, now());
	return calls_after(error);
}

/* Asks whether a kernel without end is done, and never waits. */
static int poll_forever()
{
	cudaError_t error;
	int *flag;

	MUST(cudaMalloc(&flag, 4));
	MUST(cudaMemset(flag, 0, 4));
	MUST(cudaDeviceSynchronize());
	spin<<<1, 32>>>(flag);
	error = cudaStreamQuery(0);
	say("polling");
	while (error == cudaErrorNotReady)
		error = cudaStreamQuery(0);
	say("error %d at %.6f", error, now());
	return calls_after(error);
}

/* Pinned memory, which is asked of the sidecar itself. */
static int pin_forever()
{
	cudaError_t error = cudaSuccess;
	void *host;

	MUST(cudaFree(0));
	for (unsigned n = 0; !error; n++) {
		error = cudaHostAlloc(&host, 1 << 20, 0);
		if (!error)
			error = cudaFreeHost(host);
		if (n == 3)
			say("pinning");
	}
	say("error %d at %.6f", error, now());
	return calls_after(error);
}

/* Threads that do different things until each has its error. */
static int threads()
{
	enum { THREADS = 6 };
	std::atomic<int> running{0}, returned{0};
	std::vector<std::thread> all;
	cudaError_t errors[THREADS] = {};
	int *flag;

	MUST(cudaMalloc(&flag, 4));
	MUST(cudaMemset(flag, 0, 4));
	MUST(cudaDeviceSynchronize());
	for (int kind = 0; kind < THREADS; kind++)
		all.emplace_back([&, kind] {
			std::vector<char> host(8 << 20);
			cudaError_t error = cudaSuccess;
			cudaStream_t stream;
			cudaEvent_t event;
			void *memory;

			MUST(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
			MUST(cudaEventCreate(&event));
			MUST(cudaMallocAsync(&memory, host.size(), stream));
			MUST(cudaStreamSynchronize(stream));
			if (kind == 0)
				spin<<<1, 32, 0, stream>>>(flag);
			running++;
			while (!error) {
				switch (kind) {
				case 0: error = cudaStreamSynchronize(stream); break;
				case 1:
					error = cudaMemcpyAsync(host.data(), memory, 4096,
						cudaMemcpyDeviceToHost, stream);
					if (!error)
						error = cudaStreamSynchronize(stream);
					break;
				case 2: {
					void *other;

					error = cudaMalloc(&other, 4096);
					if (!error)
						error = cudaFree(other);
					usleep(1000);
					break;
				}
				case 3:
					error = cudaEventRecord(event, stream);
					if (!error)
						error = cudaEventSynchronize(event);
					break;
				case 4:
					error = cudaMemcpyAsync(memory, host.data(),
						host.size(), cudaMemcpyHostToDevice, stream);
					if (!error)
						error = cudaStreamSynchronize(stream);
					break;
				default:
					error = cudaMemsetAsync(memory, 0, 4096, stream);
					usleep(1000);
					break;
				}
			}
			errors[kind] = error;
			returned++;
		});
	while (running < THREADS)
		usleep(1000);
	say("running");
	for (std::thread &thread : all)
		thread.join();
	say("returned %d at %.6f, errors %d %d %d %d %d %d", returned.load(), now(), errors[0],
		errors[1], errors[2], errors[3], errors[4], errors[5]);
	return calls_after(errors[0]);
}

static int fault(const char *kind)
{
	cudaError_t error;
	int *device;

	MUST(cudaMalloc(&device, 4096));
	MUST(cudaMemset(device, 0, 4096));
	MUST(cudaDeviceSynchronize());
	if (!strcmp(kind, "address"))
		touch<<<1, 1>>>((int *)0x10);
	else if (!strcmp(kind, "misaligned"))
		touch<<<1, 1>>>((int *)((char *)device + 1));
	else if (!strcmp(kind, "assert"))
		claim<<<1, 1>>>(device);
	else if (!strcmp(kind, "timeout"))
		spin<<<1, 1>>>(device);
	say("launched %d", cudaGetLastError());
	error = cudaDeviceSynchronize();
	say("error %d at %.6f", error, now());
	return calls_after(error);
}

/* All memory there is, an error for more, and everything still works. */
static int take_all()
{
	std::vector<uint32_t> host(1 << 16);
	std::vector<void *> got;
	cudaError_t error;
	uint32_t *device;
	void *block;

	while (!(error = cudaMalloc(&block, 64 << 20)))
		got.push_back(block);
	say("error %d after %zu blocks", error, got.size());
	if (cudaGetLastError() != error || cudaGetLastError() != cudaSuccess)
		return 1;
	MUST(cudaDeviceSynchronize());
	for (void *each : got)
		MUST(cudaFree(each));
	MUST(cudaMalloc(&block, 64 << 20));
	MUST(cudaMalloc(&device, host.size() * 4));
	if (!round_is_right(device, host, 1))
		return 1;
	say("recovered");
	return 0;
}

/* What it sees of its GPUs; then blocks of BYTES on the first one until there is no more, held
 * until stdin is closed. */
static int limit(size_t bytes)
{
	size_t free_bytes, total, got = 0;
	struct cudaDeviceProp properties;
	cudaError_t error;
	void *block;
	int count;

	MUST(cudaGetDeviceCount(&count));
	MUST(cudaGetDeviceProperties(&properties, 0));
	MUST(cudaMemGetInfo(&free_bytes, &total));
	say("sees %d GPUs of %zu bytes, info %zu of %zu", count, properties.totalGlobalMem,
		free_bytes, total);
	for (int i = 0; i < count; i++) {
		char place[32];

		MUST(cudaSetDevice(i));
		MUST(cudaMalloc(&block, 4096));
		MUST(cudaMemset(block, i, 4096));
		MUST(cudaDeviceSynchronize());
		MUST(cudaFree(block));
		MUST(cudaDeviceGetPCIBusId(place, sizeof(place), i));
		say("GPU %d works: %s", i, place);
	}
	MUST(cudaSetDevice(0));
	while (!(error = cudaMalloc(&block, bytes))) {
		MUST(cudaMemset(block, 1, 4096));
		got += bytes;
	}
	MUST(cudaDeviceSynchronize());
	MUST(cudaMemGetInfo(&free_bytes, &total));
	say("error %d after %zu bytes, info %zu of %zu", error, got, free_bytes, total);
	while (!stdin_closed(1000))
		;
	return 0;
}

__global__ void mark(uint64_t *data, uint64_t n, uint64_t mark)
{
	for (uint64_t i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
		data[i] = mark ^ i;
}

__global__ void search(const uint64_t *data, uint64_t n, uint64_t mark, unsigned long long *hits)
{
	uint64_t mine = 0;

	/* Whatever place it had before: by what does not depend on it. */
	for (uint64_t i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
		mine += data[i] >> 40 == mark >> 40;
	if (mine)
		atomicAdd(hits, mine);
}

static uint64_t hits_of(const uint64_t *data, uint64_t n, uint64_t mark)
{
	unsigned long long *hits, found;

	MUST(cudaMalloc(&hits, sizeof(*hits)));
	MUST(cudaMemset(hits, 0, sizeof(*hits)));
	search<<<64, 128>>>(data, n, mark, hits);
	MUST(cudaMemcpy(&found, hits, sizeof(found), cudaMemcpyDeviceToHost));
	MUST(cudaFree(hits));
	return found;
}

/* Looks for what `residue` of another session left in memory that nobody wrote here, and leaves
 * the same itself: 64-bit words of which 24 bits are known. */
static int residue(size_t bytes)
{
	const uint64_t word = 0x5ec4e7ull << 40, n = bytes / 8;
	uint64_t *data, before;

	MUST(cudaMalloc(&data, bytes));
	before = hits_of(data, n, word);
	mark<<<64, 128>>>(data, n, word);
	MUST(cudaGetLastError());
	say("found %llu, then %llu of %llu", (unsigned long long)before,
		(unsigned long long)hits_of(data, n, word), (unsigned long long)n);
	return 0;
}

/* What all processes that share FILE hold together; only ever less than they really do. */
struct held {
	std::atomic<uint64_t> now, most, refused;
};

/* Blocks of any size come and go, OPERATIONS times in each of four threads. */
static int churn(const char *path, size_t operations)
{
	int fd = open(path, O_RDWR);
	void *at = mmap(NULL, sizeof(held), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	held *all = (held *)at;
	std::vector<std::thread> threads;

	assert(at != MAP_FAILED);
	MUST(cudaFree(0));
	for (unsigned t = 0; t < 4; t++)
		threads.emplace_back([=] {
			std::vector<std::pair<void *, size_t>> blocks;
			unsigned seed = t + 4 * (unsigned)getpid();

			for (size_t i = 0; i < operations; i++) {
				size_t bytes = (size_t)1 << (8 + rand_r(&seed) % 17);
				uint64_t now, most = all->most;
				cudaError_t error;
				void *block;

				bytes += (size_t)rand_r(&seed) % bytes;
				if (!blocks.empty() && (rand_r(&seed) % 5 < 2 || blocks.size() > 200)) {
					size_t which = (size_t)rand_r(&seed) % blocks.size();

					all->now -= blocks[which].second;
					MUST(cudaFree(blocks[which].first));
					blocks[which] = blocks.back();
					blocks.pop_back();
					continue;
				}
				error = cudaMalloc(&block, bytes);
				if (error == cudaErrorMemoryAllocation) {
					all->refused++;
					cudaGetLastError();
					continue;
				}
				MUST(error);
				blocks.emplace_back(block, bytes);
				now = all->now += bytes;
				while (now > most && !all->most.compare_exchange_weak(most, now))
					;
			}
			for (auto &block : blocks) {
				all->now -= block.second;
				MUST(cudaFree(block.first));
			}
		});
	for (auto &thread : threads)
		thread.join();
	say("done");
	return 0;
}

/* Pinned memory, and so many copies from and to it. */
static int pinned(size_t bytes, uint32_t rounds)
{
	cudaError_t error;
	void *host, *device;

	MUST(cudaFree(0));
	error = cudaHostAlloc(&host, bytes, 0);
	say("error %d", error);
	if (!error) {
		memset(host, 1, bytes);
		if (rounds)
			MUST(cudaMalloc(&device, bytes));
		for (uint32_t i = 0; i < rounds; i++) {
			MUST(cudaMemcpyAsync(device, host, bytes, cudaMemcpyHostToDevice));
			MUST(cudaMemcpyAsync(host, device, bytes, cudaMemcpyDeviceToHost));
			MUST(cudaStreamSynchronize(0));
		}
		if (rounds)
			say("copied");
		MUST(cudaFreeHost(host));
	}
	return 0;
}

/* A copy that waits: its source is the program's again when it returns. */
static int rewritten(size_t bytes, uint32_t rounds)
{
	std::vector<unsigned char> back(bytes);
	unsigned char *host;
	void *device;

	MUST(cudaHostAlloc((void **)&host, bytes, 0));
	MUST(cudaMalloc(&device, bytes));
	for (uint32_t i = 0; i < rounds; i++) {
		memset(host, (int)(i + 1), bytes);
		MUST(cudaMemcpy(device, host, bytes, cudaMemcpyHostToDevice));
		memset(host, 0, bytes);
		MUST(cudaMemcpy(back.data(), device, bytes, cudaMemcpyDeviceToHost));
		for (size_t j = 0; j < bytes; j++)
			if (back[j] != (unsigned char)(i + 1)) {
				say("wrong at %zu", j);
				return 1;
			}
	}
	say("right");
	return 0;
}

static int count()
{
	int n = 0;
	cudaError_t error = cudaGetDeviceCount(&n);

	say("error %d devices %d", error, n);
	return 0;
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";
	size_t number = argc > 2 ? strtoull(argv[2], NULL, 0) : 0;

	if (!strcmp(what, "count"))
		return count();
	if (!strcmp(what, "sum"))
		return sum((uint32_t)number,
			argc > 3 ? strtoull(argv[3], NULL, 0) << 10 : 1 << 20);
	if (!strcmp(what, "bystander"))
		return sum(UINT32_MAX, 256 << 10);
	if (!strcmp(what, "hog"))
		return hog((uint32_t)number);
	if (!strcmp(what, "pace") && argc > 3)
		return pace((uint32_t)number, (uint32_t)strtoul(argv[3], NULL, 0));
	if (!strcmp(what, "hold"))
		return hold(number);
	if (!strcmp(what, "copy-and-pin"))
		return copy_and_pin(number);
	if (!strcmp(what, "load"))
		return load((uint32_t)number);
	if (!strcmp(what, "give"))
		return give(number);
	if (!strcmp(what, "take") && argc > 2)
		return take(argv[2]);
	if (!strcmp(what, "copy"))
		return copy(number);
	if (!strcmp(what, "wait"))
		return wait_forever();
	if (!strcmp(what, "linger"))
		return linger_and_copy(number);
	if (!strcmp(what, "launch"))
		return launch_forever();
	if (!strcmp(what, "calls"))
		return calls();
	if (!strcmp(what, "poll"))
		return poll_forever();
	if (!strcmp(what, "pin"))
		return pin_forever();
	if (!strcmp(what, "threads"))
		return threads();
	if (!strcmp(what, "fault") && argc > 2) {
		int status = fault(argv[2]);

		while (argc > 3 && !stdin_closed(1000)) /* `hold`: the session stays */
			;
		return status;
	}
	if (!strcmp(what, "limit"))
		return limit(number);
	if (!strcmp(what, "residue"))
		return residue(number << 20);
	if (!strcmp(what, "churn") && argc > 3)
		return churn(argv[2], strtoull(argv[3], NULL, 0));
	if (!strcmp(what, "take-all"))
		return take_all();
	if (!strcmp(what, "rewritten"))
		return rewritten(number, argc > 3 ? (uint32_t)strtoul(argv[3], NULL, 0) : 1);
	if (!strcmp(what, "pinned"))
		return pinned(number, argc > 3 ? (uint32_t)strtoul(argv[3], NULL, 0) : 0);
	fprintf(stderr, "app: no such thing to do: '%s'\n", what);
	return 2;
}
