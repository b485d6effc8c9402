/* SPDX-License-Identifier: Apache-2.0
 *
 * Device memory, addressed by the shim: each device has a window that the worker has reserved
 * for this process, and an allocation is a post that puts memory at the address chosen here.
 * Small ones are cut from slabs.
 *
 * What is freed is not given out again before the worker has said that everything posted before
 * the free is done (COUNTER_UNMAPPED tickets): so no work in flight, on whatever stream, meets
 * the next owner's.  Steady state costs no round trip.
 */
#ifndef VCUDA_SHIM_DRIVER_MEMORY_MEMORY_H
#define VCUDA_SHIM_DRIVER_MEMORY_MEMORY_H

#include <cuda.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct context;

struct memory_range {
	uint64_t base;
	uint64_t bytes; /* as asked for */
	uint64_t id;	/* unique in the process */
	int device;
	uint16_t context; /* that it goes with; CONTEXT_NONE: with none of the program's own */
	bool async;	  /* from a pool, or a graph's */
	bool global;	  /* a module's variable */
	bool managed;	  /* managed memory is made of it: where that ends, managed.h knows */
	bool reserved;	  /* cuMemAddressReserve's: what is mapped there, vmm.c knows */
};

/* After vcudaOpen: takes the windows over. */
CUresult memory_open(void);

CUresult memory_alloc(int device, size_t bytes, bool async, CUdeviceptr *address);
/* The same with granules of its own, for managed memory; *OURS: the program has nothing at
 * these addresses but the shim's reservation. */
CUresult memory_alloc_whole(int device, size_t bytes, CUdeviceptr *address, bool *ours);
/* INVALID_VALUE: not the start of a live allocation. */
CUresult memory_free(CUdeviceptr address);
/* pointer.c: the handle of the live context of that number; 0: none. */
uint64_t pointer_context_by_number(uint16_t number);
/* The live allocation around an address, or the reservation, where it is not the program's own
 * memory that is mapped there (vmm_host.h). */
bool memory_find(CUdeviceptr address, struct memory_range *range);
/* The reservation, whatever is mapped there. */
bool memory_reserved(CUdeviceptr address, struct memory_range *range);
/* The program has nothing of its own in the device's window but what the shim maps there. */
bool memory_window_kept(int device);
/* Is [address, address + bytes) device memory that is live, as far as the shim can know? */
bool memory_inside(CUdeviceptr address, size_t bytes);
/* The same of one live allocation of that device, at once; false: memory_inside() knows. */
bool memory_inside_one(int device, CUdeviceptr address, size_t bytes);
/* In a device's window: device memory or nothing, never the app's own. */
bool memory_in_window(CUdeviceptr address, int *device);
/* A module's variable: memory that the worker's driver placed. */
void memory_global(int device, CUdeviceptr address, size_t bytes);
/* Waits until the worker has unmapped everything that was freed, but not while a host function
 * is outstanding, which may need a lock of this thread; *KEPT: bytes of the device that are
 * free and that it has not unmapped. */
CUresult memory_drain(int device, uint64_t *kept);
/* The context is gone, or was reset: so is its memory.  LAST: no other one is on the device,
 * and what belongs to the device goes as well (pools, reservations). */
void memory_context_gone(const struct context *context, bool last);

/* --- for memory that processes share (ipc.c) --- */
/* Others may have the allocation around an address mapped from now on. */
void memory_shared(CUdeviceptr address);
bool memory_is_shared(CUdeviceptr address);
/* Another process's memory of BYTES (granules) that the agent knows by NAME, at an address of
 * our own; it goes by memory_free. */
CUresult memory_import(int device, const uint8_t name[16], size_t bytes, CUdeviceptr *address);

/* --- for the VMM interface (vmm.c) --- */
CUresult memory_reserve(
	int device, size_t bytes, size_t alignment, CUdeviceptr wanted, CUdeviceptr *address);
CUresult memory_unreserve(CUdeviceptr address, size_t bytes);
/* Counts BYTES against the lease (OUT_OF_MEMORY) until memory_unlease. */
CUresult memory_lease(int device, size_t bytes);
void memory_unlease(int device, size_t bytes);

#endif
