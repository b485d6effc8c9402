/* SPDX-License-Identifier: Apache-2.0
 *
 * What the files of contexts share: context.c (those that the program makes), context_primary.c
 * and context_stack.c (each thread's, and what is asked of the current one).
 */
#ifndef VCUDA_SHIM_DRIVER_CONTEXT_CONTEXT_STATE_H
#define VCUDA_SHIM_DRIVER_CONTEXT_CONTEXT_STATE_H

#include <pthread.h>

#include "shim/driver/context/context.h"

#define CONTEXT_FLAGS (unsigned)CU_CTX_FLAGS_MASK
#define CONTEXT_DEAD 64

extern struct contexts {
	pthread_mutex_t lock;
	_Atomic uint64_t last_id;
	bool numbers_used[CONTEXT_MAX];
	/* Those that were destroyed last: their handles are told to be a destroyed context's.
	 */
	struct context *dead[CONTEXT_DEAD];
	unsigned dead_next;
} contexts;

/* Of contexts: the runtime front must see that what it has bound is gone. */
__attribute__((visibility("default"))) extern _Atomic uint32_t vcuda_resets;

/* For a runtime front: where the thread's current context is told as long as the thread lives,
 * so that nothing is called to see that it is the same. NULL: such calls are counted. Any
 * thread; what it tells a host function's is nothing to go by. */
__attribute__((visibility("default"))) const uint64_t *vcuda_current(void);

/* At most one of the ways in which a thread waits. */
bool context_flags_valid(unsigned flags);

/* The device's contexts of the program's own. */
struct context_others {
	int device;
	bool any;
	bool first; /* and one of the first cuCtxCreate's */
	bool green; /* there are green contexts, which are parts of the primary one */
};
struct context_others context_others(int device);

static inline CUcontext context_handle(const struct context *context)
{
	return (CUcontext)(uintptr_t)(context ? context->handle : 0);
}

#endif
