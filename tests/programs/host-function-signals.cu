// SPDX-License-Identifier: Apache-2.0
/*
 * Threads that run functions of the program take the signals that are sent to them, in such a
 * function and after it: a garbage collector that got to know a thread there stops it so.
 */
#include "check.h"

#include <atomic>
#include <csignal>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { WAIT_MS = 10000 };

static std::atomic<int> taken, thread;

static void take(int)
{
	taken++;
}

static void signal_itself(std::atomic<int> *in_time)
{
	int before = taken;

	pthread_kill(pthread_self(), SIGUSR1);
	*in_time = taken == before + 1 ? 1 : 2;
}

static void CUDART_CB function(void *in_time)
{
	thread = (int)syscall(SYS_gettid);
	signal_itself((std::atomic<int> *)in_time);
}

static void CUDART_CB destroy(void *in_time)
{
	signal_itself((std::atomic<int> *)in_time);
}

int main()
{
	std::atomic<int> function_took{0}, destructor_took{0};
	struct sigaction action = {};
	cudaUserObject_t object;
	cudaStream_t stream;
	int before;

	action.sa_handler = take;
	sigaction(SIGUSR1, &action, nullptr);
	CUDA(cudaStreamCreate(&stream));
	CUDA(cudaLaunchHostFunc(stream, function, &function_took));
	CUDA(cudaStreamSynchronize(stream));
	CHECK_EQ(function_took.load(), 1);

	before = taken;
	CHECK_EQ((int)syscall(SYS_tgkill, getpid(), thread.load(), SIGUSR1), 0);
	for (int ms = 0; taken == before && ms < WAIT_MS; ms++)
		usleep(1000);
	CHECK_EQ(taken.load(), before + 1);

	/* What was interrupted goes on. */
	function_took = 0;
	CUDA(cudaLaunchHostFunc(stream, function, &function_took));
	CUDA(cudaStreamSynchronize(stream));
	CHECK_EQ(function_took.load(), 1);

	CUDA(cudaUserObjectCreate(
		&object, &destructor_took, destroy, 1, cudaUserObjectNoDestructorSync));
	CUDA(cudaUserObjectRelease(object));
	for (int ms = 0; !destructor_took && ms < WAIT_MS; ms++)
		usleep(1000);
	CHECK_EQ(destructor_took.load(), 1);
	CUDA(cudaStreamDestroy(stream));
	printf("threads that ran functions took their signals\n");
	return 0;
}
