/* SPDX-License-Identifier: Apache-2.0
 *
 * A handle goes while a host function is outstanding: the library waits inside, and the
 * function runs all the same.
 */
#include "tests/cudnn/check.h"

#include <unistd.h>

enum { SECONDS = 20 };

static volatile int ran;

static void CUDA_CB slowly(void *argument)
{
	(void)argument;
	usleep(50000);
	ran++;
}

int main(void)
{
	CUstream stream;

	alarm(SECONDS); /* where it hangs */
	begin();
	CUDA(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	CUDA(cuLaunchHostFunc(stream, slowly, NULL));
	DNN(cudnnDestroy(handle));
	CUDA(cuStreamSynchronize(stream));
	if (ran != 1)
		DIE("the function ran %d times", ran);
	CUDA(cuStreamDestroy(stream));
	printf("right\n");
	return 0;
}
