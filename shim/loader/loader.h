/* SPDX-License-Identifier: Apache-2.0
 *
 * The loader guard: dlopen of NVIDIA's originals by file name finds our libraries.
 */
#ifndef VCUDA_SHIM_LOADER_LOADER_H
#define VCUDA_SHIM_LOADER_LOADER_H

#include <stdbool.h>
#include <stddef.h>

/* What a program sees of this library. */
#define EXPORTED __attribute__((visibility("default")))

/* The C library's function of that name, kept in *KNOWN. */
void *loader_next(const char *name, void *_Atomic *known) __attribute__((visibility("hidden")));

/* The C library's function of that name. */
#define NEXT(name)                                                                             \
	({                                                                                     \
		static void *_Atomic known;                                                    \
		(__typeof__(&(name)))loader_next(#name, &known);                               \
	})

/* The program has its managed memory there when a system call comes to these bytes, or to that
 * text, if that is needed. */
void loader_reach(const void *at, size_t n, bool write) __attribute__((visibility("hidden")));
void loader_reach_text(const char *text) __attribute__((visibility("hidden")));

/* True for the file of one of our libraries, whatever link it was found by. */
bool loader_is_ours(const char *path);

#endif
