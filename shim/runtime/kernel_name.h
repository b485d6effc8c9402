/* SPDX-License-Identifier: Apache-2.0
 *
 * For a profiler's front, which is a part of the same library.
 */
#ifndef VCUDA_RUNTIME_KERNEL_NAME_H
#define VCUDA_RUNTIME_KERNEL_NAME_H

#include <stdbool.h>

/* The name, in its image, of the kernel that a launch names: by the address of its stub in the
 * program, or (HANDLE) by what __cudaGetKernel gave. NULL: it is none. */
const char *runtime_kernel_name(const void *kernel, bool handle);

#endif
