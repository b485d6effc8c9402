// SPDX-License-Identifier: Apache-2.0
/* The program that faults are injected into: it stays in one state (its first word) until its
 * standard input ends, and knows to the bit what must have come out.
 *
 * Every step is a launch that is not idempotent and does not commute: it counts, and folds its
 * number into a chain.  A step that was executed twice, left out or moved shows in both.  Where
 * a call fails, the program says which error and up to which step the device was known to be
 * done, looks whether every call gives that error from now on, and ends.
 */
#include <cuda_runtime.h>

#include <atomic>
#include <dlfcn.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <string>
#include <unistd.h>
#include <vector>

#include "include/vcuda/tensor.h"
#include "tests/say.h"

#define TAG 0x5eed0fa117ull /* tests/faults/counting_driver.c looks for it */
#define HOSTILE 0xbad0fa117ull
#define FACTOR 6364136223846793005ull
#define MIB (1u << 20)
#define BULK (8 * MIB)

struct words {
	unsigned long long chain, count;
};

/* What the device must hold, and how much of it is known to be done. */
static struct words want;
static uint32_t steps, confirmed;
static struct words *device;
static void *there; /* memory of the last device: another agent's */
static int last_device;
static std::atomic<uint32_t> called;

__attribute__((noreturn)) static void failed(const char *what, cudaError_t error)
{
	void *block;
	int value, bad = 0;

	say("error %d confirmed %u given %u in %s", error, confirmed, steps, what);
	if (device && error == 911 && !there) { /* of two agents one may be as it was */
		bad += cudaMalloc(&block, 4096) != error;
		bad += cudaMemcpy(&value, device, 4, cudaMemcpyDeviceToHost) != error;
		bad += cudaDeviceSynchronize() != error;
		bad += cudaFree(device) != error;
		say("afterwards %d wrong", bad);
	}
	_exit(1);
}

#define MUST(call)                                                                             \
	do {                                                                                   \
		cudaError_t error_ = (call);                                                   \
		if (error_)                                                                    \
			failed(#call, error_);                                                 \
	} while (0)

__global__ void step(unsigned long long tag, struct words *words, uint32_t pid, uint32_t number)
{
	words->count += tag == TAG;
	words->chain = words->chain * FACTOR + number + (pid & 0);
}

__global__ void linger(unsigned long long ns)
{
	unsigned long long begin, time;

	asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(begin));
	do
		asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(time));
	while (time - begin < ns);
}

static bool stdin_closed(int wait_ms)
{
	struct pollfd in = {STDIN_FILENO, POLLIN, 0};
	char byte;

	return poll(&in, 1, wait_ms) > 0 && read(STDIN_FILENO, &byte, 1) <= 0;
}

static void expect(uint32_t number)
{
	want.count++;
	want.chain = want.chain * FACTOR + number;
}

static void one_step(cudaStream_t stream)
{
	uint32_t number = ++steps;

	step<<<1, 1, 0, stream>>>(TAG, device, (uint32_t)getpid(), number);
	MUST(cudaGetLastError());
	expect(number);
}

static void confirm(void)
{
	MUST(cudaDeviceSynchronize());
	confirmed = steps;
}

static void launch_round(void)
{
	for (int i = 0; i < 256; i++)
		one_step(0);
	if (steps % 4096 == 0)
		confirm();
}

/* Leaves the processors to others: there may be hundreds of it. */
static void idle_round(void)
{
	struct pollfd in = {STDIN_FILENO, POLLIN, 0};

	poll(&in, 1, 1000);
}

/* Slow enough to leave the processors to others. */
static void pace_round(void)
{
	one_step(0);
	confirm();
	poll(NULL, 0, 10);
}

static void fill(std::vector<uint32_t> &words, uint32_t seed)
{
	for (size_t i = 0; i < words.size(); i++)
		words[i] = (uint32_t)i * 2654435761u ^ seed;
}

static void compare(const std::vector<uint32_t> &words, uint32_t seed, const char *what)
{
	for (size_t i = 0; i < words.size(); i++)
		if (words[i] != ((uint32_t)i * 2654435761u ^ seed)) {
			say("wrong: %s, word %zu is %u", what, i, words[i]);
			_exit(4);
		}
}

static std::vector<uint32_t> host;
static void *bulk[2];

static void bulk_setup(void)
{
	host.resize(BULK / 4);
	for (void *&each : bulk)
		MUST(cudaMalloc(&each, BULK));
	fill(host, 1);
	MUST(cudaMemcpy(bulk[0], host.data(), BULK, cudaMemcpyHostToDevice));
}

static void upload_round(void)
{
	for (uint32_t i = 0; i < 8; i++) {
		fill(host, steps);
		MUST(cudaMemcpy(bulk[i % 2], host.data(), BULK, cudaMemcpyHostToDevice));
		one_step(0);
	}
	memset(host.data(), 0, BULK);
	MUST(cudaMemcpy(host.data(), bulk[1], BULK, cudaMemcpyDeviceToHost));
	confirmed = steps;
	compare(host, steps - 1, "what went to the device");
}

