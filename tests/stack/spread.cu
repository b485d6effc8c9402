// SPDX-License-Identifier: Apache-2.0
/* One process on the GPUs of several agents (test_agents.py): the first word says what it does.
 *
 *	all      on each device, from one thread and from one each: memory, copies, kernels, events
 *	between  streams, events and copies of two devices, and what is refused between agents
 *	go-on    says "running", works on each device until stdin is closed, and says of each when it
 *	         fails and with which error; the others' sums must stay right */
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
#define GIVES(wanted, call)                                                                    \
	do {                                                                                   \
		int got_ = (int)(call);                                                        \
		must_at(__LINE__, #call, got_ == (int)(wanted), got_);                         \
	} while (0)
#define RIGHT(condition) must_at(__LINE__, #condition, condition, 0)

static const uint32_t N = 1 << 18;

/* The driver's function of that name. */
static void *driver(const char *name)
{
	void *found = dlsym(dlopen("libcuda.so.1", RTLD_NOW), name);

	RIGHT(found);
	return found;
}
#define STRING(name) #name
#define NAMED(name) STRING(name)
/* cuda.h defines the name as that of its version. */
#define DRIVER(name) ((decltype(&name))driver(NAMED(name)))

__device__ uint32_t seed;

__global__ void fill(uint32_t *data, uint32_t n, uint32_t value)
{
	uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < n)
		data[i] = value + i + seed;
}

__global__ void linger(unsigned long long ns)
{
	unsigned long long begin, time;

	asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(begin));
	do
		asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(time));
	while (time - begin < ns);
}

static int devices()
{
	int count = 0;

	MUST(cudaGetDeviceCount(&count));
	return count;
}

static bool is(const std::vector<uint32_t> &data, uint32_t value)
{
	for (uint32_t i = 0; i < data.size(); i++)
		if (data[i] != value + i)
			return false;
	return true;
}

static void work(int device, int turns)
{
	std::vector<uint32_t> host(N);
	uint32_t *data, own = 1000 * device, *pinned;
	cudaStream_t stream;
	cudaEvent_t begin, end;
	float ms = -1;

	MUST(cudaSetDevice(device));
	MUST(cudaMalloc(&data, N * sizeof(*data)));
	MUST(cudaMallocHost(&pinned, N * sizeof(*pinned)));
	MUST(cudaStreamCreate(&stream));
	MUST(cudaEventCreate(&begin));
	MUST(cudaEventCreate(&end));
	/* The variable lies at whatever address each device's agent has put it. */
	MUST(cudaMemcpyToSymbol(seed, &own, sizeof(own)));
	for (int turn = 0; turn < turns; turn++) {
		MUST(cudaEventRecord(begin, stream));
		fill<<<N / 256, 256, 0, stream>>>(data, N, turn);
		MUST(cudaGetLastError());
		MUST(cudaEventRecord(end, stream));
		MUST(cudaMemcpyAsync(
			host.data(), data, N * sizeof(*data), cudaMemcpyDeviceToHost, stream));
		MUST(cudaMemcpyAsync(
			pinned, data, N * sizeof(*data), cudaMemcpyDeviceToHost, stream));
		MUST(cudaStreamSynchronize(stream));
		MUST(cudaEventElapsedTime(&ms, begin, end));
		RIGHT(ms >= 0);
		RIGHT(is(host, turn + own));
		RIGHT(!memcmp(pinned, host.data(), N * sizeof(*pinned)));
	}
	MUST(cudaEventDestroy(begin));
	MUST(cudaEventDestroy(end));
	MUST(cudaStreamDestroy(stream));
	MUST(cudaFreeHost(pinned));
	MUST(cudaFree(data));
}

