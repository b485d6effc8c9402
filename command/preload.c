/* SPDX-License-Identifier: Apache-2.0
 *
 * What LD_PRELOAD has to name: the files that preload.list beside them lists, which the build
 * writes (shim/module.mk).  The loader looks for a program's own NEEDED libraries before it
 * looks for those of a preloaded one, so every name stands in the list itself: then a NEEDED
 * libcublas.so.13 is found by SONAME, whether NVIDIA's file is installed or not.
 */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "command/command.h"
#include "command/spawn.h"

#define PRELOAD_NAMES "preload.list"

int preload_list(char *list, size_t n, struct error *error)
{
	cleanup_stream FILE *names = NULL;
	char path[PATH_MAX], name[NAME_MAX + 2];
	size_t folder, at = 0;

	if (spawn_library(PRELOAD_NAMES, path, sizeof(path)) < 0)
		return error_set(error, 0,
			"no " PRELOAD_NAMES " in ../lib or ../lib/vcuda beside this command");
	names = fopen(path, "re");
	if (!names)
		return error_set(error, errno, "%s", path);
	folder = (size_t)(strrchr(path, '/') + 1 - path);

	list[0] = 0;
	while (fgets(name, sizeof(name), names)) {
		int used;

		name[strcspn(name, "\n")] = 0;
		if (!name[0] || strpbrk(name, "/: "))
			return error_set(error, 0, "%s: '%s' is no file name", path, name);
		used = snprintf(
			list + at, n - at, "%s%.*s%s", at ? ":" : "", (int)folder, path, name);
		if (used < 0 || (size_t)used >= n - at)
			return error_set(error, ENAMETOOLONG, "the path of %s", name);
		if (access(list + at + !!at, R_OK))
			return error_set(
				error, errno, "%s, which %s names", list + at + !!at, path);
		at += (size_t)used;
	}
	if (ferror(names) || !at)
		return error_set(error, EIO, "%s: it names no library", path);
	return 0;
}

static const char usage[] = "vcuda preload\n"
			    "\n"
			    "  LD_PRELOAD=$(vcuda preload) PROGRAM …   as vcuda run does it\n";

int command_preload(int argc, char **argv)
{
	char list[PRELOAD_MAX];
	struct error error;

	if (command_helped(argc, argv, usage))
		return 0;
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
