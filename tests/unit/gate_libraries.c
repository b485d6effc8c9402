/* SPDX-License-Identifier: Apache-2.0
 *
 * A gate before calls of the software GPU's libraries that prepare something: it opens for one
 * when the test writes a byte to the pipe whose end is in $VCUDA_SOFTGPU_GATE.  Linked once
 * with each library; the worker calls what that library has.
 */
#include <dlfcn.h>
#include <stdlib.h>
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

static int gate_pass(void)
{
	const char *fd = getenv("VCUDA_SOFTGPU_GATE");
	char byte;

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
