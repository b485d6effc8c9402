/* SPDX-License-Identifier: Apache-2.0
 *
 * Which file a dlopen by a bare name takes.
 */
#ifndef VCUDA_SHIM_LOADER_BARE_NAME_H
#define VCUDA_SHIM_LOADER_BARE_NAME_H

#include <stdbool.h>
#include <stddef.h>

/* The file of that name in the folders that the program was given (its RUNPATH,
 * LD_LIBRARY_PATH) and the system's, or else in the dynamic linker's cache; not in those of the
 * library that asks. OPEN is the C library's dlopen.  False, with PATH as it was, where there
 * is none. */
bool bare_name_file(
	void *(*open)(const char *, int), const char *name, char *path, size_t size);

/* The same in a cache as ldconfig writes it; every bound is checked. */
bool bare_name_in_cache(
	const void *cache, size_t bytes, const char *name, char *path, size_t size);

#endif
