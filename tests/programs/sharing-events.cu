// SPDX-License-Identifier: Apache-2.0
/* Events between processes: what one side records, before it gives the event away or after, the
 * other sees unfinished, waits for and has its streams wait for, in either direction; nobody's
 * recording waits for its stream.  Kernels end when their process says so, by a flag. */
#include "check.h"
#include "driver.h"

#include <signal.h>
#include <time.h>

#include <vector>

enum { ROUNDS = 100, MANY = 1100 };

struct gift {
	cudaIpcMemHandle_t data;
	cudaIpcEventHandle_t event;
};

/* Of the other process. */
static int in, out;

static void say(char word)
{
	CHECK(write(out, &word, 1) == 1);
}

static void hear(char word)
{
	char got;

	CHECK(read(in, &got, 1) == 1);
	CHECK_EQ(got, word);
}

template <typename T> static void give(const T &value)
{
	CHECK(write(out, &value, sizeof(value)) == (ssize_t)sizeof(value));
}

template <typename T> static T take()
{
	T value;
	char *at = (char *)&value;

	for (size_t n = 0; n < sizeof(value);) {
		ssize_t got = read(in, at + n, sizeof(value) - n);

		CHECK(got > 0);
		n += got;
	}
	return value;
}

__global__ void await_flag(volatile int *flag, int turn, int *data, int value)
{
	while (*flag < turn)
		;
	*data = value;
}

__global__ void step(int *data, int by, int more)
{
	*data = *data * by + more;
}

static volatile int *flag;
static int *flag_there, *own, turns;
static cudaStream_t stream, other;

