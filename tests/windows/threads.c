/* SPDX-License-Identifier: Apache-2.0
 *
 * Threads of Windows' own that come and go, each with its own default stream.
 *
 *     threads ROUNDS
 */
#include <windows.h>
#include <cuda.h>
#include <stdio.h>
#include <stdlib.h>

#define THREADS 4

static CUcontext context;
static volatile LONG right;

static DWORD WINAPI work(void *argument)
{
	unsigned number = (unsigned)(ULONG_PTR)argument, word = 0;
	CUdeviceptr at;

	if (cuCtxSetCurrent(context) || cuMemAlloc(&at, 4096) ||
		cuMemsetD32Async(at, number, 1024, CU_STREAM_PER_THREAD) ||
		cuStreamSynchronize(CU_STREAM_PER_THREAD) ||
		cuMemcpyDtoH(&word, at + 4092, 4) || cuMemFree(at))
		return 1;
	if (word == number)
		InterlockedIncrement(&right);
	return 0;
}

int main(int argc, char **argv)
{
	unsigned rounds = argc > 1 ? (unsigned)atoi(argv[1]) : 1, number = 0;
	HANDLE threads[THREADS];

	if (cuInit(0) || cuDevicePrimaryCtxRetain(&context, 0))
		return 1;
	for (unsigned round = 0; round < rounds; round++) {
		for (unsigned i = 0; i < THREADS; i++)
			threads[i] = CreateThread(
				NULL, 0, work, (void *)(ULONG_PTR)++number, 0, NULL);
		WaitForMultipleObjects(THREADS, threads, TRUE, INFINITE);
		for (unsigned i = 0; i < THREADS; i++)
			CloseHandle(threads[i]);
	}
	printf("%ld of %u threads right\n", right, number);
	return right != (LONG)number;
}
