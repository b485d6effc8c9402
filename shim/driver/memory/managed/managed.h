/* SPDX-License-Identifier: Apache-2.0
 *
 * Managed memory, by CUDA's rules for devices without concurrent access.  On the worker it is
 * device memory in the window, and the program has pages at the same addresses, so that a
 * pointer is good on both sides.
 *
 * The pages travel one by one, when somebody needs them: what the program has written is posted
 * before work that could read it, and from then on the program has no page; what it touches is
 * fetched, behind all work (page_fault.h).  So it never sees a page that is older than the
 * device's, and a touch while the device works waits for it, where natively the program would
 * be killed.
 *
 * A program without managed memory pays one branch a frame.
 */
#ifndef VCUDA_SHIM_DRIVER_MEMORY_MANAGED_MANAGED_H
#define VCUDA_SHIM_DRIVER_MEMORY_MANAGED_MANAGED_H

#include <cuda.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct context;

struct managed_range {
	uint64_t base;
	uint64_t bytes; /* as asked for */
	uint64_t id;	/* unique in the process */
	bool variable;	/* of a module: base and size are not told */
	bool pooled;	/* a memory pool's */
	struct context *context;
};

/* Is there a way of watching memory, which it needs? Chooses it at first. */
bool managed_way_known(void);
/* ATTACH: CU_MEM_ATTACH_GLOBAL or _HOST. NOT_SUPPORTED: the kernel lets us watch no memory. */
CUresult managed_alloc(
	struct context *context, size_t bytes, unsigned attach, CUdeviceptr *address);
/* Waits for the work before it, as natively. INVALID_VALUE: not the start of one. */
CUresult managed_free(CUdeviceptr address);
/* The same for a memory pool, attached to all streams; *ID is no other allocation's. */
CUresult managed_pool_alloc(
	struct context *context, size_t bytes, CUdeviceptr *address, uint64_t *id);
/* Frees them.  Where they may still be in use, WAIT says that this waits for it. */
CUresult managed_pool_free(CUdeviceptr address, uint64_t id, bool wait);
/* A module's variable is managed: the program gets its pages there. OUT_OF_MEMORY: it has
 * something at that address. */
CUresult managed_variable(
	struct context *context, CUdeviceptr address, size_t bytes, uint64_t module);
/* The module is being unloaded. */
void managed_module_gone(uint64_t module);
/* The one around an address. */
bool managed_find(CUdeviceptr address, struct managed_range *range);
/* The context is gone, or was reset, or the stream. */
void managed_context_gone(const struct context *context);
void managed_stream_gone(uint64_t stream);
/* In memory that managed memory is made of, but in none: behind the end of one. */
bool managed_gap(CUdeviceptr address);
/* Could it be managed memory? Any thread, in a signal handler too. */
bool managed_near(uint64_t address);
/* The program has the managed pages among these bytes when a system call comes to them. */
void managed_reach(uintptr_t from, size_t n, bool write);
/* Before work on that stream of the current context, where managed_any: the device gets what is
 * new. */
CUresult managed_push(uint64_t stream);
/* --- managed_named.c: work may name what is not attached for it, as where a device has
 * concurrent access. --- */
/* Around a copy or a fill that names an address, before the stream is asked for its number: the
 * device gets what is new there, and the program waits for what is written there. What is
 * attached to the host or to another stream stays so. */
struct managed_named {
	uint64_t address;
	bool apart; /* not attached for it */
};
CUresult managed_name(CUstream stream, uint64_t address, struct managed_named *named);
void managed_name_end(const struct managed_named *named);
/* Before other work whose arguments are these words: what is attached to the host and named by
 * one of them is attached to all streams from now on, since nobody knows when such work ends.
 * NOT_SUPPORTED: one of them is the memory of a device that the current one does not reach.
 */
CUresult managed_words(const void *words, size_t bytes);
/* It is managed memory, and kernels of the context's device reach it. */
bool managed_reached(const struct context *context, CUdeviceptr address);
/* A host function has run: the device gets what it wrote, before its stream goes on. */
void managed_push_callback(void);

#endif
