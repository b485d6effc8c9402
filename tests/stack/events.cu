// SPDX-License-Identifier: Apache-2.0
/* Events between processes, one of which ends badly.
 *
 *     events give                 prints an event's handle; it is done when stdin ends
 *     events fault                the same, but when stdin ends the kernel before it faults
 *     events wait HANDLE WORK     its thread waits for that, and a stream with WORK launches behind
 *     events wait HANDLE WORK by  the launches are another stream's, which waits for that one
 *     events hold HANDLE          a stream does, and the program ends when stdin does
 */
#include <cuda_runtime.h>

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "tests/say.h"
#include "tests/stack/must.h"

__global__ void await_flag(volatile int *flag, int *then)
{
	while (!*flag)
		;
	*then = 1;
}

__global__ void add(int *at, int n)
{
	*at += n;
}

static void stdin_ends()
{
	char byte;

	while (read(STDIN_FILENO, &byte, 1) > 0)
		;
}

static cudaEvent_t opened(const char *text)
{
	cudaIpcEventHandle_t handle;
	cudaEvent_t event;
	cudaError_t error;
	unsigned digit;

	for (size_t i = 0; i < sizeof(handle); i++) {
		if (sscanf(text + 2 * i, "%2x", &digit) != 1)
			_exit(2);
		((unsigned char *)&handle)[i] = (unsigned char)digit;
	}
	error = cudaIpcOpenEventHandle(&event, handle);
	say("opened %d", (int)error);
	if (error)
		_exit(0);
	return event;
}

static int give(bool fault)
{
	char text[2 * sizeof(cudaIpcEventHandle_t) + 1];
	cudaIpcEventHandle_t handle;
	cudaEvent_t event;
	int *flag, *device;

	MUST(cudaHostAlloc(&flag, sizeof(*flag), cudaHostAllocMapped));
	*(volatile int *)flag = 0;
	MUST(cudaMalloc(&device, sizeof(*device)));
	MUST(cudaEventCreateWithFlags(&event, cudaEventDisableTiming | cudaEventInterprocess));
	MUST(cudaIpcGetEventHandle(&handle, event));
	await_flag<<<1, 1>>>(flag, fault ? (int *)64 : device);
	MUST(cudaGetLastError());
	MUST(cudaEventRecord(event));
	for (size_t i = 0; i < sizeof(handle); i++)
		snprintf(text + 2 * i, 3, "%02x", ((unsigned char *)&handle)[i]);
	say("handle %s", text);
	stdin_ends();
	*(volatile int *)flag = 1;
	if (fault) {
		say("error %d", (int)cudaEventSynchronize(event));
		sleep(20); /* it is alive: whoever waits goes on all the same */
		return 0;
	}
	MUST(cudaEventSynchronize(event));
	MUST(cudaEventQuery(event));
	say("done");
	return 0;
}

static int wait_for(const char *text, int work, bool by)
{
	cudaStream_t stream, other;
	cudaEvent_t event, between;
	int *device, sum;

	MUST(cudaMalloc(&device, sizeof(*device)));
	MUST(cudaMemset(device, 0, sizeof(*device)));
	MUST(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
	MUST(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
	MUST(cudaEventCreateWithFlags(&between, cudaEventDisableTiming));
	add<<<1, 1, 0, stream>>>(device, 0);
	MUST(cudaDeviceSynchronize());
	event = opened(text);
	say("query %d", (int)cudaEventQuery(event));
	MUST(cudaStreamWaitEvent(stream, event, 0));
	say("waits %d", (int)cudaStreamQuery(stream));
	if (by) {
		MUST(cudaEventRecord(between, stream));
		stream = other;
		MUST(cudaStreamWaitEvent(stream, between, 0));
	}
	for (int i = 0; i < work; i++)
		add<<<1, 1, 0, stream>>>(device, 1);
	MUST(cudaGetLastError());
	say("queued");
	MUST(cudaEventSynchronize(event));
	say("released");
	MUST(cudaMemcpyAsync(&sum, device, sizeof(sum), cudaMemcpyDeviceToHost, stream));
	MUST(cudaStreamSynchronize(stream));
	if (sum != work)
		say("%d launches of %d", sum, work);
	else
		say("went on");
	return sum != work;
}

static int hold(const char *text)
{
	cudaEvent_t event = opened(text);
	cudaStream_t stream;

	MUST(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
	MUST(cudaStreamWaitEvent(stream, event, 0));
	say("holds %d", (int)cudaStreamQuery(stream));
	stdin_ends();
	return 0;
}

int main(int argc, char **argv)
{
	if (argc > 3 && !strcmp(argv[1], "wait"))
		return wait_for(argv[2], atoi(argv[3]), argc > 4);
	if (argc > 2 && !strcmp(argv[1], "hold"))
		return hold(argv[2]);
	return give(argc > 1 && !strcmp(argv[1], "fault"));
}