static int all()
{
	std::vector<std::thread> threads;
	std::vector<void *> held;
	int count = devices();

	/* No two devices have an address in common. */
	for (int i = 0; i < count; i++) {
		cudaPointerAttributes about;
		void *at;

		MUST(cudaSetDevice(i));
		MUST(cudaMalloc(&at, 64 << 20));
		for (void *other : held)
			RIGHT((char *)at + (64 << 20) <= other || (char *)other + (64 << 20) <= at);
		MUST(cudaPointerGetAttributes(&about, at));
		RIGHT(about.type == cudaMemoryTypeDevice && about.device == i);
		held.push_back(at);
	}
	for (int i = 0; i < count; i++)
		work(i, 3);
	for (int i = 0; i < count; i++)
		threads.emplace_back(work, i, 20);
	for (auto &thread : threads)
		thread.join();
	/* Whichever is current. */
	for (void *at : held)
		MUST(cudaFree(at));
	say("right on %d", count);
	return 0;
}

static void events_and_streams(int a, int b)
{
	cudaStream_t sa, sb;
	cudaEvent_t done, other;
	uint32_t *data, *there;
	std::vector<uint32_t> host(N);
	float ms;

	MUST(cudaSetDevice(a));
	MUST(cudaStreamCreate(&sa));
	MUST(cudaEventCreate(&done));
	MUST(cudaMalloc(&data, N * sizeof(*data)));
	MUST(cudaSetDevice(b));
	MUST(cudaStreamCreate(&sb));
	MUST(cudaEventCreate(&other));
	MUST(cudaMalloc(&there, N * sizeof(*there)));
	/* b's stream reads what a's has written, behind a's event: a's kernel lasts. */
	MUST(cudaSetDevice(a));
	linger<<<1, 1, 0, sa>>>(50000000ull);
	fill<<<N / 256, 256, 0, sa>>>(data, N, 7);
	MUST(cudaEventRecord(done, sa));
	MUST(cudaSetDevice(b));
	MUST(cudaStreamWaitEvent(sb, done, 0));
	MUST(cudaMemcpyPeerAsync(there, b, data, a, N * sizeof(*data), sb));
	MUST(cudaMemcpyAsync(host.data(), there, N * sizeof(*there), cudaMemcpyDeviceToHost, sb));
	MUST(cudaStreamSynchronize(sb));
	RIGHT(is(host, 7 + 1000 * a));
	/* Asked from the other device. */
	MUST(cudaEventQuery(done));
	MUST(cudaEventSynchronize(done));
	MUST(cudaStreamQuery(sa));
	MUST(cudaStreamSynchronize(sa));
	/* An event is its own device's, and a kernel its stream's. */
	GIVES(cudaErrorInvalidResourceHandle, cudaEventRecord(done, sb));
	MUST(cudaEventRecord(other, sb));
	MUST(cudaEventSynchronize(other));
	GIVES(cudaErrorInvalidResourceHandle, cudaEventElapsedTime(&ms, done, other));
	/* Copies and frees of the one while the other is current; a fill is its own device's. */
	MUST(cudaSetDevice(b));
	GIVES(cudaErrorInvalidValue, cudaMemset(data, 0x22, N * sizeof(*data)));
	MUST(cudaSetDevice(a));
	MUST(cudaMemset(data, 0x11, N * sizeof(*data)));
	MUST(cudaSetDevice(b));
	MUST(cudaMemcpy(host.data(), data, N * sizeof(*data), cudaMemcpyDeviceToHost));
	RIGHT(host[0] == 0x11111111 && host[N - 1] == 0x11111111);
	MUST(cudaMemcpy2D(there, 1024, data, 1024, 512, 100, cudaMemcpyDefault));
	MUST(cudaMemcpy(host.data(), there, N * sizeof(*there), cudaMemcpyDefault));
	RIGHT(host[127] == 0x11111111 && host[128] == 7 + 128u + 1000 * a);
	MUST(cudaFree(data));
	MUST(cudaFree(there));
	MUST(cudaEventDestroy(done));
	MUST(cudaStreamDestroy(sa));
	MUST(cudaSetDevice(a));
	MUST(cudaEventDestroy(other));
	MUST(cudaStreamDestroy(sb));
}

static void ends_invalid(cudaStream_t stream)
{
	cudaGraph_t graph;
	cudaStreamCaptureStatus status;

	MUST(cudaStreamIsCapturing(stream, &status));
	RIGHT(status == cudaStreamCaptureStatusInvalidated);
	GIVES(cudaErrorStreamCaptureInvalidated, cudaStreamEndCapture(stream, &graph));
	(void)cudaGetLastError();
}

