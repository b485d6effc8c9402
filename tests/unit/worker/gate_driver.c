/* SPDX-License-Identifier: Apache-2.0
 *
 * The software GPU with a gate before the loading of modules and before pinned memory: it opens
 * for one call when the test writes a byte to the pipe whose end is in $VCUDA_SOFTGPU_GATE. Its
 * own functions come before those of the library that it is linked with.
 */
#include <cuda.h>
#include <dlfcn.h>
#include <stdlib.h>
#include <unistd.h>

static int gate(void)
{
	const char *fd = getenv("VCUDA_SOFTGPU_GATE");
	char byte;

	return fd && read(atoi(fd), &byte, 1) != 1;
}

__attribute__((visibility("default"))) CUresult cuModuleLoadDataEx(CUmodule *module,
	const void *image, unsigned int n, CUjit_option *options, void **values)
{
	__typeof__(&cuModuleLoadDataEx) load;

	if (gate())
		return CUDA_ERROR_UNKNOWN;
	*(void **)&load = dlsym(RTLD_NEXT, "cuModuleLoadDataEx");
	return load(module, image, n, options, values);
}

__attribute__((visibility("default"))) CUresult cuMemHostAlloc(
	void **memory, size_t bytes, unsigned int flags)
{
	__typeof__(&cuMemHostAlloc) allocate;

	if (gate())
		return CUDA_ERROR_UNKNOWN;
	*(void **)&allocate = dlsym(RTLD_NEXT, "cuMemHostAlloc");
	return allocate(memory, bytes, flags);
}
