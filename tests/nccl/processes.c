/* SPDX-License-Identifier: Apache-2.0
 *
 * Ranks in two processes, which meet by an id; one that dies, and one that comes on a device
 * that another has.
 *
 *	processes alive     without the one that dies, which NVIDIA does not see over NVLink
 */
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/nccl/check.h"

enum { COUNT = 5000 };

/* What a process does: this program again, as a worker cannot be had by fork. */
static void child(const char *what, int rank, int device, const ncclUniqueId *id, pid_t *pid)
{
	char hex[2 * sizeof(*id) + 1], numbers[2][8];

	for (size_t i = 0; i < sizeof(*id); i++)
		snprintf(hex + 2 * i, 3, "%02x", (unsigned char)id->internal[i]);
	snprintf(numbers[0], sizeof(numbers[0]), "%d", rank);
	snprintf(numbers[1], sizeof(numbers[1]), "%d", device);
	*pid = fork();
	if (*pid)
		return;
	execl("/proc/self/exe", "processes", what, numbers[0], numbers[1], hex, (char *)NULL);
	_exit(126);
}

/* The exit status; 128 + the signal's number. */
static int ended(pid_t pid)
{
	int status;

	for (int i = 0; i < 400; i++) {
		pid_t got = waitpid(pid, &status, WNOHANG);

		if (got == pid)
			return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
		usleep(100000);
	}
	kill(pid, SIGKILL);
	DIE("a rank does not end");
}

static void add(ncclComm_t comm, CUstream stream, int rank)
{
	float in[COUNT], out[COUNT];
	CUdeviceptr at;

	for (int i = 0; i < COUNT; i++)
		in[i] = (float)(i * (rank + 1));
	CUDA(cuMemAlloc(&at, sizeof(in)));
	for (int n = 0; n < 20; n++) {
		CUDA(cuMemcpyHtoDAsync(at, in, sizeof(in), stream));
		NCCL(ncclAllReduce((void *)(uintptr_t)at, (void *)(uintptr_t)at, COUNT,
			ncclFloat, ncclSum, comm, stream));
		CUDA(cuMemcpyDtoHAsync(out, at, sizeof(out), stream));
		CUDA(cuStreamSynchronize(stream));
		for (int i = 0; i < COUNT; i++)
			if (out[i] != (float)(3 * i))
				DIE("rank %d: element %d is %f", rank, i, out[i]);
	}
	CUDA(cuMemFree(at));
}

/* The other rank is killed: that is an asynchronous error, and the communicator is aborted. */
static void lose(ncclComm_t comm, CUstream stream, int rank)
{
	ncclResult_t error = ncclSuccess;
	CUdeviceptr at;

	if (rank)
		kill(getpid(), SIGKILL);
	CUDA(cuMemAlloc(&at, 64));
	NCCL(ncclAllReduce((void *)(uintptr_t)at, (void *)(uintptr_t)at, 16, ncclFloat, ncclSum,
		comm, stream));
	for (int i = 0; i < 300 && !error; i++) {
		NCCL(ncclCommGetAsyncError(comm, &error));
		usleep(100000);
	}
	if (error != ncclRemoteError)
		DIE("the other rank is gone, and the error is %d (%s)", (int)error,
			ncclGetLastError(comm));
	NCCL(ncclCommAbort(comm));
	CUDA(cuStreamSynchronize(stream)); /* what waited for it goes on */
}

static int run(const char *what, int rank, int device, const char *hex)
{
	ncclUniqueId id;
	CUcontext context;
	CUstream stream;
	ncclComm_t comm;
	ncclResult_t made;
	unsigned byte;

	for (size_t i = 0; i < sizeof(id); i++) {
		sscanf(hex + 2 * i, "%2x", &byte);
		id.internal[i] = (char)byte;
	}
	CUDA(cuInit(0));
	CUDA(cuDevicePrimaryCtxRetain(&context, device));
	CUDA(cuCtxSetCurrent(context));
	CUDA(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	made = ncclCommInitRank(&comm, 2, id, rank);
	if (!strcmp(what, "same")) {
		if (made != ncclInvalidUsage ||
			!strstr(ncclGetLastError(NULL), "Duplicate GPU"))
			DIE("one device twice: %d (%s)", (int)made, ncclGetLastError(NULL));
		return 0;
	}
	if (made)
		DIE("rank %d: %d (%s)", rank, (int)made, ncclGetLastError(NULL));
	if (!strcmp(what, "lose")) {
		lose(comm, stream, rank);
		return 0;
	}
	add(comm, stream, rank);
	NCCL(ncclCommFinalize(comm));
	NCCL(ncclCommDestroy(comm));
	return 0;
}

static void both(const char *what, int other_device, int other_end)
{
	ncclUniqueId id;
	pid_t pids[2];
	int got[2];

	NCCL(ncclGetUniqueId(&id));
	child(what, 0, 0, &id, &pids[0]);
	child(what, 1, other_device, &id, &pids[1]);
	for (int i = 0; i < 2; i++)
		got[i] = ended(pids[i]);
	if (got[0] || got[1] != other_end)
		DIE("%s: the ranks ended with %d and %d", what, got[0], got[1]);
}

/* One that nobody else comes to: the agent's nccl.wait ends it. */
static void late(void)
{
	ncclUniqueId id;
	ncclComm_t comm;

	use(0);
	NCCL(ncclGetUniqueId(&id));
	ANSWERS(ncclCommInitRank(&comm, 2, id, 0), ncclSystemError);
	puts(ncclGetLastError(NULL));
}

int main(int argc, char **argv)
{
	if (argc == 5)
		return run(argv[1], atoi(argv[2]), atoi(argv[3]), argv[4]);
	devices_begin();
	if (argc == 2 && !strcmp(argv[1], "late")) {
		late();
		return 0;
	}
	both("add", 1, 0);
	both("same", 0, 0);
	if (argc == 2 && !strcmp(argv[1], "alive")) {
		puts("two processes added; one device for both is an error");
		return 0;
	}
	both("lose", 1, 128 + SIGKILL);
	puts("two processes added; one device for both, and a rank that died, are errors");
	return 0;
}
