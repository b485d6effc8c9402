// SPDX-License-Identifier: Apache-2.0
/*
 * What a host function may ask: whether an event or a stream is done, and how long it was between
 * two events. It may wait for another stream in that way, whatever waits for the function itself.
 */
#include "driver.h"

#include <atomic>
#include <thread>

enum { SECONDS = 50, N = 256, ROUNDS = 20000, WAIT_MS = 500 };

static CUresult (*query_event)(CUevent);
static CUresult (*query_stream)(CUstream);
static CUresult (*elapsed)(float *, CUevent, CUevent);
static CUresult (*current)(CUcontext *);
static CUresult (*count_devices)(int *);

static cudaStream_t stream, other;
static cudaEvent_t begun, done, behind, late;
static std::atomic<int> ran;
static std::atomic<bool> started, recorded;
static int *numbers;

__global__ void work(int *out, int rounds)
{
	int value = threadIdx.x;

	for (int i = 0; i < rounds; i++)
		value = value * 1103515245 + 12345;
	out[threadIdx.x] = value | 1;
}

/* NVIDIA's driver loads nothing and frees no array while a function is outstanding. */
static bool native()
{
	const char *preload = getenv("LD_PRELOAD");

	return !(preload && strstr(preload, "vcuda"));
}

static void CUDART_CB ask(void *)
{
	float driver = -1, runtime = -2;

	while (!recorded)
		usleep(100);
	DRIVER(query_event(done));
	CUDA(cudaEventQuery(done));
	DRIVER_IS(CUDA_ERROR_NOT_READY, query_event(behind));
	CUDA_IS(cudaErrorNotReady, cudaEventQuery(behind));
	DRIVER_IS(CUDA_ERROR_NOT_READY, query_stream(stream));
	if (!native()) /* not known: an H200 was not asked */
		CUDA_IS(cudaErrorNotReady, cudaStreamQuery(stream));
	DRIVER(elapsed(&driver, begun, done));
	/* Each as an H200 answers. */
	if (CUDART_VERSION >= 13000) {
		CUDA(cudaEventElapsedTime(&runtime, begun, done));
		CHECK(driver >= 0 && driver == runtime);
	} else {
		CUDA_IS(cudaErrorNotPermitted, cudaEventElapsedTime(&runtime, begun, done));
	}
	DRIVER_IS(CUDA_ERROR_NOT_READY, elapsed(&driver, done, behind));
	ran++;
}

static void CUDART_CB ask_back(cudaStream_t, cudaError_t, void *)
{
	ask(NULL);
}

static void CUDART_CB ask_for_more(void *)
{
	CUcontext context;
	int count;

	DRIVER_IS(CUDA_ERROR_NOT_PERMITTED, current(&context));
	DRIVER_IS(CUDA_ERROR_NOT_PERMITTED, count_devices(&count));
	if (CUDART_VERSION >= 13000)
		CUDA(cudaGetDeviceCount(&count));
	else if (!native()) /* not known: an H200 was not asked */
		CUDA_IS(cudaErrorNotPermitted, cudaGetDeviceCount(&count));
	ran++;
}

/* Until the kernel of the other stream is done; what it wrote is there then. */
static void CUDART_CB poll_event(void *)
{
	CUresult status;

	started = true;
	while (!recorded)
		usleep(100);
	while ((status = query_event(late)) == CUDA_ERROR_NOT_READY)
		usleep(500);
	DRIVER(status);
	for (int i = 0; i < N; i++)
		CHECK_EQ_AT(i, numbers[i] & 1, 1);
	ran++;
}

static void CUDART_CB poll_stream(void *)
{
	CUresult status;

	started = true;
	while (!recorded)
		usleep(100);
	while ((status = query_stream(other)) == CUDA_ERROR_NOT_READY)
		usleep(500);
	DRIVER(status);
	ran++;
}

/* The event was done, and is recorded anew behind what the agent keeps until this is over. */
static void CUDART_CB ask_for_kept(void *)
{
	started = true;
	for (int i = 0; i < WAIT_MS && !recorded; i++)
		usleep(1000);
	if (recorded)
		DRIVER_IS(CUDA_ERROR_NOT_READY, query_event(late));
	ran++;
}

static void expect_ran(int times)
{
	CUDA(cudaStreamSynchronize(stream));
	CHECK_EQ(ran.exchange(0), times);
	started = recorded = false;
}

