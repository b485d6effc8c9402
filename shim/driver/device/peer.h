/* SPDX-License-Identifier: Apache-2.0
 *
 * Devices that reach each other's memory: what the agent's GPUs can, and who has it.
 */
#ifndef VCUDA_SHIM_DRIVER_DEVICE_PEER_H
#define VCUDA_SHIM_DRIVER_DEVICE_PEER_H

#include <cuda.h>
#include <stdbool.h>
#include <stddef.h>

/* Takes over what stands behind the devices in the answer of the session's vcudaOpen, which
 * begins with INFO. */
struct open_info;
void peer_fill(const struct open_info *info, const void *answer, size_t bytes);
/* DEV's kernels can be given access to OTHER's memory. */
bool peer_can(CUdevice dev, CUdevice other);
/* Work of the context may use the device memory at PTR: its own device's, a peer's to which it
 * has access, or memory that was mapped for its device. Of a pool's memory the agent's driver
 * knows it: true. */
struct context;
bool peer_reaches(const struct context *context, CUdeviceptr ptr);
/* The context is gone: nobody has access to it, and it has none. */
void peer_access_ends(struct context *context);
/* A pool of OWNER's, or memory of another process there, gives BY access, or takes it. A post:
 * the caller has its lock, under which it knows which. */
CUresult peer_pool(CUdevice owner, CUdevice by, bool in);
/* BY may do that with whole mappings in OWNER's window; a post too. */
CUresult peer_mapping(CUdevice owner, CUdeviceptr address, size_t bytes, CUdevice by,
	CUmemAccess_flags flags);

#endif
