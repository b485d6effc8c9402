/* SPDX-License-Identifier: Apache-2.0
 *
 * What a program does first, done by `vcuda doctor`: the driver's library is loaded and cuInit
 * called, so sidecar, shared memory, agent and worker are all in it.  In a process of its own,
 * `vcuda doctor --attach`, since a library that waits is ended from outside.
 */
#include <cuda.h>
#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>

#include "command/command.h"
#include "command/spawn.h"

#define ATTACH_SYMBOL(name) ((__typeof__(&name))dlsym(library, #name))

/* One line on stdout. Why it failed is what the library says on stderr. */
int command_attach(void)
{
	char path[PATH_MAX], name[128] = "?";
	struct error error;
	void *library;
	int count = 0;
	CUresult status;

	library = spawn_library("libvcuda-cuda.so", path, sizeof(path)) < 0
			  ? NULL
			  : dlopen(path, RTLD_NOW);
	if (!library) {
		error_set(&error, 0, "libvcuda-cuda.so cannot be loaded: install all of vcuda");
		return command_complain(&error, 1);
	}
	status = ATTACH_SYMBOL(cuInit)(0);
	if (!status)
		status = ATTACH_SYMBOL(cuDeviceGetCount)(&count);
	if (status) {
		printf("cuInit answers %d\n", (int)status);
		return 1;
	}
	ATTACH_SYMBOL(cuDeviceGetName)(name, sizeof(name), 0);
	printf("a program gets %d GPU%s: %s%s\n", count, count == 1 ? "" : "s", name,
		count > 1 ? ", …" : "");
	return 0;
}
