/* SPDX-License-Identifier: Apache-2.0
 *
 * A copy that CUDA calls synchronous is done when it returns, so work on a non-blocking stream
 * may rely on it. It is a post here: this program fails where such work overtakes it.
 */
#include <cuda.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BYTES ((size_t)8 << 20)
#define ROUNDS 60

CUresult cuMemcpyHtoD_v2_ptds(CUdeviceptr dstDevice, const void *srcHost, size_t ByteCount);

static void must(CUresult status, const char *what)
{
	if (!status)
		return;
	printf("%s: error %d\n", what, (int)status);
	exit(1);
}

/* One on the legacy stream, on the thread's own, on both. */
static void copy(int round, CUdeviceptr to, const unsigned char *from)
{
	size_t first = round % 3 == 0 ? BYTES : round % 3 == 1 ? 0 : BYTES / 2;

	if (first)
		must(cuMemcpyHtoD(to, from, first), "cuMemcpyHtoD");
	if (first < BYTES)
		must(cuMemcpyHtoD_v2_ptds(to + first, from + first, BYTES - first),
			"cuMemcpyHtoD_ptds");
}

int main(void)
{
	unsigned char *sent = malloc(BYTES), *got = malloc(BYTES);
	CUdeviceptr a, b;
	CUcontext context;
	CUstream stream;
	int wrong = 0;

	if (!sent || !got)
		return 1;
	must(cuInit(0), "cuInit");
	must(cuDevicePrimaryCtxRetain(&context, 0), "cuDevicePrimaryCtxRetain");
	must(cuCtxSetCurrent(context), "cuCtxSetCurrent");
	must(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), "cuStreamCreate");
	must(cuMemAlloc(&a, BYTES), "cuMemAlloc");
	must(cuMemAlloc(&b, BYTES), "cuMemAlloc");
	for (int round = 0; round < ROUNDS; round++) {
		memset(sent, round, BYTES);
		copy(round, a, sent);
		must(cuMemcpyDtoDAsync(b, a, BYTES, stream), "cuMemcpyDtoDAsync");
		must(cuMemcpyDtoHAsync(got, b, BYTES, stream), "cuMemcpyDtoHAsync");
		must(cuStreamSynchronize(stream), "cuStreamSynchronize");
		wrong += memcmp(got, sent, BYTES) != 0;
	}
	printf("%d of %d copies were overtaken\n", wrong, ROUNDS);
	free(sent);
	free(got);
	return wrong != 0;
}