static void download_round(void)
{
	memset(host.data(), 0, BULK);
	one_step(0);
	MUST(cudaMemcpy(host.data(), bulk[0], BULK, cudaMemcpyDeviceToHost));
	confirmed = steps;
	compare(host, 1, "what came from the device");
}

static void devices_setup(void)
{
	int count;

	MUST(cudaGetDeviceCount(&count));
	last_device = count - 1;
	MUST(cudaSetDevice(last_device));
	MUST(cudaMalloc(&there, MIB));
	MUST(cudaSetDevice(0));
}

static void between_setup(void)
{
	host.resize(MIB / 4);
	MUST(cudaMalloc(&bulk[0], MIB));
	devices_setup();
}

/* There, and back to where nothing is left of it. */
static void between_round(void)
{
	fill(host, steps);
	MUST(cudaMemcpy(bulk[0], host.data(), MIB, cudaMemcpyHostToDevice));
	MUST(cudaMemcpyPeerAsync(there, last_device, bulk[0], 0, MIB, 0));
	MUST(cudaMemsetAsync(bulk[0], 0, MIB, 0));
	MUST(cudaMemcpyPeerAsync(bulk[0], 0, there, last_device, MIB, 0));
	MUST(cudaMemcpy(host.data(), bulk[0], MIB, cudaMemcpyDeviceToHost));
	confirmed = steps;
	compare(host, steps, "what was at the other agent");
	one_step(0);
}

static void wait_round(void)
{
	one_step(0);
	linger<<<1, 1>>>(150000000ull);
	MUST(cudaGetLastError());
	one_step(0);
	confirm();
}

