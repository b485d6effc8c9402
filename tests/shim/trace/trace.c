/* SPDX-License-Identifier: Apache-2.0
 *
 * What a recorder is told of the program's calls (shim/engine/trace.h): each once, with its
 * arguments as NVIDIA's generated_cuda_meta.h lays them out and with what it returned, the
 * frames that it sent, and nothing of calls within calls.
 */
#define __CUDA_API_VERSION_INTERNAL
#include <cuda.h>
#include <cuda_runtime_api.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "protocol/generated/vcuda_ops.h"
#include "shim/engine/trace.h"
#include "shim/generated/cuda_calls.h"
#include "tests/check.h"

#define PARAMS 128
#define TOLD 64
#define THREADS 2
#define ROUNDS 500

enum what { ENTER, LEAVE, SENT };

/* As it was told. */
static struct told {
	enum what what;
	unsigned call; /* of a frame: by which, CALL_LAST: by none */
	uint32_t number;
	int result;
	uint16_t op;
	unsigned agent;
	uint64_t seq;
	unsigned char params[PARAMS];
} told[TOLD];
static unsigned told_count;

/* Calls that are told to count(). */
static _Atomic unsigned entered, left, wrong;
static _Atomic uint32_t numbers;
static _Thread_local uint32_t under_way;

static struct told *tell(enum what what, const struct trace_call *call)
{
	struct told *one = &told[told_count++];

	if (told_count > TOLD)
		DIE("more is told than %d", TOLD);
	*one = (struct told){.what = what, .call = call ? call->call : CALL_LAST};
	return one;
}

static void tell_enter(struct trace_call *call)
{
	CUcontext current;

	call->number = ++numbers;
	call->start = 5;
	call->data = (uint64_t)(uintptr_t)call;
	memcpy(tell(ENTER, call)->params, call->params, PARAMS);
	CUDA(cuCtxGetCurrent(&current));
}

static void tell_leave(struct trace_call *call)
{
	struct told *one = tell(LEAVE, call);
	CUcontext current;

	if (call->start != 5 || call->data != (uint64_t)(uintptr_t)call)
		DIE("what is the recorder's is not kept");
	one->number = call->number;
	one->result = *(const int *)call->result;
	memcpy(one->params, call->params, PARAMS);
	CUDA(cuCtxGetCurrent(&current));
}

static void tell_sent(const struct trace_call *call, unsigned agent, uint64_t seq, uint16_t op)
{
	struct told *one = tell(SENT, call);

	one->agent = agent;
	one->seq = seq;
	one->op = op;
}
static const struct trace_recorder teller = {tell_enter, tell_leave, tell_sent};

/* Of no meaning is the padding at HOLE. */
static bool same(struct told *one, const void *params, size_t bytes, size_t hole)
{
	if (hole)
		memset(one->params + hole, 0, 4);
	return !memcmp(one->params, params, bytes);
}

