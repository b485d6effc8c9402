/* SPDX-License-Identifier: Apache-2.0
 *
 * What the NVML front (shim/nvml/) asks of the driver front: the process has one session, and
 * these use it.  Any thread.
 *
 * NVML does not need cuInit: joining attaches the process and learns the devices, and leaves
 * the session SESSION_JOINED, in which CUDA calls still answer NOT_INITIALIZED.  A later cuInit
 * only finishes it.  A child of fork that finds the session so drops its copy and attaches anew
 * at its first call: a program may count GPUs by NVML, fork, and use CUDA in the children
 * (PyTorch's data loaders and launchers do).  After cuInit a child has no session, as with
 * NVIDIA's: what was learned is still told, what has to be asked is CUDA_ERROR_NOT_INITIALIZED.
 */
#ifndef VCUDA_SHIM_DRIVER_DEVICE_NVML_H
#define VCUDA_SHIM_DRIVER_DEVICE_NVML_H

#include <cuda.h>
#include <stdbool.h>
#include <stdint.h>

#include "protocol/wire/open.h"

#pragma GCC visibility push(default)

/* Attaches, unless that is done. The first failure stays, for cuInit too. */
CUresult vcuda_nvml_join(void);

/* What was learned when joining; valid after it succeeded once, never changed but by a child
 * that attaches anew. NULL: no such device. */
const struct open_info *vcuda_nvml_info(void);
const struct open_device *vcuda_nvml_device(unsigned index);

/* Whose it is: the address at which its agent was reached. NULL: no such device. */
const char *vcuda_nvml_agent(unsigned index);
/* What NVML calls the one that CUDA calls DEVICE, once cuInit succeeded; -1: there is none. */
int vcuda_nvml_index(CUdevice device);

/* This process has a context on the device, and the session is alive. */
bool vcuda_nvml_cuda_used(unsigned index);

/* Asks the worker for the facts of the mask; facts->known says which of them it knows. */
CUresult vcuda_nvml_facts(int device, uint64_t wanted, struct nvml_facts *facts);
/* A text (enum nvml_text), always ended; device -1: of the machine. CUDA_ERROR_NOT_SUPPORTED:
 * not known. */
CUresult vcuda_nvml_text(int device, uint32_t which, char text[NVML_TEXT_BYTES]);
/* What two devices are to each other, and one's NVLink number LINK; what is not known is not
 * set in `known`, with an older agent nothing is. */
CUresult vcuda_nvml_pair(int device, int other, struct nvml_pair *pair);
CUresult vcuda_nvml_link(int device, unsigned link, struct nvml_link *told);
/* COUNT (1 to NVML_FIELDS_MAX) field values of a device. */
CUresult vcuda_nvml_fields(int device, uint32_t count, const struct nvml_field *fields,
	struct nvml_field_value *values);

#pragma GCC visibility pop

#endif
