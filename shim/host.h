/* SPDX-License-Identifier: Apache-2.0
 *
 * Pinned host memory: segments shared with the sidecar from the start, so that a copy names bytes
 * instead of moving them.  Memory that the app registers itself stays pageable to us.
 */
#ifndef VCUDA_SHIM_HOST_H
#define VCUDA_SHIM_HOST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "protocol/frame.h"

struct host_range {
	void *base;
	size_t bytes;
	unsigned flags;
	uint64_t id;
	uint16_t context;
	bool registered; /* by cuMemHostRegister: not ours */
};

/* The allocation or registration around an address. */
bool host_find(const void *host, struct host_range *range);

#endif
