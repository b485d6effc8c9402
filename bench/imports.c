/* SPDX-License-Identifier: Apache-2.0
 *
 * What a driver takes for the memory of another process, as a worker maps tensors with names:
 * imported, mapped side by side into one range, opened for reading.
 *
 *     imports [COUNT [ROUNDS]]      medians in us of COUNT pieces of 2 MiB (300, 20)
 *
 * Natively: libcuda.so.1 is the machine's driver.  (The software GPU by LD_LIBRARY_PATH.)  The
 * last line says whether memory can be closed for writing while a kernel runs.
 */
#include <cuda.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/descriptors.h"
#include "common/wait.h"

enum { MOST = 1000, ROUNDS_MOST = 1000, THREADS_MOST = 8, PARTS = 4, KERNEL_MS = 200 };
#define PIECE (2ull << 20)

static void must(CUresult status, const char *what)
{
	const char *name = "?";

	if (!status)
		return;
	cuGetErrorName(status, &name);
	fprintf(stderr, "imports: %s: %s\n", what, name);
	exit(1);
}

static void fail(const char *what)
{
	fprintf(stderr, "imports: %s\n", what);
	exit(1);
}

/* ---- the process that owns it ---- */

static void own(int socket, unsigned count)
{
	CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
		.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
		.location.type = CU_MEM_LOCATION_TYPE_DEVICE};

	must(cuInit(0), "cuInit");
	for (unsigned i = 0; i < count; i++) {
		CUmemGenericAllocationHandle memory;
		int fd;

		must(cuMemCreate(&memory, PIECE, &prop, 0), "cuMemCreate");
		must(cuMemExportToShareableHandle(
			     &fd, memory, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0),
			"cuMemExportToShareableHandle");
		if (descriptors_send(socket, &i, sizeof(i), &fd, 1, 0))
			fail("a descriptor is not sent");
		close(fd);
	}
	/* Until the other one has ended. */
	(void)!read(socket, &count, 1);
	_exit(0);
}

/* ---- the one that imports ---- */

static struct {
	unsigned count, threads;
	int fds[MOST];
	CUmemGenericAllocationHandle memory[MOST];
	CUdeviceptr base;
	CUcontext context;
} piece;

static void import(unsigned i)
{
	must(cuMemImportFromShareableHandle(&piece.memory[i], (void *)(intptr_t)piece.fds[i],
		     CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR),
		"cuMemImportFromShareableHandle");
}

static void map(unsigned i)
{
	must(cuMemMap(piece.base + i * PIECE, PIECE, 0, piece.memory[i], 0), "cuMemMap");
}

static void let(CUdeviceptr at, size_t bytes, CUmemAccess_flags flags)
{
	const CUmemAccessDesc access = {
		.location.type = CU_MEM_LOCATION_TYPE_DEVICE, .flags = flags};

	must(cuMemSetAccess(at, bytes, &access, 1), "cuMemSetAccess");
}

static void *import_part(void *argument)
{
	must(cuCtxSetCurrent(piece.context), "cuCtxSetCurrent");
	for (unsigned i = *(unsigned *)argument; i < piece.count; i += piece.threads)
		import(i);
	return NULL;
}

/* A share of them side by side, to the end. */
static void *share(void *argument)
{
	unsigned t = *(unsigned *)argument, first = piece.count * t / piece.threads,
		 end = piece.count * (t + 1) / piece.threads;

	must(cuCtxSetCurrent(piece.context), "cuCtxSetCurrent");
	for (unsigned i = first; i < end; i++) {
		import(i);
		map(i);
	}
	if (first < end)
		let(piece.base + first * PIECE, (end - first) * PIECE,
			CU_MEM_ACCESS_FLAGS_PROT_READ);
	return NULL;
}

static void in_threads(unsigned threads, void *(*what)(void *))
{
	pthread_t thread[THREADS_MOST];
	unsigned number[THREADS_MOST];

	piece.threads = threads;
	for (unsigned t = 1; t < threads; t++) {
		number[t] = t;
		if (pthread_create(&thread[t], NULL, what, &number[t]))
			fail("no thread");
	}
	what(&(unsigned){0});
	for (unsigned t = 1; t < threads; t++)
		pthread_join(thread[t], NULL);
}

/* Times of import, map, access, all; THREADS 0: each piece is done before the next. SHARED:
 * each thread does all of its share, and the time is of all alone. */
static void round_of(unsigned threads, bool shared, uint64_t took[PARTS])
{
	uint64_t begin = wait_now(), at = begin;

	memset(took, 0, PARTS * sizeof(*took));
	if (shared)
		in_threads(threads, share);
	for (unsigned i = 0; !threads && i < piece.count; i++) {
		at = wait_now();
		import(i);
		took[0] += wait_now() - at;
		at = wait_now();
		map(i);
		took[1] += wait_now() - at;
		at = wait_now();
		let(piece.base + i * PIECE, PIECE, CU_MEM_ACCESS_FLAGS_PROT_READ);
		took[2] += wait_now() - at;
	}
	if (threads && !shared) {
		in_threads(threads, import_part);
		took[0] = wait_now() - at;
		at = wait_now();
		for (unsigned i = 0; i < piece.count; i++)
			map(i);
		took[1] = wait_now() - at;
		at = wait_now();
		let(piece.base, piece.count * PIECE, CU_MEM_ACCESS_FLAGS_PROT_READ);
		took[2] = wait_now() - at;
	}
	took[3] = wait_now() - begin;
	must(cuMemUnmap(piece.base, piece.count * PIECE), "cuMemUnmap");
	for (unsigned i = 0; i < piece.count; i++)
		must(cuMemRelease(piece.memory[i]), "cuMemRelease");
}

