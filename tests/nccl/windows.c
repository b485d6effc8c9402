/* SPDX-License-Identifier: Apache-2.0
 *
 * Windows and one-sided operations: what ranks of one process, and of two, put into each
 * other's memory, byte by byte, with signals, waits for several ranks and several signals, and
 * puts of a rank to itself.
 */
#include <sys/wait.h>
#include <unistd.h>

#include "tests/nccl/check.h"

enum { BYTES = 1 << 16, PART = 5000, ROUNDS = 30 };

static unsigned char expected[BYTES], got[BYTES], pattern[BYTES];

static void *out[RANKS], *in[RANKS];
static ncclWindow_t out_windows[RANKS], in_windows[RANKS];

static unsigned char byte_of(int rank, int round, int i)
{
	return (unsigned char)(i * 7 + rank * 101 + round * 13 + (i >> 8));
}

static void fill(unsigned char *at, int rank, int round)
{
	for (int i = 0; i < BYTES; i++)
		at[i] = byte_of(rank, round, i);
}

/* That other processes can map it is what a window needs. */
static void *window_memory(void)
{
	CUmemGenericAllocationHandle memory;
	int shared;
	void *at;

	NCCL(ncclMemAlloc(&at, BYTES));
	CUDA(cuMemRetainAllocationHandle(&memory, at));
	CUDA(cuMemExportToShareableHandle(
		&shared, memory, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
	close(shared);
	CUDA(cuMemRelease(memory));
	CUDA(cuMemsetD8((CUdeviceptr)(uintptr_t)at, 0xee, BYTES));
	CUDA(cuCtxSynchronize()); /* the ranks' streams do not wait for a fill */
	return at;
}

static void is(const char *what, int rank, CUstream stream, const void *at)
{
	CUDA(cuMemcpyDtoHAsync(got, (CUdeviceptr)(uintptr_t)at, BYTES, stream));
	CUDA(cuStreamSynchronize(stream));
	for (int i = 0; i < BYTES; i++)
		if (got[i] != expected[i])
			DIE("%s: rank %d: byte %d is %#x, not %#x", what, rank, i, got[i],
				expected[i]);
}

/* Natively there are GPUs and networks that have none; then this program has nothing to show.
 */
static void need(ncclWindow_t window)
{
	if (window)
		return;
	printf("skip: this NCCL makes no windows here\n");
	exit(77);
}

/* --- in one process ----------------------------------------------------------------------- */

static void windows_begin(void)
{
	void *at;

	for (int i = 0; i < RANKS; i++) {
		use(i);
		out[i] = window_memory();
		in[i] = window_memory();
	}
	NCCL(ncclGroupStart());
	for (int i = 0; i < RANKS; i++) {
		NCCL(ncclCommWindowRegister(sides[i].comm, out[i], BYTES, &out_windows[i],
			NCCL_WIN_COLL_SYMMETRIC));
		NCCL(ncclCommWindowRegister(
			sides[i].comm, in[i], BYTES, &in_windows[i], NCCL_WIN_COLL_SYMMETRIC));
	}
	NCCL(ncclGroupEnd());
	for (int i = 0; i < RANKS; i++) {
		need(in_windows[i]);
		NCCL(ncclWinGetUserPtr(sides[i].comm, in_windows[i], &at));
		if (at != in[i])
			DIE("rank %d: the window is at %p, not %p", i, at, in[i]);
	}
}

static void waits(int peer, int count)
{
	ncclWaitSignalDesc_t wait = {.opCnt = count};

	NCCL(ncclGroupStart());
	for (int i = 0; i < RANKS; i++) {
		wait.peer = peer < 0 ? !i : i;
		NCCL(ncclWaitSignal(1, &wait, sides[i].comm, sides[i].stream));
	}
	NCCL(ncclGroupEnd());
}

enum { OTHER = -1, ITSELF = 0 };

/* PARTS pieces each, to the other rank or to itself, and one wait for all. */
static void exchange(const char *what, int peer, int round, int parts)
{
	for (int i = 0; i < RANKS; i++) {
		fill(pattern, i, round);
		put(i, out[i], pattern, BYTES);
		CUDA(cuMemsetD8Async(
			(CUdeviceptr)(uintptr_t)in[i], 0xee, BYTES, sides[i].stream));
		CUDA(cuStreamSynchronize(sides[i].stream)); /* before the other puts */
	}
	NCCL(ncclGroupStart());
	for (int i = 0; i < RANKS; i++)
		for (int p = 0; p < parts; p++) {
			size_t at = (size_t)p * PART;

			NCCL(ncclPutSignal((char *)out[i] + at, PART / 4, ncclFloat,
				peer < 0 ? !i : i, in_windows[i], at + 256, 0, 0, 0,
				sides[i].comm, sides[i].stream));
		}
	NCCL(ncclGroupEnd());
	waits(peer, parts);
	for (int i = 0; i < RANKS; i++) {
		memset(expected, 0xee, BYTES);
		fill(pattern, peer < 0 ? !i : i, round);
		memcpy(expected + 256, pattern, (size_t)parts * PART);
		use(i);
		is(what, i, sides[i].stream, in[i]);
	}
}

/* Everybody signals everybody, and waits for all in one call. */
static void barrier(void)
{
	ncclWaitSignalDesc_t all[RANKS];

	for (int k = 0; k < RANKS; k++)
		all[k] = (ncclWaitSignalDesc_t){.opCnt = 1, .peer = k};
	NCCL(ncclGroupStart());
	for (int i = 0; i < RANKS; i++)
		for (int k = 0; k < RANKS; k++)
			NCCL(ncclSignal(k, 0, 0, 0, sides[i].comm, sides[i].stream));
	NCCL(ncclGroupEnd());
	NCCL(ncclGroupStart());
	for (int i = 0; i < RANKS; i++)
		NCCL(ncclWaitSignal(RANKS, all, sides[i].comm, sides[i].stream));
	NCCL(ncclGroupEnd());
}

/* Without a window, of another communicator's, or of memory that is in none. */
static void arguments(void)
{
	ncclWaitSignalDesc_t none = {.opCnt = 0};
	ncclWindow_t window = (ncclWindow_t)&none;
	ncclComm_t comm = sides[0].comm;
	CUstream stream = sides[0].stream;
	void *at;

	use(0);
	ANSWERS(ncclCommWindowRegister(comm, NULL, BYTES, &window, 0), ncclInvalidArgument);
	if (window)
		DIE("a window of nothing");
	ANSWERS(ncclCommWindowRegister(comm, in[0], 0, &window, 0), ncclInvalidArgument);
	ANSWERS(ncclCommWindowRegister(comm, in[0], BYTES, NULL, 0), ncclInvalidArgument);
	ANSWERS(ncclCommWindowRegister(NULL, in[0], BYTES, &window, 0), ncclInvalidArgument);
	ANSWERS(ncclCommWindowDeregister(comm, NULL), ncclSuccess);
	ANSWERS(ncclWinGetUserPtr(comm, NULL, &at), ncclInvalidArgument);
	ANSWERS(ncclWinGetUserPtr(comm, in_windows[0], NULL), ncclInvalidArgument);
	ANSWERS(ncclPutSignal(out[0], 1, ncclInt8, 1, NULL, 0, 0, 0, 0, comm, stream),
		ncclInvalidArgument);
	ANSWERS(ncclPutSignal(NULL, 1, ncclInt8, 1, in_windows[0], 0, 0, 0, 0, comm, stream),
		ncclInvalidArgument);
	ANSWERS(ncclPutSignal(out[0], 1, ncclInt8, 1, in_windows[0], 0, 0, 0, 1, comm, stream),
		ncclInvalidArgument);
	ANSWERS(ncclSignal(1, 0, 0, 1, comm, stream), ncclInvalidArgument);
	ANSWERS(ncclWaitSignal(1, &none, comm, stream), ncclInvalidArgument);
	ANSWERS(ncclWaitSignal(0, &none, comm, stream), ncclInvalidArgument);
	ANSWERS(ncclWaitSignal(1, NULL, comm, stream), ncclInvalidArgument);
}

static void in_one_process(void)
{
	ranks_begin();
	windows_begin();
	exchange("to the other", OTHER, 0, 1);
	exchange("in pieces", OTHER, 1, 6);
	exchange("to itself", ITSELF, 2, 3);
	barrier();
	exchange("again", OTHER, 3, 2);
	arguments();
	ranks_wait();
	for (int i = 0; i < RANKS; i++) {
		use(i);
		NCCL(ncclCommWindowDeregister(sides[i].comm, out_windows[i]));
		NCCL(ncclCommWindowDeregister(sides[i].comm, in_windows[i]));
		NCCL(ncclMemFree(out[i]));
		NCCL(ncclMemFree(in[i]));
	}
	NCCL(ncclMemFree(NULL));
	ranks_end();
}

/* --- between processes -------------------------------------------------------------------- */

/* There and back: rank 1 waits for what rank 0 put, and puts it back as it came. */
static void rounds(
	int rank, ncclComm_t comm, CUstream stream, void *from, void *to, ncclWindow_t window)
{
	ncclWaitSignalDesc_t wait = {.opCnt = 1, .peer = !rank};

	for (int n = 0; n < ROUNDS; n++) {
		if (!rank) {
			fill(pattern, 0, n);
			CUDA(cuMemcpyHtoDAsync(
				(CUdeviceptr)(uintptr_t)from, pattern, BYTES, stream));
			NCCL(ncclPutSignal(
				from, BYTES, ncclUint8, 1, window, 0, 0, 0, 0, comm, stream));
			NCCL(ncclWaitSignal(1, &wait, comm, stream));
		} else {
			NCCL(ncclWaitSignal(1, &wait, comm, stream));
			NCCL(ncclPutSignal(
				to, BYTES, ncclUint8, 0, window, 0, 0, 0, 0, comm, stream));
		}
		fill(expected, 0, n);
		if (!rank) /* rank 1's is overwritten as soon as this one has seen it */
			is("round", rank, stream, to);
	}
}

static int run(int rank)
{
	CUcontext context;
	CUstream stream;
	ncclUniqueId id;
	ncclComm_t comm;
	ncclWindow_t window, source;
	void *from, *to;

	alarm(50);
	CUDA(cuInit(0));
	CUDA(cuDevicePrimaryCtxRetain(&context, rank));
	CUDA(cuCtxSetCurrent(context));
	CUDA(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	if (read(3, &id, sizeof(id)) != sizeof(id))
		DIE("rank %d has no id", rank);
	NCCL(ncclCommInitRank(&comm, RANKS, id, rank));
	from = window_memory();
	to = window_memory();
	NCCL(ncclCommWindowRegister(comm, from, BYTES, &source, NCCL_WIN_COLL_SYMMETRIC));
	NCCL(ncclCommWindowRegister(comm, to, BYTES, &window, NCCL_WIN_COLL_SYMMETRIC));
	need(window);
	rounds(rank, comm, stream, from, to, window);
	CUDA(cuStreamSynchronize(stream));
	NCCL(ncclCommWindowDeregister(comm, source)); /* the other goes with its communicator */
	NCCL(ncclCommDestroy(comm));
	NCCL(ncclMemFree(from));
	NCCL(ncclMemFree(to));
	return 0;
}

static void between_processes(void)
{
	pid_t pids[RANKS];
	ncclUniqueId id;
	int ends[2], status;
	char number[2] = "0";

	NCCL(ncclGetUniqueId(&id));
	if (pipe(ends))
		DIE("no pipe");
	for (int i = 0; i < RANKS; i++) {
		if (write(ends[1], &id, sizeof(id)) != sizeof(id))
			DIE("no pipe");
		number[0] = (char)('0' + i);
		pids[i] = fork();
		if (pids[i])
			continue;
		dup2(ends[0], 23);
		dup2(23, 3);
		execl("/proc/self/exe", "windows", number, (char *)NULL);
		_exit(126);
	}
	for (int i = 0; i < RANKS; i++)
		if (waitpid(pids[i], &status, 0) != pids[i] || status)
			DIE("rank %d ended with %#x", i, status);
}

int main(int argc, char **argv)
{
	if (argc == 2)
		return run(atoi(argv[1]));
	alarm(55);
	in_one_process();
	between_processes();
	printf("put, in one process and between two\n");
	return 0;
}
