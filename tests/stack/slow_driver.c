/* SPDX-License-Identifier: Apache-2.0
 *
 * The software GPU with one slow call: loading a module takes as long as compiling a large one
 * does.  Its own function comes before that of the library that it is linked with.
 */
#include <cuda.h>
#include <dlfcn.h>
#include <time.h>

#define SLOW_SECONDS 9

__attribute__((visibility("default"))) CUresult cuModuleLoadDataEx(CUmodule *module,
	const void *image, unsigned int n, CUjit_option *options, void **values)
{
	__typeof__(&cuModuleLoadDataEx) load;
	struct timespec left = {.tv_sec = SLOW_SECONDS};

	*(void **)&load = dlsym(RTLD_NEXT, "cuModuleLoadDataEx");
	while (nanosleep(&left, &left))
		;
	return load(module, image, n, options, values);
}
