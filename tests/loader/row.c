/* SPDX-License-Identifier: Apache-2.0
 *
 * A CUDA runtime without symbols is known by the row of functions that it has in each of three
 * times, and its functions by their names, however they load these; one with another row is
 *not.
 *
 *	row KNOWN.so ... -- UNKNOWN.so ...
 */
#include "shim/loader/stripped.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

static const char *const names[] = {"cudaGetExportTable", "__cudaRegisterFatBinary",
	"__cudaRegisterFatBinaryEnd", "__cudaUnregisterFatBinary", "__cudaRegisterVar",
	"__cudaRegisterManagedVar", "__cudaRegisterHostVar", "__cudaRegisterFunction",
	"__cudaInitModule", "__cudaPushCallConfiguration", "__cudaPopCallConfiguration",
	"__cudaGetKernel", "__cudaLaunchKernel", "__cudaLaunchKernel_ptsz", "cudaMalloc",
	"cudaGetDeviceProperties_v2"};

#define NAMES (sizeof(names) / sizeof(*names))

struct seen {
	const char *path;
	int found;
	size_t right, wrong;
	uint64_t size; /* the last function's */
};

static int look(struct dl_phdr_info *info, size_t size, void *data)
{
	struct seen *seen = data;
	struct stripped runtime;
	struct image_function function;

	(void)size;
	if (strcmp(info->dlpi_name, seen->path))
		return 0;
	seen->found = stripped_find(&runtime, info);
	for (size_t at = 0; seen->found && stripped_next(&runtime, &at, &function);) {
		size_t i = seen->right;

		if (i < NAMES && !strcmp(function.name, names[i]) && function.value % 16 == 0)
			seen->right++;
		else
			seen->wrong++;
		seen->size = function.size;
	}
	return 1;
}

int main(int argc, char **argv)
{
	int known = 1, failures = 0;

	for (int i = 1; i < argc; i++) {
		struct seen seen = {.path = argv[i]};
		int right;

		if (!strcmp(argv[i], "--")) {
			known = 0;
			continue;
		}
		if (!dlopen(argv[i], RTLD_NOW)) {
			fprintf(stderr, "%s\n", dlerror());
			return 1;
		}
		dl_iterate_phdr(look, &seen);
		right = known ? seen.found && seen.right == NAMES && !seen.wrong &&
					seen.size == 0x41
			      : !seen.found;
		failures += !right;
		printf("%s %s: %s, %zu of its functions\n", right ? "pass " : "fail ", argv[i],
			seen.found ? "known" : "not known", seen.right);
	}
	return failures != 0;
}
