/* SPDX-License-Identifier: Apache-2.0
 *
 * Parts of a device that green contexts get.  NVIDIA's CUdevResource holds what only its driver
 * may read, so it stays at the worker; what crosses is a name for it and what a program may
 * read.
 */
#ifndef VCUDA_PROTOCOL_WIRE_GREEN_H
#define VCUDA_PROTOCOL_WIRE_GREEN_H

#include <stdint.h>

struct green_resource {
	uint64_t name; /* never 0 */
	uint32_t sm_count, sm_least, sm_alignment;
	uint32_t reserved;
};

/* So many parts a split has at the most: they fit into one answer. */
#define GREEN_PARTS 80
/* So many resources, and so many descriptors made of them, a session may have. They live as
 * long as it does, as CUDA has no call that ends them. */
#define GREEN_NAMES 16384

#endif
