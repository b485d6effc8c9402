/* SPDX-License-Identifier: Apache-2.0
 *
 * User objects: memory of the program that graphs keep alive.  They never cross: references are
 * counted here, and the destructor runs on a thread of ours once the last one is gone.
 */
#ifndef VCUDA_SHIM_DRIVER_GRAPH_USER_OBJECT_H
#define VCUDA_SHIM_DRIVER_GRAPH_USER_OBJECT_H

#include <cuda.h>

struct user_object;

/* COUNT references less, of those that the caller has. Any thread. */
void user_object_let(struct user_object *object, unsigned count);

#endif
