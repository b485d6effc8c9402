// SPDX-License-Identifier: Apache-2.0
/* Copies between devices of two agents, and streams that wait for another one's events
 * (test_direct.py): the first word says what it does.
 *
 *	copies   every form of copy, both ways, on streams of either end; right behind each
 *	big N    one copy of N MiB and another one back, awaited once
 *	posts N  N copies and waits for events, each way, and one wait for them all
 *	events   streams that wait for each other's events, which are gated
 *	deep N   N launches behind a wait, and as many behind a copy
 *	memory N N rounds of two threads, a device each, that copy to each other and free what they copied
 *	fault    a copy from a device behind an error of its own; the other one's stream goes on
 *	go-on    copies until stdin is closed; says how many went right, and each first error */
#include <cuda.h>
#include <cuda_runtime.h>

#include <dlfcn.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
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
		int got_ = (int)(call);                                                        \
		must_at(__LINE__, #call, !got_, got_);                                         \
	} while (0)
#define RIGHT(condition) must_at(__LINE__, #condition, condition, 0)

static const uint32_t N = 1 << 18;

static void *driver(const char *name)
{
	void *found = dlsym(dlopen("libcuda.so.1", RTLD_NOW), name);

	RIGHT(found);
	return found;
}
#define STRING(name) #name
#define NAMED(name) STRING(name)
#define DRIVER(name) ((decltype(&name))driver(NAMED(name)))

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

/* What one device has for these tests. */
struct side {
	int device;
	uint32_t *data;
	cudaStream_t stream;
	cudaEvent_t event;

