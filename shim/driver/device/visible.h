/* SPDX-License-Identifier: Apache-2.0
 *
 * Which of the session's GPUs CUDA shows the program, and in which order: CUDA_VISIBLE_DEVICES
 * and CUDA_DEVICE_ORDER, read at cuInit as NVIDIA's driver reads them.  NVML shows all.
 */
#ifndef VCUDA_SHIM_DRIVER_DEVICE_VISIBLE_H
#define VCUDA_SHIM_DRIVER_DEVICE_VISIBLE_H

#include "protocol/wire/open.h"

#define VISIBLE_INVALID (-1) /* cuInit: CUDA_ERROR_INVALID_DEVICE */

/* CHOSEN[i]: which of ALL is device i. How many: 0 is CUDA_ERROR_NO_DEVICE; VISIBLE_INVALID.
 * ORDER and LIST: the variables' values, NULL where not set. */
int visible_choose(const char *order, const char *list, const struct open_device *all,
	int count, int chosen[OPEN_DEVICES_MOST]);

#endif
