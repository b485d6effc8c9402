/* SPDX-License-Identifier: Apache-2.0
 *
 * A CUDA runtime that is linked into a file without symbols.
 */
#ifndef VCUDA_SHIM_DRIVER_STATIC_RUNTIME_H
#define VCUDA_SHIM_DRIVER_STATIC_RUNTIME_H

#include <stdbool.h>

struct static_runtime {
	unsigned major;
	unsigned minor;
	bool minor_known;
};

/* Reads the CUDA version from the file's strings. False: they do not tell. */
bool static_runtime_read(const char *path, struct static_runtime *runtime);

#endif
