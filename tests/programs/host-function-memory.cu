// SPDX-License-Identifier: Apache-2.0
/*
 * Memory is asked for while a host function is outstanding that needs a lock of the thread that
 * asks, though memory was freed before: neither call waits for the function.
 */
#include "check.h"

#include <atomic>
#include <mutex>
#include <unistd.h>

enum { SECONDS = 30, SMALL = 64, SMALL_BYTES = 64 << 10 };

static std::mutex lock;
static std::atomic<int> ran;

/* As an interpreter's lock does: somebody else may hold it during a call. */
static void CUDART_CB locking(void *)
{
	std::lock_guard<std::mutex> held(lock);
	ran++;
}

/* In pieces that share what the driver gives, and one that is larger than anything that another
 * program on the same GPU takes meanwhile. */
static void free_some(size_t large)
{
	void *memory[SMALL + 1];

	for (auto &m : memory)
		CUDA(cudaMalloc(&m, &m == memory ? large : SMALL_BYTES));
	for (auto m : memory)
		CUDA(cudaFree(m));
}

int main()
{
	size_t before, free_bytes, total;
	cudaStream_t stream;
	void *memory;

	alarm(SECONDS); /* where it hangs */
	CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
	CUDA(cudaMemGetInfo(&before, &total));
	for (int round = 0; round < 2; round++) {
		free_some(total / 4);
		lock.lock();
		CUDA(cudaLaunchHostFunc(stream, locking, NULL));
		if (round == 0) {
			CUDA(cudaMemGetInfo(&free_bytes, &total));
			/* What was freed is free. */
			CHECK(free_bytes + total / 8 > before);
		} else {
			CUDA(cudaMalloc(&memory, total / 4));
			CUDA(cudaMemsetAsync(memory, 0, 1024, 0));
		}
		CHECK_EQ(ran.load(), round);
		lock.unlock();
		CUDA(cudaStreamSynchronize(stream));
		CHECK_EQ(ran.load(), round + 1);
	}
	CUDA(cudaFree(memory));
	CUDA(cudaStreamDestroy(stream));
	printf("memory was had though a host function was outstanding\n");
	return 0;
}
