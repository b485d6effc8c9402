/* SPDX-License-Identifier: Apache-2.0
 *
 * Which files are ours, by name.
 */
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "shim/loader/loader.h"

bool loader_is_ours(const char *path)
{
	char real[PATH_MAX];
	const char *file = realpath(path, real) ? strrchr(real, '/') : NULL;

	/* This library itself stands for libcudart.so.12 (loader.mk). */
	return file && (!strncmp(file, "/libvcuda", 9) || !strcmp(file, "/libutilities.so"));
}
