/* SPDX-License-Identifier: Apache-2.0
 *
 * What context_primary.c has of context.c, which owns the list of all contexts.
 */
#ifndef VCUDA_SOFTGPU_DRIVER_CONTEXT_CORE_H
#define VCUDA_SOFTGPU_DRIVER_CONTEXT_CORE_H

#include "softgpu/driver/softgpu.h"

bool soft_context_flags_valid(unsigned flags);
/* Puts it into the list of all. context_lock held. */
CUresult soft_context_new(struct device *device, unsigned flags, struct CUctx_st **out);
/* Takes it out of the list and the table of handles. context_lock held. */
void soft_context_unlist(struct CUctx_st *context);
/* Ends a context: its work is waited for, then cancelled; what it owns is freed.  context_lock
 * must not be held; the context is out of the list and the table of handles already. */
void soft_context_end(struct CUctx_st *context);

#endif
