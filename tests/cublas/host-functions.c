/* SPDX-License-Identifier: Apache-2.0
 *
 * Calls that wait inside the library or the driver while a host function is outstanding: the
 * function runs, and so does what comes after them.
 */
#include "tests/cublas/check.h"

#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

enum { N = 64, SECONDS = 20 };

static cudaStream_t stream;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static atomic_int ran;

static void CUDART_CB slowly(void *argument)
{
	(void)argument;
	usleep(50000);
	ran++;
}

/* As an interpreter's lock does: somebody else may hold it during a call. */
static void CUDART_CB locking(void *argument)
{
	(void)argument;
	usleep(50000);
	pthread_mutex_lock(&mutex);
	ran++;
	pthread_mutex_unlock(&mutex);
}

static void expect_ran(const char *what)
{
	if (ran != 1)
		DIE("%s: the function ran %d times", what, ran);
	ran = 0;
}

static void a_handle_goes(void)
{
	cublasHandle_t handle;

	BLAS(cublasCreate_v2(&handle));
	CUDA(cudaLaunchHostFunc(stream, slowly, NULL));
	BLAS(cublasDestroy_v2(handle));
	CUDA(cudaStreamSynchronize(stream));
	expect_ran("cublasDestroy");
}

static void a_result_comes_to_the_host(void)
{
	struct matrix x = matrix_new(CUDA_R_32F, N, 1);
	cublasHandle_t handle;
	float got;

	BLAS(cublasCreate_v2(&handle));
	BLAS(cublasSetStream_v2(handle, stream));
	CUDA(cudaLaunchHostFunc(stream, slowly, NULL));
	BLAS(cublasSdot_v2(handle, N, x.device, 1, x.device, 1, &got));
	expect_ran("cublasSdot");
	BLAS(cublasDestroy_v2(handle));
	matrix_free(&x);
}

/* What comes behind a handle that goes is not held up by the function. */
static void a_call_under_the_lock_of_the_function(void)
{
	cublasHandle_t handle;
	cudaStream_t other;
	void *memory;

	CUDA(cudaMalloc(&memory, N));
	CUDA(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
	BLAS(cublasCreate_v2(&handle));
	CUDA(cudaLaunchHostFunc(stream, locking, NULL));
	BLAS(cublasDestroy_v2(handle));
	pthread_mutex_lock(&mutex);
	CUDA(cudaMemsetAsync(memory, 0, N, other));
	CUDA(cudaStreamSynchronize(other));
	pthread_mutex_unlock(&mutex);
	CUDA(cudaStreamSynchronize(stream));
	expect_ran("a call under its lock");
	CUDA(cudaStreamDestroy(other));
	CUDA(cudaFree(memory));
}

static void a_graph_goes_while_it_runs(void)
{
	cudaGraphExec_t exec;
	cudaGraph_t graph;

	CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
	CUDA(cudaLaunchHostFunc(stream, slowly, NULL));
	CUDA(cudaStreamEndCapture(stream, &graph));
	CUDA(cudaGraphInstantiateWithFlags(&exec, graph, 0));
	CUDA(cudaGraphLaunch(exec, stream));
	CUDA(cudaGraphExecDestroy(exec));
	CUDA(cudaGraphDestroy(graph));
	CUDA(cudaStreamSynchronize(stream));
	expect_ran("cudaGraphExecDestroy");
}

int main(void)
{
	alarm(SECONDS); /* where it hangs */
	CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
	a_handle_goes();
	a_result_comes_to_the_host();
	a_call_under_the_lock_of_the_function();
	a_graph_goes_while_it_runs();
	CUDA(cudaStreamDestroy(stream));
	printf("right\n");
	return 0;
}