/* A graph is one agent's: a capture does not take in another one's event, which ends it. */
static void captures(int a, int b)
{
	cudaStream_t sa, sb;
	cudaEvent_t mark;
	cudaGraph_t graph = NULL;

	MUST(cudaSetDevice(b));
	MUST(cudaStreamCreate(&sb));
	MUST(cudaSetDevice(a));
	MUST(cudaStreamCreate(&sa));
	MUST(cudaEventCreate(&mark));
	MUST(cudaStreamBeginCapture(sa, cudaStreamCaptureModeRelaxed));
	linger<<<1, 1, 0, sa>>>(0);
	MUST(cudaEventRecord(mark, sa));
	GIVES(cudaErrorStreamCaptureUnsupported, cudaStreamWaitEvent(sb, mark, 0));
	ends_invalid(sa);
	MUST(cudaEventRecord(mark, sa));
	MUST(cudaSetDevice(b));
	MUST(cudaStreamBeginCapture(sb, cudaStreamCaptureModeRelaxed));
	GIVES(cudaErrorStreamCaptureUnsupported, cudaStreamWaitEvent(sb, mark, 0));
	ends_invalid(sb);
	MUST(cudaSetDevice(a));
	/* One that stays on its device is served, and destroyed from the other. */
	MUST(cudaStreamBeginCapture(sa, cudaStreamCaptureModeRelaxed));
	linger<<<1, 1, 0, sa>>>(0);
	MUST(cudaStreamEndCapture(sa, &graph));
	cudaGraphExec_t exec;
	MUST(cudaGraphInstantiate(&exec, graph, 0));
	MUST(cudaSetDevice(b));
	MUST(cudaGraphLaunch(exec, sa));
	GIVES(cudaErrorInvalidResourceHandle, cudaGraphLaunch(exec, sb));
	MUST(cudaStreamSynchronize(sa));
	MUST(cudaGraphExecDestroy(exec));
	MUST(cudaGraphDestroy(graph));
	MUST(cudaEventDestroy(mark));
	MUST(cudaStreamDestroy(sa));
	MUST(cudaStreamDestroy(sb));
}

/* A library's kernel is every device's, whichever was current when it was looked up. */
static void kernels(int a, int b)
{
	std::vector<uint32_t> host(N);
	cudaKernel_t kernel;
	uint32_t *data, n = N, value = 3;
	void *arguments[] = {&data, &n, &value};
	auto launch = DRIVER(cuLaunchKernel);

	MUST(cudaSetDevice(a));
	MUST(cudaGetKernel(&kernel, (const void *)fill));
	MUST(cudaSetDevice(b));
	MUST(cudaMalloc(&data, N * sizeof(*data)));
	MUST(launch((CUfunction)kernel, N / 256, 1, 1, 256, 1, 1, 0, NULL, arguments, NULL));
	MUST(cudaMemcpy(host.data(), data, N * sizeof(*data), cudaMemcpyDeviceToHost));
	RIGHT(is(host, 3 + 1000 * b));
	MUST(cudaFree(data));
}

/* An event that waits until its gate opens. */
struct gated {
	cudaStream_t stream;
	cudaEvent_t event;
	uint32_t *gate;

