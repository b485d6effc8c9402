/* SPDX-License-Identifier: Apache-2.0
 *
 * The loader guard: dlopen of NVIDIA's originals by file name finds our libraries.
 */
#ifndef VCUDA_UTILITIES_LOADER_H
#define VCUDA_UTILITIES_LOADER_H

#include <stdbool.h>

/* The SONAME under which our stand-in for PATH is loaded, "libcuda.so.1" for
 * "/usr/lib/libcuda.so.550.54"; NULL where PATH is none of NVIDIA's that we stand in for. */
const char *loader_stand_in(const char *path);

/* True for the file of one of our libraries, whatever link it was found by. */
bool loader_is_ours(const char *path);

/* A handle on our library with this SONAME where it is loaded already; else NULL. Not to be
 * closed. */
void *loader_ours(const char *soname);

#endif