static void capture_round(void)
{
	cudaGraphExec_t ready;
	cudaStream_t stream;
	cudaGraph_t graph;
	uint32_t first = steps + 1;

	MUST(cudaStreamCreate(&stream));
	MUST(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
	for (int i = 0; i < 20; i++) {
		step<<<1, 1, 0, stream>>>(TAG, device, 0, first + (uint32_t)i);
		MUST(cudaGetLastError());
		poll(NULL, 0, 1);
	}
	MUST(cudaStreamEndCapture(stream, &graph));
	MUST(cudaGraphInstantiate(&ready, graph, 0));
	for (int times = 0; times < 2; times++) {
		MUST(cudaGraphLaunch(ready, stream));
		for (uint32_t i = 0; i < 20; i++)
			expect(first + i);
	}
	MUST(cudaStreamSynchronize(stream));
	confirmed = steps += 20;
	MUST(cudaGraphExecDestroy(ready));
	MUST(cudaGraphDestroy(graph));
	MUST(cudaStreamDestroy(stream));
}

/* A module that no cache has: its numbers are this process's and this round's. */
static std::string module_text(uint32_t number)
{
	std::string text = ".version 8.0\n.target sm_80\n.address_size 64\n";
	char line[128];

	for (int i = 0; i < 200; i++) {
		snprintf(line, sizeof(line), ".visible .global .align 4 .u32 pad_%d_%u = %u;\n",
			i, (unsigned)getpid(), number + (unsigned)i);
		text += line;
	}
	text += ".visible .entry fold(.param .u64 at, .param .u64 factor)\n{\n"
		".reg .u64 %r<8>;\nld.param.u64 %r0, [at];\nld.param.u64 %r1, [factor];\n"
		"ld.global.u64 %r2, [%r0];\nmul.lo.u64 %r2, %r2, %r1;\n";
	snprintf(line, sizeof(line), "add.u64 %%r2, %%r2, %u;\n", number);
	text += line;
	text += "st.global.u64 [%r0], %r2;\nld.global.u64 %r3, [%r0+8];\n"
		"add.u64 %r3, %r3, 1;\nst.global.u64 [%r0+8], %r3;\nret;\n}\n";
	return text;
}

static void module_round(void)
{
	unsigned long long factor = FACTOR;
	std::string text = module_text(++steps);
	void *args[] = {&device, &factor};
	cudaLibrary_t library;
	cudaKernel_t kernel;

	MUST(cudaLibraryLoadData(&library, text.c_str(), NULL, NULL, 0, NULL, NULL, 0));
	MUST(cudaLibraryGetKernel(&kernel, library, "fold"));
	MUST(cudaLaunchKernel((const void *)kernel, dim3(1), dim3(1), args, 0, 0));
	expect(steps);
	MUST(cudaDeviceSynchronize());
	MUST(cudaLibraryUnload(library));
}

static void CUDART_CB host_function(void *)
{
	called++;
}

static void callback_round(void)
{
	uint32_t before = called;

	for (int i = 0; i < 8; i++) {
		one_step(0);
		MUST(cudaLaunchHostFunc(0, host_function, NULL));
	}
	confirm();
	if (called != before + 8) {
		say("wrong: %u host functions ran, not 8", called - before);
		_exit(4);
	}
}

static void pin_round(void)
{
	void *pinned;

	MUST(cudaHostAlloc(&pinned, MIB, 0));
	memset(pinned, 5, MIB);
	MUST(cudaFreeHost(pinned));
	one_step(0);
}

/* They are in what is preloaded. */
#define TENSOR(name)                                                                           \
	((decltype(&vcuda_tensor_##name))dlsym(RTLD_DEFAULT, "vcuda_tensor_" #name))

/* A tensor with a name: made at a device, filled, sealed, had at a device by its name, and gone
 * again. -1: the device that is current. */
static void tensor_between(int made_at, int had_at)
{
	static const auto create = TENSOR(create);
	static const auto get = TENSOR(get);
	static const auto seal = TENSOR(seal);
	static const auto close = TENSOR(close);
	static const auto forget = TENSOR(delete);
	const std::string name = "app-" + std::to_string(getpid()) + "-" + std::to_string(steps);
	const char *names[] = {name.c_str()};
	struct vcuda_tensor made, had;
	const int64_t shape[] = {4096};
	unsigned char got = 0;

	if (made_at > 0)
		MUST(cudaSetDevice(made_at));
	MUST((cudaError_t)create(names[0], VCUDA_U8, 1, shape, made_at, 0, &made));
	MUST(cudaMemset((void *)made.data, 7, 4096));
	MUST((cudaError_t)seal(&made, NULL));
	if (made_at > 0)
		MUST(cudaSetDevice(0));
	MUST((cudaError_t)get(names, 1, had_at, 0, &had));
	MUST(cudaMemcpy(&got, (char *)had.data + 4095, 1, cudaMemcpyDeviceToHost));
	if (got != 7) {
		say("wrong: %u in the tensor, not 7", got);
		_exit(4);
	}
	MUST((cudaError_t)forget(names[0], made_at));
	MUST((cudaError_t)close(&had));
	MUST((cudaError_t)close(&made));
	one_step(0);
}

static void tensor_round(void)
{
	tensor_between(-1, -1);
}

/* The first device's agent copies what another agent has. */
static void replica_round(void)
{
	tensor_between(last_device, 0);
}

/* Another agent copies what the first device's has. */
static void copied_round(void)
{
	tensor_between(0, last_device);
}

/* Its worker does what hostile_worker.c has under that number, and is asked for more. */
static void hostile(uint32_t which)
{
	step<<<1, 1>>>(HOSTILE, device, 0, which);
	MUST(cudaGetLastError());
	want.chain = want.chain * FACTOR + which;
	for (int i = 0; i < 5; i++)
		pace_round();
}

static void verify(void)
{
	struct words got;

	MUST(cudaMemcpy(&got, device, sizeof(got), cudaMemcpyDeviceToHost));
	if (got.count != want.count || got.chain != want.chain) {
		say("wrong: %llu steps, not %llu, or another order: %llx %llx", got.count,
			want.count, got.chain, want.chain);
		_exit(4);
	}
	confirmed = steps;
}

static const struct {
	const char *name;
	void (*round)(void);
} states[] = {
	{"attach", launch_round},
	{"idle", idle_round},
	{"pace", pace_round},
	{"launch", launch_round},
	{"upload", upload_round},
	{"download", download_round},
	{"wait", wait_round},
	{"capture", capture_round},
	{"module", module_round},
	{"callback", callback_round},
	{"pin", pin_round},
	{"tensor", tensor_round},
	{"between", between_round},
	{"replica", replica_round},
	{"copied", copied_round},
	{"ending", launch_round},
	{"hostile", pace_round},
};

/* STATE, and how many steps there are to be at least; hostile WHICH. */
int main(int argc, char **argv)
{
	uint32_t least = argc > 2 ? (uint32_t)strtoul(argv[2], NULL, 0) : 0;
	void (*round)(void) = NULL;

	for (const auto &state : states)
		if (argc > 1 && !strcmp(argv[1], state.name))
			round = state.round;
	if (!round) {
		fprintf(stderr, "app: no such state: '%s'\n", argc > 1 ? argv[1] : "");
		return 2;
	}
	say("begins");
	MUST(cudaMalloc(&device, sizeof(*device)));
	MUST(cudaMemset(device, 0, sizeof(*device)));
	if (round == upload_round || round == download_round)
		bulk_setup();
	else if (round == between_round)
		between_setup();
	else if (round == replica_round || round == copied_round)
		devices_setup();
	one_step(0);
	confirm();
	say("in %s", argv[1]);
	if (!strcmp(argv[1], "hostile")) {
		hostile(least);
		least = 0;
	}
	while (steps < least || !stdin_closed(0))
		round();
	verify();
	say("right after %u", steps);
	if (!strcmp(argv[1], "ending"))
		poll(NULL, 0, 20); /* what is injected comes while it ends */
	MUST(cudaFree(device));
	return 0;
}
