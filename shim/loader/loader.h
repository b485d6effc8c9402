/* SPDX-License-Identifier: Apache-2.0
 *
 * The loader guard: dlopen of NVIDIA's originals by file name finds our libraries.
 */
#ifndef VCUDA_SHIM_LOADER_LOADER_H
#define VCUDA_SHIM_LOADER_LOADER_H

#include <stdbool.h>

/* What a program sees of this library. */
#define EXPORTED __attribute__((visibility("default")))

/* The C library's function of that name, kept in *KNOWN. */
void *loader_next(const char *name, void *_Atomic *known) __attribute__((visibility("hidden")));

/* True for the file of one of our libraries, whatever link it was found by. */
bool loader_is_ours(const char *path);

#endif
