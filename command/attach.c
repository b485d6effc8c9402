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

/* Which of COUNT devices reach each other's memory, in words; "": there is one only. */
static const char *peers(void *library, int count)
{
	int able = 0, pairs = count * (count - 1);

	for (int i = 0; i < pairs; i++) {
		int one = i / (count - 1), other = i % (count - 1), can = 0;

		other += other >= one;
		if (!ATTACH_SYMBOL(cuDeviceCanAccessPeer)(&can, one, other) && can)
			able++;
	}
	return !pairs	       ? ""
	       : able == pairs ? "; they reach each other's memory"
	       : able	       ? "; some reach each other's memory (vcuda smi topo -p2p r)"
		      : "; none reaches another one's memory, copies between them work";
}

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
	printf("a program gets %d GPU%s: %s%s%s\n", count, count == 1 ? "" : "s", name,
		count > 1 ? ", …" : "", peers(library, count));
	return 0;
}
