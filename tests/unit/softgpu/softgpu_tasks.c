/* SPDX-License-Identifier: Apache-2.0
 *
 * Tasks of the libraries beside the driver: a handle and its memory last as long as the tasks
 * that use them, also where destroying cannot wait for these.
 */
#include "tests/unit/softgpu/softgpu_test.h"

#include <semaphore.h>
#include <unistd.h>

/* The libraries' own names, as far as they are used here. */
int cublasCreate_v2(void **handle);
int cublasDestroy_v2(void *handle);
int cublasSetStream_v2(void *handle, CUstream stream);
int cublasSscal_v2(void *handle, int n, const float *alpha, float *x, int step);
int cublasGemmEx(void *handle, int ta, int tb, int m, int n, int k, const void *alpha,
	const void *a, int at, int lda, const void *b, int bt, int ldb, const void *beta,
	void *c, int ct, int ldc, int compute, int algo);
int cudnnCreate(void **handle);
int cudnnDestroy(void *handle);
int cudnnSetStream(void *handle, CUstream stream);
int cudnnCreateTensorDescriptor(void **tensor);
int cudnnDestroyTensorDescriptor(void *tensor);
int cudnnSetTensor4dDescriptor(void *tensor, int format, int type, int n, int c, int h, int w);
int cudnnCreateActivationDescriptor(void **activation);
int cudnnDestroyActivationDescriptor(void *activation);
int cudnnSetActivationDescriptor(void *activation, int mode, int nan, double coef);
int cudnnActivationForward(void *handle, const void *activation, const void *alpha,
	const void *x, const void *x_at, const void *beta, const void *y, void *y_at);

enum { EXECUTION_FAILED = 13 };
#define NOWHERE ((void *)16) /* no memory of the device */

static const float one = 1, zero;

static void wait_for(void *semaphore)
{
	sem_wait(semaphore);
}

