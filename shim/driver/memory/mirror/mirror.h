/* SPDX-License-Identifier: Apache-2.0
 *
 * Host memory that kernels reach: the agent has a mirror of it (protocol/wire/mirror.h). Pinned
 * memory lies in a window of addresses that the agent keeps free, so that the mirror has the
 * same address; it becomes active, and costs something, when a kernel may use it. Then what the
 * program has written travels before each piece of work, and what kernels have written after
 * each wait; while work is outstanding a thread of ours keeps both in step.
 */
#ifndef VCUDA_SHIM_DRIVER_MEMORY_MIRROR_MIRROR_H
#define VCUDA_SHIM_DRIVER_MEMORY_MIRROR_MIRROR_H

#include <cuda.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "protocol/wire/open.h"
#include "shim/engine/driver.h"

/* After vcudaOpen: takes the window over. */
void mirror_open(void);
/* Whether the agent has addresses for it. */
bool mirror_served(void);

/* An address in the window for SIZE bytes of pinned memory (pages); NULL: none. */
void *mirror_place(size_t size);
void mirror_unplace(void *at, size_t size);

/* The pages around [host, host + bytes) become active, once more. An error says why they
 * cannot: MAP_FAILED, the agent has something else at that address. */
CUresult mirror_activate(const void *host, size_t bytes);
/* What one mirror_activate did is over. Nothing that is outstanding uses the memory. */
void mirror_deactivate(const void *host, size_t bytes);

/* Memory that the agent has at ADDRESS, and wherever mirror_alias says, and the program at
 * LIVE, of its own choice: neither is an address that the program uses. */
CUresult mirror_hidden(void *live, uint64_t address, size_t bytes);
void mirror_hidden_gone(uint64_t address);
/* The program's and the agent's [at, + bytes) is active, or no more, being some of that. */
CUresult mirror_alias(uint64_t at, size_t bytes);
void mirror_alias_gone(uint64_t at);

/* Whether any page is active, as in few programs. */
static inline bool mirror_any(void)
{
	return __builtin_expect(
		atomic_load_explicit(&mirror_regions, memory_order_relaxed) != 0, 0);
}

/* Before work is posted that may use the memory: what the program wrote goes first. */
CUresult mirror_push(void);
static inline CUresult mirror_before(void)
{
	return mirror_any() ? mirror_push() : CUDA_SUCCESS;
}

/* Waits as vcudaSync does (SYNC_NONE: for nothing), and takes over what kernels have written.
 * *SEQ (may be NULL): the number of the frame that waited. */
CUresult mirror_fetch(uint32_t scope, uint64_t handle, uint64_t *seq);
/* After something was seen to be done without mirror_fetch. */
static inline CUresult mirror_after(void)
{
	return mirror_any() ? mirror_fetch(SYNC_NONE, 0, NULL) : CUDA_SUCCESS;
}

/* All of [address, + bytes), the program's or as kernels know it, is active. */
bool mirror_inside(uint64_t address, size_t bytes);

/* All of [address, + bytes) is live device memory or active: work at the agent may use it. */
bool mirror_reaches(uint64_t address, size_t bytes);

/* mirror_usable.c: whether the process may read (and WRITE) all of [at, end): what it registers
 * may be anything, and is looked at from other calls and from a thread of ours. */
bool mirror_usable(uint64_t at, uint64_t end, bool write);

/* What kernels know an address of active memory by: it is another where the agent has something
 * else at that of registered memory. */
uint64_t mirror_address(uint64_t host);

#endif
