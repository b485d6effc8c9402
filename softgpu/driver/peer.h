/* SPDX-License-Identifier: Apache-2.0
 *
 * Which device reaches whose memory (peer.c).  All but peer_init and peer_zone: memory_lock is
 * held for writing.
 */
#ifndef VCUDA_SOFTGPU_DRIVER_PEER_H
#define VCUDA_SOFTGPU_DRIVER_PEER_H

#include "softgpu/driver/softgpu.h"

/* After memory_init.  False: no memory. */
bool peer_init(void);
/* Of [low, high) the part for what a device allocates, or (NULL) for the host's memory. */
void peer_zone(
	const struct device *device, uint64_t low, uint64_t high, uint64_t *from, uint64_t *to);
/* Memory that is mapped there is reached by these devices, a bit for each. */
void peer_mapped(uint64_t start, uint64_t size, uint64_t reached_by);
/* Gives BY access to what OWNER allocates, or takes it; as often taken as given. */
void peer_let(const struct device *owner, const struct device *by, bool in);
/* Takes the lock itself.  What a context was given, and others to its device, of the list ALL.
 */
void peer_context_gone(struct CUctx_st *context, struct CUctx_st *all);
/* Takes the lock itself.  memory_allocate() of BLOCK_DEVICE, where all devices reach it. */
CUresult memory_allocate_open(
	struct CUctx_st *context, size_t size, size_t align, uint64_t *address);

#endif
