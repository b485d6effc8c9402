/* SPDX-License-Identifier: Apache-2.0
 *
 * Devices and contexts as the shim knows them.  All of it is local: the worker has one real
 * primary context a device, and makes others when told to.
 */
#ifndef VCUDA_SHIM_DRIVER_CONTEXT_CONTEXT_H
#define VCUDA_SHIM_DRIVER_CONTEXT_CONTEXT_H

#include <cuda.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "protocol/wire/handle.h"
#include "protocol/wire/open.h"
#include "shim/engine/session.h"

struct coredump;
struct stream;

struct context {
	uint64_t handle;	 /* the app's CUcontext */
	uint64_t id;		 /* cuCtxGetId */
	uint16_t number;	 /* frame_header.context */
	struct context *home;	 /* whose modules it uses: itself, of a green one the primary */
	struct session *session; /* of the device's agent */
	uint64_t green;		 /* the app's CUgreenCtx; 0: it is not one */
	bool primary;
	bool first; /* of the first cuCtxCreate: nobody else has the device meanwhile */
	int device;
	_Atomic unsigned flags;
	_Atomic unsigned retained; /* primary: how often; created: 1 while it lives */
	/* How often it was made current and not popped: one that another call replaced
	 * counts on, as natively. */
	_Atomic unsigned attached;
	_Atomic bool floating; /* cuCtxPopCurrent took its thread's last of it */
	/* It can be used. A primary one that was reset cannot until it is retained again,
	 * whatever its count. */
	_Atomic bool live;
	/* Devices of the contexts that it has access to (peer.c): a bit each. */
	_Atomic uint64_t reached;
	/* Frames up to here are known to be done in all streams of this context. */
	_Atomic uint64_t synced;
	struct stream *legacy;	   /* the stream that is 0 */
	uint64_t order_event;	   /* order.c; 0: none yet */
	uint64_t ahead;		   /* stream_ahead()'s; 0: none yet */
	struct coredump *coredump; /* coredump.c; NULL: what the process says */
};

struct device {
	struct open_device open;
	struct session *session; /* of its agent */
	int place;		 /* in devices.all */
	unsigned agent;		 /* which of the sessions */
	int number;		 /* what the worker calls it: device_wire() */
	struct context primary;
	_Atomic unsigned primary_flags; /* that its next one begins with */
};

extern struct devices {
	/* What the sessions have, in the order of the agents and of each agent: NVML shows it.
	 * Filled when the process joins; what there is once is the first agent's. */
	struct open_info info;
	struct open_device all[OPEN_DEVICES_MOST];
	struct session *home[OPEN_DEVICES_MOST];
	/* What CUDA shows of it, by CUdevice (visible.h). Filled at cuInit, never changed
	 * after. */
	struct device at[OPEN_DEVICES_MOST];
	int count;
} devices;

/* The device; NULL: no such. */
struct device *device_of(CUdevice device);
/* Takes over the answer of the session's vcudaOpen, behind those of the sessions before it.
 * SUCCESS; SYSTEM_DRIVER_MISMATCH where it is not what it should be, or does not go with the
 * others: session_because() is told. */
CUresult device_fill(const void *answer, size_t bytes);
/* Where all windows so far end. */
uint64_t device_windows_end(void);
/* At cuInit: what is visible. NO_DEVICE, INVALID_DEVICE: what cuInit answers. */
CUresult device_show(void);
/* A device as frames of its session name it. */
static inline int device_wire(int device)
{
	return devices.at[device].number;
}
/* The visible device of that UUID; -1: none. Two agents may have one GPU: then WANTED, if it is
 * that. */
int device_named(const uint8_t uuid[16], int wanted);
/* The primary context's number, and back (0 where the device is not visible). */
static inline uint16_t device_primary(int device)
{
	return (uint16_t)CONTEXT_PRIMARY(devices.at[device].place);
}
int device_of_primary(uint16_t number);
/* Frames about a device go to its session meanwhile. */
struct session_visit device_visit(int device);

/* The thread's current context; NULL: none that can be used, answer context_missing(). */
static inline struct context *context_current(void)
{
	struct context *context = thread_self.current;

	/* A primary context that was released, or one that another thread destroyed. */
	if (context && !atomic_load_explicit(&context->live, memory_order_relaxed))
		return NULL;
	return context;
}
/* One that was destroyed lately too, which is not live. */
struct context *context_of(CUcontext handle);
/* It has CU_CTX_LMEM_RESIZE_TO_MAX from now on. */
void context_keeps(void);
/* What was never the handle of a context stands for the current one. */
struct context *context_or_current(CUcontext handle);

/* A context of its own number, not on any stack. ASK makes the worker's half. */
CUresult context_make(CUdevice dev, unsigned flags,
	CUresult (*ask)(struct context *context, const void *argument), const void *argument,
	struct context **out);
/* Ends one that context_make() made. CONTEXT_IS_DESTROYED: it had ended. */
CUresult context_end(struct context *context);

#endif
