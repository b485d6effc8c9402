/* SPDX-License-Identifier: Apache-2.0
 *
 * Copies there and back, ROUNDS of 256 KiB and each tenth of 8 MiB, until one is wrong or
 * refused: for connections that are cut and agents that are lost.
 *
 *     loop ROUNDS
 */
#include <cuda.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST (8u << 20)

static void must(CUresult status, const char *what)
{
	const char *name = "?";

	if (!status)
		return;
	cuGetErrorName(status, &name);
	printf("%s: %d %s\n", what, (int)status, name);
	fflush(stdout);
	exit(3);
}
#define MUST(call) must(call, #call)

int main(int argc, char **argv)
{
	unsigned rounds = argc > 1 ? (unsigned)atoi(argv[1]) : 1;
	unsigned char *from = malloc(MOST), *to = malloc(MOST);
	CUdevice first;
	CUcontext context;
	CUdeviceptr at;

	MUST(cuInit(0));
	MUST(cuDeviceGet(&first, 0));
	MUST(cuDevicePrimaryCtxRetain(&context, first));
	MUST(cuCtxSetCurrent(context));
	MUST(cuMemAlloc(&at, MOST));
	puts("started");
	fflush(stdout);
	for (unsigned round = 0; round < rounds; round++) {
		size_t n = round % 10 ? MOST / 32 : MOST;

		for (size_t i = 0; i < n; i++)
			from[i] = (unsigned char)(i * 31 + round);
		MUST(cuMemcpyHtoD(at, from, n));
		memset(to, 0, n);
		MUST(cuMemcpyDtoH(to, at, n));
		if (memcmp(from, to, n) != 0) {
			printf("round %u: WRONG\n", round);
			return 1;
		}
	}
	printf("%u rounds right\n", rounds);
	return 0;
}
