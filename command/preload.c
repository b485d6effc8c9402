/* SPDX-License-Identifier: Apache-2.0
 *
 * What LD_PRELOAD has to name.  The loader looks for a program's own NEEDED libraries before it
 * looks for those of a preloaded one, so the fronts stand in the list themselves: then a NEEDED
 * libcudart.so.13 is found by SONAME, whether NVIDIA's file is installed or not.
 */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command/command.h"
#include "command/spawn.h"

int preload_list(char *list, size_t n, struct error *error)
{
	static const char *const names[] = {"libutilities.so", "libvcuda.so",
		"libvcuda-cuda.so", "libvcuda-cudart12.so", "libvcuda-cudart13.so",
		"libvcuda-cublas12.so", "libvcuda-cublas13.so", "libvcuda-cudnn8.so",
		"libvcuda-cudnn9.so", "libvcuda-nvml.so"};
	size_t at = 0;

	list[0] = 0;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		char path[PATH_MAX];
		int used;

		if (spawn_library(names[i], path, sizeof(path)) < 0)
			return error_set(error, 0,
				"no %s in ../lib or ../lib/vcuda beside this command",
				names[i]);
		used = snprintf(list + at, n - at, "%s%s", at ? ":" : "", path);
		if (used < 0 || (size_t)used >= n - at)
			return error_set(error, ENAMETOOLONG, "the path of %s", names[i]);
		at += (size_t)used;
	}
	return 0;
}

int command_preload(int argc, char **argv)
{
	char list[PRELOAD_MAX];
	struct error error;

	(void)argv;
	if (argc > 1) {
		error_set(&error, 0, "preload: takes no arguments");
		return command_complain(&error, 2);
	}
	if (preload_list(list, sizeof(list), &error) < 0) {
		error_wrap(&error, 0, "preload");
		return command_complain(&error, 1);
	}
	puts(list);
	return 0;
}