	explicit side(int d, size_t n = N) : device(d)
	{
		MUST(cudaSetDevice(d));
		MUST(cudaMalloc(&data, n * sizeof(*data)));
		MUST(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
		MUST(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
	}
	void use() const
	{
		MUST(cudaSetDevice(device));
	}
	void make(uint32_t value, unsigned long long ns = 0, uint32_t n = N) const
	{
		use();
		if (ns)
			linger<<<1, 1, 0, stream>>>(ns);
		fill<<<(n + 255) / 256, 256, 0, stream>>>(data, n, value);
		MUST(cudaGetLastError());
	}
	std::vector<uint32_t> read(size_t n = N) const
	{
		std::vector<uint32_t> host(n);

		use();
		MUST(cudaMemcpyAsync(host.data(), data, n * sizeof(*data),
			cudaMemcpyDeviceToHost, stream));
		MUST(cudaStreamSynchronize(stream));
		return host;
	}
	void end() const
	{
		use();
		MUST(cudaFree(data));
		MUST(cudaStreamDestroy(stream));
		MUST(cudaEventDestroy(event));
	}
};

static bool counts(const std::vector<uint32_t> &data, uint32_t value)
{
	for (uint32_t i = 0; i < data.size(); i++)
		if (data[i] != value + i)
			return false;
	return true;
}

/* From a to b: on a's stream, then on b's; what comes behind on the same stream sees it. */
static void linear(int a, int b)
{
	side from(a), to(b);
	uint32_t value = 1000;

	for (size_t bytes : {(size_t)4, (size_t)4096, N * sizeof(uint32_t)}) {
		size_t n = bytes / sizeof(uint32_t);

		from.make(++value, 20000000);
		MUST(cudaMemcpyPeerAsync(to.data, b, from.data, a, bytes, from.stream));
		/* The source is overwritten behind it. */
		from.make(7);
		MUST(cudaStreamSynchronize(from.stream));
		RIGHT(counts(to.read(n), value));
		RIGHT(counts(from.read(), 7));

		from.make(++value);
		MUST(cudaStreamSynchronize(from.stream));
		to.make(3, 20000000);
		MUST(cudaMemcpyPeerAsync(to.data, b, from.data, a, bytes, to.stream));
		RIGHT(counts(to.read(n), value));
		MUST(cudaMemcpyPeerAsync(to.data, b, from.data, a, bytes, to.stream));
		to.make(5);
		RIGHT(counts(to.read(), 5));
	}
	/* Without a stream of the program's: in order with both devices' own. */
	from.use();
	linger<<<1, 1>>>(20000000);
	fill<<<N / 256, 256>>>(from.data, N, 77);
	to.use();
	fill<<<N / 256, 256>>>(to.data, N, 78);
	MUST(cudaMemcpyPeer(to.data, b, from.data, a, N * sizeof(uint32_t)));
	std::vector<uint32_t> host(N);
	MUST(cudaMemcpy(host.data(), to.data, N * sizeof(uint32_t), cudaMemcpyDefault));
	RIGHT(counts(host, 77));
	/* Behind a copy from the host that has returned. */
	for (uint32_t i = 0; i < N; i++)
		host[i] = 500 + i;
	from.use();
	MUST(cudaMemcpy(from.data, host.data(), N * sizeof(uint32_t), cudaMemcpyDefault));
	MUST(cudaMemcpyPeerAsync(to.data, b, from.data, a, N * sizeof(uint32_t), to.stream));
	RIGHT(counts(to.read(), 500));
	/* Freed while it is on its way. */
	uint32_t *there;
	to.use();
	MUST(cudaMalloc(&there, 32 << 20));
	from.make(9, 50000000);
	MUST(cudaMemcpyPeerAsync(there, b, from.data, a, N * sizeof(uint32_t), from.stream));
	MUST(cudaFree(there));
	MUST(cudaStreamSynchronize(from.stream));
	from.end();
	to.end();
}

static void shaped(int a, int b)
{
	const size_t width = 300, height = 200, pitch = 512, depth = 5;
	std::vector<unsigned char> host(pitch * height * depth), got(host.size(), 0xee);
	cudaPitchedPtr src, dst;
	unsigned char *wide, *back;

	for (size_t i = 0; i < host.size(); i++)
		host[i] = (unsigned char)(i * 2654435761u >> 13);
	MUST(cudaSetDevice(a));
	MUST(cudaMalloc(&wide, host.size()));
	MUST(cudaMemcpy(wide, host.data(), host.size(), cudaMemcpyDefault));
	MUST(cudaSetDevice(b));
	MUST(cudaMalloc(&back, host.size()));
	MUST(cudaMemset(back, 0xee, host.size()));
	/* Two dimensions, other pitches. */
	MUST(cudaMemcpy2DAsync(back + 5, 400, wide + 3, pitch, width, height, cudaMemcpyDefault, 0));
	MUST(cudaMemcpy(got.data(), back, host.size(), cudaMemcpyDefault));
	for (size_t y = 0; y < height; y++)
		for (size_t x = 0; x < 400; x++)
			RIGHT(x < 5 || x >= 5 + width ||
			      got[y * 400 + x] == host[y * pitch + x - 5 + 3]);
	RIGHT(got[4] == 0xee && got[5 + width] == 0xee);
	/* Three, with the classic description and that of two devices. */
	src = make_cudaPitchedPtr(wide, pitch, width, height);
	dst = make_cudaPitchedPtr(back, pitch, width, height);
	cudaMemcpy3DParms three = {};
	three.srcPtr = src;
	three.dstPtr = dst;
	three.extent = make_cudaExtent(width, height - 20, depth);
	three.kind = cudaMemcpyDefault;
	MUST(cudaMemset(back, 0xee, host.size()));
	MUST(cudaMemcpy3DAsync(&three, 0));
	MUST(cudaMemcpy(got.data(), back, host.size(), cudaMemcpyDefault));
	for (size_t z = 0; z < depth; z++)
		for (size_t y = 0; y < height; y++)
			for (size_t x = 0; x < pitch; x++) {
				size_t i = (z * height + y) * pitch + x;

				RIGHT(got[i] ==
				      (x < width && y < height - 20 ? host[i] : 0xee));
			}
	cudaMemcpy3DPeerParms peers = {};
	peers.srcPtr = src;
	peers.srcDevice = a;
	peers.dstPtr = dst;
	peers.dstDevice = b;
	peers.extent = make_cudaExtent(width, height, depth);
	MUST(cudaMemset(back, 0, host.size()));
	MUST(cudaMemcpy3DPeerAsync(&peers, 0));
	MUST(cudaMemcpy(got.data(), back, host.size(), cudaMemcpyDefault));
	for (size_t z = 0; z < depth; z++)
		for (size_t y = 0; y < height; y++)
			RIGHT(!memcmp(&got[(z * height + y) * pitch],
				&host[(z * height + y) * pitch], width));
	/* Into an array, and out of it. */
	cudaArray_t array;
	cudaChannelFormatDesc format = cudaCreateChannelDesc<unsigned char>();
	MUST(cudaMallocArray(&array, &format, width, height));
	MUST(cudaMemcpy2DToArray(array, 2, 1, wide, pitch, 100, 50, cudaMemcpyDefault));
	MUST(cudaSetDevice(a));
	MUST(cudaMemset(wide, 0, host.size()));
	MUST(cudaMemcpy2DFromArray(wide, pitch, array, 2, 1, 100, 50, cudaMemcpyDefault));
	MUST(cudaMemcpy(got.data(), wide, host.size(), cudaMemcpyDefault));
	for (size_t y = 0; y < 50; y++)
		RIGHT(!memcmp(&got[y * pitch], &host[y * pitch], 100));
	MUST(cudaFree(wide));
	MUST(cudaSetDevice(b));
	MUST(cudaFreeArray(array));
	MUST(cudaFree(back));
}

/* Many small ones at once, both ways, by threads. */
static void crossing(int a, int b)
{
	std::vector<std::thread> threads;

	for (int t = 0; t < 4; t++)
		threads.emplace_back([=] {
			int x = t & 1 ? a : b, y = t & 1 ? b : a;
			side from(x), to(y);

			for (uint32_t i = 0; i < 50; i++) {
				from.make(i + 100 * t);
				MUST(cudaMemcpyPeerAsync(
					to.data, y, from.data, x, 4096, from.stream));
				MUST(cudaMemcpyPeer(to.data + 1024, y, from.data, x, 4096));
				MUST(cudaStreamSynchronize(from.stream));
			}
			MUST(cudaDeviceSynchronize());
			RIGHT(counts(to.read(1024), 49 + 100 * t));
			from.end();
			to.end();
		});
	for (auto &thread : threads)
		thread.join();
}

static int copies()
{
	int last;

	MUST(cudaGetDeviceCount(&last));
	last--;
	for (int turn = 0; turn < 2; turn++) {
		int a = turn ? last : 0, b = turn ? 0 : last;

		linear(a, b);
		say("linear from %d", a);
		shaped(a, b);
		say("shaped from %d", a);
	}
	crossing(0, last);
	say("right");
	return 0;
}

static int big(size_t mib)
{
	uint32_t n = (uint32_t)(mib << 18);
	int last;

	MUST(cudaGetDeviceCount(&last));
	last--;
	side from(0, n), to(last, n);

	from.make(42, 0, n);
	/* The connection is made by the first one. */
	MUST(cudaMemcpyPeerAsync(to.data, last, from.data, 0, 4, from.stream));
	MUST(cudaStreamSynchronize(from.stream));
	say("made");
	for (char byte; read(STDIN_FILENO, &byte, 1) < 0;)
		;
	MUST(cudaMemcpyPeerAsync(to.data, last, from.data, 0, mib << 20, from.stream));
	MUST(cudaStreamSynchronize(from.stream));
	say("copied");
	for (char byte; read(STDIN_FILENO, &byte, 1) < 0;)
		;
	RIGHT(counts(to.read(n), 42));
	say("right");
	return 0;
}

/* Opens when the host says so. */
struct gate {
	uint32_t *word;
	int device;

	explicit gate(const side &at) : device(at.device)
	{
		at.use();
		MUST(cudaMalloc(&word, sizeof(*word)));
		put(0);
		MUST(DRIVER(cuStreamWaitValue32)(
			at.stream, (CUdeviceptr)word, 1, CU_STREAM_WAIT_VALUE_GEQ));
	}
	void put(uint32_t value) const
	{
		cudaStream_t other;

		MUST(cudaSetDevice(device));
		MUST(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
		MUST(cudaMemcpyAsync(word, &value, sizeof(value), cudaMemcpyHostToDevice, other));
		MUST(cudaStreamSynchronize(other));
		MUST(cudaStreamDestroy(other));
	}
	void open() const
	{
		put(1);
	}
};

/* The thread goes on though the event cannot be done before it does. */
static void waits(int a, int b)
{
	side one(a), two(b);

	one.make(0);
	two.make(0);
	gate closed(one);
	one.make(1);
	MUST(cudaEventRecord(one.event, one.stream));
	two.use();
	MUST(cudaStreamWaitEvent(two.stream, one.event, 0));
	/* What is recorded there later is not waited for. */
	gate never(one);
	MUST(cudaEventRecord(one.event, one.stream));
	two.make(2);
	MUST(cudaEventRecord(two.event, two.stream));
	RIGHT(cudaEventQuery(two.event) == cudaErrorNotReady);
	(void)cudaGetLastError();
	closed.open();
	MUST(cudaEventSynchronize(two.event));
	RIGHT(counts(two.read(), 2));
	never.open();
	MUST(cudaStreamSynchronize(one.stream));
	one.end();
	two.end();
}

__global__ void refill(uint32_t *data, uint32_t value)
{
	data[threadIdx.x] = value + threadIdx.x;
}

/* So many launches behind a wait. */
static void behind(int a, int b, uint32_t launches)
{
	side one(a), two(b);

	two.make(0);
	/* Code that is on the device before its first launch, which is behind the wait. */
	MUST(cudaFuncSetAttribute(refill, cudaFuncAttributeMaxDynamicSharedMemorySize, 4096));
	one.make(1, 300000000);
	MUST(cudaEventRecord(one.event, one.stream));
	two.use();
	MUST(cudaStreamWaitEvent(two.stream, one.event, 0));
	refill<<<1, 256, 0, two.stream>>>(two.data, 0);
	for (uint32_t i = 1; i <= launches; i++)
		fill<<<1, 256, 0, two.stream>>>(two.data, 256, i);
	MUST(cudaMemcpyPeerAsync(one.data, a, two.data, b, 1024, two.stream));
	for (uint32_t i = 1; i <= launches; i++)
		fill<<<1, 256, 0, two.stream>>>(two.data, 256, i + 1);
	RIGHT(counts(two.read(256), launches + 1));
	RIGHT(counts(one.read(256), launches));
	one.end();
	two.end();
}

/* A context of the program's own waits, and is destroyed: others wait as before. */
static void passing(int a, int b)
{
	side one(a);
	cudaStream_t stream;
	CUcontext own;

	one.make(0);
	gate closed(one);
	one.make(1);
	MUST(cudaEventRecord(one.event, one.stream));
	MUST(DRIVER(cuCtxCreate)(&own, NULL, 0, b));
	MUST(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
	MUST(cudaStreamWaitEvent(stream, one.event, 0));
	closed.open();
	MUST(DRIVER(cuCtxSetCurrent)(own));
	MUST(cudaStreamSynchronize(stream));
	MUST(cudaStreamDestroy(stream));
	MUST(DRIVER(cuCtxDestroy)(own));
	one.end();
}

/* There and back a hundred times: each adds to what the other has. */
static void rounds(int a, int b)
{
	side one(a), two(b);

	one.make(0);
	MUST(cudaEventRecord(one.event, one.stream));
	for (uint32_t i = 1; i <= 100; i++) {
		const side &now = i & 1 ? two : one, &before = i & 1 ? one : two;

		now.use();
		MUST(cudaStreamWaitEvent(now.stream, before.event, 0));
		MUST(cudaMemcpyPeerAsync(now.data, now.device, before.data, before.device, 4096,
			now.stream));
		fill<<<4, 256, 0, now.stream>>>(now.data, 1024, i);
		MUST(cudaEventRecord(now.event, now.stream));
	}
	RIGHT(counts(one.read(1024), 100));
	MUST(cudaStreamSynchronize(two.stream));
	one.end();
	two.end();
}

static int events()
{
	int last;

	MUST(cudaGetDeviceCount(&last));
	last--;
	passing(0, last);
	waits(0, last);
	waits(last, 0);
	rounds(0, last);
	say("right");
	return 0;
}

static int deep(uint32_t launches)
{
	int last;

	MUST(cudaGetDeviceCount(&last));
	last--;
	behind(0, last, launches);
	behind(last, 0, launches);
	say("right");
	return 0;
}

/* One thread's rounds: what it has is there anew in each, and more than a limit leaves room for at
 * once, so that memory comes back from the agent while streams of both wait for each other. */
static void memory_rounds(int a, int b, uint32_t rounds, cudaEvent_t mine, cudaEvent_t theirs)
{
	const size_t bytes = 24 << 20, n = 256 << 10;
	cudaStream_t streams[4];
	cudaEvent_t ready, done;
	uint32_t *there;

	MUST(cudaSetDevice(b));
	MUST(cudaMalloc(&there, n * sizeof(*there)));
	MUST(cudaEventCreateWithFlags(&ready, cudaEventDisableTiming));
	MUST(cudaSetDevice(a));
	MUST(cudaEventCreateWithFlags(&done, cudaEventDisableTiming));
	for (auto &stream : streams)
		MUST(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
	for (uint32_t i = 0; i < rounds; i++) {
		cudaStream_t stream = streams[i % 4];
		uint32_t *here;

		MUST(cudaMalloc(&here, bytes));
		MUST(cudaStreamWaitEvent(stream, theirs, 0));
		fill<<<n / 256, 256, 0, stream>>>(here, n, i);
		MUST(cudaSetDevice(b));
		MUST(cudaEventRecord(ready, NULL));
		MUST(cudaSetDevice(a));
		MUST(cudaStreamWaitEvent(stream, ready, 0));
		MUST(cudaMemcpyAsync(there, here, n * sizeof(*here), cudaMemcpyDefault, stream));
		MUST(cudaEventRecord(done, stream));
		MUST(cudaEventRecord(mine, stream));
		MUST(cudaSetDevice(b));
		MUST(cudaStreamWaitEvent(NULL, done, 0));
		MUST(cudaSetDevice(a));
		MUST(cudaFree(here));
	}
	for (auto &stream : streams)
		MUST(cudaStreamSynchronize(stream));
}

static int memory(uint32_t rounds)
{
	cudaEvent_t events[2];
	int last;

	MUST(cudaGetDeviceCount(&last));
	last--;
	for (int i = 0; i < 2; i++) {
		MUST(cudaSetDevice(i ? last : 0));
		MUST(cudaEventCreateWithFlags(&events[i], cudaEventDisableTiming));
		MUST(cudaEventRecord(events[i], NULL));
	}
	std::thread other(memory_rounds, last, 0, rounds, events[1], events[0]);
	memory_rounds(0, last, rounds, events[0], events[1]);
	other.join();
	say("right");
	return 0;
}

__global__ void stop()
{
	asm volatile("trap;");
}

/* No end of a copy that could not be asked for keeps the other's stream. */
static int fault()
{
	cudaError_t status;
	int last;

	MUST(cudaGetDeviceCount(&last));
	last--;
	side from(0), to(last);

	from.make(1);
	to.make(2);
	MUST(cudaMemcpyPeerAsync(to.data, last, from.data, 0, 4096, from.stream));
	MUST(cudaStreamSynchronize(from.stream));
	from.use();
	stop<<<1, 1, 0, from.stream>>>();
	RIGHT(cudaStreamSynchronize(from.stream) == cudaErrorLaunchFailure);
	(void)cudaGetLastError();
	to.use();
	/* It fails at the call, or at the next one that waits, and then no more. */
	status = cudaMemcpyPeerAsync(to.data, last, from.data, 0, 4096, to.stream);
	if (!status)
		status = cudaStreamSynchronize(to.stream);
	(void)cudaGetLastError();
	RIGHT(status != cudaSuccess);
	(void)cudaStreamSynchronize(to.stream);
	(void)cudaGetLastError();
	to.make(3);
	MUST(cudaStreamSynchronize(to.stream));
	RIGHT(counts(to.read(), 3));
	say("right");
	return 0;
}

static int posts(uint32_t turns)
{
	int last;

	MUST(cudaGetDeviceCount(&last));
	last--;
	side one(0), two(last);

	one.make(3);
	two.make(4);
	MUST(cudaEventRecord(one.event, one.stream));
	for (uint32_t i = 0; i < turns + 1; i++) { /* the first one joins the agents */
		two.use();
		MUST(cudaStreamWaitEvent(two.stream, one.event, 0));
		MUST(cudaMemcpyPeerAsync(
			two.data, last, one.data, 0, N * sizeof(uint32_t), two.stream));
		MUST(cudaEventRecord(two.event, two.stream));
		one.use();
		MUST(cudaStreamWaitEvent(one.stream, two.event, 0));
		MUST(cudaMemcpyPeerAsync(
			one.data, 0, two.data, last, N * sizeof(uint32_t), one.stream));
		MUST(cudaEventRecord(one.event, one.stream));
	}
	RIGHT(counts(one.read(), 3));
	say("right");
	return 0;
}

/* Each turn is a copy there, a kernel on its own device here; an error is the copy's alone. */
static int go_on()
{
	std::vector<uint32_t> host(N);
	uint32_t good = 0, bad = 0;
	int last;

	MUST(cudaGetDeviceCount(&last));
	last--;
	side from(0), to(last);

	say("running");
	for (uint32_t turn = 0; !turns_over(); turn++) {
		cudaError_t status;

		from.make(turn);
		status = cudaMemcpyPeerAsync(
			to.data, last, from.data, 0, N * sizeof(uint32_t), from.stream);
		if (!status)
			status = cudaStreamSynchronize(from.stream);
		(void)cudaGetLastError();
		if (status && !bad++)
			say("error %d", (int)status);
		if (!status && !good++)
			say("copied");
		if (status && bad > 200)
			usleep(1000);
		RIGHT(counts(from.read(), turn));
		/* Its agent may end at any time. */
		if (!status && !bad && cudaSetDevice(last) == cudaSuccess &&
			cudaMemcpy(host.data(), to.data, N * sizeof(uint32_t),
				cudaMemcpyDefault) == cudaSuccess)
			RIGHT(counts(host, turn));
		(void)cudaGetLastError();
	}
	say("%u right, %u wrong", good, bad);
	return 0;
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "copies";

	if (!strcmp(what, "big"))
		return big(strtoul(argv[2], NULL, 10));
	if (!strcmp(what, "deep"))
		return deep((uint32_t)strtoul(argv[2], NULL, 10));
	if (!strcmp(what, "posts"))
		return posts((uint32_t)strtoul(argv[2], NULL, 10));
	if (!strcmp(what, "memory"))
		return memory((uint32_t)strtoul(argv[2], NULL, 10));
	if (!strcmp(what, "fault"))
		return fault();
	return !strcmp(what, "copies") ? copies() : !strcmp(what, "events") ? events() : go_on();
}
