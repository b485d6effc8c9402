/* SPDX-License-Identifier: Apache-2.0
 *
 * What the files of libraries share: library.c owns a library with all that is in it, and
 * library_kernels.c adds its kernels.
 */
#ifndef VCUDA_SHIM_DRIVER_MODULE_LIBRARY_CORE_H
#define VCUDA_SHIM_DRIVER_MODULE_LIBRARY_CORE_H

#include <cuda.h>
#include <pthread.h>
#include <stdint.h>

#include "shim/driver/module/module.h"

struct kernel {
	uint64_t handle;
	struct library *library;
	struct kernel *next;
	char *name;
	_Atomic(struct kernel_settings *) settings; /* kernel_settings.h; NULL: none */
};

struct loaded {
	struct loaded *next;
	uint16_t number;     /* of the context … */
	uint64_t context_id; /* … and which one of that number */
	uint64_t module;
};

struct library {
	uint64_t handle;
	unsigned char *image; /* a copy of what the app gave us … */
	const void *given;    /* … or its own, if it said that it stays */
	struct jit jit;
	pthread_mutex_t lock;
	struct kernel *kernels;
	struct loaded *loaded;
	bool shares; /* its modules have one set of managed variables: asked for before any was
		      */
};

/* NULL: there is none of that handle. */
struct library *library_of(CUlibrary library);

/* The library's module in the current context, loaded on first use. */
CUresult library_module(struct library *library, struct module **out);

/* The same for what is asked of the library alone: a thread without a context is answered by
 * the first device's primary one, where there is one. */
CUresult library_module_anywhere(struct library *library, struct module **out);

#endif
