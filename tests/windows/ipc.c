/* SPDX-License-Identifier: Apache-2.0
 *
 * Memory of one process in another: this program starts itself again, with the handle as its
 * argument.
 */
#include <cuda.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void must(CUresult status, const char *what)
{
	if (!status)
		return;
	printf("%s: %d\n", what, (int)status);
	fflush(stdout);
	exit(1);
}
#define MUST(call) must(call, #call)

static int child(const char *digits)
{
	CUipcMemHandle handle;
	CUdeviceptr at;
	unsigned word;

	for (size_t i = 0; i < sizeof(handle.reserved); i++) {
		unsigned byte = 0;

		sscanf(digits + 2 * i, "%2x", &byte);
		handle.reserved[i] = (char)byte;
	}
	MUST(cuIpcOpenMemHandle(&at, handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
	MUST(cuMemcpyDtoH(&word, at, sizeof(word)));
	MUST(cuMemsetD32(at, word + 1, 1));
	MUST(cuCtxSynchronize());
	MUST(cuIpcCloseMemHandle(at));
	printf("the child read %u\n", word);
	return 0;
}

static int parent(const char *program)
{
	char command[512];
	CUipcMemHandle handle;
	CUdeviceptr at;
	unsigned word;
	int n = snprintf(command, sizeof(command), "%s ", program);

	MUST(cuMemAlloc(&at, 4096));
	MUST(cuMemsetD32(at, 41, 1024));
	MUST(cuCtxSynchronize());
	MUST(cuIpcGetMemHandle(&handle, at));
	for (size_t i = 0; i < sizeof(handle.reserved) && n > 0 && n < 380; i++)
		n += snprintf(command + n, sizeof(command) - (size_t)n, "%02x",
			(unsigned char)handle.reserved[i]);
	if (system(command))
		return 1;
	MUST(cuMemcpyDtoH(&word, at, sizeof(word)));
	printf("the parent reads %u\n", word);
	return 0;
}

int main(int argc, char **argv)
{
	CUcontext context;

	MUST(cuInit(0));
	MUST(cuDevicePrimaryCtxRetain(&context, 0));
	MUST(cuCtxSetCurrent(context));
	return argc > 1 && strlen(argv[1]) == 2 * sizeof(CUipcMemHandle) ? child(argv[1])
									 : parent(argv[0]);
}
