/* SPDX-License-Identifier: Apache-2.0
 *
 * The software GPU, which counts what the worker asks of it to map tensors: into the file that
 * VCUDA_SOFTGPU_COUNTS names, from all processes that open it.  Its own functions come before
 * those of the library that it is linked with.
 */
#include <cuda.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

enum { IMPORTS, MAPS, ACCESSES, COUNTS };
static uint64_t unshared[COUNTS], *counts = unshared;

/* The agent has its sandbox off. */
__attribute__((constructor)) static void begin(void)
{
	const char *path = getenv("VCUDA_SOFTGPU_COUNTS");
	int fd = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
	void *at = fd < 0 ? MAP_FAILED
			  : mmap(NULL, sizeof(unshared), PROT_READ | PROT_WRITE, MAP_SHARED, fd,
				    0);

	if (at != MAP_FAILED)
		counts = at;
	if (fd >= 0)
		close(fd);
}

static void *count(int what, const char *name)
{
	__atomic_fetch_add(&counts[what], 1, __ATOMIC_RELAXED);
	return dlsym(RTLD_NEXT, name);
}

EXPORT CUresult cuMemImportFromShareableHandle(
	CUmemGenericAllocationHandle *handle, void *from, CUmemAllocationHandleType type)
{
	return ((__typeof__(&cuMemImportFromShareableHandle))count(
		IMPORTS, "cuMemImportFromShareableHandle"))(handle, from, type);
}

EXPORT CUresult cuMemMap(CUdeviceptr at, size_t bytes, size_t offset,
	CUmemGenericAllocationHandle handle, unsigned long long flags)
{
	return ((__typeof__(&cuMemMap))count(MAPS, "cuMemMap"))(
		at, bytes, offset, handle, flags);
}

EXPORT CUresult cuMemSetAccess(
	CUdeviceptr at, size_t bytes, const CUmemAccessDesc *access, size_t n)
{
	return ((__typeof__(&cuMemSetAccess))count(ACCESSES, "cuMemSetAccess"))(
		at, bytes, access, n);
}
