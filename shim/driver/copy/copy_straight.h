/* SPDX-License-Identifier: Apache-2.0
 *
 * Small copies between pinned memory and the device that are not awaited, in the case of nearly
 * all: what a copy may have to heed else (copy.c) is asked for at once.
 */
#ifndef VCUDA_SHIM_DRIVER_COPY_COPY_STRAIGHT_H
#define VCUDA_SHIM_DRIVER_COPY_COPY_STRAIGHT_H

#include <cuda.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* N bytes at HOST go to, or with !IN come from, DEVICE. False: it may be another case, and
 * nothing was done. */
bool copy_straight(
	uint64_t device, uint64_t host, size_t n, bool in, CUstream stream, CUresult *status);

#endif
