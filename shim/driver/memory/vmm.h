/* SPDX-License-Identifier: Apache-2.0
 *
 * Virtual memory management (vmm.c): what the rest of the shim has to do with it.
 */
#ifndef VCUDA_SHIM_DRIVER_MEMORY_VMM_H
#define VCUDA_SHIM_DRIVER_MEMORY_VMM_H

#include <stdint.h>

/* The device was reset: nothing is mapped there any more. The bytes of memory that the app
 * still has a handle of. */
uint64_t vmm_reset(int device);

#endif