static int by_size(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

static void row(const char *name, unsigned threads, bool shared, unsigned rounds)
{
	static uint64_t took[PARTS][ROUNDS_MOST];

	for (unsigned r = 0; r < rounds; r++) {
		uint64_t one[PARTS];

		round_of(threads, shared, one);
		for (unsigned p = 0; p < PARTS; p++)
			took[p][r] = one[p];
	}
	printf("%-34s", name);
	for (unsigned p = 0; p < PARTS; p++) {
		qsort(took[p], rounds, sizeof(took[p][0]), by_size);
		printf(" %10.1f", (double)took[p][rounds / 2] / 1e3);
	}
	printf("\n");
}

/* ---- beside a kernel ---- */

static const char kernel[] =
	".version 7.0\n.target sm_70\n.address_size 64\n"
	".visible .entry spin(.param .u64 ns) {\n"
	" .reg .b64 %n, %b, %e; .reg .pred %p;\n"
	" ld.param.u64 %n, [ns]; mov.u64 %b, %globaltimer;\n"
	"again: mov.u64 %e, %globaltimer; sub.u64 %e, %e, %b; setp.lt.u64 %p, %e, %n;\n"
	" @%p bra again; ret; }\n";

static void beside_kernel(void)
{
	uint64_t ns = KERNEL_MS * 1000000ull, begin, access, all;
	void *parameters[] = {&ns};
	CUfunction spin;
	CUmodule module;

	must(cuModuleLoadData(&module, kernel), "cuModuleLoadData");
	must(cuModuleGetFunction(&spin, module, "spin"), "cuModuleGetFunction");
	import(0);
	map(0);
	let(piece.base, PIECE, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
	ns = 0;
	must(cuLaunchKernel(spin, 1, 1, 1, 1, 1, 1, 0, NULL, parameters, NULL), "a launch");
	must(cuCtxSynchronize(), "cuCtxSynchronize");
	ns = KERNEL_MS * 1000000ull;
	begin = wait_now();
	must(cuLaunchKernel(spin, 1, 1, 1, 1, 1, 1, 0, NULL, parameters, NULL), "a launch");
	let(piece.base, PIECE, CU_MEM_ACCESS_FLAGS_PROT_READ);
	access = wait_now() - begin;
	must(cuCtxSynchronize(), "cuCtxSynchronize");
	all = wait_now() - begin;
	printf("read-only beside a kernel of %.1f ms: after %.3f ms\n", (double)all / 1e6,
		(double)access / 1e6);
}

int main(int argc, char **argv)
{
	unsigned rounds = argc > 2 ? (unsigned)atoi(argv[2]) : 20;
	int pair[2], status;
	CUdevice device;
	pid_t owner;

	piece.count = argc > 1 ? (unsigned)atoi(argv[1]) : 300;
	if (!piece.count || piece.count > MOST || !rounds || rounds > ROUNDS_MOST)
		fail("imports [COUNT [ROUNDS]], each from 1 to 1000");
	if (socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair))
		fail("no socket pair");
	owner = fork();
	if (!owner) {
		close(pair[0]);
		own(pair[1], piece.count);
	}
	close(pair[1]);
	for (unsigned i = 0; i < piece.count; i++) {
		unsigned which;

		if (descriptors_receive(pair[0], &which, sizeof(which), &piece.fds[i], 1, 0) !=
				(ssize_t)sizeof(which) ||
			piece.fds[i] < 0)
			fail("a descriptor did not come");
	}
	must(cuInit(0), "cuInit");
	must(cuDeviceGet(&device, 0), "cuDeviceGet");
	must(cuDevicePrimaryCtxRetain(&piece.context, device), "cuDevicePrimaryCtxRetain");
	must(cuCtxSetCurrent(piece.context), "cuCtxSetCurrent");
	must(cuMemAddressReserve(&piece.base, piece.count * PIECE, PIECE, 0, 0),
		"cuMemAddressReserve");
	printf("%u pieces of 2 MiB, us            %10s %10s %10s %10s\n", piece.count, "import",
		"map", "access", "all");
	row("each imported, mapped, opened", 0, false, rounds);
	row("all opened at once", 1, false, rounds);
	row("the same, imported by 2 threads", 2, false, rounds);
	row("the same, imported by 4 threads", 4, false, rounds);
	row("all of it by 2 threads", 2, true, rounds);
	row("all of it by 4 threads", 4, true, rounds);
	beside_kernel();
	close(pair[0]);
	waitpid(owner, &status, 0);
	return 0;
}
