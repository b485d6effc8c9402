/* SPDX-License-Identifier: Apache-2.0
 *
 * The software GPU with a gate before the loading of modules: it opens for one call when the
 * test writes a byte to the pipe whose end is in $VCUDA_SOFTGPU_GATE.  Its own function comes
 * before that of the library that it is linked with.
 */
#include <cuda.h>
#include <dlfcn.h>
#include <stdlib.h>
#include <unistd.h>

__attribute__((visibility("default"))) CUresult cuModuleLoadDataEx(CUmodule *module,
	const void *image, unsigned int n, CUjit_option *options, void **values)
{
	__typeof__(&cuModuleLoadDataEx) load;
	const char *gate = getenv("VCUDA_SOFTGPU_GATE");
	char byte;

	if (gate && read(atoi(gate), &byte, 1) != 1)
		return CUDA_ERROR_UNKNOWN;
	*(void **)&load = dlsym(RTLD_NEXT, "cuModuleLoadDataEx");
	return load(module, image, n, options, values);
}