static void expect_asked()
{
	CUDA(cudaEventRecord(behind, stream));
	recorded = true;
	expect_ran(1);
	DRIVER(query_event(behind));
}

static void each_form_asks()
{
	cudaGraph_t graph;
	cudaGraphExec_t exec;
	cudaGraphNode_t node;
	cudaHostNodeParams params = {ask, NULL};

	CUDA(cudaLaunchHostFunc(stream, ask, NULL));
	expect_asked();
	CUDA(cudaStreamAddCallback(stream, ask_back, NULL, 0));
	expect_asked();

	CUDA(cudaGraphCreate(&graph, 0));
	CUDA(cudaGraphAddHostNode(&node, graph, NULL, 0, &params));
	CUDA(cudaGraphInstantiate(&exec, graph, 0));
	CUDA(cudaGraphLaunch(exec, stream));
	expect_asked();
	CUDA(cudaGraphExecDestroy(exec));
	CUDA(cudaGraphDestroy(graph));

	CUDA(cudaLaunchHostFunc(stream, ask_for_more, NULL));
	expect_ran(1);
}

static void a_function_waits_for_a_kernel(cudaHostFn_t function)
{
	memset(numbers, 0, N * sizeof(*numbers));
	CUDA(cudaLaunchHostFunc(stream, function, NULL));
	work<<<1, N, 0, other>>>(numbers, ROUNDS);
	CUDA(cudaEventRecord(late, other));
	recorded = true;
	expect_ran(1);
	CUDA(cudaStreamSynchronize(other));
}

/* ... while another thread waits for that function. */
static void a_function_waits_while_an_array_is_freed(cudaHostFn_t function)
{
	cudaChannelFormatDesc format = cudaCreateChannelDesc<int>();
	cudaArray_t array;

	CUDA(cudaMallocArray(&array, &format, 16));
	work<<<1, N, 0, other>>>(numbers, ROUNDS);
	CUDA(cudaEventRecord(late, other));
	recorded = true;
	CUDA(cudaLaunchHostFunc(stream, function, NULL));
	std::thread freeing([array] {
		while (!started)
			usleep(100);
		CUDA(cudaFreeArray(array));
	});
	freeing.join();
	expect_ran(1);
	CUDA(cudaStreamSynchronize(other));
}

static void an_event_that_is_kept_is_not_done()
{
	cudaChannelFormatDesc format = cudaCreateChannelDesc<int>();
	cudaArray_t array;

	CUDA(cudaMallocArray(&array, &format, 16));
	CUDA(cudaEventRecord(late, other));
	CUDA(cudaStreamSynchronize(other));
	CUDA(cudaLaunchHostFunc(stream, ask_for_kept, NULL));
	while (!started)
		usleep(100);
	CUDA(cudaFreeArray(array)); /* natively this ends with the function */
	CUDA(cudaEventRecord(late, other));
	recorded = true;
	expect_ran(1);
	CUDA(cudaStreamSynchronize(other));
	DRIVER(query_event(late));
}

int main()
{
	ENTRY(cuEventQuery);
	ENTRY(cuEventElapsedTime);
	ENTRY(cuStreamQuery);
	ENTRY(cuCtxGetCurrent);
	ENTRY(cuDeviceGetCount);

	alarm(SECONDS); /* where it hangs */
	query_event = p_cuEventQuery;
	elapsed = p_cuEventElapsedTime;
	query_stream = p_cuStreamQuery;
	current = p_cuCtxGetCurrent;
	count_devices = p_cuDeviceGetCount;
	CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
	CUDA(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
	CUDA(cudaMallocHost(&numbers, N * sizeof(*numbers)));
	for (cudaEvent_t *event : {&begun, &done, &behind, &late})
		CUDA(cudaEventCreate(event));
	work<<<1, N, 0, other>>>(numbers, 1); /* loads the module */
	CUDA(cudaEventRecord(begun, stream));
	CUDA(cudaEventRecord(done, stream));
	CUDA(cudaDeviceSynchronize());

	each_form_asks();
	a_function_waits_for_a_kernel(poll_event);
	a_function_waits_for_a_kernel(poll_stream);
	a_function_waits_while_an_array_is_freed(poll_event);
	if (!native())
		an_event_that_is_kept_is_not_done();
	printf("host functions were answered\n");
	return 0;
}
