/* SPDX-License-Identifier: Apache-2.0
 *
 * The NVML front: libvcuda-nvml.so, which stands for NVIDIA's libnvidia-ml.so.1.  It exports
 * every function of nvml.h; those of the files beside unserved.c are served, those listed in
 * protocol/api/nvml.api answer NOT_SUPPORTED.
 *
 * It holds no connection of its own: what a session learned at its start is told locally, what
 * changes is asked through the driver front (shim/driver/device/nvml.h, which also says what a
 * fork does). Devices are those of the session, in CUDA's order, and their handles are
 * addresses of `slots`. What the agent does not know is NVML_ERROR_NOT_SUPPORTED, never a
 * made-up value.
 */
#ifndef VCUDA_SHIM_NVML_NVML_H
#define VCUDA_SHIM_NVML_NVML_H

#include <stdint.h>

/* Not the newest form under the oldest name: both are exported. */
#define NVML_NO_UNVERSIONED_FUNC_DEFS
#pragma GCC visibility push(default)
#include <nvml.h>
#pragma GCC visibility pop

#include "shim/driver/device/nvml.h"

/* UNINITIALIZED unless nvmlInit was called; starts every function. */
nvmlReturn_t nvml_enter(void);

/* The number of devices; 0 also where nvmlInitWithFlags was content with none. */
unsigned nvml_count(void);
nvmlDevice_t nvml_handle(unsigned index);
/* The device of a handle and its number, or INVALID_ARGUMENT, UNINITIALIZED. */
nvmlReturn_t nvml_device(
	nvmlDevice_t handle, const struct open_device **device, unsigned *index);

/* How a failure of the session is told. */
nvmlReturn_t nvml_status(CUresult status);

/* Asks for the facts of MASK; NOT_SUPPORTED unless all of them are known. */
#define FRONT_BIT(fact) (1ull << (fact))
nvmlReturn_t nvml_facts(nvmlDevice_t handle, uint64_t mask, struct nvml_facts *facts);
/* One fact into *VALUE; INVALID_ARGUMENT where VALUE is NULL. */
nvmlReturn_t nvml_fact(nvmlDevice_t handle, enum nvml_fact fact, unsigned *value);
nvmlReturn_t nvml_long_fact(
	nvmlDevice_t handle, enum nvml_fact fact, unsigned long long *value);

/* FROM into the caller's buffer; INSUFFICIENT_SIZE where it does not fit. */
nvmlReturn_t nvml_copy(char *to, unsigned length, const char *from);
/* A text that the agent knows (enum nvml_text); handle NULL: of the machine. */
nvmlReturn_t nvml_text(nvmlDevice_t handle, uint32_t which, char *to, unsigned length);

/* "GPU-xxxxxxxx-…" */
#define NVML_UUID_TEXT 41
void nvml_uuid(const struct open_device *device, char uuid[NVML_UUID_TEXT]);

#endif