/* That since the last time CALL was told and nothing else, with PARAMS and the result. */
static const struct told *expect(const char *name, unsigned call, const void *params,
	size_t bytes, size_t hole, int result)
{
	struct told *enter = NULL, *leave = NULL, *sent = NULL;

	for (unsigned i = 0; i < told_count; i++) {
		struct told *one = &told[i];

		if (one->call != call)
			DIE("%s: %s is told", name,
				one->call < CALL_LAST ? "another call" : "a frame of no call");
		if (one->what == SENT)
			sent = one;
		else if (*(one->what == ENTER ? &enter : &leave))
			DIE("%s is told twice", name);
		else
			*(one->what == ENTER ? &enter : &leave) = one;
	}
	if (!enter || !leave || told[told_count - 1].what != LEAVE || told[0].what != ENTER)
		DIE("%s: not entered and left", name);
	if (leave->number != numbers)
		DIE("%s: the number is not kept", name);
	if (leave->result != result)
		DIE("%s: told that it returned %d, not %d", name, leave->result, result);
	if (!same(enter, params, bytes, hole) || !same(leave, params, bytes, hole))
		DIE("%s: other arguments", name);
	told_count = 0;
	return sent;
}
#define EXPECT(name, result, ...)                                                              \
	expect(#name, CALL_##name, &(struct name##_told){__VA_ARGS__},                         \
		sizeof(struct name##_told), name##_hole, result)
#define EXPECT_VOID(name, result) expect(#name, CALL_##name, "", 0, 0, result)

/* By hand, after generated_cuda_meta.h and generated_cuda_runtime_api_meta.h; NAME_hole is
 * where padding is, 0: nowhere. */
enum {
	cuLaunchKernel_hole = 36,
	cuMemcpyHtoDAsync_v2_hole = 0,
	cuMemcpyHtoDAsync_v2_ptsz_hole = 0,
	cuMemsetD32_v2_hole = 12,
	cuMemsetD32_v2_ptds_hole = 12,
	cudaMemcpyAsync_hole = 28,
	cudaMemcpyAsync_ptsz_hole = 28,
	cudaMemcpy2D_hole = 52,
	cudaLaunchKernel_hole = 0,
	cudaStreamQuery_hole = 0,
};
struct cuLaunchKernel_told {
	CUfunction f;
	unsigned grid[3], block[3], shared, hole;
	CUstream stream;
	void **params, **extra;
};
struct cuMemcpyHtoDAsync_v2_told {
	CUdeviceptr to;
	const void *from;
	size_t bytes;
	CUstream stream;
};
#define cuMemcpyHtoDAsync_v2_ptsz_told cuMemcpyHtoDAsync_v2_told
struct cuMemsetD32_v2_told {
	CUdeviceptr to;
	unsigned value, hole;
	size_t count;
};
#define cuMemsetD32_v2_ptds_told cuMemsetD32_v2_told
struct cudaMemcpyAsync_told {
	void *to;
	const void *from;
	size_t bytes;
	enum cudaMemcpyKind kind;
	unsigned hole;
	cudaStream_t stream;
};
#define cudaMemcpyAsync_ptsz_told cudaMemcpyAsync_told
struct cudaMemcpy2D_told {
	void *to;
	size_t to_pitch;
	const void *from;
	size_t from_pitch, width, height;
	enum cudaMemcpyKind kind;
	unsigned hole;
};
struct cudaLaunchKernel_told {
	const void *f;
	unsigned grid[3], block[3];
	void **args;
	size_t shared;
	cudaStream_t stream;
};
struct cudaStreamQuery_told {
	cudaStream_t stream;
};

static const char image[] = ".version 6.0\n"
			    ".target sm_50\n"
			    ".address_size 64\n"
			    ".visible .entry nothing(.param .u64 to) { ret; }\n";

/* kernel.cu */
const void *trace_kernel(void);

static CUdeviceptr device;
static unsigned char bytes[4096];
static CUstream stream;
static CUfunction kernel;

static void begin(void)
{
	CUcontext context;
	CUmodule module;

	CUDA(cuInit(0));
	CUDA(cuDevicePrimaryCtxRetain(&context, 0));
	CUDA(cuCtxSetCurrent(context));
	CUDA(cudaFree(NULL));
	CUDA(cuMemAlloc_v2(&device, sizeof(bytes)));
	CUDA(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	CUDA(cuModuleLoadData(&module, image));
	CUDA(cuModuleGetFunction(&kernel, module, "nothing"));
}

static void driver(void)
{
	void *params[] = {&device};
	const CUstream none = (CUstream)(uintptr_t)0x10;
	const struct told *sent, first = {0};
	struct told before = first;
	CUresult failed;

	for (int round = 0; round < 2; round++) {
		CUDA(cuLaunchKernel(kernel, 2, 3, 4, 5, 6, 7, 8, stream, params, NULL));
		sent = EXPECT(cuLaunchKernel, 0, kernel, {2, 3, 4}, {5, 6, 7}, 8, 0, stream,
			params, NULL);
		if (!sent || sent->op != OP_vcudaLaunch || sent->agent ||
			(round && sent->seq != before.seq + 1) || !sent->seq)
			DIE("the frame of a launch is not told");
		before = *sent;
	}
	CUDA(cuMemcpyHtoDAsync_v2(device, bytes, 100, stream));
	EXPECT(cuMemcpyHtoDAsync_v2, 0, device, bytes, 100, stream);
	CUDA(cuMemcpyHtoDAsync_v2_ptsz(device, bytes, 100, NULL));
	EXPECT(cuMemcpyHtoDAsync_v2_ptsz, 0, device, bytes, 100, NULL);
	failed = cuMemcpyHtoDAsync_v2(device, bytes, 100, none);
	if (!failed)
		DIE("a copy on no stream succeeds");
	EXPECT(cuMemcpyHtoDAsync_v2, (int)failed, device, bytes, 100, none);
	CUDA(cuMemsetD32_v2(device, 7, 9));
	EXPECT(cuMemsetD32_v2, 0, device, 7, 0, 9);
	CUDA(cuMemsetD32_v2_ptds(device, 7, 9));
	EXPECT(cuMemsetD32_v2_ptds, 0, device, 7, 0, 9);
	CUDA(cuCtxSynchronize());
	EXPECT_VOID(cuCtxSynchronize, 0);
}

static void runtime(void)
{
	void *to = (void *)(uintptr_t)device, *args[] = {&device};
	const cudaStream_t none = (cudaStream_t)(uintptr_t)0x10;
	const struct told *sent;
	cudaError_t failed;

	CUDA(cudaLaunchKernel(
		trace_kernel(), (dim3){2, 3, 4}, (dim3){5, 6, 7}, args, 8, stream));
	sent = EXPECT(
		cudaLaunchKernel, 0, trace_kernel(), {2, 3, 4}, {5, 6, 7}, args, 8, stream);
	if (!sent || sent->op != OP_vcudaLaunch)
		DIE("the frame of the runtime's launch is not told");
	CUDA(cudaMemcpyAsync(to, bytes, 100, cudaMemcpyHostToDevice, stream));
	EXPECT(cudaMemcpyAsync, 0, to, bytes, 100, cudaMemcpyHostToDevice, 0, stream);
	CUDA(cudaMemcpyAsync_ptsz(to, bytes, 100, cudaMemcpyHostToDevice, NULL));
	EXPECT(cudaMemcpyAsync_ptsz, 0, to, bytes, 100, cudaMemcpyHostToDevice, 0, NULL);
	CUDA(cudaMemcpy2D(to, 64, bytes, 32, 16, 8, cudaMemcpyHostToDevice));
	EXPECT(cudaMemcpy2D, 0, to, 64, bytes, 32, 16, 8, cudaMemcpyHostToDevice, 0);
	CUDA(cudaDeviceSynchronize());
	EXPECT_VOID(cudaDeviceSynchronize, 0);
	failed = cudaStreamQuery(none);
	if (!failed)
		DIE("there is a stream that was not made");
	EXPECT(cudaStreamQuery, (int)failed, none);
	ANSWERS(cudaPeekAtLastError(), failed);
	EXPECT_VOID(cudaPeekAtLastError, (int)failed);
	ANSWERS(cudaGetLastError(), failed);
	EXPECT_VOID(cudaGetLastError, (int)failed);
	CUDA(cudaGetLastError());
	EXPECT_VOID(cudaGetLastError, 0);
}

/* Who asks for a table that we do not have is named once: it is the program. */
static void asks(void)
{
	const CUuuid id = {{1}};
	const void *table;
	char said[512] = "";
	int ends[2], err = dup(STDERR_FILENO);

	if (err < 0 || pipe(ends) || dup2(ends[1], STDERR_FILENO) < 0)
		DIE("no pipe");
	ANSWERS(cuGetExportTable(&table, &id), CUDA_ERROR_NOT_SUPPORTED);
	dup2(err, STDERR_FILENO);
	close(ends[1]);
	close(err);
	if (read(ends[0], said, sizeof(said) - 1) <= 0 ||
		!strstr(said, program_invocation_short_name) || strstr(said, "libvcuda"))
		DIE("a table is asked for by: %s", said);
	close(ends[0]);
	told_count = 0;
}

static void count_enter(struct trace_call *call)
{
	if (under_way)
		wrong++;
	under_way = call->number = ++numbers;
	entered++;
}

static void count_leave(struct trace_call *call)
{
	if (call->number != under_way || *(const int *)call->result)
		wrong++;
	under_way = 0;
	left++;
}

static void count_sent(const struct trace_call *call, unsigned agent, uint64_t seq, uint16_t op)
{
	if (agent || !seq || !op || (call && call->number != under_way))
		wrong++;
}
static const struct trace_recorder counter = {count_enter, count_leave, count_sent};

static void *work(void *unused)
{
	CUstream own;

	(void)unused;
	CUDA(cudaStreamCreate(&own));
	for (int i = 1; i < ROUNDS; i++) {
		CUDA(cudaMemsetAsync((void *)(uintptr_t)device, i, 16, own));
		CUDA(cuMemsetD32Async(device, (unsigned)i, 4, own));
	}
	CUDA(cudaStreamDestroy(own));
	return NULL;
}

static void threads(void)
{
	pthread_t thread[THREADS];

	vcuda_trace_set(&counter);
	for (int i = 0; i < THREADS; i++)
		CUDA(pthread_create(&thread[i], NULL, work, NULL));
	for (int i = 0; i < THREADS; i++)
		CUDA(pthread_join(thread[i], NULL));
	vcuda_trace_set(NULL);
	if (wrong || entered != left || entered != THREADS * 2 * ROUNDS)
		DIE("%u calls of %u threads are told, %u ends, %u wrong", entered, THREADS,
			left, wrong);
}

static void enter_last(struct trace_call *call)
{
	tell_enter(call);
	vcuda_trace_set(NULL);
}
static const struct trace_recorder last = {enter_last, tell_leave, tell_sent};

/* A call under way is told to its end, and no other is. */
static void end(void)
{
	void *to = (void *)(uintptr_t)device;

	vcuda_trace_set(&last);
	CUDA(cudaMemcpyAsync(to, bytes, 100, cudaMemcpyHostToDevice, stream));
	if (EXPECT(cudaMemcpyAsync, 0, to, bytes, 100, cudaMemcpyHostToDevice, 0, stream))
		DIE("a frame is told to nobody");
	CUDA(cudaDeviceSynchronize());
	CUDA(cuCtxSynchronize());
	if (told_count)
		DIE("a call is told to nobody");
}

/* After the compiled code has taken its kernels back: that is no call of the program's. */
__attribute__((destructor)) static void gone(void)
{
	for (unsigned i = 0; i < told_count; i++) {
		/* Its frames are told, of no call. */
		if (told[i].what == SENT && told[i].call == CALL_LAST)
			continue;
		fprintf(stderr, "call %u is told at the end\n", told[i].call);
		_exit(1);
	}
}

int main(void)
{
	begin();
	if (told_count)
		DIE("told before it is asked for");
	vcuda_trace_set(&teller);
	driver();
	runtime();
	asks();
	threads();
	end();
	printf("calls are told\n");
	vcuda_trace_set(&teller);
	return 0;
}