	gated()
	{
		MUST(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
		MUST(cudaEventCreate(&event));
		MUST(cudaMalloc(&gate, sizeof(*gate)));
		MUST(cudaMemsetAsync(gate, 0, sizeof(*gate), stream));
		MUST(cudaStreamSynchronize(stream));
		MUST(DRIVER(cuStreamWaitValue32)(
			stream, (CUdeviceptr)gate, 1, CU_STREAM_WAIT_VALUE_GEQ));
		MUST(cudaEventRecord(event, stream));
		GIVES(cudaErrorNotReady, cudaEventQuery(event));
	}
	void open()
	{
		uint32_t one = 1;
		cudaStream_t other;

		MUST(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
		MUST(cudaMemcpyAsync(gate, &one, sizeof(one), cudaMemcpyHostToDevice, other));
		while (cudaEventQuery(event) == cudaErrorNotReady)
			usleep(1000);
		MUST(cudaEventQuery(event));
		MUST(cudaStreamDestroy(other));
	}
};

/* A context of b's that goes while a is current leaves what a's events wait for alone. */
static void contexts(int a, int b)
{
	CUcontext context;

	MUST(cudaSetDevice(a));
	gated lasting;
	MUST(DRIVER(cuCtxCreate)(&context, NULL, 0, b));
	gated gone;
	gone.open();
	MUST(cudaSetDevice(a));
	MUST(DRIVER(cuCtxDestroy)(context));
	gated next;
	next.open();
	GIVES(cudaErrorNotReady, cudaEventQuery(lasting.event));
	lasting.open();
	for (gated *one : {&lasting, &next}) {
		MUST(cudaEventDestroy(one->event));
		MUST(cudaStreamDestroy(one->stream));
		MUST(cudaFree(one->gate));
	}
}

static void refused(int a, int b)
{
	void *managed;
	int can = -1, value = -1;
	uint32_t *pinned, *inside;
	cudaChannelFormatDesc format = cudaCreateChannelDesc<float>();
	size_t width = 0;

	MUST(cudaDeviceCanAccessPeer(&can, a, b));
	RIGHT(!can);
	MUST(cudaDeviceGetAttribute(&value, cudaDevAttrManagedMemory, b));
	RIGHT(!value);
	MUST(cudaDeviceGetAttribute(&value, cudaDevAttrCanMapHostMemory, a));
	RIGHT(!value);
	/* Of the device that is asked about, not of the current one's agent. */
	MUST(cudaSetDevice(a));
	MUST(cudaDeviceGetTexture1DLinearMaxWidth(&width, &format, b));
	RIGHT(width);
	GIVES(cudaErrorNotSupported, cudaMallocManaged(&managed, 4096));
	(void)cudaGetLastError();
	/* A kernel that is given host memory, which is refused at the call: the device goes on. */
	MUST(cudaSetDevice(a));
	MUST(cudaMallocHost(&pinned, 4096));
	inside = pinned + 7;
	for (int device : {a, b}) {
		MUST(cudaSetDevice(device));
		fill<<<1, 1>>>(inside, 1, 0);
		GIVES(cudaErrorNotSupported, cudaGetLastError());
		MUST(cudaDeviceSynchronize());
	}
	MUST(cudaFreeHost(pinned));
}

static int between()
{
	int last = devices() - 1;

	work(0, 1);
	work(last, 1);
	events_and_streams(0, last);
	events_and_streams(last, 0);
	captures(0, last);
	captures(last, 0);
	kernels(0, last);
	kernels(last, 0);
	contexts(0, last);
	contexts(last, 0);
	refused(0, last);
	say("right between 0 and %d", last);
	return 0;
}

static int go_on()
{
	int count = devices();
	std::vector<uint32_t *> data(count);
	std::vector<bool> lost(count);
	std::vector<uint32_t> host(N);
	uint32_t turn = 0;

	for (int i = 0; i < count; i++) {
		MUST(cudaSetDevice(i));
		MUST(cudaMalloc(&data[i], N * sizeof(uint32_t)));
	}
	say("running on %d", count);
	for (; !turns_over(); turn++)
		for (int i = 0; i < count; i++) {
			cudaError_t status = cudaSetDevice(i);

			if (!status)
				fill<<<N / 256, 256>>>(data[i], N, turn);
			if (!status)
				status = cudaMemcpy(host.data(), data[i], N * sizeof(uint32_t),
					cudaMemcpyDeviceToHost);
			/* What is lost stays so. */
			RIGHT(!lost[i] || status);
			if (status && !lost[i])
				say("device %d lost: error %d", i, (int)status);
			lost[i] = status;
			(void)cudaGetLastError();
			RIGHT(status || is(host, turn));
		}
	for (int i = 0; i < count; i++)
		say("device %d %s", i, lost[i] ? "lost" : "right");
	return 0;
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "all";

	return !strcmp(what, "all") ? all() : !strcmp(what, "between") ? between() : go_on();
}