static CUstream stream_new(void)
{
	CUstream stream;

	ok(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	return stream;
}

/* Nobody can wait for the device while a thread captures. */
static void capture_begin(CUstream stream)
{
	ok(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
	assert_int_not_equal(cuCtxSynchronize(), CUDA_SUCCESS);
}

static void capture_end(CUstream stream)
{
	CUgraph graph = NULL;

	cuStreamEndCapture(stream, &graph);
	if (graph)
		ok(cuGraphDestroy(graph));
}

/* What lies where something of about the size of a handle was freed last. */
enum { ROUNDS = 8, SIZES = 8 };
struct successors {
	unsigned char *at[ROUNDS][SIZES];
};

static void successors_take(struct successors *s)
{
	for (int i = 0; i < ROUNDS; i++)
		for (int k = 0; k < SIZES; k++) {
			s->at[i][k] = malloc(32 + 8 * (size_t)k);
			assert_non_null(s->at[i][k]);
			memset(s->at[i][k], 0, 32 + 8 * (size_t)k);
		}
}

static void successors_are_untouched(struct successors *s)
{
	for (int i = 0; i < ROUNDS; i++)
		for (int k = 0; k < SIZES; k++) {
			for (int n = 0; n < 32 + 8 * k; n++)
				assert_int_equal(s->at[i][k][n], 0);
			free(s->at[i][k]);
		}
}

/* A task that fails says so at its handle: what lies in its place must not hear of it. */
static void a_handle_stays_for_its_tasks(void **state)
{
	CUstream busy = stream_new(), other = stream_new();
	struct successors successors;
	void *handle;
	sem_t gate;

	(void)state;
	sem_init(&gate, 0, 0);
	is(cublasCreate_v2(&handle), 0);
	is(cublasSetStream_v2(handle, busy), 0);
	ok(cuLaunchHostFunc(busy, wait_for, &gate));
	is(cublasSscal_v2(handle, 4, &one, NOWHERE, 1), 0);
	capture_begin(other);
	is(cublasDestroy_v2(handle), 0);
	successors_take(&successors);
	capture_end(other);
	sem_post(&gate);
	ok(cuStreamSynchronize(busy));
	successors_are_untouched(&successors);
	ok(cuStreamDestroy(busy));
	ok(cuStreamDestroy(other));
}

static void a_handle_stays_for_a_graph(void **state)
{
	CUstream stream = stream_new();
	struct successors successors;
	CUgraphExec exec;
	CUgraph graph;
	void *handle;

	(void)state;
	is(cublasCreate_v2(&handle), 0);
	is(cublasSetStream_v2(handle, stream), 0);
	ok(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
	is(cublasSscal_v2(handle, 4, &one, NOWHERE, 1), 0);
	ok(cuStreamEndCapture(stream, &graph));
	ok(cuGraphInstantiate(&exec, graph, 0));
	is(cublasDestroy_v2(handle), 0);
	successors_take(&successors);
	ok(cuGraphLaunch(exec, stream));
	ok(cuStreamSynchronize(stream));
	successors_are_untouched(&successors);
	ok(cuGraphExecDestroy(exec));
	ok(cuGraphDestroy(graph));
	ok(cuStreamDestroy(stream));
}

/* ---- memory ---- */

static CUdeviceptr map(size_t size, bool access)
{
	CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
		.location.type = CU_MEM_LOCATION_TYPE_DEVICE};
	CUmemAccessDesc desc = {
		.location = prop.location, .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
	CUmemGenericAllocationHandle memory;
	CUdeviceptr at;

	ok(cuMemAddressReserve(&at, size, 0, 0, 0));
	ok(cuMemCreate(&memory, size, &prop, 0));
	ok(cuMemMap(at, size, 0, memory, 0));
	ok(cuMemRelease(memory));
	if (access)
		ok(cuMemSetAccess(at, size, &desc, 1));
	return at;
}

static void unmap(CUdeviceptr at, size_t size)
{
	ok(cuMemUnmap(at, size));
	ok(cuMemAddressFree(at, size));
}

static void post(void *semaphore)
{
	sem_post(semaphore);
}

/* Integers are multiplied in plain loops: long enough to be met. */
static void memory_stays_while_it_is_multiplied(void **state)
{
	enum { N = 512, BYTES = 2 << 20 };
	const int32_t alpha = 1, beta = 0;
	CUstream stream = stream_new();
	CUdeviceptr a = map(BYTES, true), b = map(BYTES, true), c = map(BYTES, true);
	void *handle;
	sem_t begun;

	(void)state;
	sem_init(&begun, 0, 0);
	ok(cuMemsetD8(a, 1, BYTES));
	ok(cuMemsetD8(b, 1, BYTES));
	ok(cuMemsetD8(c, 0, BYTES));
	ok(cuCtxSynchronize());
	is(cublasCreate_v2(&handle), 0);
	is(cublasSetStream_v2(handle, stream), 0);
	ok(cuLaunchHostFunc(stream, post, &begun));
	is(cublasGemmEx(handle, 0, 0, N, N, N, &alpha, (void *)(uintptr_t)a, 3, N,
		   (void *)(uintptr_t)b, 3, N, &beta, (void *)(uintptr_t)c, 10, N, 72, -1),
		0);
	sem_wait(&begun);
	usleep(2000);
	unmap(c, BYTES);
	unmap(b, BYTES);
	unmap(a, BYTES);
	ok(cuStreamSynchronize(stream));
	is(cublasSetStream_v2(handle, NULL), 0); /* it has not failed: its memory was there */
	is(cublasSscal_v2(handle, 0, &one, NULL, 1), 0);
	is(cublasDestroy_v2(handle), 0);
	ok(cuStreamDestroy(stream));
}

static void memory_stays_while_cudnn_uses_it(void **state)
{
	enum { ROWS = 1024, COLUMNS = 4096, BYTES = ROWS * COLUMNS * 4 };
	CUstream stream = stream_new();
	CUdeviceptr x = map(BYTES, true), y = map(BYTES, true);
	void *handle, *tensor, *activation;
	sem_t begun;

	(void)state;
	sem_init(&begun, 0, 0);
	is(cudnnCreate(&handle), 0);
	is(cudnnSetStream(handle, stream), 0);
	is(cudnnCreateTensorDescriptor(&tensor), 0);
	is(cudnnSetTensor4dDescriptor(tensor, 0, 0, 1, 1, ROWS, COLUMNS), 0);
	is(cudnnCreateActivationDescriptor(&activation), 0);
	is(cudnnSetActivationDescriptor(activation, 2, 0, 0), 0);
	ok(cuLaunchHostFunc(stream, post, &begun));
	is(cudnnActivationForward(handle, activation, &one, tensor, (void *)(uintptr_t)x, &zero,
		   tensor, (void *)(uintptr_t)y),
		0);
	sem_wait(&begun);
	usleep(2000);
	unmap(x, BYTES);
	unmap(y, BYTES);
	ok(cuStreamSynchronize(stream));
	is(cudnnDestroyActivationDescriptor(activation), 0);
	is(cudnnDestroyTensorDescriptor(tensor), 0);
	is(cudnnDestroy(handle), 0);
	ok(cuStreamDestroy(stream));
}

/* Mapped, but nobody may touch it yet. */
static void memory_without_access_is_not_touched(void **state)
{
	enum { BYTES = 2 << 20 };
	CUdeviceptr at = map(BYTES, false);
	void *handle;

	(void)state;
	is(cublasCreate_v2(&handle), 0);
	is(cublasSscal_v2(handle, 4, &one, (float *)(uintptr_t)at, 1), 0);
	ok(cuCtxSynchronize());
	is(cublasSscal_v2(handle, 4, &one, (float *)(uintptr_t)at, 1), EXECUTION_FAILED);
	is(cublasDestroy_v2(handle), 0);
	unmap(at, BYTES);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_handle_stays_for_its_tasks),
		cmocka_unit_test(a_handle_stays_for_a_graph),
		cmocka_unit_test(memory_stays_while_it_is_multiplied),
		cmocka_unit_test(memory_stays_while_cudnn_uses_it),
		cmocka_unit_test(memory_without_access_is_not_touched),
	};

	return cmocka_run_group_tests(tests, context_setup, context_teardown);
}
