/* SPDX-License-Identifier: Apache-2.0
 *
 * Eight threads in one context do everything at once, each on its own stream, and compare every
 * byte that comes back. Built with SAN=thread it is what finds races in the shim.
 */
#include <cuda.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define THREADS 8
#define ROUNDS 40
#define LARGEST ((size_t)1 << 20)
#define PINNED ((size_t)1 << 18)

static const char *const text =
	".version 7.0\n.target sm_70\n.address_size 64\n"
	".visible .entry k(.param .u64 a, .param .u32 n)\n{\n ret;\n}\n";
static CUcontext context;
static CUmodule module;
static _Atomic int calls;

#define MUST(call)                                                                             \
	do {                                                                                   \
		CUresult status_ = (call);                                                     \
		if (status_) {                                                                 \
			printf("%s gave %d\n", #call, (int)status_);                           \
			exit(1);                                                               \
		}                                                                              \
	} while (0)

static void CUDA_CB count(void *unused)
{
	(void)unused;
	atomic_fetch_add(&calls, 1);
}

struct job {
	CUstream stream;
	CUevent event;
	CUfunction function;
	unsigned char *sent, *got, *pinned;
};

static void round_trip(struct job *job, int round, size_t n)
{
	unsigned which = (unsigned)round;
	CUdeviceptr at;
	void *arguments[] = {&at, &which};
	size_t some = n < PINNED ? n : PINNED;
	CUresult status;
	int type;

	if (round & 1)
		MUST(cuMemAlloc(&at, n));
	else
		MUST(cuMemAllocAsync(&at, n, job->stream));
	MUST(cuMemcpyHtoDAsync(at, job->sent, n, job->stream));
	MUST(cuLaunchKernel(job->function, 1, 1, 1, 32, 1, 1, 0, job->stream, arguments, NULL));
	MUST(cuEventRecord(job->event, job->stream));
	if (round % 8 == 0)
		MUST(cuLaunchHostFunc(job->stream, count, NULL));
	while ((status = cuEventQuery(job->event)) == CUDA_ERROR_NOT_READY)
		sched_yield();
	MUST(status);
	MUST(cuMemcpyDtoHAsync(job->got, at, n, job->stream));
	MUST(cuMemcpyDtoHAsync(job->pinned, at, some, job->stream));
	MUST(cuStreamSynchronize(job->stream));
	MUST(cuStreamQuery(job->stream));
	if (memcmp(job->sent, job->got, n) || memcmp(job->sent, job->pinned, some)) {
		printf("round %d: other bytes came back\n", round);
		exit(1);
	}
	MUST(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, at));
	if (round & 1)
		MUST(cuMemFree(at));
	else
		MUST(cuMemFreeAsync(at, job->stream));
}

static void *run(void *number)
{
	unsigned seed = (unsigned)(uintptr_t)number + 1;
	struct job job = {.sent = malloc(LARGEST), .got = malloc(LARGEST)};

	MUST(cuCtxSetCurrent(context));
	MUST(cuStreamCreate(
		&job.stream, seed & 1 ? CU_STREAM_NON_BLOCKING : CU_STREAM_DEFAULT));
	MUST(cuEventCreate(&job.event, CU_EVENT_DEFAULT));
	MUST(cuModuleGetFunction(&job.function, module, "k"));
	MUST(cuMemHostAlloc((void **)&job.pinned, PINNED, 0));
	for (int round = 0; round < ROUNDS; round++) {
		size_t n = 1 + (size_t)rand_r(&seed) % LARGEST;

		memset(job.sent, (int)seed, n);
		round_trip(&job, round, n);
	}
	MUST(cuMemFreeHost(job.pinned));
	MUST(cuStreamDestroy(job.stream));
	MUST(cuEventDestroy(job.event));
	free(job.sent);
	free(job.got);
	return NULL;
}

int main(void)
{
	pthread_t threads[THREADS];

	MUST(cuInit(0));
	MUST(cuDevicePrimaryCtxRetain(&context, 0));
	MUST(cuCtxSetCurrent(context));
	MUST(cuModuleLoadData(&module, text));
	for (uintptr_t i = 0; i < THREADS; i++)
		if (pthread_create(&threads[i], NULL, run, (void *)i))
			return 1;
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	MUST(cuCtxSynchronize());
	printf("%d threads, %d rounds each, %d host functions\n", THREADS, ROUNDS,
		atomic_load(&calls));
	return atomic_load(&calls) != THREADS * ((ROUNDS + 7) / 8);
}
