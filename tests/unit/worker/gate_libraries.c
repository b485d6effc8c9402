/* SPDX-License-Identifier: Apache-2.0
 *
 * A gate before calls of the software GPU's libraries that prepare something: it opens for one
 * when the test writes a byte to the pipe whose end is in $VCUDA_SOFTGPU_GATE.  With
 * $VCUDA_SOFTGPU_INSIDE the call waits for the GPU instead, while it holds the driver's lock
 * (locked_driver.c).  Linked once with each library; the worker calls what that library has.
 */
#include <dlfcn.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

/* What all libraries call an internal error is not 0. */
#define REFUSED 7

#define GATE(NAME, PARAMETERS, ...)                                                            \
	int NAME PARAMETERS;                                                                   \
	__attribute__((visibility("default"))) int NAME PARAMETERS                             \
	{                                                                                      \
		int(*next) PARAMETERS;                                                         \
                                                                                               \
		*(void **)&next = dlsym(RTLD_NEXT, #NAME);                                     \
		return next && gate_pass() ? next(__VA_ARGS__) : REFUSED;                      \
	}

static int gate_lock(int fd)
{
	volatile _Atomic int *inside =
		mmap(NULL, sizeof(*inside), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	int (*synchronize)(void), status;

	*(void **)&synchronize = dlsym(RTLD_NEXT, "cuCtxSynchronize");
	if ((void *)inside == MAP_FAILED || !synchronize)
		return 0;
	++*inside;
	status = synchronize();
	--*inside;
	return !status;
}

static int gate_pass(void)
{
	const char *fd = getenv("VCUDA_SOFTGPU_INSIDE");
	char byte;

	if (fd)
		return gate_lock(atoi(fd));
	fd = getenv("VCUDA_SOFTGPU_GATE");
	return !fd || read(atoi(fd), &byte, 1) == 1;
}

GATE(cufftMakePlan1d, (int plan, int nx, int type, int batch, size_t *bytes), plan, nx, type,
	batch, bytes)
GATE(cudnnBackendFinalize, (void *descriptor), descriptor)
GATE(cusolverDnSgetrf_bufferSize, (void *handle, int m, int n, void *a, int lda, int *size),
	handle, m, n, a, lda, size)
GATE(cusparseXcsrsort_bufferSizeExt,
	(void *handle, int m, int n, int count, void *rows, void *columns, size_t *bytes),
	handle, m, n, count, rows, columns, bytes)