/* Kernels that are launched first while a stream waits wait themselves, natively too. */
static void warm()
{
	CUDA(cudaHostAlloc((void **)&flag, sizeof(int), cudaHostAllocMapped));
	*flag = 0;
	CUDA(cudaHostGetDevicePointer((void **)&flag_there, (void *)flag, 0));
	CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
	CUDA(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
	CUDA(cudaMalloc(&own, sizeof(int)));
	await_flag<<<1, 1, 0, stream>>>(flag_there, 0, own, 0);
	step<<<1, 1, 0, stream>>>(own, 1, 1);
	CUDA(cudaStreamSynchronize(stream));
}

/* A kernel that writes VALUE when this process lets it go. */
static void launch(int *data, int value)
{
	await_flag<<<1, 1, 0, stream>>>(flag_there, ++turns, data, value);
	LAUNCHED();
}

static void let_go()
{
	*flag = turns;
}

static int read_back(const int *data, cudaStream_t on)
{
	int value;

	CUDA(cudaMemcpyAsync(&value, data, sizeof(value), cudaMemcpyDeviceToHost, on));
	CUDA(cudaStreamSynchronize(on));
	return value;
}

static cudaEvent_t event_new()
{
	cudaEvent_t event;

	CUDA(cudaEventCreateWithFlags(&event, cudaEventDisableTiming | cudaEventInterprocess));
	return event;
}

static cudaIpcEventHandle_t handle_of(cudaEvent_t event)
{
	cudaIpcEventHandle_t handle;

	CUDA(cudaIpcGetEventHandle(&handle, event));
	return handle;
}

static cudaEvent_t open(const cudaIpcEventHandle_t &handle)
{
	cudaEvent_t event;

	CUDA(cudaIpcOpenEventHandle(&event, handle));
	return event;
}

/* ---- both sides of each, in one order ---- */

/* Recorded before it was given away, and not done. */
static void before_parent(cudaEvent_t event, int *data)
{
	struct gift gift;

	/* The first time memory comes to lie elsewhere, behind all work (docs/SHIM.md). */
	CUDA(cudaIpcGetMemHandle(&gift.data, data));
	launch(data, 10);
	CUDA(cudaEventRecord(event, stream));
	gift.event = handle_of(event);
	CUDA_IS(cudaErrorNotReady, cudaEventQuery(event));
	give(gift);
	hear('w');
	CUDA_IS(cudaErrorNotReady, cudaEventQuery(event));
	let_go();
	hear('d');
	CUDA(cudaEventQuery(event));
	CHECK_EQ(read_back(data, stream), 11);
}

static cudaEvent_t before_child(int **data)
{
	struct gift gift = take<struct gift>();
	cudaEvent_t event = open(gift.event);

	CUDA_IS(cudaErrorNotReady, cudaEventQuery(event));
	CUDA(cudaIpcOpenMemHandle((void **)data, gift.data, cudaIpcMemLazyEnablePeerAccess));
	CUDA(cudaStreamWaitEvent(stream, event, 0));
	step<<<1, 1, 0, stream>>>(*data, 1, 1);
	LAUNCHED();
	CUDA_IS(cudaErrorNotReady, cudaStreamQuery(stream));
	/* Other streams go on. */
	step<<<1, 1, 0, other>>>(own, 1, 1);
	CUDA(cudaStreamSynchronize(other));
	CUDA_IS(cudaErrorNotReady, cudaEventQuery(event));
	say('w');
	CUDA(cudaEventSynchronize(event));
	CUDA(cudaEventQuery(event));
	CHECK_EQ(read_back(*data, stream), 11);
	say('d');
	return event;
}

/* Recorded by one side; the other one's thread waits, and then a stream of its own. */
static void recorder(cudaEvent_t event, int *data, int value)
{
	const struct timespec moment = {0, 30000000};

	launch(data, value);
	CUDA(cudaEventRecord(event, stream));
	CUDA_IS(cudaErrorNotReady, cudaEventQuery(event));
	say('r');
	hear('w');
	nanosleep(&moment, NULL); /* the other thread is in its wait, most likely */
	let_go();
	CUDA(cudaEventSynchronize(event));
	hear('d');

	launch(data, value + 1);
	CUDA(cudaEventRecord(event, stream));
	say('r');
	hear('w');
	CUDA_IS(cudaErrorNotReady, cudaEventQuery(event));
	let_go();
	hear('d');
}

static void waiter(cudaEvent_t event, int *data, int value)
{
	hear('r');
	CUDA_IS(cudaErrorNotReady, cudaEventQuery(event));
	say('w');
	CUDA(cudaEventSynchronize(event));
	CHECK_EQ(read_back(data, other), value);
	CUDA(cudaEventQuery(event));
	say('d');

	hear('r');
	CUDA_IS(cudaErrorNotReady, cudaEventQuery(event));
	CUDA(cudaStreamWaitEvent(other, event, 0));
	step<<<1, 1, 0, other>>>(data, 2, 0);
	LAUNCHED();
	CUDA_IS(cudaErrorNotReady, cudaStreamQuery(other));
	say('w');
	CHECK_EQ(read_back(data, other), 2 * (value + 1));
	say('d');
}

/* Both record one event in turn: each behind the other's recording, nobody's thread waits. */
static void ping_pong(cudaEvent_t event, int *data, bool first)
{
	if (first) {
		step<<<1, 1, 0, stream>>>(data, 0, 1);
		CUDA(cudaEventRecord(event, stream));
		say('p');
	}
	for (int round = 0; round < ROUNDS; round++) {
		hear('p');
		CUDA(cudaStreamWaitEvent(stream, event, 0));
		step<<<1, 1, 0, stream>>>(data, first ? 3 : 1, first ? 0 : 1);
		CUDA(cudaEventRecord(event, stream));
		if (!first || round + 1 < ROUNDS)
			say('p');
	}
	CUDA(cudaStreamSynchronize(stream));
	if (first) {
		unsigned want = 1;

		for (int round = 0; round < ROUNDS; round++)
			want = (want + 1) * 3;
		CHECK_EQ((unsigned)read_back(data, stream), want);
		say('e');
	} else {
		hear('e');
	}
}

/* The last recording counts, whoever made it; who waited before waits for the one of then. */
static void again_parent(cudaEvent_t event, int *data)
{
	launch(data, 40);
	CUDA(cudaEventRecord(event, stream));
	say('r');
	hear('a');
	CUDA(cudaEventQuery(event));
	CUDA(cudaEventSynchronize(event));
	CUDA_IS(cudaErrorNotReady, cudaStreamQuery(stream));
	let_go();
	hear('d');
}

static void again_child(cudaEvent_t event, int *data)
{
	hear('r');
	CUDA(cudaStreamWaitEvent(stream, event, 0));
	step<<<1, 1, 0, stream>>>(data, 1, 2);
	step<<<1, 1, 0, other>>>(own, 1, 1);
	CUDA(cudaEventRecord(event, other));
	CUDA(cudaEventSynchronize(event));
	CUDA_IS(cudaErrorNotReady, cudaStreamQuery(stream));
	say('a');
	CHECK_EQ(read_back(data, stream), 42);
	say('d');
}

/* Recorded for all that the context has: once shared, and before it is given away. */
static CUcontext here()
{
	ENTRY(cuCtxGetCurrent);
	CUcontext context;

	DRIVER(p_cuCtxGetCurrent(&context));
	return context;
}

static void whole_parent(cudaEvent_t event, int *data)
{
	ENTRY(cuCtxRecordEvent);
	cudaEvent_t fresh = event_new();

	for (int round = 0; round < 2; round++) {
		launch(data, 50 + round);
		DRIVER(p_cuCtxRecordEvent(here(), round ? fresh : event));
		CUDA_IS(cudaErrorNotReady, cudaEventQuery(round ? fresh : event));
		if (round)
			give(handle_of(fresh));
		say('r');
		hear('w');
		let_go();
		CUDA(cudaEventSynchronize(round ? fresh : event));
		hear('d');
		CHECK_EQ(read_back(data, other), 51 + round);
		/* What has nothing to wait for is done. */
		DRIVER(p_cuCtxRecordEvent(here(), round ? fresh : event));
		CUDA(cudaEventSynchronize(round ? fresh : event));
	}
	say('e');
	hear('e');
	CUDA(cudaEventQuery(fresh));
	CUDA(cudaEventDestroy(fresh));
}

static void whole_child(cudaEvent_t event, int *data)
{
	ENTRY(cuCtxRecordEvent);

	for (int round = 0; round < 2; round++) {
		if (round)
			event = open(take<cudaIpcEventHandle_t>());
		hear('r');
		CUDA_IS(cudaErrorNotReady, cudaEventQuery(event));
		CUDA(cudaStreamWaitEvent(other, event, 0));
		step<<<1, 1, 0, other>>>(data, 1, 1);
		LAUNCHED();
		CUDA_IS(cudaErrorNotReady, cudaStreamQuery(other));
		say('w');
		CUDA(cudaEventSynchronize(event));
		CHECK_EQ(read_back(data, other), 51 + round);
		say('d');
	}
	/* The other side sees what this one's streams have, of both. */
	hear('e');
	launch(own, 1);
	step<<<1, 1, 0, other>>>(own, 1, 1);
	DRIVER(p_cuCtxRecordEvent(here(), event));
	CUDA_IS(cudaErrorNotReady, cudaEventQuery(event));
	let_go();
	CUDA(cudaEventSynchronize(event));
	say('e');
	CUDA(cudaEventDestroy(event));
}

/* Many at once, some of which the other side opens, one twice; and one that goes while the
 * other side waits for it. */
static void many_parent(int *data)
{
	const int picked[] = {0, 500, MANY - 1};
	std::vector<cudaEvent_t> events;

	for (int i = 0; i < MANY; i++)
		events.push_back(event_new());
	std::vector<cudaIpcEventHandle_t> handles;
	for (int i = 0; i < MANY; i++)
		handles.push_back(handle_of(events[i]));
	for (int i : picked) {
		CHECK(!memcmp(&handles[i], &(const cudaIpcEventHandle_t &)handle_of(events[i]),
			sizeof(handles[i])));
		give(handles[i]);
		recorder(events[i], data, i);
	}
	launch(data, 70);
	CUDA(cudaEventRecord(events[0], stream));
	say('r');
	hear('w');
	for (int i = 0; i < MANY; i++)
		CUDA(cudaEventDestroy(events[i]));
	let_go();
	hear('d');
}

static void many_child(int *data)
{
	const int picked[] = {0, 500, MANY - 1};
	cudaEvent_t first = NULL, twice;

	for (int i : picked) {
		cudaIpcEventHandle_t handle = take<cudaIpcEventHandle_t>();
		cudaEvent_t event = open(handle);

		waiter(event, data, i);
		if (!first)
			first = open(handle);
		CUDA(cudaEventDestroy(event));
	}
	hear('r');
	CUDA_IS(cudaErrorNotReady, cudaEventQuery(first));
	CUDA(cudaStreamWaitEvent(stream, first, 0));
	step<<<1, 1, 0, stream>>>(data, 1, 7);
	say('w');
	CHECK_EQ(read_back(data, stream), 77);
	CUDA(cudaEventQuery(first));
	twice = first;
	CUDA(cudaEventDestroy(twice));
	say('d');
}

static int child()
{
	cudaEvent_t event;
	int *data;

	in = 0;
	out = 1;
	warm();
	event = before_child(&data);
	waiter(event, data, 20);
	recorder(event, data, 30);
	ping_pong(event, data, false);
	if (!getenv("VCUDA_TEST_NATIVE")) {
		again_child(event, data);
		whole_child(event, data);
		many_child(data);
	}
	CUDA(cudaEventDestroy(event));
	CUDA(cudaIpcCloseMemHandle(data));
	return 0;
}

/* Ends while its event is not done, and never would be. */
static int mortal()
{
	cudaEvent_t event;

	in = 0;
	out = 1;
	warm();
	event = event_new();
	give(handle_of(event));
	hear('o');
	launch(own, 1);
	CUDA(cudaEventRecord(event, stream));
	say('r');
	for (;;)
		pause();
}

static pid_t start(const char *what)
{
	const char *const command[] = {"self", what, NULL};
	posix_spawn_file_actions_t actions;
	int to[2], from[2];
	pid_t pid;

	CHECK(pipe(to) == 0 && pipe(from) == 0);
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_adddup2(&actions, to[0], 0);
	posix_spawn_file_actions_addclose(&actions, to[1]);
	posix_spawn_file_actions_adddup2(&actions, from[1], 1);
	posix_spawn_file_actions_addclose(&actions, from[0]);
	CHECK(posix_spawn(&pid, "/proc/self/exe", &actions, NULL, (char **)command, environ) ==
		0);
	posix_spawn_file_actions_destroy(&actions);
	close(to[0]);
	close(from[1]);
	in = from[0];
	out = to[1];
	return pid;
}

/* Of NVIDIA's driver it is not asked. */
static void died(int *data)
{
	struct timespec begun, now;
	pid_t pid = start("mortal");
	cudaEvent_t event = open(take<cudaIpcEventHandle_t>());

	CUDA(cudaEventQuery(event));
	say('o');
	hear('r');
	CUDA_IS(cudaErrorNotReady, cudaEventQuery(event));
	step<<<1, 1, 0, stream>>>(data, 0, 5);
	CUDA(cudaStreamWaitEvent(stream, event, 0));
	step<<<1, 1, 0, stream>>>(data, 2, 0);
	CUDA_IS(cudaErrorNotReady, cudaStreamQuery(stream));
	clock_gettime(CLOCK_MONOTONIC, &begun);
	CHECK(kill(pid, SIGKILL) == 0);
	CUDA(cudaEventSynchronize(event));
	CHECK_EQ(read_back(data, stream), 10);
	clock_gettime(CLOCK_MONOTONIC, &now);
	printf("let go after %.2f s\n", (double)(now.tv_sec - begun.tv_sec) +
		(double)(now.tv_nsec - begun.tv_nsec) / 1e9);
	CHECK_EQ(wait_exit(pid), 128 + SIGKILL);
	/* Nobody has it any more but this process: it goes on being an event. */
	CUDA(cudaEventQuery(event));
	launch(data, 6);
	CUDA(cudaEventRecord(event, stream));
	CUDA_IS(cudaErrorNotReady, cudaEventQuery(event));
	let_go();
	CUDA(cudaEventSynchronize(event));
	CUDA(cudaEventDestroy(event));
}

/* A capture's recording, and that of a graph's launch, are this process's alone. */
static void graphs(int *data)
{
	cudaEvent_t event = event_new(), back;
	cudaGraphExec_t exec;
	cudaGraph_t graph;

	(void)handle_of(event);
	CUDA(cudaEventCreateWithFlags(&back, cudaEventDisableTiming));
	CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
	await_flag<<<1, 1, 0, stream>>>(flag_there, ++turns, data, 2);
	CUDA(cudaEventRecord(event, stream));
	CUDA(cudaStreamWaitEvent(other, event, 0));
	step<<<1, 1, 0, other>>>(data, 5, 0);
	CUDA(cudaEventRecordWithFlags(event, other, cudaEventRecordExternal));
	CUDA(cudaEventRecord(back, other));
	CUDA(cudaStreamWaitEvent(stream, back, 0));
	CUDA(cudaStreamEndCapture(stream, &graph));
	CUDA(cudaGraphInstantiateWithFlags(&exec, graph, 0));
	CUDA(cudaGraphLaunch(exec, stream));
	CUDA_IS(cudaErrorNotReady, cudaEventQuery(event));
	CUDA(cudaStreamWaitEvent(other, event, 0));
	step<<<1, 1, 0, other>>>(data, 1, 3);
	CUDA_IS(cudaErrorNotReady, cudaStreamQuery(other));
	let_go();
	CUDA(cudaEventSynchronize(event));
	CHECK_EQ(read_back(data, other), 13);
	/* Recorded by a stream again it is as before. */
	launch(data, 4);
	CUDA(cudaEventRecord(event, stream));
	CUDA_IS(cudaErrorNotReady, cudaEventQuery(event));
	let_go();
	CUDA(cudaEventSynchronize(event));
	CUDA(cudaGraphExecDestroy(exec));
	CUDA(cudaGraphDestroy(graph));
	CUDA(cudaEventDestroy(back));
	CUDA(cudaEventDestroy(event));
}

/* Events go with their context, and there are others afterwards. */
static void reset()
{
	cudaEvent_t event = event_new();

	(void)handle_of(event);
	CUDA(cudaEventRecord(event, stream));
	CUDA(cudaDeviceReset());
	turns = 0;
	warm();
	event = event_new();
	(void)handle_of(event);
	launch(own, 3);
	CUDA(cudaEventRecord(event, stream));
	CUDA_IS(cudaErrorNotReady, cudaEventQuery(event));
	let_go();
	CUDA(cudaEventSynchronize(event));
	CHECK_EQ(read_back(own, stream), 3);
	CUDA(cudaEventDestroy(event));
}

int main(int argc, char **argv)
{
	cudaEvent_t event;
	int *data;
	pid_t pid;

	if (argc > 1)
		return !strcmp(argv[1], "mortal") ? mortal() : child();
	warm();
	CHECK_EQ(device_attribute(cudaDevAttrIpcEventSupport), 1);
	CUDA(cudaMalloc(&data, 4096));
	event = event_new();
	pid = start("child");
	before_parent(event, data);
	recorder(event, data, 20);
	waiter(event, data, 30);
	ping_pong(event, data, true);
	if (!getenv("VCUDA_TEST_NATIVE")) {
		again_parent(event, data);
		whole_parent(event, data);
		many_parent(data);
	}
	CHECK_EQ(wait_exit(pid), 0);
	close(in);
	close(out);
	if (!getenv("VCUDA_TEST_NATIVE")) {
		died(data);
		graphs(data);
	}
	CUDA(cudaEventDestroy(event));
	CUDA(cudaFree(data));
	if (!getenv("VCUDA_TEST_NATIVE"))
		reset();
	return 0;
}
