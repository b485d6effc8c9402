/* SPDX-License-Identifier: Apache-2.0
 *
 * The settings of core dumps that a context has of its own.
 */
#ifndef VCUDA_SHIM_DRIVER_CONTEXT_COREDUMP_H
#define VCUDA_SHIM_DRIVER_CONTEXT_COREDUMP_H

struct context;

/* The context ends, or is reset: it has none of its own any more. */
void coredump_drop(struct context *context);

#endif
